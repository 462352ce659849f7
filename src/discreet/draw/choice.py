"""Exact choices among cells by permute-and-flip [MS20], at the cost of one draw for all cells that
are alike.

    cell v survives with probability e^(−x(v)), x(v) = unit·(exponent(v) − smallest exponent),
    independently; the answer is one survivor, all equally likely. The best cells have x = 0, so at
    least one cell survives.

If one person moves the exponents by amounts that differ by at most ε/unit between any two cells,
the choice is ε-differentially private. Give every cell an independent *time*, uniform on (0,1): the
survivor with the earliest time is one of them, all equally likely. Among m cells with the same x, a
*run*, none survives with a time up to t with probability (1 − e^(−x)·t)^m. So the earliest time of
a survivor of a run is, for W uniform on (0,1),

    T = e^x·(1 − (1−W)^(1/m)),      and there is none if T > 1

The run with the smallest T, which is at most 1 as that of a best cell is, wins; all of its cells
are equally likely. PROOF.md, section 9, says when floats decide which T is smaller. Otherwise balls
do, with more bits of W until they are apart: a cell that survives once in 2⁶⁴ times, or less often,
has its exact probability. No data raises or overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from discreet.calibrate.ball import ball, nearest
from discreet.draw.coin import below
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.noted import heard, note
from discreet.errors import EngineFailed, InvalidParameter

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

_DOUBT = 2.0**-28
"""Floats decide if times differ by more than this share."""

_SHORT, _LONG = np.uint64(2**32), np.uint64(2**64 - 2**44)
"""Floats decide only if the first word of W lies in between: closer to 0 or 1 it does not tell T
well enough.
"""

_FAR = np.uint64(2**63 - 1)

_FARTHEST = 700.0
"""e^−700 is a normal float.

