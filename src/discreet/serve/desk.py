"""The desk: what a person may see, plan and release. It blocks, and knows nothing of HTTP.

    release, report:  read the body → plan → claim the id → spend → read, draw, record → show

Everything before the spend may be refused with a reason. Every failure afterwards is the same
`FAILURE`. An id that has an answer gives that answer, even if the data has changed. Hashes of the
data (its version, and all that depends on it) are secret and never leave the desk.
"""

from __future__ import annotations

import json
import math
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import chain
from typing import Any, cast

from discreet.ask.query import Query, released
from discreet.ask.questions import build
from discreet.ask.sql import parse
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InvalidParameter,
    QueryRefused,
    SourceFailing,
    shorter,
)
from discreet.formats import shown
from discreet.ledger.chain import Entry
from discreet.ledger.questions import entry_text
from discreet.ledger.refusals import RequestTaken, VoidQuestion
from discreet.records import is_packed
from discreet.release.answer import Answer
from discreet.release.discovery import DiscoveryPlan, discovery_plan
from discreet.release.plan import REPORTS, Plan
from discreet.release.reports.earlier import restored
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.study import Study
from discreet.serve import bodies
from discreet.serve.access import Person
from discreet.serve.answers import answer_body, report_body, view_json, view_query
from discreet.serve.limits import Limits
from discreet.serve.operation.guard import Readiness
from discreet.serve.operation.log import tell_operator
from discreet.serve.operation.metrics import METRICS, Timed
from discreet.serve.refusals import FAILING, FAILURE, UNUSABLE, Refusal, refusal_of
from discreet.serve.schema import json_bytes
from discreet.serve.store import Requests, ledger_id
from discreet.serve.studies import (
    curve,
    discovery_cost,
    discovery_json,
    discovery_plan_json,
    study_json,
)
from discreet.show.json import plan_json, report_plan_json

MOST_STATISTICS = 100  # most statistics of a question over HTTP: a plan with more takes seconds
# most statistics in all tables of a report over HTTP: a plan with more takes many seconds
MOST_REPORTED = 50
_MEASURED = 10  # most measured cells of a report, for each number that it may have
MOST_ENTRIES = 1_000
_LONGEST_QUESTION = 4_000  # most characters of a question in the list of entries
_SHOWN = ("study", "number", "kind", "analyst", "epsilon", "amount", "time")
_NO_TERMS = ("study", "sql", "where", "by", "ask", "tables", "request_id")
_SHOWN_REPORT = ("title", "simultaneous", "size", "integers")


class StudyForPerson(Study):
    """A study as a person sees it: `remaining` is what is left of their share."""

    def __init__(self, study: Study, person: Person) -> None:
        self.__dict__.update(study.__dict__)
        self.ledger = cast(Any, Timed(study.ledger))
        self.person = person

    @property
    def remaining(self) -> Fraction:
        return self.ledger.remaining(self.name, analyst=self.person.analyst)


