"""Bounds on a probability, against scipy's and against the binomial law itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from discreet.verify import binomial

CASES = [
    (0, 10),
    (1, 10),
    (5, 10),
    (10, 10),
    (3, 20_000),
    (14_000, 20_000),
    (731_058, 10**6),
    (12, 10**7),
]


@pytest.mark.parametrize(("successes", "trials"), CASES)
@pytest.mark.parametrize("doubt", [1e-12, 1e-3])
def test_the_bounds_are_clopper_and_pearsons_and_err_to_the_safe_side(successes, trials, doubt):
    low = beta.ppf(doubt, successes, trials - successes + 1) if successes else 0.0
    high = beta.isf(doubt, successes + 1, trials - successes) if successes < trials else 1.0
    assert (
        low * (1 - 1e-6) - 1e-300 <= binomial.lower(successes, trials, doubt) <= low * (1 + 1e-12)
    )
    assert high - 1e-12 <= binomial.upper(successes, trials, doubt) <= high + 1e-8


@pytest.mark.parametrize("doubt", [1e-9, 1e-2])
def test_chernoffs_bounds_are_never_narrower(doubt):
    successes = np.array([0, 1, 7, 500, 993, 999, 1000])
    low, high = binomial.chernoff(successes, 1000, doubt)
    for count, below, above in zip(successes.tolist(), low, high, strict=True):
        assert below <= binomial.lower(count, 1000, doubt) * (1 + 1e-9)
        assert above >= binomial.upper(count, 1000, doubt) * (1 - 1e-9)


@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 2), Fraction(97, 100)])
def test_a_lower_bound_exceeds_the_truth_no_more_often_than_its_doubt(chance):
    """Exactly, over all outcomes of forty trials."""
    trials, doubt = 40, 1e-2
    missed = sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(trials + 1)
        if binomial.lower(k, trials, doubt) > chance
    )
    assert missed <= Fraction(1, 100)
