"""Means, variances and sums of many groups at once, whose numbers of values are private, from noisy sums.

A value spreads its weight over the sums of a *partition*: the pair (u, 1−u) or Bernstein's ((1−u)², 2u(1−u), u²), with
u = a/R. All statistics follow from these sums. They get noise, or centred totals do, of which they are combinations:

    pair        as drawn      |  Σu = S + N/2, Σ(1−u) = N/2 − S                           S = Σ(u − ½)
    Bernstein   as drawn      |  3N/8 − S − Q,   2Q + N/4,   3N/8 + S − Q                 Q = Σ(u(1−u) − ⅛)

All groups share their scales, so the reach of the noise of a combination is a function of its weights alone. It is
tabulated at public points, slightly too wide, and interpolated linearly between them. Then the set of all z with

    |numerator − z·denominator| ≤ reach(z)                                                                 (Fieller)

has its ends in `fieller`. This is post-processing of released numbers, so floats are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisyColumn
from discreet.release.statistics.fieller import Ends, edges
from discreet.release.statistics.spread import (
    SMALL_SCALE,
    Floats,
    combined_radius,
    continuous_scale,
    discrete_radius,
    slack_of,
)

Matrix: TypeAlias = tuple[tuple[float, ...], ...]

_POINTS, _VARIANCES, _MEANS = 129, 33, 17
"""Points of a share in [0, 1], of a variance in [0, 1/4], and of a mean's interval for a variance's interval."""

_ERRORS = 2049
"""True shares at which the largest error is sought."""

_FINE_POINTS = 257
"""Points of a share if draws are small, and reaches are not smooth."""

_WIDER = 1 + 2e-4
"""Linear interpolation between the points underestimates a reach by less than this."""

_FLOATS = 2.0**-46
"""More than the rounding error of sums and quotients of floats, as a share of the largest."""

_CLOSE = 1e-6
"""The relative accuracy of a planned error."""

_BLOCK = 512
"""Groups whose variances are computed at a time."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Sums over which a value spreads its weight, and the totals that get noise."""

    values: tuple[float, ...]
    """The u of a value that lies entirely in one of the sums: Σu = Σ values·sums."""
    matrix: tuple[tuple[float, ...], ...]
    """The coefficients of each sum: sum = Σ coefficient·total/unit."""
    scales: tuple[float, ...]
    """The noise scale of each total, in its units, up to a common factor."""
    units: tuple[int, ...]
    """The unit of each total."""

    def mixed(self, weights: Floats) -> Floats:
        """A combination of the sums as a combination of the totals in their units."""
        combined: Floats = np.asarray(weights, np.float64) @ np.array(self.matrix)
        return combined


def pair(width: int) -> Partition:
    """Σu and Σ(1−u)."""
    return Partition((1, 0), ((1, 0), (0, 1)), (1, 1), (width, width))


def bernstein(width: int) -> Partition:
    """Σ(1−u)², Σ2u(1−u) and Σu²."""
    return Partition((0, 1 / 2, 1), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), (1, 1, 1), (width**2,) * 3)


def centred(width: int) -> Partition:
    """The pair from Σ(u − ½) and N."""
    return Partition((1, 0), ((1, 1 / 2), (-1, 1 / 2)), (1, 2), (2 * width, 1))


def centred_squares(width: int) -> Partition:
    """Bernstein's sums from Σ(u − ½), Σ(u(1−u) − ⅛) and N."""
    matrix = ((-1, -1, 3 / 8), (0, 2, 1 / 4), (1, -1, 3 / 8))
    return Partition((0, 1 / 2, 1), matrix, (9 / 8, 9 / 16, 3), (2 * width, 8 * width**2, 1))


