"""Means, variances and sums of many groups at once: what `moments` finds for one group, in one pass over arrays.

All groups share their scales, so how far the noise of a combination Σ wᵢXᵢ can reach is a function of its weights
alone. It is tabulated at public points, a hair too wide, and taken as linear between them. Then the set of all z with

    |numerator − z·denominator| ≤ reach(z)

is found without iteration: left of numerator/denominator and right of it both sides are linear between two points, and
so are the edges' equations. Floats may be: this is post-processing of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisyColumn
from discreet.release.spread import SMALL_SCALE, Floats, combined_radius, discrete_radius, slack_of

Table: TypeAlias = tuple[Floats, Floats, Floats]
"""Values, and the lower and upper ends of their intervals."""

_POINTS, _VARIANCES, _MEANS = 129, 33, 17
"""Points of a share in [0, 1], of a variance in [0, 1/4], and of the interval of a mean for that of a variance."""

_FINE_POINTS = 257
"""Points of a share where draws are small, and reaches are not smooth."""

_WIDER = 1 + 2e-4
"""Linear between the points, a reach is too small by less than this."""

_BLOCK = 512
"""Groups whose variances are found at a time."""

_ROWS = 256
"""Rows of edges that are found at a time: they stay in the caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """`moments.Pair` for many groups."""

    grid: ValueGrid
    above: NoisyColumn
    below: NoisyColumn

    def sum(self, confidence: Fraction) -> Table:
        """(H·A + L·B)/R."""
        weights = np.array([self.grid.upper, self.grid.lower], np.float64) / self.grid.width
        above, below = _floats(self.above), _floats(self.below)
        reach = _reach(self.above, weights, float(confidence)).item()
        return _around((above * weights[0] + below * weights[1]) * float(self.grid.step), reach * float(self.grid.step))

    def mean(self, confidence: Fraction) -> Table:
        """L + R·A/(A+B), the middle where the noise has swallowed everybody."""
        above, size = _floats(self.above), _floats(self.above) + _floats(self.below)
        one, level = self.above[0], float(confidence)
        if one.step == 1 and one.scale <= SMALL_SCALE:
            reach = _small_reaches(float(one.scale), level)
        else:
            reach = float(one.spread) * _pair_reaches(level) + slack_of(one)
        low, high = edges(above, size, np.linspace(0, 1, reach.size), reach[None, :])
        return _means(self.grid, _share(above, size), low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """`moments.Bernstein` for many groups."""

    grid: ValueGrid
    sums: Sequence[NoisyColumn]
    """Three."""

    def sum(self, confidence: Fraction) -> Table:
        """Σa + L·N."""
        width, lower, step = float(self.grid.width), float(self.grid.lower), float(self.grid.step)
        weights = np.array([0.0, 0.5, 1.0]) / width + lower / width**2
        found = np.tensordot(weights, np.stack(self._values()[:3]), axes=1)
        return _around(found * step, _reach(self.sums[0], weights, float(confidence)).item() * step)

    def mean(self, confidence: Fraction) -> Table:
        """L + R·u."""
        _, b1, b2, size = self._values()
        return _means(self.grid, _share(b1 / 2 + b2, size), *self._shares(float(confidence)))

    def variance(self, confidence: Fraction, *, sample: bool = False) -> Table:
        """First the u at half of the error, then for each of them the v at the other half; a sample's over N − 1."""
        each = (1 + float(confidence)) / 2
        _, b1, b2, size = self._values()
        low, high = self._shares(each)
        u = _share(b1 / 2 + b2, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            v = np.where(size > 0, np.clip(b2 / size - u * u, 0.0, u * (1 - u)), 0.0)
        ends = [self._variances(slice(at, at + _BLOCK), low, high, each) for at in range(0, len(u), _BLOCK)]
        lows, highs = (np.concatenate(side) for side in zip(*ends, strict=True))
        width, half = float(self.grid.width * self.grid.step), 0.0 if self.grid.exact else float(self.grid.step) / 2
        first = np.maximum(np.sqrt(lows) * width - half, 0.0) ** 2
        last = np.minimum(np.sqrt(highs) * width + half, width / 2) ** 2
        count = np.maximum(size / float(self.grid.width) ** 2, 2.0)
        factor = count / (count - 1) if sample else np.ones_like(count)
        return v * width**2 * factor, first * factor, last * factor

    def _values(self) -> tuple[Floats, Floats, Floats, Floats]:
        b0, b1, b2 = map(_floats, self.sums)
        return b0, b1, b2, b0 + b1 + b2

    def _shares(self, confidence: float) -> tuple[Floats, Floats]:
        _, b1, b2, size = self._values()
        one, u = self.sums[0][0], np.linspace(0, 1, _POINTS)
        weights = np.stack([u, 0.5 - u, 1 - u], axis=-1)
        reach = float(one.spread) * _triple_reaches(confidence) + slack_of(one) * np.abs(weights).sum(axis=-1)
        return edges(b1 / 2 + b2, size, u, reach[None, :])

    def _variances(self, some: slice, low: Floats, high: Floats, confidence: float) -> tuple[Floats, Floats]:
        """The ends of the union of all v, over the u of each of some groups."""
        b0, b1, b2, size = (values[some, None] for values in self._values())
        u = low[some, None] + (high - low)[some, None] * np.linspace(0, 1, _MEANS)
        known = u * u * b0 + (u * u - u) * b1 + (1 - u) ** 2 * b2
        one, v = self.sums[0][0], np.linspace(0, 0.25, _VARIANCES)
        at = np.minimum((u * (_POINTS - 1)).astype(np.int64), _POINTS - 2)
        part = (u * (_POINTS - 1) - at)[..., None]
        table = float(one.spread) * _variance_reaches(confidence) + slack_of(one) * np.abs(_variance_weights()).sum(-1)
        reach = table[at] * (1 - part) + table[at + 1] * part
        found = edges(known.ravel(), np.broadcast_to(size, u.shape).ravel(), v, reach.reshape(-1, _VARIANCES))
        return found[0].reshape(u.shape).min(axis=1), found[1].reshape(u.shape).max(axis=1)


def edges(numerators: Floats, denominators: Floats, points: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """For each numerator the ends of the set in the module's docstring; all of [first, last] where it is empty.

    `reach` has a row for each numerator, or one row for all of them.
    """
    found = [
        _some_edges(numerators[some], denominators[some], points, reach if len(reach) == 1 else reach[some])
        for some in (slice(at, at + _ROWS) for at in range(0, len(numerators), _ROWS))
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


def _crossed(heights: Floats, fallen: NDArray[np.bool_], points: Floats) -> Floats:
    """Where each row first falls to 0, linear between the points."""
    first = fallen.argmax(axis=1)
    before, rows = np.maximum(first - 1, 0), np.arange(len(heights))
    above, below = heights[rows, before], heights[rows, first]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(first > 0, above / (above - below), 0.0)
    found: Floats = points[before] + (points[first] - points[before]) * share
    return found


def _floats(column: NoisyColumn) -> Floats:
    return np.array(column.values, np.float64)


def _share(part: Floats, whole: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, np.clip(part / whole, 0.0, 1.0), 0.5)


def _around(values: Floats, reach: float) -> Table:
    return values, values - reach, values + reach


def _means(grid: ValueGrid, share: Floats, low: Floats, high: Floats) -> Table:
    """In the units of the data, the ends half a step wider for the grid's rounding, cut at the bounds."""
    width, half = float(grid.width), 0.0 if grid.exact else 0.5
    ends = np.clip(low * width - half, 0, width), np.clip(high * width + half, 0, width)
    lower, step = float(grid.lower), float(grid.step)
    return (lower + share * width) * step, (lower + ends[0]) * step, (lower + ends[1]) * step


def _reach(column: NoisyColumn, weights: Floats, confidence: float) -> Floats:
    one = column[0]
    found: Floats = float(one.spread) * combined_radius(weights, confidence) + slack_of(one) * np.abs(weights).sum(-1)
    return found


@lru_cache(maxsize=32)
def _pair_reaches(confidence: float) -> Floats:
    u = np.linspace(0, 1, _POINTS)
    return combined_radius(np.stack([1 - u, u], axis=-1), confidence) * _WIDER


@lru_cache(maxsize=32)
def _small_reaches(scale: float, confidence: float) -> Floats:
    """Two draws of up to k steps have a sum that moves by at most 2k·du, half a distance from the nearer point."""
    u = np.linspace(0, 1, _FINE_POINTS)
    largest = math.ceil(scale * (8 - math.log1p(-confidence)))
    return discrete_radius(np.stack([1 - u, u], axis=-1), scale, confidence) + largest / (_FINE_POINTS - 1)


@lru_cache(maxsize=32)
def _triple_reaches(confidence: float) -> Floats:
    u = np.linspace(0, 1, _POINTS)
    return combined_radius(np.stack([u, 0.5 - u, 1 - u], axis=-1), confidence) * _WIDER


@lru_cache(maxsize=32)
def _variance_reaches(confidence: float) -> Floats:
    return combined_radius(_variance_weights(), confidence) * _WIDER


@lru_cache(maxsize=1)
def _variance_weights() -> Floats:
    u, v = np.linspace(0, 1, _POINTS)[:, None], np.linspace(0, 0.25, _VARIANCES)
    return np.stack([u * u - v, u * u - u - v, (1 - u) ** 2 - v], axis=-1)
