"""The Laplace law, continuous and discrete: probabilities, moments and exact samples.

    Lap(λ):   density e^(−|x|/λ) / 2λ                            on the reals      [DMNS06]
    DLap(t):  P(k) = (1−q)/(1+q) · q^|k|  with q = e^(−1/t)     on the integers   [GRS12]

The methods have the names and call forms of scipy.stats: `Laplace(2)` and
`scipy.stats.laplace(scale=2)` can be exchanged, and so can `DiscreteLaplace(2)` and
`scipy.stats.dlaplace(1/2)`. Floats are correctly rounded here, by ball arithmetic [Joh17]. Samples
are exact: `draw.digits` draws one, `draw.vector` many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb

from discreet.calibrate.ball import ball, integer_floor, nearest
from discreet.calibrate.grid import floor_log2
from discreet.calibrate.lemma import deviation
from discreet.errors import InvalidParameter
from discreet.parameters import Number, exact

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_HALF = Fraction(1, 2)


class _Symmetric:
    """What the two laws share: both are symmetric around 0, and both have a `_ppf` on 0 < q < 1."""

    __slots__ = ()
    _ppf: Callable[[Fraction], Any]

    def ppf(self, q: Number | ArrayLike) -> Any:
        """The smallest value whose cdf is at least q: −∞ at 0, ∞ at 1, NaN outside [0, 1]."""
        return _map(q, self._quantile, (math.nan, math.nan))

    def isf(self, q: Number | ArrayLike) -> Any:
        """The smallest value whose sf is at most q: ∞ at 0, −∞ at 1, NaN outside [0, 1]."""
        return _map(q, lambda q: self._quantile(1 - Fraction(q)), (math.nan, math.nan))

    def mean(self) -> float:
        """The mean, 0."""
        return 0.0

    def median(self) -> float:
        """The median, 0."""
        return 0.0

    def interval(self, confidence: Number | ArrayLike) -> tuple[Any, Any]:
        """The values `ppf((1 − c)/2)` and `ppf((1 + c)/2)`, for a confidence c between 0 and 1."""

        def end(side: int) -> Any:
            return _map(confidence, lambda c: self._quantile((1 + side * _confidence(c)) / 2))

        return end(-1), end(1)

    def _quantile(self, q: Fraction | float) -> Any:
        if 0 < q < 1:
            return self._ppf(Fraction(q))
        return -math.inf if q == 0 else math.inf if q == 1 else math.nan


@dataclass(frozen=True, slots=True, init=False)
class Laplace(_Symmetric):
    """The continuous Laplace distribution Lap(scale) of the textbooks.

    Its methods are called as those of `scipy.stats.laplace(scale=scale)`.

    Parameters
    ----------
    scale : number or text
        λ, positive.

    Examples
    --------
    >>> law = Laplace(2)
    >>> law.mean_absolute(), law.var(), law.pdf(0), law.ppf(0.5)
    (2.0, 8.0, 0.25, 0.0)

    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", exact("scale", scale))

    def mean_absolute(self) -> float:
        """E|Z| = λ."""
        return nearest(lambda: ball(self.scale))

    def std(self) -> float:
        """√E(Z²) = √2·λ."""
        return nearest(lambda: arb(2).sqrt() * ball(self.scale))

    def var(self) -> float:
        """E(Z²) = 2λ²."""
        return nearest(lambda: ball(2 * self.scale**2))

    def pdf(self, x: Number | ArrayLike) -> Any:
        """The density e^(−|x|/λ)/2λ."""
        return _map(x, lambda x: nearest(lambda: self._half(x) / ball(self.scale)), (0.0, 0.0))

    def logpdf(self, x: Number | ArrayLike) -> Any:
        """The logarithm of the density, −|x|/λ − ln 2λ."""
        return _map(x, self._logpdf, (-math.inf, -math.inf))

    def cdf(self, x: Number | ArrayLike) -> Any:
        """P(Z ≤ x)."""
        return _map(x, lambda x: self._tail(-x), (0.0, 1.0))

    def sf(self, x: Number | ArrayLike) -> Any:
        """P(Z > x)."""
        return _map(x, self._tail, (1.0, 0.0))

    def sample(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Draws from Lap(scale), rounded to a grid of about scale/2²⁰, for plots.

        Use `laplace_mechanism` to release an answer: adding these floats to a float would leak
        information.
        """
        step = Fraction(2) ** (floor_log2(self.scale) - 20)
        return DiscreteLaplace(self.scale / step).sample(size) * float(step)

    def _half(self, x: float) -> arb:
        """e^(−|x|/λ)/2."""
        return (-ball(abs(Fraction(x))) / ball(self.scale)).exp() / 2

    def _logpdf(self, x: float) -> float:
        exponent = abs(Fraction(x)) / self.scale
        return nearest(lambda: -ball(exponent) - ball(2 * self.scale).log())

    def _tail(self, x: float) -> float:
        return nearest(lambda: self._half(x) if x >= 0 else 1 - self._half(x))

    def _ppf(self, q: Fraction) -> float:
        if q == _HALF:
            return 0.0
        tail = 2 * min(q, 1 - q)
        sign = 1 if q > _HALF else -1
        return nearest(lambda: -sign * ball(self.scale) * ball(tail).log())


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(_Symmetric):
    """The discrete Laplace distribution DLap(scale): P(k) = (1−q)/(1+q)·q^|k| on the integers, with
    q = e^(−1/scale).

    Its methods are called as those of `scipy.stats.dlaplace(1/scale)`. For one number, `ppf`, `isf`
    and `interval` give an int, which is exact for every scale; for an array they give floats.

    Parameters
    ----------
    scale : number or text
        t, positive.

    Examples
    --------
    >>> law = DiscreteLaplace("1/2")
    >>> law.pmf(0), law.ppf(0.999), law.sf(3) <= 0.001 < law.sf(2), law.interval(0.95)
    (0.7615941559557649, 3, True, (-1, 1))

    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", exact("scale", scale))

    def mean_absolute(self) -> float:
        """E|X| = 2q/(1−q²) = 1/sinh(1/t)."""
        return nearest(lambda: 1 / (1 / ball(self.scale)).sinh())

    def std(self) -> float:
        """√E(X²) = √(2q)/(1−q) = 1/(√2·sinh(1/2t))."""
        return nearest(lambda: deviation(self.scale))

    def var(self) -> float:
        """E(X²) = 2q/(1−q)²."""
        return nearest(lambda: deviation(self.scale) ** 2)

    def pmf(self, k: Number | ArrayLike) -> Any:
        """P(X = k); 0 where k is not an integer."""
        return _map(k, self._pmf, (0.0, 0.0))

    def logpmf(self, k: Number | ArrayLike) -> Any:
        """The logarithm of P(X = k); −∞ where k is not an integer."""
        return _map(k, self._logpmf, (-math.inf, -math.inf))

    def cdf(self, x: Number | ArrayLike) -> Any:
        """P(X ≤ x)."""
        return _map(x, lambda x: self._tail(-math.floor(x) - 1), (0.0, 1.0))

    def sf(self, x: Number | ArrayLike) -> Any:
        """P(X > x)."""
        return _map(x, lambda x: self._tail(math.floor(x)), (1.0, 0.0))

    def sample(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Exact draws: one int, or an array of int64 with the shape `size`."""
        from discreet.draw.vector import sample

        return sample(self.scale, size)

    def _pmf(self, k: float) -> float:
        if k != math.floor(k):
            return 0.0
        # (1−q)/(1+q) = tanh(1/2t)
        return nearest(lambda: (1 / (2 * ball(self.scale))).tanh() * self._power(abs(int(k))))

    def _logpmf(self, k: float) -> float:
        if k != math.floor(k):
            return -math.inf
        return nearest(
            lambda: (1 / (2 * ball(self.scale))).tanh().log() - abs(int(k)) / ball(self.scale)
        )

    def _tail(self, k: int) -> float:
        """P(X > k) = q^(k+1)/(1+q) for k ≥ 0, and 1 − q^(−k)/(1+q) for k < 0."""
        if k >= 0:
            return nearest(lambda: self._power(k + 1) / (1 + self._power(1)))
        return nearest(lambda: 1 - self._power(-k) / (1 + self._power(1)))

    def _ppf(self, q: Fraction) -> int:
        """For q > ½ the smallest k with q₁^(k+1)/(1+q₁) ≤ 1−q, otherwise the smallest k with
        q₁^(−k)/(1+q₁) ≥ q.

        q₁ is e^(−1/t). Each comparison is between a transcendental and a rational number, which are
        never equal.
        """

        def steps(tail: Fraction) -> arb:
            """The real x with q₁^x/(1+q₁) = tail."""
            return -ball(self.scale) * (ball(tail) * (1 + self._power(1))).log()

        if q > _HALF:  # ⌈x⌉ − 1 = ⌊x⌋ as x is not an integer
            return max(0, integer_floor(lambda: steps(1 - q)))
        return -max(0, integer_floor(lambda: steps(q)))

    def _power(self, k: int) -> arb:
        """q^k."""
        return (-k / ball(self.scale)).exp()


def _map(
    values: Any, function: Callable[[Any], Any], ends: tuple[float, float] | None = None
) -> Any:
    """The function of a number, or of each number in an array or list, as floats.

    NaN stays NaN, −∞ and ∞ give `ends`.
    """
    import numpy as np

    if isinstance(values, int | float | Fraction):
        if values != values:  # noqa: PLR0124
            return math.nan
        return (
            ends[bool(values > 0)] if ends and values in (math.inf, -math.inf) else function(values)
        )
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise InvalidParameter(f"expected numbers, got {type(values).__name__} of {array.dtype}")
    if array.dtype.kind == "f":
        array = array.astype(float)  # a long double is rounded to a float
    results = [_map(value, function, ends) for value in array.ravel().tolist()]
    return results[0] if array.ndim == 0 else np.array(results, float).reshape(array.shape)


def _confidence(confidence: Fraction | float) -> Fraction:
    if not 0 <= confidence <= 1:
        raise InvalidParameter(
            f"confidence must lie between 0 and 1, got {confidence}; write 95 % as 0.95"
        )
    return Fraction(confidence)
