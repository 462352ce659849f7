"""What a target error requires: people for an ε, and ε for n people.

The noise of every statistic is a scale that shrinks with nε, times a width w: ln(1/β) for a
half-width at confidence 1−β, √2 for a root mean square error. For values of range R, and the data
for which the estimator is worst:

    count, proportion, histogram   the exact discrete law, for all d bins of a histogram at once
    mean                           w·R/nε              (both relations: the pair is worst at an end
                                                       of the bounds)
    variance, change-one           (9/8)·w′·R²/nε      with 4e^(−w′) − e^(−2w′) = 3β, or w′ =
                                                       √(5/2): Y₁ + Y₂/2
    variance, add-remove           w·R²/nε             (weights of L1 norm at most 1: a single one
                                                       is worst)
    std                            the variance with error 2σe − e², or e² for any σ, as |√a − √b| ≤
                                   √|a−b|
    quantile, in ranks             ln(K/2β)·2/nε, under add-remove ln(K/2β)·2max(q,1−q)/nε, among K
                                   cells

Means, variances and quantiles are to first order in 1/nε. Every bound is rounded so that the error
is met. Under change-one n is public. If missing values are dropped, n is private, and its own noise
adds a Y₃ to the widths of means and variances: w with (1 + w/2)·e^(−w) = β for a mean at an end of
the bounds, 1.4 times as wide at 95 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, assert_never, get_args

from flint import arb

from discreet.calibrate import sensitivity
from discreet.calibrate.ball import ball, upper_bound
from discreet.calibrate.lemma import deviation, half_width
from discreet.errors import InvalidParameter
from discreet.parameters import (
    LARGEST,
    MOST_UNITS,
    UNIT,
    Epsilon,
    Neighbors,
    Number,
    Range,
    exact,
    exact_bounds,
    exact_confidence,
    exact_count,
    exact_epsilon,
    exact_neighbors,
    exact_number,
    quote,
)

Statistic: TypeAlias = Literal[
    "count", "sum", "proportion", "mean", "variance", "std", "median", "quantile", "histogram"
]
Method: TypeAlias = Literal["laplace", "randomized-response"]

_Met: TypeAlias = Callable[[int, Fraction], bool]
"""Whether n units and ε are enough."""

_BITS = 256
"""Precision of a width: an answer is one too large only if it lies within 2⁻²⁵⁰ of the target
error.
"""


def people_needed(
    *,
    error: Number,
    epsilon: Epsilon,
    statistic: Statistic,
    bounds: Range | None = None,
    neighbors: Neighbors = "change-one",
    confidence: Number | None = "0.95",
    method: Method | None = None,
    std: Number | None = None,
    q: Number = "0.5",
    cells: int = 1024,
) -> int:
    """The smallest number of people for which the error of a statistic is at most `error`.

    Under change-one the number of values is assumed to be public, as it is for integers, for truth
    values, and with `missing=`. It is private if missing values are dropped (the default for floats
    and lists): the error of a mean or variance near an end of the bounds is then up to 1.4 times as
    large at 95 %. `within=` of a study's question takes this into account.

    Parameters
    ----------
    error : number
        The target; for a median or quantile, a fraction of the ranks (with "laplace", of the
        values).
    epsilon : number or text
        The privacy parameter.
    statistic : text
        "count", "sum", "proportion", "mean", "variance", "std", "median", "quantile" or
        "histogram".
    bounds, neighbors
        As in `help(discreet.sensitivity)`.
    confidence : number or None
        Of the interval; None bounds the root mean square error instead.
    method : {None, "laplace", "randomized-response"}
        discreet's own estimator, the textbook's Lap(Δ/ε), or a noisy bit from everyone.
    std : number, optional
        A likely standard deviation, which lowers the error of a std.
    q : number
        The share of a quantile.
    cells : int
        The cells of a quantile's grid.

    Returns
    -------
    int

    Examples
    --------
    >>> people_needed(error="0.01", epsilon="0.1", statistic="proportion", confidence=None)
    1414

    """
    ask = _Ask(error, statistic, bounds, neighbors, confidence, method, std, q, cells)
    budget, met, least = exact_epsilon(epsilon), _enough(ask), _least(statistic, method)
    if least is None:
        raise InvalidParameter(
            f"the error of a {statistic} does not depend on the number of people; use"
            " epsilon_needed"
        )
    if not met(MOST_UNITS, budget):
        raise InvalidParameter(
            f"impossible: ± {error} at epsilon={epsilon} takes over 10^18 people"
        )
    return _first(lambda people: met(people, budget), least, MOST_UNITS)


def epsilon_needed(
    *,
    error: Number,
    n: int | None = None,
    statistic: Statistic,
    bounds: Range | None = None,
    neighbors: Neighbors = "change-one",
    confidence: Number | None = "0.95",
    method: Method | None = None,
    std: Number | None = None,
    q: Number = "0.5",
    cells: int = 1024,
    bins: int = 1,
    total: Number = LARGEST,
) -> Fraction:
    """The smallest ε for which the error of a statistic of n people is at most `error`.

    Parameters
    ----------
    n : int, optional
        The number of people; counts, sums and histograms need none.
    bins : int
        The bins of a histogram, all of which have at most this error at once.
    total : number or text
        The largest ε to allow; a larger need is refused, with the number of people that would be
        enough.
    error, statistic, bounds, neighbors, confidence, method, std, q, cells
        As in `people_needed`.

    Returns
    -------
    Fraction
        A multiple of 10⁻⁹.

    Examples
    --------
    >>> float(epsilon_needed(error=0.1, n=100_000, statistic="mean", bounds=(0, 120)))
    0.035948788

    """
    ask = _Ask(error, statistic, bounds, neighbors, confidence, method, std, q, cells, bins)
    cap, met, least = exact_epsilon(total), _enough(ask), _least(statistic, method)
    units = exact_count("n", 1 if least is None and n is None else n, least=least or 1)
    if met(units, cap // UNIT * UNIT):
        return _first(lambda steps: met(units, steps * UNIT), 1, cap // UNIT) * UNIT
    if least is None or not met(MOST_UNITS, cap):
        raise InvalidParameter(f"impossible: ± {error} takes more than epsilon={total}")
    people = _first(lambda several: met(several, cap), units, MOST_UNITS)
    raise InvalidParameter(
        f"impossible with {units} people: ± {error} within epsilon={total} takes {people} people"
    )


def _least(statistic: Statistic, method: Method | None) -> int | None:
    """The least number of units for which the statistic is defined; None if its error does not
    depend on the number.
    """
    match statistic:
        case "count" | "sum" | "histogram":
            return None
        case "median" | "quantile" if method == "laplace":
            return None
        case "variance" | "std":
            return 2
    return 1


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest integer from `low` on for which a condition holds that is monotone and holds for
    `high`.
    """
    step = 1
    while low + step < high and not holds(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True, slots=True)
