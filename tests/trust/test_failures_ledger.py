"""A ledger that fails says why, what to do and whether ε is spent, and shows no row and no password
(TRUST 29, 44).
"""

import itertools
import logging
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import psycopg
import pytest

from discreet import EngineFailed, InvalidParameter, Ledger, LedgerDamaged
from discreet.ledger import database, turns
from failures import CANARY, disk, fill, listening, nobody, refuse_shown, told
from waiting import PATIENCE

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    for module in (database, turns):
        monkeypatch.setattr(module, "PATIENCE", 1)


def spend(ledger, **more):
    return ledger.spend(f"r{next(_numbers)}", CANARY, "0.001", study="s", **more)


def made(where, **more):
    ledger = Ledger.open(where, new=True, **more)
    ledger.create("s", 1)
    return ledger


def damaged(work, says, code="", kind=LedgerDamaged):
    with pytest.raises(kind, match=says) as caught:
        work()
    assert code in caught.value.code
    refuse_shown(caught.value)


# Files


def test_a_file_that_another_process_has_locked_says_so(tmp_path):
    """With a lock of SQLite's, as of a tool that is open at a transaction."""
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        " c.execute('BEGIN EXCLUSIVE')"
    )
    command = [
        sys.executable,
        "-c",
        f"{program}\nprint(flush=True); sys.stdin.read()",
        str(tmp_path / "a.ledger"),
    ]
    with made(tmp_path / "a.ledger") as ledger:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        says = "the ledger was busy for 1 seconds: ask again when others have finished"
        try:
            told(lambda: spend(ledger), says, code="SQLITE_BUSY")
            told(lambda: Ledger.open(tmp_path / "a.ledger"), says, code="SQLITE_BUSY")
        finally:
            process.communicate()
        assert ledger.spent("s") == 0


def test_a_file_in_which_another_process_has_its_turn_says_so(tmp_path):
    program = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX)"
    command = [
        sys.executable,
        "-c",
        f"{program}\nprint(flush=True); sys.stdin.read()",
        str(tmp_path / "a.ledger.lock"),
    ]
    with made(tmp_path / "a.ledger") as ledger:
        grant = spend(ledger)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            told(lambda: spend(ledger), "the ledger was busy for 1 seconds")
            told(
                lambda: ledger.record(grant, CANARY.encode()),
                "the ledger was busy for 1 seconds",
                spent=True,
            )
        finally:
            process.communicate()


def test_a_full_disk_says_so_whatever_is_done(tmp_path, monkeypatch):
    """What it says of a spend is not known; a record is of what was spent, and reading spends
    nothing.

    The room is not seen before the spend, as behind a quota.
    """
    monkeypatch.setattr(database, "_room", lambda _: math.inf)
    with disk(tmp_path) as small, made(small / "a.ledger") as ledger:
        grants = [spend(ledger) for _ in range(3)]
        rest = fill(small)
        says = "the ledger's disk is full: nothing is released; make room and ask again"

        def recorded() -> None:
            for grant in grants:
                ledger.record(grant, os.urandom(99_000))

        told(recorded, says, spent=True, code="SQLITE_FULL")
        told(
            lambda: [ledger.spend(f"{n}", "q" * 9000, "0.001", study="s") for n in range(99)],
            says,
            spent=None,
            code="FULL",
        )
        with pytest.raises(
            (EngineFailed, InvalidParameter), match=r"disk is full: (make room|nothing)"
        ) as caught:
            Ledger.open(small / "b.ledger", new=True)
        refuse_shown(caught.value)
        rest.unlink()
        spend(ledger)


def test_a_read_only_disk_says_so(tmp_path):
    with disk(tmp_path) as small:
        made(small / "a.ledger").close()
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        damaged(
            lambda: Ledger.open(small / "a.ledger"),
            "cannot be written: make the file and its folder writable",
        )
        says = "the disk is read-only: make it writable, or name another place with --ledger"
        damaged(lambda: Ledger.open(small / "b.ledger", new=True), says, "EROFS", InvalidParameter)


def test_an_anchor_on_a_full_disk_says_so(tmp_path):
    with (
        disk(tmp_path, "64k") as small,
        made(tmp_path / "a.ledger", anchor=small / "a.anchor") as ledger,
    ):
        fill(small)
        says = (
            r"the ledger's anchor cannot be written \(No space left on device\): .*make room on its"
            r" disk"
        )
        told(lambda: [ledger.create(f"s{n}", 1) for n in range(99)], says, code="ENOSPC")


def test_files_that_may_not_be_read_say_so(in_memory):
    in_memory.chmod(0o755)
    made(in_memory / "a.ledger").close()
    with nobody():
        with pytest.raises(
            (EngineFailed, LedgerDamaged), match=r"cannot be|writable|accessible"
        ) as caught:
            Ledger.open(in_memory / "a.ledger")
        refuse_shown(caught.value)


