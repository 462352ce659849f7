"""Quantiles, minimum and maximum by exact choice among cells, in every group, and what can be said
of them.

A quantile q is searched at rank r = q·N (N the number of records) among the K points of a grid by
permute-and-flip, at a rate of ε over the range of the gaps (`UnitLimits.ranks`) per rank. P(rank
error ≥ T) ≤ K/2·e^(−rate·T), whatever the data. A bracket of two choices before it at r ∓ T, T =
ln(K/β)/rate, holds the quantile with probability 1 − β; as T grows with ln K, it is chosen on a
coarser grid. The width of the bracket tells how far apart the points are that the value is chosen
among first (`points`, with the K that counts then); without a bracket all cells are alike, since a
spacing that is wrong for the data can double the error. Quantiles of one expression share ε in
equal parts; each spends a quarter of its part on its bracket. Minimum and maximum aim at the s-th
record from the end with unequal rates, s = ⌈ln K/0.7ε⌉: no private method can find the last record.
A cell is a grid point with everything that is rounded to it, so ties are no problem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.ask.query import Extreme, Quantiles
from discreet.calibrate.ball import ball, upper_bound
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Cells, Exact, Measure
from discreet.engines.integers import CellCounts
from discreet.errors import InvalidParameter
from discreet.formats import readable
from discreet.release.design import Estimate, Line, Secret, on_grid
from discreet.release.intervals.spreads import constant
from discreet.release.mechanism import choose_cells
from discreet.release.statistics.points import WORST_WEIGHT, Points, spread_points

CELL_BITS, MOST_CELL_BITS = 16, 18
BRACKET_BITS = 9
EXTREME_BITS = 5
"""Grids of quantiles have about 2¹⁶ points, or up to 2¹⁸ where a public number of rows asks for
more; those of their brackets 2⁹, those of minimum and maximum 2⁵."""

_CELLS_PER_ROW = 8
"""Points of the grid per row and ε: a column with a density of 36 over its range, such as lognormal
values with bounds that are a hundred times the median, has a cell or so in a noise scale."""

_SPACING = Fraction(3, 2)
"""Points of a choice are this many noise scales apart, or down to half of it, where a bracket tells
how wide these are: so they are three apart at most where the density is up to twice that of the
bracket (see `points`)."""

VALUE_PART = Fraction(3, 4)
"""Of a quantile's ε, what its value gets where a bracket is released with it; each end gets half of
the rest.
"""

END_RATE = (1 - VALUE_PART) / 2 / VALUE_PART
"""The rate of an end of the bracket, as a share of the value's."""

_OVER, _UNDER = Fraction(7, 10), Fraction(3, 10)

_FINEST_SHARE, _SMALLEST_RATE = 10**6, Fraction(1, 10**10)
"""With them 10¹² rows and an aim of 10¹² ranks, both in millionths, stay below 2⁶²."""

_ALL_CELLS = 24
"""Grids of quantiles are so coarse that all groups together have about 2²⁴ cells at most."""

_USUAL_DOUBT = Fraction(1, 20)

