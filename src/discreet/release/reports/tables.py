"""The tables of a report as combinations of cells.

    group column   an axis with its keys, and a last cell for rows with none of them
    condition      an axis with a cell each for true, false and neither
    number         an axis of halves: a row spreads u and 1 − u over them, u = (x − L)/(H − L);
                   missing is a third cell

Every row is on every axis once, so that each set of axes costs as much as one table. Tables may
differ in WHERE if their conditions are on group columns: these select cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.ask.expression import Expression
from discreet.ask.normal import text
from discreet.ask.query import Group, Named, Query
from discreet.release.reports.allocation import Target
from discreet.release.reports.axes import Axis, Floats, Levels
from discreet.release.reports.conditions import operands
from discreet.release.reports.fit import Question
from discreet.release.statistics.moments import MomentDesign


@dataclass(frozen=True)
class Attribute:
    """A column of a report: an axis, and the meaning of its cells."""

    axis: Axis
    names: tuple[str, ...]
    """The canonical text of each level; empty for a level that nobody asked for."""
    group: Group | None = None
    """A group with its last cell, or a condition."""
    number: MomentDesign | None = None
    """The number whose halves are the cells."""
    width: int = 0
    """The width of a number's grid, which is one row in its halves; 0 if there are none."""

    @property
    def half(self) -> bool:
        """Whether a row spreads over its cells."""
        return self.width > 0

    @property
    def complete(self) -> bool:
        """Whether every row has one of the keys."""
        return self.group is not None and self.group.other is None


@dataclass(frozen=True)
class Number:
    """A released number: a combination of the cells of an axis, or the quotient of two."""

    name: str
    statistic: str
    """count, sum or mean."""
    attribute: int | None
    """The axis of the number or condition; None for all rows."""
    weights: tuple[float, ...] = ()
    """The weights of the cells in the count or the sum, or in the numerator of a mean."""
    present: tuple[float, ...] = ()
    """The weights of the cells in the denominator of a mean."""
    ends: tuple[float, float] = (0.0, 1.0)
    """The ends of the grid of the values of a sum or a mean."""
    half_step: float = 0.0
    """How far each of these values is rounded at most."""

    @property
    def width(self) -> float:
        """The range of the values."""
        return self.ends[1] - self.ends[0]

    def moved(self, by: float) -> Number:
        """A sum of which each value is this much larger."""
        weights = zip(self.weights, self.present, strict=True)
        return replace(self, weights=tuple(weight + by * present for weight, present in weights))


