"""The text around a published table: its description above, and its method below.

    title, caption     the publisher's own, or a title from the names of the columns
    source, date       the study's name, never a path, and the day of the release
    words, sql         a description of the columns, and the question as it was typed
    …                  the table
    method             what is protected, what the intervals cover, what is public, how numbers are
                       rounded

HTML, Markdown, text and spreadsheets have the same texts; `report`, `plain` and `spreadsheet` lay
them out.
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
from discreet.ask.query import (
    Aggregate,
    Count,
    CountUnits,
    Extreme,
    Moment,
    Named,
    Quantiles,
    Query,
    released,
)
from discreet.errors import one_line
from discreet.formats import as_float, left_shown, readable, shown
from discreet.outside import read_fraction
from discreet.release.answer import Answer

if TYPE_CHECKING:
    from discreet.release.reports.report import Report

Method = Mapping[str, list[str]]  # sentences, by their heading
METHOD = "How these numbers were made"
_NOT_COVERED = "It does not cover sampling error or the effect of clamping values to their bounds."
_NAME = re.compile(r'"(\w+)"')
_NAMED = 4  # most columns that a title names


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The text above a table."""

    title: str
    caption: str = ""
    # the name of the study and the day; empty for a table of a report, which shows them once
    source: str = ""
    words: str = ""
    sql: str = ""


def opening(answer: Answer, title: str | None = None, caption: str | None = None) -> Opening:
    over = answer.record.get("totals_over")
    words = words_of(answer.query, answer.record.get("unit", "row"))
    return Opening(
        title=one_line(title or title_of(answer)),
        caption=one_line(caption or ""),
        source=source_of(answer.record),
        words=words + one_line(f" Each row is a sum over {_listed(over)}." if over else ""),
        sql=answer.query.sql or "",
    )


def title_of(answer: Answer) -> str:
    """A title from the names of the columns, such as: Visits, age by county."""
    keys = [answer.columns[index] for index in keys_of(answer)]
    numbers = [name for name in answer.columns if name not in keys]
    title = ", ".join(numbers) if len(numbers) <= _NAMED else f"{len(numbers)} statistics"
    title += f" by {' and '.join(keys)}" if keys else ""
    return (
        title[:1].upper() + title[1:]
        if numbers[:1] and numbers[0].isidentifier()
        else title or "Released numbers"
    )


def keys_of(answer: Answer) -> list[int]:
    """The indexes of the key columns."""
    names = {group.name for group in answer.query.groups}
    outputs = [output for _, output in answer.query.outputs]
    return [
        index
        for index, output in enumerate(outputs)
        if isinstance(output, Named) and output.name in names
    ]


def source_of(record: Mapping[str, Any]) -> str:
    """The study, its version, and the day of the release."""
    version = f", version {record['data_version']}" if record.get("data_version") else ""
    day = f" · Released on {record['date']}" if "date" in record else ""
    return one_line(f"Source: {record['study']}{version}{day}")


def words_of(query: Query, unit: str) -> str:
    """A description of the columns; empty if only their names are known, as for an answer over
    HTTP.
    """
    keys = {group.name for group in query.groups}
    names = [
        name for name, output in query.outputs if isinstance(output, Named) and output.name in keys
    ]
    numbers = {
        number: phrase
        for name, aggregate in query.aggregates
        for number, phrase in zip(released(name, aggregate), _phrases(aggregate, unit), strict=True)
    }
    parts = [
        f"{name} is {numbers[output.name]}"
        for name, output in query.outputs
        if isinstance(output, Named) and output.name in numbers
    ]
    if not parts:
        return ""
    sentence = f"{f'For each {_listed(names)}, ' if names else ''}{_listed(parts)}."
    where = (
        f" Only rows where {_plain(query.where)} are counted." if query.where is not None else ""
    )
    return one_line(sentence + where)


def _phrases(aggregate: Aggregate, unit: str) -> list[str]:  # noqa: PLR0911 - one case for each aggregate
    """A noun phrase for each number of an aggregate."""
    match aggregate:
        case Count(of):
            if of is None:
                return ["the number of rows"]
            known = (
                f"where {_plain(of)}" if kind_of(of) == "truth" else f"with a value of {_plain(of)}"
            )
            return [f"the number of rows {known}"]
        case CountUnits():
            return [f"the number of distinct values of {unit}"]
        case Moment(statistic, of):
            if kind_of(of) == "truth":
                return [f"the share of rows where {_plain(of)}"]
            return [
                f"the {'standard deviation' if statistic == 'std' else statistic} of {_plain(of)}"
            ]
        case Quantiles(of, shares):
            return [
                f"the {'median' if share == Fraction(1, 2) else f'{decimal(share)} quantile'} of"
                f" {_plain(of)}"
                for share in shares
            ]
        case Extreme(side, of):
            return [f"the {'smallest' if side == 'min' else 'largest'} value of {_plain(of)}"]
    assert_never(aggregate)


