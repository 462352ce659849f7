"""TRUST 67 on PostgreSQL: a table that changes its types, columns or rights after opening is
refused before the spend, and again inside the statement's snapshot; no row decides between an
answer and an error, and no row is hidden.
"""

import itertools
from contextlib import contextmanager
from unittest import mock

import psycopg
import pytest

from discreet import EngineFailed, InvalidParameter, Policy, Study
from discreet.engines import postgres as module
from discreet.engines.base import Request, Rows
from discreet.engines.choose import engine_of
from discreet.engines.postgres import PostgreSQL
from discreet.engines.textfiles import Layout
from discreet.ledger.ledger import Ledger
from shell import discreet

_numbers = itertools.count()
AGES = {"x": {"bounds": (0, 9)}, "name": {"keys": ["a"]}}
CITEXT = """CREATE TYPE citext; CREATE FUNCTION citextin(cstring) RETURNS citext LANGUAGE internal IMMUTABLE STRICT
    AS 'textin'; CREATE FUNCTION citextout(citext) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
    CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, INTERNALLENGTH = VARIABLE, STORAGE = extended);
    CREATE CAST (text AS citext) WITHOUT FUNCTION AS ASSIGNMENT;
    CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT;"""


@pytest.fixture
def server(postgres):
    """A function that runs statements in a schema of its own, where there are a table t and a role
    without rights.
    """
    schema = f"changed_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            f"CREATE SCHEMA {schema}; CREATE ROLE {schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO"
            f" {schema}"
        )
        connection.execute(f"SET search_path = {schema}")
        connection.execute(
            "CREATE TABLE t AS SELECT i % 10 AS x, 'a' AS name, i AS secret FROM generate_series(1,"
            " 1000) AS i"
        )

        def run(statements: str) -> None:
            connection.execute(statements.replace("ROLE_", schema))

        run.table, run.as_role = (
            f"{postgres}#{schema}.t",
            f"{postgres}#{schema}.t".replace("//postgres", f"//{schema}"),
        )
        run.role = schema
        yield run
        connection.execute(
            f"DROP SCHEMA {schema} CASCADE; DROP OWNED BY {schema}; DROP ROLE {schema}"
        )


@contextmanager
def study(source, folder, **terms):
    policy = Policy(source=source, epsilon=1000, columns=terms.pop("columns", AGES), **terms)
    with Study(policy, ledger=folder / f"{next(_numbers)}.ledger") as opened:
        yield opened


CHANGES = {
    "ALTER TABLE t ALTER x TYPE float8": (
        "'x' was integer when the study was opened, and is double precision"
    ),
    "ALTER TABLE t ALTER x TYPE float8; UPDATE t SET x = 'NaN' WHERE secret = 1": (
        "is double precision"
    ),
    "ALTER TABLE t ALTER x TYPE numeric(9, 2) USING x + 0.5": r"is numeric\(9,2\)",
    "ALTER TABLE t ALTER x TYPE text": "is text",
    f"{CITEXT} ALTER TABLE t ALTER name TYPE citext": "the column 'name' is gone|'name' was text",
    "ALTER TABLE t RENAME x TO y": "the column 'x' is gone since the study was opened",
    "ALTER TABLE t DROP x": "the column 'x' is gone since the study was opened",
    "ALTER TABLE t RENAME TO u": "the table .* is gone since the study was opened",
    "DROP TABLE t; CREATE TABLE t AS SELECT 1.5::float8 AS x, 'a' AS name": "is double precision",
    "ALTER TABLE t RENAME TO u; CREATE VIEW t AS SELECT * FROM u": (
        "was a table when .* opened, and is a view"
    ),
}


@pytest.mark.parametrize("version", [None, "1"])
@pytest.mark.parametrize(
    ("change", "words"), CHANGES.items(), ids=[change[:40] for change in CHANGES]
)
def test_a_changed_table_is_refused_before_anything_is_spent(
    server, tmp_path, change, words, version
):
    with study(server.table, tmp_path, version=version) as here:
        plan = here.sql("SELECT count(*) FROM t WHERE x * x > 5 AND name = 'a'", epsilon=1)
        server(change)
        with pytest.raises(InvalidParameter, match=words):
            plan.release()
        assert here.spent == 0


