"""PostgreSQL as a source: a table or a view, by an address such as
postgresql://host/database#schema.table.

Nothing is written: each statement has its own connection and a read-only transaction on one
snapshot, which uses UTC and ISO dates. Declared keys are passed as parameters. The table is found
by the reader's search_path once, when it is opened; after that only names in pg_catalog are used,
so that no function or operator of another schema is called. The server must be version 16 or newer
and use UTF-8: it checks each text on every way in, so that statements need not. Arrays, JSON,
money, times of day, intervals and bytes are not supported.

Only declared columns are read. Their types are compared in the transaction of each statement, which
first locks the table and all tables below a view against changes (ACCESS SHARE, as every SELECT).
Where row level security would filter rows, PostgreSQL raises an error instead, unless the policy
declares it.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.engines.base import (
    OTHER_ROWS,
    REOPEN,
    Failure,
    by_filter,
    in_use,
    late,
    limited,
    refuse_changed,
    refuse_unread,
)
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.sql.expectations import check, known_rows
from discreet.engines.sql.postgres import POSTGRESQL
from discreet.engines.sql.trees import outer
from discreet.engines.textfiles import Layout
from discreet.engines.unusable import POSTGRESQL as POSTGRESQL_EXPRESSIONS
from discreet.engines.unusable import unusable
from discreet.errors import DiscreetError, InvalidParameter, SourceChanged, Stopped
from discreet.parameters import quote
from discreet.unconnected import reason_of

if TYPE_CHECKING:
    import psycopg

RelationKind: TypeAlias = Literal[
    "table", "partitioned table", "view", "materialized view", "foreign table"
]

_KINDS: Mapping[int, tuple[Kind, bool, str]] = {
    21: ("number", True, "smallint"),
    23: ("number", True, "integer"),
    20: ("number", True, "bigint"),
    700: ("number", False, "real"),
    701: ("number", False, "double precision"),
    25: ("text", False, "text"),
    1042: ("text", False, "character"),
    1043: ("text", False, "character varying"),
    19: ("text", False, "name"),
    2950: ("text", False, "uuid"),
    1082: ("date", False, "date"),
    1114: ("date", False, "timestamp without time zone"),
    1184: ("date", False, "timestamp with time zone"),
    16: ("truth", False, "boolean"),
}
"""PostgreSQL's types in the row language, by their fixed numbers; a domain has its type's."""

_NUMERIC = 1700
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "jit": "off",  # a long CASE takes longer to compile than to run
}
"""The settings of a transaction: texts of rows, and literals, are the same on every server."""

_FIND = """SELECT schemas.nspname, tables.relname
    FROM pg_catalog.pg_class AS tables
    JOIN pg_catalog.pg_namespace AS schemas \
ON schemas.oid OPERATOR(pg_catalog.=) tables.relnamespace
    WHERE tables.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(CAST($1 AS pg_catalog.text))"""
"""Finds a table by its name."""

_COLUMNS = """SELECT attname, format_type(atttypid, NULL), \
has_column_privilege(attrelid, attnum, 'SELECT')
    FROM pg_attribute \