@dataclass(frozen=True)
class Table:
    """A table of a report."""

    name: str
    query: Query
    weight: Fraction
    groups: tuple[tuple[int, int], ...]
    """The axis and the level of each group column."""
    masks: Mapping[int, Floats]
    """For each axis with a condition, which of its finest cells are admitted: 1 or 0."""
    numbers: tuple[Number, ...]
    complete: Mapping[int, bool]
    """For each axis with groups, whether every row has one of its keys."""

    @property
    def chosen_by(self) -> set[Expression]:
        """The expressions by which WHERE selects cells."""
        return operands(self.query.where) if self.masks and self.query.where is not None else set()

    @property
    def in_order(self) -> list[Number]:
        """The numbers in the order of the question; those that occur only in formulas are last."""
        places = {
            output.name: i
            for i, (_, output) in enumerate(self.query.outputs)
            if isinstance(output, Named)
        }
        return sorted(self.numbers, key=lambda number: places.get(number.name, len(places)))

    def levels(self, axes: tuple[Axis, ...], number: Number) -> Levels:
        """The levels of the axes that a number needs."""
        levels = [0] * len(axes)
        for index in self.masks:
            levels[index] = self._mask(axes, index)[0]
        if number.attribute is not None:
            levels[number.attribute] = axes[number.attribute].levels
        for index, level in self.groups:
            levels[index] = max(levels[index], level)
        return tuple(levels)

    def _mask(self, axes: tuple[Axis, ...], index: int) -> tuple[int, Floats]:
        """The coarsest level on which WHERE can select cells of an axis, and the selection."""
        axis, mask = axes[index], self.masks[index]
        for level in range(1, axis.levels):
            coarse = np.zeros(axis.sizes[level])
            coarse[axis.ancestors(axis.levels, level)] = mask
            if (coarse[axis.ancestors(axis.levels, level)] == mask).all():
                return level, coarse
        return axis.levels, mask

    def mask(self, axes: tuple[Axis, ...], index: int, level: int) -> Floats | None:
        """The cells of a level of an axis that WHERE admits."""
        if index not in self.masks:
            return None
        own, mask = self._mask(axes, index)
        return mask[axes[index].ancestors(level, own)]

    def rows(self, axes: tuple[Axis, ...]) -> dict[int, NDArray[np.int64]]:
        """Per axis of groups, the cells with a row in the table, on the finest level asked for."""
        rows: dict[int, NDArray[np.int64]] = {}
        for index, level in self.finest.items():
            labelled = all(
                g.other is not None
                for g, own in zip(self.query.groups, self.groups, strict=True)
                if own[0] == index
            )
            cells = np.arange(
                axes[index].sizes[level] - (not labelled and not self.complete[index])
            )
            mask = self.mask(axes, index, level)
            rows[index] = cells if mask is None else cells[mask[cells] > 0]
        return rows

    @property
    def finest(self) -> dict[int, int]:
        """The axes of groups, in the order of the columns, each with its finest level asked for."""
        finest: dict[int, int] = {}
        for index, level in self.groups:
            finest[index] = max(level, finest.get(index, 0))
        return finest

    @property
    def nested(self) -> bool:
        """Whether two group columns share an axis, such as state and county."""
        return len(self.finest) < len(self.groups)

    def keys(self, axes: tuple[Axis, ...]) -> dict[str, list[object]]:
        """The keys of each group column: each once, or one per row if group columns are nested."""
        rows, keys = self.rows(axes), {}
        grid = (
            dict(zip(rows, np.meshgrid(*rows.values(), indexing="ij"), strict=True))
            if self.nested
            else rows
        )
        for group, (index, level) in zip(self.query.groups, self.groups, strict=True):
            cells = axes[index].ancestors(self.finest[index], level)[grid[index].ravel()]
            names = [*group.keys, group.other]
            keys[group.name] = [names[cell] for cell in cells.tolist()]
        return keys

    def question(
        self, axes: tuple[Axis, ...], number: Number, weights: Floats | None, cells: list[int]
    ) -> Question:
        """A number of a row as combinations on the axes; `cells` are its cells on group columns."""
        levels = self.levels(axes, number)
        question = []
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            query = np.ones(axis.sizes[level])
            for own, cell in zip(self.finest, cells, strict=True):
                if own == index:
                    query = query * axis.unit(level, cell)
            mask = self.mask(axes, index, level)
            if mask is not None:
                query = query * mask
            if index == number.attribute and weights is not None:
                query = (query * weights.T).T
            question.append((level, query))
        return question

    def target(self, axes: tuple[Axis, ...], number: Number) -> Target:
        """The target that the plan optimises: a cell of a count, or of the halves of a number."""
        levels = self.levels(axes, number)
        spreads = []
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            mask = self.mask(axes, index, level)
            own = (
                axis.spreads(level)
                if mask is None or index in self.finest
                else axis.squares(level, mask)
            )
            spreads.append(tuple(own))
        return Target(levels, tuple(spreads), float(self.weight))


@dataclass(frozen=True)
class Layout:
    """All tables of a report, and the axes that they share."""

    attributes: tuple[Attribute, ...]
    tables: tuple[Table, ...]
    where: Expression | None
    """The condition that all tables share."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of all attributes."""
        return tuple(attribute.axis for attribute in self.attributes)

    def labels(self, index: int) -> tuple[str, list[object]]:
        """The name of an axis of groups, and its finest keys; None for rows with none of them."""
        attribute = self.attributes[index]
        column: Any = attribute.group
        name, rest = text(column.of), None
        for table in self.tables:
            for group, own in zip(table.query.groups, table.groups, strict=True):
                if own == (index, attribute.axis.levels):
                    names = [
                        title
                        for title, output in table.query.outputs
                        if output == Named(group.name)
                    ]
                    name, rest = (names or [name])[0], group.other
                    break
        return name, [*column.keys, *([] if attribute.complete else [rest])]

    @property
    def halves(self) -> frozenset[int]:
        """The axes over which a row spreads."""
        return frozenset(index for index, attribute in enumerate(self.attributes) if attribute.half)