class Desk:
    """The served studies and their requests; safe for several threads."""

    def __init__(self, studies: Mapping[str, Study], requests: Requests, limits: Limits) -> None:
        self._studies, self._requests, self._limits = dict(studies), requests, limits
        self._discovering = {name: threading.Lock() for name in studies}
        for study in self._studies.values():
            study.schema  # noqa: B018 - opened before the threads start, so that they share it
        self._keys = {name: study_key(study) for name, study in studies.items()}  # creates ledgers

    def studies(self, person: Person) -> bodies.Studies:
        seats = [self._seat(person, name) for name in self.names_of(person)]
        described = [study_json(seat, person, discovers=self._limits.discovery) for seat in seats]
        return {"name": person.name, "role": person.role, "studies": described}

    @property
    def names(self) -> list[str]:
        """The names of the studies."""
        return list(self._studies)

    def metrics(self, person: Person | None, ready: Readiness) -> str:
        """The metrics, with the budgets of a custodian's studies; for the metrics key, of all."""
        if person is not None and person.role != "custodian":
            raise Refusal(
                403,
                "Only custodians may read the metrics.",
                "GET /studies shows what is left for you.",
            )
        names = self._studies if person is None else self.names_of(person)
        results = [
            (check, passes)
            for check, passes in ready.results(anew=True)
            if check.study in ("", *names)
        ]
        heads = {
            check.study: check.value
            for check, passes in results
            if passes and check.part == "ledger"
        }
        return METRICS.text(heads, {(check.part, check.study): passes for check, passes in results})

    def plan(self, person: Person, question: bodies.Question) -> bytes:
        plan = self._plan_question(person, question)
        body: bodies.Plan = {**plan_json(plan), "curve": curve(plan, person)}
        return json_bytes(body)

    def report_plan(self, person: Person, question: bodies.ReportQuestion) -> bytes:
        return json_bytes(report_plan_json(self._plan_report(person, question)))

    def release(self, person: Person, request: bodies.Request) -> bytes:
        """Release a question; an id that has an answer gives that answer."""
        name, study = ledger_id(person.name, request["request_id"]), request["study"]
        plan = self._plan_question(person, request)
        view, key = view_json(plan.query), self._keys[study]

        def answer_body_of(new: bool) -> bytes:
            answer, _ = (None if new else self._stored_answer(person, study, name)) or (None, None)
            if answer is None:
                answer = plan.release(request_id=name, analyst=person.analyst)
                if not plan.cost:
                    answer = replace(
                        answer, content=self._requests.keep(key, name, answer.content), entry=name
                    )
            return answer_body(answer, study, view)

        return self._once(request, name, view, answer_body_of)

    def report(self, person: Person, request: bodies.ReportRequest) -> bytes:
        """Release a report; an id that has a report gives that report."""
        name, study = ledger_id(person.name, request["request_id"]), request["study"]
        plan = self._plan_report(person, request)
        shown: dict[str, Any] = {part: getattr(plan, part) for part in _SHOWN_REPORT}
        view = {
            "report": {**shown, "confidence": str(plan.confidence), "tables": request["tables"]}
        }

        def report_body_of(new: bool) -> bytes:
            stored = None if new else self._stored_report(person, study, name)
            return report_body(
                stored or plan.release(request_id=name, analyst=person.analyst), study
            )

        return self._once(request, name, view, report_body_of)

    def discovery_plan(self, person: Person, question: bodies.DiscoveryQuestion) -> bytes:
        return json_bytes(discovery_plan_json(*self._plan_discovery(person, question)))

    def discover(self, person: Person, question: bodies.DiscoveryQuestion) -> bytes:
        """Run the one discovery of a study, or give the keys of the earlier discovery."""
        name = question["study"]
        # a second request finds what the first has paid for
        with self._discovering.get(name, nullcontext()):
            seat, plan = self._plan_discovery(person, question)
            columns = [column.name for column in plan.columns]
            try:
                keys = self._studies[name].discover(
                    *columns, epsilon=plan.epsilon, analyst=person.analyst
                )
            except (BudgetExceeded, QueryRefused) as error:
                raise refusal_of(error) from None
            except SourceFailing as error:
                tell_operator(error, f"the discovery of study {name!r}")
                raise FAILING from None
            except Exception as error:
                tell_operator(error, f"the discovery of study {name!r}")
                raise FAILURE from None
        return json_bytes(discovery_json(seat, keys))

    def _once(
        self,
        request: bodies.Request | bodies.ReportRequest,
        name: str,
        view: dict[str, Any],
        work: Callable[[bool], bytes],
    ) -> bytes:
        """The result of `work` under an id, for one body only; `work` is told if the id is new."""
        study = request["study"]
        key = self._keys[study]
        question = {part: value for part, value in request.items() if part != "request_id"}
        body = sha256(json.dumps(question, sort_keys=True, default=str).encode()).digest()
        new = self._requests.claim(key, name, body=body, view=view)
        try:
            return work(new)
        except (BudgetExceeded, VoidQuestion, RequestTaken) as error:
            if new:
                self._requests.forget(key, name)
            raise refusal_of(error) from None
        except SourceFailing as error:
            tell_operator(error, f"release {name!r} of study {study!r}")
            raise FAILING from None
        except Exception as error:
            tell_operator(error, f"release {name!r} of study {study!r}")
            raise FAILURE from None

    def answer(self, person: Person, request_id: str) -> tuple[Answer, str, dict[str, Any]]:
        """A released answer, its study and view; a custodian may name another's, as `name:id`."""
        study, name = self._locate(person, request_id, is_report=False)
        stored = self._stored_answer(person, study, name)
        if stored is None:
            raise _no_answer("POST /release")
        return stored[0], study, stored[1]

    def reported(self, person: Person, request_id: str) -> tuple[Report, str]:
        """A released report and its study; a custodian may name another's, as `name:id`."""
        study, name = self._locate(person, request_id, is_report=True)
        report = self._stored_report(person, study, name)
        if report is None:
            raise _no_answer("POST /report")
        return report, study

    def _locate(self, person: Person, request_id: str, *, is_report: bool) -> tuple[str, str]:
        """The study of an id that the person may see, and the full id."""
        request_id = request_id.removeprefix(REPORTS) if is_report else request_id
        name = request_id if ":" in request_id else f"{person.name}:{request_id}"
        if name.startswith(f"{person.name}:") or person.role == "custodian":
            for study in self.names_of(person):
                view, _ = self._requests.find(self._keys[study], name) or ({}, None)
                if view and ("report" in view) == is_report:
                    return study, name
        raise Refusal(
            404, "There is no such release.", "GET /ledger lists the releases that you can see."
        )

    def entries(self, person: Person, study: str | None) -> bodies.Entries:
        """The last entries of the ledger: an analyst's own, or all for a custodian."""
        names = [study] if study is not None else self.names_of(person)
        ledgers = [(name, self._seat(person, name).ledger) for name in names]
        entries = (
            ledger.recent(name, last=MOST_ENTRIES, analyst=person.analyst)
            for name, ledger in ledgers
        )
        return {"entries": list(map(_entry_json, chain.from_iterable(entries)))}

    def names_of(self, person: Person) -> list[str]:
        """The names of the studies that a person may use."""
        return [name for name, key in self._keys.items() if key in person.studies]

    def _seat(self, person: Person, name: str) -> StudyForPerson:
        """The study, if the person may use it; a refusal does not reveal whether it exists."""
        if name not in self.names_of(person):
            raise Refusal(
                404, "There is no such study.", "GET /studies lists the studies that you may use."
            )
        study = self._studies[name]
        study._recall_discovery()
        return StudyForPerson(study, person)

    def _plan_question(self, person: Person, question: bodies.Question) -> Plan:
        with _planning(question["study"]):
            seat = self._seat(person, question["study"])
            query = _query(seat, question)
            self._refuse_large("An answer", [query], MOST_STATISTICS)
            plan = seat._plan(query, **_terms(question))
        self._refuse_tiny(plan.cost)
        return plan

    def _plan_discovery(
        self, person: Person, question: bodies.DiscoveryQuestion
    ) -> tuple[StudyForPerson, DiscoveryPlan]:
        """The study as the person sees it, and the plan of a discovery, if discovery is allowed."""
        with _planning(question["study"]):
            seat = self._seat(person, question["study"])
            if not self._limits.discovery:
                raise Refusal(
                    422,
                    "This server does not allow discoveries.",
                    "Ask the custodian for the keys, or to start the server with --discovery.",
                )
            plan = discovery_plan(seat, question["columns"], question["epsilon"])
        self._refuse_tiny(discovery_cost(plan))
        return seat, plan

    def _plan_report(self, person: Person, question: bodies.ReportQuestion) -> ReportPlan:
        with _planning(question["study"]):
            seat = self._seat(person, question["study"])
            with suppress(InvalidParameter, QueryRefused):  # study.report names the wrong table
                self._refuse_large(
                    "A report", list(_queries(seat, question["tables"]).values()), MOST_REPORTED
                )
            plan = seat.report(question["tables"], **_terms(question))
        most = self._limits.most_numbers
        full = math.prod(
            axis.axis.sizes[-1] for axis in plan.layout.attributes if axis.group is not None
        )
        _refuse_more("A report", "measured cells", plan.design.cells, _MEASURED * most)
        if plan.integers:
            _refuse_more("A report with integers", "cells of all columns together", full, most)
        self._refuse_tiny(plan.epsilon)
        return plan

    def _refuse_large(self, whole: str, queries: list[Query], most: int) -> None:
        """Refuse questions whose plan or answer would take too long."""
        numbers = [sum(len(released(*pair)) for pair in query.aggregates) for query in queries]
        cells = [math.prod(group.size for group in query.groups) for query in queries]
        _refuse_more(whole, "statistics", sum(numbers), most)
        _refuse_more(
            whole, "numbers", sum(map(operator.mul, numbers, cells)), self._limits.most_numbers
        )

    def _refuse_tiny(self, cost: Fraction) -> None:
        if 0 < cost < self._limits.least_epsilon:
            raise Refusal(
                400,
                f"epsilon must be at least {shown(self._limits.least_epsilon)} over HTTP, got"
                f" {shown(cost)}.",
                "Use a larger epsilon or a smaller error; nothing was spent.",
            )

    def _stored_answer(
        self, person: Person, study: str, name: str
    ) -> tuple[Answer, dict[str, Any]] | None:
        """The stored answer of an id and how it is shown; None if there is none."""
        view, content = self._requests.find(self._keys[study], name) or ({}, None)
        ledger = self._studies[study].ledger
        if view and "report" not in view:
            content = content or ledger.answer(study=study, request_id=name)
        # the repeat of a report, whose table was not kept in time
        if content is None or not is_packed(content):
            return None
        remaining = ledger.remaining(study, analyst=person.analyst)
        return (
            Answer(
                content=content, query=view_query(view, content), remaining=remaining, entry=name
            ),
            view,
        )

    def _stored_report(self, person: Person, study: str, name: str) -> Report | None:
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
                "Ask the custodian for the tables, or ask for the report again under a new"
                " request_id.",
            )
        return report


