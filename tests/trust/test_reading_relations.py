"""TRUST 37 for what DuckDB reads by itself: a relation, a view or a SELECT never lets it tell types
from rows, and a file that was replaced after it was opened is refused before anything is spent.
"""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.ask.expression import Column, Comparison, Constant
from discreet.ask.policy import Policy
from discreet.engines.base import Request, Rows
from discreet.engines.duckdb import DuckDB
from discreet.engines.sources import opened
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.csv?").write_text("a,b\n1,2\n")
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "x.parquet")
    return tmp_path


READ_BY_DUCKDB = [
    "FROM 'x.csv'",
    "FROM read_csv('x.csv')",
    "FROM 'x.jsonl'",
    "FROM 'x.parquet'",
    "SELECT a FROM 'x.csv' WHERE a > 0 ORDER BY a LIMIT 5",
    "WITH c AS MATERIALIZED (FROM 'x.csv') FROM c UNION ALL FROM c",
    "FROM query('FROM ''x.csv''')",
    "SELECT (SELECT max(a) FROM 'x.csv') AS a FROM range(3)",
    "FROM range(3) AS r(a) WHERE a IN (SELECT a FROM 'x.csv')",
    "FROM sniff_csv('x.csv')",
    "FROM frame",
    "FROM table_",
]
READ_FROM_TABLES = [
    "FROM t",
    "SELECT a, row_number() OVER () AS n FROM t WHERE a IN (1, 2, 3) ORDER BY a LIMIT 3",
    "SELECT t.a, (SELECT max(u.a) FROM t AS u WHERE u.a < t.a) AS b FROM t",
    "FROM t, unnest([1, 2]) AS x(i)",
    "FROM t POSITIONAL JOIN (FROM range(3) AS r(b))",
    "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r WHERE a < 5) FROM r",
    "VALUES (1), (2)",
    "SELECT 1 AS a",
    "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)",
    "FROM t WHERE false",
    "PIVOT t ON a USING count(*)",
]


@pytest.mark.parametrize("query", READ_BY_DUCKDB)
def test_a_relation_reads_tables_alone(query):
    frame, table_ = pd.DataFrame({"a": ["1", None]}), pa.table({"a": [1]})
    with duckdb.connect() as connection:
        relation = connection.sql(query)
        with pytest.raises(
            InvalidParameter, match=r"give the file.*as the source, or call materialize\(\)"
        ):
            DuckDB(relation)
        assert opened(relation.materialize(), connection, Layout(), []).rows.fetchall()
    assert (len(frame), len(table_)) == (2, 1)


@pytest.mark.parametrize("make", ["read_csv", "read_json", "from_csv_auto"])
def test_a_relation_of_a_function_of_duckdb_is_no_table_either(make):
    name = {"read_json": "x.jsonl"}.get(make, "x.csv")
    with duckdb.connect() as connection:
        relation = getattr(connection, make)(name).project("a").filter("a > 0")
        with pytest.raises(InvalidParameter, match="must read tables"):
            DuckDB(relation)


@pytest.mark.parametrize("query", READ_FROM_TABLES)
def test_a_relation_over_tables_is_taken(query):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS a FROM range(5) AS r(i); CREATE INDEX i ON t(a)"
        )
        assert opened(connection.sql(query), connection, Layout(), []).rows.columns


def test_a_relation_whose_view_or_table_was_replaced_is_refused_before_anything_is_spent(folder):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS a FROM range(5) AS r(i); CREATE VIEW v AS FROM t"
        )
        columns = {"a": {"bounds": [0, 9]}}
        for version in (None, "1"):
            policy = Policy(
                source=connection.sql("FROM v"), epsilon=1, columns=columns, version=version
            )
            with discreet.Study(policy, ledger=folder / f"{version}.ledger") as study:
                plan = study.sql("SELECT sum(a) FROM data", epsilon="0.1")
                for view, words in (
                    ("FROM 'x.csv'", "must read tables"),
                    ("SELECT 'x' AS a", "open the study again"),
                ):
                    connection.execute(f"CREATE OR REPLACE VIEW v AS {view}")
                    with pytest.raises(InvalidParameter, match=words):
                        plan.release()
                    assert study.spent == 0
                connection.execute("CREATE OR REPLACE VIEW v AS FROM t")
                plan.release()


@pytest.mark.parametrize(
    "query", [query for query in READ_BY_DUCKDB if query not in {"FROM frame", "FROM table_"}]
)
def test_a_view_of_a_duckdb_file_reads_tables_alone(query):
    with duckdb.connect("x.duckdb") as connection:
        connection.execute(f"CREATE VIEW v AS {query}; CREATE VIEW z AS FROM v")
        connection.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW w AS FROM t")
    for view in "vz":
        with pytest.raises(InvalidParameter, match="create a table"):
            DuckDB(f"x.duckdb#{view}")
    assert DuckDB("x.duckdb#t").fetch(Request((Rows(),))).reveal() == [[1]]
    assert DuckDB("x.duckdb#w").fetch(Request((Rows(),))).reveal() == [[1]]


@pytest.mark.parametrize(
    "query",
    [
        "FROM query('FROM ''x.csv''')",
        "FROM query('SELECT * FROM read_csv(''x.csv'')')",
        "FROM 'x.csv' WHERE a IN (SELECT a FROM query('FROM read_csv(''x.csv'')'))",
        "FROM query_table('x.csv')",
        "FROM sniff_csv('x.csv')",
        "FROM read_parquet('x.parquet')",
        "FROM parquet_scan('x.parquet')",
        "FROM 'x.csv?'",
        "FROM 'x.jsonl'",
    ],
)
def test_a_select_leaves_reading_to_discreet(query):
    with pytest.raises(InvalidParameter, match="must not say how files are read"):
        DuckDB(query)


