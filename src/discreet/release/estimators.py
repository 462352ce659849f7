"""From a question about a column to a release, by the estimator that loses least: docs/statistics.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import ValueGrid
from discreet.calibrate.lemma import half_width
from discreet.engines import array as engine
from discreet.release import moments
from discreet.release.mechanism import noisy_counts, noisy_sums, noisy_tree
from discreet.release.quantile import (
    BRACKET_BITS,
    CELL_BITS,
    END_RATE,
    VALUE_PART,
    Counts,
    find,
    find_bracket,
    find_extreme,
    rank_error,
    rank_rate,
)
from discreet.release.question import Question
from discreet.release.result import Cumulative, Ends, Histogram, Release, as_float, fields_of
from discreet.release.tree import quantile_interval, quantiles_from, tree_design

SUM_BITS = 30
SQUARE_BITS = 22
TREE_BITS = 10
"""Steps of the grids: a sum's rounding vanishes beside any noise; the squares of a block stay within int64; a tree
tells values apart to a thousandth of the range."""

_HALF = Fraction(1, 2)


def count(ask: Question) -> Release:
    """How many values are neither missing nor, for truth values, false."""
    [noisy] = noisy_sums(engine.count(ask.data), [1 / ask.epsilon], ask.epsilon)
    return ask.of_sum(noisy, sensitivity=Fraction(1), unit=Fraction(1), whole=True)


def total(ask: Question) -> Release:
    """Σx: under change-one one unit moves it by R, under add-remove by max(|L|, |H|)."""
    grid = ask.grid(SUM_BITS)
    exact = engine.moments(ask.data, grid, ask.missing_on(grid), squares=False)
    moved = grid.width if ask.public_size else max(abs(grid.lower), abs(grid.upper))
    totals = exact.map(lambda found: [found[1] + grid.lower * found[0]])
    [noisy] = noisy_sums(totals, [moved / ask.epsilon], ask.epsilon)
    # each value is rounded by half a step at most; how many there are is only public under change-one
    slack = Fraction(0) if grid.exact or not ask.public_size else len(ask.data) * grid.step / 2
    return ask.of_sum(noisy, sensitivity=moved * grid.step, unit=grid.step, whole=grid.exact, slack=slack)


def mean(ask: Question) -> Release:
    """Σa/n where n is public, the pair where it is not."""
    if ask.public_size:
        return lone_mean(ask, _lone(ask, ask.grid(SUM_BITS)))
    grid = ask.grid(SUM_BITS)
    exact = engine.moments(ask.data, grid, ask.missing_on(grid), squares=False)
    scales = moments.pair_scales(grid.width, ask.epsilon)
    sums = noisy_sums(exact.map(lambda found: moments.pair_totals(found[0], found[1], grid.width)), scales, ask.epsilon)
    pair = moments.Pair(grid=grid, above=sums[0], below=sums[1])
    return ask.release(
        pair.mean(),
        lambda confidence, _: pair.mean_interval(confidence),
        sensitivity=grid.width * grid.step,
        scale=sums[0].spread * grid.step,
        step=sums[0].step * grid.step,
    )


def lone_mean(ask: Question, lone: moments.Lone) -> Release:
    """The release of a mean whose n is public."""
    grid, n = lone.grid, lone.n
    return ask.release(
        lone.mean(),
        lambda confidence, _: lone.mean_interval(confidence),
        sensitivity=grid.width * grid.step / n,
        scale=lone.total.spread * grid.step / n,
        step=lone.total.step * grid.step / n,
    )


def _lone(ask: Question, grid: ValueGrid) -> moments.Lone:
    exact = engine.moments(ask.data, grid, ask.missing_on(grid), squares=False)
    n = ask.n
    [noisy] = noisy_sums(exact.map(lambda found: [found[1]]), [grid.width / ask.epsilon], ask.epsilon)
    return moments.Lone(grid=grid, n=n, total=noisy)


def second_moments(ask: Question, epsilon: Fraction) -> moments.Joint | moments.Bernstein:
    """Mean and variance in one: the joint design where n is public, Bernstein's three sums where it is not."""
    grid = ask.square_grid(SQUARE_BITS)
    exact = engine.moments(ask.data, grid, ask.missing_on(grid), squares=True)
    if ask.public_size:
        n = ask.n
        totals = exact.map(lambda found: moments.joint_totals(found[1], found[2], grid.width))
        first, second = noisy_sums(totals, moments.joint_scales(grid.width, epsilon), epsilon)
        return moments.Joint(grid=grid, n=n, total=first, mixed=second)
    totals = exact.map(lambda found: moments.bernstein_totals(*found, grid.width))
    b0, b1, b2 = noisy_sums(totals, moments.bernstein_scales(grid.width, epsilon), epsilon)
    return moments.Bernstein(grid=grid, sums=(b0, b1, b2))


