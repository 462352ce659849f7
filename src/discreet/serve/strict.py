"""JSON as a server should read it: UTF-8, one object, every name once, finite numbers, shallow and short.

Python's own reader takes NaN and Infinity, keeps the last of two equal names and follows any depth. Numbers with a
point or an exponent are read as `Decimal`, so that 0.1 is one tenth.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from discreet.serve.refusal import Refusal

LONGEST = 64 * 1024
"""Bytes of a body; the longest SQL that a person writes is a hundredth of it."""

DEEPEST = 32
"""Objects and lists within each other; a question in Python has four."""

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_STEP = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_LONGEST_NUMBER = 100
_ADVICE = "Send one JSON object in UTF-8; nothing was spent."


def read(body: bytes) -> dict[str, Any]:
    """The object that the body writes, or a `Refusal`.

    >>> read(b'{"epsilon": 0.1}')
    {'epsilon': Decimal('0.1')}
    """
    if len(body) > LONGEST:
        raise too_long()
    depth = deepest = 0
    for byte in _TEXT.sub(b"", body):
        depth += _STEP.get(byte, 0)
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise _refused(f"A body must not nest deeper than {DEEPEST}.")
    try:
        found = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_number,
            parse_int=_whole,
        )
        json.dumps(found, ensure_ascii=False, default=str).encode("utf-8")  # no half of a surrogate pair
    except (ValueError, RecursionError):  # of json, and of UTF-8
        raise _refused("The body is not JSON.") from None
    if not isinstance(found, dict):
        raise _refused("The body must be a JSON object.")
    return found


def too_long() -> Refusal:
    """The refusal of a body that is too long."""
    return Refusal(413, f"A body has at most {LONGEST // 1024} KiB.", "Ask a shorter question; nothing was spent.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _refused("A name must occur once in an object.")
    return found


def _constant(_: str) -> NoReturn:
    raise _refused("A number must be finite.")


def _number(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise _refused(f"A number has at most {_LONGEST_NUMBER} characters.")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _refused("A number must be finite.") from None


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _refused(f"A number has at most {_LONGEST_NUMBER} characters.")
    return int(text)


def _refused(error: str) -> Refusal:
    return Refusal(400, error, _ADVICE)