def test_a_file_that_is_no_ledger_says_so(tmp_path):
    made(tmp_path / "a.ledger").close()
    (tmp_path / "a.ledger").write_text(CANARY * 99)
    damaged(
        lambda: Ledger.open(tmp_path / "a.ledger"),
        "this is not a complete ledger: put back the right file",
        "NOTADB",
    )


def test_what_a_check_of_sqlite_refuses_shows_no_row(tmp_path):
    """SQLite's and SQLAlchemy's words have the statement, its values and the failing row."""
    with made(tmp_path / "a.ledger") as ledger:
        grant = spend(ledger)
        with closing(sqlite3.connect(tmp_path / "a.ledger")) as other, other:
            other.execute(
                "CREATE TRIGGER t BEFORE INSERT ON discreet_entry BEGIN SELECT RAISE(ABORT,"
                f" '{CANARY}'); END"
            )
        damaged(
            lambda: ledger.record(grant, CANARY.encode()),
            "this is not a complete ledger",
            "SQLITE_CONSTRAINT",
        )


# Servers


@pytest.fixture(scope="module")
def server(own_postgres):
    own_postgres.access(
        "local all all trust",
        "host all secret 127.0.0.1/32 scram-sha-256",
        "host all away 127.0.0.1/32 reject",
        "host all all 127.0.0.1/32 trust",
    )
    own_postgres.start("max_connections=12")
    own_postgres.execute(
        "CREATE ROLE secret LOGIN PASSWORD 'sesame'; CREATE ROLE plain LOGIN; CREATE ROLE away"
        " LOGIN",
        "CREATE DATABASE other",
    )
    yield own_postgres
    own_postgres.end()


@pytest.fixture
def ledger(server, tmp_path):
    """A ledger on the server, in a schema of its own."""
    schema = f"ledger_{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {schema}")
    options = {"options": f"-csearch_path%3D{schema}"}
    with made(server.address(**options), anchor=tmp_path / "a.anchor") as ledger:
        ledger.where, ledger.schema = lambda **more: server.address(**options, **more), schema
        yield ledger


UNCONNECTED = {
    "wrong password": (
        {"user": "secret", "password": CANARY},
        "refuses the user or the password",
        "28P01",
    ),
    "no password": (
        {"user": "secret"},
        "asks for a password: give one in the address, PGPASSWORD or",
        "28P01",
    ),
    "rejected": (
        {"user": "away", "password": CANARY},
        "pg_hba.conf does not let this user connect",
        "28000",
    ),
    "unknown role": (
        {"user": "ghost", "password": CANARY},
        "has no such role: correct the user",
        "28000",
    ),
    "unknown database": ({"base": "nothing", "password": CANARY}, "has no such database", "3D000"),
    "encryption": ({"sslmode": "require"}, "no encrypted connection", "08001"),
    "unknown option": ({CANARY: "1"}, "the address cannot be read", "08001"),
}


@pytest.mark.parametrize("situation", UNCONNECTED)
def test_a_server_that_gives_no_connection_says_why(server, tmp_path, situation):
    address, says, code = UNCONNECTED[situation]
    anchor = tmp_path / "a.anchor"
    made(server.address(options=f"-csearch_path%3D{_schema(server)}"), anchor=anchor).close()
    address = {"user": "postgres", **address}
    says = f"the ledger's PostgreSQL server cannot be used: .*{says}"
    told(lambda: Ledger.open(server.address(**address), anchor=anchor), says, code=code)


def _schema(server):
    name = f"ledger_{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {name}")
    return name


AWAY = {
    "refused": (
        "127.0.0.1:1/x",
        "no server listens at its host and port: start it",
        "ECONNREFUSED",
    ),
    "no socket": ("/x?host=/nowhere", "no server listens at its socket", "ENOENT"),
    "unknown host": ("nowhere.invalid/x", "its host is unknown: correct the host", "EAI_NONAME"),
}


@pytest.mark.parametrize("situation", AWAY)
def test_a_server_that_is_not_there_says_why(server, tmp_path, situation):
    where, says, code = AWAY[situation]
    made(
        server.address(options=f"-csearch_path%3D{_schema(server)}"), anchor=tmp_path / "a"
    ).close()
    address = f"postgresql://someone:{CANARY}@{where}"
    told(
        lambda: Ledger.open(address, anchor=tmp_path / "a"),
        f"the ledger's PostgreSQL server .*: {says}",
        code=code,
    )


def test_another_service_at_the_port_is_called_that(server, tmp_path):
    made(
        server.address(options=f"-csearch_path%3D{_schema(server)}"), anchor=tmp_path / "a"
    ).close()
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        address = f"postgresql://someone:{CANARY}@127.0.0.1:{port}/x"
        told(
            lambda: Ledger.open(address, anchor=tmp_path / "a"),
            "no PostgreSQL server, .*correct the port",
            code="08001",
        )


