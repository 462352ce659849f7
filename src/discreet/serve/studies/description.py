"""The public facts of a study, and the errors of a plan as a function of ε, as JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any, cast

from discreet.ask.declared import Declared
from discreet.ask.scope import column_under
from discreet.errors import DiscreetError
from discreet.formats import or_null
from discreet.parameters import UNIT
from discreet.release.plan import Plan
from discreet.release.study import Study
from discreet.serve import bodies
from discreet.serve.access import Person

_FIRST_KEYS = 20  # most keys of a column in the list of studies
_POINTS = 13
_DECADES = 3  # a slider ranges from a thousandth of the analyst's share, or of the total, to all of it
_SIZE = 1_000  # group size for which a slider shows the error of a mean, unless the client gives one
_DECLARED = ("bounds", "keys", "discover", "bins", "precision", "missing", "other")


def study_json(study: Study, person: Person, *, discovers: bool = False) -> bodies.Study:
    """The public facts of a study, and what this person has left; `discovers` if a discovery is allowed."""
    policy, ledger, analyst = study.policy, study.ledger, person.analyst
    fields = {
        "name": study.name,
        **{name: getattr(policy, name) for name in ("table", "unit", "max_rows", "max_groups", "neighbors")},
        "delta": None if policy.delta is None else str(policy.delta),
        "discovers": discovers and policy.delta is not None and study.discovered is None and _has_open_keys(study),
        "total": str(policy.epsilon),
        "remaining": str(ledger.remaining(study.name)),
        "allotment": None if analyst is None else str(ledger.total(study.name, analyst=analyst)),
        "left": str(ledger.remaining(study.name, analyst=analyst)),
        "columns": [_column_json(study, name, declared) for name, declared in policy.columns.items()],
    }
    return cast(bodies.Study, fields)


def _has_open_keys(study: Study) -> bool:
    return any(declared.discover for declared in study.policy.columns.values())


def _column_json(study: Study, name: str, declared: Declared) -> bodies.Column:
    keys = declared.keys
    first = None if keys is None else {"count": len(keys), "first": _plain(keys[:_FIRST_KEYS])}
    shown = {part: first if part == "keys" else _plain(getattr(declared, part)) for part in _DECLARED}
    return cast(bodies.Column, {"name": name, "kind": column_under(name, declared, study.schema[name]).kind, **shown})


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Fraction():
            return int(value) if value.denominator == 1 else float(value)
        case datetime():
            return value.isoformat()
    return value


def curve(plan: Plan, person: Person) -> bodies.Curve:
    """The error of each released number at values of ε in even ratios; null if it has no error to show."""
    study, size = plan.study, plan.size or _SIZE
    total = study.ledger.total(study.name, analyst=person.analyst) or study.policy.epsilon
    ratio = 10 ** (_DECADES / (_POINTS - 1))
    points: list[bodies.Point] = []
    for step in range(1 - _POINTS, 1):
        epsilon = max(UNIT, total * Fraction(f"{ratio**step:.6g}"))
        shares = tuple(replace(share, epsilon=share.epsilon * epsilon / plan.epsilon) for share in plan.shares)
        other = replace(plan, epsilon=epsilon, shares=shares, size=size)
        points.append({"epsilon": float(epsilon), "reach": _reaches(other)})
    return {"size": size, "points": points}


def _reaches(plan: Plan) -> list[float | None] | None:
    try:
        return [or_null(line.reach) for line in plan.lines]
    except DiscreetError:  # some designs do not exist at so small an ε
        return None
