"""The output of `discreet check`: a table on a terminal, or JSON."""

from __future__ import annotations

from typing import Any

from discreet.ask.policy import Policy
from discreet.cli import terminal
from discreet.cli.check.inspection import Finding, Inspection, inspect, shown
from discreet.cli.progress import watched
from discreet.errors import one_line

WARNING = (
    "This output has exact counts and cells of your data. It is not private: do not publish it."
)


def run(study: str, *, as_json: bool) -> None:
    policy = Policy.load(study)
    inspection = watched(lambda: inspect(policy), "checking")
    if as_json:
        terminal.say_json(_as_json(inspection))
        return
    terminal.say(WARNING, style="yellow")
    of_units = (
        ""
        if inspection.units is None
        else f" · {inspection.units:,} distinct values of {policy.unit}"
    )
    terminal.say(f"{inspection.rows:,} rows{of_units}")
    terminal.say(*inspection.facts)
    if inspection.findings:
        headings = ["column", "problem", "rows", "proposal for study.toml"]
        terminal.show_table(
            headings,
            [_cells(finding, inspection.rows) for finding in inspection.findings],
            right=(2,),
        )
    quiet = [
        name
        for name in policy.columns
        if name not in {finding.column for finding in inspection.findings}
    ]
    if quiet:
        terminal.say(f"No problems with {', '.join(quiet)}.", style="dim")
    terminal.say(_summary(inspection))


def _cells(finding: Finding, rows: int) -> list[str]:
    left = (
        f" ({finding.left:,} are left{f': {shown(finding.rest)}' if finding.rest else ''})"
        if finding.left
        else ""
    )
    cells = [finding.column, finding.text, _share(finding.rows, rows), f"{finding.proposal}{left}"]
    return [one_line(cell) for cell in cells]


def _summary(inspection: Inspection) -> str:
    """How many columns need a decision, and what a table would leave out now."""
    columns = len({finding.column for finding in inspection.findings if finding.is_open})
    decide = {0: "No column needs a decision.", 1: "1 column needs a decision."}
    parts = [decide.get(columns, f"{columns} columns need a decision.")]
    if inspection.left_out is not None and inspection.left_out[1]:
        table, rows = inspection.left_out
        parts.append(
            f"As declared, {table} would leave out {_share(rows, inspection.rows)} of the rows."
        )
    return " ".join(parts)


def _share(part: int, whole: int) -> str:
    """A share in percent; a share above zero is never shown as zero."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f} %" if percent >= 0.05 or not part else "< 0.1 %"


def _as_json(inspection: Inspection) -> dict[str, Any]:
    return {
        "warning": WARNING,
        "rows": inspection.rows,
        "units": inspection.units,
        "facts": list(inspection.facts),
        "findings": [
            {
                "column": finding.column,
                "problem": finding.problem,
                "open": finding.is_open,
                "rows": finding.rows,
                "text": finding.text,
                "proposal": finding.proposal,
                "left": finding.left,
                "examples": [
                    {"text": text, "rows": rows} for text, rows in finding.examples.items()
                ],
            }
            for finding in inspection.findings
        ],
        "left_out": (
            inspection.left_out and {"by": inspection.left_out[0], "rows": inspection.left_out[1]}
        ),
        "summary": _summary(inspection),
    }
