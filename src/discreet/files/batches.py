"""Noise on the numbers of Arrow record batches, in stages that run at the same time.

A missing number counts as 0, so that nothing shows which values are missing; columns that are
neither noised nor kept are left out. Kept columns are written as plain values: a dictionary (a
pandas category, a polars Enum) would also contain the values of rows that were removed before.
Spark sends `noisy_batches` to its workers, so this module and its imports must be light.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from discreet.draw.addition import noisy_into
from discreet.errors import InvalidParameter
from discreet.parameters import quote

Item = TypeVar("Item")

_AHEAD = 2  # how many batches one stage may be ahead of the next


def chosen_columns(
    names: Sequence[str], columns: Sequence[str], keep: Sequence[str]
) -> tuple[str, ...]:
    """The columns of numbers: the named columns, or the only column that is not kept."""
    chosen = tuple(columns) or tuple(name for name in names if name not in keep)
    if not columns and len(chosen) != 1:
        raise InvalidParameter(
            f"--column must say which columns are noised; there are {', '.join(names)}"
        )
    for name in (*chosen, *keep):
        if names.count(name) != 1:
            raise InvalidParameter(f"the columns are {', '.join(names)}, got {quote(name)}")
    if len({*chosen, *keep}) < len((*chosen, *keep)):
        raise InvalidParameter("each column must be named once, to be noised or to be kept")
    return chosen


def noisy_schema(schema: pa.Schema, columns: Sequence[str], keep: Sequence[str]) -> pa.Schema:
    """The types of the result, numbers first; columns that cannot be noised or kept are refused."""
    # the metadata of a schema could reveal data: it is not copied
    kinds = [
        (name, pa.int64() if is_whole(name, schema.field(name).type) else pa.float64())
        for name in columns
    ]
    numbers = [pa.field(name, kind, nullable=False) for name, kind in kinds]
    return pa.schema(
        [*numbers, *(pa.field(name, plain_type(name, schema.field(name).type)) for name in keep)]
    )


def is_whole(name: str, kind: pa.DataType) -> bool:
    """Whether a column holds integers: by its type, never by its values."""
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InvalidParameter(f"column {quote(name)} must be of integers or floats, got {kind}")
    return not types.is_floating(kind)


def plain_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type of the values of a kept column, without a dictionary; nested types are refused."""
    while hasattr(kind, "storage_type"):  # an extension
        kind = kind.storage_type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(name, kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_nested(kind):
        raise InvalidParameter(
            f"keys must be single values, and {name!r} is of {kind}; write its parts as columns"
        )
    return kind


def noisy_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    columns: Sequence[str],
    keep: Sequence[str] = (),
    scale: Fraction,
    noisy_floats: Callable[[Any], Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches with fresh exact noise: of this scale on integers, by this function on floats."""
    for batch in batches:
        schema = noisy_schema(batch.schema, columns, keep)
        arrays = []
        for field in schema:
            column = batch.column(field.name)
            if field.name in keep:
                arrays.append(_plain(column, field.type))
            elif types.is_integer(field.type):
                arrays.append(_noisy_integers(column, scale))
            else:
                arrays.append(pa.array(noisy_floats(_numbers(column))))  # type: ignore[misc]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The items, computed in advance by another thread."""
    source, end = iter(items), object()
    step: Callable[[], Any] = lambda: next(source, end)  # noqa: E731 - `next` has several types
    with ThreadPoolExecutor(1) as pool:
        # in a copy of the context, where `noting` is
        futures = deque(pool.submit(copy_context().run, step) for _ in range(_AHEAD))
        while (item := futures.popleft().result()) is not end:
            futures.append(pool.submit(copy_context().run, step))
            yield item


def even(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The rows in tables of this size: the source's batches may show which rows were removed."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        while sum(map(len, waiting)) >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows).combine_chunks()
            waiting = table.slice(rows).to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _numbers(column: pa.Array) -> Any:
    return (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)


def _noisy_integers(column: pa.Array, scale: Fraction) -> pa.Array:
    memory = pa.allocate_buffer(8 * len(column))  # Arrow's memory, reused when the batch is written
    integers = column.cast(pa.int8()) if types.is_boolean(column.type) else column
    noisy_into(np.frombuffer(memory, np.int64), _numbers(integers), scale, threads=1)
    return pa.Array.from_buffers(pa.int64(), len(column), [None, memory])


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A kept column in its plain type, with the memory of its rows alone: a slice holds others."""
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage, kind)
    if types.is_run_end_encoded(column.type):
        return _plain(compute.run_end_decode(column), kind)
    column = column if column.type == kind else column.cast(kind)
    return (
        column
        if column.get_total_buffer_size() == column.nbytes
        else column.take(np.arange(len(column)))
    )
