"""The second verification: the fast sampler and a slow reference see the same bits and give the same integers.

The reference is written from PROOF.md: it compares the bits of V with thresholds of 320 bits that mpmath computes, one
draw after the other, and shares with the code under test only the order in which bits are read. Deterministic given the
words, so there is no false alarm. One wrong integer in the 2.1 million fails it.
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.draw import vector
from discreet.draw.vector import draw_one, fill
from scripted import Replayed

SCALES = [Fraction(1, 50), Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(20)]
SCALES += [Fraction(100), Fraction(2**10, 3), Fraction(12345, 7), Fraction(2**20), Fraction(2**24, 5), Fraction(2**28)]
SCALES += [Fraction(2**31), Fraction(2**40)]
WIDTH = 320
FEW_OPEN = vector._FEW_OPEN


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


class Reference:
    """DLap(scale) by its digits: T ≤ 2^top, a middle digit of up to `middle` bits, and uniform bits below."""

    def __init__(self, scale: Fraction, top: int, middle: int) -> None:
        lower = 0
        while scale / 2**lower > 2**top:
            lower += 1
        bits = min(lower, middle)
        self.scale, self.lower, self.low, self.base = scale, lower, lower - bits, 2**bits
        rate = 2**lower / scale
        self.half = -(-12 // rate)
        with mpmath.workdps(110):
            q, r = power(1 / scale), power(2**self.low / scale)
            edges = [q * power(m * rate) / (1 + q) for m in range(self.half)][::-1]
            edges += [1 - power(h * rate) / (1 + q) for h in range(1, self.half + 1)]
            self.top = [self.fixed(edge) for edge in edges]
            uniform = 2**self.low * power((2**self.low - 1) / scale) * (1 - q) / (1 - r)
            count = self.base if self.low else self.base - 1
            self.middle = [self.fixed(uniform * (1 - r**n) / (1 - r**self.base)) for n in range(1, count + 1)]

    @staticmethod
    def fixed(number: mpmath.mpf) -> int:
        return int(mpmath.floor(number * mpmath.mpf(2) ** WIDTH))

    def settle(self, edges: list[int], bits: int, width: int, more: Callable[[], int]) -> int:
        """How many edges lie below a V of which so many bits are known, reading 64 at a time while that is open."""
        while True:
            below = bisect_right(edges, bits << WIDTH - width)
            if below == bisect_right(edges, (bits + 1 << WIDTH - width) - 1):
                return below
            bits, width = bits << 64 | more(), width + 64

    def open(self, edges: list[int], cell: int) -> bool:
        return bisect_right(edges, cell << WIDTH - 16) != bisect_right(edges, (cell + 1 << WIDTH - 16) - 1)

    def toss(self, chance: Callable[[], mpmath.mpf], more: Callable[[], int]) -> bool:
        with mpmath.workdps(110):
            return self.settle([self.fixed(chance())], more(), 64, more) == 0

    def top_number(self, index: int, more: Callable[[], int]) -> int:
        """S and H as one number, −1 − H where S is 1."""
        number = index - self.half
        if index in (0, 2 * self.half):
            while self.toss(lambda: power(2**self.lower / self.scale), more):
                number += 1 if index else -1
        return number

    def excess(self, more: Callable[[], int]) -> int:
        """A number below 2^s with chances ∝ q^u − q^(2^s − 1), from the highest bit to the lowest."""
        found = 0
        for bits in range(self.low - 1, 0, -1):
            if self.toss(lambda bits=bits: self.constant(2**bits), more):
                return found + self.uniform(bits, 0, 0, more)
            if self.toss(lambda bits=bits: 1 / (1 + 1 / power(2**bits / self.scale)), more):
                found += 2**bits
        return found

    def constant(self, half: int) -> mpmath.mpf:
        """Of the chances of the numbers below 2m, the part that is constant on those below m, and 0 on the others."""
        q, least = power(1 / self.scale), power((2 * half - 1) / self.scale)
        total = (1 - q * least) / (1 - q) - 2 * half * least
        return half * (power((half - 1) / self.scale) - least) / total

    @staticmethod
    def uniform(bits: int, read: int, width: int, more: Callable[[], int]) -> int:
        while width < bits:
            read, width = read << 64 | more(), width + 64
        return read % 2**bits

    def number(self, top: int, digit: int, uniform: int, more: Callable[[], int]) -> int:
        """X of its digits."""
        if digit == self.base:
            while digit == self.base:
                digit = self.first(self.middle, more() % 2**16, more)
            uniform = self.excess(more)
        size = (top if top >= 0 else -1 - top) * 2**self.lower + digit * 2**self.low + uniform
        return size if top >= 0 else -1 - size

    def first(self, edges: list[int], cell: int, more: Callable[[], int]) -> int:
        if not self.open(edges, cell):
            return bisect_right(edges, cell << WIDTH - 16)
        return self.settle(edges, cell << 48 | more() >> 16, 64, more)


def read(entropy: Replayed, count: int, dtype: type) -> list[int]:
    words = np.empty(-(-count * np.dtype(dtype).itemsize // 8), np.int64)
    entropy.fill(words)
    return words.view(dtype)[:count].tolist()


def reference(scale: Fraction, count: int, entropy: Replayed) -> list[int]:
    law = Reference(scale, *vector._BITS)
    levels = [law.top, law.middle] if law.lower else [law.top]
    low_type = np.uint8 if law.low <= 8 else np.uint16 if law.low <= 16 else np.uint64
    numbers: list[int] = []
    for start in range(0, count, vector.BLOCK):
        size = min(count - start, vector.BLOCK)
        fields = read(entropy, len(levels) * size, np.uint16)
        columns = [fields[level * size : (level + 1) * size] for level in range(len(levels))]
        uniform = [bits % 2**law.low for bits in read(entropy, size, low_type)] if law.low else [0] * size
        draws: list[list[int]] = []
        for level, (edges, column) in enumerate(zip(levels, columns, strict=True)):
            waiting = [index for index, cell in enumerate(column) if law.open(edges, cell)]
            found = [bisect_right(edges, cell << WIDTH - 16) for cell in column]
            if level == 1:  # cells that lie beyond all edges are open, too: the last digit is none
                waiting = [i for i, cell in enumerate(column) if law.open(edges, cell) or found[i] == law.base]
            if len(waiting) < FEW_OPEN:
                for index in waiting:
                    found[index] = law.first(edges, column[index], entropy.more)
            else:
                for index, word in zip(waiting, read(entropy, len(waiting), np.uint64), strict=True):
                    found[index] = law.settle(edges, column[index] << 48 | word >> 16, 64, entropy.more)
            if level == 0:
                found = [law.top_number(index, entropy.more) for index in found]
            draws.append(found)
        lower = draws[1] if len(draws) > 1 else [0] * len(draws[0])
        numbers += map(lambda *digits: law.number(*digits, entropy.more), draws[0], lower, uniform)
    return numbers


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("count", [500, 140_000])
def test_fast_and_reference_agree_on_every_word(scale, count, monkeypatch):
    monkeypatch.setattr(vector, "BLOCK", 2**15)  # several of them
    rng = np.random.default_rng(scale.numerator * 1000 + scale.denominator)
    words = rng.integers(-(2**63), 2**63 - 1, 2 * count + 1000, endpoint=True)
    ends = rng.random(words.size) < 0.01
    words[ends] = rng.choice([0, -1], int(ends.sum()))  # the outermost cells
    extra = rng.integers(0, 2**64 - 1, 10**5, np.uint64, endpoint=True)
    fast = np.empty(count, np.int64)
    used, expected = Replayed(words, extra), Replayed(words, extra)
    fill(fast, scale, entropy=used)
    assert fast.tolist() == reference(scale, count, expected)
    assert used.asked == expected.asked


@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**70, 3)], ids=str)
def test_draws_alone_and_reference_agree_on_every_word(scale):
    rng = np.random.default_rng(scale.numerator * 1000 + scale.denominator)
    words = rng.integers(0, 2**64 - 1, 40_000, np.uint64, endpoint=True)
    ends = rng.random(words.size) < 0.02
    words[ends] = rng.choice(np.array([0, 2**64 - 1], np.uint64), int(ends.sum()))
    fast, slow = Replayed(words, words), Replayed(words, words)
    law = Reference(scale, *vector._BITS)
    for _ in range(6_000):
        word = slow.more()
        top = law.top_number(law.first(law.top, word % 2**16, slow.more), slow.more)
        digit = law.first(law.middle, (word >> 16) % 2**16, slow.more) if law.lower else 0
        uniform = law.uniform(law.low, word >> 32, 32, slow.more)
        assert draw_one(scale, fast) == law.number(top, digit, uniform, slow.more)
    assert fast.asked == slow.asked
