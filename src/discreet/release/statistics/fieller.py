"""The ends of all z with |numerator − z·denominator| ≤ reach(z), for many groups at once (Fieller).

The reach is known at points, and linear between them. On either side of numerator/denominator, both sides of the
inequality are linear between two points, so the ends solve linear equations. This is post-processing, so floats are
allowed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.statistics.spread import Floats

Ends: TypeAlias = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""

_ROWS, _MANY_ROWS = 256, 2**14
"""Rows that are processed at a time, at all points or at a few of them, so that they stay in the caches."""

_NEWTON = 10  # steps of Newton's method at most; two or three are the rule
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
        low[block], high[block], sure[block] = _fitted(
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


def _fitted(
    numerators: Floats, denominators: Floats, points: Floats, reach: Floats, hull: Floats, slack: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The same ends, with the same floats, by Newton's method, and whether they are certain.

    The side left of the quotient, numerator − z·denominator − hull(z), is concave in z: if it is positive at the first
    point, it falls to 0 once. The reach is above the hull by at most `slack`. So the side with the reach falls to 0 at
    the same point if, with hull + slack, it is positive at the point before and at the first point; and nowhere if it
    is positive at both ends. The right side is the mirror image, with z from the last point down.
    """
    sign = np.where(denominators < 0, -1.0, 1.0)
    slope, start, ends = denominators * sign, numerators * sign, points[-1] + points[0]
    low, sure, never = _fallen(start, slope, points, points, reach, hull, slack)
    high, also_sure, also_never = _fallen(
        start, slope, (ends - points)[::-1], points[::-1], reach[::-1], hull[::-1], slack
    )
    empty = never | also_never
    low, high = np.where(empty, points[0], low), np.where(empty, points[-1], ends - high)
    return low, high, empty | (sure & also_sure)


def _fallen(
    start: Floats, slope: Floats, points: Floats, plain: Floats, reach: Floats, hull: Floats, slack: float
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Where each row first falls to the reach, linear between points; whether that is certain; if it never does.

    `plain` are the points before they were turned, in the same order; they decide, with the floats of `_some_edges`.
    """

    def height(point: Any, start: Floats, slope: Floats) -> Floats:
        line: Floats = plain[point] * slope
        return start - line if plain is points else line - start

    at_first, at_last = height(0, start, slope), height(-1, start, slope)
    at_once, later = at_first <= hull[0], at_first > hull[0] + slack
    never = later & (at_last > hull[-1] + slack)
    crossing, sure = np.full(start.size, points[0]), at_once.copy()
    chosen = later & ~never
    rows: Any = slice(None) if chosen.all() else np.flatnonzero(chosen)
    if chosen.any():
        start, slope = start[rows], slope[rows]
        before = _segments(at_first[rows], slope, points, hull)
        after = before + 1
        over, under = height(before, start, slope), height(after, start, slope)
        sure[rows] = (under <= hull[after]) & (over > (hull + slack)[before])
        above, below = over - reach[before], under - reach[after]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing[rows] = points[before] + np.diff(points)[before] * (above / (above - below))
    return crossing, sure, never


def _segments(heights: Floats, slope: Floats, points: Floats, hull: Floats) -> NDArray[np.int64]:
    """The number of the evenly spaced points after which a line of this height at the first point falls to the hull.

    Newton's method from where the line is 0 never goes past the root of a concave function, and among linear pieces it
    soon arrives. A number that is wrong, where it has not, costs time only.
    """
    step, last = points[1] - points[0], len(points) - 2
    rise = np.diff(hull) / step
    base = hull[:-1] - rise * (points[:-1] - points[0])

    def numbers(distance: Floats) -> NDArray[np.int64]:
        pieces: NDArray[np.int64] = np.fmin(np.fmax(distance / step, 0), last).astype(np.int64)  # NaN and −∞ become 0
        return pieces

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        piece = numbers(heights / slope)
        for _ in range(_NEWTON):
            previous, piece = piece, numbers((heights - base[piece]) / (slope + rise[piece]))
            if (piece == previous).all():
                break
    return piece


def _crossed(heights: Floats, fallen: NDArray[np.bool_], points: Floats) -> Floats:
    """Where each row first falls to 0, linear between the points."""
    first = fallen.argmax(axis=1)
    before, rows = np.maximum(first - 1, 0), np.arange(len(heights))
    above, below = heights[rows, before], heights[rows, first]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(first > 0, above / (above - below), 0.0)
    crossing: Floats = points[before] + (points[first] - points[before]) * share
    return crossing
