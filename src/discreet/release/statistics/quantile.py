"""Quantiles by exact choice among cells, and what can be said of them.

A quantile q is searched at rank r = q·N (N the number of records) among the K points of a grid: permute-and-flip with

    change-one   rate ε/2                     one move shifts gaps by one, up on one side, down on the other
    add-remove   rate ε/(2·max(q, 1−q))       N moves, too, and r with it

P(rank error ≥ T) ≤ K/2·e^(−rate·T), for every data set. A bracket of two more choices at r ∓ T, T = ln(K/β)/rate, holds
the quantile with probability 1 − β; as T grows with ln K, it is chosen on a coarser grid. Minimum and maximum aim at
the s-th record from the end with unequal rates, s = ⌈ln K/0.7ε⌉: no private method can find the last one. A cell is a
grid point with everything that is rounded to it, so ties are no problem.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.ball import ball, upper_bound
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import Exact
from discreet.parameters import Neighbors
from discreet.release.mechanism import choose_cell

CELL_BITS = 16
BRACKET_BITS = 9
EXTREME_BITS = 5
"""Grids of quantiles have about 2¹⁶ points, those of their brackets 2⁹, those of minimum and maximum 2⁵."""

VALUE_PART = Fraction(3, 4)
"""Of a quantile's ε, what its value gets where a bracket is released with it; each end gets half of the rest."""

END_RATE = (1 - VALUE_PART) / 2 / VALUE_PART
"""The rate of an end of the bracket, as a share of the value's."""

_OVER, _UNDER = Fraction(7, 10), Fraction(3, 10)

Counts = Exact[NDArray[np.int64]]


def rank_rate(share: Fraction, neighbors: Neighbors, epsilon: Fraction) -> Fraction:
    """The rate of permute-and-flip for a quantile, per rank."""
    return epsilon / 2 if neighbors == "change-one" else epsilon / (2 * max(share, 1 - share))


@lru_cache(maxsize=256)
def rank_error(cells: int, rate: Fraction, miss: Fraction) -> Fraction:
    """T with P(rank error ≥ T) ≤ miss, in records; rounded up to quarters."""
    exact = upper_bound(lambda: ball(cells / (2 * miss)).log() / ball(rate))
    return Fraction(math.ceil(exact * 4), 4)


def find(counts: Counts, grid: ValueGrid, share: Fraction, rate: Fraction) -> int:
    """The grid point chosen for a quantile, at this rate per rank."""
    return grid.lower + choose_cell(counts, share=share, offset=Fraction(0), over=rate, under=rate)


def find_bracket(
    counts: Counts, grid: ValueGrid, share: Fraction, rate: Fraction, confidence: Fraction
) -> tuple[int, int]:
    """Two grid points between which the quantile lies at this confidence, each chosen at this rate."""
    reach = rank_error(grid.width + 3, rate, (1 - confidence) / 2)
    # the ends may lie below or above everybody: two more cells, which hold nobody
    low, high = (
        grid.lower - 1 + choose_cell(counts, share=share, offset=offset, over=rate, under=rate, beyond=True)
        for offset in (-reach, reach)
    )
    return max(low, grid.lower), min(high, grid.upper)


def records_beyond(grid: ValueGrid, epsilon: Fraction) -> int:
    """The record from the end that minimum and maximum aim at."""
    return math.ceil(upper_bound(lambda: ball(grid.width + 1).log() / ball(_OVER * epsilon)))


def find_extreme(counts: Counts, grid: ValueGrid, side: Literal["min", "max"], epsilon: Fraction) -> tuple[int, int]:
    """(grid point, how many records are about to lie beyond it)."""
    beyond = records_beyond(grid, epsilon)
    if side == "max":
        index = choose_cell(
            counts, share=Fraction(1), offset=Fraction(-beyond), over=_OVER * epsilon, under=_UNDER * epsilon
        )
    else:
        index = choose_cell(
            counts, share=Fraction(0), offset=Fraction(beyond), over=_UNDER * epsilon, under=_OVER * epsilon
        )
    return grid.lower + index, beyond


def coarser(counts: Counts, grid: ValueGrid) -> tuple[Counts, ValueGrid]:
    """The same counts on a grid for brackets: every point goes to the nearest one of a coarser grid."""
    coarse, starts = _coarse(grid)
    return counts.map(lambda fine: np.add.reduceat(fine, starts)), coarse


@lru_cache(maxsize=64)
def _coarse(grid: ValueGrid) -> tuple[ValueGrid, NDArray[np.int64]]:
    """The coarser grid, and for each of its points the first finer one that goes to it."""
    times = 2 ** max(0, (grid.width + 1).bit_length() - 1 - BRACKET_BITS)
    lower, upper = (2 * grid.lower + times) // (2 * times), (2 * grid.upper + times) // (2 * times)
    coarse = ValueGrid(
        exponent=grid.exponent + times.bit_length() - 1, lower=lower, upper=upper, exact=times == 1 and grid.exact
    )
    points = (2 * (grid.lower + np.arange(grid.width + 1)) + times) // (2 * times) - lower
    return coarse, np.searchsorted(points, np.arange(coarse.width + 1))
