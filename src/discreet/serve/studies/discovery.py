"""The one discovery of a study, as JSON: its cost, and the keys that it found."""

from __future__ import annotations

from fractions import Fraction

from discreet.release.discovery import Discovered, DiscoveryPlan, meaning
from discreet.release.study import Study
from discreet.serve import bodies

_HALF = 0.5


def discovery_cost(plan: DiscoveryPlan) -> Fraction:
    """The ε that it spends; 0 if it was paid for before."""
    return plan.epsilon if plan.begun is None else Fraction(0)


def discovery_plan_json(study: Study, plan: DiscoveryPlan) -> bodies.DiscoveryPlan:
    return {
        "study": study.name,
        "columns": [column.name for column in plan.columns],
        "epsilon": str(plan.epsilon),
        "cost": str(discovery_cost(plan)),
        "delta": str(plan.delta),
        "meaning": meaning(study.policy, plan.delta),
        "always_from": plan.rule.last + 1,
        "half_from": plan.rule.units_for(_HALF),
        "asked_before": plan.answered,
        "remaining": str(study.remaining),
    }


def discovery_json(study: Study, discovered: Discovered) -> bodies.Discovery:
    return {
        "study": study.name,
        "keys": {column: list(keys) for column, keys in discovered.keys.items()},
        "epsilon": str(discovered.epsilon),
        "delta": str(discovered.delta),
        "remaining": str(study.remaining),
    }
