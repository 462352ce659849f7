"""The slow twin of `release.statistics.grouped`: one group at a time, sums in fractions, and edges
by bisection.

The sums of a value's weight (u, 1−u), or ((1−u)², 2u(1−u), u²), are drawn, or follow from centred
totals.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisySum
from discreet.release.statistics.spread import (
    SMALL_SCALE,
    Floats,
    combined_radius,
    continuous_scale,
    discrete_radius,
    slack_of,
)

_POINTS = 65

_ROUNDS, _PARTS = 9, 16
"""The edges of a set between two of its points are found to 2⁻³⁶ of their distance."""

_FLOATS = 2.0**-50
"""More than what a product and a difference of floats are off, as a share of the numerator."""

MEANS = 17
"""Points of the interval of a mean for which the interval of the variance is found."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Number, mean, sum and variance of the values of one group."""

    grid: ValueGrid
    totals: list[NoisySum]
    centred: bool = False

    def coefficients(self) -> list[list[Fraction]]:
        """For each sum what each total counts in it."""
        r = Fraction(self.grid.width)
        half, eighth = 1 / (2 * r), 1 / (8 * r**2)
        match len(self.totals), self.centred:
            case 2, False:
                return [[1 / r, Fraction(0)], [Fraction(0), 1 / r]]
            case 2, True:
                return [[half, Fraction(1, 2)], [-half, Fraction(1, 2)]]
            case 3, False:
                return [[Fraction(int(i == j)) / r**2 for j in range(3)] for i in range(3)]
        n = Fraction(3, 8)
        return [[-half, -eighth, n], [Fraction(0), 2 * eighth, Fraction(1, 4)], [half, -eighth, n]]

    def sums(self) -> list[Fraction]:
        return [
            sum(
                (part * total.value for part, total in zip(row, self.totals, strict=True)),
                Fraction(),
            )
            for row in self.coefficients()
        ]

    def size(self) -> Fraction:
        return sum(self.sums(), Fraction())

    def u(self) -> float:
        sums, size = self.sums(), self.size()
        part = sums[0] if len(sums) == 2 else sums[1] / 2 + sums[2]
        return float(min(max(part / size, Fraction(0)), Fraction(1))) if size > 0 else 0.5

    def mean(self) -> float:
        return float((self.grid.lower + Fraction(self.u()) * self.grid.width) * self.grid.step)

    def count(self) -> float:
        return float(self.size())

    def sum(self) -> float:
        return float(np.dot(self._sum_weights(), [float(one) for one in self.sums()])) * float(
            self.grid.step
        )

    def variance(self) -> float:
        size, u = self.size(), self.u()
        v = min(max(float(self.sums()[2] / size) - u * u, 0.0), u * (1 - u)) if size > 0 else 0.0
        return v * float(self.grid.width * self.grid.step) ** 2

    def sample_factor(self) -> float:
        size = max(self.count(), 2.0)
        return size / (size - 1)

    def count_interval(self, confidence: Fraction) -> tuple[float, float]:
        reach = float(self._noise(np.ones(len(self.totals)), float(confidence)))
        return self.count() - reach, self.count() + reach

    def sum_interval(self, confidence: Fraction) -> tuple[float, float]:
        """Each end has the noise of the sum and of half a step for each value."""
        half, step = 0.0 if self.grid.exact else 0.5, float(self.grid.step)
        low, high = (
            self.sum()
            + side
            * (
                half * self.count()
                + float(self._noise(self._sum_weights() + side * half, float(confidence)))
            )
            * step
            for side in (-1, 1)
        )
        return min(low, self.sum()), max(high, self.sum())

    def mean_interval(self, confidence: Fraction) -> tuple[float, float]:
        half = 0 if self.grid.exact else Fraction(1, 2)
        width = self.grid.width
        low, high = (Fraction(end) * width for end in self._shares(float(confidence)))
        ends = (min(max(end, Fraction(0)), Fraction(width)) for end in (low - half, high + half))
        first, last = (float((self.grid.lower + end) * self.grid.step) for end in ends)
        return first, last

    def variance_interval(
        self, confidence: Fraction, *, sample: bool = False
    ) -> tuple[float, float]:
        each = (1 + float(confidence)) / 2
        b0, b1, b2 = (float(one) for one in self.sums())
        u = np.linspace(*self._shares(each), MEANS)[:, None]
        known = u * u * b0 + (u * u - u) * b1 + (1 - u) ** 2 * b2

        def threshold(v: Floats) -> Floats:
            return self._noise(
                np.stack([u * u - v, u * u - u - v, (1 - u) ** 2 - v], axis=-1), each
            )

        most = 0.5 if sample else 0.25
        lows, highs = solutions(known[:, 0], b0 + b1 + b2 - sample, threshold, 0.0, most)
        width = float(self.grid.width * self.grid.step)
        half = 0.0 if self.grid.exact else float(self.grid.step) / 2
        half *= math.sqrt(2) if sample else 1
        low, high = (math.sqrt(end) * width for end in (float(lows.min()), float(highs.max())))
        return max(low - half, 0.0) ** 2, min((high + half) ** 2, most * width**2)

    def _sum_weights(self) -> Floats:
        lower, width = float(self.grid.lower), float(self.grid.width)
        return lower + np.array([1.0, 0.0] if len(self.totals) == 2 else [0.0, 0.5, 1.0]) * width

    def _shares(self, confidence: float) -> tuple[float, float]:
        sums = [float(one) for one in self.sums()]

        def threshold(u: Floats) -> Floats:
            weights = [1 - u, -u] if len(sums) == 2 else [-u, 0.5 - u, 1 - u]
            return self._noise(np.stack(weights, axis=-1), confidence, small=True)

        part = sums[0] if len(sums) == 2 else sums[1] / 2 + sums[2]
        low, high = solutions(np.array([part]), sum(sums), threshold, 0.0, 1.0)
        return low.item(), high.item()

    def _noise(self, weights: Floats, confidence: float, *, small: bool = False) -> Floats:
        """How far the noise of a combination of the sums reaches; small draws by their own law."""
        of_totals = weights @ np.array([[float(one) for one in row] for row in self.coefficients()])
        one = self.totals[0]
        alike = all(total.step == 1 and total.scale == one.scale for total in self.totals)
        if small and alike and len(self.totals) == 2 and one.scale <= SMALL_SCALE:
            return discrete_radius(of_totals, float(one.scale), confidence)
        spreads = np.array([continuous_scale(total) for total in self.totals])
        slack = np.array([slack_of(total, confidence) for total in self.totals])
        return combined_radius(of_totals * spreads, confidence) + (np.abs(of_totals) * slack).max(
            axis=-1
        )


