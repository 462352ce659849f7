"""From a question about a column to a release, by the estimator that loses least: docs/statistics.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.ask.expression import Column
from discreet.ask.query import Moment
from discreet.calibrate import sensitivity
from discreet.calibrate.grid import ValueGrid
from discreet.calibrate.lemma import half_width
from discreet.engines import array as engine
from discreet.engines.base import Exact
from discreet.formats import as_float
from discreet.release.design import Estimate, MomentDesign
from discreet.release.mechanism import noisy_counts, noisy_sums, noisy_tree
from discreet.release.question import Question
from discreet.release.release import Cumulative, Ends, Histogram, Release, Spread, fields_of
from discreet.release.statistics.grouped import Private
from discreet.release.statistics.quantile import (
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
from discreet.release.statistics.tree import quantile_interval, quantiles_from, tree_design
from discreet.release.tape import marked

TREE_BITS = 10
"""A tree tells values apart to a thousandth of the range."""

_HALF = Fraction(1, 2)

_VALUES = Column("values", "number")


def count(ask: Question) -> Release:
    """How many values are neither missing nor, for truth values, false."""
    [noisy] = noisy_sums(engine.count(ask.data), [1 / ask.epsilon], ask.epsilon)
    return ask.of_sum(noisy, sensitivity=Fraction(1), unit=Fraction(1), whole=True)


def total(ask: Question) -> Release:
    """Σx: one unit moves it by R where n is public, else by max(H, 0) − min(L, 0), or by max(|L|, |H|) (add-remove)."""
    design = _design(ask, "sum")
    grid = design.grid
    totals = _moments(ask, design).map(lambda found: [found[1] + grid.lower * found[0]])
    [scale] = design.scales(ask.terms, ask.epsilon)
    [noisy] = noisy_sums(totals, [scale], ask.epsilon)
    # each value is rounded by half a step at most; how many there are is known where it is public
    slack = Fraction(0) if grid.exact or not ask.public_size else len(ask.data) * grid.step / 2
    return ask.of_sum(noisy, sensitivity=scale * ask.epsilon * grid.step, unit=grid.step, whole=grid.exact, slack=slack)


def moment(ask: Question, statistic: str) -> Release:
    """Mean, variance or std, or a sample's variance+ or std+."""
    design = _design(ask, statistic)
    return _of_moments(ask, design, _estimate(ask, design), statistic)


def joint_parts(ask: Question) -> dict[str, Release]:
    """Number of values, mean and std from one joint release."""
    design = _design(ask, "std")
    found = _estimate(ask, design)
    about_count = replace(ask, statistic="count")
    if isinstance(found, Private):
        scale, step = design.noise("count", ask.terms, ask.epsilon)
        count = about_count.release(*_numbers(found, "count"), sensitivity=Fraction(1), scale=scale, step=step)
    else:
        n = ask.n  # public: there is no error and no cost
        count = replace(about_count, epsilon=Fraction(0)).release(
            n, lambda _confidence, _: (n, n), sensitivity=Fraction(0), scale=Fraction(0), step=Fraction(1)
        )
    parts = {name: _of_moments(replace(ask, statistic=name), design, found, name) for name in ("mean", "std")}
    return {"count": count, **parts}


def _design(ask: Question, statistic: str) -> MomentDesign:
    """The design of a study for the one group of all values."""
    of = Moment("mean", _VALUES, *ask.bounds, ask.data.whole, ask.missing)
    return MomentDesign(wanted=(("value", statistic),), of=of)


def _moments(ask: Question, design: MomentDesign) -> Exact[tuple[int, ...]]:
    grid = marked(design.grid)
    return engine.moments(ask.data, grid, ask.missing_on(grid), squares=design.squares)


def _estimate(ask: Question, design: MomentDesign) -> Estimate:
    secret = _moments(ask, design).map(lambda found: [[number] for number in found])
    return design.estimate(secret, ask.terms, ask.epsilon)


def _numbers(found: Estimate, statistic: str) -> tuple[float, Spread]:
    """The value of the one group, and its interval at any confidence."""

    def spread(confidence: Fraction, _: bool) -> Ends:
        low, high = found.ends(statistic, confidence)
        return float(low[0]), float(high[0])

    return float(found.value(statistic)[0]), spread


def _of_moments(ask: Question, design: MomentDesign, found: Estimate, statistic: str) -> Release:
    """One statistic of a joint release; where n is public, in terms of the mean rather than of the sum."""
    scale, step = design.noise(statistic, ask.terms, ask.epsilon)
    size = (design.grid.width * design.grid.step) ** (1 if statistic == "mean" else 2)
    n = ask.n if ask.public_size else 1
    return ask.release(*_numbers(found, statistic), sensitivity=size / n, scale=scale / n, step=step / n)


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
    error = ""
    if bracket is None:
        error = f"within {float(rank_error(grid.width + 1, rate, Fraction(1, 20))):,.0f} ranks, 95 %"
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
    return ask.release(value, spread, sensitivity=Fraction(1), scale=1 / rate, step=grid.step, error=error)


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
        error=f"about {beyond:,} records lie {'above' if side == 'max' else 'below'}",
    )


def histogram(ask: Question, edges: NDArray[np.float64], *, even: bool) -> Histogram:
    """Every bin with noise: 2/ε where a unit may change its bin, 1/ε where it may only come or go."""
    bins = edges.size - 1
    home = None if ask.missing is None else int(np.searchsorted(edges[1:-1], as_float(ask.missing), side="right"))
    exact = engine.binned(ask.data, edges, home, even=even)
    halves = ask.public_size and bins == 2
    delta = Fraction(1) if halves else sensitivity.histogram(bins=bins, neighbors=ask.neighbors)
    scale = delta / ask.epsilon
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
    tree = tree_design(grid.width + 1, ask.neighbors, ask.epsilon, dropped=ask.dropped)
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
    tree = tree_design(grid.width + 1, ask.neighbors, ask.epsilon, dropped=ask.dropped)
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
