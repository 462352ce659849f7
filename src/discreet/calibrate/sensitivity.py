"""How far one unit can move a statistic: the global sensitivity in the L1 norm, as an exact fraction.

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

With add-remove n is a public least number of units of the larger neighbour; the smaller has one fewer, and a
statistic of too few units is any number that it can take. These hold for rows that all count: a WHERE, or missing
rows that are dropped, makes n private. Private n and no such floor: `discreet.mean` and the like need none.

Designs release several totals Tᵢ at once. Adding DLap(bᵢ) to them is ε-private iff no unit moves Σ|ΔTᵢ|/bᵢ by more than
ε: the sup of the sum, not the sum of the sups. In steps of a grid let a = x − L, q = a(R−a). For each value that comes,
goes or changes, the scales at ε = 1 are

    lone       Σa                           R                    n public, a value changes             [change-one]
    joint      Σa, Σq                       9R/8, 9R²/16         n public, a value changes             [change-one]
    centred    Σ(2a−R), N                   2R, 2                N private, a value takes its place    [change-one]
    squares    Σ(2a−R), Σ(8q−R²), N         9R/4, 9R²/2, 3       N private, a value takes its place    [change-one]
    pair       Σa, Σ(R−a)                   R, R                 a value comes or goes
    Bernstein  Σ(R−a)², Σ2a(R−a), Σa²       R², R², R²           a value comes or goes
    family     cells that add up to 1       1 each               a row comes or goes
    columns    Σ(2a−R) of several, and N    2R/p each, 1/rest    N private, a row takes its place      [change-one]
    ranks      the gap of each cell         max(q, 1−q) to either side; 1 where a value takes another's place
    tree       the nodes of H levels        H for a value that comes or goes
    profile    bins of units                1 each               a unit, in one bin whatever its rows, comes or goes

Where a moves by d·R, q moves by at most d(1−d)·R², and max d + 2d(1−d) = 9/8. A value that comes or goes moves the
centred sums by at most R and 1, which costs ½ + ½, and the squares by 4/9 + 2/9 + 3/9. A value adds R to the pair, and
R² to Bernstein's sums. A *family* is a partition of the row: cells that are not negative and add up to 1, as the pair
and Bernstein's sums do in units of R and R². Families whose parts p of ε add up to 1 cost ε together. Several centred
columns with parts p share one N: a row in another's place moves them by Σp ≤ 1, and one that comes or goes by Σp/2 (for
squares 2p/3), which leaves the rest to N. `Terms` says how many values one unit moves. Each line has a law in
tests/laws.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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

_WEIGHT = Fraction(2)
"""Of the squares beside the sum: near the best for variances in the middle of what is possible."""

_STRETCH = (1 + _WEIGHT) ** 2 / (4 * _WEIGHT)

_COMES = {False: Fraction(1, 2), True: Fraction(2, 3)}
"""What a row that comes or goes costs, as a share of the part of a centred column: of a mean, of squares."""


def count(*, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the number of units for which a predicate holds.

    >>> count()
    Fraction(1, 1)
    """
    exact_neighbors(neighbors)
    return Fraction(1)


