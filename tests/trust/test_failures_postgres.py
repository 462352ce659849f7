"""A PostgreSQL source that fails says why, what to do and whether ε is spent, and shows no row
(TRUST 11, 44).
"""

import itertools
import os
import re
import signal
import time
from contextlib import suppress
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from discreet import DiscreetError, EngineFailed, Policy, Study
from discreet.engines.choose import engine_of
from discreet.engines.postgres import PostgreSQL
from discreet.engines.textfiles import Layout
from discreet.serve.server import open_studies
from failures import CANARY, REFUSED, listening, told
from waiting import PATIENCE, wait

_numbers = itertools.count()
ACCESS = (
    "local all all trust",
    "host all away 127.0.0.1/32 reject",
    "host all secret 127.0.0.1/32 scram-sha-256",
    "host nowhere nobody 127.0.0.1/32 trust",
    "host all postgres,reader,nologin,few,ghost,database 127.0.0.1/32 trust",
)
ROWS = f"""
    CREATE TABLE t AS SELECT i % 10 AS x, '{CANARY}' AS name FROM generate_series(1, 100) AS i;
    CREATE VIEW slow AS SELECT x, name FROM t WHERE pg_sleep(0.2)::text = '';
    CREATE SCHEMA hidden; CREATE TABLE hidden.t AS TABLE t;
    CREATE TABLE denied AS TABLE t; CREATE TABLE part AS TABLE t; GRANT SELECT (name) ON part TO reader"""  # noqa: S608


@pytest.fixture(scope="module")
def server(own_postgres):
    own_postgres.access(*ACCESS)
    own_postgres.start("max_connections=12", "superuser_reserved_connections=3")
    own_postgres.execute(
        "CREATE ROLE secret LOGIN PASSWORD 'sesame'; CREATE ROLE reader LOGIN; CREATE ROLE nologin;"
        " CREATE ROLE few LOGIN CONNECTION LIMIT 0; CREATE ROLE stranger LOGIN; CREATE ROLE away"
        " LOGIN",
        "CREATE DATABASE closed ALLOW_CONNECTIONS false",
        "CREATE DATABASE shut",
        "REVOKE CONNECT ON DATABASE shut FROM public",
        "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
        ROWS,
    )
    yield own_postgres
    own_postgres.end()


def source(server, table="t", **address):
    return f"{server.address(**address)}#{table}"


def opened(server, table="t", columns=(), **address):
    return engine_of(source(server, table, **address), Layout(tuple(columns)))


UNCONNECTED = {
    "wrong password": (
        {"user": "secret", "password": CANARY},
        "refuses the user or the password of the address",
        "28P01",
    ),
    "no password": (
        {"user": "secret"},
        "asks for a password: give one in the address, PGPASSWORD or",
        "28P01",
    ),
    "unknown role": (
        {"user": "ghost", "password": CANARY},
        "has no such role: correct the user",
        "28000",
    ),
    "a role called database": ({"user": "database"}, "has no such role: correct the user", "28000"),
    "may not log in": ({"user": "nologin"}, "may not log in: ALTER ROLE", "28000"),
    "rejected": (
        {"user": "away", "password": CANARY},
        "pg_hba.conf does not let this user connect",
        "28000",
    ),
    "no line": (
        {"user": "stranger", "password": CANARY},
        "does not let this user connect from here without encryption: set sslmode=require",
        "28000",
    ),
    "unknown database": (
        {"base": "nothing"},
        "has no such database: correct the database",
        "3D000",
    ),
    "a database called SSL": (
        {"base": "SSL"},
        "has no such database: correct the database",
        "3D000",
    ),
    "a database called starting up": (
        {"base": "starting%20up"},
        "has no such database: correct",
        "3D000",
    ),
    "closed database": ({"base": "closed"}, "takes no connections: name another", "55000"),
    "no right to connect": (
        {"user": "reader", "base": "shut"},
        'GRANT CONNECT ON DATABASE "shut" TO "reader"',
        "42501",
    ),
    "no connection left for a role": (
        {"user": "few"},
        "no connection left: close some, or raise",
        "53300",
    ),
    "encryption": (
        {"sslmode": "require"},
        "no encrypted connection .*: correct the port, sslmode",
        "08001",
    ),
    "certificates": (
        {"sslmode": "verify-full", "sslrootcert": "/nowhere"},
        "or the certificates",
        "08001",
    ),
    "unknown sslmode": (
        {"sslmode": CANARY},
        "the address cannot be read: write postgresql://user",
        "08001",
    ),
    "unknown option": (
        {CANARY: "1"},
        "the address cannot be read: write postgresql://user",
        "08001",
    ),
}


