"""The textbook mechanisms, for teaching: Algorithm 1 on the plain statistic, with its global
sensitivity.

The better designs are compared with their errors. Each statistic is computed exactly on the grid
(roots by integer roots) and rounded down to the step of Algorithm 1, which adds one step to the
sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Literal, TypeAlias

from discreet.calibrate import sensitivity
from discreet.calibrate.grid import ValueGrid
from discreet.engines import array as engine
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.release import mechanism
from discreet.release.intervals.spreads import by_algorithm, summed, widened
from discreet.release.question import Question
from discreet.release.release import Release
from discreet.release.statistics.moments import SQUARE_BITS, SUM_BITS

Floor: TypeAlias = Callable[[Fraction], int]
Steps: TypeAlias = Fraction | int


def mean(ask: Question) -> Release:
    """The mean of a private number of values: half of ε for the sum, half for the count, and their
    quotient.
    """
    grid, half = ask.grid(SUM_BITS), ask.epsilon / 2
    sums = engine.moments(ask.data, grid, ask.missing_on(grid), squares=False)
    delta = ask.terms.sum(grid.lower, grid.upper)
    parts = [
        _of_sum(
            ask,
            sums.map(lambda exact: exact[0]),
            Fraction(ask.terms.row_changes),
            half,
            Fraction(1),
        ),
        _of_sum(
            ask, sums.map(lambda exact: exact[1] + grid.lower * exact[0]), delta, half, grid.step
        ),
    ]
    return _widened(replace(parts[1] / parts[0], statistic="mean", rounding=""), grid.half_step)


def _of_sum(
    ask: Question, exact: Exact[int], delta: Fraction, epsilon: Fraction, unit: Fraction
) -> Release:
    """A total in steps of `unit`, plus noise."""
    [noisy] = mechanism.noisy_sums(exact.map(lambda total: [total]), [delta / epsilon], epsilon)
    return replace(ask, epsilon=epsilon).release(
        as_float(noisy.value * unit),
        partial(summed, noisy, unit),
        sensitivity=delta * unit,
        scale=noisy.spread * unit,
        step=noisy.step * unit,
    )


def variance(ask: Question, sample: bool) -> Release:
    """The variance plus Lap(Δ/ε)."""
    grid = ask.square_grid(SQUARE_BITS)
    delta = sensitivity.variance(n=ask.n, bounds=(0, grid.width), sample=sample) * grid.step**2
    floors = _variance(ask, grid, sample).map(lambda exact: lambda step: math.floor(exact / step))
    half = grid.half_step  # (σ + half)² − σ², with a σ of at most R
    return _widened(_release(ask, floors, delta), half * (2 * float(ask.range) + half))


def std(ask: Question, sample: bool) -> Release:
    """The standard deviation plus Lap(Δ/ε): an error of 1/√n."""
    grid = ask.square_grid(SQUARE_BITS)
    delta = sensitivity.std(n=ask.n, bounds=(0, grid.width), sample=sample) * grid.step
    # ⌊√x⌋ is the integer root of ⌊x⌋
    floors = _variance(ask, grid, sample).map(
        lambda exact: lambda step: math.isqrt(math.floor(exact / step**2))
    )
    # of a sample, where the deviation of two values is √2 times that of the population
    return _widened(_release(ask, floors, delta), grid.half_step * (math.sqrt(2) if sample else 1))


def _variance(ask: Question, grid: ValueGrid, sample: bool) -> Exact[Fraction]:
    n, unit = ask.n, grid.step**2
    pairs = max(n * (n - 1) if sample else n * n, 1)
    sums = engine.moments(ask.data, grid, ask.missing_on(grid), squares=True)
    return sums.map(lambda exact: Fraction(n * exact[2] - exact[1] ** 2, pairs) * unit)


def quantile(ask: Question, share: Fraction) -> Release:
    """The quantile plus Lap(R/ε); the median of an even number of values is the mean of the middle
    two.
    """
    grid = ask.grid(SUM_BITS)
    bounds = 0, grid.width
    if share != Fraction(1, 2):
        delta = sensitivity.quantile(share, bounds=bounds, neighbors=ask.neighbors)
        return _ranked(
            ask, grid, delta, lambda values: values[max(math.ceil(share * len(values)), 1) - 1]
        )
    delta = sensitivity.median(
        bounds=bounds, n=ask.n if ask.public_size else None, neighbors=ask.neighbors
    )
    middle = lambda values: Fraction(values[(len(values) - 1) // 2] + values[len(values) // 2], 2)  # noqa: E731
    return _ranked(ask, grid, delta, middle)


def extreme(ask: Question, side: Literal["min", "max"]) -> Release:
    """The minimum or the maximum plus Lap(R/ε)."""
    grid = ask.grid(SUM_BITS)
    return _ranked(ask, grid, grid.width, lambda values: values[-1 if side == "max" else 0])


def _ranked(
    ask: Question, grid: ValueGrid, delta: Steps, rank: Callable[[list[int]], Steps]
) -> Release:
    """One of the sorted values, or the middle of the bounds if there are none; `delta` is in steps
    of the grid.
    """

    def floor(values: list[int]) -> Floor:
        steps = rank(values) if values else grid.middle - grid.lower
        return lambda step: math.floor((grid.lower + steps) * grid.step / step)

    sorted_steps = engine.sorted_steps(ask.data, grid, ask.missing_on(grid))
    release = _release(
        ask, sorted_steps.map(lambda steps: floor(steps.tolist())), delta * grid.step
    )
    return _widened(release, grid.half_step)


def _release(ask: Question, exact: Exact[Floor], delta: Fraction) -> Release:
    value, grid = mechanism.textbook(exact, delta, ask.epsilon)
    spread = partial(by_algorithm, value, grid.scale, grid.step)
    return ask.release(
        as_float(value), spread, sensitivity=delta, scale=grid.scale * grid.step, step=grid.step
    )


def _widened(release: Release, by: float) -> Release:
    """The release with intervals that include the rounding of values to the grid."""
    return replace(release, _spread=partial(widened, release._spread, by)) if by else release


def refuse_private_size(ask: Question) -> None:
    """Refuse the variance and std of a private number of values, which have no textbook form."""
    if not ask.public_size:
        replaced = ask.neighbors == "change-one"
        case = "with missing values dropped" if replaced else "under add-remove"
        remedy = "give missing=" if replaced else "use neighbors='change-one'"
        raise InvalidParameter(
            f"the textbook has no {ask.statistic} {case}: leave method out, or {remedy}"
        )
