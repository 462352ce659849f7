"""Neighbours of a table: copies in which one unit is gone, or has other rows, made to break a promise.

The rows that are put in a unit's place come from the policy alone: at the lower bounds in the first declared group,
beyond the upper bounds in the last, missing everywhere, and out of all bounds in a group that is not declared; the
second has two rows more than may count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from discreet.ask.declared import Declared
from discreet.ask.policy import Policy
from discreet.errors import EngineFailed, InvalidParameter


def rows_of(engine: Any) -> Any:
    """All rows of an engine beside the caller, as an Arrow table; enumerations as texts."""
    relation = getattr(engine, "_relation", None)
    if relation is None:
        raise InvalidParameter("a replay copies the rows: it needs a study whose data DuckDB reads")
    with suppress(Exception):  # the words of the engine may quote a row: no `__context__` keeps them
        table = relation().to_arrow_table()
        plain = [pa.string() if pa.types.is_dictionary(one.type) else one.type for one in table.schema]
        return table.cast(pa.schema(list(zip(table.schema.names, plain, strict=True))))
    raise EngineFailed("the rows could not be copied for a replay; nothing was spent")


def neighbors_of(table: Any, policy: Policy, unit: Any, other: Any) -> tuple[list[Any], list[tuple[int, int]]]:
    """Tables, and which of them are neighbours of one another."""
    without, there = _without(table, policy, unit)
    replacements = _replacements(table, policy) + ([] if other is None else [_given(other, table)])
    others = [pa.concat_tables([without, _placed(table, policy, unit, rows)]) for rows in replacements]
    if policy.neighbors == "add-remove":
        tables = [without, table, *others]
        return tables, [(0, at) for at in range(1, len(tables))]
    tables = [table, *others] if there else others
    return tables, list(combinations(range(len(tables)), 2))


def _without(table: Any, policy: Policy, unit: Any) -> tuple[Any, bool]:
    """The table without the unit, and whether it was there."""
    if policy.unit_column is None:
        return pa.concat_tables([table.slice(0, unit), table.slice(unit + 1)]), unit < table.num_rows
    column = table[policy.unit_column]
    try:
        same = pc.fill_null(pc.equal(column, pa.scalar(unit, column.type)), False)
    except (pa.ArrowException, TypeError):
        raise InvalidParameter("unit must be a value of the type that the unit column has") from None
    left = table.filter(pc.invert(same))
    return left, left.num_rows < table.num_rows


def _placed(table: Any, policy: Policy, unit: Any, rows: list[dict[str, Any]]) -> Any:
    """Rows of the unit, in the types of the table; what does not fit into a type is missing."""

    def fitting(value: Any, kind: Any) -> Any:
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
        return value

    columns = {}
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        values = [unit if name == policy.unit_column else fitting(row.get(name), kind) for row in rows]
        columns[name] = pa.array(values, kind)
    return pa.table(columns, table.schema)


def _given(other: Any, table: Any) -> list[dict[str, Any]]:
    rows = other.to_pylist() if hasattr(other, "to_pylist") else [other] if isinstance(other, dict) else other
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidParameter("other must be an Arrow table, a dict, or a list of dicts with the columns of the data")
    if unknown := {name for row in rows for name in row} - set(table.schema.names):
        raise InvalidParameter(f"other has a column that the data has not: {sorted(unknown)[0]}")
    return rows


def _replacements(table: Any, policy: Policy) -> list[list[dict[str, Any]]]:
    """Rows for the unit's place, from what is declared."""
    many = 1 if policy.unit_column is None else (policy.max_rows or 1) + 2
    kinds: tuple[tuple[Callable[[Declared, Any], Any], int], ...] = (
        (lambda declared, kind: _value(declared, kind, 0), 1),
        (lambda declared, kind: _value(declared, kind, -1), many),
        (lambda _, __: None, 1),
        (lambda _, kind: _wild(kind), 1),
    )
    return [
        [{column.name: make(policy.columns.get(column.name, Declared()), column.type) for column in table.schema}]
        * times
        for make, times in kinds
    ]


def _value(declared: Declared, kind: Any, end: int) -> Any:
    """The first key or the lower bound; the last key or one beyond the upper bound; in the type of the column."""
    if declared.keys:
        value = declared.keys[end]
    elif declared.bounds is not None:
        bound = declared.bounds[end]
        value = bound + 1 if end and isinstance(bound, Fraction) else bound
    else:
        return bool(end) if pa.types.is_boolean(kind) else None
    text = _is_text(kind)  # which the policy reads as numbers or dates
    if isinstance(value, Fraction):
        number = float(value) if text or pa.types.is_floating(kind) else math.floor(value)
        return repr(number) if text else number
    return value.isoformat(" ") if text and isinstance(value, datetime) else value


def _wild(kind: Any) -> Any:
    """What no one declared."""
    if pa.types.is_floating(kind):
        return math.nan
    if pa.types.is_integer(kind):
        return 2 ** (kind.bit_width - 1) - 1
    return "nowhere at all" if _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