class _Ask:
    """The parameters of the question whether n units and ε are enough, as given by the caller."""

    error: object
    statistic: Statistic
    bounds: Any
    neighbors: Neighbors
    confidence: Any
    method: Method | None
    std: Any
    q: Any
    cells: object
    bins: object = 1

    @property
    def target(self) -> Fraction:
        """The target error."""
        return exact("error", self.error)

    @property
    def level(self) -> Fraction | None:
        """The confidence, or None for a root mean square error."""
        return None if self.confidence is None else exact_confidence(self.confidence)


def _enough(ask: _Ask) -> _Met:
    exact_neighbors(ask.neighbors)
    if ask.statistic not in get_args(Statistic):
        raise InvalidParameter(
            f"statistic must be one of {', '.join(get_args(Statistic))}, got {quote(ask.statistic)}"
        )
    if ask.method not in (None, *get_args(Method)) or (
        ask.method == "randomized-response" and ask.statistic != "proportion"
    ):
        raise InvalidParameter(
            "method must be None, 'laplace' or, for a proportion, 'randomized-response', got"
            f" {quote(ask.method)}"
        )
    match ask.statistic:
        case "count" | "histogram" | "proportion":
            return _of_counts(ask)
        case "sum":
            delta = sensitivity.sum(bounds=ask.bounds, neighbors=ask.neighbors)
            return _on_reals(ask.target, lambda _: delta, _width(ask.level))
        case "mean":
            width = sensitivity.mean(n=1, bounds=ask.bounds)
            return _on_reals(ask.target, lambda n: width / n, _width(ask.level))
        case "variance" | "std":
            return _of_spread(ask)
        case "median" | "quantile":
            return _of_rank(ask)
        case _:
            assert_never(ask.statistic)


