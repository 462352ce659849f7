"""Randomized response: exact coins, an estimate without bias, an error that the data cannot move."""

import math
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import accuracy
from discreet.errors import InvalidParameter
from discreet.release.statistics.response import Response, _ones, _respond, randomized_response
from scripted import Scripted

EPSILONS = ["0.000000001", "0.1", "1/3", "1", "3", "20", "1000000"]


def truth(epsilon: Fraction) -> mpmath.mpf:
    growth = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    return growth / (1 + growth)


def response_of(ones: int, count: int, epsilon: str) -> Response:
    return Response(bits=np.arange(count) < ones, epsilon=Fraction(epsilon))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_a_bit_is_kept_below_the_threshold_and_turned_over_above_it(epsilon):
    with mpmath.workdps(80):
        scaled = truth(Fraction(epsilon)) * 2**64
        first = int(mpmath.floor(scaled))
        second = int(mpmath.floor((scaled - first) * 2**64))
    bits = [0, 1, 0, 1, 0, 1, 0, 1]
    script = Scripted(
        [first - 1, first - 1, first + 1, first + 1, first, first, first, first],
        [second - 1, second - 1, second + 1, second + 1],
    )
    response = _respond(bits, Fraction(epsilon), script)
    assert response.bits.tolist() == [False, True, True, False, False, True, True, False]
    assert script.asked == 4


@pytest.mark.parametrize("epsilon", ["0.1", "1/3", "1", "3", "20"])
def test_the_estimate_is_the_formula_correctly_rounded(epsilon):
    with mpmath.workdps(60):
        p = truth(Fraction(epsilon))
        for count, ones in ((1, 0), (1, 1), (10, 0), (10, 3), (10, 5), (7, 7), (1001, 500)):
            wanted = float((mpmath.mpf(ones) / count - (1 - p)) / (2 * p - 1))
            assert response_of(ones, count, epsilon).proportion == wanted


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_estimate_has_no_bias_and_the_stated_deviation_for_every_number_of_ones(epsilon):
    """Exact mean and variance over the law of the randomised ones, in 40 digits."""
    count = 6
    with mpmath.workdps(40):
        p = truth(Fraction(epsilon))
        for ones in range(count + 1):
            law = [mpmath.mpf(1)]
            for person in range(count):
                chance = p if person < ones else 1 - p
                law = [
                    (law[k] * (1 - chance) if k < len(law) else 0)
                    + (law[k - 1] * chance if k else 0)
                    for k in range(len(law) + 1)
                ]
            estimates = [(mpmath.mpf(k) / count - (1 - p)) / (2 * p - 1) for k in range(count + 1)]
            mean = mpmath.fsum(weight * value for weight, value in zip(law, estimates, strict=True))
            square = mpmath.fsum(
                weight * value**2 for weight, value in zip(law, estimates, strict=True)
            )
            assert abs(mean - mpmath.mpf(ones) / count) < mpmath.mpf(10) ** -35
            assert float(mpmath.sqrt(square - mean**2)) == response_of(ones, count, epsilon).std
            for confidence in (0.5, 0.9, 0.95, 0.999):
                reach = response_of(ones, count, epsilon).accuracy(confidence)
                covered = mpmath.fsum(
                    weight
                    for weight, value in zip(law, estimates, strict=True)
                    if abs(value - mean) <= reach
                )
                assert covered >= confidence


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [1, 2, 3, 200, 10**9])
def test_laplace_is_better_by_the_square_root_of_half_n(epsilon, n):
    ratio = float(mpmath.sqrt(mpmath.mpf(n) / 2))
    response = accuracy.randomized_response(n=n, epsilon=epsilon)
    laplace = accuracy.root_mean_square_error(1 / Fraction(epsilon), law="discrete") / n
    if laplace > 0:  # at ε = 10⁶ both errors are below the smallest float
        assert response / laplace == pytest.approx(ratio, rel=1e-15)
        assert response == pytest.approx(
            1 / (2 * math.sqrt(n) * math.sinh(float(Fraction(epsilon)) / 2)), rel=1e-14
        )
    else:
        assert epsilon == "1000000"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_admitted_epsilon_gives_finite_numbers(epsilon):
    response = randomized_response([1, 0] * 20, epsilon=epsilon)
    assert math.isfinite(response.proportion)
    assert math.isfinite(response.accuracy("0.99"))
    lower, upper = response.interval("0.99")
    assert lower < response.proportion < upper
    assert response.epsilon == Fraction(epsilon)


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None


