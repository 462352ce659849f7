"""Keys, and pairs of a map, from a public file: lines, a column of a table, or
`file.db#table.column` of SQLite.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from discreet.ask.keys.column import Keys, text_column, valid_texts
from discreet.ask.keys.key import MOST_KEYS
from discreet.errors import InvalidParameter
from discreet.parameters import quote

_AT_ONCE = 2**30
"""The most bytes of a text file that is read at once."""

_MANY = 2**24
"""Bytes of keys from which the memory of reading them is noticed."""

_MARKS = {".csv": ",", ".tsv": "\t"}
_UNUSED = "\x1f"
"""The delimiter of a file with one field."""


def keys_in(source: str, name: str, folder: Path) -> Keys:
    """The keys, as texts, of "file" or "file#column"; `name`, of the policy, may be its header."""
    path_text, _, wanted = source.partition("#")
    path = folder / path_text
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidParameter(
            f'keys must be a list, a range "1..12" or a file that ends in {", ".join(_READERS)},'
            f" got {quote(source)}"
        )
    with _readable(path, path_text):
        texts = reader(path, wanted, name)
        if not isinstance(texts, pa.Array):
            texts = text_column(list(islice(texts, MOST_KEYS + 1)))
    if len(texts) > MOST_KEYS:
        raise InvalidParameter(f"the file {quote(path_text)} must have at most {MOST_KEYS:,} keys")
    # what reading took beside them is kept by Arrow otherwise, as long as the study is open
    if texts.nbytes > _MANY:
        pa.default_memory_pool().release_unused()
    return Keys.texts(texts)


def pairs_in(source: str, folder: Path, most: int) -> Iterator[tuple[str, str]]:
    """The lines of a file of two columns, without the first line, which names the columns."""
    path = folder / source
    if path.suffix.lower() not in _MARKS:
        raise InvalidParameter(
            f"it must be a list, or a file that ends in .csv or .tsv, got {quote(source)}"
        )
    with _readable(path, source), path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=_MARKS[path.suffix.lower()], strict=True)
        for number, row in enumerate(row for row in rows if row):
            if len(row) != 2 or number > most:
                raise InvalidParameter(
                    f"the file {quote(source)} must have two columns and at most {most:,} lines"
                )
            if number:
                yield row[0], row[1]


@contextmanager
def _readable(path: Path, source: str) -> Iterator[None]:
    """Refuse a file that does not exist, or whose text cannot be read."""
    if not path.is_file():
        raise InvalidParameter(
            f"the file {quote(source)} must exist beside the policy, and does not"
        )
    try:
        yield
    except (OSError, UnicodeError, csv.Error) as error:
        raise InvalidParameter(
            f"the file {quote(source)} must be UTF-8 text that can be read, got"
            f" {type(error).__name__}"
        ) from None


def _database(path: Path, wanted: str, name: str) -> Iterator[str]:
    """The values of a column of a table; both names are those of the database."""
    import sqlite3

    table, _, column = wanted.partition(".")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            tables = opened.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            )
            if (table,) not in tables.fetchall():
                raise InvalidParameter(
                    f"say which table of {quote(path.name)} holds the keys:"
                    f' "{path.name}#table.column"'
                )
            names = [
                row[0] for row in opened.execute("SELECT name FROM pragma_table_info(?)", (table,))
            ]
            if (column or name) not in names and (column or len(names) > 1):
                raise _ambiguous(path, [f"{table}.{column_name}" for column_name in names])
            chosen = column or (name if name in names else names[0])
            quoted = ['"' + text.replace('"', '""') + '"' for text in (chosen, table)]
            rows = opened.execute(f"SELECT {quoted[0]} FROM {quoted[1]}")  # noqa: S608 - names from the schema of the file
            yield from (str(row[0]) for row in rows if row[0] is not None)
    except sqlite3.Error:
        raise InvalidParameter(
            f"{quote(path.name)} must be an SQLite file, and cannot be read as one"
        ) from None


def _lines(path: Path, wanted: str, name: str) -> pa.Array | Iterator[str]:
    """A column of a text file: by Arrow if no line has quotation marks, else line by line."""
    if path.stat().st_size <= _AT_ONCE:
        plain = _plain_lines(path, wanted, name)
        if plain is not None:
            return plain
    return _quoted_lines(path, wanted, name)


def _plain_lines(path: Path, wanted: str, name: str) -> pa.Array | None:
    """A column of a file in which every line is a row; None if this is not certain."""
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    text = path.suffix.lower() == ".txt"
    mark = _UNUSED if text else _MARKS[path.suffix.lower()]
    odd = (
        b"\0" in content
        or content.count(b"\r") != content.count(b"\r\n")
        or (not text and b'"' in content)
    )
    first = content.lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    if odd or not first or (text and mark.encode() in content):
        return None
    try:
        fields = first.decode().split(mark)
        columns = [str(number) for number in range(len(fields))]
        index = _index(path, fields, wanted)
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(column_names=columns),
            arrow_csv.ParseOptions(delimiter=mark, quote_char=False),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=[str(index)],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, UnicodeError):
        return None
    return pa.concat_arrays(table.column(0).chunks)[_is_header(fields, wanted, name) :]


def _quoted_lines(path: Path, wanted: str, name: str) -> Iterator[str]:
    suffix = path.suffix.lower()
    with path.open(encoding="utf-8-sig", newline="") as file:
        if suffix == ".txt":
            rows: Iterator[list[str]] = ([line.rstrip("\r\n")] for line in file)
        else:
            rows = csv.reader(file, delimiter=_MARKS[suffix], strict=True)
        filled = (row for row in rows if row and row != [""])
        first = next(filled, None)
        if first is None:
            return
        index = _index(path, first, wanted)
        if not _is_header(first, wanted, name):
            yield first[index]
        for row in filled:
            if len(row) != len(first):
                raise InvalidParameter(
                    f"each line of {quote(path.name)} must have {len(first)} fields, like its first"
                )
            yield row[index]


def _index(path: Path, first: list[str], wanted: str) -> int:
    """The index of the column in a file with this first row."""
    if wanted and wanted not in first:
        raise InvalidParameter(
            f"the first line of {quote(path.name)} must name a column {quote(wanted)}"
        )
    if not wanted and len(first) > 1:
        raise _ambiguous(path, first)
    return first.index(wanted) if wanted else 0


def _is_header(first: list[str], wanted: str, name: str) -> bool:
    return bool(wanted) or first[0].strip().lower() == name.lower()


def _parquet(path: Path, wanted: str, name: str) -> pa.Array:
    wanted = wanted or name
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if wanted not in names and len(names) > 1:
                raise _ambiguous(path, names)
            parts: list[pa.Array] = []
            for batch in file.iter_batches(columns=[wanted if wanted in names else names[0]]):
                parts.append(_as_texts(batch.column(0).drop_null()))
                if sum(map(len, parts)) > MOST_KEYS:
                    break
            return pa.concat_arrays(parts) if parts else pa.array([], pa.string())
    except pa.ArrowException:
        raise InvalidParameter(
            f"{quote(path.name)} must be a Parquet file, and cannot be read as one"
        ) from None


def _as_texts(column: pa.Array) -> pa.Array:
    """Values as texts, as Python writes them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    plain = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_integer,
    )
    if any(is_plain(column.type) for is_plain in plain):
        return valid_texts(column)
    return text_column([str(value) for value in column.to_pylist()])


_READERS: dict[str, Callable[[Path, str, str], pa.Array | Iterator[str]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _lines),
    ".parquet": _parquet,
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _database),
}


def _ambiguous(path: Path, names: Sequence[str]) -> InvalidParameter:
    file = path.name
    return InvalidParameter(
        f'{quote(file)} has {len(names)} columns; say which holds the keys: "{file}#{names[0]}"'
    )
