"""Sources of every kind, their schemas and versions, and that nothing is written or told."""

import sqlite3
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from discreet.ask import expression as ask
from discreet.ask.declared import Declared
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import OnGrid, Present, Request, Rows, Squares, Total, Units
from discreet.engines.duckdb import DuckDB
from discreet.engines.sql.statement import statement
from discreet.engines.textfiles import Layout
from discreet.errors import EngineFailed, InvalidParameter
from discreet.verify import reference

pytestmark = pytest.mark.usefixtures("own_duckdb")

TABLE = pa.table(
    {"name": ["a", "b", None], "age": [1.5, None, 3.0], "n": pa.array([1, 2, 3], pa.int32())}
)
GRID = ValueGrid(exponent=-1, lower=0, upper=20, exact=False)
REQUEST = Request(
    (Rows(), Total(OnGrid(ask.Column("age", "number"), GRID, None))),
    (Group("name", ask.Column("name", "text"), ("a", "b"), "other"),),
)
ANSWER = [[1, 1, 1], [3, 0, 6]]


@pytest.fixture
def folder(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "people.parquet")
    TABLE.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    TABLE.to_pandas().to_csv(tmp_path / "people.tsv", index=False, sep="\t")
    TABLE.to_pandas().to_csv(tmp_path / "a [1] 'file'.csv", index=False)
    TABLE.to_pandas().to_json(tmp_path / "people.jsonl", orient="records", lines=True)
    for part in ("year=1", "year=2"):
        (tmp_path / "many" / part).mkdir(parents=True)
        pa.parquet.write_table(TABLE, tmp_path / "many" / part / "part.parquet")
    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.register("t", TABLE)
        database.execute('CREATE TABLE people AS FROM t; CREATE TABLE "an odd \' name" AS FROM t')
    with sqlite3.connect(tmp_path / "people.db") as database:
        database.execute(
            "CREATE TABLE people (name TEXT, age REAL, n INTEGER, born DATE, raw BLOB)"
        )
        database.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?)",
            [
                ("a", 1.5, 1, "2024-02-29", b"x"),
                ("b", "odd", 2, "never", None),
                (None, 3, "x", 7, None),
            ],
        )
    database.close()
    return tmp_path


def test_files_of_every_kind_give_the_same_integers(folder):
    names = [
        "people.parquet",
        "people.csv",
        "people.tsv",
        "a [1] 'file'.csv",
        "people.jsonl",
        "people.db",
    ]
    for name in [
        *names,
        "people.db#people",
        "people.duckdb#people",
        "people.duckdb#an odd ' name",
        "*.parquet",
    ]:
        assert (
            DuckDB(str(folder / name), Layout(("name", "age"))).fetch(REQUEST).reveal() == ANSWER
        ), name


def test_objects_of_every_kind_give_the_same_integers():
    batches = TABLE.to_batches()
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches)
    objects = [
        TABLE,
        batches[0],
        reader,
        pa.dataset.dataset(TABLE),
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).lazy(),
    ]
    for source in objects:
        assert DuckDB(source).fetch(REQUEST).reveal() == ANSWER, type(source)


def test_folders_and_lists_are_all_their_files(folder):
    twice = [[2, 2, 2], [6, 0, 12]]
    files = [folder / "many" / part / "part.parquet" for part in ("year=1", "year=2")]
    for source in (folder / "many", str(folder / "many" / "**" / "*.parquet"), files):
        engine = DuckDB(source)
        assert engine.fetch(REQUEST).reveal() == twice
        assert "year" in engine.schema()


def test_a_relation_is_used_on_its_own_connection_and_leaves_nothing_there():
    with duckdb.connect(config={"default_collation": "nocase"}) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT unnest(['a', 'A', 'b']) AS name, 1.5::DOUBLE AS age"
        )
        engine = DuckDB(connection.sql("FROM people"))
        assert engine.fetch(REQUEST).reveal() == [[1, 1, 1], [3, 3, 3]]
        assert engine.units("name").reveal() == 3
        assert connection.sql(
            "SELECT count(*) FROM duckdb_views() WHERE NOT internal"
        ).fetchall() == [(0,)]
        assert connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(1,)]


