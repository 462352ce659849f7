"""TRUST 67 on DuckDB, SQLite, Parquet, frames and Spark: a source that changes its types or columns
after opening is refused before the spend, and after it no row decides between an answer and an
error. See also `test_changed_tables`.
"""

import itertools
import os
import shutil
import sqlite3
from unittest import mock

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import EngineFailed, InvalidParameter, Policy, Study
from discreet.engines import duckdb as module
from discreet.errors import SourceChanged
from discreet.ledger.ledger import Ledger
from serving import people, served

ASKED = "SELECT count(*) AS n FROM t WHERE x * x > 5 AND name = 'a'"
COLUMNS = {"x": {"bounds": (0, 9)}, "name": {"keys": ["a"]}}
ROWS = {"x": [index % 10 for index in range(1000)], "name": ["a"] * 1000, "secret": range(1000)}
SELECTED = "SELECT i % 10 AS x, 'a' AS name, i AS secret FROM range(1000) AS r(i)"
HOSTILE = {"7": 7.0, "2.5": 2.5, "1e308": 1e308, "NaN": float("nan")}
_numbers = itertools.count()


def study(source, folder, version="1"):
    policy = Policy(source=source, table="t", epsilon=1000, columns=COLUMNS, version=version)
    return Study(policy, ledger=folder / f"{next(_numbers)}.ledger")


def refused_before(source, folder, change, version):
    with study(source, folder, version) as here:
        plan = here.sql(ASKED, epsilon=1)
        change()
        with pytest.raises(
            InvalidParameter, match=r"open the study again|since the study was opened"
        ):
            plan.release()
        assert here.spent == 0
        assert not list(folder.glob("*.ledger"))


def told_after(source, folder, change):
    """What a release says whose source changes right after the spend."""
    spend = Ledger.spend

    def spent(ledger, *args, **options):
        grant = spend(ledger, *args, **options)
        change()
        return grant

    with study(source, folder) as here, mock.patch.object(Ledger, "spend", spent):
        plan = here.sql(ASKED, epsilon=900)
        told, failure = None, None
        try:
            told = plan.release()["n"]
        except EngineFailed as caught:
            failure = caught
        assert here.spent == 900
        if failure is None:
            return told
        assert failure.spent is True
        assert failure.__context__ is None
        return str(failure)


def frame_of(number=None, **columns):
    rows = pa.table({**{name: list(values) for name, values in ROWS.items()}, **columns})
    if number is not None:
        rows = rows.set_column(0, "x", pa.array([number, *map(float, ROWS["x"][1:])]))
    return rows


# DuckDB tables that a caller's connection shares

SHARED = {
    "ALTER TABLE t ALTER x TYPE DOUBLE": "a number",
    "ALTER TABLE t ALTER x TYPE DECIMAL(9, 2)": "a decimal",
    "ALTER TABLE t ALTER x TYPE VARCHAR": "a text",
    "ALTER TABLE t RENAME x TO y": "renamed",
    "ALTER TABLE t DROP x": "dropped",
    "CREATE OR REPLACE TABLE t AS SELECT 1.5::DOUBLE AS x, 'a' AS name": "replaced",
    "DROP TABLE t; CREATE VIEW t AS SELECT 1.5::DOUBLE AS x, 'a' AS name, 1 AS secret": (
        "a view of another type"
    ),
}


@pytest.mark.parametrize("version", [None, "1"])
@pytest.mark.parametrize("change", SHARED, ids=SHARED.values())
@pytest.mark.parametrize("source", ["FROM t", "FROM v", "SELECT * FROM t WHERE secret >= 0"])
def test_a_shared_table_of_duckdb_is_refused_before_anything_is_spent(
    tmp_path, change, version, source
):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS {SELECTED}; CREATE VIEW v AS FROM t")
        other = connection.cursor()
        with study(connection.sql(source), tmp_path, version) as here:
            plan = here.sql(ASKED, epsilon=1)
            other.execute(change)
            with pytest.raises(SourceChanged, match="open the study again"):
                plan.release()
            assert here.spent == 0


