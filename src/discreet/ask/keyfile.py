"""Keys from a public file: one key a line, one column of a table, or `file.db#table.column` of SQLite."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path

from discreet.errors import InvalidParameter
from discreet.parameters import quote

_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".db", ".sqlite", ".sqlite3")
_DATABASES = _TABLES[-3:]


def keys_in(written: str, name: str, folder: Path, most: int) -> Iterator[str]:
    """The keys, as texts, of "file" or "file#column"; `name` is the column's, which may be the file's header."""
    path_text, _, wanted = written.partition("#")
    path = folder / path_text
    if path.suffix.lower() not in _TABLES:
        raise InvalidParameter(
            f'keys must be a list, a range "1..12" or a file that ends in {", ".join(_TABLES)}, got {quote(written)}'
        )
    if not path.is_file():
        raise InvalidParameter(f"the file {quote(path_text)} must exist beside the policy, and does not")
    try:
        rows = _rows(path, wanted, name)
        for count, key in enumerate(rows):
            if count >= most:
                raise InvalidParameter(f"the file {quote(path_text)} must have at most {most:,} keys")
            if "\0" in key:
                raise InvalidParameter(f"the file {quote(path_text)} must not hold NUL characters")
            yield key
    except (OSError, UnicodeError, csv.Error) as error:
        raise InvalidParameter(
            f"the file {quote(path_text)} must be UTF-8 text that can be read, got {type(error).__name__}"
        ) from None


def _rows(path: Path, wanted: str, name: str) -> Iterator[str]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet(path, wanted or name)
    return _database(path, wanted, name) if suffix in _DATABASES else _lines(path, wanted, name)


def _database(path: Path, wanted: str, name: str) -> Iterator[str]:
    """The column of a table, by the names that the database itself has for them."""
    import sqlite3

    table, _, column = wanted.partition(".")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            found = opened.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            if (table,) not in found.fetchall():
                raise InvalidParameter(
                    f'say which table of {quote(path.name)} holds the keys: "{path.name}#table.column"'
                )
            names = [row[0] for row in opened.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if (column or name) not in names and (column or len(names) > 1):
                raise _which(path, [f"{table}.{one}" for one in names])
            here = column or (name if name in names else names[0])
            quoted = ['"' + text.replace('"', '""') + '"' for text in (here, table)]
            rows = opened.execute(f"SELECT {quoted[0]} FROM {quoted[1]}")  # noqa: S608 - names of the file's own schema
            yield from (str(row[0]) for row in rows if row[0] is not None)
    except sqlite3.Error:
        raise InvalidParameter(f"{quote(path.name)} must be an SQLite file, and cannot be read as one") from None


def _lines(path: Path, wanted: str, name: str) -> Iterator[str]:
    suffix = path.suffix.lower()
    with path.open(encoding="utf-8-sig", newline="") as file:
        if suffix == ".txt":
            rows: Iterator[list[str]] = ([line.rstrip("\r\n")] for line in file)
        else:
            rows = csv.reader(file, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
        filled = (row for row in rows if row and row != [""])
        first = next(filled, None)
        if first is None:
            return
        index = 0
        if wanted:
            if wanted not in first:
                raise InvalidParameter(f"the first line of {quote(path.name)} must name a column {quote(wanted)}")
            index = first.index(wanted)
        elif len(first) > 1:
            raise _which(path, first)
        elif first[0].strip().lower() != name.lower():
            yield first[0]
        for row in filled:
            if len(row) != len(first):
                raise InvalidParameter(f"each line of {quote(path.name)} must have {len(first)} fields, like its first")
            yield row[index]


def _parquet(path: Path, wanted: str) -> Iterator[str]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidParameter("keys in Parquet need pyarrow; install it, or write the keys as CSV") from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if wanted not in names and len(names) > 1:
                raise _which(path, names)
            for batch in file.iter_batches(columns=[wanted if wanted in names else names[0]]):
                yield from (str(value) for value in batch.column(0).to_pylist() if value is not None)
    except arrow.ArrowException:
        raise InvalidParameter(f"{quote(path.name)} must be a Parquet file, and cannot be read as one") from None


def _which(path: Path, names: Sequence[str]) -> InvalidParameter:
    file = path.name
    return InvalidParameter(f'{quote(file)} has {len(names)} columns; say which holds the keys: "{file}#{names[0]}"')
