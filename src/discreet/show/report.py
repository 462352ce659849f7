"""A released answer as one HTML file to hand on: table, figure, what it cost, what ± means, and the record.

The file needs no network and no script. It follows the reader's choice of light or dark, and prints. Everything in it
was released: it is made of the answer, which is made of the bytes that the ledger keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter, one_line, printable
from discreet.files import writer
from discreet.formats import left_shown, shown
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.show.figures import make, svg, theme
from discreet.show.html import keys_of, table

if TYPE_CHECKING:
    from discreet.release.reports.report import Report


def report(answer: Answer, *, title: str = "Released by discreet") -> str:
    record = printable(json.dumps(answer.record, ensure_ascii=False, indent=1))
    asked = answer.record.get("question", "")
    numbers = table(answer.columns, answer.cells, texts=keys_of(answer), most=None, attributes=classes)
    return page(
        title,
        f"<p><code>{escape(printable(asked))}</code></p>"
        f"<figure>{svg(make('release', answer=answer))}</figure>"
        f"<h2>What it cost, and how near it is</h2>{paragraphs(*cost(answer), meaning(answer.record))}"
        f"<h2>The numbers</h2><div class='wide'>{numbers}</div>"
        f"<details><summary>The record, as the ledger keeps it</summary><pre>{escape(record)}</pre></details>",
    )


def page(title: str, body: str) -> str:
    """One HTML file: a title, and what stands below it."""
    heading = escape(one_line(title))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{_style()}</style></head>"
        f"<body><main><h1>{heading}</h1>{body}</main></body></html>"
    )


def paragraphs(*sentences: str) -> str:
    return "".join(f"<p>{escape(one_line(sentence))}</p>" for sentence in sentences)


def write(
    answer: Answer, path: str | PathLike[str], *, title: str = "Released by discreet", force: bool = False
) -> Path:
    """Write the report as a new .html; the place comes back."""
    place = Path(path)
    if place.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"path of a report must end in .html, got {quote(place.name)}")
    return writer.write(place, report(answer, title=title), force=force, kept=answer.kept)


def cost(answer: Answer | Report) -> list[str]:
    """What was spent, and what that promises."""
    record = answer.record
    unit = "row" if record.get("unit", "row") == "row" else record["unit"]
    neighbors = {
        "change-one": f"with one {unit} replaced by any other",
        "add-remove": f"with one {unit} more or less",
    }.get(record["neighbors"], record["neighbors"])
    if not answer.epsilon:
        return ["It cost nothing: all of these numbers are public."]
    sentences = [
        f"ε = {shown(answer.epsilon)} was spent; {left_shown(answer.remaining)} was left of the study's total. "
        f"{neighbors[0].upper()}{neighbors[1:]}, every outcome is equally likely up to a factor e^ε"
        + (f" = {math.exp(float(answer.epsilon)):.4g}." if answer.epsilon <= 20 else ".")
    ]
    keys = record.get("discovered")
    if keys is not None:
        epsilon, delta = (shown(Fraction(keys[name])) for name in ("epsilon", "delta"))
        columns = ", ".join(keys["columns"])
        sentences.append(f"The keys of {columns} were discovered before, at (ε, δ) = ({epsilon}, {delta}).")
    return sentences


def meaning(record: Mapping[str, Any], of: str = "the table") -> str:
    """What ± means."""
    percent = f"{float(Fraction(record['confidence'])) * 100:g} %"
    what = f"Each true number lies within its ± in {percent} of releases."
    if record.get("simultaneous"):
        what = f"In {percent} of releases all true numbers of {of} lie within their ± at once."
    return f"{what} ± covers the noise that was added, not the choice of people nor values clamped to the bounds."


def classes(tag: str, text: bool) -> str:
    return "" if tag == "table" else f"class={'key' if text else 'number'}"


def _style() -> str:
    names = {"card": theme.CARD, "text": theme.TEXT, "quiet": theme.QUIET, "line": theme.GRID, "link": theme.BLUE}
    day, night = ("".join(f"--{name}:{pair[at]};" for name, pair in names.items()) for at in (0, 1))
    return (
        f":root{{color-scheme:light dark;{day}}}@media screen and (prefers-color-scheme: dark){{:root{{{night}}}}}"
        "body{margin:0;background:var(--card);color:var(--text);font:16px/1.5 system-ui,sans-serif}"
        "main{max-width:46rem;margin:0 auto;padding:2rem 1rem}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}"
        "h3{font-size:1rem;margin-bottom:0}h2,h3{break-after:avoid}h3+p{margin-top:.25rem}a{color:var(--link)}"
        "code,pre{font-size:.85rem;color:var(--quiet);white-space:pre-wrap;overflow-wrap:anywhere}"
        "figure{margin:1rem 0;overflow-x:auto;break-inside:avoid}figure svg{max-width:100%;height:auto}"
        ".wide{overflow-x:auto}"
        "table{border-collapse:collapse}th,td{text-align:left;padding:.25rem 1.2rem .25rem 0;"
        "border-bottom:1px solid var(--line);vertical-align:top}"
        ".number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
        "thead{display:table-header-group}tr{break-inside:avoid}summary{cursor:pointer;margin-top:2rem}"
        f"{theme.repaint()}"
        "@media print{main{max-width:none;padding:0}details{display:none}}"
    )
