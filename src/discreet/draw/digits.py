"""Discrete Laplace noise as a top and lower bits, drawn exactly from one list of 64-bit edges.

For q = e^(−1/t) let S be a bit with P(S = 1) = q/(1+q), and G geometric, P(G ≥ j) = q^j. Then X = G
if S = 0, and X = −1 − G if S = 1, has the law DLap(t). The digits of G = H·2^k + M are independent
(PROOF.md), and

    S and H    the top, P(H ≥ h) = Q^h with Q = e^(−2^k/t)
    M < 2^k    P(M = m) ∝ q^m: uniform with a probability p, and else an excess, P(M = m) ∝ q^m −
               q^(2^k − 1)

The list has one number for each top with a uniform M, then one for each value of the high bits of
an excess whose s low bits are uniform, and a last one for an excess whose low bits are not. The top
of an excess is drawn anew.

A number is drawn by inversion: V uniform on (0,1) is an infinite string of bits. Each top has for
itself as many of the 2¹⁶ cells of V as its chance fills, so that 16 bits of V decide almost always.
All numbers share the last cells: there 48 more bits are compared with the edges, and where these
are the edge's own, `coin.decide` reads on. Edges are exact floors, from integers with a bound of
their error, and from balls where that leaves a doubt. There is no float.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.draw.coin import decide, logistic, threshold

FIELD = 16
"""Bits of V that are read first."""

REST = 64 - FIELD
"""Bits of V that are read next."""

_CELL = 2**FIELD - 1

_FIXED = 128
"""Fraction bits of the numbers that give the edges."""

_SLACK = 2**21
"""How far below the exact edge a number in fixed point may be, in units of 2⁻¹²⁸: see `_combined`.
"""

_ROW, _SIDE = 32, 2 * _FIXED // 8
"""How many numbers stand side by side in one integer, and the bytes of each."""

_TAIL = 12
"""The list of tops ends where H reaches 12·T: few draws go beyond it, with a chance below
2·e^(−12).
"""

More = Callable[[], int]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Coin:
    formula: Callable[[], arb]
    edge: int


def _toss(coin: _Coin, more: More) -> bool:
    word = more()
    return decide(coin.formula, word, more) if word == coin.edge else word < coin.edge


def _uniform(bits: int, read: int, width: int, more: More) -> int:
    """A uniform number of so many bits, of which as many as `width` have been read."""
    while width < bits:
        read, width = read << 64 | more(), width + 64
    return read % (1 << bits)


def _coin(formula: Callable[[], arb]) -> _Coin:
    return _Coin(formula, threshold(formula, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """The numbers of a scale: 0 … 2N are tops from −N to N, and those above are excesses."""

    scale: Fraction
    half: int
    """N: the ends of the tops go on."""
    lower: int
    """k: the bits below the top."""
    low: int
    """s: the low bits of an excess; the high bits have 2^(k−s) values."""
    cells: list[int]
    """Of the tops 1, 2, …, 2N − 1: how many cells they and those before them have alone."""
    edges: list[int]
    """⌊2⁶⁴·F⌋ for each edge F of the cells that are shared, rising: a number is how many edges are
    at or below V.
    """
    formula: Callable[[int], arb]
    """The edge F of an index."""
    coins: dict[int, tuple[_Coin, _Coin]]
    """What `_halves` of so many bits gave."""

    def draw(self, more: More) -> int:
        """One exact draw."""
        word = more()
        number = self.number(word & _CELL, more)
        lower = _uniform(self.lower, word >> FIELD, REST, more)
        if number > 2 * self.half:
            return self.excess(number, lower, more) ^ self.new_top(more)
        return self.top(number, more) ^ lower

    def new_top(self, more: More) -> int:
        """What the top of an excess puts into X: a number that is an excess is drawn again."""
        number = self.number(more() & _CELL, more)
        return self.top(number, more) if number <= 2 * self.half else self.new_top(more)

    def number(self, cell: int, more: More) -> int:
        """The number of a V that begins with the 16 bits of `cell`."""
        if cell < self.cells[-1]:
            return 1 + bisect_right(self.cells, cell)
        word = cell << REST | more() >> FIELD
        return self.settled(bisect_right(self.edges, word), word, more)

    def settled(self, number: int, word: int, more: More) -> int:
        """The number of a V whose first 64 bits have so many edges at or below them."""
        if number and self.edges[number - 1] == word:
            return number - decide(lambda: self.formula(number - 1), word, more)
        return number

    def top(self, number: int, more: More) -> int:
        """What a top puts into X: where S is 1, the bits below it are inverted; at the ends H goes
        on by a new one.
        """
        value = number - self.half
        if abs(value) == self.half:
            further = _geometric(self.new_top(more)) >> self.lower
            value += further if number else -further
        return value << self.lower if value >= 0 else (value + 1 << self.lower) - 1

    def excess(self, number: int, uniform: int, more: More) -> int:
        """The bits below the top of a number above those of the tops."""
        high = number - 2 * self.half - 1
        if high + 1 < 1 << self.lower - self.low:
            return high << self.low | uniform % (1 << self.low)
        # the high bits have chances ∝ e^(−l·2^s/t), as those of any draw
        fresh = _geometric(self.draw(more)) % (1 << self.lower) if self.low < self.lower else 0
        return fresh >> self.low << self.low | self._low_excess(more)

    def _low_excess(self, more: More) -> int:
        """A number u < 2^s with chances ∝ q^u − q^(2^s − 1).

        Of u < 2m, the lower half has the chances q^u − q^(m−1), and a constant beside these; the
        upper half has q^m·(q^(u−m) − q^(m−1)). So u is uniform below m, or a coin tells its half,
        and the rest is such a number.
        """
        value = 0
        for bits in range(self.low - 1, 0, -1):
            constant, upper = self._coins(bits)
            if _toss(constant, more):
                return value | _uniform(bits, 0, 0, more)
            if _toss(upper, more):
                value |= 2**bits
        return value

    def _coins(self, bits: int) -> tuple[_Coin, _Coin]:
        if bits not in self.coins:
            self.coins[bits] = _halves(self.scale, bits)
        return self.coins[bits]


def _geometric(draw: int) -> int:
    """G of an X."""
    return draw if draw >= 0 else ~draw


def _halves(scale: Fraction, bits: int) -> tuple[_Coin, _Coin]:
    """For u < 2m, m = 2^bits: whether u is one of the constant part, and else of the upper half."""
    half = 1 << bits

    def constant() -> arb:
        excess = _missing(2 * half / scale) / _missing(1 / scale) - 2 * half * _power(
            (2 * half - 1) / scale
        )
        return half * _power((half - 1) / scale) * _missing(half / scale) / excess

    return _coin(constant), _coin(logistic(-half / scale))  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def digits(scale: Fraction, top_bits: int, high_bits: int) -> Digits:
    """The numbers of tops with a scale T ≤ 2^top_bits, and of excesses with at most so many high
    bits.
    """
    reach = scale / 2**top_bits
    lower = max(0, -(-reach.numerator // reach.denominator) - 1).bit_length()
    rate = 2**lower / scale
    half = -(-_TAIL * rate.denominator // rate.numerator)
    low = max(0, lower - high_bits)
    edges, formula = _edges(scale, half, lower, low)
    # less than the chance of a top: so each keeps a part of the shared cells, and no two edges
    # there are the same
    cells = (np.diff(edges[: 2 * half]) - np.uint64(1) >> np.uint64(REST)).cumsum()
    moved = np.zeros_like(edges)
    moved[0], moved[1 : 2 * half] = cells[-1], cells[-1] - cells
    return Digits(
        scale=scale,
        half=half,
        lower=lower,
        low=low,
        cells=cells.tolist(),
        edges=(edges + (moved << np.uint64(REST))).tolist(),
        formula=lambda index: formula(index) + arb(int(moved[index])) / 2**FIELD,
        coins={},
    )


def _edges(scale: Fraction, half: int, lower: int, low: int) -> tuple[Words, Callable[[int], arb]]:
    """⌊2⁶⁴·F⌋ for each edge F between two numbers, and the formula of an index.

    These are p·q/(1+q)·Q^m for m = N−1, …, 0, and p·(1 − Q^h/(1+q)) for h = 1, …, N. If k > 0,
    there follows for each value l of the high bits p·(n−l)/n + Σ_{i<l} w_i: w_i is the chance of
    high bits i and uniform low bits, of which p/n belongs to a uniform M.
    """
    unit, base = 1 / scale, 1 << lower - low
    rate, step = 2**lower * unit, 2**low * unit

    def uniform(bits: int) -> arb:
        """2^bits·P(M = 2^bits − 1): the part of P(M < 2^bits) in which M is uniform."""
        return (1 << bits) * _power(((1 << bits) - 1) * unit) * _missing(unit) / _missing(rate)

    def formula(index: int) -> arb:
        if index < half:
            return uniform(lower) * _power(unit + (half - 1 - index) * rate) / (1 + _power(unit))
        if index < 2 * half:
            return uniform(lower) * (1 - _power((index - half + 1) * rate) / (1 + _power(unit)))
        high = index - 2 * half
        return uniform(lower) * (base - high) / base + uniform(low) * _missing(
            high * step
        ) / _missing(step)

    part = threshold(lambda: uniform(lower), _FIXED)
    first = threshold(lambda: formula(half - 1), _FIXED)
    tops = _rows(rate, half + 1)
    lows = [
        _combined(0, 0, first, *tops)[half - 1 :: -1],
        _combined(part, 0, first - part, *tops)[1 : half + 1],
    ]
    if lower:
        # the geometric series: p·(n−l)/n + c − c·e^(−l·2^s/t), where c, about T, is below 2⁷
        series = threshold(lambda: uniform(low) / _missing(step) / 2**7, _FIXED) << 7
        count = base if low else base - 1
        lows.append(
            _combined(part + series, -(part >> lower - low), -series, *_rows(step, count))[:count]
        )
    return _floors(np.concatenate(lows), formula), formula


def _floors(lows: Words, formula: Callable[[int], arb]) -> Words:
    """The first 64 bits of edges that lie above `lows`, of two words each, by at most `_SLACK`."""
    edges = lows[:, 1].copy()
    for index in (lows[:, 0] >= 2**64 - _SLACK).nonzero()[0].tolist():
        edges[index] = threshold(lambda index=index: formula(index), 64)  # type: ignore[misc]
    return edges


def _combined(constant: int, slope: int, factor: int, row: int, steps: list[int]) -> Words:
    """constant + slope·m + factor·e^(−rate·m) for m = 0, 1, …, in fixed point: a low and a high
    word of each.

    With a constant 2²⁰ units are taken away, so that none is above the exact number (PROOF.md,
    section 6). Each product is that of 32 numbers m, which stand side by side in one integer.
    """
    lift = (constant << _FIXED) - (_SLACK << _FIXED - 1 if constant else 0)
    line, rise = lift * _ONES + (slope << _FIXED) * _RAMP, (_ROW * slope << _FIXED) * _ONES
    rows = []
    for step in steps:
        rows.append(
            (line + (factor * step >> _FIXED) * row & _ALL).to_bytes(_ROW * _SIDE, "little")
        )
        line += rise
    return np.frombuffer(b"".join(rows), "<u8").reshape(-1, _SIDE // 8)[:, -2:]


def _rows(rate: Fraction, count: int) -> tuple[int, list[int]]:
    """e^(−rate·m) for 32 numbers m from 0 on, side by side, and for every 32nd m of so many."""
    return _side_by_side(_powers(rate, _ROW)), _powers(_ROW * rate, -(-count // _ROW))


def _power(exponent: Fraction) -> arb:
    return arb.exp(arb(-exponent.numerator) / exponent.denominator)


def _missing(exponent: Fraction) -> arb:
    """1 − e^(−exponent)."""
    return -arb.expm1(arb(-exponent.numerator) / exponent.denominator)


def _powers(rate: Fraction, count: int) -> list[int]:
    """e^(−rate·m) for m = 0, 1, …, in fixed point, never above the exact number."""
    factor, power = threshold(lambda: _power(rate), _FIXED), 1 << _FIXED
    powers = []
    for _ in range(count):
        powers.append(power)
        power = power * factor >> _FIXED
    return powers


def _side_by_side(numbers: Iterable[int]) -> int:
    return int.from_bytes(
        b"".join(number.to_bytes(_SIDE, "little") for number in numbers), "little"
    )


_ONES = _side_by_side([1] * _ROW)
_RAMP = _side_by_side(range(_ROW))
_ALL = (1 << 8 * _ROW * _SIDE) - 1
