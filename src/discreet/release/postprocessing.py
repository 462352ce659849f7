"""Post-processing of released numbers: arithmetic, HAVING, ORDER BY and LIMIT, on whole columns; it
costs nothing.

Arithmetic of two numbers takes the extremes over both intervals, so the result's interval holds
whenever both hold. A quotient by 0 is missing; if the divisor's interval includes 0, the quotient's
interval is unbounded. All results equal those of Python's own numbers: where 64 bits or a double
are too small, a column becomes Python objects.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.ask.expression import COMPARISONS
from discreet.ask.query import Combined, Group, Named, Number, Output, Query, Test
from discreet.draw.addition import fits_int64
from discreet.formats import rounded
from discreet.records import Array, Record, Three, array_of, items_of

if TYPE_CHECKING:
    import pyarrow as pa

Mask: TypeAlias = NDArray[np.bool_]
Cells: TypeAlias = NDArray[np.int64]

_ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "+": (operator.add, 2**62),
    "-": (operator.sub, 2**62),
    "*": (operator.mul, 2**31),
    "/": (operator.truediv, 2**53),
}
"""The operators, with the size up to which int64 agrees with Python's integers."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of many rows with the ends of their intervals; a missing number has no ends."""

    value: Array
    low: Array
    high: Array
    missing: Mask | None = None

    @property
    def three(self) -> Three:
        """Values, lower and upper ends."""
        return self.value, self.low, self.high

    def items(self) -> list[list[Any]]:
        """Values, lower and upper ends as Python's numbers; None if missing."""
        columns = [column.tolist() for column in self.three]
        for row in [] if self.missing is None else np.flatnonzero(self.missing):
            for column in columns:
                column[row] = None
        return columns

    def rounded(self, decimals: int | None = None) -> tuple[Numbers, Cells]:
        """The numbers as they are displayed (`formats.rounded`), and the decimals of each."""
        value, low, high, digits = rounded(*self.three, decimals)
        return Numbers(value, low, high, self.missing), digits

    def at(self, rows: slice | Mask) -> Numbers:
        """Some of the rows."""
        missing = None if self.missing is None else self.missing[rows]
        return Numbers(self.value[rows], self.low[rows], self.high[rows], missing)


Column: TypeAlias = "Numbers | pa.Array | Array"
"""Released numbers, or keys."""


def columns_of(record: Record, query: Query) -> dict[str, Column]:
    """The columns of a record that a query shows, by name."""
    cells: Cells | None = None
    if query.having is not None:
        cells = np.flatnonzero(_holds(query.having, record))
    for output, descending in reversed(query.order):
        order = _order(output, descending, record, query.groups, cells)
        cells = order if cells is None else cells[order]
    if query.limit is not None:
        cells = np.arange(min(query.limit, record.cells)) if cells is None else cells[: query.limit]
    return {name: _column(output, record, cells) for name, output in query.outputs}


def _column(output: Output, record: Record, cells: Cells | None) -> Column:
    if isinstance(output, Named) and output.name in record.keys:
        return _keys(output.name, record, cells)
    return _numbers(output, record, cells)


def _keys(name: str, record: Record, cells: Cells | None) -> pa.Array | Array:
    """The keys of these cells, or of all cells."""
    keys, names = record.keys[name], list(record.keys)
    if not record.head.get("nested"):
        stride = math.prod(len(record.keys[later]) for later in names[names.index(name) + 1 :])
        if cells is None and len(keys) != record.cells:
            cells = np.arange(record.cells)
        if cells is not None and len(names) > 1:
            cells = cells // stride % len(keys)
    if cells is None:
        return keys
    return keys[cells] if isinstance(keys, np.ndarray) else keys.take(cells)


def _numbers(output: Output, record: Record, cells: Cells | None) -> Numbers:
    match output:
        case Named(name=name):
            three = record.numbers[name]
            value, low, high = three if cells is None else (column[cells] for column in three)
            gaps = (
                np.array([item is None for item in value], bool) if value.dtype == object else None
            )
            return Numbers(value, low, high, _either(gaps, None))
        case Number(value=value):
            constant = np.full(record.cells if cells is None else len(cells), float(value))
            return Numbers(constant, constant, constant)
        case Combined(sign=sign, left=left, right=right):
            return _combined(sign, _numbers(left, record, cells), _numbers(right, record, cells))


def _combined(sign: str, left: Numbers, right: Numbers) -> Numbers:
    missing = _either(left.missing, right.missing)
    if sign == "/":
        none = _compared("=", right.value, np.zeros(len(right.value), np.int64), missing)
        missing = _either(missing, none)
    if missing is None:
        return Numbers(*_three(sign, left, right))
    present = ~missing
    value, low, high = (
        _scattered(column, present) for column in _three(sign, left.at(present), right.at(present))
    )
    return Numbers(value, low, high, missing)


