from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.calibrate.grid import float_grid, floor_log2, integer_grid, value_grid
from discreet.errors import InvalidParameter

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)
epsilons = st.fractions(min_value=Fraction(1, 10**9), max_value=10**6)


@given(positive)
def test_floor_log2_is_exact(number):
    assert Fraction(2) ** floor_log2(number) <= number < Fraction(2) ** (floor_log2(number) + 1)


@given(positive, epsilons)
def test_on_integers_nothing_is_added(sensitivity, epsilon):
    grid = integer_grid(sensitivity, epsilon)
    assert grid.step == 1
    assert grid.scale == sensitivity / epsilon


@given(positive, epsilons, st.integers(1, 10**8))
def test_the_float_grid_pays_for_its_rounding_and_never_much(sensitivity, epsilon, changes):
    grid = float_grid(sensitivity, epsilon, changes)
    # rounding moves each of the changed coordinates by up to one step more
    assert grid.scale * grid.step * epsilon == sensitivity + changes * grid.step == grid.sensitivity
    assert grid.sensitivity <= sensitivity * Fraction(129, 128)
    assert (
        grid.step <= sensitivity / epsilon * Fraction(1, 2**20)
        or changes * grid.step <= sensitivity / 64
    )


def test_the_grid_is_fine_for_ordinary_parameters():
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10)):
        grid = float_grid(Fraction(1), epsilon, 1)
        assert grid.sensitivity <= 1 + Fraction(1, 2**20)
        assert grid.step <= Fraction(1, 2**20) / epsilon


def test_no_changes_are_refused():
    with pytest.raises(InvalidParameter, match="changes must be at least 1, got 0"):
        float_grid(Fraction(1), Fraction(1), 0)


@given(
    st.fractions(-(10**6), 10**6, max_denominator=10**6),
    positive,
    st.integers(1, 30),
    st.booleans(),
)
def test_a_grid_of_values_covers_the_bounds_and_less_than_a_step_more(lower, width, bits, whole):
    upper = lower + width
    grid = value_grid((lower, upper), bits=bits, whole=whole)
    assert grid.lower * grid.step <= lower < (grid.lower + 1) * grid.step
    assert (grid.upper - 1) * grid.step < upper <= grid.upper * grid.step
    assert grid.width == grid.upper - grid.lower >= 1
    assert grid.point(lower - 2 * grid.step) == grid.lower
    assert grid.point(upper + 2 * grid.step) == grid.upper
