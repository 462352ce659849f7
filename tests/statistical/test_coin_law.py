"""Coins with real entropy: 4·10⁶ tosses each against the probability from floats.

Alarm where the number of heads is further than 6.5 standard deviations from its mean, 8·10⁻¹¹ a
coin; with 20 coins and 4 chi-squares of uniform integers at 10⁻⁹ the file's false-alarm rate is
below 6·10⁻⁹. An error of 13 deviations is missed with a probability below 10⁻¹⁰: that is 0.0033 at
p = 1/2, and 2.9 % of itself at p = 1/20. The controls hold the same tosses against rates 5 % off
and thresholds of 6 bits only, and integers of which one comes 10 % more often.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.draw.coin import below, exponential, flips, logistic
from discreet.draw.entropy import keystream
from discreet.release.statistics.response import randomized_response

TOSSES = 4 * 10**6
ALARM = 6.5

RATES = ["1/20", "1/3", "1/2", "1", "7/5", "2", "3"]


def deviations(heads: int, chance: float) -> float:
    return abs(heads - TOSSES * chance) / math.sqrt(TOSSES * chance * (1 - chance))


@pytest.mark.parametrize("rate", RATES)
def test_exponential_coins_have_their_law_and_no_neighbour_of_it(rate):
    exponent = Fraction(rate)
    heads = int(np.count_nonzero(flips(exponential(exponent), TOSSES)))
    assert deviations(heads, math.exp(-exponent)) < ALARM
    assert deviations(heads, math.exp(-exponent * 1.05)) > ALARM
    assert deviations(heads, math.exp(-exponent * 0.95)) > ALARM


@pytest.mark.parametrize("epsilon", RATES)
def test_logistic_coins_have_their_law_and_no_neighbour_of_it(epsilon):
    exact = Fraction(epsilon)
    heads = int(np.count_nonzero(flips(logistic(exact), TOSSES)))
    assert deviations(heads, 1 / (1 + math.exp(-exact))) < ALARM
    if exact >= Fraction(1, 3):  # 5 % of 1/20 moves p by 0.0006 only
        assert deviations(heads, 1 / (1 + math.exp(-exact * 1.05))) > ALARM
        assert deviations(heads, 1 / (1 + math.exp(-exact * 0.95))) > ALARM


def test_rational_coins_have_their_law():
    for chance in (Fraction(1, 3), Fraction(1, 2), Fraction(19, 20)):
        heads = int(np.count_nonzero(flips(chance, TOSSES)))
        assert deviations(heads, float(chance)) < ALARM
        assert deviations(heads, math.floor(chance * 64 + 1) / 64) > ALARM


def test_tosses_next_to_each_other_are_independent():
    """Pairs (heads, heads) of the same block: expected p² of the pairs, alarm as above."""
    chance = math.exp(-1)
    heads = flips(exponential(Fraction(1)), 2 * TOSSES).reshape(-1, 2)
    assert deviations(int(np.count_nonzero(heads.all(axis=1))), chance**2) < ALARM


def test_randomized_response_keeps_each_bit_with_its_probability():
    epsilon = Fraction(1)
    bits = np.arange(2 * TOSSES) % 2 == 0
    kept = randomized_response(bits, epsilon=epsilon).bits == bits
    for value in (True, False):
        heads = int(np.count_nonzero(kept[bits == value]))
        assert deviations(heads, 1 / (1 + math.exp(-1))) < ALARM
        assert deviations(heads, 1 / (1 + math.exp(-1.05))) > ALARM


@pytest.mark.parametrize("limit", [2, 3, 7, 10])
def test_integers_below_a_limit_are_uniform(limit):
    # the control's noncentrality is draws·0.01·(1 − 1/limit)/limit ≥ 200
    stream, draws = keystream(), 40_000 * limit
    observed = np.bincount([below(limit, stream) for _ in range(draws)], minlength=limit)
    assert stats.chisquare(observed).pvalue > 1e-9
    observed[0] += draws // limit // 10  # control: zero comes 10 % more often
    assert stats.chisquare(observed).pvalue < 1e-9
