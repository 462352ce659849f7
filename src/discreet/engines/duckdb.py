"""DuckDB beside the caller: files, data frames, Arrow tables, relations, or a custodian's own SELECT.

Nothing is written and nothing is fetched from a network: an engine has a connection of its own in memory, without
extensions from elsewhere and without a folder to spill to; a relation is used on the connection that it came with.
Frames and Arrow objects, and tables of SQLite, are taken as they are when the engine is made.

The schema (names and types) is public. For CSV and JSON lines DuckDB reads rows to tell the types; a row that then
cannot be read as these types is left out. Lists, structs, blobs, times of day and intervals cannot be asked for.

`version` is a SHA-256 of the content: of the files' bytes, or of the Arrow data; of a relation or SELECT, of its text
or types, its number of rows, and the sum and the XOR of DuckDB's hash of each row. It is for the custodian's ledger:
whoever knows all rows but one could test guesses against it.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import duckdb as engine
from sqlglot import exp

from discreet.ask.expression import Kind
from discreet.engines.base import ColumnType, Exact, Request, Schema
from discreet.engines.keys import units_of_keys
from discreet.engines.statement import SOURCE, statement
from discreet.engines.translate import Translator, unit_value
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter

_KINDS: Mapping[str, tuple[Kind, bool]] = {
    **dict.fromkeys(
        (
            "tinyint",
            "smallint",
            "integer",
            "bigint",
            "hugeint",
            "utinyint",
            "usmallint",
            "uinteger",
            "ubigint",
            "uhugeint",
        ),
        ("number", True),
    ),
    **dict.fromkeys(("double", "float"), ("number", False)),
    **dict.fromkeys(("varchar", "enum", "uuid"), ("text", False)),
    **dict.fromkeys(
        ("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"),
        ("date", False),
    ),
    "boolean": ("truth", False),
}
"""What DuckDB's types are in the row language."""

_CSV, _JSON, _PARQUET = {".csv", ".tsv", ".txt"}, {".json", ".jsonl", ".ndjson"}, {".parquet", ".pq"}
_PACKED = {".gz", ".zst"}
_BATCH = 2**16
_SQLITE = {
    ("BOOL",): "bool_",
    ("DATE", "TIME"): "timestamp[us]",
    ("INT",): "int64",
    ("CHAR", "CLOB", "TEXT"): "string",
    ("REAL", "FLOA", "DOUB", "NUM", "DEC"): "float64",
}
_QUERIES = ("select", "with", "from")


Result = TypeVar("Result")
Opened: TypeAlias = tuple[engine.DuckDBPyRelation, Callable[[], str]]
"""Rows, and how to hash their content."""


