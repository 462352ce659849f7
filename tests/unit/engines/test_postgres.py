"""Tables and views of a real PostgreSQL server: types, extremes, versions, and that nothing is
written or told.
"""

import itertools
from datetime import datetime
from fractions import Fraction
from functools import reduce

import psycopg
import pytest

from discreet import Count, Policy, Study, Sum
from discreet.ask import expression as ask
from discreet.ask.declared import Declared
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import OnGrid, Present, Request, Rows, Squares, Total, Units
from discreet.engines.choose import engine_of
from discreet.engines.postgres import PostgreSQL
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sql.postgres import POSTGRESQL
from discreet.engines.sql.statement import statement
from discreet.errors import EngineFailed, InvalidParameter

TEN = ValueGrid(exponent=0, lower=0, upper=10, exact=True)
_numbers = itertools.count()


@pytest.fixture
def made(postgres):
    """A function that makes a schema of its own with some statements, and gives the address of a
    table there.
    """
    schemas = []

    def make(statements: str, table: str) -> str:
        schemas.append(f"unit_{next(_numbers)}")
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schemas[-1]}")
            connection.execute(f"SET search_path = {schemas[-1]}")
            connection.execute(statements)
        return f"{postgres}#{schemas[-1]}.{table}"

    yield make
    with psycopg.connect(postgres, autocommit=True) as connection:
        for schema in schemas:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


