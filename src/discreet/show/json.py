"""The plan of a question or a report as JSON, the same for the command line and HTTP.

Exact numbers are texts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, TypeVar, cast

from discreet.ask.expression import Column
from discreet.ask.normal import text
from discreet.ask.query import Named
from discreet.formats import or_null, shown
from discreet.outside import read_fraction

if TYPE_CHECKING:
    from discreet.release.plan import Plan
    from discreet.release.reports.plan import ReportPlan

Body = TypeVar("Body")
_MOST_SETS = 10  # most sets that a line names


class Words(dict[str, Any]):
    """Keywords of JSON Schema for a type, beside it in `Annotated`."""

    __hash__ = object.__hash__  # type: ignore[assignment] # `Annotated` needs one


Exact: TypeAlias = Annotated[str, Words(pattern=r"^-?\d+(/\d+)?$", description="an exact rational")]


class PlanLine(TypedDict):
    """Δ, scale and error of one released number."""

    name: str
    title: str
    sensitivity: Exact
    scale: Exact
    within: str
    reach: float | None
    sized: bool
    step: Exact
    noise: list[Exact]


class PlanJson(TypedDict):
    """The cost and the errors of a question."""

    study: str
    epsilon: Exact
    cost: Exact
    confidence: Exact
    simultaneous: bool
    size: int | None
    cells: int
    asked_before: Annotated[
        bool, Words(description="answered at this ε before: free while the data is the same")
    ]
    columns: list[str]
    lines: list[PlanLine]
    notes: list[str]
    warnings: list[str]
    remaining: Exact
    text: Annotated[str, Words(description="the plan as a terminal shows it")]


def body_of(kind: type[Body], value: object, /, **fields: Any) -> Body:
    """A body of this kind: the given fields, and the other fields from the attributes of the same
    name.
    """
    names = kind.__annotations__
    return cast(
        Body,
        {name: fields[name] if name in fields else _plain(getattr(value, name)) for name in names},
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Fraction) else or_null(value)


def plan_json(plan: Plan) -> PlanJson:
    titles = plan.titles()
    return body_of(
        PlanJson,
        plan,
        columns=[name for name, _ in plan.query.outputs],
        lines=[body_of(PlanLine, line, title=titles[line.name]) for line in plan.lines],
        **_shared(plan),
    )


def _shared(plan: Plan | ReportPlan) -> dict[str, Any]:
    study = plan.study
    asked_before = bool(plan.asked_before)
    return {
        "study": study.name,
        "asked_before": asked_before,
        "remaining": str(study.remaining),
        "text": repr(plan),
    }


class ReportLineJson(TypedDict):
    """The error of one number of a table: measured together with all tables, and if each table were
    asked alone.
    """

    table: str
    column: str
    rows: int
    size: int | None
    within: str
    reach: float | None
    one_by_one: str
    alone: float | None


class MeasuredSet(TypedDict):
    """Columns whose cells get noise."""

    columns: list[str]
    cells: int
    epsilon: Exact


class ReportPlanJson(TypedDict):
    """The cost and the errors of a report."""

    study: str
    title: str
    epsilon: Exact
    confidence: Exact
    simultaneous: bool
    integers: bool
    asked_before: Annotated[
        bool, Words(description="answered at this ε before: free while the data is the same")
    ]
    lines: list[ReportLineJson]
    measured: list[MeasuredSet]
    remaining: Exact
    text: Annotated[str, Words(description="the plan as a terminal shows it")]


def report_plan_json(plan: ReportPlan) -> ReportPlanJson:
    lines = [body_of(ReportLineJson, line, rows=line.cells, size=line.rows) for line in plan.lines]
    return body_of(ReportPlanJson, plan, lines=lines, measured=measured_sets(plan), **_shared(plan))


def measured_sets(plan: ReportPlan) -> list[MeasuredSet]:
    """The sets that a report measures, in descending order of their ε."""
    sets: list[MeasuredSet] = [
        {
            "columns": [
                _axis_name(plan, index, level) for index, level in enumerate(levels) if level
            ],
            "cells": math.prod(
                axis.sizes[level] for axis, level in zip(plan.axes, levels, strict=True)
            ),
            "epsilon": str(part * plan.epsilon),
        }
        for levels, part in plan.measured
    ]
    return sorted(sets, key=lambda measured: -read_fraction(measured["epsilon"]))


def set_text(measured: MeasuredSet) -> str:
    """The name of a set for a reader.

    >>> set_text({"columns": ["county", "month"], "cells": 60, "epsilon": "1/2"})
    'county × month'
    """
    return " × ".join(measured["columns"]) or "all rows"


def measured_text(plan: ReportPlan) -> str:
    measured = [
        (set_text(one), shown(read_fraction(one["epsilon"]))) for one in measured_sets(plan)
    ]
    sets = [f"{text} with ε {epsilon}" for text, epsilon in measured]
    return f"measured: {', '.join(sets[:_MOST_SETS])}{', …' if len(sets) > _MOST_SETS else ''}"


def _axis_name(plan: ReportPlan, index: int, level: int) -> str:
    """The name of a column at a level: as tables call it, or as the data does."""
    attribute = plan.layout.attributes[index]
    for table in plan.layout.tables:
        for group, own in zip(table.query.groups, table.groups, strict=True):
            for title, output in table.query.outputs:
                if own == (index, level) and output == Named(group.name):
                    return title
    of: Any = (
        attribute.number.of.of
        if attribute.number is not None
        else attribute.group and attribute.group.of
    )
    name: str = of.name if isinstance(of, Column) else text(of)
    if level == attribute.axis.levels:
        return name
    parent = plan.study.policy.columns[name].parent if isinstance(of, Column) else None
    return parent or f"parts of {name}"
