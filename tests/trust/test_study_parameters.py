"""Trust 9: no bad parameter of a study is worked with; each is refused, with nothing read and
nothing spent.
"""

import math
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from discreet import DiscreetError, InvalidParameter, Policy, Study
from discreet.engines.duckdb import DuckDB
from scripted import Odd
from studies import Paper, policy_of, select, study_of

ROWS = [{"who": "a", "place": "north", "age": 3, "pay": 1.0, "well": True}] * 5

NO_NUMBERS = [
    math.nan,
    math.inf,
    -math.inf,
    0,
    -1,
    -0.0,
    True,
    False,
    np.True_,
    "0.1x",
    "",
    " ",
    "1e400",
    "9" * 5000,
    "1/0",
    "nan",
    "١",
    b"1",
    [1],
    {"epsilon": 1},
    Odd(),
    1j,
    Decimal("NaN"),
    Fraction(0),
]
BAD_EPSILONS = [*NO_NUMBERS, 5e-324, 1e-10, 10**6 + 1, 1e400, Fraction(1, 10**10), 10**5000]
BAD_CONFIDENCES = [*NO_NUMBERS, 1, 1.0, "1", 2]
BAD_SIZES = [0, -1, 1.5, True, "10", math.nan, 10**19, [1]]


def shown(value) -> str:
    """A name for a parameter, also for an integer that Python does not write."""
    return "huge" if isinstance(value, int) and value > 10**100 else repr(value)[:60]


@pytest.fixture
def here(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as study:
        yield study


@pytest.fixture(autouse=True)
def _nothing_is_read():
    with (
        mock.patch.object(DuckDB, "fetch", side_effect=AssertionError("a row was read")),
        mock.patch.object(DuckDB, "units", side_effect=AssertionError("a row was read")),
    ):
        yield


def refused(here, tmp_path, **terms):
    files = sorted(tmp_path.iterdir())
    before = [file.read_bytes() for file in files]
    with pytest.raises(InvalidParameter) as error:
        here.sql(select("place, count(*), avg(age)", "GROUP BY place"), **terms).release()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    assert [file.read_bytes() for file in files] == before
    assert here.spent == 0


@pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=shown)
def test_a_bad_epsilon_is_refused(here, tmp_path, epsilon):
    refused(here, tmp_path, epsilon=epsilon)


@pytest.mark.parametrize("within", NO_NUMBERS, ids=shown)
def test_a_bad_accuracy_is_refused(here, tmp_path, within):
    if within == "1e400":  # so loose that the least ε will do
        assert here.sql(select("count(*)", "WHERE well"), within=within).epsilon == Fraction(
            1, 10**9
        )
    else:
        refused(here, tmp_path, within=within, size=100)


@pytest.mark.parametrize("confidence", BAD_CONFIDENCES, ids=shown)
def test_a_bad_confidence_is_refused(here, tmp_path, confidence):
    refused(here, tmp_path, epsilon=1, confidence=confidence)


@pytest.mark.parametrize("size", BAD_SIZES, ids=shown)
def test_a_bad_size_is_refused(here, tmp_path, size):
    refused(here, tmp_path, epsilon=1, size=size)


@pytest.mark.parametrize(
    "weights",
    [
        {"place": 1},
        {"nobody": 1},
        {1: 1},
        [("count(*)", 1)],
        "count(*)",
        3,
        *({"count(*)": bad} for bad in NO_NUMBERS),
    ],
    ids=shown,
)
def test_bad_weights_are_refused(here, tmp_path, weights):
    refused(here, tmp_path, epsilon=1, weights=weights)


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"epsilon": 1, "within": 1},
        {"epsilon": 1, "simultaneous": "yes"},
        {"epsilon": 1, "simultaneous": 1},
        {"within": 1},
        {"within": {}},
        {"within": {"nothing": 1}},
    ],
    ids=str,
)
def test_terms_that_contradict_or_miss_something_are_refused(here, tmp_path, terms):
    refused(here, tmp_path, **terms)


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ("quantile(age, 0.1234567)", {"epsilon": 1}),
        ("max(age)", {"epsilon": "1e-9"}),
        ("median(age)", {"epsilon": "1e-9"}),
        ("median(age)", {"within": 1}),
    ],
)
def test_ranks_that_no_integer_could_count_are_refused(asked, terms):
    study = study_of(ROWS, Paper(), unit="who", max_rows=10**6, version="1")
    with pytest.raises(InvalidParameter):
        study.sql(select(asked), **terms)
    assert study.spent == 0


