"""The second verification: the fast sampler and the reference see the same bits and give the same integers.

Deterministic given the words, so there is no false alarm. One wrong integer in the 2.2 million fails it.
"""

from fractions import Fraction

import numpy as np
import pytest

from discreet.draw.laplace import from_word
from discreet.draw.vector import fill
from scripted import Replayed

FILTERED = [Fraction(1, 50), Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(20)]
FILTERED += [
    Fraction(100),
    Fraction(2**10, 3),
    Fraction(12345, 7),
    Fraction(2**20),
    Fraction(2**24, 5),
    Fraction(2**28),
]
FILTERED += [Fraction(2**31), Fraction(2**33)]


def agree(scale: Fraction, count: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    words = rng.integers(-(2**63), 2**63 - 1, count, endpoint=True)
    words[: count // 20] >>= rng.integers(0, 63, count // 20)  # small words, where the cells of V are wide
    extra = rng.integers(0, 2**64 - 1, count, np.uint64, endpoint=True)
    fast = np.empty(count, np.int64)
    fill(fast, scale, entropy=Replayed(words, extra))
    slow = Replayed(words, extra)
    expected = [from_word(scale, word, slow.more) for word in words.tolist()]
    assert np.array_equal(fast, expected)
    return slow.asked


@pytest.mark.parametrize("scale", FILTERED, ids=str)
def test_fast_and_reference_agree_on_every_word(scale):
    agree(scale, 140_000, seed=scale.numerator * 1000 + scale.denominator)


@pytest.mark.parametrize("power", [34, 36, 40])
def test_they_agree_where_the_exact_path_serves_alone(power):
    assert agree(Fraction(2**power), 20_000, seed=power) > 0, "wide cells must have asked for more bits"