def test_a_custodians_select_may_join_files_by_relative_paths(folder, monkeypatch):
    monkeypatch.chdir(folder)
    engine = DuckDB("SELECT p.* FROM 'people.parquet' p JOIN 'people.csv' c USING (n)")
    assert engine.fetch(REQUEST).reveal() == ANSWER
    assert (
        DuckDB("  with t as (from 'people.csv') select * from t").fetch(REQUEST).reveal() == ANSWER
    )


@pytest.mark.parametrize(
    "text",
    ["SELECT 1; SELECT 2", "WITH t AS (SELECT 1) INSERT INTO x FROM t", "SELECT 1; DROP TABLE x"],
)
def test_a_source_in_sql_is_one_select(text):
    with pytest.raises((InvalidParameter, EngineFailed)):
        DuckDB(text)


def test_a_collation_does_not_merge_texts(tmp_path):
    with duckdb.connect(tmp_path / "c.duckdb") as database:
        database.execute(
            "CREATE TABLE t (name VARCHAR COLLATE nocase); INSERT INTO t VALUES ('a'), ('A')"
        )
    engine = DuckDB(tmp_path / "c.duckdb")
    name = ask.Column("name", "text")
    request = Request(
        (
            Rows(ask.Comparison("=", name, ask.Constant("a", "text"))),
            Rows(ask.Likeness(name, "a")),
            Units(),
        ),
        unit="name",
    )
    assert engine.fetch(request).reveal() == [[1], [1], [2]]
    assert engine.units("name").reveal() == 2


TYPES = """SELECT 1::TINYINT AS a, 1::UBIGINT AS b, 1::HUGEINT AS c, 1::DECIMAL(18,3) AS d, 1::DECIMAL(9,0) AS e,
    'x'::ENUM('x', 'y') AS f, uuid() AS g, DATE '2024-01-01' AS h, TIMESTAMPTZ '2024-01-01 00:00:00+02' AS i,
    TIMESTAMP_NS '2024-01-01' AS j, true AS k, 1::FLOAT AS l, [1] AS m, {'a': 1} AS n, 'x'::BLOB AS o,
    TIME '01:00' AS p, INTERVAL 1 DAY AS q, '{}'::JSON AS r, 'x' AS "odd "" name" """


def test_the_schema_has_kinds_and_leaves_out_what_cannot_be_asked():
    schema = DuckDB(TYPES).schema()
    kinds = {name: (column.kind, column.whole) for name, column in schema.items()}
    whole = ("number", True)
    real = ("number", False)
    text = ("text", False)
    moment = ("date", False)
    numbers = {"a": whole, "b": whole, "c": whole, "d": real, "e": whole, "l": real}
    others = {
        "f": text,
        "g": text,
        "h": moment,
        "i": moment,
        "j": moment,
        "k": ("truth", False),
        'odd " name': text,
    }
    assert kinds == numbers | others
    assert schema["f"].described == "ENUM"


def test_every_type_of_the_schema_can_be_asked():
    engine = DuckDB(TYPES)
    for name, column in engine.schema().items():
        assert engine.fetch(
            Request((Rows(ask.Column(name, column.kind)),), unit=name, max_rows=1)
        ).reveal() == [[1]]


def test_moments_with_a_zone_are_taken_in_utc_and_far_ones_are_missing():
    query = (
        "SELECT unnest([TIMESTAMPTZ '2024-01-01 01:00:00+02', 'infinity', '-infinity',"
        " '290000-01-01', NULL]) AS t"
    )
    day = Group(
        "t",
        ask.Truncated("day", ask.Column("t", "date")),
        (datetime(2023, 12, 31), date(2024, 1, 1)),  # noqa: DTZ001
        "other",
    )
    assert DuckDB(query).fetch(Request((Rows(),), (day,))).reveal() == [[1, 0, 4]]
    far = "SELECT unnest([DATE '5881580-07-10', '-infinity', '0044-03-15 (BC)', '0001-01-01']) AS t"
    assert DuckDB(far).fetch(Request((Rows(ask.Column("t", "date")),))).reveal() == [[1]]


