"""One integer for each row and measure, and the aggregate that sums it.

    a fact      a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, an integer in [0, width], or missing
    in a sum    Σa, Σa², how many are there; sums of integers are exact, in any order

Where nothing but sums is asked of a column of doubles, a dialect may leave missing values in: LEAST and GREATEST then
give 0 for NULL and the width for NaN, and with K values NaN the sums are Σa − width·K and Σa² − width²·K. That is
faster than a CASE in each row.

No aggregate hands NULL to arithmetic: there are COUNT, which is 0 of nothing, and `trees.total`, which says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import assert_never

from sqlglot import exp

from discreet.ask.expression import Expression
from discreet.engines.base import Cells, Measure, OnGrid, Present, Product, Rows, Squares, Total, Units
from discreet.engines.sql.expressions import Translator
from discreet.engines.sql.trees import Tree, call, column, count, joined, negated, paren, present, total, when, whole
from discreet.errors import InvalidParameter

_WIDEST_SQUARE = 2**42
"""Squares below 2⁸⁴ leave room for 2⁴² rows in 127 bits."""


@dataclass(slots=True)
class Facts:
    """The facts that measures need; equal ones are one."""

    translator: Translator
    only_sums: bool
    """Whether facts are only summed, over rows and not cell by cell or within units."""
    trees: dict[str, Tree] = field(default_factory=dict)
    """Each fact by its name, and the columns that stand beside facts with missing values left in."""
    names: dict[OnGrid | Expression, str] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    """The column beside a fact that has missing values left in."""

    def name(self, measure: Measure) -> str:
        """The name of the integer that a row has for a measure."""
        if isinstance(measure, Product):
            self.name(Present(measure.first))
            return self.name(Present(measure.second))
        asked = None if isinstance(measure, Units) else measure.of if isinstance(measure, Rows) else measure.value
        if asked is None:
            return ""
        if asked not in self.names:
            name = self.names[asked] = f"f{len(self.names)}"
            if isinstance(asked, OnGrid):
                self.trees[name] = self._on_grid(asked, name)
            else:
                term = self.translator.term(asked)
                self.trees[name] = when([(term.tree if term.kind == "truth" else present(term.tree), whole(1))])
        return self.names[asked]

    def _on_grid(self, value: OnGrid, name: str) -> Tree:
        """a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, or missing; LEAST would skip what is missing."""
        grid, dialect = value.grid, self.translator.dialect
        if max(abs(grid.lower), abs(grid.upper)) > 2**52 or abs(grid.exponent) > 1000:
            raise InvalidParameter(f"a grid must have its bounds within 2⁵² steps of 2^±1000, got {grid}")
        behind = self.translator.column_of_numbers(value.of)
        raw = False
        if behind is not None and behind[1] in dialect.short and grid.exponent == 0:
            here = behind[0]
            there = present(here)
            steps = _clamped(here, whole(grid.lower), whole(grid.upper))
            # a bare literal would take the column's own type, in which the difference may not fit
            lower = dialect.cast(whole(grid.lower), "long")
        else:
            # such bounds lie within the limits of numbers and such steps above them: the column itself will do
            if behind is not None and dialect.is_double(behind[1]) and -300 <= grid.exponent <= 100:
                here = behind[0]
                there = negated(dialect.is_nan(here))
                raw = dialect.counts_nan and self.only_sums
            else:
                here = self.translator.named(self.translator.term(value.of)).tree
                there = present(here)
            # clamped first: DuckDB does that faster, and scaling by a power of two is exact and keeps the order
            ends = (dialect.real(math.ldexp(float(end), grid.exponent)) for end in (grid.lower, grid.upper))
            scaled = dialect.scaled(_clamped(here, *ends), grid.exponent)
            steps = call("floor", exp.Add(this=paren(scaled), expression=dialect.real(0.5)))
            lower = dialect.real(float(grid.lower))
        steps = exp.Paren(this=exp.Sub(this=steps, expression=lower)) if grid.lower else steps
        # a sum of 32-bit integers is the faster one
        point = dialect.cast(steps, "integer" if grid.width < 2**31 else "long")
        if raw:
            self.raw[name] = f"x{name}"
            self.trees[f"x{name}"] = here
            return point
        tree = when([(there, point)])
        return tree if value.missing is None else call("coalesce", tree, whole(value.missing - grid.lower))

    def aggregate(self, measure: Measure, unit: str | None) -> Tree:  # noqa: PLR0911 - one case for each measure
        match measure:
            case Units() if unit is not None:
                return exp.Count(this=exp.Distinct(expressions=[column("unit")]))
            case Units() | Rows(None) | Cells():
                return count()
            case Rows():
                return count(column(self.name(measure)))
            case Present(value):
                name = self.name(measure)
                if name not in self.raw:
                    return count(column(name))
                return count() if value.missing is not None else self._known(name)
            case Total(value):
                return self._sum(value, self.name(measure), 1)
            case Squares(value):
                if value.grid.width > _WIDEST_SQUARE:
                    raise InvalidParameter(f"squares need a grid of at most 2⁴² steps, got {value.grid.width}")
                return self._sum(value, self.name(measure), 2)
            case Product():
                return self._product(measure)
            case _:
                assert_never(measure)

    def _known(self, name: str) -> Tree:
        """How many values that are left in are neither NULL nor NaN."""
        return exp.Sub(this=count(column(self.raw[name])), expression=self._nan(name))

    def _nan(self, name: str) -> Tree:
        return count(when([(self.translator.dialect.is_nan(column(self.raw[name])), whole(1))]))

    def _product(self, measure: Product) -> Tree:
        """Σ aᵖbᑫ over rows in which both are there."""
        here, there = (column(self.name(Present(value))) for value in (measure.first, measure.second))
        match measure.powers:
            case 0, 0:
                return count(when([(present(here), there)]))
            case 1, 0:
                points = when([(present(there), here)])
            case 0, 1:
                points = when([(present(here), there)])
            case _:
                points = exp.Mul(this=self.translator.dialect.cast(here, "wide"), expression=there)
        sums = self.translator.dialect.sums
        return total(self.translator.dialect.cast(points, sums) if sums is not None else points)

    def _sum(self, value: OnGrid, name: str, power: int) -> Tree:
        dialect, width = self.translator.dialect, value.grid.width
        here = column(name)
        if power == 2:
            here = dialect.cast(here, "long" if width**2 < 2**63 else "wide")
            here = exp.Mul(this=here, expression=here)
        points = total(dialect.cast(here, dialect.sums) if dialect.sums is not None else here)
        if name not in self.raw:
            return points
        taken_out = exp.Mul(this=dialect.cast(self._nan(name), "wide"), expression=whole(width**power))
        points = exp.Sub(this=points, expression=taken_out)
        if value.missing is None:
            return points
        unknown = dialect.cast(exp.Sub(this=count(), expression=paren(self._known(name))), "wide")
        put_in = exp.Mul(this=unknown, expression=whole((value.missing - value.grid.lower) ** power))
        return joined(exp.Add, [points, put_in])


def _clamped(here: Tree, lower: Tree, upper: Tree) -> Tree:
    return call("least", call("greatest", here, lower), upper)
