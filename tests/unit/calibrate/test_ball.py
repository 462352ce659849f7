import math
from fractions import Fraction

import mpmath
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet.calibrate.ball import ball, integer_floor, lower_bound, nearest, upper_bound


@given(st.fractions())
def test_a_rational_comes_back_as_the_nearest_float(number):
    assert nearest(lambda: ball(number)) == float(number)


@given(st.fractions(min_value=-800, max_value=800))
def test_exp_is_correctly_rounded(number):
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(number.numerator) / number.denominator)
        rounded = nearest(lambda: ball(number).exp())
        if math.isinf(rounded):
            assert exact > mpmath.mpf(2) ** 1023
            return
        error = abs(exact - mpmath.mpf(rounded))
        for other in (math.nextafter(rounded, math.inf), math.nextafter(rounded, -math.inf)):
            assert math.isinf(other) or error <= abs(exact - mpmath.mpf(other))


def test_the_ends_of_the_floats():
    assert nearest(lambda: arb(-(10**6)).exp()) == 0.0
    assert nearest(lambda: arb(10**6).exp()) == math.inf
    assert nearest(lambda: -arb(10**6).exp()) == -math.inf
    assert math.copysign(1, nearest(lambda: -arb(-(10**6)).exp())) == 1
    assert nearest(lambda: arb((3, -1075))) == 2.0**-1073  # 1.5 steps of the subnormals: to even


@given(st.integers(min_value=2, max_value=10**30))
def test_bounds_enclose_a_root(number):
    low, high = lower_bound(lambda: arb(number).sqrt()), upper_bound(lambda: arb(number).sqrt())
    assert low**2 <= number <= high**2
    assert high - low < Fraction(1, 2**60)


def test_the_floor_of_an_irrational():
    assert integer_floor(arb.pi) == 3
    assert integer_floor(lambda: -arb.pi()) == -4
