"""Intervals from released values only: how far the noise can have moved them, at a confidence.

Noise is treated as continuous Laplace with the variance of the discrete draw; every bound below
adds what the discreteness can contribute. For S = Σ wᵢYᵢ of independent unit Laplace variables,
|wᵢ| distinct,

    P(|S| > t) = Σᵢ e^(−t/|wᵢ|) · Πⱼ≠ᵢ wᵢ²/(wᵢ² − wⱼ²)

and for near ties a weight is enlarged by 10⁻³, which can only widen the interval. Intervals cover
the noise and half a step of the grid; they do not cover sampling error or clamping. This is
post-processing, so floats are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate import lemma
from discreet.calibrate.grid import ValueGrid
from discreet.engines.integers import Integers, without_overflow
from discreet.release.mechanism import NoisyColumn, NoisySum

_APART = 1.001

_STEPS, _CLOSE = 50, 1e-6
"""Newton's method ends when a step is smaller than this share: the remaining error is of the order
of its square.
"""

_NEAR_STEP = 1e-3
"""The same from a known start, which one step ends then: the radius is at most 5·10⁻⁷ too large,
about what others have from their nodes."""

SMALL_SCALE = 2
"""Up to this scale in steps the discrete law itself is used: a step of slack would widen the
interval by a sixth.
"""

_FEW = 3
"""Up to so many weights, floats are accurate enough for the closed form of the tail."""

_LEAST = 0.04
"""With many weights, smaller weights count as this share of the largest."""

_LEAST_OF_MANY = 1e-4
"""The same if weights occur many times."""

_DIGITS = 14.0
"""Integrals are truncated, and their nodes spaced, so that the error is e^(−this)."""

_RARELY, _SELDOM = 0.01, 0.25
"""Below the first confidence the radius is a share of that at the first: integrals that are exact
to e^(−14) tell too little of a chance of 10⁻⁶. Below the second it is about 1.2 times the
confidence and the deviation."""

_SMALL, _TERMS = 0.04, 6
"""Where |w²s²| is at most this, Σ ln(1 − w²s²) is computed by so many terms of its series, exact to
a share of 10⁻⁹; of the weights of a report most are so small."""

_HALVINGS = 8
"""Halvings of the interval in which a tilt is sought: any tilt gives the integral, a good one with
few nodes.
"""

_RARE = 2**-10
"""A draw counts as 0 if it differs from 0 with at most this share of the allowed error probability.
"""

_ROWS = 64
"""Rows of weights whose integrals are computed at a time, so that their nodes stay in the caches.
"""

_LATTICE = 0.65
"""A combination of discrete draws reaches further than one of continuous draws with the same
variances, by this share of its largest weight. It is found by a search, not proved: see `slack_of`.
"""

_FAR = 5.0
"""From an error probability of e^(−this) on, the discrete draws reach further: their tail falls
like e^(−x/t), where t is their scale, and that of continuous draws with their variance, whose scale
is smaller, falls faster."""

_SMOOTH = 1_000
"""From this scale on, the difference of the two scales is taken from its series."""

Floats = NDArray[np.float64]


half_width = lru_cache(maxsize=512)(lemma.half_width)
"""Cached for a plan, its rehearsal and its release."""


def radius(noisy: NoisySum, confidence: Fraction) -> int:
    """The exact half-width of the interval of one noisy total, in grid units."""
    rounding = noisy.step // 2 if noisy.step > 1 else 0
    return half_width(noisy.scale, confidence) * noisy.step + rounding


def continuous_scale(noisy: NoisySum | NoisyColumn) -> float:
    """The scale of a continuous Laplace variable with the variance of the draw, in grid units."""
    rate = 1 / float(noisy.scale)
    return math.exp(-rate / 2) / -math.expm1(-rate) * noisy.step


def slack_of(noisy: NoisySum | NoisyColumn, confidence: float) -> float:
    """How much further than such a variable a noisy total can reach, because it is discrete and
    rounded to a step.

    Found by a search, not proved: for 5,556 random combinations of one to seven draws, with weights
    of 1 to 40, scales from 0.03 to 20 and error probabilities from ½ to 10⁻¹², the exact law misses
    at most 0.9954 of what is allowed.
    """
    scale, miss = float(noisy.scale), 1 - confidence
    lattice = _LATTICE if scale >= 1 else 1.0
    # scale − 1/(2·sinh(1/2·scale)) = 1/(24·scale) − …, where large floats would cancel
    narrower = scale - continuous_scale(noisy) / noisy.step if scale < _SMOOTH else 1 / (24 * scale)
    lattice += 1.5 * narrower * max(0.0, -math.log(miss) - _FAR)
    if scale < 1 and math.exp(-1 / scale) < miss * _RARE:
        lattice = 0.0
    return noisy.step * (lattice + 0.5) if noisy.step > 1 else lattice


def combined_radius(
    weights: Floats, confidence: float, times: Floats | None = None, start: Floats | None = None
) -> Floats:
    """For each row of weights, the t with P(|Σ wᵢYᵢ| ≤ t) = confidence, or slightly more.

    With `times`, each weight counts for so many independent variables. A `start` near t saves time.
    """
    sizes = np.abs(np.asarray(weights, np.float64))
    if times is not None:
        smallest = _LEAST if (times == 1).all() else _LEAST_OF_MANY
        return _tilted_radius(sizes, confidence, times, smallest, start)
    return radius_of_kinds(sizes, np.ones(sizes.shape[-1]), confidence)


def radius_of_kinds(weights: Floats, times: Floats, confidence: float) -> Floats:
    """The same for weights of which each stands for so many: few enough that the least counts as
    `_LEAST` tells.
    """
    sizes = np.abs(weights)
    used = np.flatnonzero(sizes.reshape(-1, sizes.shape[-1]).any(axis=0))
    sizes, times = sizes[..., used], times[used]
    if times.sum() <= _FEW:
        each = np.repeat(sizes, times.astype(np.int64), axis=-1)
        return _closed_radius(each, confidence) if used.size else np.zeros(sizes.shape[:-1])
    return _tilted_radius(sizes, confidence, times, _LEAST)


def _closed_radius(weights: Floats, confidence: float) -> Floats:
    """The radius of up to three weights, by the formula above.

    ln P(|S| > t) falls and is concave in t, so every step of Newton's method ends at or beyond the
    root.
    """
    sizes = _distinct(weights)
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


def _tilted_radius(
    weights: Floats, confidence: float, times: Floats, smallest: float, start: Floats | None = None
) -> Floats:
    """The radius of more weights, whose closed form cancels, by the integral along s = c + iθ, by
    the midpoint rule:

        P(S > t) = (1/π) ∫₀^∞ Re e^(−st) M(s)/s dθ,    M(s) = Π 1/(1 − wᵢ²s²),    0 < c < 1/max w

    At the c where ln M(c) − ct is least, the integrand is as small as the tail itself: nothing
    cancels. Small weights are enlarged, which can only widen the interval, so that M falls fast.

    The density of |S| falls, so that P(|S| ≤ λt) ≥ λ·P(|S| ≤ t) for λ ≤ 1: so small confidences
    follow from a larger.
    """  # noqa: D400, D415 - a formula follows
    sizes, of_row = distinct_rows(weights.reshape(-1, weights.shape[-1]), times)
    times, begin = np.sort(times), None
    held = max(confidence, _RARELY)
    if start is not None:
        begin = np.empty(len(sizes))
        begin[of_row] = start.reshape(-1) * (held / confidence)
    radii = [
        _some_radii(sizes[rows], held, times, smallest, None if begin is None else begin[rows])
        for rows in _blocks(len(sizes))
    ]
    reach: Floats = np.concatenate(radii)[of_row].reshape(weights.shape[:-1])
    return reach if held == confidence else reach * (confidence / held)


def _blocks(count: int) -> list[slice]:
    return [slice(first, first + _ROWS) for first in range(0, count, _ROWS)]


def distinct_rows(sizes: Floats, times: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The rows that differ, with weights in the order of their times and sizes, and which of them
    each row is.

    Halves of a column are often alike: then the combinations for the shares u and 1 − u are the
    same draws.
    """
    order = np.argsort(times, kind="stable")
    rows, ends = sizes[:, order], np.flatnonzero(np.diff(times[order])) + 1
    for block in np.split(np.arange(len(order)), ends):
        rows[:, block] = np.sort(rows[:, block], axis=1)
    if len(rows) == 1:
        return rows, np.zeros(1, np.intp)
    # but for the rounding of their sums
    alike = np.round(rows / max(float(rows.max()), 1e-300), 12)
    _, first, of_row = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return rows[first], of_row.reshape(-1)


