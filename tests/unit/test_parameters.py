"""Epsilons, bounds, neighbours, counts and confidences: read exactly or refused with one clear
sentence.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.parameters import (
    UNIT,
    charge,
    exact,
    exact_bounds,
    exact_chance,
    exact_count,
    exact_epsilon,
    exact_neighbors,
    exact_number,
    exact_sensitivity,
)


@pytest.mark.parametrize(
    ("bounds", "exact"),
    [
        ((0, 120), (0, 120)),
        ([-0.1, 0.2], (Fraction(-1, 10), Fraction(1, 5))),
        (("-1/3", "1e3"), (Fraction(-1, 3), 1000)),
        ((Decimal("-2.5"), Fraction(7, 3)), (Fraction(-5, 2), Fraction(7, 3))),
        ((np.float64(0.1), np.int64(2)), (Fraction(1, 10), 2)),
        ((-1e300, 1e300), (-(10**300), 10**300)),
        ((-0.0, 1), (0, 1)),
    ],
)
def test_bounds_are_read_exactly(bounds: object, exact: tuple[Fraction, Fraction]) -> None:
    assert exact_bounds(bounds) == exact


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((120, 0), "lower must not exceed upper, got lower=120 and upper=0"),
        ((1, 1.0), "lower and upper must differ, got 1 twice"),
        (None, "bounds must be a pair"),
        ((), "bounds must be a pair .* got 0 values"),
        ((0, 1, 2), "bounds must be a pair .* got 3 values"),
        ("01", "bounds must be a pair"),
        ({0: 1, 2: 3}, "bounds must be a pair"),
        ({0, 1}, "bounds must be a pair"),
        (5, "bounds must be a pair"),
        ((math.nan, 1), "lower must be a finite number"),
        ((0, math.inf), "upper must be a finite number"),
        ((-math.inf, 0), "lower must be a finite number"),
        ((0, Decimal("NaN")), "upper must be a finite number"),
        ((False, 1), "lower must be a finite number"),
        ((0, np.True_), "upper must be a finite number"),
        ((0, None), "upper must be a finite number"),
        ((0, "12x"), "upper must be a finite number"),
        ((0, "1/0"), "upper must be a finite number"),
        ((0, 1j), "upper must be a finite number"),
        ((0, 1.7e308), "upper must be 0 or between"),
        ((-1.7e308, 0), "lower must be 0 or between"),
        ((-1.7e308, 1.7e308), "lower must be 0 or between"),
        ((0, 5e-324), "upper must be 0 or between"),
        ((0, "1e9999"), "upper must be 0 or between"),
        ((0, "9" * 5000), "upper must be a finite number"),
        ((0, 10**5000), "upper must be a finite number"),
    ],
)
def test_bounds_that_cannot_be_used_are_refused(bounds: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message) as refused:
        exact_bounds(bounds)
    assert len(str(refused.value)) < 200


@given(st.floats(-1e200, 1e200), st.floats(-1e200, 1e200))
def test_a_float_bound_is_its_shortest_decimal(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    if lower < upper and all(not x or abs(x) > 1e-290 for x in (lower, upper)):
        assert exact_bounds((lower, upper)) == (Fraction(repr(lower)), Fraction(repr(upper)))


def test_neighbors_are_two_words() -> None:
    assert exact_neighbors("change-one") == "change-one"
    assert exact_neighbors("add-remove") == "add-remove"


@pytest.mark.parametrize("value", ["change_one", "", None, 1, "Change-One", ["change-one"]])
def test_other_neighbors_are_refused(value: object) -> None:
    with pytest.raises(
        InvalidParameter, match="neighbors must be 'change-one' or 'add-remove', got"
    ):
        exact_neighbors(value)


@pytest.mark.parametrize("value", [1, 10**18, np.int32(7)])
def test_counts_are_whole_numbers(value: int) -> None:
    assert exact_count("n", value) == int(value)


@pytest.mark.parametrize("value", [0, -1, True, np.True_, 1.0, "5", None, math.nan, 10**18 + 1])
def test_other_counts_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="n must be a whole number from 1 to"):
        exact_count("n", value)


def test_a_number_that_python_will_not_write_is_refused_all_the_same() -> None:
    with pytest.raises(InvalidParameter, match="thousands of digits"):
        exact_count("n", 10**5000)


def test_a_confidence_lies_strictly_between_0_and_1() -> None:
    assert exact_chance("confidence", 0.95) == Fraction(19, 20)
    for value in (0, 1, -0.5, 95, math.nan, True, "95%"):
        with pytest.raises(InvalidParameter, match="confidence must"):
            exact_chance("confidence", value)


def test_a_number_has_any_sign() -> None:
    assert [exact_number("at", value) for value in ("-1/3", 0, 2.5)] == [
        Fraction(-1, 3),
        0,
        Fraction(5, 2),
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        (1, Fraction(1)),
        (np.int64(2), Fraction(2)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (1e-9, UNIT),
        (10**6, Fraction(10**6)),
    ],
)
def test_one_parse_gives_one_fraction(written, meant):
    assert exact_epsilon(written) == meant


def test_ten_tenths_are_one():
    assert sum(exact_epsilon(0.1) for _ in range(10)) == exact_epsilon(1)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**6))
def test_a_charge_is_never_too_little_and_less_than_one_unit_too_much(epsilon):
    assert epsilon <= charge(epsilon) * UNIT < epsilon + UNIT


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_float_sensitivity_covers_both_of_its_readings(value):
    assert exact_sensitivity(value) >= max(Fraction(value), Fraction(repr(value)))
    assert exact_sensitivity(value) <= Fraction(value) * Fraction(1 + 2**-50)


def test_the_message_quotes_the_parameter():
    with pytest.raises(InvalidParameter, match=r"epsilon must be a positive number .* got '0\.1x'"):
        exact_epsilon("0.1x")
    with pytest.raises(InvalidParameter, match=r"scale must be positive, got -1"):
        exact("scale", -1)
    with pytest.raises(InvalidParameter, match="a list"):
        exact("scale", [1])


def test_a_bool_is_no_number_even_after_a_one():
    """1 == True, so a careless cache would let True in after 1."""
    assert exact_epsilon(1) == 1
    with pytest.raises(InvalidParameter):
        exact_epsilon(True)
