"""Text files, CSV and JSON lines: every value is a text, and no line changes how another line is read.

Nothing is guessed from rows. The first line of CSV gives the names of the columns, the delimiter (the most frequent of
",", ";", "|" and tab, unless the policy names it) and the line ending; the columns of JSON lines are those that are
declared. Quotes follow RFC 4180. An empty CSV cell is missing, and so is a JSON value that is a list or an object.

A faulty line affects only itself. These lines are left out: CSV with too many or too few cells, JSON that is not an
object, invalid UTF-8 in a used cell, more than `LONGEST_LINE` bytes, or `LONGEST_OBJECT` bytes of JSON. So the number
of rows depends on the content of lines, and is private (`public_size`). A file in which a line could hide or split
others is refused when it is opened, in one pass over its bytes: a quote that is not at the edge of its cell, an odd
number of quotes, a line ending that differs from the first.

Why this is enough: in an accepted file, each quote switches between inside and outside a quoted cell. Replace a line so
that the new file is accepted as well. If the states after the line differed, the rest of the file would have an even
number of quotes in one file and an odd number in the other. So the states agree, and other lines are read as before.

One thread reads a file: several threads would guess where lines begin, and take a line within quotes for a row.

Encodings other than UTF-8 are decoded here, byte by byte, into memory: DuckDB's reader would refuse a whole Latin-1
file for one byte that is not a letter there. In the other `ENCODINGS` each byte is a character.
"""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sqlglot import exp

from discreet.engines.sql.trees import outer
from discreet.errors import InvalidParameter
from discreet.parameters import quote

DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "latin-1", "windows-1252")
_WINDOWS = {0x80 + index: ord(letter) for index, letter in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")}
"""The characters of Windows-1252 in place of control characters; five bytes do not change."""
_LARGEST_DECODED = 2**29
"""The most bytes of a file that is decoded: in UTF-8 they become at most three times as many, which fit into Arrow."""
LONGEST_LINE = 2**21
LONGEST_OBJECT = 2**16
"""The most bytes of a line of JSON: reading a few million bytes would take as long as thousands of usual lines."""
_BLOCK = 2**22
_LINE, _QUOTE, _RETURN = b'\n"\r'
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = "\x1f"
"""A character that no line of JSON contains."""

Header: TypeAlias = tuple[tuple[str, ...], str, bytes]
"""The names of columns, the delimiter, and the line ending."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The declarations of a policy about a text file."""

    columns: tuple[str, ...] = ()
    """The columns in use; JSON lines have no other columns."""
    delimiter: str | None = None
    encoding: str | None = None
    folder: Path | None = None
    """The folder of relative paths in a SELECT; None is the working directory."""


def csv_rows(files: Sequence[Path], layout: Layout, hive: bool, connection: Any) -> str:
    """The SELECT of the rows of CSV files, where each cell is a text; files may have their columns in any order."""
    encoding = None if layout.encoding == "utf-8" else layout.encoding
    if encoding is not None and hive:
        raise InvalidParameter("files in folders such as year=2024 must be UTF-8; convert them first, as with iconv")
    alike: dict[Header, list[Path]] = {}
    for file in files:
        alike.setdefault(header(file, layout.delimiter, encoding), []).append(file)
    folders = folder_names(files[0]) if hive else []
    for names, _, _ in alike:
        refuse_alike([*names, *folders])
    parts = []
    for (own, mark, end), same_header in alike.items():
        for file in same_header:
            _refuse_unsound(file, mark, end)
        cells = {f"c{index}": name for index, name in enumerate(own)}
        beside = "".join(f", {in_quotes(name)}" for name in folders)
        chosen = [f"{cell} AS {in_quotes(name)}" for cell, name in cells.items()]
        ends = r"\r\n" if end == b"\r\n" else r"\n"
        terms = f"""delim = {literal(mark)}, quote = '"', escape = '"', header = true, new_line = '{ends}'"""
        rows = _read(same_header, list(cells), terms, hive)
        if encoding is not None:
            rows = in_quotes(f"decoded {' '.join(map(str, same_header))}")
            connection.register(rows[1:-1].replace('""', '"'), _decoded(same_header, list(cells), mark, encoding))
        parts.append(f"SELECT {', '.join(chosen)}{beside} FROM {rows}")  # noqa: S608 - names in quotes, texts as literals
    return " UNION ALL BY NAME ".join(parts)


def json_rows(files: Sequence[Path], columns: Sequence[str], hive: bool) -> str:
    """The SELECT of the rows of files of JSON lines, where each value is a text, under these names."""
    if not columns:
        raise InvalidParameter("JSON lines need declared columns; declare at least one")
    refuse_alike(columns)
    for file in files:
        _refuse_unsound(file, None, b"")
    folders = [name for name in folder_names(files[0]) if hive and name in columns]
    keys = [name for name in columns if name not in folders]
    pointers = [literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in keys]
    value = "CASE WHEN t[{0}] NOT IN ('OBJECT', 'ARRAY') THEN x[{0}] END AS {1}"
    chosen = [value.format(index, in_quotes(name)) for index, name in enumerate(keys, 1)]
    listed = f"[{', '.join(pointers)}]"
    terms = f"delim = {literal(_NO_TEXT)}, quote = '', escape = '', header = false, strict_mode = false"
    lines = _read(files, ["line"], terms, hive)
    beside = "".join(f", {in_quotes(name)}" for name in folders)
    short = f"SELECT CASE WHEN STRLEN(line) <= {LONGEST_OBJECT} THEN line END AS line{beside} FROM {lines}"  # noqa: S608
    objects = f"SELECT CASE WHEN json_valid(line) THEN line END AS o{beside} FROM ({short}) AS short"  # noqa: S608
    values_of = f"json_extract_string(o, {listed}) AS x, json_type(o, {listed}) AS t{beside}"
    return (
        f"SELECT {', '.join([*chosen, *map(in_quotes, folders)])} FROM "  # noqa: S608
        f"(SELECT {values_of} FROM ({objects}) AS objects WHERE json_type(o) = 'OBJECT') AS found"
    )


def _decoded(files: Sequence[Path], columns: list[str], mark: str, encoding: str) -> Any:
    """The cells of accepted files as an Arrow table; lines with too many or too few cells are left out."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import csv as reader

    tables = []
    for file in files:
        with closing(_stream(file)) as stream:
            data = bytes(stream.read(_LARGEST_DECODED + 1))
        if len(data) > _LARGEST_DECODED:
            raise InvalidParameter(f"{file.name} must be UTF-8 if it exceeds 512 MiB; convert it first, as with iconv")
        data = _text(data, encoding).encode()
        tables.append(
            reader.read_csv(
                pa.BufferReader(data),
                read_options=reader.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=columns, skip_rows=1
                ),
                parse_options=reader.ParseOptions(
                    delimiter=mark,
                    newlines_in_values=True,
                    ignore_empty_lines=len(columns) > 1,  # in a file of one column an empty line is a row
                    invalid_row_handler=lambda _row: "skip",
                ),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
        )
    return pa.concat_tables(tables)


def _text(data: bytes, encoding: str | None) -> str:
    """Bytes as text: invalid UTF-8 raises, and the other encodings have a character for each byte."""
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
            f'{file.name} must be UTF-8 text; write encoding = "windows-1252" (or "latin-1") in the policy, or convert '
            f"it first, as with iconv -f latin1 -t utf-8 {file.name} > utf8.csv"
        ) from None
    mark = delimiter or ("\t" if ".tsv" in map(str.lower, file.suffixes) else max(DELIMITERS, key=text.count))
    try:
        names = next(csv.reader([text], delimiter=mark, strict=True), [])
    except csv.Error:
        names = []
    if not any(names) or "\r" in text or "\0" in text or not (ended or len(start) < LONGEST_LINE):
        raise InvalidParameter(f"the first line of {file.name} must name its columns, as in age,county")
    return tuple(name or f"column{index}" for index, name in enumerate(names)), mark, end


def refuse_alike(names: Sequence[str]) -> None:
    """Refuse names that are equal in DuckDB."""
    lowercase: set[str] = set()
    for name in names:
        if name.lower() in lowercase:
            raise InvalidParameter(f"columns must have names that differ, got {quote(name)} twice; rename one")
        lowercase.add(name.lower())


def _refuse_unsound(file: Path, mark: str | None, end: bytes) -> None:
    """Refuse a file in which a line could hide or split others; JSON has no delimiter, and no quotes to check."""
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
        sound &= bool((edges[before] | (before == _QUOTE)).all() and (edges[after] | (after == _QUOTE)).all())
        for sign in (_RETURN, _LINE):
            sign_indices = np.flatnonzero(inner == sign) + 1
            sign_indices = sign_indices[(quotes + np.searchsorted(quote_indices, sign_indices)) % 2 == 0]
            if sign == _RETURN:
                sound &= not sign_indices.size if end == b"\n" else bool((characters[sign_indices + 1] == _LINE).all())
            elif end == b"\r\n":
                sound &= bool((characters[sign_indices - 1] == _RETURN).all())
        quotes += quote_indices.size
    if not sound or quotes % 2:
        raise InvalidParameter(
            f"{file.name} has a quote that is not closed, text beside a quote, or a line ending that differs from the "
            'first, so that a line could hide another; write cells with quotes as "a ""quoted"" word" and use one line '
            "ending, or export to Parquet"
            if mark
            else f"{file.name} has a carriage return within a line, which could split it; write the file again"
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
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    return pa.input_stream(str(file), compression={".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower()))


def _read(files: Sequence[Path], columns: Sequence[str], terms: str, hive: bool) -> str:
    """DuckDB's reader of lines, with every option that it would otherwise guess from the rows."""
    types = ", ".join(f"{name}: 'VARCHAR'" for name in columns)
    return (
        f"read_csv({file_list(files)}, auto_detect = false, columns = {{{types}}}, {terms}, nullstr = '', "
        f"ignore_errors = true, parallel = false, max_line_size = {LONGEST_LINE}, {folder_terms(hive)})"
    )


def folder_names(file: Path) -> list[str]:
    """The columns in the names of a file's folders, as in year=2024/month=5."""
    return [name for name, equals, _ in (part.partition("=") for part in file.parent.parts) if equals and name]


def file_list(files: Sequence[Path]) -> str:
    return f"[{', '.join(literal(glob.escape(str(file))) for file in files)}]"


def folder_terms(hive: bool) -> str:
    return f"hive_partitioning = {str(hive).lower()}, hive_types_autocast = false"


def in_quotes(name: str) -> str:
    return outer(name).sql("duckdb")


def literal(value: str) -> str:
    return exp.Literal.string(value).sql("duckdb")