@pytest.mark.parametrize("change", SHARED, ids=SHARED.values())
def test_a_shared_table_that_changes_after_the_spend_fails_for_every_row_alike(tmp_path, change):
    told = set()
    for row in HOSTILE.values():
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE t AS {SELECTED}")
            other = connection.cursor()

            def now(other=other, row=row):
                other.execute(change)
                if "ALTER x TYPE DOUBLE" in change:
                    other.execute("UPDATE t SET x = ? WHERE secret = 1", [row])

            told.add(str(told_after(connection.sql("FROM t"), tmp_path, now)))
    [words] = told
    assert words.endswith("what was spent stays spent")


# files that are read when they are opened: what was opened is what is asked

FILES = {
    "an integer that became a number": lambda: frame_of(2.5),
    "an integer that became a text": lambda: frame_of(x=list(map(str, ROWS["x"]))),
    "another column": lambda: frame_of().rename_columns(["y", "name", "secret"]),
    "a column that is gone": lambda: frame_of().drop_columns(["x"]),
}


def sqlite_file(path, rows):
    types = {"int64": "INTEGER", "double": "REAL", "string": "TEXT"}
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as lite:
        fields = ", ".join(f"{field.name} {types[str(field.type)]}" for field in rows.schema)
        lite.execute(f"CREATE TABLE t ({fields})")
        lite.executemany(
            f"INSERT INTO t VALUES ({', '.join('?' * rows.num_columns)})",  # noqa: S608
            zip(*rows.to_pydict().values(), strict=True),
        )
    lite.close()


def duckdb_file(path, rows):
    beside = path.with_suffix(".new")
    with duckdb.connect(beside) as own:
        own.register("given", rows)
        own.execute("CREATE TABLE t AS FROM given")
    os.replace(beside, path)


def parquet_file(path, rows):
    pq.write_table(rows, path)


WRITERS = {"t.db": sqlite_file, "t.duckdb": duckdb_file, "t.parquet": parquet_file}


@pytest.mark.parametrize("version", [None, "1"])
@pytest.mark.parametrize("change", FILES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_changes_is_refused_before_anything_is_spent(tmp_path, name, change, version):
    write, file = WRITERS[name], tmp_path / name
    write(file, frame_of())
    refused_before(str(file), tmp_path, lambda: write(file, FILES[change]()), version)


@pytest.mark.parametrize("change", FILES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_changes_after_the_spend_fails_for_every_row_alike_or_for_none(
    tmp_path, name, change
):
    write, file, told = WRITERS[name], tmp_path / name, set()
    for row in HOSTILE.values():
        write(file, frame_of())
        rows = frame_of(row) if change == "an integer that became a number" else FILES[change]()
        told.add(str(told_after(str(file), tmp_path, lambda rows=rows: write(file, rows))))
    [words] = told
    # databases are read as they were when they were opened
    assert words == "[700]" if name != "t.parquet" else "what was spent stays spent" in words


@pytest.mark.parametrize("source", ["{}", "SELECT * FROM '{}'"])
def test_a_parquet_file_that_is_replaced_while_it_is_read_fails_for_every_row_alike(
    tmp_path, source
):
    """Its texts are read twice: from two files, one row of each would decide which rows are
    missing.
    """
    file, told, read = tmp_path / "t.parquet", set(), module._rows
    for row in HOSTILE.values():
        parquet_file(file, frame_of(1.0))

        def rows(bound, row=row):
            yield from read(bound)
            parquet_file(tmp_path / "new", frame_of(row))
            os.replace(tmp_path / "new", file)

        with mock.patch.object(module, "_rows", rows):
            told.add(str(told_after(source.format(file), tmp_path, lambda: None)))
    assert told == {
        "a file of the source was replaced while it was read; ask again; what was spent stays spent"
    }


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda rows: pl.DataFrame(rows).lazy(), pa.table]
)
def test_a_frame_that_changes_is_asked_as_it_was_when_it_was_opened(tmp_path, make):
    rows = {name: list(values) for name, values in ROWS.items()}
    frame = make(rows)
    with study(frame, tmp_path) as here:
        plan, other = here.sql(ASKED, epsilon=400), here.sql(f"{ASKED} AND x < 100", epsilon=400)
        assert plan.release()["n"] == [700]
        if isinstance(frame, pd.DataFrame):
            frame.loc[:, "x"] = -1
            frame["x"] = frame["x"].astype(float) + 0.5
            del frame["name"]
        rows["x"][:] = [2] * 1000
        assert other.release()["n"] == [700]


