"""Between which numbers the values of an expression lie, from the declared bounds of its columns.

    [a, b] + [c, d] = [a + c, b + d]      LEAST(x, 10) ≤ 10      x / y only where y cannot be 0

None is no bound. The aggregate clamps to the result, so a row outside of the declared bounds changes no promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TypeAlias

from discreet.ask.declared import Declared
from discreet.ask.expression import (
    Arithmetic,
    ArithmeticSign,
    Case,
    Cast,
    Coalesce,
    Column,
    Constant,
    DatePart,
    Expression,
    Function,
    Part,
)
from discreet.ask.kinds import LARGEST_NUMBER, kind_of

End: TypeAlias = Fraction | None

_MOST_DIGITS = 10**60
"""A bound with a longer numerator or denominator is no one's; it comes from long products, and counts as none."""

PART_RANGES: dict[DatePart, tuple[int, int]] = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "weekday": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""The values of a part of a date; a year has none."""


@dataclass(frozen=True, slots=True)
class Interval:
    """lower ≤ x ≤ upper, each end None if there is none; `whole` if x is an integer."""

    lower: End
    upper: End
    whole: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", _kept(self.lower))
        object.__setattr__(self, "upper", _kept(self.upper))


def interval(  # noqa: PLR0911 - one case for each class
    expression: Expression, columns: Mapping[str, Declared], whole: Mapping[str, bool]
) -> Interval:
    """The interval of a number (or of a truth as 0 and 1); `whole` says which columns are of integers.

    >>> age = Column("age", "number")
    >>> double = Arithmetic("*", Constant(Fraction(2), "number"), age)
    >>> interval(double, {"age": Declared(bounds=(0, 120))}, {"age": True})
    Interval(lower=Fraction(0, 1), upper=Fraction(240, 1), whole=True)
    """

    def of(part: Expression) -> Interval:
        return interval(part, columns, whole)

    match expression:
        case Column(name, "number"):
            match columns[name].bounds:
                case (Fraction() as lower, Fraction() as upper):
                    return Interval(lower, upper, whole[name])
            return Interval(None, None, whole[name])
        case Constant(Fraction() as value, _):
            return Interval(value, value, value.denominator == 1)
        case Arithmetic(sign, left, right):
            return _arithmetic(sign, of(left), of(right))
        case Case(branches, otherwise):
            return _hull([of(value) for value in (*(value for _, value in branches), otherwise) if _has_value(value)])
        case Coalesce(parts):
            return _hull([of(part) for part in parts if _has_value(part)])
        case Function(name, arguments) if kind_of(expression) == "number":
            return Interval(Fraction(0), None, True) if name == "length" else _function(name, [*map(of, arguments)])
        case Part("year", Column(name, _)) if columns[name].bounds is not None:
            return _years(columns[name])
        case Part(part, _):
            first, last = PART_RANGES.get(part, (None, None))
            return Interval(_fraction(first), _fraction(last), True)
        case Cast(part, "number") if kind_of(part) == "truth":
            return Interval(Fraction(0), Fraction(1), True)
        case _ if kind_of(expression) == "truth":
            return Interval(Fraction(0), Fraction(1), True)
    return Interval(None, None, False)


def _years(declared: Declared) -> Interval:
    match declared.bounds:
        case (datetime() as first, datetime() as last):
            return Interval(Fraction(first.year), Fraction(last.year), True)
    return Interval(None, None, True)


def _arithmetic(sign: ArithmeticSign, left: Interval, right: Interval) -> Interval:
    whole = left.whole and right.whole
    match sign:
        case "+":
            return Interval(_sum(left.lower, right.lower), _sum(left.upper, right.upper), whole)
        case "-":
            return Interval(_sum(left.lower, _minus(right.upper)), _sum(left.upper, _minus(right.lower)), whole)
        case "*":
            return _product(left, right, whole)
        case "/":
            if right.lower is None or right.upper is None or right.lower <= 0 <= right.upper:
                return Interval(None, None, False)
            return _product(left, Interval(1 / right.upper, 1 / right.lower, False), False)


def _product(left: Interval, right: Interval, whole: bool) -> Interval:
    if left.lower is None or left.upper is None or right.lower is None or right.upper is None:
        return Interval(None, None, whole)
    corners = [a * b for a in (left.lower, left.upper) for b in (right.lower, right.upper)]
    return Interval(min(corners), max(corners), whole)


def _function(name: str, parts: list[Interval]) -> Interval:  # noqa: PLR0911 - one case for each function
    first = parts[0]
    whole = all(part.whole for part in parts)
    lowers, uppers = [part.lower for part in parts], [part.upper for part in parts]
    match name:
        case "least":
            known = [end for end in uppers if end is not None]
            return Interval(_smallest(lowers), min(known) if known else None, whole)
        case "greatest":
            known = [end for end in lowers if end is not None]
            return Interval(max(known) if known else None, _largest(uppers), whole)
        case "abs":
            reach = _largest([_minus(first.lower), first.upper])
            if first.lower is not None and first.lower >= 0:
                return first
            if first.upper is not None and first.upper <= 0:
                return Interval(-first.upper, _minus(first.lower), whole)
            return Interval(Fraction(0), reach, whole)
        case "floor":
            return _mapped(first, math.floor)
        case "ceil":
            return _mapped(first, math.ceil)
    return _mapped(first, lambda end: math.floor(end + Fraction(1, 2)))


def _hull(parts: list[Interval]) -> Interval:
    if not parts:
        return Interval(None, None, False)
    lower, upper = _smallest([part.lower for part in parts]), _largest([part.upper for part in parts])
    return Interval(lower, upper, all(part.whole for part in parts))


def _mapped(part: Interval, rounded: Callable[[Fraction], int]) -> Interval:
    ends = [None if end is None else Fraction(rounded(end)) for end in (part.lower, part.upper)]
    return Interval(ends[0], ends[1], True)


def _has_value(part: Expression) -> bool:
    return not (isinstance(part, Constant) and part.value is None)


def _kept(end: End) -> End:
    if end is None or abs(end) > LARGEST_NUMBER or max(abs(end.numerator), end.denominator) > _MOST_DIGITS:
        return None
    return end


def _fraction(value: int | None) -> End:
    return None if value is None else Fraction(value)


def _sum(left: End, right: End) -> End:
    return None if left is None or right is None else left + right


def _minus(end: End) -> End:
    return None if end is None else -end


def _smallest(ends: list[End]) -> End:
    known = [end for end in ends if end is not None]
    return min(known) if len(known) == len(ends) else None


def _largest(ends: list[End]) -> End:
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None
