"""What a report is asked for, as combinations of cells.

    group column   an axis with its keys, and a last cell for rows that have none of them
    condition      an axis that says for which rows it is true, false or neither
    number         an axis of halves: a row spreads u and 1 − u over them, u = (x − L)/(H − L); missing is a third cell

Every row is on every axis once, so that each set of axes costs what one table costs. Tables may differ in WHERE if
their conditions are of group columns: these choose cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.ask.expression import Case, Coalesce, Column, Constant, Every, Expression, Missing, Negation
from discreet.ask.keys.column import Keys
from discreet.ask.kinds import kind_of, refused
from discreet.ask.normal import canonical, text
from discreet.ask.query import Aggregate, Count, Group, Moment, Named, Query, aggregate_text, group_text
from discreet.ask.query import canonical as question_text
from discreet.ask.scope import Scope
from discreet.errors import QueryRefused
from discreet.release.reports.allocation import Target
from discreet.release.reports.axes import Axis, Floats, Levels
from discreet.release.reports.conditions import admitted, operands
from discreet.release.reports.noise import Question
from discreet.release.split import subject
from discreet.release.statistics.moments import MomentDesign

REST = "other"
"""The label of the cell of rows that have none of the keys."""


@dataclass(frozen=True)
class Attribute:
    """A column of a report: an axis, and what its cells are."""

    axis: Axis
    names: tuple[str, ...]
    """For each level the one text of what it is; empty for one that nobody asked for."""
    group: Group | None = None
    """A group with its last cell, or a condition."""
    number: MomentDesign | None = None
    """The number whose halves are the cells."""
    width: int = 0
    """Of the grid of a number: what is worth one row in its halves; 0 if there are none."""

    @property
    def half(self) -> bool:
        """Whether a row spreads over its cells."""
        return self.width > 0

    @property
    def complete(self) -> bool:
        """Whether every row has one of the keys."""
        return self.group is not None and self.group.other is None


@dataclass(frozen=True)
class Number:
    """A released number of a table: a combination of the cells of an axis, or the quotient of two."""

    name: str
    statistic: str
    """count, sum or mean."""
    attribute: int | None
    """The axis of the number or condition; None for all rows."""
    weights: tuple[float, ...] = ()
    """Of the cells: in the count or the sum, or in the numerator of a mean."""
    present: tuple[float, ...] = ()
    """Of the cells, in the denominator of a mean."""
    of: Moment | None = None
    rounding: float = 0.0
    """Half a step of the grid of a mean, as a share of its range."""


@dataclass(frozen=True)
class Table:
    """A table of a report."""

    name: str
    query: Query
    weight: Fraction
    groups: tuple[tuple[int, int], ...]
    """For each group column its axis and the level of it."""
    masks: Mapping[int, Floats]
    """For each axis with a condition, which of its finest cells are admitted: 1 or 0."""
    numbers: tuple[Number, ...]
    complete: Mapping[int, bool]
    """For each axis with groups whether every row has one of its keys."""

    def levels(self, axes: tuple[Axis, ...], number: Number) -> Levels:
        """The levels of the axes that a number rests on."""
        found = [0] * len(axes)
        for index in self.masks:
            found[index] = self._mask(axes, index)[0]
        if number.attribute is not None:
            found[number.attribute] = axes[number.attribute].levels
        for index, level in self.groups:
            found[index] = max(found[index], level)
        return tuple(found)

    def _mask(self, axes: tuple[Axis, ...], index: int) -> tuple[int, Floats]:
        """The coarsest level on which WHERE admits cells of an axis, and which of them."""
        axis, mask = axes[index], self.masks[index]
        for level in range(1, axis.levels):
            coarse = np.zeros(axis.sizes[level])
            coarse[axis.ancestors(axis.levels, level)] = mask
            if (coarse[axis.ancestors(axis.levels, level)] == mask).all():
                return level, coarse
        return axis.levels, mask

    def mask(self, axes: tuple[Axis, ...], index: int, level: int) -> Floats | None:
        """Which cells of a level of an axis WHERE admits."""
        if index not in self.masks:
            return None
        own, mask = self._mask(axes, index)
        return mask[axes[index].ancestors(level, own)]

    def rows(self, axes: tuple[Axis, ...]) -> dict[int, NDArray[np.int64]]:
        """For each axis with group columns the cells, on the finest level of these, that have a row in the table."""
        found: dict[int, NDArray[np.int64]] = {}
        for index, level in self.finest.items():
            labelled = all(
                g.other is not None for g, own in zip(self.query.groups, self.groups, strict=True) if own[0] == index
            )
            cells = np.arange(axes[index].sizes[level] - (not labelled and not self.complete[index]))
            mask = self.mask(axes, index, level)
            found[index] = cells if mask is None else cells[mask[cells] > 0]
        return found

    @property
    def finest(self) -> dict[int, int]:
        """The axes with group columns, in the order of these, each with the finest level that is asked for."""
        found: dict[int, int] = {}
        for index, level in self.groups:
            found[index] = max(level, found.get(index, 0))
        return found

    @property
    def nested(self) -> bool:
        """Whether two group columns share an axis, as state and county do."""
        return len(self.finest) < len(self.groups)

    def keys(self, axes: tuple[Axis, ...]) -> dict[str, list[object]]:
        """The keys of each group column: each once, or for each row where group columns are nested."""
        rows, found = self.rows(axes), {}
        grid = dict(zip(rows, np.meshgrid(*rows.values(), indexing="ij"), strict=True)) if self.nested else rows
        for group, (index, level) in zip(self.query.groups, self.groups, strict=True):
            cells = axes[index].ancestors(self.finest[index], level)[grid[index].ravel()]
            names = [*group.keys, group.other]
            found[group.name] = [names[cell] for cell in cells.tolist()]
        return found

    def question(self, axes: tuple[Axis, ...], number: Number, weights: Floats | None, cells: list[int]) -> Question:
        """A number of one row of the table, as a combination on each axis; `cells` are those of its group columns."""
        levels = self.levels(axes, number)
        found = []
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            query = np.ones(axis.sizes[level])
            for own, cell in zip(self.finest, cells, strict=True):
                if own == index:
                    query = query * axis.unit(level, cell)
            mask = self.mask(axes, index, level)
            if mask is not None:
                query = query * mask
            if index == number.attribute and weights is not None:
                query = (query * weights.T).T
            found.append((level, query))
        return found

    def target(self, axes: tuple[Axis, ...], number: Number) -> Target:
        """What the plan makes precise: a cell of a count, or of the halves of a number."""
        levels = self.levels(axes, number)
        spreads = []
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            mask = self.mask(axes, index, level)
            if mask is None or index in self.finest:
                spreads.append(tuple(axis.spreads(level)))
                continue
            found = np.zeros(axis.levels + 1)
            for part in range(level + 1):
                many, weights = axis.weights(level, mask, part)
                found[part] = many @ weights[:, part] ** 2
            spreads.append(tuple(found))
        return Target(levels, tuple(spreads), float(self.weight))


@dataclass(frozen=True)
class Asked:
    """All tables of a report, and the axes that they share."""

    attributes: tuple[Attribute, ...]
    tables: tuple[Table, ...]
    where: Expression | None
    """The condition that all tables share."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of all attributes."""
        return tuple(attribute.axis for attribute in self.attributes)

    def labels(self, index: int) -> tuple[str, list[object]]:
        """What an axis of groups is called, and its finest cells; None for rows that have none of the keys."""
        attribute = self.attributes[index]
        keys: list[object] = [] if attribute.group is None else [*attribute.group.keys]
        name, rest = f"column_{index + 1}", None
        for table in self.tables:
            for group, own in zip(table.query.groups, table.groups, strict=True):
                if own == (index, attribute.axis.levels):
                    names = [title for title, output in table.query.outputs if output == Named(group.name)]
                    name, rest = (names or [name])[0], group.other
                    break
        if name.startswith("column_") and attribute.group is not None:
            name = text(attribute.group.of)
        return name, keys if attribute.complete else [*keys, rest]

    @property
    def halves(self) -> frozenset[int]:
        """The axes over which a row spreads."""
        return frozenset(index for index, one in enumerate(self.attributes) if one.half)


