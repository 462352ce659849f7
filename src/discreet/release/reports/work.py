"""The work of a report, computed before it is done (`release.work`): of its allocation, and of its
errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from discreet.release.reports.allocation import Target, descents
from discreet.release.reports.axes import Axis, Floats, Levels
from discreet.release.reports.fit import Combined, Key, key_of
from discreet.release.reports.tables import Number, Table
from discreet.release.statistics.spread import work
from discreet.release.work import MEAN_ERROR, MOST, Steps, integrals, of_question, refuse_much

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan

TABLE, AXIS, SET, CELL, LISTED, TARGET, KEPT = 1_500, 15, 25, 0.25, 4, 5, 20
"""The prices of a table, of an axis and of a set in a combination, of a cell of an axis, of a set
in a list, of an axis of a number that an allocation weighs, and of an axis, and of a level, of a
combination whose radius is looked up."""

# of a part and a set, and of a number, in each step of each descent
_DESCENT, _POWER = 0.0007, 0.05
_STEP = 30  # of each step of a block of descents, besides


def of_lists(axes: Sequence[Axis], targets: Sequence[Target]) -> Steps:
    """The steps of listing the parts of all tables, and the sets that may be measured."""
    tables = {target.levels for target in targets}
    parts = sum(math.prod(level + 1 for level in levels) for levels in tables)
    pairs = math.comb(len(tables), 2)
    return Steps(
        targets=TARGET * len(targets) * len(axes),
        listed=(LISTED + len(axes)) * parts // 4 + LISTED * pairs,
    )


def of_allocation(targets: int, parts: Sequence[Levels], sets: Sequence[Levels]) -> Steps:
    """The steps of the descents of an allocation, for the largest variance of so many targets if
    there are any.
    """
    size, pulled = len(parts) * len(sets), len(parts) * targets
    rounds = descents(size)
    each = sum(many * steps for many, _, steps in rounds)
    in_blocks = sum(blocks * steps for _, blocks, steps in rounds)
    return Steps(
        descents=int((_DESCENT * (size + pulled) + _POWER * targets) * each) + _STEP * in_blocks
    )


def of_laws(plan: ReportPlan) -> Steps:
    """The steps of the combinations of all tables, and of each table asked alone, whose sets are
    chosen.
    """
    axes = plan.axes
    sets = [levels for levels, _ in plan.measured]
    steps = Steps(tables=TABLE * len(plan.layout.tables))
    whole = sum(
        axes[index].sizes[level] for index, level in {*chain.from_iterable(map(enumerate, sets))}
    )
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
    return steps


def of_errors(plan: ReportPlan, tables: Sequence[Table], *, first: bool = False) -> Steps:
    """The steps of the errors of some tables at the ε of a plan, of which fewer are left if those
    of another are known.

    Only the radii at the confidence itself are needed `first`.
    """
    steps, scales = Steps(), np.array(plan.noise.scales)
    looked: set[tuple[Key, float]] = set()
    for table in tables:
        for number in table.numbers:
            if plan.is_known(table, number):
                continue
            mean = number.statistic == "mean"
            steps["errors"] += MEAN_ERROR * mean * (not first)
            for key in _keys(plan, table, number):
                times, places, weights, _ = plan.combining.kept_law(key)
                steps["sets"] += KEPT * len(plan.axes)
                for level in plan.levels(number)[-1:] if first else plan.levels(number):
                    steps["sets"] += KEPT
                    newton, _ = plan.combining.begun(key, scales, level)
                    new = (key, level) not in looked
                    looked.add((key, level))
                    if new and newton and times.size:
                        blocks = _blocks(
                            plan.combining, key, (weights * scales[places][:, None]).T, level, times
                        )
                        for name, price in integrals(blocks, times.size, newton).items():
                            steps[name] += price
        if steps.total() > MOST:
            return steps
    return steps


def _keys(plan: ReportPlan, table: Table, number: Number) -> list[Key]:
    """The keys of the combinations that the error of a number needs, whose laws are then known."""
    known, name = plan.combining.keys, (table.name, number.name)
    if name not in known:
        keys = []
        for question in plan.questions(table, number):
            keys.append(key_of(question))
            plan.combining.law(question, keys[-1])
        known[name] = keys
    return known[name]


def _blocks(
    combined: Combined, key: Key, weights: Floats, level: float, times: Floats
) -> list[tuple[int, int, int]]:
    """The blocks of integrals of a question; of its weights only the ratios matter, which hardly
    depend on ε.
    """
    if key not in combined.blocks:
        combined.blocks[key] = work(weights, level, times)
    return combined.blocks[key]


def refuse_report(plan: ReportPlan, steps: Steps, *, searched: bool = False) -> None:
    """Refuse a report that takes so many steps, if they are too many."""
    tables = plan.layout.tables
    numbers = sum(len(table.numbers) for table in tables)
    whole = (
        f"this report of {len(tables):,} tables with {numbers:,} numbers over {len(plan.axes):,}"
        " columns"
    )
    refuse_much(
        steps, whole, "plan it in two" + (", or give epsilon instead of within" if searched else "")
    )


def _kinds_of(table: Table, axes: tuple[Axis, ...]) -> int:
    """How many laws the noise of the rows of a table has."""
    rows = table.rows(axes)
    return math.prod(
        len(np.unique(axes[index].kinds(level)[0][rows[index]]))
        for index, level in table.finest.items()
    )
