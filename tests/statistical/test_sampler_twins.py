"""The second verification: the fast sampler and a slow reference see the same bits and give the
same integers.

The reference is written from PROOF.md: it compares the bits of V with thresholds of 320 bits that
mpmath computes, one draw after the other, and shares with the code under test only the order in
which bits are read. Deterministic given the words, so there is no false alarm. One wrong integer in
the 2.1 million fails it.
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise

import mpmath
import numpy as np
import pytest

from discreet.draw import vector
from discreet.draw.vector import draw_one, fill
from scripted import Replayed

SCALES = [
    Fraction(1, 50),
    Fraction(1, 9),
    Fraction(1, 2),
    Fraction(1),
    Fraction(7, 3),
    Fraction(10),
    Fraction(20),
]
SCALES += [
    Fraction(100),
    Fraction(2**10, 3),
    Fraction(12345, 7),
    Fraction(2**20),
    Fraction(2**24, 5),
    Fraction(2**28),
]
SCALES += [Fraction(2**31), Fraction(2**40)]
WIDTH = 320


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


class Reference:
    """DLap(scale) by its numbers: tops with T ≤ 2^top, and excesses with up to `high` high bits."""

    def __init__(self, scale: Fraction, top: int, high: int) -> None:
        lower = 0
        while scale / 2**lower > 2**top:
            lower += 1
        self.scale, self.lower, self.low = scale, lower, max(0, lower - high)
        self.chances: dict[object, int] = {}
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
        self.numbers = [1 + bisect_right(self.cells, cell) for cell in range(self.shared)]
        before = [0, *self.cells] + [self.shared] * len(edges)
        self.edges = [
            edge + (self.shared - cells << WIDTH - 16)
            for edge, cells in zip(edges, before, strict=False)
        ]

    @staticmethod
    def fixed(number: mpmath.mpf) -> int:
        return int(mpmath.floor(number * mpmath.mpf(2) ** WIDTH))

    def settle(self, edges: list[int], bits: int, width: int, more: Callable[[], int]) -> int:
        """How many edges lie below a V of which so many bits are known, reading 64 at a time while
        that is open.
        """
        while True:
            below = bisect_right(edges, bits << WIDTH - width)
            if below == bisect_right(edges, (bits + 1 << WIDTH - width) - 1):
                return below
            bits, width = bits << 64 | more(), width + 64

    def toss(
        self, chance: Callable[[int], mpmath.mpf], number: int, more: Callable[[], int]
    ) -> bool:
        """A coin whose chance is a function of a number, and is computed once."""
        if (chance, number) not in self.chances:
            with mpmath.workdps(110):
                self.chances[chance, number] = self.fixed(chance(number))
        return self.settle([self.chances[chance, number]], more(), 64, more) == 0

    def number(self, cell: int, more: Callable[[], int]) -> int:
        if cell < self.shared:
            return self.numbers[cell]
        return self.settle(self.edges, cell << 48 | more() >> 16, 64, more)

    def is_top(self, number: int) -> bool:
        return number <= 2 * self.half

    def top(self, number: int, more: Callable[[], int]) -> int:
        """S and H as one number, −1 − H where S is 1."""
        top = number - self.half
        if number in (0, 2 * self.half):
            new = self.new_top(more)
            further = new if new >= 0 else -1 - new
            top += further if number else -further
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
        draw = self.draw(more) if self.low < self.lower else 0
        geometric = draw if draw >= 0 else -1 - draw
        return geometric % 2**self.lower - geometric % 2**self.low + self.low_excess(more)

    def low_excess(self, more: Callable[[], int]) -> int:
        """A number below 2^s with chances ∝ q^u − q^(2^s − 1), from the highest bit to the lowest."""
        value = 0
        for bits in range(self.low - 1, 0, -1):
            if self.toss(self.constant, bits, more):
                return value + self.uniform(bits, 0, 0, more)
            if self.toss(self.bit_is_set, bits, more):
                value += 2**bits
        return value

    def bit_is_set(self, bit: int) -> mpmath.mpf:
        return 1 / (1 + 1 / power(2**bit / self.scale))

    def constant(self, bits: int) -> mpmath.mpf:
        """Of the chances of the numbers below 2m = 2^(bits + 1), the part that is constant below m,
        and 0 beyond.
        """
        half = 2**bits
        q, least = power(1 / self.scale), power((2 * half - 1) / self.scale)
        total = (1 - q * least) / (1 - q) - 2 * half * least
        return half * (power((half - 1) / self.scale) - least) / total

    @staticmethod
    def uniform(bits: int, read: int, width: int, more: Callable[[], int]) -> int:
        while width < bits:
            read, width = read << 64 | more(), width + 64
        return read % 2**bits

    def draw(self, more: Callable[[], int]) -> int:
        """One draw alone."""
        word = more()
        number = self.number(word % 2**16, more)
        lower = self.uniform(self.lower, word >> 16, 48, more)
        if self.is_top(number):
            return self.joined(self.top(number, more), lower)
        lower = self.excess(number, lower, more)
        return self.joined(self.new_top(more), lower)

    def joined(self, top: int, lower: int) -> int:
        """X of its top and M."""
        return (
            top * 2**self.lower + lower if top >= 0 else -1 - ((-1 - top) * 2**self.lower + lower)
        )


law_of = cache(Reference)


def read(entropy: Replayed, count: int, dtype: type) -> list[int]:
    words = np.empty(-(-count * np.dtype(dtype).itemsize // 8), np.int64)
    entropy.fill(words)
    return words.view(dtype)[:count].tolist()


def settled(
    law: Reference, cells: list[int], entropy: Replayed
) -> list[tuple[int | None, int, int]]:
    """For each shared cell its top, if its number is one, the number, and a new cell."""
    words = read(entropy, len(cells), np.uint64)
    more = entropy.more
    numbers = [
        law.settle(law.edges, cell << 48 | word >> 16, 64, more)
        for cell, word in zip(cells, words, strict=True)
    ]
    tops = [law.top(number, more) if law.is_top(number) else None for number in numbers]
    return list(zip(tops, numbers, [word % 2**16 for word in words], strict=True))


def tops_of(
    law: Reference, cells: list[int], entropy: Replayed
) -> tuple[list[int | None], dict[int, tuple[int, int]]]:
    """The tops of cells, and for each position of an excess its number and a new cell."""
    tops = [
        law.number(cell, entropy.more) - law.half if cell < law.shared else None for cell in cells
    ]
    shared = [position for position, cell in enumerate(cells) if cell >= law.shared]
    excesses = {}
    for position, (top, number, cell) in zip(
        shared, settled(law, [cells[position] for position in shared], entropy), strict=True
    ):
        tops[position] = top
        if top is None:
            excesses[position] = number, cell
    return tops, excesses


def reference(scale: Fraction, count: int, entropy: Replayed) -> list[int]:
    law = law_of(scale, *(vector._BITS if count > vector._FEW else vector._BITS_OF_FEW))
    bits = law.lower
    kind = next(
        kind
        for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
        if bits <= 8 * np.dtype(kind).itemsize
    )
    draws: list[int] = []
    for start in range(0, count, vector.BLOCK):
        block = min(count - start, vector.BLOCK)
        cells, lower = [], []
        for part in range(0, block, vector.PART):
            size = min(block - part, vector.PART)
            cells += read(entropy, size, np.uint16)
            lower += [word % 2**bits for word in read(entropy, size, kind)] if bits else [0] * size
        tops, excesses = tops_of(law, cells, entropy)
        for position, (number, _) in excesses.items():
            lower[position] = law.excess(number, lower[position], entropy.more)
        waiting = {position: cell for position, (_, cell) in excesses.items()}
        while waiting:
            again, excesses = tops_of(law, list(waiting.values()), entropy)
            positions = list(waiting)
            for position, top in zip(positions, again, strict=True):
                tops[position] = top
            waiting = {positions[index]: cell for index, (_, cell) in excesses.items()}
        draws += map(law.joined, tops, lower)
    return draws


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("count", [500, 4096, 140_000])
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
    law = law_of(scale, *vector._BITS_OF_FEW)
    for _ in range(6_000):
        assert draw_one(scale, fast) == law.draw(slow.more)
    assert fast.asked == slow.asked
