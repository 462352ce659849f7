"""The sources of DuckDB: files, databases, frames and Arrow objects, relations, a custodian's SELECT.

Frames and Arrow objects, and SQLite tables, are read when the engine is created. All cells of CSV and JSON lines are
texts (see `textfiles`), and so are the columns of folders such as year=2024. In Parquet and SQLite, invalid UTF-8 is
replaced; in frames and Arrow objects such a text is missing. Relations and views may read only tables: for other
readers DuckDB would guess types from rows, or fail if a row does not fit.

`version` is a SHA-256 of the content: of the bytes of files, or of the Arrow data; for a relation or SELECT, of its
text or types, its number of rows, and the sum and the XOR of DuckDB's hashes of the rows.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb as engine

from discreet.engines.base import MILLISECONDS
from discreet.engines.frames import arrow_hash, arrow_table
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sqlite import one_table, sqlite_table
from discreet.engines.textfiles import (
    Layout,
    csv_rows,
    file_list,
    folder_names,
    folder_terms,
    in_quotes,
    json_rows,
    literal,
    refuse_alike,
)
from discreet.errors import InvalidParameter
from discreet.parameters import quote

CSV, JSON, _PARQUET = {".csv", ".tsv", ".txt"}, {".json", ".jsonl", ".ndjson"}, {".parquet", ".pq"}
_PACKED = {".gz", ".zst"}
_LONGEST_REASON = 400
_CHANGED = "the files no longer have the columns and types that they had; open the study again"
_SERIES = frozenset({"RANGE", "GENERATE_SERIES", "UNNEST", "REPEAT"})
_TABLES = _SERIES | {
    *("SEQ_SCAN", "COLUMN_DATA_SCAN", "DUMMY_SCAN", "EMPTY_RESULT", "CTE_SCAN", "REC_CTE_SCAN", "DELIM_SCAN")
}
"""DuckDB's names for the readers of its own tables, of values in the statement, and of series."""
_RELATION = (
    "a relation must read tables of DuckDB: give the file, the frame or the SELECT itself as the source, or call "
    "materialize() on the relation"
)
_VIEW = (
    "a view must read tables of its own file: use the files that it reads as the source, or create a table, as in "
    "CREATE TABLE people AS FROM the_view"
)
_SELECT = (
    "a SELECT must not say how files are read: write FROM 'people.parquet', or FROM 'people.csv', whose cells are "
    "texts, as in TRY_CAST(age AS DOUBLE); JSON lines and frames must be the source themselves"
)


class Opened(NamedTuple):
    rows: engine.DuckDBPyRelation
    content: Callable[[], str]
    """How to hash the rows."""
    check: Callable[[], None] = lambda: None
    """Refuses a source that has changed since it was opened."""
    typed: bool = True
    """Whether the source has types; text files have none."""
    unread: Mapping[str, str] = MappingProxyType({})
    """Columns that are not read, and why."""
    public_size: bool = True
    """Whether every record is a row; an unreadable line of text is not a row."""


