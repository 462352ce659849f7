"""The statistics of many groups at once are those of each group alone."""

from fractions import Fraction

import numpy as np
import pytest

import terms
from discreet.calibrate.grid import value_grid
from discreet.release.mechanism import NoisyColumn
from discreet.release.statistics import grouped, moments
from discreet.release.statistics.fieller import edges
from discreet.release.statistics.grouped import Private
from discreet.release.statistics.partition import bernstein, centred_squares, pair
from discreet.release.statistics.partition import centred as centred_pair
from one_group import Group
from studies import Paper, select, study_of

LEVEL = Fraction(19, 20)
GROUPS = 60
ALONE = range(0, GROUPS, 3)
"""Groups that are also computed alone, which takes longer."""


def grid_of(lower, upper, *, whole, bits):
    return value_grid((Fraction(lower), Fraction(upper)), bits=bits, whole=whole)


def noisy(rng, totals, scale, step=1):
    noise = np.rint(rng.laplace(0, float(scale), GROUPS)).astype(object)
    values = [step * round((total + step * int(extra)) / step) for total, extra in zip(totals, noise, strict=True)]
    return NoisyColumn(values=values, step=step, scale=scale)


def sizes(rng):
    """Groups of 0 to 100,000 rows, many of them small."""
    return np.floor(10 ** rng.uniform(-1, 5, GROUPS)).astype(int).tolist()


def agree(many, alone, width):
    """Equal values; ends never narrower, and hardly wider."""
    for found, (value, low, high) in zip(zip(*(part[ALONE] for part in many), strict=True), alone, strict=True):
        assert found[0] == pytest.approx(value, abs=1e-9 * width)
        assert found[1] <= low + 1e-9 * width
        assert found[2] >= high - 1e-9 * width
        assert found[2] - found[1] <= (high - low) * 1.04 + 1e-9 * width


def table(many, statistic):
    found = moments.estimate_of(many, statistic)
    return found.values, *found.ends(LEVEL)


PAIRS = [
    (0, 120, True, 4800, 1),
    (0, 1, True, 2, 1),
    (0, 1, True, Fraction(1, 2), 1),
    (-3, 5, False, 2**10, 2**20),
    (100, 101, False, 2**33, 1),
]


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("lower", "upper", "whole", "scale", "step"), PAIRS)
def test_means_and_sums_from_pairs_are_those_of_each_group(lower, upper, whole, scale, step, centred):
    rng = np.random.default_rng(1)
    grid = grid_of(lower, upper, whole=whole, bits=30)
    rows, shares = sizes(rng), rng.random(GROUPS) ** 2
    totals_of = moments.centred_totals if centred else moments.pair_totals
    totals = [totals_of(n, int(n * share * grid.width), grid.width) for n, share in zip(rows, shares, strict=True)]
    first, second = zip(*totals, strict=True)
    columns = [noisy(rng, first, Fraction(scale), step)]
    # of centred totals the second is a number of rows, with a scale of its own
    columns.append(
        noisy(rng, second, Fraction(scale) * step / grid.width if centred else Fraction(scale), 1 if centred else step)
    )
    many = Private(grid=grid, partition=(centred_pair if centred else pair)(grid.width), totals=columns)
    alone = [Group(grid=grid, totals=[column[at] for column in columns], centred=centred) for at in ALONE]
    agree(table(many, "mean"), [(one.mean(), *one.mean_interval(LEVEL)) for one in alone], upper - lower)
    agree(table(many, "count"), [(one.count(), *one.count_interval(LEVEL)) for one in alone], 1e6)
    agree(
        table(many, "sum"), [(one.sum(), *one.sum_interval(LEVEL)) for one in alone], 1e6 * max(abs(lower), abs(upper))
    )


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("lower", "upper", "whole"), [(0, 120, True), (-3, 5, False), (100, 140, False)])
def test_variances_means_and_sums_from_triples_are_those_of_each_group(lower, upper, whole, centred):
    rng = np.random.default_rng(2)
    grid = grid_of(lower, upper, whole=whole, bits=22)
    width = grid.width
    totals_of = moments.centred_square_totals if centred else moments.bernstein_totals
    sums = []
    for n in sizes(rng):
        values = np.rint(rng.beta(2, 5, min(n, 2000)) * width).astype(int).tolist()
        sums.append(totals_of(len(values), sum(values), sum(value * value for value in values), width))
    scales = (terms.centred_square_scales if centred else terms.bernstein_scales)(width, Fraction(1, 4))
    columns = [noisy(rng, totals, scale) for totals, scale in zip(zip(*sums, strict=True), scales, strict=True)]
    many = Private(grid=grid, partition=(centred_squares if centred else bernstein)(grid.width), totals=columns)
    alone = [Group(grid=grid, totals=[column[at] for column in columns], centred=centred) for at in ALONE]
    agree(table(many, "mean"), [(one.mean(), *one.mean_interval(LEVEL)) for one in alone], upper - lower)
    agree(table(many, "sum"), [(one.sum(), *one.sum_interval(LEVEL)) for one in alone], 1e6)
    agree(table(many, "count"), [(one.count(), *one.count_interval(LEVEL)) for one in alone], 1e6)
    spread = [(one.variance(), *one.variance_interval(LEVEL)) for one in alone]
    agree(table(many, "variance"), spread, (upper - lower) ** 2)
    agree(table(many, "std"), np.sqrt(spread), upper - lower)
    sample = [(one.variance() * one.sample_factor(), *one.variance_interval(LEVEL, sample=True)) for one in alone]
    assert any(value > 0 for value, *_ in sample)
    # a clamped estimate lies in its interval
    sample = [(value, min(low, value), max(high, value)) for value, low, high in sample]
    agree(table(many, "variance+"), sample, (upper - lower) ** 2)
    agree(table(many, "std+"), np.sqrt(sample), upper - lower)


