"""Algorithm 1 on files and streams of any length: read a batch, add noise, write a batch; memory stays bounded.

    text (one number a line), .csv, .tsv, .npy, .parquet  →  the same, or what the name of the target says

Numbers in a file are one long vector, all chosen columns together, and `sensitivity` is the L1 norm over all of them.
Integers are noised on the integers. Floats go to a public step, and rounding adds one step to Δ for every number that
one unit can move: `changes` of them, or all, if the file tells how many there are. Where a table has both, integers
take the widened Δ, too, since one unit may move both. A missing number counts as 0.

What it does not do: keep a ledger. A file is written beside its place and moved there when it is whole.
"""

from __future__ import annotations

import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from discreet.calibrate.grid import grid_of
from discreet.draw.vector import beyond_int64
from discreet.engines.base import alone
from discreet.errors import InvalidParameter, printable
from discreet.files.batches import plain, plain_type
from discreet.files.laplace_files import BATCH, even, write_batches
from discreet.files.writer import Kept, new_file
from discreet.parameters import exact_count, exact_epsilon, exact_sensitivity, quote
from discreet.release.laplace_mechanism import laplace_mechanism

_BLOCK = 2**23
"""Bytes of text, or 2²⁰ numbers, at a time."""

_ROW = re.compile(r"(?:In CSV column #\d+|CSV parse error): Row #(\d+): ", re.ASCII)
"""How Arrow begins its words where it knows the line; what follows may quote a value."""

_LINE = "value"
"""The name of the one column of a text or of an array."""

Kinds = Mapping[str, bool]
"""Whether each column is of integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Numbers that can be read once or, if `rows` is known, again."""

    form: str
    kinds: Kinds
    kept: pa.Schema
    rows: int | None
    batches: Callable[[], Iterator[pa.RecordBatch]]
    shape: tuple[int, ...] | None = None
    fortran: bool = False


