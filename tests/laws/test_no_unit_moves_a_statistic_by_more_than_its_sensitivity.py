"""Every line of `sensitivity` as a law: all small data sets and random larger ones try to exceed
it, and reach it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.calibrate import sensitivity

Data = tuple[Fraction, ...]
Statistic = Callable[[Data, Fraction, Fraction], list[Fraction]]
"""All values that the statistic may have: several where there are too few units and any value would
do.
"""

RELATIONS = ("change-one", "add-remove")
GRIDS = [(0, 1, 2), (-3, -1, 1), (-1, 0, 4), (2, 3, 5)]
DIGITS = 10**60
"""The roots below are cut after 60 digits; everything else is exact."""
ABOVE = Fraction(1, 10**17)
"""How far the sensitivity of a std may lie above the root: 2⁻⁶² of a few."""


def mean(data: Data, low: Fraction, high: Fraction) -> list[Fraction]:
    return [sum(data, Fraction(0)) / len(data)] if data else [low, high]


def variance_of(sample: bool) -> Statistic:
    def variance(data: Data, low: Fraction, high: Fraction) -> list[Fraction]:
        if len(data) < 1 + sample:
            return [Fraction(0), (high - low) ** 2 / (2 if sample else 4)]
        (middle,) = mean(data, low, high)
        return [sum(((x - middle) ** 2 for x in data), Fraction(0)) / (len(data) - sample)]

    return variance


def std_of(sample: bool) -> Statistic:
    variance = variance_of(sample)

    def std(data: Data, low: Fraction, high: Fraction) -> list[Fraction]:
        return [
            Fraction(math.isqrt(math.floor(v * DIGITS**2)), DIGITS)
            for v in variance(data, low, high)
        ]

    return std


def median(data: Data, low: Fraction, high: Fraction) -> list[Fraction]:
    if not data:
        return [low, high]
    ordered = sorted(data)
    return [(ordered[(len(data) - 1) // 2] + ordered[len(data) // 2]) / 2]


def quantile_of(q: Fraction) -> Statistic:
    def quantile(data: Data, low: Fraction, high: Fraction) -> list[Fraction]:
        return [sorted(data)[max(1, math.ceil(q * len(data))) - 1]] if data else [low, high]

    return quantile


def total(data: Data, _low: Fraction, _high: Fraction) -> list[Fraction]:
    return [sum(data, Fraction(0))]


def without_n(delta: Callable[..., Fraction]) -> Callable[..., Fraction]:
    return lambda **given: delta(**{key: value for key, value in given.items() if key != "n"})


QUARTILES = [Fraction(k, 4) for k in range(5)]
BY_N: dict[str, tuple[Statistic, Callable[..., Fraction]]] = {
    "mean": (mean, sensitivity.mean),
    "variance": (variance_of(False), sensitivity.variance),
    "sample variance": (
        variance_of(True),
        lambda **given: sensitivity.variance(sample=True, **given),
    ),
    "std": (std_of(False), sensitivity.std),
    "sample std": (std_of(True), lambda **given: sensitivity.std(sample=True, **given)),
    "median": (median, sensitivity.median),
    "sum": (total, without_n(sensitivity.sum)),
    "min": (quantile_of(Fraction(0)), without_n(sensitivity.min)),
    "max": (quantile_of(Fraction(1)), without_n(sensitivity.max)),
    **{
        f"quantile {q}": (quantile_of(q), without_n(partial(sensitivity.quantile, q)))
        for q in QUARTILES
    },
}


def pairs(grid: Data, units: int, relation: str) -> Iterator[tuple[Data, Data]]:
    """All neighbours of which the larger has this many units; the order of the units does not
    matter.
    """
    for others in itertools.combinations_with_replacement(grid, units - 1):
        if relation == "add-remove":
            yield from ((others, (*others, x)) for x in grid)
        else:
            yield from (((*others, x), (*others, y)) for x in grid for y in grid)


def distance(f: Statistic, one: Data, other: Data, low: Fraction, high: Fraction) -> Fraction:
    return max(abs(a - b) for a in f(one, low, high) for b in f(other, low, high))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", BY_N)
def test_the_largest_move_of_all_small_data_sets_is_the_sensitivity(
    name: str, relation: str
) -> None:
    f, delta = BY_N[name]
    for values in GRIDS:
        grid = tuple(Fraction(value) for value in values)
        low, high = grid[0], grid[-1]
        moved = {
            units: max(
                distance(f, one, other, low, high) for one, other in pairs(grid, units, relation)
            )
            for units in range(1, 6)
        }
        for n in range(2 if "sample" in name and relation == "change-one" else 1, 6):
            # with add-remove n is a floor: every larger data set counts too
            worst = moved[n] if relation == "change-one" else max(moved[m] for m in range(n, 6))
            claimed = delta(n=n, bounds=(low, high), neighbors=relation)
            if "std" in name:
                assert claimed - ABOVE <= worst <= claimed + Fraction(1, DIGITS), (values, n)
            else:
                assert worst == claimed, (values, n)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", BY_N)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_random_neighbours_stay_within_the_sensitivity(
    name: str, relation: str, data: st.DataObject
) -> None:
    f, delta = BY_N[name]
    low = data.draw(st.fractions(-100, 100, max_denominator=50))
    width = data.draw(st.fractions(1, 100, max_denominator=50))
    high = low + width
    # half of the values at the bounds, where the worst cases are
    value = st.sampled_from([low, high]) | st.integers(0, 1000).map(
        lambda part: low + width * Fraction(part, 1000)
    )
    others = tuple(data.draw(st.lists(value, min_size=1, max_size=12)))
    one = (*others, data.draw(value))
    other = others if relation == "add-remove" else (*others, data.draw(value))
    n = len(one) if relation == "change-one" else data.draw(st.integers(1, len(one)))
    claimed = delta(n=n, bounds=(low, high), neighbors=relation)
    assert distance(f, one, other, low, high) <= claimed + Fraction(1, DIGITS)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bins", [1, 2, 3])
def test_counts_proportions_and_histograms_move_by_exactly_their_sensitivity(
    bins: int, relation: str
) -> None:
    outside = bins  # a unit may be in no bin

    def counts(data: tuple[int, ...]) -> list[int]:
        return [data.count(label) for label in range(bins)]

    for units in range(1, 5):
        moves = []
        for one, other in pairs(range(outside + 1), units, relation):  # type: ignore[arg-type]
            moves.append(sum(abs(a - b) for a, b in zip(counts(one), counts(other), strict=True)))  # type: ignore[arg-type]
        assert max(moves) == sensitivity.histogram(bins=bins, neighbors=relation)
        if bins == 1:
            assert max(moves) == sensitivity.count(neighbors=relation)
            assert sensitivity.proportion(n=units, neighbors=relation) == sensitivity.mean(
                n=units, bounds=(0, 1), neighbors=relation
            )


@pytest.mark.parametrize("n", range(1, 8))
def test_a_median_moves_by_the_range_for_odd_n_and_by_half_of_it_for_even_n(n: int) -> None:
    """The largest move among all data sets of four values."""
    low, high = Fraction(-3), Fraction(4)
    grid = (low, Fraction(1, 2), Fraction(2), high)
    moved = max(
        distance(median, one, other, low, high) for one, other in pairs(grid, n, "change-one")
    )
    assert (
        moved
        == ((high - low) if n % 2 else (high - low) / 2)
        == sensitivity.median(n=n, bounds=(low, high))
    )


def test_the_values_of_the_texts() -> None:
    assert sensitivity.proportion(n=1000) == Fraction(1, 1000)
    assert sensitivity.mean(n=50, bounds=(0, 7)) == Fraction(7, 50)
    assert sensitivity.max(bounds=(0, 1)) == 1
    assert sensitivity.median(n=101, bounds=(0, 1)) == 1
    assert sensitivity.histogram(bins=3143) == 2
    assert float(sensitivity.std(n=10**6, bounds=(0, 1))) == pytest.approx(
        1 / math.sqrt(10**6), rel=1e-6
    )
