"""What a question does to values that are missing, out of bounds or not among the keys, in sentences for a plan."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.ask.expression import Cast, Column, Function, Part, Truncated
from discreet.ask.kinds import kind_of
from discreet.ask.normal import decimal
from discreet.ask.query import Extreme, Group, Moment, Named, Quantiles, Query


def notes(query: Query) -> list[str]:
    """The sentences, each once, in the order of the question."""
    numbers = [one for _, one in query.aggregates if isinstance(one, Moment | Quantiles | Extreme)]
    of_numbers = (note for one in numbers if kind_of(one.of) == "number" for note in _of_number(one))
    return list(dict.fromkeys([*of_numbers, *(_of_group(group, query) for group in query.groups)]))


def _of_number(one: Moment | Quantiles | Extreme) -> Iterator[str]:
    what = one.of.name if isinstance(one.of, Column) else "an expression"
    yield f"Missing values of {what} {'are left out' if one.missing is None else f'count as {decimal(one.missing)}'}."
    lower, upper = decimal(one.lower), decimal(one.upper)
    if isinstance(one, Quantiles):
        yield f"Errors of quantiles are shown as if values of {what} were spread evenly over {lower}–{upper}."
    if isinstance(one.of, Column):
        yield f"Values of {what} outside {lower}–{upper} count as {lower} or {upper}."


def _of_group(group: Group, query: Query) -> str:
    title = next((name for name, output in query.outputs if output == Named(group.name)), "group")
    absent = "is not listed" if group.edges is None else "lies in no bin"
    match group.of:  # a part of a date, or its label, such as 2024-02
        case Part() | Truncated() | Cast(Truncated()) | Function("substring", (Cast(Truncated()), *_)) if len(
            group.keys
        ):
            labels = group.labels()
            absent = f"lies outside {labels[0]} to {labels[len(group.keys) - 1]}"
    return f"Rows whose {title} {absent} {'are left out' if group.other is None else f'count as {group.other}'}."
