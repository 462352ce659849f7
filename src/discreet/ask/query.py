"""Queries as frozen values.

A query has a condition on rows, group columns, named aggregates, and post-processing of released
numbers (arithmetic, HAVING, ORDER BY, LIMIT), which costs nothing. Questions that differ in names,
blanks, order or negations alone have the same `canonical` text, which covers what is released
(condition, groups, aggregates), not its post-processing.

    private names   g1, g2, … for groups and a1, a2, … for aggregates, in the order of their texts,
                    so that queries with
                    the same canonical text use the same names; a2.0, a2.1, … if a2 is several
                    quantiles
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from discreet.ask import normal
from discreet.ask.expression import Column, Expression
from discreet.ask.kinds import refuse_alike, refused
from discreet.ask.normal import decimal

MOST_PAIRS = 1_000
"""The most keys with parents in a condition: each pair is in the statement, as those of a `map`."""

if TYPE_CHECKING:
    import pyarrow

    from discreet.ask.keys.column import Keys


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows: all, those where an expression is not missing, or a condition true."""

    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of units that have a row: count(distinct unit)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A statistic of sums of a number and its square; the mean of a condition is a proportion."""

    statistic: str
    """The name of a statistic in `ask.statistics` that has a `base`."""
    of: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    """Whether the values are integers, so that the step is 1."""
    missing: Fraction | None
    """The value that replaces missing values; None drops them."""
    precision: Fraction | None = None
    """A coarser step that the policy declares."""
    sample: bool = False
    """Whether to divide by n − 1."""


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
    """A group column: an expression, and the keys that have a row in the answer, in declared order.

    `keys` are texts, numbers (Fractions), dates or truth values, or a list of them; `other` is the
    label of a last row for all other values, or None to drop them. For bins, `edges` are given and
    keys are their labels in order: [edge, next edge), with the last bin closed.
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
        """The number of its rows in the answer."""
        return len(self.keys) + (self.other is not None)

    def labels(self) -> pyarrow.Array:
        """The labels of rows: texts (dates too), whole numbers, doubles or truth values."""
        return self.keys.labels(self.other)


@dataclass(frozen=True, slots=True)
class Named:
    """A released number, or the key of a group, by its name in the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction


@dataclass(frozen=True, slots=True)
class Combined:
    """Arithmetic of released numbers; a division by 0 is missing."""

    sign: Literal["+", "-", "*", "/"]
    left: Output
    right: Output


Output: TypeAlias = Named | Number | Combined


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on released numbers, for HAVING: a comparison, or conditions with AND or OR."""

    sign: Literal["=", "<>", "<", "<=", ">", ">=", "and", "or"]
    parts: tuple[Output | Test, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a study.

    `aggregates` are released, each under a private name; `outputs` are the columns of the answer,
    in order, each a group's key, a released number or arithmetic of released numbers; `having`,
    `order` and `limit` are post-processing.
    """

    aggregates: tuple[tuple[str, Aggregate], ...]
    outputs: tuple[tuple[str, Output], ...]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    having: Test | None = None
    order: tuple[tuple[Output, bool], ...] = ()
    """Outputs to sort by, each with whether the order is descending."""
    limit: int | None = None
    sql: str | None = field(default=None, compare=False)
    """The original SQL, for readers only."""


def canonical(query: Query) -> str:
    condition = "" if query.where is None else f" WHERE {normal.canonical(query.where)}"
    groups = sorted({group_text(group) for group in query.groups})
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    aggregates = sorted(
        {aggregate_text(aggregate) for aggregate in merged(part for _, part in query.aggregates)}
    )
    return f"SELECT {', '.join(aggregates)}{condition}{by}"


def released(name: str, aggregate: Aggregate) -> tuple[str, ...]:
    """The names of the numbers that an aggregate releases."""
    if isinstance(aggregate, Quantiles) and len(aggregate.shares) > 1:
        return tuple(f"{name}.{index}" for index in range(len(aggregate.shares)))
    return (name,)


def texts(query: Query) -> dict[str, str]:
    """The canonical text of each released number."""
    return {
        number: text
        for name, aggregate in query.aggregates
        for text, number in _numbers(name, aggregate)
    }


def _numbers(name: str, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    """The text and the name of each number that an aggregate releases."""
    singles: list[Aggregate] = [aggregate]
    if isinstance(aggregate, Quantiles):
        singles = [replace(aggregate, shares=(share,)) for share in aggregate.shares]
    return zip(map(aggregate_text, singles), released(name, aggregate), strict=True)


def aggregate_text(aggregate: Aggregate) -> str:
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
            return (
                f"quantile({normal.canonical(of)}{_range(aggregate)} AT"
                f" {' '.join(map(decimal, shares))})"
            )
        case Extreme(side, of):
            return f"{side}({normal.canonical(of)}{_range(aggregate)})"
    assert_never(aggregate)


def group_text(group: Group) -> str:
    edges = "" if group.edges is None else f" BINS {' '.join(map(decimal, group.edges))}"
    other = "" if group.other is None else f" OTHER {json.dumps(group.other)}"
    return f"{normal.canonical(group.of)}{edges or group.keys.text}{other}"


def merged(aggregates: Iterable[Aggregate]) -> list[Aggregate]:
    """Each aggregate once, all quantiles of an expression together, in the order of the texts."""
    unique: dict[str, Aggregate] = {}
    quantiles: dict[Quantiles, set[Fraction]] = {}
    for aggregate in aggregates:
        if isinstance(aggregate, Quantiles):
            quantiles.setdefault(replace(aggregate, shares=()), set()).update(aggregate.shares)
        else:
            unique[aggregate_text(aggregate)] = aggregate
    for of, shares in quantiles.items():
        together = replace(of, shares=tuple(sorted(shares)))
        unique[aggregate_text(together)] = together
    return sorted(unique.values(), key=aggregate_text)


def assembled(draft: Query) -> Query:
    """The query of a draft: each group and aggregate once, in the order of their texts, under
    private names.

    In a draft aggregates have no names yet; groups and numbers are `Named` by their texts.
    """
    refuse_alike([name for name, _ in draft.outputs])
    parts = [
        draft.where,
        *draft.aggregates,
        *(g.of for g in draft.groups if g.edges or not isinstance(g.of, Column)),
    ]
    for name, children in normal.parents_in(parts):
        if len(children.keys) > MOST_PAIRS:
            raise refused(
                f"{name} is the parent of {len(children.keys):,} keys, and conditions may use up to"
                f" {MOST_PAIRS:,}: group by it, or add it to the data as a column by a SELECT"
            )
    unique = {group_text(group): group for group in draft.groups}
    names = {key: f"g{index}" for index, key in enumerate(sorted(unique), 1)}
    groups = tuple(replace(unique[key], name=name) for key, name in names.items())
    unnamed = merged(aggregate for _, aggregate in draft.aggregates)
    aggregates = [(f"a{index}", aggregate) for index, aggregate in enumerate(unnamed, 1)]
    for name, aggregate in aggregates:
        names.update(_numbers(name, aggregate))
    return replace(
        draft,
        aggregates=tuple(aggregates),
        outputs=tuple((name, _renamed(output, names)) for name, output in draft.outputs),
        groups=groups,
        where=None if draft.where == normal.TRUE else draft.where,
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


def _range(aggregate: Moment | Quantiles | Extreme) -> str:
    whole = " WHOLE" if aggregate.whole else ""
    missing = "" if aggregate.missing is None else f" MISSING {decimal(aggregate.missing)}"
    return f" IN {decimal(aggregate.lower)} TO {decimal(aggregate.upper)}{whole}{missing}"