@pytest.mark.parametrize("row", ["7", "1e308"])
@pytest.mark.parametrize(
    ("change", "words"), CHANGES.items(), ids=[change[:40] for change in CHANGES]
)
def test_a_table_that_changes_after_the_spend_fails_for_every_row_alike(
    server, tmp_path, change, words, row
):
    spend = Ledger.spend

    def spent(ledger, *args, **options):
        grant = spend(ledger, *args, **options)
        server(change)
        if "float8" in change and "DROP" not in change:
            server(f"UPDATE t SET x = {row} WHERE secret = 1")  # noqa: S608
        return grant

    with (
        study(server.table, tmp_path, version="1") as here,
        mock.patch.object(Ledger, "spend", spent),
    ):
        plan = here.sql("SELECT count(*) FROM t WHERE x * x > 5 AND name = 'a'", epsilon=1)
        with pytest.raises(EngineFailed, match=f"({words}).*; what was spent stays spent$") as told:
            plan.release()
        assert told.value.spent is True
        assert told.value.__context__ is None
        assert here.spent == 1


UNSEEN = [
    "ALTER TABLE t DROP secret",
    "ALTER TABLE t ALTER secret TYPE float8",
    "CREATE DOMAIN small AS int CHECK (value >= 0); ALTER TABLE t ALTER x TYPE small",
    "CREATE TABLE u AS SELECT * FROM t; DROP TABLE t; ALTER TABLE u RENAME TO t",
    "ALTER TABLE t ADD more json",
]


@pytest.mark.parametrize("change", UNSEEN)
def test_control_what_leaves_the_columns_in_use_alone_is_answered(server, tmp_path, change):
    with study(server.table, tmp_path, version="1") as here:
        plan = here.sql("SELECT count(*) FROM t WHERE x * x > 5 AND name = 'a'", epsilon=900)
        server(change)
        assert plan.release()["count(*)"] == [700]


def test_nobody_can_change_a_type_between_the_comparison_and_the_answer(server, postgres):
    server("CREATE VIEW v AS SELECT * FROM t")
    for name in ("t", "v"):
        engine = PostgreSQL(server.table[:-1] + name)
        with engine._compared(), psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SET lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(f"ALTER TABLE {server.role}.t ALTER secret TYPE float8")


def test_a_table_that_is_rewritten_as_the_snapshot_is_taken_is_not_found_empty(server):
    """PostgreSQL shows no rows of a table that was rewritten after the snapshot, and raises
    nothing.
    """
    engine, real, calls = PostgreSQL(server.table), module._locked, itertools.count()

    def late(connection, table, columns):
        connection.execute("SELECT count(*) FROM pg_class")  # takes the snapshot
        if next(calls) < 2:
            server("ALTER TABLE t ALTER secret TYPE bigint; ALTER TABLE t ALTER secret TYPE int")
        return real(connection, table, columns)

    with mock.patch.object(module, "_locked", late):
        assert engine.fetch(Request((Rows(),))).reveal() == [[1000]]
    assert next(calls) == 3


