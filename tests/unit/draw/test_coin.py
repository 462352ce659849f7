"""Coins flip exactly where an independent high-precision computation says they must."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet.draw.coin import below, decide, exponential, flips, logistic, threshold
from discreet.errors import InvalidParameter
from scripted import Scripted, flip

WORD = 2**64

EXPONENTS = [
    Fraction(text)
    for text in ("1/1000000007", "1/10", "1/3", "1", "7/3", "10", "44", "45", "100", "5000")
]
EPSILONS = [
    Fraction(text) for text in ("1/1000000000", "1/10", "1/3", "1", "2", "10", "44", "50", "300")
]


def edges(value: mpmath.mpf, count: int) -> list[int]:
    """The first words of the binary expansion of a number in (0, 1)."""
    words = []
    for _ in range(count):
        value = value * WORD
        words.append(int(mpmath.floor(value)))
        value -= words[-1]
    return words


def cases() -> list[tuple[object, list[int]]]:
    with mpmath.workdps(3000):  # e^(−5000) has 2,172 zeros after the point
        return [
            (exponential(x), edges(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 3))
            for x in EXPONENTS
        ] + [
            (logistic(x), edges(1 / (1 + mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)), 3))
            for x in EPSILONS
        ]


CASES = cases()


@pytest.mark.parametrize(("chance", "words"), CASES)
def test_thresholds_are_the_digits_of_an_independent_computation(chance, words):
    first, second, third = words
    assert threshold(chance, 64) == first
    assert threshold(chance, 128) == first * WORD + second
    assert threshold(chance, 192) == (first * WORD + second) * WORD + third


@pytest.mark.parametrize(("chance", "words"), CASES)
def test_a_word_below_the_threshold_is_heads_and_above_is_tails_without_more_bits(chance, words):
    first = words[0]
    around = [
        word for word in (0, first - 1, first + 1, WORD - 1) if 0 <= word < WORD and word != first
    ]
    expected = [word < first for word in around]
    assert [flip(chance, Scripted([word])) for word in around] == expected
    assert flips(chance, len(around), entropy=Scripted(around)).tolist() == expected


@pytest.mark.parametrize(("chance", "words"), CASES)
def test_a_tie_is_broken_by_further_bits_and_only_by_as_many_as_it_takes(chance, words):
    first, second, third = words
    endings = [
        ([second - 1], True),
        ([second + 1], False),
        ([second, third - 1], True),
        ([second, third + 1], False),
    ]
    for extra, heads in endings:
        if not 0 <= extra[-1] < WORD:
            continue
        script = Scripted([first], extra)
        assert flip(chance, script) is heads
        assert script.asked == len(extra)
        script = Scripted([first, first], extra + extra)
        assert flips(chance, 2, entropy=script).tolist() == [heads, heads]
        assert script.asked == 2 * len(extra)


def test_a_rational_chance_on_the_grid_of_words_ties_to_tails_at_once():
    assert decide(Fraction(1, 2), 2**63 - 1, Scripted([]).more) is True
    assert decide(Fraction(1, 2), 2**63, Scripted([]).more) is False
    grid = Fraction(5, WORD)
    assert [decide(grid, word, Scripted([]).more) for word in (4, 5, 6)] == [True, False, False]
    finer = Fraction(2 * 5 * WORD + 1, 2 * WORD * WORD)  # half a unit of the second word
    assert decide(finer, 5, Scripted([], [0, 2**63 - 1]).more) is True
    assert decide(finer, 5, Scripted([], [0, 2**63]).more) is False


def test_certain_coins_are_certain():
    words = [0, 1, WORD - 1]
    assert flips(Fraction(1), 3, entropy=Scripted(words)).all()
    assert not flips(Fraction(0), 3, entropy=Scripted(words)).any()
    assert exponential(Fraction(0)) == 1
    assert logistic(Fraction(0)) == Fraction(1, 2)


@pytest.mark.parametrize(
    "chance", [Fraction(1, 3), exponential(Fraction(1)), logistic(Fraction(1, 10))]
)
def test_the_twins_agree_on_the_same_bits(chance):
    generator = np.random.default_rng(7)
    edge = threshold(chance, 64)
    words = generator.integers(0, WORD, 300_000, np.uint64).tolist()
    for index in range(0, len(words), 1000):  # on either side of a block's end, too
        words[index] = min(max(edge + index // 1000 % 3 - 1, 0), WORD - 1)
    extra = generator.integers(0, WORD, 1000, np.uint64).tolist()
    fast, slow = Scripted(words, extra), Scripted(words[:3000], extra)
    result = flips(chance, len(words), entropy=fast)
    assert result[:3000].tolist() == [flip(chance, slow) for _ in range(3000)]
    assert result.tolist() == [
        word < edge if word != edge else tie
        for word, tie in zip(words, result.tolist(), strict=True)
    ]
    assert fast.asked == words.count(edge)


@given(
    st.fractions(0, 1),
    st.integers(0, WORD - 1),
    st.lists(st.integers(0, WORD - 1), min_size=9, max_size=9),
)
def test_a_rational_coin_is_the_comparison_of_two_rationals(chance, word, extra):
    expansion = Fraction(
        sum(part << (64 * (9 - place)) for place, part in enumerate([word, *extra])), 2**640
    )
    assert decide(chance, word, Scripted([], extra).more) is (expansion < chance)


@given(st.integers(2, WORD), st.integers(0, WORD - 1))
def test_an_integer_below_a_limit_rejects_exactly_the_last_partial_round(limit, word):
    fair = WORD // limit * limit
    for first in (word, fair - 1, min(fair, WORD - 1), WORD - 1):
        wanted = first % limit if first < fair else limit - 1
        assert below(limit, Scripted([], [first, limit - 1])) == wanted


@pytest.mark.parametrize("limit", [0, -1, WORD + 1])
def test_a_limit_beyond_one_word_is_refused(limit):
    with pytest.raises(InvalidParameter, match="limit must lie between"):
        below(limit, Scripted([]))


def test_impossible_chances_are_refused():
    for chance in (Fraction(-1, 5), Fraction(6, 5)):
        with pytest.raises(InvalidParameter, match="between 0 and 1"):
            threshold(chance, 64)
    with pytest.raises(InvalidParameter, match="must not be negative"):
        exponential(Fraction(-1))


def test_a_formula_that_writes_a_rational_ends_in_an_error_not_in_a_loop():
    with pytest.raises(ArithmeticError, match="rational"):
        threshold(lambda: (arb(2).sqrt() / 2) ** 2, 64)


def test_exponents_beyond_all_floats_leave_thresholds_at_the_ends():
    vast = Fraction(10) ** 300 * 2**62
    assert threshold(exponential(vast), 640) == 0
    assert threshold(logistic(vast), 640) == 2**640 - 1
    assert threshold(exponential(1 / vast), 64) == WORD - 1


def test_without_a_script_the_system_tosses():
    assert flips(logistic(Fraction(1)), 10).dtype == np.bool_
    assert flips(Fraction(1, 2), 0).size == 0
