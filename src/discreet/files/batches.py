"""Noise on Arrow record batches: integer columns in, int64 columns out, public keys copied beside them.

A missing value counts as 0, so which values are missing shows in nothing; a column that is neither asked for nor named
as a key is left out. Keys come out as plain values: a dictionary (a category of pandas, an Enum of polars) would also
carry the values of rows that were removed before. Spark sends `noisy_batch` to its workers, so this module and all it
imports must be light.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]


def noisy_schema(schema: pa.Schema, columns: Sequence[str], keys: Sequence[str]) -> pa.Schema:
    """The types of what comes out, keys first; what cannot be noised is refused."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    if not columns:
        raise InvalidParameter("columns must name at least one column of integers")
    wanted = [*keys, *columns]
    if len(set(wanted)) < len(wanted):
        raise InvalidParameter("columns and keys must be different columns, each named once")
    for name in wanted:
        if schema.names.count(name) != 1:
            raise InvalidParameter(f"columns and keys must be among {', '.join(schema.names)}, got {name!r}")
    for name in columns:
        if not pa.types.is_integer(schema.field(name).type):
            raise InvalidParameter(f"columns must be of integers, got {name!r} of {schema.field(name).type}")
    # a schema's own notes could tell of the data: they are not carried over
    plain = [pa.field(name, plain_type(name, schema.field(name).type)) for name in keys]
    return pa.schema([*plain, *(pa.field(name, pa.int64(), nullable=False) for name in columns)])


def plain_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type of the values of a key column, without a dictionary around them; nested ones are refused."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            break
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_nested(kind):
        raise InvalidParameter(f"keys must be single values, and {name!r} is of {kind}; write its parts as columns")
    return kind


def plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A key column in its plain type."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import compute

    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_run_end_encoded(column.type):
        return plain(compute.run_end_decode(column), kind)
    return column if column.type == kind else column.cast(kind)


def noisy_batch(batch: pa.RecordBatch, schema: pa.Schema, columns: Sequence[str], scale: Fraction) -> pa.RecordBatch:
    """The batch with fresh exact noise of this scale on every value of the columns."""
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    from discreet.draw.addition import noisy

    arrays = {name: plain(batch.column(name), schema.field(name).type) for name in schema.names if name not in columns}
    for name in columns:
        column = batch.column(name)
        numbers = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
        memory = pa.allocate_buffer(8 * len(column))  # Arrow's own, which is used again when the batch is written
        noisy(numbers, scale, out=np.frombuffer(memory, np.int64), threads=1)
        arrays[name] = pa.Array.from_buffers(pa.int64(), len(column), [None, memory])
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
