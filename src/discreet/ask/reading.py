"""How a policy says that text is read: the type of a column, the formats of its dates, the marks of its numbers.

    type        "integer", "number", "text", "date" or "truth"
    format      of dates, such as "%d/%m/%Y", or a list of such, tried in this order; ISO dates need none
    decimal     the mark before the fraction, "." or ","
    thousands   the mark between groups of three digits, such as "," in 1,234.50
    trim            true: blanks at both ends go, those of Unicode and of no width, too (`BLANKS`)
    casefold        true: capitals become small, A–Z and the Latin, Greek and Cyrillic ones of `CAPITALS`, on every
                    engine alike; all other letters stay, and so do accents. A key, or a value of `map`, keeps the
                    spelling that is declared: a cell that differs from it by blanks and capitals alone is read as it
    missing_values  texts that are missing, such as ["n/a", ""]
    map             {"CARD" = "Cardiology"}, or a public file of two columns: cells and what they are read as

A cell goes through trim, casefold, missing_values, map and its type, in this order; missing_values and the left side of
`map` are trimmed and folded as cells are. Then, and only then, is the value used: in conditions, groups and aggregates.
A literal that is compared with a column of texts is read as a cell is.

In a format, %Y is a year of four digits; %m, %d, %H, %M, %S are a month, day, hour (0–23), minute and second of one or
two digits, of two where nothing stands between them and other digits; %f is a fraction of a second; %b is an English
month in three letters. Letters, spaces and . , : / _ - stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from discreet.ask.expression import Kind, Reading
from discreet.errors import InvalidParameter
from discreet.parameters import quote

Type: TypeAlias = Literal["integer", "number", "text", "date", "truth"]

KINDS: dict[str, Kind] = {"integer": "number", "number": "number", "text": "text", "date": "date", "truth": "truth"}
"""The kind of the values of each type."""

DECIMALS = (".", ",")
THOUSANDS = (",", ".", "'", "’", " ", "\u00a0", "\u202f", "_")

BLANKS = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200C))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What Unicode calls white space, the zero-width space and the byte order mark."""

_BLOCKS = ((0x41, 0x5A), (0xC0, 0xDE), (0x100, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF))
_SIMPLE = [chr(code) for first, last in _BLOCKS for code in range(first, last + 1) if len(chr(code).lower()) == 1]
CAPITALS = "".join(letter for letter in _SIMPLE if letter.lower() != letter)
"""A–Z, and the capitals of Latin-1, Latin Extended-A, Greek and Cyrillic that have one small letter."""
SMALL = "".join(letter.lower() for letter in CAPITALS)  # of one letter each: a Σ at the end of a word has another
_FOLDED = str.maketrans(CAPITALS, SMALL)

_MOST_MISSING, _MOST_PAIRS, _LONGEST_TEXT = 100, 1_000, 1_000
"""A map is a search by halves in each row, but stands whole in each statement, and engines take about a millisecond to
plan each text of it. Longer ones belong into a join, in a SELECT of the custodian."""

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


def exact_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"it must be true or false, got {quote(value)}")
    return value


def exact_texts(value: object) -> tuple[str, ...]:
    """Declared texts of missing values."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= _MOST_MISSING:
        raise InvalidParameter(f'it must be a list of up to {_MOST_MISSING} texts, such as ["n/a", ""]')
    return tuple(map(_text, value))


def exact_map(value: object, folder: Path) -> tuple[tuple[str, str], ...]:
    """Declared pairs, or those of a public file: cells and what they are read as."""
    pairs: Iterable[tuple[object, object]]
    if isinstance(value, str | Path):
        from discreet.ask.keys.file import pairs_in

        pairs = pairs_in(str(value), folder, _MOST_PAIRS)
    elif isinstance(value, Mapping):
        pairs = value.items()
    else:
        pairs = [pair for pair in value if len(pair) == 2] if isinstance(value, tuple) else ()
    exact = tuple((_text(before), _text(after)) for before, after in pairs)
    if not 1 <= len(exact) <= _MOST_PAIRS:
        raise InvalidParameter(
            f'it must be up to {_MOST_PAIRS:,} pairs such as {{ "CARD" = "Cardiology" }}, or a file "wards.csv" of two '
            "columns"
        )
    return exact


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "\0" in value:
        raise InvalidParameter(f"a text must have up to {_LONGEST_TEXT:,} characters and no NUL, got {quote(value)}")
    return value


def cleaned(text: str, *, trim: bool, casefold: bool) -> str:
    r"""A cell without blanks at its ends, in small letters.

    >>> cleaned("\u00a0 GÉRIATRIE ", trim=True, casefold=True), cleaned(" A", trim=False, casefold=True)
    ('gériatrie', ' a')
    """
    text = text.strip(BLANKS) if trim else text
    return text.translate(_FOLDED) if casefold else text


def cleaning(
    *,
    trim: bool,
    casefold: bool,
    missing: Iterable[str],
    pairs: Iterable[tuple[str, str]],
    keys: Iterable[str],
) -> Reading:
    """The reading of texts that are still texts: what is declared, and the way back to the spelling of keys."""

    def clean(text: str) -> str:
        return cleaned(text, trim=trim, casefold=casefold)

    spelled: dict[str, str] = {}
    written = [(clean(before), after) for before, after in pairs]
    for key in dict.fromkeys([*keys, *(after for _, after in written)]):
        other = spelled.setdefault(clean(key), key)
        if other != key:
            raise InvalidParameter(f"{quote(other)} and {quote(key)} are one text by trim and casefold; leave one out")
    declared: dict[str, str] = {}
    for before, after in written:
        if declared.setdefault(before, after) != after:
            raise InvalidParameter(f"map: {quote(before)} must be read as one text, got two")
    places = {before: after for before, after in {**spelled, **declared}.items() if before != after}
    if len(places) > _MOST_PAIRS:
        raise InvalidParameter(
            f"trim, casefold and map can spell {_MOST_PAIRS:,} texts, got {len(places):,}; write keys in small letters"
        )
    absent = tuple(sorted(set(map(clean, missing))))
    return Reading(trim=trim, casefold=casefold, missing=absent, map=tuple(sorted(places.items())))


def as_read(text: str, reading: Reading) -> str | None:
    """A text as the value that a cell with it has in a column of texts; None if that is missing.

    >>> ward = Reading(trim=True, casefold=True, missing=("n/a",), map=(("card", "Cardiology"),))
    >>> as_read(" CARD", ward), as_read("N/A", ward), as_read("Oncology", ward)
    ('Cardiology', None, 'oncology')
    """
    text = cleaned(text, trim=reading.trim, casefold=reading.casefold)
    return None if text in reading.missing else dict(reading.map).get(text, text)