def _three(sign: str, left: Numbers, right: Numbers) -> Three:
    """The result and its extremes, for numbers of which none is missing and no divisor is 0."""
    value = _applied(sign, left.value, right.value)
    if sign == "/":
        nought = np.zeros(len(value), np.int64)
        clear = ~(_compared("<=", right.low, nought) & _compared(">=", right.high, nought))
        if not clear.all():
            low, high = np.full(len(value), -np.inf), np.full(len(value), np.inf)
            low[clear], high[clear] = _extremes(sign, left.at(clear), right.at(clear))
            return value, low, high
    return value, *_extremes(sign, left, right)


def _extremes(sign: str, left: Numbers, right: Numbers) -> tuple[Array, Array]:
    ends = [
        _applied(sign, first, second)
        for first in (left.low, left.high)
        for second in (right.low, right.high)
    ]
    low = reduce(lambda best, end: np.where(_compared("<", end, best), end, best), ends)
    high = reduce(lambda best, end: np.where(_compared(">", end, best), end, best), ends)
    return low, high


def _applied(sign: str, left: Array, right: Array) -> Array:
    function, limit = _ARITHMETIC[sign]
    whole = left.dtype == right.dtype == np.int64
    if object in (left.dtype, right.dtype) or (
        whole and not (fits_int64(left, limit) and fits_int64(right, limit))
    ):
        return array_of(np.asarray(function(left.astype(object), right.astype(object)), object))
    with np.errstate(all="ignore"):  # Python's floats become infinite without a warning, too
        result: Array = function(left, right)
    return result


def _compared(sign: str, left: Array, right: Array, missing: Mask | None = None) -> Mask:
    """Where a comparison holds; a comparison with a missing value never holds."""
    if missing is not None:
        present = ~missing
        return _scattered(_compared(sign, left[present], right[present]), present)
    mixed = left.dtype != right.dtype
    if mixed and not all(
        column.dtype == np.float64 or fits_int64(column, 2**53) for column in (left, right)
    ):
        left, right = left.astype(object), right.astype(object)
    return np.asarray(COMPARISONS[sign](left, right)).astype(bool)


def _either(first: Mask | None, second: Mask | None) -> Mask | None:
    both = second if first is None else first if second is None else first | second
    return both if both is not None and both.any() else None


def _scattered(column: Array, present: Mask) -> Array:
    whole = np.zeros(len(present), column.dtype)
    whole[present] = column
    return whole


def _holds(test: Test, record: Record) -> Mask:
    if test.sign in ("and", "or"):
        parts = [_holds(part, record) for part in test.parts if isinstance(part, Test)]
        return reduce(operator.and_ if test.sign == "and" else operator.or_, parts)
    left, right = (
        _numbers(part, record, None) for part in test.parts if not isinstance(part, Test)
    )
    return _compared(test.sign, left.value, right.value, _either(left.missing, right.missing))


def _order(
    output: Output, descending: bool, record: Record, groups: tuple[Group, ...], cells: Cells | None
) -> Cells:
    """A stable order of the rows by one column; missing values and the rest come last; bins are in
    their own order.
    """
    import pyarrow as pa
    from pyarrow import compute

    column = _column(output, record, cells)
    group = next(
        (item for item in groups if isinstance(output, Named) and item.name == output.name), None
    )
    values, missing = (
        (column.value, column.missing) if isinstance(column, Numbers) else (column, None)
    )
    if group is not None and group.edges is not None:
        places = {
            label: rank for rank, label in reversed(list(enumerate([*group.keys, group.other])))
        }
        values = np.array([places[key] for key in items_of(column)], np.int64)
    elif group is not None and group.other is not None:
        missing = np.array([key == group.other for key in items_of(column)], bool)
    if isinstance(values, np.ndarray) and values.dtype == object:
        items = values.tolist()
        present = [row for row in range(len(items)) if missing is None or not missing[row]]
        present.sort(key=lambda row: items[row], reverse=descending)
        return np.array(
            [*present, *([] if missing is None else np.flatnonzero(missing).tolist())], np.int64
        )
    if isinstance(values, np.ndarray):
        values = pa.array(values, mask=missing)
    elif missing is not None:
        values = compute.if_else(pa.array(missing), None, values)
    order = "descending" if descending else "ascending"
    indices = compute.array_sort_indices(values, order=order, null_placement="at_end")
    return np.asarray(indices.to_numpy(), np.int64)
