"""Columns of numbers as text (one number a line), .csv, .tsv, .npy and .parquet.

`files.writer` creates the file; this module writes its content.
"""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from discreet.errors import InvalidParameter, printable
from discreet.files.batches import even
from discreet.files.column_reader import BATCH, ColumnSource


def form_of(suffix: str, columns: int) -> str:
    """The format of a file with this suffix and number of columns."""
    form = suffix.lower() if suffix.lower() in (".csv", ".tsv", ".npy", ".parquet") else ".txt"
    if form in (".npy", ".txt") and columns > 1:
        raise InvalidParameter(f"{'an array' if form == '.npy' else 'a text'} has one column, got {columns}")
    return form


def write_columns(
    file: Any,
    form: str,
    schema: pa.Schema,
    batches: Iterator[Any],
    source: ColumnSource,
    advance: Callable[[int, int | None], None],
) -> int:
    """Write the batches and return the number of rows; `advance` is called with it after every batch."""
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        cut = even(batches, max(1, BATCH // len(schema))) if form == ".parquet" else batches
        for batch in source.stage(cut):
            yield batch
            rows += len(batch)
            advance(rows, source.rows)

    if form == ".npy":
        _write_array(file, schema, counted(), source)
    elif form == ".parquet":
        write_parquet(file, schema, counted())
    else:
        mark = "\t" if form == ".tsv" else ","
        options = csv.WriteOptions(include_header=form != ".txt", delimiter=mark, quoting_style="needed")
        with csv.CSVWriter(file, schema, write_options=options) as table:
            for batch in counted():
                table.write(batch)
    return rows


def write_parquet(file: Any, schema: pa.Schema, batches: Iterable[Any], *, arrow_types: bool = True) -> None:
    """Write batches or tables as Parquet, where small integers take 1 to 2 bytes.

    Without `arrow_types` a reader sees plain Parquet types: texts instead of Arrow's dictionaries.
    """
    whole = [field.name for field in schema if not field.nullable and pa.types.is_integer(field.type)]
    # delta encoding is as small as zstd here, and three times as fast
    with parquet.ParquetWriter(
        file,
        schema,
        compression="none",
        use_dictionary=[field.name for field in schema if field.nullable],
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=arrow_types,
    ) as writer:
        for batch in batches:
            writer.write(batch, row_group_size=BATCH)


def _write_array(file: Any, schema: pa.Schema, batches: Iterable[Any], source: ColumnSource) -> None:
    """Write the header and the numbers, and the header again if the length was not known before."""
    if source.rows is None and not file.seekable():
        raise InvalidParameter("an array of unknown length must be written to a file")
    shape = (source.rows or 0,) if source.shape is None else source.shape
    kind = "<i8" if pa.types.is_integer(schema.types[0]) else "<f8"
    header = {"descr": kind, "fortran_order": source.fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    rows = 0
    for batch in batches:
        rows += len(batch)
        file.write(memoryview(batch.column(0).to_numpy()))
    if source.rows is None:
        file.seek(0)  # numpy's header has room for a longer number
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (rows,)})


@contextmanager
def standard_output(form: str) -> Iterator[Any]:
    """Standard output as a file; a terminal accepts only text."""
    terminal = sys.stdout.isatty()
    if form in (".npy", ".parquet") and terminal:
        raise InvalidParameter(f"{form} is not for a terminal: name a file to write to")
    yield _Terminal(sys.stdout.buffer) if terminal else sys.stdout.buffer
    sys.stdout.buffer.flush()


class _Terminal:
    """Text on a terminal, with characters escaped by which a name or value could control it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._letters = getincrementaldecoder("utf-8")("backslashreplace")  # a write may end within a character
        self.closed = False

    def write(self, data: bytes) -> int:
        parts = self._letters.decode(bytes(data)).split("\t")  # line breaks and tabs belong to the table
        self._file.write("\t".join(map(printable, parts)).encode())
        return len(data)

    def flush(self) -> None:
        self._file.flush()