BAD_BOUNDS = [
    None,
    [0],
    [1, 0],
    [0, 0],
    [math.nan, 1],
    [0, math.inf],
    [0, 1.7e308],
    [-1.7e308, 1],
    [0, "1x"],
    [True, 5],
    [0, 1, 2],
    "0, 1",
    [0, 1e-310],
]


@pytest.mark.parametrize("bounds", BAD_BOUNDS, ids=str)
def test_bad_bounds_are_refused_by_the_policy_or_by_the_question(tmp_path, bounds):
    terms = {"epsilon": 1, "columns": {"age": {"bounds": bounds}}}
    with pytest.raises(DiscreetError) as error:
        study_of(ROWS, tmp_path / "study.ledger", **terms).sql(select("avg(age)"), epsilon=1)
    assert "\n" not in str(error.value)
    # no ledger was begun for a policy that is none
    assert not list(tmp_path.iterdir()) or bounds is None


BAD_POLICIES = [
    {"epsilon": 0},
    {"epsilon": math.nan},
    {"epsilon": True},
    {"epsilon": "9" * 5000},
    {"neighbors": "both"},
    {"neighbors": None},
    {"unit": "who"},
    {"unit": ""},
    {"unit": 3},
    {"unit": "who", "max_rows": 0},
    {"unit": "who", "max_rows": True},
    {"unit": "who", "max_rows": 1.5},
    {"unit": "who", "max_rows": 2, "max_groups": 3},
    {"unit": "nobody", "max_rows": 2},
    {"version": ""},
    {"version": 3},
    {"columns": {"age": {"bounds": [0, 10], "missing": 11}}},
    {"columns": {"age": {"bounds": [0, 10], "precision": 11}}},
    {"columns": {"age": {"bounds": [0, 10], "precision": 0}}},
    {"columns": {"place": {"keys": []}}},
    {"columns": {"place": {"keys": ["a", "a"]}}},
    {"columns": {"place": {"other": "north"}}},
    {"columns": {"level": {"keys": ["one", "two"]}}},
    {"columns": {"age": {"size": 3}}},
]


@pytest.mark.parametrize("terms", BAD_POLICIES, ids=shown)
def test_a_bad_policy_is_refused_before_anything_is_asked(tmp_path, terms):
    with pytest.raises(DiscreetError) as error:
        study_of(ROWS, tmp_path / "study.ledger", **terms).sql(select("count(*)"), epsilon=1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("total", ["2", "0.999999999", "1/3"])
def test_a_total_other_than_the_ledgers_is_refused(here, tmp_path, total):
    assert here.ledger  # made by whoever asks for it
    with pytest.raises(InvalidParameter, match="epsilon of the policy must be 1"):
        Study(policy_of(ROWS, epsilon=total), ledger=tmp_path / "study.ledger")


def test_a_total_that_the_ledger_cannot_write_is_rounded_down_and_opens_again(tmp_path):
    policy = policy_of(ROWS, epsilon="1/3", version="1")
    for _ in range(2):
        with Study(policy, ledger=tmp_path / "study.ledger") as here:
            assert here.remaining == Fraction(333333333, 10**9) < Fraction(1, 3)


def test_no_scale_is_ever_nought():
    study = study_of(ROWS, Paper(), columns={"age": {"bounds": [-1, 0]}})
    asked = "count(*), sum(age), avg(age), stddev(age), median(age), min(age), max(age), avg(well)"
    for clauses in ("", "WHERE well", "GROUP BY place"):
        plan = study.sql(select(asked, clauses), epsilon=10**6)
        assert all(line.scale > 0 for line in plan.lines if not line.within.startswith("exact"))


def test_a_policy_is_frozen():
    policy = policy_of(ROWS)
    with pytest.raises(AttributeError):
        policy.epsilon = Fraction(9)
    with pytest.raises(TypeError):
        policy.columns["age"] = None
    assert isinstance(policy, Policy)


def test_control_an_epsilon_that_is_only_warned_about_would_be_seen(here, tmp_path):
    with (
        mock.patch("discreet.release.study.exact_epsilon", return_value=Fraction(1, 10)),
        pytest.raises(AssertionError, match="a row was read"),
    ):
        refused(here, tmp_path, epsilon=math.nan)
    assert here.spent == Fraction(1, 10)
