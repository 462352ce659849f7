"""Intervals from released values only: how far the noise alone can have moved them, at a confidence.

Noise is continuous Laplace for this purpose; the discrete draw is within one step of it (|X| = ⌊|Y| + c⌋ with c ≤ ½ and
the same sign), which every bound below adds. For S = Σ wᵢYᵢ of independent unit Laplace variables, |wᵢ| distinct,

    P(|S| > t) = Σᵢ e^(−t/|wᵢ|) · Πⱼ≠ᵢ wᵢ²/(wᵢ² − wⱼ²)

and for near ties a weight is enlarged by 10⁻³, which can only widen the interval. Intervals cover the noise, and half a
step of the grid; they do not cover sampling error or what clamping removed. This is post-processing: floats may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate import lemma
from discreet.release.mechanism import NoisySum

_APART = 1.001
_POINTS = 65

_STEPS, _CLOSE = 50, 1e-6
"""Newton's steps end when they move by less than this share: what is left is of the order of its square."""

SMALL_SCALE = 2
"""Up to this scale in steps the discrete law itself is used: a step of slack would widen the interval by a sixth."""

_ROUNDS, _PARTS = 9, 16
"""The edges of a set between two of its points are found to 2⁻³⁶ of their distance."""

_FLOATS = 2.0**-50
"""More than what a product and a difference of floats are off, as a share of the numerator."""

Floats = NDArray[np.float64]


half_width = lru_cache(maxsize=512)(lemma.half_width)
"""The same for a plan, for its rehearsal and for its release."""


def radius(noisy: NoisySum, confidence: Fraction) -> int:
    """The exact half-width of the interval of one noisy total, in grid units."""
    rounding = noisy.step // 2 if noisy.step > 1 else 0
    return half_width(noisy.scale, confidence) * noisy.step + rounding


def slack_of(noisy: NoisySum) -> float:
    """How far a noisy total can be from the total plus continuous noise: one step, and half a step of rounding."""
    return noisy.step * 1.5 if noisy.step > 1 else 1.0


def combined_radius(weights: Floats, confidence: float) -> Floats:
    """For each row of weights the t with P(|Σ wᵢYᵢ| ≤ t) = confidence, or a hair more.

    ln P(|S| > t) falls and is concave in t, so every step of Newton's method ends at or beyond the root.
    """
    sizes = _distinct(np.abs(np.asarray(weights, np.float64)))
    miss = math.log1p(-confidence)
    squares = sizes**2
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = squares[..., :, None] / (squares[..., :, None] - squares[..., None, :])
    factors[..., range(sizes.shape[-1]), range(sizes.shape[-1])] = 1.0
    products = factors.prod(axis=-1)
    reach = sizes[..., -1] * -miss
    for _ in range(_STEPS):
        terms = products * np.exp(-reach[..., None] / sizes)
        tail = terms.sum(axis=-1)
        moved = (np.log(tail) - miss) * tail / (terms / sizes).sum(axis=-1)
        reach = reach + moved
        if np.all(np.abs(moved) <= _CLOSE * reach):
            break
    return reach


def discrete_radius(weights: Floats, scale: float, confidence: float) -> Floats:
    """For each pair of weights the smallest t with P(|w₁X₁ + w₂X₂| ≤ t) ≥ confidence, X discrete with this small scale.

    All pairs of draws up to a size beyond which there is e⁻⁸ of the error allowed, which counts as an error.
    """
    last = math.ceil(scale * (8 - math.log1p(-confidence)))
    sizes = np.abs(np.arange(-last, last + 1))
    chances = math.tanh(0.5 / scale) * np.exp(-sizes / scale)
    first, second = (part.ravel() for part in np.meshgrid(np.arange(-last, last + 1), np.arange(-last, last + 1)))
    sums = np.abs(weights[..., :1] * first + weights[..., 1:] * second)
    order = np.argsort(sums, axis=-1)
    reached = np.cumsum(np.outer(chances, chances).ravel()[order], axis=-1) >= confidence
    found = np.take_along_axis(order, reached.argmax(axis=-1)[..., None], axis=-1)
    return np.take_along_axis(sums, found, axis=-1)[..., 0] * (1 + _CLOSE)


def solutions(
    numerators: Floats, denominator: float, threshold: Callable[[Floats], Floats], low: float, high: float
) -> tuple[Floats, Floats]:
    """For each numerator the smallest and the largest z in [low, high] with |numerator − z·denominator| ≤ threshold(z).

    At the true z the left side is noise alone, so the set covers it whatever the denominator is (Fieller). The
    threshold takes a row of z for each numerator.
    """
    rows = numerators[:, None]

    def holds(z: Floats) -> NDArray[np.bool_]:
        # the left side is a difference of floats: without noise it would not be 0 at the true z
        accepted: NDArray[np.bool_] = np.abs(rows - z * denominator) <= threshold(z) + _FLOATS * np.abs(rows)
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
    return outside[:, 0], outside[:, 1]  # the last points outside: a little too wide, never too narrow


def _closer(holds: Callable[[Floats], NDArray[np.bool_]], outside: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Both edges of every row, each to a sixteenth of where they can lie."""
    parts = np.linspace(0.0, 1.0, _PARTS + 1)
    points = outside[..., None] + (inside - outside)[..., None] * parts
    accepted = holds(points.reshape(len(points), -1)).reshape(points.shape)
    accepted[..., 0] &= outside == inside  # at an end of the interval there is nothing outside
    accepted[..., -1] = True
    index = accepted.argmax(axis=-1)[..., None]
    ends = [np.take_along_axis(points, at, axis=-1)[..., 0] for at in (np.maximum(index - 1, 0), index)]
    return ends[0], ends[1]


def _distinct(sizes: Floats) -> Floats:
    """Rising along the last axis, none 0, neighbours apart: every change enlarges a weight."""
    rising: Floats = np.sort(sizes, axis=-1)
    np.maximum(rising, np.maximum(1e-9 * rising[..., -1:], 1e-300), out=rising)
    for index in range(1, rising.shape[-1]):
        np.maximum(rising[..., index], rising[..., index - 1] * _APART, out=rising[..., index])
    return rising
