"""Statistics of one column in memory, one call each: the functions of the texts, with the estimators that lose least.

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1")

One value is one unit. `neighbors` is "change-one" (a person's value may change; how many people there are is public)
or "add-remove" (a person may be absent; the number is private). `method="laplace"` is the textbook's form: Algorithm 1
on the plain statistic. Values outside the bounds are clamped; missing ones (None, NaN) count as the middle of the
bounds, or as `missing=`. Nothing in the data raises. Each call is ε-differentially private; calls add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.calibrate.bounds import exact_bounds, exact_chance, exact_count, exact_number
from discreet.calibrate.epsilon import quote
from discreet.engines import array as engine
from discreet.errors import InvalidParameter
from discreet.release import estimators, textbook
from discreet.release.mechanism import noisy_sums
from discreet.release.quantile import EXTREME_BITS
from discreet.release.question import question
from discreet.release.result import Cumulative, Histogram, Release, Releases, together

_FEW_QUANTILES = 4
"""Up to so many quantiles are chosen one by one; for more, one tree of counts is better."""

_MOST_BINS = 10**8
"""Eight bytes each, and their edges: beyond this a histogram does not fit into memory."""


def count(x: Any, *, epsilon: Any, neighbors: Any = "change-one") -> Release:
    """How many values are true, for a column of truth values; how many are not missing, for any other."""
    ask = question("count", x, (0, 1), epsilon, neighbors)
    exact = engine.count_true(ask.data) if ask.data.truth else engine.count_present(ask.data)
    [noisy] = noisy_sums(exact, [1 / ask.epsilon], ask.epsilon)
    return ask.of_sum(noisy, sensitivity=Fraction(1), unit=Fraction(1), whole=True)


def sum(x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None) -> Release:
    """The sum of the values."""
    return estimators.total(question("sum", x, bounds, epsilon, neighbors, missing=missing))


def mean(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, method: Any = "best"
) -> Release:
    """The mean: Σx/n with noise R/(nε) where n is public, from a joint pair of sums where it is not."""
    ask = question("mean", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return textbook.mean(ask) if ask.textbook and not ask.public_size else estimators.mean(ask)


def proportion(x: Any, *, epsilon: Any, neighbors: Any = "change-one") -> Release:
    """The share of values that are true; missing values are not."""
    return estimators.mean(question("proportion", x, (0, 1), epsilon, neighbors).with_truth())


def variance(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    sample: bool = False,
    method: Any = "best",
) -> Release:
    """The variance of the population, or with `sample=True` its estimate from a sample (n − 1 in place of n)."""
    ask = question("variance", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook:
        return textbook.variance(ask, ask.grid(estimators.SQUARE_BITS), sample)
    return estimators.variance(ask, estimators.second_moments(ask, ask.epsilon), sample=sample, root=False)


def std(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    sample: bool = False,
    method: Any = "best",
) -> Release:
    """The standard deviation: the root of the noisy variance, whose error falls as 1/n and not as 1/√n."""
    ask = question("std", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook:
        return textbook.std(ask, ask.grid(estimators.SQUARE_BITS), sample)
    return estimators.variance(ask, estimators.second_moments(ask, ask.epsilon), sample=sample, root=True)


def median(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    confidence: Any = "0.95",
) -> Release:
    """The median: see `quantile`."""
    return _quantile("median", x, Fraction(1, 2), bounds, epsilon, neighbors, missing, method, confidence)


def quantile(
    x: Any,
    q: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    confidence: Any = "0.95",
) -> Release:
    """The value that a share q of the records does not exceed, with a bracket that holds it at this confidence.

    Half of ε goes to the value and half to the bracket; `confidence=None` gives all of it to the value, whose error is
    then known in ranks only.
    """
    return _quantile("quantile", x, _share(q), bounds, epsilon, neighbors, missing, method, confidence)


def quantiles(
    x: Any, qs: Sequence[Any], *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None
) -> Release:
    """Several quantiles at once, in rising order: up to four by choices that share ε, more from one tree of counts."""
    shares = [_share(q) for q in qs]
    if not shares or shares != sorted(shares):
        raise InvalidParameter(f"qs must be one or more shares in rising order, got {len(shares)}")
    ask = question("quantiles", x, bounds, epsilon, neighbors, missing=missing)
    if len(shares) > _FEW_QUANTILES:
        return estimators.quantiles_of_tree(ask, ask.grid(estimators.TREE_BITS), shares)
    each = replace(ask, epsilon=ask.epsilon / len(shares))
    parts = [estimators.quantile(each, share, Fraction(19, 20)) for share in shares]
    return together(parts, ask.epsilon, "quantiles")


def cdf(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, cells: int = 1024
) -> Cumulative:
    """How many values lie at or below each point of a grid of about so many cells, from one tree of counts."""
    ask = question("cdf", x, bounds, epsilon, neighbors, missing=missing)
    return estimators.cumulative(ask, ask.grid(exact_count("cells", cells, least=2).bit_length() - 1))


def min(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, method: Any = "best"
) -> Release:
    """A value that all but a few records exceed; with `method="laplace"` the textbook's minimum."""
    ask = question("min", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook:
        return textbook.extreme(ask, ask.grid(estimators.SUM_BITS), last=False)
    return estimators.extreme(ask, ask.grid(EXTREME_BITS), "min")


def max(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, method: Any = "best"
) -> Release:
    """A value that only a few records exceed; with `method="laplace"` the textbook's maximum."""
    ask = question("max", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook:
        return textbook.extreme(ask, ask.grid(estimators.SUM_BITS), last=True)
    return estimators.extreme(ask, ask.grid(EXTREME_BITS), "max")


def histogram(
    x: Any, *, bins: Any, epsilon: Any, bounds: Any = None, neighbors: Any = "change-one", missing: Any = None
) -> Histogram:
    """How many values lie in each bin: `bins` edges, or so many equal bins between the bounds.

    What lies outside counts in the first or the last bin. Every bin gets noise, also an empty one.
    """
    edges = _edges(bins, bounds)
    return estimators.histogram(
        question("histogram", x, (edges[0], edges[-1]), epsilon, neighbors, missing=missing), edges
    )


def mean_and_std(x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None) -> Releases:
    """Mean and standard deviation from one joint release, which costs ε once."""
    ask = question("mean and std", x, bounds, epsilon, neighbors, missing=missing)
    parts = estimators.joint_parts(ask)
    return Releases({name: parts[name] for name in ("mean", "std")}, ask.epsilon)


def summary(x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None) -> Releases:
    """Number of records, mean, standard deviation and quartiles, for ε in all: half of it for the quartiles."""
    ask = question("summary", x, bounds, epsilon, neighbors, missing=missing)
    parts = estimators.joint_parts(replace(ask, epsilon=ask.epsilon / 2))
    sixth = replace(ask, epsilon=ask.epsilon / 6)
    for name, share in (("lower_quartile", "1/4"), ("median", "1/2"), ("upper_quartile", "3/4")):
        parts[name] = estimators.quantile(replace(sixth, statistic=name), Fraction(share), Fraction(19, 20))
    return Releases(parts, ask.epsilon)


def _quantile(
    name: str, x: Any, share: Fraction, bounds: Any, epsilon: Any, neighbors: Any, missing: Any, method: Any, level: Any
) -> Release:
    bracket = None if level is None else exact_chance("confidence", level)
    ask = question(name, x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook:
        return textbook.quantile(ask, ask.grid(estimators.SUM_BITS), share)
    return estimators.quantile(ask, share, bracket)


def _share(q: Any) -> Fraction:
    """A share with a short denominator, so that ranks stay exact in int64."""
    return exact_chance("q", q).limit_denominator(10**6)


def _edges(bins: Any, bounds: Any) -> tuple[Fraction, ...]:
    listed = bins.tolist() if hasattr(bins, "tolist") else bins
    if isinstance(listed, list | tuple):
        edges = tuple(exact_number("bins", edge) for edge in listed)
        if len(edges) < 2 or any(after <= before for before, after in pairwise(edges)):
            raise InvalidParameter(f"bins must be two or more edges in rising order, got {len(edges)}")
        exact_bounds((edges[0], edges[-1]))
        return edges
    if bounds is None:
        raise InvalidParameter(f"bins must be edges, or a number together with bounds, got {quote(bins)} alone")
    number = exact_count("bins", bins)
    if number > _MOST_BINS:
        raise InvalidParameter(f"bins must be at most {_MOST_BINS:,}, got {number:,}")
    lower, upper = exact_bounds(bounds)
    return tuple(lower + (upper - lower) * index / number for index in range(number + 1))
