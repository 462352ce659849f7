"""How a policy declares the reading of text: the type of a column, its date formats and its number
marks.

    type        "integer", "number", "text", "date" or "truth"
    format      of dates, such as "%d/%m/%Y", or a list of formats, tried in this order; ISO dates
                need none
    decimal     the mark before the fraction, "." or ","
    thousands   the mark between groups of three digits, such as "," in 1,234.50
    trim            true: blanks at both ends are removed, including Unicode and zero-width blanks
                    (`BLANKS`)
    casefold        true: capitals become lowercase, A–Z and the Latin, Greek and Cyrillic capitals
                    of `CAPITALS`, in
                    the same way on every engine; other letters and accents do not change. Keys and
                    values of `map` keep their declared spelling: a cell that differs from them only
                    by blanks and capitals is read as them
    missing_values  texts that mean a missing value, such as ["n/a", ""]
    map             {"CARD" = "Cardiology"}, or a public file of two columns: cells and their
                    replacements

A cell is read by trim, casefold, missing_values, map and its type, in this order; missing_values
and the left side of `map` are trimmed and folded like cells. Conditions, groups and aggregates use
the result. A literal that is compared with a column of text is read like a cell.

In a format, %Y is a year of four digits; %m, %d, %H, %M, %S are a month, day, hour (0–23), minute
and second of one or two digits, or of two if other digits follow or precede directly; %f is a
fraction of a second; %b is an English month in three letters. Letters, spaces and . , : / _ - are
literal.
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

KINDS: dict[str, Kind] = {
    "integer": "number",
    "number": "number",
    "text": "text",
    "date": "date",
    "truth": "truth",
}
"""The kind of the values of each type."""

DECIMALS = (".", ",")
THOUSANDS = (",", ".", "'", "’", " ", "\u00a0", "\u202f", "_")

BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200C)))
    + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Unicode white space, the zero-width space and the byte order mark."""

_BLOCKS = ((0x41, 0x5A), (0xC0, 0xDE), (0x100, 0x17F), (0x370, 0x3FF), (0x400, 0x4FF))
_SIMPLE = [
    chr(code)
    for first, last in _BLOCKS
    for code in range(first, last + 1)
    if len(chr(code).lower()) == 1
]
CAPITALS = "".join(letter for letter in _SIMPLE if letter.lower() != letter)
"""A–Z, and the capitals of Latin-1, Latin Extended-A, Greek and Cyrillic whose lowercase is one
letter.
"""
# one by one: a final Σ has another lowercase letter
SMALL = "".join(letter.lower() for letter in CAPITALS)
_FOLDED = str.maketrans(CAPITALS, SMALL)

_MOST_MISSING, _MOST_PAIRS, _LONGEST_TEXT = 100, 1_000, 1_000
"""A map is a binary search in each row, but each statement contains all of it, and engines take
about a millisecond to plan each of its texts. A longer map should be a join, in a SELECT of the
custodian."""

_TOKEN = re.compile(r"%[YmbdHMSf]|[A-Za-z .,:/_-]", re.ASCII)
_LONGEST = 40
_MOST = 10


def exact_type(value: object) -> Type:
    match value:
        case "integer" | "number" | "text" | "date" | "truth":
            return value
    raise InvalidParameter(
        f'it must be "integer", "number", "text", "date" or "truth", got {quote(value)}'
    )


def exact_formats(value: object) -> tuple[str, ...]:
    """The declared date formats.

    >>> exact_formats("%d/%m/%Y"), exact_formats(["%Y-%m-%d", "%d.%m.%Y %H:%M"])
    (('%d/%m/%Y',), ('%Y-%m-%d', '%d.%m.%Y %H:%M'))
    """
    formats = [value] if isinstance(value, str) else value
    if not isinstance(formats, list | tuple) or not 1 <= len(formats) <= _MOST:
        raise InvalidParameter(
            f'it must be a format such as "%d/%m/%Y", or up to {_MOST} of them, got {quote(value)}'
        )
    for date_format in formats:
        tokens(date_format)
    if len(set(formats)) < len(formats):
        raise InvalidParameter("formats must differ")
    return tuple(formats)


