"""Tables of SQLite by Python's own reader: a value that is not of its column's declared type is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlglot import exp

from discreet.errors import InvalidParameter

_BATCH = 2**16
_SQLITE = {
    ("BOOL",): "bool",
    ("DATE", "TIME"): "timestamp[us]",
    ("INT",): "int64",
    ("CHAR", "CLOB", "TEXT"): "string",
    ("REAL", "FLOA", "DOUB", "NUM", "DEC"): "float64",
}


def sqlite_table(file: Path, table: str) -> tuple[Any, str]:
    """A table as an Arrow table, and its name."""
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    opened = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        opened.text_factory = lambda raw: raw.decode("utf-8", "replace")
        found = opened.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        )
        name = one_table(table, sorted(row[0] for row in found))
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
    return pa.Table.from_batches(batches, pa.schema(list(types.items()))), name


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
        case "bool", 0 | 1:
            return bool(value)
        case "timestamp[us]", str():
            try:
                moment = datetime.fromisoformat(value)
                return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
            except (ValueError, OverflowError):
                return None
        case _:
            return None


def one_table(wanted: str, names: Sequence[str]) -> str:
    """The table that is wanted, or the only one."""
    if wanted in names:
        return wanted
    if wanted or len(names) != 1:
        raise InvalidParameter(f"the source must name a table, as in file.db#table; the file has {', '.join(names)}")
    return names[0]
