"""The work of a report, computed before it is done (`release.work`): of its allocation, and of its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from discreet.release.reports.allocation import Target, descents
from discreet.release.reports.axes import Axis, Levels
from discreet.release.reports.tables import Table
from discreet.release.statistics.spread import work
from discreet.release.work import MEAN_ERROR, MOST, Steps, integrals, of_question, refuse_much

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan

TABLE, AXIS, SET, CELL, LISTED, TARGET = 1_500, 15, 25, 0.25, 4, 5
"""The prices of a table, of an axis and of a set in a combination, of a cell of an axis, of a set in a list, and of an
axis of a number that an allocation weighs."""

_DESCENT, _POWER = 0.0007, 0.05  # of a part and a set, and of a number, in each step of each descent
_STEP = 30  # of each step of a block of descents, besides


def of_lists(axes: Sequence[Axis], targets: Sequence[Target]) -> Steps:
    """The steps of listing the parts of all tables, and the sets that may be measured."""
    tables = {target.levels for target in targets}
    parts = sum(math.prod(level + 1 for level in levels) for levels in tables)
    pairs = math.comb(len(tables), 2)
    return Steps(targets=TARGET * len(targets) * len(axes), listed=(LISTED + len(axes)) * parts // 4 + LISTED * pairs)


def of_allocation(targets: Sequence[Target], parts: Sequence[Levels], sets: Sequence[Levels]) -> Steps:
    """The steps of the descents of an allocation."""
    size, pulled = len(parts) * len(sets), len(parts) * len(targets)
    rounds = descents(size)
    each = sum(many * steps for many, _, steps in rounds)
    in_blocks = sum(blocks * steps for _, blocks, steps in rounds)
    return Steps(descents=int((_DESCENT * (size + pulled) + _POWER * len(targets)) * each) + _STEP * in_blocks)


def of_report(plan: ReportPlan, trials: int) -> Steps:
    """The steps of the errors of a report whose sets are chosen, at its ε and at those of a search."""
    axes, sets = plan.axes, [levels for levels, _ in plan.measured]
    shares = np.array([float(part) for _, part in plan.measured])
    steps, epsilons = plan.begun + Steps(tables=TABLE * len(plan.layout.tables)), trials + 1 if trials else 1
    whole = sum(axes[index].sizes[level] for index, level in {*chain.from_iterable(map(enumerate, sets))})
    steps["cells"] += int(CELL * whole)
    for table in plan.layout.tables:
        for name, amount in of_question(plan.alone(table).shares, 1).items():
            steps[name] += amount * (name != "rehearsals")
        several = _kinds_of(table, axes)
        steps["sets"] += several * len(table.numbers) * (AXIS * len(axes) + SET * len(sets))
        for number in table.numbers:
            looked = {
                (index, levels[index])
                for levels in sets
                for index, level in enumerate(table.levels(axes, number))
                if level and levels[index]
            }
            cells = sum(axes[index].sizes[level] for index, level in looked)
            steps["cells"] += int(several * CELL * cells)
        if steps.total() > MOST:  # to combine the sets would take too long
            return steps
    for table in plan.layout.tables:
        for number in table.numbers:
            mean = number.statistic == "mean"
            for question in plan.questions(table, number):
                times, places, weights, _ = plan.combining.law(question)  # kept: the errors need it
                if times.size:
                    rows, nodes, large = work((weights / shares[places][:, None]).T, float(plan.level), times)
                    for name, price in integrals(rows, times.size, nodes, large).items():
                        steps[name] += epsilons * (2 if mean else 1) * price
                steps["errors"] += epsilons * MEAN_ERROR * mean
        if steps.total() > MOST:
            return steps
    return steps


def refuse_report(plan: ReportPlan, steps: Steps, *, searched: bool = False) -> None:
    """Refuse a report that takes too much work."""
    tables = plan.layout.tables
    numbers = sum(len(table.numbers) for table in tables)
    whole = f"this report of {len(tables):,} tables with {numbers:,} numbers over {len(plan.axes):,} columns"
    refuse_much(steps, whole, "plan it in two" + (", or give epsilon instead of within" if searched else ""))


def _kinds_of(table: Table, axes: tuple[Axis, ...]) -> int:
    """How many laws the noise of the rows of a table has."""
    rows = table.rows(axes)
    return math.prod(len(np.unique(axes[index].kinds(level)[0][rows[index]])) for index, level in table.finest.items())
