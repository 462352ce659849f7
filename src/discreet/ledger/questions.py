"""The canonical text of a question, the question as it was typed, and new request ids.

`canonical` maps all spellings of a question to the same text: names of parameters are sorted,
numbers are exact rationals (0.1, Decimal("1e-1") and 1/10 are the same), tuples are lists. Text
that looks like a number stays text: a caller that accepts both forms parses the text first. Text is
not normalised: a file may have two columns whose names look the same, with "é" as one code point
and as two, and a column is found by its exact name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter, printable, shorter
from discreet.outside import read_fraction, read_json
from discreet.parameters import quote

if TYPE_CHECKING:
    from discreet.ledger.chain import Entry

_ASKED = 20_000  # most characters of a question as it was typed
_REPEATED = 1_000  # the same for a repeat


def canonical(name: str, parameters: Mapping[str, Any]) -> str:
    """The canonical text of a question with these parameters.

    >>> canonical("mean", {"column": "age", "bounds": (0, 120.0)})
    '["mean",{"bounds":[{"number":"0"},{"number":"120"}],"column":"age"}]'
    >>> canonical("sum", {"a": 0.5, "b": 1}) == canonical(
    ...     "sum", {"b": Fraction(1), "a": Decimal("0.50")}
    ... )
    True
    """
    return json.dumps(
        [name, _fields(parameters)], ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )


def question_text(query: str | None) -> str:
    """The question in a canonical query: SQL, or a call with its parameters."""
    try:
        parts = read_json(query or "")
    except ValueError:
        return query or ""
    return (
        str(parts[0])
        if isinstance(parts, list) and parts and isinstance(parts[0], str)
        else query or ""
    )


def typed(asked: str | None, longest: int = _ASKED) -> str | None:
    """A question as it was typed, shortened for its entry; unusual characters are escaped."""
    return None if asked is None else shorter(printable(asked), longest)


def repeat_of(spend: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a repeat, from those of a spend: a repeat is free, so its entry is small."""
    return {**spend, "query": None, "data_version": None, "asked": typed(spend["asked"], _REPEATED)}


def entry_text(entry: Entry) -> str:
    """The question of an entry in one line: as it was typed, or else in canonical form."""
    return " ".join((entry.asked or question_text(entry.query)).split())


def new_request_id() -> str:
    """A new request id: 128 random bits."""
    return random_digits(2)


def _plain(value: Any) -> Any:
    """The value in JSON's types, so that values are equal if and only if their texts are.

    A type that JSON lacks becomes an object with one key, the name of the type.
    """
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        value = value.tolist()
    match value:
        case None | bool() | str():
            plain: Any = value
        case list() | tuple() | range():
            plain = [_plain(item) for item in value]
        case Rational() | Decimal() | Real():
            plain = {"number": _number(value)}
        case date():
            plain = {"date": value.isoformat()}
        case Mapping():
            plain = {"fields": _fields(value)}
        case set() | frozenset():
            plain = {"set": sorted((_plain(item) for item in value), key=json.dumps)}
        case _:
            raise InvalidParameter(
                f"a parameter must be a number, text, date, list or dict, got {quote(value)}"
            )
    return plain


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in value):
        raise InvalidParameter("the names of parameters must be text")
    return {name: _plain(item) for name, item in value.items()}


def _number(value: Any) -> str:
    try:
        return str(Fraction(value) if isinstance(value, Rational) else read_fraction(value))
    except ValueError:
        raise InvalidParameter(f"a parameter must be finite, got {quote(value)}") from None
