"""What a published table says besides its numbers: first what it is, in the asker's words, and last how it was made.

    title, caption     the publisher's own, or a title made of the names of the columns
    source, date       the study's name, never a path, and the day of the release
    words, sql         what the columns are, in plain words, and the question as it was typed
    …                  the table
    method             what is protected, what the intervals cover, what is public, how numbers are rounded

HTML, Markdown, text and spreadsheets show the same; how each looks is in `report`, `plain` and `spreadsheet`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, assert_never

from discreet.ask.expression import Column, Expression
from discreet.ask.kinds import kind_of
from discreet.ask.normal import decimal, text
from discreet.ask.query import Aggregate, Count, CountUnits, Extreme, Moment, Named, Quantiles, Query, released
from discreet.errors import one_line
from discreet.formats import left_shown, shown
from discreet.release.answer import Answer

if TYPE_CHECKING:
    from discreet.release.reports.report import Report

Method = Mapping[str, list[str]]
"""Sentences, by their heading."""

METHOD = "How these numbers were made"
_NOT_COVERED = "It does not cover sampling error or values cut off at the bounds."
_NAME = re.compile(r'"(\w+)"')
_NAMED = 4
"""Columns that a title names."""

_MOMENTS = {
    "sum": "the sum of {}",
    "mean": "the mean of {}",
    "variance": "the variance of {}",
    "std": "the standard deviation of {}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What stands above a table."""

    title: str
    caption: str = ""
    source: str = ""
    """The name of the study and the day, in one line; empty for a table of a report, which has them once."""
    words: str = ""
    sql: str = ""


def opening(answer: Answer, title: str | None = None, caption: str | None = None) -> Opening:
    """What stands above the table of an answer."""
    over = answer.record.get("totals_over")
    words = words_of(answer.query, answer.record.get("unit", "row"))
    return Opening(
        title=one_line(title or title_of(answer)),
        caption=one_line(caption or ""),
        source=source_of(answer.record),
        words=words + one_line(f" These are sums over {_listed(over)}." if over else ""),
        sql=answer.query.sql or "",
    )


def title_of(answer: Answer) -> str:
    """A title made of the names of the columns: visits, age by county."""
    keys = [answer.columns[index] for index in keys_of(answer)]
    numbers = [name for name in answer.columns if name not in keys]
    title = ", ".join(numbers) if len(numbers) <= _NAMED else f"{len(numbers)} statistics"
    title += f" by {' and '.join(keys)}" if keys else ""
    return title[:1].upper() + title[1:] if numbers[:1] and numbers[0].isidentifier() else title or "Released numbers"


def keys_of(answer: Answer) -> list[int]:
    """The indexes of the columns that hold keys."""
    names = {group.name for group in answer.query.groups}
    outputs = [output for _, output in answer.query.outputs]
    return [index for index, output in enumerate(outputs) if isinstance(output, Named) and output.name in names]


def source_of(record: Mapping[str, Any]) -> str:
    """Whose numbers they are, and from which day."""
    version = f", version {record['data_version']}" if record.get("data_version") else ""
    day = f" · Released on {record['date']}" if "date" in record else ""
    return one_line(f"Source: {record['study']}{version}{day}")


def words_of(query: Query, unit: str) -> str:
    """What the columns are, in plain words; empty where only their names are known, as of an answer over HTTP."""
    keys = {group.name for group in query.groups}
    names = [name for name, output in query.outputs if isinstance(output, Named) and output.name in keys]
    numbers = {
        number: phrase
        for name, one in query.aggregates
        for number, phrase in zip(released(name, one), _phrases(one, unit), strict=True)
    }
    parts = [
        f"{name} is {numbers[output.name]}"
        for name, output in query.outputs
        if isinstance(output, Named) and output.name in numbers
    ]
    if not parts:
        return ""
    sentence = f"{f'For each {_listed(names)}, ' if names else ''}{_listed(parts)}."
    where = f" Only rows count where {_plain(query.where)}." if query.where is not None else ""
    return one_line(sentence + where)


