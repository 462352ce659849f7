"""A study and a plan as JSON: everything that a reader sees of them, and the error at other ε for a slider."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.scope import column_under
from discreet.errors import DiscreetError
from discreet.parameters import UNIT
from discreet.release.plan import Plan
from discreet.release.study import Study
from discreet.serve.access import Person
from discreet.serve.wire import finite

_POINTS = 13
_DECADES = 3
"""A slider reaches from a thousandth of the total to all of it."""

_SIZE = 1_000
"""Rows for which a slider shows the error of a mean, if the client names none."""

_FIRST_KEYS = 20


def study_json(study: Study, person: Person) -> dict[str, Any]:
    """What may be known of a study, and what is left of it for this person."""
    policy, ledger = study.policy, study.ledger
    return {
        "name": study.name,
        "table": policy.table,
        "unit": policy.unit,
        "max_rows": policy.max_rows,
        "max_groups": policy.max_groups,
        "neighbors": policy.neighbors,
        "total": str(policy.epsilon),
        "remaining": str(ledger.remaining(study.name)),
        "allotment": None if person.analyst is None else str(ledger.total(study.name, analyst=person.analyst)),
        "left": str(ledger.remaining(study.name, analyst=person.analyst)),
        "columns": [
            {"name": name, "kind": column_under(name, declared, study.schema[name]).kind, **_declared(declared)}
            for name, declared in policy.columns.items()
        ],
    }


def plan_json(plan: Plan) -> dict[str, Any]:
    """Everything that a plan shows."""
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
                "reach": finite(line.reach),
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
        "curve": curve(plan),
    }


def curve(plan: Plan) -> dict[str, Any]:
    """The error of each released number over ε, at points in even ratios; null where there is none to show."""
    size, total = plan.size or _SIZE, plan.study.policy.epsilon
    ratio = 10 ** (_DECADES / (_POINTS - 1))
    exact = [total * Fraction(f"{ratio ** (at - _POINTS + 1):.6g}") for at in range(_POINTS)]
    points = []
    for epsilon in [max(UNIT, one) for one in exact]:
        shares = tuple(replace(share, epsilon=share.epsilon * epsilon / plan.epsilon) for share in plan.shares)
        other = replace(plan, epsilon=epsilon, shares=shares, size=size)
        points.append({"epsilon": float(epsilon), "reach": _reaches(other)})
    return {"size": size, "points": points}


def _reaches(plan: Plan) -> list[float | None] | None:
    """The errors in the order of the plan's lines."""
    try:
        return [finite(line.reach) for line in plan.lines]
    except DiscreetError:  # a design that cannot be made at so small an ε
        return None


def _declared(declared: Declared) -> dict[str, Any]:
    """A declared column; of many keys the first ones."""
    keys = declared.keys
    return {
        "bounds": _plain(declared.bounds),
        "keys": None if keys is None else {"count": len(keys), "first": _plain(keys[:_FIRST_KEYS])},
        "discover": declared.discover,
        "bins": _plain(declared.bins),
        "precision": _plain(declared.precision),
        "missing": _plain(declared.missing),
        "other": declared.other,
    }


def _plain(value: Any) -> Any:
    """A declared value in JSON's types."""
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Fraction():
            return int(value) if value.denominator == 1 else float(value)
        case datetime():
            return value.isoformat()
    return value