@contextmanager
def _planning(study: str) -> Iterator[None]:
    """Refuse a question that has no plan; an unexpected error goes to the operator's log."""
    try:
        yield
    except DiscreetError as error:
        refusal = refusal_of(error)
        if refusal in (FAILURE, UNUSABLE):
            tell_operator(error, f"a plan of study {study!r}")
        raise refusal from None


def _terms(question: Mapping[str, Any]) -> dict[str, Any]:
    return {name: term for name, term in question.items() if name not in _NO_TERMS}


def _refuse_more(whole: str, parts: str, count: int, most: int) -> None:
    if count > most:
        raise Refusal(
            422,
            f"{whole} over HTTP can have at most {most:,} {parts}, but this one has {count:,}.",
            "Ask a smaller question, or ask the custodian to release it; nothing was spent.",
        )


def _no_answer(path: str) -> Refusal:
    return Refusal(
        404,
        "The ledger has no answer under this id: it is not ready, or the question was repeated too"
        " often.",
        f"Send {path} with the same body and request_id to get the answer; it is charged only"
        " once.",
    )


def study_key(study: Study) -> str:
    """The identity of a study for permits and requests: its ledger, and its name there."""
    return f"{study.ledger.id}/{study.name}"


def _entry_json(entry: Entry) -> bodies.Entry:
    """An entry without its hashes, which cover the version of the data."""
    question = shorter(entry_text(entry), _LONGEST_QUESTION) or None
    same = {name: getattr(entry, name) for name in _SHOWN}
    return cast(bodies.Entry, {"id": entry.request_id, "question": question, **same})


def _queries(study: Study, tables: Mapping[str, str]) -> dict[str, Query]:
    return {name: parse(text, study.policy, study.schema) for name, text in tables.items()}


def _query(study: Study, question: bodies.Question) -> Query:
    if "sql" in question:
        return parse(question["sql"], study.policy, study.schema)
    ask = {name: bodies.question_of(content) for name, content in question["ask"].items()}
    return build(
        study.policy,
        study.schema,
        where=question.get("where", []),
        by=question.get("by", []),
        ask=ask,
    )
