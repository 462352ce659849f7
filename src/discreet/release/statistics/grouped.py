"""Means, variances and sums of many groups whose numbers of values are private, from noisy sums.

A value spreads its weight over the sums of a `partition`, and all statistics follow from them.

All groups share their scales, so the reach of the noise of a combination is a function of its
weights alone. It is tabulated at public points, slightly too wide, and interpolated linearly
between them. Then the set of all z with

    |numerator − z·denominator| ≤ reach(z)          (Fieller)

has its ends in `fieller`. The variance of a sample, v = Σ(uᵢ−u)²/(N−1), has the denominator N − 1,
so the noise of N counts in its interval as in that of every quotient. This is post-processing of
released numbers, so floats are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisyColumn
from discreet.release.statistics.fieller import Ends, SharedReach, edges
from discreet.release.statistics.partition import Kinds, Partition
from discreet.release.statistics.spread import (
    SMALL_SCALE,
    Floats,
    continuous_scale,
    discrete_radius,
    radius_of_kinds,
    slack_of,
)

_POINTS, _VARIANCES, _MEANS = 129, 33, 17
"""Points of a share in [0, 1], a variance in [0, 1/4], and a mean's interval for a variance's."""

MEAN_POINTS = -(-_POINTS // 4), _POINTS
VARIANCE_POINTS = MEAN_POINTS[0] * -(-_VARIANCES // 4), _POINTS * _VARIANCES
_LARGE = 5 / 16, 3 / 8, 7 / 16, 1 / 2
SAMPLE_POINTS = MEAN_POINTS[0] * len(_LARGE), _POINTS * len(_LARGE)
"""Combinations whose reach is integrated, with many draws and with up to three; the last are
further ones for the variance of a sample."""

_OF_POPULATION = np.linspace(0, 1 / 4, _VARIANCES)
_OF_SAMPLE = np.append(_OF_POPULATION, _LARGE)
"""The variances for which a reach is known. That of a sample is ½ at most, for two values at the
two bounds; beyond ¼, where the values are few, fewer points are enough: the reach is convex, and
lies below the chords."""

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

FINEST_SLACK = 2.0**-20
"""Of a plan, in rows: columns of the same shares have the same law, however fine their grids."""

_EVERY, _NEARLY, _BESIDE = 32, 0.99, 1e-3
"""Of the true shares, those that are looked at first; which of the others are looked at then; and
how far the largest error lies beyond that of the first, about."""

_FACTOR_BITS = 40
"""Digits of the factor of a law in a plan."""

_CACHED = 512
"""Reaches that are kept: of all columns of a question, for its plan, curve and release."""

_BLOCK, _VARIANCE_BLOCK = 2**16, 512
"""Groups that are computed at a time, so that their arrays stay in the caches. In shorter steps,
threads wait for each other: numpy lets another thread run Python for the time of a step only."""


class Draws:
    """The noise of the totals of a release, in their units: all columns of a question share it."""

    def __init__(self, totals: Sequence[NoisyColumn], units: Sequence[int]) -> None:
        self.totals, self.units = totals, np.array(units, np.float64)
        self._slacks: dict[float, Floats] = {}

    def block(self, block: slice) -> list[Floats]:
        """The totals of some groups, in rows."""
        return [
            np.array(total.values[block], np.float64) / unit
            for total, unit in zip(self.totals, self.units.tolist(), strict=True)
        ]

    @cached_property
    def few(self) -> list[Floats] | None:
        """The totals of all groups, if they are few: then they are kept."""
        count = len(self.totals[0].values)
        return self.block(slice(0, count)) if count * len(self.totals) <= _BLOCK else None

    @cached_property
    def spreads(self) -> Floats:
        """The scales of continuous draws with the same variances."""
        return np.array([continuous_scale(total) for total in self.totals]) / self.units

    def slacks(self, confidence: float) -> Floats:
        """How much further than such draws the totals can reach."""
        if confidence not in self._slacks:
            self._slacks[confidence] = (
                np.array([slack_of(total, confidence) for total in self.totals]) / self.units
            )
        return self._slacks[confidence]


class Law:
    """The law of a partition's noise: its scale, and what is discrete about it, by kind of total.

    Slacks are rounded up to multiples of `finest`, if there is one.
    """

    def __init__(self, draws: Draws, partition: Partition, finest: float = 0.0) -> None:
        self.draws, self._partition, self._finest = draws, partition, finest

    @cached_property
    def factor(self) -> float:
        """The factor of the scales of the partition: the largest over the totals."""
        factor = float((self.draws.spreads / np.array(self._partition.scales)).max())
        if not self._finest:
            return factor
        # so that two columns do not differ in a last digit alone
        part, exponent = math.frexp(factor)
        return math.ldexp(round(math.ldexp(part, _FACTOR_BITS)), exponent - _FACTOR_BITS)

    def slack(self, confidence: float) -> Floats:
        """Of each kind of totals, how much further than a continuous draw one of them can reach."""
        widest = np.zeros(len(self._partition.kinds) + 1)
        np.maximum.at(widest, self._partition.kind_of, self.draws.slacks(confidence))
        return np.ceil(widest[:-1] / self._finest) * self._finest if self._finest else widest[:-1]


@dataclass(frozen=True, kw_only=True)
class PrivateSizeMoments:
    """Numbers, sums, means and variances of many groups, from the noisy totals of a partition."""

    grid: ValueGrid
    partition: Partition
    totals: Sequence[NoisyColumn] = ()
    """None in a plan."""
    law: Law | None = None

    def value(self, statistic: str) -> Floats:
        """For all groups: count, sum, mean or variance, or the sample form variance+."""
        if statistic not in self._known:
            [self._known[statistic]] = by_block(
                lambda sums: (self._values(statistic, sums),), self._sums
            )
        return self._known[statistic]

    @cached_property
    def _known(self) -> dict[str, Floats]:
        """What was computed before: an interval asks for it again."""
        return {}

    def _values(self, statistic: str, sums: Floats) -> Floats:
        """The same for some groups, from their sums."""
        size: Floats = sums.sum(axis=0)
        width, step = float(self.grid.width), float(self.grid.step)
        if statistic == "count":
            return size
        if statistic == "sum":
            total: Floats = self._sum_weights() @ sums * step
            return total
        u = share_of(combination(self.partition.values, sums), size)
        if statistic == "mean":
            means: Floats = (float(self.grid.lower) + u * width) * step
            return means
        with np.errstate(divide="ignore", invalid="ignore"):
            v = np.where(size > 0, np.clip(sums[2] / size - u * u, 0.0, u * (1 - u)), 0.0)
        variances: Floats = v * (width * step) ** 2 * _sample_factor(statistic, size)
        return variances

    def ends(self, statistic: str, confidence: Fraction) -> Ends:
        """The ends of their intervals; only means and variances are clamped to what is possible.

        A clamped mean or variance still lies in its interval, however little its group tells.
        """
        level = float(confidence)
        if statistic == "count":
            value = self.value(statistic)
            reach = self.reach(np.ones(len(self.partition.values)), level)
            return value - reach, value + reach
        if statistic == "sum":
            return self._sum_ends(level)
        level = level if statistic == "mean" else (1 + level) / 2
        shares = self._share_reach(level)
        variances = (
            None if statistic == "mean" else self._variance_reach(level, is_sample(statistic))
        )

        def ends_of(sums: Floats, value: Floats) -> Ends:
            size = sums.sum(axis=0)
            low, high = shares.edges(combination(self.partition.values, sums), size)
            if variances is None:
                low, high = self._mean_ends(low, high)
            else:
                low, high = self._variance_ends(sums, low, high, variances, is_sample(statistic))
            return np.minimum(low, value, out=low), np.maximum(high, value, out=high)

        low, high = by_block(ends_of, self._sums, self.value(statistic))
        return low, high

    def _sum_ends(self, level: float) -> Ends:
        """The ends of sums, which the rounding of N values moves by at most N/2 steps.

        Sum ∓ N/2 steps combine the same totals: each end has the reach of its own noise.
        """
        weights, step = self._sum_weights(), float(self.grid.step)
        if self.grid.exact:
            value, reach = self.value("sum"), self.reach(weights * step, level)
            return value - reach, value + reach
        lower, upper = ((weights + side) * step for side in (-0.5, 0.5))
        lowest, highest = self.reach(lower, level), self.reach(upper, level)

        def ends_of(sums: Floats, value: Floats) -> Ends:
            low = combination(lower.tolist(), sums) - lowest
            high = combination(upper.tolist(), sums) + highest
            return np.minimum(low, value, out=low), np.maximum(high, value, out=high)

        low, high = by_block(ends_of, self._sums, self.value("sum"))
        return low, high

    def reach(self, weights: Floats, confidence: float) -> float:
        """The reach of the noise of a combination of the sums."""
        radius = _radius(
            tuple(np.asarray(weights, np.float64).tolist()), self.partition.kinds, confidence
        )
        return self._law.factor * radius + self._slack(weights, confidence).item()

    def planned(self, level: float, base: str, deviation: bool, rows: int) -> float:
        """The largest error at this level, by noise alone, of a number of a group of so many rows.

        An estimate z of a mean or variance exceeds the true value by t if the noise of numerator −
        (z + t)·denominator exceeds t·N, or t·(N − 1) for a sample: to first order for a variance,
        exactly for a mean. With `deviation`, for data whose std is a quarter of the range.
        """
        values = np.array(self.partition.values)
        width = float(self.grid.width)
        step = float(self.grid.step)
        match base:
            case "count":
                return self.reach(np.ones(len(values)), level)
            case "sum":
                return self.reach(self._sum_weights(), level) * step
            case "mean":
                doubled = max(2 * level - 1, level / 2)
                return (
                    mean_error(
                        self._mean_reach(doubled), self._mean_reach(level), doubled, level, rows
                    )
                    * width
                    * step
                )
        sample = is_sample(base)
        reach = self._variance_reach(level, sample)
        if deviation:
            u, quarter = np.linspace(0, 1, _POINTS), (_VARIANCES - 1) // 4  # v = 1/16
            return (
                float(reach[u * (1 - u) >= 1 / 16, quarter].max())
                / max(rows - sample, 1)
                * (width * step) ** 2
            )
        points = _OF_SAMPLE if sample else _OF_POPULATION
        return max(_beyond(side, rows - sample, points) for side in reach) * (width * step) ** 2

    @cached_property
    def _law(self) -> Law:
        return self.law or Law(Draws(self.totals, self.partition.units), self.partition)

    @cached_property
    def _sums(self) -> Floats:
        """The sums of the partition, for all groups."""
        count, draws = len(self.totals[0].values), self._law.draws
        sums = np.empty((len(self.partition.matrix), count))
        for block in blocks(count, _BLOCK):
            columns = draws.few or draws.block(block)
            for row, weights in zip(sums, self.partition.matrix, strict=True):
                combination(weights, columns, row[block])
        return sums

    def _sum_weights(self) -> Floats:
        return float(self.grid.lower) + np.array(self.partition.values) * float(self.grid.width)

    @cached_property
    def _largest(self) -> float:
        """The size of the largest sum."""
        return float(max(self._sums.max(), -self._sums.min())) if self.totals else 0.0

    def _slack(self, weights: Floats, confidence: float) -> Floats:
        """How much further combinations of discrete draws can reach than of continuous draws."""
        by_kind = self._law.slack(confidence)[:, None] * np.abs(
            np.array(self.partition.kinds)[:, 2:] @ weights.reshape(-1, weights.shape[-1]).T
        )
        lattice: Floats = by_kind.max(axis=0).reshape(weights.shape[:-1])
        if not self._largest:
            return lattice
        rounding: Floats = np.abs(weights).max(axis=-1) * (_FLOATS * self._largest)
        return lattice + rounding

    def _mean_reach(self, confidence: float) -> Floats:
        """The reach of the noise of Σu − u·N, for each u."""
        partition = self.partition
        table = _mean_reaches(partition.values, partition.kinds, _is_small(partition), confidence)
        return self._law.factor * table + self._slack(
            _mean_weights(partition.values, _POINTS), confidence
        )

    def _variance_reach(self, confidence: float, sample: bool) -> Floats:
        """The reach of the noise of Σ(uᵢ−u)² − v·N, for each u and v; a sample's v may exceed ¼."""
        reaches = _sample_reaches if sample else _variance_reaches
        table = reaches(self.partition.kinds, _is_small(self.partition), confidence)
        return self._law.factor * table + self._slack(_variance_weights(sample), confidence)

    def _share_reach(self, confidence: float) -> SharedReach:
        """The reach of the noise of Σu − u·N, for each u; for small draws by their own law."""
        first = self.totals[0]
        small = len(self.totals) == 2 and all(
            total.step == 1 and total.scale == first.scale for total in self.totals
        )
        if small and first.scale <= SMALL_SCALE:
            reach = _small_reaches(self.partition, float(first.scale), confidence)
        else:
            reach = self._mean_reach(confidence)
        return SharedReach(np.linspace(0, 1, reach.size), reach)

    def _mean_ends(self, low: Floats, high: Floats) -> Ends:
        """Means from shares, in place, half a step wider for the grid's rounding."""
        width = float(self.grid.width)
        half = 0.0 if self.grid.exact else 0.5
        lower = float(self.grid.lower)
        for end, rounding in ((low, -half), (high, half)):
            np.multiply(end, width, end)
            np.add(end, rounding, end)
            np.clip(end, 0, width, end)
            np.add(end, lower, end)
            np.multiply(end, float(self.grid.step), end)
        return low, high

    def _variance_ends(
        self, sums: Floats, low: Floats, high: Floats, reach: Floats, sample: bool
    ) -> Ends:
        """For each u in its interval, at half the error probability, the v with the other half."""
        ends = [
            _variances(sums, block, low, high, reach, sample)
            for block in blocks(len(low), _VARIANCE_BLOCK)
        ]
        lows, highs = (np.concatenate(side) for side in zip(*ends, strict=True))
        width, half = float(self.grid.width * self.grid.step), self.grid.half_step
        if sample:  # √(N/(N−1)) times the std of the population, and times what rounding moves that
            half *= math.sqrt(2)
        first, last = np.maximum(np.sqrt(lows) * width - half, 0.0), np.sqrt(highs) * width + half
        return first**2, np.minimum(last**2, width**2 / (2 if sample else 4))


