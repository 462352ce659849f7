"""Public parameters other than ε, read exactly: bounds, neighbours, numbers of units, confidences.

    bounds        a pair (lower, upper) with lower < upper, each at most 10³⁰⁰ in size (0 or at least 10⁻³⁰⁰)
    neighbors     "change-one": one unit's rows are replaced, the number of units is public
                  "add-remove": one unit's rows appear or vanish, the number of units is private

Numbers are int, text, Fraction, Decimal or float; a float is read by its shortest decimal, so 0.1 is 1/10. What
cannot be used is refused with `InvalidParameter` before anything happens: bool, NaN, ±inf, text that is no number.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.calibrate.epsilon import quote, read
from discreet.errors import InvalidParameter

Neighbors: TypeAlias = Literal["change-one", "add-remove"]

Bounds: TypeAlias = tuple[Fraction, Fraction]

LARGEST_BOUND = Fraction(10**300)
"""Beyond this a sum of squares leaves the floats; no one's data is there."""

SMALLEST_CONFIDENCE, SMALLEST_DOUBT = Fraction(1, 10**6), Fraction(1, 10**9)

MOST_UNITS = 10**18
"""More units than any data set has; what is larger was meant as something else."""


def exact_bounds(bounds: object) -> Bounds:
    """The pair (lower, upper) as exact fractions, lower < upper.

    >>> exact_bounds((-0.5, "120"))
    (Fraction(-1, 2), Fraction(120, 1))
    """
    match bounds:
        case [first, second]:
            lower, upper = _bound("lower", first), _bound("upper", second)
        case _:
            raise InvalidParameter(f"bounds must be a pair (lower, upper) such as (0, 120), got {_pair(bounds)}")
    if lower > upper:
        raise InvalidParameter(
            f"lower must not exceed upper, got lower={quote(first)} and upper={quote(second)}; write (lower, upper)"
        )
    if lower == upper:
        raise InvalidParameter(f"lower and upper must differ, got {quote(first)} twice")
    return lower, upper


def exact_neighbors(value: object) -> Neighbors:
    """The neighbour relation that `value` names.

    >>> exact_neighbors("add-remove")
    'add-remove'
    """
    match value:
        case "change-one":
            return "change-one"
        case "add-remove":
            return "add-remove"
    raise InvalidParameter(f"neighbors must be 'change-one' or 'add-remove', got {quote(value)}")


def exact_count(name: str, value: object, *, least: int = 1) -> int:
    """The whole number that `value` is, at least `least`.

    >>> exact_count("n", 100)
    100
    """
    number = None if isinstance(value, bool) or type(value).__name__ == "bool" else _index(value)
    if number is None or not least <= number <= MOST_UNITS:
        raise InvalidParameter(f"{name} must be a whole number from {least} to 10^18, got {_shown(value)}")
    return number


def exact_chance(name: str, value: object) -> Fraction:
    """The probability strictly between 0 and 1 that `value` writes.

    >>> exact_chance("confidence", 0.95)
    Fraction(19, 20)
    """
    chance = exact_number(name, value)
    if not 0 < chance < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, got {quote(value)}")
    return chance


def exact_confidence(value: object) -> Fraction:
    """The confidence of an interval, between 10⁻⁶ and 1 − 10⁻⁹: nearer to 0 or 1 it says nothing, or nothing in floats.

    >>> exact_confidence("0.95")
    Fraction(19, 20)
    """
    confidence = exact_chance("confidence", value)
    if not SMALLEST_CONFIDENCE <= confidence <= 1 - SMALLEST_DOUBT:
        raise InvalidParameter(
            f"confidence must lie between 0.000001 and 0.999999999, got {quote(value)}; 0.95 is usual"
        )
    return confidence


def exact_number(name: str, value: object) -> Fraction:
    """The finite number, of any sign, that `value` writes.

    >>> exact_number("at", -0.1)
    Fraction(-1, 10)
    """
    try:
        return read(name, value)
    except InvalidParameter:
        raise InvalidParameter(
            f"{name} must be a finite number such as 0, -1.5 or '1/3', got {_shown(value)}"
        ) from None


def _bound(name: str, value: object) -> Fraction:
    number = exact_number(name, value)
    if number and not 1 / LARGEST_BOUND <= abs(number) <= LARGEST_BOUND:
        raise InvalidParameter(f"{name} must be 0 or between 1e-300 and 1e300 in size, got {quote(value)}")
    return number


def _index(value: object) -> int | None:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _pair(bounds: object) -> str:
    return f"{len(bounds)} values" if isinstance(bounds, list | tuple) else _shown(bounds)


def _shown(value: object) -> str:
    try:
        return quote(value)
    except ValueError:  # Python refuses to write integers of more than 4,300 digits
        return "a number of thousands of digits"
