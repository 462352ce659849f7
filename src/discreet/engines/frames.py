"""Frames and Arrow objects as Arrow tables in which no cell makes DuckDB fail, or tells how another is read.

A column of objects, or a category, of pandas has no type but that of its items: it is a column of texts, which a policy
may declare to be numbers, dates or truths. Bytes that are no UTF-8 are replaced. A time with a zone is in microseconds.
"""

from __future__ import annotations

import hashlib
import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from discreet.errors import InvalidParameter


def arrow_table(source: Any) -> Any:
    """A pandas or polars frame or an Arrow object as an Arrow table that DuckDB reads without an error."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    module = type(source).__module__.partition(".")[0]
    if module == "pandas":
        source = _of_pandas(source.copy())  # the frame may change, the copy cannot
    elif module == "polars":
        source = (source.collect() if hasattr(source, "collect") else source).to_arrow()
    elif hasattr(source, "read_all"):
        source = source.read_all()
    elif isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif hasattr(source, "to_table"):
        source = source.to_table()
    if not isinstance(source, pa.Table):
        raise InvalidParameter(
            "the source must be a path, a SELECT, a pandas or polars frame, an Arrow table or a DuckDB relation, "
            f"got a {type(source).__name__}"
        )
    return _in_microseconds(_decodable(source))


def arrow_hash(table: Any) -> str:
    """A SHA-256 of the content of a table."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    digest = hashlib.sha256()

    class Sink(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            digest.update(data)
            return len(data)

    with pa.PythonFile(Sink(), mode="w") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return digest.hexdigest()


def _of_pandas(frame: Any) -> Any:
    """A frame as an Arrow table; objects and categories have no type but that of their items, so they are texts."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    columns = []
    for index in range(frame.shape[1]):
        series = frame.iloc[:, index]
        if series.dtype == object or hasattr(series.dtype, "categories"):
            columns.append(pa.array([_text_of(item) for item in series.tolist()], pa.large_string()))
        else:
            columns.append(pa.Array.from_pandas(series))
    return pa.table(columns, names=[str(name) for name in frame.columns])


def _text_of(item: object) -> str | None:
    """An item of a column of objects as the text that a file would have for it, else missing; it never raises."""
    try:
        match item:
            case str():
                return item.encode("utf-8", "replace").decode()
            case bool():
                return str(item).lower()
            case datetime():
                item = item.astimezone(UTC).replace(tzinfo=None) if item.tzinfo else item
                return item.isoformat(" ", "microseconds")
            case date() | int() | Decimal() | UUID():
                return str(item)
            case float() if math.isfinite(item):
                return repr(float(item))
    except (ValueError, OverflowError, TypeError):
        pass
    return None


def _in_microseconds(table: Any) -> Any:
    """The table with the times that have a zone in microseconds, which DuckDB reads; those beyond are missing."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import compute

    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit != "us":
            micros = {"s": 10**6, "ms": 10**3}.get(field.type.unit)
            count = table.column(index).cast(pa.int64())
            if micros is None:
                count = compute.divide(count, 1000)
            else:
                most = (2**63 - 1) // micros
                there = compute.and_(compute.less_equal(count, most), compute.greater_equal(count, -most))
                count = compute.multiply(compute.if_else(there, count, None), micros)
            table = table.set_column(index, field.name, count.cast(pa.timestamp("us", field.type.tz)))
    return table


def _decodable(table: Any) -> Any:
    """The table with its texts in UTF-8: bytes that are none come as the sign for such."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    for index, field in enumerate(table.schema):
        if (
            pa.types.is_string(field.type)
            or pa.types.is_large_string(field.type)
            or pa.types.is_string_view(field.type)
        ):
            try:
                table.column(index).validate(full=True)
            except pa.ArrowInvalid:
                raw = table.column(index).cast(pa.large_binary())
                texts = [None if value is None else value.decode("utf-8", "replace") for value in raw.to_pylist()]
                table = table.set_column(index, field.name, pa.array(texts, pa.large_string()))
    return table
