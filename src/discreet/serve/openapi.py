"""The server described for programs, as OpenAPI 3.1."""

from __future__ import annotations

from functools import cache
from typing import Any

from discreet.serve.wire import KINDS

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_EXACT: Schema = {"type": "string", "pattern": r"^-?\d+(/\d+)?$", "description": "an exact rational"}
_ANYTHING: Schema = {}
_ID = "^[A-Za-z0-9._-]{1,50}$"

_REFUSALS = {
    "400": "The request cannot be read, or a parameter cannot be used; nothing was spent.",
    "401": "There is no token, or it is unknown or revoked.",
    "403": "Too little ε is left; nothing was spent.",
    "404": "There is no such study or release, or it is another's.",
    "406": "The answer cannot be had in this format.",
    "408": "The request did not come in time.",
    "409": "The request_id was used for another question; nothing was spent.",
    "411": "The body came without its length.",
    "413": "The body is longer than 64 KiB.",
    "415": "The content type is not application/json.",
    "421": "The header Host names another server.",
    "422": "The question is outside the language or the policy, or void since a restore; nothing was spent.",
    "429": "Too many requests of this token: a second, a day, or at a time.",
    "503": "The server could not answer; what was spent stays spent, and asking again costs nothing more.",
}


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discreet",
            "version": "1",
            "description": "Private questions: the custodian keeps the data; analysts ask, and never touch a row.",
        },
        "security": [{"token": []}],
        "paths": {
            "/studies": {"get": _get("studies", "What may be asked about, and what is left for it", _named("Studies"))},
            "/plan": {"post": _post("plan", "What a question would cost and give; free", "Plan", "Question")},
            "/release": {
                "post": _post("release", "The answer to a question, spent for", "Answer", "Request", ("403", "409"))
            },
            "/ledger": {
                "get": {
                    **_get("ledger", "What was spent: an analyst's own, all for a custodian", _named("Entries"), "404"),
                    "parameters": [_parameter("query", "study", _TEXT)],
                }
            },
            "/releases/{id}": {"get": _released()},
            "/openapi.json": {"get": _open("openapi", "This document", {"type": "object"})},
            "/health": {"get": _open("health", "Whether the server is up", _object(status={"const": "ok"}))},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": {
                code: {"description": words, "content": {"application/json": {"schema": _named("Refusal")}}}
                for code, words in _REFUSALS.items()
            },
        },
    }


def _schemas() -> dict[str, Schema]:
    question = _question()
    return {
        "Refusal": _object(error=_TEXT, advice=_TEXT),
        "Number": {
            "oneOf": [{"type": "number"}, {"type": "string", "maxLength": 60}],
            "description": 'a number, or its text: 0.1, "0.1", "1/3"',
        },
        "Ask": _ask(),
        "Question": question,
        "Request": {
            **question,
            "properties": {**question["properties"], "request_id": {"type": "string", "pattern": _ID}},
            "required": ["study", "request_id"],
        },
        "Studies": _object(studies={"type": "array", "items": _named("Study")}),
        "Study": _object(
            name=_TEXT,
            table=_TEXT,
            unit=_TEXT,
            max_rows=_MAYBE_COUNT,
            max_groups=_MAYBE_COUNT,
            neighbors={"enum": ["change-one", "add-remove"]},
            total=_EXACT,
            remaining=_EXACT,
            allotment={"oneOf": [_EXACT, {"type": "null"}]},
            left=_EXACT,
            columns={"type": "array", "items": _named("Column")},
        ),
        "Column": _object(
            name=_TEXT,
            kind={"enum": ["number", "text", "date", "truth"]},
            bounds={"type": ["array", "null"]},
            keys={"oneOf": [_object(count={"type": "integer"}, first={"type": "array"}), {"type": "null"}]},
            discover={"type": "boolean"},
            bins={"type": ["array", "null"]},
            precision=_MAYBE_NUMBER,
            missing=_ANYTHING,
            other=_MAYBE_TEXT,
        ),
        "Plan": _plan(),
        "Answer": _object(
            id=_TEXT,
            study=_TEXT,
            epsilon=_EXACT,
            remaining=_EXACT,
            columns=_TEXTS,
            table={"type": "object", "additionalProperties": {"type": "array"}},
            record={"type": "object"},
            sha256=_TEXT,
            view={"type": "object"},
        ),
        "Entries": _object(
            entries={
                "type": "array",
                "items": _object(
                    id=_MAYBE_TEXT,
                    study=_TEXT,
                    number={"type": "integer"},
                    kind={"enum": ["create", "allot", "spend", "repeat", "answer", "restore"]},
                    analyst=_MAYBE_TEXT,
                    question=_MAYBE_TEXT,
                    epsilon={"oneOf": [_EXACT, {"type": "null"}]},
                    amount={"type": "integer", "description": "in 10⁻⁹ ε"},
                    time=_TEXT,
                ),
            }
        ),
    }