@pytest.mark.parametrize("situation", UNCONNECTED)
def test_a_server_that_gives_no_connection_says_why(server, situation):
    address, says, code = UNCONNECTED[situation]
    told(
        lambda: opened(server, **address),
        f"PostgreSQL server of the source cannot be used: .*{says}",
        code=code,
    )


AWAY = {
    "refused": (
        "127.0.0.1:1/x",
        "no server listens at its host and port: start it, or correct",
        "ECONNREFUSED",
    ),
    "no socket": ("/x?host=/nowhere", "no server listens at its socket: start it", "ENOENT"),
    "unknown host": (
        "nowhere.invalid/x",
        "its host is unknown: correct the host in the address",
        "EAI_NONAME",
    ),
    "no host": (f"{'a' * 99}.invalid/x", "its host is unknown|the address cannot be read", ""),
    "no port": (f"127.0.0.1:{CANARY}/x", "the address cannot be read", "08001"),
    "a port too large": ("127.0.0.1:99999/x", "the address cannot be read", "08001"),
}


@pytest.mark.parametrize("situation", AWAY)
def test_a_server_that_is_not_there_says_why(situation):
    where, says, code = AWAY[situation]
    address = f"postgresql://someone:{CANARY}@{where}#t"
    told(
        lambda: engine_of(address),
        f"PostgreSQL server of the source cannot be used: .*({says})",
        code=code,
    )


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"N", b"SSH-2.0-OpenSSH_9.2\r\n"]
)
def test_another_service_at_the_port_is_called_that(reply):
    with listening(reply) as port:
        address = f"postgresql://someone:{CANARY}@127.0.0.1:{port}/x?sslmode=prefer#t"
        told(
            lambda: engine_of(address),
            "no PostgreSQL server, .*correct the port|correct the port, sslmode",
            code="08001",
        )


def test_what_a_server_answers_goes_before_what_another_host_does_not(server):
    """An address with two hosts: the first is down, the second refuses the password."""
    address = f"postgresql://secret:{CANARY}@127.0.0.1:1,127.0.0.1:{server.port}/postgres#t"
    told(lambda: engine_of(address), "refuses the user or the password", code="28P01")


@pytest.mark.parametrize(("user", "code"), [("postgres", "53300"), ("reader", "53300")])
def test_too_many_connections(server, user, code):
    held = []
    try:
        with suppress(psycopg.OperationalError):
            held.extend(psycopg.connect(server.address(user=user)) for _ in range(20))
        told(
            lambda: opened(server, user=user),
            "no connection left: close some, or raise its limits",
            code=code,
        )
    finally:
        for connection in held:
            connection.close()
    until(lambda: server.execute("SELECT 1"))


TABLES = {
    "unknown table": (
        "nothing",
        "postgres",
        (),
        'must name a table or view that exists, .*got "nothing"',
    ),
    "unknown schema": (
        "no.thing",
        "postgres",
        (),
        'must name a table or view that exists, .*got "no"."thing"',
    ),
    "another case": ("T", "postgres", (), 'exists, with its schema and its capitals, got "T"'),
    "schema": (
        "hidden.t",
        "reader",
        (),
        'may not use the schema "hidden": GRANT USAGE ON SCHEMA "hidden" TO "reader"',
    ),
    "table": ("denied", "reader", (), "may not read the columns 'x', 'name' of .*: GRANT SELECT"),
    "column": (
        "part",
        "reader",
        ("x",),
        "may not read the column 'x' of .*: GRANT SELECT \\(\"x\"\\)",
    ),
}


@pytest.mark.parametrize("situation", TABLES)
def test_a_table_that_cannot_be_read_is_refused_with_what_to_do(server, situation):
    table, user, columns, says = TABLES[situation]
    told(lambda: opened(server, table, columns, user=user), says, spent=REFUSED)


