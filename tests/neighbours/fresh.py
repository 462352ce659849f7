"""`make neighbours SECONDS=60`: the search with a fresh seed, or `make neighbours CASE=duckdb/1/2/3`: one case again."""

from __future__ import annotations

import itertools
import os
import time
from random import Random, SystemRandom

import pytest

from neighbours import arrays
from neighbours.search import Case, Tally, duckdb_engine, postgresql_engine, ran, searched, spark_engine

SECONDS = float(os.environ.get("NEIGHBOURS_SECONDS") or 60)
SEED = int(os.environ.get("NEIGHBOURS_SEED") or SystemRandom().randrange(10**9))
CASE = os.environ.get("NEIGHBOURS_CASE", "")
SHARES = {"arrays": 0.1, "duckdb": 0.5, "postgresql": 0.2, "spark": 0.2}


def engine(name: str, request):
    match name:
        case "duckdb":
            return duckdb_engine()
        case "postgresql":
            return postgresql_engine(request.getfixturevalue("postgres"))
    return spark_engine(request.getfixturevalue("spark"))


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
