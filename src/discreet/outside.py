"""Texts from outside: JSON, TOML and the numbers in them. What they cost is limited by their
length, whatever they say.

    read_json       UTF-8, distinct names, finite numbers; limited length, depth and digits
    read_toml       names of a limited number of parts: Python's reader takes the square of that
                    number
    read_fraction   1, 1/10 or 0.1, with limited digits: with an exponent, ten letters may stand for
                    gigabytes of them

Certificates, signatures, policies, reports, bodies of requests, answers of servers, and what
ledgers hold are all read here (`tests/trust/test_numbers_from_outside.py`); parameters of calls are
read by `parameters`. Each refusal is an `Unreadable`, and its caller says what the text is, if it
knows.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from discreet.errors import InvalidParameter
from discreet.parameters import quote

DEEPEST = 200
"""The most levels of objects and lists: more than twice those of the largest question."""

MOST_DIGITS = 4_000
"""The most characters of a number: losses of large reports have a few hundred, and Python itself
ends at 4,300.
"""

# also without its end: no text is searched twice
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_AS_DIGITS = bytes(ord("0") if byte in b"0123456789+-.eE" else ord(" ") for byte in range(256))

_PARTS = 32
_NAME = r"(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+"
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_\-\\\"'])(?:{_NAME}){{{_PARTS}}}")

_NUMBER = re.compile(
    rf"[+-]?[0-9]{{1,{MOST_DIGITS}}}(?:/[0-9]{{1,{MOST_DIGITS}}}|\.[0-9]{{0,{MOST_DIGITS}}})?"
)
# of a float or a Decimal alone
_EXPONENT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{1,3}")


class Unreadable(InvalidParameter):
    """A text from outside that cannot be read, or that is too long, too deep, or has too large a
    number.
    """


def read_json(
    content: bytes | str,
    *,
    longest: int | None = None,
    deepest: int = DEEPEST,
    digits: int = MOST_DIGITS,
    real: Callable[[str], Any] | None = None,
    finite: bool = True,
) -> Any:
    """The value of a JSON text; `real` reads the numbers that are not integers.

    >>> read_json('{"epsilon": 0.5}')
    {'epsilon': 0.5}
    """
    if longest is not None and len(content) > longest:
        raise Unreadable(f"it must have at most {longest:,} bytes, got {len(content):,}")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("it must be JSON in UTF-8") from None
    bare = _TEXT.sub(b"", text.encode("utf-8", "surrogatepass"))
    _refuse_deep(bare, deepest)
    if b"0" * (digits + 1) in bare.translate(_AS_DIGITS):
        raise Unreadable(f"a number can have at most {digits:,} characters")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=real or (_finite if finite else None),
            parse_constant=_finite if finite else None,
        )
    except Unreadable:
        raise
    except (ValueError, RecursionError):
        raise Unreadable("it must be JSON in UTF-8") from None


def read_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text.

    >>> read_toml("epsilon = '1/2'")
    {'epsilon': '1/2'}
    """
    if _LONG_NAME.search(text):
        raise Unreadable(f"a name in TOML can have at most {_PARTS} parts with dots between them")
    why = ""
    try:
        return tomllib.loads(text)
    except RecursionError:
        pass
    except tomllib.TOMLDecodeError as error:
        why = f": {error}"
    except ValueError:  # an integer of more digits than Python reads
        why = ": a number has too many digits"
    raise Unreadable(f"the file must be TOML{why}")


def read_fraction(value: object) -> Fraction:
    """The exact number in a text, or of a number of JSON, whose shortest decimal counts.

    >>> read_fraction("1/10"), read_fraction(0.1), read_fraction(3)
    (Fraction(1, 10), Fraction(1, 10), Fraction(3, 1))
    """
    if type(value) is int and value.bit_length() < 3 * MOST_DIGITS:
        return Fraction(value)
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, Rational)
    text = str(value) if is_number else value
    if isinstance(text, str) and len(text) <= 2 * MOST_DIGITS + 2:
        with suppress(ZeroDivisionError):
            if _NUMBER.fullmatch(text) or (is_number and _EXPONENT.fullmatch(text)):
                return Fraction(text)
    raise Unreadable(f"a number must be written as 1, 1/10 or 0.1, got {quote(value)}")


def _refuse_deep(bare: bytes, deepest: int) -> None:
    """Refuse too many levels, in a text without its strings."""
    depth = 0
    for bracket in bare.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > deepest:
            raise Unreadable(f"it must not have more than {deepest} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise Unreadable("a name must not occur twice in an object")
    return content


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Unreadable("a number must be finite")
    return number