def add_noise(
    source: str,
    target: str,
    *,
    sensitivity: Any,
    epsilon: Any,
    columns: Sequence[str] = (),
    keep: Sequence[str] = (),
    changes: int | None = None,
    force: bool = False,
    advance: Callable[[int, int | None], None] = lambda _done, _all: None,
) -> None:
    """Write the numbers of the source with noise to the target, a new file; "-" is standard input or output."""
    delta, exact = exact_sensitivity(sensitivity), exact_epsilon(epsilon)
    if changes is not None:
        changes = exact_count("changes", changes)
    read = alone(lambda: _opened(source, tuple(columns), tuple(keep), changes))
    if not all(read.kinds.values()):
        if changes is None and read.rows is None:
            raise InvalidParameter("changes must be given for floats on a stream: how many of them one unit can move")
        moved = changes or max(1, (read.rows or 0) * len(read.kinds))
        widened = grid_of(False, delta, exact, moved).sensitivity  # an integer beside a float pays for it, too
    else:
        moved, widened = 1, delta
    if beyond_int64(widened / exact):
        raise InvalidParameter("sensitivity / epsilon must be below 2^50 for integers in a file")

    def noisy(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for name in batch.schema.names:
            if name not in read.kinds:
                arrays.append(plain(batch.column(name), read.kept.field(name).type))
                continue
            whole = read.kinds[name]
            numbers = _numbers(batch.column(name), whole)
            terms: dict[str, Any] = {"sensitivity": widened if whole else delta, "changes": moved}
            arrays.append(pa.array(laplace_mechanism(numbers, epsilon=exact, **terms)))
        return pa.record_batch(arrays, names=batch.schema.names)

    alone(lambda: _write(read, source, target, force, noisy, advance))


def _numbers(column: Any, whole: bool) -> Any:
    """A column as numpy has it; what is missing is 0."""
    filled = column.cast(pa.int64() if whole and not pa.types.is_uint64(column.type) else column.type)
    if filled.null_count:
        filled = filled.fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _opened(source: str, columns: tuple[str, ...], keep: tuple[str, ...], changes: int | None) -> _Source:
    if source == "-":
        if columns or keep:
            raise InvalidParameter("columns are of a table; standard input has one number a line")
        # what is not known to be integers is read as floats; integers need no changes
        kind = pa.int64() if changes is None else pa.float64()
        read = _text(sys.stdin.buffer, ".txt", {_LINE: kind})
        return _Source(form=".txt", kinds={_LINE: changes is None}, kept=pa.schema([]), rows=None, batches=lambda: read)
    place = Path(source)
    if not os.path.isfile(place):  # `Path.is_file` raises where a name is too long
        raise InvalidParameter(f"there is no such file: {place.name}")
    match place.suffix.lower():
        case ".npy":
            if columns or keep:
                raise InvalidParameter("columns are of a table; an array has none")
            return _array_source(place)
        case ".parquet":
            return _parquet_source(place, columns, keep)
        case form:
            return _text_source(place, form if form in (".csv", ".tsv") else ".txt", columns, keep, changes is None)


def _parquet_source(place: Path, columns: tuple[str, ...], keep: tuple[str, ...]) -> _Source:
    with _arrow_words(place):
        with parquet.ParquetFile(place) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        chosen = _chosen(schema.names, columns, keep)

        def batches() -> Iterator[pa.RecordBatch]:
            with _arrow_words(place), parquet.ParquetFile(place) as file:
                names = [*chosen, *keep]
                for batch in file.iter_batches(batch_size=_BLOCK // 64, columns=names):
                    yield batch.select(names)

        kinds = {name: _is_whole(name, schema.field(name).type) for name in chosen}
        kept = pa.schema([(name, plain_type(name, schema.field(name).type)) for name in keep])
        return _Source(form=".parquet", kinds=kinds, kept=kept, rows=rows, batches=batches)


def _array_source(place: Path) -> _Source:
    with place.open("rb") as file:
        shape, fortran, dtype = _header(file, place)
        start = file.tell()
    rows = int(np.prod(shape, dtype=object))
    whole = _is_whole(_LINE, pa.from_numpy_dtype(dtype) if dtype.kind in "biuf" else pa.string())

    def batches() -> Iterator[pa.RecordBatch]:
        with place.open("rb") as file:
            file.seek(start)
            for done in range(0, rows, _BLOCK // 8):
                part = np.fromfile(file, dtype, min(_BLOCK // 8, rows - done))
                if len(part) < min(_BLOCK // 8, rows - done):
                    raise InvalidParameter(f"{place.name} must be whole, and ends before its numbers do")
                numbers = part.astype(np.float64 if dtype.kind == "f" else dtype.newbyteorder("="), copy=False)
                yield pa.record_batch([pa.array(numbers.astype(np.int64) if dtype.kind == "b" else numbers)], [_LINE])

    return _Source(
        form=".npy",
        kinds={_LINE: whole},
        kept=pa.schema([]),
        rows=rows,
        batches=batches,
        shape=shape,
        fortran=fortran,
    )


def _header(file: IO[bytes], place: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array in a file."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return read(file)
    except ValueError:
        raise InvalidParameter(f"{place.name} must be an array as numpy.save writes it") from None


def _text_source(place: Path, form: str, columns: tuple[str, ...], keep: tuple[str, ...], whole: bool) -> _Source:
    """A text is of integers, or of floats if the caller says so by `changes`: never by its values, which would tell."""
    chosen: tuple[str, ...] = (_LINE,)
    if form == ".txt" and (columns or keep):
        raise InvalidParameter("columns are of a table; a text has one number a line")
    if form != ".txt":
        chosen = _chosen(_first_line(place, form), columns, keep)
    kept = pa.schema([(name, pa.string()) for name in keep])

    def read(kinds: Kinds) -> Iterator[pa.RecordBatch]:
        types = {name: pa.int64() if whole else pa.float64() for name, whole in kinds.items()}
        with place.open("rb") as file:
            yield from _text(file, form, {**types, **{name: pa.string() for name in keep}})

    kinds = dict.fromkeys(chosen, whole)
    return _Source(form=form, kinds=kinds, kept=kept, rows=None, batches=lambda: read(kinds))


def _first_line(place: Path, form: str) -> list[str]:
    with _arrow_words(place), place.open("rb") as file:
        return list(_reader(file, form, None).schema.names)


def _text(file: IO[bytes], form: str, types: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Batches of a text; what is no number is refused without being shown."""
    try:
        yield from _reader(file, form, types)
    except StopIteration:
        return
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        if "Empty CSV" in str(error):
            return
        kind = "an integer" if pa.int64() in types.values() else "a number"
        advice = "; floats in a text need --changes" if kind == "an integer" else ""
        row = _ROW.match(str(error))
        where = f"line {int(row[1]):,}" if row else "a line"
        raise InvalidParameter(f"{where} is not {kind} of 64 bits{advice}") from None


def _reader(file: IO[bytes], form: str, types: Mapping[str, Any] | None) -> Any:
    lines = form == ".txt"
    return csv.open_csv(
        file,
        # with threads Arrow does not know in which line it is
        read_options=csv.ReadOptions(
            block_size=_BLOCK // 8, column_names=[_LINE] if lines else None, use_threads=False
        ),
        parse_options=csv.ParseOptions(
            delimiter="\t" if form == ".tsv" else ",", ignore_empty_lines=False, newlines_in_values=False
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=list(types) if types is not None else None,
            null_values=[] if lines else ["", "NULL", "null", "NA", "NaN", "nan"],
            strings_can_be_null=False,
        ),
    )


def _chosen(names: Sequence[str], columns: tuple[str, ...], keep: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of numbers: those that were named, or the only one."""
    chosen = columns or tuple(name for name in names if name not in keep)
    if not columns and len(chosen) != 1:
        raise InvalidParameter(f"--column must say which columns are noised; there are {', '.join(names)}")
    for name in (*chosen, *keep):
        if name not in names:
            raise InvalidParameter(f"the columns are {', '.join(names)}, got {quote(name)}")
    if len({*chosen, *keep}) < len((*chosen, *keep)):
        raise InvalidParameter("a column is noised or kept, once")
    return chosen


def _is_whole(name: str, kind: Any) -> bool:
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InvalidParameter(f"column {quote(name)} must be of integers or floats, got {kind}")
    return not pa.types.is_floating(kind)


def _write(
    read: _Source,
    source: str,
    target: str,
    force: bool,
    noisy: Callable[[pa.RecordBatch], pa.RecordBatch],
    advance: Callable[[int, int | None], None],
) -> None:
    form = read.form if target == "-" else Path(target).suffix.lower()
    form = form if form in (".csv", ".tsv", ".npy", ".parquet") else ".txt"
    names = [*read.kinds, *read.kept.names]
    if form in (".npy", ".txt") and len(names) > 1:
        raise InvalidParameter(f"{'an array' if form == '.npy' else 'a text'} has one column, got {len(names)}")
    types = {name: pa.int64() if whole else pa.float64() for name, whole in read.kinds.items()}
    numbers = [pa.field(name, kind, nullable=False) for name, kind in types.items()]
    schema = pa.schema([*numbers, *((field.name, field.type) for field in read.kept)])

    def batches() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in read.batches():
            yield noisy(batch).cast(schema)
            done += batch.num_rows
            advance(done, read.rows)

    with _sink(source, target, form, force) as file:
        match form:
            case ".npy":
                _write_array(file, batches(), read)
            case ".parquet":
                write_batches(file, schema, even(batches(), max(1, BATCH // len(schema))))
            case _:
                _write_text(file, batches(), schema, form)


@contextmanager
def _sink(source: str, target: str, form: str, force: bool) -> Iterator[IO[bytes]]:
    """Where bytes go: standard output, or a new file that takes its place when it is whole."""
    if target != "-":
        with new_file(target, force=force, kept=Kept(files=(source,))) as draft:
            yield draft.file
        return
    terminal = sys.stdout.isatty()
    if form in (".npy", ".parquet") and terminal:
        raise InvalidParameter(f"{form} is not for a terminal: name a file to write to")
    yield _Terminal(sys.stdout.buffer) if terminal else sys.stdout.buffer  # type: ignore[misc]
    sys.stdout.buffer.flush()


class _Terminal:
    """A text on a terminal, where a name or a kept value could command it: what does not print is escaped."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._letters = getincrementaldecoder("utf-8")("backslashreplace")  # a letter may come in two parts
        self.closed = False

    def write(self, data: bytes) -> int:
        """How many bytes were taken: all of them; lines and tabs are the table's own."""
        parts = self._letters.decode(bytes(data)).split("\t")
        self._file.write("\t".join(map(printable, parts)).encode())
        return len(data)

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()


def _write_text(file: IO[bytes], batches: Iterator[pa.RecordBatch], schema: pa.Schema, form: str) -> None:
    options = csv.WriteOptions(
        include_header=form != ".txt", delimiter="\t" if form == ".tsv" else ",", quoting_style="needed"
    )
    with csv.CSVWriter(file, schema, write_options=options) as table:
        for batch in batches:
            table.write(batch)


def _write_array(file: IO[bytes], batches: Iterator[pa.RecordBatch], read: _Source) -> None:
    """An array's header is written first, and again where the length was not known before."""
    if read.rows is None and not file.seekable():
        raise InvalidParameter("an array of unknown length needs a file to be written to")
    [whole] = read.kinds.values()
    shape = (read.rows or 0,) if read.shape is None else read.shape
    start = {"descr": "<i8" if whole else "<f8", "fortran_order": read.fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(file, start)
    done = 0
    for batch in batches:
        done += batch.num_rows
        file.write(memoryview(batch.column(0).to_numpy()))
    if read.rows is None:
        file.seek(0)  # numpy leaves room in the header for a longer number
        np.lib.format.write_array_header_1_0(file, {**start, "shape": (done,)})


@contextmanager
def _arrow_words(place: Path) -> Iterator[None]:
    """Arrow's own words may quote a value; ours do not."""
    try:
        yield
    except (pa.ArrowException, OSError):
        raise InvalidParameter(f"{place.name} cannot be read in the format of its name") from None
