"""DuckDB in the caller's process: files, data frames, Arrow tables, relations, or a custodian's own
SELECT.

Nothing is written and nothing is fetched from a network: an engine has its own connection in
memory, without further extensions and without a folder for temporary files; a relation is used on
its own connection. `sources` opens the sources. Lists, structs, blobs, times of day and intervals
are not supported.
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb as engine
import pyarrow as pa

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.engines.base import Failure, in_use, late, refuse_unread
from discreet.engines.endings import PARQUET, suffix_of
from discreet.engines.sources import is_select, opened, stamp_of
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.sql.expectations import check, known_rows
from discreet.engines.sqlite import is_locked, sqlite_failure
from discreet.engines.textfiles import Layout
from discreet.engines.unreadable import why_unreadable
from discreet.engines.unusable import DUCKDB as DUCKDB_EXPRESSIONS
from discreet.engines.unusable import unusable
from discreet.errors import DiscreetError, SourceChanged, Stopped

_WHOLE = "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint"
_DATES = (
    "date",
    "timestamp",
    "timestamp_s",
    "timestamp_ms",
    "timestamp_ns",
    "timestamp with time zone",
)
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
"""Otherwise the CSV reader does casts itself, and drops the line, or fails, if a cast fails. And
the smallest and largest values in a Parquet file, which do not include NaN, would decide for all
rows whether there is a NaN."""

_RELATIONS = threading.Lock()
"""Relations may share a connection, on which only one of them at a time can be called SOURCE."""

_FILES = {
    "Could not set lock on file|Unique file handle conflict|with a different configuration": (
        "the DuckDB file of the source is open in a process that may write to it: close it there,"
        " or name a copy of it"
    ),
    "we can only read storage versions": (
        "the DuckDB file of the source is of a newer version of DuckDB: upgrade duckdb, or export"
        " its table to Parquet"
    ),
    "without a key": (
        "the DuckDB file of the source is encrypted: name a copy without encryption as the source"
    ),
    "Corrupt database file|Could not read enough bytes": (
        "the DuckDB file of the source is damaged or cut: put back an intact copy, or write it"
        " again"
    ),
}
"""What DuckDB's words about a file mean; they are not passed on."""

_TOO_LONG = "maximum execution time"
"""DuckDB's words for a statement that its time limit has ended."""

_PART = 2**18
"""Rows of a result that are read at a time."""

_COMPUTATION = (
    "the SELECT, view or relation of the source fails on a row, or one of its files is damaged: use"
    " TRY_CAST and functions that give NULL, or write the file again"
)

_FEW_KEYS, _MOST_BOUND = 10_000, 64
"""The most keys of a statement that stays bound, because it holds them, and the most of such
statements.
"""