def test_too_many_connections(server, tmp_path):
    made(
        server.address(options=f"-csearch_path%3D{_schema(server)}"), anchor=tmp_path / "a"
    ).close()
    held = []
    with suppress(psycopg.OperationalError):
        held.extend(psycopg.connect(server.address()) for _ in range(20))
    held = held or []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                held.append(psycopg.connect(server.address()))
        told(
            lambda: Ledger.open(server.address(), anchor=tmp_path / "a"),
            "has no connection left",
            code="53300",
        )
    finally:
        for connection in held:
            connection.close()
    _until(lambda: server.execute("SELECT 1"))


def _until(work, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while True:
        try:
            return work()
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def backends(server):
    """The processes of the server that hold connections."""
    found = (
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <>"
        " pg_backend_pid()"
    )
    return [pid for (pid,) in server.execute(found)]


LOST = {
    "terminated": (signal.SIGTERM, "57P01|08006|Operational"),
    "killed": (signal.SIGKILL, "57P0|08006|Operational"),
}


@pytest.mark.parametrize("situation", LOST)
@pytest.mark.parametrize("doing", ["spend", "record", "read"])
def test_a_connection_that_is_lost_says_so_and_whether_it_was_spent(
    server, ledger, situation, doing, caplog, capfd
):
    number, code = LOST[situation]
    grant = spend(ledger)
    doings = {
        "spend": (lambda: spend(ledger), None),
        "record": (lambda: ledger.record(grant, CANARY.encode()), True),
        "read": (lambda: ledger.spent("s"), False),
    }
    work, spent = doings[doing]
    for pid in backends(server):
        os.kill(pid, number)
    _until(lambda: server.execute("SELECT 1"))
    with caplog.at_level(logging.WARNING):
        told(
            work,
            "the ledger's server .*did not answer: see whether it runs",
            spent=spent,
            code=code,
        )
    assert [record.getMessage() for record in caplog.records] == []
    assert capfd.readouterr().err == ""
    _until(lambda: server.execute("SELECT 1"))
    work()


def test_a_server_that_is_down_says_so_and_nothing_is_spent(server, ledger):
    grant = spend(ledger)
    server.stop("immediate")
    with suppress(EngineFailed):
        ledger.spent("s")  # the connection of the pool is lost, and another is not made
    says = "the ledger's PostgreSQL server cannot be used: no server listens at its host and port"
    told(lambda: spend(ledger), says, code="ECONNREFUSED")
    told(ledger.verify, says, code="ECONNREFUSED")
    told(lambda: ledger.record(grant, b"answer"), says, spent=True, code="ECONNREFUSED")
    server.start("max_connections=12")
    assert ledger.record(grant, b"answer") == b"answer"


def test_rights_locks_and_a_read_only_server_say_so(server, ledger, tmp_path):
    anchor = tmp_path / "a.anchor"
    server.execute(f"GRANT USAGE ON SCHEMA {ledger.schema} TO plain")
    says = "does not permit this user to read and write its tables: ask its administrator"
    told(lambda: Ledger.open(ledger.where(user="plain"), anchor=anchor), says, code="42501")
    with psycopg.connect(server.address()) as other:
        other.execute(f"LOCK TABLE {ledger.schema}.discreet_entry IN ACCESS EXCLUSIVE MODE")
        told(lambda: spend(ledger), "the ledger was busy for 1 seconds: ask again", code="55P03")
    read_only = ledger.where().replace(
        "options=", "options=-cdefault_transaction_read_only%3Don%20"
    )

    def spend_there():
        with Ledger.open(read_only, anchor=anchor) as there:
            spend(there)

    told(
        spend_there,
        "the ledger's database is read-only: connect to the one that can be written",
        code="25006",
    )


def test_a_database_without_the_ledger_says_so(server, ledger, tmp_path):
    where = server.address(base="other")
    says = "no complete ledger that this user can see: connect to the right one"
    damaged(lambda: Ledger.open(where, anchor=tmp_path / "a.anchor"), says, "42P01")
    server.execute(f"ALTER TABLE {ledger.schema}.discreet_entry RENAME TO gone")
    damaged(lambda: spend(ledger), says, "42P01")


def test_what_a_check_of_postgresql_refuses_shows_no_row(server, ledger):
    """Its DETAIL has the failing row: the question and the answer."""
    grant = spend(ledger)
    server.execute(f"ALTER TABLE {ledger.schema}.discreet_entry ADD CHECK (answer IS NULL)")
    damaged(
        lambda: ledger.record(grant, CANARY.encode()),
        "no complete ledger that this user can see",
        "23514",
    )