def _some_radii(
    sizes: Floats, confidence: float, times: Floats, smallest: float, start: Floats | None
) -> Floats:
    top, squares, aim, reach = _begun(sizes, confidence, times, smallest)
    if start is not None:
        reach = np.where(top > 0, start / np.where(top > 0, top, 1.0), reach)
    for _ in range(_STEPS):
        tilt, width, nodes = _nodes(squares, reach, times)
        s = tilt[:, None] + 1j * (np.arange(nodes) + 0.5) * width[:, None]
        heights = np.exp((tilt * reach)[:, None] - s * reach[:, None])
        along, first = s * s, np.zeros_like(tilt)
        small = squares.max(axis=0) * float(np.abs(along).max()) <= _SMALL
        # relative to M(c), which may exceed the floats
        exponent, series = np.zeros_like(s), small.any()
        if series:
            powers = _powers(squares[:, small], times[small])
            exponent += _series(powers[:, :, None], along)
            at_tilt = _series(powers, tilt**2)
            exponent -= at_tilt[:, None]
            first += at_tilt
        for column, many in zip(squares.T[~small], times[~small], strict=True):
            factor = 1 - column[:, None] * along
            if many == 1:
                heights /= factor
            else:
                least = 1 - column * tilt**2
                exponent -= many * np.log(factor / least[:, None])
                first -= many * np.log(least)
                series = True
        if series:
            heights *= np.exp(exponent)
        tail, density = (
            (part.real.sum(axis=-1) * width / math.pi) for part in (heights / s, heights)
        )
        moved = (np.log(tail) + first - tilt * reach - aim) * tail / density
        reach = np.maximum(reach + moved, reach / 3)
        if np.all(np.abs(moved) <= (_CLOSE if start is None else _NEAR_STEP) * reach):
            break
    radii: Floats = reach * top * (1 + 2 * _CLOSE)
    return radii


