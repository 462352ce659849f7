"""A guess of the types of a text file from some of its rows, for `discreet init`.

A study never guesses: it uses the types that study.toml declares. `discreet init` writes the
guesses there, for the custodian to check.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from discreet.ask.expression import ColumnType, Schema
from discreet.ask.reading import tokens
from discreet.engines.base import LINES
from discreet.engines.choose import engine_of
from discreet.engines.duckdb import schema_of
from discreet.engines.endings import CSV, JSON, suffix_of
from discreet.engines.sources import files_of
from discreet.engines.sql.engine import SQLEngine
from discreet.engines.textfiles import folder_names, header
from discreet.engines.unusable import DUCKDB, unusable
from discreet.errors import InvalidParameter

_TEXT = ColumnType("text", False, "VARCHAR", typed=False)


class Look(NamedTuple):
    """What a source shows before it has a policy."""

    schema: Schema
    """The names and types of columns, guessed if the source has none."""
    formats: dict[str, str]
    """The guessed formats of dates."""
    unread: Mapping[str, str]
    """The columns that are not read, and why."""
    chosen: str
    """What chooses the rows, as in `Engine.chosen`."""


def guess_schema(source: str) -> Look:
    """What a source shows, before a policy declares it."""
    try:
        files = files_of(source)
    except InvalidParameter:
        files = []
    kinds = {suffix_of(file) for file in files}
    if (
        not files
        or not (kinds <= CSV or kinds <= JSON)
        or not any(file.stat().st_size for file in files)
    ):
        engine = engine_of(source)
        return Look(
            engine.schema(),
            {},
            engine.unread if isinstance(engine, SQLEngine) else {},
            engine.chosen,
        )
    first = next(file for file in files if file.stat().st_size)
    schema, formats, unread = (_csv if kinds <= CSV else _json)(first)
    folders = folder_names(first) if all("=" in file.parent.name for file in files) else []
    return Look({**schema, **dict.fromkeys(folders, _TEXT)}, formats, unread, LINES)


def as_cells(schema: Schema) -> Schema:
    """The schema as a study has it: a file without types has texts only."""
    return {name: column if column.typed else _TEXT for name, column in schema.items()}


def _csv(file: Path) -> tuple[dict[str, ColumnType], dict[str, str], dict[str, str]]:
    names, mark, _ = header(file, None)
    with duckdb.connect(":memory:") as connection:
        try:
            [(sniffed, day, moment)] = connection.execute(
                "SELECT Columns, DateFormat, TimestampFormat FROM "
                """sniff_csv(?, delim = ?, quote = '"', escape = '"', """
                "header = true, ignore_errors = true)",
                [glob.escape(str(file)), mark],
            ).fetchall()
            guesses = dict(zip(names, (column["type"] for column in sniffed), strict=True))
        except (duckdb.Error, ValueError):  # DuckDB's message may quote a line
            return dict.fromkeys(names, _TEXT), {}, {}
    columns, formats = dict.fromkeys(names, _TEXT), {}
    for name, guess in guesses.items():
        date_format = {"DATE": day, "TIMESTAMP": moment}.get(guess)
        with suppress(InvalidParameter):  # a format that a policy cannot declare
            tokens("%Y-%m-%d" if date_format is None else date_format)
            columns[name] = schema_of([name], [duckdb.sqltype(guess)], typed=False).get(name, _TEXT)
            if date_format is not None and not date_format.startswith("%Y-%m-%d"):
                formats[name] = date_format
    return columns, formats, {}


def _json(file: Path) -> tuple[dict[str, ColumnType], dict[str, str], dict[str, str]]:
    terms: dict[str, Any] = {"format": "newline_delimited", "ignore_errors": True}
    with duckdb.connect(":memory:") as connection:
        try:
            rows = connection.read_json(glob.escape(str(file)), **terms)
        except duckdb.Error:  # its message may quote a line
            return {}, {}, {}
        schema = dict(schema_of(rows.columns, rows.types, typed=False))
        nested = {
            name: str(kind.id)
            for name, kind in zip(rows.columns, rows.types, strict=True)
            if name not in schema
        }
    where = "the file, when you write it again"
    return schema, {}, {name: unusable(name, kind, DUCKDB, where) for name, kind in nested.items()}