@pytest.mark.parametrize("as_another", [False, True])
def test_each_grant_that_is_missing_can_be_pasted(server, as_another):
    """One after the other, for names that must be quoted, until the source opens; also where
    another role reads.
    """
    role, schema, base = (f'{name} "{as_another}' for name in ("Röle", "hidden", "base"))
    quoted = [sql.Identifier(name).as_string() for name in (role, schema, base)]
    server.access(*ACCESS, "host all all 127.0.0.1/32 trust")
    server.execute(
        f"CREATE ROLE {quoted[0]} LOGIN", f"CREATE DATABASE {quoted[2]}", "SELECT pg_reload_conf()"
    )
    address = {"user": quote(role), "base": quote(base)}
    if as_another:
        server.execute(f"CREATE ROLE visitor LOGIN IN ROLE {quoted[0]}")
        address |= {"user": "visitor", "options": quote("-c role=" + role.replace(" ", "\\ "))}
    grants = [
        f"CONNECT ON DATABASE {quoted[2]}",
        f"USAGE ON SCHEMA {quoted[1]}",
        f'SELECT ("A ""b", "c") ON {quoted[1]}."People"',
    ]
    with psycopg.connect(server.address(base=quote(base)), autocommit=True) as owner:
        owner.execute(
            f'CREATE SCHEMA {quoted[1]}; CREATE TABLE {quoted[1]}."People" AS SELECT 1 AS "A ""b",'
            " 2 AS c"
        )
        owner.execute(f"REVOKE CONNECT ON DATABASE {quoted[2]} FROM public")
        if as_another:
            owner.execute(f"GRANT {grants.pop(0)} TO visitor")
        for grant in grants:
            with pytest.raises(DiscreetError) as refused:
                opened(server, f"{schema}.People", **address)
            pasted = re.search("GRANT .* TO [^;]*", str(refused.value))[0]
            assert pasted == f"GRANT {grant} TO {quoted[0]}"
            owner.execute(pasted)
    assert set(opened(server, f"{schema}.People", **address).schema()) == {'A "b', "c"}


def test_a_database_of_another_encoding_is_refused(server):
    told(
        lambda: opened(server, base="latin"),
        "a database that holds UTF-8, got version .* and LATIN1",
        spent=REFUSED,
    )


def asked(server, folder, table, **address):
    """A question that is paid for, and then fails; and the study."""
    policy = Policy(
        source=source(server, table, **address),
        epsilon=9,
        columns={"x": {"bounds": (0, 9)}},
        version="1",
    )
    return Study(policy, ledger=folder / f"{next(_numbers)}.ledger")


def until(work, seconds=PATIENCE):
    """Wait until some work raises nothing."""
    end = time.monotonic() + seconds
    while True:
        try:
            return work()
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def terminate(server):
    return lambda pid: server.execute(f"SELECT pg_terminate_backend({pid})")


RUNNING = {
    "time limit": (
        None,
        {"options": "-cstatement_timeout%3D300"},
        "within a smaller statement_timeout",
        "57014",
    ),
    "another limit": (
        None,
        {"options": "-ctransaction_timeout%3D500"},
        "ended the connection|transaction_timeout",
        "25P04",
    ),
    "cancelled": (
        lambda s: lambda pid: s.execute(f"SELECT pg_cancel_backend({pid})"),
        {},
        "stopped .*by a person",
        "57014",
    ),
    "terminated": (
        terminate,
        {},
        "server ended the connection: see whether it runs, and its log",
        "57P01",
    ),
    "killed": (
        lambda _: lambda pid: os.kill(pid, signal.SIGKILL),
        {},
        "server ended the connection: see whether",
        "08006",
    ),
    "stopped": (
        lambda s: lambda _: s.stop("fast"),
        {},
        "server ended the connection: see whether it runs",
        "57P01",
    ),
    "crashed": (
        lambda s: lambda _: s.stop("immediate"),
        {},
        "server ended the connection: see whether",
        "08006|57P0",
    ),
}


@pytest.mark.parametrize("situation", RUNNING)
def test_a_server_that_fails_during_a_statement_says_so_and_that_it_is_paid(
    server, tmp_path, situation
):
    action, address, says, code = RUNNING[situation]
    with asked(server, tmp_path, "slow", **address) as study:
        plan = study.sql("SELECT sum(x) FROM slow", epsilon=1)
        if action is None:
            told(plan.release, says, spent=True, code=code)
        else:
            with server.meanwhile(action(server)):
                told(plan.release, says, spent=True, code=code)
        assert study.spent == 1
    if situation in ("stopped", "crashed"):
        told(lambda: opened(server), "no server listens at its host and port", code="ECONNREFUSED")
        server.start("max_connections=12", "superuser_reserved_connections=3")
    until(lambda: server.execute("SELECT 1"))


