"""Which cells of a fine grid a quantile is chosen among first: points a noise scale apart; the others have a handicap.

Permute-and-flip among all cells of a fine grid errs by one noise scale (1/rate ranks) on average; among points that are
one to two and a half scales apart it errs by 0.85 of one, because the nearest point always survives and few others do.
Points much farther apart than that lose more than they gain: at w scales the error is about w/4. So the other cells
stay in the choice, with a handicap that makes all of them together count as an eighth of the points. Where the points
are too far apart, or many records share one value between them, the other cells win, and the loss is bounded.

A handicap does not depend on the data: one unit moves the costs of all cells exactly as it does without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_OTHERS = 3
"""The other cells together count as 2⁻³ of the points."""

_FEWEST_BITS = 5
"""There are about 2⁵ points at least."""

_LOG_2 = Fraction(7, 10)
"""A little more than ln 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Every 2^bits-th point of a grid whose first point is the multiple `lower` of its step."""

    bits: int
    lower: int

    @property
    def handicap(self) -> Fraction:
        """Of the other cells, in logarithms of the chance to survive."""
        return _LOG_2 * (self.bits + _OTHERS)

    def among(self, cells: int) -> NDArray[np.bool_]:
        """Which cells of the grid are points."""
        return _among(self, cells)


def spread_points(lower: int, cells: int, spacing: Fraction) -> Points | None:
    """Points at most so many cells apart, or None where these are all cells."""
    bits = min(max(0, math.floor(spacing)).bit_length(), cells.bit_length() - _FEWEST_BITS) - 1
    return Points(bits=bits, lower=lower) if bits > 0 else None


WORST_WEIGHT = 11
"""Σ e^(handicap − own handicap) of evenly spaced points is at most so many times the number of cells.

With at least 2⁵ points of at most 2²¹ cells: 33/32·e^(0.7·(b+3))/2^b + 1 for b ≤ 16.
"""


@lru_cache(maxsize=16)
def _among(points: Points, cells: int) -> NDArray[np.bool_]:
    mask = np.zeros(cells, np.bool_)
    mask[-points.lower % 2**points.bits :: 2**points.bits] = True
    mask.flags.writeable = False
    return mask