def test_huge_integers_and_decimals_become_the_nearest_double():
    values = [2**64 + 2**11 + 1, -(2**100) - 1, -15969616019341834, 71296689604804203156]
    query = f"SELECT unnest([{', '.join(f'{value}::HUGEINT' for value in values)}]) AS x"
    keys = tuple(Fraction(float(value)) for value in values)
    group = Group("x", ask.Column("x", "number"), keys)
    assert DuckDB(query).fetch(Request((Rows(),), (group,))).reveal() == [[1, 1, 1, 1]]
    digits = [Decimal("0.30000000000000004441"), Decimal("123456789012345678.90123456789012345678")]
    table = pa.table({"x": pa.array(digits, pa.decimal128(38, 20))})
    group = Group("x", ask.Column("x", "number"), tuple(Fraction(float(digit)) for digit in digits))
    assert DuckDB(table).fetch(Request((Rows(),), (group,))).reveal() == [[1, 1]]


def test_versions_change_with_the_content_and_with_nothing_else(folder):
    file = folder / "people.parquet"
    engine, before = DuckDB(file), DuckDB(file).version()
    copy = folder / "copy.parquet"
    copy.write_bytes(file.read_bytes())
    assert engine.version() == before == DuckDB(copy).version()
    pa.parquet.write_table(TABLE.slice(1), file)
    assert engine.version() != before
    assert (
        DuckDB(TABLE).version()
        == DuckDB(TABLE.to_batches()[0]).version()
        != DuckDB(TABLE.slice(1)).version()
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS FROM range(5000)")
        relation = DuckDB(connection.sql("FROM t"))
        first = relation.version()
        assert first == relation.version()
        connection.execute("UPDATE t SET range = 1 WHERE range = 2")
        assert relation.version() != first


def test_a_version_that_another_thread_forgets_is_still_that_of_these_rows(folder):
    class Forgetful(DuckDB):
        """What is known is forgotten by another thread as soon as it was looked at."""

        @property
        def _known(self):
            known, self.kept = self.kept, None
            return known

        @_known.setter
        def _known(self, known):
            self.kept = known

    engine = Forgetful(folder / "people.parquet")
    assert engine.version() == engine.version() == DuckDB(folder / "people.parquet").version()


def test_units_are_rows_or_values_of_a_column():
    table = pa.table({"p": [1.0, 1.0, -0.0, 0.0, None, float("nan")]})
    assert DuckDB(table).units(None).reveal() == 6
    assert DuckDB(table).units("p").reveal() == 2
    big = pa.table({"p": [2**53, 2**53 + 1]})
    assert DuckDB(big).units("p").reveal() == 2
    with pytest.raises(InvalidParameter, match="must have the column"):
        DuckDB(table).units("q")


def test_nothing_is_written(folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*")}
    for name in ("people.parquet", "people.csv", "people.db", "people.duckdb#people"):
        DuckDB(name).fetch(REQUEST)
    assert {
        file: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*")
    } == before


def test_sqlite_values_that_are_not_of_their_declared_type_are_missing(folder):
    engine = DuckDB(folder / "people.db")
    assert sorted(engine.schema()) == ["age", "born", "n", "name"]
    columns = [
        ask.Column(name, kind)
        for name, kind in (("age", "number"), ("n", "number"), ("born", "date"))
    ]
    assert engine.fetch(Request(tuple(map(Rows, columns)))).reveal() == [[2], [2], [1]]


@pytest.mark.parametrize("name", ["people.db", "people.duckdb#people"])
def test_a_database_that_has_changed_is_refused_because_its_rows_are_those_of_before(folder, name):
    engine, file = DuckDB(f"{folder}/{name}"), folder / name.partition("#")[0]
    engine.check()
    new = folder / "new"
    new.write_bytes(file.read_bytes())
    new.replace(file)
    for _ in range(2):
        with pytest.raises(InvalidParameter, match="the database has changed since it was opened"):
            engine.check()


@pytest.mark.parametrize(
    "source",
    ["nowhere.csv", "people.duckdb", "people.duckdb#nothing", "people.db#nothing", 7, None, []],
)
def test_what_is_no_source_is_refused(folder, monkeypatch, source):
    monkeypatch.chdir(folder)
    with pytest.raises(InvalidParameter, match="the source must"):
        DuckDB(source)


def test_files_of_different_kinds_are_refused(folder):
    with pytest.raises(InvalidParameter, match="must all be"):
        DuckDB([folder / "people.csv", folder / "people.parquet"])


def test_a_statement_that_ran_before_reads_the_rows_anew_and_prints_none(tmp_path):
    path = tmp_path / "people.parquet"
    pa.parquet.write_table(TABLE, path)
    engine = DuckDB(str(path))
    assert engine.fetch(REQUEST).reveal() == ANSWER
    pa.parquet.write_table(pa.concat_tables([TABLE, TABLE]), path)
    assert engine.fetch(REQUEST).reveal() == [[2, 2, 2], [6, 0, 12]]
    others = tuple(
        Group("name", ask.Column("name", "text"), keys, "other")
        for keys in (("b", "a"), ("a", "c"))
    )
    counts = [engine.fetch(Request((Rows(),), (group,))).reveal() for group in others]
    assert counts == [[[2, 2, 2]], [[2, 0, 4]]]
    assert not any(isinstance(value, duckdb.DuckDBPyRelation) for value in vars(engine).values())
    assert "│" not in repr(vars(engine))  # a printed relation is a table


def test_an_error_of_duckdb_is_told_without_its_words(tmp_path):
    file = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"name": ["canary"] * 1000}), file)
    engine = DuckDB(file)
    file.write_bytes(file.read_bytes()[:50] + b"canary" * 9)
    with pytest.raises(EngineFailed, match=r"^t\.parquet is shorter than it says") as caught:
        engine.fetch(Request((Rows(ask.Column("name", "text")),)))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_error_that_quotes_a_row_is_kept_nowhere():
    rows = duckdb.connect().sql(
        "SELECT CAST(word AS INTEGER) AS n FROM (VALUES ('canary')) AS words(word)"
    )
    with pytest.raises(duckdb.ConversionException, match="canary"):
        rows.fetchall()
    with pytest.raises(EngineFailed) as caught:
        DuckDB(rows).fetch(Request((Rows(ask.Column("n", "number")),)))
    assert caught.value.__context__ is None