class DuckDB(SQLEngine):
    """An engine over one source; see the module."""

    dialect = DUCKDB

    def __init__(self, source: Any, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        self._foreign = issubclass(type(source), engine.DuckDBPyRelation)
        self._lock = _RELATIONS if self._foreign else threading.Lock()
        self._connection = _connection()
        self._files: list[Path] = []
        """The files of the source, as far as they are known."""
        self._computed = self._foreign or is_select(source)
        """Whether the rows are computed by the custodian's own expressions, which may fail."""
        self._seconds = layout.time_limit
        self._limit = f"SET max_execution_time = {math.ceil(1000 * self._seconds)}"
        self._connection.execute(self._limit)
        self._bound: dict[str, tuple[Any, Callable[[], Any]]] = {}
        """By its text, each statement that was run before, with the table of its keys."""
        self._guarded("check", lambda: _check_ours(self._connection))
        with self._lock:
            found = self._guarded(
                "open", lambda: opened(source, self._connection, layout, self._files)
            )
            (
                relation,
                self._check,
                self._stamp,
                self._words,
                self._live,
                typed,
                unread,
                self.chosen,
            ) = found
            if self._foreign:
                self._guarded("check", lambda: _check_relation(relation))
        # a relation prints rows, so it must not be an attribute
        self._relation: Callable[[], engine.DuckDBPyRelation] = lambda: relation
        self._schema = schema_of(relation.columns, relation.types, typed=typed)
        types = zip(relation.columns, relation.types, strict=True)
        strange = {
            name: unusable(name, _word(kind), DUCKDB_EXPRESSIONS, self._where_written())
            for name, kind in types
            if name not in self._schema
        }
        self.unread = {**unread, **strange}
        refuse_unread(self.unread, layout.columns)
        self._used = in_use(self._schema, layout.columns)
        self._known: tuple[object, str, str] | None = None
        """The last version, with the stamp and the salt for which it holds."""
        if not self._foreign:  # a view is faster than a relation over a relation
            self._guarded("open", lambda: relation.create_view(SOURCE))

    def _where_written(self) -> str:
        """Where a custodian can write another expression of a column."""
        if self._computed:
            return (
                "the relation that is the source"
                if self._foreign
                else "the SELECT that is the source"
            )
        first = self._files[0].name if self._files else ""
        return (
            f"a SELECT that is the source, of '{first}'"
            if suffix_of(Path(first)) in PARQUET
            else "a view of the file"
        )

    def watch(self) -> None:
        """Measure the progress of statements from now on, without printing it; they take a few
        percent longer.
        """
        self._connection.execute(
            "SET enable_progress_bar = true; SET enable_progress_bar_print = false"
        )

    def progress(self) -> float:
        """The progress of the running statement in percent; negative if DuckDB does not know it."""
        return self._connection.query_progress()

    def interrupt(self) -> None:
        """Stop the running statement, which then raises `EngineFailed`."""
        self._connection.interrupt()

    def version(self, salt: str = "") -> str:
        """The version; it is computed again when a file has changed, and each time for a relation
        or a SELECT.
        """
        self.check()
        before = self._stamped()
        known = self._known  # read once: another thread may replace it
        if before is not None and known is not None and known[:2] == (before, salt):
            return known[2]
        version = self._rows_hash(DUCKDB.version(self._used, salt), salt, self._words)
        self._known = (before, salt, version) if self._stamped() == before else None
        return version

    def _stamped(self) -> object:
        stamp = self._stamp
        return None if stamp is None else self._guarded("version", lambda: ("stamp", stamp()))

    def check(self) -> None:
        with self._lock:
            self._guarded("check", self._check)

    def probe(self) -> None:
        if self._lock.acquire(blocking=False):  # else it is being read
            self._lock.release()
            self.check()

    @contextmanager
    def _tables(self, sql: str, keys: Any, _stored: str | None) -> Iterator[Iterator[Any]]:
        """The rows of a SELECT; a source that was changed meanwhile is refused, whatever the
        statement found.
        """
        with self._lock:
            before = self._versions_of_files()
            try:
                if self._foreign:
                    relation = self._relation()
                    relation.query(SOURCE, _SETTINGS)  # its owner may have changed them
                    with _limited(relation, self._limit):
                        yield _rows(_bound(relation, sql, keys))
                else:
                    yield _rows(self._statement(sql, keys))
            except DiscreetError:
                raise
            except Exception:
                self._recheck(before)
                raise
            self._recheck(before)

    def _recheck(self, before: object) -> None:
        """Refuse a source whose columns have changed, or whose files were replaced, while a
        statement ran.
        """
        if self._live:
            self._check()
        if self._versions_of_files() != before:
            raise SourceChanged("a file of the source was replaced while it was read; ask again")

    def _versions_of_files(self) -> object:
        """What changes when a Parquet file is replaced: its texts are read twice, and both times
        from the same file.
        """
        return stamp_of([file for file in self._files if suffix_of(file) in PARQUET])

    def _explained(self, error: Exception) -> Failure | None:  # noqa: PLR0911 - one case for each kind of failure
        """What an error means, by the source's files, by its class, and by DuckDB's words about a
        file.
        """
        if isinstance(error, sqlite3.Error) and is_locked(error):
            return sqlite_failure(error)
        if isinstance(error, engine.Error | sqlite3.Error | OSError) and (
            failure := why_unreadable(self._files)
        ):
            return failure
        if isinstance(error, sqlite3.Error):
            return sqlite_failure(error)
        if not isinstance(error, engine.Error):
            return None
        for words, meaning in _FILES.items():
            if re.search(words, str(error)):
                return Failure(meaning)
        if isinstance(error, engine.InterruptException):
            stopped = Failure("the statement was stopped by a person", "interrupted", Stopped)
            return late(self._seconds) if _TOO_LONG in str(error) else stopped
        if isinstance(error, engine.OutOfMemoryException):
            return Failure("DuckDB has too little memory for the statement: ask for fewer groups")
        if self._computed or isinstance(
            error, engine.ConversionException | engine.OutOfRangeException
        ):
            return Failure(_COMPUTATION)
        if self._files:
            return Failure(
                "a file of the source is damaged, so that DuckDB cannot read it: write it again"
            )
        return None

    def _statement(self, sql: str, keys: Any) -> Any:
        """A SELECT as a relation, which reads the rows anew whenever it runs; DuckDB takes
        milliseconds to bind one.
        """
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
        "install duckdb>=2.0,<2.1, and open the source where no setting or macro of DuckDB is"
        " changed",
        schema_of(known_source.columns, known_source.types, typed=True),
        DUCKDB,
        lambda query: query.answer(_rows(_bound(known_source, query.sql, None))),
    )


