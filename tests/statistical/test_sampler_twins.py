"""The second verification: the fast sampler and a slow reference see the same bits and give the same integers.

The reference is written from PROOF.md: it compares the bits of V with thresholds of 320 bits that mpmath computes, one
draw after the other, and shares with the code under test only the order in which bits are read. Deterministic given the
words, so there is no false alarm. One wrong integer in the 2.1 million fails it.
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise

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
FEW_SHARED = vector._FEW_SHARED


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


class Reference:
    """DLap(scale) by its numbers: tops with T ≤ 2^top, and excesses with up to `high` high bits."""

    def __init__(self, scale: Fraction, top: int, high: int) -> None:
        lower = 0
        while scale / 2**lower > 2**top:
            lower += 1
        self.scale, self.lower, self.low = scale, lower, max(0, lower - high)
        rate = 2**lower / scale
        self.half = -(-12 // rate)
        with mpmath.workdps(110):
            q, least = power(1 / scale), power((2**lower - 1) / scale)
            total = (1 - power(rate)) / (1 - q)
            uniform = 2**lower * least / total
            ends = [uniform * q * power(m * rate) / (1 + q) for m in range(self.half)][::-1]
            ends += [uniform * (1 - power(h * rate) / (1 + q)) for h in range(1, self.half + 1)]
            highest = [(high + 1) * 2**self.low - 1 for high in range(2 ** (lower - self.low) - 1)]
            steps = [2**self.low * (power(m / scale) - least) / total for m in highest]
            ends += list(accumulate(steps, initial=uniform)) if lower else []
            edges = [self.fixed(end) for end in ends[: None if self.low or not lower else -1]]
        words = [edge >> WIDTH - 64 for edge in edges[: 2 * self.half]]
        self.cells = list(accumulate(after - before - 1 >> 48 for before, after in pairwise(words)))
        self.shared = self.cells[-1]
        before = [0, *self.cells] + [self.shared] * len(edges)
        self.edges = [edge + (self.shared - cells << WIDTH - 16) for edge, cells in zip(edges, before, strict=False)]

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

    def toss(self, chance: Callable[[], mpmath.mpf], more: Callable[[], int]) -> bool:
        with mpmath.workdps(110):
            return self.settle([self.fixed(chance())], more(), 64, more) == 0

    def number(self, cell: int, more: Callable[[], int]) -> int:
        if cell < self.shared:
            return 1 + bisect_right(self.cells, cell)
        return self.settle(self.edges, cell << 48 | more() >> 16, 64, more)

    def is_top(self, number: int) -> bool:
        return number <= 2 * self.half

    def top(self, number: int, more: Callable[[], int]) -> int:
        """S and H as one number, −1 − H where S is 1."""
        top = number - self.half
        if number in (0, 2 * self.half):
            while self.toss(lambda: power(2**self.lower / self.scale), more):
                top += 1 if number else -1
        return top

    def new_top(self, more: Callable[[], int]) -> int:
        while not self.is_top(number := self.number(more() % 2**16, more)):
            pass
        return self.top(number, more)

    def excess(self, number: int, uniform: int, more: Callable[[], int]) -> int:
        """M of a number that is no top."""
        high = number - 2 * self.half - 1
        if high < 2 ** (self.lower - self.low) - 1:
            return high * 2**self.low + uniform % 2**self.low
        chances = [lambda bit=bit: 1 / (1 + 1 / power(2**bit / self.scale)) for bit in range(self.lower)]
        bits = [2**bit for bit in range(self.low, self.lower) if self.toss(chances[bit], more)]
        return sum(bits) + self.low_excess(more)

    def low_excess(self, more: Callable[[], int]) -> int:
        """A number below 2^s with chances ∝ q^u − q^(2^s − 1), from the highest bit to the lowest."""
        value = 0
        for bits in range(self.low - 1, 0, -1):
            if self.toss(lambda bits=bits: self.constant(2**bits), more):
                return value + self.uniform(bits, 0, 0, more)
            if self.toss(lambda bits=bits: 1 / (1 + 1 / power(2**bits / self.scale)), more):
                value += 2**bits
        return value

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

    def joined(self, top: int, lower: int) -> int:
        """X of its top and M."""
        return top * 2**self.lower + lower if top >= 0 else -1 - ((-1 - top) * 2**self.lower + lower)


def read(entropy: Replayed, count: int, dtype: type) -> list[int]:
    words = np.empty(-(-count * np.dtype(dtype).itemsize // 8), np.int64)
    entropy.fill(words)
    return words.view(dtype)[:count].tolist()


def numbers_of(law: Reference, count: int, bits: int, entropy: Replayed) -> list[tuple[int | None, int, int]]:
    """For each draw its top, if its number is one, and the number and the uniform bits."""
    kind = next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= 8 * np.dtype(kind).itemsize)
    cells, uniform = [], []
    for start in range(0, count, vector.PART):
        size = min(count - start, vector.PART)
        cells += read(entropy, size, np.uint16)
        uniform += [word % 2**bits for word in read(entropy, size, kind)] if bits else [0] * size
    shared = [index for index, cell in enumerate(cells) if cell >= law.shared]
    numbers = [0 if cell >= law.shared else law.number(cell, entropy.more) for cell in cells]
    if len(shared) < FEW_SHARED:
        for index in shared:
            numbers[index] = law.number(cells[index], entropy.more)
    else:
        for index, word in zip(shared, read(entropy, len(shared), np.uint64), strict=True):
            numbers[index] = law.settle(law.edges, cells[index] << 48 | word >> 16, 64, entropy.more)
    tops = [law.top(number, entropy.more) if law.is_top(number) else None for number in numbers]
    return list(zip(tops, numbers, uniform, strict=True))


def reference(scale: Fraction, count: int, entropy: Replayed) -> list[int]:
    law = Reference(scale, *vector._BITS)
    draws: list[int] = []
    for start in range(0, count, vector.BLOCK):
        block = numbers_of(law, min(count - start, vector.BLOCK), law.lower, entropy)
        tops = [top for top, _, _ in block]
        lower = [uniform for _, _, uniform in block]
        waiting = [index for index, top in enumerate(tops) if top is None]
        for index in waiting:
            lower[index] = law.excess(block[index][1], lower[index], entropy.more)
        while len(waiting) >= FEW_SHARED:
            for index, (top, _, _) in zip(waiting, numbers_of(law, len(waiting), 0, entropy), strict=True):
                tops[index] = top
            waiting = [index for index in waiting if tops[index] is None]
        for index in waiting:
            tops[index] = law.new_top(entropy.more)
        draws += map(law.joined, tops, lower)
    return draws


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("count", [500, 140_000])
def test_fast_and_reference_agree_on_every_word(scale, count, monkeypatch):
    monkeypatch.setattr(vector, "BLOCK", 2**15)  # several of them
    monkeypatch.setattr(vector, "PART", 2**13)
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
    law = Reference(scale, *vector._BITS_OF_ONE)
    for _ in range(6_000):
        word = slow.more()
        number = law.number(word % 2**16, slow.more)
        lower = law.uniform(law.lower, word >> 16, 48, slow.more)
        if law.is_top(number):
            top = law.top(number, slow.more)
        else:
            lower = law.excess(number, lower, slow.more)
            top = law.new_top(slow.more)
        assert draw_one(scale, fast) == law.joined(top, lower)
    assert fast.asked == slow.asked