def test_a_role_without_a_policy_is_refused_and_not_answered_with_zeros(server, tmp_path):
    server("GRANT SELECT ON t TO ROLE_; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    words = r"row level security would hide rows .* without a word: .* declare row_security = true"
    with pytest.raises(InvalidParameter, match=words):
        engine_of(server.as_role)
    server("CREATE POLICY threes ON t FOR SELECT TO ROLE_ USING (x = 3)")
    with pytest.raises(InvalidParameter, match=words):
        engine_of(server.as_role)
    with study(server.as_role, tmp_path, row_security=True) as here:
        assert here.engine.relation[:2] == ("table", True)
        plan = here.sql("SELECT count(*), sum(x) FROM t", epsilon=900)
        assert plan.release()["sum(x)"] == [300]
    assert engine_of(server.table).relation[:2] == ("table", False)  # the owner sees all rows
    server("ALTER TABLE t FORCE ROW LEVEL SECURITY; ALTER ROLE ROLE_ BYPASSRLS")
    assert engine_of(server.as_role).fetch(Request((Rows(),))).reveal() == [[1000]]


@pytest.mark.parametrize("is_view", [False, True])
def test_row_level_security_that_begins_later_is_refused_before_and_after_the_spend(
    server, tmp_path, is_view
):
    server(
        "CREATE VIEW v WITH (security_invoker) AS SELECT * FROM t; GRANT SELECT ON t, v TO ROLE_"
    )
    source = server.as_role[:-1] + "v" if is_view else server.as_role
    words = "row level security would hide rows"
    with study(source, tmp_path, version="1") as here:
        plan = here.sql(f"SELECT sum(x) FROM {'v' if is_view else 't'}", epsilon=1)  # noqa: S608
        spend = Ledger.spend

        def spent(ledger, *args, **options):
            grant = spend(ledger, *args, **options)
            server("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
            return grant

        with (
            mock.patch.object(Ledger, "spend", spent),
            pytest.raises(EngineFailed, match=words) as told,
        ):
            plan.release()
        assert told.value.spent is True
        with pytest.raises(InvalidParameter, match=words):
            here.sql(f"SELECT sum(x) FROM {'v' if is_view else 't'}", epsilon=2).release()  # noqa: S608
        assert here.spent == 1


def test_the_declared_columns_alone_need_a_grant(server, tmp_path):
    server("GRANT SELECT (x, name) ON t TO ROLE_")
    with study(server.as_role, tmp_path) as here:
        assert here.sql("SELECT count(*), sum(x) FROM t", epsilon=900).release()
        assert set(here.schema) == {"x", "name"}
        assert here.engine.unread == {
            "secret": (
                'the role of the source may not read it: GRANT SELECT ("secret") '
                f'ON "{server.role}"."t" TO "{server.role}"'
            )
        }
        plan = here.sql("SELECT sum(x) FROM t WHERE name = 'a'", epsilon=1)
        server("REVOKE SELECT (x) ON t FROM ROLE_")
        with pytest.raises(
            InvalidParameter, match=r"may not read the column 'x' of .*: GRANT SELECT \(\"x\"\) ON"
        ):
            plan.release()
        assert here.spent == 900
    with pytest.raises(InvalidParameter, match="may not read the columns 'x', 'secret' of"):
        engine_of(server.as_role, Layout(("x", "name", "secret")))
    server("REVOKE USAGE ON SCHEMA ROLE_ FROM ROLE_")
    with pytest.raises(InvalidParameter, match='may not use the schema "changed_'):
        engine_of(server.as_role)


def test_texts_of_any_collation_and_enumerations_are_compared_by_their_bytes(server, tmp_path):
    server(
        "CREATE TYPE mood AS ENUM ('a', 'b'); ALTER TABLE t ALTER name TYPE mood USING name::mood"
    )
    with study(server.table, tmp_path, version="1") as here:
        plan = here.sql("SELECT count(*) FROM t WHERE name = 'a'", epsilon=900)
        server("ALTER TYPE mood ADD VALUE 'A' BEFORE 'a'; ALTER TYPE mood RENAME VALUE 'b' TO 'c'")
        assert plan.release()["count(*)"] == [1000]


def rows_of(source, **layout):
    engine = engine_of(source, Layout(("x",), **layout))
    return engine.fetch(Request((Rows(),))).reveal()[0][0], engine.chosen


HIDES = "row level security would hide rows"
BY_POLICY = "row level security decides which rows the role of the source sees"


def test_the_owner_sees_all_rows_unless_the_policies_are_forced_on_it(server):
    server("ALTER TABLE t OWNER TO ROLE_; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    server("CREATE POLICY threes ON t USING (x = 3)")
    assert rows_of(server.as_role) == (1000, "")
    server("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    with pytest.raises(InvalidParameter, match=HIDES):
        rows_of(server.as_role)
    assert rows_of(server.as_role, row_security=True) == (100, BY_POLICY)
    server("ALTER ROLE ROLE_ BYPASSRLS")
    assert rows_of(server.as_role) == (1000, "")
    assert rows_of(server.table) == (1000, "")  # a superuser


def test_a_view_has_the_rights_of_its_owner_or_of_its_reader(server):
    server(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY threes ON t FOR SELECT TO ROLE_"
        " USING (x = 3)"
    )
    server(
        "CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w WITH (security_invoker) AS SELECT * FROM t"
    )
    server("CREATE VIEW u AS SELECT * FROM w; GRANT SELECT ON t, u, v, w TO ROLE_")
    of_owner, of_reader, of_both = (server.as_role[:-1] + name for name in "vwu")
    assert rows_of(of_owner)[0] == 1000
    for source in (of_reader, of_both):
        with pytest.raises(InvalidParameter, match=HIDES):
            rows_of(source)
        assert rows_of(source, row_security=True)[0] == 100
    for source in (of_owner, of_reader, of_both):
        assert (
            "is a view, and its filter"
            in engine_of(source, Layout(("x",), row_security=True)).chosen
        )


def test_a_partitioned_table_follows_its_own_policies_and_a_partition_those_of_the_partition(
    server,
):
    server("CREATE TABLE p (x int, name text) PARTITION BY RANGE (x); GRANT SELECT ON p TO ROLE_")
    server(
        "CREATE TABLE q PARTITION OF p FOR VALUES FROM (0) TO (9); INSERT INTO p VALUES (1, 'a'),"
        " (2, 'a')"
    )
    server("GRANT SELECT ON q TO ROLE_; ALTER TABLE q ENABLE ROW LEVEL SECURITY")
    whole, part = server.as_role[:-1] + "p", server.as_role[:-1] + "q"
    assert rows_of(whole) == (2, "")
    with pytest.raises(InvalidParameter, match=HIDES):
        rows_of(part)
    assert rows_of(part, row_security=True) == (0, BY_POLICY)
    server("ALTER TABLE p ENABLE ROW LEVEL SECURITY; CREATE POLICY ones ON p USING (x = 1)")
    with pytest.raises(InvalidParameter, match=HIDES):
        rows_of(whole)
    assert rows_of(whole, row_security=True) == (1, BY_POLICY)


def test_check_says_that_row_level_security_is_declared(server, tmp_path):
    server("GRANT SELECT ON t TO ROLE_; ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    text = (
        f'source = "{server.as_role}"\nepsilon = 1\n{{}}\n[columns]\nx = {{{{ bounds = [0, 9]'
        " }}\n"
    )
    for name, line in (("silent", ""), ("told", "row_security = true")):
        (tmp_path / f"{name}.toml").write_text(text.format(line))
    silent, told = (discreet("check", f"{name}.toml", cwd=tmp_path) for name in ("silent", "told"))
    silent.refused(2, HIDES, "declare row_security = true")
    words = " ".join(told.out.split())
    assert (
        "this study sees only the rows that the policies of the database show to its role" in words
    )
    assert f"The number of rows is private: {BY_POLICY}" in words


def test_a_column_that_is_computed_when_it_is_read_is_refused_by_name(server, tmp_path):
    """PostgreSQL computes it for no row that is inserted, so that a row makes whatever reads it
    fail.
    """
    server(
        "CREATE TABLE v (name text, x int GENERATED ALWAYS AS (CAST(name AS int)) VIRTUAL, y int)"
    )
    server("ALTER TABLE v ADD z int GENERATED ALWAYS AS (y + 1) STORED")
    told = set()
    for name in ("1", "no number"):
        server(f"INSERT INTO v (name, y) VALUES ('{name}', 3)")  # noqa: S608
        with study(server.table[:-1] + "v", tmp_path, columns={"x": AGES["x"]}) as here:
            with pytest.raises(
                InvalidParameter, match=r"the column 'x' exists, .* computed when it is read"
            ) as caught:
                here.sql("SELECT sum(x) FROM v", epsilon=1)
            told.add(str(caught.value))
    assert len(told) == 1
    with study(server.table[:-1] + "v", tmp_path, columns={"z": AGES["x"]}) as here:
        assert here.sql("SELECT sum(z) AS s FROM v", epsilon=900).release()["s"] == [
            pytest.approx(8, abs=1)
        ]


@pytest.mark.parametrize("after", [False, True])
def test_a_column_that_becomes_one_is_refused(server, tmp_path, after):
    change = (
        "ALTER TABLE t DROP x; ALTER TABLE t ADD x int GENERATED ALWAYS AS (CAST(name AS int))"
        " VIRTUAL"
    )
    with study(server.table, tmp_path, version="1") as here:
        plan, spend = here.sql("SELECT sum(x) FROM t", epsilon=1), Ledger.spend

        def spent(ledger, *args, **options):
            grant = spend(ledger, *args, **options)
            server(change)
            return grant

        if not after:
            server(change)
        with (
            mock.patch.object(Ledger, "spend", spent if after else spend),
            pytest.raises(
                (EngineFailed, InvalidParameter),
                match="the column 'x' is gone since the study was opened",
            ),
        ):
            plan.release()
        assert here.spent == (1 if after else 0)