TYPES = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN age AS smallint CHECK (value >= 0);
    CREATE TABLE t (a age, b numeric, c numeric(5, 0), d mood, e char(5), f varchar(9), g uuid, h money, i int[],
        j json, k bytea, l interval, m time, n timestamptz(0), o real, p oid, "odd "" name" text, q numeric(9, 2));
    INSERT INTO t VALUES (1, 1.5, 2, 'ok', 'ab', 'cd', '00000000-0000-0000-0000-000000000001', 1, '{1}', '{}', 'x',
        '1 day', '01:00', '2024-01-01 00:00:00+02', 1.5, 7, 'x', 1.25)"""


def test_the_schema_has_kinds_and_leaves_out_what_cannot_be_asked(made):
    engine = PostgreSQL(made(TYPES, "t"))
    kinds = {name: (column.kind, column.whole) for name, column in engine.schema().items()}
    whole = ("number", True)
    real = ("number", False)
    text = ("text", False)
    moment = ("date", False)
    numbers = {"a": whole, "b": real, "c": whole, "o": real, "q": real}
    assert kinds == {
        **numbers,
        "d": text,
        "e": text,
        "f": text,
        "g": text,
        "n": moment,
        'odd " name': text,
    }
    for name, column in engine.schema().items():
        request = Request(
            (Rows(ask.Column(name, column.kind)), Units()), unit=name, max_rows=1, max_groups=1
        )
        assert engine.fetch(request).reveal() == [[1], [1]], name


def test_numerics_beyond_the_doubles_are_limited_and_raise_nothing(made):
    values = (
        "('NaN'), ('Infinity'), ('-Infinity'), ('1e1000'), ('-1e1000'), ('1e-1000'), ('0'), (NULL),"
        " ('2.5')"
    )
    engine = PostgreSQL(made(f"CREATE TABLE t (x numeric); INSERT INTO t VALUES {values}", "t"))  # noqa: S608
    x = ask.Column("x", "number")
    on_grid = OnGrid(x, TEN, None)
    square = ask.Comparison(">", ask.Arithmetic("*", x, x), ask.Constant(Fraction(10), "number"))
    inverse = Rows(ask.Arithmetic("/", ask.Constant(Fraction(1), "number"), x))
    request = Request((Present(on_grid), Total(on_grid), Squares(on_grid), Rows(square), inverse))
    assert engine.fetch(request).reveal() == [[7], [23], [209], [4], [5]]
    assert engine.units("x").reveal() == 7
    assert engine.fetch(Request((Rows(), Units()), unit="x", max_rows=1)).reveal() == [[7], [7]]
    assert engine.discover(ask.Column("x", "number"), "x", 1).reveal() == {0: 2}


def test_doubles_that_would_underflow_raise_nothing(made):
    values = "(5e-324), (-1e-310), (1e308), ('NaN'), ('-Infinity')"
    engine = PostgreSQL(made(f"CREATE TABLE t (x float8); INSERT INTO t VALUES {values}", "t"))  # noqa: S608
    x = ask.Column("x", "number")
    for exponent in (-300, -20, 1, 90, 250):
        grid = ValueGrid(exponent=exponent, lower=-4, upper=4, exact=False)
        (total,) = engine.fetch(Request((Total(OnGrid(x, grid, None)),))).reveal()
        assert total == [16]


def test_far_and_infinite_dates_are_missing(made):
    days = "('infinity'), ('-infinity'), ('5874897-12-31'), ('0044-03-15 BC'), ('2024-02-29')"
    engine = PostgreSQL(made(f"CREATE TABLE t (d date); INSERT INTO t VALUES {days}", "t"))  # noqa: S608
    d = ask.Column("d", "date")
    assert engine.fetch(Request((Rows(d), Rows(ask.Cast(d, "text"))))).reveal() == [[1], [1]]
    assert engine.fetch(Request((Rows(), Units()), unit="d", max_rows=1)).reveal() == [[5], [5]]
    moments = "('infinity'), ('294276-12-31 23:59:59'), ('2024-01-01 01:00:00+02')"
    engine = PostgreSQL(
        made(f"CREATE TABLE t (t timestamptz); INSERT INTO t VALUES {moments}", "t")  # noqa: S608
    )
    day = Group(
        "t",
        ask.Truncated("day", ask.Column("t", "date")),
        (datetime(2023, 12, 31),),  # noqa: DTZ001
        "other",
    )
    assert engine.fetch(Request((Rows(),), (day,), unit="t", max_rows=1)).reveal() == [[1, 2]]


def test_sums_beyond_64_bits_are_exact(made):
    engine = PostgreSQL(
        made("CREATE TABLE t AS SELECT 9223372036854775807 AS n FROM generate_series(1, 1000)", "t")
    )
    wide = OnGrid(
        ask.Column("n", "number"), ValueGrid(exponent=0, lower=0, upper=2**42, exact=True), None
    )
    assert engine.fetch(Request((Total(wide), Squares(wide)))).reveal() == [
        [1000 * 2**42],
        [1000 * 2**84],
    ]


def test_a_view_that_writes_is_not_let(made):
    source = made(
        """CREATE TABLE log (x int); CREATE FUNCTION noted(regclass) RETURNS int LANGUAGE plpgsql AS
           'BEGIN EXECUTE format(''INSERT INTO %s VALUES (1)'', $1); RETURN 1; END';
           CREATE VIEW v AS SELECT noted('log') AS x""",
        "v",
    )
    with pytest.raises(
        EngineFailed, match=r"^a view of the source writes when it is read"
    ) as caught:
        PostgreSQL(source).fetch(Request((Rows(ask.Column("x", "number")),)))
    assert caught.value.__context__ is None


def test_versions_change_with_the_content_and_not_with_the_order_or_the_session(made, postgres):
    source = made(
        "CREATE TABLE t AS SELECT i AS n, now() AS at FROM generate_series(1, 100) AS i", "t"
    )
    before = PostgreSQL(source).version()
    table = source.partition("#")[2]
    with psycopg.connect(postgres) as connection:
        connection.execute(f"UPDATE {table} SET n = n WHERE n < 50")  # noqa: S608
    joint = "&" if "?" in postgres else "?"
    elsewhere = source.replace(
        "#", f"{joint}options=-ctimezone%3DAsia/Tokyo%20-cdatestyle%3DGerman#"
    )
    assert PostgreSQL(elsewhere).version() == before == PostgreSQL(source).version()
    with psycopg.connect(postgres) as connection:
        connection.execute(f"UPDATE {table} SET n = 1000 WHERE n = 50")  # noqa: S608
    assert PostgreSQL(source).version() != before


def test_a_study_asks_a_server_and_leaves_it_as_it_was(made, tmp_path, postgres):
    source = made(
        "CREATE TABLE t AS SELECT i % 3 AS g, i::float8 AS x FROM generate_series(1, 300) AS i", "t"
    )
    columns = {"g": {"keys": [0, 1, 2]}, "x": {"bounds": (0, 300)}}
    (tmp_path / "study.toml").write_text(
        Policy(source=source, epsilon=1000, columns=columns).to_toml()
    )
    with psycopg.connect(postgres) as connection:
        count = "SELECT count(*) FROM pg_class"
        before = connection.execute(count).fetchall()
        with Study(Policy.load(tmp_path / "study.toml"), ledger=tmp_path / "study.ledger") as study:
            answer = study.by("g").ask(people=Count(), x=Sum("x")).plan(epsilon=900).release()
        assert [round(row["people"][0]) for row in answer.rows] == [100, 100, 100]
        assert connection.execute(count).fetchall() == before


@pytest.mark.parametrize("table", ["", "#", "#nothing_of_the_sort", "#no.thing"])
def test_an_address_without_a_table_is_refused(postgres, table):
    with pytest.raises(InvalidParameter, match="must name a table"):
        engine_of(f"{postgres}{table}")


def test_a_server_that_is_not_there_is_told_without_its_address():
    with pytest.raises(EngineFailed, match="no server listens at its host and port") as caught:
        engine_of("postgresql://someone:canary@127.0.0.1:1/nowhere#t")
    assert "canary" not in str(caught.value)


def test_a_cell_of_256_mib_raises_nothing_and_is_missing(made):
    """There btrim fails from 128 MiB on, translate, a cast and a row's text from 256 MiB on."""
    values = "repeat('x', 256 * 1024 * 1024), 1), ('a', 1), ('a ', 2"
    engine = PostgreSQL(
        made(f"CREATE TABLE t (x text, n int); INSERT INTO t VALUES ({values})", "t")  # noqa: S608
    )
    text = ask.Column("x", "text")
    functions = [ask.Function(name, (text,)) for name in ("trim", "lower", "length")]
    request = Request(
        (*map(Rows, functions), Rows(ask.Cast(text, "date")), Rows(ask.Missing(text)))
    )
    assert engine.fetch(request).reveal() == [[2], [2], [2], [0], [1]]
    assert engine.fetch(Request((Rows(), Units()), unit="x", max_rows=1)).reveal() == [[2], [2]]
    assert engine.discover(ask.Column("x", "text"), "n", 1).reveal() == {"a": 1, "a ": 1}
    assert len(engine.version()) == 64


