"""Permute-and-flip: the float filter and the exact coins make the same choice from the same bits."""

import math
from collections.abc import Iterable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.draw import choice
from discreet.draw.choice import common_unit
from discreet.draw.coin import below, exponential
from discreet.errors import EngineFailed, InvalidParameter
from scripted import Scripted, flip


def choose(cells: np.ndarray, unit: Fraction, **entropy: Scripted) -> int:
    """A choice in one row."""
    return int(choice.choose(cells[np.newaxis], unit, **entropy)[0])


def survivors(cells: np.ndarray, unit: Fraction, **entropy: Scripted) -> np.ndarray:
    return choice.survivors(cells[np.newaxis], unit, **entropy)[0]


WORD = 2**64
FAR = 2**62
DOUBT = 2**20
"""Words within 2⁻⁴⁴ of the threshold: those that the filter must leave to the exact path."""


def edges(exponent: Fraction) -> tuple[int, int]:
    """The first two words of e^(−exponent), for an exponent above 0."""
    with mpmath.workdps(120):
        scaled = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * WORD
        first = int(mpmath.floor(scaled))
        return first, int(mpmath.floor((scaled - first) * WORD))


def alive(word: int, exponent: int, unit: Fraction, extra: Iterable[int] = ()) -> bool:
    """Whether a cell beside a best one survives."""
    return bool(survivors(np.array([0, exponent]), unit, entropy=Scripted([0, word], extra))[1])


UNITS = [Fraction(text) for text in ("1/1000000007", "1/20", "1/3", "1/2", "1", "7/10", "22/7", "40")]
MULTIPLES = [1, 2, 3, 10, 44, 45, 64, 1000, 123_456_789, FAR]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("exponent", MULTIPLES)
def test_cells_die_exactly_at_an_independent_threshold(unit, exponent):
    first, second = edges(unit * exponent)
    for distance in (1, 2, 1000, DOUBT - 5000, DOUBT, DOUBT + 5000, 2**30):
        if first - distance >= 0:
            assert alive(first - distance, exponent, unit)
        if first + distance < WORD:
            assert not alive(first + distance, exponent, unit)
    if second > 0:
        assert alive(first, exponent, unit, [second - 1])
    assert not alive(first, exponent, unit, [second + 1])


def test_a_cell_that_survives_once_in_more_than_two_to_the_64_needs_further_zeros():
    unit = Fraction(1)
    assert edges(Fraction(60))[0] == 0
    second = edges(Fraction(60))[1]
    assert alive(0, 60, unit, [second - 1])
    assert not alive(0, 60, unit, [second + 1])
    assert not alive(1, 60, unit)
    assert not alive(0, FAR, Fraction(10) ** 50, [0, 0, 0, 1])


@pytest.mark.parametrize("word", [0, 1, WORD - 1, WORD - DOUBT, WORD - 2 * DOUBT])
def test_the_best_cells_always_survive(word):
    for smallest in (0, 5, -(2**63), 2**63 - 1):
        for unit in (Fraction(1, 10**400), Fraction(1), Fraction(10) ** 400):
            assert survivors(np.full(3, smallest), unit, entropy=Scripted([word] * 3)).all()


def test_only_distances_from_the_smallest_count_over_the_whole_of_int64():
    ends = np.array([-(2**63), 2**63 - 1])
    unit = Fraction(1, WORD - 1)  # the distance of the ends, so x = 1
    first, second = edges(Fraction(1))
    for word, extra, expected in (
        (first - 1, [], True),
        (first + 1, [], False),
        (first, [second - 1], True),
        (first, [second + 1], False),
    ):
        assert survivors(ends, unit, entropy=Scripted([0, word], extra)).tolist() == [True, expected]


def choose_reference(exponents: np.ndarray, unit: Fraction, *, entropy: Scripted) -> int:
    """The same choice by exact coins, one after the other: the slow twin."""
    smallest = int(exponents.min())
    indices = [
        index
        for index, exponent in enumerate(exponents.tolist())
        if flip(exponential(unit * (exponent - smallest)), entropy)
    ]
    return indices[below(len(indices), entropy)]


def near_thresholds(exponents: list[int], unit: Fraction, generator: np.random.Generator) -> list[int]:
    """Words of which most lie where the filter is in doubt or just outside."""
    words = []
    for exponent, spread in zip(exponents, generator.integers(0, 62, len(exponents)).tolist(), strict=True):
        first = edges(unit * exponent)[0] if exponent else WORD - 1
        words.append(min(max(first + int(generator.integers(-(2**spread), 2**spread + 1)), 0), WORD - 1))
    return words


@pytest.mark.parametrize("unit", [*UNITS, Fraction(1, 2**70), Fraction(2) ** 70])
def test_the_twins_choose_alike_from_bits_around_every_threshold(unit):
    generator = np.random.default_rng(11)
    for _ in range(20):
        exponents = [0, *generator.integers(0, 60, 12).tolist(), *(2 ** generator.integers(0, 63, 12)).tolist()]
        words = near_thresholds(exponents, unit, generator)
        extra = generator.integers(0, WORD, 200, np.uint64).tolist()
        cells = np.array(exponents) - 3
        fast, slow = Scripted(words, extra), Scripted(words, extra)
        assert choose(cells, unit, entropy=fast) == choose_reference(cells, unit, entropy=slow)
        assert fast.asked == slow.asked


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8),
    st.fractions(Fraction(1, 10**30), 10**30),
    st.integers(0, 2**32),
)
def test_the_twins_choose_alike_on_any_int64(exponents, unit, seed):
    generator = np.random.default_rng(seed)
    words = [word >> seed % 64 for word in generator.integers(0, WORD, len(exponents), np.uint64).tolist()]
    extra = generator.integers(0, WORD, 60, np.uint64).tolist()
    cells = np.array(exponents, np.int64)
    fast = choose(cells, unit, entropy=Scripted(words, extra))
    assert fast == choose_reference(cells, unit, entropy=Scripted(words, extra))


