"""Numbers, intervals and tables as text, and exact numbers as floats."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import one_line
from discreet.parameters import UNIT

_LONGEST = 1e15
"""Numbers from this size on are written with an exponent."""

MOST_ROWS = 20
"""The most rows of a table that is shown in full."""

MOST_DECIMALS = 12
"""The most decimals of a number."""

_MIDDLE = 92
"""Percent: an interval is written with ± if its shorter side is at least this much of the other."""


def as_float(number: Fraction) -> float:
    """The nearest float, clamped to the largest float so that a large answer does not raise."""
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def as_finite(number: Any) -> Any:
    """A released number or an end of its interval, clamped to the floats: records lack infinity."""
    if isinstance(number, float) and not math.isfinite(number):
        return math.copysign(sys.float_info.max, number)
    return number


def finite(column: NDArray[Any]) -> NDArray[Any]:
    """`as_finite` of a whole column."""
    if column.dtype == np.float64 and not np.isfinite(column).all():
        return np.where(np.isfinite(column), column, np.copysign(sys.float_info.max, column))
    if column.dtype == object:
        column[:] = [as_finite(item) for item in column]
    return column


def or_null(item: Any) -> Any:
    """The item, or None for an infinite end of an interval: JSON has no infinity."""
    return None if isinstance(item, float) and not math.isfinite(item) else item


def shown(number: Fraction) -> str:
    """A parameter with up to four significant digits.

    >>> shown(Fraction(1, 3)), shown(Fraction(48_000)), shown(Fraction(1234567))
    ('0.3333', '48,000', '1,235,000')
    """
    return readable(float(number), 4)


def left_shown(epsilon: Fraction) -> str:
    """The remaining budget, rounded down to a multiple of 10⁻⁹.

    >>> left_shown(Fraction(4, 5)), left_shown(Fraction(2, 3)), left_shown(Fraction(1200))
    ('0.8', '0.666666666', '1,200')
    """
    units = epsilon // UNIT  # rounds down: this much can be spent
    text = f"{units // 10**9:,}.{units % 10**9:09d}"
    return text.rstrip("0").rstrip(".")


def readable(number: float, digits: int) -> str:
    """A number with this many significant digits, and with thousands separators.

    >>> readable(105_432.1, 3), readable(0.012345, 3), readable(3e20, 3)
    ('105,000', '0.0123', '3e+20')
    """
    short = f"{number:.{digits}g}"
    return f"{float(short):,.0f}" if 1000 <= abs(number) < _LONGEST else short


def with_interval(value: Any, low: Any, high: Any) -> str:
    """A number with its interval, both rounded: ± if the number is in the middle, else two ends.

    >>> with_interval(50, 38, 62), with_interval(57, 0, 120), with_interval(7, 7, 7)
    ('50 ± 12', '57 (0 to 120)', '7')
    >>> with_interval(44.9123, 44.5511, 45.2735), with_interval(44.0, 43.0, 45.0)
    ('44.91 ± 0.37', '44 ± 1')
    """
    number, lower, upper, digits = rounded(_column(value), _column(low), _column(high))
    even = is_even(value, low, high)
    return interval_text(number.item(), lower.item(), upper.item(), digits.item(), even=even)


def is_even(value: Any, low: Any, high: Any) -> bool:
    """Whether a number is in the middle of its interval."""
    below, above = value - low, high - value
    return (
        _is_finite(below)
        and _is_finite(above)
        and bool(100 * min(below, above) >= _MIDDLE * max(below, above))
    )


def interval_text(value: Any, low: Any, high: Any, digits: int, *, even: bool) -> str:
    """A rounded number with its interval, in this many decimals; `even` says whether as ±."""
    reach = max(value - low, high - value)
    if reach == 0:
        return _shortest(value, digits)
    if not _is_finite(reach):
        return f"{_shortest(value, digits)} ({_shortest(low, digits)} to {_shortest(high, digits)})"
    if even:
        return f"{decimal_text(value, digits)} ± {decimal_text(reach, digits)}"
    return (
        f"{decimal_text(value, digits)} ({decimal_text(low, digits)} to"
        f" {decimal_text(high, digits)})"
    )


def decimal_text(number: Any, digits: int) -> str:
    """A number with this many decimals and thousands separators; infinity and NaN as in Python."""
    return (
        f"{number:,}"
        if isinstance(number, int) or not _is_finite(number)
        else f"{number:,.{digits}f}"
    )


def _is_finite(number: Any) -> bool:
    """Whether a number is finite; an integer may be too large for `math.isfinite`."""
    return isinstance(number, int) or math.isfinite(number)


def _shortest(number: Any, digits: int) -> str:
    """The same without trailing zeros."""
    text = decimal_text(number, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(
    value: NDArray[Any], low: NDArray[Any], high: NDArray[Any], decimals: int | None = None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Numbers and the ends of their intervals, rounded for readers, and the decimals of each.

    This rule holds for everything that is shown, printed, and written to CSV and spreadsheets.
    Decimals end at the second digit of the error, and whole numbers have none. An exact number has
    ten digits, and a number of unknown error six. Numbers are rounded to the nearest and ends
    outward, so that the confidence does not fall. `decimals` overrides the rule; integers do not
    change.
    """
    columns = (value, low, high)
    if all(_is_whole(column) for column in columns):
        return *columns, np.zeros(len(value), np.int64)
    value, low, high = (_floats(column) for column in columns)
    digits = (
        decimals_of(value, low, high)
        if decimals is None
        else np.full(len(value), decimals, np.int64)
    )
    near, exact = _round(value, digits), (low == value) & (value == high)
    below, above = (
        np.where(exact, near, _round(end, digits, side)) for end, side in ((low, -1), (high, 1))
    )
    return near, below, above, digits


