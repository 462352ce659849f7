"""The textbook mechanisms, for teaching: Algorithm 1 on the plain statistic, with its global sensitivity.

The better designs are compared with their errors. Each statistic is computed exactly on the grid (roots by integer
roots) and rounded down to the step of Algorithm 1, which adds one step to the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from discreet.calibrate import sensitivity
from discreet.calibrate.grid import ValueGrid
from discreet.engines import array as engine
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.release import mechanism
from discreet.release.intervals.spreads import by_algorithm, summed
from discreet.release.question import Question
from discreet.release.release import Release
from discreet.release.statistics.moments import SUM_BITS

Floor = Callable[[Fraction], int]


def mean(ask: Question) -> Release:
    """The mean of a private number of values: half of ε for the sum, half for the count, and their quotient."""
    grid, half = ask.grid(SUM_BITS), ask.epsilon / 2
    sums = engine.moments(ask.data, grid, ask.missing_on(grid), squares=False)
    delta = ask.terms.sum(grid.lower, grid.upper)
    parts = [
        _of_sum(ask, sums.map(lambda exact: exact[0]), Fraction(ask.terms.steps), half, Fraction(1)),
        _of_sum(ask, sums.map(lambda exact: exact[1] + grid.lower * exact[0]), delta, half, grid.step),
    ]
    return replace(parts[1] / parts[0], statistic="mean")


def _of_sum(ask: Question, exact: Exact[int], delta: Fraction, epsilon: Fraction, unit: Fraction) -> Release:
    """A total in steps of `unit`, plus noise."""
    [noisy] = mechanism.noisy_sums(exact.map(lambda total: [total]), [delta / epsilon], epsilon)
    return replace(ask, epsilon=epsilon).release(
        as_float(noisy.value * unit),
        partial(summed, noisy, unit),
        sensitivity=delta * unit,
        scale=noisy.spread * unit,
        step=noisy.step * unit,
    )


def variance(ask: Question, grid: ValueGrid, sample: bool) -> Release:
    """The variance plus Lap(Δ/ε)."""
    n = ask.n
    below = n * (n - 1) if sample else n * n
    unit = grid.step**2
    delta = sensitivity.variance(n=n, bounds=(0, grid.width), sample=sample) * unit

    def floor(exact: tuple[int, ...]) -> Floor:
        squares = Fraction(n * exact[2] - exact[1] ** 2, max(below, 1)) * unit
        return lambda step: math.floor(squares / step)

    return _release(ask, _moments(ask, grid).map(floor), delta)


def std(ask: Question, grid: ValueGrid, sample: bool) -> Release:
    """The standard deviation plus Lap(Δ/ε): an error of 1/√n."""
    n = ask.n
    below = n * (n - 1) if sample else n * n
    delta = sensitivity.std(n=n, bounds=(0, grid.width), sample=sample) * grid.step
    unit = grid.step**2

    def floor(exact: tuple[int, ...]) -> Floor:
        squares = Fraction(n * exact[2] - exact[1] ** 2, max(below, 1)) * unit
        # ⌊√x⌋ is the integer root of ⌊x⌋
        return lambda step: math.isqrt(math.floor(squares / step**2))

    return _release(ask, _moments(ask, grid).map(floor), delta)


def quantile(ask: Question, grid: ValueGrid, share: Fraction) -> Release:
    """The quantile plus Lap(R/ε); the median of an even number of values is the mean of the middle two."""
    median = share == Fraction(1, 2)
    n = ask.n if ask.public_size else None
    bounds = 0, grid.width
    delta = grid.step * (
        sensitivity.median(bounds=bounds, n=n, neighbors=ask.neighbors)
        if median
        else sensitivity.quantile(share, bounds=bounds, neighbors=ask.neighbors)
    )

    def floor(values: list[int]) -> Floor:
        size = len(values)
        if size == 0:
            steps = Fraction(grid.middle - grid.lower)
        elif median:
            steps = Fraction(values[(size - 1) // 2] + values[size // 2], 2)
        else:
            steps = Fraction(values[max(math.ceil(share * size), 1) - 1])
        return lambda step: math.floor((grid.lower + steps) * grid.step / step)

    return _release(ask, _sorted(ask, grid).map(floor), delta)


def extreme(ask: Question, grid: ValueGrid, last: bool) -> Release:
    """The minimum or the maximum plus Lap(R/ε)."""

    def floor(values: list[int]) -> Floor:
        steps = values[-1 if last else 0] if values else grid.middle - grid.lower
        return lambda step: math.floor((grid.lower + steps) * grid.step / step)

    return _release(ask, _sorted(ask, grid).map(floor), grid.width * grid.step)


def _release(ask: Question, exact: Exact[Floor], delta: Fraction) -> Release:
    value, grid = mechanism.textbook(exact, delta, ask.epsilon)
    spread = partial(by_algorithm, value, grid.scale, grid.step)
    return ask.release(as_float(value), spread, sensitivity=delta, scale=grid.scale * grid.step, step=grid.step)


def _moments(ask: Question, grid: ValueGrid) -> Exact[tuple[int, ...]]:
    return engine.moments(ask.data, grid, ask.missing_on(grid), squares=True)


def _sorted(ask: Question, grid: ValueGrid) -> Exact[list[int]]:
    return engine.sorted_steps(ask.data, grid, ask.missing_on(grid)).map(lambda steps: steps.tolist())


def refuse_private_size(ask: Question) -> None:
    """Refuse the variance and std of a private number of values, which have no textbook form."""
    if ask.public_size:
        return
    if ask.neighbors == "change-one":
        raise InvalidParameter(
            f"the textbook has no {ask.statistic} with missing values dropped: leave method out, or give missing="
        )
    raise InvalidParameter(
        f"the textbook has no {ask.statistic} under add-remove: leave method out, or use neighbors='change-one'"
    )
