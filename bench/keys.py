"""What a declared key costs: a study of 10⁴, 10⁵ and 10⁶ of them beside the same GROUP BY in plain DuckDB, in one run.

    make bench ONLY=keys           5 M rows of Parquet, keys in a file of Parquet
    KEYS=10000000 ROWS=…           another number of keys alone, or of rows; from 2.5 M keys on the answer is a file

Open is the policy with its file of keys, the ledger and the engine, after a first study has loaded the modules; plan is
that of the first question, and of another one; to_arrow is that of the answer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import duckdb

from bench.measure import best, table
from discreet import Policy, Study

SIZES = [int(os.environ["KEYS"])] if "KEYS" in os.environ else [10**4, 10**5, 10**6]
ROWS = int(os.environ.get("ROWS", "5000000"))
ROUNDS = 3
QUESTION = "SELECT place, count(*) AS people, sum(age) AS years FROM data GROUP BY place"
PLAIN = "SELECT place, count(*), sum(least(greatest(age, 0), 120)) FROM read_parquet('{}') GROUP BY place"
PEOPLE = """
COPY (SELECT 'place ' || lpad((hash(i) % {})::VARCHAR, 8, '0') AS place, (hash(i + 7) % 121)::DOUBLE AS age
      FROM range({}) rows(i)) TO '{}' (FORMAT parquet)
"""
PLACES = "COPY (SELECT 'place ' || lpad(i::VARCHAR, 8, '0') AS place FROM range({}) keys(i)) TO '{}' (FORMAT parquet)"
MOST_KEPT = 2_500_000
"""Keys of two numbers that a ledger keeps with their intervals."""

Result = TypeVar("Result")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        one_size(2, 1000, Path(folder) / "first")  # loads every module
        lines = [one_size(keys, ROWS, Path(folder) / str(keys)) for keys in SIZES]
    headings = ["keys", "plain DuckDB", "open", "first plan", "plan", "release", "beside plain", "to_arrow"]
    print(table(f"{ROWS:,} rows, count and sum; µs per key in brackets", headings, lines))


def one_size(keys: int, rows: int, folder: Path) -> list[str]:
    """A line of the table: the best of several rounds, each with a study of its own."""
    folder.mkdir()
    source, places = folder / "people.parquet", folder / "places.parquet"
    connection = duckdb.connect()
    connection.execute(PEOPLE.format(keys, rows, source))
    connection.execute(PLACES.format(keys, places))
    times: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Result]) -> Result:
        begin = time.perf_counter()
        result = work()
        times[name] = min(times.get(name, float("inf")), time.perf_counter() - begin)
        return result

    for round_ in range(ROUNDS):
        timed("plain", lambda: connection.sql(PLAIN.format(source)).to_arrow_table())
        study = timed("open", lambda at=round_: opened(source, places, folder / f"{at}.ledger"))
        with study:
            timed("first plan", lambda here=study: here.sql(QUESTION, epsilon=1))
            plan = study.sql(QUESTION, epsilon=2)
            again = min(best(lambda here=study: here.sql(QUESTION, epsilon=2)) for _ in range(5))
            times["plan"] = min(times.get("plan", again), again)
            if keys > MOST_KEPT:
                timed("release", lambda here=plan, to=folder / f"{round_}.parquet": here.release(to=to))
                times["to_arrow"] = float("nan")
            else:
                answer = timed("release", plan.release)
                timed("to_arrow", answer.to_arrow)
    cells = {name: f"{seconds * 1e3:,.1f} ms ({seconds * 1e6 / keys:.2f})" for name, seconds in times.items()}
    ratio = f"{times['release'] / times['plain']:.1f}"
    first = [f"{keys:,}", *(cells[name] for name in ("plain", "open", "first plan", "plan", "release"))]
    return [*first, ratio, cells["to_arrow"]]


def opened(source: Path, places: Path, ledger: Path) -> Study:
    """A study whose engine is open and whose keys are read and checked."""
    columns = {"place": {"keys": str(places)}, "age": {"bounds": (0, 120)}}
    policy = Policy(source=str(source), table="data", epsilon=100, version="1", neighbors="add-remove", columns=columns)
    study = Study(policy, ledger=ledger)
    study.schema  # noqa: B018 - reads the types
    return study


if __name__ == "__main__":
    main()
