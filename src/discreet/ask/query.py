"""Questions as frozen values. A query never runs itself.

A query has a condition on rows, group columns, named aggregates, and what is done to released numbers afterwards
(arithmetic, HAVING, ORDER BY, LIMIT), which costs nothing. Two spellings of one question have one `canonical` text:
it covers what is released (condition, groups, aggregates), not what is done to it afterwards.

    private names   g1, g2, … for groups and a1, a2, … for aggregates, in the order of their texts, so that two queries
                    of one canonical text name the same numbers alike; a2.0, a2.1, … where a2 is several quantiles
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

from discreet.ask import normal
from discreet.ask.expression import Expression
from discreet.ask.normal import decimal


@dataclass(frozen=True, slots=True)
class Count:
    """Rows that count; with an expression, rows where it is not missing (or, if it is a truth, is true)."""

    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class CountUnits:
    """How many units have a row that counts: count(distinct unit)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What follows from sums of a number, and of its square; the mean of a truth is a proportion."""

    statistic: str
    """The name of a row of `ask.statistics` that has a `base`."""
    of: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    """Whether the values are integers (so that the step is 1)."""
    missing: Fraction | None
    """What a missing value counts as; None drops it."""
    precision: Fraction | None = None
    """A coarser step that the policy declares."""
    sample: bool = False
    """With n − 1."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """One or more quantiles of a number."""

    of: Expression
    shares: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction
    whole: bool
    missing: Fraction | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """Minimum or maximum of a number."""

    side: Literal["min", "max"]
    of: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    missing: Fraction | None


Aggregate: TypeAlias = Count | CountUnits | Moment | Quantiles | Extreme


@dataclass(frozen=True, slots=True)
class Group:
    """A group column: an expression, and the values for which there is a row in the answer, in declared order.

    `keys` are texts, numbers (Fractions), dates or truths; `other` is the label of a last row for all other values,
    or None to drop them. For bins, `edges` are given and keys are their labels in order: [edge, next edge), the last
    closed.
    """

    name: str
    of: Expression
    keys: tuple[object, ...]
    other: str | None = None
    edges: tuple[Fraction, ...] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A released number, or a group's key, by its name in the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant among released numbers."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Combined:
    """Arithmetic of released numbers; a quotient by 0 is missing."""

    sign: Literal["+", "-", "*", "/"]
    left: Output
    right: Output


Output: TypeAlias = Named | Number | Combined


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on released numbers, for HAVING: one comparison, or several under AND or OR."""

    sign: Literal["=", "<>", "<", "<=", ">", ">=", "and", "or"]
    parts: tuple[Output | Test, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a study.

    `aggregates` are what is released, each under a private name; `outputs` are the columns of the answer, in order,
    each a group's key, a released number or arithmetic of them; the rest acts on released numbers only.
    """

    aggregates: tuple[tuple[str, Aggregate], ...]
    outputs: tuple[tuple[str, Output], ...]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    having: Test | None = None
    order: tuple[tuple[Output, bool], ...] = ()
    """Outputs to sort by, each with whether it is descending."""
    limit: int | None = None


_LISTED_KEYS = 20
"""Keys that a canonical text lists; it names more by their hash."""


def canonical(query: Query) -> str:
    """The one text of what a query releases."""
    where = "" if query.where is None else f" WHERE {normal.canonical(query.where)}"
    groups = sorted({group_text(group) for group in query.groups})
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    released_ = sorted({aggregate_text(aggregate) for aggregate in merged(one for _, one in query.aggregates)})
    return f"SELECT {', '.join(released_)}{where}{by}"


def released(name: str, aggregate: Aggregate) -> tuple[str, ...]:
    """The names of the numbers that an aggregate releases."""
    if isinstance(aggregate, Quantiles) and len(aggregate.shares) > 1:
        return tuple(f"{name}.{index}" for index in range(len(aggregate.shares)))
    return (name,)


def texts(query: Query) -> dict[str, str]:
    """For each released number its one text."""
    return {number: text for name, one in query.aggregates for text, number in _numbers(name, one)}


def _numbers(name: str, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    """The texts and the names of the numbers that an aggregate releases."""
    each: list[Aggregate] = [aggregate]
    if isinstance(aggregate, Quantiles):
        each = [replace(aggregate, shares=(share,)) for share in aggregate.shares]
    return zip(map(aggregate_text, each), released(name, aggregate), strict=True)


def aggregate_text(aggregate: Aggregate) -> str:
    """The one text of an aggregate.

    >>> aggregate_text(Count())
    'count(*)'
    """
    match aggregate:
        case Count(of):
            return "count(*)" if of is None else f"count({normal.canonical(of)})"
        case CountUnits():
            return "count(DISTINCT unit)"
        case Moment(statistic, of):
            step = "" if aggregate.precision is None else f" STEP {decimal(aggregate.precision)}"
            sample = " SAMPLE" if aggregate.sample else ""
            return f"{statistic}({normal.canonical(of)}{_range(aggregate)}{step}{sample})"
        case Quantiles(of, shares):
            return f"quantile({normal.canonical(of)}{_range(aggregate)} AT {' '.join(map(decimal, shares))})"
        case Extreme(side, of):
            return f"{side}({normal.canonical(of)}{_range(aggregate)})"
    assert_never(aggregate)


def group_text(group: Group) -> str:
    """The one text of a group column, with its keys."""
    edges = "" if group.edges is None else f" BINS {' '.join(map(decimal, group.edges))}"
    other = "" if group.other is None else f" OTHER {json.dumps(group.other)}"
    return f"{normal.canonical(group.of)}{edges or _keys_text(group.keys, type(group.keys[0]).__name__)}{other}"


def merged(aggregates: Iterable[Aggregate]) -> list[Aggregate]:
    """Each aggregate once, quantiles of one expression as one, in the order of their texts."""
    unique: dict[str, Aggregate] = {}
    for one in aggregates:
        if isinstance(one, Quantiles):
            subject = aggregate_text(replace(one, shares=()))
            before = unique.get(subject)
            shares = (*one.shares, *(before.shares if isinstance(before, Quantiles) else ()))
            unique[subject] = replace(one, shares=tuple(sorted(set(shares))))
        else:
            unique[aggregate_text(one)] = one
    return sorted(unique.values(), key=aggregate_text)


@dataclass(frozen=True, slots=True)
class Draft:
    """A query in which a group is `Named` by its text, and a number by the text of its own aggregate."""

    outputs: Sequence[tuple[str, Output]]
    aggregates: Sequence[Aggregate]
    groups: Sequence[Group] = ()
    where: Expression | None = None
    having: Test | None = None
    order: Sequence[tuple[Output, bool]] = ()
    limit: int | None = None


def assembled(draft: Draft) -> Query:
    """The query of a draft: groups and aggregates once each, in the order of their texts, under private names."""
    names: dict[str, str] = {}
    groups = {group_text(group): group for group in draft.groups}
    named_groups = []
    for index, key in enumerate(sorted(groups), 1):
        names[key] = f"g{index}"
        named_groups.append(replace(groups[key], name=f"g{index}"))
    aggregates = [(f"a{index}", one) for index, one in enumerate(merged(draft.aggregates), 1)]
    for name, one in aggregates:
        names.update(_numbers(name, one))
    return Query(
        aggregates=tuple(aggregates),
        outputs=tuple((name, _renamed(output, names)) for name, output in draft.outputs),
        groups=tuple(named_groups),
        where=draft.where,
        having=None if draft.having is None else _renamed_test(draft.having, names),
        order=tuple((_renamed(output, names), descending) for output, descending in draft.order),
        limit=draft.limit,
    )


def _renamed(output: Output, names: dict[str, str]) -> Output:
    match output:
        case Named(name):
            return Named(names[name])
        case Number():
            return output
        case Combined(sign, left, right):
            return Combined(sign, _renamed(left, names), _renamed(right, names))
    assert_never(output)


def _renamed_test(test: Test, names: dict[str, str]) -> Test:
    parts = (_renamed_test(part, names) if isinstance(part, Test) else _renamed(part, names) for part in test.parts)
    return Test(test.sign, tuple(parts))


def _range(one: Moment | Quantiles | Extreme) -> str:
    whole = " WHOLE" if one.whole else ""
    missing = "" if one.missing is None else f" MISSING {decimal(one.missing)}"
    return f" IN {decimal(one.lower)} TO {decimal(one.upper)}{whole}{missing}"


@lru_cache(maxsize=64)
def _keys_text(keys: tuple[object, ...], kind: str) -> str:
    """The keys, all of one type; a cache without it would take (False, True) for (0, 1)."""
    written = json.dumps([kind, *map(str, keys)])
    if len(keys) <= _LISTED_KEYS:
        return f" KEYS {written}"
    return f" KEYS {len(keys)} sha256 {hashlib.sha256(written.encode()).hexdigest()}"
