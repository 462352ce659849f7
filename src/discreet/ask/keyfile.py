"""Keys from a public file: one key a line, one column of a table, or `file.db#table.column` of SQLite; and pairs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from discreet.errors import InvalidParameter
from discreet.parameters import quote


def keys_in(written: str, name: str, folder: Path, most: int) -> Iterator[str]:
    """The keys, as texts, of "file" or "file#column"; `name` is the column's, which may be the file's header."""
    path_text, _, wanted = written.partition("#")
    path = folder / path_text
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InvalidParameter(
            f'keys must be a list, a range "1..12" or a file that ends in {", ".join(_READERS)}, got {quote(written)}'
        )
    if not path.is_file():
        raise InvalidParameter(f"the file {quote(path_text)} must exist beside the policy, and does not")
    try:
        for count, key in enumerate(read(path, wanted, name)):
            if count >= most:
                raise InvalidParameter(f"the file {quote(path_text)} must have at most {most:,} keys")
            if "\0" in key:
                raise InvalidParameter(f"the file {quote(path_text)} must not hold NUL characters")
            yield key
    except (OSError, UnicodeError, csv.Error) as error:
        raise InvalidParameter(
            f"the file {quote(path_text)} must be UTF-8 text that can be read, got {type(error).__name__}"
        ) from None


def pairs_in(written: str, folder: Path, most: int) -> Iterator[tuple[str, str]]:
    """The lines after the first of a file of two columns, which its first line names."""
    path = folder / written
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise InvalidParameter(f"it must be a list, or a file that ends in .csv or .tsv, got {quote(written)}")
    if not path.is_file():
        raise InvalidParameter(f"the file {quote(written)} must exist beside the policy, and does not")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            for number, row in enumerate(row for row in rows if row):
                if len(row) != 2 or number > most:
                    raise InvalidParameter(
                        f"the file {quote(written)} must have two columns and {most:,} lines at most"
                    )
                if number:
                    yield row[0], row[1]
    except (OSError, UnicodeError, csv.Error) as error:
        raise InvalidParameter(
            f"the file {quote(written)} must be UTF-8 text that can be read, got {type(error).__name__}"
        ) from None


def _database(path: Path, wanted: str, name: str) -> Iterator[str]:
    """The column of a table, by the names that the database itself has for them."""
    import sqlite3

    table, _, column = wanted.partition(".")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            tables = opened.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            if (table,) not in tables.fetchall():
                raise InvalidParameter(
                    f'say which table of {quote(path.name)} holds the keys: "{path.name}#table.column"'
                )
            names = [row[0] for row in opened.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if (column or name) not in names and (column or len(names) > 1):
                raise _which(path, [f"{table}.{other}" for other in names])
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


def _parquet(path: Path, wanted: str, name: str) -> Iterator[str]:
    import pyarrow as arrow  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import parquet

    wanted = wanted or name
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if wanted not in names and len(names) > 1:
                raise _which(path, names)
            for batch in file.iter_batches(columns=[wanted if wanted in names else names[0]]):
                yield from (str(value) for value in batch.column(0).to_pylist() if value is not None)
    except arrow.ArrowException:
        raise InvalidParameter(f"{quote(path.name)} must be a Parquet file, and cannot be read as one") from None


_READERS: dict[str, Callable[[Path, str, str], Iterator[str]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _lines),
    ".parquet": _parquet,
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _database),
}


def _which(path: Path, names: Sequence[str]) -> InvalidParameter:
    file = path.name
    return InvalidParameter(f'{quote(file)} has {len(names)} columns; say which holds the keys: "{file}#{names[0]}"')