def _begun(
    sizes: Floats, confidence: float, times: Floats, smallest: float
) -> tuple[Floats, Floats, float, Floats]:
    """The largest weights, the squares of all as shares of these, the logarithm of the tail, and a
    first guess.
    """
    top = sizes.max(axis=-1)
    squares = np.maximum(sizes / np.where(top > 0, top, 1.0)[:, None], smallest) ** 2
    squares[top == 0] = 1.0
    aim = math.log1p(-confidence) - math.log(2)
    far = max(0.7, math.sqrt(-aim)) if confidence >= _SELDOM else 1.2 * confidence
    return top, squares, aim, np.sqrt(2 * squares @ times) * far


def _nodes(squares: Floats, reach: Floats, times: Floats) -> tuple[Floats, Floats, int]:
    """The c of the integrals, the distances of their nodes, and how many nodes they need."""
    tilt = _tilt(squares, reach, times)
    width = 2 * math.pi / np.maximum(reach + _DIGITS / tilt, _DIGITS / (1 - tilt))
    return tilt, width, math.ceil(float((_last(squares, tilt, times) / width).max()))


def work(weights: Floats, confidence: float, times: Floats) -> list[tuple[int, int, int]]:
    """The integrals that `combined_radius` computes in a step of Newton's method, by block: rows,
    nodes, and weights.

    Of the weights, those count that are not in the series.
    """
    sizes, _ = distinct_rows(np.abs(weights), times)
    times, found = np.sort(times), []
    for rows in _blocks(len(sizes)):
        _, squares, _, reach = _begun(sizes[rows], max(confidence, _RARELY), times, _LEAST_OF_MANY)
        tilt, width, nodes = _nodes(squares, reach, times)
        furthest = float((tilt**2 + (nodes * width) ** 2).max())
        found.append((len(squares), nodes, int((squares.max(axis=0) * furthest > _SMALL).sum())))
    return found


def _powers(squares: Floats, times: Floats) -> Floats:
    """Σ times·squaresᵏ/k for each k: the coefficients of −Σ times·ln(1 − squares·x)."""
    return np.stack([squares**power @ times / power for power in range(1, _TERMS + 1)])


def _series(powers: Floats, x: Any) -> Any:
    """Σ powersₖ·xᵏ."""
    total = powers[-1] * x
    for power in powers[-2::-1]:
        total = (total + power) * x
    return total


