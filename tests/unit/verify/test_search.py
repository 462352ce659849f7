"""The search finds the textbook's sensitivities, exactly where they are reached, and breaks what
claims less.
"""

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
        (
            lambda x: [sum(v <= Fraction(1, 2) for v in x), sum(v > Fraction(1, 2) for v in x)],
            Fraction(2),
        ),
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


@pytest.mark.parametrize(
    "add", [functools.partial(functools.reduce, operator.add), math.fsum, np.sum]
)
@pytest.mark.parametrize(("power", "times"), [(4, 16), (6, 64)])
def test_a_sum_of_floats_moves_by_sixteen_times_what_its_bounds_allow_and_the_sum_itself_does_not(
    add, power, times
):
    low, high = 0.5 * (1 + 2.0 ** (power - 53) - 2.0**-52), 0.5 * (1 + 2.0 ** (power - 53))
    claimed = Fraction(high) - Fraction(low)
    search = search_sensitivity(add, (low, high), 2**power + 1, claimed=claimed, tries=600)
    assert search.computed == times * claimed
    assert not search.broken
    assert search.undecided == (add is math.fsum)  # it returns floats, whatever it adds
    assert search.undecided or search.sensitivity <= claimed
    exact = search_sensitivity(
        lambda x: sum(map(Fraction, x)), (low, high), 2**power + 1, claimed=claimed, tries=600
    )
    assert exact.sensitivity == exact.computed == claimed


def naive_variance(x):
    return sum(v * v for v in x) / len(x) - (sum(x) / len(x)) ** 2


def sum_of(n, bounds):  # noqa: ARG001 - called like the others
    return sensitivity.sum(bounds=bounds)


def max_of(n, bounds):  # noqa: ARG001
    return sensitivity.max(bounds=bounds)


TRUE = {
    "sum / len": (lambda x: sum(x) / len(x), sensitivity.mean),
    "sum": (sum, sum_of),
    "reduce": (functools.partial(functools.reduce, operator.add), sum_of),
    "fsum": (math.fsum, sum_of),
    "fmean": (statistics.fmean, sensitivity.mean),
    "statistics.mean": (statistics.mean, sensitivity.mean),
    "np.mean": (np.mean, sensitivity.mean),
    "np.var": (np.var, sensitivity.variance),
    "np.std": (np.std, sensitivity.std),
    "np.median": (np.median, sensitivity.median),
    "np.mean of floats": (lambda x: np.mean(np.array(x, float)), sensitivity.mean),
    "np.mean of short floats": (lambda x: np.mean(np.array(x, np.float32)), sensitivity.mean),
    "np.var of floats": (lambda x: np.var(np.array(x, float)), sensitivity.variance),
    "pvariance": (statistics.pvariance, sensitivity.variance),
    "pstdev": (statistics.pstdev, sensitivity.std),
    "naive variance": (naive_variance, sensitivity.variance),
    "max": (max, max_of),
    "both": (
        lambda x: [sum(x) / len(x), max(x)],
        lambda n, bounds: sensitivity.mean(n=n, bounds=bounds) * (n + 1),
    ),
}


@pytest.mark.parametrize("bounds", [(0, 1), (0, 0.7), (0.1, 0.3), (-0.1, 1e6)])
@pytest.mark.parametrize("n", [2, 31])
@pytest.mark.parametrize("name", TRUE)
def test_no_true_claim_is_called_broken_and_half_of_it_is(name, n, bounds):
    f, true = TRUE[name]
    claimed = true(n=n, bounds=bounds)
    search = search_sensitivity(f, bounds, n, claimed=claimed, tries=200)
    assert not search.broken
    half = search_sensitivity(f, bounds, n, claimed=claimed / 2, tries=200)
    short = name == "np.mean of short floats"
    # B² times the rounding of short floats exceeds the claim
    if short and (n, bounds) == (31, (-0.1, 1e6)):
        assert half.undecided
        return
    assert half.broken
    assert not half.undecided
    assert float(half.sensitivity) == pytest.approx(float(claimed), rel=1e-4 if short else 1e-6)


