"""The ends of all z with |numerator − z·denominator| ≤ reach(z), for many groups at once (Fieller).

The reach is known at points, and linear between them. On either side of numerator/denominator, both
sides of the inequality are linear between two points, so the ends solve linear equations. This is
post-processing, so floats are allowed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.statistics.spread import Floats

Ends: TypeAlias = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""

_ROWS = 256
"""Rows that are processed at a time at all points, so that they stay in the caches."""

_NEWTON = 10  # steps of Newton's method at most; two or three are the rule
# more than the rounding error of a line in floats, as a share of the largest reach
_ROUNDING = 1e-12


def edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> Ends:
    """For each numerator, the ends of the set described above; [first, last] if it is empty.

    `reach` has a row for each numerator, or one row for all of them.
    """
    blocks = [
        _some_edges(
            numerators[block],
            denominators[block],
            points,
            reach if len(reach) == 1 else reach[block],
        )
        for block in (slice(start, start + _ROWS) for start in range(0, len(numerators), _ROWS))
    ]
    low, high = (np.concatenate(side) for side in zip(*blocks, strict=True))
    return low, high


def _some_edges(
    numerators: Floats, denominators: Floats, points: Floats, reach: Floats
) -> tuple[Floats, Floats]:
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


def hull_of(points: Floats, reach: Floats) -> tuple[Floats, float]:
    """The largest convex reach nowhere above this one, and its largest distance below it."""
    x, y, corners = points.tolist(), reach.tolist(), [0]
    for index in range(1, len(x)):
        while len(corners) > 1:
            first, second = corners[-2:]
            if (y[second] - y[first]) * (x[index] - x[first]) < (y[index] - y[first]) * (
                x[second] - x[first]
            ):
                break
            corners.pop()
        corners.append(index)
    hull: Floats = np.minimum(np.interp(points, points[corners], reach[corners]), reach)
    return hull, float((reach - hull).max() + _ROUNDING * np.abs(reach).max())


class SharedReach:
    """One reach for all groups, at evenly spaced points: the same floats, by Newton's method.

    The side left of the quotient, numerator − z·denominator − hull(z), is concave in z: if it is
    positive at the first point, it falls to 0 once. The reach is above the hull by at most `slack`.
    So the side with the reach falls to 0 at the same point if, with hull + slack, it is positive at
    the point before and at the first point; and nowhere if it is positive at both ends. The right
    side is the mirror image, with z from the last point down.
    """

    def __init__(
        self, points: Floats, reach: Floats, hull: Floats | None = None, slack: float = 0.0
    ) -> None:
        if hull is None:
            hull, slack = hull_of(points, reach)
        self.points, self.reach = points, reach
        turned = (points[-1] + points[0] - points)[::-1]
        self._left = _Side(points, points, reach, hull, hull + slack)
        self._right = _Side(turned, points[::-1], reach[::-1], hull[::-1], (hull + slack)[::-1])

    def edges(self, numerators: Floats, denominators: Floats) -> Ends:
        """The ends, as the function `edges` finds them at all points."""
        low, high, sure = self.fitted(numerators, denominators)
        if not sure.all():
            rest = ~sure
            low[rest], high[rest] = edges(
                numerators[rest], denominators[rest], self.points, self.reach[None, :]
            )
        return low, high

    def fitted(
        self, numerators: Floats, denominators: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The ends by Newton's method, and whether they are certain."""
        sign = np.where(denominators < 0, -1.0, 1.0)
        slope, start, points = denominators * sign, numerators * sign, self.points
        low, sure, never = self._left.fallen(start, slope)
        high, also_sure, also_never = self._right.fallen(start, slope)
        np.subtract(points[-1] + points[0], high, high)
        empty = never | also_never
        if empty.any():
            low[empty], high[empty] = points[0], points[-1]
        return low, high, empty | (sure & also_sure)


class _Side:
    """The points from one end to the other, with the reach, its hull, and the hull plus slack.

    `plain` are the points before they were turned, in the same order; they decide, with the floats
    of `_some_edges`.
    """

    def __init__(
        self, points: Floats, plain: Floats, reach: Floats, hull: Floats, certain: Floats
    ) -> None:
        self.points, self.plain, self.reach, self.hull, self.certain = (
            points,
            plain,
            reach,
            hull,
            certain,
        )
        self.gaps, self.step = np.diff(points), points[1] - points[0]
        self.rise = np.diff(hull) / self.step
        self.base = hull[:-1] - self.rise * (points[:-1] - points[0])

    def height(self, point: Any, start: Floats, slope: Floats) -> Floats:
        """The lines of some rows at a point, or each at a point of its own."""
        line: Floats = self.plain[point] * slope
        return (
            np.subtract(start, line, line)
            if self.plain is self.points
            else np.subtract(line, start, line)
        )

    def fallen(
        self, start: Floats, slope: Floats
    ) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        """Where each row first falls to the reach, whether that is certain, if it never does."""
        at_first, at_last = self.height(0, start, slope), self.height(-1, start, slope)
        sure, later = at_first <= self.hull[0], at_first > self.certain[0]
        never = at_last > self.certain[-1]
        never &= later
        chosen = later & ~never
        crossing = np.full(start.size, self.points[0])
        if chosen.any():
            rows: Any = slice(None) if chosen.all() else np.flatnonzero(chosen)
            start, slope = start[rows], slope[rows]
            before = self._segments(at_first[rows], slope)
            after = before + 1
            above, below = self.height(before, start, slope), self.height(after, start, slope)
            sure[rows] = (below <= self.hull[after]) & (above > self.certain[before])
            above -= self.reach[before]
            below -= self.reach[after]
            with np.errstate(divide="ignore", invalid="ignore"):
                np.divide(above, np.subtract(above, below, below), above)
                above *= self.gaps[before]
                above += self.points[before]
            crossing[rows] = above
        return crossing, sure, never

    def _segments(self, heights: Floats, slope: Floats) -> NDArray[np.int64]:
        """The index of the point after which a line, this high at the first, falls to the hull.

        Newton's method from where the line is 0 never goes past the root of a concave function, and
        among linear pieces it soon arrives. A number that is wrong, where it has not, costs time
        only.
        """
        last = len(self.points) - 2

        def numbers(distance: Floats) -> NDArray[np.int64]:
            distance /= self.step
            pieces: NDArray[np.int64] = np.clip(distance, 0, last, distance).astype(np.int64)
            return np.maximum(pieces, 0, out=pieces)  # NaN became the least integer

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            piece = numbers(heights / slope)
            for _ in range(_NEWTON):
                distance = heights - self.base[piece]
                distance /= slope + self.rise[piece]
                previous, piece = piece, numbers(distance)
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
