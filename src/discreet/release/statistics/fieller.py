"""The ends of all z with |numerator − z·denominator| ≤ reach(z), for many groups at once (Fieller).

The reach is known at points, and linear between them. On either side of numerator/denominator, both sides of the
inequality are linear between two points, so the ends solve linear equations. This is post-processing, so floats are
allowed.
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
"""Rows that are processed at a time, at all points or at a few of them, so that they stay in the caches."""

_ROUNDING = 1e-12  # more than the rounding error of a line in floats, as a share of the largest reach


def edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> Ends:
    """For each numerator, the ends of the set in the module's docstring; all of [first, last] if it is empty.

    `reach` has a row for each numerator, or one row for all of them.
    """
    if len(reach) > 1:
        return _at_all_points(numerators, denominators, points, reach)
    hull, slack = _hull(points, reach[0])
    low, high, sure = np.empty_like(numerators), np.empty_like(numerators), np.empty(len(numerators), bool)
    for start in range(0, len(numerators), _MANY_ROWS):
        block = slice(start, start + _MANY_ROWS)
        low[block], high[block], sure[block] = _halved(
            numerators[block], denominators[block], points, reach[0], hull, slack
        )
    if not sure.all():
        low[~sure], high[~sure] = _at_all_points(numerators[~sure], denominators[~sure], points, reach)
    return low, high


def _at_all_points(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> Ends:
    blocks = [
        _some_edges(numerators[block], denominators[block], points, reach if len(reach) == 1 else reach[block])
        for block in (slice(start, start + _ROWS) for start in range(0, len(numerators), _ROWS))
    ]
    low, high = (np.concatenate(side) for side in zip(*blocks, strict=True))
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


def _hull(points: Floats, reach: Floats) -> tuple[Floats, float]:
    """The largest convex reach that is nowhere above this reach, and its largest distance below it."""
    corners: list[int] = []
    for index in range(len(points)):
        while len(corners) > 1:
            first, second = corners[-2:]
            rise = (reach[second] - reach[first]) * (points[index] - points[first])
            if rise < (reach[index] - reach[first]) * (points[second] - points[first]):
                break
            corners.pop()
        corners.append(index)
    hull: Floats = np.minimum(np.interp(points, points[corners], reach[corners]), reach)
    return hull, float((reach - hull).max() + _ROUNDING * np.abs(reach).max())


def _halved(
    numerators: Floats, denominators: Floats, points: Floats, reach: Floats, hull: Floats, slack: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The same ends, with the same floats, by bisection, and whether they are certain.

    The side left of the quotient, numerator − z·denominator − hull(z), is concave in z: if it is positive at the first
    point, it falls to 0 once, which bisection finds among 129 points in 7 steps. The reach is above the hull by at most
    `slack`. So the side with the reach falls to 0 at the same point if, with hull + slack, it is positive at the point
    before and at the first point; and nowhere if it is positive at both ends. The right side is the mirror image.
    """
    sign = np.where(denominators < 0, -1.0, 1.0)
    slope, start, last = denominators * sign, numerators * sign, len(points) - 1
    turned = (points[-1] + points[0] - points)[::-1]

    def left(index: NDArray[np.int64]) -> Floats:
        height: Floats = -(points[index] * slope - start)
        return height

    def right(index: NDArray[np.int64]) -> Floats:
        height: Floats = points[last - index] * slope - start
        return height

    low, sure, never = _fallen(left, points, reach, hull, slack, len(start))
    high, also_sure, also_never = _fallen(right, turned, reach[::-1], hull[::-1], slack, len(start))
    empty = never | also_never
    low, high = np.where(empty, points[0], low), np.where(empty, points[-1], points[-1] + points[0] - high)
    return low, high, empty | (sure & also_sure)


def _fallen(
    height: Callable[[NDArray[np.int64]], Floats],
    points: Floats,
    reach: Floats,
    hull: Floats,
    slack: float,
    rows: int,
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Where each row first falls to the reach, linear between points; whether that is certain; if it never does."""
    first, last = np.zeros(rows, np.int64), np.full(rows, len(points) - 1)
    before, after = first, last
    for _ in range(math.ceil(math.log2(len(points) - 1))):
        middle = (before + after) >> 1
        fallen = height(middle) <= hull[middle]
        before, after = np.where(fallen, before, middle), np.where(fallen, middle, after)
    at_first = height(first)
    at_once, later = at_first <= hull[0], at_first > hull[0] + slack
    after = np.where(at_once, 0, after)
    before = np.maximum(after - 1, 0)
    over, under = height(before), height(after)
    sure = at_once | ((under <= hull[after]) & (over > hull[before] + slack) & later)
    above, below = over - reach[before], under - reach[after]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(after > 0, above / (above - below), 0.0)
    return points[before] + (points[after] - points[before]) * share, sure, later & (height(last) > hull[-1] + slack)


def _crossed(heights: Floats, fallen: NDArray[np.bool_], points: Floats) -> Floats:
    """Where each row first falls to 0, linear between the points."""
    first = fallen.argmax(axis=1)
    before, rows = np.maximum(first - 1, 0), np.arange(len(heights))
    above, below = heights[rows, before], heights[rows, first]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(first > 0, above / (above - below), 0.0)
    crossing: Floats = points[before] + (points[first] - points[before]) * share
    return crossing