A run with a larger x has T > 2⁸⁰⁰ where floats decide, and is never the earliest.
"""

_LARGEST_UNIT = Fraction(2**64)
"""For floats only: with this unit a distance of 1 is already farther."""

_CHECK = 2.0**-50
"""The largest relative error of numpy's functions at the points that are checked; the proof assumes
it at all others, and would still hold with 2⁻⁴⁰."""

_POINTS = np.linspace(0, 1, 1024)
"""Shares of the ranges in which the functions are checked, with their ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The cells of many rows; those of one run have the same exponent."""

    exponents: Integers
    """Of each run, any int64; only the distance from the smallest exponent of the row matters."""
    sizes: Integers
    """The number of its cells, at least 1."""
    rows: Integers
    """The first run of each row; the first row begins at 0, and no row is empty."""
    cell: Callable[[Integers, Integers], Integers]
    """The cells of some runs by their number in the run, from 0."""


def choose(runs: Runs, unit: Fraction, *, entropy: Entropy | None = None) -> Integers:
    """For each row the chosen cell: a uniform choice among the cells that survive."""
    _require_runs(runs, unit)
    _check_floats()
    entropy = heard(entropy or keystream())
    winners = _winners(runs, unit, entropy)
    chosen = runs.cell(winners, below_each(runs.sizes[winners], entropy))
    note("choice", unit, chosen, runs, entropy)
    return chosen


def below_each(limits: Integers, entropy: Entropy) -> Integers:
    """For each limit a uniform integer in [0, limit), by rejection as in `coin.below`."""
    words = np.empty(limits.size, np.int64)
    entropy.fill(words)
    uniform, bounds = words.view(np.uint64), limits.view(np.uint64)
    # 2⁶⁴ mod limit: so many words lie beyond its last multiple
    beyond = (np.uint64(0) - bounds) % bounds
    for index in np.flatnonzero(uniform > ~beyond).tolist():
        uniform[index] = below(int(limits[index]), entropy)
    return np.remainder(uniform, bounds).view(np.int64)


def common_unit(first: Fraction, second: Fraction) -> tuple[Fraction, int, int]:
    """The largest unit of which two rates, not both 0, are whole multiples, and the two multiples.

    A cell that overshoots at one rate and undershoots at another has the exponent
    overshoot·multiple + undershoot·other multiple, in this unit.

    >>> common_unit(Fraction(7, 10), Fraction(3, 10))
    (Fraction(1, 10), 7, 3)
    """
    if min(first, second) < 0 or first == second == 0:
        raise InvalidParameter(f"rates must not be negative, nor both 0, got {first} and {second}")
    across = math.gcd(first.numerator * second.denominator, second.numerator * first.denominator)
    unit = Fraction(across, first.denominator * second.denominator)
    return unit, int(first / unit), int(second / unit)


def _require_runs(runs: Runs, unit: Fraction) -> None:
    arrays = (runs.exponents, runs.sizes, runs.rows)
    if any(
        not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != 1
        for array in arrays
    ):
        raise InvalidParameter("exponents, sizes and rows must be one-dimensional arrays of int64")
    if runs.exponents.size == 0 or runs.rows.size == 0 or runs.sizes.size != runs.exponents.size:
        raise InvalidParameter("rows must have at least one cell, and every run a size")
    if (
        runs.rows[0] != 0
        or (np.diff(runs.rows, append=runs.sizes.size) < 1).any()
        or runs.sizes.min() < 1
    ):
        raise InvalidParameter(
            "rows must begin at run 0 and have at least one run each, and runs at least one cell"
        )
    if unit <= 0:
        raise InvalidParameter(f"unit must be positive, got {unit}")


def _winners(runs: Runs, unit: Fraction, entropy: Entropy) -> Integers:
    """For each row the run with the earliest time."""
    exponents, sizes, rows = runs.exponents, runs.sizes, runs.rows
    lengths = np.diff(rows, append=exponents.size)
    smallest = np.minimum.reduceat(exponents, rows)
    # distances of int64 lie in [0, 2⁶⁴): the difference modulo 2⁶⁴ is exact
    distances = np.subtract(exponents, np.repeat(smallest, lengths)).view(np.uint64)
    words = np.empty(exponents.size, np.int64)
    entropy.fill(words)
    uniform = words.view(np.uint64)
    unit_float = float(min(unit, _LARGEST_UNIT))
    earliest = _lower_times(uniform, sizes, distances, unit_float)
    # only runs that may come before the one where the bound is smallest can be the earliest
    indices = np.flatnonzero(earliest == np.repeat(np.minimum.reduceat(earliest, rows), lengths))
    leaders = indices[np.searchsorted(indices, rows)]
    limits = _times(uniform[leaders], sizes[leaders], distances[leaders], unit_float) * (1 + _DOUBT)
    rivals = np.flatnonzero(earliest <= np.repeat(limits, lengths))
    times = _times(uniform[rivals], sizes[rivals], distances[rivals], unit_float)
    starts = np.searchsorted(rivals, rows)
    numbers = np.diff(starts, append=rivals.size)
    near = np.flatnonzero(
        times <= np.repeat(np.minimum.reduceat(times, starts) * (1 + _DOUBT), numbers)
    )
    first_near = np.searchsorted(near, starts)
    winners = rivals[near[first_near]]
    certain = np.logical_and.reduceat(
        (uniform[rivals] >= _SHORT) & (uniform[rivals] < _LONG), starts
    )
    in_doubt = (np.diff(first_near, append=near.size) > 1) | ~certain
    for row in np.flatnonzero(in_doubt & (numbers > 1)).tolist():
        some = rivals[starts[row] : starts[row] + numbers[row]]
        pairs = zip(distances[some].tolist(), sizes[some].tolist(), strict=True)
        facts = [(unit * distance, size) for distance, size in pairs]
        winners[row] = some[_earliest(facts, uniform[some].tolist(), entropy.more)]
    return winners


def _lower_times(words: Words, sizes: Integers, distances: Words, unit: float) -> Floats:
    """W/m·(1 + x/16)¹⁶, which is at most T, as 1 − (1−W)^(1/m) ≥ W/m and e^(x/16) ≥ 1 + x/16."""
    # as int64, which becomes a float in a fifth of the time of uint64; a smaller distance gives a
    # lower bound, too
    growth = np.minimum(distances, _FAR).view(np.int64).astype(np.float64)
    np.multiply(growth, unit / 16, growth)
    np.minimum(growth, _FARTHEST / 16, out=growth)
    np.add(growth, 1.0, growth)
    for _ in range(4):
        np.multiply(growth, growth, growth)
    np.divide(growth, sizes, growth)
    bounds = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    np.multiply(bounds, growth, bounds)
    return np.multiply(bounds, 2.0**-63, bounds)


def _times(words: Words, sizes: Integers, distances: Words, unit: float) -> Floats:
    """T of runs, where floats decide; otherwise at least T, if x is at most 700."""
    uniform = np.maximum(words, _SHORT).astype(np.float64) * 2.0**-64
    shares = -np.expm1(np.log1p(-np.minimum(uniform, 1 - 2.0**-20)) / sizes)
    shares = np.where(sizes == 1, uniform, np.where(words < _LONG, shares, 1.0))
    times: Floats = shares / np.exp(np.maximum(distances.astype(np.float64) * -unit, -_FARTHEST))
    return times


def _earliest(
    runs: Sequence[tuple[Fraction, int]], words: Sequence[int], more: Callable[[], int]
) -> int:
    """The index of the run with the smallest T, of runs with these x and m, each with a W that
    begins with its word.

    T grows with W, which lies in [b, b+1)/2^width after `width` bits. All runs that can still be
    the earliest are given 64 more bits at a time.
    """
    bits, width, rivals = list(words), 64, list(range(len(runs)))
    while True:
        with ctx.workprec(2 * width + max(int(x).bit_length() for x, _ in runs)):
            lows = {rival: _log_time(*runs[rival], bits[rival], width) for rival in rivals}
            highs = {rival: _log_time(*runs[rival], bits[rival] + 1, width) for rival in rivals}
            first = min(rivals, key=lambda rival: highs[rival].mid())
            rivals = [rival for rival in rivals if rival == first or not lows[rival] > highs[first]]
        if len(rivals) == 1:
            return first
        for rival in rivals:
            bits[rival] = bits[rival] << 64 | more()
        width += 64


def _log_time(x: Fraction, size: int, bits: int, width: int) -> arb:
    """ln T at W = bits/2^width."""
    if bits == 0:
        return arb("-inf")
    if bits == 1 << width:  # W = 1
        return ball(x)
    return ball(x) + (-((-arb(bits) * arb((1, -width))).log1p() / size).expm1()).log()


@cache
def _check_floats() -> None:
    """Refuse a machine whose elementary functions have a relative error of more than 2⁻⁵⁰ in the
    ranges in use.

    These are x up to 700, W from 2⁻³² to 1 − 2⁻²⁰, and ln(1−W)/m, from −13.9 to −2⁻⁵⁰ at the 2¹⁸
    cells of a quantile.
    """
    small, large = 2.0 ** (-1 - 31 * _POINTS[1::2]), 1 - 2.0 ** (-1 - 19 * _POINTS[1::2])
    for function, exact, arguments in (
        (np.exp, arb.exp, -_FARTHEST * _POINTS),
        (np.expm1, arb.expm1, -13.9 * 2.0 ** (-54 * _POINTS)),
        (np.log1p, arb.log1p, -np.concatenate([small, large])),
    ):
        for argument, measured in zip(
            arguments.tolist(), function(arguments).tolist(), strict=True
        ):
            true = nearest(lambda argument=argument, exact=exact: exact(arb(argument)))  # type: ignore[misc]
            if not abs(measured - true) <= _CHECK * abs(true):
                raise EngineFailed(
                    "the exponential is too inexact on this machine; nothing was drawn"
                )