@dataclass(frozen=True, kw_only=True)
class Private:
    """Number, sum, mean and variance of the values of many groups, from the noisy totals of a partition."""

    grid: ValueGrid
    partition: Partition
    totals: Sequence[NoisyColumn]

    def value(self, statistic: str) -> Floats:
        """For all groups: count, sum, mean or variance, or the sample form variance+."""
        sums, width, step = self._sums, float(self.grid.width), float(self.grid.step)
        size = sums.sum(axis=0)
        match statistic:
            case "count":
                count: Floats = size
                return count
            case "sum":
                total: Floats = self._sum_weights() @ sums * step
                return total
            case "mean":
                return self._means
        u = share_of(self._part(sums), size)
        with np.errstate(divide="ignore", invalid="ignore"):
            v = np.where(size > 0, np.clip(sums[2] / size - u * u, 0.0, u * (1 - u)), 0.0)
        variances: Floats = v * (width * step) ** 2 * _sample_factor(statistic, size)
        return variances

    def ends(self, statistic: str, confidence: Fraction) -> Ends:
        """The ends of their intervals; only means and variances are clamped to what is possible.

        A clamped mean or variance still lies in its interval, however little information its group has.
        """
        value, level, step = self.value(statistic), float(confidence), float(self.grid.step)
        match statistic:
            case "count" | "sum":
                weights = np.ones(len(self.partition.values)) if statistic == "count" else self._sum_weights() * step
                reach = self.reach(weights, level)
                return value - reach, value + reach
            case "mean":  # half a step wider for the grid's rounding
                low, high = self._shares(level)
                width, half, lower = float(self.grid.width), 0.0 if self.grid.exact else 0.5, float(self.grid.lower)
                for end, rounding in ((low, -half), (high, half)):  # in place: there may be many groups
                    np.multiply(end, width, end)
                    np.add(end, rounding, end)
                    np.clip(end, 0, width, end)
                    np.add(end, lower, end)
                    np.multiply(end, step, end)
            case _:
                factor = _sample_factor(statistic, self._sums.sum(axis=0))
                low, high = (end * factor for end in self._variance_ends((1 + level) / 2))
        return np.minimum(low, value), np.maximum(high, value)

    def reach(self, weights: Floats, confidence: float) -> float:
        """The reach of the noise of a combination of the sums."""
        mixed = self.partition.mixed(weights) * np.array(self.partition.scales)
        radius = _radius(tuple(mixed.tolist()), confidence)
        return self._factor() * radius + self._slack(weights, confidence).item()

    def planned(self, level: float, base: str, deviation: bool, rows: int) -> float:
        """The error of a number of a group of so many rows, at this level, where it is largest.

        An estimate z of a mean or variance exceeds the true value by t if the noise of numerator − (z + t)·denominator
        exceeds t·N: to first order for a variance, exactly for a mean. With `deviation`, for data whose std is a
        quarter of the range.
        """
        values, width, step = np.array(self.partition.values), float(self.grid.width), float(self.grid.step)
        match base:
            case "count":
                return self.reach(np.ones(len(values)), level)
            case "sum":
                return self.reach(self._sum_weights(), level) * step
            case "mean":
                doubled = max(2 * level - 1, level / 2)
                return (
                    mean_error(self._mean_reach(doubled), self._mean_reach(level), doubled, level, rows) * width * step
                )
        reach = self._variance_reach(level)
        if deviation:
            u, quarter = np.linspace(0, 1, _POINTS), (_VARIANCES - 1) // 4  # v = 1/16
            return float(reach[u * (1 - u) >= 1 / 16, quarter].max()) / rows * (width * step) ** 2
        return max(_beyond(side, rows, 1 / 4) for side in reach) * (width * step) ** 2

    def _units(self) -> Floats:
        return np.array(self.partition.units, np.float64)

    @cached_property
    def _sums(self) -> Floats:
        """The sums of the partition, for all groups."""
        drawn = [np.array(total.values, np.float64) for total in self.totals]
        for column, unit in zip(drawn, self.partition.units, strict=True):
            np.divide(column, float(unit), column)
        return np.stack([combination(weights, drawn) for weights in self.partition.matrix])

    @cached_property
    def _means(self) -> Floats:
        """The means of all groups, which an interval asks for again."""
        shares = share_of(self._part(self._sums), self._sums.sum(axis=0))
        means: Floats = (float(self.grid.lower) + shares * float(self.grid.width)) * float(self.grid.step)
        return means

    def _part(self, sums: Floats) -> Floats:
        """Σu."""
        return combination(self.partition.values, sums)

    def _sum_weights(self) -> Floats:
        return float(self.grid.lower) + np.array(self.partition.values) * float(self.grid.width)

    def _factor(self) -> float:
        """The factor of the scales of the partition: the largest over the totals."""
        spreads = np.array([continuous_scale(total[0]) for total in self.totals])
        return float((spreads / self._units() / np.array(self.partition.scales)).max())

    def _slack(self, weights: Floats, confidence: float) -> Floats:
        """How much further a combination of discrete draws can reach than a combination of continuous draws."""
        slack = np.array([slack_of(total[0], confidence) for total in self.totals]) / self._units()
        lattice: Floats = (np.abs(self.partition.mixed(weights)) * slack).max(axis=-1)
        rounding: Floats = np.abs(weights).max(axis=-1) * (_FLOATS * float(np.abs(self._sums).max()))
        return lattice + rounding

    def _mean_reach(self, confidence: float) -> Floats:
        """The reach of the noise of Σu − u·N, for each u."""
        partition = self.partition
        table = _mean_reaches(partition.values, partition.matrix, partition.scales, confidence)
        return self._factor() * table + self._slack(_mean_weights(partition.values, _POINTS), confidence)

    def _variance_reach(self, confidence: float) -> Floats:
        """The reach of the noise of Σ(uᵢ−u)² − v·N, for each u and v."""
        table = _variance_reaches(self.partition.matrix, self.partition.scales, confidence)
        return self._factor() * table + self._slack(_variance_weights(), confidence)

    def _shares(self, confidence: float) -> Ends:
        """The u for which Σu − u·N is within its noise."""
        sums, first = self._sums, self.totals[0]
        small = len(self.totals) == 2 and all(total.step == 1 and total.scale == first.scale for total in self.totals)
        if small and first.scale <= SMALL_SCALE:
            reach = _small_reaches(self.partition, float(first.scale), confidence)
        else:
            reach = self._mean_reach(confidence)
        return edges(self._part(sums), sums.sum(axis=0), np.linspace(0, 1, reach.size), reach[None, :])

    def _variance_ends(self, confidence: float) -> Ends:
        """First the interval of u with half the error probability, then for each u the v with the other half."""
        low, high = self._shares(confidence)
        sums, blocks = self._sums, (slice(start, start + _BLOCK) for start in range(0, len(low), _BLOCK))
        ends = [self._variances(sums, block, low, high, confidence) for block in blocks]
        lows, highs = (np.concatenate(side) for side in zip(*ends, strict=True))
        width, half = float(self.grid.width * self.grid.step), 0.0 if self.grid.exact else float(self.grid.step) / 2
        first = np.maximum(np.sqrt(lows) * width - half, 0.0) ** 2
        return first, np.minimum(np.sqrt(highs) * width + half, width / 2) ** 2

    def _variances(self, sums: Floats, block: slice, low: Floats, high: Floats, confidence: float) -> Ends:
        """The ends of the union of all v for which Σ(uᵢ−u)² − v·N is within its noise, over the u of some groups."""
        b0, b1, b2 = (values[block, None] for values in sums)
        u = low[block, None] + (high - low)[block, None] * np.linspace(0, 1, _MEANS)
        numerators = u * u * b0 + (u * u - u) * b1 + (1 - u) ** 2 * b2
        cell = np.minimum((u * (_POINTS - 1)).astype(np.int64), _POINTS - 2)
        part = (u * (_POINTS - 1) - cell)[..., None]
        table = self._variance_reach(confidence)
        reach = table[cell] * (1 - part) + table[cell + 1] * part
        size = np.broadcast_to(b0 + b1 + b2, u.shape)
        v = np.linspace(0, 0.25, _VARIANCES)
        ends = edges(numerators.ravel(), size.ravel(), v, reach.reshape(-1, _VARIANCES))
        return ends[0].reshape(u.shape).min(axis=1), ends[1].reshape(u.shape).max(axis=1)


