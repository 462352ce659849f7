"""Discrete Laplace noise as three independent digits, each drawn exactly from a short list of 64-bit edges.

For q = e^(−1/t) let S be a bit with P(S = 1) = q/(1+q), and G geometric, P(G ≥ j) = q^j. Then X = G if S = 0, and
X = −1 − G if S = 1, has the law DLap(t). The digits of G = H·2^k + L·2^s + U are independent (PROOF.md), and

    S and H    the top, P(H ≥ h) = Q^h with Q = e^(−2^k/t)
    L < n      the middle digit, P(L = l) ∝ r^l with r = e^(−2^s/t)
    U < 2^s    P(U = u) ∝ q^u: uniform except with probability about 2^s/2t, which is one more value of the middle digit

Small scales need the top alone. Top and middle are drawn by inversion: V is uniform on (0,1), an infinite string of
bits, and the digit is the number of edges at or below V. Almost always 16 bits of V decide; if an edge lies in their
cell, 48 more bits decide; if these equal the edge's own bits, `coin.decide` reads further bits. Edges are exact floors,
computed with integers of bounded error, and with balls where that bound leaves a doubt. No floats are used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from discreet.draw.coin import decide, exponential, logistic, threshold

FIELD = 16
"""The bits of V that are read first."""

_CELL = 2**FIELD - 1

_FIXED = 128
"""Fraction bits of the recurrences that give the edges."""

_SLACK = 2**17
"""The largest error of a recurrence, below the exact edge, in units of 2⁻¹²⁸: see `_top` and `_middle`."""

_TAIL = 12
"""The top's list ends where H reaches 12·T: e^(−12) < 2⁻¹⁷, so larger values are in the outermost cells."""

More = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """A distribution on 0, 1, …: the number of edges at or below V."""

    edges: list[int]
    """⌊2⁶⁴·F⌋ for each edge F, increasing."""
    cells: list[int]
    """The first 16 bits of each edge."""
    formula: Callable[[int], arb]
    """The edge of an index."""

    def index(self, cell: int, more: More) -> int:
        """The digit of a V that begins with the 16 bits of `cell`."""
        index = bisect_right(self.cells, cell)
        if not index or self.cells[index - 1] != cell:
            return index
        word = cell << 48 | more() >> FIELD
        return self.settled(bisect_right(self.edges, word), word, more)

    def settled(self, index: int, word: int, more: More) -> int:
        """The digit of a V that begins with the 64 bits of `word`, which has `index` edges at or below it."""
        if index and self.edges[index - 1] == word:
            return index - decide(lambda: self.formula(index - 1), word, more)
        return index


@dataclass(frozen=True, slots=True)
class _Coin:
    formula: Callable[[], arb]
    edge: int


def _toss(coin: _Coin, more: More) -> bool:
    word = more()
    return decide(coin.formula, word, more) if word == coin.edge else word < coin.edge


def _uniform(bits: int, read: int, width: int, more: More) -> int:
    """A uniform number of this many bits, of which `width` were read before."""
    while width < bits:
        read, width = read << 64 | more(), width + 64
    return read % (1 << bits)


