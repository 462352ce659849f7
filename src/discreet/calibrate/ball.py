"""Real numbers with error bounds: Arb balls [Joh17] in, correctly rounded floats and exact bounds
out.

A formula is a function without arguments. It is evaluated at 128 bits, then 256, and so on until
the answer is certain. Python-flint keeps its precision in a global variable, which another thread
may change between two operations. That makes a ball wider or narrower but never wrong, so no lock
is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx, fmpq

_PRECISIONS = tuple(128 << doubling for doubling in range(12))


def ball(number: Fraction | int) -> arb:
    """The rational number as a ball of the current precision."""
    return arb(fmpq(number.numerator, number.denominator))


def nearest(formula: Callable[[], arb]) -> float:
    """The float nearest to the value of the formula.

    >>> nearest(lambda: ball(Fraction(1, 3)))
    0.3333333333333333
    """
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            value = formula()
            if not value.is_finite():
                continue
            lower, upper = float_of(value.lower()), float_of(value.upper())
        if lower == upper:
            return upper + 0.0  # -0.0 becomes 0.0
    return 0.0 if abs(upper) < sys.float_info.min else upper


def integer_floor(formula: Callable[[], arb]) -> int:
    """The floor of a formula whose value is not an integer."""
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            floor = formula().floor().unique_fmpz()
        if floor is not None:
            return int(floor)
    raise ArithmeticError("the value of the formula is an integer, whose floor no ball can decide")


def upper_bound(formula: Callable[[], arb], bits: int = 128) -> Fraction:
    """A rational number just above the value of the formula."""
    with ctx.workprec(bits):
        return exact_value(formula().upper())  # rounds up: more noise


def lower_bound(formula: Callable[[], arb], bits: int = 128) -> Fraction:
    """A rational number just below the value of the formula."""
    with ctx.workprec(bits):
        return exact_value(formula().lower())


def exact_value(point: arb) -> Fraction:
    """The dyadic rational of a ball without radius."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)


def float_of(point: arb) -> float:
    """The float nearest to a ball without radius; 0.0 or ±inf outside the range of floats."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa == 0 or size < -1080:
        return 0.0
    if size > 1025:
        return float("inf") if mantissa > 0 else float("-inf")
    try:
        # Python rounds a quotient of integers correctly, subnormal or not
        return float(mantissa << exponent) if exponent >= 0 else mantissa / (1 << -exponent)
    except OverflowError:
        return float("inf") if mantissa > 0 else float("-inf")
