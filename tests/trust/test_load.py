"""TRUST 56: the small load of `python -m bench load` spends every allotment to the last unit, and
nothing fails.

Times are not judged here: the machine of a test run is busy with other tests.
"""

import asyncio
import importlib
import os
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from serving import folder_in_memory, running, served

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def load():
    """`bench.load`, which is no part of the package."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("bench.load")
    finally:
        sys.path.remove(str(ROOT))


def test_mixed_clients_spend_their_allotments_exactly_and_nothing_fails(load, monkeypatch):
    monkeypatch.setattr(load, "REST", 0.02)
    shares = {"ann": Fraction(12, 1000), "bob": Fraction(5, 1000)}
    with folder_in_memory() as folder, served(folder) as site, running(site) as url:
        for name, share in shares.items():
            site.study.ledger.allot(name, share, study="people")
        tokens = {name: site.tokens[name] for name in shares}
        made = asyncio.run(load.run(url, tokens, os.getpid(), seconds=1.5, clients=4))
        assert made.faults(shares, site.study.spent) == []
        assert site.study.spent == sum(shares.values())
    assert made.plans
    assert made.slower > 0
    assert {path for path, status in made.statuses if status == 200} >= {
        "/plan",
        "/release",
        "/report/plan",
    }


def test_what_does_not_hold_is_said(load):
    made = load.Run(
        Counter({("/plan", 200): 3, ("/plan", 503): 1}), Counter(ann=3), held=[100, 100, 130]
    )
    faults = made.faults({"ann": 3 * load.COST, "bob": load.COST}, 2 * load.COST)
    assert [fault.split(":")[0].split(" ")[0] for fault in faults] == [
        "answers",
        "not",
        "ε",
        "memory",
    ]
    whole = load.Run(
        Counter({("/plan", 200): 3, ("/release", 403): 1}), Counter(ann=3), held=[100, 100, 101]
    )
    assert whole.faults({"ann": 3 * load.COST}, 3 * load.COST) == []
