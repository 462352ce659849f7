"""Exact biased coins: heads with probability p, for a rational p or an irrational p given by a
formula.

    heads  ⇔  V < p,      V uniform on (0,1), an infinite string of bits read 64 at a time

After w bits, V lies in [b, b+1)/2^w. Let T = ⌊2^w·p⌋, an exact integer (Arb balls [Joh17]). Then b
< T is heads, b > T is tails, and only b = T needs 64 more bits. (b = T is tails if 2^w·p is an
integer.) So every string of bits is decided as the real numbers V and p decide it: the probability
is exact.

`decide` is this rule. `flips` tosses many coins: T is computed once for the first word, words are
compared as unsigned integers without floats, and a word equal to T (probability 2⁻⁶⁴) is passed to
`decide`. Formulas must have irrational values in (0,1), as e^(−x) and 1/(1+e^(−x)) have for every
rational x ≠ 0 (Lindemann).

The time is not constant: a tie needs more bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from discreet.calibrate.ball import ball
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.noted import heard, note
from discreet.errors import InvalidParameter

Chance: TypeAlias = Fraction | Callable[[], arb]
"""A rational number in [0, 1], or a formula of an irrational number strictly between 0 and 1."""

_WORD = 64
_BLOCK = 2**17
"""Words per pass, 1 MiB: small enough for the caches."""

_SPARE_BITS = 64
"""Precision beyond the width at the first try: a ball this fine almost never contains an integer.
"""

_DOUBLINGS = 16
"""Attempts at a floor: an irrational number is decided long before, but a rational number never
would be.
"""


def exponential(exponent: Fraction) -> Chance:
    """The probability e^(−exponent), for an exponent of at least 0."""
    if exponent < 0:
        raise InvalidParameter(f"exponent must not be negative, got {exponent}")
    return (lambda: arb.exp(-ball(exponent))) if exponent else Fraction(1)


@dataclass(frozen=True, slots=True)
class Logistic:
    """The probability e^x/(1+e^x), whose log-odds are x."""

    exponent: Fraction

    def __call__(self) -> arb:
        return 1 / (1 + (-ball(self.exponent)).exp())


def logistic(epsilon: Fraction) -> Chance:
    """The probability e^ε/(1+e^ε) of a true answer in randomized response; ε may have any sign."""
    return Logistic(epsilon) if epsilon else Fraction(1, 2)


def flips(chance: Chance, count: int, *, entropy: Entropy | None = None) -> NDArray[np.bool_]:
    """Independent exact tosses of one coin."""
    entropy = heard(entropy or keystream())
    edge = threshold(chance, _WORD)
    heads = np.empty(count, np.bool_)
    words = np.empty(min(count, _BLOCK), np.int64)
    for start in range(0, count, _BLOCK):
        block = heads[start : start + _BLOCK]
        entropy.fill(words[: block.size])
        unsigned = words[: block.size].view(np.uint64)
        np.less(unsigned, edge, block)
        for index in np.flatnonzero(unsigned == edge).tolist():
            block[index] = decide(chance, edge, entropy.more)
    note("coin", chance, heads, entropy=entropy)
    return heads


def decide(chance: Chance, word: int, more: Callable[[], int]) -> bool:
    """Whether V < p for a V that begins with the 64 bits of `word`; `more` is called only while
    this is undecided.
    """
    bits, width = word, _WORD
    while True:
        edge = threshold(chance, width)
        if bits != edge:
            return bits < edge
        if isinstance(chance, Fraction) and (chance.numerator << width) % chance.denominator == 0:
            return False
        bits, width = (bits << _WORD) | more(), width + _WORD


def threshold(chance: Chance, width: int) -> int:
    """⌊2^width · p⌋.

    >>> threshold(Fraction(1, 3), 64), threshold(exponential(Fraction(1000)), 64)
    (6148914691236517205, 0)
    """
    if isinstance(chance, Fraction):
        if not 0 <= chance <= 1:
            raise InvalidParameter(f"a chance must lie between 0 and 1, got {chance}")
        return (chance.numerator << width) // chance.denominator
    for doubling in range(_DOUBLINGS):
        with ctx.workprec((width + _SPARE_BITS) << doubling):
            scaled = chance() * arb((1, width))
            # 0 < p < 1, so the floor is one of 0 … 2^width − 1 however close to an end the ball
            # lies
            if abs(scaled) < 1:
                return 0
            if abs(scaled - arb((1, width))) < 1:
                return (1 << width) - 1
            floor = scaled.floor().unique_fmpz()
        if floor is not None:
            return int(floor)
    raise ArithmeticError(
        "the value of the formula is a rational number, whose floor no ball can decide"
    )


def below(limit: int, entropy: Entropy) -> int:
    """A uniform integer in [0, limit), by rejection: words beyond the last multiple of `limit` are
    drawn again.
    """
    if not 1 <= limit <= 2**_WORD:
        raise InvalidParameter(f"limit must lie between 1 and 2⁶⁴, got {limit}")
    fair = 2**_WORD - 2**_WORD % limit
    while True:
        word = entropy.more()
        if word < fair:
            return word % limit