def _of_counts(ask: _Ask) -> _Met:
    """The noise DLap(Δ/ε) of count, proportion (its count, over n) and histogram (all bins at
    once).
    """
    target, level, delta, d = ask.target, ask.level, Fraction(1), 1
    if ask.method == "randomized-response":
        return _by_response(target, level)
    if ask.statistic == "histogram":
        bins = exact_count("bins", ask.bins)
        # two bins are one count: the other is n minus it
        if (bins, ask.neighbors) != (2, "change-one"):
            delta, d = sensitivity.histogram(bins=bins, neighbors=ask.neighbors), bins

    def allowed(n: int) -> Fraction:
        return target * n if ask.statistic == "proportion" else target

    if level is None:
        return lambda n, epsilon: (
            upper_bound(lambda: deviation(delta / epsilon), _BITS) <= allowed(n)
        )
    return lambda n, epsilon: half_width(delta / epsilon, level, d=d) <= allowed(n)


def _by_response(target: Fraction, level: Fraction | None) -> _Met:
    """Randomized response: 1/(2√n·sinh(ε/2)) at most the target."""
    if level is not None:
        raise InvalidParameter(
            "randomized response is planned by its root mean square error; give confidence=None"
        )
    return lambda n, epsilon: (
        upper_bound(lambda: 1 / (2 * ball(epsilon / 2).sinh()), _BITS) ** 2 <= n * target**2
    )


def _on_reals(target: Fraction, delta: Callable[[int], Fraction], width: Fraction) -> _Met:
    """Noise of the scale Δ(n)/ε on a fine grid."""
    return lambda n, epsilon: delta(n) * width <= target * epsilon


def _of_spread(ask: _Ask) -> _Met:
    """Variance, and std by way of the variance."""
    target, level, bounds = ask.target, ask.level, ask.bounds
    if ask.method == "laplace":
        textbook = sensitivity.std if ask.statistic == "std" else sensitivity.variance
        return _on_reals(target, lambda n: textbook(n=n, bounds=bounds), _width(level))
    if ask.statistic == "std":
        guess = Fraction(0) if ask.std is None else exact("std", ask.std)
        target = 2 * guess * target - target**2 if guess >= target else target**2
    lower, upper = exact_bounds(bounds)
    width = _width(level) if ask.neighbors == "add-remove" else Fraction(9, 8) * _joint_width(level)
    return _on_reals(target, lambda n: (upper - lower) ** 2 / n, width)


def _of_rank(ask: _Ask) -> _Met:
    """Median and quantile: the error is a fraction of the ranks, or a value for the textbook's
    noise.
    """
    target, level = ask.target, ask.level
    q = Fraction(1, 2) if ask.statistic == "median" else exact_number("q", ask.q)
    if not 0 <= q <= 1:
        raise InvalidParameter(f"q must lie between 0 and 1, got {quote(ask.q)}")
    if ask.method == "laplace":
        delta = sensitivity.quantile(q, bounds=ask.bounds, neighbors=ask.neighbors)
        return _on_reals(target, lambda _: delta, _width(level))
    if level is None:
        raise InvalidParameter(
            "a quantile has no root mean square error that holds for all data; give a confidence"
        )
    ratio = exact_count("cells", ask.cells, least=2) / (2 * (1 - level))
    gaps = Fraction(2) if ask.neighbors == "change-one" else 2 * max(q, 1 - q)
    return _on_reals(target, lambda n: gaps / n, upper_bound(lambda: _log(ratio), _BITS))


def _width(level: Fraction | None) -> Fraction:
    """The width of Lap(1): ln(1/β), or √2."""
    return upper_bound(lambda: arb(2).sqrt() if level is None else -_log(1 - level), _BITS)


def _log(number: Fraction) -> arb:
    return ball(number).log()


def _joint_width(level: Fraction | None) -> Fraction:
    """The width of Y₁ + Y₂/2: P(|Y₁ + Y₂/2| > w) = (4e^(−w) − e^(−2w))/3 is quadratic in e^(−w); or
    √(5/2).
    """
    if level is None:
        return upper_bound(lambda: ball(Fraction(5, 2)).sqrt(), _BITS)
    # 4 − 3β = 1 + 3·level
    return upper_bound(lambda: -(2 - ball(1 + 3 * level).sqrt()).log(), _BITS)