def asked(queries: Mapping[str, Query], weights: Mapping[str, Fraction], scope: Scope) -> Asked:
    """The tables of these queries."""
    conditions = {query.where for query in queries.values()}
    common = next(iter(conditions)) if len(conditions) == 1 else None
    ordered = sorted(queries.items(), key=lambda named: question_text(named[1]))  # in whatever order they are asked
    reader = _Reader(scope, [query for _, query in ordered])
    found = {
        name: reader.table(name, query, weights.get(name, Fraction(1)), None if len(conditions) == 1 else query.where)
        for name, query in ordered
    }
    tables = [found[name] for name in queries]
    attributes = [
        _divided(attribute, [table.masks[index] for table in tables if index in table.masks])
        for index, attribute in enumerate(reader.attributes.values())
    ]
    finest = [attribute.axis.levels for attribute in attributes]
    tables = [
        replace(table, groups=tuple((index, level or finest[index]) for index, level in table.groups))
        for table in tables
    ]
    return Asked(tuple(attributes), tuple(tables), common)


def _divided(attribute: Attribute, masks: list[Floats]) -> Attribute:
    """An attribute with a level of its own for the cells that conditions tell apart, if it has none for others."""
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
        groups = [group for query in queries for group in query.groups]
        moments = [one for query in queries for _, one in query.aggregates if isinstance(one, Moment)]
        self.scope = scope
        self.attributes: dict[str, Attribute] = {}
        self.halves = {one.of: subject(one) for one in moments if one.missing is None and kind_of(one.of) != "truth"}
        """Numbers that are halved, and may be missing."""
        self.parents = {
            declared.parent: group
            for group in groups
            if isinstance(group.of, Column) and (declared := scope.declared(group.of)).parent is not None
        }
        """Group columns that other group columns are the parents of."""
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
        numbers = tuple(self._number(private, aggregate, name) for private, aggregate in query.aggregates)
        complete = {index: one.complete for index, one in enumerate(self.attributes.values())}
        return Table(name, query, weight, groups, masks, numbers, complete)

    def _number(self, name: str, aggregate: Aggregate, table: str) -> Number:
        match aggregate:
            case Count(of=None):
                return Number(name, "count", None)
            case Count(of=of) if of in self.halves:
                return Number(name, "count", (index := self._half(self.halves[of])), self._weights(index, 1.0, 1.0))
            case Count(of=of) if of is not None:
                index = self._truth(of if kind_of(of) == "truth" else Negation(Missing(of)))
                return Number(name, "count", index, self._weights(index, 0.0, 1.0))
            case Moment(statistic="mean" | "sum" as statistic, of=of):
                truth = kind_of(of) == "truth"
                index = self._truth(of) if truth else self._half(subject(aggregate))
                ends = (0.0, 1.0) if truth else (1.0, 0.0)
                if statistic == "sum":
                    ends = float(aggregate.upper), float(aggregate.lower)
                weights, present = self._weights(index, *ends), self._weights(index, 1.0, 1.0)
                number = list(self.attributes.values())[index].number
                rounding = 0.0 if number is None or number.grid.exact else 0.5 / number.grid.width
                return Number(name, statistic, index, weights, present, aggregate, rounding)
        raise refused(
            f"{table}: a report has counts, sums and means, which are measured together; "
            f"ask {aggregate_text(aggregate).partition('(')[0]} alone"
        )

    def _weights(self, index: int, *ends: float) -> tuple[float, ...]:
        """Weights of the two cells of a truth or of halves, and 0 for those without a value."""
        axis = list(self.attributes.values())[index].axis
        return (*ends, *[0.0] * (axis.sizes[-1] - 2))

    def _group(self, group: Group) -> tuple[int, int]:
        """The axis of a group column and its level, 0 for the finest."""
        if isinstance(group.of, Column) and group.of.name in self.parents and self.parents[group.of.name] != group:
            return self._parent(group, self.parents[group.of.name])
        complete = is_complete(group.of)
        whole = replace(group, name="", other=None if complete else REST)
        axis, name = Axis((1, len(group.keys) + (not complete))), group_text(whole)
        return self._index(name, Attribute(axis, ("", name), group=whole)), 0

    def _parent(self, group: Group, child: Group) -> tuple[int, int]:
        """The axis of the children of a group column, with a level for it."""
        index, _ = self._group(child)
        name, attribute = list(self.attributes.items())[index]
        keys = Keys.of(map(str, group.keys))
        parents = self.scope.declared(child.of).parents  # type: ignore[arg-type]
        places = None if parents is None else parents.places(keys)
        if places is None or len(set(places)) < len(keys):
            raise refused(
                f"the keys of {group.of.name} must be those that the file of keys of {child.of.name} names "  # type: ignore[union-attr]
                "as parents, so that tables of both agree; correct the policy"
            )
        if attribute.axis.levels == 1:
            axis = Axis((1, len(keys) + 1, len(places) + 1), ((*places, len(keys)),))
            own = group_text(replace(group, name="", other=REST))
            self.attributes[name] = replace(attribute, axis=axis, names=("", own, name))
        return index, 1

    def _truth(self, of: Expression) -> int:
        return self._group(Group("", of, Keys.of([False, True])))[0]

    def _half(self, of: Moment) -> int:
        name, number = aggregate_text(of), MomentDesign(wanted=(("", "mean"),), of=of)
        axis = Axis((1, 2 + (of.missing is None)))
        return self._index(name, Attribute(axis, ("", name), number=number, width=number.grid.width))

    def _index(self, name: str, attribute: Attribute) -> int:
        self.attributes.setdefault(name, attribute)
        return list(self.attributes).index(name)

    def _mask(self, columns: frozenset[Expression], condition: Every, table: str) -> tuple[int, Floats]:
        """The axis of a condition on these columns, and which of its finest cells it admits."""
        if len(columns) == 1:
            [of] = columns
            index, level = self._group(self.scope.group(of))
            attribute = list(self.attributes.values())[index]
            group = attribute.group if level == 0 else replace(self.scope.group(of), other=REST)
            cells = None if group is None else admitted(condition, of, group)
            if cells is not None:
                axis = attribute.axis
                return index, cells if level == 0 else cells[axis.ancestors(axis.levels, level)]
        raise refused(
            f"{table}: tables of a report share one WHERE, or differ by conditions that say of each declared key "
            f"whether it counts, such as county = 'A'; {text(condition.parts[0])[:60]} does not: ask that table alone"
        )


