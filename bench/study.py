"""Count, sum and mean by county through a study, beside the same clamped aggregates in plain DuckDB
and in OpenDP.

    make bench ONLY=study          5 M rows of Parquet; 50 M too where there are 16 GiB of memory
    OPENDP_PYTHON=…/bin/python     an environment with opendp[polars], which needs an older polars
                                   than the tests do

Everything of a release is in its time, but for the first hash of the files: the plan, the spend on
disk, the statement, the noise, the intervals, the record. OpenDP has the add-remove relation, so
all three have it here.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb

from bench.measure import fastest, high_water, table
from discreet import Policy, Study

KEYS = 3143
COLUMNS = {
    "county": {"keys": [f"county {at:04d}" for at in range(KEYS)]},
    "age": {"bounds": (0, 120)},
    "income": {"bounds": (0, 200_000)},
}
QUESTION = (
    "SELECT county, count(*) AS people, sum(income) AS total, avg(age) AS mean FROM people GROUP BY"
    " county"
)
PLAIN = """
SELECT county, count(*), sum(least(greatest(income, 0), 200000)), avg(least(greatest(age, 0), 120))
FROM read_parquet('{}') GROUP BY county
"""
ROWS = """
COPY (SELECT 'county ' || lpad((hash(i) % 3143)::VARCHAR, 4, '0') AS county, (hash(i + 7) % 121)::DOUBLE AS age,
             (hash(i * 3 + 1) % 20000000) / 100.0 AS income FROM range({}) rows(i)) TO '{}' (FORMAT parquet)
"""
OPENDP = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
path, rows, keys = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
counties = pl.LazyFrame({"county": [f"county {at:04d}" for at in range(keys)]})
best = None
for _ in range(3):
    begin = time.perf_counter()
    context = dp.Context.compositor(
        data=pl.scan_parquet(path), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1, margins=[dp.polars.Margin(max_length=rows, max_groups=keys)],
    )
    income = pl.col("income").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 200000.0))
    age = pl.col("age").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 120.0))
    query = context.query().group_by("county").agg(dp.len(), income, age).with_keys(counties)
    scales = query.summarize()["scale"].to_list()
    query.release().collect()
    spent = time.perf_counter() - begin
    best = spent if best is None else min(best, spent)
print(json.dumps({"seconds": best, "scales": scales}))
"""
ENOUGH = 16 * 2**30


def main() -> None:
    sizes = (
        [5_000_000, 50_000_000]
        if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >= ENOUGH
        else [5_000_000]
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            source = Path(folder, "people.parquet")
            duckdb.connect().execute(ROWS.format(rows, source))
            one_size(source, rows, Path(folder), peer=rows == sizes[0])
            source.unlink()


def one_size(source: Path, rows: int, folder: Path, *, peer: bool) -> None:
    """One table: the study, plain DuckDB and, if wanted, OpenDP."""
    policy = Policy(source=str(source), epsilon=1000, neighbors="add-remove", columns=COLUMNS)
    # each of them is a new question
    epsilons = (1 + Fraction(at, 10**6) for at in itertools.count())
    connection = duckdb.connect()
    with Study(policy, ledger=folder / f"{rows}.ledger") as study:
        study.version  # noqa: B018 - the files are hashed once

        def release() -> object:
            return study.sql(QUESTION, epsilon=next(epsilons)).release()

        def plain() -> object:
            return connection.sql(PLAIN.format(source)).to_arrow_table()

        times = fastest({"study": release, "DuckDB": plain}, rounds=7)
        plan = study.sql(QUESTION, epsilon=1)
        found = {plan.titles()[line.name]: float(line.scale) for line in plan.lines}
        scales = [f"{found[name]:,.0f}" for name in ("people", "total", "mean")]
        planning = planned(lambda: study.sql(QUESTION, epsilon=1))
    lines = [
        [
            "a study",
            f"{times['study'] * 1e3:,.0f} ms",
            f"{times['study'] / times['DuckDB']:.2f}",
            " · ".join(scales),
        ],
        ["plain DuckDB, no noise", f"{times['DuckDB'] * 1e3:,.0f} ms", "1", ""],
    ]
    if peer:
        lines.append(opendp(source, rows, times["DuckDB"]))
    headings = [
        "",
        "count, sum, mean by county",
        "beside plain",
        "noise scale: people · total · age",
    ]
    print(table(f"{rows:,} rows, {KEYS:,} counties, ε = 1", headings, lines))
    more = peak("study", source) - peak("plain", source)
    print(
        f"Planning alone: {planning * 1e3:.1f} ms. Peak of memory: plain DuckDB's {more:+.0f}"
        " MiB.\n"
    )


def peak(kind: str, source: Path) -> float:
    """The peak of memory, in MiB, of a process that does it once."""
    call = [sys.executable, "-m", "bench.study", kind, str(source)]
    return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def once(kind: str, source: str) -> None:
    if kind == "plain":
        duckdb.connect().sql(PLAIN.format(source)).to_arrow_table()
    else:
        policy = Policy(
            source=source, epsilon=1, version="1", neighbors="add-remove", columns=COLUMNS
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            Study(policy, ledger=Path(folder, "ledger")) as study,
        ):
            study.sql(QUESTION, epsilon=1).release()
    print(high_water() / 2**20)


def opendp(source: Path, rows: int, plain: float) -> list[str]:
    """The line of OpenDP, from a process of its own."""
    python = os.environ.get("OPENDP_PYTHON", sys.executable)
    done = subprocess.run(
        [python, "-c", OPENDP, str(source), str(rows), str(KEYS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return ["OpenDP", "does not run here: set OPENDP_PYTHON", "", ""]
    found = json.loads(done.stdout.splitlines()[-1])
    scales = " · ".join(
        f"{scale:,.0f}" for scale in (found["scales"][0], found["scales"][1], found["scales"][2])
    )
    return [
        "OpenDP, polars",
        f"{found['seconds'] * 1e3:,.0f} ms",
        f"{found['seconds'] / plain:.1f}",
        scales,
    ]


def planned(work: Callable[[], object]) -> float:
    """The median time of a plan."""
    times = []
    for _ in range(21):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


if __name__ == "__main__":
    once(*sys.argv[1:]) if sys.argv[1:] else main()
