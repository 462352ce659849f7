"""SQLite tables by Python's own reader: a value of another type than its column's is missing.

So is a text that is not valid UTF-8, which SQLite does not check.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discreet.engines.base import Failure, refuse_columnless, without_zone
from discreet.engines.unusable import SQLITE, unusable
from discreet.errors import InvalidParameter
from discreet.parameters import quote

_BATCH = 2**16
_KIND = (
    "SELECT CASE WHEN type = 'view' THEN 'view'"
    " WHEN rootpage = 0 THEN 'virtual table' ELSE 'table' END\n"
    "    FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"
)
_TYPES = {
    ("BOOL",): "bool",
    ("DATE", "TIME"): "timestamp[us]",
    ("INT",): "int64",
    ("CHAR", "CLOB", "TEXT"): "string",
    ("REAL", "FLOA", "DOUB", "NUM", "DEC"): "float64",
}
"""Arrow types for SQLite's declared types, by its rules of affinity, and for dates and truth."""


def sqlite_table(file: Path, table: str) -> tuple[Any, str, dict[str, str], str]:
    """The rows of a table, its name, the columns that cannot be read, with the reason, and what
    kind of table it is.
    """
    opened = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        opened.text_factory = _text
        tables = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE"
            " 'sqlite_%'"
        )
        name = one_table(
            table, sorted(row[0] for row in opened.execute(tables) if row[0] is not None)
        )
        described = opened.execute(
            "SELECT name, type FROM pragma_table_info(?)", (name,)
        ).fetchall()
        [(kind,)] = opened.execute(_KIND, (name,)).fetchall()
        kinds: dict[str, str] = {}
        unread: dict[str, str] = {}
        for column, declared in described:
            if column is None:
                raise InvalidParameter(
                    f"the columns of {name} must have names in UTF-8, and one has not; rename it"
                )
            fitting = [
                kind
                for words, kind in _TYPES.items()
                if any(word in declared.upper() for word in words)
            ]
            if fitting:
                kinds[column] = fitting[0]
            else:
                unread[column] = unusable(
                    column,
                    declared or "none",
                    SQLITE,
                    "a column of another table, with a declared type",
                )
        refuse_columnless(name, list(kinds), unread)
        types = {column: pa.type_for_alias(kind) for column, kind in kinds.items()}
        quoted = [exp.column(column, quoted=True) for column in kinds]
        source = exp.Table(this=exp.to_identifier(name, quoted=True))
        rows = opened.execute(exp.select(*quoted).from_(source).sql("sqlite"))
        batches = []
        while chunk := rows.fetchmany(_BATCH):
            columns = zip(kinds.items(), zip(*chunk, strict=True), strict=True)
            arrays = [
                pa.array([_sqlite_value(v, kind) for v in values], types[c])
                for (c, kind), values in columns
            ]
            batches.append(pa.record_batch(arrays, names=list(kinds)))
    finally:
        opened.close()
    return pa.Table.from_batches(batches, pa.schema(list(types.items()))), name, unread, str(kind)


def is_locked(error: sqlite3.Error) -> bool:
    """Whether another process holds the file, so that nothing more may be read of it."""
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def sqlite_failure(error: sqlite3.Error) -> Failure:
    """What an error of SQLite means, by its number."""
    name = _name(error)
    if is_locked(error):
        return Failure(
            "the SQLite file of the source is locked by a process that writes to it: wait until it"
            " has finished, or name a copy of the file",
            name,
        )
    if name == "SQLITE_CANTOPEN":
        words = "cannot be opened: see whether it is there, and may be read with its folder"
    elif name.startswith("SQLITE_READONLY"):
        words = (
            "has an unfinished transaction, and its folder cannot be written: open it once with"
            " sqlite3, or copy it"
        )
    elif name.startswith("SQLITE_IOERR"):
        words = "cannot be read, since its disk fails: repair the disk, or put back a copy"
    else:
        words = "is damaged: check it with PRAGMA integrity_check, and put back an intact copy"
    return Failure(f"the SQLite file of the source {words}", name)


def _sqlite_value(value: Any, kind: str) -> Any:
    match kind, value:
        case ("int64", int()) | ("string", str()):
            return value
        case "float64", int() | float():
            return float(value)
        case "bool", 0 | 1:
            return bool(value)
        case "timestamp[us]", str():
            try:
                return without_zone(datetime.fromisoformat(value))
            except (ValueError, OverflowError):
                return None
        case _:
            return None


def one_table(table: str, names: Sequence[str]) -> str:
    if table in names:
        return table
    if table or len(names) != 1:
        got = f", got {quote(table)}" if table else ""
        there = ", ".join(names) or "no table"
        raise InvalidParameter(
            f"the source must name a table, as in file.db#table{got}; the file has {there}"
        )
    return names[0]
