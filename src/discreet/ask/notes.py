"""Sentences for a plan: what happens to values that are missing, out of bounds or not among the
keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.ask.expression import Cast, Column, Function, Part, Truncated
from discreet.ask.kinds import kind_of
from discreet.ask.normal import decimal
from discreet.ask.query import Extreme, Group, Moment, Named, Quantiles, Query


def notes(query: Query) -> list[str]:
    """The sentences, each once, in the order of the question."""
    numbers = [
        aggregate
        for _, aggregate in query.aggregates
        if isinstance(aggregate, Moment | Quantiles | Extreme)
    ]
    of_numbers = (
        note for number in numbers if kind_of(number.of) == "number" for note in _of_number(number)
    )
    return list(dict.fromkeys([*of_numbers, *(_of_group(group, query) for group in query.groups)]))


def _of_number(number: Moment | Quantiles | Extreme) -> Iterator[str]:
    name = number.of.name if isinstance(number.of, Column) else "an expression"
    fate = "are left out" if number.missing is None else f"count as {decimal(number.missing)}"
    yield f"Missing values of {name} {fate}."
    lower, upper = decimal(number.lower), decimal(number.upper)
    if isinstance(number, Quantiles):
        yield (
            f"Errors of quantiles are shown as if values of {name} were spread evenly over"
            f" {lower}–{upper}."
        )
    if isinstance(number.of, Column):
        yield f"Values of {name} outside {lower}–{upper} count as {lower} or {upper}."


def _of_group(group: Group, query: Query) -> str:
    title = next((name for name, output in query.outputs if output == Named(group.name)), "group")
    absent = "is not listed" if group.edges is None else "lies in no bin"
    match group.of:  # a part of a date, or its label, such as 2024-02
        case (
            Part()
            | Truncated()
            | Cast(Truncated())
            | Function("substring", (Cast(Truncated()), *_))
        ) if len(group.keys):
            labels = group.labels()
            absent = f"lies outside {labels[0]} to {labels[len(group.keys) - 1]}"
    return (
        f"Rows whose {title} {absent}"
        f" {'are left out' if group.other is None else f'count as {group.other}'}."
    )
