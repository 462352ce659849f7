"""Columns of numbers in files: text (one number a line), .csv, .tsv, .npy and .parquet.

Names, types and the number of rows are read first, so that an unusable file is refused before
anything is spent; rows are read later, in Arrow batches. A text has no types: it holds integers, or
floats if the caller says so, because a type that was guessed from the values would reveal something
about them. Arrow's messages may quote a value, so they are never passed on. `files.writer` creates
the file that is written; this module writes its content.
"""

from __future__ import annotations

import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from discreet.engines.base import refuse_twice
from discreet.errors import InvalidParameter, printable
from discreet.files.batches import Item, ahead, chosen_columns, even

# numbers that are read, noised and written at a time, 8 MiB: one row group of the result
BATCH = 2**20
# bytes of a text or Parquet column that are read at a time: one row group may be larger than memory
_BUFFER = 2**20
_ROW = re.compile(r"(?:In CSV column #\d+|CSV parse error): Row #(\d+): ", re.ASCII)
"""The beginning of Arrow's message if it knows the line; the rest may quote a value."""

_LINE = "value"  # the name of the only column of a text or an array
_ONE_COLUMN = {".npy": "an array", ".txt": "a text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """Columns with known types, whose rows can be read once."""

    name: str
    form: str
    columns: tuple[str, ...]
    schema: pa.Schema  # the types of all columns that are read, as in the source
    rows: int | None  # None if the number is not known before reading, as in a text
    unguarded: Callable[[], Iterator[pa.RecordBatch]]
    files: tuple[Path, ...] = ()
    shape: tuple[int, ...] | None = None
    fortran: bool = False

    def stage(self, batches: Iterator[Item]) -> Iterator[Item]:
        """The batches, read by another thread unless they are text.

        Text may come from a terminal, where an interrupt would wait until the thread has its next
        line.
        """
        return batches if self.rows is None else ahead(batches)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; the error for an unreadable file has our own message."""
        with _own_message(self.name):
            yield from self.unguarded()


def open_columns(
    source: Any, columns: Sequence[str], keep: Sequence[str], *, floats: bool
) -> ColumnSource:
    """The columns of a file, of several Parquet files or, for "-", of standard input; `floats` is
    for texts.
    """
    files = () if source == "-" else _files(source)
    form = ".parquet" if len(files) > 1 else _form(files[0].suffix if files else ".txt")
    if form in _ONE_COLUMN and (columns or keep):
        kind = f"{_ONE_COLUMN[form] if files else 'standard input'} has"
        raise InvalidParameter(
            f"only a table has columns; {kind} {'none' if form == '.npy' else 'one number a line'}"
        )
    match form:
        case ".npy":
            return _array_source(files[0])
        case ".parquet":
            return _parquet_source(files, columns, keep)
    return _text_source(form, files, columns, keep, floats)


def parquet_batches(files: Sequence[Path], names: list[str]) -> Iterator[pa.RecordBatch]:
    for path in files:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            for batch in file.iter_batches(batch_size=max(1, BATCH // len(names)), columns=names):
                yield batch.select(names)


def _files(source: Any) -> tuple[Path, ...]:
    listed = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(listed, list | tuple) or not listed:
        raise InvalidParameter(
            "source must be a file, a list of Parquet files or a Spark DataFrame"
        )
    if not all(isinstance(path, str | os.PathLike) for path in listed):
        raise InvalidParameter("source must be a list of paths")
    files = tuple(Path(path) for path in listed)
    for file in files:
        if not os.path.isfile(file):  # `Path.is_file` raises if a name is too long
            raise InvalidParameter(f"there is no such file: {file.name}")
    refuse_twice(files)
    return files


def _parquet_source(
    files: tuple[Path, ...], columns: Sequence[str], keep: Sequence[str]
) -> ColumnSource:
    schemas, rows = [], 0
    for path in files:
        with _own_message(path.name), parquet.ParquetFile(path) as file:
            schemas.append(file.schema_arrow.remove_metadata())
            rows += file.metadata.num_rows
    if any(schema != schemas[0] for schema in schemas):
        raise InvalidParameter(
            "the files must have the same columns of the same types; nothing was spent"
        )
    chosen = chosen_columns(schemas[0].names, columns, keep)
    names = [*chosen, *keep]
    name = files[0].name if len(files) == 1 else "one of the files"
    schema = pa.schema([schemas[0].field(column) for column in names])
    batches = partial(parquet_batches, files, names)
    return ColumnSource(
        name=name,
        form=".parquet",
        columns=chosen,
        schema=schema,
        rows=rows,
        unguarded=batches,
        files=files,
    )


def _array_source(path: Path) -> ColumnSource:
    with path.open("rb") as file:
        try:
            first = np.lib.format.read_magic(file) == (1, 0)
            read = (
                np.lib.format.read_array_header_1_0
                if first
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
        except ValueError:
            raise InvalidParameter(f"{path.name} must be an array written by numpy.save") from None
        start = file.tell()
    rows = int(np.prod(shape, dtype=object))
    if dtype.kind in "biuf" and path.stat().st_size < start + rows * dtype.itemsize:
        raise InvalidParameter(f"{path.name} must be complete, but it ends before its numbers do")

    def batches() -> Iterator[pa.RecordBatch]:
        with path.open("rb") as file:
            file.seek(start)
            for first in range(0, rows, BATCH):
                part = np.fromfile(file, dtype, min(BATCH, rows - first))
                numbers = part.astype(
                    np.float64 if dtype.kind == "f" else dtype.newbyteorder("="), copy=False
                )
                yield pa.record_batch([pa.array(numbers)], [_LINE])

    kind = (
        pa.float64()
        if dtype.kind == "f"
        else pa.from_numpy_dtype(dtype)
        if dtype.kind in "biu"
        else pa.string()
    )
    return ColumnSource(
        name=path.name,
        form=".npy",
        columns=(_LINE,),
        schema=pa.schema([(_LINE, kind)]),
        rows=rows,
        unguarded=batches,
        files=(path,),
        shape=shape,
        fortran=fortran,
    )


def _text_source(
    form: str, files: tuple[Path, ...], columns: Sequence[str], keep: Sequence[str], floats: bool
) -> ColumnSource:
    name = files[0].name if files else "standard input"

    def opened() -> AbstractContextManager[IO[bytes]]:
        return files[0].open("rb") if files else nullcontext(sys.stdin.buffer)

    chosen: tuple[str, ...] = (_LINE,)
    if form != ".txt":
        with _own_message(name), opened() as file:
            chosen = chosen_columns(list(_csv_reader(file, form, None).schema.names), columns, keep)
    types = dict.fromkeys(chosen, pa.float64() if floats else pa.int64()) | dict.fromkeys(
        keep, pa.string()
    )

    def batches() -> Iterator[pa.RecordBatch]:
        with opened() as file:
            yield from _text_batches(file, form, types)

    schema = pa.schema(list(types.items()))
    return ColumnSource(
        name=name,
        form=form,
        columns=chosen,
        schema=schema,
        rows=None,
        unguarded=batches,
        files=files,
    )


def _text_batches(
    file: IO[bytes], form: str, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """Batches of a text; a value that is not a number is refused without being shown."""
    try:
        yield from _csv_reader(file, form, types)
    except StopIteration:
        return
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        if "Empty CSV" in str(error):
            return
        kind = "an integer" if pa.int64() in types.values() else "a number"
        advice = "; floats in a text need --changes" if kind == "an integer" else ""
        row = _ROW.match(str(error))
        line = f"line {int(row[1]):,}" if row else "a line"
        raise InvalidParameter(f"{line} is not {kind} of 64 bits{advice}") from None


def _csv_reader(file: IO[bytes], form: str, types: Mapping[str, pa.DataType] | None) -> Any:
    lines = form == ".txt"
    return csv.open_csv(
        file,
        # with threads Arrow does not know the line
        read_options=csv.ReadOptions(
            block_size=_BUFFER, column_names=[_LINE] if lines else None, use_threads=False
        ),
        parse_options=csv.ParseOptions(
            delimiter="\t" if form == ".tsv" else ",",
            ignore_empty_lines=False,
            newlines_in_values=False,
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=list(types) if types is not None else None,
            null_values=[] if lines else ["", "NULL", "null", "NA", "NaN", "nan"],
            strings_can_be_null=False,
        ),
    )


@contextmanager
def _own_message(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError):
        raise InvalidParameter(f"{name} cannot be read in the format of its name") from None


def form_of(suffix: str, columns: int) -> str:
    """The format of a file with this suffix and number of columns."""
    form = _form(suffix)
    if form in _ONE_COLUMN and columns > 1:
        raise InvalidParameter(f"{_ONE_COLUMN[form]} has one column, got {columns}")
    return form


def _form(suffix: str) -> str:
    return suffix.lower() if suffix.lower() in (".csv", ".tsv", ".npy", ".parquet") else ".txt"


def write_columns(
    file: Any,
    form: str,
    schema: pa.Schema,
    batches: Iterator[Any],
    source: ColumnSource,
    advance: Callable[[int, int | None], None],
) -> int:
    """Write the batches and return the number of rows; `advance` is called with it after every
    batch.
    """
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
        options = csv.WriteOptions(
            include_header=form != ".txt", delimiter=mark, quoting_style="needed"
        )
        with csv.CSVWriter(file, schema, write_options=options) as table:
            for batch in counted():
                table.write(batch)
    return rows


def write_parquet(
    file: Any, schema: pa.Schema, batches: Iterable[Any], *, public: bool = False
) -> None:
    """Write batches or tables as Parquet, where small integers take 1 to 2 bytes.

    Columns that may be missing are kept from the source. If they are `public` keys, they are
    compressed, and a reader sees plain Parquet types: texts instead of Arrow's dictionaries.
    """
    whole = [
        field.name for field in schema if not field.nullable and pa.types.is_integer(field.type)
    ]
    kept = [field for field in schema if field.nullable]
    listed = [field.name for field in kept if not public or pa.types.is_dictionary(field.type)]
    # delta encoding is as small as zstd here, and three times as fast
    with parquet.ParquetWriter(
        file,
        schema,
        # compressed keys take less time to hash and to write than they take to compress
        compression={
            field.name: "snappy" if public and field.nullable else "none" for field in schema
        },
        use_dictionary=listed,
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=not public,
    ) as writer:
        for batch in batches:
            writer.write(batch, row_group_size=BATCH)


def _write_array(
    file: Any, schema: pa.Schema, batches: Iterable[Any], source: ColumnSource
) -> None:
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
        # a write may end within a character
        self._letters = getincrementaldecoder("utf-8")("backslashreplace")
        self.closed = False

    def write(self, data: bytes) -> int:
        # line breaks and tabs belong to the table
        parts = self._letters.decode(bytes(data)).split("\t")
        self._file.write("\t".join(map(printable, parts)).encode())
        return len(data)

    def flush(self) -> None:
        self._file.flush()
