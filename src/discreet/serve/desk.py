"""The desk: what a person may see, plan and release in the studies that are served. Blocking; HTTP is elsewhere.

    release:  read the body → plan → claim the id → spend → read, draw, record → show

Everything up to the spend may be refused with a reason. What fails afterwards is one `FAILURE`. An id that has an
answer gives that answer, whatever became of the data meanwhile. A hash of the data (its version, and what is made of
it) is a secret and never leaves the desk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import BudgetExceeded, DiscreetError
from discreet.release.answer import Answer
from discreet.release.ledger_chain import Entry
from discreet.release.plan import Plan
from discreet.release.study import Study
from discreet.serve.access import Person
from discreet.serve.asked import Asked
from discreet.serve.plans import plan_json, study_json
from discreet.serve.refusal import FAILURE, Refusal, refusal_of, tell_operator
from discreet.serve.requests import Request, Requests, ledger_id
from discreet.serve.wire import answer_json, view_json, view_query
from discreet.show.terminal import question_text

MOST_STATISTICS = 100
"""In one question over HTTP: a plan of more takes seconds."""

MOST_NUMBERS = 300_000
"""In one answer over HTTP: some 50 MB of JSON; larger ones are made where the data is."""

MOST_ENTRIES = 1_000
_SHOWN = ("study", "number", "kind", "analyst", "epsilon", "amount", "time")


class Seat(Study):
    """A study as an analyst sees it: what is left is what is left of their share."""

    def __init__(self, study: Study, person: Person) -> None:
        self.__dict__.update(study.__dict__)
        self.person = person

    @property
    def remaining(self) -> Fraction:
        """What the person can still spend."""
        return self.ledger.remaining(self.name, analyst=self.person.analyst)


class Desk:
    """Studies, and who asked what; several threads may use it."""

    def __init__(self, studies: Mapping[str, Study], requests: Requests) -> None:
        self._studies, self._requests = dict(studies), requests
        for study in self._studies.values():
            study.schema  # noqa: B018 - opened before the threads come, so that they share one

    def studies(self, person: Person) -> list[dict[str, Any]]:
        """What the person may ask about, and what is left for it."""
        return [study_json(self._seat(person, name), person) for name in self._studies if name in person.studies]

    def plan(self, person: Person, asked: Asked) -> dict[str, Any]:
        """What a question would cost and give; free."""
        return plan_json(self._planned(person, asked))

    def release(self, person: Person, asked: Asked) -> dict[str, Any]:
        """The answer to a question, spent for, or the one that its id has already."""
        name = ledger_id(person.name, asked.request_id)
        plan = self._planned(person, asked)
        view = view_json(plan.query)
        new = self._requests.claim(asked.study, name, body=asked.mark, view=view)
        try:
            answer = None if new else self._kept(person, asked.study, name)
            if answer is None:
                answer = plan.release(request_id=name, analyst=person.analyst)
                if not plan.cost:
                    answer = replace(answer, content=self._requests.keep(asked.study, name, answer.content))
            return answer_json(answer, asked.study, view)
        except BudgetExceeded as error:
            if new:
                self._requests.forget(asked.study, name)
            raise refusal_of(error) from None
        except Exception as error:
            tell_operator(error, f"release {name!r} of study {asked.study!r}")
            raise FAILURE from None

    def answer(self, person: Person, wanted: str) -> tuple[Answer, Request]:
        """A released answer of the person's own; a custodian may name anybody's, as `name:id`."""
        name = wanted if ":" in wanted else f"{person.name}:{wanted}"
        if name.startswith(f"{person.name}:") or person.role == "custodian":
            for request in self._requests.find(name):
                if request.study in person.studies & set(self._studies):
                    answer = self._kept(person, request.study, name)
                    if answer is not None:
                        return answer, request
        raise Refusal(404, "There is no such release.", "GET /ledger lists the releases that you can see.")

    def entries(self, person: Person, study: str | None) -> list[dict[str, Any]]:
        """The last entries of the ledger: an analyst's own, or all for a custodian."""
        names = [study] if study is not None else [name for name in self._studies if name in person.studies]
        found: list[dict[str, Any]] = []
        for name in names:
            ledger = self._seat(person, name).ledger
            entries = ledger.recent(name, last=MOST_ENTRIES, analyst=person.analyst)
            found += [_shown(entry) for entry in entries]
        return found

    def _seat(self, person: Person, name: str) -> Seat:
        """The study, if it is there and the person may ask about it; both are told apart to nobody."""
        if name not in self._studies or name not in person.studies:
            raise Refusal(404, "There is no such study.", "GET /studies lists the studies that you can ask about.")
        return Seat(self._studies[name], person)

    def _planned(self, person: Person, asked: Asked) -> Plan:
        try:
            seat = self._seat(person, asked.study)
            query = asked.query(seat)
            if len(query.aggregates) > MOST_STATISTICS:
                raise _too_many("statistics", len(query.aggregates), MOST_STATISTICS)
            plan = seat._plan(query, **asked.terms)
        except DiscreetError as error:
            told = refusal_of(error)
            if told is FAILURE:
                tell_operator(error, f"a plan of study {asked.study!r}")
            raise told from None
        many = plan.cells * len(query.aggregates)
        if many > MOST_NUMBERS:
            raise _too_many("numbers", many, MOST_NUMBERS)
        return plan

    def _kept(self, person: Person, study: str, name: str) -> Answer | None:
        """The answer that an id has, or None."""
        request = next((request for request in self._requests.find(name) if request.study == study), None)
        if request is None:
            return None
        ledger = self._studies[study].ledger
        content = request.content or ledger.answer(study=study, request_id=name)
        if content is None:
            return None
        remaining = ledger.remaining(study, analyst=person.analyst)
        return Answer(content=content, query=view_query(request.view, content), remaining=remaining, entry=name)


def _shown(entry: Entry) -> dict[str, Any]:
    """An entry without its hashes: they cover the version of the data."""
    question = None if entry.query is None else question_text(entry.query)
    return {"id": entry.request_id, "question": question, **{name: getattr(entry, name) for name in _SHOWN}}


def _too_many(what: str, many: int, most: int) -> Refusal:
    return Refusal(
        422,
        f"An answer over HTTP has at most {most:,} {what}, this one has {many:,}.",
        "Ask for less at once, or ask the custodian to release it; nothing was spent.",
    )
