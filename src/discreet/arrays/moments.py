"""Counts, sums, means and variances of a column in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Unpack

from discreet.arrays.call import Method, Values, run
from discreet.ask.statistics import STATISTICS
from discreet.engines.presence import presence
from discreet.parameters import Epsilon, Neighbors, Number, Range
from discreet.release.account import Account
from discreet.release.question import (
    USUAL,
    Question,
    chosen,
    counted,
    known_count,
    moments,
    question,
)
from discreet.release.release import Release, Releases
from discreet.release.statistics import textbook


def count(
    x: Values, *, epsilon: Epsilon, neighbors: Neighbors = "change-one", **account: Unpack[Account]
) -> Release:
    """Count the values that are not missing; of truth values, count those that are true.

    Parameters
    ----------
    x : array_like
        One value for each person: numbers, texts, dates, truth values, or anything else that can be
        missing.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    neighbors, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a whole number, which may be negative if the true count is small.

    Examples
    --------
    >>> import discreet
    >>> smokers = [True, False, False, True] * 250
    >>> 400 < discreet.count(smokers, epsilon="0.5").value < 600
    True

    See docs/statistics.md, "Count".

    """
    ask = question("count", x, (0, 1), epsilon, neighbors, reader=presence)
    return run(ask, account, lambda: counted(ask))


def sum(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Release:
    """Add up the values.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values add nothing, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is an int for integers and a float for floats.

    Examples
    --------
    >>> import discreet
    >>> doses = [1, 0, 2, 1] * 250
    >>> 700 < discreet.sum(doses, bounds=(0, 3), epsilon="0.5").value < 1300
    True

    See docs/statistics.md, "Sum".

    """
    ask = question("sum", x, bounds, epsilon, neighbors, missing=missing)
    return run(ask, account, lambda: moments(ask, "sum")["sum"])


def mean(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    method: Method = "best",
    **account: Unpack[Account],
) -> Release:
    """Take the mean of the values.

    If n is public, this is Σx/n with noise of scale R/(nε); otherwise it is the quotient of two
    noisy sums.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a float within the bounds.

    Examples
    --------
    >>> import discreet
    >>> ages = [34, 71, 19, 48] * 250
    >>> 33 < discreet.mean(ages, bounds=(0, 120), epsilon="0.5").value < 53
    True

    See docs/statistics.md, "Mean and proportion".

    """
    ask = question("mean", x, bounds, epsilon, neighbors, missing=missing, method=method)
    if ask.textbook and not ask.public_size:
        return run(ask, account, lambda: textbook.mean(ask), least=1)
    return run(ask, account, lambda: moments(ask, "mean")["mean"], least=1)


def proportion(
    x: Values,
    *,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Release:
    """Take the share of values that are true, or the mean of numbers from 0 to 1.

    Parameters
    ----------
    x : array_like
        One truth value, 0 or 1 for each person, or a number between them; numbers beyond are
        clamped to 0 or 1. Missing values are dropped, or count as `missing`.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a float between 0 and 1.

    Examples
    --------
    >>> import discreet
    >>> smokers = [True, False, False, True] * 250
    >>> 0.4 < discreet.proportion(smokers, epsilon="0.5").value < 0.6
    True

    See docs/statistics.md, "Mean and proportion".

    """
    truth = int(missing) if isinstance(missing, bool) else missing
    ask = question("proportion", x, (0, 1), epsilon, neighbors, missing=truth).of_shares()
    return run(ask, account, lambda: moments(ask, "mean")["mean"], least=1)


def variance(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    sample: bool = False,
    method: Method = "best",
    **account: Unpack[Account],
) -> Release:
    """Take the variance of the values.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    sample : bool
        Whether to divide by n − 1, for the variance of the population that was sampled, rather than
        by n.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a float, 0 or more.

    Examples
    --------
    >>> import discreet
    >>> ages = [34, 71, 19, 48] * 250
    >>> 0 <= discreet.variance(ages, bounds=(0, 120), epsilon=1).value < 1500
    True

    See docs/statistics.md, "Variance and standard deviation".

    """
    ask = question("variance", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _spread(ask, account, sample, textbook.variance)


def std(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    sample: bool = False,
    method: Method = "best",
    **account: Unpack[Account],
) -> Release:
    """Take the standard deviation of the values.

    It is the square root of the noisy variance, whose error decreases as 1/n instead of 1/√n.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter: the smaller it is, the more noise is added. The ε of several calls
        add up.
    sample : bool
        Whether to divide by n − 1, for the population that was sampled, rather than by n.
    neighbors, missing, method, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Release
        Its `value` is a float, 0 or more.

    Examples
    --------
    >>> import discreet
    >>> ages = [34, 71, 19, 48] * 250
    >>> 0 <= discreet.std(ages, bounds=(0, 120), epsilon=1).value < 40
    True

    See docs/statistics.md, "Variance and standard deviation".

    """
    ask = question("std", x, bounds, epsilon, neighbors, missing=missing, method=method)
    return _spread(ask, account, sample, textbook.std)


def mean_and_std(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Releases:
    """Take the mean and the standard deviation from one joint release, which costs ε once.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter of both together: the smaller it is, the more noise is added.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Releases
        With the attributes `mean` and `std`.

    Examples
    --------
    >>> import discreet
    >>> both = discreet.mean_and_std([34, 71, 19, 48] * 250, bounds=(0, 120), epsilon=1)
    >>> 33 < both.mean.value < 53
    True

    See docs/statistics.md, "Several at once".

    """
    ask = question("mean and std", x, bounds, epsilon, neighbors, missing=missing)
    return run(
        ask,
        account,
        lambda: Releases(moments(ask, "mean", "std"), ask.epsilon),
        least=1,
        squares=True,
    )


def summary(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Releases:
    """Describe the values by their count, mean, standard deviation and quartiles.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without looking at the data.
    epsilon : number or text
        The privacy parameter of all together, half of which goes to the quartiles. The ε of several
        calls add up.
    neighbors, missing, **account
        See `help(discreet.arrays)`.

    Returns
    -------
    Releases
        With the attributes `count`, `mean`, `std`, `lower_quartile`, `median` and `upper_quartile`.

    Examples
    --------
    >>> import discreet
    >>> ages = discreet.summary([34, 71, 19, 48] * 250, bounds=(0, 120), epsilon=6)
    >>> 900 < ages.count.value < 1100 and 33 < ages.mean.value < 53
    True

    See docs/statistics.md, "Several at once".

    """
    ask = question("summary", x, bounds, epsilon, neighbors, missing=missing)

    def work() -> Releases:
        half = replace(ask, epsilon=ask.epsilon / 2)
        if ask.public_size:  # a public number of values has no error and no cost
            parts = {"count": known_count(ask), **moments(half, "mean", "std")}
        else:
            parts = moments(half, "count", "mean", "std")
        sixth = replace(ask, epsilon=ask.epsilon / 6)
        for name, share in (
            ("lower_quartile", "1/4"),
            ("median", "1/2"),
            ("upper_quartile", "3/4"),
        ):
            parts[name] = chosen(replace(sixth, statistic=name), Fraction(share), USUAL)
        return Releases(parts, ask.epsilon)

    return run(ask, account, work, least=1, squares=True)


def moment(
    statistic: str,
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    sample: bool = False,
    **account: Unpack[Account],
) -> Release:
    """Take a statistic that follows from a mean or a variance, by its name in `ask.statistics`."""
    return _moment(
        question(statistic, x, bounds, epsilon, neighbors, missing=missing), account, sample
    )


def _moment(ask: Question, account: Account, sample: bool) -> Release:
    name = ask.statistic + ("+" if sample else "")
    squares = STATISTICS[ask.statistic].base == "variance"
    return run(
        ask, account, lambda: moments(ask, name)[name], least=1, squares=squares, sample=sample
    )


def _spread(
    ask: Question, account: Account, sample: bool, estimate: Callable[..., Release]
) -> Release:
    if not ask.textbook:
        return _moment(ask, account, sample)
    textbook.refuse_private_size(ask)
    return run(ask, account, lambda: estimate(ask, sample), least=2, squares=True, sample=sample)