def _tilt(squares: Floats, reach: Floats, times: Floats) -> Floats:
    """The c between 0 and 1 with (ln M)′(c) = t, or nearly."""
    low, high = np.zeros_like(reach), np.ones_like(reach)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = (
            2 * squares * middle[:, None] / (1 - squares * (middle**2)[:, None])
        ) @ times > reach
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.clip((low + high) / 2, np.minimum(0.05, 1 / np.sqrt(2 * squares @ times)), 1 - 1e-4)


def _last(squares: Floats, tilt: Floats, times: Floats) -> Floats:
    """The θ beyond which M(c + iθ) is negligible compared with M(c)."""
    last = np.minimum(1, 1 / np.sqrt(squares @ times))
    first = np.log(1 - squares * (tilt**2)[:, None]) @ times
    while True:
        height = np.log(np.abs(1 - squares * ((tilt + 1j * last) ** 2)[:, None])) @ times
        small = height > _DIGITS + first
        if small.all():
            return last
        last = np.where(small, last, last * 1.5)


def discrete_radius(weights: Floats, scale: float, confidence: float) -> Floats:
    """For each pair of weights, the smallest t with P(|w₁X₁ + w₂X₂| ≤ t) ≥ confidence, X discrete
    with a small scale.

    It enumerates all pairs of draws up to a size whose tail has e⁻⁸ of the allowed error
    probability, counted as error.
    """
    last = math.ceil(scale * (8 - math.log1p(-confidence)))
    sizes = np.abs(np.arange(-last, last + 1))
    chances = math.tanh(0.5 / scale) * np.exp(-sizes / scale)
    first, second = (
        part.ravel() for part in np.meshgrid(np.arange(-last, last + 1), np.arange(-last, last + 1))
    )
    sums = np.abs(weights[..., :1] * first + weights[..., 1:] * second)
    order = np.argsort(sums, axis=-1)
    reached = np.cumsum(np.outer(chances, chances).ravel()[order], axis=-1) >= confidence
    position = np.take_along_axis(order, reached.argmax(axis=-1)[..., None], axis=-1)
    return np.take_along_axis(sums, position, axis=-1)[..., 0] * (1 + _CLOSE)


def _distinct(sizes: Floats) -> Floats:
    """The sizes in ascending order, positive and well separated; every change enlarges a weight."""
    rising: Floats = np.sort(sizes, axis=-1)
    np.maximum(rising, np.maximum(1e-9 * rising[..., -1:], 1e-300), out=rising)
    for index in range(1, rising.shape[-1]):
        np.maximum(rising[..., index], rising[..., index - 1] * _APART, out=rising[..., index])
    return rising


def rounding(grid: ValueGrid, n: int) -> int:
    """How far the rounding of n values can have moved their sum, in steps; rounds up."""
    return 0 if grid.exact else -(-n // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySumOnly:
    """Noisy sums alone: of a = x − L if the number n of rows is public, otherwise of x."""

    grid: ValueGrid
    n: int
    total: NoisyColumn
    most: int = 0
    """The most values in each sum, if that is public; else 0, and rounding is not covered."""

    def value(self, _statistic: str) -> Any:
        """The sums of all groups; integers if the values are integers."""
        return self._around(0)[0]

    def ends(self, _statistic: str, confidence: Fraction) -> tuple[Any, Any]:
        """The exact ends of their intervals, of one discrete Laplace draw each.

        Each value is rounded by at most half a step, which the ends include if it is public how
        many there can be.
        """
        most = max(self.n, self.most)  # releases that were stored before have n alone
        return self._around(radius(self.total[0], confidence) + rounding(self.grid, most))[1:]

    def _around(self, reach: int) -> tuple[Any, Any, Any]:
        values, unit = self.total.values, 1 if self.grid.exact else float(self.grid.step)
        return around(
            [value + self.grid.lower * self.n for value in values] if self.n else values,
            reach,
            unit,
        )


def around(centres: Sequence[int], reach: int, unit: float) -> tuple[Any, Any, Any]:
    """Numbers and the ends of their intervals, (centre ± reach)·unit; arrays if there are many,
    lists if few.
    """
    if isinstance(centres, Integers):
        [middle] = without_overflow([centres.array], [1 if reach < 2**60 else 2**61])
        return middle * unit, (middle - reach) * unit, (middle + reach) * unit
    return tuple([(centre + end) * unit for centre in centres] for end in (0, -reach, reach))  # type: ignore[return-value]
