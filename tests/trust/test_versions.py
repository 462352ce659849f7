"""TRUST 28: a version covers the declared columns and the unit alone, on every engine.

A free repeat tells that they are the same, and nothing of other columns; the order of rows does not
matter, and every row counts.
"""

import json
import sqlite3

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet import Policy, Study
from discreet.engines.choose import engine_under

ROWS = [
    ("a", 1.5, "x", 7),
    ("a", None, "y", 8),
    ("b", 1.5, None, 9),
    ("", 0.0, "x", 7),
    ("a", 1.5, "x", 7),
]
NAMES = ("who", "age", "town", "secret")
COLUMNS = {"age": {"bounds": [0, 9], "type": "number"}, "town": {"keys": ["x", "y"]}}
TYPED = {"age": {"bounds": [0, 9]}, "town": {"keys": ["x", "y"]}}


def table(rows):
    columns = list(zip(*rows, strict=True))
    types = [pa.string(), pa.float64(), pa.string(), pa.int64()]
    return pa.table(
        {name: pa.array(c, t) for name, c, t in zip(NAMES, columns, types, strict=True)}
    )


def with_cell(row, column, value):
    changed = [list(one) for one in ROWS]
    changed[row][NAMES.index(column)] = value
    return list(map(tuple, changed))


SAME = {
    "as it was": ROWS,
    "another order": [ROWS[index] for index in (3, 1, 4, 0, 2)],
    "another value of a column that is not declared": with_cell(1, "secret", 10**6),
    "a value of such a column that is gone": with_cell(0, "secret", None),
}
OTHER = {
    "another number": with_cell(0, "age", 1.25),
    "a number that is gone": with_cell(0, "age", None),
    "a number that is there": with_cell(1, "age", 1.5),
    "another text": with_cell(0, "town", "y"),
    "a text that is gone": with_cell(0, "town", None),
    "another unit": with_cell(0, "who", "b"),
    "two values exchanged": [*with_cell(0, "town", "y")[:1], *with_cell(1, "town", "x")[1:]],
    "a row added": [*ROWS, ("c", 2.0, "x", 1)],
    "a row added twice": [*ROWS, ROWS[2], ROWS[2]],
    "a row left out": ROWS[1:],
    "two equal rows left out": ROWS[1:4],
    "another multiplicity": [*ROWS[:4], ROWS[1]],
}


def files(tmp_path):
    """For each kind of source, a function that writes rows and returns the source."""

    def parquet(rows):
        pq.write_table(table(rows), tmp_path / "people.parquet")
        return str(tmp_path / "people.parquet")

    def csv(rows):
        pyarrow.csv.write_csv(table(rows), tmp_path / "people.csv")
        return str(tmp_path / "people.csv")

    def jsonl(rows):
        lines = [json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows]
        (tmp_path / "people.jsonl").write_text("".join(lines))
        return str(tmp_path / "people.jsonl")

    def sqlite(rows):
        (tmp_path / "people.db").unlink(missing_ok=True)
        with sqlite3.connect(tmp_path / "people.db") as lite:
            lite.execute("CREATE TABLE people (who TEXT, age REAL, town TEXT, secret INTEGER)")
            lite.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        lite.close()
        return str(tmp_path / "people.db")

    def database(rows):
        (tmp_path / "people.duckdb").unlink(missing_ok=True)
        with duckdb.connect(tmp_path / "people.duckdb") as own:
            own.register("given", table(rows))
            own.execute("CREATE TABLE people AS FROM given")
        return str(tmp_path / "people.duckdb")

    def query(rows):
        return f"SELECT * FROM '{parquet(rows)}'"  # noqa: S608

    return {"frame": table, "parquet": parquet, "csv": csv, "jsonl": jsonl} | {
        "sqlite": sqlite,
        "duckdb": database,
        "select": query,
    }


def version(source, salt="salt"):
    terms = {"unit": "who", "max_rows": 2, "epsilon": 1}
    own = Policy(
        source=source, table="people", columns=COLUMNS if _is_text(source) else TYPED, **terms
    )
    return engine_under(own).version(salt)


def _is_text(source):
    return isinstance(source, str) and source.endswith((".csv", ".jsonl"))


def compared(make):
    first = version(make(ROWS))
    assert {name: version(make(rows)) == first for name, rows in SAME.items()} == dict.fromkeys(
        SAME, True
    )
    assert {name: version(make(rows)) == first for name, rows in OTHER.items()} == dict.fromkeys(
        OTHER, False
    )
    assert version(make(ROWS), "another salt") != first


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv", "jsonl", "sqlite", "duckdb", "select"])
def test_a_version_covers_the_declared_columns_alone(tmp_path, kind):
    compared(files(tmp_path)[kind])


def test_a_version_of_a_relation_covers_the_declared_columns_alone():
    with duckdb.connect() as connection:

        def relation(rows):
            connection.register("given", table(rows))
            connection.execute("CREATE OR REPLACE TABLE people AS FROM given")
            return connection.sql("FROM people")

        compared(relation)


def test_a_version_on_postgresql_covers_the_declared_columns_alone(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:

        def server(rows):
            connection.execute(
                "DROP TABLE IF EXISTS versions_28; "
                "CREATE TABLE versions_28 (who text, age float8, town varchar(9), secret bigint)"
            )
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO versions_28 VALUES (%s, %s, %s, %s)", rows)
            return f"{postgres}#versions_28"

        compared(server)
        connection.execute("DROP TABLE versions_28")


@pytest.mark.spark
def test_a_version_on_spark_covers_the_declared_columns_alone(spark):
    types = "who string, age double, town string, secret bigint"
    compared(lambda rows: spark.createDataFrame(rows, types))


def test_a_repeat_is_free_while_the_declared_columns_are_the_same_and_charged_when_they_are_not(
    tmp_path,
):
    """What a charge for a repeat tells: that a declared cell, a unit or the number of rows has
    changed, and no more.
    """
    make = files(tmp_path)["parquet"]
    policy = Policy(source=make(ROWS), epsilon=10, unit="who", max_rows=2, columns=TYPED)
    with Study(policy, ledger=tmp_path / "l") as study:
        plan, spent = study.sql("SELECT sum(age) FROM people", epsilon=1), []
        for rows in (
            ROWS,
            SAME["another value of a column that is not declared"],
            OTHER["another number"],
            ROWS,
        ):
            make(rows)
            plan.release()
            spent.append(study.spent)
    assert spent == [1, 1, 2, 2]
