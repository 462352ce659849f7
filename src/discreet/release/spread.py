"""Intervals from released values only: how far the noise alone can have moved them, at a confidence.

Noise is continuous Laplace for this purpose; the discrete draw is within one step of it (|X| = ⌊|Y| + c⌋ with c ≤ ½ and
the same sign), which every bound below adds. For S = Σ wᵢYᵢ of independent unit Laplace variables, |wᵢ| distinct,

    P(|S| > t) = Σᵢ e^(−t/|wᵢ|) · Πⱼ≠ᵢ wᵢ²/(wᵢ² − wⱼ²)

and for near ties a weight is enlarged by 10⁻³, which can only widen the interval. Intervals cover the noise, and half a
step of the grid; they do not cover sampling error or what clamping removed. This is post-processing: floats may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.calibrate.lemma import half_width
from discreet.release.mechanism import NoisySum

_APART = 1.001
_POINTS = 65


def radius(noisy: NoisySum, confidence: Fraction) -> int:
    """The exact half-width of the interval of one noisy total, in grid units."""
    rounding = noisy.step // 2 if noisy.step > 1 else 0
    return half_width(noisy.scale, confidence) * noisy.step + rounding


def slack_of(noisy: NoisySum) -> float:
    """How far a noisy total can be from the total plus continuous noise: one step, and half a step of rounding."""
    return noisy.step * 1.5 if noisy.step > 1 else 1.0


def combined_radius(weights: Sequence[float], confidence: float) -> float:
    """The t with P(|Σ wᵢYᵢ| ≤ t) = confidence."""
    sizes = _distinct(weights)
    if not sizes:
        return 0.0
    miss = 1 - confidence
    low, high = 0.0, math.fsum(sizes) * max(1.0, -math.log(miss)) * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(sizes, middle) > miss else (low, middle)
    return high


def solutions(
    numerator: float, denominator: float, threshold: Callable[[float], float], low: float, high: float
) -> tuple[float, float]:
    """The smallest and the largest z in [low, high] with |numerator − z·denominator| ≤ threshold(z).

    At the true z the left side is noise alone, so the set covers it whatever the denominator is (Fieller).
    """

    def holds(z: float) -> bool:
        return abs(numerator - z * denominator) <= threshold(z)

    points = [low + (high - low) * index / (_POINTS - 1) for index in range(_POINTS)]
    if denominator > 0:
        points.append(min(max(numerator / denominator, low), high))
    points = sorted(set(points))
    accepted = [index for index, point in enumerate(points) if holds(point)]
    if not accepted:  # cannot be with a positive denominator; then the noise has swallowed everything
        return low, high
    first, last = accepted[0], accepted[-1]
    lower = points[first] if first == 0 else _edge(holds, points[first - 1], points[first])
    upper = points[last] if last == len(points) - 1 else _edge(holds, points[last + 1], points[last])
    return lower, upper


def _edge(holds: Callable[[float], bool], outside: float, inside: float) -> float:
    """The last point outside: a little too wide, never too narrow."""
    for _ in range(50):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if holds(middle) else (middle, inside)
    return outside


def _distinct(weights: Sequence[float]) -> list[float]:
    sizes: list[float] = []
    largest = max((abs(weight) for weight in weights), default=0.0)
    for size in sorted(abs(weight) for weight in weights if abs(weight) > 1e-9 * largest):
        sizes.append(max(size, sizes[-1] * _APART) if sizes else size)
    return sizes


def _tail(sizes: Sequence[float], at: float) -> float:
    total = 0.0
    for index, size in enumerate(sizes):
        product = math.exp(-at / size)
        for other, second in enumerate(sizes):
            if other != index:
                product *= size * size / (size * size - second * second)
        total += product
    return total
