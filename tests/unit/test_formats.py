"""Numbers as people read them: one rule, of which CSV, spreadsheets, pages and terminals are made."""

import math

import numpy as np
import pytest

from discreet.formats import decimals_of, rounded, with_interval


@pytest.mark.parametrize(
    ("three", "text"),
    [
        ((41207.338456, 41097.2, 41317.4), "41,207 ± 111"),
        ((47.3123, 47.01, 47.6123), "47.31 ± 0.31"),
        ((44.0, 43.0, 45.0), "44 ± 1"),
        ((9.18, 8.12, 10.24), "9.2 ± 1.1"),
        ((9.1, 8.05, 10.14), "9.1 ± 1.1"),
        ((7, 7, 7), "7"),
        ((0.25, 0.25, 0.25), "0.25"),
        ((1 / 3, 1 / 3, 1 / 3), "0.3333333333"),
        ((2.5, -math.inf, math.inf), "2.5 (-inf to inf)"),
        ((0.00123456, 0.001, 0.0015), "0.00123 (0.00100 to 0.00150)"),
        ((2**70, 2**70 - 5, 2**70 + 5), "1,180,591,620,717,411,303,424 ± 5"),
        ((10**400, 10**400, 10**400), f"{10**400:,}"),
        ((10**400, 0, 2 * 10**400), f"{10**400:,} ± {10**400:,}"),
    ],
)
def test_a_number_has_the_digits_that_its_error_gives_a_meaning(three, text):
    assert with_interval(*three) == text


def test_ends_go_outward_and_the_interval_grows_by_a_tenth_at_most():
    """An end that went inward would hold less often than was promised."""
    generator = np.random.default_rng(1)
    value = generator.normal(size=20_000) * 10.0 ** generator.integers(-6, 6, 20_000)
    reach = abs(generator.normal(size=20_000)) * 10.0 ** generator.integers(-6, 4, 20_000)
    low, high = value - reach, value + reach
    near, below, above, digits = rounded(value, low, high)
    assert (below <= low).all()
    assert (above >= high).all()
    assert ((below <= near) & (near <= above)).all()
    # from 10 on, whole numbers have more than two digits of the error
    small = (reach > 1e-9) & (reach < 10)
    assert ((above - below)[small] <= 2.2 * reach[small]).all()
    assert (np.rint(near * 10.0**digits) / 10.0**digits == near).all()


def test_what_is_rounded_stays_when_it_is_rounded_again():
    value, low, high = (np.arange(-1000 + shift, 1000 + shift) / 100 for shift in (0, -50, 25))
    for decimals in (2, 3, 12):
        near, below, above, _ = rounded(value, low, high, decimals)
        assert (near == value).all()
        assert (below == low).all()
        assert (above == high).all()


def test_decimals_take_the_place_of_the_rule_and_leave_integers():
    value, low, high = np.array([4.4567]), np.array([4.41]), np.array([4.49])
    assert [column.tolist() for column in rounded(value, low, high, 1)] == [
        [4.5],
        [4.4],
        [4.5],
        [1],
    ]
    whole = np.array([3, 4])
    assert [column.tolist() for column in rounded(whole, whole, whole, 1)] == [
        [3, 4],
        [3, 4],
        [3, 4],
        [0, 0],
    ]
    assert decimals_of(value, low, high).tolist() == [3]
