"""Means and variances whose noise is joint: several statistics for the price of one.

In steps of the grid let a = x − L, R = H − L, q = a(R−a).

    lone       Σa                                   DLap(R/ε)                                n public       [change-one]
    joint      Σa, Σq                               DLap(9R/8ε), DLap(9R²/16ε)               n public       [change-one]
    centred    Σ(2a−R), N                           DLap(2R/ε), DLap(2/ε)                    N private      [change-one]
    squares    Σ(2a−R), Σ(8q−R²), N                 DLap(9R/4ε), DLap(9R²/2ε), DLap(3/ε)     N private      [change-one]
    pair       Σa, Σ(R−a)                           DLap(R/ε) each                                          [add-remove]
    Bernstein  Σ(R−a)², Σ2a(R−a), Σa²               DLap(R²/ε) each                                         [add-remove]

because adding DLap(bᵢ) is ε-private iff no unit moves Σ|ΔTᵢ|/bᵢ by more than ε: the sup of the sum, not the sum of the
sups. Where a moves by d·R, q moves by at most d(1−d)·R², and max d + 2d(1−d) = 9/8. A value that comes or goes moves
the centred sums by at most R and 1, which costs ½ + ½, and the squares by 4/9 + 2/9 + 3/9. A value adds R to the pair
and R² to Bernstein's sums. Each design has a law in tests/laws. What follows from sums with private N is in `grouped`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.calibrate.grid import ValueGrid
from discreet.release.mechanism import NoisySum
from discreet.release.statistics.spread import radius

_WEIGHT = Fraction(2)
_STRETCH = (1 + _WEIGHT) ** 2 / (4 * _WEIGHT)

Interval = tuple[float, float]


def joint_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of Σa and Σq."""
    return [_STRETCH * width / epsilon, _STRETCH / _WEIGHT * width**2 / epsilon]


def centred_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of Σ(2a−R) and N."""
    return [2 * width / epsilon, 2 / epsilon]


def centred_square_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of Σ(2a−R), Σ(8q−R²) and N."""
    return [2 * _STRETCH * width / epsilon, 8 * _STRETCH / _WEIGHT * width**2 / epsilon, 3 / epsilon]


def pair_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of Σa and Σ(R−a)."""
    return [width / epsilon] * 2


def bernstein_scales(width: int, epsilon: Fraction) -> list[Fraction]:
    """The scales of the three sums."""
    return [width**2 / epsilon] * 3


def joint_totals(total: Any, squared: Any, width: int) -> list[Any]:
    """Σa and Σq."""
    return [total, width * total - squared]


def centred_totals(n: Any, total: Any, width: int) -> list[Any]:
    """Σ(2a−R) and N."""
    return [2 * total - n * width, n]


def centred_square_totals(n: Any, total: Any, squared: Any, width: int) -> list[Any]:
    """Σ(2a−R), Σ(8q−R²) and N."""
    return [2 * total - n * width, 8 * (width * total - squared) - n * width**2, n]


def pair_totals(n: Any, total: Any, width: int) -> list[Any]:
    """Σa and Σ(R−a)."""
    return [total, n * width - total]


def bernstein_totals(n: Any, total: Any, squared: Any, width: int) -> list[Any]:
    """Σ(R−a)², Σ2a(R−a), Σa²."""
    return [n * width**2 - 2 * width * total + squared, 2 * (width * total - squared), squared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Sum, mean and variance of n values, n public: variance = m(R−m) − Σq/n with m = Σa/n."""

    grid: ValueGrid
    n: int
    total: NoisySum
    mixed: NoisySum | None = None
    """Σq, where squares are asked for."""

    def value(self, statistic: str) -> list[float]:
        """The number of the one group: of sum, mean, variance or std, or the sample forms variance+ and std+."""
        match statistic:
            case "sum":  # not held within anything
                return [float((self.total.value + self.n * self.grid.lower) * self.grid.step)]
            case "mean":
                return [self._value(Fraction(self.total.value, self.n))]
        return [_shaped(statistic, self.variance() * self._factor(statistic))]

    def ends(self, statistic: str, confidence: Fraction) -> tuple[list[float], list[float]]:
        """The lower and the upper end of the interval of the one group."""
        match statistic:
            case "sum":
                reach = float(radius(self.total, confidence) * self.grid.step)
                [value] = self.value("sum")
                low, high = value - reach, value + reach
            case "mean":
                low, high = self.mean_interval(confidence)
            case _:
                factor = self._factor(statistic)
                low, high = (_shaped(statistic, end * factor) for end in self.variance_interval(confidence))
        return [low], [high]

    def mean_interval(self, confidence: Fraction) -> Interval:
        """Of one discrete Laplace draw, exactly; half a step wider for the grid's rounding, cut at the bounds."""
        reach = radius(self.total, confidence)
        half = Fraction(0) if self.grid.exact else Fraction(1, 2)
        low, high = (Fraction(self.total.value + sign * reach, self.n) + sign * half for sign in (-1, 1))
        return self._value(low), self._value(high)

    def variance(self) -> float:
        """The variance of the population, held at 0 and at a quarter of the range squared."""
        width, mixed = self.grid.width, self._mixed()
        m = self._held(Fraction(self.total.value, self.n))
        found = m * (width - m) - Fraction(mixed.value, self.n)
        return float(min(max(found, Fraction(0)), Fraction(width**2, 4)) * self.grid.step**2)

    def variance_interval(self, confidence: Fraction) -> Interval:
        """The image of a box: half of the error for each total. The image is concave in m."""
        width, each, mixed = self.grid.width, (1 + confidence) / 2, self._mixed()
        reach = radius(self.total, each)
        means = [self._held(Fraction(self.total.value + sign * reach, self.n)) for sign in (-1, 1)]
        peaks = [*means, Fraction(width, 2)] if means[0] < Fraction(width, 2) < means[1] else means
        images = [m * (width - m) for m in peaks]
        reach = radius(mixed, each)
        low = min(images) - Fraction(mixed.value + reach, self.n)
        high = max(images) - Fraction(mixed.value - reach, self.n)
        # rounding to the grid moves a std by half a step at most
        size, half = float(width * self.grid.step), 0.0 if self.grid.exact else float(self.grid.step) / 2
        roots = [math.sqrt(min(max(float(end) / width**2, 0.0), 0.25)) * size for end in (low, high)]
        return max(roots[0] - half, 0.0) ** 2, min(roots[1] + half, size / 2) ** 2

    def _mixed(self) -> NoisySum:
        if self.mixed is None:
            raise TypeError("a variance needs the sum of squares")
        return self.mixed

    def _factor(self, statistic: str) -> float:
        """What a sample's variance is multiplied by."""
        return self.n / (self.n - 1) if statistic.endswith("+") and self.n > 1 else 1.0

    def _held(self, steps: Fraction) -> Fraction:
        return min(max(steps, Fraction(0)), Fraction(self.grid.width))

    def _value(self, steps: Fraction) -> float:
        """In the units of the data, held within the bounds."""
        return float((self.grid.lower + self._held(steps)) * self.grid.step)


def _shaped(statistic: str, variance: float) -> float:
    return math.sqrt(variance) if statistic.startswith("std") else variance
