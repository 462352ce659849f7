"""The columns of a report: each is an axis with cells, and every row is in one or spreads over all.

An axis has levels: a single cell with all rows, its cells, and for a hierarchy the parents in
between. A table has a level of each axis. It is a sum of independent parts [ResidualPlanner, Xiao
et al. 2023]: along one axis

    y_c = Σ over levels b ≤ c of lift(centre_b(sums of y on level b))
    centre_b   y_j − g_j·(sum of the siblings of j)        what level b adds to the level above
    lift       value of the parent · g_j                   g_j ≥ 0 add up to 1 among siblings

for any g. They are 1/siblings, or close to it with a common denominator, so that everything stays
in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Levels: TypeAlias = tuple[int, ...]
"""For each axis, a level: of a table, of a measured set, or of a part of both."""

Floats = NDArray[np.float64]

_PARTS = 2**20  # the denominator of the shares if parents have different numbers of children


@dataclass(frozen=True)
class Axis:
    """A column of a report."""

    sizes: tuple[int, ...]
    """The number of cells of each level; the first level has one."""
    parents: tuple[tuple[int, ...], ...] = ()
    """From the third level on, the parent of each cell."""

    @cached_property
    def levels(self) -> int:
        """The finest level."""
        return len(self.sizes) - 1

    def above(self, level: int) -> NDArray[np.int64]:
        """The parent of each cell of a level."""
        if level == 1:
            return np.zeros(self.sizes[1], np.int64)
        return np.array(self.parents[level - 2], np.int64)

    def ancestors(self, level: int, top: int) -> NDArray[np.int64]:
        """The ancestor of each cell of a level on a coarser level."""
        cells = np.arange(self.sizes[level])
        for step in range(level, top, -1):
            cells = self.above(step)[cells]
        return cells

    def shares(self, level: int) -> tuple[NDArray[np.int64], int]:
        """The share of each cell of a level among its siblings, and the common denominator."""
        above = self.above(level)
        siblings = np.bincount(above, minlength=self.sizes[level - 1])
        if (siblings == siblings[0]).all():
            return np.ones(len(above), np.int64), int(siblings[0])
        first = np.searchsorted(np.sort(above), above)
        order = np.empty(len(above), np.int64)
        order[np.argsort(above, kind="stable")] = np.arange(len(above))
        rank, many = order - first, siblings[above]
        return _PARTS // many + (rank < _PARTS % many), _PARTS

    def summed(self, cells: NDArray[Any], axis: int, level: int, top: int) -> NDArray[Any]:
        """Cells of a level, along this axis of an array, added up to a coarser level."""
        if level == top:
            return cells
        if top == 0:
            return np.asarray(cells.sum(axis=axis, keepdims=True))
        ancestors = self.ancestors(level, top)
        shape = list(cells.shape)
        shape[axis] = self.sizes[top]
        sums = np.zeros(shape, cells.dtype)
        np.add.at(np.moveaxis(sums, axis, 0), ancestors, np.moveaxis(cells, axis, 0))
        return sums

    def centred(self, cells: NDArray[Any], axis: int, level: int) -> NDArray[Any]:
        """What cells of a level add to the level above, times the denominator of its shares."""
        if level == 0:
            return cells
        shares, parts = self.shares(level)
        above = self.summed(cells, axis, level, level - 1)
        own: NDArray[Any] = along(shares, axis, cells.ndim) * np.take(
            above, self.above(level), axis
        )
        return np.asarray(parts * cells - own)

    def lifted(self, cells: NDArray[Any], axis: int, level: int, bottom: int) -> NDArray[Any]:
        """Values of a level distributed to a finer level, times the denominators of the shares."""
        for step in range(level + 1, bottom + 1):
            shares, _ = self.shares(step)
            cells = along(shares, axis, cells.ndim) * np.take(cells, self.above(step), axis)
        return cells

    def denominators(self, level: int) -> list[int]:
        """The denominators of the shares of all levels down to this level."""
        return [self.shares(step)[1] for step in range(1, level + 1)]

    def kinds(self, level: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each cell of a level, the number of its kind, and an example cell of each kind.

        Cells are of one kind if they and their ancestors have equally many siblings.
        """
        if level < 2:
            return np.zeros(self.sizes[level], np.int64), np.zeros(1, np.int64)
        steps = range(1, level + 1)
        siblings = [
            np.bincount(self.above(step))[self.above(step)[self.ancestors(level, step)]]
            for step in steps
        ]
        _, first, number = np.unique(
            np.stack(siblings, axis=1), axis=0, return_index=True, return_inverse=True
        )
        return number.reshape(-1), first

    def spreads(self, level: int) -> Floats:
        """The sum of squares of a cell's weights on each part, averaged over the level."""
        if level not in self._spreads:
            number, cells = self.kinds(level)
            squares = [self.squares(level, self.unit(level, int(cell))) for cell in cells]
            self._spreads[level] = np.asarray(np.bincount(number) @ squares / len(number))
        return self._spreads[level]

    @cached_property
    def _spreads(self) -> dict[int, Floats]:
        return {}

    def squares(self, level: int, query: Floats) -> Floats:
        """The sum of squares of the weights of a combination of a level's cells on each part."""
        squares = np.zeros(self.levels + 1)
        for part in range(level + 1):
            many, weights = self.weights(level, query, part)
            squares[part] = many @ weights[:, part] ** 2
        return squares

    def unit(self, level: int, cell: int) -> Floats:
        """The combination of the cells of a level that selects one cell."""
        query = np.zeros(self.sizes[level])
        query[cell] = 1.0
        return query

    def weights(self, level: int, query: Floats, measured: int) -> tuple[Floats, Floats]:
        """The weights of a combination of a level's cells on the parts of measured cells.

        Measured cells with the same weights are of one kind: returns the size of each kind, and its
        weights on all parts up to the measured level. `query` may have several columns, one for
        each combination.
        """
        by_cell = np.zeros((self.sizes[measured], measured + 1, *query.shape[1:]))
        for part in range(min(measured, level) + 1):
            handed = query
            for step in range(level, part, -1):
                handed = self._mean(handed, step)
            if part:
                handed = handed - self._mean(handed, part)[self.above(part)]
            by_cell[:, part] = handed[self.ancestors(measured, part)]
        if query.ndim > 1:
            return np.ones(len(by_cell)), by_cell
        if measured < 2:  # the last column has all the information
            _, first, many = np.unique(by_cell[:, -1], return_index=True, return_counts=True)
        else:
            _, first, many = np.unique(by_cell, axis=0, return_index=True, return_counts=True)
        return many.astype(np.float64), by_cell[first]

    def _mean(self, query: Floats, level: int) -> Floats:
        """A combination of the cells of a level, transferred to the level above by the shares."""
        shares, parts = self.shares(level)
        means = np.zeros((self.sizes[level - 1], *query.shape[1:]))
        np.add.at(means, self.above(level), query * along(shares / parts, 0, query.ndim))
        return means


def coarser(axes: Sequence[Axis], cells: NDArray[Any], levels: Sequence[int]) -> NDArray[Any]:
    """Cells of the finest levels of all axes, added up to these levels."""
    for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
        cells = axis.summed(cells, index, axis.levels, level)
    return cells


def along(values: NDArray[Any], axis: int, dimensions: int) -> NDArray[Any]:
    """Values in the shape of one axis of an array with so many dimensions."""
    shape = [1] * dimensions
    shape[axis] = -1
    return values.reshape(shape)
