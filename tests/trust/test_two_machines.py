"""TRUST 47: a database that is put back to an earlier state while two machines have anchors that
know different heads.

What a machine has seen after the last entry that its anchor shares with the chain is charged when
it restores, whatever the other has spent meanwhile. A server that is another one, or has another
timeline, is refused before that: after a failover the standby may lack the last entries. The
control is the rule of before: the difference of two totals.
"""

import os
import subprocess
import tempfile
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from discreet import BudgetExceeded, EngineFailed, InvalidParameter, Ledger, LedgerDamaged
from discreet.ledger import book, database
from discreet.ledger.anchor import AnchorFile
from waiting import PATIENCE, wait


def accepted(place) -> Ledger:
    """The ledger, restored on this machine as the refusal says."""
    with pytest.raises(LedgerDamaged, match=r"Ledger\.restore") as refusal:
        place.open()
    accept = str(refusal.value).partition("accept='")[2][:16]
    return Ledger.restore(place.where, anchor=place.anchor, accept=accept)


def rolled_back(place):
    """Two machines: A knows of 0.1, B has shown 0.8 more; then the database is put back to what A
    knows.
    """
    with place.open(new=True) as a:
        a.create("s", 2)
        a.record(a.spend("a1", "q", "0.1", study="s"), b"shown by A")
    other = place.elsewhere("b")
    with other.open() as b:
        b.record(b.spend("b1", "q", "0.8", study="s"), b"shown by B")
    place.execute("DELETE FROM discreet_entry WHERE number > 3")
    return other


def test_what_the_other_machine_saw_is_charged_however_much_was_spent_meanwhile(server_place):
    """A opens without a complaint, for its own anchor is there, and spends as much as B had."""
    other = rolled_back(server_place)
    with server_place.open() as a:
        a.record(a.spend("a2", "q", "0.8", study="s"), b"shown by A")
        with accepted(other) as b:
            assert b.entries()[-1].amount == 800_000_000  # the rule of before: max(0, 0.9 − 0.9)
            assert b.spent("s") == Fraction(17, 10)  # all that was ever shown
        with pytest.raises(BudgetExceeded):
            a.spend("a3", "q", "0.4", study="s")
        assert a.verify() == 6


def test_the_same_spend_in_the_same_second_is_another_entry(server_place, monkeypatch):
    """A repeats, under the same request id, what B had spent and shown; the draws of both were
    seen.
    """

    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(book, "datetime", Stopped)
    other = rolled_back(server_place)
    with server_place.open() as a:
        a.record(a.spend("b1", "q", "0.8", study="s"), b"shown by A")
        with accepted(other) as b:
            assert b.entries()[-1].amount == 800_000_000
            assert b.spent("s") == Fraction(17, 10)
        assert len({entry.nonce for entry in a.entries()}) == a.verify() == 6


def test_nothing_is_charged_beyond_the_total(server_place):
    other = rolled_back(server_place)
    with server_place.open() as a:
        a.spend("a2", "q", "1.5", study="s")
        with accepted(other) as b:
            assert b.remaining("s") == 0
        assert a.verify() == 5


def test_an_anchor_that_shares_nothing_charges_all_that_it_saw(server_place):
    """Its own ledger, and none of the heads that it remembers."""
    other = rolled_back(server_place)
    with server_place.open() as a:
        a.spend("a2", "q", "0.8", study="s")
        file = AnchorFile(Path(other.anchor))
        known = file.read()
        points = tuple(point._replace(hash="0" * 32) for point in known.points["s"])
        file.replace(replace(known, points={"s": points}))
        with accepted(other) as b:
            assert b.entries()[-1].amount == 900_000_000


def test_the_mark_stays_the_same_while_others_spend(server_place):
    """Else a machine could never restore while another one works."""
    other = rolled_back(server_place)
    with pytest.raises(LedgerDamaged) as refusal:
        other.open()
    accept = str(refusal.value).partition("accept='")[2][:16]
    with server_place.open() as a:
        a.spend("a2", "q", "0.1", study="s")
        Ledger.restore(other.where, anchor=other.anchor, accept=accept).close()
        a.spend("a3", "q", "0.1", study="s")
        assert a.verify() == 6


def test_another_server_is_refused_until_a_restore_accepts_it(server_place, monkeypatch):
    """When the ledger is opened, and when an open one connects anew; one restore serves all
    machines.
    """
    with server_place.open(new=True) as ledger:
        ledger.create("s", 1)
        other = server_place.elsewhere("b")
        ledger.spend("r1", "q", "0.1", study="s")
        monkeypatch.setattr(database, "_SERVER", "SELECT false, '7', '00000002'")
        ledger._book.database._engine.dispose()  # the connection is lost
        for request in ("r2", "r3"):
            with pytest.raises(LedgerDamaged, match="another system identifier or timeline"):
                ledger.spend(request, "q", "0.1", study="s")
        accepted(server_place).close()
        ledger.spend("r2", "q", "0.1", study="s")
        assert ledger.spent("s") == Fraction(2, 10)
    with other.open() as elsewhere:
        elsewhere.spend("r3", "q", "0.1", study="s")


