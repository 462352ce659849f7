"""How far one unit can move a statistic: the global sensitivity in L1, as an exact fraction.

    Δ = sup over neighbours x, x′ of ‖f(x) − f(x′)‖₁,   values in [L, H], R = H − L     [DMNS06]

                    change-one, n units         add-remove, n units or more
    count           1                           1
    sum             R                           max(|L|, |H|)
    mean            R/n                         R/n
    variance        (n−1)R²/n²   sample R²/n    the same, at least at n = 2
    std             √(n−1)·R/n   sample R/√n    the same, at least at n = 2
    median          R if n is odd, else R/2     R/2 from n = 2 on
    min, max        R                           R
    histogram       2                           1

Under add-remove n is a public lower bound on the number of units in the larger neighbour; the
smaller one has one unit less, and a statistic of too few units may be any number in its range. The
table holds where every row counts: a WHERE, or missing values that are dropped, make n private.
`discreet.mean` and the other functions need no public n.

These parameters mean the same in all functions:

    bounds      (lower, upper): values beyond them are clamped
    n           the number of units: exact and public under change-one, a public lower bound under
                add-remove
    neighbors   "change-one": one unit's value changes; "add-remove": one unit is added or removed
    sample      whether the statistic divides by n − 1 instead of n
"""

from __future__ import annotations

import builtins
import math
from fractions import Fraction

from flint import arb

from discreet.calibrate.ball import upper_bound
from discreet.errors import InvalidParameter
from discreet.parameters import (
    Neighbors,
    Number,
    Range,
    exact_bounds,
    exact_count,
    exact_neighbors,
    exact_number,
    quote,
)

__all__ = [
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "proportion",
    "quantile",
    "std",
    "sum",
    "variance",
]


