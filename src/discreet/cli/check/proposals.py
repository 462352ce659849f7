"""How people write cells: missing values, marks, dates, spellings of keys, lines not in UTF-8."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from discreet.engines.endings import CSV
from discreet.engines.sql.patterns import date_shape

# what spreadsheets in western offices write: Latin-1, except control characters
USUAL = "windows-1252"
MISSING_WORDS = frozenset(
    (
        "",
        "n/a",
        "na",
        "n.a.",
        "#n/a",
        "nan",
        "null",
        "none",
        "nil",
        "-",
        "--",
        "—",
        "?",
        ".",
        "missing",
        "unknown",
    )
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

_NUMBER = re.compile(r"[-+]?\d{1,3}(?:[ ,.'’\u00a0\u202f]?\d{3})*(?:[.,]\d+)?", re.ASCII)
_MOST = 0.9  # the share of cells that must be numbers or dates for the column to be guessed as such

DATE_FORMATS = (
    "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%b %d, %Y",
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
)  # fmt: skip

TWINS = {
    first: second
    for day_first, month_first in (
        ("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"), ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
        ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"),
    )
    for first, second in ((day_first, month_first), (month_first, day_first))
}  # fmt: skip
"""The format with day and month swapped, for each format that has one."""


def formats_of(texts: Iterable[str]) -> list[str]:
    """The date formats that match at least one of the texts.

    >>> formats_of(["13/05/2025 ", "n/a"])
    ['%d/%m/%Y', '%m/%d/%Y']
    """
    stripped = [text.strip().lower() for text in texts]
    shapes = {
        written: re.compile(date_shape(written).pattern, re.IGNORECASE) for written in DATE_FORMATS
    }
    return [written for written, shape in shapes.items() if any(map(shape.fullmatch, stripped))]


def kind_of_texts(texts: Iterable[str]) -> str:
    """The kind of most texts: number, date or text.

    >>> (
    ...     kind_of_texts(["1,234.50", "n/a", "17"]),
    ...     kind_of_texts(["13/05/2025", "2025-05-13"]),
    ...     kind_of_texts(["A", "1"]),
    ... )
    ('number', 'date', 'text')
    """
    cells = [cell for text in texts if (cell := text.strip().lower()) not in MISSING_WORDS]
    shapes = [re.compile(date_shape(written).pattern, re.IGNORECASE) for written in DATE_FORMATS]
    numbers = sum(_NUMBER.fullmatch(cell) is not None for cell in cells)
    dates = sum(any(shape.fullmatch(cell) for shape in shapes) for cell in cells)
    enough = _MOST * len(cells)
    return (
        "number" if cells and numbers >= enough else "date" if cells and dates >= enough else "text"
    )


def nearest(texts: Mapping[str, int], keys: Iterable[str]) -> dict[str, str]:
    """Texts that differ from a key only by blanks, capitals, accents and signs, each with that key.

    >>> nearest({" GERIATRIE": 7, "Surgery": 3}, ["Gériatrie", "Cardiology"])
    {' GERIATRIE': 'Gériatrie'}
    """
    plain: dict[str, str | None] = {}
    for key in keys:
        plain[_plain(key)] = None if _plain(key) in plain else key
    similar = {text: plain.get(_plain(text)) for text in texts}
    return {text: key for text, key in similar.items() if key is not None}


def _plain(text: str) -> str:
    """Letters and digits only, in lower case without accents."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


def undecoded_lines(source: object, most: int | None = None) -> int:
    """How many of the first `most` lines of a plain CSV file are not UTF-8; 0 for other sources."""
    if (
        not isinstance(source, str)
        or Path(source).suffix.lower() not in CSV
        or not Path(source).is_file()
    ):
        return 0
    with Path(source).open("rb") as file:
        return sum(not _is_utf8(line) for line in islice(file, most))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
