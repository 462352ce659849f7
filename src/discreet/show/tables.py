"""A released report as a folder to publish: every table as CSV and Parquet, a page to read, and the record.

    NAME.csv, NAME.parquet   each table; a number `x` has its interval in `x_low` and `x_high`
    index.html               all tables with figures, and how they were made; it needs no network and no script
    TITLE.release.json       the record: the noisy cells, from which all tables follow
    rows.parquet             synthetic rows, if they were asked for

What cannot be written is refused before anything is written, and, for a plan, before ε is spent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from fractions import Fraction
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote as in_address

from discreet.ask.expression import Column
from discreet.ask.normal import decimal, text
from discreet.errors import InvalidParameter, printable
from discreet.files.writer import free, new_file, refuse_kept, write
from discreet.formats import MOST_ROWS, shown
from discreet.release.answer import Answer, write_table
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.show.figures import make, svg, theme
from discreet.show.html import keys_of, table
from discreet.show.json import measured_sets, set_text
from discreet.show.report import classes, cost, meaning, page, paragraphs

_FORMS = ("csv", "parquet")
_PAGE = "index.html"

_MOST_DRAWN, _MOST_FIGURES = 2_000, 60
"""Rows of a table up to which it is drawn, and figures of a page: a browser must open it."""

_LONGEST = 2_000
"""Characters of a question that a page shows; the record has all."""


def save(report: Report, folder: str | PathLike[str], *, force: bool = False) -> list[Path]:
    """Write all files into a folder, which is made if it is not there; their paths come back, the page first."""
    target, kept = Path(folder), report.plan.study.kept
    refuse_taken(report.plan, target, force=force)
    target.mkdir(exist_ok=True)
    for name, answer in report.tables.items():
        for form in _FORMS:
            with new_file(target / f"{name}.{form}", force=force, kept=kept) as draft:
                write_table(answer, form, draft)
    if report.plan.rows is not None:
        from pyarrow import parquet

        rows = report.rows()
        metadata = {**(rows.schema.metadata or {}), "discreet": " ".join(_of_rows(report))}
        with new_file(target / report.plan.rows, force=force, kept=kept) as draft:
            parquet.write_table(rows.replace_schema_metadata(metadata), draft)
    record = json.dumps({**report.record, "entry": report.entry}, ensure_ascii=False, indent=1)
    write(target / record_name(report.plan), record, force=force, kept=kept)
    write(target / _PAGE, html(report), force=force, kept=kept)  # last: what it leads to is there
    return targets(report.plan, target)


def targets(plan: ReportPlan, folder: Path) -> list[Path]:
    """The files of a report: its page, its tables, its record, its rows."""
    tables = [f"{table.name}.{form}" for table in plan.layout.tables for form in _FORMS]
    rows = [plan.rows] if plan.rows is not None else []
    return [folder / name for name in (_PAGE, *tables, record_name(plan), *rows)]


def refuse_taken(plan: ReportPlan, folder: str | PathLike[str], *, force: bool = False) -> None:
    """Refuse a folder that does not take the files of a report; nothing is spent before this is known."""
    theme.converter()
    theme.altair()
    target, kept = Path(folder), plan.study.kept
    files = targets(plan, target)
    if len({file.name.casefold() for file in files}) < len(files):
        raise InvalidParameter(f"rows must have a file of their own, and {plan.rows} is that of a table: name another")
    if os.path.lexists(target) and not target.is_dir():
        raise InvalidParameter(f"a report needs a folder, and {target.name} is none: name another")
    if target.is_dir():
        for file in files:
            free(file, force=force, kept=kept)
        return
    free(target, kept=kept)
    for file in files:
        refuse_kept(file, kept)


def record_name(plan: ReportPlan) -> str:
    slug = re.sub(r"\W+", "-", plan.title.lower()).strip("-_")[:60]
    return f"{slug or 'report'}.release.json"


def html(report: Report) -> str:
    plan, tables = report.plan, report.tables
    summary = f"{_many(len(tables), 'table')}, released together with ε = {shown(report.epsilon)}. {plan.agreement}"
    drawn = [name for name, answer in tables.items() if len(answer) <= _MOST_DRAWN][:_MOST_FIGURES]
    contents = "".join(
        f'<li><a href="#{_address(name)}">{escape(_titled(name))}</a> · {_many(len(answer), "row")} · '
        f"{_files(name)}</li>"
        for name, answer in tables.items()
    )
    return page(
        plan.title,
        f"{paragraphs(summary)}<nav><ul>{contents}"
        f'<li><a href="#method">How these numbers were made</a></li></ul></nav>'
        + "".join(_section(name, answer, name in drawn) for name, answer in tables.items())
        + _method(report),
    )


def _section(name: str, answer: Answer, drawn: bool) -> str:
    """One table: what was asked, its figure, its numbers."""
    numbers = table(answer.columns, answer.cells, texts=keys_of(answer), most=MOST_ROWS, attributes=classes)
    whole = f"<p>All {len(answer):,} rows: {_files(name)}</p>" if len(answer) > MOST_ROWS else ""
    figure = f"<figure>{svg(make('release', answer=answer))}</figure>" if drawn else ""
    question = printable(answer.record["question"])
    question = question if len(question) <= _LONGEST else f"{question[:_LONGEST]}…"  # it names all keys
    where = paragraphs(f"Rows where {text(answer.query.where)}") if answer.query.where is not None else ""
    return (
        f'<section id="{escape(name)}"><h2>{escape(_titled(name))}</h2>{where}{figure}'
        f'<div class="wide">{numbers}</div>{whole}'
        f"<details><summary>The question</summary><code>{escape(question)}</code></details></section>"
    )


def _method(report: Report) -> str:
    plan, record = report.plan, report.record
    of = f"{_many(len(plan.layout.tables), 'table')} of this report"
    terms = {"confidence": str(plan.confidence), "simultaneous": plan.simultaneous}
    parts = {
        "What is promised": paragraphs(*cost(report), *_promise(record)),
        "What was measured": paragraphs(*_measurement(plan)) + _sets(report),
        "How the tables follow": paragraphs(*_following(plan)),
        "What ± means": paragraphs(meaning(terms, f"all {of}")),
        "The record": f"<p>{_link(record_name(plan))} holds the noisy cells, from which all tables follow.</p>",
    }
    if plan.rows is not None:
        parts["Synthetic rows"] = f"<p>{_link(plan.rows)}</p>{paragraphs(' '.join(_of_rows(report)))}"
    body = "".join(f"<h3>{escape(heading)}</h3>{content}" for heading, content in parts.items())
    return f'<section id="method"><h2>How these numbers were made</h2>{body}</section>'


def _promise(record: dict[str, Any]) -> Iterable[str]:
    if record["unit"] != "row":
        yield f"At most {_many(record['max_rows'], 'row')} of each {record['unit']} counts; further ones are left out."
    delta = "no δ but that of the discovered keys" if "discovered" in record else "no δ"
    yield f"This holds whatever else anybody knows, for all tables together, and there is {delta}."


def _measurement(plan: ReportPlan) -> Iterable[str]:
    many = len(plan.measured)
    sets = "one set of cells" if many == 1 else f"{many} sets of cells"
    parts = "which has the whole ε" if many == 1 else "which have parts of ε that add up to it"
    yield (
        f"The rows were counted in {sets}, {parts}, and each cell got discrete Laplace noise of its own. "
        "Nothing else was read. Rows with none of the listed keys have a cell of their own."
    )
    if plan.known:
        yield "The number of all rows is public."
    for attribute in plan.layout.attributes:
        if attribute.number is not None:
            of = attribute.number.of
            name = of.of.name if isinstance(of.of, Column) else text(of.of)
            missing = " Rows without a value have a cell of their own." if of.missing is None else ""
            yield (
                f"{name} is measured by two cells: a row adds its place between {decimal(of.lower)} and "
                f"{decimal(of.upper)}, as a share of that range, to the one, and the rest to the other. Values outside "
                f"count as the nearer bound.{missing}"
            )


def _sets(report: Report) -> str:
    sets = measured_sets(report.plan)
    rows = [[set_text(cells), f"{cells['cells']:,}", shown(Fraction(cells["epsilon"]))] for cells in sets]
    return f"<div class='wide'>{table(['set', 'cells', 'ε'], rows, most=None, attributes=classes)}</div>"


def _following(plan: ReportPlan) -> Iterable[str]:
    yield (
        "Every number is a combination of these noisy cells, with weights that leave no bias and follow from the parts "
        "of ε alone. So all tables agree with each other and with their totals, and the combination costs no ε."
    )
    if not plan.integers:
        yield "Counts may be negative or not whole. They are left as they are: a correction would bias their sums."
        return
    yield (
        "Counts are whole and not negative: they are those of one set of rows that reproduces all tables, made of the "
        "noisy cells by one rounding. So counts still agree with each other. Their intervals are those before the "
        "rounding, and reach to the whole number where it lies outside."
    )


def _of_rows(report: Report) -> Iterable[str]:
    """Which numbers synthetic rows reproduce."""
    plan = report.plan
    names = [
        table.name
        for table in plan.layout.tables
        if any(number.statistic == "count" and number.attribute not in plan.layout.halves for number in table.numbers)
    ]
    yield "These rows are synthetic: they are made of the noisy cells alone, and no row is that of a person."
    near = "exactly" if plan.integers else "up to rounding, and with no count below 0"
    yield f"They keep the counts of {', '.join(names) or 'no table'}, {near}."
    yield "They keep nothing else: no means or sums, and not how columns relate beyond these tables."


def _files(name: str) -> str:
    return ", ".join(_link(f"{name}.{form}", {"csv": "CSV", "parquet": "Parquet"}[form]) for form in _FORMS)


def _link(file: str, label: str | None = None) -> str:
    return f'<a href="{_address(file)}">{escape(label or file)}</a>'


def _address(name: str) -> str:
    return escape(in_address(name))


def _titled(name: str) -> str:
    """The name of a table as a heading.

    >>> _titled("by_county")
    'by county'
    """
    return name.replace("_", " ")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
