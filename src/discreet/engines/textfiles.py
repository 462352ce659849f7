"""Text files, CSV and JSON lines: every value is a text, and every line is read by itself.

Nothing is guessed from rows. The first line of CSV gives the names of the columns, the delimiter
(the most frequent of ",", ";", "|" and tab, unless the policy names it) and the line ending; the
columns of JSON lines are those that are declared. Quotes follow RFC 4180. An empty CSV cell is
missing, and so is a JSON value that is a list or an object. A cell that is not valid UTF-8 is
missing.

A faulty line affects only itself. These lines are left out: CSV with too many or too few cells,
JSON that is not an object, more than `LONGEST_LINE` bytes, or `LONGEST_OBJECT` bytes of JSON. So
the number of rows depends on the content of lines, and is private. A file in which a line could
hide or split others is refused when it is opened, in one pass over its bytes: a quote that is not
at the edge of its cell, an odd number of quotes, a line ending that differs from the first.

Why this is enough: in an accepted file, each quote switches between inside and outside a quoted
cell. Replace a line so that the new file is accepted as well. If the states after the line
differed, the rest of the file would have an even number of quotes in one file and an odd number in
the other. So the states agree, and other lines are read as before.

One thread reads a file, in blocks of whole lines, without the lines that are left out. Arrow takes
the cells apart as bytes: DuckDB's reader would leave out a line for one byte that is not UTF-8.
DuckDB asks for the stream of blocks anew for each statement. In the other `ENCODINGS` each byte is
a character.
"""

from __future__ import annotations

import csv
import glob
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from discreet.ask.policy import TIME_LIMIT
from discreet.engines.sql.duckdb import valid
from discreet.engines.sql.trees import outer
from discreet.errors import InvalidParameter
from discreet.parameters import quote

DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "latin-1", "windows-1252")
_WINDOWS = {
    0x80 + index: ord(letter)
    for index, letter in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")
}
"""The characters of Windows-1252 in place of control characters; five bytes do not change."""
LONGEST_LINE = 2**21
LONGEST_OBJECT = 2**16
"""The most bytes of a line of JSON: a few million take as long as thousands of usual lines."""
_BLOCK = 2**22
_LINE, _QUOTE, _RETURN = b'\n"\r'
_BOM = b"\xef\xbb\xbf"

Header: TypeAlias = tuple[tuple[str, ...], str, bytes]
"""The names of columns, the delimiter, and the line ending."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The declarations of a policy about how its source is read."""

    columns: tuple[str, ...] = ()
    """The columns in use: no others are hashed, compared, or read from JSON; () is all columns."""
    delimiter: str | None = None
    encoding: str | None = None
    folder: Path | None = None
    """The folder of relative paths in a SELECT; None is the working directory."""
    row_security: bool = False
    """Whether a PostgreSQL table may be filtered by row level security."""
    time_limit: float = TIME_LIMIT
    """Seconds that a statement may take at the source."""


def csv_rows(
    files: Sequence[Path], layout: Layout, hive: bool, *, within: bool = False
) -> tuple[str, dict[str, Stream]]:
    """The SELECT of the rows of CSV files, each cell a text, and the streams it reads, by name.

    Files may have their columns in any order. Within a custodian's SELECT, which may use all
    columns, texts are checked here; otherwise the statement checks them, and columns that are not
    declared are not read.
    """
    used = () if within else tuple(map(str.lower, layout.columns))
    encoding = None if layout.encoding == "utf-8" else layout.encoding
    files_by_header: dict[Header, list[Path]] = {}
    for file in files:
        files_by_header.setdefault(header(file, layout.delimiter, encoding), []).append(file)
    folders = folder_names(files[0]) if hive else []
    for names, _, _ in files_by_header:
        refuse_alike([*names, *folders])
    parts, streams = [], {}
    for (own, mark, end), group in files_by_header.items():
        for file in group:
            _refuse_unsound(file, mark, end)
        cells = [f"c{index}" for index in range(len(own))]
        read = [
            cell for cell, name in zip(cells, own, strict=True) if not used or name.lower() in used
        ] or cells[:1]
        columns = [cell if cell in read else "CAST(NULL AS VARCHAR)" for cell in cells]
        if within:
            columns = [f"CASE WHEN {valid(cell)} THEN {cell} END" for cell in cells]
        chosen = [
            f"{column} AS {in_quotes(name)}" for column, name in zip(columns, own, strict=True)
        ]
        name = f"{read} of {len(own)} cells with {mark!r} and {end!r} in {_named(group)}"
        streams[name] = _stream_of(
            group, read, folders, partial(_cells, cells, read, mark, encoding)
        )
        parts.append(f"SELECT {', '.join([*chosen, *_of_folders(folders)])} FROM {in_quotes(name)}")  # noqa: S608
    return " UNION ALL BY NAME ".join(parts), streams


