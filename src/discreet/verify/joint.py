"""The laws of joint designs and of reports, and a check with rows that their totals obey them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Present, Product, Rows, Squares, Total
from discreet.errors import InvalidParameter
from discreet.release.reports.design import ReportDesign
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.verify.loss import Part

_MOST_ROWS = 400  # that the totals are tried on


def joint_law(design: JointDesign, neighbors: str, groups: int) -> tuple[str, dict[str, Fraction]]:
    """The law: families, or, if a row replaces another in the only group, centred columns that
    share their rows.
    """
    facts: dict[str, Fraction] = {}
    if neighbors == "change-one" and groups == 1:
        for attributes, _ in design.families:
            for index in attributes:
                column = design.columns[index]
                facts |= {
                    f"{index}.width": Fraction(column.grid.width),
                    f"{index}.squares": Fraction(column.squares),
                }
        return "columns", facts
    for number, (attributes, _) in enumerate(design.families):
        facts |= _family(number, [_units(design, index) for index in attributes])
    return "families", facts


def _family(number: int, attributes: list[list[int]]) -> dict[str, Fraction]:
    """For each cell of a family, what a row adds that lies entirely in the cell; a cell has one of
    each attribute.
    """
    return {
        f"{number}.{cell}": Fraction(math.prod(units))
        for cell, units in enumerate(product(*attributes))
    }


def _units(design: JointDesign, index: int) -> list[int]:
    """For each cell of an attribute, what a row adds that lies entirely in the cell."""
    if index >= len(design.columns):
        return [1, 1]
    column = design.columns[index]
    halves = [column.grid.width**2] * 3 if column.squares else [column.grid.width] * 2
    return [*halves, 1] if column.of.missing is None else halves


def report_law(design: ReportDesign) -> tuple[dict[str, Fraction], list[int]]:
    """A family for each measured set: what a row adds to a column if it lies entirely there, and
    the set's cells.
    """
    facts: dict[str, Fraction] = {}
    sizes = []
    for number, (levels, _) in enumerate(design.measured):
        cells, groups = [], 1
        for attribute, level in zip(design.attributes, levels, strict=True):
            if level and attribute.number is not None:
                of, width = attribute.number.of, attribute.number.grid.width
                cells.append([width, width, 1] if of.missing is None else [width, width])
            elif level:
                groups *= attribute.axis.sizes[level]
        family = _family(number, cells)
        facts |= family
        sizes += [groups] * len(family)
    return facts, sizes


def require_report_totals(design: ReportDesign, part: Part, sizes: list[int]) -> None:
    """Refuse a report in which some row moves the cells of a set by more than one row."""
    numbers = [attribute.number for attribute in design.attributes if attribute.number is not None]
    choices = [
        _points(number.grid.width, len(numbers), missing=number.of.missing is None)
        for number in numbers
    ]
    shape = [
        attribute.axis.sizes[-1] for attribute in design.attributes if attribute.group is not None
    ]
    places = [[*range(size)] if size <= 3 else [0, size // 2, size - 1] for size in shape]
    units, families = list(part.facts.values()), [name.partition(".")[0] for name in part.facts]
    for row in _rows([*places, *choices]):
        cell = row[: len(shape)]
        values = dict(zip((number.value for number in numbers), row[len(shape) :], strict=True))
        integers = [_integer(measure, values, {}) for measure in design.measures()]
        columns = design.totals([_in_sets(integer, cell, shape, design) for integer in integers])
        moved: dict[str, Fraction] = dict.fromkeys(families, Fraction(0))
        for family, unit, column, size in zip(families, units, columns, sizes, strict=True):
            array = np.asarray(column.array)
            if array.size != size:
                raise InvalidParameter(
                    f"a set of {part.statistic} has other cells than its columns"
                )
            moved[family] += int(np.abs(array).sum()) / unit
        if max(moved.values()) > 1:
            raise InvalidParameter(
                f"a row moves the cells of {part.statistic} by more than their law allows"
            )


def _in_sets(value: int, cell: Sequence[int], shape: list[int], design: ReportDesign) -> list[int]:
    """What one row adds to a measure, in the cells of all sets of groups, in the order of an
    engine.
    """
    columns: list[int] = []
    for chosen in design.sets():
        cells = np.zeros([shape[index] for index in chosen], object)
        cells[tuple(cell[index] for index in chosen)] = value
        columns += cells.reshape(-1).tolist()
    return columns


def require_totals(design: MomentDesign | JointDesign, part: Part, *, known: bool = False) -> None:
    """Refuse a design in which some row moves the totals further, in units of their noise, than
    their law allows.

    `known` says whether the number of rows is public: then no row is added or removed.
    """
    replaced = part.neighbors == "change-one"
    terms = UnitLimits(
        rows=part.rows, max_groups=part.spread, replaced=replaced, public=known, cells=part.cells
    )
    columns = [measure.value for measure in design.measures() if isinstance(measure, Present)]
    choices = [
        _points(value.grid.width, len(columns), missing=value.missing is None and not known)
        for value in columns
    ]
    conditions = [
        measure.of
        for measure in design.measures()
        if isinstance(measure, Rows) and measure.of is not None
    ]
    totals = []
    for row in _rows([*choices, *([0, 1] for _ in conditions)]):
        point = dict(zip(columns, row, strict=False))
        truth = dict(zip(conditions, row[len(columns) :], strict=True))
        integers = [[_integer(measure, point, truth)] for measure in design.measures()]
        totals.append([column[0] for column in design.totals(integers, terms)])
    units = [scale * step for scale, step in zip(part.scales, part.steps, strict=True)]
    others = [*([] if known else [[0] * len(units)]), *(totals if terms.same_group else [])]
    worst = max(
        sum(abs(a - b) / unit for a, b, unit in zip(first, second, units, strict=True))
        for first in totals
        for second in others
    )
    if worst * (part.rows if terms.same_group else terms.factor) > part.loss:
        raise InvalidParameter(
            f"a row moves the totals of {part.statistic} by more than their law allows"
        )


def _rows(choices: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows with one choice for each column: all of them, or the diagonal and an even sample of the
    others.
    """
    size = math.prod(map(len, choices))
    if size <= _MOST_ROWS:
        yield from product(*choices)
        return
    for index in range(max(map(len, choices))):
        yield tuple(values[min(index, len(values) - 1)] for values in choices)
    stride = next(step for step in range(size * 5 // 8, size) if math.gcd(step, size) == 1)
    for number in range(0, _MOST_ROWS * stride, stride):
        row, rest = [], number % size
        for values in choices:
            rest, index = divmod(rest, len(values))
            row.append(values[index])
        yield tuple(row)


def _points(width: int, columns: int, *, missing: bool) -> list[int | None]:
    """The values to try: many for one column, few for several; None is missing."""
    inner = (
        [width // 2]
        if columns > 1
        else [width - 1, *(width * eighths // 8 for eighths in range(9))]
    )
    return [*sorted({0, 1, *inner, width}), *([None] if missing else [])]


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
