"""Medians, quantiles and extremes of a column in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, Unpack

import numpy as np

from discreet.arrays.call import Method, Values, run
from discreet.errors import InvalidParameter
from discreet.parameters import Epsilon, Neighbors, Number, Range, exact_chance, exact_confidence
from discreet.release.account import Account
from discreet.release.question import USUAL, Question, chosen, extreme, of_tree, question
from discreet.release.release import Release, Vector, together
from discreet.release.statistics import textbook
from discreet.release.statistics.counts import TreeDesign

_TREE_BITS = 10  # a tree has a resolution of a thousandth of the range

_FEW_QUANTILES = 4
"""Up to this many quantiles are chosen one by one; for more quantiles one tree of counts is more
accurate.
"""


def median(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    method: Method = "best",
    confidence: Number | None = "0.95",
    **account: Unpack[Account],
) -> Release:
    """Find the median of the values, with a confidence interval.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    confidence : number or None
        Of the interval, which costs a quarter of ε. With None all of ε goes to the value, and its
        error is known in ranks only.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a number within the bounds.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> 25 < discreet.median(ages, bounds=(0, 120), epsilon=1).value < 75
    True

    See docs/statistics.md, "Median and quantiles".

    """
    ask = question("median", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _quantile(ask, account, Fraction(1, 2), confidence)


def quantile(
    x: Values,
    q: Number,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    method: Method = "best",
    confidence: Number | None = "0.95",
    **account: Unpack[Account],
) -> Release:
    """Find the value that a share q of the values does not exceed, with a confidence interval.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    q : number
        The share, between 0 and 1.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    confidence : number or None
        Of the interval, which costs a quarter of ε. With None all of ε goes to the value, and its
        error is known in ranks only.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a number within the bounds.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> 60 < discreet.quantile(ages, 0.9, bounds=(0, 120), epsilon=1).value < 120
    True

    See docs/statistics.md, "Median and quantiles".

    """
    share = _share(q)
    ask = question("quantile", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _quantile(ask, account, share, confidence)


def quantiles(
    x: Values,
    qs: Sequence[Number],
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Vector:
    """Find several quantiles at once: up to four share ε, and more than four come from one tree of
    counts.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    qs : sequence of numbers
        The shares, between 0 and 1, in increasing order.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter of all together: the smaller it is, the more noise is added.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Vector
        Its `value` is an array in increasing order.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> low, high = discreet.quantiles(ages, [0.25, 0.75], bounds=(0, 120), epsilon=2).value
    >>> bool(low < 50 < high)
    True

    See docs/statistics.md, "Median and quantiles".

    """
    shares = [_share(q) for q in qs] if isinstance(qs, Sequence | np.ndarray) else []
    if not shares or shares != sorted(shares):
        raise InvalidParameter(
            f"qs must be one or more shares in increasing order, got {len(shares)}"
        )
    ask = question("quantiles", x, bounds, epsilon, neighbors, missing=missing)

    def work() -> Vector:
        if len(shares) <= _FEW_QUANTILES:
            single = replace(ask, epsilon=ask.epsilon / len(shares))
            return together(
                [chosen(single, share, USUAL) for share in shares], ask.epsilon, "quantiles"
            )
        design = TreeDesign(of=ask.quantiles(*shares), bits=_TREE_BITS)
        return of_tree(ask, design, ask.estimates(design)["quantiles"], step=design.grid.step)

    return run(ask, account, work, qs=shares)


def min(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    method: Method = "best",
    **account: Unpack[Account],
) -> Release:
    """Find a value that is exceeded by all but a few of the values.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more values lie below. The ε of several calls
        add up.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a number within the bounds; its `error` says about how many values lie below.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(20, 100)) * 10
    >>> discreet.min(ages, bounds=(0, 120), epsilon=2).value < 60
    True

    See docs/statistics.md, "Minimum and maximum".

    """
    ask = question("min", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _extreme(ask, account, "min")


def max(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    method: Method = "best",
    **account: Unpack[Account],
) -> Release:
    """Find a value that only a few of the values exceed.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more values lie above. The ε of several calls
        add up.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a number within the bounds; its `error` says about how many values lie above.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(20, 100)) * 10
    >>> discreet.max(ages, bounds=(0, 120), epsilon=2).value > 60
    True

    See docs/statistics.md, "Minimum and maximum".

    """
    ask = question("max", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _extreme(ask, account, "max")


def _quantile(ask: Question, account: Account, share: Fraction, level: Number | None) -> Release:
    bracket = None if level is None else exact_confidence(level)
    if ask.textbook:
        return run(ask, account, lambda: textbook.quantile(ask, share), least=1, q=share)
    return run(ask, account, lambda: chosen(ask, share, bracket), q=share, confidence=bracket)


def _extreme(ask: Question, account: Account, side: Literal["min", "max"]) -> Release:
    work = textbook.extreme if ask.textbook else extreme
    return run(ask, account, lambda: work(ask, side))


def _share(q: Number) -> Fraction:
    """A share with a short denominator, so that ranks stay exact in int64."""
    return exact_chance("q", q).limit_denominator(10**6)
