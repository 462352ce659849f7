"""Estimates from joint sums: without noise they are the statistics, and intervals hold them."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
import terms
from discreet import Policy, Study
from discreet.calibrate.grid import value_grid
from discreet.release.mechanism import NoisyColumn, NoisySum
from discreet.release.statistics import moments
from discreet.release.statistics.grouped import PrivateSizeMoments
from discreet.release.statistics.moments import PublicSizeMoments, estimate_of
from discreet.release.statistics.partition import bernstein, centred, centred_squares, pair
from discreet.release.statistics.spread import radius
from studies import Paper

GRID = value_grid((Fraction(-2), Fraction(6)), bits=30, whole=True)
VALUES = [-2, 0, 1, 1, 5, 6, 6]
A = [value + 2 for value in VALUES]
N, TOTAL, SQUARED = len(A), sum(A), sum(a * a for a in A)
LEVEL = Fraction(19, 20)


PRIVATE = {
    "pair": (pair, moments.pair_totals(N, TOTAL, GRID.width), terms.pair_scales),
    "centred": (centred, moments.centred_totals(N, TOTAL, GRID.width), terms.centred_scales),
    "Bernstein": (
        bernstein,
        moments.bernstein_totals(N, TOTAL, SQUARED, GRID.width),
        terms.bernstein_scales,
    ),
    "squares": (
        centred_squares,
        moments.centred_square_totals(N, TOTAL, SQUARED, GRID.width),
        terms.centred_square_scales,
    ),
}
TRUTH = {
    "count": N,
    "sum": sum(VALUES),
    "mean": np.mean(VALUES),
    "variance": np.var(VALUES),
    "std": np.std(VALUES),
}


def private(
    name: str, epsilon: Fraction = Fraction(1), moved: tuple[int, ...] = (0, 0, 0)
) -> PrivateSizeMoments:
    """Without noise, but for what is moved."""
    partition, totals, scales = PRIVATE[name]
    columns = [
        NoisyColumn(values=[total + more], step=1, scale=scale)
        for total, more, scale in zip(totals, moved, scales(GRID.width, epsilon), strict=False)
    ]
    return PrivateSizeMoments(grid=GRID, partition=partition(GRID.width), totals=columns)


def joint(epsilon: Fraction = Fraction(1)) -> PublicSizeMoments:
    totals = moments.joint_totals(TOTAL, SQUARED, GRID.width)
    total, mixed = (
        NoisySum(value=total, step=1, scale=scale)
        for total, scale in zip(totals, terms.joint_scales(GRID.width, epsilon), strict=True)
    )
    return PublicSizeMoments(grid=GRID, n=N, total=total, mixed=mixed)


def statistics(name: str) -> list[str]:
    found = list(TRUTH) if name in ("Bernstein", "squares") else ["count", "sum", "mean"]
    return found[1:] if name == "joint" else found


def estimate(name: str, *given: Any) -> PublicSizeMoments | PrivateSizeMoments:
    return joint(*given) if name == "joint" else private(name, *given)


@pytest.mark.parametrize("name", [*PRIVATE, "joint"])
def test_without_noise_the_estimates_are_the_statistics(name):
    for statistic in statistics(name):
        assert estimate_of(estimate(name), statistic).values[0] == pytest.approx(
            TRUTH[statistic]
        ), statistic
    if "variance" in statistics(name):
        assert estimate(name).value("variance+")[0] == pytest.approx(np.var(VALUES, ddof=1))
        assert estimate_of(estimate(name), "std+").values[0] == pytest.approx(
            np.std(VALUES, ddof=1)
        )


@pytest.mark.parametrize("name", [*PRIVATE, "joint"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(1000)])
def test_intervals_hold_the_estimate_and_shrink_with_the_noise(name, epsilon):
    for statistic in statistics(name):
        (low, high), (lower, higher) = (
            (ends[0][0], ends[1][0])
            for ends in (
                estimate_of(estimate(name, at), statistic).ends(LEVEL)
                for at in (epsilon, 10 * epsilon)
            )
        )
        assert low <= lower <= TRUTH[statistic] + 1e-9
        assert TRUTH[statistic] - 1e-9 <= higher <= high


@pytest.mark.parametrize("name", [*PRIVATE, "joint"])
def test_intervals_stay_within_what_is_possible(name):
    found = estimate(name, Fraction(1, 100))
    for statistic, least, most in (("mean", -2, 6), ("variance", 0, 16), ("std", 0, 4)):
        if statistic in statistics(name):
            [low], [high] = estimate_of(found, statistic).ends(LEVEL)
            assert least <= low <= high <= most


@pytest.mark.parametrize("name", PRIVATE)
def test_where_the_noise_has_swallowed_everybody_the_mean_is_the_middle(name):
    moved = {"pair": (-1000, -1000), "centred": (0, -100), "squares": (0, 0, -100)}.get(
        name, (-1000,) * 3
    )
    swallowed = private(name, Fraction(1), moved)
    assert swallowed.value("count")[0] < 0
    assert swallowed.value("mean")[0] == 2
    if "variance" in statistics(name):
        assert swallowed.value("variance")[0] == 0
    [low], [high] = swallowed.ends("mean", LEVEL)
    assert -2 <= low <= high <= 6


def test_estimates_are_held_within_their_bounds():
    assert private("pair", Fraction(1), (10**4, -30)).value("mean") == 6
    assert private("pair", Fraction(1), (-1000, 10**4)).value("mean") == -2
    assert private("centred", Fraction(1), (10**4, 0)).value("mean") == 6
    far = PublicSizeMoments(grid=GRID, n=3, total=NoisySum(value=10**6, step=1, scale=Fraction(1)))
    assert far.value("mean") == [6]
    assert far.ends("mean", LEVEL) == ([6], [6])
    with pytest.raises(TypeError, match="squares"):
        far.value("variance")
    mixed = NoisySum(value=10**6, step=1, scale=Fraction(1))
    assert PublicSizeMoments(grid=GRID, n=3, total=far.total, mixed=mixed).variance() == 0
    mixed = NoisySum(value=-(10**6), step=1, scale=Fraction(1))
    assert PublicSizeMoments(grid=GRID, n=3, total=far.total, mixed=mixed).variance() == 16


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
    assert PublicSizeMoments(grid=rounded, n=1, total=one).mean_interval(LEVEL) == (
        0.5 - 1 / 16,
        0.5 + 1 / 16,
    )


ROUNDED = value_grid((Fraction(0), Fraction(100)), bits=7)
"""A grid of half steps of ¼."""


def test_a_sum_of_a_public_number_of_values_includes_their_rounding():
    total = NoisySum(value=1000, step=1, scale=Fraction(10))
    reach = radius(total, LEVEL)
    for n, half_steps in ((400, 200), (0, 0)):
        sums = PublicSizeMoments(grid=ROUNDED, n=n, total=total)
        [low], [high] = sums.ends("sum", LEVEL)
        assert (high - low) / 2 == (reach + half_steps) * ROUNDED.step


def test_the_sum_of_nobody_is_about_nought_whatever_the_bounds():
    grid = value_grid((Fraction(-300), Fraction(-200)), bits=30)
    sums = PublicSizeMoments(grid=grid, n=0, total=NoisySum(value=0, step=1, scale=Fraction(1)))
    assert sums.value("sum") == [0.0]
    assert np.isfinite(sums.ends("mean", LEVEL)).all()


def test_a_sum_of_a_private_number_of_values_includes_the_rounding_of_as_many_as_there_may_be():
    """Each end has the noise of the sum and of half a step for each of the noisy number of values."""
    rows, width = 400, ROUNDED.width
    columns = [
        NoisyColumn(values=[total], step=1, scale=Fraction(width))
        for total in (10 * rows, (width - 10) * rows)
    ]
    sums = PrivateSizeMoments(grid=ROUNDED, partition=pair(width), totals=columns)
    [value], ([low], [high]) = sums.value("sum"), sums.ends("sum", LEVEL)
    step = float(ROUNDED.step)
    for side, end in ((-1, low), (1, high)):
        noise = sums.reach((np.array([width, 0.0]) + side / 2) * step, float(LEVEL))
        assert end == pytest.approx(value + side * (rows * step / 2 + noise))


def test_a_sum_alone_includes_the_rounding_of_as_many_values_as_an_array_has():
    values = np.full(10_000, 1 / 2**31)  # midway between two points of the grid
    alone = discreet.sum(values, bounds=(0, 1), epsilon=10**6)
    beside = discreet.sum(values, bounds=(0, 1), epsilon=10**6, neighbors="add-remove")
    (low, high), (other_low, other_high) = alone.interval(), beside.interval()
    assert high - low == pytest.approx(other_high - other_low + 10_000 / 2**30)


def test_a_sum_alone_says_that_it_leaves_rounding_out_and_integers_have_none():
    values = np.linspace(0, 1, 50)
    private = discreet.sum(values, bounds=(0, 1), epsilon=1, neighbors="add-remove")
    assert private.rounding == "without rounding, at most 4.66e-10 a value"
    assert private.rounding in private.note
    assert private.rounding in repr(private)
    assert discreet.Release.from_json(private.to_json()) == private
    # at most fifty values can count
    assert discreet.sum(values, bounds=(0, 1), epsilon=1).rounding == ""
    assert (
        discreet.sum(np.arange(50) % 2, bounds=(0, 1), epsilon=1, neighbors="add-remove").rounding
        == ""
    )


def test_a_plan_says_what_a_sum_alone_leaves_out_and_adds_it_for_a_given_size():
    table = pa.table({"x": [40.2, 7.1], "g": ["a", "b"]})
    columns = {"x": {"bounds": [0, 100], "precision": 1}, "g": {"keys": ["a", "b"]}}
    policy = Policy(
        source=table, columns=columns, epsilon=10**6, version="1", neighbors="add-remove"
    )
    study = Study(policy, ledger=Paper())
    alone = study.sql("SELECT g, sum(x) AS total FROM data GROUP BY g", epsilon=1)
    beside = study.sql("SELECT g, sum(x) AS total, avg(x) AS mean FROM data GROUP BY g", epsilon=1)
    [note] = [note for note in alone.notes if "rounding" in note]
    assert note.startswith(
        "The error of total leaves out the rounding of values, at most 0.25 a row"
    )
    assert not [note for note in beside.notes if "rounding" in note]
    for plan in (alone, beside):
        total, sized_total = (
            next(line.reach for line in one.lines if one.titles()[line.name] == "total")
            for one in (plan, replace(plan, size=1000))
        )
        assert sized_total == pytest.approx(total + 1000 * 0.25)
    answer = alone.release()
    assert answer.roundings == {"total": Fraction(1, 4)}
    assert "total without rounding, at most 0.25 a row" in repr(answer)
    assert beside.release().roundings == {}


def test_a_mean_and_a_std_are_planned_with_half_a_step():
    columns = {"x": {"bounds": [0, 100], "precision": 1}}
    policy = Policy(
        source=pa.table({"x": [40.2]}),
        columns=columns,
        epsilon=10**6,
        version="1",
        neighbors="add-remove",
    )
    plan = Study(policy, ledger=Paper()).sql(
        "SELECT avg(x), stddev(x) FROM data", epsilon=10**5, size=10**6
    )
    assert [line.reach for line in plan.lines] == pytest.approx([0.25, 0.25], rel=1e-3)


def test_the_interval_of_the_variance_of_a_sample_reaches_beyond_that_of_any_population():
    """Two values at the two bounds: the population's variance is ¼ of the squared range, the
    sample's ½.
    """
    width = 100
    grid = value_grid((Fraction(0), Fraction(width)), bits=30, whole=True)
    # Σ(R−a)², Σ2a(R−a), Σa² of 0 and 100, and some noise
    totals = [[width**2], [width**2 // 20], [width**2]]
    columns = [NoisyColumn(values=total, step=1, scale=Fraction(width**2, 100)) for total in totals]
    sums = PrivateSizeMoments(grid=grid, partition=bernstein(width), totals=columns)
    assert sums.ends("variance", LEVEL)[1] <= width**2 / 4
    [value], ([low], [high]) = sums.value("variance+"), sums.ends("variance+", LEVEL)
    assert width**2 / 4 < low < value < high <= width**2 / 2
