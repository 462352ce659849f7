"""A released report as a folder to publish: every table as CSV and Parquet, a page, and the record.

    NAME.csv, NAME.parquet   each table; a number `x` has its interval in `x_low` and `x_high`; CSV
                             is rounded
    index.html               all tables with figures, and the method; it needs no network and no
                             script
    TITLE.release.json       the record: the noisy cells, from which all tables are computed, and
                             the card
    rows.parquet             synthetic rows, if the report asks for them

Or as one file, by its suffix, with the record and the rows beside it: .xlsx (a sheet for each
table, and one on the method), .html, .md or .txt. Files that cannot be written are refused before
anything is written, and before ε is spent.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote as in_address

from discreet.ask.expression import Column
from discreet.ask.normal import decimal, text
from discreet.errors import InvalidParameter, one_line
from discreet.files.writer import Kept, free, has, new_file, refuse_kept, write
from discreet.formats import MOST_ROWS, shown
from discreet.outside import read_fraction
from discreet.parameters import quote
from discreet.release.answer import Decimals, decimals_by
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.reports.rows import parts
from discreet.show import plain, publication, spreadsheet
from discreet.show.figures import make, svg, theme
from discreet.show.html import table
from discreet.show.json import measured_sets, set_text
from discreet.show.publication import METHOD, Method, Opening, keys_of, many
from discreet.show.publish import facts_of
from discreet.show.report import classes, opened, page, sections
from discreet.show.table_files import refuse_bom, write_table

_FORMS = ("csv", "parquet")
_PAGE = "index.html"
_FILES = (".xlsx", ".html", ".md", ".txt")

# rows of a table with a figure, figures of a page: a browser must open it
_MOST_DRAWN, _MOST_FIGURES = 2_000, 60
_SETS = "What was measured"  # the heading below which a page lists the measured sets


def save(
    report: Report,
    folder: str | PathLike[str],
    *,
    title: str | None = None,
    caption: str | None = None,
    decimals: int | None = None,
    bom: bool = False,
    force: bool = False,
) -> list[Path]:
    """Write all files into a folder, which is created if needed; their paths, the page first."""
    plan = report.plan
    target = Path(folder)
    kept = report.plan.study.kept
    look = report.plan.presentation
    known = {**report.record, "entry": report.entry, "card": report.card().content}
    record = json.dumps(known, ensure_ascii=False, indent=1).encode()
    # written with another form of the same report
    recorded = has(record_file(plan, target), record)
    refuse_taken(plan, target, bom=bom, decimals=decimals, recorded=recorded, force=force)
    above = Opening(
        title=one_line(title or plan.title),
        caption=one_line(caption or look.caption or ""),
        source=publication.source_of(report.record),
        words=f"{many(len(report.tables), 'table')}. {plan.agreement}",
    )
    shown_tables = _Tables(
        report, above, {name: _decimals(plan, name, decimals) for name in report.tables}
    )
    files = targets(plan, target)
    if not _is_file(target):
        target.mkdir(exist_ok=True)
        for name, answer in report.tables.items():
            for form in _FORMS:
                with new_file(target / f"{name}.{form}", force=force, kept=kept) as draft:
                    digits = shown_tables.decimals[name]
                    write_table(answer, form, draft, decimals=digits, bom=bom and form == "csv")
    _write_rows(report, files[0].parent, force, kept)
    if not recorded:
        write(record_file(plan, target), record, force=force, kept=kept)
    content = _content(shown_tables, target.suffix) if _is_file(target) else html(shown_tables)
    write(files[0], content, force=force, kept=kept)  # last, so that its links lead somewhere
    return files


def _write_rows(report: Report, folder: Path, force: bool, kept: Kept) -> None:
    if report.plan.rows is None:
        return
    from pyarrow import parquet

    schema, batches = parts(report)
    schema = schema.with_metadata({"discreet": " ".join(_of_rows(report))})
    with (
        new_file(folder / report.plan.rows, force=force, kept=kept) as draft,
        parquet.ParquetWriter(draft, schema) as file,
    ):
        for batch in batches:
            file.write_batch(batch)


def _is_file(target: Path) -> bool:
    return target.suffix in _FILES and not target.is_dir()


def targets(plan: ReportPlan, folder: Path) -> list[Path]:
    """The files of a report: its page, its tables, its record, its rows."""
    rows = [plan.rows] if plan.rows is not None else []
    if _is_file(folder):
        return [folder, record_file(plan, folder), *(folder.parent / name for name in rows)]
    tables = [f"{table.name}.{form}" for table in plan.layout.tables for form in _FORMS]
    return [folder / name for name in (_PAGE, *tables, record_name(plan), *rows)]


def record_file(plan: ReportPlan, target: Path) -> Path:
    return target.with_suffix(".release.json") if _is_file(target) else target / record_name(plan)


def refuse_taken(
    plan: ReportPlan,
    folder: str | PathLike[str],
    *,
    bom: bool = False,
    decimals: int | None = None,
    recorded: bool = False,
    force: bool = False,
) -> None:
    """Refuse, before ε is spent, a folder in which the files of a report cannot be written.

    With `recorded`, the record is already there.
    """
    target, kept = Path(folder), plan.study.kept
    refuse_bom(bom, target.suffix[1:] if _is_file(target) else "csv")
    if isinstance(decimals, dict):
        raise InvalidParameter(
            f"decimals of a report must be one number for all tables, got {quote(decimals)}"
        )
    for shown_table in plan.layout.tables:
        decimals_by(
            [name for name, _ in shown_table.query.outputs],
            _decimals(plan, shown_table.name, decimals),
        )
    if target.suffix == ".xlsx" and _is_file(target):
        spreadsheet.writer()
        for shown_table in plan.layout.tables:
            spreadsheet.refuse_long(
                shown_table.name, math.prod(map(len, shown_table.rows(plan.axes).values()))
            )
    elif target.suffix not in (".md", ".txt"):
        theme.require()
    files = targets(plan, target)
    if len({file.name.casefold() for file in files}) < len(files):
        raise InvalidParameter(
            f"rows must have a file of their own, but {plan.rows} is the file of a table: name"
            " another file"
        )
    if not _is_file(target) and os.path.lexists(target) and not target.is_dir():
        raise InvalidParameter(
            f"a report needs a folder, but {target.name} is a file: name another"
        )
    if _is_file(target) or target.is_dir():
        for file in files:
            if not (recorded and file == record_file(plan, target)):
                free(file, force=force, kept=kept)
        return
    free(target, kept=kept)
    for file in files:
        refuse_kept(file, kept)


def _decimals(plan: ReportPlan, name: str, decimals: int | None) -> Decimals:
    """The decimals of a table: the argument, else its own in the file, else those of the report."""
    if decimals is not None:
        return decimals
    own: int | None = plan.presentation.of(name).decimals
    return plan.presentation.decimals if own is None else own


def record_name(plan: ReportPlan) -> str:
    slug = re.sub(r"\W+", "-", plan.title.lower()).strip("-_")[:60]
    return f"{slug or 'report'}.release.json"


@dataclass(frozen=True, slots=True)
class _Tables:
    """A report with its opening and the decimals of each table."""

    report: Report
    above: Opening
    decimals: Mapping[str, Decimals]

    def opening(self, name: str) -> Opening:
        answer, look = self.report.tables[name], self.report.plan.presentation.of(name)
        return Opening(
            title=one_line(look.title or name.replace("_", " ")),
            caption=one_line(look.caption or ""),
            words=publication.words_of(answer.query, answer.record["unit"]),
            sql=answer.query.sql or "",
        )


def _content(tables: _Tables, suffix: str) -> str | bytes:
    answers, how = tables.report.tables, _method(tables)
    openings = {name: tables.opening(name) for name in answers}
    match suffix:
        case ".html":
            return html(tables, files=False)
        case ".xlsx":
            sheets = {
                name: (openings[name], answer, tables.decimals[name])
                for name, answer in answers.items()
            }
            facts = facts_of(
                {**tables.report.record, "confidence": str(tables.report.plan.confidence)}
            )
            return spreadsheet.workbook(tables.above, sheets, facts, how)
    parts = [
        (openings[name], answer.columns, answer.shown(tables.decimals[name]), keys_of(answer))
        for name, answer in answers.items()
    ]
    return (plain.markdown if suffix == ".md" else plain.text)(tables.above, parts, how)


def html(tables: _Tables, *, files: bool = True) -> str:
    """The page of a report; with `files`, it links to the files of its tables and shortens long
    tables.
    """
    report = tables.report
    drawn = [name for name, answer in report.tables.items() if len(answer) <= _MOST_DRAWN][
        :_MOST_FIGURES
    ]
    contents = "".join(
        f'<li><a href="#{_address(name)}">{escape(tables.opening(name).title)}</a> ·'
        f" {many(len(answer), 'row')}"
        f"{f' · {_files(name)}' if files else ''}</li>"
        for name, answer in report.tables.items()
    )
    return page(
        tables.above.title,
        f"{opened(tables.above)}<nav><ul>{contents}"
        f'<li><a href="#method">{METHOD}</a></li></ul></nav>'
        + "".join(_section(tables, name, name in drawn, files) for name in report.tables)
        + _method_section(tables, files),
    )


def _section(tables: _Tables, name: str, drawn: bool, files: bool) -> str:
    answer, above = tables.report.tables[name], tables.opening(name)
    most, cells = MOST_ROWS if files else None, answer.shown(tables.decimals[name])
    numbers = table(answer.columns, cells, texts=keys_of(answer), most=most, attributes=classes)
    whole = (
        f"<p>All {len(answer):,} rows: {_files(name)}</p>"
        if files and len(answer) > MOST_ROWS
        else ""
    )
    figure = f"<figure>{svg(make('release', answer=answer))}</figure>" if drawn else ""
    return (
        f'<section id="{escape(name)}"><h2>{escape(above.title)}</h2>{opened(above)}{figure}'
        f'<div class="wide">{numbers}</div>{whole}</section>'
    )


def _method_section(tables: _Tables, files: bool) -> str:
    plan, parts = tables.report.plan, []
    for heading, sentences in _method(tables).items():
        parts.append(
            sections({heading: sentences}) + (_sets(tables.report) if heading == _SETS else "")
        )
    if files:
        links = [record_name(plan), *([] if plan.rows is None else [plan.rows])]
        parts.append(f"<p>Files: {', '.join(map(_link, links))}</p>")
    return f'<section id="method"><h2>{METHOD}</h2>{"".join(parts)}</section>'


def _method(tables: _Tables) -> Method:
    report = tables.report
    plan, record = report.plan, report.record
    of = f"all {many(len(plan.layout.tables), 'table')} of this report"
    terms = {"confidence": str(plan.confidence), "simultaneous": plan.simultaneous}
    known = [
        sentence
        for shown_table in plan.layout.tables
        for sentence in publication.public(shown_table.query)
    ]
    last = known[-1]
    chosen = next((digits for digits in tables.decimals.values() if digits is not None), None)
    parts = {
        "What is protected": [*publication.cost(report), *_promise(record)],
        "What the intervals cover": [publication.meaning(terms, of)],
        _SETS: [*_measurement(plan)],
        "How the tables are computed": [*_following(plan)],
        "What is public": [
            *dict.fromkeys(sentence for sentence in known if sentence != last),
            last,
        ],
        "How numbers are rounded": [
            f"{publication.rounding(chosen)} Sums of rounded numbers may differ in their last"
            " digit."
        ],
        "The record": ["The record has the noisy cells, from which all tables are computed."],
    }
    if plan.rows is not None:
        parts["Synthetic rows"] = [" ".join(_of_rows(report))]
    return parts


def _promise(record: dict[str, Any]) -> Iterable[str]:
    yield from publication.promise(record)
    delta = "δ is only that of the discovered keys" if "discovered" in record else "δ = 0"
    yield f"This holds for all tables together, whatever else anybody knows, and {delta}."


def _measurement(plan: ReportPlan) -> Iterable[str]:
    count = len(plan.measured)
    sets = "one set of cells" if count == 1 else f"{count} sets of cells"
    parts = "which has the whole ε" if count == 1 else "each with a part of ε"
    yield (
        f"The rows were counted in {sets}, {parts}, and independent discrete Laplace noise was"
        " added to each cell. Nothing else was read. Rows with none of the listed keys have a"
        " separate cell."
    )
    if plan.known:
        yield "The number of all rows is public."
    for attribute in plan.layout.attributes:
        if attribute.number is not None:
            of = attribute.number.of
            name = of.of.name if isinstance(of.of, Column) else text(of.of)
            missing = " Rows without a value have a separate cell." if of.missing is None else ""
            yield (
                f"{name} is measured by two cells. A row adds the place of its value between"
                f" {decimal(of.lower)} and {decimal(of.upper)}, as a share s of that range, to the"
                " first cell, and 1 − s to the second. Values outside count as the nearer"
                f" bound.{missing}"
            )


def _sets(report: Report) -> str:
    sets = measured_sets(report.plan)
    rows = [
        [set_text(cells), f"{cells['cells']:,}", shown(read_fraction(cells["epsilon"]))]
        for cells in sets
    ]
    return (
        "<div"
        f" class='wide'>{table(['set', 'cells', 'ε'], rows, most=None, attributes=classes)}</div>"
    )


def _following(plan: ReportPlan) -> Iterable[str]:
    yield (
        "Every number is an unbiased linear combination of these noisy cells, with weights that"
        " depend only on the parts of ε. So all tables agree with each other and with their totals."
        " This post-processing costs no ε."
    )
    if not plan.integers:
        yield (
            "Counts may be negative or fractional. They are not corrected, since a correction would"
            " bias their sums."
        )
        return
    yield (
        "Counts are whole and not negative: they count one synthetic set of rows that reproduces"
        " all tables, obtained by rounding the noisy cells once. So counts still agree with each"
        " other. Their intervals are those before the rounding, extended to the whole number where"
        " it lies outside."
    )


def _of_rows(report: Report) -> Iterable[str]:
    """What synthetic rows reproduce."""
    plan = report.plan
    names = [
        table.name
        for table in plan.layout.tables
        if any(
            number.statistic == "count" and number.attribute not in plan.layout.halves
            for number in table.numbers
        )
    ]
    yield (
        "These rows are synthetic: they are generated from the noisy cells alone, and no row"
        " belongs to a person."
    )
    precision = "exactly" if plan.integers else "up to rounding, with no count below 0"
    yield f"They reproduce the counts of {', '.join(names) or 'no table'}, {precision}."
    yield (
        "They reproduce nothing else: no means, no sums, and no relation of columns beyond these"
        " tables."
    )


def _files(name: str) -> str:
    return ", ".join(
        _link(f"{name}.{form}", {"csv": "CSV", "parquet": "Parquet"}[form]) for form in _FORMS
    )


def _link(file: str, label: str | None = None) -> str:
    return f'<a href="{_address(file)}">{escape(label or file)}</a>'


def _address(name: str) -> str:
    return escape(in_address(name))