def exact_mark(value: object, marks: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in marks:
        raise InvalidParameter(
            f"it must be one of {' '.join(map(quote, marks))}, got {quote(value)}"
        )
    return value


def tokens(date_format: object) -> list[str]:
    """The parts of a format: directives and literal characters."""
    parts = (
        _TOKEN.findall(date_format)
        if isinstance(date_format, str) and len(date_format) <= _LONGEST
        else []
    )
    if not parts or "".join(parts) != date_format:
        raise InvalidParameter(
            "a format must be made of %Y, %m or %b, %d, %H, %M, %S, %f, letters, spaces and . , :"
            f" / _ -, got {quote(date_format)}"
        )
    directives = [part for part in parts if len(part) > 1]
    whole = {"%Y", "%d"} < set(directives) and len({"%m", "%b"} & set(directives)) == 1
    times = "".join(sorted({"%H", "%M", "%S", "%f"} & set(directives), key="%H%M%S%f".index))
    if not whole or len(set(directives)) < len(directives) or not "%H%M%S%f".startswith(times):
        raise InvalidParameter(
            "a format must name year, month and day once, and a part of the time only with all"
            f" larger parts, got {quote(date_format)}"
        )
    return parts


def exact_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"it must be true or false, got {quote(value)}")
    return value


def exact_texts(value: object) -> tuple[str, ...]:
    """The declared texts of missing values."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= _MOST_MISSING:
        raise InvalidParameter(
            f'it must be a list of up to {_MOST_MISSING} texts, such as ["n/a", ""]'
        )
    return tuple(map(_text, value))


def exact_map(value: object, folder: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of a cell and its replacement, declared or from a public file."""
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
            f'it must be up to {_MOST_PAIRS:,} pairs such as {{ "CARD" = "Cardiology" }}, or a file'
            ' "wards.csv" of two columns'
        )
    return exact


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "\0" in value:
        raise InvalidParameter(
            f"a text must have up to {_LONGEST_TEXT:,} characters and no NUL, got {quote(value)}"
        )
    return value


def cleaned(text: str, *, trim: bool, casefold: bool) -> str:
    r"""A cell without blanks at its ends, in lowercase.

    >>> (
    ...     cleaned("\u00a0 GÉRIATRIE ", trim=True, casefold=True),
    ...     cleaned(" A", trim=False, casefold=True),
    ... )
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
    """The declared cleaning of texts, with a map back to the spelling of keys."""

    def clean(text: str) -> str:
        return cleaned(text, trim=trim, casefold=casefold)

    spellings: dict[str, str] = {}
    cleaned_pairs = [(clean(before), after) for before, after in pairs]
    for key in dict.fromkeys([*keys, *(after for _, after in cleaned_pairs)]):
        first_key = spellings.setdefault(clean(key), key)
        if first_key != key:
            raise InvalidParameter(
                f"{quote(first_key)} and {quote(key)} are equal after trim and casefold; leave"
                " one out"
            )
    declared: dict[str, str] = {}
    for before, after in cleaned_pairs:
        if declared.setdefault(before, after) != after:
            raise InvalidParameter(f"map: {quote(before)} must have one replacement, got two")
    replacements = {
        before: after for before, after in {**spellings, **declared}.items() if before != after
    }
    if len(replacements) > _MOST_PAIRS:
        raise InvalidParameter(
            f"trim, casefold and map may change {_MOST_PAIRS:,} texts, got {len(replacements):,};"
            " use lowercase keys"
        )
    absent = tuple(sorted(set(map(clean, missing))))
    return Reading(
        trim=trim, casefold=casefold, missing=absent, map=tuple(sorted(replacements.items()))
    )


def as_read(text: str, reading: Reading) -> str | None:
    """The value of a cell with this text in a column of texts; None if it is missing.

    >>> ward = Reading(trim=True, casefold=True, missing=("n/a",), map=(("card", "Cardiology"),))
    >>> as_read(" CARD", ward), as_read("N/A", ward), as_read("Oncology", ward)
    ('Cardiology', None, 'oncology')
    """
    text = cleaned(text, trim=reading.trim, casefold=reading.casefold)
    return None if text in reading.missing else dict(reading.map).get(text, text)
