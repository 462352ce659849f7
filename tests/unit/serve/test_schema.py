import json
import re
from decimal import Decimal
from typing import Any, Literal

import pytest

from discreet.serve.bodies import BODIES, KINDS, NUMBER_LENGTH, Entry, Plan, Question, Request
from discreet.serve.refusals import Refusal
from discreet.serve.schema import (
    DEEPEST,
    LONGEST,
    document,
    fields_of,
    fits,
    json_schema,
    parse_json,
    read,
)


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_an_object_is_read_exactly():
    content = parse_json(
        '{"epsilon": 0.1, "size": 10, "sql": "ε [[[", "weights": {"a": 1e-3}, "on": true, "x":'
        " null}".encode()
    )
    assert content["epsilon"] == Decimal("0.1")
    assert content["weights"] == {"a": Decimal("0.001")}
    assert (content["size"], content["sql"], content["on"], content["x"]) == (
        10,
        "ε [[[",
        True,
        None,
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b'"a"',
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e99999999999999999999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 0.' + b"1" * 5000 + b"}",
        b'{"a": 01}',
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": 1} {"b": 2}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\n"}',
        nested(DEEPEST + 1),
        nested(20_000),
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'"' + b"\\" * 60_001,
    ],
    ids=lambda body: f"{body[:24]!r}…{len(body)}",
)
def test_everything_else_is_refused(body):
    with pytest.raises(Refusal) as caught:
        parse_json(body)
    assert caught.value.status == 400


def test_the_limits_themselves_are_allowed():
    assert parse_json(nested(DEEPEST))
    text = b'{"a": "' + b"[" * (LONGEST - 9) + b'"}'
    assert len(text) == LONGEST
    assert parse_json(text)


def test_one_byte_more_is_too_long():
    with pytest.raises(Refusal) as caught:
        parse_json(b'{"a": "' + b"x" * (LONGEST - 8) + b'"}')
    assert caught.value.status == 413


GOOD = {"study": "people", "sql": "SELECT count(*) FROM people", "epsilon": "0.1"}
MANY = {"people": {"kind": "Count"}}
REFUSED = {
    "study must be given.": {"study": None},
    "study must be the name of a study.": {"study": 3},
    "where must be a list of conditions.": {"where": ["age > 3", 4]},
    'epsilon must be a number such as 0.1, "0.1" or "1/3".': {"epsilon": True},
    "simultaneous must be true or false.": {"simultaneous": 1},
    "size must be a whole number from 1 to 10^18.": {"size": 1.5},
    'weights must be an object such as {"people": 2}.': {"weights": {"people": [2]}},
    'ask must be an object such as {"people": {"kind": "Count"}}.': {"sql": None, "ask": {}},
    f"ask.people.kind must be one of {', '.join(KINDS)}.": {
        "sql": None,
        "ask": {"people": {"kind": "Most"}},
    },
    "ask.people.kind must be given.": {"sql": None, "ask": {"people": {}}},
    "ask.people.sample must be true or false.": {
        "sql": None,
        "ask": {"people": {"kind": "Std", "sample": 1}},
    },
    "A question must have either sql or ask.": {"ask": MANY},
    "where and by belong to ask; in SQL, write WHERE and GROUP BY.": {"by": ["county"]},
    "The field 'noise' is not known here.": {"noise": "off"},
    "The field 'request_id' is not known here.": {"request_id": "a"},
}


def body(**changed: Any) -> bytes:
    return json.dumps(
        {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    ).encode()


@pytest.mark.parametrize("words", REFUSED)
def test_a_refusal_says_which_field_must_be_what(words):
    with pytest.raises(Refusal) as caught:
        read(body(**REFUSED[words]), Question)
    assert (caught.value.status, str(caught.value)) == (400, words)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"size": 1}, {"size": 0}),
        ({"size": 10**18}, {"size": 10**18 + 1}),
        ({"epsilon": "1" * NUMBER_LENGTH}, {"epsilon": "1" * (NUMBER_LENGTH + 1)}),
        ({"weights": {"a": "1"}}, {"weights": {"a": "1" * (NUMBER_LENGTH + 1)}}),
        ({"request_id": "a" * 40}, {"request_id": "a" * 41}),
        ({"request_id": "a"}, {"request_id": "a\n"}),
        ({"request_id": "a"}, {"request_id": "é"}),
    ],
)
def test_every_keyword_that_the_description_shows_is_checked(good, bad):
    assert read(body(**{"request_id": "a", **good}), Request)
    with pytest.raises(Refusal):
        read(body(**{"request_id": "a", **bad}), Request)


def test_a_question_is_read_as_it_was_sent():
    assert read(body(), Question) == GOOD
    assert read(body(sql=None, ask=MANY, where=[], by=["county"]), Question)["ask"] == MANY
    assert read(body(request_id="a"), Request)["request_id"] == "a"
    with pytest.raises(Refusal, match="request_id must be given"):
        read(body(), Request)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (int, [3], [True, 3.0, "3", None]),
        (float, [3, 0.5], [True, "3", None]),
        (bool, [True], [1, None]),
        (str | None, ["a", None], [3]),
        (list[float | None] | None, [[1, None], [], None], [["a"], {}, 1]),
        (dict[str, list[Any]], [{"a": [1, "b"]}], [{"a": 1}, []]),
        (Literal["a", "b"], ["a"], ["c", None, ["a"]]),
        (Any, [None, True, {}], []),
    ],
    ids=str,
)
def test_a_value_fits_its_type(kind, good, bad):
    assert all(fits(kind, value) for value in good)
    assert not any(fits(kind, value) for value in bad)


def test_a_body_fits_with_all_of_its_fields():
    entry = dict.fromkeys(("id", "analyst", "question", "epsilon")) | {"number": 1, "amount": 2}
    entry |= {"study": "a", "kind": "spend", "time": "a"}
    assert fits(Entry, entry)
    assert fits(Entry, {**entry, "more": 1})  # of a later version
    for name in entry:
        assert not fits(Entry, {key: value for key, value in entry.items() if key != name})


def test_every_body_is_described_with_all_of_its_fields():
    schemas = document()["components"]["schemas"]
    assert {"Number", *(kind.__name__ for kind in BODIES)} == set(schemas)
    for kind in BODIES:
        assert list(schemas[kind.__name__]["properties"]) == list(fields_of(kind))
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document())))
    assert references | {"Request", "Question"} <= set(schemas)
    assert json_schema(Plan) == {"$ref": "#/components/schemas/Plan"}
