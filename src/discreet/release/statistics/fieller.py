"""The ends of all z with |numerator − z·denominator| ≤ reach(z), for many groups at once (Fieller).

The reach is known at points, and linear between them. Left of numerator/denominator and right of it both sides of the
inequality are linear between two points, and so are the equations of the ends. Floats may be: this is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.statistics.spread import Floats

Ends: TypeAlias = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""

_ROWS, _MANY_ROWS = 256, 2**13
"""Rows of edges that are found at a time, at all points or at a few of them: they stay in the caches."""

_BENT, _STEEPER = 1e-9, 1 + 1e-6
"""A reach whose slope falls by less than that share of it is convex but for rounding; and a slope that is larger."""


def edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """For each numerator the ends of the set in the module's docstring; all of [first, last] where it is empty.

    `reach` has a row for each numerator, or one row for all of them.
    """
    if len(reach) > 1:
        return _in_blocks(_some_edges, numerators, denominators, points, reach)
    steep = np.abs(denominators) > np.abs(np.diff(reach[0]) / np.diff(points)).max() * _STEEPER
    if steep.all() or _is_convex(reach[0]):
        return _in_blocks(_halved_edges, numerators, denominators, points, reach)
    low, high = np.empty_like(numerators), np.empty_like(numerators)
    for some, of in ((steep, _halved_edges), (~steep, _some_edges)):
        low[some], high[some] = _in_blocks(of, numerators[some], denominators[some], points, reach)
    return low, high


def _in_blocks(
    edges_of: Callable[..., Ends], numerators: Floats, denominators: Floats, points: Floats, reach: Floats
) -> Ends:
    rows = _MANY_ROWS if edges_of is _halved_edges else _ROWS
    found = [
        edges_of(numerators[some], denominators[some], points, reach if len(reach) == 1 else reach[some])
        for some in (slice(at, at + rows) for at in range(0, max(len(numerators), 1), rows))
    ]
    low, high = (np.concatenate(side) for side in zip(*found, strict=True))
    return low, high


def _some_edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> tuple[Floats, Floats]:
    sign = np.where(denominators < 0, -1.0, 1.0)
    line = points * (denominators * sign)[:, None]
    line -= (numerators * sign)[:, None]
    right = line - reach
    left = np.negative(line, out=line)
    left -= reach
    falls, rises = left <= 0, right <= 0
    empty = ~(falls.any(axis=1) & rises.any(axis=1))
    low = _crossed(left, falls, points)
    turned = points[-1] + points[0] - points
    high = points[-1] + points[0] - _crossed(right[:, ::-1], rises[:, ::-1], turned[::-1])
    return np.where(empty, points[0], low), np.where(empty, points[-1], high)


def _is_convex(reach: Floats) -> bool:
    """Whether a reach bends upwards everywhere, at points of equal distance."""
    return bool((np.diff(reach, 2) >= -_BENT * np.abs(reach).max()).all())


def _halved_edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The same where the reach is convex, or nowhere as steep as the denominator: found by halving.

    The side left of the quotient, numerator − z·denominator − reach(z), is concave in z, or falls. If it is positive at
    the first point, it falls to 0 once: among 129 points that takes 7 steps, with the same floats as at all points.
    """
    sign = np.where(denominators < 0, -1.0, 1.0)
    slope, start, last = denominators * sign, numerators * sign, len(points) - 1
    turned = (points[-1] + points[0] - points)[::-1]

    def left(at: NDArray[np.int64]) -> Floats:
        found: Floats = -(points[at] * slope - start) - reach[0, at]
        return found

    def right(at: NDArray[np.int64]) -> Floats:
        found: Floats = points[last - at] * slope - start - reach[0, last - at]
        return found

    ends = np.zeros(len(start), np.int64), np.full(len(start), last)
    empty = ((left(ends[0]) > 0) & (left(ends[1]) > 0)) | ((right(ends[0]) > 0) & (right(ends[1]) > 0))
    low, high = _halved(left, *ends, points), points[-1] + points[0] - _halved(right, *ends, turned)
    return np.where(empty, points[0], low), np.where(empty, points[-1], high)


def _halved(
    height: Callable[[NDArray[np.int64]], Floats], first: NDArray[np.int64], last: NDArray[np.int64], points: Floats
) -> Floats:
    """Where each row first falls to 0, linear between the points, if it is positive at first and not at last."""
    before, after = first, last
    for _ in range(math.ceil(math.log2(len(points) - 1))):
        middle = (before + after) >> 1
        fallen = height(middle) <= 0
        before, after = np.where(fallen, before, middle), np.where(fallen, middle, after)
    at_once = height(first) <= 0
    after = np.where(at_once, 0, after)
    before = np.maximum(after - 1, 0)
    above, below = height(before), height(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(after > 0, above / (above - below), 0.0)
    found: Floats = points[before] + (points[after] - points[before]) * share
    return found


def _crossed(heights: Floats, fallen: NDArray[np.bool_], points: Floats) -> Floats:
    """Where each row first falls to 0, linear between the points."""
    first = fallen.argmax(axis=1)
    before, rows = np.maximum(first - 1, 0), np.arange(len(heights))
    above, below = heights[rows, before], heights[rows, first]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(first > 0, above / (above - below), 0.0)
    found: Floats = points[before] + (points[first] - points[before]) * share
    return found
