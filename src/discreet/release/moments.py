"""Means and variances whose noise is joint: several statistics for the price of one.

In steps of the grid let a = x − L, R = H − L, u = mean(a)/R, v = variance/R².

    pair       A = Σa, B = Σ(R−a)                      |ΔA| + |ΔB| = R per unit: each DLap(R/ε)            [add-remove]
    joint      Σa, Σq with q = a(R−a)                  DLap(s·R/ε), DLap(s/w·R²/ε), s = (1+w)²/4w, w = 2   [change-one]
    Bernstein  Σ(R−a)², Σ2a(R−a), Σa²                  they add to R² per unit: each DLap(R²/ε)            [add-remove]

because adding DLap(bᵢ) is ε-private iff no unit moves Σ|ΔTᵢ|/bᵢ by more than ε: the sup of the sum, not the sum of the
sups. For the joint design, d = |Δa|/R gives |Δq|/R² ≤ d(1−d), and max d + 2d(1−d) = 9/8. Each has a law in tests/laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisySum
from discreet.release.spread import SMALL_SCALE, Floats, combined_radius, discrete_radius, radius, slack_of, solutions

_WEIGHT = Fraction(2)
_STRETCH = (1 + _WEIGHT) ** 2 / (4 * _WEIGHT)

_MEANS = 17
"""Points of the interval of a mean for which the interval of the variance is found."""

Interval = tuple[float, float]


def pair_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of A and B."""
    return [width / epsilon] * 2


def joint_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of Σa and Σq."""
    return [_STRETCH * width / epsilon, _STRETCH / _WEIGHT * width**2 / epsilon]


def bernstein_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of the three sums."""
    return [width**2 / epsilon] * 3


def pair_totals(n: int, total: int, width: int) -> list[int]:
    """A and B from n and Σa."""
    return [total, n * width - total]


def joint_totals(total: int, squared: int, width: int) -> list[int]:
    """Σa and Σq."""
    return [total, width * total - squared]


