"""The desk: what a person may see, plan and release in the studies that are served. Blocking; HTTP is elsewhere.

    release, report:  read the body → plan → claim the id → spend → read, draw, record → show

Everything up to the spend may be refused with a reason. What fails afterwards is one `FAILURE`. An id that has an
answer gives that answer, whatever became of the data meanwhile. A hash of the data (its version, and what is made of
it) is a secret and never leaves the desk.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any, cast

from discreet.ask.declared import Declared
from discreet.ask.query import Query, released
from discreet.ask.questions import build
from discreet.ask.scope import column_under
from discreet.ask.sql import parse
from discreet.errors import BudgetExceeded, DiscreetError, InvalidParameter, QueryRefused
from discreet.formats import or_null, shown
from discreet.ledger.chain import Entry
from discreet.ledger.questions import question_text
from discreet.ledger.refusals import VoidQuestion
from discreet.parameters import UNIT
from discreet.release.answer import Answer
from discreet.release.plan import REPORTS, Plan
from discreet.release.reports.earlier import restored
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.study import Study
from discreet.serve import bodies
from discreet.serve.access import Person
from discreet.serve.answers import answer_body, report_body, view_json, view_query
from discreet.serve.limits import Limits
from discreet.serve.refusals import FAILURE, Refusal, refusal_of, tell_operator
from discreet.serve.requests import Requests, ledger_id
from discreet.serve.schema import json_bytes
from discreet.show.json import plan_json, report_plan_json

MOST_STATISTICS = 100
"""In one question over HTTP: a plan of more takes seconds."""

MOST_REPORTED = 50
"""Statistics in all tables of a report over HTTP: a plan of more takes many seconds."""

_MEASURED = 10
"""Cells that a report may measure, for each number that it may have."""

MOST_ENTRIES = 1_000
_LONGEST_QUESTION = 4_000
"""Characters of a question in the list of entries."""

_FIRST_KEYS = 20
"""Keys of a column in the list of studies."""

_POINTS = 13
_DECADES = 3
"""A slider reaches from a thousandth of the total to all of it."""

_SIZE = 1_000
"""Rows for which a slider shows the error of a mean, if the client names none."""

_DECLARED = ("bounds", "keys", "discover", "bins", "precision", "missing", "other")
_SHOWN = ("study", "number", "kind", "analyst", "epsilon", "amount", "time")
_NO_TERMS = ("study", "sql", "where", "by", "ask", "tables", "request_id")
_SHOWN_REPORT = ("title", "simultaneous", "size", "integers")


class Seat(Study):
    """A study as an analyst sees it: what is left is what is left of their share."""

    def __init__(self, study: Study, person: Person) -> None:
        self.__dict__.update(study.__dict__)
        self.person = person

    @property
    def remaining(self) -> Fraction:
        return self.ledger.remaining(self.name, analyst=self.person.analyst)


class Desk:
    """Studies, and who asked what; several threads may use it."""

    def __init__(self, studies: Mapping[str, Study], requests: Requests, limits: Limits) -> None:
        self._studies, self._requests, self._limits = dict(studies), requests, limits
        self._keys = {name: study_key(study) for name, study in studies.items()}
        for study in self._studies.values():
            study.schema  # noqa: B018 - opened before the threads come, so that they share one

    def studies(self, person: Person) -> bodies.Studies:
        """What the person may ask about, and what is left for it."""
        return {"studies": [study_json(self._seat(person, name), person) for name in self._names(person)]}

    def plan(self, person: Person, question: bodies.Question) -> bytes:
        plan = self._plan_question(person, question)
        body: bodies.Plan = {**plan_json(plan), "curve": curve(plan)}
        return json_bytes(body)

    def report_plan(self, person: Person, question: bodies.ReportQuestion) -> bytes:
        return json_bytes(report_plan_json(self._plan_report(person, question)))

    def release(self, person: Person, request: bodies.Request) -> bytes:
        """The answer to a question, spent for, or the one that its id has already."""
        name, study = ledger_id(person.name, request["request_id"]), request["study"]
        plan = self._plan_question(person, request)
        view, key = view_json(plan.query), self._keys[study]

        def answer_body_of(new: bool) -> bytes:
            stored = None if new else self._stored_answer(person, study, name)
            if stored is not None:
                return answer_body(stored[0], study, view)
            answer = plan.release(request_id=name, analyst=person.analyst)
            if not plan.cost:
                answer = replace(answer, content=self._requests.keep(key, name, answer.content), entry=name)
            return answer_body(answer, study, view)

        return self._once(request, name, view, answer_body_of)

    def report(self, person: Person, request: bodies.ReportRequest) -> bytes:
        """All tables of a report, spent for, or those that its id has already."""
        name, study = ledger_id(person.name, request["request_id"]), request["study"]
        plan = self._plan_report(person, request)
        shown: dict[str, Any] = {part: getattr(plan, part) for part in _SHOWN_REPORT}
        view = {"report": {**shown, "confidence": str(plan.confidence), "tables": request["tables"]}}

        def report_body_of(new: bool) -> bytes:
            stored = None if new else self._stored_report(person, study, name)
            return report_body(stored or plan.release(request_id=name, analyst=person.analyst), study)

        return self._once(request, name, view, report_body_of)

    def _once(
        self,
        request: bodies.Request | bodies.ReportRequest,
        name: str,
        view: dict[str, Any],
        work: Callable[[bool], bytes],
    ) -> bytes:
        """The result of the work under an id, which stands for one body; the work learns whether the id is new."""
        study = request["study"]
        key = self._keys[study]
        question = {part: value for part, value in request.items() if part != "request_id"}
        body = sha256(json.dumps(question, sort_keys=True, default=str).encode()).digest()
        new = self._requests.claim(key, name, body=body, view=view)
        try:
            return work(new)
        except (BudgetExceeded, VoidQuestion) as error:
            if new:
                self._requests.forget(key, name)
            raise refusal_of(error) from None
        except Exception as error:
            tell_operator(error, f"release {name!r} of study {study!r}")
            raise FAILURE from None

    def answer(self, person: Person, wanted: str) -> tuple[Answer, str, dict[str, Any]]:
        """A released answer of the person's own, its study and view; a custodian may name anybody's, as `name:id`."""
        study, name = self._locate(person, wanted, is_report=False)
        stored = self._stored_answer(person, study, name)
        if stored is None:
            raise _no_answer("POST /release")
        return stored[0], study, stored[1]

    def reported(self, person: Person, wanted: str) -> tuple[Report, str]:
        """A released report of the person's own, and its study; a custodian may name anybody's, as `name:id`."""
        study, name = self._locate(person, wanted, is_report=True)
        report = self._stored_report(person, study, name)
        if report is None:
            raise _no_answer("POST /report")
        return report, study

    def _locate(self, person: Person, wanted: str, *, is_report: bool) -> tuple[str, str]:
        """The study in which something was asked under an id that the person may see, and the id in full."""
        wanted = wanted.removeprefix(REPORTS) if is_report else wanted
        name = wanted if ":" in wanted else f"{person.name}:{wanted}"
        if name.startswith(f"{person.name}:") or person.role == "custodian":
            for study in self._names(person):
                view, _ = self._requests.find(self._keys[study], name) or ({}, None)
                if view and ("report" in view) == is_report:
                    return study, name
        raise Refusal(404, "There is no such release.", "GET /ledger lists the releases that you can see.")

    def entries(self, person: Person, study: str | None) -> bodies.Entries:
        """The last entries of the ledger: an analyst's own, or all for a custodian."""
        names = [study] if study is not None else self._names(person)
        ledgers = [(name, self._seat(person, name).ledger) for name in names]
        entries = [ledger.recent(name, last=MOST_ENTRIES, analyst=person.analyst) for name, ledger in ledgers]
        return {"entries": [_entry_json(entry) for some in entries for entry in some]}

    def _names(self, person: Person) -> list[str]:
        """The studies that are served here and that the person may ask about."""
        return [name for name, key in self._keys.items() if key in person.studies]

    def _seat(self, person: Person, name: str) -> Seat:
        """The study, if the person may ask about it; nobody learns whether another one exists."""
        if name not in self._names(person):
            raise Refusal(404, "There is no such study.", "GET /studies lists the studies that you can ask about.")
        return Seat(self._studies[name], person)

    def _plan_question(self, person: Person, question: bodies.Question) -> Plan:
        """The plan of a question that is worth its cost to the server."""
        try:
            seat = self._seat(person, question["study"])
            query = _query(seat, question)
            self._refuse_large("An answer", [query], MOST_STATISTICS)
            terms: dict[str, Any] = {name: term for name, term in question.items() if name not in _NO_TERMS}
            plan = seat._plan(query, **terms)
        except DiscreetError as error:
            raise _plan_refusal(error, question) from None
        self._refuse_tiny(plan.cost)
        return plan

    def _plan_report(self, person: Person, question: bodies.ReportQuestion) -> ReportPlan:
        """The plan of a report that is worth its cost to the server."""
        try:
            seat = self._seat(person, question["study"])
            with suppress(InvalidParameter, QueryRefused):  # the study says which table is wrong
                self._refuse_large("A report", list(_queries(seat, question["tables"]).values()), MOST_REPORTED)
            terms: dict[str, Any] = {name: term for name, term in question.items() if name not in _NO_TERMS}
            plan = seat.report(question["tables"], **terms)
        except DiscreetError as error:
            raise _plan_refusal(error, question) from None
        most = self._limits.most_numbers
        full = math.prod(axis.axis.sizes[-1] for axis in plan.layout.attributes if axis.group is not None)
        _refuse_more("A report", "measured cells", plan.design.cells, _MEASURED * most)
        if plan.integers:
            _refuse_more("A report with integers", "cells of all columns together", full, most)
        self._refuse_tiny(plan.epsilon)
        return plan

    def _refuse_large(self, what: str, queries: list[Query], most: int) -> None:
        """Refuse what would take a plan or an answer too long."""
        numbers = [sum(len(released(*pair)) for pair in query.aggregates) for query in queries]
        cells = [math.prod(group.size for group in query.groups) for query in queries]
        _refuse_more(what, "statistics", sum(numbers), most)
        _refuse_more(what, "numbers", sum(map(operator.mul, numbers, cells)), self._limits.most_numbers)

    def _refuse_tiny(self, cost: Fraction) -> None:
        if 0 < cost < self._limits.least_epsilon:
            raise Refusal(
                400,
                f"epsilon must be at least {shown(self._limits.least_epsilon)} over HTTP, got {shown(cost)}.",
                "Ask for a larger epsilon, or for a smaller error; nothing was spent.",
            )

    def _stored_answer(self, person: Person, study: str, name: str) -> tuple[Answer, dict[str, Any]] | None:
        """The answer that an id has, and how it is shown; None if there is none."""
        view, content = self._requests.find(self._keys[study], name) or (None, None)
        if view is not None and "report" in view:
            return None
        ledger = self._studies[study].ledger
        if view is not None:
            content = content or ledger.answer(study=study, request_id=name)
        if view is None or content is None:
            return None
        remaining = ledger.remaining(study, analyst=person.analyst)
        return Answer(content=content, query=view_query(view, content), remaining=remaining, entry=name), view

    def _stored_report(self, person: Person, study: str, name: str) -> Report | None:
        """The report that an id has; None if there is none."""
        view, _ = self._requests.find(self._keys[study], name) or ({}, None)
        entry, seat = REPORTS + name, self._seat(person, study)
        content = seat.ledger.answer(study=study, request_id=entry) if "report" in view else None
        if content is None:
            return None
        terms = view["report"]
        report = None
        with suppress(InvalidParameter, QueryRefused):
            queries = _queries(seat, terms.pop("tables"))
            report = restored(seat, content, queries, entry=entry, **terms)
        if report is None:
            raise Refusal(
                404,
                "The policy has changed since this report was released.",
                "Ask the custodian for the tables, or ask for the report again under a new request_id.",
            )
        return report