class DuckDB:
    """An engine over one source; see the module."""

    def __init__(self, source: Any) -> None:
        """Opens a source; what cannot be opened is refused."""
        self._lock = threading.Lock()
        self._relation, self._content = _guarded("open", lambda: _open(source))
        self._schema = _schema(self._relation)

    def __repr__(self) -> str:
        return f"DuckDB({', '.join(self._schema)})"

    def schema(self) -> Schema:
        """Names and types of the columns that can be asked for."""
        return self._schema

    def version(self) -> str:
        """A text that changes when the content does."""
        with self._lock:
            return _guarded("version", self._content)

    def units(self, unit: str | None) -> Exact[int]:
        """How many rows there are, or how many values of the unit column; rows without a unit are nobody's."""
        tree = exp.select(exp.Count(this=exp.Star())).from_(SOURCE)
        if unit is not None:
            translator = Translator(self._schema)
            value, there = unit_value(translator.source(unit), self._schema[unit])
            column = exp.alias_(exp.column(unit, quoted=True), translator.columns[unit])
            rows = exp.select(column).from_(SOURCE).subquery("source")
            values = exp.select(exp.alias_(value, "unit")).distinct().from_(rows).where(there)
            tree = exp.select(exp.Count(this=exp.Star())).from_(values.subquery("units"))
        table = self._run("units", tree.sql("duckdb"), None)
        return Exact(int(table.column(0)[0].as_py()))

    def discover(self, column: str, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """For each key in the data, how many units have it, a unit having at most `limit` keys; NULL is no key."""
        table = self._run("discover", units_of_keys(column, unit, limit, self._schema), None)
        keys, units = table.columns
        return Exact(_guarded("discover", lambda: dict(zip(keys.to_pylist(), units.to_pylist(), strict=True))))

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list over all groups of integers (of int64 arrays for `Cells`), from one statement."""
        wanted = statement(request, self._schema)
        table = self._run("fetch", wanted.sql, wanted.keys)
        return Exact(_guarded("fetch", lambda: wanted.answer(table)))

    def _run(self, name: str, sql: str, keys: Any) -> Any:
        with self._lock:
            return _guarded(name, lambda: _queried(self._relation, sql, keys).to_arrow_table())


def _guarded(name: str, work: Callable[[], Result]) -> Result:
    """The result of `work`; what goes wrong is told by name, without DuckDB's own words, which may quote a row."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:
        raise EngineFailed(f"DuckDB could not do the statement {name!r}") from None


def _queried(relation: engine.DuckDBPyRelation, sql: str, discreet_keys: Any) -> Any:  # noqa: ARG001
    """A SELECT over the relation, by the name SOURCE, and a table that DuckDB finds by the name of the parameter."""
    return relation.query(SOURCE, sql)


def _connection() -> engine.DuckDBPyConnection:
    """A database in memory that writes nothing and takes nothing from a network."""
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": "",
    }
    return engine.connect(":memory:", config=settings)


def _schema(relation: engine.DuckDBPyRelation) -> Schema:
    columns = {}
    for name, kind in zip(relation.columns, relation.types, strict=True):
        identity, described = str(kind.id), str(kind)
        if identity == "decimal":
            columns[name] = ColumnType("number", described.endswith(",0)"), described)
        elif identity in _KINDS and described != "JSON":
            # the type of an enumeration lists its values
            columns[name] = ColumnType(*_KINDS[identity], "ENUM" if identity == "enum" else described)
    return MappingProxyType(columns)


def _open(source: Any) -> Opened:
    match source:
        case engine.DuckDBPyRelation():
            return source, lambda: _rows_hash(source, "relation")
        case str() if source.split(maxsplit=1)[:1] and source.split(maxsplit=1)[0].lower() in _QUERIES:
            return _open_query(source)
        case str() | Path():
            return _open_path(str(source))
        case list() | tuple() if source and all(isinstance(item, str | Path) for item in source):
            return _open_files([file for item in source for file in _files(str(item))])
        case _:
            return _open_object(source)


def _open_query(query: str) -> Opened:
    connection = _connection()
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != engine.StatementType.SELECT:
        raise InvalidParameter("a source in SQL must be one SELECT")
    relation = connection.sql(query)
    return relation, lambda: _rows_hash(relation, query)


def _open_path(path: str) -> Opened:
    file, _, table = (path, "", "") if Path(path).exists() else path.rpartition("#")
    if file and Path(file).is_file():
        with Path(file).open("rb") as opened:
            head = opened.read(16)
        if head == b"SQLite format 3\0":
            return _open_sqlite(Path(file), table)
        if head[8:12] == b"DUCK":
            return _open_database(Path(file), table)
    return _open_files(_files(path))


