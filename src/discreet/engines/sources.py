"""Sources that DuckDB opens: files, databases, frames and Arrow objects, relations, a custodian's SELECT.

Frames and Arrow objects, and tables of SQLite, are taken as they are when the engine is made. CSV and JSON lines are
texts throughout (see `textfiles`), and so are the columns that folders such as year=2024 write. Elsewhere, bytes that
are no UTF-8 are replaced.

`version` is a SHA-256 of the content: of the files' bytes, or of the Arrow data; of a relation or SELECT, of its text
or types, its number of rows, and the sum and the XOR of DuckDB's hash of each row. It is for the custodian's ledger:
whoever knows all rows but one could test guesses against it.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb as engine
from sqlglot import exp

from discreet.engines.dialect import SOURCE
from discreet.engines.frames import arrow_hash, arrow_table
from discreet.engines.textfiles import Layout, csv_rows, json_rows
from discreet.errors import InvalidParameter

CSV, JSON, _PARQUET = {".csv", ".tsv", ".txt"}, {".json", ".jsonl", ".ndjson"}, {".parquet", ".pq"}
_PACKED = {".gz", ".zst"}
_BATCH = 2**16
_SQLITE = {
    ("BOOL",): "bool",
    ("DATE", "TIME"): "timestamp[us]",
    ("INT",): "int64",
    ("CHAR", "CLOB", "TEXT"): "string",
    ("REAL", "FLOA", "DOUB", "NUM", "DEC"): "float64",
}
_QUERIES = ("select", "with", "from")
_CHANGED = "the first line of a file is no longer what it was; open the study again"


class Opened(NamedTuple):
    """An open source."""

    rows: engine.DuckDBPyRelation
    content: Callable[[], str]
    """How to hash the rows."""
    typed: bool = True
    """Whether the source has types; files of text have none."""


def opened(source: Any, connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    """The rows of a source, and how to hash them; what cannot be opened is refused."""
    match source:
        case engine.DuckDBPyRelation():
            return Opened(source, lambda: _rows_hash(source, "relation"))
        case str() if source.split(maxsplit=1)[:1] and source.split(maxsplit=1)[0].lower() in _QUERIES:
            return _open_query(source, connection)
        case str() | Path():
            return _open_path(str(source), connection, layout)
        case list() | tuple() if source and all(isinstance(item, str | Path) for item in source):
            return _open_files([file for item in source for file in files_of(str(item))], connection, layout)
        case _:
            table = arrow_table(source)
            return Opened(connection.from_arrow(table), lambda: arrow_hash(table))


def _open_query(query: str, connection: engine.DuckDBPyConnection) -> Opened:
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
        raise InvalidParameter("a source in SQL must be one SELECT")
    names = _text_files(query, connection)
    selects = {name: csv_rows(files_of(name), None, hive=False) for name in names}
    for name, rows in selects.items():
        connection.execute(f"CREATE VIEW {exp.to_identifier(name, quoted=True).sql('duckdb')} AS {rows}")
    relation = connection.sql(query)

    def content() -> str:
        if selects != {name: csv_rows(files_of(name), None, hive=False) for name in names}:
            raise InvalidParameter(_CHANGED)
        return _rows_hash(relation, query)

    return Opened(relation, content)


def _text_files(query: str, connection: engine.DuckDBPyConnection) -> set[str]:
    """The files of CSV that a SELECT names: they are read as all CSV is, each cell a text."""
    [(found,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    names: set[str] = set()
    parts = [json.loads(found)]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            name, function = part.get("table_name") or "", part.get("function_name") or ""
            suffix = suffix_of(Path(name))
            if function.startswith(("read_csv", "read_json", "read_ndjson")) or suffix in JSON:
                raise InvalidParameter(
                    "a SELECT must leave it to discreet how text is read: write FROM 'people.csv', where a cell is a "
                    "text, as in TRY_CAST(age AS DOUBLE); JSON lines must be the source themselves"
                )
            if part.get("type") == "BASE_TABLE" and suffix in CSV:
                names.add(name)
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return names


def _open_path(path: str, connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    file, _, table = (path, "", "") if Path(path).exists() else path.rpartition("#")
    if file and Path(file).is_file():
        with Path(file).open("rb") as opened:
            head = opened.read(16)
        if head == b"SQLite format 3\0":
            return _open_sqlite(Path(file), table, connection)
        if head[8:12] == b"DUCK":
            return _open_database(Path(file), table, connection)
    return _open_files(files_of(path), connection, layout)


def files_of(path: str) -> list[Path]:
    """The files behind a path: itself, those of its kind in a folder and its folders, or those that a glob names."""
    here = Path(path)
    if here.is_dir():
        found = [file for file in here.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
        found = [file for file in found if suffix_of(file) in CSV | JSON | _PARQUET]
    elif here.is_file():
        found = [here]
    else:
        found = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    if not found:
        raise InvalidParameter(f"the source must be a file, a folder or a glob that names files, got {path!r}")
    return sorted(found)


def suffix_of(file: Path) -> str:
    """What kind of file it is: its ending, without that of a packed file."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else "".join(suffixes[-1:])


