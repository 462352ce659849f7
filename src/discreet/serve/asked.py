"""A question as a client sends it, read field by field: what is asked, at what price, under which id.

    {"study": "people", "sql": "SELECT count(*) FROM people WHERE age > 64", "epsilon": "0.1", "request_id": "…"}

In place of `sql`: `ask` (name → question), with `where` and `by` as wanted. `epsilon` or `within`; `confidence`,
`simultaneous`, `size` and `weights` as in Python. A field that is not known is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any

from discreet.ask.query import Query
from discreet.ask.questions import build
from discreet.ask.sql import parse
from discreet.release.study import Study
from discreet.serve.refusal import Refusal
from discreet.serve.wire import question_of

TERMS = ("epsilon", "within", "confidence", "simultaneous", "size", "weights")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_numbers(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_questions(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(item, dict) for item in value.values())


_NUMBER = (_is_number, 'a number such as 0.1, "0.1" or "1/3"')
FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "study": (_is_text, "the name of a study"),
    "sql": (_is_text, "a SELECT"),
    "where": (_is_texts, "a list of conditions"),
    "by": (_is_texts, "a list of columns"),
    "ask": (_is_questions, 'an object such as {"people": {"kind": "Count"}}'),
    "epsilon": _NUMBER,
    "within": _NUMBER,
    "confidence": _NUMBER,
    "simultaneous": (lambda value: isinstance(value, bool), "true or false"),
    "size": (_is_whole, "a whole number"),
    "weights": (_is_numbers, 'an object such as {"people": 2}'),
    "request_id": (_is_text, "a text"),
}
"""The fields of a body: what each must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its terms."""

    study: str
    question: Mapping[str, Any]
    """`sql`, or `ask`, `where` and `by`."""
    terms: Mapping[str, Any]
    request_id: str | None = None

    @property
    def mark(self) -> bytes:
        """A hash of all that was asked: another question has another."""
        everything = [self.study, self.question, self.terms]
        return sha256(json.dumps(everything, sort_keys=True, default=str).encode()).digest()

    def query(self, study: Study) -> Query:
        """The query that is asked of a study."""
        if "sql" in self.question:
            return parse(self.question["sql"], study.policy, study.schema)
        return build(
            study.policy,
            study.schema,
            where=self.question.get("where", []),
            by=self.question.get("by", []),
            ask={name: question_of(told) for name, told in self.question["ask"].items()},
        )


def asked(body: Mapping[str, Any], *, release: bool) -> Asked:
    """The question in a body, or a `Refusal`; one that is to be released needs a request_id."""
    for name, value in body.items():
        if name not in FIELDS or (name == "request_id" and not release):
            raise _refused(f"The field {name[:40]!r} is not known here.")
        holds, wanted = FIELDS[name]
        if not holds(value):
            raise _refused(f"{name} must be {wanted}.")
    for name in ("study", "request_id") if release else ("study",):
        if name not in body:
            raise _refused(f"{name} must be given.")
    if ("sql" in body) == ("ask" in body):
        raise _refused("A question is given either as sql or as ask.")
    if "sql" in body and ("where" in body or "by" in body):
        raise _refused("where and by belong to ask; in SQL, write WHERE and GROUP BY.")
    return Asked(
        study=body["study"],
        question={name: body[name] for name in ("sql", "where", "by", "ask") if name in body},
        terms={name: body[name] for name in TERMS if name in body},
        request_id=body.get("request_id"),
    )


def _refused(error: str) -> Refusal:
    return Refusal(400, error, "See GET /openapi.json for the fields of a question; nothing was spent.")
