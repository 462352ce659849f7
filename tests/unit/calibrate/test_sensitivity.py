"""Sensitivities one by one: types, refusals, and the forms that the law test does not reach."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.calibrate import sensitivity
from discreet.errors import InvalidParameter
from discreet.parameters import exact_sensitivity


def test_every_sensitivity_is_an_exact_fraction() -> None:
    bounds = (0, 0.1)
    values = [
        sensitivity.count(),
        sensitivity.sum(bounds=bounds),
        sensitivity.mean(n=3, bounds=bounds),
        sensitivity.proportion(n=3),
        sensitivity.variance(n=3, bounds=bounds),
        sensitivity.std(n=3, bounds=bounds),
        sensitivity.min(bounds=bounds),
        sensitivity.max(bounds=bounds),
        sensitivity.median(n=3, bounds=bounds),
        sensitivity.quantile(0.25, bounds=bounds),
        sensitivity.histogram(bins=3),
    ]
    assert all(type(value) is Fraction for value in values)
    assert sensitivity.mean(n=3, bounds=bounds) == Fraction(1, 30)


def test_a_sum_far_from_zero_costs_more_when_units_may_vanish() -> None:
    assert sensitivity.sum(bounds=(100, 101)) == 1
    assert sensitivity.sum(bounds=(100, 101), neighbors="add-remove") == 101
    assert sensitivity.sum(bounds=(-7, 3), neighbors="add-remove") == 7


@given(st.integers(2, 10**18), st.booleans(), st.sampled_from(["change-one", "add-remove"]))
def test_a_std_is_the_root_rounded_up_by_almost_nothing(
    n: int, sample: bool, relation: str
) -> None:
    delta = sensitivity.std(n=n, bounds=(-1, 2), sample=sample, neighbors=relation)
    square = Fraction(9, n) if sample else Fraction(9 * (n - 1), n**2)
    assert square <= delta**2 <= square * (1 + Fraction(1, 2**61))
    assert exact_sensitivity(delta) == delta  # short enough for the mechanism


def test_a_rational_root_stays_exact() -> None:
    assert sensitivity.std(n=101, bounds=(0, 1)) == Fraction(10, 101)
    assert sensitivity.std(n=100, bounds=(0, 3), sample=True) == Fraction(3, 10)


@given(st.integers(2, 10**6))
def test_a_public_floor_of_n_covers_every_larger_n(n: int) -> None:
    for statistic in (sensitivity.mean, sensitivity.variance, sensitivity.std):
        here, further = (statistic(n=m, bounds=(0, 1), neighbors="add-remove") for m in (n, n + 1))
        assert further <= here


def test_one_unit_has_no_spread() -> None:
    assert sensitivity.variance(n=1, bounds=(0, 1)) == sensitivity.std(n=1, bounds=(0, 1)) == 0
    assert sensitivity.variance(n=1, bounds=(0, 1), neighbors="add-remove") == Fraction(1, 4)
    for statistic in (sensitivity.variance, sensitivity.std):
        with pytest.raises(InvalidParameter, match="needs n of at least 2, got 1"):
            statistic(n=1, bounds=(0, 1), sample=True)


@pytest.mark.parametrize("relation", ["change-one", "add-remove"])
def test_a_median_without_n_is_safe_for_every_n(relation: str) -> None:
    without = sensitivity.median(bounds=(0, 1), neighbors=relation)
    assert without == max(
        sensitivity.median(n=n, bounds=(0, 1), neighbors=relation) for n in range(1, 10)
    )


@pytest.mark.parametrize("name", ["mean", "proportion", "variance", "std"])
def test_a_private_n_is_refused_with_what_to_do(name: str) -> None:
    given = {} if name == "proportion" else {"bounds": (0, 1)}
    with pytest.raises(InvalidParameter, match=f"add-remove needs n.*use discreet.{name}"):
        getattr(sensitivity, name)(n=None, neighbors="add-remove", **given)
    with pytest.raises(InvalidParameter, match="n must be a whole number"):
        getattr(sensitivity, name)(n=None, **given)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "variance", "std", "min", "max", "median", "quantile"]
)
def test_bad_bounds_and_neighbors_are_refused_everywhere(name: str) -> None:
    statistic = getattr(sensitivity, name)
    first = (0.5,) if name == "quantile" else ()
    n = {"n": 10} if name in ("mean", "variance", "std", "median") else {}
    for bounds in [(1, 0), (0, math.nan), (0, 1.7e308), None, (3, 3)]:
        with pytest.raises(InvalidParameter):
            statistic(*first, bounds=bounds, **n)
    with pytest.raises(InvalidParameter, match="neighbors must be"):
        statistic(*first, bounds=(0, 1), neighbors="swap", **n)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, True, "half"])
def test_a_quantile_lies_between_0_and_1(q: object) -> None:
    with pytest.raises(InvalidParameter, match="q must"):
        sensitivity.quantile(q, bounds=(0, 1))


def test_count_and_histogram_refuse_unknown_neighbors_and_bins() -> None:
    for statistic in (sensitivity.count, sensitivity.histogram):
        with pytest.raises(InvalidParameter, match="neighbors must be"):
            statistic(neighbors="swap")
    with pytest.raises(InvalidParameter, match="bins must be"):
        sensitivity.histogram(bins=0)
