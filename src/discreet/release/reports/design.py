"""The integers of a report, and their noise: every measured set is a family of cells
(`calibrate.sensitivity`).

A row is in one cell of each set, or spreads over the halves of its numbers there. So a set has the
sensitivity of a count, whatever its size, and sets whose shares of ε add up to 1 cost ε together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.ask.query import Group
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Measure, Product, Rows
from discreet.engines.integers import Integers
from discreet.records import array_of
from discreet.release.design import Secret
from discreet.release.mechanism import NoisyColumn, noisy_columns
from discreet.release.reports.allocation import Measured, cells_of
from discreet.release.reports.axes import Axis, Levels, coarser
from discreet.release.reports.fit import Combined, Fit, Noise
from discreet.release.reports.tables import Attribute
from discreet.release.statistics.families import product_cells
from discreet.release.statistics.moments import pair_totals
from discreet.release.statistics.spread import continuous_scale, slack_of

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class ReportDesign:
    """The measured sets of a report."""

    attributes: tuple[Attribute, ...]
    measured: Measured

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of all attributes."""
        return tuple(attribute.axis for attribute in self.attributes)

    @cached_property
    def _grouped(self) -> list[int]:
        """The axes that are groups."""
        return [
            index for index, attribute in enumerate(self.attributes) if attribute.group is not None
        ]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups by which an engine counts."""
        return tuple(
            group for attribute in self.attributes if (group := attribute.group) is not None
        )

    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The groups of each measured set, by number, without repetition."""
        return tuple(dict.fromkeys(self._groups_of(levels) for levels, _ in self.measured))

    def _groups_of(self, levels: Levels) -> tuple[int, ...]:
        return tuple(number for number, index in enumerate(self._grouped) if levels[index])

    def _numbers_of(self, levels: Levels) -> tuple[int, ...]:
        """The axes of halves in a set."""
        return tuple(
            index for index, level in enumerate(levels) if level and self.attributes[index].half
        )

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """The axes whose halves are multiplied in some set."""
        pairs = [
            numbers
            for levels, _ in self.measured
            for numbers in combinations(self._numbers_of(levels), 2)
        ]
        return list(dict.fromkeys(pairs))

    @cached_property
    def _singles(self) -> list[int]:
        return sorted({index for levels, _ in self.measured for index in self._numbers_of(levels)})

    def measures(self) -> tuple[Measure, ...]:
        """The number of rows, n and Σa of each number, and the products of two."""
        measures: list[Measure] = [Rows()]
        for index in self._singles:
            measures += self._number(index).measures()
        for first, second in self._pairs:
            values = self._number(first).value, self._number(second).value
            measures += [Product(*values, powers) for powers in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return tuple(measures)

    def _number(self, index: int) -> Any:
        return self.attributes[index].number

    def _width(self, index: int) -> int:
        return max(1, self.attributes[index].width)

    def _missing(self, index: int) -> bool:
        return self.axes[index].sizes[1] > 2

    @cached_property
    def unit(self) -> int:
        """The common unit of the cells of all sets: the integer that stands for one row."""
        return math.prod(map(self._width, range(len(self.attributes))))

    def units(self, levels: Levels) -> list[int]:
        """For each column of a set (a combination of halves), the integer that means one row."""
        cells = [[self._width(i)] * 2 + [1] * self._missing(i) for i in self._numbers_of(levels)]
        return [math.prod(units) for units in product(*cells)]

    def totals(self, integers: Sequence[Sequence[int]]) -> list[Integers]:
        """The columns of all sets from the measures, which are lists over the cells of all sets."""
        starts, first = {}, 0
        for chosen in self.sets():
            shape = [self.axes[self._grouped[number]].sizes[-1] for number in chosen]
            starts[chosen] = slice(first, first + math.prod(shape)), shape
            first += math.prod(shape)
        measures = [
            np.asarray(column.array if isinstance(column, Integers) else list(column))
            for column in integers
        ]
        if self._singles:
            measures = [column.astype(object) for column in measures]
        columns = []
        for levels, _ in self.measured:
            chosen = self._groups_of(levels)
            block, shape = starts[chosen]
            own = self._columns(levels, [column[block] for column in measures])
            grouped = [self._grouped[number] for number in chosen]
            axes = [self.axes[index] for index in grouped]
            coarse = [levels[index] for index in grouped]
            columns += [
                Integers(coarser(axes, cells.reshape(shape), coarse).reshape(-1)) for cells in own
            ]
        return columns

    def _columns(self, levels: Levels, integers: list[Array]) -> Iterator[Array]:
        """The columns of one set from the measures of its groups."""
        rows, numbers = integers[0], self._numbers_of(levels)
        of = {index: integers[1 + 2 * i : 3 + 2 * i] for i, index in enumerate(self._singles)}
        if not numbers:
            yield rows
        elif len(numbers) == 1:
            [index] = numbers
            present, total = of[index]
            yield from pair_totals(present, total, self._width(index))
            if self._missing(index):
                yield rows - present
        else:
            first, second = numbers
            start = 1 + 2 * len(self._singles) + 4 * self._pairs.index((first, second))
            widths = (self._width(first), self._width(second))
            missing = (
                self._missing(first),
                self._missing(second),
            )
            yield from product_cells(
                rows, of[first], of[second], integers[start : start + 4], widths, missing
            )

    def scales(self, terms: UnitLimits, epsilon: Fraction) -> list[Fraction]:
        """The scale of each column, in its own units."""
        return [
            terms.family(unit, part) / epsilon
            for levels, part in self.measured
            for unit in self.units(levels)
        ]

    def mean_noise(self, terms: UnitLimits, epsilon: Fraction) -> float:
        """The expected sum of absolute noise over the cells of a set, in rows; the largest."""
        scales, noise = iter(self.scales(terms, epsilon)), 0.0
        for levels, _ in self.measured:
            units = self.units(levels)
            columns = cells_of(self.axes, levels) / len(units)
            noise = max(noise, columns * sum(float(next(scales) / unit) for unit in units))
        return noise

    def noisy(self, exact: Secret, terms: UnitLimits, epsilon: Fraction) -> list[NoisyColumn]:
        """The columns of all sets with their noise."""
        return noisy_columns(
            exact, self.scales(terms, epsilon), epsilon, terms.touched, self.totals
        )

    def fit(self, columns: Sequence[NoisyColumn], known: int | None) -> Fit:
        """The fit of all tables to the noisy columns."""
        cells, rest = {}, iter(columns)
        for levels, _ in self.measured:
            units, numbers = self.units(levels), self._numbers_of(levels)
            shape = [axis.sizes[level] for axis, level in zip(self.axes, levels, strict=True)]
            parts = [_scaled(next(rest).values, self.unit // unit) for unit in units]
            grouped = [size for index, size in enumerate(shape) if index not in numbers]
            table = np.stack(parts).reshape([*(self.axes[i].sizes[1] for i in numbers), *grouped])
            cells[levels] = np.moveaxis(table, range(len(numbers)), numbers)
        return Fit(axes=self.axes, measured=self.measured, cells=cells, unit=self.unit, known=known)

    def noise(
        self,
        columns: Sequence[NoisyColumn],
        confidence: float,
        *,
        known: bool,
        combined: Combined | None = None,
    ) -> Noise:
        """The distribution of the noise of all tables."""
        scales, slacks, rest = [], [], iter(columns)
        for levels, _ in self.measured:
            draws = [(next(rest)[0], unit) for unit in self.units(levels)]
            scales.append(max(continuous_scale(draw) / unit for draw, unit in draws))
            slacks.append(max(slack_of(draw, confidence) / unit for draw, unit in draws))
        if combined is None:
            combined = Combined(axes=self.axes, measured=self.measured, known=known)
        return Noise(scales=tuple(scales), slacks=tuple(slacks), combined=combined)

    @property
    def cells(self) -> int:
        """The number of noisy cells."""
        return sum(cells_of(self.axes, levels) for levels, _ in self.measured)


def _scaled(values: Sequence[int], factor: int) -> Array:
    """Integers times a factor; Python's integers if 64 bits are not enough."""
    array = values.array if isinstance(values, Integers) else array_of(values)
    return array if factor == 1 else np.asarray(array.astype(object) * factor)
