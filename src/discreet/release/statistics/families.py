"""Several aggregates of one question from one set of noisy totals, at one cost.

A *family* is a partition of the row: nonnegative cells that add up to 1 in every row.

    {1}                     the number of rows
    {u, 1−u}                the halves of a column, u = a/R; with a cell for rows without a value,
                            if there can be any
    {(1−u)², 2u(1−u), u²}   Bernstein's thirds, if a variance is asked for; likewise
    {c, 1−c}                whether a condition holds
    products                {uv, u(1−v), (1−u)v, (1−u)(1−v)} and so on

Every row adds one unit to every family, whatever its values, so families whose shares of ε add up
to 1 cost ε. Each also estimates the number of rows, and a product estimates the halves of both
columns. The cells are fitted to each other by least squares under these equalities. All cells of a
family have equal variances, so what it says of the number of rows and what it says of the
differences between the cells of an attribute are independent. Of both, the fit is the mean over the
families that say it, with weights p²/cells. So all estimates are linear in the draws, with public
coefficients.

If units are replaced and there is one group, columns are centred instead, and share one noisy
number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate, product
from typing import Any, TypeAlias

import numpy as np

from discreet.ask.kinds import kind_of
from discreet.ask.query import Count
from discreet.ask.statistics import moment
from discreet.calibrate.grid import ValueGrid, public_step
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Measure, Product, Rows, Squares, Total
from discreet.engines.integers import Integers, without_overflow
from discreet.release.design import Error, Estimate, Line, Secret
from discreet.release.mechanism import NoisyColumn, noisy_columns
from discreet.release.statistics.counts import whole, whole_ends
from discreet.release.statistics.grouped import FINEST_SLACK, Draws, Law, PrivateSizeMoments
from discreet.release.statistics.moments import (
    MomentDesign,
    bernstein_totals,
    centred_square_totals,
    centred_totals,
    estimate_of,
    moment_line,
    pair_totals,
    planned_error,
    rows_of,
    sum_noise,
)
from discreet.release.statistics.partition import Matrix, Partition, centred, centred_squares
from discreet.release.statistics.spread import Floats

Family: TypeAlias = tuple[tuple[int, ...], Fraction]
"""The attributes of the product, and its share of the ε of the design."""

Shape: TypeAlias = tuple[tuple[int, bool], ...]
"""For each attribute, the number of its cells, and whether a row can be in none of them."""

WHOLE = ValueGrid(exponent=0, lower=0, upper=1, exact=True)
"""The grid of counts."""

_ROUNDING = Fraction(21, 100)
"""The scale of a draw with at least the variance of rounding to integers, 1/12."""


@dataclass(frozen=True, kw_only=True)
class JointDesign:
    """Counts, sums, means and variances of one question, from one joint release."""

    counts: tuple[tuple[str, Count], ...]
    """Counts by name: of rows, of rows with a value, or of rows for which a condition holds."""
    columns: tuple[MomentDesign, ...]
    families: tuple[Family, ...]
    """Attributes are the columns in their order, then the conditions of the counts."""
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return (
            *(name for name, _ in self.counts),
            *(name for column in self.columns for name in column.names),
        )

    @cached_property
    def conditions(self) -> tuple[Count, ...]:
        """The counts that are separate attributes."""
        conditions = (
            count
            for _, count in self.counts
            if count.of is not None and self._column_of(count) is None
        )
        return tuple(dict.fromkeys(conditions))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """R of each column, in steps of its grid."""
        return tuple(column.grid.width for column in self.columns)

    @cached_property
    def shape(self) -> Shape:
        """The cells of each attribute."""
        columns = (
            (3 if column.squares else 2, column.of.missing is None) for column in self.columns
        )
        return (*columns, *((1, True) for _ in self.conditions))

    def _column_of(self, count: Count) -> int | None:
        """The index of the column whose values or truths are counted; None if there is none."""
        return next(
            (
                i
                for i, column in enumerate(self.columns)
                if column.of.of == count.of and column.of.missing is None
            ),
            None,
        )

    def attribute_of(self, count: Count) -> int | None:
        """The attribute whose cells a count adds up; None for all rows."""
        if count.of is None:
            return None
        column = self._column_of(count)
        return len(self.columns) + self.conditions.index(count) if column is None else column

    def counted(self, count: Count) -> tuple[float, ...]:
        """Which cells of its attribute a count adds up: of a truth those for which it holds."""
        column = self._column_of(count)
        if count.of is None or column is None:
            return (1.0,)
        cells = 3 if self.columns[column].squares else 2
        return _values(cells) if kind_of(count.of) == "truth" else (1.0,) * cells

    def measures(self) -> tuple[Measure, ...]:
        """The number of rows, measures of each column, each condition, and products of columns."""
        measures: list[Measure] = [Rows()]
        for column in self.columns:
            measures += column.measures()
        measures += [Rows(count.of) for count in self.conditions]
        for first, second in self._products:
            values = self.columns[first].value, self.columns[second].value
            measures += [Product(*values, powers) for powers in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return tuple(measures)

    @property
    def _products(self) -> list[tuple[int, int]]:
        return [
            (attributes[0], attributes[1]) for attributes, _ in self.families if len(attributes) > 1
        ]

    def totals(self, measured: list[Any], terms: UnitLimits) -> list[Any]:
        """The totals that get noise, for every group, from the measures."""
        many = all(isinstance(column, Integers) for column in measured)
        arrays = [column.array if many else np.array(list(column), object) for column in measured]
        totals = self._totals(
            without_overflow(arrays, self._factors(terms)) if many else arrays, terms
        )
        return [Integers(column) if many else column.tolist() for column in totals]

    def _factors(self, terms: UnitLimits) -> list[int]:
        """For each measure, the largest factor that it has in a total."""
        top, widest = 2 * max(self.units(terms)), 8 * max(self.widths, default=1)
        if not self._products and not any(column.squares for column in self.columns):
            widest = 2  # a sum is only doubled
        factors = []
        for measure in self.measures():
            degree = isinstance(measure, Total) + 2 * isinstance(measure, Squares)
            factors.append(
                (top, widest, 8)[sum(measure.powers) if isinstance(measure, Product) else degree]
            )
        return factors

    def _totals(self, measured: list[Any], terms: UnitLimits) -> Iterator[Any]:
        rows, *rest = measured
        start, numbers = 0, []
        for column in self.columns:
            size = 3 if column.squares else 2
            numbers.append(rest[start : start + size])
            start += size
        holding = rest[start : start + len(self.conditions)]
        start += len(holding)
        widths = self.widths
        if terms.same_group:
            for attributes, _ in self.families:
                for index in attributes:
                    centre: Any = (
                        centred_square_totals if self.columns[index].squares else centred_totals
                    )
                    yield from centre(*numbers[index], widths[index])[:-1]
            yield rows
            return
        for attributes, _ in self.families:
            if not attributes:
                yield rows
            elif len(attributes) == 2:
                first, second = attributes
                both = rest[start : start + 4]
                missing = (
                    self.shape[first][1],
                    self.shape[second][1],
                )
                pair_of_widths = widths[first], widths[second]
                yield from product_cells(
                    rows, numbers[first], numbers[second], both, pair_of_widths, missing
                )
                start += 4
            elif attributes[0] < len(self.columns):
                [index] = attributes
                cells: Any = bernstein_totals if self.columns[index].squares else pair_totals
                yield from cells(*numbers[index], widths[index])
                if self.shape[index][1]:
                    yield rows - numbers[index][0]
            else:
                true_rows = holding[attributes[0] - len(self.columns)]
                yield from (true_rows, rows - true_rows)

    def units(self, terms: UnitLimits) -> tuple[int, ...]:
        """For each total, the integer that stands for one row."""
        unit_sizes: list[int] = []
        sizes = [
            width ** (size - 1) for width, (size, _) in zip(self.widths, self.shape, strict=False)
        ]
        sizes += [1] * len(self.conditions)
        if terms.same_group:
            for attributes, _ in self.families:
                for index in attributes:
                    width = self.widths[index]
                    unit_sizes += (
                        [2 * width, 8 * width**2] if self.columns[index].squares else [2 * width]
                    )
            return (*unit_sizes, 1)
        for attributes, _ in self.families:
            cells = [
                [sizes[index]] * self.shape[index][0] + [1] * self.shape[index][1]
                for index in attributes
            ]
            unit_sizes += [math.prod(units) for units in product(*cells)]
        return tuple(unit_sizes)

    def scales(self, terms: UnitLimits, epsilon: Fraction) -> list[Fraction]:
        """The scales of the totals, in their own units."""
        known = self._known_scales
        if terms not in known:
            known[terms] = _scales(self, terms)
        return [scale / epsilon for scale in known[terms]]

    @cached_property
    def _known_scales(self) -> dict[UnitLimits, tuple[Fraction, ...]]:
        return {}

    @cached_property
    def _known_partitions(self) -> dict[UnitLimits, tuple[list[Partition], list[Partition]]]:
        return {}

    def partitions(self, terms: UnitLimits) -> tuple[list[Partition], list[Partition]]:
        """The partitions that give the counts and the columns from the totals."""
        if terms not in self._known_partitions:
            self._known_partitions[terms] = self._partitions(terms)
        return self._known_partitions[terms]

    def _partitions(self, terms: UnitLimits) -> tuple[list[Partition], list[Partition]]:
        units = self.units(terms)
        if terms.same_group:
            return self._centred(terms, units)
        fit = fitted(self.shape, self.families)
        of_columns = [
            Partition(_values(3 if column.squares else 2), fit.cells[index], fit.scales, units)
            for index, column in enumerate(self.columns)
        ]
        of_counts = []
        for _, count in self.counts:
            attribute = self.attribute_of(count)
            cells = (fit.rows,) if attribute is None else fit.cells[attribute]
            of_counts.append(
                Partition(
                    (1.0,), _tuples(np.array([self.counted(count)]) @ cells), fit.scales, units
                )
            )
        return of_counts, of_columns

    def _centred(
        self, terms: UnitLimits, units: tuple[int, ...]
    ) -> tuple[list[Partition], list[Partition]]:
        """Each column from its own totals and the number of rows, which is the last total."""
        of_one_row = self.scales(replace(terms, rows=1), Fraction(1))
        scales = [float(scale / unit) for scale, unit in zip(of_one_row, units, strict=True)]
        last = len(units) - 1
        of_columns: dict[int, Partition] = {}
        start = 0
        for attributes, _ in self.families:
            for index in attributes:
                column = self.columns[index]
                plain = (centred_squares if column.squares else centred)(self.widths[index])
                own = (*range(start, start + len(plain.units) - 1), last)
                matrix = np.zeros((len(plain.values), len(units)))
                matrix[:, own] = plain.matrix
                start += len(own) - 1
                of_columns[index] = Partition(plain.values, _tuples(matrix), tuple(scales), units)
        rows = tuple([0.0] * last + [1.0])
        of_counts = [Partition((1.0,), (rows,), tuple(scales), units) for _ in self.counts]
        return of_counts, [of_columns[index] for index in range(len(self.columns))]

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, confidence: Fraction, size: int | None
    ) -> list[Line]:
        """The largest errors from the noise at this confidence."""
        scales, units, (of_counts, of_columns) = (
            self.scales(terms, epsilon),
            self.units(terms),
            self.partitions(terms),
        )
        of_rows = rows_of(scales, units)
        draws = Draws([NoisyColumn(values=[0], step=1, scale=scale) for scale in scales], units)
        delta, level = Fraction(terms.row_changes), float(confidence)

        def planned(grid: ValueGrid, partition: Partition) -> PrivateSizeMoments:
            return PrivateSizeMoments(
                grid=grid, partition=partition, law=Law(draws, partition, FINEST_SLACK)
            )

        ranges = [column.grid.width * column.grid.step for column in self.columns]
        lines = []
        for (name, _), partition in zip(self.counts, of_counts, strict=True):
            first = _first(partition)
            line = Line(
                name=name,
                sensitivity=delta,
                scale=scales[first] / units[first],
                error=partial(_count_error, planned(WHOLE, partition), level),
                draws=partial(_written, partition, of_rows),
            )
            lines.append(line)
        for column, width, partition in zip(self.columns, ranges, of_columns, strict=True):
            sums, first = planned(column.grid, partition), _first(partition)
            share = delta * units[first] / scales[first]
            for name, statistic in column.wanted:
                base = moment(statistic).base
                unit = width ** (2 if base == "variance" else 1) / units[first]
                noise = (
                    scales[first] * unit,
                    public_step(scales[first], epsilon, terms.touched) * unit,
                )
                reach_of = partial(
                    planned_error, column.of, column.grid, statistic, partial(sums.planned, level)
                )
                added = partial(sum_noise, column.grid, partition, of_rows) if base == "sum" else ()
                lines.append(moment_line(name, statistic, noise, share, reach_of, added, size))
        return lines

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        """Noisy totals of all groups, with estimates, and intervals at any confidence."""
        sums_of = lambda measured: self.totals(measured, terms)  # noqa: E731
        totals = noisy_columns(exact, self.scales(terms, epsilon), epsilon, terms.touched, sums_of)
        of_counts, of_columns = self.partitions(terms)
        draws = Draws(totals, self.units(terms))
        estimates: dict[str, Estimate] = {}
        for (name, _), partition in zip(self.counts, of_counts, strict=True):
            sums = PrivateSizeMoments(
                grid=WHOLE, partition=partition, totals=totals, law=Law(draws, partition)
            )
            counts = whole(np.rint(sums.value("count")))
            estimates[name] = Estimate(counts, partial(whole_ends, sums, counts))
        for column, partition in zip(self.columns, of_columns, strict=True):
            sums = PrivateSizeMoments(
                grid=column.grid, partition=partition, totals=totals, law=Law(draws, partition)
            )
            estimates |= {name: estimate_of(sums, statistic) for name, statistic in column.wanted}
        return estimates


def _scales(design: JointDesign, terms: UnitLimits) -> tuple[Fraction, ...]:
    """The scales at ε = 1."""
    if not terms.same_group:
        parts = [
            part
            for attributes, part in design.families
            for _ in range(cells_of(design.shape, attributes))
        ]
        return tuple(
            terms.family(unit, part) for unit, part in zip(design.units(terms), parts, strict=True)
        )
    measured = [(index, part) for attributes, part in design.families for index in attributes]
    columns = [
        (design.widths[index], design.columns[index].squares, part) for index, part in measured
    ]
    scales = [scale for column in columns for scale in terms.column(*column)]
    return (*scales, terms.shared_rows([(squares, part) for _, squares, part in columns]))


def _values(cells: int) -> tuple[float, ...]:
    """The u of a value that lies entirely in one of so many cells."""
    return (0.0, 0.5, 1.0) if cells == 3 else (1.0, 0.0)


def _first(partition: Partition) -> int:
    """The first of the totals with the largest weight in the sums of a partition."""
    weights = [*np.abs(np.array(partition.kinds)[:, 2:]).sum(axis=1).tolist(), 0.0]
    return int(np.array(weights)[partition.kind_of].argmax())


def _count_error(sums: PrivateSizeMoments, level: float) -> Error:
    reach = round(sums.planned(level, "count", False, 1))
    return f"± {reach:,}", float(reach)


def _written(partition: Partition, scales: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The nonnegligible scales of a count's draws, as short fractions, and one for rounding."""
    short = cache(lambda scale: scale.limit_denominator(10**9))
    least = Fraction(1, 10**6)
    return (
        *(short(scale) for scale in sum_noise(WHOLE, partition, scales) if scale > least),
        _ROUNDING,
    )