def variance(ask: Question, found: moments.Joint | moments.Bernstein, *, sample: bool, root: bool) -> Release:
    """The variance or its root from either design; a sample's is n/(n−1) times the population's."""
    grid = found.grid
    noisy = found.mixed if isinstance(found, moments.Joint) else found.sums[0]
    size = found.n if isinstance(found, moments.Joint) else max(found.count(), 2.0)
    factor = size / (size - 1) if sample and size > 1 else 1.0
    shape: Callable[[float], float] = math.sqrt if root else float

    def spread(confidence: Fraction, _: bool) -> Ends:
        low, high = found.variance_interval(confidence)
        return shape(low * factor), shape(high * factor)

    unit = grid.step**2 / (found.n if isinstance(found, moments.Joint) else 1)
    return ask.release(
        shape(found.variance() * factor),
        spread,
        sensitivity=grid.width**2 * unit,
        scale=noisy.spread * unit,
        step=noisy.step * unit,
    )


def joint_parts(ask: Question) -> dict[str, Release]:
    """Number of records, mean and std from one joint release."""
    found = second_moments(ask, ask.epsilon)
    about_count, about_mean = replace(ask, statistic="count"), replace(ask, statistic="mean")
    if isinstance(found, moments.Joint):
        n = found.n  # public: there is no error and no cost
        count = replace(about_count, epsilon=Fraction(0)).release(
            n, lambda _confidence, _: (n, n), sensitivity=Fraction(0), scale=Fraction(0), step=Fraction(1)
        )
        mean = lone_mean(about_mean, found.lone())
    else:
        grid, noisy = found.grid, found.sums[0]
        count = about_count.release(
            found.count(),
            lambda confidence, _: found.count_interval(confidence),
            sensitivity=Fraction(1),
            scale=noisy.spread / grid.width**2,
            step=Fraction(noisy.step, grid.width**2),
        )
        mean = about_mean.release(
            found.mean(),
            lambda confidence, _: found.mean_interval(confidence),
            sensitivity=grid.width * grid.step,
            scale=noisy.spread / grid.width * grid.step,
            step=noisy.step * grid.step / grid.width,
        )
    return {
        "count": count,
        "mean": mean,
        "std": variance(replace(ask, statistic="std"), found, sample=False, root=True),
    }


def cells(ask: Question, grid: ValueGrid) -> Counts:
    """How many values lie on each point of the grid."""
    return engine.counts(ask.data, grid, ask.missing_on(grid))


def quantile(ask: Question, share: Fraction, bracket: Fraction | None) -> Release:
    """One quantile, and a bracket around it at this confidence, or none."""
    grid = ask.grid(CELL_BITS)
    whole = grid.lower * grid.step, grid.upper * grid.step
    epsilon = ask.epsilon if bracket is None else ask.epsilon * VALUE_PART
    rate = rank_rate(share, ask.neighbors, epsilon)
    point = find(cells(ask, grid), grid, share, rate) * grid.step
    note = ""
    if bracket is None:
        note = f"within {float(rank_error(grid.width + 1, rate, Fraction(1, 20))):,.0f} ranks, 95 %"
        ends = whole  # only the bounds are certain
    else:
        coarse = ask.grid(BRACKET_BITS)
        low, high = find_bracket(cells(ask, coarse), coarse, share, rate * END_RATE, bracket)
        half = Fraction(0) if coarse.exact else coarse.step / 2
        ends = max(low * coarse.step - half, whole[0]), min(high * coarse.step + half, whole[1])
        point = min(max(point, ends[0]), ends[1])

    def spread(confidence: Fraction, _: bool) -> Ends:
        low, high = ends if bracket is not None and confidence <= bracket else whole
        return float(low), float(high)

    value = int(point) if grid.exact else float(point)
    return ask.release(value, spread, sensitivity=Fraction(1), scale=1 / rate, step=grid.step, note=note)