def test_over_http_a_changed_source_is_refused_and_nothing_is_spent(tmp_path, caplog):
    source, rows = tmp_path / "people.parquet", people()
    pq.write_table(rows, source)
    with served(tmp_path, table=str(source)) as site:
        pq.write_table(rows.set_column(1, "age", rows["age"].cast(pa.float32())), source)
        asked = {
            "study": "people",
            "sql": "SELECT avg(age) FROM people",
            "epsilon": "0.1",
            "request_id": "one",
        }
        told = site.client().post("/release", json=asked)
        assert told.status_code >= 400
        assert site.study.spent == 0
        pq.write_table(rows, source)
        assert site.client().post("/release", json=asked).status_code == 200
    # the operator reads why; analysts need not know what a source looks like
    assert "the files no longer have the columns and types that they had" in caplog.text


# Spark


@pytest.fixture
def spark_table(spark):
    name = f"changed_67_{next(_numbers)}"

    def write(select):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        shutil.rmtree(f"spark-warehouse/{name}", ignore_errors=True)
        spark.sql(f"CREATE TABLE {name} USING parquet AS {select}")

    write.name, write.run = name, lambda statement: spark.sql(statement.replace("TABLE_", name))
    rows = "FROM (SELECT explode(sequence(0, 999)) AS i)"
    write.like = lambda x="i % 10": f"SELECT {x}, 'a' AS name, i AS secret {rows}"
    write(write.like("i % 10 AS x"))
    yield write
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"DROP VIEW IF EXISTS {name}_view")


SPARK = {
    "number": "CASE WHEN i = 1 THEN {row} ELSE CAST(i % 10 AS DOUBLE) END AS x",
    "decimal": "CAST(i % 10 AS DECIMAL(9, 2)) AS x",
    "text": "CAST(i % 10 AS STRING) AS x",
    "another column": "i % 10 AS y",
}


@pytest.mark.spark
@pytest.mark.parametrize("change", SPARK)
def test_a_table_of_spark_that_is_replaced_is_refused_before_the_spend_and_after_it(
    spark_table, tmp_path, change
):
    for version in (None, "1"):
        spark_table(spark_table.like("i % 10 AS x"))
        replaced = spark_table.like(SPARK[change].format(row="2.5D"))
        refused_before(
            f"spark:{spark_table.name}",
            tmp_path,
            lambda replaced=replaced: spark_table(replaced),
            version,
        )
    told = set()
    for row in ("7D", "1e308D", "double('NaN')") if change == "number" else ("7D",):
        spark_table(spark_table.like("i % 10 AS x"))
        replaced = spark_table.like(SPARK[change].format(row=row))
        told.add(
            str(
                told_after(
                    f"spark:{spark_table.name}",
                    tmp_path,
                    lambda replaced=replaced: spark_table(replaced),
                )
            )
        )
    [words] = told
    assert "what was spent stays spent" in words


@pytest.mark.spark
def test_a_view_of_spark_that_is_redefined_is_refused_before_the_spend_and_after_it(
    spark_table, tmp_path
):
    def define(select):
        spark_table.run(f"CREATE OR REPLACE VIEW TABLE__view AS {select}")

    same, other = "SELECT * FROM TABLE_", "SELECT CAST(x AS DOUBLE) + 0.5D AS x, name FROM TABLE_"
    define(same)
    refused_before(f"spark:{spark_table.name}_view", tmp_path, lambda: define(other), "1")
    define(same)
    words = told_after(f"spark:{spark_table.name}_view", tmp_path, lambda: define(other))
    assert "what was spent stays spent" in words
    define(same)
    with study(f"spark:{spark_table.name}_view", tmp_path) as here:
        plan = here.sql(ASKED, epsilon=900)
        define("SELECT x, name FROM TABLE_")  # the columns in use are the same
        assert plan.release()["n"] == [700]
