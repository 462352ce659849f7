"""Rows that reproduce the tables of a report: their counts are nonnegative integers, and agree with
each other.

The cells of the full table x ≥ 0 are fitted to all measured sets by least squares,

    minimise Σ over sets A of p_A²·|sums of x over A − y_A|²,    x ≥ 0

by accelerated projected gradients, and rounded by k_j = ⌊S_j + ½⌋ − ⌊S_{j−1} + ½⌋ with S_j = x_1 +
… + x_j. The rows preserve the counts of the tables of the report and nothing else; relations of
columns beyond these tables are lost. This is post-processing of released numbers, so floats are
allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.plan import plain_key
from discreet.release.reports.axes import Axis, Floats, Levels, coarser

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan
    from discreet.release.reports.report import Report

MOST_CELLS = 2_000_000
"""Most cells of the full table, which is in memory several times."""

MOST_ROWS = 10**8
"""Most rows that noise alone may create on average, in a file that is written in parts, or in
memory by `rows()`.
"""

# the same for integer counts: floats represent integers exactly up to a thousand times as many
_MOST_COUNTED = 2**50
_PART = 2**20  # rows in a part of a file

_STEPS = 3000
_TURNS = 400
_WORK = 4 * 10**9  # most cells that are visited: larger tables take fewer steps


def whole_cells(report: Report) -> tuple[NDArray[np.int64], list[int]]:
    """The integer cells of the full table, and its axes: all groups."""
    plan = report.plan
    grouped = [
        index
        for index, attribute in enumerate(plan.layout.attributes)
        if attribute.group is not None
    ]
    axes = [plan.axes[index] for index in grouped]
    halves = tuple(index for index in range(len(plan.axes)) if index not in grouped)
    sets: dict[Levels, tuple[Floats, float]] = {}
    for levels, part in plan.measured:
        own = tuple(levels[index] for index in grouped)
        cells = (np.asarray(report.fit.cells[levels], np.float64) / plan.design.unit).sum(
            axis=halves
        )
        weight = float(part) ** 2 / math.prod(
            plan.axes[index].sizes[levels[index]] for index in halves
        )
        if own in sets:  # the mean of both, by their weights
            before, earlier = sets[own]
            cells = (before * earlier + cells * weight) / (earlier + weight)
            weight = earlier + weight
        sets[own] = cells, weight
    tables = {
        tuple(table.levels(plan.axes, number)[i] for i in grouped)
        for table in plan.layout.tables
        for number in table.numbers
    }
    tables.add((0,) * len(axes))
    return _rounded(axes, tables, _fitted(axes, sets)), grouped


def refuse_whole(plan: ReportPlan, *, rows: bool) -> None:
    """Refuse rows, or integer counts, of a report that can have none: everything that is known
    before the spend.
    """
    axes = [attribute.axis for attribute in plan.layout.attributes if attribute.group is not None]
    _refuse_large(axes)
    _refuse_many(plan.design.mean_noise(plan.terms, plan.epsilon), rows=rows)
    if rows and not axes:
        raise InvalidParameter(
            "rows needs group columns in the tables, and there are none: leave rows out"
        )


def _refuse_large(axes: list[Axis]) -> None:
    """Refuse a full table that does not fit into memory."""
    cells = math.prod(axis.sizes[-1] for axis in axes)
    if cells > MOST_CELLS:
        raise InvalidParameter(
            f"rows need a full table of {cells:,} cells, more than the limit of {MOST_CELLS:,}: "
            "report fewer columns, or leave rows and integers out"
        )


def _refuse_many(noise: float, *, rows: bool) -> None:
    """Refuse integer counts, or rows, if the noise of all cells alone creates too many rows on
    average.
    """
    most = MOST_ROWS if rows else _MOST_COUNTED
    if noise > most:
        raise InvalidParameter(
            f"at this epsilon the noise alone creates about {noise:.1e} rows, more than the limit"
            f" of {most:.1e}: give a larger epsilon, or leave {'rows' if rows else 'integers'} out"
        )


def synthetic(report: Report) -> Any:
    """The rows as an Arrow table, with a column for each group column; missing if a row has none of
    its keys.

    Noise beyond the limit would leave int64, and a file of such rows would be refused, so none is
    proposed.
    """
    import pyarrow as pa

    refuse_whole(report.plan, rows=True)
    schema, batches = parts(report)
    many = int(report.whole_cells[0].sum())
    if many > 2 * MOST_ROWS:
        raise InvalidParameter(
            f"{many:,} rows do not fit into a table: name a file with rows= and save the report"
        )
    return pa.Table.from_batches(batches, schema)


def parts(report: Report) -> tuple[Any, Iterator[Any]]:
    """The schema of the rows, and the rows in parts that fit into memory."""
    import pyarrow as pa

    cells, grouped = report.whole_cells
    key_labels = [report.plan.layout.labels(index) for index in grouped]
    labels = [
        pa.array([None if key is None else plain_key(key) for key in keys])
        for _, keys in key_labels
    ]
    schema = pa.schema(
        [(name, label.type) for (name, _), label in zip(key_labels, labels, strict=True)]
    )
    ends = np.cumsum(cells.ravel())

    def batches() -> Iterator[Any]:
        for first in range(0, int(ends[-1]), _PART):
            rows = np.arange(first, min(first + _PART, int(ends[-1])))
            places = np.unravel_index(np.searchsorted(ends, rows, "right"), cells.shape)
            columns = [
                label.take(pa.array(cell)) for label, cell in zip(labels, places, strict=True)
            ]
            yield pa.record_batch(columns, schema)

    return schema, batches()


def _fitted(axes: list[Axis], sets: dict[Levels, tuple[Floats, float]]) -> Floats:
    """The cells that fit all sets best."""
    shape = tuple(axis.sizes[-1] for axis in axes)
    maps = [(_sums(axes, levels), cells, weight) for levels, (cells, weight) in sets.items()]
    step = 1 / sum(weight * _fold(axes, levels) for levels, (_, weight) in sets.items())
    total = max(float(next(iter(sets.values()))[0].sum()), 0.0)
    x = y = np.full(shape, total / math.prod(shape))
    speed = 1.0
    for _ in range(min(_STEPS, max(50, _WORK // (x.size * (len(maps) + 1))))):
        slope = np.zeros(shape)
        for (down, up), cells, weight in maps:
            slope += up(weight * (down(y) - cells))
        new = np.maximum(y - step * slope, 0.0)
        faster = (1 + math.sqrt(1 + 4 * speed**2)) / 2
        y = new + (speed - 1) / faster * (new - x)
        if np.abs(new - x).max() < 1e-7:
            x = new
            break
        x, speed = new, faster
    return x


def _sums(
    axes: list[Axis], levels: Levels
) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """The function that sums the full table over a set, and its adjoint."""

    def up(cells: Floats) -> Floats:
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            if 0 < level < axis.levels:
                cells = np.take(cells, axis.ancestors(axis.levels, level), index)
        return cells

    return partial(coarser, axes, levels=levels), up


def _fold(axes: list[Axis], levels: Levels) -> float:
    """The largest number of cells that add up to one cell of a set."""
    return math.prod(
        int(np.bincount(axis.ancestors(axis.levels, level)).max())
        for axis, level in zip(axes, levels, strict=True)
    )


def _rounded(axes: list[Axis], levels: Iterable[Levels], cells: Floats) -> NDArray[np.int64]:
    """Integer cells with nearly the same sums over all sets.

    After the first rounding, cells are moved by 1 if that improves the sums, a batch of the best
    cells at a time.
    """
    sums = np.floor(np.cumsum(cells.ravel()) + 0.5).astype(np.int64)
    rounded: NDArray[np.int64] = np.diff(sums, prepend=sums[:1] * 0).reshape(cells.shape)
    maps = [_sums(axes, chosen) for chosen in levels]
    for turn in range(_TURNS if axes else 0):  # a single cell is its own sum
        gap, pull = rounded - cells, np.zeros(cells.shape)
        for down, up in maps:
            pull += up(down(gap))
        gain = np.abs(pull) - len(maps) / 2
        gain[(rounded == 0) & (pull > 0)] = 0.0
        many = int((gain > 0).sum())
        if not many:
            break
        batch = max(1, int(many / 100 * (1 - turn / _TURNS) ** 3))
        batch_cells = np.argpartition(gain.ravel(), -batch)[-batch:]
        rounded.ravel()[batch_cells] -= np.sign(pull.ravel()[batch_cells]).astype(np.int64)
    return rounded
