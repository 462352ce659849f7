"""Some rows of a CSV file, for `discreet init`: the type of a column, whether it identifies people,
how to read it.

The proposals are those of `discreet check`, from fewer rows and without examples: `map` would write
cells into study.toml, so it is left to `discreet check`. No count and no cell leaves this module.
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
from discreet.engines.endings import CSV, suffix_of
from discreet.engines.textfiles import header
from discreet.errors import DiscreetError

_OPTIONS = ("type", "format", "decimal", "thousands", "trim", "casefold", "missing_values")
_NEARLY_ALL, _FEW = 0.9, 20
"""From this share of distinct values, a column identifies people; fewer rows than `_FEW` decide
nothing.
"""
_ROWS, _CELLS = 5_000, 1_000  # rows to read, and cells of a column to guess its type from


@dataclass(frozen=True, slots=True, repr=False)
class Sample:
    """Rows whose cells are texts; None if the source has no such rows."""

    rows: pa.Table | None

    @classmethod
    def of(cls, source: str) -> Sample:
        """The first rows of a plain CSV file; no rows for other sources."""
        file = Path(source)
        if not file.is_file() or suffix_of(file) not in CSV:
            return cls(None)
        form: dict[str, Any] = {
            "quotechar": '"',
            "escapechar": '"',
            "all_varchar": True,
            "ignore_errors": True,
        }
        try:
            names, mark, _ = header(file, None)
            with duckdb.connect(":memory:") as connection:
                rows = connection.read_csv(glob.escape(str(file)), sep=mark, header=True, **form)
                return cls(rows.limit(_ROWS).to_arrow_table().rename_columns(names))
        except (duckdb.Error, DiscreetError, ValueError):  # DuckDB's message may quote a line
            return cls(None)

    def kind(self, column: str) -> str:
        """The likely type of a text column: text, number or date."""
        if self.rows is None:
            return "text"
        return kind_of_texts(self.rows[column].drop_null().slice(0, _CELLS).to_pylist())

    def names_people(self, column: str) -> bool:
        """Whether nearly every row has a different value."""
        cells = None if self.rows is None else self.rows[column].drop_null()
        return (
            cells is not None
            and len(cells) >= _FEW
            and len(pc.unique(cells)) >= _NEARLY_ALL * len(cells)
        )

    def proposals(
        self, columns: Mapping[str, Mapping[str, Any]], folder: Path
    ) -> dict[str, dict[str, str]]:
        """For declared columns, options in TOML that read more cells."""
        if self.rows is None:
            return {}
        try:
            findings = inspect(
                Policy(source=self.rows, epsilon=1, columns=columns, folder=folder)
            ).findings
        except DiscreetError:  # `discreet check` reports what is wrong
            return {}
        written = {
            finding.column: {
                name: toml(finding.options[name]) for name in _OPTIONS if name in finding.options
            }
            for finding in findings
            if finding.options
        }
        return {column: options for column, options in written.items() if options}
