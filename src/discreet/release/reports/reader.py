"""From the questions of a report to the columns that they share, and to a table for each question.

Equal group columns are one axis, whatever a table calls them. Nested group columns, such as
counties in states, are levels of the axis of the finest column asked for: a parent follows from its
child, whatever the row's own value of the parent is (`ask.expression.Children`), so the table of a
parent is a sum over the table of its children. Tables share one WHERE, or differ by conditions on
group columns, which select cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from discreet.ask.expression import (
    Case,
    Children,
    Coalesce,
    Column,
    Constant,
    Every,
    Expression,
    Missing,
    Negation,
)
from discreet.ask.keys.column import Keys
from discreet.ask.kinds import kind_of, refused
from discreet.ask.normal import canonical, text
from discreet.ask.query import Aggregate, Count, Group, Moment, Query, aggregate_text, group_text
from discreet.ask.query import canonical as question_text
from discreet.ask.scope import Scope
from discreet.errors import QueryRefused
from discreet.release.reports.axes import Axis, Floats
from discreet.release.reports.conditions import admitted, comparisons, operands
from discreet.release.reports.tables import Attribute, Layout, Number, Table
from discreet.release.split import subject
from discreet.release.statistics.moments import MomentDesign
from discreet.release.work import DECISION, Steps, refuse_much

REST = "other"
"""The label of the cell for rows with none of the keys."""


def layout_of(
    queries: Mapping[str, Query], weights: Mapping[str, Fraction], scope: Scope
) -> Layout:
    """The tables of these queries."""
    conditions = {query.where for query in queries.values()}
    common = next(iter(conditions)) if len(conditions) == 1 else None
    # independent of the order of the tables
    ordered = sorted(queries.items(), key=lambda item: question_text(item[1]))
    reader = _Reader(
        scope,
        [query if len(conditions) > 1 else replace(query, where=None) for _, query in ordered],
    )
    by_name = {
        name: reader.table(
            name,
            query,
            weights.get(name, Fraction(1)),
            None if len(conditions) == 1 else query.where,
        )
        for name, query in ordered
    }
    tables = [by_name[name] for name in queries]
    attributes = [
        _divided(attribute, [table.masks[index] for table in tables if index in table.masks])
        for index, attribute in enumerate(reader.attributes.values())
    ]
    finest = [attribute.axis.levels for attribute in attributes]
    tables = [
        replace(
            table, groups=tuple((index, level or finest[index]) for index, level in table.groups)
        )
        for table in tables
    ]
    return Layout(tuple(attributes), tuple(tables), common)


def _divided(attribute: Attribute, masks: list[Floats]) -> Attribute:
    """An attribute with a level for the cells that conditions distinguish, if it has no other."""
    axis = attribute.axis
    if not masks or axis.levels > 1:
        return attribute
    parents = np.unique(np.stack(masks), axis=1, return_inverse=True)[1].reshape(-1)
    parts = int(parents.max()) + 1
    if parts == axis.sizes[1]:
        return attribute
    divided = Axis((1, parts, axis.sizes[1]), (tuple(parents.tolist()),))
    return replace(attribute, axis=divided, names=("", "", attribute.names[1]))


class _Reader:
    """Collects the attributes of all tables."""

    def __init__(self, scope: Scope, queries: Collection[Query]) -> None:
        moments = [
            moment
            for query in queries
            for _, moment in query.aggregates
            if isinstance(moment, Moment)
        ]
        self.scope = scope
        self.attributes: dict[str, Attribute] = {}
        self.decided = 0
        """The steps of deciding which cells conditions admit."""
        self.halves = {
            moment.of: subject(moment)
            for moment in moments
            if moment.missing is None and kind_of(moment.of) != "truth"
        }
        """Numbers with halves that may be missing."""
        groups = [group for query in queries for group in query.groups]
        conditions = [group for query in queries for group in self._condition_groups(query.where)]
        asked = {group.of: group for group in (*groups, *conditions) if group.edges is None}
        self.above = _nested(asked)
        """For each column with nested columns above it, these, the coarsest first."""
        self.finest = {level.of: asked[of] for of, levels in self.above.items() for level in levels}
        for group in groups:
            self._group(group)

    def table(self, name: str, query: Query, weight: Fraction, where: Expression | None) -> Table:
        groups = tuple(self._group(group) for group in query.groups)
        masks: dict[int, Floats] = {}
        parts: dict[frozenset[Expression], list[Expression]] = {}
        for part in _conjuncts(where):
            parts.setdefault(frozenset(operands(part)), []).append(part)
        for columns, conditions in parts.items():
            index, mask = self._mask(columns, Every(tuple(conditions)), name)
            masks[index] = masks.get(index, np.ones(len(mask))) * mask
        numbers = tuple(
            self._number(private, aggregate, name) for private, aggregate in query.aggregates
        )
        complete = {
            index: attribute.complete for index, attribute in enumerate(self.attributes.values())
        }
        return Table(name, query, weight, groups, masks, numbers, complete)

    def _number(self, name: str, aggregate: Aggregate, table: str) -> Number:
        match aggregate:
            case Count(of=None):
                return Number(name, "count", None)
            case Count(of=of) if of in self.halves:
                return Number(
                    name,
                    "count",
                    (index := self._half(self.halves[of])),
                    self._weights(index, 1.0, 1.0),
                )
            case Count(of=of) if of is not None:
                index = self._truth(of if kind_of(of) == "truth" else Negation(Missing(of)))
                return Number(name, "count", index, self._weights(index, 0.0, 1.0))
            case Moment(statistic="mean" | "sum" as statistic, of=of):
                truth = kind_of(of) == "truth"
                index = self._truth(of) if truth else self._half(subject(aggregate))
                number = list(self.attributes.values())[index].number
                ends, half = (0.0, 1.0), 0.0
                if number is not None:
                    grid = number.grid
                    ends = (
                        float(grid.lower * grid.step),
                        float(grid.upper * grid.step),
                    )
                    half = grid.half_step
                shares = ends if statistic == "sum" else (0.0, 1.0)
                weights = self._weights(index, *(shares if truth else reversed(shares)))
                return Number(
                    name, statistic, index, weights, self._weights(index, 1.0, 1.0), ends, half
                )
        raise refused(
            f"{table}: a report may have counts, sums and means, which are measured together; ask"
            " for medians, quantiles, min, max, spreads and counts of units in separate questions"
        )

    def _weights(self, index: int, *ends: float) -> tuple[float, ...]:
        """The weights of the two cells of a truth value or of halves; 0 for missing values."""
        axis = list(self.attributes.values())[index].axis
        return (*ends, *[0.0] * (axis.sizes[-1] - 2))

    def _group(self, group: Group) -> tuple[int, int]:
        """The axis of a group column and its level, 0 for the finest."""
        if group.edges is None and group.of in self.finest:
            finest = self.finest[group.of]
            return self._group(finest)[0], 1 + [level.of for level in self.above[finest.of]].index(
                group.of
            )
        whole = replace(group, name="", other=None if is_complete(group.of) else REST)
        above = self.above.get(group.of, []) if group.edges is None else []
        chain, name = [*above, group], group_text(whole)
        names = [group_text(replace(level, name="", other=REST)) for level in above]
        parents = tuple(_places(child, parent) for parent, child in pairwise(chain))
        sizes = [len(level.keys) + 1 for level in chain] if above else [whole.size]
        return (
            self._index(
                name, Attribute(Axis((1, *sizes), parents), ("", *names, name), group=whole)
            ),
            0,
        )

    def _condition_groups(self, where: Expression | None) -> Iterator[Group]:
        """The group columns of the parts of a condition that concern a single column."""
        for part in _conjuncts(where):
            columns = operands(part)
            if len(columns) == 1:
                with suppress(QueryRefused):  # the column has no keys
                    yield self.scope.group(next(iter(columns)))

    def _truth(self, of: Expression) -> int:
        return self._group(Group("", of, Keys.of([False, True])))[0]

    def _half(self, of: Moment) -> int:
        name, number = aggregate_text(of), MomentDesign(wanted=(("", "mean"),), of=of)
        axis = Axis((1, 2 + (of.missing is None)))
        return self._index(
            name, Attribute(axis, ("", name), number=number, width=number.grid.width)
        )

    def _index(self, name: str, attribute: Attribute) -> int:
        self.attributes.setdefault(name, attribute)
        return list(self.attributes).index(name)

    def _mask(
        self, columns: frozenset[Expression], condition: Every, table: str
    ) -> tuple[int, Floats]:
        """The axis of a condition on these columns, and which of its finest cells it admits."""
        for declared in self._condition_groups(condition):
            [of] = columns
            index, level = self._group(declared)
            attribute = list(self.attributes.values())[index]
            group = attribute.group if level == 0 else replace(declared, other=REST)
            self.decided += (
                0 if group is None else DECISION * len(group.keys) * comparisons(condition)
            )
            refuse_much(
                Steps(cells=self.decided),
                "deciding which keys WHERE admits",
                "leave out some tables",
            )
            cells = None if group is None else admitted(condition, of, group)
            if cells is not None:
                axis = attribute.axis
                return index, cells if level == 0 else cells[axis.ancestors(axis.levels, level)]
        raise refused(
            f"{table}: tables of a report must share one WHERE, or differ by conditions that decide"
            f" for each declared key, such as county = 'A'; {text(condition.parts[0])[:60]} does"
            " not: ask for that table separately"
        )


def _nested(asked: Mapping[Expression, Group]) -> dict[Expression, list[Group]]:
    """The group columns above each finest column of those asked for, the coarsest first."""
    above: dict[Expression, list[tuple[int, Group]]] = {}
    for of, group in asked.items():
        descendants = [step.of for step in _steps(of)]
        requested = [index for index, column in enumerate(descendants) if column in asked]
        if requested:
            above.setdefault(descendants[requested[-1]], []).append((requested[-1], group))
    return {
        of: [group for _, group in sorted(levels, key=lambda level: -level[0])]
        for of, levels in above.items()
    }


def _steps(of: Expression) -> Iterator[Children]:
    """The steps from a column down to the finest column that it follows from."""
    while isinstance(of, Column) and of.children is not None:
        yield of.children
        of = of.children.of


def _places(child: Group, parent: Group) -> tuple[int, ...]:
    """For each key of a column, and for all other values, the index of its parent."""
    keys, places = parent.keys, range(len(parent.keys))
    for step in _steps(parent.of):
        indices = step.parents.places(keys)
        if indices is None or len(set(indices)) < len(keys):
            raise refused(
                f"the keys of {_name(parent.of)} must be those that the file of keys of"
                f" {_name(step.of)} names as parents, so that tables of both agree; correct the"
                " policy"
            )
        places, keys = [places[index] for index in indices], step.keys  # type: ignore[assignment]
        if step.of == child.of:
            break
    return (*places, len(parent.keys))


def _name(of: Expression) -> str:
    return of.name if isinstance(of, Column) else text(of)


def is_complete(of: Expression) -> bool:
    """Whether a group column has no values but its keys, and none missing, for any data."""
    match of:
        case Missing() | Negation(Missing()):
            return True
        case Coalesce(parts=(*_, Constant(bool(), _))):
            return True
        case Case(branches, otherwise):
            return all(
                isinstance(value, Constant) and value.value is not None
                for value in (*(v for _, v in branches), otherwise)
            )
    return False


def _conjuncts(where: Expression | None) -> Iterator[Expression]:
    if isinstance(where, Every):
        for part in where.parts:
            yield from _conjuncts(part)
    elif where is not None:
        yield where


def among(
    query: Query, scope: Scope, attributes: tuple[Attribute, ...], where: str | None
) -> Table | None:
    """A question as a table of a report with these attributes; None if it needs others."""
    common = query.where is not None and canonical(query.where) == where
    reader = _Reader(scope, [query if not common else replace(query, where=None)])
    levels = {
        name: (i, level)
        for i, attribute in enumerate(attributes)
        for level, name in enumerate(attribute.names)
        if name
    }
    reader.halves |= dict(_halves(query, scope, levels))
    table = reader.table("", query, Fraction(1), None if common else query.where)
    if where is not None and not common:
        return None
    if not all(name in levels for name in reader.attributes):
        return None
    local, places = list(reader.attributes.values()), [levels[name] for name in reader.attributes]
    masks = {}
    for index, mask in table.masks.items():
        number, level = places[index]
        masks[number] = mask[
            attributes[number].axis.ancestors(attributes[number].axis.levels, level)
        ]
    numbers = [
        n if n.attribute is None else replace(n, attribute=places[n.attribute][0])
        for n in table.numbers
    ]
    return replace(
        table,
        groups=tuple(levels[local[index].names[level or -1]] for index, level in table.groups),
        masks=masks,
        numbers=tuple(numbers),
        complete={places[index][0]: complete for index, complete in table.complete.items()},
    )


def _halves(
    query: Query, scope: Scope, known: Collection[str]
) -> Iterator[tuple[Expression, Moment]]:
    """Numbers whose values a question counts and whose halves the report has."""
    for _, aggregate in query.aggregates:
        if (
            isinstance(aggregate, Count)
            and aggregate.of is not None
            and kind_of(aggregate.of) == "number"
        ):
            with suppress(QueryRefused):
                mean = scope.moment("mean", aggregate.of)
                if (
                    isinstance(mean, Moment)
                    and mean.missing is None
                    and aggregate_text(subject(mean)) in known
                ):
                    yield aggregate.of, subject(mean)