def test_a_server_that_recovers_from_a_crash_says_so(server):
    """Until it has, it answers that it is in recovery, and not that there is no such database."""
    expected = (
        "is starting up, or recovers from a crash",
        "ended the connection",
        "or ends every connection",
    )
    found = []
    for _ in range(20):  # a recovery may take a few milliseconds alone
        if any(expected[0] in words for words in found):
            break
        with psycopg.connect(server.address()) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            for _ in range(200):
                try:
                    PostgreSQL(source(server))
                    break
                except Exception as error:
                    found.append(str(error))
        until(lambda: server.execute("SELECT 1"))
    assert [words for words in found if not any(each in words for each in expected)] == []
    assert any(expected[0] in words for words in found)


def test_a_locked_table_says_so_before_and_after_the_spend(server, tmp_path):
    options = {"options": "-clock_timeout%3D200"}
    says = "locked for longer than lock_timeout: ask again when its maintenance is over"
    with (
        asked(server, tmp_path, "t", **options) as study,
        psycopg.connect(server.address()) as other,
    ):
        plan = study.sql("SELECT sum(x) FROM t", epsilon=1)
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        told(lambda: opened(server, **options), says, code="55P03")
        told(plan.release, says, code="55P03")
        assert study.spent == 0


def test_a_server_of_questions_that_waits_for_a_locked_source_at_its_start_says_so(
    server, tmp_path, monkeypatch
):
    """The table is locked until it is said; a source that stays locked is refused after ten
    seconds.
    """
    monkeypatch.setattr("discreet.serve.server._QUIET", 0.05)
    policy, heard = tmp_path / "t.toml", []
    columns = "[columns]\nx = { bounds = [0, 9] }\n"
    policy.write_text(f'source = "{source(server)}"\nepsilon = 1\nversion = "1"\n{columns}')
    with psycopg.connect(server.address()) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")

        def say(words):
            heard.append(words)
            other.rollback()

        open_studies([policy], say=say)["t"].close()
    assert heard[-1].startswith(
        f"Waiting for the source of {policy}, which did not answer within 0.05 s"
    )


GONE = {
    "table": ("DROP TABLE gone", "the table .* is gone since the study was opened", ""),
    "right": (
        "REVOKE SELECT ON gone FROM reader",
        "may not read the column .x. of .*: GRANT SELECT",
        "",
    ),
    "schema": (
        "REVOKE USAGE ON SCHEMA away FROM reader",
        "may not use the schema .*: GRANT USAGE ON SCHEMA",
        "",
    ),
    "server": (None, "no server listens at its host and port", "ECONNREFUSED"),
}


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("situation", GONE)
def test_what_is_gone_between_is_named_before_and_after_the_spend(
    server, tmp_path, monkeypatch, situation, paid
):
    statement, says, code = GONE[situation]
    server.execute(
        "CREATE SCHEMA IF NOT EXISTS away; GRANT USAGE ON SCHEMA away TO reader; DROP TABLE IF"
        " EXISTS away.gone; CREATE TABLE away.gone AS TABLE t; GRANT SELECT ON away.gone TO reader"
    )

    def change() -> None:
        if statement is None:
            server.stop()
        else:
            server.execute(f"SET search_path = away; {statement}")

    with asked(server, tmp_path, "away.gone", user="reader") as study:
        plan = study.sql("SELECT sum(x) FROM gone", epsilon=1)
        spend = study.ledger.spend

        def spent(*arguments, **options):
            grant = spend(*arguments, **options)
            change()
            return grant

        if paid:
            monkeypatch.setattr(study.ledger, "spend", spent)
        else:
            change()
        told(
            plan.release,
            says,
            spent=True if paid else False if code else REFUSED,
            code=code or None,
        )
        assert study.spent == paid
    if statement is None:
        server.start("max_connections=12", "superuser_reserved_connections=3")


VIEWS = {
    "division": (
        "SELECT 1 / (x - x) AS x FROM t",
        "a computation of the view of the source fails",
        "22012",
    ),
    "cast": (
        "SELECT name::int AS x FROM t",
        "a computation of the view of the source fails",
        "22P02",
    ),
    "writes": ("SELECT noted() AS x", "a view of the source writes when it is read", "25006"),
    "raises": (
        "SELECT raised(name) AS x FROM t",
        "a function that the view of the source calls raises",
        "P0001",
    ),
    "hidden function": (
        "SELECT outer_() AS x",
        "uses is gone, or may not be used|calls what is not there",
        "42",
    ),
}


