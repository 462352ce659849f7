"""A declared key: a text, an exact number, a date or a truth value, and its reading in the kind of
its column.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.ask.expression import Kind
from discreet.ask.normal import decimal
from discreet.errors import InvalidParameter
from discreet.parameters import exact_number, quote

Key: TypeAlias = str | Fraction | datetime | bool

MOST_KEYS = 10**7
"""The most keys of a column; a larger range is a mistake."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


def read_key(value: object) -> Key:
    if isinstance(value, str) and "\0" in value:
        raise InvalidParameter("a key must not contain NUL characters")
    if isinstance(value, bool | str):
        return value
    if type(value).__name__ == "bool_":  # numpy's
        return bool(value)
    return moment(value) if is_date(value) else exact_number("a key", value)


def is_date(value: object) -> bool:
    """Whether it is a date or a time of Python, pandas or numpy."""
    return isinstance(value, date) or type(value).__name__ == "datetime64"


def moment(value: Any) -> datetime:
    """A date (as midnight) or a time as a Python datetime without a time zone.

    >>> moment(date(2020, 1, 31))
    datetime.datetime(2020, 1, 31, 0, 0)
    """
    if value != value:  # noqa: PLR0124 - NaT
        raise InvalidParameter("a date must not be missing, as in 2020-01-31, got NaT")
    if type(value).__name__ == "datetime64":
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - dates here have no zone
    if value.tzinfo is not None:
        raise InvalidParameter("a date must be without a time zone, such as 2020-01-31")
    if type(value) is datetime:
        return value
    parts = (
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
    )
    return datetime(*parts)  # noqa: DTZ001 - a subclass of pandas


def is_written_date(value: object) -> bool:
    """Whether it is a text with an ISO date or time."""
    return isinstance(value, str) and bool(_DATE.fullmatch(value))


def read_date(text: str) -> datetime:
    """The ISO date or time in a text, without a time zone."""
    with suppress(ValueError):
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text)
    raise InvalidParameter(
        f"a date must be written as '2020-01-31' or '2020-01-31 12:00:00', got {quote(text)}"
    )


def as_kind(key: Key, kind: Kind) -> Key:
    """The key in the kind of its column: a text may spell a number, a date or a truth value."""
    match key, kind:
        case (bool(), "truth") | (str(), "text") | (datetime(), "date") | (Fraction(), "number"):
            return key
        case Fraction(), "text":
            return decimal(key)
        case str(), "number":
            return exact_number("a key", key)
        case str(), "date":
            return read_date(key)
        case str(), "truth" if key.lower() in ("true", "false"):
            return key.lower() == "true"
    raise InvalidParameter(f"keys must be of the column's kind, {kind}, got {quote(key)}")
