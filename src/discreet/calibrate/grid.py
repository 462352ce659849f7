"""The public grid on which every released number lies.

Integers have step 1, at no cost. A float x is rounded to the nearest multiple of a step g = 2^e
that depends on public parameters alone; two answers that differ by at most Δ in L1 then differ by
at most Δ + changes·g, where `changes` is the number of coordinates that one unit can move. The
scale in steps is the exact rational number

    t = (Δ + changes·g) / (g·ε)

With a = ⌊log₂(Δ/ε)⌋ and b = ⌊log₂(Δ/changes)⌋ the exponent is

    e = max( min(a, b) − 20, min(a − 30, b − 7) )

which is a step of 2⁻²⁰ of the noise and of the sensitivity. Where t would exceed 2³⁰ (many
coordinates, tiny ε), the grid is coarser, but the noise grows by at most 1/128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet.errors import InvalidParameter
from discreet.parameters import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A public step 2^exponent, and the noise scale in steps."""

    exponent: int
    sensitivity: Fraction
    """Δ on the grid, including rounding, in the unit of the answer."""
    scale: Fraction
    """t, in steps."""

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring released numbers."""
        return Fraction(2) ** self.exponent


def floor_log2(number: Fraction) -> int:
    """⌊log₂ number⌋, exactly.

    >>> floor_log2(Fraction(1, 3)), floor_log2(Fraction(8))
    (-2, 3)
    """
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if number >= Fraction(2) ** guess else guess - 1


def integer_grid(sensitivity: Fraction, epsilon: Fraction) -> Grid:
    """The grid of integer answers."""
    return Grid(exponent=0, sensitivity=sensitivity, scale=sensitivity / epsilon)


def float_grid(sensitivity: Fraction, epsilon: Fraction, changes: int) -> Grid:
    """The grid of float answers.

    >>> float_grid(Fraction(1), Fraction(1), 1).exponent
    -20
    """
    if changes < 1:
        raise InvalidParameter(f"changes must be at least 1, got {changes}")
    noise, moved = floor_log2(sensitivity / epsilon), floor_log2(sensitivity / changes)
    exponent = max(min(noise, moved) - 20, min(noise - 30, moved - 7))
    step = Fraction(2) ** exponent
    widened = sensitivity + changes * step  # rounds up: more noise
    return Grid(exponent=exponent, sensitivity=widened, scale=widened / step / epsilon)


@lru_cache(maxsize=256)
def grid_of(whole: bool, sensitivity: Fraction, epsilon: Fraction, changes: int) -> Grid:
    """The grid of integers or floats, cached because the same parameters come again and again."""
    return (
        integer_grid(sensitivity, epsilon) if whole else float_grid(sensitivity, epsilon, changes)
    )


@lru_cache(maxsize=512)
def public_step(scale: Fraction, epsilon: Fraction, changes: int) -> int:
    """The step, in grid units, to which a total is rounded before noise of this scale is added."""
    return int(2 ** max(0, floor_log2(scale * epsilon / changes) - 20))


_SMALLEST, _LARGEST = -1022, 1023
"""The exponents of the smallest normal double, whose inverse is a double, and of the largest."""


@dataclass(frozen=True, kw_only=True)
class ValueGrid:
    """The integers that represent the values of a column: a value x is ⌊clamp(x)/step + ½⌋, between
    lower and upper.

    The grid depends on the declared bounds alone. They are rounded outward, so `width` covers their
    range.
    """

    exponent: int
    lower: int
    upper: int
    exact: bool
    """Whether every value of the column lies on the grid, so that no value is rounded."""

    def __post_init__(self) -> None:
        if not _SMALLEST <= self.exponent <= _LARGEST:  # as in a release that was read from a file
            raise InvalidParameter(
                f"the exponent of a grid must be that of a double, got {quote(self.exponent)}"
            )

    @cached_property
    def step(self) -> Fraction:
        """The distance between two values on the grid."""
        return Fraction(2) ** self.exponent

    @cached_property
    def width(self) -> int:
        """R: the range in steps."""
        return self.upper - self.lower

    @property
    def half_step(self) -> float:
        """How far a value is rounded at most, in the units of the data."""
        return 0.0 if self.exact else float(self.step) / 2

    def point(self, value: Fraction) -> int:
        """The grid point of a declared value, clamped to the ends."""
        return min(max(math.floor(value / self.step + Fraction(1, 2)), self.lower), self.upper)

    @property
    def middle(self) -> int:
        """The point that stands for a missing value unless one is declared."""
        return (self.lower + self.upper) // 2


@lru_cache(maxsize=4096)  # the parameters are public, and a plan asks many times
def value_grid(bounds: tuple[Fraction, Fraction], *, bits: int, whole: bool = False) -> ValueGrid:
    """The finest grid with about 2^bits steps between the bounds; step 1 for integers that fit.

    >>> value_grid((Fraction(0), Fraction(120)), bits=30).step
    Fraction(1, 16777216)
    >>> value_grid((Fraction(0), Fraction(120)), bits=30, whole=True).width
    120
    """
    lower, upper = bounds
    exponent = floor_log2(upper - lower) - bits
    # a double near the larger bound has 53 bits: finer steps would hold no doubles, and x/step + ½
    # would not be exact
    exponent = max(exponent, floor_log2(max(abs(lower), abs(upper))) - 50, _SMALLEST)
    exact = whole and exponent <= 0 and lower.denominator == upper.denominator == 1
    exponent = 0 if exact else exponent
    step = Fraction(2) ** exponent
    return ValueGrid(
        exponent=exponent,
        lower=math.floor(lower / step),
        upper=math.ceil(upper / step),
        exact=exact,
    )
