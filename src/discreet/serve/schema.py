"""Checks of requests, and the server's OpenAPI 3.1 description, both from the types in `bodies`.

JSON is read strictly: UTF-8, one object, distinct names, finite numbers, limited depth and length.
Python's reader accepts NaN and Infinity, keeps the last of equal names, and follows any depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from discreet.outside import Unreadable, read_json
from discreet.serve import bodies
from discreet.serve.bodies import FORMATS, NOT_BOTH, ONE_OF
from discreet.serve.refusals import Refusal
from discreet.show.json import Words

# most bytes of a body; the longest SQL that a person writes is a hundredth of it
LONGEST = 64 * 1024
DEEPEST = 32  # most levels of objects and lists; a question from Python has four
_MOST_NAME = 40  # characters of a name that a refusal shows

_REFUSALS = {
    "400": "The request is malformed, or a parameter is invalid; nothing was spent.",
    "401": "The token is missing, unknown, expired or revoked.",
    "403": "Not enough ε is left; nothing was spent.",
    "404": "There is no such study or release, or it belongs to someone else.",
    "406": "The answer is not available in this format.",
    "408": "The request did not arrive in time.",
    "409": "The request_id was used for another question; nothing was spent.",
    "411": "The body has no Content-Length.",
    "413": "The body is longer than 64 KiB.",
    "415": "The content type is not application/json.",
    "421": "The header Host names another server.",
    "422": (
        "The question is outside the language or the policy, or void since a restore; nothing was"
        " spent."
    ),
    "429": "Too many requests with this token: per second, per day, or at the same time.",
    "503": "The server could not answer; what was spent stays spent, and asking again is free.",
}

_WOULD_DISCOVER = (
    "Plan the one discovery of a study: its cost, and how many units a key needs; free"
)
_DISCOVERS = "Run the one discovery of a study, for ε and δ; the same discovery again is free"
Body = TypeVar("Body")


def read(body: bytes, kind: type[Body]) -> Body:
    """The body as JSON of this kind; `Refusal` if it is anything else."""
    content = parse_json(body)
    fields = fields_of(kind)  # type: ignore[arg-type] # a class can be hashed
    for name, value in content.items():
        if name not in fields:
            raise _field_refusal(f"The field {name[:_MOST_NAME]!r} is not known here.")
        if (astray := misfit(fields[name][0], value)) is not None:
            raise _field_refusal(f"{name}{astray[0]} must be {astray[1]}.")
    for name, (_, required) in fields.items():
        if required and name not in content:
            raise _field_refusal(f"{name} must be given.")
    for names, error in ONE_OF.items():
        if (
            error is not None
            and fields.keys() >= {*names}
            and sum(name in content for name in names) != 1
        ):
            raise _field_refusal(error)
    for names, error in NOT_BOTH.items():
        if all(name in content for name in names):
            raise _field_refusal(error)
    return content  # type: ignore[return-value]


@cache
def fields_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a body: the type of each, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: (get_args(hint)[0], False) if get_origin(hint) is NotRequired else (hint, True)
        for name, hint in hints.items()
    }


def fits(kind: Any, value: object) -> bool:
    """Whether a value is of a described type.

    >>> fits(list[str], ["a"]), fits(int, True), fits(bodies.Number, Decimal("0.1"))
    (True, False, True)
    """
    return misfit(kind, value) is None


def misfit(kind: Any, value: object) -> tuple[str, str] | None:
    """Where a value is not of a described type, and what is wanted there; None if it is of it.

    >>> misfit(bodies.Ask, {"kind": "Count", "sample": 1})
    ('.sample', 'true or false')
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        astray = misfit(parts[0], value) or (None if _obeys(_words(kind), value) else ("", ""))
        return astray if astray is None or astray[1] else ("", _wanted(kind))
    if origin in (Union, UnionType):
        several = [misfit(part, value) for part in parts]
        return None if None in several else max(several, key=lambda astray: len(astray[0]))  # type: ignore[index]
    if is_typeddict(kind):
        return _misfit_of_fields(kind, value)
    if origin is list and isinstance(value, list):
        return _first((f"[{place}]", parts[0], item) for place, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return _first((f".{name[:_MOST_NAME]}", parts[1], item) for name, item in value.items())
    if origin is Literal:
        is_right = value in parts
    elif isinstance(value, bool):
        is_right = kind in (bool, Any)
    else:
        is_right = origin is None and (
            kind is Any or isinstance(value, int | float if kind is float else kind)
        )
    return None if is_right else ("", "")


def _misfit_of_fields(kind: Any, value: object) -> tuple[str, str] | None:
    """Where a value has not the fields of a body; others may be there, of a later version."""
    if not isinstance(value, dict):
        return "", ""
    fields = fields_of(kind)
    for name, (_, required) in fields.items():
        if required and name not in value:
            return f".{name}", "given"
    return _first(
        (f".{name}", field, value[name]) for name, (field, _) in fields.items() if name in value
    )


def _first(items: Iterable[tuple[str, Any, object]]) -> tuple[str, str] | None:
    """The first misfit of several parts; without words of its own it is one of the whole."""
    for place, kind, value in items:
        astray = misfit(kind, value)
        if astray is not None:
            return (place + astray[0], astray[1]) if astray[1] and is_described(kind) else ("", "")
    return None


def is_described(kind: Any) -> bool:
    """Whether a part has words of its own for a refusal: a body, or one of its fields."""
    return is_typeddict(kind) or (get_origin(kind) is Annotated and kind is not bodies.Number)


def _obeys(words: Words, value: Any) -> bool:
    """Whether a value obeys the further keywords of JSON Schema."""
    if "$ref" in words:  # a number, or its text
        return not isinstance(value, str) or len(value) <= bodies.NUMBER_LENGTH
    if isinstance(value, str):
        # whole texts are described
        pattern = words.get("pattern", "^.*$").removeprefix("^").removesuffix("$")
        return bool(re.fullmatch(pattern, value, re.ASCII | re.DOTALL)) and value in words.get(
            "enum", [value]
        )
    if isinstance(value, dict | list):
        return len(value) >= int(
            words.get("minProperties" if isinstance(value, dict) else "minItems", 0)
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return bool(words.get("minimum", value) <= value <= words.get("maximum", value))
    return "enum" not in words or value in list(words["enum"])


def json_schema(kind: Any) -> dict[str, Any]:  # noqa: PLR0911 - one line for each form of a type
    """The JSON Schema of a type; for a body, a reference to its name.

    >>> json_schema(list[str] | None)
    {'type': ['array', 'null'], 'items': {'type': 'string'}}
    >>> json_schema(bodies.Curve)
    {'$ref': '#/components/schemas/Curve'}
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        words = _words(kind)
        return words if "$ref" in words else {**json_schema(parts[0]), **words}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is list:
        return {"type": "array", **({} if parts[0] is Any else {"items": json_schema(parts[0])})}
    if origin is dict:
        return {
            "type": "object",
            **({} if parts[1] is Any else {"additionalProperties": json_schema(parts[1])}),
        }
    if origin in (Union, UnionType):
        some = [json_schema(part) for part in parts if part is not NoneType]
        if len(some) == len(parts) or "type" not in some[0]:
            return {"oneOf": [*some, *([{"type": "null"}] if len(some) < len(parts) else [])]}
        return {**some[0], "type": [some[0]["type"], "null"]}
    if is_typeddict(kind):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    names: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {} if kind is Any else {"type": names[kind]}


def component(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a body: its fields and no others."""
    fields = fields_of(kind)
    rules: list[dict[str, Any]] = [
        {"oneOf": [{"required": [name]} for name in names]}
        for names in ONE_OF
        if fields.keys() >= {*names}
    ]
    rules += [{"not": {"required": list(names)}} for names in NOT_BOTH if fields.keys() >= {*names}]
    return {
        "type": "object",
        "properties": {name: json_schema(field) for name, (field, _) in fields.items()},
        "required": [name for name, (_, required) in fields.items() if required],
        **({"allOf": rules} if rules else {}),
        "additionalProperties": False,
    }


def json_bytes(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


_MOST_DIGITS = 100  # characters of a number


def parse_json(body: bytes) -> dict[str, Any]:
    """The JSON object of a body, or a refusal.

    >>> parse_json(b'{"epsilon": 0.1}')
    {'epsilon': Decimal('0.1')}
    """
    if len(body) > LONGEST:
        raise too_long()
    try:
        content = read_json(body, deepest=DEEPEST, digits=_MOST_DIGITS, real=_decimal)
        # refuses half of a surrogate pair
        json.dumps(content, ensure_ascii=False, default=str).encode("utf-8")
    except Unreadable as reason:
        raise _body_refusal(f"The body cannot be read: {reason}.") from None
    except ValueError:
        raise _body_refusal("The body cannot be read: it must be JSON in UTF-8.") from None
    if not isinstance(content, dict):
        raise _body_refusal("The body must be a JSON object.")
    return content


def too_long() -> Refusal:
    return Refusal(
        413,
        f"A body can have at most {LONGEST // 1024} KiB.",
        "Ask a shorter question; nothing was spent.",
    )


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Unreadable("a number must be finite") from None


def _body_refusal(error: str) -> Refusal:
    return Refusal(400, error, "Send one JSON object in UTF-8; nothing was spent.")


def _field_refusal(error: str) -> Refusal:
    return Refusal(
        400, error, "See GET /openapi.json for the fields of a question; nothing was spent."
    )


def _words(kind: Any) -> Words:
    """The further keywords of JSON Schema in the annotation of a type."""
    return next((note for note in kind.__metadata__ if isinstance(note, Words)), Words())


def _wanted(kind: Any) -> str:
    """The description of a type in its annotation, for refusals; empty if there is none."""
    return next((note for note in kind.__metadata__ if isinstance(note, str)), "")


@cache
def document() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discreet",
            "version": "1",
            "description": (
                "Private questions: the custodian keeps the data, and analysts never see a row."
            ),
        },
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Number": bodies.NUMBER,
                **{kind.__name__: component(kind) for kind in bodies.BODIES},
            },
            "responses": {
                code: {"description": words, "content": _content(bodies.Refusal)}
                for code, words in _REFUSALS.items()
            },
        },
    }


