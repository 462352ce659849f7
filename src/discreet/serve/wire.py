"""What travels: questions in Python, and how an answer is shown, as JSON and back.

An answer is its record, which the ledger keeps, and a view: which columns, what is computed of them, HAVING, ORDER BY
and LIMIT. A client that has both makes the same `Answer` of them as the server. Parameters travel as texts of exact
rationals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.ask import questions
from discreet.ask.expression import Column
from discreet.ask.kinds import kind_of
from discreet.ask.query import Combined, Group, Named, Number, Output, Query, Test
from discreet.errors import EngineFailed
from discreet.release.answer import Answer
from discreet.serve.refusal import Refusal
from discreet.serve.responses import encoded

KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in questions.Question.__args__}
"""The questions in Python, by name."""


def view_json(query: Query) -> dict[str, Any]:
    """How the answer to a query is shown."""
    return {
        "groups": [
            {
                "name": group.name,
                "kind": kind_of(group.of) if group.edges is None else "text",  # bins are named by their labels
                "edges": None if group.edges is None else [str(edge) for edge in group.edges],
                "other": group.other,
            }
            for group in query.groups
        ],
        "outputs": [[name, _output_json(output)] for name, output in query.outputs],
        "having": None if query.having is None else _test_json(query.having),
        "order": [[_output_json(output), descending] for output, descending in query.order],
        "limit": query.limit,
    }


def view_query(view: Mapping[str, Any], content: bytes) -> Query:
    """A query that shows this answer in this way; it asks nothing."""
    keys = json.loads(content)["keys"]
    return Query(
        aggregates=(),
        groups=tuple(_group(told, keys[told["name"]]) for told in view["groups"]),
        outputs=tuple((name, _output(output)) for name, output in view["outputs"]),
        having=None if view["having"] is None else _test(view["having"]),
        order=tuple((_output(output), descending) for output, descending in view["order"]),
        limit=view["limit"],
    )


def answer_body(answer: Answer, study: str, view: Mapping[str, Any]) -> bytes:
    """An answer with all that a client needs to make it again, as JSON; the record is the very bytes of the ledger."""
    known = {
        "id": answer.entry,
        "study": study,
        "epsilon": str(answer.epsilon),
        "remaining": str(answer.remaining),
        "columns": answer.columns,
        "sha256": sha256(answer.content).hexdigest(),
        "view": view,
        "table": {name: [finite(item) for item in column] for name, column in answer.to_dict().items()},
    }
    return encoded(known)[:-1] + b',"record":' + answer.content + b"}"


def answer_of(told: Mapping[str, Any]) -> Answer:
    """The answer that `answer_json` wrote, made of the very bytes that the ledger keeps."""
    content = json.dumps(told["record"], ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if sha256(content).hexdigest() != told["sha256"]:
        raise EngineFailed("the answer came damaged over the network; ask again, which costs nothing more")
    return Answer(
        content=content,
        query=view_query(told["view"], content),
        remaining=Fraction(told["remaining"]),
        entry=told["id"],
    )


def question_json(question: questions.Question) -> dict[str, Any]:
    """A question in Python, as JSON has it.

    >>> question_json(questions.Mean("age"))
    {'kind': 'Mean', 'of': 'age'}
    """
    return {"kind": type(question).__name__, **{name: _exact(value) for name, value in asdict(question).items()}}


def question_of(told: Mapping[str, Any]) -> questions.Question:
    """The question that `question_json` wrote, or a `Refusal`."""
    kind = KINDS.get(str(told.get("kind")))
    rest = {name: value for name, value in told.items() if name != "kind"}
    if kind is None:
        raise Refusal(400, f"kind must be one of {', '.join(KINDS)}.", "See GET /openapi.json; nothing was spent.")
    names = {field.name for field in fields(kind)}
    if not set(rest) <= names or not all(isinstance(rest.get(name, ""), str | None) for name in {"of"} & names):
        raise Refusal(
            400, f"{kind.__name__} has {', '.join(sorted(names)) or 'nothing'} and no more.", "Nothing was spent."
        )
    try:
        made: questions.Question = kind(**rest)
    except TypeError:
        raise Refusal(400, f"{kind.__name__} needs {', '.join(names)}.", "Nothing was spent.") from None
    return made


def finite(item: Any) -> Any:
    """JSON has no infinity: what is not finite is null."""
    return None if isinstance(item, float) and not math.isfinite(item) else item


def _exact(value: Any) -> Any:
    """A parameter in JSON's types, a number as the text of its exact value."""
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value if isinstance(value, str | bool | int | None) else str(value)


def _group(told: Mapping[str, Any], keys: list[Any]) -> Group:
    """A group column as far as an answer needs it: its keys, in their kind."""
    kind, edges, other = told["kind"], told["edges"], told["other"]
    read: dict[str, Callable[[Any], Any]] = {"number": lambda key: Fraction(str(key)), "date": datetime.fromisoformat}
    known = keys if other is None else keys[:-1]
    return Group(
        name=told["name"],
        of=Column(told["name"], kind),
        keys=tuple(map(read.get(kind, lambda key: key), known)),
        other=other,
        edges=None if edges is None else tuple(map(Fraction, edges)),
    )


def _output_json(output: Output) -> dict[str, Any]:
    match output:
        case Named(name):
            return {"name": name}
        case Number(value):
            return {"number": str(value)}
        case Combined(sign, left, right):
            return {"sign": sign, "left": _output_json(left), "right": _output_json(right)}


def _output(told: Mapping[str, Any]) -> Output:
    if "name" in told:
        return Named(told["name"])
    if "number" in told:
        return Number(Fraction(told["number"]))
    return Combined(told["sign"], _output(told["left"]), _output(told["right"]))


def _test_json(test: Test) -> dict[str, Any]:
    parts = [_test_json(part) if isinstance(part, Test) else _output_json(part) for part in test.parts]
    return {"sign": test.sign, "parts": parts}


def _test(told: Mapping[str, Any]) -> Test:
    return Test(told["sign"], tuple(_test(part) if "parts" in part else _output(part) for part in told["parts"]))