@contextmanager
def _limited(relation: engine.DuckDBPyRelation, limit: str) -> Iterator[None]:
    """Within the block a statement on the connection of a relation has a time limit; then its
    owner's own again.
    """
    asked: Any = relation.query(SOURCE, "SELECT current_setting('max_execution_time')")
    [(owners,)] = asked.fetchall()
    relation.query(SOURCE, limit)
    try:
        yield
    finally:
        relation.query(SOURCE, f"SET max_execution_time = {int(owners)}")


def _bound(
    source: engine.DuckDBPyConnection | engine.DuckDBPyRelation,
    sql: str,
    discreet_keys: Any,  # noqa: ARG001 - DuckDB finds the table by the name of the parameter
) -> Any:
    """A SELECT over a relation, or over the view SOURCE of a connection."""
    return (
        source.query(SOURCE, sql)
        if isinstance(source, engine.DuckDBPyRelation)
        else source.sql(sql)
    )


def _rows(bound: Any) -> Iterator[Any]:
    """The rows of a SELECT as Arrow tables."""
    for batch in bound.to_arrow_reader(_PART):
        yield pa.Table.from_batches([batch])


def _connection() -> engine.DuckDBPyConnection:
    """A database in memory that writes nothing and uses no network."""
    settings: dict[str, Any] = dict.fromkeys(
        ("autoinstall_known_extensions", "autoload_known_extensions"), "false"
    )
    connection = engine.connect(":memory:", config={**settings, "temp_directory": ""})
    connection.execute(_SETTINGS)
    return connection


def _word(kind: Any) -> str:
    """What a type is called, without its parts, which are names of columns."""
    described = str(kind)
    return "JSON" if described == "JSON" else str(kind.id)


def schema_of(names: Sequence[str], types: Sequence[Any], *, typed: bool) -> Schema:
    """The schema of columns with DuckDB's types, without unsupported columns."""
    columns = {}
    for name, kind in zip(names, types, strict=True):
        identity, described = str(kind.id), str(kind)
        if identity == "decimal":
            columns[name] = ColumnType("number", described.endswith(",0)"), described, typed)
        elif identity in _KINDS and described != "JSON":
            # the name of an enumeration's type lists its values
            columns[name] = ColumnType(
                *_KINDS[identity], "ENUM" if identity == "enum" else described, typed
            )
    return MappingProxyType(columns)