def json_rows(
    files: Sequence[Path], columns: Sequence[str], hive: bool
) -> tuple[str, dict[str, Stream]]:
    """The SELECT of the rows of JSON lines, where each value is a text, and the stream it reads.

    A line that is not valid UTF-8 is read twice: with replacement characters in place of its wrong
    bytes, and without them. A value that differs had such a byte, or the name before it had.
    """
    if not columns:
        raise InvalidParameter("JSON lines need declared columns; declare at least one")
    refuse_alike(columns)
    for file in files:
        _refuse_unsound(file, None, b"")
    folders = [name for name in folder_names(files[0]) if hive and name in columns]
    keys = [name for name in columns if name not in folders]
    pointers = [literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in keys]
    value = (
        "CASE WHEN t[{0}] NOT IN ('OBJECT', 'ARRAY') AND (other IS NULL OR x[{0}] IS NOT DISTINCT"
        " FROM y[{0}]) THEN x[{0}] END AS {1}"
    )
    chosen = [value.format(index, in_quotes(name)) for index, name in enumerate(keys, 1)]
    listed = f"[{', '.join(pointers)}]"
    more = "".join(f", f{index}" for index in range(len(folders)))
    name = _named(files)
    lines = (
        f"SELECT line, CASE WHEN NOT ({valid('bytes')})"  # noqa: S608
        f" THEN decode(encode(bytes), 'ignore') END AS other{more} FROM {in_quotes(name)}"
    )
    objects = (
        "SELECT CASE WHEN json_valid(line) THEN line END AS o, other, "  # noqa: S608
        f"CASE WHEN json_valid(other) THEN other END AS p{more} FROM ({lines}) AS lines"
    )
    values_of = (
        f"json_extract_string(o, {listed}) AS x, json_type(o, {listed}) AS t,"
        f" json_extract_string(p, {listed}) AS y, other{more}"
    )
    select = (
        f"SELECT {', '.join([*chosen, *_of_folders(folders)])} FROM "  # noqa: S608
        f"(SELECT {values_of} FROM ({objects}) AS objects WHERE json_type(o) = 'OBJECT') AS found"
    )
    return select, {name: _stream_of(files, ["line", "bytes"], folders, _objects)}


def _named(files: Sequence[Path]) -> str:
    """A name for the stream of some files; other files have another one."""
    return f"files {hashlib.sha256(repr(list(map(str, files))).encode()).hexdigest()}"


class Stream:
    """Rows of files as an Arrow stream, which DuckDB reads anew for each statement."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._schema, self._batches = schema, batches

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


def _stream_of(
    files: Sequence[Path],
    columns: Sequence[str],
    folders: Sequence[str],
    read: Callable[[Path], Iterator[pa.RecordBatch]],
) -> Stream:
    """The stream of the rows of files, with the columns of their folders; all are texts."""
    schema = pa.schema(
        [
            (name, pa.string())
            for name in [*columns, *(f"f{index}" for index in range(len(folders)))]
        ]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            values = _values_of_folders(file)
            for batch in read(file):
                more = [
                    pa.repeat(pa.scalar(values.get(name), pa.string()), len(batch))
                    for name in folders
                ]
                yield pa.record_batch([*batch.columns, *more], schema=schema)

    return Stream(schema, batches)


def _cells(
    columns: list[str], read: list[str], mark: str, encoding: str | None, file: Path
) -> Iterator[pa.RecordBatch]:
    """The cells of some columns of an accepted file, as texts that are not checked."""
    from pyarrow import csv as reader

    for lines in _lines(file, LONGEST_LINE, mark, len(columns)):
        data = lines if encoding is None else _text(lines, encoding).encode()
        # of a cell, where the line before is left out: Arrow drops the first mark of a block
        if data.startswith(_BOM):
            data = _BOM + data
        yield from reader.read_csv(
            pa.BufferReader(data),
            read_options=reader.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=columns
            ),
            parse_options=reader.ParseOptions(
                delimiter=mark,
                newlines_in_values=True,
                ignore_empty_lines=False,  # in a file of one column an empty line is a row
            ),
            convert_options=reader.ConvertOptions(
                column_types=dict.fromkeys(read, pa.string()),
                include_columns=read,
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        ).to_batches()


def _objects(file: Path) -> Iterator[pa.RecordBatch]:
    """The lines of a file of JSON, with replacement characters in place of bytes that are not
    UTF-8, and as they are.

    DuckDB's `decode` with 'replace' may replace the quote after such a byte as well. A byte order
    mark at the start of any line is dropped, as it is at the start of a file: each line may become
    the first one.
    """
    for record_grid in _lines(file, LONGEST_OBJECT, None, 1):
        lines = record_grid.removeprefix(_BOM).replace(b"\n" + _BOM, b"\n")
        both = [_texts(lines.decode("utf-8", "replace").encode()), _texts(lines)]
        yield pa.record_batch(both, names=["line", "bytes"])


def _texts(lines: bytes) -> pa.Array:
    """Lines as an array of unchecked texts, each with its line ending, without a copy."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _LINE) + 1
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(lines)]
    )


