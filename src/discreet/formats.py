"""Numbers, intervals and tables as text, and exact numbers as floats for a reader."""

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
"""From here on a number has too many digits to be read in full."""

MOST_ROWS = 20
"""Rows of a table up to which it is shown whole."""

_MIDDLE = 0.92
"""An interval that reaches less than that share of one side to the other is told by its ends."""


def as_float(number: Fraction) -> float:
    """The nearest float, held at the largest: a large answer must not raise."""
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def as_finite(number: Any) -> Any:
    """A released number or an end of its interval, held at the largest float: a record has no infinity."""
    if isinstance(number, float) and not math.isfinite(number):
        return math.copysign(sys.float_info.max, number)
    return number


def finite(column: NDArray[Any]) -> NDArray[Any]:
    """The same of a whole column."""
    if column.dtype == np.float64 and not np.isfinite(column).all():
        return np.where(np.isfinite(column), column, np.copysign(sys.float_info.max, column))
    if column.dtype == object:
        column[:] = [as_finite(item) for item in column]
    return column


def or_null(item: Any) -> Any:
    """JSON has no infinity: an end that is not there is null."""
    return None if isinstance(item, float) and not math.isfinite(item) else item


def shown(number: Fraction) -> str:
    """A parameter as a reader sees it: up to four significant digits.

    >>> shown(Fraction(1, 3)), shown(Fraction(48_000)), shown(Fraction(1234567))
    ('0.3333', '48,000', '1,235,000')
    """
    return readable(float(number), 4)


def left_shown(epsilon: Fraction) -> str:
    """What is left of a budget, to the last unit of 10⁻⁹ that can be asked for.

    >>> left_shown(Fraction(4, 5)), left_shown(Fraction(2, 3)), left_shown(Fraction(1200))
    ('0.8', '0.666666666', '1,200')
    """
    units = epsilon // UNIT  # rounds down: so much can be spent
    text = f"{units // 10**9:,}.{units % 10**9:09d}"
    return text.rstrip("0").rstrip(".")


def readable(number: float, digits: int) -> str:
    """A number with so many significant digits, large ones in full with their thousands apart.

    >>> readable(105_432.1, 3), readable(0.012345, 3), readable(3e20, 3)
    ('105,000', '0.0123', '3e+20')
    """
    short = f"{number:.{digits}g}"
    return f"{float(short):,.0f}" if 1000 <= abs(number) < _LONGEST else short


def with_interval(value: float, low: float, high: float) -> str:
    """A number with its interval: ± where it lies in the middle of it, else its ends.

    >>> with_interval(50, 38, 62), with_interval(57, 0, 120), with_interval(7, 7, 7)
    ('50 ± 12', '57 (0 to 120)', '7')
    """
    reach, other = max(value - low, high - value), min(value - low, high - value)
    if reach == 0:
        return rounded(value, reach)
    if other >= _MIDDLE * reach:
        return f"{rounded(value, reach)} ± {rounded(reach, reach)}"
    return f"{rounded(value, reach)} ({rounded(low, reach)} to {rounded(high, reach)})"


def rounded(number: float, reach: float) -> str:
    """A number with as many decimals as its error has meaning: two digits of the error."""
    if not math.isfinite(number) or not math.isfinite(reach):
        return f"{number:,g}"
    if isinstance(number, int | np.integer) or (reach >= 10 and float(number).is_integer()):
        return f"{number:,.0f}"
    digits = 1 - math.floor(math.log10(reach)) if reach > 0 else 6
    return f"{number:,.{min(max(digits, 0), 12)}f}"


def shortened(
    headings: Sequence[str], rows: Sequence[Sequence[str]], most: int | None = MOST_ROWS
) -> tuple[list[list[str]], list[str]]:
    """The headings and the rows that are shown of a table, and what is said below it.

    Of more than `most` rows only the first and the last are shown. A cell may come from anywhere: none can command a
    terminal, and each is one line.
    """
    cut = most is not None and len(rows) > most
    half = (most or 0) // 2
    some = [*rows[:half], ["…"] * len(headings), *rows[-half:]] if cut else rows
    return [[one_line(cell) for cell in row] for row in (headings, *some)], [f"{len(rows):,} rows"] if cut else []


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in plain text."""
    table, below = shortened(headings, rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return [*lines, *below]
