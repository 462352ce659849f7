"""A policy and a schema for tests of questions."""

from __future__ import annotations

from datetime import date

from discreet.ask.expression import ColumnType
from discreet.ask.policy import Policy
from discreet.ask.query import Query, canonical
from discreet.ask.sql import parse

SCHEMA = {
    "patient": ColumnType("text", False, "VARCHAR"),
    "county": ColumnType("text", False, "VARCHAR"),
    "sex": ColumnType("text", False, "VARCHAR"),
    "age": ColumnType("number", True, "INTEGER"),
    "income": ColumnType("number", False, "DOUBLE"),
    "band": ColumnType("number", True, "INTEGER"),
    "day": ColumnType("date", False, "DATE"),
    "smoker": ColumnType("truth", False, "BOOLEAN"),
    "name": ColumnType("text", False, "VARCHAR"),
    "secret": ColumnType("text", False, "VARCHAR"),
}

COLUMNS: dict[str, object] = {
    "county": {"keys": ["Suffolk", "Kings", "Bronx"], "other": "elsewhere"},
    "sex": {"keys": ["f", "m"]},
    "age": {"bounds": [0, 120]},
    "income": {"bounds": [0, "1e6"], "missing": 0, "precision": "0.5"},
    "band": {"bins": [0, 18, 65, 120]},
    "day": {"bounds": [date(2020, 1, 1), date(2021, 12, 31)]},
    "smoker": {},
    "name": {},
}

POLICY = Policy(
    source="visits.parquet", table="t", unit="patient", max_rows=4, epsilon="1", columns=COLUMNS
)


def query(text: str) -> Query:
    """The query of a text under the test's policy."""
    return parse(text, POLICY, SCHEMA)


def one_text(text: str) -> str:
    """The canonical text of a question."""
    return canonical(query(text))