Counts = Exact[Sequence[NDArray[np.int64]]]
"""Of every group the records in each cell, as arrays or as `CellCounts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileDesign:
    """Quantiles of one expression, each with a bracket or without."""

    names: tuple[str, ...]
    of: Quantiles
    cells: int
    """Groups of the answer, which decide how fine the grid can be."""
    bracketed: bool = True
    rows_epsilon: Fraction | None = None
    """n·ε, where it is public that n rows or fewer count."""

    @property
    def weight(self) -> int:
        return len(self.names)

    @property
    def grid(self) -> ValueGrid:
        """A function of the declared bounds, of the number of groups, and of n·ε where that is
        public.
        """
        wanted = int(_CELLS_PER_ROW * (self.rows_epsilon or 0)).bit_length()
        finest = min(max(CELL_BITS, wanted), MOST_CELL_BITS)
        bits = max(BRACKET_BITS, min(finest, _ALL_CELLS - (self.cells - 1).bit_length()))
        return value_grid((self.of.lower, self.of.upper), bits=bits, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        return (Cells(on_grid(self.of.of, self.grid, self.of.missing)),)

    def rate(self, share: Fraction, terms: UnitLimits, epsilon: Fraction) -> Fraction:
        """Of the value of a quantile, per rank."""
        each = epsilon / len(self.names) * (VALUE_PART if self.bracketed else 1)
        return each / terms.ranks(share)

    def rank_error(self, rate: Fraction, miss: Fraction = _USUAL_DOUBT) -> float:
        """How many ranks a value is off at most, but for a chance."""
        # a bracket spreads the points: their worst case is known
        spread = self.bracketed and not self.grid.exact
        return float(
            rank_error((self.grid.width + 1) * (WORST_WEIGHT if spread else 1), rate, miss)
        )

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, confidence: Fraction, size: int | None
    ) -> list[Line]:
        """Known in ranks; how far that is in values, only the data knows: shown as if they were
        spread evenly.
        """
        lines = []
        for name, share in zip(self.names, self.of.shares, strict=True):
            rate = self.rate(share, terms, epsilon)
            line = Line(
                name=name,
                sensitivity=Fraction(terms.row_changes),
                scale=1 / rate,
                error=(self._within(rate, confidence, [size] if size else [1_000, 10_000]), None),
                step=self.grid.step,
            )
            lines.append(line)
        return lines

    def _within(self, rate: Fraction, confidence: Fraction, sizes: Sequence[int]) -> str:
        """Half the width of a bracket: its ends lie T ranks beside the quantile, and n ranks fill
        evenly spread bounds.

        The width shown is at most half of the bounds, where a bracket ends.
        """
        ranks = _bracket_reach(_coarse(self.grid)[0], rate * END_RATE, confidence)
        widths = [
            min(ranks / size, Fraction(1, 2)) * (self.of.upper - self.of.lower) for size in sizes
        ]
        errors = [
            f"± {readable(float(width), 3)} at {size:,} rows"
            for width, size in zip(widths, sizes, strict=True)
        ]
        return f"about {', '.join(errors)} (± {math.ceil(ranks):,} ranks)"

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, confidence: Fraction
    ) -> Mapping[str, Estimate]:
        """For every group and share a choice, and two for its bracket."""
        estimates, counts = {}, _counts(exact, terms)
        for name, share in zip(self.names, self.of.shares, strict=True):
            rate = self.rate(share, terms, epsilon)
            values, lows, highs = self._chosen(counts, terms.cells, share, rate, confidence)
            estimates[name] = Estimate(
                values, partial(bracket_ends, self._bounds(), lows, highs, confidence)
            )
        return estimates

    def _chosen(
        self, counts: Counts, groups: int, share: Fraction, rate: Fraction, confidence: Fraction
    ) -> tuple[list[int | float], list[float], list[float]]:
        """For every group a value, and the lower and the upper end of its bracket.

        All of them are multiples of half a step, below 2⁵³ of them: exact in int64 and in floats.
        """
        grid, points = self.grid, None
        lows, highs = np.full(groups, 2 * grid.lower), np.full(groups, 2 * grid.upper)
        if self.bracketed:
            gathered, coarse = coarser(counts, grid)
            first, last = find_brackets(gathered, coarse, share, rate * END_RATE, confidence)
            times = 2 ** (coarse.exponent - grid.exponent)
            rounding = (0 if coarse.exact else times) + (0 if grid.exact else 1)
            lows = np.maximum(2 * times * first - rounding, lows)
            highs = np.minimum(2 * times * last + rounding, highs)
            # a bracket that ends at the bounds may hold fewer ranks: it tells nothing, and all
            # cells are alike
            spans = np.where((first > coarse.lower) & (last < coarse.upper), last - first, 0)
            of_span = {
                span: _points_within(span, coarse, grid, rate, confidence)
                for span in set(spans.tolist())
            }
            points = None if grid.exact else [of_span[span] for span in spans.tolist()]
        chosen = find(counts, grid, share, rate, points if points and any(points) else None)
        values = np.clip(2 * chosen, lows, highs)
        low_ends, high_ends = (
            np.ldexp(ends.astype(np.float64), grid.exponent - 1).tolist() for ends in (lows, highs)
        )
        if grid.exact:
            return (values // 2).tolist(), low_ends, high_ends
        return np.ldexp(values.astype(np.float64), grid.exponent - 1).tolist(), low_ends, high_ends

    def _bounds(self) -> tuple[Fraction, Fraction]:
        return self.grid.lower * self.grid.step, self.grid.upper * self.grid.step


def bracket_ends(
    bounds: tuple[Fraction, Fraction],
    lows: list[float],
    highs: list[float],
    released: Fraction,
    confidence: Fraction,
) -> tuple[list[float], list[float]]:
    """The brackets, up to the confidence that they were released for; beyond it only the bounds are
    certain.
    """
    if confidence <= released:
        return lows, highs
    return [float(bounds[0])] * len(lows), [float(bounds[1])] * len(highs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeDesign:
    """Minimum or maximum of one expression; what lies beyond the last record no private method can
    tell.
    """

    name: str
    of: Extreme
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def grid(self) -> ValueGrid:
        """A function of the declared bounds."""
        return value_grid((self.of.lower, self.of.upper), bits=EXTREME_BITS, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        return (Cells(on_grid(self.of.of, self.grid, self.of.missing)),)

    def beyond(self, terms: UnitLimits, epsilon: Fraction) -> str:
        """How many lie beyond the released number."""
        many = records_beyond(self.grid, epsilon / terms.row_changes)
        return f"about {many:,} {{}} lie {'above' if self.of.side == 'max' else 'below'}"

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction, _size: int | None
    ) -> list[Line]:
        """Known in rows beyond."""
        delta, within = Fraction(terms.row_changes), self.beyond(terms, epsilon).format("rows")
        return [
            Line(
                name=self.name,
                sensitivity=delta,
                scale=delta / epsilon,
                error=(within, None),
                step=self.grid.step,
            )
        ]

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        """A choice in every group."""
        points = find_extremes(
            _counts(exact, terms), self.grid, self.of.side, epsilon / terms.row_changes
        )
        ends = [float(self.of.lower)] * terms.cells, [float(self.of.upper)] * terms.cells
        return {
            self.name: Estimate([self._value(point) for point in points], partial(constant, *ends))
        }

    def _value(self, point: int) -> int | float:
        if self.grid.exact:
            return point
        edge = (
            point + (Fraction(1, 2) if self.of.side == "max" else -Fraction(1, 2))
        ) * self.grid.step
        return float(min(max(edge, self.of.lower), self.of.upper))


def _counts(exact: Secret, terms: UnitLimits) -> Counts:
    return exact.map(lambda measures: measures[0][: terms.cells])


def refuse_rank_overflow(design: object, terms: UnitLimits, epsilon: Fraction) -> None:
    """Refuses shares and rates for which ranks would not fit into int64."""
    if isinstance(design, QuantileDesign):
        if any(share.denominator > _FINEST_SHARE for share in design.of.shares):
            raise InvalidParameter(
                "a quantile's share must have at most six decimals, as in quantile(age, 0.999)"
            )
        # a quarter of its part
        rates = [design.rate(share, terms, epsilon) / 3 for share in design.of.shares]
    elif isinstance(design, ExtremeDesign):
        rates = [epsilon / terms.row_changes]
    else:
        return
    if min(rates) < _SMALLEST_RATE:
        raise InvalidParameter(
            "epsilon must be larger for a quantile, minimum or maximum: this one would tell nothing"
        )


@lru_cache(maxsize=256)
def rank_error(cells: int, rate: Fraction, miss: Fraction) -> Fraction:
    """T with P(rank error ≥ T) ≤ miss, in records; rounded up to quarters."""
    exact = upper_bound(lambda: ball(cells / (2 * miss)).log() / ball(rate))
    return Fraction(math.ceil(exact * 4), 4)


def find(
    counts: Counts,
    grid: ValueGrid,
    share: Fraction,
    rate: Fraction,
    points: Sequence[Points | None] | None = None,
) -> NDArray[np.int64]:
    """For every group the grid point chosen for a quantile, at this rate per rank."""
    chosen = choose_cells(
        counts, share=share, offset=Fraction(0), over=rate, under=rate, points=points
    )
    return grid.lower + np.array(chosen)


def find_brackets(
    counts: Counts, grid: ValueGrid, share: Fraction, rate: Fraction, confidence: Fraction
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every group two grid points between which the quantile lies at this confidence, each
    chosen at this rate.
    """
    reach = _bracket_reach(grid, rate, confidence)
    # the ends may lie below or above everybody: two more cells, which hold nobody
    ends = [
        choose_cells(counts, share=share, offset=side, over=rate, under=rate, beyond=True)
        for side in (-reach, reach)
    ]
    # each end has a draw of its own, so that they may be the other way round
    first, last = np.clip(np.sort(ends, axis=0) + (grid.lower - 1), grid.lower, grid.upper)
    return first, last


