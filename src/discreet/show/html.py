"""Plans, answers, reports, releases, studies and ledgers in notebooks: tables, light and dark.

Colours are the notebook's own (`inherit`, `currentColor`). Styles are inline, since notebooks drop
style sheets. Every text is escaped: a key may be anything. A long table shows its first and last
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from discreet.ask.declared import Declared, day
from discreet.errors import InvalidParameter, one_line
from discreet.formats import MOST_ROWS, decimal_text, rounded, shortened, shown
from discreet.ledger.ledger import Ledger
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.release import Cumulative, Histogram, Release, Releases, Vector
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.study import Study
from discreet.show.figures.released_table import triples
from discreet.show.json import measured_text
from discreet.show.publication import keys_of

_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;color:inherit"
_TABLE = "border-collapse:collapse;margin:4px 0;color:inherit;background:transparent"
_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"{_LINE};padding:3px 14px 3px 0;color:inherit;background:transparent;vertical-align:top"
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_QUIET = "opacity:.8"


def _inline(tag: str, text: bool) -> str:
    if tag == "table":
        return f'style="{_TABLE}"'
    side = "text-align:left" if text else _NUMBER
    weight = ";font-weight:600" if tag == "th" else ""
    return f'style="{_CELL};{side}{weight}"'


def of(value: object) -> str:
    for kind, parts in _PARTS.items():
        if isinstance(value, kind):
            return f'<div style="{_BOX}">{"".join(parts(value))}</div>'
    raise InvalidParameter(
        f"expected a plan, an answer, a release, a study or a ledger, got {quote(value)}"
    )


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: Collection[int] = (0,),
    most: int | None = MOST_ROWS,
    attributes: Callable[[str, bool], str] = _inline,
) -> str:
    """A table; `texts` index its text columns; beyond `most` rows, only the first and last show.

    `attributes` returns those of a tag: of the table, or of a cell with a text or a number.
    """
    (head, *body), below = shortened(headings, rows, most)

    def row(cells: Sequence[str], tag: str) -> str:
        tags = (
            f"<{tag} {attributes(tag, index in texts)}>{escape(cell)}</{tag}>"
            for index, cell in enumerate(cells)
        )
        return f"<tr>{''.join(tags)}</tr>"

    lines = "".join(row(cells, "td") for cells in body)
    start = f"<table {attributes('table', False)}>"
    return (
        f"{start}<thead>{row(head, 'th')}</thead><tbody>{lines}</tbody></table>"
        f"{''.join(map(line, below))}"
    )


def line(text: str, *, quiet: bool = True) -> str:
    return (
        f'<div style="{_QUIET if quiet else "font-weight:600"}">{escape(one_line(text))}</div>'
        if text
        else ""
    )


def _plan(plan: Plan) -> Iterator[str]:
    return _plan_parts(
        plan, (0, 3), " ".join(plan.notes), *plan.warnings, "Nothing was read, nothing is spent."
    )


def _answer(answer: Answer) -> Iterator[str]:
    yield table(answer.columns, answer.cells, texts=keys_of(answer))
    yield line(repr(answer).splitlines()[-1])


def _report_plan(plan: ReportPlan) -> Iterator[str]:
    words = " ".join([plan.agreement, *plan.notes, "Nothing was read, nothing is spent."])
    return _plan_parts(plan, (0,), measured_text(plan), words)


def _plan_parts(plan: Plan | ReportPlan, texts: Collection[int], *notes: str) -> Iterator[str]:
    headings, *rows = plan.table
    yield line(plan.summary, quiet=False)
    yield table(headings, rows, texts=texts, most=None)
    yield from map(line, notes)


def _report(report: Report) -> Iterator[str]:
    yield line(report.plan.title, quiet=False)
    for name, answer in report.tables.items():
        yield line(name, quiet=False)
        yield table(answer.columns, answer.cells, texts=keys_of(answer))
    yield line(repr(next(iter(report.tables.values()))).splitlines()[-1])


def _release(release: Release) -> Iterator[str]:
    if isinstance(release, Vector):
        kind, names = _labels(release)
        rows = [
            [name, *_number_cells(*triple)]
            for name, triple in zip(names, triples(release), strict=True)
        ]
        yield table(
            [
                kind,
                "count" if isinstance(release, Histogram) else release.statistic,
                "95 % interval",
            ],
            rows,
        )
    else:
        yield _statistics({release.statistic: release})
    yield line(release.note)
    yield line(f"ε {shown(release.epsilon)} · Δ {shown(release.sensitivity)} · {release.neighbors}")


def _releases(releases: Releases) -> Iterator[str]:
    yield _statistics(releases)
    [neighbors, *_] = [part.neighbors for part in releases.values()]
    yield line(f"ε {shown(releases.epsilon)} in all · {neighbors}")


def _statistics(releases: Mapping[str, Release]) -> str:
    rows = []
    for name, release in releases.items():
        numbers = triples(release)
        several = isinstance(release, Vector)
        rows.append(
            [name, *([f"{len(numbers):,} numbers", ""] if several else _number_cells(*numbers[0]))]
        )
    return table(["statistic", "released", "95 % interval"], rows)


def _study(study: Study) -> Iterator[str]:
    policy = study.policy
    title = study.name if study.name.startswith("study") else f"study {study.name}"
    yield line(f"{title} · ε {shown(study.remaining)} of {shown(policy.epsilon)} left", quiet=False)
    rows = (
        f", up to {policy.max_rows:,} rows each" if policy.unit != "row" and policy.max_rows else ""
    )
    yield line(f"{policy.neighbors} · unit {policy.unit}{rows}{study.forgetful}")
    columns = [[name, _declaration(column)] for name, column in policy.columns.items()]
    yield table(["column", "declared"], columns, texts=(0, 1))


def _declaration(column: Declared) -> str:
    """The declaration of a column in a few words."""
    words = []
    if column.bounds is not None:
        words.append(
            " to ".join(
                shown(end) if isinstance(end, Fraction) else day(end) for end in column.bounds
            )
        )
    if column.bins is not None:
        words.append(f"{len(column.bins) - 1} bins")
    if column.keys is not None:
        words.append(f"{len(column.keys):,} keys")
    elif column.discover:
        words.append("keys not discovered yet")
    return " · ".join(words) or "no bounds or keys"


def _ledger(ledger: Ledger) -> Iterator[str]:
    figures = (ledger.total, ledger.spent, ledger.remaining)
    rows = [[name, *(shown(figure(name)) for figure in figures)] for name in ledger.studies()]
    yield table(["study", "total ε", "spent", "left"], rows)


def _number_cells(value: Any, low: Any, high: Any) -> list[str]:
    """A number, rounded by the size of its error, and its interval."""
    *three, digits = rounded(np.array([value]), np.array([low]), np.array([high]))
    number, lower, upper = (decimal_text(column.item(), digits.item()) for column in three)
    return [number, f"{lower} to {upper}"]


def _labels(release: Vector) -> tuple[str, list[str]]:
    """The heading of the numbers of a vector, and the label of each."""
    match release:
        case Histogram():
            return "key" if release.keys else "bin", release.labels
        case Cumulative():
            return "value", [f"≤ {point:,.6g}" for point in release.points.tolist()]
    return "number", [str(index) for index in range(len(release))]


_PARTS: dict[type, Callable[[Any], Iterator[str]]] = {
    Plan: _plan,
    Answer: _answer,
    ReportPlan: _report_plan,
    Report: _report,
    Release: _release,
    Releases: _releases,
    Study: _study,
    Ledger: _ledger,
}