def _variances(
    sums: Floats, block: slice, low: Floats, high: Floats, table: Floats, sample: bool
) -> Ends:
    """For some groups, the ends of all v with Σ(uᵢ−u)² − v·N within its noise, over all u.

    For a sample it is Σ(uᵢ−u)² − v·(N−1), with the same noise.
    """
    b0, b1, b2 = (values[block, None] for values in sums)
    u = low[block, None] + (high - low)[block, None] * np.linspace(0, 1, _MEANS)
    numerators = u * u * b0 + (u * u - u) * b1 + (1 - u) ** 2 * b2
    cell = np.minimum((u * (_POINTS - 1)).astype(np.int64), _POINTS - 2)
    part = (u * (_POINTS - 1) - cell)[..., None]
    reach = table[cell] * (1 - part) + table[cell + 1] * part
    size = np.broadcast_to(b0 + b1 + b2 - sample, u.shape)
    ends = edges(
        numerators.ravel(),
        size.ravel(),
        _OF_SAMPLE if sample else _OF_POPULATION,
        reach.reshape(-1, reach.shape[-1]),
    )
    return ends[0].reshape(u.shape).min(axis=1), ends[1].reshape(u.shape).max(axis=1)


def blocks(count: int, size: int) -> list[slice]:
    """Slices of so many groups."""
    return [slice(start, start + size) for start in range(0, count, size)]