def _bracket_reach(grid: ValueGrid, rate: Fraction, confidence: Fraction) -> Fraction:
    """T: how many ranks the ends of a bracket aim beside the quantile."""
    return rank_error(grid.width + 3, rate, (1 - confidence) / 2)


def _points_within(
    span: int, coarse: ValueGrid, grid: ValueGrid, rate: Fraction, confidence: Fraction
) -> Points | None:
    """The points for the value in a bracket of so many steps; its 2T ranks tell what a noise scale
    of 1/rate spans.
    """
    scales = 2 * _bracket_reach(coarse, rate * END_RATE, confidence) * rate
    spacing = _SPACING * span * (coarse.step / grid.step) / scales * _sharpness(rate)
    return spread_points(grid.lower, grid.width + 1, spacing)


def _sharpness(rate: Fraction) -> Fraction:
    """What points are closer by where the noise is below a rank: several are to lie between two
    records.
    """
    return min(Fraction(1), 1 / (2 * rate))


def records_beyond(grid: ValueGrid, epsilon: Fraction) -> int:
    """The record from the end that minimum and maximum aim at."""
    return math.ceil(upper_bound(lambda: ball(grid.width + 1).log() / ball(_OVER * epsilon)))


def find_extremes(
    counts: Counts, grid: ValueGrid, side: Literal["min", "max"], epsilon: Fraction
) -> list[int]:
    """For every group the grid point chosen for a minimum or maximum."""
    share, sign = (Fraction(1), -1) if side == "max" else (Fraction(0), 1)
    over, under = (_OVER, _UNDER) if side == "max" else (_UNDER, _OVER)
    offset = Fraction(sign * records_beyond(grid, epsilon))
    chosen = choose_cells(
        counts, share=share, offset=offset, over=over * epsilon, under=under * epsilon
    )
    return [grid.lower + index for index in chosen]


def coarser(counts: Counts, grid: ValueGrid) -> tuple[Counts, ValueGrid]:
    """The same counts on a grid for brackets: every point goes to the nearest one of a coarser
    grid.
    """
    coarse, places = _coarse(grid)
    if coarse.width == grid.width:
        return counts, coarse
    return (
        counts.map(lambda groups: CellCounts.of(groups).gathered(places, coarse.width + 1)),
        coarse,
    )


@lru_cache(maxsize=64)
def _coarse(grid: ValueGrid) -> tuple[ValueGrid, NDArray[np.int64]]:
    """The coarser grid, and for each finer point the place of the one that it goes to."""
    times = 2 ** max(0, (grid.width + 1).bit_length() - 1 - BRACKET_BITS)
    lower, upper = (2 * grid.lower + times) // (2 * times), (2 * grid.upper + times) // (2 * times)
    coarse = ValueGrid(
        exponent=grid.exponent + times.bit_length() - 1,
        lower=lower,
        upper=upper,
        exact=times == 1 and grid.exact,
    )
    return coarse, (2 * (grid.lower + np.arange(grid.width + 1)) + times) // (2 * times) - lower
