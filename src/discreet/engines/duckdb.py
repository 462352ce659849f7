"""DuckDB beside the caller: files, data frames, Arrow tables, relations, or a custodian's own SELECT.

Nothing is written and nothing is fetched from a network: an engine has a connection of its own in memory, without
extensions from elsewhere and without a folder to spill to; a relation is used on the connection that it came with.
How sources are opened is in `sources`. Lists, structs, blobs, times of day and intervals cannot be asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import duckdb as engine

from discreet.ask.expression import Column, Kind
from discreet.engines.base import ColumnType, Exact, Request, Schema, guarded, refuse_unread
from discreet.engines.sources import opened
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.expectations import check, known_rows
from discreet.engines.sql.keys import units_of, units_of_keys
from discreet.engines.sql.statement import SOURCE, statement
from discreet.engines.textfiles import Layout
from discreet.errors import one_line

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

_CHECKED: set[str] = set()
"""The version of DuckDB, once it is known to do what we rely on."""

_SETTINGS = "SET disabled_optimizers = 'type_pushdown,statistics_propagation'"
"""Else the reader of CSV does casts itself, and drops the line, or fails, where one does not go. And the smallest and
largest value in a Parquet file, which say nothing of NaN, would decide for all rows whether there is any."""

_RELATIONS = threading.Lock()
"""Relations may share a connection, on which SOURCE is the name of one of them at a time."""

_PART = 2**18
"""Rows of a result that are taken over at a time."""

Result = TypeVar("Result")


class DuckDB:
    """An engine over one source; see the module."""

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        """Opens a source; what cannot be opened is refused."""
        self._foreign = isinstance(source, engine.DuckDBPyRelation)
        self._lock = _RELATIONS if self._foreign else threading.Lock()
        self._connection = _connection()
        _guarded("check", lambda: _check_ours(self._connection))
        with self._lock:
            relation, self._content, self._check, typed, unread, self.public_size = _guarded(
                "open", lambda: opened(source, self._connection, layout)
            )
            if self._foreign:
                _guarded("check", lambda: _check_relation(relation))
        # a relation prints rows: no list of attributes may show it
        self._relation: Callable[[], engine.DuckDBPyRelation] = lambda: relation
        self._schema = schema_of(relation.columns, relation.types, typed=typed)
        types = zip(relation.columns, relation.types, strict=True)
        strange = {name: f"its type is {kind.id}" for name, kind in types if name not in self._schema}
        self.unread: Mapping[str, str] = {**unread, **strange}
        """Columns that cannot be asked for, and why."""
        refuse_unread(self.unread, layout.columns)
        if not self._foreign:  # a view is faster than a relation over a relation
            _guarded("open", lambda: relation.create_view(SOURCE))

    def __repr__(self) -> str:
        return f"DuckDB({one_line(', '.join(self._schema))})"

    def schema(self) -> Schema:
        """Names and types of the columns that can be asked for."""
        return self._schema

    def watch(self) -> None:
        """Count how far statements are from now on, without printing it; they take a few percent longer."""
        self._connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def progress(self) -> float:
        """How much of the statement that runs is done, in percent; negative where DuckDB does not know it."""
        return self._connection.query_progress()

    def interrupt(self) -> None:
        """Stop the statement that runs; whoever waits for it gets `EngineFailed`."""
        self._connection.interrupt()

    def version(self) -> str:
        """A text that changes when the content does."""
        with self._lock:
            return _guarded("version", self._content)

    def check(self) -> None:
        """Refuses a source that no longer has the columns and types that it was opened with."""
        with self._lock:
            _guarded("check", self._check)

    def units(self, unit: str | None) -> Exact[int]:
        """How many rows there are, or how many values of the unit column; rows without a unit are nobody's."""
        table = self._run("units", units_of(unit, self._schema), None)
        return Exact(int(table.column(0)[0].as_py()))

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """For each key in the data, how many units have it, a unit having at most `limit` keys; NULL is no key."""
        table = self._run("discover", units_of_keys(column, unit, limit, self._schema).sql, None)
        keys, units = table.columns
        return Exact(_guarded("discover", lambda: dict(zip(keys.to_pylist(), units.to_pylist(), strict=True))))

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list over all groups of integers (of int64 arrays for `Cells`), from one statement."""
        wanted = statement(request, self._schema)
        return Exact(self._run("fetch", wanted.sql, wanted.keys, lambda found: wanted.answered(_parts(found))))

    def _run(
        self, name: str, sql: str, keys: Any, take: Callable[[Any], Any] = lambda found: found.to_arrow_table()
    ) -> Any:
        """What `take` makes of the result: a table, if not told otherwise."""
        with self._lock:
            if not self._foreign:
                return _guarded(name, lambda: take(_selected(self._connection, sql, keys)))
            relation = self._relation()
            _guarded(name, lambda: relation.query(SOURCE, _SETTINGS))  # its maker may have changed them
            return _guarded(name, lambda: take(_queried(relation, sql, keys)))


def _guarded(name: str, work: Callable[[], Result]) -> Result:
    return guarded("DuckDB", name, work)


def _check_ours(connection: engine.DuckDBPyConnection) -> None:
    """Ask the first of our connections, which are all alike."""
    if engine.__version__ in _CHECKED:
        return
    connection.execute(f"CREATE TEMP VIEW {SOURCE} AS {known_rows(DUCKDB)}")
    _check(connection.table(SOURCE), connection.sql)
    connection.execute(f"DROP VIEW {SOURCE}")
    _CHECKED.add(engine.__version__)


def _check_relation(relation: engine.DuckDBPyRelation) -> None:
    """Ask the connection of a relation, which has settings and functions of its maker."""
    relation.query(SOURCE, _SETTINGS)
    known: Any = relation.query(SOURCE, known_rows(DUCKDB))
    _check(known, lambda sql: _queried(known, sql, None))


def _check(known: engine.DuckDBPyRelation, queried: Callable[[str], Any]) -> None:
    """Refuse a connection that does not do what we rely on."""
    advice = "install duckdb>=2.0,<2.1, and open the source where no setting or macro of DuckDB is changed"
    check(
        f"DuckDB {engine.__version__}",
        advice,
        schema_of(known.columns, known.types, typed=True),
        DUCKDB,
        lambda wanted: wanted.answer(queried(wanted.sql).to_arrow_table()),
    )


def _selected(connection: engine.DuckDBPyConnection, sql: str, discreet_keys: Any) -> Any:  # noqa: ARG001
    """A SELECT over the view SOURCE, and a table that DuckDB finds by the name of the parameter."""
    return connection.sql(sql)


def _queried(relation: engine.DuckDBPyRelation, sql: str, discreet_keys: Any) -> Any:  # noqa: ARG001
    """A SELECT over the relation, by the name SOURCE, and a table that DuckDB finds by the name of the parameter."""
    return relation.query(SOURCE, sql)


def _parts(found: engine.DuckDBPyRelation) -> Iterator[Any]:
    """A result as Arrow tables, one at a time."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    for batch in found.to_arrow_reader(_PART):
        yield pa.Table.from_batches([batch])


def _connection() -> engine.DuckDBPyConnection:
    """A database in memory that writes nothing and takes nothing from a network."""
    settings: dict[str, Any] = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    connection = engine.connect(":memory:", config={**settings, "temp_directory": ""})
    connection.execute(_SETTINGS)
    return connection


def schema_of(names: Sequence[str], types: Sequence[Any], *, typed: bool) -> Schema:
    """Columns of DuckDB's types, without those that cannot be asked for."""
    columns = {}
    for name, kind in zip(names, types, strict=True):
        identity, described = str(kind.id), str(kind)
        if identity == "decimal":
            columns[name] = ColumnType("number", described.endswith(",0)"), described, typed)
        elif identity in _KINDS and described != "JSON":
            # the type of an enumeration lists its values
            columns[name] = ColumnType(*_KINDS[identity], "ENUM" if identity == "enum" else described, typed)
    return MappingProxyType(columns)