def extreme(ask: Question, grid: ValueGrid, side: Literal["min", "max"]) -> Release:
    """A value with about s records beyond it; what lies beyond the last record no private method can tell."""
    point, beyond = find_extreme(cells(ask, grid), grid, side, ask.epsilon)
    edge = Fraction(point) if grid.exact else Fraction(point) + (_HALF if side == "max" else -_HALF)
    value = float(min(max(edge * grid.step, ask.bounds[0]), ask.bounds[1]))
    ends = float(ask.bounds[0]), float(ask.bounds[1])
    return ask.release(
        value if not grid.exact else point,
        lambda _confidence, _: ends,
        sensitivity=Fraction(1),
        scale=1 / ask.epsilon,
        step=grid.step,
        note=f"about {beyond:,} records lie {'above' if side == 'max' else 'below'}",
    )


def histogram(ask: Question, edges: NDArray[np.float64], *, even: bool) -> Histogram:
    """Every bin with noise: 2/ε where a unit may change its bin, 1/ε where it may only come or go."""
    bins = edges.size - 1
    middle = ask.missing if ask.missing is not None else (ask.bounds[0] + ask.bounds[1]) / 2
    home = int(np.searchsorted(edges[1:-1], as_float(middle), side="right"))
    exact = engine.binned(ask.data, edges, home, even=even)
    halves = ask.public_size and bins == 2
    scale = Fraction(2 if ask.public_size and not halves else 1) / ask.epsilon
    if halves:  # one count, and the rest of n: half the noise
        [first] = noisy_counts(exact.map(lambda found: found[:1]), scale).tolist()
        noisy = np.array([first, len(ask.data) - first])
    else:
        noisy = noisy_counts(exact, scale)

    def spread(confidence: Fraction, simultaneous: bool) -> Ends:
        reach = half_width(scale, confidence, d=bins if simultaneous and not halves else 1)
        return noisy - reach, noisy + reach

    found = ask.release(noisy, spread, sensitivity=scale * ask.epsilon, scale=scale, step=Fraction(1))
    public = len(ask.data) if ask.public_size else None
    return Histogram(**fields_of(found), edges=tuple(edges.tolist()), total=public)


def cumulative(ask: Question, grid: ValueGrid) -> Cumulative:
    """How many values lie at or below each point of a grid, from a tree of counts."""
    tree = tree_design(grid.width + 1, ask.neighbors, ask.epsilon)
    public = len(ask.data) if ask.public_size else None
    below = tree.cumulative(noisy_tree(cells(ask, grid), tree), public)

    def spread(confidence: Fraction, _: bool) -> Ends:
        reach = tree.band(confidence)  # holds at all points at once
        return np.maximum(below - reach, 0), below + reach

    found = ask.release(below, spread, sensitivity=tree.scale * ask.epsilon, scale=tree.scale, step=Fraction(1))
    points = np.array([float((grid.lower + index) * grid.step) for index in range(grid.width + 1)])
    return Cumulative(**fields_of(found), points=points, total=public)


def quantiles_of_tree(ask: Question, grid: ValueGrid, shares: Sequence[Fraction]) -> Release:
    """Any number of quantiles from one tree, with intervals from its band."""
    tree = tree_design(grid.width + 1, ask.neighbors, ask.epsilon)
    public = len(ask.data) if ask.public_size else None
    below = tree.cumulative(noisy_tree(cells(ask, grid), tree), public)
    step, lower, half = float(grid.step), grid.lower, 0.0 if grid.exact else 0.5
    moving = () if ask.public_size else tuple(shares)

    def spread(confidence: Fraction, _: bool) -> Ends:
        reach = tree.band(confidence, moving)
        found = [quantile_interval(below, share, public, reach) for share in shares]
        low = np.array([(lower + first - half) * step for first, _ in found])
        high = np.array([(lower + last + half) * step for _, last in found])
        return np.maximum(low, lower * step), np.minimum(high, grid.upper * step)

    points = (lower + np.asarray(quantiles_from(below, shares, public))) * step
    return ask.release(points, spread, sensitivity=tree.scale * ask.epsilon, scale=tree.scale, step=grid.step)