def _paths() -> dict[str, Any]:
    common = ("400", "401", "421", "429", "503")
    named = (*common, "404")
    planned = (*named, "408", "411", "413", "415", "422")
    spent, report = (*planned, "403", "409"), (bodies.ReportQuestion, bodies.ReportPlan)
    keys = bodies.DiscoveryQuestion
    entry, table = (
        {"in": "path", "name": name, "schema": {"type": "string", "minLength": 1}, "required": True}
        for name in ("id", "table")
    )
    study, form = (
        {"in": "query", "name": name, "schema": schema, "required": False}
        for name, schema in (("study", {"type": "string"}), ("format", {"enum": list(FORMATS)}))
    )
    get = {
        "/studies": _operation(
            "studies",
            "The studies that you may use, and what is left in each",
            bodies.Studies,
            common,
        ),
        "/ledger": _operation(
            "ledger",
            "What was spent: an analyst sees their own entries, a custodian all",
            bodies.Entries,
            named,
            parameters=[study],
        ),
        "/releases/{id}": _operation(
            "released",
            "A released answer",
            bodies.Answer,
            (*named, "406"),
            parameters=[entry, form],
        ),
        "/reports/{id}": _operation(
            "reported", "A released report", bodies.Report, named, parameters=[entry]
        ),
        "/reports/{id}/{table}": _operation(
            "table",
            "A table of a report",
            bodies.Answer,
            (*named, "406"),
            parameters=[entry, table, form],
        ),
        "/openapi.json": _operation(
            "openapi", "This document", dict[str, Any], ("421",), security=[]
        ),
        "/healthz": _operation(
            "health", "Whether the server is up", bodies.Health, ("421",), security=[]
        ),
        "/readyz": _operation(
            "ready", "Whether the server can answer", bodies.Health, ("421", "503"), security=[]
        ),
        "/metrics": _operation("metrics", "Metrics, for custodians", str, (*common, "403")),
    }
    post = {
        path: _operation(
            name, words, kind, codes, requestBody={"required": True, "content": _content(body)}
        )
        for path, name, words, body, kind, codes in (
            (
                "/plan",
                "plan",
                "Plan a question: its cost and errors; free",
                bodies.Question,
                bodies.Plan,
                planned,
            ),
            (
                "/release",
                "release",
                "Release the answer to a question, for ε",
                bodies.Request,
                bodies.Answer,
                spent,
            ),
            (
                "/report/plan",
                "report_plan",
                "Plan a report: its cost and errors; free",
                *report,
                planned,
            ),
            (
                "/report",
                "report",
                "Release all tables of a report, for ε",
                bodies.ReportRequest,
                bodies.Report,
                spent,
            ),
            (
                "/discover/plan",
                "discovery_plan",
                _WOULD_DISCOVER,
                keys,
                bodies.DiscoveryPlan,
                planned,
            ),
            ("/discover", "discover", _DISCOVERS, keys, bodies.Discovery, (*planned, "403")),
        )
    }
    get["/metrics"]["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    for path in ("/releases/{id}", "/reports/{id}/{table}"):
        answer = get[path]["responses"]["200"]["content"]
        answer |= {kind: {"schema": {}} for name, kind in FORMATS.items() if name != "json"}
    return {path: {"get": spec} for path, spec in get.items()} | {
        path: {"post": spec} for path, spec in post.items()
    }


def _operation(
    name: str, words: str, kind: Any, codes: tuple[str, ...], **more: Any
) -> dict[str, Any]:
    refusals = {code: {"$ref": f"#/components/responses/{code}"} for code in sorted(codes)}
    good = {"description": words, "content": _content(kind)}
    return {"operationId": name, "summary": words, "responses": {"200": good, **refusals}, **more}


def _content(kind: Any) -> dict[str, Any]:
    return {"application/json": {"schema": json_schema(kind)}}
