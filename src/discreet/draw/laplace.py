"""The Laplace law, continuous and discrete: probabilities, quantiles and exact samples.

    Lap(λ):   density e^(−|y|/λ) / 2λ                            on the reals      [DMNS06]
    DLap(t):  P(k) = (1−q)/(1+q) · q^|k|  with q = e^(−1/t)     on the integers   [GRS12]

Probabilities are correctly rounded, by ball arithmetic [Joh17]. Samples are exact: `draw.digits` draws one, and
`draw.vector` draws many.
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


@dataclass(frozen=True, slots=True, init=False)
class Laplace:
    """The continuous Laplace distribution Lap(scale) of the textbooks.

    Parameters
    ----------
    scale : number or text
        λ, positive.

    Examples
    --------
    >>> Laplace(2).mean_absolute, Laplace(1).pdf(0)
    (2.0, 0.5)

    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", exact("scale", scale))

    @property
    def mean_absolute(self) -> float:
        """E|Z| = λ."""
        return nearest(lambda: ball(self.scale))

    @property
    def std(self) -> float:
        """√E(Z²) = √2·λ."""
        return nearest(lambda: arb(2).sqrt() * ball(self.scale))

    def pdf(self, x: Number | ArrayLike) -> Any:
        """The density e^(−|x|/λ)/2λ."""
        return _map(x, lambda x: nearest(lambda: self._half(x) / ball(self.scale)), (0.0, 0.0))

    def cdf(self, x: Number | ArrayLike) -> Any:
        """P(Z ≤ x)."""
        return _map(x, lambda x: self._tail(-x), (0.0, 1.0))

    def sf(self, x: Number | ArrayLike) -> Any:
        """P(Z > x)."""
        return _map(x, self._tail, (1.0, 0.0))

    def quantile(self, p: Number | ArrayLike) -> Any:
        """The x with P(Z ≤ x) = p."""
        return _map(p, self._quantile)

    def sample(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Draws from Lap(scale), rounded to a grid of about scale/2²⁰, for plots.

        Use `laplace_mechanism` to release an answer: adding these floats to a float would leak information.
        """
        step = Fraction(2) ** (floor_log2(self.scale) - 20)
        return DiscreteLaplace(self.scale / step).sample(size) * float(step)

    def _half(self, x: float) -> arb:
        """e^(−|x|/λ)/2."""
        return (-ball(abs(Fraction(x))) / ball(self.scale)).exp() / 2

    def _tail(self, x: float) -> float:
        return nearest(lambda: self._half(x) if x >= 0 else 1 - self._half(x))

    def _quantile(self, p: float) -> float:
        chance = _probability(p)
        if chance == _HALF:
            return 0.0
        tail = 2 * min(chance, 1 - chance)
        sign = 1 if chance > _HALF else -1
        return nearest(lambda: -sign * ball(self.scale) * ball(tail).log())


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """The discrete Laplace distribution DLap(scale): P(k) = (1−q)/(1+q)·q^|k| on the integers, with q = e^(−1/scale).

    Parameters
    ----------
    scale : number or text
        t, positive.

    Examples
    --------
    >>> law = DiscreteLaplace("1/2")
    >>> law.pmf(0), law.quantile(0.999), law.sf(law.quantile(0.999)) <= 0.001
    (0.7615941559557649, 3, True)

    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", exact("scale", scale))

    @property
    def mean_absolute(self) -> float:
        """E|X| = 2q/(1−q²) = 1/sinh(1/t)."""
        return nearest(lambda: 1 / (1 / ball(self.scale)).sinh())

    @property
    def std(self) -> float:
        """√E(X²) = √(2q)/(1−q) = 1/(√2·sinh(1/2t))."""
        return nearest(lambda: deviation(self.scale))

    def pmf(self, k: Number | ArrayLike) -> Any:
        """P(X = k); 0 where k is not an integer."""
        return _map(k, self._pmf, (0.0, 0.0))

    def cdf(self, k: Number | ArrayLike) -> Any:
        """P(X ≤ k)."""
        return _map(k, lambda k: self._tail(-math.floor(k) - 1), (0.0, 1.0))

    def sf(self, k: Number | ArrayLike) -> Any:
        """P(X > k)."""
        return _map(k, lambda k: self._tail(math.floor(k)), (1.0, 0.0))

    def quantile(self, p: Number | ArrayLike) -> Any:
        """The smallest integer k with P(X ≤ k) ≥ p."""
        return _map(p, self._quantile)

    def sample(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Exact draws: one int, or an array of int64 with the shape `size`."""
        from discreet.draw.vector import sample

        return sample(self.scale, size)

    def _pmf(self, k: float) -> float:
        if k != math.floor(k):
            return 0.0
        # (1−q)/(1+q) = tanh(1/2t)
        return nearest(lambda: (1 / (2 * ball(self.scale))).tanh() * self._power(abs(int(k))))

    def _tail(self, k: int) -> float:
        """P(X > k) = q^(k+1)/(1+q) for k ≥ 0, and 1 − q^(−k)/(1+q) for k < 0."""
        if k >= 0:
            return nearest(lambda: self._power(k + 1) / (1 + self._power(1)))
        return nearest(lambda: 1 - self._power(-k) / (1 + self._power(1)))

    def _quantile(self, p: float) -> int:
        """For p > ½ the smallest k with q^(k+1)/(1+q) ≤ 1−p, otherwise the smallest k with q^(−k)/(1+q) ≥ p.

        Each comparison is between a transcendental and a rational number, which are never equal.
        """
        chance = _probability(p)

        def steps(tail: Fraction) -> arb:
            """The real x with q^x/(1+q) = tail."""
            return -ball(self.scale) * (ball(tail) * (1 + self._power(1))).log()

        if chance > _HALF:  # ⌈x⌉ − 1 = ⌊x⌋ as x is not an integer
            return max(0, integer_floor(lambda: steps(1 - chance)))
        return -max(0, integer_floor(lambda: steps(chance)))

    def _power(self, k: int) -> arb:
        """q^k."""
        return (-k / ball(self.scale)).exp()


def _map(values: Any, function: Callable[[Any], Any], ends: tuple[float, float] | None = None) -> Any:
    """The function of a number, or of each number in an array or list; NaN stays NaN, −∞ and ∞ give `ends`."""
    import numpy as np

    if isinstance(values, int | float | Fraction):
        if values != values:  # noqa: PLR0124
            return math.nan
        return ends[values > 0] if ends and values in (math.inf, -math.inf) else function(values)
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise InvalidParameter(f"expected numbers, got {type(values).__name__} of {array.dtype}")
    results = [_map(value, function, ends) for value in array.ravel().tolist()]
    return results[0] if array.ndim == 0 else np.array(results).reshape(array.shape)


def _probability(p: Any) -> Fraction:
    if not 0 < p < 1:
        raise InvalidParameter(f"p must lie strictly between 0 and 1, got {p}")
    return Fraction(p)
