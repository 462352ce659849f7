"""Answers with given numbers, as if they had been released, and what a chart says of them."""

import json
from fractions import Fraction
from typing import Any

from discreet.ask.expression import Column
from discreet.ask.query import Count, Group, Named, Output, Query
from discreet.records import from_whole
from discreet.release.answer import Answer

Ends = dict[str, list[Any]]


def numbers(values: list[Any], reach: float) -> Ends:
    """Values with equal intervals."""
    return {
        "value": values,
        "low": [value - reach for value in values],
        "high": [value + reach for value in values],
    }


def group(at: int, name: str, keys: list[Any], **more: Any) -> Group:
    """A group column of texts, numbers or dates."""
    return Group(f"g{at}", Column(name, "text"), tuple(keys), **more)


def _plain(key: Any) -> Any:
    """A key as a record has it."""
    return (
        int(key) if isinstance(key, Fraction) else key if isinstance(key, str | bool) else str(key)
    )


def answer_of(
    groups: list[Group],
    columns: dict[str, tuple[str, Ends]],
    *,
    names: list[str] | None = None,
    order: tuple[tuple[Output, bool], ...] = (),
) -> Answer:
    """An answer: for each column what was asked, and its numbers."""
    named = names or [one.of.name for one in groups]  # type: ignore[union-attr]
    record = {
        "discreet": 1,
        "study": "people",
        "neighbors": "change-one",
        "unit": "row",
        "epsilon": "1/5",
        "confidence": "19/20",
        "simultaneous": False,
        "question": "SELECT …",
        "keys": {
            one.name: [*map(_plain, one.keys), *([one.other] if one.other else [])]
            for one in groups
        },
        "statistics": [
            {"name": f"a{at}", "asked": asked, "sensitivity": "2", "scale": "10"}
            for at, (asked, _) in enumerate(columns.values(), 1)
        ],
        "numbers": {f"a{at}": found for at, (_, found) in enumerate(columns.values(), 1)},
    }
    outputs: list[tuple[str, Output]] = [
        (name, Named(one.name)) for name, one in zip(named, groups, strict=True)
    ]
    outputs += [(name, Named(f"a{at}")) for at, name in enumerate(columns, 1)]
    query = Query(
        aggregates=tuple((f"a{at}", Count()) for at in range(1, len(columns) + 1)),
        outputs=tuple(outputs),
        groups=tuple(groups),
        order=order,
    )
    return Answer(
        content=from_whole(record).pack(), query=query, remaining=Fraction(4, 5), entry="one"
    )


def data_in(chart: Any) -> list[dict[str, Any]]:
    """Every row of data that a chart's spec, or the spec itself, holds; it keeps each table once,
    under a name.
    """
    spec = dict(chart) if isinstance(chart, dict) else chart.to_dict()
    tables = spec.pop("datasets")
    assert '"values": [{' not in json.dumps(spec)
    return [row for rows in tables.values() for row in rows]


def triples_in(chart: Any) -> set[tuple[Any, Any, Any]]:
    """Every released number with its interval that a chart's spec holds."""
    return {(row["value"], row["low"], row["high"]) for row in data_in(chart) if "value" in row}