def opened(source: Any, connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    """The rows of a source, and how to hash them; a source that cannot be opened is refused."""
    match source:
        case engine.DuckDBPyRelation():
            return _open_relation(source)
        case str() if source.lower().split(maxsplit=1)[:1] in (["select"], ["with"], ["from"]):
            return _open_query(source, connection, layout)
        case str() | Path():
            return _open_path(str(source), connection, layout)
        case list() | tuple() if source and all(isinstance(item, str | Path) for item in source):
            return _open_files([file for item in source for file in files_of(str(item))], connection, layout)
        case _:
            table, types = arrow_table(source)
            unread = {name: f"its type is {kind}" for name, kind in types.items()}
            return Opened(connection.from_arrow(table), lambda: arrow_hash(table), unread=unread)


def _open_relation(relation: engine.DuckDBPyRelation) -> Opened:
    def check() -> None:
        _refuse_scans(relation, _TABLES, _RELATION)
        if _types(relation.query(SOURCE, f"FROM {SOURCE}")) != types:
            raise InvalidParameter("the relation has other columns or types than before; open the study again")

    types = _types(relation)
    check()
    return Opened(relation, lambda: _rows_hash(relation, "relation"), check)


def _types(relation: Any) -> list[tuple[str, str]]:
    return list(zip(relation.columns, map(str, relation.types), strict=True))


def _refuse_scans(relation: Any, readers: Set[str], advice: str) -> None:
    """Refuse a relation whose plan has other readers, the leaves of the plan, than these."""
    plans = dict(relation.query(SOURCE, f"EXPLAIN (FORMAT json) FROM {SOURCE}").fetchall())
    parts = json.loads(plans["physical_plan"])
    while parts:
        part = parts.pop()
        parts += part["children"]
        if not part["children"] and part["name"] not in readers:
            raise InvalidParameter(advice)


def _open_query(query: str, connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    statements = _as_written(lambda: connection.extract_statements(query))
    if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
        raise InvalidParameter("a source in SQL must be one SELECT")
    names = _files_named(query, connection)

    def rows() -> dict[str, str]:
        return {name: _rows_named(name, connection, layout) for name in sorted(names)}

    def check() -> None:
        if rows() != selects or _types(connection.sql(query)) != types:
            raise InvalidParameter(_CHANGED)

    selects = rows()
    for name, select in selects.items():
        connection.execute(f"CREATE VIEW {in_quotes(name)} AS {select}")
    relation = _as_written(lambda: connection.sql(query))
    types = _types(relation)
    decoded = {"PYTHON_ARROW_SCAN"} if layout.encoding not in (None, "utf-8") else set()
    _refuse_scans(relation, _TABLES | {"READ_CSV", "READ_PARQUET"} | decoded, _SELECT)
    lines = any(suffix_of(Path(name)) in CSV for name in names)
    return Opened(relation, lambda: _rows_hash(relation, query), check, public_size=not lines)


def _rows_named(name: str, connection: engine.DuckDBPyConnection, layout: Layout) -> str:
    """The SELECT of the rows of files that a custodian's SELECT names by a path relative to the policy."""
    files = files_of(str((layout.folder or Path()) / name))
    if suffix_of(Path(name)) in CSV:
        return csv_rows(files, layout, False, connection)
    return _parquet_rows(files, False, connection)[0]


def _as_written(work: Callable[[], Any]) -> Any:
    """The result of `work`; DuckDB's objection to the text of a SELECT is passed on, before it has read any row.

    These messages are about the statement, its columns and types. Messages about values are not passed on.
    """
    try:
        return work()
    except (engine.ParserException, engine.BinderException, engine.CatalogException) as error:
        reason = str(error).partition("\n\nLINE ")[0].strip()
    reason = " ".join(reason.split())[:_LONGEST_REASON]
    raise InvalidParameter(f"the SELECT of the source cannot be read: {reason}")


def _files_named(query: str, connection: engine.DuckDBPyConnection) -> set[str]:
    """The CSV and Parquet files that a SELECT names, which are read like other CSV and Parquet files."""
    [(tree,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    names: set[str] = set()
    parts = [json.loads(tree)]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            name, kind = part.get("table_name") or "", part.get("type")
            function = part["function"]["function_name"] if kind == "TABLE_FUNCTION" else "range"
            suffix = suffix_of(Path(name)) if kind == "BASE_TABLE" else ""
            if function.upper() not in _SERIES or suffix in JSON:
                raise InvalidParameter(_SELECT)
            if suffix in CSV | _PARQUET:
                names.add(name)
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return names


def _open_path(path: str, connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    file, _, table = (path, "", "") if Path(path).exists() else path.rpartition("#")
    if file and Path(file).is_file():
        with Path(file).open("rb") as opened:
            head = opened.read(16)
        if head == b"SQLite format 3\0":
            rows, name = sqlite_table(Path(file), table)
            content = _FilesHash([Path(file)], name, _refuse_changed)
            return Opened(connection.from_arrow(rows), content, content.check)
        if head[8:12] == b"DUCK":
            return _open_database(Path(file), table, connection)
    return _open_files(files_of(path), connection, layout)


def files_of(path: str) -> list[Path]:
    """The files of a path: the file, all data files in and below a folder, or the files of a glob."""
    root = Path(path)
    if root.is_dir():
        files = [file for file in root.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
        files = [file for file in files if suffix_of(file) in CSV | JSON | _PARQUET]
    elif root.is_file():
        files = [root]
    else:
        files = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    if not files:
        raise InvalidParameter(f"the source must be a file, a folder or a glob that names files, got {path!r}")
    return sorted(files)


def suffix_of(file: Path) -> str:
    """The suffix of a file that says its format, without the suffix of compression."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else "".join(suffixes[-1:])


def _open_files(files: Sequence[Path], connection: engine.DuckDBPyConnection, layout: Layout) -> Opened:
    suffixes = {suffix_of(file) for file in files}
    empty = [file.name for file in files if not file.stat().st_size]
    if empty and (len(empty) == len(files) or not suffixes <= JSON):  # an empty part is normal in JSON
        raise InvalidParameter(f"a file must name its columns, and {empty[0]} is empty; write it again")
    hive = all("=" in file.parent.name for file in files)
    text = not suffixes <= _PARQUET

    def read() -> tuple[str, dict[str, str], list[tuple[str, str]]]:
        """The SELECT of the rows, the columns that are not read, and the types of the other columns."""
        if not text:
            select, unread = _parquet_rows(files, hive, connection)
        elif suffixes <= CSV:
            select, unread = csv_rows(files, layout, hive, connection), {}
        elif suffixes <= JSON:
            select, unread = json_rows(files, layout.columns, hive), {}
        else:
            kinds = ", ".join(sorted(suffixes))
            raise InvalidParameter(f"the files must all be CSV, JSON lines or Parquet, got {kinds}")
        return select, unread, _types(connection.sql(select))

    def refuse_others() -> None:
        """Refuse files that are no longer accepted, or have other columns or types."""
        if read() != first_read:
            raise InvalidParameter(_CHANGED)

    if layout.encoding not in (None, "utf-8") and not suffixes <= CSV:
        raise InvalidParameter("encoding: only CSV has it; JSON lines are UTF-8, and Parquet has its own; leave it out")
    terms = f"{layout.delimiter or ''}{layout.encoding or ''}" if text else ""
    content = _FilesHash(files, terms, refuse_others, hive)
    first_read = read()
    return Opened(connection.sql(first_read[0]), content, content.check, not text, first_read[1], public_size=not text)


def _parquet_rows(
    files: Sequence[Path], hive: bool, connection: engine.DuckDBPyConnection
) -> tuple[str, dict[str, str]]:
    """The SELECT of the rows of Parquet files, and the columns that are not read.

    Invalid UTF-8 becomes question marks, and the columns of folders are texts. Files with different types are refused,
    because a row may not fit the type of another file. A time in milliseconds may exceed the microseconds of DuckDB,
    which then fails: such columns, and nested columns, are not read.
    """
    names, folders = file_list(files), folder_terms(hive)
    fields = "file_name, name, num_children, type, converted_type, scale, precision, logical_type"
    schemas = f"SELECT {fields} FROM parquet_schema({names})"  # noqa: S608
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for file, *part in connection.execute(schemas).fetchall():
        parts.setdefault(file, []).append(tuple(part))
    if len({tuple(sorted(map(repr, part[1:]))) for part in parts.values()}) > 1:
        raise InvalidParameter("the Parquet files must have the same columns and types; write them with one schema")
    own = _outer_names([part[:2] for part in next(iter(parts.values()))])
    refuse_alike([*own, *(name for name in folder_names(files[0]) if hive and name not in own)])
    times = {part[0] for part in next(iter(parts.values())) if "MILLIS=MilliSeconds" in str(part[-1])}
    reader = f"read_parquet({names}, utf8_validation = 'replace', {folders})"
    columns, unread = [], {}
    for name, kind in _types(connection.sql(f"FROM {reader}")):
        if name in times and kind.startswith("TIMESTAMP"):
            unread[name] = MILLISECONDS
        elif kind.endswith((")", "]")) and not kind.startswith(("DECIMAL(", "ENUM(")):
            unread[name] = f"its type is {'list' if kind.endswith(']') else kind.partition('(')[0].lower()}"
        else:
            columns.append(in_quotes(name))
    if not columns:
        reasons = "; ".join(f"{quote(name)} is not read: {reason}" for name, reason in unread.items())
        raise InvalidParameter(f"{files[0].name} must have a column that can be read; {reasons}")
    return f"SELECT {', '.join(columns)} FROM {reader}", unread  # noqa: S608


def _outer_names(parts: Sequence[tuple[Any, ...]]) -> list[str]:
    """The top-level columns of a Parquet schema, whose names are listed depth first."""
    names: list[str] = []
    within = [1]  # the number of remaining names at each depth
    for name, children in parts:
        if len(within) == 2:
            names.append(name)
        within[-1] -= 1
        within.append(children or 0)
        while within and not within[-1]:
            within.pop()
    return names


def _open_database(file: Path, table: str, connection: engine.DuckDBPyConnection) -> Opened:
    connection.execute(f"ATTACH {literal(str(file))} AS source (READ_ONLY)")
    rows = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
    ).fetchall()
    names = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in rows}
    schema, name = names[one_table(table, sorted(names))]
    relation = connection.sql(f"SELECT * FROM source.{in_quotes(schema)}.{in_quotes(name)}")  # noqa: S608
    _refuse_scans(relation, _TABLES, _VIEW)
    content = _FilesHash([file], f"{schema}.{name}", _refuse_changed)
    return Opened(relation, content, content.check)


def _refuse_changed() -> None:
    """Refuse a database whose rows are still those of when it was opened, although its file is another one now."""
    raise InvalidParameter("the database has changed since it was opened; open the study again")


class _FilesHash:
    """The SHA-256 of the bytes of files and of the relevant parts of their names; computed again when a file changes.

    These parts are the differing ends of their paths, their suffixes, and, in a `hive`, the values in the names of
    folders. `refuse` may refuse files that have changed since they were checked.
    """

    def __init__(
        self, files: Sequence[Path], table: str, refuse: Callable[[], None] = lambda: None, hive: bool = False
    ) -> None:
        self.files = list(files)
        self.table, self.hive = table, hive
        self.refuse = refuse
        self.checked = self._stats()[1]
        self.known: tuple[list[tuple[int, int, int, int]], str] | None = None

    def _stats(self) -> tuple[list[Path], list[tuple[int, int, int, int]]]:
        beside = [Path(f"{file}{end}") for file in self.files for end in ("-wal", ".wal")]
        files = [*self.files, *(file for file in beside if file.exists())]
        return files, [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in (file.stat() for file in files)]

    def check(self) -> None:
        _, stats = self._stats()
        if self.checked != stats:
            self.refuse()
            self.checked = stats

    def __call__(self) -> str:
        files, stats = self._stats()
        if self.known is None or self.known[0] != stats:
            whole = hashlib.sha256(self.table.encode())
            root = os.path.commonpath([file.parent for file in files])
            for file in files:
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").digest()
                name = str(file.relative_to(root)) if len(files) > 1 else ""
                endings = [suffix.lower() for suffix in file.suffixes]
                folders = [part for part in file.parent.parts if "=" in part] if self.hive else []
                whole.update(repr((name, endings, folders)).encode() + b"\0" + content)
            self.known = (stats, whole.hexdigest())
        return self.known[1]


def _rows_hash(relation: engine.DuckDBPyRelation, text: str) -> str:
    row = "row_"  # not the name of a column, which would be hashed instead of the row
    while row in map(str.lower, relation.columns):
        row += "_"
    sql = f"SELECT COUNT(*), SUM(CAST(HASH({row}) AS HUGEINT)), BIT_XOR(HASH({row})) FROM {SOURCE} AS {row}"  # noqa: S608
    rows: Any = relation.query(SOURCE, sql)
    return hashlib.sha256(repr((text, _types(relation), rows.fetchall())).encode()).hexdigest()