HOSTILE = """
    CREATE FUNCTION noted() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called'; END $$;
    CREATE FUNCTION width_bucket(double precision, double precision[]) RETURNS int LANGUAGE sql AS
        $$ SELECT length(noted()) $$;
    CREATE FUNCTION floor(float8) RETURNS float8 LANGUAGE sql AS $$ SELECT length(noted())::float8 $$;
    CREATE FUNCTION md5(text) RETURNS text LANGUAGE sql AS $$ SELECT noted() $$;
    CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT noted() $$;
    CREATE FUNCTION to_regclass(text) RETURNS oid LANGUAGE sql AS $$ SELECT 1::oid $$;
    CREATE FUNCTION less(double precision, double precision) RETURNS boolean LANGUAGE sql AS $$ SELECT noted() = '' $$;
    CREATE OPERATOR < (LEFTARG = double precision, RIGHTARG = double precision, FUNCTION = less);
    CREATE FUNCTION same(oid, oid) RETURNS boolean LANGUAGE sql AS $$ SELECT noted() = '' $$;
    CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, FUNCTION = same);
    CREATE TABLE t AS SELECT i::float8 AS x, i AS who FROM generate_series(0, 99) AS i"""


def test_functions_and_operators_of_other_schemas_are_never_called(made, postgres):
    source = made(HOSTILE, "t")
    schema = source.partition("#")[2].partition(".")[0]
    joint = "&" if "?" in postgres else "?"
    found = f"{postgres}{joint}options=-csearch_path%3D{schema},pg_catalog#t"
    edges = tuple(Fraction(edge) for edge in range(0, 101, 2))
    bins = Group("x", ask.Column("x", "number"), tuple(map(str, edges[:-1])), None, edges)
    for address in (source, found):
        engine = PostgreSQL(address)
        total = Total(OnGrid(ask.Column("x", "number"), TEN, None))
        assert (
            engine.fetch(Request((Rows(), total), (bins,), unit="who", max_rows=1)).reveal()[0]
            == [2] * 50
        )
        assert len(engine.version()) == 64
    with (
        psycopg.connect(found.partition("#")[0]) as connection,
        pytest.raises(psycopg.errors.RaiseException),
    ):
        # a careless statement would call it
        connection.execute("SELECT width_bucket(1::float8, '{1}'::float8[])")


