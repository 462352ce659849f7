"""Public parameters as exact fractions: the same `Fraction` determines the noise and the charge.

    ε, sensitivities   positive; ε between 10⁻⁹, the ledger's unit, and 10⁶
    bounds             a pair (lower, upper) with lower < upper, each 0 or between 10⁻³⁰⁰ and 10³⁰⁰
                       in size
    neighbors          "change-one": one unit's rows are replaced; the number of units is public
                       "add-remove": one unit's rows are added or removed; the number of units is
                       private
    counts, chances    whole numbers up to 10¹⁸; probabilities strictly between 0 and 1

Numbers are text ("0.1", "1/3", "1e-3"), int, Fraction, Decimal or float. A float counts as its
shortest decimal, so 0.1 is 1/10; a float sensitivity is the larger of that decimal and the binary
value, so that the noise covers both. Anything else raises `InvalidParameter` before anything
happens: bool, NaN, ±inf, text that is not a number or too long.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import Literal, TypeAlias

from discreet.errors import InvalidParameter

Number: TypeAlias = str | int | float | Fraction | Decimal
Epsilon: TypeAlias = Number
"""A privacy parameter; a float counts as its shortest decimal."""

UNIT = Fraction(1, 10**9)
"""The unit in which the ledger counts; also the smallest ε."""

LARGEST = Fraction(10**6)
"""The largest ε; a larger one is a mistake."""

_LONGEST = 60
"""The most characters of a text, and digits of a fraction's numerator and denominator."""

_TEXT = re.compile(
    r"[+-]?(\d{1,40}/\d{1,40}|(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?)", re.ASCII
)

_WANTED = "a positive number such as '0.1', '1/3' or 2"

_REMEMBERED = (str, int, float)
"""The types that are cached: programs use a few parameters again and again, and other types may not
be hashable.
"""

Neighbors: TypeAlias = Literal["change-one", "add-remove"]

Bounds: TypeAlias = tuple[Fraction, Fraction]

Range: TypeAlias = tuple[Number, Number] | Sequence[Number]
"""(lower, upper), as given by the caller."""

LARGEST_BOUND = Fraction(10**300)
"""Beyond this a sum of squares is no longer a finite float."""

SMALLEST_CONFIDENCE, SMALLEST_DOUBT = Fraction(1, 10**6), Fraction(1, 10**9)

MOST_UNITS = 10**18
"""More units than any data set has."""


def exact(name: str, value: object) -> Fraction:
    """The value as a positive `Fraction`.

    >>> exact("scale", 0.1), exact("scale", "1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    number = read(name, value)
    if number <= 0:
        raise InvalidParameter(f"{name} must be positive, got {quote(value)}")
    return number


def exact_epsilon(value: object) -> Fraction:
    """The privacy parameter as an exact `Fraction` between 10⁻⁹ and 10⁶.

    >>> exact_epsilon("0.1") + exact_epsilon(0.2) == exact_epsilon("0.3")
    True
    """
    return (_epsilon if type(value) in _REMEMBERED else _epsilon.__wrapped__)(value)


def exact_sensitivity(value: object) -> Fraction:
    """The sensitivity as an exact `Fraction`; a float is the larger of its decimal and binary
    values.
    """
    return (_sensitivity if type(value) in _REMEMBERED else _sensitivity.__wrapped__)(value)


def charge(epsilon: Fraction) -> int:
    """The charge for ε in the ledger, in units of 10⁻⁹.

    >>> charge(Fraction(1, 3))
    333333334
    """
    # rounds up: never too little
    return -(-epsilon.numerator * UNIT.denominator // epsilon.denominator)


@lru_cache(maxsize=512, typed=True)
def _epsilon(value: object) -> Fraction:
    epsilon = exact("epsilon", value)
    if not UNIT <= epsilon <= LARGEST:
        raise InvalidParameter(
            f"epsilon must lie between 0.000000001 and 1000000, got {quote(value)}; "
            "common choices are between 0.01 and 1"
        )
    return epsilon


@lru_cache(maxsize=512, typed=True)
def _sensitivity(value: object) -> Fraction:
    number = exact("sensitivity", value)
    # rounds up: more noise
    return max(number, Fraction(value)) if isinstance(value, float) else number


def read(name: str, value: object) -> Fraction:
    """The value as an exact, finite number of any sign."""
    if type(value).__name__ in ("bool", "bool_"):
        raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(value)}")
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
        if max(abs(number.numerator), number.denominator) >= 10**_LONGEST:
            raise InvalidParameter(f"{name} must have at most {_LONGEST} digits, got more")
        return number
    if isinstance(value, str | Decimal | Real):
        return _read_text(name, str(value))
    raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(value)}")


def _read_text(name: str, text: str) -> Fraction:
    if len(text) > _LONGEST:
        raise InvalidParameter(f"{name} must be at most {_LONGEST} characters, got {len(text)}")
    if not _TEXT.fullmatch(text):
        corrected = f"{text[:-1].strip()}/100" if text.endswith("%") else text.replace(",", ".")
        hint = f"; write {corrected!r}" if _TEXT.fullmatch(corrected) else ""
        raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(text)}{hint}")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} must not divide by zero, got {quote(text)}") from None


def quote(value: object) -> str:
    """A parameter as an error message shows it: short, and without raising."""
    if isinstance(value, str | bool | int | float | Fraction | Decimal | None):
        try:
            text = repr(value) if isinstance(value, str) else str(value)
        except ValueError:  # Python does not print integers of more than 4,300 digits
            return "a number of thousands of digits"
        return text if len(text) <= _LONGEST else text[:40] + "…"
    return f"a {type(value).__name__}"


def did_you_mean(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint with the closest of the known words, or an empty text if none is close."""
    import difflib

    return "".join(
        f"did you mean {near}?"
        for near in difflib.get_close_matches(word, list(words), n=1, cutoff=cutoff)
    )


