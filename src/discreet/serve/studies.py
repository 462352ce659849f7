"""A study as clients see it: its public facts, the errors of a plan as a function of ε, and its
discovery, as JSON.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.scope import column_under
from discreet.errors import DiscreetError
from discreet.formats import or_null
from discreet.parameters import UNIT
from discreet.release.discovery import Discovered, DiscoveryPlan, meaning
from discreet.release.plan import Plan
from discreet.release.split import scaled
from discreet.release.study import Study
from discreet.release.work import CURVE
from discreet.serve import bodies
from discreet.serve.access import Person
from discreet.show.json import body_of

_FIRST_KEYS = 20  # most keys of a column in the list of studies
# a slider ranges from a thousandth of the analyst's share, or of the total, to all of it
_DECADES = 3
# group size for which a slider shows the error of a mean, unless the client gives one
_SIZE = 1_000


def study_json(study: Study, person: Person, *, discovers: bool = False) -> bodies.Study:
    """The public facts of a study, and what this person has left; `discovers` if a discovery is
    allowed.
    """
    policy, ledger, analyst = study.policy, study.ledger, person.analyst
    has_open_keys = any(declared.discover for declared in policy.columns.values())
    return body_of(
        bodies.Study,
        policy,
        name=study.name,
        discovers=discovers
        and policy.delta is not None
        and study.discovered is None
        and has_open_keys,
        total=str(policy.epsilon),
        remaining=str(ledger.remaining(study.name)),
        allotment=None if analyst is None else str(ledger.total(study.name, analyst=analyst)),
        left=str(ledger.remaining(study.name, analyst=analyst)),
        columns=[_column_json(study, name, declared) for name, declared in policy.columns.items()],
    )


def _column_json(study: Study, name: str, declared: Declared) -> bodies.Column:
    keys = declared.keys
    first = None if keys is None else {"count": len(keys), "first": _plain(keys[:_FIRST_KEYS])}
    declarations = {
        part: _plain(getattr(declared, part)) for part in ("bounds", "bins", "precision", "missing")
    }
    kind = column_under(name, declared, study.schema[name]).kind
    return body_of(bodies.Column, declared, name=name, kind=kind, keys=first, **declarations)


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
    """The error of each released number at values of ε in even ratios; null if it has no error to
    show.
    """
    study, size = plan.study, plan.size or _SIZE
    total = study.ledger.total(study.name, analyst=person.analyst) or study.policy.epsilon
    ratio = 10 ** (_DECADES / (CURVE - 1))
    points: list[bodies.Point] = []
    for step in range(1 - CURVE, 1):
        epsilon = max(UNIT, total * Fraction(f"{ratio**step:.6g}"))
        points.append(
            {
                "epsilon": float(epsilon),
                "reach": _reaches(replace(scaled(plan, epsilon), size=size)),
            }
        )
    return {"size": size, "points": points}


def _reaches(plan: Plan) -> list[float | None] | None:
    try:
        return [or_null(line.reach) for line in plan.lines]
    except DiscreetError:  # some designs do not exist at so small an ε
        return None


def discovery_cost(plan: DiscoveryPlan) -> Fraction:
    """The ε that it spends; 0 if it was paid for before."""
    return plan.epsilon if plan.begun is None else Fraction(0)


def discovery_plan_json(study: Study, plan: DiscoveryPlan) -> bodies.DiscoveryPlan:
    return body_of(
        bodies.DiscoveryPlan,
        plan,
        study=study.name,
        columns=[column.name for column in plan.columns],
        cost=str(discovery_cost(plan)),
        meaning=meaning(study.policy, plan.delta),
        always_from=plan.rule.last + 1,
        half_from=plan.rule.units_for(0.5),
        asked_before=plan.answered,
        remaining=str(study.remaining),
    )


def discovery_json(study: Study, discovered: Discovered) -> bodies.Discovery:
    keys = {column: list(names) for column, names in discovered.keys.items()}
    return body_of(
        bodies.Discovery, discovered, study=study.name, keys=keys, remaining=str(study.remaining)
    )
