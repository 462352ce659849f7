"""Earlier reports: a question that asks for one of their tables is free.

A question is answered from a report of the same data version if it is one of the tables of the
report, and if the ε of the report is not smaller than the ε of the question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.ask.query import Query, canonical
from discreet.ask.scope import Scope
from discreet.outside import read_fraction, read_json
from discreet.parameters import exact_confidence
from discreet.release.plan import REPORTS
from discreet.release.reports.axes import Axis
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.reader import among, layout_of
from discreet.release.reports.report import Report
from discreet.release.reports.tables import Attribute, Layout

if TYPE_CHECKING:
    from discreet.ledger.chain import Entry
    from discreet.release.plan import Plan
    from discreet.release.study import Study


def reported(plan: Plan) -> Report | None:
    """The last report that contains the table of a plan; None if there is none."""
    study, question = plan.study, canonical(plan.query)
    entries = [
        entry
        for entry in study.ledger.requests(study.name, REPORTS)
        if _holds(entry, question, plan)
    ]
    version = study.version if entries else ""
    for entry in reversed(entries):
        content = study.ledger.answer(study=study.name, request_id=str(entry.request_id))
        if entry.data_version == version and content is not None:
            report = _report(study, content, plan, str(entry.request_id))
            if report is not None:
                return report
    return None


def _holds(entry: Entry, question: str, plan: Plan) -> bool:
    """Whether a report contains a question, at no smaller ε, under the same promise."""
    _, questions, promise, *_ = read_json(entry.query or '["", [], []]')
    policy = plan.study.policy
    same = promise == [policy.neighbors, policy.unit, policy.max_rows, policy.max_groups]
    return same and question in questions and read_fraction(entry.epsilon or 0) >= plan.epsilon


def _report(study: Study, content: bytes, plan: Plan, entry: str) -> Report | None:
    """The report with the table of a plan alone; None if it needs other columns."""
    record = read_json(content)
    attributes = tuple(
        Attribute(
            Axis(tuple(axis["cells"]), tuple(map(tuple, axis["parents"]))),
            tuple(axis["names"]),
            width=axis["width"],
        )
        for axis in record["axes"]
    )
    table = among(plan.query, Scope(study.policy, study.schema), attributes, record["where"])
    if table is None:
        return None
    layout = Layout(attributes, (replace(table, name="table"),), None)
    terms = {
        "confidence": plan.confidence,
        "simultaneous": plan.simultaneous,
        "size": plan.size or 1000,
    }
    # the title may be that of another analyst
    return Report(content, _plan(study, record, layout, title="", **terms), study.remaining, entry)


def restored(
    study: Study,
    content: bytes,
    queries: Mapping[str, Query],
    *,
    entry: str,
    confidence: Any,
    **terms: Any,
) -> Report | None:
    """A report from the ledger, with these tables; None if the policy has other cells now."""
    record, layout = read_json(content), layout_of(queries, {}, Scope(study.policy, study.schema))
    plan = _plan(study, record, layout, confidence=exact_confidence(confidence), **terms)
    same = all(
        read_json(json.dumps(plan._rest()[name])) == record[name] for name in ("axes", "where")
    )
    return Report(content, plan, study.remaining, entry) if same else None


def _plan(study: Study, record: dict[str, Any], layout: Layout, **terms: Any) -> ReportPlan:
    """The plan of a recorded report; `terms` are what the record does not say."""
    epsilon = read_fraction(record["epsilon"])
    measured = tuple(
        (tuple(entry["levels"]), read_fraction(entry["epsilon"]) / epsilon)
        for entry in record["sets"]
    )
    return ReportPlan(study=study, layout=layout, measured=measured, epsilon=epsilon, **terms)
