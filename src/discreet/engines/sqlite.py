"""SQLite tables by Python's own reader: a value that does not have its column's declared type is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discreet.engines.base import without_zone
from discreet.errors import InvalidParameter

_BATCH = 2**16
_TYPES = {
    ("BOOL",): "bool",
    ("DATE", "TIME"): "timestamp[us]",
    ("INT",): "int64",
    ("CHAR", "CLOB", "TEXT"): "string",
    ("REAL", "FLOA", "DOUB", "NUM", "DEC"): "float64",
}
"""Arrow types for SQLite's declared types, by its rules of affinity, and for dates and truth values."""


def sqlite_table(file: Path, table: str) -> tuple[Any, str]:
    opened = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        opened.text_factory = lambda raw: raw.decode("utf-8", "replace")
        tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        name = one_table(table, sorted(row[0] for row in opened.execute(tables)))
        described = opened.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
        kinds: dict[str, str] = {}
        for column, declared in described:
            fitting = [kind for words, kind in _TYPES.items() if any(word in declared.upper() for word in words)]
            if fitting:
                kinds[column] = fitting[0]
        types = {column: pa.type_for_alias(kind) for column, kind in kinds.items()}
        quoted = [exp.column(column, quoted=True) for column in kinds]
        source = exp.Table(this=exp.to_identifier(name, quoted=True))
        rows = opened.execute(exp.select(*quoted).from_(source).sql("sqlite"))
        batches = []
        while chunk := rows.fetchmany(_BATCH):
            columns = zip(kinds.items(), zip(*chunk, strict=True), strict=True)
            arrays = [pa.array([_sqlite_value(v, kind) for v in values], types[c]) for (c, kind), values in columns]
            batches.append(pa.record_batch(arrays, names=list(kinds)))
    finally:
        opened.close()
    return pa.Table.from_batches(batches, pa.schema(list(types.items()))), name


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


def one_table(wanted: str, names: Sequence[str]) -> str:
    if wanted in names:
        return wanted
    if wanted or len(names) != 1:
        raise InvalidParameter(f"the source must name a table, as in file.db#table; the file has {', '.join(names)}")
    return names[0]
