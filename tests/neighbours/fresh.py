"""`make neighbours SECONDS=60` searches with a fresh seed; `make neighbours CASE=duckdb/1/2/3`
shows one case again.
"""

from __future__ import annotations

import itertools
import os
import time
from random import Random, SystemRandom

import pytest

from neighbours import arrays
from neighbours.search import (
    Case,
    Tally,
    duckdb_engine,
    pandas_engine,
    parquet_engine,
    polars_engine,
    postgresql_engine,
    ran,
    searched,
    spark_engine,
    text_engine,
    wide_engine,
)

SECONDS = float(os.environ.get("NEIGHBOURS_SECONDS") or 60)
SEED = int(os.environ.get("NEIGHBOURS_SEED") or SystemRandom().randrange(10**9))
CASE = os.environ.get("NEIGHBOURS_CASE", "")
SHARES = {
    "arrays": 0.1,
    "duckdb": 0.2,
    "wide": 0.1,
    "pandas": 0.1,
    "polars": 0.05,
    "parquet": 0.05,
    "postgresql": 0.15,
}
SHARES |= {"csv": 0.05, "jsonl": 0.05, "spark": 0.15}


def engine(name: str, request):
    known = {
        "duckdb": duckdb_engine,
        "wide": wide_engine,
        "pandas": pandas_engine,
        "polars": polars_engine,
    }
    if name in known:
        return known[name]()
    if name in ("csv", "jsonl"):
        return text_engine(request.getfixturevalue("tmp_path"), f".{name}")
    given = {"parquet": "tmp_path", "postgresql": "postgres", "spark": "spark"}[name]
    makers = {"parquet": parquet_engine, "postgresql": postgresql_engine, "spark": spark_engine}
    return makers[name](request.getfixturevalue(given))


@pytest.mark.parametrize("name", SHARES)
def test_fresh(name, request):
    tally = again(name, request) if CASE else search(name, request)
    print(f"\n{name}, seed {SEED}: {tally}")
    assert not tally.violations, "\n\n".join(tally.violations)


def search(name: str, request) -> Tally:
    if os.environ.get("NEIGHBOURS_ENGINES", name).find(name) < 0:
        pytest.skip("not asked for")
    if name == "arrays":
        end = time.monotonic() + SECONDS * SHARES[name]
        return arrays.searched(SEED, itertools.count(), lambda: time.monotonic() > end)
    where = engine(name, request)
    return searched(where, SEED, itertools.count(), time.monotonic() + SECONDS * SHARES[name])


def again(name: str, request) -> Tally:
    wanted, seed, *numbers = CASE.split("/")
    if wanted != name:
        pytest.skip("another engine")
    if name == "arrays":
        print(arrays.call_of(Random(CASE), arrays._containers()))
        return arrays.searched(int(seed), [int(numbers[0])])
    case, tally = Case(engine(name, request), int(seed), *map(int, numbers)), Tally()
    pair = case.pair()
    print(pair.terms, *pair.first, "and", *pair.second, case.asked(pair), sep="\n")
    ran(case, tally, {})
    return tally
