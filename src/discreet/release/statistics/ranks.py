"""Designs of quantiles, minimum and maximum in a query: exact choices in every group.

A row moves the gap of a cell by at most max(q, 1−q) to either side, so a rate of ε/(2·max(q, 1−q)·factor) per rank
loses at most ε over all rows of a unit, whichever groups they are in. Quantiles of one expression share ε in equal
parts, and each spends a quarter of its part on a bracket.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.ask.query import Extreme, Quantiles
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines.base import Cells, Exact, Measure, OnGrid
from discreet.errors import InvalidParameter
from discreet.release.design import Item, Line, Secret, Terms, as_number, grid_point
from discreet.release.statistics.quantile import (
    BRACKET_BITS,
    CELL_BITS,
    END_RATE,
    EXTREME_BITS,
    VALUE_PART,
    coarser,
    find,
    find_bracket,
    find_extreme,
    rank_error,
    records_beyond,
)

_FINEST_SHARE, _SMALLEST_RATE = 10**6, Fraction(1, 10**10)
"""With them 10¹² rows and an aim of 10¹² ranks, both in millionths, stay below 2⁶²."""

_ALL_CELLS = 24
"""Grids of quantiles are so coarse that all groups together have about 2²⁴ cells at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileDesign:
    """Quantiles of one expression, each with a bracket."""

    names: tuple[str, ...]
    of: Quantiles
    cells: int
    """Groups of the answer, which decide how fine the grid can be."""

    @property
    def weight(self) -> int:
        """One part for each quantile."""
        return len(self.names)

    @property
    def grid(self) -> ValueGrid:
        """A function of the declared bounds and of the number of groups."""
        bits = max(BRACKET_BITS, min(CELL_BITS, _ALL_CELLS - (self.cells - 1).bit_length()))
        return value_grid((self.of.lower, self.of.upper), bits=bits, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        """The counts of the cells."""
        return (Cells(OnGrid(as_number(self.of.of), self.grid, grid_point(self.of.missing, self.grid))),)

    def lines(self, terms: Terms, epsilon: Fraction, confidence: Fraction, size: int | None) -> list[Line]:
        """Known in ranks; how far that is in values, only the data knows."""
        found = []
        for name, share in zip(self.names, self.of.shares, strict=True):
            rate = rank_rate(share, terms, epsilon / len(self.names) * VALUE_PART)
            reach = float(rank_error(self.grid.width + 1, rate, 1 - confidence))
            of = f" of {size:,}" if size else ""
            within = f"within {reach:,.0f} ranks{of}; its interval is released with it"
            line = Line(name=name, sensitivity=Fraction(terms.steps), scale=1 / rate, within=within, reach=None)
            found.append(replace(line, step=self.grid.step))
        return found

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, list[Item]]:
        """For every group and share a choice, and two for its bracket."""
        each = epsilon / len(self.names)
        found = {}
        for name, share in zip(self.names, self.of.shares, strict=True):
            rate = rank_rate(share, terms, each * VALUE_PART)
            found[name] = [
                self._one(exact.map(lambda all_of, at=cell: all_of[0][at]), share, rate, confidence)  # type: ignore[misc]
                for cell in range(terms.cells)
            ]
        return found

    def _one(self, counts: Exact[Any], share: Fraction, rate: Fraction, confidence: Fraction) -> Item:
        grid = self.grid
        point = find(counts, grid, share, rate) * grid.step
        gathered, coarse = coarser(counts, grid)
        first, last = find_bracket(gathered, coarse, share, rate * END_RATE, confidence)
        half = Fraction(0) if coarse.exact else (coarse.step + (0 if grid.exact else grid.step)) / 2
        low = max(first * coarse.step - half, grid.lower * grid.step)
        high = min(last * coarse.step + half, grid.upper * grid.step)
        value = min(max(point, low), high)
        return (int(value), float(low), float(high)) if grid.exact else (float(value), float(low), float(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeDesign:
    """Minimum or maximum of one expression."""

    name: str
    of: Extreme
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    @property
    def grid(self) -> ValueGrid:
        """A function of the declared bounds."""
        return value_grid((self.of.lower, self.of.upper), bits=EXTREME_BITS, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        """The counts of the cells."""
        return (Cells(OnGrid(as_number(self.of.of), self.grid, grid_point(self.of.missing, self.grid))),)

    def lines(self, terms: Terms, epsilon: Fraction, _confidence: Fraction, _size: int | None) -> list[Line]:
        """Known in rows beyond."""
        rate = epsilon / terms.steps
        side = "above" if self.of.side == "max" else "below"
        within = f"about {records_beyond(self.grid, rate):,} rows lie {side}"
        line = Line(name=self.name, sensitivity=Fraction(terms.steps), scale=1 / rate, within=within, reach=None)
        return [replace(line, step=self.grid.step)]

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, _confidence: Fraction) -> dict[str, list[Item]]:
        """A choice in every group; what lies beyond the last record no private method can tell."""
        grid, side = self.grid, self.of.side
        bounds = float(self.of.lower), float(self.of.upper)
        found: list[Item] = []
        for cell in range(terms.cells):
            counts = exact.map(lambda all_of, at=cell: all_of[0][at])  # type: ignore[misc]
            point, _ = find_extreme(counts, grid, side, epsilon / terms.steps)
            if grid.exact:
                found.append((point, *bounds))
            else:
                edge = (point + (Fraction(1, 2) if side == "max" else -Fraction(1, 2))) * grid.step
                found.append((float(min(max(edge, self.of.lower), self.of.upper)), *bounds))
        return {self.name: found}


def rank_rate(share: Fraction, terms: Terms, epsilon: Fraction) -> Fraction:
    """The rate per rank that loses at most ε."""
    if terms.cells == 1 and terms.replaced:
        return epsilon / (2 * terms.rows)
    return epsilon / (2 * max(share, 1 - share) * terms.factor)


def refuse_unranked(design: object, terms: Terms, epsilon: Fraction) -> None:
    """Refuses shares and rates for which ranks would not fit into int64."""
    if isinstance(design, QuantileDesign):
        if any(share.denominator > _FINEST_SHARE for share in design.of.shares):
            raise InvalidParameter("a quantile's share must have at most six decimals, as in quantile(age, 0.999)")
        rates = [rank_rate(share, terms, epsilon / len(design.names) / 4) for share in design.of.shares]
    elif isinstance(design, ExtremeDesign):
        rates = [epsilon / terms.steps]
    else:
        return
    if min(rates) < _SMALLEST_RATE:
        raise InvalidParameter("epsilon must be larger for a quantile, minimum or maximum: this one would tell nothing")
