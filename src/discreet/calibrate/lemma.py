"""Lemma 1.4 of the texts: how large Laplace noise is, for one number and for the largest of d.

    Z ~ Lap(λ):  E|Z| = λ,  √E(Z²) = √2·λ,  P(|Z| > tλ) ≤ e^(−t)
    M = max |Zᵢ| of d:  E‖Z‖₁ = dλ,  P(M > λ(ln d + t)) ≤ e^(−t),  E(M) ≤ λ(ln d + 1)

Each function takes `law`: "lemma" (the bounds above), "continuous" (exact for Lap(λ); only the last
two differ), or "discrete" (exact for DLap(λ), the noise that is drawn, in grid steps). With q =
e^(−1/λ) and p(k) = 2q^(k+1)/(1+q),

    E|X| = 1/sinh(1/λ),  √E(X²) = 1/(√2·sinh(1/2λ)),  P(|X| > k) = p(k),
    E(M) = Σₖ 1 − (1 − p(k))^d     [GRS12]

Results are correctly rounded floats. They are the error of the noise alone, without sampling and
clamping errors.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, TypeAlias

from flint import arb, ctx

from discreet.calibrate.ball import ball, integer_floor, nearest
from discreet.errors import InvalidParameter
from discreet.parameters import (
    Epsilon,
    Number,
    exact,
    exact_chance,
    exact_count,
    exact_epsilon,
    exact_number,
    quote,
)

Law: TypeAlias = Literal["lemma", "continuous", "discrete"]

_MANY = 1000
"""Below this many draws E(M) is a binomial sum, whose terms reach 2^d and cost d bits."""

_SMOOTH = 20
"""Above this scale the largest of many draws is uniform modulo 1 up to e^(−190), far below a
float's last bit.
"""


def expected_error(scale: Number, *, law: Law = "lemma") -> float:
    """E|Z|, the mean absolute error of one number.

    Parameters
    ----------
    scale : number
        The noise scale λ.
    law : {"lemma", "continuous", "discrete"}
        The bound of Lemma 1.4, the exact value for Lap(λ), or for DLap(λ), the noise that is drawn,
        in grid steps.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_error(20), expected_error(20, law="discrete")
    (20.0, 19.991669096581678)

    """
    return expected_l1(scale, 1, law=law)


def root_mean_square_error(scale: Number, *, law: Law = "lemma") -> float:
    """√E(Z²), the root mean square error of one number.

    Parameters
    ----------
    scale, law
        As in `expected_error`.

    Returns
    -------
    float

    Examples
    --------
    >>> root_mean_square_error(1)
    1.4142135623730951

    """
    size, discrete = exact("scale", scale), _is_discrete(law)
    return nearest(lambda: deviation(size) if discrete else arb(2).sqrt() * ball(size))


def tail(scale: Number, at: Number, *, law: Law = "lemma") -> float:
    """P(|Z| > at), the probability of an error larger than `at`.

    Parameters
    ----------
    at : number
        An error, in the unit of the scale.
    scale, law
        As in `expected_error`.

    Returns
    -------
    float

    Examples
    --------
    >>> tail(10, 30) == math.exp(-3)
    True

    """
    return max_tail(scale, 1, at, law=law)


def expected_l1(scale: Number, d: int, *, law: Law = "lemma") -> float:
    """E‖(Z₁, …, Z_d)‖₁, the expected total error of d numbers.

    Parameters
    ----------
    d : int
        How many numbers are released.
    scale, law
        As in `expected_error`.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_l1(2, 50)
    100.0

    """
    size, several, discrete = exact("scale", scale), exact_count("d", d), _is_discrete(law)
    return nearest(lambda: several / (1 / ball(size)).sinh() if discrete else several * ball(size))


def max_tail(scale: Number, d: int, at: Number, *, law: Law = "lemma") -> float:
    """P(max |Zᵢ| > at), the probability that any of d errors is larger than `at`.

    Parameters
    ----------
    scale, d, at, law
        As in `expected_l1` and `tail`.

    Returns
    -------
    float
        The lemma's bound is d·e^(−at/λ), at most 1.

    Examples
    --------
    >>> max_tail(20, 3143, 300), max_tail(20, 3143, 300, law="continuous")
    (0.0009614509933372385, 0.0009609890943347323)

    """
    size, several, point = exact("scale", scale), exact_count("d", d), exact_number("at", at)
    if point < 0:
        raise InvalidParameter(f"at must not be negative, got {quote(at)}")

    def beyond() -> arb:
        if _is_discrete(law):
            return _discrete_tail(size, math.floor(point))
        return (-ball(point / size)).exp()

    if law == "lemma":
        return min(1.0, nearest(lambda: several * beyond()))
    return nearest(lambda: 1 - (1 - beyond()) ** several)


def expected_max(scale: Number, d: int, *, law: Law = "lemma") -> float:
    """E(max |Zᵢ|), the expected largest error of d numbers.

    Parameters
    ----------
    scale, d, law
        As in `expected_l1`.

    Returns
    -------
    float
        The lemma's bound is λ(ln d + 1); the exact value for Lap(λ) is λ(1 + … + 1/d).

    Examples
    --------
    >>> (
    ...     round(expected_max(scale=20, d=3143), 2),
    ...     round(expected_max(scale=20, d=3143, law="continuous"), 2),
    ... )
    (181.06, 172.61)

    """
    size, several = exact("scale", scale), exact_count("d", d)
    if _is_discrete(law):
        return nearest(lambda: _discrete_max(size, several))
    if law == "continuous":
        return nearest(lambda: ball(size) * _harmonic(several))
    return nearest(lambda: ball(size) * (arb(several).log() + 1))


def half_width(scale: Number, confidence: Number, *, d: int = 1) -> int:
    """The half-width of a confidence interval: with this probability all of d discrete errors are
    at most so large.

    Parameters
    ----------
    scale : number
        The noise scale, in grid steps.
    confidence : number
        The probability, strictly between 0 and 1.
    d : int
        How many intervals hold at once.

    Returns
    -------
    int
        The smallest such number of grid steps.

    Examples
    --------
    >>> half_width(10, 0.95), half_width(10, 0.95, d=50)
    (30, 69)

    """
    size = exact("scale", scale)
    level = exact_chance("confidence", confidence)
    several = exact_count("d", d)

    def steps() -> arb:
        """The real k + 1 with 2q^(k+1)/(1+q) = 1 − level^(1/d); no integer: q is transcendental."""
        miss = -(ball(level).log() / several).expm1()
        return -ball(size) * (miss * (1 + (-1 / ball(size)).exp()) / 2).log()

    return integer_floor(steps)


def randomized_response(*, n: int, epsilon: Epsilon) -> float:
    """The root mean square error of a proportion that is estimated by randomized response.

    A bit is kept with probability p = e^ε/(1+e^ε); the unbiased estimate has variance
    p(1−p)/(n(2p−1)²) = 1/(4n·sinh²(ε/2)).

    Parameters
    ----------
    n : int
        The number of people.
    epsilon : number or text
        The privacy parameter of each person.

    Returns
    -------
    float

    Examples
    --------
    >>> randomized_response(n=200, epsilon="0.1") * 200 / root_mean_square_error(
    ...     10, law="discrete"
    ... )  # √(n/2)
    10.0

    """
    people, budget = exact_count("n", n), exact_epsilon(epsilon)
    return nearest(lambda: 1 / (2 * arb(people).sqrt() * ball(budget / 2).sinh()))


def deviation(scale: Fraction) -> arb:
    """√E(X²) of DLap(scale), as a ball."""
    return 1 / (arb(2).sqrt() * ball(1 / (2 * scale)).sinh())


def _discrete_tail(scale: Fraction, point: int) -> arb:
    """P(|X| > point)."""
    rate = ball(1 / scale)
    return 2 * (-rate * (point + 1)).exp() / (1 + (-rate).exp())


def _harmonic(d: int) -> arb:
    """1 + 1/2 + … + 1/d = ψ(d+1) + γ."""
    return arb(d + 1).digamma() + arb.const_euler()


def _discrete_max(scale: Fraction, d: int) -> arb:
    """E(M) = Σₖ 1 − (1 − p(k))^d, by one of three routes to the same number."""
    if d < _MANY:
        return _binomial_max(scale, d)
    return _summed_max(scale, d) if scale <= _SMOOTH else _coupled_max(scale, d)


def _binomial_max(scale: Fraction, d: int) -> arb:
    """Σᵢ (−1)^(i+1)·C(d,i)·(2q/(1+q))^i / (1−q^i), the sum over k done first."""
    rate, total = ball(1 / scale), arb(0)
    first = _discrete_tail(scale, 0)
    choices, power = -1, arb(1)
    for i in range(1, d + 1):
        choices, power = -choices * (d - i + 1) // i, power * first
        total += choices * power / -(-i * rate).expm1()
    return total


def _summed_max(scale: Fraction, d: int) -> arb:
    """The sum of the first K terms; the rest is at most d·(p(K) + p(K+1) + …) = d·p(K)/(1−q)."""
    last = math.ceil(scale * (math.ceil(math.log(d)) + ctx.prec))
    total = arb(0)
    for k in range(last):
        total += 1 - (1 - _discrete_tail(scale, k)) ** d
    remainder = d * _discrete_tail(scale, last) / -(-ball(1 / scale)).expm1()
    return total.union(total + remainder)


def _coupled_max(scale: Fraction, d: int) -> arb:
    """E⌊M′ + c⌋ with c = λ·ln(2/(1+q)), as |X| = ⌊|Z| + c⌋: λ(1 + … + 1/d) + c − 1/2, up to a
    certified remainder.

    The fractional part of W = M′ + c has |E{W} − 1/2| ≤ Σₖ |φ(2πk)|/πk with |φ(s)| = Π j/√(j² +
    s²λ²), j = 1 … d; 1/(2πkλ) for the first factor and k = 1 in the others leave (1/12λ)·Π j/√(j² +
    (2πλ)²), j = 2 … d.
    """
    size = ball(scale)
    remainder = 1 / (12 * size)
    for j in range(2, _MANY):
        remainder /= (1 + (2 * arb.pi() * size / j) ** 2).sqrt()
    middle = size * (_harmonic(d) + (2 / (1 + (-1 / size).exp())).log()) - ball(Fraction(1, 2))
    return middle + remainder * arb(0, 1)


def _is_discrete(law: object) -> bool:
    if law not in ("lemma", "continuous", "discrete"):
        raise InvalidParameter(f"law must be 'lemma', 'continuous' or 'discrete', got {quote(law)}")
    return law == "discrete"
