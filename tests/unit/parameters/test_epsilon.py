from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.parameters import UNIT, charge, exact, exact_epsilon, exact_sensitivity


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