def _question() -> Schema:
    """What is asked, and at what price."""
    number = _named("Number")
    return {
        "type": "object",
        "properties": {
            "study": _TEXT,
            "sql": _TEXT,
            "where": _TEXTS,
            "by": _TEXTS,
            "ask": {"type": "object", "additionalProperties": _named("Ask"), "minProperties": 1},
            "epsilon": number,
            "within": number,
            "confidence": number,
            "simultaneous": {"type": "boolean"},
            "size": {"type": "integer", "minimum": 1, "maximum": 10**18},
            "weights": {"type": "object", "additionalProperties": number},
        },
        "required": ["study"],
        "allOf": [
            {"oneOf": [{"required": ["sql"]}, {"required": ["ask"]}]},
            {"oneOf": [{"required": ["epsilon"]}, {"required": ["within"]}]},
            {"not": {"required": ["sql", "where"]}},
            {"not": {"required": ["sql", "by"]}},
        ],
        "additionalProperties": False,
    }


def _ask() -> Schema:
    """A question as in Python."""
    shares: Schema = {"oneOf": [_named("Number"), {"type": "array", "items": _named("Number")}]}
    return {
        "type": "object",
        "properties": {
            "kind": {"enum": list(KINDS)},
            "of": _MAYBE_TEXT,
            "share": shares,
            "sample": {"type": "boolean"},
            "bins": {"oneOf": [{"type": "array", "items": _named("Number")}, {"type": "null"}]},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }


def _plan() -> Schema:
    line = _object(
        name=_TEXT,
        title=_TEXT,
        sensitivity=_EXACT,
        scale=_EXACT,
        within=_TEXT,
        reach=_MAYBE_NUMBER,
        sized={"type": "boolean"},
        step=_EXACT,
        noise={"type": "array", "items": _EXACT},
    )
    reaches: Schema = {"type": ["array", "null"], "items": _MAYBE_NUMBER}
    point = _object(epsilon={"type": "number"}, reach=reaches)
    return _object(
        study=_TEXT,
        epsilon=_EXACT,
        cost=_EXACT,
        confidence=_EXACT,
        simultaneous={"type": "boolean"},
        size=_MAYBE_COUNT,
        cells={"type": "integer"},
        columns=_TEXTS,
        lines={"type": "array", "items": line},
        notes=_TEXTS,
        warnings=_TEXTS,
        remaining=_EXACT,
        text={"type": "string", "description": "the plan as a terminal shows it"},
        curve=_object(size={"type": "integer"}, points={"type": "array", "items": point}),
    )


def _object(**properties: Schema) -> Schema:
    """An object with these properties, all of them, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _refusals(*codes: str) -> dict[str, Schema]:
    return {code: {"$ref": f"#/components/responses/{code}"} for code in codes}


def _parameter(place: str, name: str, schema: Schema) -> Schema:
    return {"in": place, "name": name, "schema": schema, "required": place == "path"}


def _get(name: str, words: str, schema: Schema, *codes: str) -> Schema:
    good = {"description": words, "content": {"application/json": {"schema": schema}}}
    return {
        "operationId": name,
        "summary": words,
        "responses": {"200": good, **_refusals("400", "401", *codes, "421", "429", "503")},
    }


def _open(name: str, words: str, schema: Schema) -> Schema:
    """A GET that needs no token."""
    good = {"description": words, "content": {"application/json": {"schema": schema}}}
    return {"operationId": name, "summary": words, "security": [], "responses": {"200": good, **_refusals("421")}}


def _post(name: str, words: str, schema: str, body: str, codes: tuple[str, ...] = ()) -> Schema:
    return {
        **_get(name, words, _named(schema), "404", "408", "411", "413", "415", "422", *codes),
        "requestBody": {"required": True, "content": {"application/json": {"schema": _named(body)}}},
    }


def _released() -> Schema:
    words = "An answer again"
    found = _get("released", words, _named("Answer"), "404", "406")
    found["responses"]["200"]["content"].update(
        {kind: {"schema": _ANYTHING} for kind in ("text/csv", "application/vnd.apache.parquet", "image/png")}
    )
    return {
        **found,
        "parameters": [
            _parameter("path", "id", {"type": "string", "minLength": 1}),
            _parameter("query", "format", {"enum": ["json", "csv", "parquet", "png"]}),
        ],
    }
