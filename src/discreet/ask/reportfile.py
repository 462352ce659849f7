"""A report as a file: which tables are published together, from which study, and at what price.

    study         the policy, study.toml; the path is relative to this file
    title         what the page is called; without it "Report"
    caption       a sentence below the title
    decimals      of all numbers that are not whole; without it as many as their errors give a meaning
    epsilon       what all tables may cost together; or `within`, the largest error of each number
    confidence    how often an interval holds; without it 0.95
    simultaneous  true if all intervals of all tables hold together
    integers      true if counts are whole and not negative
    rows          a file of synthetic rows, beside the tables: "rows.parquet"
    tables        [tables.NAME]: sql, and if wanted weight (how much its errors count) and within, and title, caption
                  and decimals of its own

NAME becomes the name of files. Nothing here is read from the data; each error names the key and what to write.
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
from discreet.ask.declared import at
from discreet.ask.policy import exact_text, refuse_unknown, toml_in
from discreet.errors import InvalidParameter
from discreet.parameters import quote

_NEEDED = {
    "study": 'study = "study.toml"',
    "tables": '[tables.by_county] and under it sql = "SELECT county, count(*) FROM … GROUP BY county"',
}
_LOOKS = ("title", "caption", "decimals")
_KEYS = ("study", *_LOOKS, "epsilon", "within", "confidence", "simultaneous", "integers", "rows", "tables")
_TABLE_KEYS = ("sql", "weight", "within", *_LOOKS)
_NAME = re.compile(r"\w[\w-]{0,59}")
_ROWS = re.compile(r"\w[\w-]{0,59}\.parquet")


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a report, or a table of it, is shown: it changes nothing of what is released."""

    title: str | None = None
    caption: str | None = None
    decimals: int | None = None
    tables: Mapping[str, Presentation] = field(default_factory=dict)

    def of(self, table: str) -> Presentation:
        return self.tables.get(table, PLAIN)


PLAIN = Presentation()
"""As it comes."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report that a file asks for."""

    study: Path
    """Where its policy is."""
    tables: Mapping[str, str]
    """Questions in SQL, by name."""
    terms: Mapping[str, Any]
    """What `Study.report` takes beside them."""

    @classmethod
    def load(cls, path: str | Path) -> ReportFile:
        """The report in a TOML file."""
        path = Path(path)
        with at(path.name):
            absent = "docs/how-to/publish-a-report.md shows how to write one"
            options = toml_in(path, what="a report", absent=absent, known=_KEYS, needed=_NEEDED)
            with at("study"):
                study = path.parent / exact_text(f"write {_NEEDED['study']}", options.pop("study"))
            tables = _tables(options.pop("tables"))
            terms = {name: value for name, value in options.items() if name not in ("within", "caption", "decimals")}
            _check(terms)
            looks = {name: _look(table, f"tables.{name}.") for name, table in tables.items()}
            terms["presentation"] = replace(_look(options), tables=MappingProxyType(looks))
            terms["weights"] = {name: table["weight"] for name, table in tables.items() if "weight" in table}
            terms["within"] = _within(options, tables)
            return cls(study, MappingProxyType({name: table["sql"] for name, table in tables.items()}), terms)


def _tables(tables: object) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter(f"tables: it must name at least one table; write {_NEEDED['tables']}")
    refuse_names(tables)
    for name, table in tables.items():
        if not isinstance(table, Mapping) or "sql" not in table:
            raise InvalidParameter(f"tables.{name}: its question is missing; write [tables.{name}] and sql = below it")
        refuse_unknown(table, _TABLE_KEYS, f"tables.{name}.", "a table")
        with at(f"tables.{name}"):
            exact_text('write sql = "SELECT …"', table["sql"])
            for number in ("weight", "within"):
                if number in table:
                    parameters.exact(number, table[number])
    return {name: dict(table) for name, table in tables.items()}


def _look(options: Mapping[str, Any], where: str = "") -> Presentation:
    """What a file says of how a report or a table is shown."""
    for name in ("title", "caption"):
        if name in options:
            with at(f"{where}{name}"):
                exact_text(f'write {name} = "Visits 2026"', options[name])
    digits = options.get("decimals")
    if digits is not None and not (type(digits) is int and 0 <= digits <= 12):
        raise InvalidParameter(f"{where}decimals must be a whole number from 0 to 12, got {quote(digits)}")
    return Presentation(**{name: options[name] for name in _LOOKS if name in options})


def _within(options: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> object:
    """The largest errors that are accepted: one for all tables, or by table."""
    common = options.get("within")
    by_table = {name: table.get("within", common) for name, table in tables.items()}
    near = {name: error for name, error in by_table.items() if error is not None}
    if bool(near) == ("epsilon" in options):
        raise InvalidParameter(
            'write either epsilon = "1", what all tables may cost together, or within = 50, how near they must be'
        )
    if common is not None:
        parameters.exact("within", common)
    return near or None


def _check(terms: Mapping[str, Any]) -> None:
    """Refuse what cannot be read, by its key."""
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
    """Refuse names of tables that cannot be names of files, or would be those of the same file."""
    seen: dict[str, object] = {}
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidParameter(
                "the name of a table must be letters, digits, _ and -, at most 60, since files are named after it, "
                f"got {quote(name)}; write by_county"
            )
        same = unicodedata.normalize("NFC", name).casefold()
        if same in seen:
            raise InvalidParameter(f"tables must have different file names, got {quote(seen[same])} and {quote(name)}")
        seen[same] = name


def rows_file(value: object) -> str:
    """The name of the file of synthetic rows."""
    if not isinstance(value, str) or not _ROWS.fullmatch(value):
        raise InvalidParameter(
            f'rows must name a file beside the tables, such as "rows.parquet", without a folder, got {quote(value)}'
        )
    return value
