"""The common part of the SQL engines: one statement for each request, answered as Arrow tables.

`version` is a SHA-256 of the names and types of the columns in use, of the number of rows, and of
sums of a hash of each row, in any order; the dialects write the hash. It is only for the
custodian's ledger: someone who knows the salt and all rows but one could test guesses against it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from discreet.ask.expression import Column, ColumnType, Expression, Schema
from discreet.engines.base import Exact, Failure, Late, Request, guarded, late
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.frequent import frequent_values, rows_of_units
from discreet.engines.sql.statement import Statement, statement
from discreet.engines.sql.units import units_by_rows, units_of, units_of_keys
from discreet.errors import DiscreetError, one_line

Result = TypeVar("Result")

_FEW_KEYS = 10_000
"""The most keys of a statement that is cached, because it contains them."""


class SQLEngine(ABC):
    dialect: ClassVar[Dialect]
    chosen = ""
    _schema: Schema
    _used: Schema
    """The declared columns, or all: no others are read, hashed or compared."""
    _seconds: float
    """The time limit of a statement."""
    unread: Mapping[str, str] = MappingProxyType({})
    """The columns that cannot be used, and why."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({one_line(', '.join(self._schema))})"

    def schema(self) -> Schema:
        return self._schema

    @abstractmethod
    def check(self) -> None:
        """Refuse a source whose columns in use have other types or rights than at first."""

    def probe(self) -> None:
        """The same as `check`, for those who ask often; it waits for no statement of others."""
        self.check()

    def units(self, unit: str | None) -> Exact[int]:
        """The number of rows, or of values of the unit column; rows without a unit do not count."""
        sql = units_of(unit, self._schema, self.dialect)
        return Exact(self._run("units", sql, lambda tables: _first_row(tables)[0]))

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        sql, stored = units_of_keys(column, unit, limit, self._schema, self.dialect)
        return Exact(self._run("discover", sql, self._units_of_keys, stored=stored))

    def frequent(self, of: Expression, where: Expression, most: int) -> Exact[dict[str, int]]:
        """The most frequent texts of an expression, with their numbers of rows; for custodians."""
        sql = frequent_values(of, where, most, self._schema, self.dialect)
        return Exact(self._run("frequent", sql, self._units_of_keys))  # type: ignore[arg-type]

    def rows_of_units(self, unit: str, limit: int) -> Exact[list[int]]:
        """Rows, units, units with more rows than a limit, rows beyond it, units by cleaned names;
        for custodians.
        """
        return Exact(
            self._run("units", rows_of_units(unit, limit, self._schema, self.dialect), _first_row)
        )

    def units_by_rows(self, unit: str, limits: Sequence[int]) -> Exact[list[int]]:
        sql = units_by_rows(unit, limits, self._schema, self.dialect)
        units = self._run("units", sql, self._units_of_keys)
        return Exact([int(units.get(level, 0)) for level in range(len(limits) + 1)])

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        query = _statement(request, self._schema, self.dialect)
        return Exact(self._run("fetch", query.sql, query.answer, query.keys, query.stored))

    @abstractmethod
    def _tables(
        self, sql: str, keys: pa.Table | None, stored: str | None
    ) -> AbstractContextManager[Iterator[pa.Table]]:
        """The rows of a SELECT, in parts; the rows of the SELECT `stored` must be stored before."""

    def _run(
        self,
        name: str,
        sql: str,
        take: Callable[[Iterator[pa.Table]], Result],
        keys: pa.Table | None = None,
        stored: str | None = None,
    ) -> Result:
        def work() -> Result:
            with self._tables(sql, keys, stored) as tables:
                return take(tables)

        return self._guarded(name, work)

    def _guarded(self, name: str, work: Callable[[], Result]) -> Result:
        def explained(error: Exception) -> Failure | DiscreetError | None:
            return late(self._seconds) if isinstance(error, Late) else self._explained(error)

        return guarded(type(self).__name__, name, work, explained)

    def _explained(self, error: Exception) -> Failure | DiscreetError | None:  # noqa: ARG002 - for engines that know
        """What an error of the engine means."""
        return None

    def _rows_hash(self, sql: str, salt: str, words: str = "") -> str:
        """A SHA-256 of the columns in use, and of the integers that a SELECT computes from rows."""
        columns = [(name, column.described) for name, column in self._used.items()]
        integers = self._run("version", sql, _first_row)
        return hashlib.sha256(repr((words, salt, columns, integers)).encode()).hexdigest()

    def _units_of_keys(self, tables: Iterator[pa.Table]) -> dict[str | int, int]:
        pairs = (
            zip(*(column.to_pylist() for column in table.columns), strict=True) for table in tables
        )
        return {key: units for part in pairs for key, units in part}


def _statement(request: Request, schema: Schema, dialect: Dialect) -> Statement:
    """The statement of a request, cached because releases may differ in ε alone."""
    if sum(len(group.keys) for group in request.groups) > _FEW_KEYS:
        return statement(request, schema, dialect)
    return _known_statement(request, tuple(schema.items()), dialect)  # type: ignore[arg-type] # hashable: a constant


@lru_cache(maxsize=64)
def _known_statement(
    request: Request, schema: tuple[tuple[str, ColumnType], ...], dialect: Dialect
) -> Statement:
    return statement(request, dict(schema), dialect)


def _first_row(tables: Iterator[pa.Table]) -> list[int]:
    [table] = tables
    return [int(column[0].as_py() or 0) for column in table.columns]
