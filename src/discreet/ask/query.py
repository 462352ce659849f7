"""Questions as frozen values. A query never runs itself.

A query has a condition on rows, group columns, named aggregates, and what is done to released numbers afterwards
(arithmetic, HAVING, ORDER BY, LIMIT), which costs nothing. Two spellings of one question have one `canonical` text:
it covers what is released (condition, groups, aggregates), not what is done to it afterwards.

    private names   g1, g2, … for groups and a1, a2, … for aggregates, in the order of their texts, so that two queries
                    of one canonical text name the same numbers alike; a2.0, a2.1, … where a2 is several quantiles
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from discreet.ask import normal
from discreet.ask.expression import Column, Expression
from discreet.ask.kinds import refused
from discreet.ask.normal import decimal

MOST_PAIRS = 1_000
"""Of keys and their parents in a condition: each stands in the statement, as those of a `map` do."""

if TYPE_CHECKING:
    import pyarrow

    from discreet.ask.keys.column import Keys


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
    of: Expression
    shares: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction
    whole: bool
    missing: Fraction | None


@dataclass(frozen=True, slots=True)
class Extreme:
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

    `keys` are texts, numbers (Fractions), dates or truths, or a list that becomes such a column; `other` is the label
    of a last row for all other values, or None to drop them. For bins, `edges` are given and keys are their labels in
    order: [edge, next edge), the last closed.
    """

    name: str
    of: Expression
    keys: Keys
    other: str | None = None
    edges: tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.keys, list | tuple):
            from discreet.ask.keys.column import Keys

            object.__setattr__(self, "keys", Keys.of(self.keys))

    @property
    def size(self) -> int:
        """How many rows it has in the answer."""
        return len(self.keys) + (self.other is not None)

    def labels(self) -> pyarrow.Array:
        """What a table shows for each row: texts, whole numbers, doubles or truths; dates are texts."""
        return self.keys.labels(self.other)


@dataclass(frozen=True, slots=True)
class Named:
    """A released number, or a group's key, by its name in the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
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
    sql: str | None = field(default=None, compare=False)
    """What was typed, if it was SQL: for readers only."""


def canonical(query: Query) -> str:
    where = "" if query.where is None else f" WHERE {normal.canonical(query.where)}"
    groups = sorted({group_text(group) for group in query.groups})
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    aggregates = sorted({aggregate_text(aggregate) for aggregate in merged(one for _, one in query.aggregates)})
    return f"SELECT {', '.join(aggregates)}{where}{by}"


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
    """The one text of an aggregate."""
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
    edges = "" if group.edges is None else f" BINS {' '.join(map(decimal, group.edges))}"
    other = "" if group.other is None else f" OTHER {json.dumps(group.other)}"
    return f"{normal.canonical(group.of)}{edges or group.keys.text}{other}"


def merged(aggregates: Iterable[Aggregate]) -> list[Aggregate]:
    """Each aggregate once, quantiles of one expression as one, in the order of their texts."""
    unique: dict[str, Aggregate] = {}
    for aggregate in aggregates:
        key = aggregate_text(aggregate)
        if isinstance(aggregate, Quantiles):
            key = aggregate_text(replace(aggregate, shares=()))
            before = unique.get(key, aggregate)
            shares = {*aggregate.shares, *(before.shares if isinstance(before, Quantiles) else ())}
            aggregate = replace(aggregate, shares=tuple(sorted(shares)))  # noqa: PLW2901 - with the others
        unique[key] = aggregate
    return sorted(unique.values(), key=aggregate_text)


def assembled(draft: Query) -> Query:
    """The query of a draft: groups and aggregates once each, in the order of their texts, under private names.

    In a draft aggregates have no names yet, a group is `Named` by its text, a number by the text of its own aggregate.
    """
    parts = [draft.where, *draft.aggregates, *(g.of for g in draft.groups if g.edges or not isinstance(g.of, Column))]
    for name, children in normal.parents_in(parts):
        if len(children.keys) > MOST_PAIRS:
            raise refused(
                f"{name} follows from {len(children.keys):,} keys of its children, and conditions may use up to "
                f"{MOST_PAIRS:,}: group by it, or give the data a column of its own by a SELECT"
            )
    unique = {group_text(group): group for group in draft.groups}
    names = {key: f"g{index}" for index, key in enumerate(sorted(unique), 1)}
    groups = tuple(replace(unique[key], name=name) for key, name in names.items())
    aggregates = [(f"a{index}", one) for index, one in enumerate(merged(one for _, one in draft.aggregates), 1)]
    for name, one in aggregates:
        names.update(_numbers(name, one))
    return replace(
        draft,
        aggregates=tuple(aggregates),
        outputs=tuple((name, _renamed(output, names)) for name, output in draft.outputs),
        groups=groups,
        having=_renamed(draft.having, names),
        order=tuple((_renamed(output, names), descending) for output, descending in draft.order),
    )


def _renamed(output: Any, names: dict[str, str]) -> Any:
    match output:
        case Named(name):
            return Named(names[name])
        case Combined(sign, left, right):
            return Combined(sign, _renamed(left, names), _renamed(right, names))
        case Test(sign, parts):
            return Test(sign, tuple(_renamed(part, names) for part in parts))
    return output


def _range(one: Moment | Quantiles | Extreme) -> str:
    whole = " WHOLE" if one.whole else ""
    missing = "" if one.missing is None else f" MISSING {decimal(one.missing)}"
    return f" IN {decimal(one.lower)} TO {decimal(one.upper)}{whole}{missing}"
