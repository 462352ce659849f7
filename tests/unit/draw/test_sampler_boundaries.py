"""The first verification: at every threshold the draw flips exactly where an independent computation says.

P(|X| ≥ j) = 2q^j/(1+q), so with T = 2⁶³·2q^j/(1+q) a word below T gives at least j and a word above T at most j − 1.
Thresholds come from mpmath with 120 digits, which shares no code with Arb's balls or with the float filter.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.draw.laplace import from_word
from discreet.draw.vector import _constants, fill
from scripted import Scripted

SCALES = [
    Fraction(1, 40),
    Fraction(1, 7),
    Fraction(1, 2),
    Fraction(1),
    Fraction(7, 3),
    Fraction(3),
    Fraction(10, 3),
    Fraction(10),
    Fraction(20),
    Fraction(100),
    Fraction(12345, 67),
    Fraction(2**20 + 1, 3),
    Fraction(2**30),
]


def thresholds(scale: Fraction) -> list[tuple[int, int, int]]:
    """(j, ⌊T⌋, the 64 bits after the point), for every j in reach, or for 150 spread ones at large scales."""
    with mpmath.workdps(120):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        reach = int(scale * 43) + 1
        some = range(1, reach + 1) if reach <= 150 else sorted({1 + reach * i // 150 for i in range(150)})
        result = []
        for j in some:
            t = mpmath.mpf(2) ** 64 * q**j / (1 + q)
            whole = int(mpmath.floor(t))
            if whole >= 2:
                result.append((j, whole, int(mpmath.floor((t - whole) * mpmath.mpf(2) ** 64))))
        return result


ANY = [2**63 + 12345] * 8
"""Further bits for draws whose cell holds another threshold, too: they decide that one, not the one under test."""


def fast(scale: Fraction, word: int, extra: list[int]) -> int:
    out = np.empty(1, np.int64)
    fill(out, scale, entropy=Scripted([word], extra + ANY))
    return int(out[0])


def slow(scale: Fraction, word: int, extra: list[int]) -> int:
    entropy, first = Scripted([word], extra + ANY), np.empty(1, np.int64)
    entropy.fill(first)
    return from_word(scale, int(first[0]), entropy.more)


@pytest.mark.parametrize("draw", [fast, slow])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_threshold_flips_exactly_where_it_must(scale, draw):
    checked = 0
    for j, whole, after in thresholds(scale):
        cases = [(whole - 1, [], True), (whole + 1, [], False)]
        if 0 < after < 2**64 - 1:
            cases += [(whole, [after - 1], True), (whole, [after + 1], False)]
        for word, extra, reaches in cases:
            # a neighbouring threshold may lie as near: only the side of this one is required
            found = draw(scale, word, extra)
            assert (found >= j) == reaches
            assert draw(scale, ~word + 2**64, extra) == -found, "the sign bit mirrors the draw"
            checked += 1
    assert checked >= 2


@pytest.mark.parametrize("scale", [s for s in SCALES if s >= 1], ids=str)
def test_the_filter_alone_is_right_just_outside_its_doubt(scale):
    """Words at 1.01, 2 and 8 times the doubt from a threshold are decided by floats, and rightly."""
    constants = _constants(scale)
    doubt = Fraction(constants.doubt, 2 ** int(constants.shift))  # both sides together
    decided = 0
    for j, whole, _ in thresholds(scale):
        if whole < 2**46:
            continue
        for factor in (Fraction(101, 100), Fraction(2), Fraction(8)):
            distance = int(whole * (doubt * factor / scale)) + 2
            for word, reaches in ((whole - distance, True), (whole + distance, False)):
                if 2**46 < word < 2**63:
                    entropy = Scripted([word])
                    out = np.empty(1, np.int64)
                    fill(out, scale, entropy=entropy)
                    assert (out[0] >= j) == reaches
                    assert entropy.asked == 0
                    decided += 1
    assert decided > 10


def test_an_all_zero_word_is_only_decided_by_more_bits():
    """V = 0.000…: the floor is open until a one appears, here after 64 further zeros."""
    entropy = Scripted([0], [0, 2**63, 1])
    out = np.empty(1, np.int64)
    fill(out, Fraction(1), entropy=entropy)
    # V lies just above 2^(−63−64−1): y = ln(2/(1+1/e)) + 128·ln 2 = 89.1
    assert out[0] == 89
    assert entropy.asked == 2
    assert from_word(Fraction(1), -1, iter([0, 2**63]).__next__) == -89


def test_the_largest_words_give_zero():
    assert fast(Fraction(1, 2), 2**63 - 1, []) == 0
    assert fast(Fraction(1, 2), 2**63, []) == 0  # int64's smallest number: sign bit, then 63 zeros inverted to ones