@pytest.mark.parametrize("situation", VIEWS)
def test_a_view_that_fails_on_a_row_shows_no_row(server, tmp_path, situation):
    select, says, code = VIEWS[situation]
    server.execute(
        """CREATE OR REPLACE FUNCTION raised(text) RETURNS int LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION '%', $1 USING DETAIL = $1; END $$;
        CREATE OR REPLACE FUNCTION noted() RETURNS int LANGUAGE plpgsql AS
           $$ BEGIN CREATE TABLE public.noted (x int); RETURN 1; END $$;
        CREATE OR REPLACE FUNCTION inner_() RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE OR REPLACE FUNCTION outer_() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN inner_(); END';"""
        f"DROP VIEW IF EXISTS failing; CREATE VIEW failing AS {select}"
    )
    with asked(server, tmp_path, "failing") as study:
        plan = study.sql("SELECT sum(x) FROM failing", epsilon=1)
        told(plan.release, says, spent=True, code=code)


TYPES = {
    "jsonb": (
        "'{}'::jsonb",
        "its type is jsonb; put c ->> 'field', or what else you need of it, into a view",
    ),
    "array": ("ARRAY[1]", r"its type is integer\[\]; put c\[1\]"),
    "time": ("'10:00'::time", r"its type is time without time zone; put extract\(hour FROM c\)"),
    "interval": ("'1 day'::interval", r"its type is interval; put extract\(epoch FROM c\)"),
    "bytea": ("'a'::bytea", r"its type is bytea; put encode\(c, 'hex'\)"),
    "money": ("1::money", "its type is money; put c::numeric"),
    "citext": ("'a'::citext", "its type is .*citext; put c::text"),
    "composite": ("ROW(1, 2)::pair", "its type is .*pair; put c::text"),
}


@pytest.mark.parametrize("situation", TYPES)
def test_a_column_that_exists_and_cannot_be_used_is_refused_by_its_type_and_the_view_helps(
    server, situation
):
    value, says = TYPES[situation]
    server.execute(
        """DROP TABLE IF EXISTS typed CASCADE; DROP TYPE IF EXISTS citext CASCADE; DROP TYPE IF EXISTS pair CASCADE;
        CREATE TYPE pair AS (a int, b int); CREATE TYPE citext;
        CREATE FUNCTION citextin(cstring) RETURNS citext LANGUAGE internal IMMUTABLE STRICT AS 'textin';
        CREATE FUNCTION citextout(citext) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
        CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, INTERNALLENGTH = VARIABLE, STORAGE = extended);
        CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT;"""
    )
    server.execute(f"CREATE TABLE typed AS SELECT 1 AS x, {value} AS c")
    error = told(
        lambda: opened(server, "typed", ["c"]),
        f"the column 'c' exists, and must be .*: {says}",
        spent=REFUSED,
    )
    assert opened(server, "typed").unread["c"] in str(error)  # what `discreet init` says
    form = (
        str(error).partition("; put ")[2].partition(", or what else")[0].replace("'field'", "'a'")
    )
    server.execute(f"CREATE VIEW cast_ AS SELECT x, {form} AS c FROM typed")  # noqa: S608
    assert "c" in opened(server, "cast_", ["c"]).schema()


def test_enumerations_and_uuids_are_texts(server):
    server.execute(
        "CREATE TYPE mood AS ENUM ('ok')",
        "CREATE TABLE usable AS SELECT 'ok'::mood AS e, gen_random_uuid() AS u",
    )
    assert [column.kind for column in opened(server, "usable").schema().values()] == [
        "text",
        "text",
    ]


def refusal(server):
    """Why a table cannot be opened; empty if it can."""
    try:
        opened(server)
    except EngineFailed as failure:
        return str(failure)
    return ""


def test_a_server_that_is_shutting_down_or_starting_up_says_so(server):
    """The last test of this server, which is stopped at its end."""
    with psycopg.connect(server.address()):
        server.stop("smart", wait=False)
        wait(lambda: refusal(server))  # until the signal has arrived
        assert "it is shutting down: start it again; nothing was spent" in refusal(server)
    wait(lambda: not (server.folder / "postmaster.pid").exists())
    server.recover(60)  # which its end does not wait for
    wait(lambda: "starting up" in refusal(server))
    told(
        lambda: opened(server),
        "it is starting up, or recovers from a crash: try again in a moment",
        code="57P03",
    )
