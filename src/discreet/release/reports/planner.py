"""From questions to a plan: the sets to measure at ε, or the least ε whose errors are all within the given bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from discreet.ask.query import Query, canonical
from discreet.ask.reportfile import PLAIN, Presentation, rows_file
from discreet.ask.scope import Scope
from discreet.errors import InvalidParameter, one_line
from discreet.parameters import LARGEST, UNIT, exact, exact_confidence, exact_count, exact_epsilon, quote
from discreet.release.reports.allocation import Measured, allocated
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.reader import layout_of
from discreet.release.split import by_name, refuse_heavy

if TYPE_CHECKING:
    from discreet.release.study import Study

_MOST_TABLES = 500
_LEAST_AIM = 1e-140  # smaller than any error that a plan can reach; its square is a float


def report_plan(
    study: Study,
    queries: Mapping[str, Query],
    *,
    title: str = "Report",
    epsilon: Any = None,
    within: Any = None,
    confidence: Any = "0.95",
    simultaneous: bool = False,
    weights: Mapping[str, Any] | None = None,
    size: Any = 1000,
    integers: bool = False,
    rows: Any = None,
    presentation: Presentation = PLAIN,
) -> ReportPlan:
    """The plan of a report: at ε, or with the least ε whose errors are all within the given bounds."""
    if (epsilon is None) == (within is None):
        raise InvalidParameter("a report takes either epsilon, what it may cost, or within, the error it may have")
    if not queries or len(queries) > _MOST_TABLES:
        raise InvalidParameter(f"a report must have between 1 and {_MOST_TABLES} tables, got {len(queries)}")
    for name, flag in (("simultaneous", simultaneous), ("integers", integers)):
        if not isinstance(flag, bool):
            raise InvalidParameter(f"{name} must be True or False, got {quote(flag)}")
    by_table = partial(by_name, names=queries, noun="table", example="by_county", known="tables of the report")
    weighed = by_table("weights", weights or {})
    refuse_heavy(weighed.values())
    tables = layout_of(queries, weighed, Scope(study.policy, study.schema))
    plan = ReportPlan(
        study=study,
        title=one_line(str(title))[:200],
        layout=tables,
        measured=(),
        epsilon=UNIT,
        confidence=exact_confidence(confidence),
        simultaneous=simultaneous,
        size=exact_count("size", size),
        integers=integers,
        rows=None if rows is None else rows_file(rows),
        presentation=presentation,
    )
    if epsilon is not None:
        amount = exact_epsilon(epsilon)
        return replace(plan, epsilon=amount, measured=_measured(plan, {})).checked()
    common = None if isinstance(within, Mapping) else exact("within", within)
    targets = dict.fromkeys(queries, common) if common is not None else by_table("within", within)
    if not targets:
        raise InvalidParameter("within must name at least one table")
    largest = Fraction(10**100)  # a float must hold it
    return _within(plan, {name: float(min(target, largest)) for name, target in targets.items() if target is not None})


def _measured(plan: ReportPlan, targets: Mapping[str, float]) -> Measured:
    """The sets to measure: for the least sum of variances, or for the least ε that reaches all targets."""
    axes, goals = plan.axes, []
    for table in sorted(plan.layout.tables, key=lambda table: canonical(table.query)):
        for number in table.numbers:
            weight = float(table.weight) / len(table.numbers)
            if targets:
                width = 1.0 if number.of is None else float(number.of.upper - number.of.lower)
                aim = targets.get(table.name, math.inf) * ((plan.size if number.statistic == "mean" else 1) / width)
                weight = max(max(aim, _LEAST_AIM) ** -2, 1e-12)
            goals.append(replace(table.target(axes, number), weight=weight))
    return allocated(axes, tuple(goals), plan.layout.halves, known=plan.known, largest=bool(targets))


def _within(plan: ReportPlan, targets: Mapping[str, float]) -> ReportPlan:
    """The plan with the least ε, to four digits, whose errors are all within their targets.

    Errors are nearly a + b/ε, so the ε between two others is guessed by a line in 1/ε; where a guess leaves more than
    half of the range, the middle is next.
    """
    measured, most = _measured(plan, targets), int(LARGEST / UNIT)

    @cache
    def trial(units: int) -> ReportPlan:
        return replace(plan, measured=measured, epsilon=units * UNIT)

    def error(units: int) -> float:
        """The largest error, as a share of its target."""
        tables = [table for table in plan.layout.tables if table.name in targets]
        return max(
            trial(units).reach(table, number) / max(targets[table.name], _LEAST_AIM)
            for table in tables
            for number in table.numbers
        )

    low, high, below = 0, 2**20, math.inf
    above = error(high)
    while above > 1:
        if high == most:
            raise InvalidParameter("within must be larger: no ε gives such a small error here")
        low, below, high = high, above, int(min(high * max(4.0, above), most))
        above = error(high)
    by_line = low > 0
    while high - low > (digits := max(1, high // 10**4)):
        width, guess = high - low, (low + high) // 2
        if by_line and width > 2 * digits:
            inverse = 1 / high + (1 - above) * (1 / low - 1 / high) / (below - above)
            guess = min(max(round(1 / inverse) + digits // 3, low + digits), high - digits)
        share = error(guess)
        if share <= 1:
            high, above = guess, share
        else:
            low, below = guess, share
        by_line = low > 0 and (not by_line or 2 * (high - low) <= width)
    return trial(high).checked()