def _lines(file: Path, longest: int, mark: str | None, cells: int) -> Iterator[bytes]:
    """Whole lines of an accepted file in blocks, without CSV's first and those left out."""
    rest, dropped = b"", mark is not None
    for block in _read(file):
        whole = rest + block
        characters = np.frombuffer(whole, np.uint8)
        signs = characters == _LINE
        if mark is not None:
            signs |= characters == ord(mark)
        quoted = mark is not None and b'"' in whole
        if quoted:
            signs |= characters == _QUOTE
        indices = np.flatnonzero(signs)
        if quoted:
            quotes = characters[indices] == _QUOTE
            outside = ~np.logical_xor.accumulate(quotes)
            indices = indices[np.logical_and(outside, ~quotes, out=outside)]
        order = np.flatnonzero(characters[indices] == _LINE)
        ends = indices[order] + 1
        if not ends.size:
            if len(whole) <= longest:
                rest = whole
            else:  # only the end of the line remains to be found
                rest, dropped = b'"' * (whole.count(b'"') % 2 if mark else 0), True
            continue
        good = (np.diff(ends, prepend=0) <= longest + 1) & (np.diff(order, prepend=-1) == cells)
        good[0] &= not dropped
        dropped = False
        rest = whole[ends[-1] :]
        yield from _chosen(whole, ends, good)


def _chosen(lines: bytes, ends: NDArray[np.intp], good: NDArray[np.bool_]) -> Iterator[bytes]:
    """The good ones among lines that have these ends, in one piece, if there are any."""
    bad = np.flatnonzero(~good)
    starts = np.concatenate(([0], ends[bad]))
    pieces = np.concatenate((ends[bad - 1] * (bad > 0), ends[-1:]))
    kept = b"".join(
        lines[start:end] for start, end in zip(starts.tolist(), pieces.tolist(), strict=True)
    )
    if kept:
        yield kept


def _read(file: Path) -> Iterator[bytes]:
    """The bytes of a file in blocks, with a line ending at the end."""
    last = b"\n"
    with closing(_stream(file)) as stream:
        while block := bytes(stream.read(_BLOCK)):
            yield block
            last = block[-1:]
    if last != b"\n":
        yield b"\n"


def _text(data: bytes, encoding: str | None) -> str:
    """Bytes as text: invalid UTF-8 raises; other encodings have a character for each byte."""
    if encoding is None:
        return data.decode()
    text = data.decode("latin-1")
    return text.translate(_WINDOWS) if encoding == "windows-1252" else text


def header(file: Path, delimiter: str | None, encoding: str | None = None) -> Header:
    """The first line of a CSV file, which is not a row."""
    with closing(_stream(file)) as stream:
        start = bytes(stream.read(LONGEST_LINE))
    line, ended, _ = start.removeprefix(_BOM).partition(b"\n")
    end = b"\r\n" if line.endswith(b"\r") else b"\n"
    try:
        text = _text(line.removesuffix(b"\r"), encoding)
    except UnicodeDecodeError:
        raise InvalidParameter(
            f'{file.name} must be UTF-8 text; write encoding = "windows-1252" (or "latin-1") in the'
            f" policy, or convert it first, as with iconv -f latin1 -t utf-8 {file.name} > utf8.csv"
        ) from None
    mark = delimiter or (
        "\t" if ".tsv" in map(str.lower, file.suffixes) else max(DELIMITERS, key=text.count)
    )
    try:
        names = next(csv.reader([text], delimiter=mark, strict=True), [])
    except csv.Error:
        names = []
    if not any(names) or "\r" in text or "\0" in text or not (ended or len(start) < LONGEST_LINE):
        raise InvalidParameter(
            f"the first line of {file.name} must name its columns, as in age,county"
        )
    return tuple(name or f"column{index}" for index, name in enumerate(names)), mark, end