@pytest.mark.slow
def test_the_twins_choose_alike_across_blocks():
    generator = np.random.default_rng(5)
    cells = np.abs(np.arange(70_000) - 33_000)
    words = generator.integers(0, WORD, cells.size, np.uint64).tolist()
    for index in (0, 2**15 - 1, 2**15, 2**16, 69_999):
        words[index] = 0  # in doubt where the cell is far, on both sides of each block's end
    extra = generator.integers(0, WORD, 50, np.uint64).tolist()
    for unit, asked in ((Fraction(1), 6), (Fraction(1, 50), 4), (Fraction(1, 10_000), 1)):
        fast, slow = Scripted(words, extra), Scripted(words, extra)
        assert choose(cells, unit, entropy=fast) == choose_reference(cells, unit, entropy=slow)
        assert fast.asked == slow.asked == asked


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(22, 7)])
def test_many_rows_choose_as_each_of_them_alone(unit):
    """The twins read the same bits: first those of all cells, row after row, then those of ties, then the picks."""
    generator = np.random.default_rng(13)
    for rows, width in ((1, 1), (7, 1), (1, 40), (50, 23), (3, 20_000)):
        cells = np.abs(generator.integers(0, width, (rows, 1)) - np.arange(width)) - 2**40 * np.arange(rows)[:, None]
        words = generator.integers(0, WORD, cells.size, np.uint64).tolist()
        words[:: max(1, cells.size // 5)] = [0] * len(words[:: max(1, cells.size // 5)])  # ties in far cells
        extra = generator.integers(0, WORD, 1000, np.uint64).tolist()
        fast, slow = Scripted(words, extra), Scripted(words, extra)
        gaps = (cells - cells.min(axis=1, keepdims=True)).tolist()
        alive = [[flip(exponential(unit * gap), slow) for gap in row] for row in gaps]
        survived = [[index for index, lives in enumerate(row) if lives] for row in alive]
        expected = [indices[below(len(indices), slow)] for indices in survived]
        assert choice.choose(cells, unit, entropy=fast).tolist() == expected
        assert fast.asked == slow.asked


@pytest.mark.parametrize("exponent", [1, 3, 10])
def test_the_filter_decides_outside_its_bound_and_only_there(exponent):
    first = edges(Fraction(exponent))[0]
    inside, outside = DOUBT - 5000, DOUBT + 5000
    words = np.array([first - outside, first - inside, first, first + inside, first + outside], np.uint64)
    alive = np.empty(5, np.bool_)
    assert choice._filter(words, np.full(5, exponent, np.uint64), -1.0, alive) == [1, 2, 3]
    assert (alive[0], alive[4]) == (True, False)


def test_the_filter_is_well_within_its_bound():
    """64 × smaller than E on 2,000 random cells, measured in 50 digits."""
    generator = np.random.default_rng(3)
    gaps = (2.0 ** generator.uniform(0, 62, 2000)).astype(np.uint64)
    rates = 2.0 ** generator.uniform(-6, 6, 2000) / gaps
    for gap, rate in zip(gaps.tolist(), rates.tolist(), strict=True):
        unit = Fraction(rate) + Fraction(1, 3 * 2**120)  # no float
        chance = np.exp(np.array([gap], np.uint64).astype(np.float64) * -float(unit))
        with mpmath.workdps(50):
            exact = mpmath.exp(-mpmath.mpf((unit * gap).numerator) / (unit * gap).denominator)
            assert abs(mpmath.mpf(float(chance[0])) - exact) < mpmath.mpf(2) ** -50


def test_a_survivor_is_picked_by_the_last_word():
    cells, words = np.array([0, 1, 0, 90, 0]), [1, WORD - 1, 1, WORD - 1, 1]
    assert [choose(cells, Fraction(1), entropy=Scripted(words, [pick])) for pick in range(3)] == [0, 2, 4]


def test_what_is_no_array_of_cells_is_refused():
    for exponents in ([[0, 1]], np.array([[0.0]]), np.array([0]), np.array([[0]], np.int32)):
        with pytest.raises(InvalidParameter, match="two-dimensional array of int64"):
            choice.choose(exponents, Fraction(1))
    with pytest.raises(InvalidParameter, match="at least one cell"):
        choose(np.array([], np.int64), Fraction(1))
    for unit in (Fraction(0), Fraction(-1)):
        with pytest.raises(InvalidParameter, match="unit must be positive"):
            choose(np.array([0]), unit)


def test_strided_and_read_only_cells_are_served_and_left_alone():
    cells = np.arange(20)[::-2]
    cells.flags.writeable = False
    before = cells.tolist()
    assert 0 <= choose(cells, Fraction(1)) < 10
    assert cells.tolist() == before


@given(st.fractions(0, 100), st.fractions(0, 100))
def test_two_rates_have_a_largest_common_unit(first, second):
    if first == second == 0:
        with pytest.raises(InvalidParameter, match="nor both 0"):
            common_unit(first, second)
        return
    unit, times, other = common_unit(first, second)
    assert (times * unit, other * unit) == (first, second)
    assert math.gcd(times, other) == 1


def test_a_machine_with_a_poor_exponential_is_refused(monkeypatch):
    true_exp = np.exp
    choice._checked_exp.cache_clear()
    monkeypatch.setattr(choice.np, "exp", lambda x, *out: true_exp(x, *out) * (1 + 2.0**-48))
    with pytest.raises(EngineFailed, match="too inexact"):
        choose(np.array([0, 1]), Fraction(1))
    choice._checked_exp.cache_clear()