def count(*, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the number of units for which a predicate holds.

    Parameters
    ----------
    neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        1 under both relations.

    Examples
    --------
    >>> count()
    Fraction(1, 1)

    """
    exact_neighbors(neighbors)
    return Fraction(1)


def sum(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of a sum.

    Parameters
    ----------
    bounds, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R under change-one, max(|L|, |H|) under add-remove.

    Examples
    --------
    >>> sum(bounds=(-20, 50)), sum(bounds=(-20, 50), neighbors="add-remove")
    (Fraction(70, 1), Fraction(50, 1))

    """
    lower, upper = exact_bounds(bounds)
    match exact_neighbors(neighbors):
        case "change-one":
            return upper - lower
        case "add-remove":
            return builtins.max(abs(lower), abs(upper))


def mean(*, n: int, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of a mean.

    Under add-remove the n-th unit moves the mean by (its value − the old mean)/n.

    Parameters
    ----------
    n, bounds, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R/n.

    Examples
    --------
    >>> mean(n=100, bounds=(0, 120))
    Fraction(6, 5)

    """
    return _range(bounds) / _units("mean", n, neighbors)


def proportion(*, n: int, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the fraction of units for which a predicate holds.

    Parameters
    ----------
    n, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        1/n.

    Examples
    --------
    >>> proportion(n=1000)
    Fraction(1, 1000)

    """
    return Fraction(1, _units("proportion", n, neighbors))


def variance(
    *, n: int, bounds: Range, neighbors: Neighbors = "change-one", sample: bool = False
) -> Fraction:
    """Δ of a variance.

    With the mean μ and variance V of the other n−1 units, n²·Var = n(n−1)V + (n−1)(x−μ)², so that
    moving x alone changes it by at most (n−1)R²; adding x changes Var by −V/n + (n−1)(x−μ)²/n²,
    which is no more for n ≥ 2.

    Parameters
    ----------
    n, bounds, neighbors, sample
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        (n−1)R²/n², or R²/n for a sample variance.

    Examples
    --------
    >>> variance(n=10, bounds=(0, 1)), variance(n=10, bounds=(0, 1), sample=True)
    (Fraction(9, 100), Fraction(1, 10))

    """
    units = _spread_units("variance", n, neighbors, sample)
    return _range(bounds) ** 2 * Fraction(units if sample else units - 1, units**2)


def std(
    *, n: int, bounds: Range, neighbors: Neighbors = "change-one", sample: bool = False
) -> Fraction:
    """Δ of a standard deviation.

    std = ‖x − mean‖₂/√n is a norm of x, and one unit moves x − mean by at most R·√(1−1/n).

    Parameters
    ----------
    n, bounds, neighbors, sample
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        √(n−1)·R/n, or R/√n for a sample: the exact root, or a fraction just above it.

    Examples
    --------
    >>> std(n=101, bounds=(0, 1)), float(std(n=100, bounds=(0, 1), sample=True))
    (Fraction(10, 101), 0.1)

    """
    units = _spread_units("std", n, neighbors, sample)
    return _range(bounds) * _root(units if sample else units - 1) / units


def min(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the smallest value.

    Parameters
    ----------
    bounds, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R.

    Examples
    --------
    >>> min(bounds=(0, 120))
    Fraction(120, 1)

    """
    exact_neighbors(neighbors)
    return _range(bounds)


def max(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the largest value.

    Parameters
    ----------
    bounds, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R.

    Examples
    --------
    >>> max(bounds=(0, 1))
    Fraction(1, 1)

    """
    return min(bounds=bounds, neighbors=neighbors)


def median(*, bounds: Range, n: int | None = None, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the middle value, or of the mean of the two middle values if n is even.

    If n is even, both middle values move by at most one rank: (x₍ₖ₊₂₎ − x₍ₖ₎)/2 ≤ R/2. Without n
    the parity is unknown, and Δ = R.

    Parameters
    ----------
    bounds, n, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R or R/2.

    Examples
    --------
    >>> median(n=101, bounds=(0, 1)), median(n=100, bounds=(0, 1)), median(bounds=(0, 1))
    (Fraction(1, 1), Fraction(1, 2), Fraction(1, 1))

    """
    width, relation = _range(bounds), exact_neighbors(neighbors)
    if n is None:
        return width
    units = exact_count("n", n)
    match relation:
        case "change-one":
            return width / (2 if units % 2 == 0 else 1)
        case "add-remove":
            # from one unit to none: the median of no values may be any number
            return width / (2 if units >= 2 else 1)


def quantile(q: Number, *, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the q-quantile x₍⌈qn⌉₎, the smallest value for q = 0.

    Parameters
    ----------
    q : number
        The share, from 0 to 1.
    bounds, neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        R for every n; no other definition of a quantile exceeds R.

    Examples
    --------
    >>> quantile("0.9", bounds=(0, 120))
    Fraction(120, 1)

    """
    if not 0 <= exact_number("q", q) <= 1:
        raise InvalidParameter(f"q must lie between 0 and 1, got {quote(q)}")
    return min(bounds=bounds, neighbors=neighbors)


def histogram(*, bins: int | None = None, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the counts of disjoint bins.

    A single bin is a count. Two bins that cover everyone are better released as one count, with Δ =
    1: under change-one the other count is n minus the released one.

    Parameters
    ----------
    bins : int, optional
        The number of bins.
    neighbors
        See `help(discreet.sensitivity)`.

    Returns
    -------
    Fraction
        2 under change-one, 1 under add-remove, whatever the number of bins.

    Examples
    --------
    >>> histogram(bins=50), histogram(bins=50, neighbors="add-remove")
    (Fraction(2, 1), Fraction(1, 1))

    """
    single = bins is not None and exact_count("bins", bins) == 1
    match exact_neighbors(neighbors):
        case "change-one":
            return Fraction(1 if single else 2)
        case "add-remove":
            return Fraction(1)


def _range(bounds: object) -> Fraction:
    lower, upper = exact_bounds(bounds)
    return upper - lower


def _units(statistic: str, n: object, neighbors: object) -> int:
    """The number of units, or a public lower bound on it under add-remove."""
    if exact_neighbors(neighbors) == "add-remove" and n is None:
        raise InvalidParameter(
            f"the sensitivity of a {statistic} under add-remove needs n, a public lower bound on"
            f" the number of units; without one, use discreet.{statistic}"
        )
    return exact_count("n", n)


def _spread_units(statistic: str, n: object, neighbors: object, sample: bool) -> int:
    """The n in the formulas of variance and std: they fall from n = 2 on, where two can differ."""
    units = _units(statistic, n, neighbors)
    if exact_neighbors(neighbors) == "add-remove":
        return builtins.max(units, 2)
    if sample and units == 1:
        raise InvalidParameter(f"the sample {statistic} needs n of at least 2, got 1")
    return units


def _root(number: int) -> Fraction:
    """√number, or a fraction of 64 bits just above it: longer ones are refused as sensitivities."""
    root = math.isqrt(number)
    if root * root == number:
        return Fraction(root)
    return upper_bound(lambda: arb(number).sqrt(), 64)  # rounds up: more noise
