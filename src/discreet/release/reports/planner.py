"""From questions to a plan: the sets to measure at ε, or the least ε within all bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from discreet.ask.query import Query, canonical
from discreet.ask.reportfile import PLAIN, Presentation, rows_file
from discreet.ask.scope import Scope
from discreet.errors import InvalidParameter, one_line
from discreet.parameters import (
    LARGEST,
    UNIT,
    exact,
    exact_confidence,
    exact_count,
    exact_epsilon,
    quote,
)
from discreet.release.reports.allocation import allocated, distinct, listed
from discreet.release.reports.fit import Combined
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.reader import layout_of
from discreet.release.reports.tables import Number, Table
from discreet.release.reports.work import of_allocation, of_errors, of_laws, of_lists, refuse_report
from discreet.release.split import by_name, check_weights

if TYPE_CHECKING:
    from discreet.release.study import Study

_MOST_TABLES = 500
_BEGIN = 2**20
"""The ε, in units, at which a search begins: about 0.001."""

_TRIALS, _MOST_TRIALS = 6, 8
"""The most ε at which all errors are computed, once there is one that reaches all targets, and
until there is one. Four are usual. What lies beside a guess grows by its fourth power; the last
guess is the largest ε."""

_BESIDE = 1.02
"""How far beside a guess the next one lies that shall be on the other side; it grows."""

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
    """The plan of a report: at ε, or with the least ε that keeps all errors within the bounds."""
    if (epsilon is None) == (within is None):
        raise InvalidParameter(
            "a report takes either epsilon, what it may cost, or within, the error it may have"
        )
    if not queries or len(queries) > _MOST_TABLES:
        raise InvalidParameter(
            f"a report must have between 1 and {_MOST_TABLES} tables, got {len(queries)}"
        )
    for name, flag in (("simultaneous", simultaneous), ("integers", integers)):
        if not isinstance(flag, bool):
            raise InvalidParameter(f"{name} must be True or False, got {quote(flag)}")
    by_table = partial(
        by_name, names=queries, noun="table", example="by_county", known="tables of the report"
    )
    weighed = by_table("weights", weights or {})
    check_weights(weighed.values())
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
        return replace(_measured(plan, {}), epsilon=amount).checked()
    common = None if isinstance(within, Mapping) else exact("within", within)
    targets = dict.fromkeys(queries, common) if common is not None else by_table("within", within)
    if not targets:
        raise InvalidParameter("within must name at least one table")
    largest = Fraction(10**100)  # a float must hold it
    return _within(
        plan,
        {
            name: float(min(target, largest))
            for name, target in targets.items()
            if target is not None
        },
    )


def _measured(plan: ReportPlan, targets: Mapping[str, float]) -> ReportPlan:
    """The plan with its sets: of the least sum of variances, or of the least ε for all targets."""
    axes, goals = plan.axes, []
    for table in sorted(plan.layout.tables, key=lambda table: canonical(table.query)):
        for number in table.numbers:
            weight = float(table.weight) / len(table.numbers)
            if targets:
                aim = targets.get(table.name, math.inf) * (
                    (plan.size if number.statistic == "mean" else 1) / number.width
                )
                weight = max(max(aim, _LEAST_AIM) ** -2, 1e-12)
            goals.append(replace(table.target(axes, number), weight=weight))
    goals = list(distinct(goals)) if targets else goals
    steps = of_lists(axes, goals)
    refuse_report(plan, steps)
    lists = listed(axes, tuple(goals), plan.layout.halves, known=plan.known)
    steps += of_allocation(len(goals) if targets else 0, *lists)
    refuse_report(plan, steps)
    sets = allocated(
        axes, tuple(goals), plan.layout.halves, known=plan.known, largest=bool(targets)
    )
    combined = Combined(axes=axes, measured=sets, known=plan.known)
    measured = replace(plan, measured=sets, combined=combined, steps=steps)
    steps.update(of_laws(measured))
    refuse_report(measured, steps)
    return measured


def _within(plan: ReportPlan, targets: Mapping[str, float]) -> ReportPlan:
    """The plan with the least ε, to four digits, whose errors are all within their targets.

    Errors are nearly a + b/ε. The radii of the noise at one ε tell where the search begins; from
    there a line in 1/ε guesses the ε between two others, and where a guess leaves more than half of
    the range, the middle is next.
    """
    measured, most = _measured(plan, targets), int(LARGEST / UNIT)
    tables = [table for table in plan.layout.tables if table.name in targets]

    def checked(tried: ReportPlan, *, first: bool = False) -> ReportPlan:
        """A plan whose errors are not too much work; their steps are counted."""
        tried.steps.update(of_errors(tried, tables, first=first))
        refuse_report(tried, tried.steps, searched=True)
        return tried

    @cache
    def trial(units: int) -> ReportPlan:
        return replace(measured, epsilon=units * UNIT)

    def largest(error: Callable[[Table, Number], float]) -> float:
        """The largest error, as a share of its target."""
        return max(
            error(table, number) / max(targets[table.name], _LEAST_AIM)
            for table in tables
            for number in table.numbers
        )

    def share_at(units: int) -> float:
        return largest(checked(trial(units)).reach)

    guess = min(
        max(1, int(min(largest(checked(trial(_BEGIN), first=True).radius) * _BEGIN, float(most)))),
        most,
    )
    low, high, below, above, wider = 0, 0, math.inf, 0.0, _BESIDE
    trials = 0
    # between two ε, of which the larger alone reaches all targets
    while not high or (not low and trials < _TRIALS):
        share, trials = share_at(guess), trials + 1
        if share > 1:
            if guess == most:
                raise InvalidParameter("within must be larger: no ε gives such a small error here")
            low, below = guess, share
            guess = min(max(guess + 1, int(min(guess * share * wider, float(most)))), most)
            guess = most if trials == _MOST_TRIALS - 1 else guess
        else:
            high, above = guess, share
            if guess == 1:
                break
            guess = max(1, min(guess - 1, int(guess * share / wider)))
        wider = wider**4
    by_line = low > 0
    while high - low > (digits := max(1, high // 10**4)) and trials < _TRIALS:
        width, guess = high - low, (low + high) // 2
        if by_line and width > 2 * digits:
            inverse = 1 / high + (1 - above) * (1 / low - 1 / high) / (below - above)
            guess = min(max(round(1 / inverse) + digits // 3, low + digits), high - digits)
        share, trials = share_at(guess), trials + 1
        if share <= 1:
            high, above = guess, share
        else:
            low, below = guess, share
        by_line = low > 0 and (not by_line or 2 * (high - low) <= width)
    return trial(high).checked()