def test_a_frame_of_pandas_is_what_it_was_when_it_was_given():
    frame = pd.DataFrame({"name": ["a"], "age": [1.5]})
    engine = DuckDB(frame)
    frame.loc[0, "age"] = 9.0
    assert engine.fetch(REQUEST).reveal() == [[1, 0, 0], [3, 0, 0]]


def test_a_custodians_select_may_try_to_cast_the_cells_of_csv(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("age\n" + "34\nn/a\n" * 5)
    engine = DuckDB(f"SELECT TRY_CAST(age AS DOUBLE) AS age FROM '{file}'")  # noqa: S608
    assert engine.fetch(Request((Rows(), Rows(ask.Column("age", "number"))))).reveal() == [
        [10],
        [5],
    ]


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.tsv"])
def test_a_file_of_no_bytes_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(InvalidParameter, match=f"{name} is empty"):
        DuckDB(tmp_path / name)


def test_of_several_files_only_json_may_have_no_bytes(folder):
    for kind in ("csv", "parquet"):
        (folder / f"empty.{kind}").touch()
        with pytest.raises(InvalidParameter, match=f"empty.{kind} is empty"):
            DuckDB([folder / f"people.{kind}", folder / f"empty.{kind}"])
    (folder / "some.jsonl").write_text('{"n": 1}\n')
    (folder / "empty.jsonl").touch()
    assert (
        DuckDB([folder / "some.jsonl", folder / "empty.jsonl"], Layout(("n",))).units(None).reveal()
        == 1
    )
    # one line decides no refusal
    assert DuckDB(folder / "empty.jsonl", Layout(("n",))).units(None).reveal() == 0


def test_bytes_that_are_no_utf_8_raise_nothing(tmp_path):
    raw = pa.array([b"ok", b"\xff\xfe", b"caf\xc3", None], pa.binary())
    table = pa.table({"name": pa.Array.from_buffers(pa.string(), 4, raw.buffers())})
    pa.parquet.write_table(table, tmp_path / "people.parquet")
    name = ask.Column("name", "text")
    measures = (
        Rows(name),
        Rows(ask.Likeness(name, "caf_")),
        Rows(ask.Function("upper", (name,))),
        Units(),
    )
    request = Request(measures, (Group("name", name, ("ok",), "other"),), unit="name", max_rows=1)
    for source in (table, tmp_path / "people.parquet"):
        engine = DuckDB(source)
        assert engine.fetch(request).reveal() == [[1, 0], [0, 0], [1, 0], [1, 0]]
        assert engine.discover(ask.Column("name", "text"), None, 1).reveal() == {"ok": 1}
        assert engine.units("name").reveal() == 1


@pytest.mark.parametrize("missing", [None, -3, 5, 0])
def test_missing_values_left_in_sums_are_taken_out_again(missing):
    """The fast way for doubles against the slow one, which a limit on units takes, and against
    numbers by hand.
    """
    nan, inf = float("nan"), float("inf")
    values = [nan, None, inf, -inf, 1.25, nan, -9.0, 4.0, None, None, -0.0]
    table = pa.table({"x": values, "g": ["a", "a", "b"] * 3 + ["c", "c"], "unit": list(range(11))})
    on_grid = OnGrid(
        ask.Column("x", "number"), ValueGrid(exponent=0, lower=-3, upper=5, exact=True), missing
    )
    measures = (Total(on_grid), Squares(on_grid), Present(on_grid), Rows())
    group = Group("g", ask.Column("g", "text"), ("a", "b", "c", "empty"))
    fast = DuckDB(table).fetch(Request(measures, (group,))).reveal()
    slow = DuckDB(table).fetch(Request(measures, (group,), unit="unit", max_rows=1)).reveal()
    request = Request(measures, (group,))
    assert (
        list(map(list, fast))
        == list(map(list, slow))
        == reference.fetch(request, table.to_pylist())
    )
    only_missing = DuckDB(pa.table({"x": [nan, None, nan]})).fetch(Request(measures)).reveal()
    put_in = 0 if missing is None else missing + 3
    assert only_missing == [[3 * put_in], [3 * put_in**2], [0 if missing is None else 3], [3]]


@pytest.mark.parametrize("name", ["discreet_rows", "row_", "ROW_"])
def test_a_column_of_any_name_hides_no_change_from_the_version(name):
    versions = {
        DuckDB(
            duckdb.sql(f"SELECT i * {factor} AS n, 7 AS {name} FROM range(9) AS rows(i)")  # noqa: S608
        ).version()
        for factor in (1, 2)
    }
    assert len(versions) == 2


def test_texts_that_are_missing_are_no_join_in_the_plan():
    """Beside a map, DuckDB's plan of such a join took seconds of each question."""
    declared = Declared(
        type="integer", missing_values=list("zyxwv"), map={f"k{at}": str(at) for at in range(40)}
    )
    table = pa.table({"x": ["1", "z", "k7", "v", None]})
    value = OnGrid(
        ask.Column("x", "number", declared.reading),
        ValueGrid(exponent=0, lower=0, upper=9, exact=True),
        None,
    )
    request = Request((Total(value), Present(value)))
    assert DuckDB(table).fetch(request).reveal() == [[8], [2]]
    sql = statement(request, DuckDB(table).schema()).sql
    [(_, plan)] = duckdb.from_arrow(table).query("discreet_rows", f"EXPLAIN {sql}").fetchall()
    assert "JOIN" not in plan
