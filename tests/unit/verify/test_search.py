"""The search finds the textbook's sensitivities, exactly where they are reached, and breaks what claims less."""

import functools
import math
import operator
import statistics
from fractions import Fraction

import numpy as np
import pytest

from discreet.calibrate import sensitivity
from discreet.errors import InvalidParameter
from discreet.verify import search_sensitivity

UNIT = (Fraction(0), Fraction(1))
N = 21


def mean(x):
    return sum(x) / len(x) if x else Fraction(0)


@pytest.mark.parametrize(
    ("f", "true"),
    [
        (mean, sensitivity.mean(n=N, bounds=UNIT)),
        (sum, sensitivity.sum(bounds=UNIT)),
        (statistics.pvariance, sensitivity.variance(n=N, bounds=UNIT)),
        (statistics.median, sensitivity.median(n=N, bounds=UNIT)),
        (max, sensitivity.max(bounds=UNIT)),
        (min, sensitivity.min(bounds=UNIT)),
        (lambda x: [sum(v <= Fraction(1, 2) for v in x), sum(v > Fraction(1, 2) for v in x)], Fraction(2)),
    ],
)
def test_the_sensitivities_of_the_textbook_are_found_exactly(f, true):
    search = search_sensitivity(f, UNIT, N, claimed=true, tries=1_000)
    assert search.sensitivity == true
    assert not search.broken
    assert "not broken" in repr(search)
    assert search_sensitivity(f, UNIT, N, claimed=true * Fraction(999, 1000), tries=1_000).broken


def test_the_deviation_does_not_fall_as_one_over_n():
    search = search_sensitivity(statistics.pstdev, UNIT, 100, claimed="1/100")
    assert search.broken
    assert float(search.sensitivity) == pytest.approx(float(sensitivity.std(n=100, bounds=(0, 1))))
    assert "BROKEN 9.95 times" in repr(search)


@pytest.mark.parametrize("add", [functools.partial(functools.reduce, operator.add), math.fsum, np.sum])
@pytest.mark.parametrize(("power", "times"), [(4, 16), (6, 64)])
def test_a_float_sum_moves_by_sixteen_times_what_its_bounds_allow(add, power, times):
    low, high = 0.5 * (1 + 2.0 ** (power - 53) - 2.0**-52), 0.5 * (1 + 2.0 ** (power - 53))
    claimed = Fraction(high) - Fraction(low)
    search = search_sensitivity(add, (low, high), 2**power + 1, claimed=claimed)
    assert search.sensitivity == times * claimed
    exact = search_sensitivity(lambda x: sum(map(Fraction, x)), (low, high), 2**power + 1, claimed=claimed)
    assert exact.sensitivity == claimed


def test_add_remove_takes_one_away():
    search = search_sensitivity(sum, (-3, 7), 5, "add-remove", claimed=6)
    assert search.sensitivity == 7
    assert search.broken
    assert abs(len(search.x) - len(search.x_neighbor)) == 1


@pytest.mark.parametrize(
    "f", [lambda x: 1 / sum(x), lambda x: math.nan if 3 in x else 0, lambda x: x if sum(x) else [1]]
)
def test_an_error_a_nan_or_another_shape_on_one_side_is_without_bound(f):
    search = search_sensitivity(f, (0, 3), 3, claimed=10**6)
    assert search.sensitivity == math.inf
    assert search.broken


def test_a_peak_that_no_corner_shows_is_climbed_to():
    """f counts how many of the values are as in a hidden list: only climbing gets all of them right."""
    hidden = [4, 2, 7, 1, 5, 0, 3]

    def f(x):
        right = sum(a == b for a, b in zip(x, hidden, strict=True))
        return 2**right

    search = search_sensitivity(f, list(range(8)), 7, tries=20_000)
    assert search.sensitivity == 64
    assert hidden in (search.x, search.x_neighbor)


def test_what_is_no_domain_is_refused():
    for wrong in (3, (1, 0), "ab", (0, 0)):
        with pytest.raises(InvalidParameter):
            search_sensitivity(sum, wrong, 3)
    with pytest.raises(InvalidParameter):
        search_sensitivity(sum, (0, 1), 0)
