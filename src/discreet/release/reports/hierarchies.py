"""Nested group columns of a report, such as counties in states and states in countries, share one axis.

A parent follows from its child, whatever the row's own value of the parent is (`ask.expression.Children`). So the table
of a parent is a sum over the table of its children, and both are levels of the axis of the finest column asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from discreet.ask.expression import Children, Column, Expression
from discreet.ask.kinds import refused
from discreet.ask.normal import text
from discreet.ask.query import Group
from discreet.release.reports.axes import Axis


class Hierarchies:
    """The group columns of all tables, and how they nest."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._asked = {group.of: group for group in groups if group.edges is None}
        self._above: dict[Expression, list[Group]] = {}
        depths: dict[Expression, int] = {}
        for of, group in self._asked.items():
            descendants = [step.of for step in _steps(of)]
            asked = [index for index, column in enumerate(descendants) if column in self._asked]
            if asked:
                depths[of] = asked[-1]
                self._above.setdefault(descendants[asked[-1]], []).append(group)
        for groups_above in self._above.values():
            groups_above.sort(key=lambda group: -depths[group.of])
        self._below = {group.of: self._asked[of] for of, above in self._above.items() for group in above}

    def below(self, group: Group) -> Group | None:
        """The finest column that is nested in a group column; None if the group column itself is the finest."""
        return self._below.get(group.of) if group.edges is None else None

    def above(self, group: Group) -> list[Group]:
        """The columns above a finest column, the coarsest first."""
        return self._above.get(group.of, []) if group.edges is None else []

    def axis(self, group: Group) -> Axis:
        """The axis of a finest column, with a level for each column above it."""
        chain = [*self.above(group), group]
        parents = [_places(child, parent) for parent, child in pairwise(chain)]
        return Axis((1, *(len(level.keys) + 1 for level in chain)), tuple(parents))


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
                f"the keys of {_name(parent.of)} must be those that the file of keys of {_name(step.of)} names as "
                "parents, so that tables of both agree; correct the policy"
            )
        places, keys = [places[index] for index in indices], step.keys  # type: ignore[assignment]
        if step.of == child.of:
            break
    return (*places, len(parent.keys))


def _name(of: Expression) -> str:
    return of.name if isinstance(of, Column) else text(of)
