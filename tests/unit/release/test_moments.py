"""Estimates from joint sums: without noise they are the statistics, and intervals hold them."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.calibrate.grid import value_grid
from discreet.release.mechanism import NoisySum
from discreet.release.moments import (
    Bernstein,
    Joint,
    Lone,
    Pair,
    bernstein_scales,
    bernstein_totals,
    joint_scales,
    joint_totals,
    pair_scales,
    pair_totals,
)
from discreet.release.spread import radius

GRID = value_grid((Fraction(-2), Fraction(6)), bits=30, whole=True)
VALUES = [-2, 0, 1, 1, 5, 6, 6]
A = [value + 2 for value in VALUES]
N, TOTAL, SQUARED = len(A), sum(A), sum(a * a for a in A)
LEVEL = Fraction(19, 20)


def without_noise(totals: list[int], scales: list[Fraction]) -> list[NoisySum]:
    return [NoisySum(value=total, step=1, scale=scale) for total, scale in zip(totals, scales, strict=True)]


def pair(epsilon: Fraction = Fraction(1), moved: tuple[int, int] = (0, 0)) -> Pair:
    totals = [total + more for total, more in zip(pair_totals(N, TOTAL, GRID.width), moved, strict=True)]
    above, below = without_noise(totals, pair_scales(GRID.width, epsilon))
    return Pair(grid=GRID, above=above, below=below)


def joint(epsilon: Fraction = Fraction(1)) -> Joint:
    total, mixed = without_noise(joint_totals(TOTAL, SQUARED, GRID.width), joint_scales(GRID.width, epsilon))
    return Joint(grid=GRID, n=N, total=total, mixed=mixed)


def bernstein(epsilon: Fraction = Fraction(1), totals: list[int] | None = None) -> Bernstein:
    found = bernstein_totals(N, TOTAL, SQUARED, GRID.width) if totals is None else totals
    first, second, third = without_noise(found, bernstein_scales(GRID.width, epsilon))
    return Bernstein(grid=GRID, sums=(first, second, third))


def test_without_noise_the_estimates_are_the_statistics():
    assert pair().mean() == pytest.approx(np.mean(VALUES))
    assert pair().count() == N
    assert joint().lone().mean() == pytest.approx(np.mean(VALUES))
    assert joint().variance() == pytest.approx(np.var(VALUES))
    assert bernstein().mean() == pytest.approx(np.mean(VALUES))
    assert bernstein().variance() == pytest.approx(np.var(VALUES))
    assert bernstein().count() == N


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(1000)])
def test_intervals_hold_the_estimate_and_shrink_with_the_noise(epsilon):
    wide, narrow = (
        [design(at).mean_interval(LEVEL) for design in (pair, bernstein, lambda at: joint(at).lone())]
        + [design(at).variance_interval(LEVEL) for design in (joint, bernstein)]
        + [design(at).count_interval(LEVEL) for design in (pair, bernstein)]
        for at in (epsilon, 10 * epsilon)
    )
    truths = [np.mean(VALUES)] * 3 + [np.var(VALUES)] * 2 + [N] * 2
    for (low, high), (lower, higher), truth in zip(wide, narrow, truths, strict=True):
        assert low <= lower <= truth + 1e-9
        assert truth - 1e-9 <= higher <= high


def test_intervals_stay_within_what_is_possible():
    for design in (pair(Fraction(1, 100)), bernstein(Fraction(1, 100)), joint(Fraction(1, 100)).lone()):
        low, high = design.mean_interval(LEVEL)
        assert -2 <= low <= high <= 6
    for found in (joint(Fraction(1, 100)), bernstein(Fraction(1, 100))):
        low, high = found.variance_interval(LEVEL)
        assert 0 <= low <= high <= 16


def test_where_the_noise_has_swallowed_everybody_the_mean_is_the_middle():
    swallowed = pair(moved=(-1000, -1000))
    assert swallowed.mean() == 2
    assert swallowed.count() < 0
    assert bernstein(totals=[-5, -5, -5]).mean() == 2
    assert bernstein(totals=[-5, -5, -5]).variance() == 0
    low, high = swallowed.mean_interval(LEVEL)
    assert -2 <= low <= high <= 6


def test_estimates_are_held_within_their_bounds():
    assert pair(moved=(10**4, -30)).mean() == 6
    assert pair(moved=(-1000, 10**4)).mean() == -2
    far = Lone(grid=GRID, n=3, total=NoisySum(value=10**6, step=1, scale=Fraction(1)))
    assert far.mean() == 6
    assert far.mean_interval(LEVEL) == (6, 6)
    mixed = NoisySum(value=10**6, step=1, scale=Fraction(1))
    assert Joint(grid=GRID, n=3, total=far.total, mixed=mixed).variance() == 0
    mixed = NoisySum(value=-(10**6), step=1, scale=Fraction(1))
    assert Joint(grid=GRID, n=3, total=far.total, mixed=mixed).variance() == 16


def test_the_interval_of_the_joint_variance_is_the_image_of_the_box():
    found = joint()
    low, high = found.variance_interval(LEVEL)
    each, width = Fraction(39, 40), GRID.width
    reach, other = radius(found.total, each), radius(found.mixed, each)
    means = np.clip(np.linspace(TOTAL - reach, TOTAL + reach, 10_001) / N, 0, width)
    image = means * (width - means)
    mixed = found.mixed.value
    assert low == pytest.approx(max(0, image.min() - (mixed + other) / N), abs=1e-3)
    assert high == pytest.approx(min(16, image.max() - (mixed - other) / N), abs=1e-3)


def test_half_a_step_is_added_where_values_are_rounded():
    rounded = value_grid((Fraction(0), Fraction(1)), bits=3)
    one = NoisySum(value=4, step=1, scale=Fraction(1, 1000))
    assert Lone(grid=rounded, n=1, total=one).mean_interval(LEVEL) == (0.5 - 1 / 16, 0.5 + 1 / 16)