def _phrases(one: Aggregate, unit: str) -> list[str]:  # noqa: PLR0911 - one case for each aggregate
    """What each number of an aggregate is."""
    match one:
        case Count(of):
            if of is None:
                return ["the number of rows"]
            known = f"where {_plain(of)}" if kind_of(of) == "truth" else f"with a value of {_plain(of)}"
            return [f"the number of rows {known}"]
        case CountUnits():
            return [f"the number of different values of {unit}"]
        case Moment(statistic, of):
            if kind_of(of) == "truth":
                return [f"the share of rows where {_plain(of)}"]
            return [_MOMENTS.get(statistic, f"the {statistic} of {{}}").format(_plain(of))]
        case Quantiles(of, shares):
            return [
                f"the {'median' if share == Fraction(1, 2) else f'{decimal(share)} quantile'} of {_plain(of)}"
                for share in shares
            ]
        case Extreme(side, of):
            return [f"the {'smallest' if side == 'min' else 'largest'} value of {_plain(of)}"]
    assert_never(one)


def _plain(expression: Expression | None) -> str:
    """An expression without the quotes and the parentheses that only a parser needs."""
    if isinstance(expression, Column):
        return expression.name
    written = "" if expression is None else text(expression)
    written = written if "'" in written else _NAME.sub(r"\1", written)
    return written[1:-1] if written.startswith("(") and written.endswith(")") else written


def _listed(parts: list[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def method(answer: Answer, decimals: object = None) -> Method:
    """How the numbers of an answer were made, what they promise, and what they leave open."""
    return {
        "What is protected": [*cost(answer), *promise(answer.record)],
        "What the intervals cover": [meaning(answer.record)],
        "What is public": public(answer.query),
        "How numbers are rounded": [rounding(decimals)],
    }


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


def promise(record: Mapping[str, Any]) -> Iterable[str]:
    """Whose rows count how often, and for what the promise holds."""
    unit, rows = record.get("unit", "row"), record.get("max_rows")
    if unit != "row" and rows:
        yield f"Up to {many(rows, 'row')} of each {unit} count; further ones are left out."


def meaning(record: Mapping[str, Any], of: str = "the table") -> str:
    """What ± means."""
    percent = f"{float(Fraction(record['confidence'])) * 100:g} %"
    what = f"Each true number lies within its ± in {percent} of releases."
    if record.get("simultaneous"):
        what = (
            f"In at least {percent} of releases all true numbers of {of} lie within their ± at once. Each of them has "
            "an equal part of the chance to miss (Bonferroni), however they depend on each other."
        )
    return f"{what} The interval covers the noise that was added. {_NOT_COVERED}"


def public(query: Query) -> list[str]:
    """What everybody may know: lists of keys, bounds, and all that is shown here."""
    sentences = []
    for group in query.groups:
        names = [name for name, output in query.outputs if output == Named(group.name)]
        of = names[0] if names else _plain(group.of)
        rest = f"all others are counted under {group.other}" if group.other else "rows with none of them are left out"
        what = "bins" if group.edges is not None else "keys"
        sentences.append(f"The list of {what} of {of} is public: each has a row, and {rest}.")
    for one in dict.fromkeys(one for _, one in query.aggregates if isinstance(one, Moment | Quantiles | Extreme)):
        if kind_of(one.of) == "truth":
            continue
        of, missing = _plain(one.of), "are left out" if one.missing is None else f"count as {decimal(one.missing)}"
        sentences.append(
            f"The bounds of {of} are public: values below {decimal(one.lower)} or above {decimal(one.upper)} count as "
            f"the nearer bound. Rows without {of} {missing}."
        )
    return [*dict.fromkeys(sentences), "The numbers here are public, and so is all that is computed from them alone."]


def rounding(decimals: object = None) -> str:
    """How numbers are rounded where people read them."""
    how = "Numbers are rounded to two digits of their error" if decimals is None else "Numbers are rounded"
    return (
        f"{how}, and the ends of intervals outward, so that they hold no less often. "
        "CSV and spreadsheets have the same digits; Parquet and JSON have the exact numbers."
    )


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