def decimals_of(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The decimals of numbers: up to the second digit of the error."""
    with np.errstate(all="ignore"):
        reach = np.maximum(value - low, high - value)
        digit = np.where(
            reach > 0, np.where(np.isfinite(reach), reach / 10, abs(value) / 1e5), abs(value) / 1e9
        )
        digits = np.where((digit > 0) & np.isfinite(digit), np.ceil(-np.log10(digit) - 1e-9), 0)
        whole = np.logical_and.reduce([np.rint(column) == column for column in (value, low, high)])
    return np.where(whole, 0, np.clip(digits, 0, MOST_DECIMALS)).astype(np.int64)


def _round(
    numbers: NDArray[np.float64], digits: NDArray[np.int64], side: int = 0
) -> NDArray[np.float64]:
    """The numbers rounded to the nearest decimal, or to a side; too large ones do not change."""
    unit = 10.0**digits
    with np.errstate(all="ignore"):
        steps = np.rint(numbers * unit)
        steps += side * (side * (steps / unit) < side * numbers)
        return np.where(abs(steps) < 2**53, steps / unit, numbers)


def _is_whole(column: NDArray[Any]) -> bool:
    return column.dtype == np.int64 or all(isinstance(item, int | None) for item in column.tolist())


def _floats(column: NDArray[Any]) -> NDArray[np.float64]:
    if column.dtype != object:
        return column.astype(np.float64)
    return np.array(
        [math.nan if item is None else as_float(item) for item in column.tolist()], np.float64
    )


def _column(number: Any) -> NDArray[Any]:
    column = np.empty(1, object)
    column[0] = number.item() if isinstance(number, np.generic) else number
    return column


def shortened(
    headings: Sequence[str], rows: Sequence[Sequence[str]], most: int | None = MOST_ROWS
) -> tuple[list[list[str]], list[str]]:
    """The headings and rows to show of a table, and the lines below it.

    Only the first and the last rows are shown of a table with more than `most` rows. Cells are
    untrusted text, so each is escaped and on one line.
    """
    cut = most is not None and len(rows) > most
    half = (most or 0) // 2
    visible = [*rows[:half], ["…"] * len(headings), *rows[-half:]] if cut else rows
    return [[one_line(cell) for cell in row] for row in (headings, *visible)], (
        [f"{len(rows):,} rows"] if cut else []
    )


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in plain text."""
    table, below = shortened(headings, rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return [*lines, *below]