def exact_bounds(bounds: object) -> Bounds:
    """The pair (lower, upper) as exact fractions, lower < upper.

    >>> exact_bounds((-0.5, "120"))
    (Fraction(-1, 2), Fraction(120, 1))
    """
    match bounds.tolist() if hasattr(bounds, "tolist") else bounds:
        case [first, second]:
            lower, upper = _bound("lower", first), _bound("upper", second)
        case _:
            several = (
                f"{len(bounds)} values".replace("1 values", "1 value")
                if isinstance(bounds, list | tuple)
                else ""
            )
            shown = several or quote(bounds)
            raise InvalidParameter(
                f"bounds must be a pair (lower, upper) such as (0, 120), got {shown}"
            )
    if lower > upper:
        raise InvalidParameter(
            f"lower must not exceed upper, got lower={quote(first)} and upper={quote(second)};"
            " write (lower, upper)"
        )
    if lower == upper:
        raise InvalidParameter(f"lower and upper must differ, got {quote(first)} twice")
    return lower, upper


def exact_neighbors(value: object) -> Neighbors:
    """The neighbour relation named by `value`."""
    match value:
        case "change-one" | "add-remove":
            return value
    raise InvalidParameter(f"neighbors must be 'change-one' or 'add-remove', got {quote(value)}")


def exact_count(name: str, value: object, *, least: int = 1, most: int = MOST_UNITS) -> int:
    """The value as a whole number from `least` to `most`."""
    with suppress(TypeError):
        number = least - 1 if type(value).__name__ in ("bool", "bool_") else operator.index(value)  # type: ignore[arg-type]
        if least <= number <= most:
            return number
    end = "10^18" if most == MOST_UNITS else f"{most:,}"
    raise InvalidParameter(
        f"{name} must be a whole number from {least} to {end}, got {quote(value)}"
    )


def exact_chance(name: str, value: object) -> Fraction:
    """The value as a probability strictly between 0 and 1."""
    chance = exact_number(name, value)
    if not 0 < chance < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, got {quote(value)}")
    return chance


_WEEK = 7 * 86_400  # seconds


def exact_seconds(name: str, value: object) -> Fraction:
    """The value as a number of seconds, from a thousandth to a week."""
    seconds = exact_number(name, value)
    if not Fraction(1, 1000) <= seconds <= _WEEK:
        raise InvalidParameter(
            f"{name} must be seconds between 0.001 and {_WEEK:,}, a week, got {quote(value)}"
        )
    return seconds


def exact_confidence(value: object) -> Fraction:
    """The confidence of an interval, from 10⁻⁶ to 1 − 10⁻⁹; values closer to 0 or 1 are of no use
    in floats.
    """
    confidence = exact_chance("confidence", value)
    if not SMALLEST_CONFIDENCE <= confidence <= 1 - SMALLEST_DOUBT:
        raise InvalidParameter(
            f"confidence must lie between 0.000001 and 0.999999999, got {quote(value)}; 0.95 is"
            " usual"
        )
    return confidence


def exact_number(name: str, value: object) -> Fraction:
    """The value as an exact, finite number of any sign."""
    try:
        return read(name, value)
    except InvalidParameter:
        raise InvalidParameter(
            f"{name} must be a finite number such as 0, -1.5 or '1/3', got {quote(value)}"
        ) from None


def _bound(name: str, value: object) -> Fraction:
    if hasattr(value, "isoformat") or type(value).__name__ == "datetime64":
        raise InvalidParameter(
            f"{name} must be a number here, got a date; count the days since a public date instead"
        )
    number = exact_number(name, value)
    if number and not 1 / LARGEST_BOUND <= abs(number) <= LARGEST_BOUND:
        raise InvalidParameter(
            f"{name} must be 0 or between 1e-300 and 1e300 in size, got {quote(value)}"
        )
    return number
