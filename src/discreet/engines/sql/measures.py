"""One integer for each row and measure, and the aggregate that sums it.

    a fact      a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, an integer in [0, width], or missing
    in a sum    Σa, Σa², the number of values; sums of integers are exact, in any order

The CASE that clamps gives NULL for a missing value, so that a sum needs one count beside it.
Including missing values and subtracting them from the sums again needs two more counts, and was
slower on DuckDB 2.0.

No aggregate passes NULL to arithmetic: COUNT of no rows is 0, and so is `trees.total`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import assert_never

from sqlglot import exp

from discreet.ask.expression import Expression
from discreet.engines.base import (
    Cells,
    Measure,
    OnGrid,
    Present,
    Product,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.engines.sql.expressions import Translator
from discreet.engines.sql.trees import (
    Tree,
    between,
    call,
    column,
    count,
    negated,
    paren,
    present,
    total,
    when,
    whole,
)
from discreet.errors import InvalidParameter

_WIDEST_SQUARE = 2**42
"""Squares below 2⁸⁴ leave room for 2⁴² rows in 127 bits."""


@dataclass(slots=True)
class Facts:
    """The facts that measures need, each of them once."""

    translator: Translator
    trees: dict[str, Tree] = field(default_factory=dict)
    """Each fact by its name."""
    names: dict[OnGrid | Expression, str] = field(default_factory=dict)

    def name(self, measure: Measure) -> str:
        """The name of the fact of a measure."""
        if isinstance(measure, Product):
            self.name(Present(measure.first))
            return self.name(Present(measure.second))
        subject = (
            None
            if isinstance(measure, Units)
            else measure.of
            if isinstance(measure, Rows)
            else measure.value
        )
        if subject is None:
            return ""
        if subject not in self.names:
            name = self.names[subject] = f"f{len(self.names)}"
            if isinstance(subject, OnGrid):
                self.trees[name] = self._on_grid(subject)
            else:
                term = self.translator.term(subject)
                self.trees[name] = when(
                    [(term.tree if term.kind == "truth" else present(term.tree), whole(1))]
                )
        return self.names[subject]

    def _on_grid(self, value: OnGrid) -> Tree:
        """a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, or missing."""
        grid, dialect = value.grid, self.translator.dialect
        if max(abs(grid.lower), abs(grid.upper)) > 2**52 or abs(grid.exponent) > 1000:
            raise InvalidParameter(
                f"a grid must have its bounds within 2⁵² steps of 2^±1000, got {grid}"
            )
        number_column = self.translator.column_of_numbers(value.of)
        if number_column is not None and number_column[1] in dialect.short and grid.exponent == 0:
            value_tree = number_column[0]
            is_present = present(value_tree)
            steps = _clamped(value_tree, is_present, whole(grid.lower), whole(grid.upper))
            # an untyped literal would take the type of the column, in which the difference may not
            # fit
            lower = dialect.cast(whole(grid.lower), "long")
        else:
            # the bounds lie within the limits of numbers, and the step above the smallest: no
            # limits are needed
            if (
                number_column is not None
                and dialect.is_double(number_column[1])
                and -300 <= grid.exponent <= 100
            ):
                value_tree = number_column[0]
                is_present = negated(dialect.is_nan(value_tree))
            else:
                value_tree = self.translator.named(self.translator.term(value.of)).tree
                is_present = present(value_tree)
            # clamped first, which is faster on DuckDB; scaling by a power of two is exact and
            # monotone
            ends = (
                dialect.real(math.ldexp(float(end), grid.exponent))
                for end in (grid.lower, grid.upper)
            )
            scaled = dialect.scaled(_clamped(value_tree, is_present, *ends), grid.exponent)
            steps = call("floor", exp.Add(this=paren(scaled), expression=dialect.real(0.5)))
            lower = dialect.real(float(grid.lower))
        steps = exp.Paren(this=exp.Sub(this=steps, expression=lower)) if grid.lower else steps
        # a sum of 32-bit integers is faster
        point = dialect.cast(steps, "integer" if grid.width < 2**31 else "long")
        return (
            point
            if value.missing is None
            else call("coalesce", point, whole(value.missing - grid.lower))
        )

    def aggregate(self, measure: Measure, unit: str | None) -> Tree:  # noqa: PLR0911 - one case for each measure
        match measure:
            case Units() if unit is not None:
                return exp.Count(this=exp.Distinct(expressions=[column("unit")]))
            case Units() | Rows(None) | Cells():
                return count()
            case Rows():
                return count(column(self.name(measure)))
            case Present():
                return count(column(self.name(measure)))
            case Total():
                return self._sum(column(self.name(measure)))
            case Squares(value):
                if value.grid.width > _WIDEST_SQUARE:
                    raise InvalidParameter(
                        f"squares need a grid of at most 2⁴² steps, got {value.grid.width}"
                    )
                point = self.translator.dialect.cast(
                    column(self.name(measure)), "long" if value.grid.width**2 < 2**63 else "wide"
                )
                return self._sum(exp.Mul(this=point, expression=point))
            case Product():
                return self._product(measure)
            case _:
                assert_never(measure)

    def _product(self, measure: Product) -> Tree:
        """Σ aᵖbᑫ over rows in which neither is missing."""
        first, second = (
            column(self.name(Present(value))) for value in (measure.first, measure.second)
        )
        match measure.powers:
            case 0, 0:
                return count(when([(present(first), second)]))
            case 1, 0:
                points = when([(present(second), first)])
            case 0, 1:
                points = when([(present(first), second)])
            case _:
                points = exp.Mul(
                    this=self.translator.dialect.cast(first, "wide"), expression=second
                )
        return self._sum(points)

    def _sum(self, points: Tree) -> Tree:
        dialect = self.translator.dialect
        return total(points if dialect.sums is None else dialect.cast(points, dialect.sums))


def _clamped(value: Tree, is_present: Tree, lower: Tree, upper: Tree) -> Tree:
    """A value clamped to its bounds, or NULL if it is missing.

    DuckDB evaluates the later cases for the remaining rows only, so values within their bounds need
    one comparison; LEAST of GREATEST would need two, and a test for NaN. NaN is above every number
    on all engines.
    """
    below = exp.LT(this=value, expression=lower)
    return when([(between(value, lower, upper), value), (below, lower), (is_present, upper)])