def is_complete(of: Expression) -> bool:
    """Whether a group column has no other values than its keys, and none is missing, whatever a row holds."""
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


def among(query: Query, scope: Scope, attributes: tuple[Attribute, ...], where: str | None) -> Table | None:
    """A question as a table of a report that has these attributes; None if it asks for others."""
    common = query.where is not None and canonical(query.where) == where
    reader = _Reader(scope, [query])
    levels = {name: (i, level) for i, one in enumerate(attributes) for level, name in enumerate(one.names) if name}
    reader.halves |= dict(_halves(query, scope, levels))
    table = reader.table("", query, Fraction(1), None if common else query.where)
    if where is not None and not common:
        return None
    if not all(name in levels for name in reader.attributes):
        return None
    local, places = list(reader.attributes.values()), [levels[name] for name in reader.attributes]
    masks = {}
    for index, mask in table.masks.items():
        here, level = places[index]
        masks[here] = mask[attributes[here].axis.ancestors(attributes[here].axis.levels, level)]
    numbers = [n if n.attribute is None else replace(n, attribute=places[n.attribute][0]) for n in table.numbers]
    return replace(
        table,
        groups=tuple(levels[local[index].names[level or -1]] for index, level in table.groups),
        masks=masks,
        numbers=tuple(numbers),
        complete={places[index][0]: complete for index, complete in table.complete.items()},
    )


def _halves(query: Query, scope: Scope, known: Collection[str]) -> Iterator[tuple[Expression, Moment]]:
    """Numbers whose values a question counts, and that the report has the halves of."""
    for _, one in query.aggregates:
        if isinstance(one, Count) and one.of is not None and kind_of(one.of) == "number":
            with suppress(QueryRefused):
                mean = scope.moment("mean", one.of)
                if isinstance(mean, Moment) and mean.missing is None and aggregate_text(subject(mean)) in known:
                    yield one.of, subject(mean)
