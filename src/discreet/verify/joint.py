"""The law of a joint design, and a check on rows that the totals of moments obey theirs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.calibrate.sensitivity import Terms
from discreet.engines.base import Present, Product, Rows, Squares, Total
from discreet.errors import InvalidParameter
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.verify.loss import Part

_MOST_ROWS = 400
"""Rows that the totals are tried on."""


def joint_law(design: JointDesign, neighbors: str, groups: int) -> tuple[str, dict[str, Fraction]]:
    """Families, or where a row takes another's place in the only group, centred columns that share their rows."""
    facts: dict[str, Fraction] = {}
    if neighbors == "change-one" and groups == 1:
        for attributes, _ in design.families:
            for index in attributes:
                column = design.columns[index]
                facts |= {f"{index}.width": Fraction(column.grid.width), f"{index}.squares": Fraction(column.squares)}
        return "columns", facts
    for number, (attributes, _) in enumerate(design.families):
        units = [math.prod(cells) for cells in product(*(_units(design, index) for index in attributes))]
        facts |= {f"{number}.{cell}": Fraction(unit) for cell, unit in enumerate(units)}
    return "families", facts


def _units(design: JointDesign, index: int) -> list[int]:
    """For each cell of an attribute what a row that is wholly in it adds."""
    if index >= len(design.columns):
        return [1, 1]
    column = design.columns[index]
    halves = [column.grid.width**2] * 3 if column.squares else [column.grid.width] * 2
    return [*halves, 1] if column.of.missing is None else halves


def require_totals(design: MomentDesign | JointDesign, part: Part, *, known: bool = False) -> None:
    """Refuse a design whose totals some row moves further, in units of their noise, than their law says.

    `known` is whether the number of rows is public: then no row comes or goes.
    """
    replaced = part.neighbors == "change-one"
    terms = Terms(rows=part.rows, spread=part.spread, replaced=replaced, public=known, cells=part.cells)
    columns = [measure.value for measure in design.measures() if isinstance(measure, Present)]
    choices: list[list[Any]] = [
        [*_points(value.grid.width, len(columns)), *([None] if value.missing is None and not known else [])]
        for value in columns
    ]
    conditions = [measure.of for measure in design.measures() if isinstance(measure, Rows) and measure.of is not None]
    totals = []
    for row in _rows([*choices, *([0, 1] for _ in conditions)]):
        point = dict(zip(columns, row, strict=False))
        truth = dict(zip(conditions, row[len(columns) :], strict=True))
        integers = [[_integer(measure, point, truth)] for measure in design.measures()]
        totals.append([column[0] for column in design.totals(integers, terms)])
    units = [scale * step for scale, step in zip(part.scales, part.steps, strict=True)]
    others = [*([] if known else [[0] * len(units)]), *(totals if terms.meets else [])]
    worst = max(
        sum(abs(a - b) / unit for a, b, unit in zip(one, two, units, strict=True)) for one in totals for two in others
    )
    if worst * (part.rows if terms.meets else terms.factor) > part.loss:
        raise InvalidParameter(f"a row moves the totals of {part.statistic} by more than their law says")


def _rows(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows of one choice for each column: all of them, or those alike in all columns and some from all over."""
    size = math.prod(map(len, choices))
    if size <= _MOST_ROWS:
        yield from product(*choices)
        return
    for at in range(max(map(len, choices))):
        yield tuple(some[min(at, len(some) - 1)] for some in choices)
    stride = next(step for step in range(size * 5 // 8, size) if math.gcd(step, size) == 1)
    for number in range(0, _MOST_ROWS * stride, stride):
        row, rest = [], number % size
        for some in choices:
            rest, at = divmod(rest, len(some))
            row.append(some[at])
        yield tuple(row)


def _points(width: int, columns: int) -> list[int]:
    """Values that are tried: many of one column, few of several."""
    inner = [width // 2] if columns > 1 else [width - 1, *(width * eighths // 8 for eighths in range(9))]
    return sorted({0, 1, *inner, width})


def _integer(measure: Any, points: Mapping[Any, int | None], truths: Mapping[Any, int]) -> int:
    """What one row adds to a measure."""
    match measure:
        case Rows(None):
            return 1
        case Rows(of):
            return truths[of]
        case Product(first, second, (power, other)):
            a, b = points[first], points[second]
            return 0 if a is None or b is None else a**power * b**other
    a = points[measure.value]
    return 0 if a is None else {Present: 1, Total: a, Squares: a * a}[type(measure)]
