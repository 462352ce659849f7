"""Some rows of a CSV file, for `discreet init`: what a column seems to be, whether it names people, how to read it.

The proposals are those of `discreet check`, from fewer rows and without examples: `map` would write cells into
study.toml, so it is left to `discreet check`. No count and no cell leaves this module.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from discreet.ask.policy import Policy, toml
from discreet.cli.check.inspection import inspect
from discreet.cli.check.proposals import kind_of_texts
from discreet.engines.sources import CSV, suffix_of
from discreet.engines.textfiles import header
from discreet.errors import DiscreetError

_OPTIONS = ("type", "format", "decimal", "thousands", "trim", "casefold", "missing_values")
_NEARLY_ALL, _FEW = 0.9, 20
"""From this share of different values on, a column names people; fewer rows tell nothing."""
_ROWS, _CELLS = 5_000, 1_000
"""Rows that are read, and cells of a column that tell what it seems to be."""


@dataclass(frozen=True, slots=True, repr=False)
class Sample:
    """Rows whose cells are texts, or none, of which nothing is known."""

    rows: pa.Table | None

    @classmethod
    def of(cls, source: str) -> Sample:
        """The first rows of a plain file of CSV; none of other sources."""
        file = Path(source)
        if not file.is_file() or suffix_of(file) not in CSV:
            return cls(None)
        form: dict[str, Any] = {"quotechar": '"', "escapechar": '"', "all_varchar": True, "ignore_errors": True}
        try:
            names, mark, _ = header(file, None)
            with duckdb.connect(":memory:") as connection:
                rows = connection.read_csv(glob.escape(str(file)), sep=mark, header=True, **form)
                return cls(rows.limit(_ROWS).to_arrow_table().rename_columns(names))
        except (duckdb.Error, DiscreetError, ValueError):  # DuckDB's words may quote a line
            return cls(None)

    def kind(self, column: str) -> str:
        """What a column of text seems to be: text, number or date."""
        if self.rows is None:
            return "text"
        return kind_of_texts(self.rows[column].drop_null().slice(0, _CELLS).to_pylist())

    def names_people(self, column: str) -> bool:
        """Whether nearly every row has a value of its own."""
        cells = None if self.rows is None else self.rows[column].drop_null()
        return cells is not None and len(cells) >= _FEW and len(pc.unique(cells)) >= _NEARLY_ALL * len(cells)

    def proposals(self, columns: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, dict[str, str]]:
        """For columns as they are declared, options with which more cells are read, as TOML."""
        if self.rows is None:
            return {}
        try:
            findings = inspect(Policy(source=self.rows, epsilon=1, columns=columns, folder=folder)).findings
        except DiscreetError:  # `discreet check` says what is wrong
            return {}
        written = {
            finding.column: {name: toml(finding.options[name]) for name in _OPTIONS if name in finding.options}
            for finding in findings
            if finding.options
        }
        return {column: options for column, options in written.items() if options}
