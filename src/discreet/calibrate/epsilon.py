"""Exact parameters: one parse gives one `Fraction`, used for the noise and for the charge.

ε, sensitivities and scales may be written as text ("0.1", "1/3", "1e-3"), as int, Fraction, Decimal or
float. A float is read by its shortest decimal, so 0.1 is 1/10; a float sensitivity is the larger of that
decimal and the binary value, so that the noise covers both readings.

Refused with `InvalidParameter`, before anything happens: bool, NaN, ±inf, zero, negative, text that is
no number, absurd length; ε outside [10⁻⁹, 10⁶]. (10⁻⁹ is the ledger's unit.)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import TypeAlias

from discreet.errors import InvalidParameter

Number: TypeAlias = str | int | float | Fraction | Decimal

UNIT = Fraction(1, 10**9)
"""What the ledger counts in; also the smallest ε."""

LARGEST = Fraction(10**6)
"""No one who types a larger ε means it."""

_LONGEST = 60
"""Characters of a text, and digits of a fraction's parts: beyond this it is no one's parameter."""

_TEXT = re.compile(r"[+-]?(\d{1,40}/\d{1,40}|(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?)", re.ASCII)

_WANTED = "a positive number such as '0.1', '1/3' or 2"


def exact(name: str, value: object) -> Fraction:
    """The positive `Fraction` that `value` writes.

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
    return _remembered(_epsilon, value)


def exact_sensitivity(value: object) -> Fraction:
    """The sensitivity as an exact `Fraction`, a float rounded up to cover both of its readings."""
    return _remembered(_sensitivity, value)


def charge(epsilon: Fraction) -> int:
    """What the ledger is charged for ε, in units of 10⁻⁹.

    >>> charge(Fraction(1, 3))
    333333334
    """
    return -(-epsilon.numerator * UNIT.denominator // epsilon.denominator)  # rounds up: never too little


def _epsilon(value: object) -> Fraction:
    epsilon = exact("epsilon", value)
    if not UNIT <= epsilon <= LARGEST:
        raise InvalidParameter(
            f"epsilon must lie between 0.000000001 and 1000000, got {quote(value)}; "
            "common choices are between 0.01 and 1"
        )
    return epsilon


def _sensitivity(value: object) -> Fraction:
    number = exact("sensitivity", value)
    return max(number, Fraction(value)) if isinstance(value, float) else number  # rounds up: more noise


def _remembered(read: Callable[[object], Fraction], value: object) -> Fraction:
    """Most programs use a handful of parameters a million times."""
    return _memory(read, value) if type(value) in (str, int, float) else read(value)


@lru_cache(maxsize=512, typed=True)
def _memory(read: Callable[[object], Fraction], value: object) -> Fraction:
    return read(value)


def read(name: str, value: object) -> Fraction:
    """The finite number, of any sign, that `value` writes."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(value)}")
    if isinstance(value, str):
        return _read_text(name, value)
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
        if max(abs(number.numerator), number.denominator) >= 10**_LONGEST:
            raise InvalidParameter(f"{name} must have at most {_LONGEST} digits, got a longer one")
        return number
    if isinstance(value, Decimal | Real):
        return _read_text(name, str(value))
    raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(value)}")


def _read_text(name: str, text: str) -> Fraction:
    if len(text) > _LONGEST:
        raise InvalidParameter(f"{name} must be at most {_LONGEST} characters, got {len(text)}")
    if not _TEXT.fullmatch(text):
        raise InvalidParameter(f"{name} must be {_WANTED}, got {quote(text)}")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} must not divide by zero, got {quote(text)}") from None


def quote(value: object) -> str:
    """A parameter as an error shows it: short, and never a traceback of its own."""
    if isinstance(value, str | bool | int | float | Fraction | Decimal | None):
        try:
            text = repr(value) if isinstance(value, str) else str(value)
        except ValueError:  # Python prints no integer of more than 4,300 digits
            return "a number of thousands of digits"
        return text if len(text) <= _LONGEST else text[:40] + "…"
    return f"a {type(value).__name__}"
