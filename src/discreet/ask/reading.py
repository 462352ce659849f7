"""How a policy says that text is read: the type of a column, the formats of its dates, the marks of its numbers.

    type        "integer", "number", "text", "date" or "truth"
    format      of dates, such as "%d/%m/%Y", or a list of such, tried in this order; ISO dates need none
    decimal     the mark before the fraction, "." or ","
    thousands   the mark between groups of three digits, such as "," in 1,234.50

In a format, %Y is a year of four digits; %m, %d, %H, %M, %S are a month, day, hour (0–23), minute and second of one or
two digits, of two where nothing stands between them and other digits; %f is a fraction of a second; %b is an English
month in three letters. Letters, spaces and . , : / _ - stand for themselves.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from discreet.ask.expression import Kind
from discreet.errors import InvalidParameter
from discreet.parameters import quote

Type: TypeAlias = Literal["integer", "number", "text", "date", "truth"]

KINDS: dict[str, Kind] = {"integer": "number", "number": "number", "text": "text", "date": "date", "truth": "truth"}
"""The kind of the values of each type."""

DECIMALS = (".", ",")
THOUSANDS = (",", ".", "'", "’", " ", "\u00a0", "\u202f", "_")

_TOKEN = re.compile(r"%[YmbdHMSf]|[A-Za-z .,:/_-]", re.ASCII)
_LONGEST = 40
_MOST = 10


def exact_type(value: object) -> Type:
    match value:
        case "integer" | "number" | "text" | "date" | "truth":
            return value
    raise InvalidParameter(f'it must be "integer", "number", "text", "date" or "truth", got {quote(value)}')


def exact_formats(value: object) -> tuple[str, ...]:
    """Declared formats of dates.

    >>> exact_formats("%d/%m/%Y"), exact_formats(["%Y-%m-%d", "%d.%m.%Y %H:%M"])
    (('%d/%m/%Y',), ('%Y-%m-%d', '%d.%m.%Y %H:%M'))
    """
    formats = [value] if isinstance(value, str) else value
    if not isinstance(formats, list | tuple) or not 1 <= len(formats) <= _MOST:
        raise InvalidParameter(f'it must be a format such as "%d/%m/%Y", or up to {_MOST} of them, got {quote(value)}')
    for written in formats:
        tokens(written)
    if len(set(formats)) < len(formats):
        raise InvalidParameter("formats must differ")
    return tuple(formats)


def exact_mark(value: object, marks: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in marks:
        raise InvalidParameter(f"it must be one of {' '.join(map(quote, marks))}, got {quote(value)}")
    return value


def tokens(written: object) -> list[str]:
    """The parts of a format: directives, and characters that stand for themselves."""
    parts = _TOKEN.findall(written) if isinstance(written, str) and len(written) <= _LONGEST else []
    if not parts or "".join(parts) != written:
        raise InvalidParameter(
            "a format must be made of %Y, %m or %b, %d, %H, %M, %S, %f, letters, spaces and . , : / _ -, "
            f"got {quote(written)}"
        )
    directives = [part for part in parts if len(part) > 1]
    whole = {"%Y", "%d"} < set(directives) and len({"%m", "%b"} & set(directives)) == 1
    times = "".join(sorted({"%H", "%M", "%S", "%f"} & set(directives), key="%H%M%S%f".index))
    if not whole or len(set(directives)) < len(directives) or not "%H%M%S%f".startswith(times):
        raise InvalidParameter(
            "a format must name year, month and day once, and a smaller part of the time after each larger one, "
            f"got {quote(written)}"
        )
    return parts
