"""What a declared key costs: a study of 10⁴ to 10⁷ of them beside the same GROUP BY in plain
DuckDB, in one run.

    make bench ONLY=keys           5 M rows of Parquet, keys in a file of Parquet
    KEYS=10000000 ROWS=…           another number of keys alone, or of rows

From 2.5 M keys on the answer is a file of Parquet, and so is that of plain DuckDB. Open is the
policy with its file of keys, the ledger and the engine, after a first study has loaded the modules;
plan is that of the first question, and of another one; to_arrow is that of the answer. Times are
the best of several rounds in turn, with the processor's time in brackets; memory is the peak of a
process of its own, each beside one that only imports. The last column is what a further key costs
beyond plain DuckDB: the slope of the line from the size before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from bench.measure import best, high_water, table
from discreet import Policy, Study

SIZES = [int(os.environ["KEYS"])] if "KEYS" in os.environ else [10**4, 10**5, 10**6, 10**7]
ROWS = int(os.environ.get("ROWS", "5000000"))
ROUNDS = 3
QUESTION = "SELECT place, count(*) AS people, sum(age) AS years FROM data GROUP BY place"
PLAIN = (
    "SELECT place, count(*), sum(least(greatest(age, 0), 120)) FROM read_parquet('{}') GROUP BY"
    " place"
)
PEOPLE = """
COPY (SELECT 'place ' || lpad((hash(i) % {})::VARCHAR, 8, '0') AS place, (hash(i + 7) % 121)::DOUBLE AS age
      FROM range({}) rows(i)) TO '{}' (FORMAT parquet)
"""
PLACES = (
    "COPY (SELECT 'place ' || lpad(i::VARCHAR, 8, '0') AS place FROM range({}) keys(i)) TO '{}'"
    " (FORMAT parquet)"
)
MOST_KEPT = 2_500_000
"""Keys of two numbers that a ledger keeps with their intervals."""

HEADINGS = [
    "keys",
    "plain DuckDB",
    "open",
    "first plan",
    "plan",
    "release",
    "beside plain",
    "to_arrow",
]
HEADINGS += ["plain MB", "release MB", "µs a further key"]

Result = TypeVar("Result")


def main() -> None:
    if len(sys.argv) == 4:
        work, folder, keys = sys.argv[1:]
        print(peak(work, Path(folder), int(keys)))
        return
    with tempfile.TemporaryDirectory() as folder:
        one_size(2, 1000, Path(folder) / "first")  # loads every module
        sizes = [one_size(keys, ROWS, Path(folder) / str(keys)) for keys in SIZES]
    beyond = [
        (keys, (times["release"] - times["plain"]))
        for keys, (times, _) in zip(SIZES, sizes, strict=True)
    ]
    slopes = [
        (after - before) / (more - few)
        for (few, before), (more, after) in pairwise([(0, 0.0), *beyond])
    ]
    lines = [
        [*line, f"{slope * 1e6:.2f}" if keys > SIZES[0] else ""]
        for keys, (_, line), slope in zip(SIZES, sizes, slopes, strict=True)
    ]
    print(table(f"{ROWS:,} rows, count and sum", HEADINGS, lines))


def one_size(keys: int, rows: int, folder: Path) -> tuple[dict[str, float], list[str]]:
    """The best times of several rounds, each with a study of its own, and a line of the table."""
    folder.mkdir()
    source, places = folder / "people.parquet", folder / "places.parquet"
    connection = duckdb.connect()
    connection.execute(PEOPLE.format(keys, rows, source))
    connection.execute(PLACES.format(keys, places))
    times: dict[str, float] = {"to_arrow": float("inf")}
    processor: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Result]) -> Result:
        begin, used = time.perf_counter(), time.process_time()
        result = work()
        times[name] = min(times.get(name, float("inf")), time.perf_counter() - begin)
        processor[name] = min(processor.get(name, float("inf")), time.process_time() - used)
        return result

    for round_ in range(ROUNDS):
        timed("plain", lambda: plain(connection, keys, folder))
        study = timed("open", lambda at=round_: opened(source, places, folder / f"{at}.ledger"))
        with study:
            timed("first plan", lambda here=study: here.sql(QUESTION, epsilon=1))
            planned = study.sql(QUESTION, epsilon=2)
            again = min(best(lambda here=study: here.sql(QUESTION, epsilon=2)) for _ in range(5))
            times["plan"] = min(times.get("plan", again), again)
            answer = timed(
                "release",
                lambda here=planned, at=round_: released(here, keys, folder / f"{at}.parquet"),
            )
            if keys <= MOST_KEPT:
                timed("to_arrow", answer.to_arrow)
    cells = {name: f"{seconds * 1e3:,.1f} ms" for name, seconds in times.items()}
    cells |= {
        name: f"{cells[name]} ({processor[name] * 1e3:,.0f})" for name in ("plain", "release")
    }
    ratio = (
        f"{times['release'] / times['plain']:.1f} ({processor['release'] / processor['plain']:.1f})"
    )
    imports, *peaks = (
        in_new_process(work, folder, keys) for work in ("nothing", "plain", "release")
    )
    named = [cells[name] for name in ("plain", "open", "first plan", "plan", "release")]
    memory = [f"{used - imports:,}" for used in peaks]
    return times, [
        f"{keys:,}",
        *named,
        ratio,
        cells["to_arrow"] if keys <= MOST_KEPT else "",
        *memory,
    ]


def plain(connection: duckdb.DuckDBPyConnection, keys: int, folder: Path) -> None:
    """The GROUP BY of plain DuckDB, as an Arrow table or as a file."""
    select = PLAIN.format(folder / "people.parquet")
    if keys > MOST_KEPT:
        connection.execute(f"COPY ({select}) TO '{folder / 'plain'}' (FORMAT parquet)")
    else:
        connection.sql(select).to_arrow_table()


def released(planned: Any, keys: int, target: Path) -> Any:
    return planned.release(to=target) if keys > MOST_KEPT else planned.release()


def in_new_process(work: str, folder: Path, keys: int) -> int:
    """The peak memory of a process that does this, in MB."""
    command = [sys.executable, "-m", "bench.keys", work, str(folder), str(keys)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(work: str, folder: Path, keys: int) -> int:
    if work == "plain":
        plain(duckdb.connect(), keys, folder)
    if work == "release":
        with opened(
            folder / "people.parquet", folder / "places.parquet", folder / "peak.ledger"
        ) as study:
            released(study.sql(QUESTION, epsilon=2), keys, folder / "peak.parquet")
    return high_water() // 2**20


def opened(source: Path, places: Path, ledger: Path) -> Study:
    """A study whose engine is open and whose keys are read and checked."""
    columns = {"place": {"keys": str(places)}, "age": {"bounds": (0, 120)}}
    policy = Policy(
        source=str(source),
        table="data",
        epsilon=100,
        version="1",
        neighbors="add-remove",
        columns=columns,
    )
    study = Study(policy, ledger=ledger)
    study.schema  # noqa: B018 - reads the types
    return study


if __name__ == "__main__":
    main()