@pytest.mark.parametrize(
    "query",
    ["FROM people", "SELECT a.x FROM 'x.csv' AS a, people", "SELECT (SELECT max(x) FROM people)"],
)
def test_a_variable_of_the_caller_is_no_table_of_a_select(folder, query):
    """Arrow reads CSV as well, so that the plan does not tell a table of the caller from a file."""
    people = pa.table({"x": ["1"]})  # noqa: F841 - DuckDB would find it by its name
    (folder / "x.csv").write_text("x\n1\n")
    with pytest.raises(InvalidParameter, match=r"people does not exist"):
        DuckDB(query)


def test_a_select_over_parquet_reads_it_as_all_parquet_is_read():
    """Texts that are no UTF-8 are missing, and times in milliseconds are not read: neither makes a
    question fail.
    """
    raw = pa.array([b"ok", b"\xff\xfe"], pa.binary())
    times = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    texts = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"name": texts, "seen": times}), "people.parquet")
    engine = DuckDB("SELECT * FROM 'people.parquet'")
    assert list(engine.schema()) == ["name"]
    assert engine.units("name").reveal() == 1
    with pytest.raises(
        InvalidParameter, match=r"the column 'seen' exists, and .*: its times are in milliseconds"
    ):
        DuckDB("SELECT seen FROM 'people.parquet'")


OTHERS = {
    "text": pa.array(["a", "b"]),
    "far times": pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms")),
    "wider": pa.array([1, 2**40], pa.int64()),
}


@pytest.mark.parametrize("version", [None, "1"])
@pytest.mark.parametrize("source", ["rows.parquet", "data", "SELECT * FROM 'rows.parquet'"])
def test_parquet_of_other_types_is_refused_before_anything_is_spent(folder, source, version):
    (folder / "data").mkdir()
    files = (
        [folder / "rows.parquet"]
        if source != "data"
        else [folder / "data" / "a.parquet", folder / "data" / "b.parquet"]
    )

    def write(column):
        for file in files:
            pq.write_table(pa.table({"x": column, "n": [1, 2]}), file)

    write(pa.array([1, 2], pa.int32()))
    policy = Policy(
        source=source, table="data", epsilon=1, columns={"x": {"bounds": [0, 9]}}, version=version
    )
    with discreet.Study(policy, ledger=folder / "study.ledger") as study:
        plan = study.sql("SELECT sum(x) FROM data", epsilon="0.1")
        for other in OTHERS.values():
            write(other)
            with pytest.raises(InvalidParameter, match="open the study again"):
                plan.release()
            assert study.spent == 0
        if source == "data":
            pq.write_table(pa.table({"x": pa.array([1, 2], pa.int32()), "n": [1, 2]}), files[0])
            with pytest.raises(InvalidParameter, match="same columns and types"):
                plan.release()
        write(pa.array([3, 4], pa.int32()))
        plan.release()


def test_engines_over_relations_of_one_connection_answer_at_the_same_time():
    with duckdb.connect() as connection:
        relations = [
            connection.sql(f"SELECT i AS n FROM range({rows}) AS rows(i)")  # noqa: S608
            for rows in (7, 1000)
        ]
        engines = [DuckDB(relation) for relation in relations]

        def asked(at: int) -> int:
            engine = engines[at % 2] if at > 1 else DuckDB(relations[at % 2])
            return int(engine.fetch(Request((Rows(),))).reveal()[0][0])

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(asked, range(60))) == [7, 1000] * 30


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_no_file_is_in_a_source_twice(folder, suffix):
    """By a link, a second path or a second mention: one row would be two."""
    for part in ("one", "two"):
        (folder / part).mkdir()
    (folder / "one" / f"a.{suffix}").write_bytes((folder / f"x.{suffix}").read_bytes())
    assert DuckDB("one", Layout(("a",))).units(None).reveal() > 0
    (folder / "one" / f"latest.{suffix}").symlink_to(f"a.{suffix}")
    (folder / "two" / f"b.{suffix}").hardlink_to(folder / f"x.{suffix}")
    sources = ["one", "one/*", [f"x.{suffix}", f"./x.{suffix}"], ["two", f"x.{suffix}"]]
    if suffix != "jsonl":
        sources.append(f"SELECT a FROM 'one/*.{suffix}'")  # noqa: S608 - the test's own file
    for source in sources:
        with pytest.raises(
            InvalidParameter, match=r"a file must be in the source once, and .* are the same file"
        ):
            DuckDB(source, Layout(("a",)))


def test_two_globs_of_a_select_that_begin_with_one_file_keep_their_own_files(folder):
    """The second took the place of the first: 1, 3, 3, 3 instead of 1, 2, 2."""
    for number in (1, 2, 3):
        (folder / f"a{number}.csv").write_text("n\n" + f"{number}\n" * number)
    engine = DuckDB(
        "SELECT TRY_CAST(n AS INT) AS n FROM 'a[12].csv' UNION ALL SELECT 10 FROM 'a[13].csv'"
    )
    n = Column("n", "number")
    asked = [
        Rows(Comparison("=", n, Constant(Fraction(number), "number"))) for number in (1, 2, 3, 10)
    ]
    assert engine.fetch(Request(tuple(asked))).reveal() == [[1], [2], [0], [4]]
