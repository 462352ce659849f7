from decimal import Decimal

import pytest

from discreet.serve.refusals import Refusal
from discreet.serve.schema import DEEPEST, LONGEST, parsed


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_an_object_is_read_exactly():
    found = parsed(
        '{"epsilon": 0.1, "size": 10, "sql": "ε [[[", "weights": {"a": 1e-3}, "on": true, "x": null}'.encode()
    )
    assert found["epsilon"] == Decimal("0.1")
    assert found["weights"] == {"a": Decimal("0.001")}
    assert (found["size"], found["sql"], found["on"], found["x"]) == (10, "ε [[[", True, None)


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
        parsed(body)
    assert caught.value.status == 400


def test_the_limits_themselves_are_allowed():
    assert parsed(nested(DEEPEST))
    text = b'{"a": "' + b"[" * (LONGEST - 9) + b'"}'
    assert len(text) == LONGEST
    assert parsed(text)


def test_one_byte_more_is_too_long():
    with pytest.raises(Refusal) as caught:
        parsed(b'{"a": "' + b"x" * (LONGEST - 8) + b'"}')
    assert caught.value.status == 413