def test_a_machine_joins_under_load_and_pays_nothing(server_place, tmp_path):
    """With the other's key, so that the same data has one version on both."""
    mine = str(tmp_path / "mine.anchor")
    with server_place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.record(
            ledger.spend("r1", "q", "0.1", study="s", data_version=ledger.keyed("hash")), b"answer"
        )
        with Ledger.join(server_place.where, anchor=mine, other=server_place.anchor) as joined:
            for number in range(3):
                ledger.spend(f"a{number}", "q", "0.1", study="s")
                joined.spend(f"b{number}", "q", "0.1", study="s")
            assert (
                joined.spend("r2", "q", "0.1", study="s", data_version=joined.keyed("hash")).answer
                == b"answer"
            )
            assert (joined.spent("s"), ledger.verify()) == (Fraction(7, 10), 10)
        assert {entry.kind for entry in ledger.entries()} == {"create", "spend", "answer", "repeat"}
        with pytest.raises(
            InvalidParameter, match=r"anchor must be a new file, but mine\.anchor exists"
        ):
            Ledger.join(server_place.where, anchor=mine, other=server_place.anchor)


def test_a_machine_does_not_join_a_ledger_that_was_rolled_back(server_place, tmp_path):
    rolled_back(server_place)
    with pytest.raises(LedgerDamaged, match="do not include the anchored entry"):
        Ledger.join(server_place.where, anchor=tmp_path / "c", other=server_place.anchor + ".b")
    assert not (tmp_path / "c").exists()


def test_a_file_has_one_machine(file_place, tmp_path):
    file_place.open(new=True).close()
    with pytest.raises(InvalidParameter, match="where must be a PostgreSQL address"):
        Ledger.join(file_place.where, anchor=tmp_path / "c", other=file_place.anchor)


@pytest.fixture
def standby(postgres):
    """A standby of the server, and a function that promotes it."""
    with psycopg.connect(postgres) as connection:
        programs = Path(
            connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone()[0]
        )
    server = Path(psycopg.conninfo.conninfo_to_dict(postgres)["host"])
    folder = Path(tempfile.mkdtemp(prefix="discreet-standby-", dir=server.parent))
    owner = server.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)

    def run(program: str, *arguments: str) -> None:
        user = {"user": owner.st_uid, "group": owner.st_gid} if os.getuid() == 0 else {}
        command = [programs / program, *arguments]
        done = subprocess.run(
            command,
            check=False,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            **user,
        )
        assert done.returncode == 0, done.stdout

    data = str(folder / "data")
    control = [
        "-D",
        str(folder / "data"),
        "-w",
        "-t",
        str(int(PATIENCE)),
    ]
    options = f"-c listen_addresses= -c unix_socket_directories={folder}"
    run("pg_basebackup", "-D", data, "-R", "-c", "fast", "-h", str(server), "-U", "postgres")
    run("pg_ctl", *control, "-o", options, "-l", str(folder / "log"), "start")
    yield postgres.replace(str(server), str(folder)), lambda: run("pg_ctl", *control, "promote")
    run("pg_ctl", *control, "-m", "immediate", "stop")


def test_a_standby_that_takes_over_is_refused_until_a_restore(server_place, standby, postgres):
    """A real one: it is read-only at first, no commit waits for it, and then it is promoted."""
    address, promote = standby
    place = replace(server_place, where=address + server_place.where.removeprefix(postgres))
    with pytest.raises(
        EngineFailed, match=r"a standby that no commit waits for.*synchronous_standby_names"
    ):
        server_place.open(new=True).close()
    server_place.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    server_place.execute("SELECT pg_reload_conf()")
    try:
        sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait(lambda: server_place.execute(sync) == [(1,)])
        with server_place.open() as ledger:
            ledger.create("s", 1)
            ledger.record(ledger.spend("r1", "q", "0.1", study="s", data_version="1"), b"answer")
        with pytest.raises(
            EngineFailed, match=r"database is read-only: connect .*; nothing was spent"
        ):
            place.open()
        promote()
    finally:
        server_place.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server_place.execute("SELECT pg_reload_conf()")
    with pytest.raises(LedgerDamaged, match="another system identifier or timeline"):
        place.open()
    with accepted(place) as ledger:
        # it waited for the standby, so nothing was lost
        assert ledger.spent("s") == Fraction(1, 10)
        assert ledger.spend("r2", "q", "0.1", study="s", data_version="1").answer == b"answer"