def _plan_refusal(error: DiscreetError, question: bodies.Question | bodies.ReportQuestion) -> Refusal:
    """The refusal of a question that has no plan; what is unexpected goes to the operator's log."""
    refusal = refusal_of(error)
    if refusal is FAILURE:
        tell_operator(error, f"a plan of study {question['study']!r}")
    return refusal


def _refuse_more(whole: str, what: str, many: int, most: int) -> None:
    if many > most:
        raise Refusal(
            422,
            f"{whole} over HTTP has at most {most:,} {what}, this one has {many:,}.",
            "Ask for less at once, or ask the custodian to release it; nothing was spent.",
        )


def _no_answer(path: str) -> Refusal:
    return Refusal(
        404,
        "The ledger keeps no answer under this id: it is not done, or it repeats a question that was asked too often.",
        f"{path} with the same body and request_id gives the answer; it is charged once.",
    )


def study_key(study: Study) -> str:
    """What permits and requests are bound to: the ledger that a study spends from, and its name there."""
    return f"{study.ledger.id}/{study.name}"


def study_json(study: Study, person: Person) -> bodies.Study:
    """What may be known of a study, and what is left of it for this person."""
    policy, ledger, analyst = study.policy, study.ledger, person.analyst
    fields = {
        "name": study.name,
        **{name: getattr(policy, name) for name in ("table", "unit", "max_rows", "max_groups", "neighbors")},
        "total": str(policy.epsilon),
        "remaining": str(ledger.remaining(study.name)),
        "allotment": None if analyst is None else str(ledger.total(study.name, analyst=analyst)),
        "left": str(ledger.remaining(study.name, analyst=analyst)),
        "columns": [_column_json(study, name, declared) for name, declared in policy.columns.items()],
    }
    return cast(bodies.Study, fields)


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


def curve(plan: Plan) -> bodies.Curve:
    """The error of each released number over ε, at points in even ratios; null where there is none to show."""
    size, total = plan.size or _SIZE, plan.study.policy.epsilon
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
    except DiscreetError:  # a design that cannot be made at so small an ε
        return None


def _entry_json(entry: Entry) -> bodies.Entry:
    """An entry without its hashes: they cover the version of the data."""
    question = None if entry.query is None else question_text(entry.query)
    if question is not None and len(question) > _LONGEST_QUESTION:
        question = question[:_LONGEST_QUESTION] + "…"
    same = {name: getattr(entry, name) for name in _SHOWN}
    return cast(bodies.Entry, {"id": entry.request_id, "question": question, **same})


def _queries(study: Study, tables: Mapping[str, str]) -> dict[str, Query]:
    return {name: parse(text, study.policy, study.schema) for name, text in tables.items()}


def _query(study: Study, question: bodies.Question) -> Query:
    if "sql" in question:
        return parse(question["sql"], study.policy, study.schema)
    ask = {name: bodies.question_of(content) for name, content in question["ask"].items()}
    return build(study.policy, study.schema, where=question.get("where", []), by=question.get("by", []), ask=ask)