def by_block(function: Callable[..., tuple[Any, ...]], *arrays: Any) -> tuple[Any, ...]:
    """The columns that a function makes of arrays of all groups, computed some groups at a time."""
    count = arrays[0].shape[-1]
    if count <= _BLOCK:
        return function(*arrays)
    columns: tuple[Any, ...] = ()
    for block in blocks(count, _BLOCK):
        parts = function(*(array[..., block] for array in arrays))
        columns = columns or tuple(np.empty(count, part.dtype) for part in parts)
        for column, part in zip(columns, parts, strict=True):
            column[block] = part
    return columns


def combination(
    weights: Sequence[float], columns: Sequence[Floats] | Floats, out: Floats | None = None
) -> Floats:
    """Σ weight·column; a matrix product would start threads, which is slower for few columns."""
    # the same additions, without the cost of an array for each
    if out is not None and out.size == 1:
        alone = 0.0
        for weight, column in zip(weights, columns, strict=True):
            if weight:
                alone += column.item() * weight
        out[0] = alone
        return out
    total, product = np.empty(len(columns[0])) if out is None else out, np.empty(len(columns[0]))
    total[:] = 0.0
    for weight, column in zip(weights, columns, strict=True):
        if weight:
            np.add(total, column if weight == 1 else np.multiply(column, weight, product), total)
    return total


