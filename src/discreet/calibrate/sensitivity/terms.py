"""What one unit can do to a study's answer: the noise scales of every design that is released.

A design releases several totals Tᵢ at once. Adding DLap(bᵢ) to them is ε-private iff no unit moves
Σ|ΔTᵢ|/bᵢ by more than ε: the sup of the sum, not the sum of the sups. In grid steps let a = x − L
and q = a(R−a). For each value that is added, removed or replaced, the scales at ε = 1 are

    lone       Σa                      R               n public, a value is replaced   [change-one]
    joint      Σa, Σq                  9R/8, 9R²/16    n public, a value is replaced   [change-one]
    centred    Σ(2a−R), N              2R, 2           N private, a value is replaced  [change-one]
    squares    Σ(2a−R), Σ(8q−R²), N    9R/4, 9R²/2, 3  N private, a value is replaced  [change-one]
    pair       Σa, Σ(R−a)              R, R            a value is added or removed
    Bernstein  Σ(R−a)², Σ2a(R−a), Σa²  R², R², R²      a value is added or removed
    family     cells that add up to 1  1 each          a row is added or removed
    columns    Σ(2a−R) of each, and N  2R/p, 1/rest    N private, a row is replaced    [change-one]
    ranks      the gap of each cell    max(q, 1−q) in either direction; 1 if a value is replaced
    tree       the nodes of H levels   H if a value is added or removed
    profile    bins of units           1 each          a unit is added or removed;
                                                       all of it is in one bin

Where a moves by d·R, q moves by at most d(1−d)·R², and max d + 2d(1−d) = 9/8. Adding or removing a
value moves the centred sums by at most R and 1, which costs ½ + ½, and the squares cost 4/9 + 2/9 +
3/9. A value adds R to the pair, and R² to Bernstein's sums. A *family* is a partition of the row:
cells that are not negative and add up to 1, as the pair and Bernstein's sums do in units of R and
R². Families whose parts p of ε add up to 1 cost ε together. Several centred columns with parts p
share one N: replacing a row moves them by Σp ≤ 1, and adding or removing a row by Σp/2 (2p/3 for
squares), which leaves the rest to N. `UnitLimits` says how many values one unit moves. Each line
has a law in tests/laws.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

_WEIGHT = Fraction(2)
"""The weight of the squares relative to the sum: nearly optimal for variances of middle size."""

_STRETCH = (1 + _WEIGHT) ** 2 / (4 * _WEIGHT)

_COMES = {False: Fraction(1, 2), True: Fraction(2, 3)}
"""The cost of adding or removing a row, as a share of the part of a centred column, by whether it
has squares.
"""


@dataclass(frozen=True, kw_only=True)
class UnitLimits:
    """How much one unit can contribute to the answer of a question."""

    rows: int
    """The most rows of one unit that count."""
    max_groups: int
    """The most groups that the rows of one unit are in."""
    replaced: bool
    """Whether a unit is replaced (change-one) rather than added or removed."""
    public: bool
    """Whether the number of contributing rows is public and each row is a unit."""
    cells: int
    """The number of groups in the answer."""

    @cached_property
    def factor(self) -> int:
        """How many rows are added or removed when one unit changes."""
        return self.rows * (2 if self.replaced else 1)

    @cached_property
    def row_changes(self) -> int:
        """The same, where a row removed and a row added in the same group count as one row."""
        return self.rows if self.cells == 1 else self.factor

    @cached_property
    def touched(self) -> int:
        """How many groups one unit can change."""
        return builtins.min(self.cells, self.max_groups * (2 if self.replaced else 1))

    @cached_property
    def same_group(self) -> bool:
        """Whether a row and its replacement are always in the same group."""
        return self.replaced and self.cells == 1

    def sum(self, lower: int, upper: int) -> Fraction:
        """Δ of a sum of values between `lower` and `upper`; a row that does not count adds 0."""
        if self.public:
            return Fraction(upper - lower)
        if self.same_group:
            return Fraction(self.rows * (builtins.max(upper, 0) - builtins.min(lower, 0)))
        return Fraction(self.factor * builtins.max(abs(lower), abs(upper)))

    def mean(self, width: int) -> list[Fraction]:
        """The scales of the totals of a mean at ε = 1: lone, centred, or the pair."""
        if self.public:
            return [Fraction(width)]
        if self.same_group:
            return [Fraction(2 * self.rows * width), Fraction(2 * self.rows)]
        return [Fraction(self.factor * width)] * 2

    def variance(self, width: int) -> list[Fraction]:
        """The scales of the totals of a mean and variance at ε = 1: joint, squares, Bernstein's."""
        if self.public:
            return [_STRETCH * width, _STRETCH / _WEIGHT * width**2]
        if self.same_group:
            scales = [2 * _STRETCH * width, 8 * _STRETCH / _WEIGHT * width**2, Fraction(3)]
            return [self.rows * scale for scale in scales]
        return [Fraction(self.factor * width**2)] * 3

    def family(self, unit: int, part: Fraction) -> Fraction:
        """The scale at ε = 1 of a cell to which a row adds at most `unit`, with this part of ε."""
        return self.factor * unit / part

    def column(self, width: int, squares: bool, part: Fraction) -> list[Fraction]:
        """The scales at ε = 1 of a centred column's totals with this part of ε, without N."""
        scales = self.variance(width)[:2] if squares else self.mean(width)[:1]
        return [scale / part for scale in scales]

    def shared_rows(self, columns: Iterable[tuple[bool, Fraction]]) -> Fraction:
        """The scale at ε = 1 of the number of rows that columns (squares, part) share."""
        return self.rows / (
            1 - builtins.sum((_COMES[squares] * part for squares, part in columns), Fraction())
        )

    def comes(self, squares: bool) -> Fraction:
        """What the number of rows costs beside a centred column, as a share of its part of ε."""
        return _COMES[squares]

    @cached_property
    def profile(self) -> Fraction:
        """Δ of a histogram in which each unit is counted once."""
        return Fraction(2 if self.replaced else 1)

    def ranks(self, share: Fraction) -> Fraction:
        """How far one unit can move the gaps of two cells to a quantile apart, in ranks."""
        if self.same_group:
            return Fraction(2 * self.rows)
        return 2 * builtins.max(share, 1 - share) * self.factor

    def tree(self, height: int) -> Fraction:
        """Δ of the nodes of a tree with `height` levels."""
        return Fraction(self.factor * height)