def combination(weights: Sequence[float], columns: Sequence[Floats] | Floats) -> Floats:
    """Σ weight·column; a matrix product would start threads, which take longer than a few columns do."""
    total = np.zeros(len(columns[0]))
    for weight, column in zip(weights, columns, strict=True):
        if weight == 1:
            np.add(total, column, total)
        elif weight:
            np.add(total, weight * column, total)
    return total


def share_of(part: Floats, whole: Floats) -> Floats:
    """The share; ½ if the noisy whole is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, np.clip(part / whole, 0.0, 1.0), 0.5)


def _sample_factor(statistic: str, size: Floats) -> Floats:
    """The factor of a sample variance."""
    count = np.maximum(size, 2.0)
    return count / (count - 1) if statistic.endswith("+") else np.ones_like(count)


def mean_error(near: Floats, far: Floats, level: float, confidence: float, rows: int) -> float:
    """The error that a share of so many rows exceeds with probability 1 − confidence, for the worst true share.

    An estimate z is off by t to either side with half the probability that the noise of Σu − z·N exceeds t·N; no
    estimate lies beyond 0 and 1. `near` and `far` are reaches at a lower level and at the confidence; between and
    beyond them the probability is taken to fall exponentially.
    """
    points, true = np.linspace(0, 1, far.size), np.linspace(0, 1, _ERRORS)
    rate = math.log((1 - level) / (1 - confidence))

    def missed(error: float) -> float:
        total = np.zeros_like(true)
        for z in (true + error, true - error):
            low, high = (np.interp(z, points, reach) for reach in (near, far))
            spread = np.maximum(high - low, 1e-12 * high + 1e-300)
            chance = (1 - level) * np.exp(np.clip(-rate * (error * rows - low) / spread, -700, 0.7))
            total += np.where((z >= 0) & (z <= 1), np.minimum(chance, 1.0) / 2, 0.0)
        return float(total.max())

    # the logarithm of the probability is nearly linear in the error: regula falsi, halved if it is stuck (Illinois)
    def height_at(error: float) -> float:
        return math.log(max(missed(error), 1e-300) / (1 - confidence))

    first, last, side = 0.0, min(1.0, float(far.max()) / rows), 0
    if not last:  # only the draw 0 is likely enough to count
        return last
    above, below = height_at(first), height_at(last)
    while below > 0:
        if last == 1:
            return last
        first, above, last = last, below, min(1.0, 2 * last)
        below = height_at(last)
    while last - first > _CLOSE * last:
        middle = first + (last - first) * (min(max(above / (above - below), 0.01), 0.99) if above > below else 0.5)
        height = height_at(middle)
        if height <= 0:
            last, below, above, side = middle, height, above / 2 if side == 1 else above, 1
        else:
            first, above, below, side = middle, height, below / 2 if side == -1 else below, -1
    return last


def _beyond(reach: Floats, rows: int, last: float = 1.0) -> float:
    """The t at which t·N equals the reach at t; the reaches are those between 0 and `last`."""
    points = np.linspace(0, last, reach.size)
    over = np.flatnonzero(points * rows >= reach)
    if not over.size:
        return last
    after, before = over[0], over[0] - 1
    rise = (points[after] - points[before]) * rows - (reach[after] - reach[before])
    return float(points[before] + (reach[before] - points[before] * rows) / rise * (points[after] - points[before]))


@lru_cache(maxsize=512)
def _radius(weights: tuple[float, ...], confidence: float) -> float:
    """The radius of one combination, which does not depend on ε: the plan, the release and the next ε share it."""
    return combined_radius(np.array(weights), confidence).item()


def _mean_weights(values: tuple[float, ...], points: int) -> Floats:
    """The weights of Σu − u·N, for each u."""
    return np.array(values) - np.linspace(0, 1, points)[:, None]


@lru_cache(maxsize=1)
def _variance_weights() -> Floats:
    """The weights of Σ(uᵢ−u)² − v·N, for each u and v."""
    u, v = np.linspace(0, 1, _POINTS)[:, None], np.linspace(0, 0.25, _VARIANCES)
    return np.stack([u * u - v, u * u - u - v, (1 - u) ** 2 - v], axis=-1)


@lru_cache(maxsize=64)
def _mean_reaches(values: tuple[float, ...], matrix: Matrix, scales: tuple[float, ...], confidence: float) -> Floats:
    weights = _mean_weights(values, _POINTS) @ np.array(matrix) * np.array(scales)
    if len(scales) <= 3:
        return combined_radius(weights, confidence) * _WIDER
    # for more draws a quarter of the points: the reach is convex, so it lies below the chords
    points = np.linspace(0, 1, _POINTS)
    reaches: Floats = np.interp(points, points[::4], combined_radius(weights[::4], confidence)) * _WIDER
    return reaches


@lru_cache(maxsize=64)
def _variance_reaches(matrix: Matrix, scales: tuple[float, ...], confidence: float) -> Floats:
    if len(scales) <= 3:
        return combined_radius(_variance_weights() @ np.array(matrix) * np.array(scales), confidence) * _WIDER
    # a quarter of the points in both directions: between them the reach is nearly linear, and not above the chord
    coarse = combined_radius(_variance_weights()[::4, ::4] @ np.array(matrix) * np.array(scales), confidence)
    rows, columns = (np.linspace(0, 1, size) for size in (_POINTS, _VARIANCES))
    finer = np.stack([np.interp(rows, rows[::4], column) for column in coarse.T])
    return np.stack([np.interp(columns, columns[::4], row) for row in finer.T]) * _WIDER**4


@lru_cache(maxsize=64)
def _small_reaches(partition: Partition, scale: float, confidence: float) -> Floats:
    """With draws of up to k steps a combination moves by at most k·Σ|Δw|, half of it from the nearer point."""
    weights = partition.mixed(_mean_weights(partition.values, _FINE_POINTS)) / np.array(partition.units, np.float64)
    largest = math.ceil(scale * (8 - math.log1p(-confidence)))
    moved = np.abs(weights[1] - weights[0]).sum() / 2
    reaches: Floats = discrete_radius(weights, scale, confidence) + largest * moved
    return reaches