def share_of(part: Floats, whole: Floats) -> Floats:
    """The share; ½ if the noisy whole is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: Floats = np.asarray(part / whole)
    np.clip(shares, 0.0, 1.0, shares)
    np.copyto(shares, 0.5, where=whole <= 0)
    return shares


def is_sample(statistic: str) -> bool:
    """Whether it is the statistic of a sample, over n − 1."""
    return statistic.endswith("+")


def _sample_factor(statistic: str, size: Floats) -> Floats:
    """The factor of a sample variance."""
    count = np.maximum(size, 2.0)
    return count / (count - 1) if is_sample(statistic) else np.ones_like(count)


def mean_error(near: Floats, far: Floats, level: float, confidence: float, rows: int) -> float:
    """The error that the worst share of so many rows exceeds with probability 1 − confidence."""
    return _mean_error(near.tobytes(), far.tobytes(), level, confidence, rows)


@lru_cache(maxsize=_CACHED)
def _mean_error(lower: bytes, upper: bytes, level: float, confidence: float, rows: int) -> float:
    """The same, kept: columns of the same law share it.

    An estimate z is off by t to either side with half the probability that the noise of Σu − z·N
    exceeds t·N; no estimate lies beyond 0 and 1. `near` and `far` are reaches at a lower level and
    at the confidence; between and beyond them the probability is taken to fall exponentially.
    """
    near, far = np.frombuffer(lower), np.frombuffer(upper)
    every = np.linspace(0, 1, _ERRORS)
    rate = math.log((1 - level) / (1 - confidence))
    doubt = 1 - confidence
    rises = np.diff(near), np.diff(far)

    def chances(true: Floats, error: float) -> Floats:
        """The probability of such an error, at each true share."""
        above, below = true + error, true - error
        last, first = int(above.searchsorted(1.0, "right")), int(below.searchsorted(0.0))
        places = np.concatenate([above[:last], below[first:]]) * (far.size - 1)
        cells = np.minimum(places.astype(np.int64), far.size - 2)
        parts = places - cells
        low = near[cells] + parts * rises[0][cells]
        high = far[cells] + parts * rises[1][cells]
        spread = np.maximum(high - low, 1e-12 * high + 1e-300)
        height = np.minimum(np.maximum((low - error * rows) * rate / spread, -700), 0.7)
        chance = np.minimum(np.exp(height) * (1 - level), 1.0) / 2
        total = np.zeros(true.size)
        total[:last] += chance[:last]
        total[first:] += chance[last:]
        return total

    last = min(1.0, float(far.max()) / rows)
    if not last:  # only the draw 0 is likely enough to count
        return last
    found, error = np.arange(_ERRORS) % _EVERY == 0, 0.0
    # the worst share is sought among a few, then beside those nearly as bad at their error
    while True:
        likely = every[found]
        error = _root(
            lambda t, true=likely: math.log(max(float(chances(true, t).max()), 1e-300) / doubt),  # type: ignore[misc]
            error,
            last,
        )
        missed = chances(every, error)
        if missed.max() <= missed[found].max() or missed.max() <= doubt:
            return error
        found |= missed >= missed.max() * _NEARLY
        last = min(1.0, error * (1 + _BESIDE))


def _root(height_at: Callable[[float], float], first: float, last: float) -> float:
    """Where a height, not negative at the first place, falls to 0, at most 1; `last` is a guess.

    The logarithm of a probability is nearly linear in the error: regula falsi, halved if it is
    stuck (Illinois).
    """
    side, above, below = 0, height_at(first), height_at(last)
    while below > 0:
        if last == 1:
            return last
        first, above, last = last, below, min(1.0, 2 * last - first / 2)
        below = height_at(last)
    while last - first > _CLOSE * last:
        middle = first + (last - first) * (
            min(max(above / (above - below), 0.01), 0.99) if above > below else 0.5
        )
        height = height_at(middle)
        if height <= 0:
            last, below, above, side = middle, height, above / 2 if side == 1 else above, 1
        else:
            first, above, below, side = middle, height, below / 2 if side == -1 else below, -1
    return last


def _beyond(reach: Floats, rows: int, points: Floats) -> float:
    """The t at which t·N equals the reach at t, known at these points; at most the last of them."""
    over = np.flatnonzero(points * rows >= reach)
    if not over.size:
        return float(points[-1])
    after, before = over[0], over[0] - 1
    rise = (points[after] - points[before]) * rows - (reach[after] - reach[before])
    return float(
        points[before]
        + (reach[before] - points[before] * rows) / rise * (points[after] - points[before])
    )


def _is_small(partition: Partition) -> bool:
    """Whether reaches are cheap, and computed at all points."""
    return len(partition.scales) <= 3


def _of_kinds(weights: Floats, kinds: Kinds) -> Floats:
    """Combinations of sums as combinations of kinds of totals."""
    combined: Floats = np.asarray(weights, np.float64) @ np.array(kinds)[:, 2:].T
    return combined


def _radii(weights: Floats, kinds: Kinds, confidence: float) -> Floats:
    """The radii of combinations of sums, for the scales of the partition."""
    scales, times = np.array(kinds)[:, :2].T
    return radius_of_kinds(_of_kinds(weights, kinds) * scales, times, confidence)


@lru_cache(maxsize=_CACHED)
def _radius(weights: tuple[float, ...], kinds: Kinds, confidence: float) -> float:
    """The radius of a combination: the same for all ε, so the plan, release and next ε share it."""
    return _radii(np.array(weights), kinds, confidence).item()


def _mean_weights(values: tuple[float, ...], points: int) -> Floats:
    """The weights of Σu − u·N, for each u."""
    return np.array(values) - np.linspace(0, 1, points)[:, None]


@lru_cache(maxsize=2)
def _variance_weights(sample: bool) -> Floats:
    """The weights of Σ(uᵢ−u)² − v·N, for each u and v."""
    u, v = np.linspace(0, 1, _POINTS)[:, None], _OF_SAMPLE if sample else _OF_POPULATION
    return np.stack([u * u - v, u * u - u - v, (1 - u) ** 2 - v], axis=-1)


@lru_cache(maxsize=_CACHED)
def _mean_reaches(
    values: tuple[float, ...], kinds: Kinds, small: bool, confidence: float
) -> Floats:
    weights = _mean_weights(values, _POINTS)
    if small:
        return _radii(weights, kinds, confidence) * _WIDER
    # for more draws a quarter of the points: the reach is convex, so it lies below the chords
    points = np.linspace(0, 1, _POINTS)
    reaches: Floats = (
        np.interp(points, points[::4], _radii(weights[::4], kinds, confidence)) * _WIDER
    )
    return reaches


@lru_cache(maxsize=_CACHED)
def _variance_reaches(kinds: Kinds, small: bool, confidence: float) -> Floats:
    weights = _variance_weights(sample=False)
    if small:
        return _radii(weights, kinds, confidence) * _WIDER
    # a quarter of the points in both directions: between them the reach is nearly linear,
    # and not above the chord
    coarse = _radii(weights[::4, ::4], kinds, confidence)
    rows, columns = (np.linspace(0, 1, size) for size in (_POINTS, _VARIANCES))
    finer = np.stack([np.interp(rows, rows[::4], column) for column in coarse.T])
    return np.stack([np.interp(columns, columns[::4], row) for row in finer.T]) * _WIDER**4


@lru_cache(maxsize=_CACHED)
def _sample_reaches(kinds: Kinds, small: bool, confidence: float) -> Floats:
    weights, points = _variance_weights(sample=True)[:, _VARIANCES:], np.linspace(0, 1, _POINTS)
    if small:
        large = _radii(weights, kinds, confidence) * _WIDER
    else:
        coarse = _radii(weights[::4], kinds, confidence)
        large = (
            np.column_stack([np.interp(points, points[::4], column) for column in coarse.T])
            * _WIDER**4
        )
    return np.hstack([_variance_reaches(kinds, small, confidence), large])


@lru_cache(maxsize=64)
def _small_reaches(partition: Partition, scale: float, confidence: float) -> Floats:
    """With draws up to k steps a combination moves by at most k·Σ|Δw|, half from the near point."""
    weights = partition.mixed(_mean_weights(partition.values, _FINE_POINTS)) / np.array(
        partition.units, np.float64
    )
    largest = math.ceil(scale * (8 - math.log1p(-confidence)))
    moved = np.abs(weights[1] - weights[0]).sum() / 2
    reaches: Floats = discrete_radius(weights, scale, confidence) + largest * moved
    return reaches