def test_what_is_no_bit_counts_as_zero_and_nothing_raises():
    odd = [
        math.nan,
        math.inf,
        -1,
        2,
        0.5,
        "yes",
        None,
        [1],
        {},
        Decimal("sNaN"),
        Hostile(),
        10**400,
        np.array([1, 1]),
    ]
    assert _ones([1, 0, True, False, 1.0, np.int8(1), np.True_, Fraction(1), *odd]).tolist() == (
        [True, False, True, False, True, True, True, True] + [False] * len(odd)
    )
    array = np.empty(len(odd) + 1, object)
    for index, item in enumerate([1, *odd]):
        array[index] = item
    assert _ones(array).tolist() == [True] + [False] * len(odd)


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (np.array([True, False]), [True, False]),
        (np.array([1, 0, 7, -1], np.int8), [True, False, False, False]),
        (np.array([1, 2**64 - 1], np.uint64), [True, False]),
        (np.ma.MaskedArray([1, 1, 0], [0, 1, 0]), [True, False, False]),
        (pd.Series([True, None, False], dtype="boolean"), [True, False, False]),
        (pd.Series([1, None, 0], dtype="Int64"), [True, False, False]),
        (pl.Series([1, None, 0]), [True, False, False]),
        (pa.array([1, None, 0]), [True, False, False]),
        (pa.array([True, None, False]), [True, False, False]),
        ((1, 0), [True, False]),
        (np.arange(6)[::-2], [False, False, True]),
        (range(3), [False, True, False]),
    ],
)
def test_arrays_of_every_kind_are_read(bits, expected):
    assert _ones(bits).tolist() == expected


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        *(
            (none, "bits must have at least one entry")
            for none in ([], (), np.array([]), np.array([], bool))
        ),
        *(
            (other, "the data must be a list, an array or a column")
            for other in (1, "10", None, {1, 0})
        ),
        (np.ones((2, 2), int), "the data must be one column of values, got 2 dimensions"),
        (np.array(["1", "x"]), "the data must be numbers"),
        (np.array([1, 1], "datetime64[ns]"), "the data must be numbers"),
    ],
)
def test_no_people_and_no_column_are_refused(bits, words):
    with pytest.raises(InvalidParameter, match=words):
        randomized_response(bits, epsilon=1)


@pytest.mark.parametrize("values", [[1.0, 0.0], [0.5, 0.25], [1.0, math.nan]])
@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda values: np.array(values, np.float32),
        np.ma.MaskedArray,
        pd.Series,
        lambda values: pd.Series(values, dtype="Float64"),
        pl.Series,
        pa.array,
    ],
)
def test_a_column_of_real_numbers_is_refused_by_its_type_whatever_its_values(make, values):
    with pytest.raises(
        InvalidParameter,
        match="whole numbers, 0 or 1, got a column of real numbers; write a condition",
    ):
        randomized_response(make(values), epsilon=1)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "x", None, 1e400])
def test_a_bad_epsilon_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        randomized_response([1], epsilon=epsilon)
    with pytest.raises(InvalidParameter, match="epsilon"):
        accuracy.randomized_response(n=5, epsilon=epsilon)


@pytest.mark.parametrize("n", [0, -1, True, 2.5, "3", None])
def test_a_number_of_people_must_be_whole_and_positive(n):
    with pytest.raises(InvalidParameter, match="n must be a whole number"):
        accuracy.randomized_response(n=n, epsilon=1)


@pytest.mark.parametrize("confidence", [0, 1, "1.5", -1, math.nan, True])
def test_a_confidence_lies_between_zero_and_one(confidence):
    with pytest.raises(InvalidParameter, match="confidence"):
        response_of(1, 2, "1").accuracy(confidence)


def test_a_response_is_frozen_and_shows_no_list_of_bits():
    bits = np.array([True, False, True])
    response = randomized_response(bits, epsilon="0.5")
    assert bits.tolist() == [True, False, True]
    assert repr(response).startswith("Response(proportion=")
    assert "count=3, epsilon=1/2" in repr(response)
    with pytest.raises(FrozenInstanceError):
        response.epsilon = Fraction(1)
    with pytest.raises(ValueError, match="read-only"):
        response.bits[0] = True
