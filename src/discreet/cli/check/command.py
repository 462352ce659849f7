"""`discreet check`: what study.toml does to the data, as a table on a terminal or as JSON, for the custodian alone."""

from __future__ import annotations

from typing import Any

from discreet.ask.policy import Policy
from discreet.cli import terminal
from discreet.cli.check.inspection import Finding, Inspection, inspect, shown
from discreet.cli.progress import watched
from discreet.errors import one_line

WARNING = "This reads your data and shows counts of it. It is not private: keep it in the house."


def run(study: str, *, as_json: bool) -> None:
    policy = Policy.load(study)
    seen = watched(lambda: inspect(policy), "checking")
    if as_json:
        terminal.say_json(_as_json(seen))
        return
    terminal.say(WARNING, style="yellow")
    of_units = "" if seen.units is None else f" · {seen.units:,} different values of {policy.unit}"
    terminal.say(f"{seen.rows:,} rows{of_units}")
    if seen.findings:
        headings = ["column", "problem", "rows", "proposal for study.toml"]
        terminal.show_table(headings, [_cells(finding, seen.rows) for finding in seen.findings], right=(2,))
    quiet = [name for name in policy.columns if name not in {finding.column for finding in seen.findings}]
    if quiet:
        terminal.say(f"Nothing to say about {', '.join(quiet)}.", style="dim")
    terminal.say(_summary(seen))


def _cells(finding: Finding, rows: int) -> list[str]:
    left = f" ({finding.left:,} are left{f': {shown(finding.rest)}' if finding.rest else ''})" if finding.left else ""
    cells = [finding.column, finding.text, _share(finding.rows, rows), f"{finding.proposal}{left}"]
    return [one_line(cell) for cell in cells]


def _summary(seen: Inspection) -> str:
    """How many columns need a decision, and what a table would leave out as it stands."""
    columns = len({finding.column for finding in seen.findings if finding.is_open})
    decide = {0: "No column needs a decision.", 1: "1 column needs a decision."}
    parts = [decide.get(columns, f"{columns} columns need a decision.")]
    if seen.left_out is not None and seen.left_out[1]:
        table, rows = seen.left_out
        parts.append(f"As it stands, {table} would leave out {_share(rows, seen.rows)} of the rows.")
    return " ".join(parts)


def _share(part: int, whole: int) -> str:
    """A share in percent; what is there is never shown as none."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f} %" if percent >= 0.05 or not part else "< 0.1 %"


def _as_json(seen: Inspection) -> dict[str, Any]:
    return {
        "warning": WARNING,
        "rows": seen.rows,
        "units": seen.units,
        "findings": [
            {
                "column": finding.column,
                "problem": finding.problem,
                "open": finding.is_open,
                "rows": finding.rows,
                "text": finding.text,
                "proposal": finding.proposal,
                "left": finding.left,
                "examples": [{"text": text, "rows": rows} for text, rows in finding.examples.items()],
            }
            for finding in seen.findings
        ],
        "left_out": None if seen.left_out is None else {"by": seen.left_out[0], "rows": seen.left_out[1]},
        "summary": _summary(seen),
    }
