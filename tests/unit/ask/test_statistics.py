"""The registry: what one row becomes, and that nothing has names of its own beside it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.ask.statistics import STATISTICS

TESTS = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def toy() -> dict[str, Any]:
    """What becomes of a statistic that is a row and nothing else."""
    done = subprocess.run(
        [sys.executable, TESTS / "toy_statistic.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_row_can_be_asked_for_in_sql_in_python_and_of_an_array(toy: dict[str, Any]) -> None:
    low, high = toy["its interval"]
    assert low <= toy["in SQL"] <= high
    assert toy["in SQL"] == pytest.approx(2 * toy["its std"], rel=5e-2)
    assert toy["in Python the same"]
    assert "two_sigma(" in toy["text"]
    assert "SAMPLE" in toy["a sample"]
    assert toy["as an array"] == pytest.approx(2 * np.std(np.arange(120) % 7), rel=5e-2)


def test_a_row_is_planned_with_its_own_error(toy: dict[str, Any]) -> None:
    twice, once = (float(re.sub(r"^± ([0-9.e-]+) .*", r"\1", text)) for text in toy["planned"])
    assert twice == pytest.approx(2 * once, rel=5e-2)


def test_a_row_is_offered_everywhere(toy: dict[str, Any]) -> None:
    assert "min, max or two_sigma." in toy["refusal"]
    assert toy["openapi"][-1] == "TwoSigma"
    assert (
        '{"name": "twice the standard deviation", "of": "number", "sql": "two_sigma({column})"}'
        in toy["menu"]
    )
    assert "two_sigma of integers" in toy["reported"]
    assert any(name.startswith("two_sigma(pay)") for name in toy["reported"])
    assert "TWO_SIGMA" in toy["reference"]


def test_a_row_is_proved_and_half_of_its_noise_is_noticed(toy: dict[str, Any]) -> None:
    assert toy["proved"] == [True, True]
    assert toy["proved with half of its noise"] == [False, False]


def test_each_row_is_public() -> None:
    for row in STATISTICS.values():
        assert not row.examples or row.name in dir(discreet), row.name
        assert (
            row.question is None or row.name == "units" or row.question.__name__ in dir(discreet)
        ), row.name
        assert row.question is None or row.question.__doc__, row.name
    names = [name for row in STATISTICS.values() for name in (*row.sql, *row.sample)]
    assert len(names) == len(set(names))
