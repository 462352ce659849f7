"""A report as a file: which tables are published together, from which study, and with which budget.

    study         the policy, study.toml; the path is relative to this file
    title         the title of the page; by default "Report"
    caption       a sentence below the title
    decimals      of all numbers that are not whole; by default up to the second digit of their
                  errors
    epsilon       the budget of all tables together; or `within`, the largest error of each number
    confidence    of the intervals; by default 0.95
    simultaneous  true if all intervals of all tables hold at once
    integers      true if counts are whole and not negative
    rows          a file of synthetic rows, beside the tables: "rows.parquet"
    tables        [tables.NAME]: sql, and optionally weight (the weight of its errors), within,
                  title, caption and
                  decimals

NAME becomes the name of files. Nothing here is read from the data; each error names the key and
what to write.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet import parameters
from discreet.ask.declared import errors_at
from discreet.ask.policy import exact_text, refuse_unknown, toml_in
from discreet.errors import InvalidParameter
from discreet.parameters import quote

_NEEDED = {
    "study": 'study = "study.toml"',
    "tables": (
        '[tables.by_county] and under it sql = "SELECT county, count(*) FROM … GROUP BY county"'
    ),
}
_LOOKS = ("title", "caption", "decimals")
_KEYS = (
    "study",
    *_LOOKS,
    "epsilon",
    "within",
    "confidence",
    "simultaneous",
    "integers",
    "rows",
    "tables",
)
_TABLE_KEYS = ("sql", "weight", "within", *_LOOKS)
_NAME = re.compile(r"\w[\w-]{0,59}")
_ROWS = re.compile(r"\w[\w-]{0,59}\.parquet")


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a report, or a table of it, is shown, which does not change what is released."""

    title: str | None = None
    caption: str | None = None
    decimals: int | None = None
    tables: Mapping[str, Presentation] = field(default_factory=dict)

    def of(self, table: str) -> Presentation:
        return self.tables.get(table, PLAIN)


PLAIN = Presentation()


@dataclass(frozen=True, slots=True)
class ReportFile:
    study: Path
    """The path of its policy."""
    tables: Mapping[str, str]
    """Questions in SQL, by name."""
    terms: Mapping[str, Any]
    """The other arguments of `Study.report`."""

    @classmethod
    def load(cls, path: str | Path) -> ReportFile:
        path = Path(path)
        with errors_at(path.name):
            absent = "docs/how-to/publish-a-report.md shows how to write one"
            options = toml_in(path, title="a report", absent=absent, keys=_KEYS, needed=_NEEDED)
            with errors_at("study"):
                study = path.parent / exact_text(f"write {_NEEDED['study']}", options.pop("study"))
            tables = _tables(options.pop("tables"))
            terms = {
                name: value
                for name, value in options.items()
                if name not in ("within", "caption", "decimals")
            }
            _check(terms)
            looks = {name: _look(table, f"tables.{name}.") for name, table in tables.items()}
            terms["presentation"] = replace(_look(options), tables=MappingProxyType(looks))
            terms["weights"] = {
                name: table["weight"] for name, table in tables.items() if "weight" in table
            }
            terms["within"] = _within(options, tables)
            return cls(
                study,
                MappingProxyType({name: table["sql"] for name, table in tables.items()}),
                terms,
            )


def _tables(tables: object) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter(
            f"tables: it must name at least one table; write {_NEEDED['tables']}"
        )
    refuse_names(tables)
    for name, table in tables.items():
        if not isinstance(table, Mapping) or "sql" not in table:
            raise InvalidParameter(
                f"tables.{name}: its question is missing; write [tables.{name}] and sql = below it"
            )
        refuse_unknown(table, _TABLE_KEYS, f"tables.{name}.", "a table")
        with errors_at(f"tables.{name}"):
            exact_text('write sql = "SELECT …"', table["sql"])
            for number in ("weight", "within"):
                if number in table:
                    parameters.exact(number, table[number])
    return {name: dict(table) for name, table in tables.items()}


def _look(options: Mapping[str, Any], prefix: str = "") -> Presentation:
    for name in ("title", "caption"):
        if name in options:
            with errors_at(f"{prefix}{name}"):
                exact_text(f'write {name} = "Visits 2026"', options[name])
    digits = options.get("decimals")
    if digits is not None and not (type(digits) is int and 0 <= digits <= 12):
        raise InvalidParameter(
            f"{prefix}decimals must be a whole number from 0 to 12, got {quote(digits)}"
        )
    return Presentation(**{name: options[name] for name in _LOOKS if name in options})


def _within(options: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> object:
    """The largest accepted errors, by table."""
    common = options.get("within")
    by_table = {name: table.get("within", common) for name, table in tables.items()}
    near = {name: error for name, error in by_table.items() if error is not None}
    if bool(near) == ("epsilon" in options):
        raise InvalidParameter(
            'write either epsilon = "1", the budget of all tables together, or within = 50, their'
            " largest error"
        )
    if common is not None:
        parameters.exact("within", common)
    return near or None


def _check(terms: Mapping[str, Any]) -> None:
    """Refuse invalid values, by their keys."""
    if "epsilon" in terms:
        parameters.exact_epsilon(terms["epsilon"])
    if "confidence" in terms:
        parameters.exact_confidence(terms["confidence"])
    for name in ("simultaneous", "integers"):
        if not isinstance(terms.get(name, False), bool):
            raise InvalidParameter(f"{name} must be true or false, got {quote(terms[name])}")
    if "rows" in terms:
        rows_file(terms["rows"])


def refuse_names(names: Iterable[object]) -> None:
    """Refuse names of tables that are not file names, or that give the same file name."""
    earlier: dict[str, object] = {}
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidParameter(
                "the name of a table must be letters, digits, _ and -, at most 60, since files are"
                f" named after it, got {quote(name)}; write by_county"
            )
        same = unicodedata.normalize("NFC", name).casefold()
        if same in earlier:
            raise InvalidParameter(
                f"tables must have different file names, got {quote(earlier[same])} and"
                f" {quote(name)}"
            )
        earlier[same] = name


def rows_file(value: object) -> str:
    """The name of the file of synthetic rows."""
    if not isinstance(value, str) or not _ROWS.fullmatch(value):
        raise InvalidParameter(
            'rows must name a file beside the tables, such as "rows.parquet", without a folder,'
            f" got {quote(value)}"
        )
    return value
