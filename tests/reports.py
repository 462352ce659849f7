"""A small study with a report of three tables, for tests that write, show or serve reports."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet import Policy, Study
from discreet.release.reports.plan import ReportPlan

MARKUP = "<img src=x onerror=window.broken=1>"
"""A key that looks like HTML."""

TABLES = {
    "by_county": "SELECT county, count(*) AS people, avg(age) AS age FROM data GROUP BY county",
    "by_level": "SELECT level, count(*) AS people FROM data GROUP BY level",
    "both": "SELECT county, level, count(*) AS people FROM data GROUP BY county, level",
}
COLUMNS: dict[str, dict[str, Any]] = {
    "county": {"keys": ["Dukes", "Essex", MARKUP]},
    "level": {"keys": "1..9"},
    "age": {"bounds": [0, 120]},
}


def study_in(folder: Path, *, rows: int = 3_000, **terms: Any) -> Study:
    """A study of people in memory, whose ledger lies in a folder."""
    table = pa.table(
        {
            "county": [COLUMNS["county"]["keys"][row % 3] for row in range(rows)],
            "level": [1 + row % 9 for row in range(rows)],
            "age": [float(row % 90) for row in range(rows)],
        }
    )
    told = {"epsilon": 3, "version": "1", "neighbors": "add-remove", **terms}
    return Study(Policy(source=table, columns=COLUMNS, **told), ledger=folder / "study.ledger")


def plan_in(folder: Path, **terms: Any) -> ReportPlan:
    """The plan of the three tables."""
    return study_in(folder).report(TABLES, **{"epsilon": 1, "title": "People & <more>", **terms})