def _open_files(files: Sequence[Path], connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    suffixes = {suffix_of(file) for file in files}
    empty = [file.name for file in files if not file.stat().st_size]
    if empty and (len(empty) == len(files) or not suffixes <= JSON):  # a part without lines is nothing odd in JSON
        raise InvalidParameter(f"a file must name its columns, and {empty[0]} has 0 bytes; write it again")
    hive = all("=" in file.parent.name for file in files)
    if suffixes <= _PARQUET:
        return Opened(_read_parquet(files, hive, connection, layout), _FilesHash(files, ""))
    rows: Callable[[], str]
    if suffixes <= CSV:
        rows = partial(csv_rows, files, layout.delimiter, hive)
    elif suffixes <= JSON:
        rows = partial(json_rows, files, layout.columns, hive)
    else:
        raise InvalidParameter(f"the files must all be CSV, JSON lines or Parquet, got {', '.join(sorted(suffixes))}")

    def refuse_others() -> None:
        """Refuse files that have since become unsound, or have other columns."""
        if rows() != select:
            raise InvalidParameter(_CHANGED)

    content = _FilesHash(files, layout.delimiter or "", refuse_others)
    select = rows()
    return Opened(connection.sql(select), content, typed=False)


def _read_parquet(
    files: Sequence[Path], hive: bool, connection: engine.DuckDBPyConnection, layout: Layout
) -> engine.DuckDBPyRelation:
    """Files of Parquet; bytes that are no UTF-8 come as question marks, and the columns of folders as texts.

    Files of unequal types are refused, since one row may not fit the type of another file. A time in milliseconds may
    lie beyond the microseconds of DuckDB, which then fails: such columns, and nested ones, are not read.
    """
    names = exp.Array(expressions=[exp.Literal.string(glob.escape(str(file))) for file in files]).sql("duckdb")
    terms = f"hive_partitioning = {str(hive).lower()}, hive_types_autocast = false"
    told = f"SELECT file_name, name, type, converted_type, scale, precision, logical_type FROM parquet_schema({names})"  # noqa: S608
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for file, *part in connection.execute(told).fetchall():
        parts.setdefault(file, []).append(tuple(part))
    if len({tuple(sorted(map(repr, part[1:]))) for part in parts.values()}) > 1:
        raise InvalidParameter("the Parquet files must have the same columns and types; write them again in one schema")
    times = {part[0] for part in next(iter(parts.values())) if "MILLIS=MilliSeconds" in str(part[-1])}
    reader = f"read_parquet({names}, utf8_validation = 'replace', {terms})"
    rows = connection.sql(f"FROM {reader}")
    kinds = {name: str(kind) for name, kind in zip(rows.columns, rows.types, strict=True)}
    far = {name for name in times if kinds.get(name, "").startswith("TIMESTAMP")}
    for name in sorted(far):
        if name.lower() in {column.lower() for column in layout.columns}:
            raise InvalidParameter(
                f"the times of {name!r} must be in microseconds: in milliseconds one row can hold a time that DuckDB "
                "cannot read; write the file again with microseconds"
            )
    left = [name for name, kind in kinds.items() if name not in far and not kind.endswith((")", "]"))]
    left += [name for name, kind in kinds.items() if kind.startswith(("DECIMAL(", "ENUM("))]
    columns = ", ".join(exp.column(name, quoted=True).sql("duckdb") for name in kinds if name in left)
    return connection.sql(f"SELECT {columns} FROM {reader}") if columns else rows  # noqa: S608


def _open_database(file: Path, table: str, connection: engine.DuckDBPyConnection) -> Opened:
    connection.execute(f"ATTACH {exp.Literal.string(str(file)).sql('duckdb')} AS source (READ_ONLY)")
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
    ).fetchall()
    names = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found}
    schema, name = names[_one_table(table, sorted(names))]
    here = exp.Table(
        this=exp.to_identifier(name, quoted=True),
        db=exp.to_identifier(schema, quoted=True),
        catalog=exp.to_identifier("source"),
    )
    return Opened(connection.sql(exp.select("*").from_(here).sql("duckdb")), _FilesHash([file], name))


