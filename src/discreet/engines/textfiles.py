"""Files of text, CSV and JSON lines: every value is a text, and no line changes how another one is read.

Nothing is told from rows. The names of the columns of CSV are its first line, and so are the mark between cells (",",
";", "|" or a tab, whichever the line has most of, unless the policy names it) and the end of lines; columns of JSON
lines are those that are declared. Quotes are those of RFC 4180. An empty cell of CSV is missing, and so is a value of
JSON that is a list or an object.

What is wrong with a line stays there. These lines are left out: CSV with too many or too few cells, JSON that is no
object, bytes in a cell that is read that are no UTF-8, more than `LONGEST_LINE` bytes, or of JSON `LONGEST_OBJECT`. So
the number of rows depends on what lines hold, and is private (`public_size`). Whatever could hide or split other lines
is refused when the file is opened, in one pass over its bytes: a quote that is not at the edge of its cell,
a number of quotes that is not even, a line that ends in another way than the first.

Why that is enough: in a file that passes, each quote goes from outside of cells in quotes to inside or back. Let a line
be replaced so that the new file passes, too. If the states after the line differed, the rest of the file would have an
even number of quotes by one file and an odd number by the other. So they agree, and all other lines are as they were.

One thread reads a file: several would guess where lines begin, and take a line within quotes for one of its own.

A file in another encoding than UTF-8 is decoded here, byte by byte, into memory: DuckDB's reader would refuse a whole
file of Latin-1 for one byte that is no letter there. In the others of `ENCODINGS` each byte is a character by itself.
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
_WINDOWS = {0x80 + place: ord(letter) for place, letter in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")}
"""What Windows has in place of control characters; five bytes it leaves as they are."""
_LARGEST_DECODED = 2**29
"""Bytes of a file that is decoded: in UTF-8 they are at most three times as many, which Arrow can hold in a column."""
LONGEST_LINE = 2**21
LONGEST_OBJECT = 2**16
"""Bytes of a line of JSON: one of a few million bytes would take longer to read than thousands of usual ones."""
_BLOCK = 2**22
_LINE, _QUOTE, _RETURN = b'\n"\r'
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = "\x1f"
"""A character that no line of JSON holds."""

Header: TypeAlias = tuple[tuple[str, ...], str, bytes]
"""Names of columns, the mark between them, and the end of the line."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a policy declares of its source, as far as a file of text does not say it."""

    columns: tuple[str, ...] = ()
    """The columns that are used: of JSON lines there are no others."""
    delimiter: str | None = None
    encoding: str | None = None
    folder: Path | None = None
    """What paths in a SELECT are relative to; None is the working directory."""


def csv_rows(files: Sequence[Path], layout: Layout, hive: bool, connection: Any) -> str:
    """The SELECT of the rows of files of CSV, each cell a text; files may have their columns in any order."""
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
    for (own, mark, end), some in alike.items():
        for file in some:
            _refuse_unsound(file, mark, end)
        cells = {f"c{index}": name for index, name in enumerate(own)}
        beside = "".join(f", {in_quotes(name)}" for name in folders)
        chosen = [f"{cell} AS {in_quotes(name)}" for cell, name in cells.items()]
        ends = r"\r\n" if end == b"\r\n" else r"\n"
        terms = f"""delim = {literal(mark)}, quote = '"', escape = '"', header = true, new_line = '{ends}'"""
        rows = _read(some, list(cells), terms, hive)
        if encoding is not None:
            rows = in_quotes(f"decoded {' '.join(map(str, some))}")
            connection.register(rows[1:-1].replace('""', '"'), _decoded(some, list(cells), mark, encoding))
        parts.append(f"SELECT {', '.join(chosen)}{beside} FROM {rows}")  # noqa: S608 - names in quotes, texts as literals
    return " UNION ALL BY NAME ".join(parts)


