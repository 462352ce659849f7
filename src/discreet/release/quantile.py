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
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.ball import ball, upper_bound
from discreet.calibrate.bounds import Neighbors
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import Exact
from discreet.release.mechanism import choose_cell

CELL_BITS = 16
BRACKET_BITS = 9
EXTREME_BITS = 5
"""Grids of quantiles have about 2¹⁶ points, those of their brackets 2⁹, those of minimum and maximum 2⁵."""

_OVER, _UNDER = Fraction(7, 10), Fraction(3, 10)

Counts = Exact[NDArray[np.int64]]


def rank_rate(share: Fraction, neighbors: Neighbors, epsilon: Fraction) -> Fraction:
    """The rate of permute-and-flip for a quantile, per rank."""
    return epsilon / 2 if neighbors == "change-one" else epsilon / (2 * max(share, 1 - share))


def rank_error(cells: int, rate: Fraction, miss: Fraction) -> Fraction:
    """T with P(rank error ≥ T) ≤ miss, in records; rounded up to quarters."""
    exact = upper_bound(lambda: ball(cells / (2 * miss)).log() / ball(rate))
    return Fraction(math.ceil(exact * 4), 4)


def find(counts: Counts, grid: ValueGrid, share: Fraction, neighbors: Neighbors, epsilon: Fraction) -> int:
    """The grid point chosen for a quantile, with all of ε."""
    rate = rank_rate(share, neighbors, epsilon)
    return grid.lower + choose_cell(counts, share=share, offset=Fraction(0), over=rate, under=rate)


def find_bracket(
    counts: Counts, grid: ValueGrid, share: Fraction, neighbors: Neighbors, epsilon: Fraction, confidence: Fraction
) -> tuple[int, int]:
    """Two grid points between which the quantile lies at this confidence, with half of ε for each."""
    rate = rank_rate(share, neighbors, epsilon / 2)
    reach = rank_error(grid.width + 3, rate, (1 - confidence) / 2)
    # the ends may lie below or above everybody: two more cells, which hold nobody
    low, high = (
        grid.lower - 1 + choose_cell(counts, share=share, offset=offset, over=rate, under=rate, beyond=True)
        for offset in (-reach, reach)
    )
    return max(low, grid.lower), min(high, grid.upper)


def find_extreme(counts: Counts, grid: ValueGrid, side: Literal["min", "max"], epsilon: Fraction) -> tuple[int, int]:
    """(grid point, how many records are about to lie beyond it)."""
    beyond = math.ceil(upper_bound(lambda: ball(grid.width + 1).log() / ball(_OVER * epsilon)))
    if side == "max":
        index = choose_cell(
            counts, share=Fraction(1), offset=Fraction(-beyond), over=_OVER * epsilon, under=_UNDER * epsilon
        )
    else:
        index = choose_cell(
            counts, share=Fraction(0), offset=Fraction(beyond), over=_UNDER * epsilon, under=_OVER * epsilon
        )
    return grid.lower + index, beyond