@pytest.mark.parametrize(
    "name", ["sum / len", "sum", "reduce", "statistics.mean", "np.mean", "np.var", "naive variance"]
)
def test_what_can_be_evaluated_with_fractions_is_decided(name):
    f, true = TRUE[name]
    for bounds in ((0, 0.7), (0.1, 0.3)):
        claimed = true(n=10, bounds=bounds)
        search = search_sensitivity(f, bounds, 10, claimed=claimed, tries=400)
        assert search.tolerance == 0
        assert not search.undecided
        slightly = search_sensitivity(
            f, bounds, 10, claimed=claimed * Fraction(10**12 - 1, 10**12), tries=400
        )
        assert slightly.broken


def test_a_difference_within_the_rounding_of_floats_is_not_decided():
    # √99/100 is larger
    search = search_sensitivity(np.std, (0, 1), 100, claimed="0.0994987437106619", tries=400)
    assert search.undecided
    assert not search.broken
    assert "not decided at this precision, rounding is up to 2e-12" in repr(search)
    assert search_sensitivity(
        np.std, (0, 1), 100, claimed="0.0994987437106619", tolerance=0, tries=400
    ).broken
    assert search_sensitivity(np.std, (0, 1), 100, claimed="0.0994", tries=400).broken


def test_a_function_that_means_something_else_by_fractions_is_judged_by_what_it_returned():
    search = search_sensitivity(
        lambda x: float(sum(isinstance(v, Fraction) or v for v in x)), (0, 5), 3, claimed=4
    )
    assert search.broken
    assert search.sensitivity == 5
    counts = search_sensitivity(
        lambda x: sum(type(v) is float for v in x) and sum(x) * 2.0, (0.0, 1.0), 3, claimed=1
    )
    assert counts.broken


def test_the_values_of_a_list_may_be_texts_truths_or_records():
    for two in (
        ["A", "B"],
        ("A", "B"),
        [False, True],
        [None, "A"],
        [("A", 1), ("B", 2)],
        [["A"], ["B"]],
        np.array(["A", "B"]),
    ):
        first = two[0].item() if isinstance(two, np.ndarray) else two[0]
        search = search_sensitivity(
            lambda x, first=first: [x.count(first), len(x) - x.count(first)],
            two,
            5,
            claimed=2,
            tries=200,
        )
        assert search.sensitivity == 2
        assert not search.broken
        half = search_sensitivity(
            lambda x, first=first: [x.count(first), len(x) - x.count(first)],
            two,
            5,
            claimed=1,
            tries=200,
        )
        assert half.broken
        assert {repr(value) for value in half.x} <= {repr(value) for value in list(two)} | {
            "'A'",
            "'B'",
        }


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
    """f counts how many of the values are as in a hidden list: only climbing gets all of them
    right.
    """
    hidden = [4, 2, 7, 1, 5, 0, 3]

    def f(x):
        right = sum(a == b for a, b in zip(x, hidden, strict=True))
        return 2**right

    search = search_sensitivity(f, list(range(8)), 7, tries=20_000)
    assert search.sensitivity == 64
    assert hidden in (search.x, search.x_neighbor)


@pytest.mark.parametrize("wrong", [3, "ab", {0, 1}, [], [1], ["A"], np.array([1.0]), None])
def test_what_is_no_domain_is_refused_with_the_rule(wrong):
    with pytest.raises(
        InvalidParameter,
        match=r"domain must be a pair of numbers \(lower, upper\), or two or more values",
    ):
        search_sensitivity(sum, wrong, 3)


def test_what_is_no_interval_and_no_number_is_refused():
    for wrong in ((1, 0), (0, 0), (0, math.nan), (0, math.inf)):
        with pytest.raises(InvalidParameter):
            search_sensitivity(sum, wrong, 3)
    with pytest.raises(InvalidParameter):
        search_sensitivity(sum, (0, 1), 0)
    with pytest.raises(InvalidParameter, match="tolerance must not be negative"):
        search_sensitivity(sum, (0, 1), 3, tolerance=-1)