def _plain(expression: Expression | None) -> str:
    """An expression without quotes and parentheses that only a parser needs."""
    if isinstance(expression, Column):
        return expression.name
    written = "" if expression is None else text(expression)
    written = written if "'" in written else _NAME.sub(r"\1", written)
    return written[1:-1] if written.startswith("(") and written.endswith(")") else written


def _listed(parts: list[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def method(answer: Answer, decimals: object = None) -> Method:
    return {
        "What is protected": [*cost(answer), *promise(answer.record)],
        "What the intervals cover": [meaning(answer.record), *left_out(answer)],
        "What is public": public(answer.query),
        "How numbers are rounded": [rounding(decimals)],
    }


def cost(answer: Answer | Report) -> list[str]:
    """What was spent, and what it guarantees."""
    record = answer.record
    unit = "row" if record.get("unit", "row") == "row" else record["unit"]
    neighbors = {
        "change-one": f"if one {unit} is replaced by any other",
        "add-remove": f"if one {unit} is added or removed",
    }.get(record["neighbors"], record["neighbors"])
    if not answer.epsilon:
        return ["These numbers cost no ε: all of them are public."]
    sentences = [
        f"ε = {shown(answer.epsilon)} was spent; {left_shown(answer.remaining)} was left of the"
        f" study's total. {neighbors[0].upper()}{neighbors[1:]}, the probability of every outcome"
        " changes by at most a factor of e^ε"
        + (f" = {math.exp(float(answer.epsilon)):.4g}." if answer.epsilon <= 20 else ".")
    ]
    keys = record.get("discovered")
    if keys is not None:
        epsilon, delta = (shown(read_fraction(keys[name])) for name in ("epsilon", "delta"))
        columns = ", ".join(keys["columns"])
        sentences.append(
            f"The keys of {columns} were discovered earlier, at (ε, δ) = ({epsilon}, {delta})."
        )
    return sentences


def promise(record: Mapping[str, Any]) -> Iterable[str]:
    """How many rows of a unit are used."""
    unit, rows = record.get("unit", "row"), record.get("max_rows")
    if unit != "row" and rows:
        yield (
            f"At most {many(rows, 'row')} of each {unit} {'is' if rows == 1 else 'are'} used; the"
            " rest are ignored."
        )


def meaning(record: Mapping[str, Any], of: str = "the table") -> str:
    """What ± means."""
    percent = f"{float(read_fraction(record['confidence'])) * 100:g} %"
    coverage = f"Each exact number lies within its ± in {percent} of releases."
    if record.get("simultaneous"):
        coverage = (
            f"In at least {percent} of releases, all exact numbers of {of} lie within their ± at"
            " once. Each has an equal part of the probability of a miss (Bonferroni), however the"
            " numbers depend on each other."
        )
    return f"{coverage} The interval covers the noise that was added. {_NOT_COVERED}"


def left_out(answer: Answer) -> Iterable[str]:
    """Which intervals leave out the rounding of values."""
    for title, half in answer.roundings.items():
        yield (
            f"That of {title} leaves out the rounding of values, at most"
            f" {readable(as_float(half), 3)} a row."
        )


def public(query: Query) -> list[str]:
    """What is public: lists of keys, bounds, and the released numbers."""
    sentences = []
    for group in query.groups:
        names = [name for name, output in query.outputs if output == Named(group.name)]
        of = names[0] if names else _plain(group.of)
        rest = (
            f"all other rows are counted as {group.other}"
            if group.other
            else "all other rows are left out"
        )
        parts = "bins" if group.edges is not None else "keys"
        sentences.append(
            f"The list of {parts} of {of} is public: each has a row in the table, and {rest}."
        )
    bounded = [
        aggregate
        for _, aggregate in query.aggregates
        if isinstance(aggregate, Moment | Quantiles | Extreme)
    ]
    for number in dict.fromkeys(bounded):
        if kind_of(number.of) == "truth":
            continue
        of = _plain(number.of)
        missing = (
            "are left out" if number.missing is None else f"count as {decimal(number.missing)}"
        )
        sentences.append(
            f"The bounds of {of} are public: values below {decimal(number.lower)} or above"
            f" {decimal(number.upper)} count as the nearer bound. Rows without a value of {of}"
            f" {missing}."
        )
    return [
        *dict.fromkeys(sentences),
        (
            "The released numbers are public, and so is everything computed from them alone"
            " (post-processing)."
        ),
    ]


def rounding(decimals: object = None) -> str:
    how = (
        "Numbers are rounded to two digits of their error"
        if decimals is None
        else "Numbers are rounded"
    )
    return (
        f"{how}. Ends of intervals are rounded outward, so that the intervals hold at least as"
        " often. CSV and spreadsheets have the same digits; Parquet and JSON have the unrounded"
        " numbers."
    )


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