def _coin(formula: Callable[[], arb]) -> _Coin:
    return _Coin(formula, threshold(formula, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """The digits of a scale."""

    scale: Fraction
    top: Digit
    half: int
    """N: the top counts from −N to N, and `end_value` continues at the ends."""
    middle: Digit | None
    base: int
    """n; this value of the middle digit means that U is not uniform."""
    low: int
    """s: the bits of U."""
    lower: int
    """k: all bits below the top."""
    coins: dict[int, tuple[_Coin, ...]]
    """The results of `_continuing` (under 0) and of `_halves` (under the number of bits)."""

    def top_value(self, index: int) -> int:
        """The contribution of the top to X; if S is 1, all bits below it are inverted."""
        number = index - self.half
        return number << self.lower if number >= 0 else (number + 1 << self.lower) - 1

    def end_value(self, index: int, more: More) -> int:
        """The contribution of an end of the top's list to X: beyond it, coins decide how far H continues."""
        beyond = 0
        (continuing,) = self._coins(0)
        while _toss(continuing, more):
            beyond += 1
        return self.top_value(index + beyond if index else -beyond)

    def draw(self, more: More) -> int:
        """One exact draw."""
        word = more()
        index = self.top.index(word & _CELL, more)
        value = self.top_value(index) if 0 < index < 2 * self.half else self.end_value(index, more)
        if self.middle is None:
            return value
        digit = self.middle.index(word >> FIELD & _CELL, more)
        return value ^ self.lower_digits(digit, _uniform(self.low, word >> 2 * FIELD, 64 - 2 * FIELD, more), more)

    def lower_digits(self, digit: int, uniform: int, more: More) -> int:
        """The middle digit and U."""
        if digit < self.base:
            return digit << self.low | uniform
        while digit == self.base:
            digit = self.middle.index(more() & _CELL, more)  # type: ignore[union-attr]
        return digit << self.low | self._excess(more)

    def _excess(self, more: More) -> int:
        """A number u < 2^s with probabilities ∝ q^u − q^(2^s − 1), the excess of U over the uniform distribution.

        Of u < 2m, the lower half has the probabilities q^u − q^(m−1) plus a constant; the upper half has
        q^m·(q^(u−m) − q^(m−1)). So u is uniform below m, or a coin decides its half and the rest is such a number.
        """
        excess = 0
        for bits in range(self.low - 1, 0, -1):
            constant, upper = self._coins(bits)
            if _toss(constant, more):
                return excess | _uniform(bits, 0, 0, more)
            if _toss(upper, more):
                excess |= 2**bits
        return excess

    def _coins(self, bits: int) -> tuple[_Coin, ...]:
        if bits not in self.coins:
            self.coins[bits] = _halves(self.scale, bits) if bits else (_continuing(self.scale, self.lower),)
        return self.coins[bits]


def _continuing(scale: Fraction, lower: int) -> _Coin:
    return _coin(exponential(2**lower / scale))  # type: ignore[arg-type]


def _halves(scale: Fraction, bits: int) -> tuple[_Coin, _Coin]:
    """For numbers below 2m, m = 2^bits: the coins of the constant part and, otherwise, of the upper half."""
    half = 1 << bits

    def constant() -> arb:
        excess = _missing(2 * half / scale) / _missing(1 / scale) - 2 * half * _power((2 * half - 1) / scale)
        return half * _power((half - 1) / scale) * _missing(half / scale) / excess

    return _coin(constant), _coin(logistic(-half / scale))  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def digits(scale: Fraction, top_bits: int, middle_bits: int) -> Digits:
    """Digits whose top has a scale T ≤ 2^top_bits, and whose middle digit has at most `middle_bits` bits."""
    reach = scale / 2**top_bits
    lower = max(0, -(-reach.numerator // reach.denominator) - 1).bit_length()
    rate = 2**lower / scale
    half = -(-_TAIL * rate.denominator // rate.numerator)
    bits = min(lower, middle_bits)
    return Digits(
        scale=scale,
        top=_top(scale, rate, half),
        half=half,
        middle=_middle(scale, lower - bits, 2**bits) if lower else None,
        base=2**bits,
        low=lower - bits,
        lower=lower,
        coins={},
    )


def _top(scale: Fraction, rate: Fraction, half: int) -> Digit:
    """The edges are q/(1+q)·Q^m for m = N−1, …, 0, of X < −m·2^k, and 1 − Q^h/(1+q) for h = 1, …, N, of X < h·2^k."""

    def formula(index: int) -> arb:
        if index < half:
            return _power(1 / scale + (half - 1 - index) * rate) / (1 + _power(1 / scale))
        return 1 - _power((index - half + 1) * rate) / (1 + _power(1 / scale))

    below = _powers(lambda: formula(half - 1), rate, half)
    above = _powers(lambda: 1 - formula(half - 1), rate, half + 1)
    # a power is too small by at most 2m + 1 units: each step adds one unit for the factor and one for the floor
    return _digit(below[::-1] + [2**_FIXED - power - _SLACK for power in above[1:]], formula)


def _middle(scale: Fraction, low: int, base: int) -> Digit:
    """The edges are p·(1 − r^l)/(1 − r^n) for l = 1, …, n: sums of the probabilities of L, if U is uniform."""
    rate = 2**low / scale

    def formula(index: int) -> arb:
        uniform = (1 << low) * _power(Fraction((1 << low) - 1) / scale) * _missing(1 / scale) / _missing(rate)
        return uniform * _missing((index + 1) * rate) / _missing(base * rate)

    sums = [0]
    for power in _powers(lambda: formula(0), rate, base if low else base - 1):
        sums.append(sums[-1] + power)  # a sum of l powers is too small by at most l² ≤ 2¹⁶ units
    return _digit(sums[1:], formula)


def _power(exponent: Fraction) -> arb:
    return arb.exp(arb(-exponent.numerator) / exponent.denominator)


def _missing(exponent: Fraction) -> arb:
    """1 − e^(−exponent)."""
    return -arb.expm1(arb(-exponent.numerator) / exponent.denominator)


def _powers(first: Callable[[], arb], rate: Fraction, count: int) -> list[int]:
    """first·e^(−rate·m) for m = 0, 1, …, in fixed point, never above the exact number."""
    factor, power = threshold(lambda: _power(rate), _FIXED), threshold(first, _FIXED)
    powers = []
    for _ in range(count):
        powers.append(power)
        power = power * factor >> _FIXED
    return powers


def _digit(lows: list[int], formula: Callable[[int], arb]) -> Digit:
    """The digit whose edges, in fixed point, lie above `lows` by at most `_SLACK`."""
    edges = [low >> 64 for low in lows]
    for index, low in enumerate(lows):
        if low + _SLACK >> 64 != edges[index]:
            edges[index] = threshold(lambda index=index: formula(index), 64)  # type: ignore[misc]
    return Digit(edges=edges, cells=[edge >> 48 for edge in edges], formula=formula)