def bernstein_totals(n: int, total: int, squared: int, width: int) -> list[int]:
    """Σ(R−a)², Σ2a(R−a), Σa²."""
    return [n * width**2 - 2 * width * total + squared, 2 * (width * total - squared), squared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lone:
    """n·mean with noise of its own, n public."""

    grid: ValueGrid
    n: int
    total: NoisySum

    def mean(self) -> float:
        """The mean, held within the bounds."""
        return _to_value(
            self.grid, min(max(Fraction(self.total.value, self.n), Fraction(0)), Fraction(self.grid.width))
        )

    def mean_interval(self, confidence: Fraction) -> Interval:
        """Of one discrete Laplace draw, exactly."""
        reach = radius(self.total, confidence)
        ends = (Fraction(self.total.value + sign * reach, self.n) for sign in (-1, 1))
        return _within_bounds(self.grid, *ends)

    def sum(self) -> float:
        """n times the mean, not held within anything."""
        return float((self.total.value + self.n * self.grid.lower) * self.grid.step)

    def sum_interval(self, confidence: Fraction) -> Interval:
        """Of one discrete Laplace draw, exactly."""
        reach = float(radius(self.total, confidence) * self.grid.step)
        return self.sum() - reach, self.sum() + reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Mean and number of units from A and B."""

    grid: ValueGrid
    above: NoisySum
    below: NoisySum

    def mean(self) -> float:
        """L + R·A/(A+B), or the middle where the noise has swallowed everybody."""
        size = self.above.value + self.below.value
        if size <= 0:
            return _to_value(self.grid, Fraction(self.grid.width, 2))
        share = min(max(Fraction(self.above.value, size), Fraction(0)), Fraction(1))
        return _to_value(self.grid, share * self.grid.width)

    def mean_interval(self, confidence: Fraction) -> Interval:
        """The u with |(1−u)A − uB| within the noise of that combination."""
        scale, slack = float(self.above.spread), slack_of(self.above)

        def threshold(u: Floats) -> Floats:
            weights = np.stack([1 - u, u], axis=-1)
            if self.above.step == 1 and self.above.scale <= SMALL_SCALE:
                return discrete_radius(weights, scale, float(confidence))
            return scale * combined_radius(weights, float(confidence)) + slack

        size = float(self.above.value + self.below.value)
        low, high = solutions(np.array([float(self.above.value)]), size, threshold, 0.0, 1.0)
        return _within_bounds(self.grid, *(Fraction(end.item()) * self.grid.width for end in (low, high)))

    def count(self) -> float:
        """The number of units, (A+B)/R."""
        return (self.above.value + self.below.value) / self.grid.width

    def count_interval(self, confidence: Fraction) -> Interval:
        """Of a sum of two draws."""
        both = float(combined_radius(np.ones(2), float(confidence)))
        reach = float(self.above.spread) * both + 2 * slack_of(self.above)
        return self.count() - reach / self.grid.width, self.count() + reach / self.grid.width

    def sum(self) -> float:
        """(H·A + L·B)/R."""
        grid = self.grid
        return float(Fraction(grid.upper * self.above.value + grid.lower * self.below.value, grid.width) * grid.step)

    def sum_interval(self, confidence: Fraction) -> Interval:
        """Of that combination of two draws."""
        weights = np.array([self.grid.upper, self.grid.lower], np.float64) / self.grid.width
        reach = float(self.above.spread) * float(combined_radius(weights, float(confidence)))
        reach = (reach + slack_of(self.above) * float(np.abs(weights).sum())) * float(self.grid.step)
        return self.sum() - reach, self.sum() + reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Mean and variance from Σa and Σq, n public: variance = m(R−m) − Σq/n with m = Σa/n."""

    grid: ValueGrid
    n: int
    total: NoisySum
    mixed: NoisySum

    def lone(self) -> Lone:
        """The mean's part."""
        return Lone(grid=self.grid, n=self.n, total=self.total)

    def mean(self) -> float:
        """The mean."""
        return self.lone().mean()

    def mean_interval(self, confidence: Fraction) -> Interval:
        """Of the mean."""
        return self.lone().mean_interval(confidence)

    def sum(self) -> float:
        """The sum."""
        return self.lone().sum()

    def sum_interval(self, confidence: Fraction) -> Interval:
        """Of the sum."""
        return self.lone().sum_interval(confidence)

    def sample_factor(self) -> float:
        """n/(n−1)."""
        return self.n / (self.n - 1) if self.n > 1 else 1.0

    def variance(self) -> float:
        """The variance of the population, held at 0 and at a quarter of the range squared."""
        width = self.grid.width
        m = min(max(Fraction(self.total.value, self.n), Fraction(0)), Fraction(width))
        found = m * (width - m) - Fraction(self.mixed.value, self.n)
        return float(min(max(found, Fraction(0)), Fraction(width**2, 4)) * self.grid.step**2)

    def variance_interval(self, confidence: Fraction) -> Interval:
        """The image of a box: half of the error for each total. The image is concave in m."""
        width, each = self.grid.width, (1 + confidence) / 2
        reach = radius(self.total, each)
        means = [
            min(max(Fraction(self.total.value + sign * reach, self.n), Fraction(0)), Fraction(width))
            for sign in (-1, 1)
        ]
        peaks = [*means, Fraction(width, 2)] if means[0] < Fraction(width, 2) < means[1] else means
        images = [m * (width - m) for m in peaks]
        reach = radius(self.mixed, each)
        low = min(images) - Fraction(self.mixed.value + reach, self.n)
        high = max(images) - Fraction(self.mixed.value - reach, self.n)
        return _variance_ends(self.grid, float(low) / width**2, float(high) / width**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bernstein:
    """Number of units, mean and variance from the three sums."""

    grid: ValueGrid
    sums: tuple[NoisySum, NoisySum, NoisySum]

    def _values(self) -> tuple[float, float, float, float]:
        b0, b1, b2 = (float(one.value) for one in self.sums)
        return b0, b1, b2, b0 + b1 + b2

    def count(self) -> float:
        """The number of units."""
        return self._values()[3] / float(self.grid.width) ** 2

    def count_interval(self, confidence: Fraction) -> Interval:
        """Of a sum of three draws."""
        reach = float(self._noise(np.ones(3), float(confidence))) / float(self.grid.width) ** 2
        return self.count() - reach, self.count() + reach

    def sum(self) -> float:
        """Σa + L·N."""
        return float(np.dot(self._sum_weights(), self._values()[:3])) * float(self.grid.step)

    def sum_interval(self, confidence: Fraction) -> Interval:
        """Of that combination of three draws."""
        reach = float(self._noise(self._sum_weights(), float(confidence))) * float(self.grid.step)
        return self.sum() - reach, self.sum() + reach

    def _sum_weights(self) -> Floats:
        width, lower = float(self.grid.width), float(self.grid.lower)
        return np.array([0.0, 0.5, 1.0]) / width + lower / width**2

    def sample_factor(self) -> float:
        """N/(N−1)."""
        size = max(self.count(), 2.0)
        return size / (size - 1)

    def _shares(self) -> tuple[float, float]:
        """u and v."""
        _, b1, b2, size = self._values()
        if size <= 0:
            return 0.5, 0.0
        u = min(max((b1 / 2 + b2) / size, 0.0), 1.0)
        return u, min(max(b2 / size - u * u, 0.0), u * (1 - u))

    def mean(self) -> float:
        """L + R·u."""
        return _to_value(self.grid, Fraction(self._shares()[0]) * self.grid.width)

    def mean_interval(self, confidence: Fraction) -> Interval:
        """The u for which −u·B₀ + (½−u)·B₁ + (1−u)·B₂ is within its noise."""
        low, high = self._mean_share(float(confidence))
        return _within_bounds(self.grid, *(Fraction(end) * self.grid.width for end in (low, high)))

    def variance(self) -> float:
        """The variance of the population."""
        return self._shares()[1] * float(self.grid.width * self.grid.step) ** 2

    def variance_interval(self, confidence: Fraction) -> Interval:
        """First the u at half of the error, then for each of them the v at the other half."""
        each = (1 + float(confidence)) / 2
        first, last = self._mean_share(each)
        b0, b1, b2, size = self._values()
        u = np.linspace(first, last, _MEANS)[:, None]
        known = u * u * b0 + (u * u - u) * b1 + (1 - u) ** 2 * b2

        def threshold(v: Floats) -> Floats:
            return self._noise(np.stack([u * u - v, u * u - u - v, (1 - u) ** 2 - v], axis=-1), each)

        lows, highs = solutions(known[:, 0], size, threshold, 0.0, 0.25)
        return _variance_ends(self.grid, float(lows.min()), float(highs.max()))

    def _mean_share(self, confidence: float) -> Interval:
        _, b1, b2, size = self._values()

        def threshold(u: Floats) -> Floats:
            return self._noise(np.stack([u, 0.5 - u, 1 - u], axis=-1), confidence)

        low, high = solutions(np.array([b1 / 2 + b2]), size, threshold, 0.0, 1.0)
        return low.item(), high.item()

    def _noise(self, weights: Floats, confidence: float) -> Floats:
        one = self.sums[0]
        reach: Floats = float(one.spread) * combined_radius(weights, confidence)
        reach += slack_of(one) * np.abs(weights).sum(axis=-1)
        return reach


def _to_value(grid: ValueGrid, steps: Fraction) -> float:
    return float((grid.lower + steps) * grid.step)


def _within_bounds(grid: ValueGrid, low: Fraction, high: Fraction) -> Interval:
    """In the units of the data, half a step wider for the grid's rounding, cut at the bounds."""
    half = Fraction(0) if grid.exact else Fraction(1, 2)
    ends = (
        min(max(low - half, Fraction(0)), Fraction(grid.width)),
        min(max(high + half, Fraction(0)), Fraction(grid.width)),
    )
    return _to_value(grid, ends[0]), _to_value(grid, ends[1])


def _variance_ends(grid: ValueGrid, low: float, high: float) -> Interval:
    """From shares of R² to the units of the data; rounding to the grid moves a std by half a step at most."""
    width, half = float(grid.width * grid.step), 0.0 if grid.exact else float(grid.step) / 2
    low, high = (math.sqrt(min(max(end, 0.0), 0.25)) * width for end in (low, high))
    return max(low - half, 0.0) ** 2, min(high + half, width / 2) ** 2