def json_rows(files: Sequence[Path], columns: Sequence[str], hive: bool) -> str:
    """The SELECT of the rows of files of JSON lines, each value a text, under these names."""
    if not columns:
        raise InvalidParameter("JSON lines name no columns; declare at least one")
    refuse_alike(columns)
    for file in files:
        _refuse_unsound(file, None, b"")
    folders = [name for name in folder_names(files[0]) if hive and name in columns]
    keys = [name for name in columns if name not in folders]
    pointers = [literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in keys]
    value = "CASE WHEN t[{0}] NOT IN ('OBJECT', 'ARRAY') THEN x[{0}] END AS {1}"
    chosen = [value.format(at, in_quotes(name)) for at, name in enumerate(keys, 1)]
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
    """The cells of sound files as a table of Arrow; lines with too many or too few of them are left out."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import csv as reader

    tables = []
    for file in files:
        with closing(_stream(file)) as stream:
            data = bytes(stream.read(_LARGEST_DECODED + 1))
        if len(data) > _LARGEST_DECODED:
            raise InvalidParameter(f"{file.name} must be UTF-8 text beyond 512 MiB; convert it first, as with iconv")
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
                    ignore_empty_lines=len(columns) > 1,  # of one column it is a row
                    invalid_row_handler=lambda _row: "skip",
                ),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
        )
    return pa.concat_tables(tables)


def _text(data: bytes, encoding: str | None) -> str:
    """Bytes as text: of UTF-8 what is none raises, the other encodings have a character for each byte."""
    if encoding is None:
        return data.decode()
    text = data.decode("latin-1")
    return text.translate(_WINDOWS) if encoding == "windows-1252" else text


def header(file: Path, delimiter: str | None, encoding: str | None = None) -> Header:
    """What the first line of a file of CSV says; it is no row."""
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
    """Refuse names that DuckDB would take for one."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InvalidParameter(f"columns must have names that differ, got {quote(name)} twice; rename one")
        seen.add(name.lower())


def _refuse_unsound(file: Path, mark: str | None, end: bytes) -> None:
    """Refuse a file in which a line could hide or split others; without a mark there are no quotes, as in JSON."""
    edges = np.zeros(256, bool)
    edges[[_LINE, _RETURN, *(mark or "").encode()]] = True
    quotes, sound = 0, True
    for block in _blocks(file):
        here = np.frombuffer(block, np.uint8)
        inner = here[1:-1]
        at = np.flatnonzero(inner == _QUOTE) + 1 if mark else np.empty(0, np.intp)
        opening = at[quotes % 2 :: 2]
        closing_ = at[1 - quotes % 2 :: 2]
        before, after = here[opening - 1], here[closing_ + 1]
        sound &= bool((edges[before] | (before == _QUOTE)).all() and (edges[after] | (after == _QUOTE)).all())
        for sign in (_RETURN, _LINE):
            places = np.flatnonzero(inner == sign) + 1
            places = places[(quotes + np.searchsorted(at, places)) % 2 == 0]
            if sign == _RETURN:
                sound &= not places.size if end == b"\n" else bool((here[places + 1] == _LINE).all())
            elif end == b"\r\n":
                sound &= bool((here[places - 1] == _RETURN).all())
        quotes += at.size
    if not sound or quotes % 2:
        raise InvalidParameter(
            f"{file.name} has a quote that is not closed, text beside one, or a line that ends in another way than the "
            'first, so that a line could hide another; write cells with quotes in them as "a ""quoted"" word", and end '
            "all lines alike, or export to Parquet"
            if mark
            else f"{file.name} has a carriage return within a line, so that a line could be several; write it again"
        )


def _blocks(file: Path) -> Iterator[bytes]:
    """The bytes of a file in blocks whose first and last byte stand in two of them; a line feed is at either end."""
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
    """DuckDB's reader of lines, told everything that it would look for in the rows."""
    types = ", ".join(f"{name}: 'VARCHAR'" for name in columns)
    return (
        f"read_csv({file_list(files)}, auto_detect = false, columns = {{{types}}}, {terms}, nullstr = '', "
        f"ignore_errors = true, parallel = false, max_line_size = {LONGEST_LINE}, {folder_terms(hive)})"
    )


def folder_names(file: Path) -> list[str]:
    """The columns that the folders of a file write, as in year=2024/month=5."""
    return [name for name, equals, _ in (part.partition("=") for part in file.parent.parts) if equals and name]


def file_list(files: Sequence[Path]) -> str:
    return f"[{', '.join(literal(glob.escape(str(file))) for file in files)}]"


def folder_terms(hive: bool) -> str:
    return f"hive_partitioning = {str(hive).lower()}, hive_types_autocast = false"


def in_quotes(name: str) -> str:
    return outer(name).sql("duckdb")


def literal(value: str) -> str:
    return exp.Literal.string(value).sql("duckdb")