def _files(path: str) -> list[Path]:
    """The files behind a path: itself, those of its kind in a folder and its folders, or those that a glob names."""
    here = Path(path)
    if here.is_dir():
        found = [file for file in here.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))]
        found = [file for file in found if _suffix(file) in _CSV | _JSON | _PARQUET]
    elif here.is_file():
        found = [here]
    else:
        found = [Path(name) for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    if not found:
        raise InvalidParameter(f"the source must be a file, a folder or a glob that names files, got {path!r}")
    return sorted(found)


def _suffix(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else "".join(suffixes[-1:])


def _open_files(files: Sequence[Path]) -> Opened:
    suffixes = {_suffix(file) for file in files}
    names = [glob.escape(str(file)) for file in files]
    connection = _connection()
    folders: dict[str, Any] = {"hive_partitioning": all("=" in file.parent.name for file in files)}
    if suffixes <= _PARQUET:
        relation = connection.read_parquet(names, **folders)  # type: ignore[arg-type, unused-ignore]
    elif suffixes <= _CSV:
        separator = {"sep": "\t"} if suffixes == {".tsv"} else {}
        relation = connection.read_csv(names, ignore_errors=True, **separator, **folders)  # type: ignore[arg-type, unused-ignore]
    elif suffixes <= _JSON:
        relation = connection.read_json(names, format="newline_delimited", ignore_errors=True)  # type: ignore[arg-type, unused-ignore]
    else:
        raise InvalidParameter(f"the files must all be CSV, JSON lines or Parquet, got {', '.join(sorted(suffixes))}")
    return relation, _FilesHash(files, "")


def _open_database(file: Path, table: str) -> Opened:
    connection = _connection()
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
    return connection.sql(exp.select("*").from_(here).sql("duckdb")), _FilesHash([file], name)


def _one_table(wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    if wanted or len(names) != 1:
        raise InvalidParameter(f"the source must name a table, as in file.db#table; the file has {', '.join(names)}")
    return names[0]


def _open_sqlite(file: Path, table: str) -> Opened:
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
    return _connection().from_arrow(table), _FilesHash([file], name)


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
        case "bool_", 0 | 1:
            return bool(value)
        case "timestamp[us]", str():
            try:
                moment = datetime.fromisoformat(value)
                return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
            except (ValueError, OverflowError):
                return None
        case _:
            return None


def _open_object(source: Any) -> Opened:
    """A pandas or polars frame or an Arrow object, as an Arrow table."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    module = type(source).__module__.partition(".")[0]
    if module == "pandas":
        source = pa.Table.from_pandas(source.copy(), preserve_index=False)  # the frame may change, the copy cannot
    elif module == "polars":
        source = (source.collect() if hasattr(source, "collect") else source).to_arrow()
    elif hasattr(source, "read_all"):
        source = source.read_all()
    elif isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif hasattr(source, "to_table"):
        source = source.to_table()
    if not isinstance(source, pa.Table):
        raise InvalidParameter(
            "the source must be a path, a SELECT, a pandas or polars frame, an Arrow table or a DuckDB relation, "
            f"got a {type(source).__name__}"
        )
    return _connection().from_arrow(source), lambda: _arrow_hash(source)


class _FilesHash:
    """SHA-256 of the bytes of files, and of their names from where they differ; computed again when a file changes."""

    def __init__(self, files: Sequence[Path], table: str) -> None:
        self.files = list(files)
        self.table = table
        self.known: tuple[list[tuple[int, int, int, int]], str] | None = None

    def __call__(self) -> str:
        beside = [Path(f"{file}{end}") for file in self.files for end in ("-wal", ".wal")]
        files = [*self.files, *(file for file in beside if file.exists())]
        stats = [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in (file.stat() for file in files)]
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


def _arrow_hash(table: Any) -> str:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    digest = hashlib.sha256()

    class Sink(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            digest.update(data)
            return len(data)

    with pa.PythonFile(Sink(), mode="w") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return digest.hexdigest()


def _rows_hash(relation: engine.DuckDBPyRelation, text: str) -> str:
    """A hash of the rows in any order."""
    sql = f"SELECT COUNT(*), SUM(CAST(HASH({SOURCE}) AS HUGEINT)), BIT_XOR(HASH({SOURCE})) FROM {SOURCE}"  # noqa: S608
    found = _queried(relation, sql, None).fetchall()
    columns = list(zip(relation.columns, map(str, relation.types), strict=True))
    return hashlib.sha256(repr((text, columns, found)).encode()).hexdigest()