def refuse_alike(names: Sequence[str]) -> None:
    """Refuse names that are equal in DuckDB."""
    lowercase: set[str] = set()
    for name in names:
        if name.lower() in lowercase:
            raise InvalidParameter(
                f"columns must have names that differ, got {quote(name)} twice; rename one"
            )
        lowercase.add(name.lower())


def _refuse_unsound(file: Path, mark: str | None, end: bytes) -> None:
    """Refuse a file in which a line could hide or split others; JSON has no delimiter, and no
    quotes to check.
    """
    edges = np.zeros(256, bool)
    edges[[_LINE, _RETURN, *(mark or "").encode()]] = True
    quotes, sound = 0, True
    for block in _blocks(file):
        characters = np.frombuffer(block, np.uint8)
        inner = characters[1:-1]
        quote_indices = np.flatnonzero(inner == _QUOTE) + 1 if mark else np.empty(0, np.intp)
        opening = quote_indices[quotes % 2 :: 2]
        closing_ = quote_indices[1 - quotes % 2 :: 2]
        before, after = characters[opening - 1], characters[closing_ + 1]
        sound &= bool(
            (edges[before] | (before == _QUOTE)).all() and (edges[after] | (after == _QUOTE)).all()
        )
        for sign in (_RETURN, _LINE):
            sign_indices = np.flatnonzero(inner == sign) + 1
            sign_indices = sign_indices[
                (quotes + np.searchsorted(quote_indices, sign_indices)) % 2 == 0
            ]
            if sign == _RETURN:
                sound &= (
                    not sign_indices.size
                    if end == b"\n"
                    else bool((characters[sign_indices + 1] == _LINE).all())
                )
            elif end == b"\r\n":
                sound &= bool((characters[sign_indices - 1] == _RETURN).all())
        quotes += quote_indices.size
    if not sound or quotes % 2:
        raise InvalidParameter(
            f"{file.name} has a quote that is not closed, text beside a quote, or a line ending"
            " that differs from the first, so that a line could hide another; write cells with"
            ' quotes as "a ""quoted"" word" and use one line ending, or export to Parquet'
            if mark
            else (
                f"{file.name} has a carriage return within a line, so that a line could be split;"
                " write the file again"
            )
        )


def _blocks(file: Path) -> Iterator[bytes]:
    """The bytes of a file in blocks that overlap by two bytes, between two line feeds."""
    before = b"\n"
    with closing(_stream(file)) as stream:
        start = True
        while block := bytes(stream.read(_BLOCK)):
            whole = before + (block.removeprefix(_BOM) if start else block)
            start = False
            if len(whole) > 2:
                yield whole
            before = whole[-2:]
    yield before + b"\n"


def _stream(file: Path) -> Any:
    return pa.input_stream(
        str(file), compression={".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    )


def folder_names(file: Path) -> list[str]:
    """The columns in the names of a file's folders, as in year=2024/month=5."""
    return [
        name
        for name, equals, _ in (part.partition("=") for part in file.parent.parts)
        if equals and name
    ]


def _values_of_folders(file: Path) -> dict[str, str | None]:
    """The values of these columns, as DuckDB reads them for Parquet: %20 is a space."""
    parts = (part.partition("=") for part in file.parent.parts)
    return {name: _value_of_folder(value) for name, equals, value in parts if equals}


def _value_of_folder(value: str) -> str | None:
    if value == "__HIVE_DEFAULT_PARTITION__":
        return None
    with suppress(UnicodeError):
        return unquote(value, errors="strict")
    return None


def _of_folders(folders: Sequence[str]) -> list[str]:
    """The columns of folders in a SELECT over a stream."""
    return [f"f{index} AS {in_quotes(name)}" for index, name in enumerate(folders)]


def file_list(files: Sequence[Path]) -> str:
    """The paths of files as a list in DuckDB, which takes UTF-8 alone."""
    return f"[{', '.join(literal(glob.escape(str(file))) for file in files)}]"


def folder_terms(hive: bool) -> str:
    return f"hive_partitioning = {str(hive).lower()}, hive_types_autocast = false"


def in_quotes(name: str) -> str:
    return outer(name).sql("duckdb")


def literal(value: str) -> str:
    return exp.Literal.string(value).sql("duckdb")
