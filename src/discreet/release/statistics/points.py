"""Which cells of a fine grid a quantile is chosen among first: points a noise scale apart; the
others have a handicap.

Permute-and-flip among all cells of a fine grid errs by one noise scale (1/rate ranks) on average;
among points that are one to two and a half scales apart it errs by 0.85 of one, because the nearest
point always survives and few others do. Points much farther apart than that lose more than they
gain: at w scales the error is about w/4. So the other cells stay in the choice, with a handicap
that makes all of them together count as an eighth of the points. Where the points are too far
apart, or many records share one value between them, the other cells win, and the loss is bounded.

A handicap does not depend on the data: one unit moves the costs of all cells exactly as it does
without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.draw.choice import Runs

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


def spread_points(lower: int, cells: int, spacing: Fraction) -> Points | None:
    """Points at most so many cells apart, or None where these are all cells."""
    bits = min(max(0, math.floor(spacing)).bit_length(), cells.bit_length() - _FEWEST_BITS) - 1
    return Points(bits=bits, lower=lower) if bits > 0 else None


WORST_WEIGHT = 11
"""Σ e^(handicap − own handicap) of evenly spaced points is at most so many times the number of
cells.

With at least 2⁵ points of at most 2²¹ cells: 33/32·e^(0.7·(b+3))/2^b + 1 for b ≤ 16.
"""


def split_runs(
    runs: Runs, firsts: NDArray[np.int64], points: Sequence[Points | None], unit: Fraction
) -> Runs:
    """Runs of cells that follow each other, each as a run of its points and one of its other cells,
    with a handicap.

    `firsts` has the first cell of each run; where a row has no points, all of its cells are points.
    A point has the number 2^bits·k + offset. The others come in blocks of 2^bits − 1 cells between
    two points.
    """
    lengths = np.diff(runs.rows, append=runs.sizes.size)
    bits = np.repeat([0 if some is None else some.bits for some in points], lengths)
    offsets = np.repeat(
        [0 if some is None else -some.lower % 2**some.bits for some in points], lengths
    )
    handicaps = {some: 0 if some is None else math.ceil(some.handicap / unit) for some in {*points}}
    before = firsts - offsets - 1
    inside = ((before + runs.sizes) >> bits) - (before >> bits)
    sizes = np.stack([inside, runs.sizes - inside], axis=1).ravel()
    added = np.repeat([handicaps[some] for some in points], lengths)
    exponents = np.stack([runs.exponents, runs.exponents + added], axis=1).ravel()

    def cell(chosen: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        run = chosen >> 1
        period, first = 1 << bits[run], firsts[run]
        # other cells between the run and the point before it
        from_point = (first - offsets[run] - 1) % period
        block, rest = np.divmod(numbers + from_point, np.maximum(period - 1, 1))
        others = first - from_point + block * period + rest
        cells: NDArray[np.int64] = np.where(
            chosen & 1, others, first + period - 1 - from_point + numbers * period
        )
        return cells

    return Runs(exponents=exponents, sizes=sizes, rows=2 * runs.rows, cell=cell)
