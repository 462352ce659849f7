"""What people write in tables: words for a missing value, marks of numbers, formats of dates, spellings of a key."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from discreet.engines.sql.patterns import date_shape

MISSING_WORDS = frozenset(
    ("", "n/a", "na", "n.a.", "#n/a", "nan", "null", "none", "nil", "-", "--", "—", "?", ".", "missing", "unknown")
)

MARKS: tuple[dict[str, str], ...] = (
    {},
    {"thousands": ","},
    {"decimal": ","},
    {"decimal": ",", "thousands": "."},
    *(
        {"decimal": decimal, "thousands": mark}
        for mark in (" ", "\u00a0", "\u202f", "'", "’")
        for decimal in (".", ",")
    ),
)

DATE_FORMATS = (
    "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%b %d, %Y",
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
)  # fmt: skip

TWINS = {
    first: second
    for one, other in (
        ("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"), ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
        ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"),
    )
    for first, second in ((one, other), (other, one))
}  # fmt: skip
"""Formats with day and month the other way round."""


def formats_of(texts: Iterable[str]) -> list[str]:
    """The formats of dates that one of some texts has.

    >>> formats_of(["13/05/2025 ", "n/a"])
    ['%d/%m/%Y', '%m/%d/%Y']
    """
    stripped = [text.strip().lower() for text in texts]
    shapes = {written: re.compile(date_shape(written).pattern, re.IGNORECASE) for written in DATE_FORMATS}
    return [written for written, shape in shapes.items() if any(map(shape.fullmatch, stripped))]


def nearest(texts: Mapping[str, int], keys: Iterable[str]) -> dict[str, str]:
    """Texts that are a key but for blanks, capitals, accents and signs, each with that key.

    >>> nearest({" GERIATRIE": 7, "Surgery": 3}, ["Gériatrie", "Cardiology"])
    {' GERIATRIE': 'Gériatrie'}
    """
    plain: dict[str, str | None] = {}
    for key in keys:
        plain[_plain(key)] = None if _plain(key) in plain else key
    near = {text: plain.get(_plain(text)) for text in texts}
    return {text: key for text, key in near.items() if key is not None}


def _plain(text: str) -> str:
    """Letters and digits, in small letters without accents."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in letters if letter.isalnum())