def solutions(
    numerators: Floats,
    denominator: float,
    threshold: Callable[[Floats], Floats],
    low: float,
    high: float,
) -> tuple[Floats, Floats]:
    """For each numerator the smallest and the largest z in [low, high] with |numerator −
    z·denominator| ≤ threshold(z).

    At the true z the left side is noise alone, so the set covers it whatever the denominator is
    (Fieller). The threshold takes a row of z for each numerator.
    """
    rows = numerators[:, None]

    def holds(z: Floats) -> NDArray[np.bool_]:
        # the left side is a difference of floats: without noise it would not be 0 at the true z
        accepted: NDArray[np.bool_] = np.abs(rows - z * denominator) <= threshold(
            z
        ) + _FLOATS * np.abs(rows)
        return accepted

    points = np.broadcast_to(np.linspace(low, high, _POINTS), (numerators.size, _POINTS))
    if denominator > 0:
        points = np.sort(np.hstack([points, np.clip(rows / denominator, low, high)]), axis=1)
    accepted = holds(points)
    # where the noise has left none, it was larger than the confidence allows for: all is possible
    accepted[~accepted.any(axis=1)] = True
    first = accepted.argmax(axis=1)[:, None]
    last = accepted.shape[1] - 1 - accepted[:, ::-1].argmax(axis=1)[:, None]
    inside = np.hstack([np.take_along_axis(points, index, axis=1) for index in (first, last)])
    before, after = np.maximum(first - 1, 0), np.minimum(last + 1, accepted.shape[1] - 1)
    outside = np.hstack([np.take_along_axis(points, index, axis=1) for index in (before, after)])
    for _ in range(_ROUNDS):
        outside, inside = _closer(holds, outside, inside)
    # the last points outside: a little too wide, never too narrow
    return outside[:, 0], outside[:, 1]


def _closer(
    holds: Callable[[Floats], NDArray[np.bool_]], outside: Floats, inside: Floats
) -> tuple[Floats, Floats]:
    """Both edges of every row, each to a sixteenth of where they can lie."""
    parts = np.linspace(0.0, 1.0, _PARTS + 1)
    points = outside[..., None] + (inside - outside)[..., None] * parts
    accepted = holds(points.reshape(len(points), -1)).reshape(points.shape)
    accepted[..., 0] &= outside == inside  # at an end of the interval there is nothing outside
    accepted[..., -1] = True
    index = accepted.argmax(axis=-1)[..., None]
    ends = [
        np.take_along_axis(points, at, axis=-1)[..., 0] for at in (np.maximum(index - 1, 0), index)
    ]
    return ends[0], ends[1]
