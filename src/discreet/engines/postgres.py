"""PostgreSQL as a source: a table or a view, by an address such as postgresql://host/database#schema.table.

Nothing is written: each statement has its own connection and a read-only transaction on one snapshot, which uses UTC
and ISO dates. Declared keys are passed as parameters. The table is found by the reader's search_path once, when it is
opened; after that only names in pg_catalog are used, so that no function or operator of another schema is called. The
server must be version 16 or newer and use UTF-8. Arrays, JSON, money, times of day, intervals and bytes are not
supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from discreet.ask.expression import ColumnType, Kind, Schema
from discreet.engines.sql.dialect import SOURCE
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.sql.expectations import check, known_rows
from discreet.engines.sql.postgres import POSTGRESQL
from discreet.engines.sql.trees import Tree, call, outer
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import psycopg

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
"""PostgreSQL's types in the row language, by their fixed numbers; a domain has the number of its type."""

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
"""The settings of a transaction, so that texts of rows, and literals, are the same on every server."""

_FIND = """SELECT schemas.nspname, tables.relname
    FROM pg_catalog.pg_class AS tables
    JOIN pg_catalog.pg_namespace AS schemas ON schemas.oid OPERATOR(pg_catalog.=) tables.relnamespace
    WHERE tables.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(CAST($1 AS pg_catalog.text))"""
"""Finds a table by its name."""


class PostgreSQL(SQLEngine):
    dialect = POSTGRESQL

    def __init__(self, source: str) -> None:
        address, _, table = source.partition("#")
        if not table:
            raise InvalidParameter("the source must name a table, as in postgresql://host/database#schema.table")
        self._address = address
        self._running: psycopg.Connection[Any] | None = None
        self._table = self._guarded("open", lambda: self._qualified(table))
        self._schema = self._guarded("open", self._checked_schema)

    def interrupt(self) -> None:
        """Stop the running statement, which then raises `EngineFailed`."""
        running = self._running
        if running is not None and not running.closed:
            running.cancel_safe()

    def version(self) -> str:
        return self._rows_hash(f"""SELECT COUNT(*), SUM(CAST(CAST('x' || SUBSTR(digest, 1, 16) AS BIT(64)) AS BIGINT)),
            SUM(CAST(CAST('x' || SUBSTR(digest, 17, 16) AS BIT(64)) AS BIGINT))
            FROM (SELECT MD5(CAST({_row(self._schema)} AS TEXT)) AS digest FROM {SOURCE}) AS digests""")  # noqa: S608

    def _connected(self) -> psycopg.Connection[Any]:
        try:
            import psycopg
        except ImportError:
            raise InvalidParameter("a source on PostgreSQL needs psycopg: pip install 'discreet[postgres]'") from None
        connection = psycopg.connect(
            self._address,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
            prepare_threshold=None,
            client_encoding="utf8",
        )
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        encoding, version = connection.info.parameter_status("server_encoding"), connection.info.server_version
        if version < 160_000 or encoding != "UTF8":
            connection.close()
            raise InvalidParameter(
                "the source must be on PostgreSQL 16 or newer, in a database that holds UTF-8, "
                f"got version {version // 10_000} and {encoding}"
            )
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        calls = ", ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
        with self._connected() as connection, connection.transaction():
            self._running = connection
            connection.execute(f"SELECT {calls}")
            yield connection

    def _qualified(self, table: str) -> str:
        """The table with its schema, found by the reader's search_path, which is used for nothing else."""
        names = ".".join(_identifier(name) for name in table.split(".", 1))
        with self._connected() as connection:
            rows = connection.execute(_FIND, [names]).fetchall()
        if not rows:
            raise InvalidParameter(f"the source must name a table or view that exists, got {names}")
        return ".".join(map(_identifier, rows[0]))

    def _checked_schema(self) -> Schema:
        """The schema of the source, after a test of the server."""
        known_source = f"({known_rows(POSTGRESQL)}) AS known"
        with self._transaction() as connection:
            check(
                f"PostgreSQL {connection.info.server_version // 10_000}",
                "use PostgreSQL 16 to 18 without changes to it",
                _schema(connection, known_source),
                POSTGRESQL,
                lambda query: query.answer(_rows(connection, known_source, query.sql, query.keys)),
            )
            return _schema(connection, self._table)

    @contextmanager
    def _tables(self, sql: str, keys: pa.Table | None, _stored: str | None) -> Iterator[Iterator[pa.Table]]:
        with self._transaction() as connection:
            yield _rows(connection, self._table, sql, keys)


def _schema(connection: psycopg.Connection[Any], source: str) -> Schema:
    described = connection.execute(f"SELECT * FROM {source} LIMIT 0").description or []  # noqa: S608
    unknown = [column.type_code for column in described if column.type_code not in _KINDS]
    enumerations = connection.execute("SELECT oid FROM pg_type WHERE typtype = 'e' AND oid = ANY($1)", [unknown])
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


def _rows(connection: psycopg.Connection[Any], source: str, sql: str, keys: pa.Table | None) -> Iterator[pa.Table]:
    """The rows of a SELECT over a source, which is called SOURCE, with declared keys as parameters."""
    whole = f"WITH {SOURCE} AS NOT MATERIALIZED (SELECT * FROM {source}) {sql}"  # noqa: S608
    cursor = connection.execute(whole, [column.to_pylist() for column in keys.columns] if keys is not None else None)
    names, rows = [column.name for column in cursor.description or []], cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    yield pa.table([_column(values) for values in columns], names=names)


def _identifier(name: str) -> str:
    return outer(name).sql("postgres")


def _row(schema: Schema) -> str:
    """A row of all supported columns, each by its name, because a column may have the name of the table."""
    columns: dict[str, Tree] = {name: exp.Column(this=outer(name)) for name in schema}
    texts = {name: column.described for name, column in schema.items() if column.kind == "text"}
    columns |= {name: POSTGRESQL.text_column(columns[name], described) for name, described in texts.items()}
    return call("row", *columns.values()).sql("postgres")


def _column(values: Sequence[Any]) -> pa.Array:
    if any(isinstance(value, Decimal) for value in values):
        return pa.array(values, pa.decimal128(38, 0))
    return pa.array(values, None if any(isinstance(value, str) for value in values) else pa.int64())
