"""Which cells of a group column a condition admits: decided from the keys, never from rows.

A cell of a key is admitted or not. The last cell, for rows with none of the keys, contains many
values and missing values: it is decided only if the condition is the same for all of them. A
condition that holds for some rows of a cell but not for others does not select cells.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.ask.expression import (
    COMPARISONS,
    Coalesce,
    Comparison,
    Constant,
    Every,
    Expression,
    Membership,
    Missing,
    Negation,
    Some,
)
from discreet.ask.kinds import kind_of
from discreet.ask.query import Group
from discreet.release.reports.axes import Floats

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Undecided(Exception):
    """The condition holds for some rows of the cell but not for others."""


def operands(condition: Expression) -> set[Expression]:
    """The expressions that a condition compares."""
    match condition:
        case Every(parts) | Some(parts):
            return set().union(*map(operands, parts))
        case Negation(part) if kind_of(part) == "truth" and not isinstance(part, Missing):
            return operands(part)
        case Comparison(_, left, right):
            return {side for side in (left, right) if not isinstance(side, Constant)}
        case Membership(part) | Missing(part) | Negation(Missing(part)):
            return {part}
    return {condition}


def comparisons(condition: Expression) -> int:
    """With how many values a condition compares each key."""
    match condition:
        case Every(parts) | Some(parts):
            return sum(map(comparisons, parts))
        case Negation(part):
            return comparisons(part)
        case Membership(_, choices):
            return len(choices)
    return 1


def admitted(condition: Expression, of: Expression, group: Group) -> Floats | None:
    """For each cell of a group column, 1 or 0; None if the condition does not decide."""
    try:
        cells = [
            _Cell(of, group, index, key).holds(condition) is True
            for index, key in enumerate(group.keys)
        ]
        if group.other is None:  # every row has one of the keys
            return np.array(cells, np.float64)
        if group.edges is None:
            last = _Cell(of, group, len(cells), None)
            rest = last.holds(condition) is True
            if rest and not last.only_missing:
                return None
        else:  # below the first edge, and above the last; and missing
            outside = [_Cell(of, group, index, "").holds(condition) for index in (-1, len(cells))]
            if True in outside:
                return None
            rest = False
    except _Undecided:
        return None
    return np.array([*cells, rest], np.float64)


class _Cell:
    """The rows of one cell; a key of None means missing values, and all that are not keys."""

    def __init__(self, of: Expression, group: Group, index: int, key: object) -> None:
        self.of, self.group, self.index, self.key = of, group, index, key
        filled = isinstance(group.of, Coalesce) and group.of != of
        self.maybe_missing = filled and group.edges is None and key == group.of.parts[-1].value  # type: ignore[union-attr]
        self.undecided_bin = filled and group.edges is not None
        self.only_missing = key is None and group.keys.kind == "truth" and len(group.keys) == 2

    def holds(self, condition: Expression) -> bool | None:  # noqa: PLR0911 - a row of a table each
        """True, False, or None for neither: missing, or false for some and missing for others."""
        match condition:
            case Every(parts) | Some(parts):
                values = [self.holds(part) for part in parts]
                # a single one decides: True for some, False for every
                decisive = isinstance(condition, Some)
                return decisive if decisive in values else None if None in values else not decisive
            case Negation(Missing(part)) if part == self.of:
                return not self._missing()
            case Negation(part):
                return self._negated(part)
            case Missing(part) if part == self.of:
                return self._missing()
            case Comparison(sign, left, Constant(value)) if left == self.of and value is not None:
                return self._compared(sign, value)
            case Comparison(sign, Constant(value), right) if right == self.of and value is not None:
                return self._compared(_FLIPPED.get(sign, sign), value)
            case Membership(part, choices) if part == self.of and all(
                choice.value is not None for choice in choices
            ):
                values = [self._compared("=", choice.value) for choice in choices]
                return True if True in values else None if None in values else False
            case _ if condition == self.of and self.group.edges is None:
                return self._compared("=", True)
        raise _Undecided

    def _negated(self, part: Expression) -> bool | None:
        if (
            (self.key is None and not self.only_missing)
            or self.maybe_missing
            or self.group.edges is not None
        ):
            if self.holds(part) is True:
                return False
            raise _Undecided  # false for some values, missing for others
        value = self.holds(part)
        return None if value is None else not value

    def _missing(self) -> bool:
        if self.only_missing:
            return True
        if self.key is None or self.maybe_missing or self.undecided_bin:
            raise _Undecided
        return False

    def _compared(self, sign: str, value: object) -> bool | None:
        if self.undecided_bin:
            raise _Undecided
        if self.group.edges is not None:
            return self._bin_compared(sign, value)
        if self.key is None:  # none of the keys, or missing
            if self.only_missing or (sign == "=" and value in self.group.keys):
                return None
            raise _Undecided
        holds = bool(COMPARISONS[sign](self.key, value))
        if self.maybe_missing and holds:
            raise _Undecided
        return None if self.maybe_missing else holds

    def _bin_compared(self, sign: str, value: object) -> bool | None:
        if not isinstance(value, Fraction):
            raise _Undecided
        edges: list[Any] = [-math.inf, *(self.group.edges or ()), math.inf]
        low, high, last = edges[self.index + 1], edges[self.index + 2], self.index == len(edges) - 4
        above, below = low >= value, high < value or (high == value and not last)
        # above the last edge
        beyond = low > value or (low == value and self.index == len(edges) - 3)
        match sign:
            case ">=" | "<" if above or below:
                return bool(above if sign == ">=" else below)
            case ">" | "<=" if beyond or high <= value:
                return bool(beyond) == (sign == ">")
        raise _Undecided
