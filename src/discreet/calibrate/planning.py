"""What a wanted error takes: people for an ε, ε for n people, and the split of one ε over several statistics.

The noise of every statistic is a scale that shrinks with nε, times a width w: ln(1/β) for a half-width at confidence
1−β, √2 for a root mean square error. With values of range R, at the data where the estimator is worst:

    count, proportion, histogram   the exact discrete law, also for its d bins at once
    mean                           w·R/nε              (both relations: the pair is worst at an end of the bounds)
    variance, change-one           (9/8)·w′·R²/nε      with 4e^(−w′) − e^(−2w′) = 3β, or w′ = √(5/2): Y₁ + Y₂/2
    variance, add-remove           w·R²/nε             (weights of L1 norm at most 1: a single one is worst)
    std                            that of the variance at 2σe − e², or at e² for any σ, as |√a − √b| ≤ √|a−b|
    quantile, in ranks             ln(K/2β)·2/nε, under add-remove ln(K/2β)·2max(q,1−q)/nε, among K cells

Means, variances and quantiles to first order in 1/nε. Every bound is rounded so that the error is met. Under change-one
n is public. Where missing values are dropped it is not, and its own noise adds a Y₃ to the widths of means and
variances: w with (1 + w/2)·e^(−w) = β for a mean at an end of the bounds, 1.4 times as wide at 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, assert_never, get_args

from flint import arb, fmpz

from discreet.calibrate import sensitivity
from discreet.calibrate.ball import ball, lower_bound, upper_bound
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
"""Precision of a width: an answer is one too large only where it lies within 2⁻²⁵⁰ of the wanted error."""


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
    """The smallest number of units with which the statistic is within `error` at this confidence.

    `confidence=None` asks for the root mean square error instead. The estimator is discreet's own;
    `method="laplace"` is the textbook's Lap(Δ/ε), `method="randomized-response"` asks everyone for a noisy bit. The
    error of a median or quantile is a fraction of the ranks (of the values for "laplace"); that of a std is smaller
    where a likely `std` is given.

    Under change-one the number of values is taken to be public, as it is for integers, for truth values, and with
    `missing=`. Where missing values are dropped (floats and lists, by default) it is private: then the error of a mean
    or a variance is up to 1.4 times as large at 95 %, near an end of the bounds. Plan for that, or with `within=` of a
    study's question, which is computed for the question as it is asked.

    >>> people_needed(error="0.01", epsilon="0.1", statistic="proportion", confidence=None)
    1414
    """
    ask = _Ask(
        error=error,
        statistic=statistic,
        bounds=bounds,
        neighbors=neighbors,
        confidence=confidence,
        method=method,
        std=std,
        q=q,
        cells=cells,
    )
    budget, met, least = exact_epsilon(epsilon), _enough(ask), _least(statistic, method)
    if least is None:
        raise InvalidParameter(
            f"the error of a {statistic} does not depend on the number of people; use epsilon_needed"
        )
    if not met(MOST_UNITS, budget):
        raise InvalidParameter(f"impossible: ± {error} at epsilon={epsilon} takes over 10^18 people")
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
    """The smallest ε, in whole units of 10⁻⁹, with which the statistic of n units is within `error`.

    The parameters are those of `people_needed`, and the number of values is public as it is there; a histogram is
    within `error` in all of its `bins` at once. What takes more than `total` is refused as impossible, with the number
    of people that it would take.

    >>> float(epsilon_needed(error=0.1, n=100_000, statistic="mean", bounds=(0, 120)))
    0.035948788
    """
    ask = _Ask(
        error=error,
        statistic=statistic,
        bounds=bounds,
        neighbors=neighbors,
        confidence=confidence,
        method=method,
        std=std,
        q=q,
        cells=cells,
        bins=bins,
    )
    cap, met, least = exact_epsilon(total), _enough(ask), _least(statistic, method)
    units = exact_count("n", 1 if least is None and n is None else n, least=least or 1)
    if met(units, cap // UNIT * UNIT):
        return _first(lambda steps: met(units, steps * UNIT), 1, cap // UNIT) * UNIT
    if least is None or not met(MOST_UNITS, cap):
        raise InvalidParameter(f"impossible: ± {error} takes more than epsilon={total}")
    people = _first(lambda several: met(several, cap), units, MOST_UNITS)
    raise InvalidParameter(f"impossible with {units} people: ± {error} within epsilon={total} takes {people} people")


def split(
    epsilon: Epsilon,
    *,
    parts: int | None = None,
    sensitivities: Sequence[Number] | None = None,
    errors: Sequence[Number] | None = None,
    weights: Sequence[Number] | None = None,
    minimize: Literal["variance", "absolute"] = "variance",
) -> tuple[Fraction, ...]:
    """Shares of ε for several statistics, in whole units of 10⁻⁹; their exact sum is at most ε.

    `parts=k` gives equal shares. With sensitivities Δᵢ and wanted `errors` eᵢ the shares are as Δᵢ/eᵢ, so that all
    errors are the same multiple of the wanted ones. With `weights` wᵢ (1 if not given) they minimise Σ wᵢ·variance,
    as (wᵢΔᵢ²)^(1/3), or Σ wᵢ·E|error|, as (wᵢΔᵢ)^(1/2). First see whether one joint release does for all.

    >>> split(1, sensitivities=[1, 27], minimize="variance")
    (Fraction(1, 10), Fraction(9, 10))
    """
    budget = exact_epsilon(epsilon)
    bounds = _wishes(parts, sensitivities, errors, weights, minimize)
    whole = sum((upper for _, upper in bounds), Fraction(0))
    shares = tuple(budget * lower / whole // UNIT * UNIT for lower, _ in bounds)  # rounds down: the sum is at most ε
    if not min(shares):
        raise InvalidParameter(f"epsilon={epsilon} is too small to split: a share falls below 0.000000001")
    return shares


def _least(statistic: Statistic, method: Method | None) -> int | None:
    """The least number of units the statistic makes sense for; None where its error does not depend on it."""
    match statistic:
        case "count" | "sum" | "histogram":
            return None
        case "median" | "quantile":
            return None if method == "laplace" else 1
        case "proportion" | "mean":
            return 1
        case "variance" | "std":
            return 2
        case _:
            assert_never(statistic)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest whole number from low on for which it holds, where it holds for `high` and all above it."""
    step = 1
    while low + step < high and not holds(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """The question whether n units and ε are enough, its parameters still to be read."""

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
        """The wanted error."""
        return exact("error", self.error)

    @property
    def level(self) -> Fraction | None:
        """The confidence, or None for a root mean square error."""
        return None if self.confidence is None else exact_confidence(self.confidence)


def _enough(ask: _Ask) -> _Met:
    exact_neighbors(ask.neighbors)
    if ask.statistic not in get_args(Statistic):
        raise InvalidParameter(f"statistic must be one of {', '.join(get_args(Statistic))}, got {quote(ask.statistic)}")
    if ask.method not in (None, *get_args(Method)) or (
        ask.method == "randomized-response" and ask.statistic != "proportion"
    ):
        raise InvalidParameter(
            f"method must be None, 'laplace' or, for a proportion, 'randomized-response', got {quote(ask.method)}"
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
    """The noise DLap(Δ/ε) of count, proportion (its count, over n) and histogram (all bins at once)."""
    target, level, delta, d = ask.target, ask.level, Fraction(1), 1
    if ask.method == "randomized-response":
        return _by_response(target, level)
    if ask.statistic == "histogram":
        bins = exact_count("bins", ask.bins)
        if (bins, ask.neighbors) != (2, "change-one"):  # those are one count: the other is n minus it
            delta, d = sensitivity.histogram(bins=bins, neighbors=ask.neighbors), bins

    def allowed(n: int) -> Fraction:
        return target * n if ask.statistic == "proportion" else target

    if level is None:
        return lambda n, epsilon: upper_bound(lambda: deviation(delta / epsilon), _BITS) <= allowed(n)
    return lambda n, epsilon: half_width(delta / epsilon, level, d=d) <= allowed(n)


def _by_response(target: Fraction, level: Fraction | None) -> _Met:
    """Randomized response: 1/(2√n·sinh(ε/2)) at most the target."""
    if level is not None:
        raise InvalidParameter("randomized response is planned by its root mean square error; give confidence=None")
    return lambda n, epsilon: upper_bound(lambda: 1 / (2 * ball(epsilon / 2).sinh()), _BITS) ** 2 <= n * target**2


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
    """Median and quantile: a fraction of the ranks, or a value for the textbook's noise."""
    target, level = ask.target, ask.level
    q = Fraction(1, 2) if ask.statistic == "median" else exact_number("q", ask.q)
    if not 0 <= q <= 1:
        raise InvalidParameter(f"q must lie between 0 and 1, got {quote(ask.q)}")
    if ask.method == "laplace":
        delta = sensitivity.quantile(q, bounds=ask.bounds, neighbors=ask.neighbors)
        return _on_reals(target, lambda _: delta, _width(level))
    if level is None:
        raise InvalidParameter("a quantile has no root mean square error that holds for all data; give a confidence")
    ratio = exact_count("cells", ask.cells, least=2) / (2 * (1 - level))
    gaps = Fraction(2) if ask.neighbors == "change-one" else 2 * max(q, 1 - q)
    return _on_reals(target, lambda n: gaps / n, upper_bound(lambda: _log(ratio), _BITS))


def _width(level: Fraction | None) -> Fraction:
    """Of Lap(1): ln(1/β), or √2."""
    return upper_bound(lambda: arb(2).sqrt() if level is None else -_log(1 - level), _BITS)


def _log(number: Fraction) -> arb:
    return ball(number).log()


def _joint_width(level: Fraction | None) -> Fraction:
    """Of Y₁ + Y₂/2: P(|Y₁ + Y₂/2| > w) = (4e^(−w) − e^(−2w))/3, a quadratic in e^(−w); or √(5/2)."""
    if level is None:
        return upper_bound(lambda: ball(Fraction(5, 2)).sqrt(), _BITS)
    return upper_bound(lambda: -(2 - ball(1 + 3 * level).sqrt()).log(), _BITS)  # 4 − 3β = 1 + 3·level


def _wishes(
    parts: object,
    sensitivities: Sequence[Number] | None,
    errors: Sequence[Number] | None,
    weights: Sequence[Number] | None,
    minimize: str,
) -> list[tuple[Fraction, Fraction]]:
    """A lower and an upper bound of what each share is proportional to."""
    if (parts is None) == (sensitivities is None) or (errors is not None and weights is not None):
        raise InvalidParameter("split takes either parts, or sensitivities with at most one of errors and weights")
    if sensitivities is None:
        if errors is not None or weights is not None:
            raise InvalidParameter("errors and weights need sensitivities; parts gives equal shares")
        return [(Fraction(1), Fraction(1))] * _parts(parts)
    others = errors if errors is not None else weights if weights is not None else [1] * len(sensitivities)
    if not sensitivities or len(others) != len(sensitivities):
        raise InvalidParameter(f"split needs as many others as sensitivities, got {len(others)}, {len(sensitivities)}")
    deltas = [exact("sensitivities", value) for value in sensitivities]
    if errors is not None:
        ratios = [delta / exact("errors", value) for delta, value in zip(deltas, errors, strict=True)]
        return [(ratio, ratio) for ratio in ratios]
    pairs = [(delta, exact("weights", value)) for delta, value in zip(deltas, others, strict=True)]
    match minimize:
        case "variance":
            powers, degree = [weight * delta**2 for delta, weight in pairs], 3
        case "absolute":
            powers, degree = [weight * delta for delta, weight in pairs], 2
        case _:
            raise InvalidParameter(f"minimize must be 'variance' or 'absolute', got {quote(minimize)}")
    return [_root(power / powers[0], degree) for power in powers]  # relative to the first: equal ones stay equal


def _parts(parts: object) -> int:
    several = exact_count("parts", parts)
    if several > 10**6:  # the shares are a tuple in memory
        raise InvalidParameter(f"parts must be at most 1000000, got {several}")
    return several


def _root(number: Fraction, degree: int) -> tuple[Fraction, Fraction]:
    """The degree-th root, from below and from above; the same exact fraction twice where it is rational."""
    exact_root = Fraction(int(fmpz(number.numerator).root(degree)), int(fmpz(number.denominator).root(degree)))
    if exact_root**degree == number:
        return exact_root, exact_root

    def root() -> arb:
        return ball(number).root(degree)

    return lower_bound(root, _BITS), upper_bound(root, _BITS)
