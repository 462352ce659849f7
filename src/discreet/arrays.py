"""Statistics of one column in memory, one call each: the functions of the texts, with the estimators that lose least.

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1")

One value is one unit. `neighbors` is "change-one" (a person's value may change; how many people there are is public)
or "add-remove" (a person may be absent; the number is private). `method="laplace"` is the textbook's form: Algorithm 1
on the plain statistic. Values outside the bounds are clamped. Missing ones (None, NaN, texts that are no number) are
dropped, and how many are left is then private, too; with `missing=` they count as that number. A column of integers or
truth values has none. Nothing in the data raises. Each call is ε-differentially private; calls add up, and with
`ledger=` and `study=` they are charged before the data is looked at (`release.account`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, TypeVar, Unpack

import numpy as np

from discreet.ask.statistics import STATISTICS
from discreet.engines.array import Bins
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.parameters import exact_chance, exact_confidence, exact_count
from discreet.release.account import Account, charged
from discreet.release.question import (
    USUAL,
    Question,
    bin_edges,
    chosen,
    counted,
    extreme,
    known_count,
    moments,
    of_tree,
    public_total,
    question,
)
from discreet.release.release import Cumulative, Ends, Histogram, Release, Releases, fields_of, together
from discreet.release.statistics import textbook
from discreet.release.statistics.counts import HistogramDesign
from discreet.release.statistics.cumulative import TreeDesign
from discreet.release.statistics.moments import SQUARE_BITS, SUM_BITS

Found = TypeVar("Found")

_TREE_BITS = 10
"""A tree tells values apart to a thousandth of the range."""

_FEW_QUANTILES = 4
"""Up to so many quantiles are chosen one by one; for more, one tree of counts is better."""

_MOST_CELLS = 2**20
"""A band is simulated for all cells at once: beyond this it takes minutes, and tells nothing more."""


def count(x: Any, *, epsilon: Any, neighbors: Any = "change-one", **account: Unpack[Account]) -> Release:
    """How many values are neither missing nor, for truth values, false."""
    ask = question("count", x, (0, 1), epsilon, neighbors)
    return _run(ask, account, lambda: counted(ask))


def sum(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, **account: Unpack[Account]
) -> Release:
    """The sum of the values; missing ones are dropped, or count as `missing`."""
    ask = question("sum", x, bounds, epsilon, neighbors, missing=missing)
    return _run(ask, account, lambda: moments(ask, "sum")["sum"])


def mean(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    **account: Unpack[Account],
) -> Release:
    """The mean: Σx/n with noise R/(nε) where n is public, from a joint pair of sums where it is not.

    Missing values are dropped, or count as `missing`; n is public under change-one if none can be missing.
    """
    ask = question("mean", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook and not ask.public_size:
        return _run(ask, account, lambda: textbook.mean(ask), least=1)
    return _run(ask, account, lambda: moments(ask, "mean")["mean"], least=1)


def proportion(
    x: Any, *, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, **account: Unpack[Account]
) -> Release:
    """The share of values that are true; missing ones are dropped, or count as `missing`: True or False."""
    truth = int(missing) if isinstance(missing, bool) else missing
    ask = question("proportion", x, (0, 1), epsilon, neighbors, missing=truth).with_truth()
    return _run(ask, account, lambda: moments(ask, "mean")["mean"], least=1)


def variance(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    sample: bool = False,
    method: Any = "best",
    **account: Unpack[Account],
) -> Release:
    """The variance of the population, or with `sample=True` its estimate from a sample (n − 1 in place of n).

    Missing values are dropped, or count as `missing`.
    """
    ask = question("variance", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _spread(ask, account, sample, textbook.variance)


def std(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    sample: bool = False,
    method: Any = "best",
    **account: Unpack[Account],
) -> Release:
    """The standard deviation: the root of the noisy variance, whose error falls as 1/n and not as 1/√n.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("std", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _spread(ask, account, sample, textbook.std)


def median(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    confidence: Any = "0.95",
    **account: Unpack[Account],
) -> Release:
    """The median: see `quantile`."""
    ask = question("median", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _quantile(ask, account, Fraction(1, 2), confidence)


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
    **account: Unpack[Account],
) -> Release:
    """The value that a share q of the records does not exceed, with a bracket that holds it at this confidence.

    Three quarters of ε go to the value, the rest to the bracket; `confidence=None` gives all of it to the value, whose
    error is then known in ranks only. Missing values are dropped, or count as `missing`.
    """
    share = _share(q)
    ask = question("quantile", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _quantile(ask, account, share, confidence)


def quantiles(
    x: Any,
    qs: Sequence[Any],
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    **account: Unpack[Account],
) -> Release:
    """Several quantiles at once, in rising order: up to four by choices that share ε, more from one tree of counts.

    Missing values are dropped, or count as `missing`.
    """
    shares = [_share(q) for q in qs] if isinstance(qs, Sequence | np.ndarray) else []
    if not shares or shares != sorted(shares):
        raise InvalidParameter(f"qs must be one or more shares in rising order, got {len(shares)}")
    ask = question("quantiles", x, bounds, epsilon, neighbors, missing=missing)

    def work() -> Release:
        if len(shares) <= _FEW_QUANTILES:
            each = replace(ask, epsilon=ask.epsilon / len(shares))
            return together([chosen(each, share, USUAL) for share in shares], ask.epsilon, "quantiles")
        design = TreeDesign(of=ask.quantiles(*shares), bits=_TREE_BITS)
        return of_tree(ask, design, ask.estimates(design)["quantiles"], step=design.grid.step)

    return _run(ask, account, work, qs=shares)


def cdf(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    cells: int = 1024,
    **account: Unpack[Account],
) -> Cumulative:
    """How many values lie at or below each point of a grid of about so many cells, from one tree of counts.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("cdf", x, bounds, epsilon, neighbors, missing=missing)
    number = exact_count("cells", cells, least=2)
    if number > _MOST_CELLS:
        raise InvalidParameter(f"cells must be at most {_MOST_CELLS:,}, got {number:,}")
    design = TreeDesign(of=ask.quantiles(), bits=number.bit_length() - 1)

    def work() -> Cumulative:
        found, grid = of_tree(ask, design, ask.estimates(design)["below"], step=Fraction(1)), design.grid
        points = np.array([float((grid.lower + index) * grid.step) for index in range(grid.width + 1)])
        return Cumulative(**fields_of(found), points=points, total=public_total(ask))

    return _run(ask, account, work, cells=number)


def min(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    **account: Unpack[Account],
) -> Release:
    """A value that all but a few records exceed; with `method="laplace"` the textbook's minimum.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("min", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _extreme(ask, account, "min")


def max(
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    method: Any = "best",
    **account: Unpack[Account],
) -> Release:
    """A value that only a few records exceed; with `method="laplace"` the textbook's maximum.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("max", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _extreme(ask, account, "max")


def histogram(
    x: Any,
    *,
    bins: Any,
    epsilon: Any,
    bounds: Any = None,
    neighbors: Any = "change-one",
    missing: Any = None,
    **account: Unpack[Account],
) -> Histogram:
    """How many values lie in each bin: `bins` edges, or so many equal bins between the bounds.

    What lies outside counts in the first or the last bin; missing values are in none, or in that of `missing`. Every
    bin gets noise, also an empty one.
    """
    edges, even = bin_edges(bins, bounds)
    ask = question("histogram", x, (edges[0], edges[-1]), epsilon, neighbors, missing=missing)
    home = None if ask.missing is None else int(np.searchsorted(edges[1:-1], as_float(ask.missing), side="right"))
    design = HistogramDesign(name="histogram", bins=Bins(edges, home, even))

    def work() -> Histogram:
        scale = design.scale(ask.terms, ask.epsilon)
        noisy = ask.estimates(design)["histogram"].values
        several = 1 if design.halves(ask.terms) else design.bins.number

        def spread(confidence: Fraction, simultaneous: bool) -> Ends:
            return design.ends(noisy, scale, confidence, several if simultaneous else 1)

        found = ask.release(noisy, spread, sensitivity=scale * ask.epsilon, scale=scale, step=Fraction(1))
        return Histogram(**fields_of(found), edges=tuple(edges.tolist()), total=public_total(ask))

    return _run(ask, account, work, edges=edges)


def mean_and_std(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, **account: Unpack[Account]
) -> Releases:
    """Mean and standard deviation from one joint release, which costs ε once.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("mean and std", x, bounds, epsilon, neighbors, missing=missing)

    def work() -> Releases:
        return Releases(moments(ask, "mean", "std"), ask.epsilon)

    return _run(ask, account, work, least=1, squares=True)


def summary(
    x: Any, *, bounds: Any, epsilon: Any, neighbors: Any = "change-one", missing: Any = None, **account: Unpack[Account]
) -> Releases:
    """Number of records, mean, standard deviation and quartiles, for ε in all: half of it for the quartiles.

    Missing values are dropped, or count as `missing`.
    """
    ask = question("summary", x, bounds, epsilon, neighbors, missing=missing)

    def work() -> Releases:
        half = replace(ask, epsilon=ask.epsilon / 2)
        if ask.public_size:  # then the number of values has no error and no cost
            parts = {"count": known_count(ask), **moments(half, "mean", "std")}
        else:
            parts = moments(half, "count", "mean", "std")
        sixth = replace(ask, epsilon=ask.epsilon / 6)
        for name, share in (("lower_quartile", "1/4"), ("median", "1/2"), ("upper_quartile", "3/4")):
            parts[name] = chosen(replace(sixth, statistic=name), Fraction(share), USUAL)
        return Releases(parts, ask.epsilon)

    return _run(ask, account, work, least=1, squares=True)


def moment(
    statistic: str,
    x: Any,
    *,
    bounds: Any,
    epsilon: Any,
    neighbors: Any = "change-one",
    missing: Any = None,
    sample: bool = False,
    **account: Unpack[Account],
) -> Release:
    """What follows from a mean or a variance, by the name of its row in `ask.statistics`."""
    return _moment(question(statistic, x, bounds, epsilon, neighbors, missing=missing), account, sample)


def _spread(ask: Question, account: Account, sample: bool, estimate: Callable[..., Release]) -> Release:
    if ask.textbook:
        textbook.refuse_private_size(ask)
        work = lambda: estimate(ask, ask.square_grid(SQUARE_BITS), sample)  # noqa: E731
        return _run(ask, account, work, least=2, squares=True, sample=sample)
    return _moment(ask, account, sample)


def _moment(ask: Question, account: Account, sample: bool) -> Release:
    name, squares = ask.statistic + ("+" if sample else ""), STATISTICS[ask.statistic].base == "variance"
    return _run(ask, account, lambda: moments(ask, name)[name], least=1, squares=squares, sample=sample)


def _quantile(ask: Question, account: Account, share: Fraction, level: Any) -> Release:
    bracket = None if level is None else exact_confidence(level)
    if ask.textbook:
        return _run(ask, account, lambda: textbook.quantile(ask, ask.grid(SUM_BITS), share), least=1, q=share)
    return _run(ask, account, lambda: chosen(ask, share, bracket), q=share, confidence=bracket)


def _extreme(ask: Question, account: Account, side: Literal["min", "max"]) -> Release:
    if ask.textbook:
        return _run(ask, account, lambda: textbook.extreme(ask, ask.grid(SUM_BITS), last=side == "max"), least=0)
    return _run(ask, account, lambda: extreme(ask, side))


def _run(
    ask: Question,
    account: Account,
    work: Callable[[], Found],
    *,
    least: int = 0,
    squares: bool = False,
    **parameters: Any,
) -> Found:
    """The work on the account, after everything that could refuse it: nothing is refused once ε is spent."""
    ask.require(least)
    if squares:
        ask.square_grid(SQUARE_BITS)
    return charged(account, ask.statistic, {**ask.parameters, **parameters}, ask.epsilon, work)


def _share(q: Any) -> Fraction:
    """A share with a short denominator, so that ranks stay exact in int64."""
    return exact_chance("q", q).limit_denominator(10**6)
