"""The bounds of an expression, from the declared bounds of its columns.

    [a, b] + [c, d] = [a + c, b + d]      LEAST(x, 10) ≤ 10      x / y only if y cannot be 0

None is no bound. The aggregate clamps to the result, so rows outside the declared bounds do not
weaken the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias

from discreet.ask import expression as row
from discreet.ask.declared import Declared
from discreet.ask.expression import ArithmeticSign, Column, DatePart, Expression
from discreet.ask.kinds import LARGEST_NUMBER, kind_of
from discreet.ask.normal import is_null

End: TypeAlias = Fraction | None

_MOST_DIGITS = 10**60
"""A bound with a longer numerator or denominator comes from long products, and counts as no bound.
"""

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
"""The range of each part of a date; years, and days since 1970, have none."""


@dataclass(frozen=True, slots=True)
class Interval:
    """lower ≤ x ≤ upper, where an end may be None; `whole` if x is an integer."""

    lower: End
    upper: End
    whole: bool

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            end: End = getattr(self, name)
            if end and (
                abs(end) > LARGEST_NUMBER or max(abs(end.numerator), end.denominator) > _MOST_DIGITS
            ):
                object.__setattr__(self, name, None)

    def __neg__(self) -> Interval:
        return Interval(
            _on(lambda ends: -ends[0], self.upper),
            _on(lambda ends: -ends[0], self.lower),
            self.whole,
        )


_ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda end: math.floor(end + Fraction(1, 2)),
}


def interval(  # noqa: PLR0911 - one case for each class
    expression: Expression, columns: Mapping[str, Declared], whole: Mapping[str, bool]
) -> Interval:
    """The interval of a number (a condition counts as 0 or 1); `whole` says which columns hold
    integers.

    >>> double = row.Arithmetic("*", row.Constant(Fraction(2), "number"), Column("age", "number"))
    >>> interval(double, {"age": Declared(bounds=(0, 120))}, {"age": True})
    Interval(lower=Fraction(0, 1), upper=Fraction(240, 1), whole=True)
    """

    def intervals(parts: Sequence[Expression]) -> list[Interval]:
        return [interval(part, columns, whole) for part in parts]

    match expression:
        case Column(name, "number", reading):
            is_whole = whole[name] if reading is None else reading.whole
            match columns[name].bounds:
                case (Fraction() as lower, Fraction() as upper):
                    return Interval(lower, upper, is_whole)
            return Interval(None, None, is_whole)
        case row.Constant(Fraction() as value, _):
            return Interval(value, value, value.denominator == 1)
        case row.Arithmetic(sign, left, right):
            return _arithmetic(sign, *intervals((left, right)))
        case row.Case(branches, otherwise):
            return _hull(
                intervals(
                    [
                        value
                        for value in (*(value for _, value in branches), otherwise)
                        if not is_null(value)
                    ]
                )
            )
        case row.Coalesce(parts):
            return _hull(intervals([part for part in parts if not is_null(part)]))
        case row.Function("length"):
            return Interval(Fraction(0), None, True)
        case row.Function(name, arguments) if kind_of(expression) == "number":
            return _function(name, intervals(arguments))
        case row.Part(part, row.Constant(datetime() as moment)):
            return _part(part, (moment, moment))
        case row.Part(part, moment):
            return _part(part, columns[moment.name].bounds if isinstance(moment, Column) else None)
        case row.Cast(part, "number") if kind_of(part) == "truth":
            return Interval(Fraction(0), Fraction(1), True)
        case _ if kind_of(expression) == "truth":
            return Interval(Fraction(0), Fraction(1), True)
    return Interval(None, None, False)


def _part(part: DatePart, bounds: object) -> Interval:
    smallest, largest = PART_RANGES.get(part, (None, None))
    match part, bounds:
        case "year", (datetime() as first, datetime() as last):
            smallest, largest = first.year, last.year
        case "days", (datetime() as first, datetime() as last):
            smallest, largest = ((end.date() - date(1970, 1, 1)).days for end in (first, last))
    if smallest is None or largest is None:
        return Interval(None, None, True)
    return Interval(Fraction(smallest), Fraction(largest), True)


def _arithmetic(sign: ArithmeticSign, left: Interval, right: Interval) -> Interval:
    match sign:
        case "+" | "-":
            right = right if sign == "+" else -right
            lower, upper = _on(sum, left.lower, right.lower), _on(sum, left.upper, right.upper)
        case "/":
            if right.lower is None or right.upper is None or right.lower <= 0 <= right.upper:
                return Interval(None, None, False)
            return _arithmetic("*", left, Interval(1 / right.upper, 1 / right.lower, False))
        case "*":
            corners = [
                _on(math.prod, a, b)
                for a in (left.lower, left.upper)
                for b in (right.lower, right.upper)
            ]
            lower, upper = _on(min, *corners), _on(max, *corners)
    return Interval(lower, upper, left.whole and right.whole)


def _function(name: str, parts: list[Interval]) -> Interval:
    first = parts[0]
    match name:
        case "greatest":
            lowers = [part.lower for part in parts if part.lower is not None]
            upper = _on(max, *(part.upper for part in parts))
            return Interval(max(lowers, default=None), upper, all(part.whole for part in parts))
        case "least":
            return -_function("greatest", [-part for part in parts])
        case "abs":
            return _function("greatest", [first, -first, Interval(Fraction(0), Fraction(0), True)])
    rounded = _ROUNDED[name]
    return Interval(
        _on(lambda ends: rounded(*ends), first.lower),
        _on(lambda ends: rounded(*ends), first.upper),
        True,
    )


def _hull(parts: list[Interval]) -> Interval:
    if not parts:
        return Interval(None, None, False)
    lower = _on(min, *(part.lower for part in parts))
    upper = _on(max, *(part.upper for part in parts))
    return Interval(lower, upper, all(part.whole for part in parts))


def _on(function: Callable[[list[Fraction]], Fraction | int], *ends: End) -> End:
    """A function of ends, or None if an end is missing."""
    numbers = [end for end in ends if end is not None]
    return Fraction(function(numbers)) if len(numbers) == len(ends) else None