def sum(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of a sum.

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
    """Δ of a mean; a unit that is added as the n-th moves it by (its value − the old mean)/n.

    >>> mean(n=100, bounds=(0, 120))
    Fraction(6, 5)
    """
    return _range(bounds) / _units("mean", n, neighbors)


def proportion(*, n: int, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the fraction of units for which a predicate holds.

    >>> proportion(n=1000)
    Fraction(1, 1000)
    """
    return Fraction(1, _units("proportion", n, neighbors))


def variance(*, n: int, bounds: Range, neighbors: Neighbors = "change-one", sample: bool = False) -> Fraction:
    """Δ of the variance, divided by n, or by n − 1 for `sample`.

    With the mean μ and variance V of the other n−1 units, n²·Var = n(n−1)V + (n−1)(x−μ)², so that moving x alone
    changes it by at most (n−1)R²; adding x changes Var by −V/n + (n−1)(x−μ)²/n², which is no more for n ≥ 2.

    >>> variance(n=10, bounds=(0, 1)), variance(n=10, bounds=(0, 1), sample=True)
    (Fraction(9, 100), Fraction(1, 10))
    """
    units = _spread_units("variance", n, neighbors, sample)
    return _range(bounds) ** 2 * Fraction(units if sample else units - 1, units**2)


def std(*, n: int, bounds: Range, neighbors: Neighbors = "change-one", sample: bool = False) -> Fraction:
    """Δ of the standard deviation, the exact root or a fraction just above it.

    std = ‖x − mean‖₂/√n is a norm of x, and one unit moves x − mean by at most R·√(1−1/n).

    >>> std(n=101, bounds=(0, 1)), float(std(n=100, bounds=(0, 1), sample=True))
    (Fraction(10, 101), 0.1)
    """
    units = _spread_units("std", n, neighbors, sample)
    return _range(bounds) * _root(units if sample else units - 1) / units


def min(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the smallest value.

    >>> min(bounds=(0, 120))
    Fraction(120, 1)
    """
    exact_neighbors(neighbors)
    return _range(bounds)


def max(*, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the largest value.

    >>> max(bounds=(0, 1))
    Fraction(1, 1)
    """
    return min(bounds=bounds, neighbors=neighbors)


def median(*, bounds: Range, n: int | None = None, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the middle value, or of the mean of the two middle values where n is even.

    Of an even number, both middle values move one place at most: (x₍ₖ₊₂₎ − x₍ₖ₎)/2 ≤ R/2. Without n the parity is
    not known, and Δ = R.

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
            return width / (2 if units >= 2 else 1)  # one unit and none: the middle of nothing may be anywhere


def quantile(q: Number, *, bounds: Range, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the q-quantile x₍⌈qn⌉₎ (the smallest value for q = 0): R for every n; no other definition exceeds R.

    >>> quantile("0.9", bounds=(0, 120))
    Fraction(120, 1)
    """
    if not 0 <= exact_number("q", q) <= 1:
        raise InvalidParameter(f"q must lie between 0 and 1, got {quote(q)}")
    return min(bounds=bounds, neighbors=neighbors)


def histogram(*, bins: int | None = None, neighbors: Neighbors = "change-one") -> Fraction:
    """Δ of the counts of disjoint bins, whatever their number.

    A single bin is a count. Two bins that cover everyone are better released as one count (Δ = 1): under change-one
    the other is n minus it.

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
    """The number of units, or under add-remove a public floor of it."""
    if exact_neighbors(neighbors) == "add-remove" and n is None:
        raise InvalidParameter(
            f"the sensitivity of a {statistic} under add-remove needs n, a public least number of units; "
            f"without one use discreet.{statistic}, which needs none"
        )
    return exact_count("n", n)


def _spread_units(statistic: str, n: object, neighbors: object, sample: bool) -> int:
    """n as the formulas of variance and std take it: they fall from n = 2 on, where two units can differ."""
    units = _units(statistic, n, neighbors)
    if exact_neighbors(neighbors) == "add-remove":
        return builtins.max(units, 2)
    if sample and units == 1:
        raise InvalidParameter(f"the sample {statistic} needs n of at least 2, got 1")
    return units


def _root(number: int) -> Fraction:
    """√number, or a fraction just above it, of 64 bits: longer ones would be refused as sensitivities."""
    root = math.isqrt(number)
    if root * root == number:
        return Fraction(root)
    return upper_bound(lambda: arb(number).sqrt(), 64)  # rounds up: more noise


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What one unit may do in the answer to a question."""

    rows: int
    """Rows of one unit that may count."""
    spread: int
    """Groups that rows of one unit can be in."""
    replaced: bool
    """Whether a unit is replaced (change-one) rather than added or removed."""
    public: bool
    """Whether the number of contributing rows is public, and each row a unit."""
    cells: int
    """Groups of the answer."""

    @cached_property
    def factor(self) -> int:
        """How many rows come or go when one unit changes."""
        return self.rows * (2 if self.replaced else 1)

    @cached_property
    def steps(self) -> int:
        """The same, where a row that goes and one that comes in the same group count as one."""
        return self.rows if self.cells == 1 else self.factor

    @cached_property
    def touched(self) -> int:
        """How many groups one unit can change."""
        return builtins.min(self.cells, self.spread * (2 if self.replaced else 1))

    @cached_property
    def meets(self) -> bool:
        """Whether a row that goes and one that comes in its place are in the same group."""
        return self.replaced and self.cells == 1

    def sum(self, lower: int, upper: int) -> Fraction:
        """Δ of a sum of values between these, where a row that does not count is 0."""
        if self.public:
            return Fraction(upper - lower)
        if self.meets:
            return Fraction(self.rows * (builtins.max(upper, 0) - builtins.min(lower, 0)))
        return Fraction(self.factor * builtins.max(abs(lower), abs(upper)))

    def mean(self, width: int) -> list[Fraction]:
        """The scales of the totals of a mean at ε = 1: lone, centred, or the pair."""
        if self.public:
            return [Fraction(width)]
        if self.meets:
            return [Fraction(2 * self.rows * width), Fraction(2 * self.rows)]
        return [Fraction(self.factor * width)] * 2

    def variance(self, width: int) -> list[Fraction]:
        """The scales of the totals of a mean and a variance at ε = 1: joint, squares, or Bernstein's."""
        if self.public:
            return [_STRETCH * width, _STRETCH / _WEIGHT * width**2]
        if self.meets:
            scales = [2 * _STRETCH * width, 8 * _STRETCH / _WEIGHT * width**2, Fraction(3)]
            return [self.rows * scale for scale in scales]
        return [Fraction(self.factor * width**2)] * 3

    def family(self, unit: int, part: Fraction) -> Fraction:
        """The scale at ε = 1 of a cell, in which a row has at most so many, of a family with this part of ε."""
        return self.factor * unit / part

    def column(self, width: int, squares: bool, part: Fraction) -> list[Fraction]:
        """The scales at ε = 1 of the centred totals of a column with this part of ε, but for the number of rows."""
        scales = self.variance(width)[:2] if squares else self.mean(width)[:1]
        return [scale / part for scale in scales]

    def shared_rows(self, columns: Iterable[tuple[bool, Fraction]]) -> Fraction:
        """The scale at ε = 1 of the number of rows that centred columns share, (squares, part) of each."""
        return self.rows / (1 - builtins.sum((_COMES[squares] * part for squares, part in columns), Fraction()))

    @cached_property
    def profile(self) -> Fraction:
        """Δ of the bins of a histogram in which each unit is once."""
        return Fraction(2 if self.replaced else 1)

    def ranks(self, share: Fraction) -> Fraction:
        """How far apart one unit moves the gaps of two cells to a quantile, up and down, in ranks."""
        if self.meets:
            return Fraction(2 * self.rows)
        return 2 * builtins.max(share, 1 - share) * self.factor

    def tree(self, height: int) -> Fraction:
        """Δ of the nodes of a tree with so many levels."""
        return Fraction(self.factor * height)
