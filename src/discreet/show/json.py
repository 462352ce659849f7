"""A plan as JSON: one form for the command line and for HTTP. Exact numbers are texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

from discreet.formats import or_null

if TYPE_CHECKING:
    from discreet.release.plan import Plan


class Words(dict[str, Any]):
    """What JSON Schema says of a type, beside it in `Annotated`."""

    __hash__ = object.__hash__  # type: ignore[assignment] # `Annotated` needs one


Exact: TypeAlias = Annotated[str, Words(pattern=r"^-?\d+(/\d+)?$", description="an exact rational")]
"""The text of a fraction."""


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
    """What a question will cost and give."""

    study: str
    epsilon: Exact
    cost: Exact
    confidence: Exact
    simultaneous: bool
    size: int | None
    cells: int
    columns: list[str]
    lines: list[PlanLine]
    notes: list[str]
    warnings: list[str]
    remaining: Exact
    text: Annotated[str, Words(description="the plan as a terminal shows it")]


def plan_json(plan: Plan) -> PlanJson:
    titles = plan.titles()
    return {
        "study": plan.study.name,
        "epsilon": str(plan.epsilon),
        "cost": str(plan.cost),
        "confidence": str(plan.confidence),
        "simultaneous": plan.simultaneous,
        "size": plan.size,
        "cells": plan.cells,
        "columns": [name for name, _ in plan.query.outputs],
        "lines": [
            {
                "name": line.name,
                "title": titles[line.name],
                "sensitivity": str(line.sensitivity),
                "scale": str(line.scale),
                "within": line.within,
                "reach": or_null(line.reach),
                "sized": line.sized,
                "step": str(line.step),
                "noise": [str(scale) for scale in line.noise],
            }
            for line in plan.lines
        ],
        "notes": plan.notes,
        "warnings": plan.warnings,
        "remaining": str(plan.study.remaining),
        "text": repr(plan),
    }