def product_cells(
    rows: Any,
    first: list[Any],
    second: list[Any],
    both: list[Any],
    size: tuple[int, int],
    missing: tuple[bool, bool],
) -> Iterator[Any]:
    """Cells of a product of halves: u, 1−u and no value of the first, times the second's."""
    (n, s), (m, t), (width, other_width) = first, second, size
    count, left, right, mixed = both
    yield mixed
    yield left * other_width - mixed
    if missing[1]:
        yield s - left
    yield right * width - mixed
    yield count * (width * other_width) - left * other_width - right * width + mixed
    if missing[1]:
        yield (n - count) * width - (s - left)
    if missing[0]:
        yield t - right
        yield (m - count) * other_width - (t - right)
        if missing[1]:
            yield rows - n - m + count


def cells_of(shape: Shape, attributes: tuple[int, ...]) -> int:
    """The number of cells of a family."""
    return math.prod(shape[index][0] + shape[index][1] for index in attributes)


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted cells as combinations of the draws, in units of a row."""

    rows: tuple[float, ...]
    cells: tuple[Matrix, ...]
    """The cells of each attribute, without the cell for rows without a value."""
    scales: tuple[float, ...]


@lru_cache(maxsize=256)
def fitted(shape: Shape, families: tuple[Family, ...]) -> Fit:
    """The fit of families with these shares of ε."""
    firsts = list(
        accumulate((cells_of(shape, attributes) for attributes, _ in families), initial=0)
    )
    counts, parts = np.diff(firsts), np.array([float(part) for _, part in families])
    precisions = parts**2 / counts
    rows = np.repeat(precisions / precisions.sum(), counts)
    measured: list[list[int]] = [[] for _ in shape]
    for number, (attributes, _) in enumerate(families):
        for index in attributes:
            measured[index].append(number)
    cells = []
    for index, (own, missing) in enumerate(shape):
        several = own + missing
        matrix = np.tile(rows / several, (several, 1))
        whole = precisions[measured[index]].sum()
        for number in measured[index]:
            margin = _margin(shape, families[number][0], index)
            block = slice(firsts[number], firsts[number + 1])
            matrix[:, block] += precisions[number] / whole * (margin - 1 / several)
        cells.append(_tuples(matrix[:own]))
    scales = np.repeat([float(1 / part) for _, part in families], counts)
    return Fit(_tuples(rows[None])[0], tuple(cells), tuple(scales.tolist()))


def _margin(shape: Shape, attributes: tuple[int, ...], index: int) -> Floats:
    """The cells of an attribute as sums of the cells of a family."""
    sizes = [shape[one][0] + shape[one][1] for one in attributes]
    place = attributes.index(index)
    cells = np.indices(sizes)[place].ravel()
    margin: Floats = np.equal(cells, np.arange(sizes[place])[:, None]).astype(np.float64)
    return margin


def _tuples(matrix: Floats) -> Matrix:
    """The matrix as tuples; entries that are 0 up to rounding become 0."""
    return tuple(tuple(row) for row in np.where(np.abs(matrix) < 1e-12, 0.0, matrix).tolist())