@pytest.mark.parametrize("name", ["discreet_rows", "digests", "digest", "known"])
def test_a_column_of_any_name_hides_no_change_from_the_version(made, postgres, name):
    source = made(
        f"CREATE TABLE t AS SELECT i AS n, 7 AS {name} FROM generate_series(1, 9) AS i",  # noqa: S608
        "t",
    )
    before = PostgreSQL(source).version()
    with psycopg.connect(postgres) as connection:
        connection.execute(f"UPDATE {source.partition('#')[2]} SET n = 10 WHERE n = 9")  # noqa: S608
    assert PostgreSQL(source).version() != before


@pytest.mark.parametrize(("version", "encoding"), [(150_018, "UTF8"), (160_000, "LATIN1")])
def test_a_server_that_is_too_old_or_of_another_encoding_is_refused_by_name(
    monkeypatch, version, encoding
):
    """What a connection knows of its server is gone once it is closed."""

    class Old:
        closed = False

        @property
        def info(self):
            return self if not self.closed else None

        @property
        def server_version(self):
            if self.closed:
                raise psycopg.OperationalError("the connection is closed")
            return version

        def parameter_status(self, _name):
            return encoding

        def close(self):
            self.closed = True

    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Old())
    with pytest.raises(InvalidParameter, match=f"got version {version // 10_000} and {encoding}"):
        PostgreSQL("postgresql://nowhere/data#t")


_ONE = ask.Constant(Fraction(1), "number")
_CLEANED = Declared(
    type="number", trim=True, casefold=True, missing_values=["n/a"], map={"a": "1"}, thousands=","
)
VALUES = {
    "a reading": ask.Column("x", "number", _CLEANED.reading),
    "a sum of terms": reduce(
        lambda sum_, _: ask.Arithmetic("+", sum_, _ONE), range(4), ask.Column("y", "number")
    ),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_the_servers_plan_of_a_statement_is_about_as_long_as_the_statement(made, postgres, value):
    """Else one long text takes seconds, which shows, and a sum of ten terms never ends."""
    source = made("CREATE TABLE t (x text, y double precision)", "t")
    value = OnGrid(value, TEN, None)
    sql = statement(
        Request((Total(value), Present(value))), PostgreSQL(source).schema(), POSTGRESQL
    ).sql
    whole = f"WITH {SOURCE} AS NOT MATERIALIZED (SELECT * FROM {source.partition('#')[2]}) {sql}"  # noqa: S608
    with psycopg.connect(postgres) as connection:
        plan = "".join(line for (line,) in connection.execute(f"EXPLAIN (VERBOSE) {whole}"))
    assert len(plan) < 10 * len(sql)
