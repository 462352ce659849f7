"""Very large answers and very large tables: what each part costs beside the plainest way to do the
same.

    make bench ONLY=scale                       10⁸ statistics, 10⁶ cells, 20 M rows; some minutes,
                                                4 GiB of disk
    DISCREET_SCALE=full make bench ONLY=scale   10⁹ statistics, 10⁷ cells, and 3 · 10⁹ draws that
                                                are thrown away

Each peak of memory is that of a process of its own. Spark is measured where it can run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench.measure import fastest, high_water, table
from discreet import Policy, Study
from discreet.ask.expression import Column
from discreet.ask.query import Group
from discreet.calibrate.grid import value_grid
from discreet.draw.addition import noisy
from discreet.draw.vector import fill
from discreet.engines.base import OnGrid, Present, Request, Rows, Total
from discreet.engines.duckdb import DuckDB
from discreet.files import columns
from discreet.files.add_noise import add_noise
from discreet.files.batches import ahead

FULL = os.environ.get("DISCREET_SCALE") == "full"
STATISTICS = 10**9 if FULL else 10**8
CELLS = 3163 if FULL else 1000
"""Keys of each of two columns."""
ROWS, UNITS = 20_000_000, 6_700_000
ROUNDS = 2 if FULL else 3
SCHEMA = pa.schema([pa.field("people", pa.int64(), nullable=False)])

GRID = """
COPY (SELECT (hash(i) % {})::INT AS a, (hash(i + 5) % {})::INT AS b, (hash(i + 7) % 121)::DOUBLE AS age,
             (hash(i * 3 + 1) % 20000000) / 100.0 AS income FROM range({}) rows(i)) TO '{}' (FORMAT parquet)
"""
PLAIN_GRID = """
COPY (SELECT a, b, count(*), sum(least(greatest(income, 0), 200000)), avg(least(greatest(age, 0), 120))
      FROM '{}' GROUP BY a, b) TO '{}' (FORMAT parquet)
