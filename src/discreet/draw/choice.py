"""Exact choices among cells by permute-and-flip [MS20], in the form where every cell tosses one coin.

    cell v survives with probability e^(−x(v)), x(v) = unit·(exponent(v) − smallest exponent), independently;
    the answer is one survivor, all equally likely. The best cells have x = 0, so at least one cell survives.

If one person moves the exponents by amounts that differ by at most ε/unit between any two cells, the choice is
ε-differentially private. `coin.decide` could toss the coins one by one; `choose` first compares floats: for the first
word u of V let d = u/2⁶⁴ − exp(−x). If |d| > E = 2⁻⁴⁴, its sign decides V < e^(−x), because the errors are at most

    2⁻⁵⁴ + 2⁻⁶⁴   u as a float, and V lies in [u, u+1)/2⁶⁴
    2·2⁻⁵³        x̂ = x(1+θ), |θ| < 3.01·2⁻⁵³ (two conversions, one product), and max x·e^(−x(1−θ)) < 0.37;
                  clamping the unit at 2⁶⁴ (x is 0 or huge) or to normal floats moves e^(−x) by less than 2⁻⁶⁴
    2⁻⁴⁵          np.exp, as an absolute error; checked on first use against 2⁻⁵², so with a margin of 128
    2⁻⁵⁴          the difference                                                        sum: below 2⁻⁴⁴

The other coins, each with a probability of 2⁻⁴³, go through `coin.decide` with the same word. These include every V < E
of a cell far from the best, so a cell that survives once in 2⁶⁴ times, or less often, has its exact probability. No
data raises or overflows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.calibrate.ball import nearest
from discreet.draw.coin import below, decide, exponential
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.noted import note
from discreet.errors import EngineFailed, InvalidParameter

_BLOCK = 2**15
"""Cells per pass: the words, gaps and floats of a block take 1 MiB together and stay in the caches."""

_DOUBT = 2.0**-44
"""E of the module's docstring."""

_LARGEST_UNIT = Fraction(2**64)
"""For the comparison of floats only: with this unit a gap of 1 is already beyond the first 64 bits of V."""

_EXP_CHECK = 2.0**-52
"""The largest error of `np.exp` at the points that are checked on (−∞, 0]; the proof allows 2⁻⁴⁵."""


def choose(exponents: NDArray[np.int64], unit: Fraction, *, entropy: Entropy | None = None) -> NDArray[np.int64]:
    """For each row the index of the chosen cell: a uniform choice among the cells that survive.

    Exponents may be any int64; only their distance from the smallest exponent of the row matters.
    """
    note("choice", unit, len(exponents))
    entropy = entropy or keystream()
    alive = survivors(exponents, unit, entropy=entropy)
    numbers = np.count_nonzero(alive, axis=1)
    picks = np.array([below(number, entropy) for number in numbers.tolist()])
    indices = np.flatnonzero(alive)[np.cumsum(numbers) - numbers + picks]
    chosen: NDArray[np.int64] = indices - np.arange(len(alive)) * alive.shape[1]
    return chosen


def survivors(exponents: NDArray[np.int64], unit: Fraction, *, entropy: Entropy | None = None) -> NDArray[np.bool_]:
    """Which cells of each row survive, each independently with probability e^(−x(v))."""
    if not isinstance(exponents, np.ndarray) or exponents.dtype != np.int64 or exponents.ndim != 2:
        raise InvalidParameter("exponents must be a two-dimensional array of int64")
    if exponents.size == 0:
        raise InvalidParameter("exponents must have at least one cell, got none")
    if unit <= 0:
        raise InvalidParameter(f"unit must be positive, got {unit}")
    _checked_exp()
    entropy = entropy or keystream()
    minus_unit = -float(min(unit, _LARGEST_UNIT))
    # distances of int64 lie in [0, 2⁶⁴): the difference modulo 2⁶⁴ is exact
    distances = np.subtract(exponents, exponents.min(axis=1, keepdims=True)).view(np.uint64).reshape(-1)
    alive = np.empty(distances.size, np.bool_)
    with np.errstate(all="ignore"):  # exp of a far cell is 0
        for start in range(0, distances.size, _BLOCK):
            gaps = distances[start : start + _BLOCK]
            words = np.empty(gaps.size, np.int64)
            entropy.fill(words)
            uniform = words.view(np.uint64)
            for index in _filter(uniform, gaps, minus_unit, alive[start : start + _BLOCK]):
                chance = exponential(unit * int(gaps[index]))
                alive[start + index] = decide(chance, int(uniform[index]), entropy.more)
    return alive.reshape(exponents.shape)


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


def _filter(
    uniform: NDArray[np.uint64], gaps: NDArray[np.uint64], minus_unit: float, alive: NDArray[np.bool_]
) -> list[int]:
    """Write the survivors into `alive`; return the indices that only the exact path can decide."""
    chances = gaps.astype(np.float64)
    np.multiply(chances, minus_unit, chances)
    np.exp(chances, chances)
    distances = uniform.astype(np.float64)
    np.multiply(distances, 2.0**-64, distances)
    np.subtract(distances, chances, distances)
    np.less(distances, 0.0, alive)
    np.abs(distances, distances)
    indices: list[int] = np.flatnonzero(distances <= _DOUBT).tolist()
    return indices


@cache
def _checked_exp() -> None:
    """Refuse a machine whose `exp` has an error of more than 2⁻⁵²; the proof allows 2⁻⁴⁵."""
    points = -np.arange(1024) / 23.0
    for point, measured in zip(points.tolist(), np.exp(points).tolist(), strict=True):
        exact = nearest(lambda point=point: arb(point).exp())  # type: ignore[misc]
        if not abs(measured - exact) <= _EXP_CHECK:
            raise EngineFailed("the exponential is too inexact on this machine; nothing was drawn")
