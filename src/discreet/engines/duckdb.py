"""DuckDB in the caller's process: files, data frames, Arrow tables, relations, or a custodian's own SELECT.

Nothing is written and nothing is fetched from a network: an engine has its own connection in memory, without further
extensions and without a folder for temporary files; a relation is used on its own connection. `sources` opens the
sources. Lists, structs, blobs, times of day and intervals are not supported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import duckdb as engine
import pyarrow as pa

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.engines.base import refuse_unread
from discreet.engines.sources import opened
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.sql.expectations import check, known_rows
from discreet.engines.textfiles import Layout

_WHOLE = "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint"
_DATES = ("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone")
_KINDS: Mapping[str, tuple[Kind, bool]] = {
    **dict.fromkeys(_WHOLE.split(), ("number", True)),
    **dict.fromkeys(("double", "float"), ("number", False)),
    **dict.fromkeys(("varchar", "enum", "uuid"), ("text", False)),
    **dict.fromkeys(_DATES, ("date", False)),
    "boolean": ("truth", False),
}
"""DuckDB's types in the row language."""

_CHECKED: set[str] = set()
"""The version of DuckDB, once it has passed the test."""

_SETTINGS = "SET disabled_optimizers = 'type_pushdown,statistics_propagation'"
"""Otherwise the CSV reader does casts itself, and drops the line, or fails, if a cast fails. And the smallest and
largest values in a Parquet file, which do not include NaN, would decide for all rows whether there is a NaN."""

_RELATIONS = threading.Lock()
"""Relations may share a connection, on which only one of them at a time can be called SOURCE."""

_PART = 2**18
"""Rows of a result that are read at a time."""

_FEW_KEYS, _MOST_BOUND = 10_000, 64
"""The most keys of a statement that stays bound, because it holds them, and the most of such statements."""


class DuckDB(SQLEngine):
    """An engine over one source; see the module."""

    dialect = DUCKDB

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        self._foreign = isinstance(source, engine.DuckDBPyRelation)
        self._lock = _RELATIONS if self._foreign else threading.Lock()
        self._connection = _connection()
        self._bound: dict[str, tuple[Any, Callable[[], Any]]] = {}
        """By its text, each statement that was run before, with the table of its keys."""
        self._guarded("check", lambda: _check_ours(self._connection))
        with self._lock:
            relation, self._content, self._check, typed, unread, self.public_size = self._guarded(
                "open", lambda: opened(source, self._connection, layout)
            )
            if self._foreign:
                self._guarded("check", lambda: _check_relation(relation))
        # a relation prints rows, so it must not be an attribute
        self._relation: Callable[[], engine.DuckDBPyRelation] = lambda: relation
        self._schema = schema_of(relation.columns, relation.types, typed=typed)
        types = zip(relation.columns, relation.types, strict=True)
        strange = {name: f"its type is {kind.id}" for name, kind in types if name not in self._schema}
        self.unread: Mapping[str, str] = {**unread, **strange}
        """The columns that are not supported, and why."""
        refuse_unread(self.unread, layout.columns)
        if not self._foreign:  # a view is faster than a relation over a relation
            self._guarded("open", lambda: relation.create_view(SOURCE))

    def watch(self) -> None:
        """Measure the progress of statements from now on, without printing it; they take a few percent longer."""
        self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def progress(self) -> float:
        """The progress of the running statement in percent; negative if DuckDB does not know it."""
        return self._connection.query_progress()

    def interrupt(self) -> None:
        """Stop the running statement, which then raises `EngineFailed`."""
        self._connection.interrupt()

    def version(self) -> str:
        with self._lock:
            return self._guarded("version", self._content)

    def check(self) -> None:
        with self._lock:
            self._guarded("check", self._check)

    @contextmanager
    def _tables(self, sql: str, keys: Any, _stored: str | None) -> Iterator[Iterator[Any]]:
        with self._lock:
            if not self._foreign:
                yield _rows(self._statement(sql, keys))
                return
            relation = self._relation()
            relation.query(SOURCE, _SETTINGS)  # its owner may have changed them
            yield _rows(_bound(relation, sql, keys))

    def _statement(self, sql: str, keys: Any) -> Any:
        """A SELECT as a relation, which reads the rows anew whenever it runs; DuckDB takes milliseconds to bind one."""
        table, relation = self._bound.get(sql, (None, None))
        if relation is not None and table is keys:
            return relation()
        bound = _bound(self._connection, sql, keys)
        if keys is None or len(keys) <= _FEW_KEYS:
            if len(self._bound) >= _MOST_BOUND:
                del self._bound[next(iter(self._bound))]
            self._bound[sql] = keys, lambda: bound  # a relation prints rows
        return bound


def _check_ours(connection: engine.DuckDBPyConnection) -> None:
    """Test the first of our connections, which are all alike."""
    if engine.__version__ not in _CHECKED:
        _check(connection.sql(known_rows(DUCKDB)))
        _CHECKED.add(engine.__version__)


def _check_relation(relation: engine.DuckDBPyRelation) -> None:
    """Test the connection of a relation, which has the settings and functions of its owner."""
    relation.query(SOURCE, _SETTINGS)
    _check(relation.query(SOURCE, known_rows(DUCKDB)))


def _check(known_source: Any) -> None:
    """Refuse a connection that fails the test."""
    check(
        f"DuckDB {engine.__version__}",
        "install duckdb>=2.0,<2.1, and open the source where no setting or macro of DuckDB is changed",
        schema_of(known_source.columns, known_source.types, typed=True),
        DUCKDB,
        lambda query: query.answer(_rows(_bound(known_source, query.sql, None))),
    )


def _bound(
    source: engine.DuckDBPyConnection | engine.DuckDBPyRelation,
    sql: str,
    discreet_keys: Any,  # noqa: ARG001 - DuckDB finds the table by the name of the parameter
) -> Any:
    """A SELECT over a relation, or over the view SOURCE of a connection."""
    return source.query(SOURCE, sql) if isinstance(source, engine.DuckDBPyRelation) else source.sql(sql)


def _rows(bound: Any) -> Iterator[Any]:
    """The rows of a SELECT as Arrow tables."""
    for batch in bound.to_arrow_reader(_PART):
        yield pa.Table.from_batches([batch])


def _connection() -> engine.DuckDBPyConnection:
    """A database in memory that writes nothing and uses no network."""
    settings: dict[str, Any] = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    connection = engine.connect(":memory:", config={**settings, "temp_directory": ""})
    connection.execute(_SETTINGS)
    return connection


def schema_of(names: Sequence[str], types: Sequence[Any], *, typed: bool) -> Schema:
    """The schema of columns with DuckDB's types, without unsupported columns."""
    columns = {}
    for name, kind in zip(names, types, strict=True):
        identity, described = str(kind.id), str(kind)
        if identity == "decimal":
            columns[name] = ColumnType("number", described.endswith(",0)"), described, typed)
        elif identity in _KINDS and described != "JSON":
            # the name of an enumeration's type lists its values
            columns[name] = ColumnType(*_KINDS[identity], "ENUM" if identity == "enum" else described, typed)
    return MappingProxyType(columns)