"""
PEOPLE = """
COPY (SELECT {} AS who, (hash(i) % 1000)::INT AS place, (hash(i + 3) % 101)::INT AS x FROM range({}) rows(i))
TO '{}' (FORMAT parquet)
"""
EVEN = "i % {}"
"""Three rows a unit."""
UNEVEN = "CASE WHEN i % 34 = 33 THEN (i // 102) % ({0} // 100) ELSE i % {0} END"
"""One unit in a hundred has about twelve."""
PLAIN_UNITS = (
    "SELECT place, count(*), count(x), sum(least(greatest(x, 0), 100)) FROM '{}' GROUP BY place"
)
HASHED_UNITS = "SELECT count(*) FROM (SELECT who, count(*) AS n FROM '{}' GROUP BY who) WHERE n > 4"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(statistics(Path(folder)))
        print(cells(Path(folder)))
        print(units(Path(folder)))
        print(spark(Path(folder)))
    if FULL:
        print(thrown_away(3 * 10**9))


def statistics(folder: Path) -> str:
    """Noise on a file of counts, beside a copy of it by the same reader, threads and writer."""
    source = folder / "counts.parquet"
    with source.open("wb") as sink:
        columns.write_parquet(sink, SCHEMA, counts(STATISTICS))
    names = {
        "copy": "a copy, no noise",
        "noise": "exact noise",
        "charged": "on a ledger, with its SHA-256",
    }
    runs = [
        {name: apart("one_file", name, str(source), str(folder)) for name in names}
        for _ in range(ROUNDS)
    ]
    times, busy = (
        {name: min(run[name][what] for run in runs) for name in names}
        for what in ("seconds", "busy")
    )
    peaks = {name: max(run[name]["peak"] for run in runs) for name in names}
    rows = [
        [
            title,
            f"{times[name] / times['copy']:.2f}",
            f"{busy[name] / busy['copy']:.2f}",
            f"{peaks[name]:.2f} GiB",
        ]
        for name, title in names.items()
    ]
    size = source.stat().st_size / STATISTICS
    source.unlink()
    each = {name: seconds / STATISTICS * 1e9 for name, seconds in busy.items()}
    print(
        f"Nanoseconds of a core: {each['copy']:.1f} to copy a statistic, {each['noise']:.1f} with"
        " noise."
    )
    print(f"{size:.2f} bytes a statistic.\n")
    headings = ["", "time (goal: 1.5)", "time of all cores", "peak of memory (goal: 1.5 GiB)"]
    return table(f"{STATISTICS:,} statistics, Parquet to Parquet", headings, rows)


def counts(total: int):
    """Counts as small areas have them."""
    for start in range(0, total, columns.BATCH):
        size = min(columns.BATCH, total - start)
        yield pa.record_batch(
            [pa.array(np.abs(noisy(np.zeros(size, np.int64), Fraction(500))))], schema=SCHEMA
        )


def one_file(kind: str, source: str, folder: str) -> None:
    target = Path(folder, "out.parquet")
    terms = {"columns": ["people"], "sensitivity": 2, "epsilon": "0.2"}
    if kind == "copy":
        with target.open("xb") as sink:
            columns.write_parquet(
                sink, SCHEMA, ahead(ahead(columns.parquet_batches([Path(source)], ["people"])))
            )
            sink.flush()
            os.fsync(sink.fileno())
    elif kind == "noise":
        add_noise(source, target, **terms)
    else:
        from discreet import Ledger

        with (
            tempfile.TemporaryDirectory() as place,
            Ledger.open(Path(place, "ledger"), new=True) as ledger,
        ):
            ledger.create("census", 1)
            add_noise(source, target, ledger=ledger, study="census", **terms)
    target.unlink()


def cells(folder: Path) -> str:
    """Count, sum and mean of very many cells to a file, beside the plain aggregates in DuckDB."""
    source = folder / "cells.parquet"
    duckdb.connect().execute(GRID.format(CELLS, CELLS, 2 * CELLS**2, source))
    kinds = {"plain": "plain DuckDB, no noise, to Parquet", "ours": "`plan.release(to=…)`"}
    runs = [
        {kind: apart("one_grouping", kind, str(source), str(folder)) for kind in kinds}
        for _ in range(3)
    ]
    source.unlink()
    least = {
        kind: {name: min(run[kind][name] for run in runs) for name in ("seconds", "busy")}
        for kind in kinds
    }
    rows = [
        [
            title,
            f"{least[kind]['seconds'] / least['plain']['seconds']:.2f}",
            f"{least[kind]['busy'] / least['plain']['busy']:.2f}",
            f"{max(run[kind]['peak'] for run in runs):.2f} GiB",
        ]
        for kind, title in kinds.items()
    ]
    print(f"{least['ours']['busy'] / CELLS**2 * 1e6:.2f} µs of a core for a cell.\n")
    headings = ["", "time", "time of all cores", "peak of memory"]
    return table(f"Count, sum and mean of {CELLS**2:,} cells", headings, rows)


def one_grouping(kind: str, source: str, folder: str) -> None:
    target = Path(folder, "out.parquet")
    if kind == "plain":
        duckdb.connect().execute(PLAIN_GRID.format(source, target))
    else:
        keys = {"keys": f"0..{CELLS - 1}"}
        bounds = {"age": {"bounds": (0, 120)}, "income": {"bounds": (0, 200_000)}}
        columns = {"a": keys, "b": keys, **bounds}
        policy = Policy(source=source, table="data", epsilon=1, version="1", columns=columns)
        with (
            tempfile.TemporaryDirectory() as place,
            Study(policy, ledger=Path(place, "ledger")) as study,
        ):
            asked = (
                "SELECT a, b, count(*) AS people, sum(income) AS total, avg(age) AS mean FROM data"
                " GROUP BY a, b"
            )
            study.sql(asked, epsilon=1).release(to=target)
        target.with_suffix(".release.json").unlink()
    target.unlink()


def units(folder: Path) -> str:
    """`max_rows` beside the plain grouped query and one hash aggregation of units."""
    connection = duckdb.connect()
    bounded = OnGrid(Column("x", "number"), value_grid((0, 100), bits=30, whole=True), None)
    measures = (Rows(), Present(bounded), Total(bounded))
    group = Group(name="place", of=Column("place", "number"), keys=tuple(range(1000)))
    rows, source = [], folder / "units.parquet"
    plain, hashed = PLAIN_UNITS.format(source), HASHED_UNITS.format(source)
    for title, who in (("no unit exceeds it", EVEN), ("1 % of units exceed it", UNEVEN)):
        connection.execute(PEOPLE.format(who.format(UNITS), ROWS, source))
        engine = DuckDB(str(source))
        limited = Request(measures, (group,), unit="who", max_rows=4)
        works = {
            "ours": lambda engine=engine, limited=limited: engine.fetch(limited),
            "plain": lambda: connection.sql(plain).to_arrow_table(),
            "hash": lambda: connection.sql(hashed).fetchall(),
        }
        times = fastest(works, rounds=3)
        base = times["plain"] + times["hash"]
        rows.append([title, f"{times['hash'] / times['plain']:.1f}", f"{times['ours'] / base:.2f}"])
        source.unlink()
    title = f"At most 4 rows a unit: {ROWS:,} rows, {UNITS:,} units, 1,000 groups"
    return table(
        title, ["", "hash aggregation of units, in plain queries", "ours beside both"], rows
    )


def spark(folder: Path) -> str:
    """What the noise stage adds to an aggregation on Spark."""
    try:
        found = apart("one_session", "spark", "", str(folder))
    except subprocess.CalledProcessError:
        return "Spark does not run here.\n"
    times = found["told"]
    rows = [
        ["aggregate, write", "1"],
        ["aggregate, noise, write", f"{times['noise'] / times['plain']:.2f} (goal: 1.2)"],
    ]
    return table("Spark, 20 M rows into 2 M groups", ["", "time"], rows)


def one_session(_kind: str, _source: str, folder: str) -> dict[str, float]:
    os.environ.update({"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    source, target = f"{folder}/spark-rows", f"{folder}/spark-out"
    session.range(ROWS).selectExpr("hash(id) % 2000000 AS place", "id % 101 AS x").write.parquet(
        source
    )
    counted = session.read.parquet(source).groupBy("place").agg({"*": "count", "x": "sum"})
    counted = counted.toDF("place", "people", "total")

    def plain() -> None:
        counted.write.parquet(target)
        shutil.rmtree(target)

    def noise() -> None:
        add_noise(
            counted, target, columns=["people", "total"], keep=["place"], sensitivity=102, epsilon=1
        )
        shutil.rmtree(target)

    times = fastest({"plain": plain, "noise": noise}, rounds=4)
    session.stop()
    return times


def thrown_away(total: int) -> str:
    out = np.empty(2**24, np.int64)
    begin = time.perf_counter()
    for _ in range(0, total, out.size):
        fill(out, Fraction(10))
    ours = time.perf_counter() - begin
    rng = np.random.default_rng()
    begin = time.perf_counter()
    rng.laplace(0, 10, out.size)
    numpy = (time.perf_counter() - begin) * total / out.size
    return (
        f"{total:,} draws, thrown away: {ours:.0f} s on all cores; numpy's unsafe ones, one core:"
        f" {numpy:.0f} s.\n"
    )


def apart(*call: str) -> dict:
    """Seconds and the peak of memory of one call in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale", *call],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return json.loads(done.stdout.splitlines()[-1])


def alone(name: str, *arguments: str) -> None:
    begin, busy = time.perf_counter(), time.process_time()
    told = globals()[name](*arguments)
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    peak = high_water() / 2**30
    print(json.dumps({"seconds": seconds, "busy": busy, "peak": peak, "told": told}))


if __name__ == "__main__":
    alone(*sys.argv[1:]) if sys.argv[1:] else main()