WHERE attrelid = CAST($1 AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""

_RELATION = """SELECT CAST(relkind AS text), row_security_active(tables.oid),
    EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = tables.oid),
    EXISTS (
        WITH RECURSIVE parts(oid) AS (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = tables.oid
            UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = parts.oid)
        SELECT 1 FROM parts JOIN pg_class AS part ON part.oid = parts.oid WHERE part.relkind = 'f'),
    ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = tables.oid AND attgenerated = 'v'), (
        SELECT bool_and(seen.oid IS NOT NULL AND (
            seen.relfilenode = 0 OR seen.relfilenode = pg_relation_filenode(seen.oid)))
        FROM pg_locks AS held LEFT JOIN pg_class AS seen ON seen.oid = held.relation
        WHERE held.pid = pg_backend_pid() AND held.locktype = 'relation')
    FROM pg_class AS tables WHERE oid = CAST($1 AS regclass)"""
"""The kind of a relation, whether row level security filters it for this role, whether it is a part
of another table, whether it has a foreign table as a part, its columns that are computed when they
are read, and whether the snapshot has the rows.

The statement that locks a table takes the snapshot just before. If a table that is locked now, also
below a view, was rewritten or created in between, the snapshot has its old storage in the
catalogue, and would find it empty.
"""

_KINDS_OF_RELATIONS: Mapping[str, RelationKind] = {
    "r": "table",
    "p": "partitioned table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
}

_ATTEMPTS = 5
"""How often a snapshot is taken while a table is being rewritten."""

_STATES = {
    "25P04": (
        "the statement was stopped at the source by a time limit: raise transaction_timeout there"
    ),
    "55P03": (
        "the table of the source is locked for longer than lock_timeout: ask again when its"
        " maintenance is over"
    ),
    "40P01": "the table of the source is being maintained (a deadlock): ask again later",
    "53100": "the source's server has no disk space left: make room there",
    "53200": "the source's server has no memory left for the statement: ask for fewer groups",
    "53400": (
        "the statement needs more temporary files than the source's server allows: raise"
        " temp_file_limit there"
    ),
    "25006": (
        "a view of the source writes when it is read: discreet reads alone; use a table or another"
        " view"
    ),
    "54001": (
        "the source's server has too small a stack for the statement: raise max_stack_depth there"
    ),
    "40001": (
        "the source's server is a standby that had to end the statement: raise"
        " max_standby_streaming_delay there"
    ),
    "58": "the source's server cannot read its own files: see its log, and repair its disk",
    "XX": "the source's server has damaged data or an internal error: see its log",
    "HV": (
        "the foreign server behind the table of the source fails: see the log of the source's"
        " server"
    ),
    "08": (
        "the foreign server behind the table of the source fails: see the log of the source's"
        " server"
    ),
    "P0": (
        "a function that the view of the source calls raises an error: see the log of the source's"
        " server"
    ),
    "22": (
        "a computation of the view of the source fails: see the log of its server, and correct the"
        " view"
    ),
    "2F": (
        "a function that the view of the source calls raises an error: see the log of the source's"
        " server"
    ),
    "38": (
        "a function that the view of the source calls raises an error: see the log of the source's"
        " server"
    ),
    "42": (
        "the view of the source calls what is not there: name the schemas of its functions, and see"
        " the server's log"
    ),
}
"""What a failure is called, by its SQLSTATE or its class, the first two characters of it."""

_LOST = "the source's server ended the connection: see whether it runs, and its log"
_MISSING_STATES = ("42501", "42P01", "42703", "3F000")
"""A right, a table, a column or a schema is missing."""

_PATIENCE = 10
"""Seconds to wait for a lock, and for a server, unless the address says otherwise."""

_KEEPALIVE = {
    "connect_timeout": _PATIENCE,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Timeouts in seconds (the last in milliseconds) that detect a lost server."""

_STOPPED = "57014"

_TIMEOUTS = """SELECT set_config('lock_timeout', '{1}', true), \
set_config('statement_timeout', CAST(CAST(ceil(
    1000 * extract(epoch FROM least(\
nullif(CAST(current_setting('statement_timeout') AS interval), interval '0'),
    interval '{0} s'))) AS bigint) AS text), true)"""


class Relation(NamedTuple):
    """What is public about the table or view of a source, besides its columns."""

    kind: RelationKind
    row_security: bool
    """Whether row level security filters its rows for this role; below a view, it is not known."""
    is_part: bool = False
    """Whether it is a partition of another table, or inherits from one, as some partitions do."""
    has_foreign_parts: bool = False
    computed: Sequence[str] = ()
    """The columns that are computed when they are read, which may fail on a row."""

    @property
    def chosen(self) -> str:
        """What chooses its rows, as in `Engine.chosen`."""
        if self.row_security:
            return "row level security decides which rows the role of the source sees"
        if self.is_part:
            return "the source is a part of another table, and a rule of that table may decide it"
        if self.has_foreign_parts:
            return by_filter(f"a {self.kind} with a foreign table as a part")
        return "" if self.kind in ("table", "partitioned table") else by_filter(f"a {self.kind}")


class PostgreSQL(SQLEngine):
    """An engine over one table or view; see the module."""

    dialect = POSTGRESQL

    def __init__(self, source: str, layout: Layout = Layout()) -> None:  # noqa: B008 - a frozen value
        address, _, table = source.partition("#")
        if not table:
            raise InvalidParameter(
                "the source must name a table, as in postgresql://host/database#schema.table"
            )
        self._address, self._layout, self._table = address, layout, ""
        self._of_table, self._role = "", ""  # the schema of the table, and who reads it
        self._seconds = layout.time_limit
        self._running: set[psycopg.Connection[Any]] = set()
        self._is_stopped = False  # whether a person has stopped what runs
        self._table = self._guarded("open", lambda: self._qualified(table))
        self._guarded("open", self._test)
        self._schema, self.unread, self.relation = self._guarded("open", self._opened)
        self.chosen = self.relation.chosen
        refuse_unread(self.unread, layout.columns)
        self._used = in_use(self._schema, layout.columns)

    def interrupt(self) -> None:
        """Stop the running statements, which then raise `EngineFailed`."""
        self._is_stopped = True
        for running in list(self._running):
            if not running.closed:
                running.cancel_safe(timeout=_PATIENCE)

    def version(self, salt: str = "") -> str:
        return self._rows_hash(POSTGRESQL.version(self._used, salt), salt)

    def check(self) -> None:
        def work() -> None:
            with self._compared():
                pass

        self._guarded("check", work)

    def _connected(self) -> psycopg.Connection[Any]:
        try:
            import psycopg
        except ImportError:
            raise InvalidParameter(
                "a source on PostgreSQL needs psycopg: pip install 'discreet[postgres]'"
            ) from None
        patience = {name: value for name, value in _KEEPALIVE.items() if name not in self._address}
        try:
            connection = psycopg.connect(
                self._address,
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,
                client_encoding="utf8",
                **patience,  # type: ignore[arg-type] # an option of libpq
            )
        except (psycopg.Error, UnicodeError) as error:  # of a host that is no name
            reason = reason_of(error)
        else:
            self._refuse_server(connection)
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return connection
        raise _Unconnected(
            Failure(
                f"the PostgreSQL server of the source cannot be used: {reason.words}", reason.code
            )
        )

    def _refuse_server(self, connection: psycopg.Connection[Any]) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        version = connection.info.server_version
        if version < 160_000 or encoding != "UTF8":
            connection.close()
            raise InvalidParameter(
                "the source must be on PostgreSQL 16 or newer, in a database that holds UTF-8, "
                f"got version {version // 10_000} and {encoding}"
            )

    @contextmanager
    def _transaction(
        self, *, row_security: bool | None = None
    ) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that fails where row level security would filter rows."""
        filters = self._layout.row_security if row_security is None else row_security
        settings = {**_SETTINGS, "row_security": "on" if filters else "off"}
        calls = ", ".join(
            f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in settings.items()
        )
        # the server ends a statement itself, unless it is frozen
        most = self._seconds + 2 * _PATIENCE
        with (
            self._connected() as connection,
            limited(most, lambda: _hang_up(connection)),
            connection.transaction(),
        ):
            self._running.add(connection)
            try:
                connection.execute(f"SELECT {calls}; {_within(self._seconds)}")
                yield connection
            finally:
                self._running.discard(connection)

    @contextmanager
    def _compared(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction whose snapshot has, until its end, the columns of the opened study."""
        for _ in range(_ATTEMPTS):
            with self._transaction() as connection:
                locked = _locked(connection, self._table, list(self._used))
                if locked is None:
                    continue
                columns, relation = locked
                refuse_changed(self._used, columns)
                if relation.kind != self.relation.kind:
                    was, is_ = self.relation.kind, relation.kind
                    raise SourceChanged(
                        f"the source was a {was} when the study was opened, and is a {is_};"
                        f" {REOPEN}"
                    )
                # also where its number of rows was taken as public
                if relation.chosen != self.chosen:
                    raise SourceChanged(OTHER_ROWS)
                yield connection
                return
        raise SourceChanged(
            "the table of the source is being rewritten; ask again when that is over"
        )

    def _qualified(self, table: str) -> str:
        """The table with its schema, found by the reader's search_path, used for nothing else."""
        import psycopg

        names = ".".join(_identifier(name) for name in table.split(".", 1))
        with self._connected() as connection:
            self._role = _identifier(*connection.execute("SELECT CURRENT_USER").fetchall()[0])
            try:
                rows = connection.execute(_FIND, [names]).fetchall()
            except psycopg.errors.InsufficientPrivilege:
                rows = None
        if rows is None:
            self._of_table = _identifier(table.partition(".")[0])
            raise InvalidParameter(self._schema_forbidden())
        if not rows:
            raise InvalidParameter(
                "the source must name a table or view that exists, with its schema and its"
                f" capitals, got {names}"
            )
        self._of_table = _identifier(rows[0][0])
        return ".".join(map(_identifier, rows[0]))

    def _test(self) -> None:
        """Test the server with the known rows."""
        known_source = f"(SELECT * FROM ({known_rows(POSTGRESQL)}) AS known)"  # noqa: S608
        with self._transaction() as connection:
            described = connection.execute(f"{known_source} LIMIT 0").description or []
            check(
                f"PostgreSQL {connection.info.server_version // 10_000}",
                "use PostgreSQL 16 to 18 without changes to it",
                _schema(connection, described),
                POSTGRESQL,
                lambda query: query.answer(_rows(connection, known_source, query.sql, query.keys)),
            )

    def _opened(self) -> tuple[Schema, dict[str, str], Relation]:
        """The schema, the columns that cannot be used, with the reason, and what the source is."""
        for _ in range(_ATTEMPTS):
            with self._transaction() as connection:
                found = connection.execute(_COLUMNS, [self._table]).fetchall()
                self._refuse_forbidden(found)
                locked = _locked(
                    connection, self._table, [name for name, _, allowed in found if allowed]
                )
                if locked is not None:
                    schema, relation = locked
                    unread = {
                        name: unusable(
                            name, kind, POSTGRESQL_EXPRESSIONS, "a view that is the source"
                        )
                        for name, kind, _ in found
                        if name not in schema
                    }
                    unread |= dict.fromkeys(relation.computed, _COMPUTED)
                    unread |= {
                        name: f"the role of the source may not read it: {self._grant([name])}"
                        for name, _, allowed in found
                        if not allowed
                    }
                    return schema, unread, relation
        raise InvalidParameter(
            "the table of the source is being rewritten; try again when that is over"
        )

    def _refuse_forbidden(self, found: Sequence[tuple[str, str, bool]]) -> None:
        """Refuse declared columns, or a whole table, that the role may not read."""
        forbidden = [name for name, _, allowed in found if not allowed]
        named = [name for name in forbidden if name in self._layout.columns]
        if not named and len(forbidden) == len(found) and found:
            named = forbidden
        if named:
            raise SourceChanged(
                f"the role of the source may not read {_these(named)} of {self._table}:"
                f" {self._grant(named)}"
            )

    def _grant(self, columns: Sequence[str]) -> str:
        """The statement that lets the role of the source read columns."""
        return (
            f"GRANT SELECT ({', '.join(map(_identifier, columns))}) ON {self._table} TO"
            f" {self._role}"
        )

    def _schema_forbidden(self) -> str:
        schema = self._of_table
        return (
            f"the role of the source may not use the schema {schema}: GRANT USAGE ON SCHEMA"
            f" {schema} TO {self._role}"
        )

    def _explained(self, error: Exception) -> Failure | DiscreetError | None:
        """What an error means, by its SQLSTATE; a missing table, column or right is named."""
        if isinstance(error, _Unconnected):
            return error.failure
        import psycopg

        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate or ""
        if state == _STOPPED:
            stopped = Failure("the statement was stopped by a person", f"SQLSTATE {state}", Stopped)
            # no SQLSTATE tells it apart
            by_a_person = self._is_stopped or "user request" in str(error)
            return stopped if by_a_person else _late(self._seconds, f"SQLSTATE {state}")
        if state in _MISSING_STATES and self._table:
            return self._missing(state)
        if state[:3] == "57P" or (not state and isinstance(error, psycopg.OperationalError)):
            return Failure(_LOST, f"SQLSTATE {state or '08006'}")
        words = (
            _STATES.get(state)
            or _STATES.get(state[:2])
            or "the source's server failed: its log says why"
        )
        return Failure(words, f"SQLSTATE {state}" if state else "")

    def _missing(self, state: str) -> Failure | DiscreetError:
        """The refusal of what is missing since the source was opened, or was never there."""
        try:
            with self._transaction(row_security=True) as connection:
                if not self._exists(connection):
                    return SourceChanged(
                        f"the table {self._table} is gone since the study was opened; name another"
                    )
                found = connection.execute(_COLUMNS, [self._table]).fetchall()
                self._refuse_forbidden(found)
                there = {name for name, _, _ in found}
                gone = [
                    name
                    for name in self._layout.columns or getattr(self, "_used", ())
                    if name not in there
                ]
                if gone and state == "42703":
                    return SourceChanged(
                        f"{_these(gone)} {_are(gone)} gone since the study was opened; {REOPEN}"
                    )
                _looked_at(connection, self._table, found)
            return self._hidden(found) if state == "42501" else Failure(_BELOW, f"SQLSTATE {state}")
        except DiscreetError as refusal:
            return refusal
        except Exception:
            return Failure(_BELOW, f"SQLSTATE {state}")

    def _hidden(self, found: Sequence[tuple[str, str, bool]]) -> Failure | DiscreetError:
        """The refusal of a table whose columns the role may all read, but not all its rows."""
        try:
            with self._transaction(row_security=False) as connection:
                _looked_at(connection, self._table, found)
        except Exception:
            return SourceChanged(
                f"row level security would hide rows of {self._table} from the role of the source"
                " without a word: use a role with BYPASSRLS or without policies, or declare"
                " row_security = true in the policy of the study"
            )
        return Failure(_BELOW, "SQLSTATE 42501")

    def _exists(self, connection: psycopg.Connection[Any]) -> bool:
        import psycopg

        try:
            return bool(
                connection.execute(
                    "SELECT 1 WHERE to_regclass($1) IS NOT NULL", [self._table]
                ).fetchall()
            )
        except psycopg.errors.InsufficientPrivilege:
            pass
        raise SourceChanged(self._schema_forbidden())

    @contextmanager
    def _tables(
        self, sql: str, keys: pa.Table | None, _stored: str | None
    ) -> Iterator[Iterator[pa.Table]]:
        with self._compared() as connection:
            names = ", ".join(map(_identifier, self._used))
            yield _rows(connection, f"(SELECT {names} FROM {self._table})", sql, keys)  # noqa: S608


def _late(seconds: float, code: str) -> Failure:
    """The failure of a statement that exceeded the time limit, or a smaller one of the role."""
    words = (
        "or within a smaller statement_timeout of its role or server: ask for less, or raise"
        " time_limit"
    )
    return late(seconds)._replace(
        sentence=(
            f"the source did not answer within {seconds:g} s, the time limit of a question, {words}"
        ),
        code=code,
    )


def _within(seconds: float) -> str:
    """A statement that limits the time of later ones, unless the server or role limits it more."""
    return _TIMEOUTS.format(seconds, math.ceil(1000 * min(seconds / 2, _PATIENCE)))


def _hang_up(connection: psycopg.Connection[Any]) -> None:
    """End a connection whose server does not answer; those who wait are told that it is lost."""
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


def _looked_at(
    connection: psycopg.Connection[Any], table: str, found: Sequence[tuple[str, str, bool]]
) -> None:
    """Prepare to read the columns that the role may read; PostgreSQL fails if it may not."""
    names = ", ".join(_identifier(name) for name, _, allowed in found if allowed)
    connection.execute(f"SELECT {names} FROM {table} LIMIT 0")  # noqa: S608


_BELOW = (
    "a table or function that the view of the source uses is gone, or may not be used by its owner"
)
_COMPUTED = (
    "it is computed when it is read, which may fail on a row; store it (GENERATED ALWAYS AS (…)"
    " STORED), or compute it in a view that is the source"
)


class _Unconnected(Exception):
    """There is no connection, and why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


def _these(names: Sequence[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {', '.join(map(quote, names))}"


def _are(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"


def _locked(
    connection: psycopg.Connection[Any], table: str, columns: Sequence[str]
) -> tuple[Schema, Relation] | None:
    """The types of columns and what their table is, which cannot change until the transaction ends.

    None if the snapshot of the transaction is older than the table's storage.
    """
    names = ", ".join(map(_identifier, columns))
    described = connection.execute(f"SELECT {names} FROM {table} LIMIT 0").description or []  # noqa: S608
    found = connection.execute(_RELATION, [table]).fetchone()
    if found is None:
        return None
    kind, *facts, is_current = found
    if not is_current:
        return None
    relation = Relation(_KINDS_OF_RELATIONS.get(kind, "table"), *facts)
    schema = _schema(connection, described)
    return {
        name: column for name, column in schema.items() if name not in relation.computed
    }, relation


def _schema(connection: psycopg.Connection[Any], described: Sequence[psycopg.Column]) -> Schema:
    unknown = [column.type_code for column in described if column.type_code not in _KINDS]
    enumerations = connection.execute(
        "SELECT oid FROM pg_type WHERE typtype = 'e' AND oid = ANY($1)", [unknown]
    )
    enumerated = {row[0] for row in enumerations}
    columns = {}
    for column in described:
        if column.type_code == _NUMERIC:
            limits = f"({column.precision},{column.scale})" if column.precision is not None else ""
            columns[column.name] = ColumnType("number", limits.endswith(",0)"), f"numeric{limits}")
        elif column.type_code in enumerated:
            columns[column.name] = ColumnType("text", False, "enum")
        elif column.type_code in _KINDS:
            columns[column.name] = ColumnType(*_KINDS[column.type_code])
    return MappingProxyType(columns)


def _rows(
    connection: psycopg.Connection[Any], source: str, sql: str, keys: pa.Table | None
) -> Iterator[pa.Table]:
    """The rows of a SELECT over a source, called SOURCE, with declared keys as parameters."""
    whole = f"WITH {SOURCE} AS NOT MATERIALIZED {source} {sql}"
    cursor = connection.execute(
        whole, [column.to_pylist() for column in keys.columns] if keys is not None else None
    )
    names, rows = [column.name for column in cursor.description or []], cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    yield pa.table([_column(values) for values in columns], names=names)


def _identifier(name: str) -> str:
    return outer(name).sql("postgres")


def _column(values: Sequence[Any]) -> pa.Array:
    if any(isinstance(value, Decimal) for value in values):
        return pa.array(values, pa.decimal128(38, 0))
    return pa.array(values, None if any(isinstance(value, str) for value in values) else pa.int64())
