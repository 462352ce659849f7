"""The desk: what a person may see, plan and release in the studies that are served. Blocking; HTTP is elsewhere.

    release:  read the body → plan → claim the id → spend → read, draw, record → show

Everything up to the spend may be refused with a reason. What fails afterwards is one `FAILURE`. An id that has an
answer gives that answer, whatever became of the data meanwhile. A hash of the data (its version, and what is made of
it) is a secret and never leaves the desk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.ask.query import released
from discreet.cli.terminal import question_text
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.formats import shown
from discreet.ledger.chain import Entry
from discreet.ledger.refusals import VoidQuestion
from discreet.release.answer import Answer
from discreet.release.plan import Plan, labels
from discreet.release.study import Study
from discreet.serve.access import Person
from discreet.serve.asked import Asked
from discreet.serve.limits import Limits
from discreet.serve.plans import plan_json, study_json
from discreet.serve.refusal import FAILURE, Refusal, refusal_of, tell_operator
from discreet.serve.requests import Requests, ledger_id
from discreet.serve.wire import answer_body, view_json, view_query

MOST_STATISTICS = 100
"""In one question over HTTP: a plan of more takes seconds."""

MOST_ENTRIES = 1_000
_LONGEST_QUESTION = 4_000
"""Characters of a question in the list of entries."""

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

    def __init__(self, studies: Mapping[str, Study], requests: Requests, limits: Limits) -> None:
        self._studies, self._requests, self._limits = dict(studies), requests, limits
        self._keys = {name: study_key(study) for name, study in studies.items()}
        for study in self._studies.values():
            study.schema  # noqa: B018 - opened before the threads come, so that they share one

    def studies(self, person: Person) -> list[dict[str, Any]]:
        """What the person may ask about, and what is left for it."""
        return [study_json(self._seat(person, name), person) for name in self._names(person)]

    def plan(self, person: Person, asked: Asked) -> dict[str, Any]:
        """What a question would cost and give; free."""
        return plan_json(self._planned(person, asked))

    def release(self, person: Person, asked: Asked) -> bytes:
        """The answer to a question, spent for, or the one that its id has already."""
        name = ledger_id(person.name, asked.request_id)
        plan = self._planned(person, asked)
        view, key = view_json(plan.query), self._keys[asked.study]
        new = self._requests.claim(key, name, body=asked.mark, view=view)
        try:
            kept = None if new else self._kept(person, asked.study, name)
            if kept is not None:
                answer = kept[0]
            else:
                answer = plan.release(request_id=name, analyst=person.analyst)
                if not plan.cost:
                    answer = replace(answer, content=self._requests.keep(key, name, answer.content))
            return answer_body(answer, asked.study, view)
        except (BudgetExceeded, VoidQuestion) as error:
            if new:
                self._requests.forget(key, name)
            raise refusal_of(error) from None
        except Exception as error:
            tell_operator(error, f"release {name!r} of study {asked.study!r}")
            raise FAILURE from None

    def answer(self, person: Person, wanted: str) -> tuple[Answer, str, dict[str, Any]]:
        """A released answer of the person's own, its study and view; a custodian may name anybody's, as `name:id`."""
        name = wanted if ":" in wanted else f"{person.name}:{wanted}"
        if name.startswith(f"{person.name}:") or person.role == "custodian":
            for study in self._names(person):
                kept = self._kept(person, study, name)
                if kept is not None:
                    return kept[0], study, kept[1]
                if self._requests.find(self._keys[study], name) is not None:
                    raise Refusal(
                        404,
                        "The ledger keeps no answer under this id: it is not done, or it repeats one too often asked.",
                        "POST /release with the same body and request_id gives the answer; it is charged once.",
                    )
        raise Refusal(404, "There is no such release.", "GET /ledger lists the releases that you can see.")

    def entries(self, person: Person, study: str | None) -> list[dict[str, Any]]:
        """The last entries of the ledger: an analyst's own, or all for a custodian."""
        names = [study] if study is not None else self._names(person)
        found: list[dict[str, Any]] = []
        for name in names:
            ledger = self._seat(person, name).ledger
            entries = ledger.recent(name, last=MOST_ENTRIES, analyst=person.analyst)
            found += [_shown(entry) for entry in entries]
        return found

    def _names(self, person: Person) -> list[str]:
        """The studies that are served here and that the person may ask about."""
        return [name for name, key in self._keys.items() if key in person.studies]

    def _seat(self, person: Person, name: str) -> Seat:
        """The study, if it is there and the person may ask about it; both are told apart to nobody."""
        if name not in self._names(person):
            raise Refusal(404, "There is no such study.", "GET /studies lists the studies that you can ask about.")
        return Seat(self._studies[name], person)

    def _planned(self, person: Person, asked: Asked) -> Plan:
        """The plan of a question that is worth its cost to the server."""
        try:
            seat = self._seat(person, asked.study)
            query = asked.query(seat)
            numbers = sum(len(released(name, one)) for name, one in query.aggregates)
            cells = math.prod(len(labels(group)) for group in query.groups)
            for what, many, most in (
                ("statistics", numbers, MOST_STATISTICS),
                ("numbers", numbers * cells, self._limits.most_numbers),
            ):
                if many > most:
                    raise _too_many(what, many, most)
            plan = seat._plan(query, **asked.terms)
        except DiscreetError as error:
            told = refusal_of(error)
            if told is FAILURE:
                tell_operator(error, f"a plan of study {asked.study!r}")
            raise told from None
        if 0 < plan.cost < self._limits.least_epsilon:
            raise Refusal(
                400,
                f"epsilon must be at least {shown(self._limits.least_epsilon)} over HTTP, got {shown(plan.cost)}.",
                "Ask for a larger epsilon, or for a smaller error; nothing was spent.",
            )
        return plan

    def _kept(self, person: Person, study: str, name: str) -> tuple[Answer, dict[str, Any]] | None:
        """The answer that an id has, and how it is shown; None if there is none."""
        request = self._requests.find(self._keys[study], name)
        if request is None:
            return None
        ledger = self._studies[study].ledger
        content = request.content or ledger.answer(study=study, request_id=name)
        if content is None:
            return None
        remaining = ledger.remaining(study, analyst=person.analyst)
        query = view_query(request.view, content)
        return Answer(content=content, query=query, remaining=remaining, entry=name), request.view


def study_key(study: Study) -> str:
    """What permits and requests are bound to: the ledger that a study spends from, and its name there."""
    return f"{study.ledger.id}/{study.name}"


def _shown(entry: Entry) -> dict[str, Any]:
    """An entry without its hashes: they cover the version of the data."""
    question = None if entry.query is None else question_text(entry.query)
    if question is not None and len(question) > _LONGEST_QUESTION:
        question = question[:_LONGEST_QUESTION] + "…"
    return {"id": entry.request_id, "question": question, **{name: getattr(entry, name) for name in _SHOWN}}


def _too_many(what: str, many: int, most: int) -> Refusal:
    return Refusal(
        422,
        f"An answer over HTTP has at most {most:,} {what}, this one has {many:,}.",
        "Ask for less at once, or ask the custodian to release it; nothing was spent.",
    )