def test_edges_are_where_both_sides_meet():
    points = np.linspace(0, 1, 9)
    reach = np.full((1, 9), 1.0)
    low, high = edges(
        np.array([5.0, 5.0, 0.0, 20.0, 0.0, -5.0]), np.array([10.0, 100.0, 10.0, 10.0, 0.0, -10.0]), points, reach
    )
    np.testing.assert_allclose(low, [0.4, 0.04, 0.0, 0.0, 0.0, 0.4])  # the fourth is empty, the fifth is everything
    np.testing.assert_allclose(high, [0.6, 0.06, 0.1, 1.0, 1.0, 0.6])


def test_edges_narrower_than_the_points_are_found_between_them():
    points = np.linspace(0, 1, 3)
    low, high = edges(np.array([3e6]), np.array([1e7]), points, np.array([[1.0, 3.0, 1.0]]))
    assert low[0] == pytest.approx(0.3 - 2.2e-7, rel=1e-7)
    assert high[0] == pytest.approx(0.3 + 2.2e-7, rel=1e-7)


SMALL = [
    {"place": "north", "level": 1, "age": 10, "pay": 5.0, "well": True},
    {"place": "north", "level": 2, "age": 0, "pay": None, "well": False},
    *[{"place": "south", "level": 1, "age": None, "pay": -3.0, "well": None}] * 3,
]


@pytest.mark.parametrize("asked", ["count(*), count(age), avg(age), avg(pay), sum(well)", "avg(age)", "stddev(pay)"])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("clauses", ["", "GROUP BY place, level"])
def test_a_number_lies_in_its_interval(asked, neighbors, clauses):
    """Of nobody, one value, values at a bound or missing ones; an interval may hold no whole number."""
    study = study_of(SMALL, Paper(), neighbors=neighbors)
    for epsilon in (3, 100, 10**4):
        plan = study.sql(select(asked, clauses), epsilon=epsilon, confidence="0.5")
        for _ in range(4):
            for numbers in plan.release().full_record["numbers"].values():
                for value, low, high in zip(numbers["value"], numbers["low"], numbers["high"], strict=True):
                    assert low <= value <= high, (epsilon, value, low, high)


@pytest.mark.parametrize("statistic", ["sum", "mean", "variance"])
def test_groups_in_several_blocks_have_the_numbers_that_they_have_in_one(statistic, monkeypatch):
    rng, grid = np.random.default_rng(5), grid_of(0, 8, whole=True, bits=22)
    rows = sizes(rng)
    totals = [noisy(rng, [part * count for count in rows], 40) for part in (16, 24, 24)]
    many = {"grid": grid, "partition": bernstein(grid.width), "totals": totals}
    expected = table(Private(**many), statistic)
    monkeypatch.setattr(grouped, "_BLOCK", 7)
    for mine, theirs in zip(table(Private(**many), statistic), expected, strict=True):
        assert np.array_equal(mine, theirs)