def _one_table(wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    if wanted or len(names) != 1:
        raise InvalidParameter(f"the source must name a table, as in file.db#table; the file has {', '.join(names)}")
    return names[0]


def _open_sqlite(file: Path, table: str, connection: engine.DuckDBPyConnection) -> Opened:
    """A table of SQLite, by Python's own reader: a value that is not of its column's declared type is missing."""
    import sqlite3

    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    opened = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        opened.text_factory = lambda raw: raw.decode("utf-8", "replace")
        found = opened.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        )
        name = _one_table(table, sorted(row[0] for row in found))
        described = opened.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
        kinds = {column: kind for column, declared in described if (kind := _sqlite_type(declared))}
        types = {column: pa.type_for_alias(kind) for column, kind in kinds.items()}
        quoted = [exp.column(column, quoted=True) for column in kinds]
        here = exp.Table(this=exp.to_identifier(name, quoted=True))
        rows = opened.execute(exp.select(*quoted).from_(here).sql("sqlite"))
        batches = []
        while chunk := rows.fetchmany(_BATCH):
            columns = zip(kinds.items(), zip(*chunk, strict=True), strict=True)
            arrays = [pa.array([_sqlite_value(v, kind) for v in values], types[c]) for (c, kind), values in columns]
            batches.append(pa.record_batch(arrays, names=list(kinds)))
    finally:
        opened.close()
    table = pa.Table.from_batches(batches, pa.schema(list(types.items())))
    return Opened(connection.from_arrow(table), _FilesHash([file], name))


def _sqlite_type(declared: str) -> str | None:
    """The Arrow type for a declared type of SQLite, by its rules of affinity, with dates and truths besides."""
    name = declared.upper()
    for words, kind in _SQLITE.items():
        if any(word in name for word in words):
            return kind
    return None


def _sqlite_value(value: Any, kind: str) -> Any:  # noqa: PLR0911 - one case for each kind
    match kind, value:
        case "int64", int():
            return value
        case "float64", int() | float():
            return float(value)
        case "string", str():
            return value
        case "bool", 0 | 1:
            return bool(value)
        case "timestamp[us]", str():
            try:
                moment = datetime.fromisoformat(value)
                return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
            except (ValueError, OverflowError):
                return None
        case _:
            return None


class _FilesHash:
    """SHA-256 of the bytes of files, and of their names from where they differ; computed again when a file changes.

    `check` is then called first: it may refuse what the files have become.
    """

    def __init__(self, files: Sequence[Path], table: str, check: Callable[[], None] = lambda: None) -> None:
        self.files = list(files)
        self.table = table
        self.check = check
        self.checked = self._stats()[1]
        self.known: tuple[list[tuple[int, int, int, int]], str] | None = None

    def _stats(self) -> tuple[list[Path], list[tuple[int, int, int, int]]]:
        beside = [Path(f"{file}{end}") for file in self.files for end in ("-wal", ".wal")]
        files = [*self.files, *(file for file in beside if file.exists())]
        return files, [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in (file.stat() for file in files)]

    def __call__(self) -> str:
        files, stats = self._stats()
        if self.checked != stats:
            self.check()
            self.checked = stats
        if self.known is None or self.known[0] != stats:
            whole = hashlib.sha256(self.table.encode())
            root = os.path.commonpath([file.parent for file in files])
            for file in files:
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").digest()
                whole.update(str(file.relative_to(root)).encode() if len(files) > 1 else b"")
                whole.update(b"\0" + content)
            self.known = (stats, whole.hexdigest())
        return self.known[1]


def _rows_hash(relation: engine.DuckDBPyRelation, text: str) -> str:
    """A hash of the rows in any order."""
    row = "row_"  # no column's name: that would be hashed in place of the row
    while row in map(str.lower, relation.columns):
        row += "_"
    sql = f"SELECT COUNT(*), SUM(CAST(HASH({row}) AS HUGEINT)), BIT_XOR(HASH({row})) FROM {SOURCE} AS {row}"  # noqa: S608
    found = relation.query(SOURCE, sql).fetchall()  # type: ignore[union-attr, unused-ignore]
    columns = list(zip(relation.columns, map(str, relation.types), strict=True))
    return hashlib.sha256(repr((text, columns, found)).encode()).hexdigest()
