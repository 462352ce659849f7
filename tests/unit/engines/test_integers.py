"""Columns of integers: a list to whoever reads them, exact to whoever computes with them."""

import numpy as np
import pytest

from discreet.engines.integers import Integers, column, near, roomy


def test_it_is_a_list_of_python_integers():
    found = Integers(np.arange(100))
    assert list(found) == list(range(100)) == found
    assert type(found[3]) is int
    assert {type(item) for item in found} == {int}
    assert found[10:12] == [10, 11]
    assert np.array(found, np.float64).dtype == np.float64
    assert repr(found) == "Integers(100)"


def test_few_are_a_list_and_many_an_array():
    assert column(np.arange(3)) == [0, 1, 2]
    assert isinstance(column(np.arange(3)), list)
    assert isinstance(column(np.arange(1000)), Integers)


@pytest.mark.parametrize(
    ("values", "expected"), [([], True), ([2**60 - 1], True), ([2**60], False), ([-(2**60)], False)]
)
def test_near_knows_the_limit(values, expected):
    assert near(np.array(values, np.int64), 2**60) is expected
    assert not near(np.array([1], object), 2**60)


def test_where_int64_has_no_room_python_integers_go_on():
    large = np.array([2**59, -(2**59)])
    [kept] = roomy([large], [1])
    assert kept.dtype == np.int64
    [wide] = roomy([large], [4])
    assert (wide * 2**30).tolist() == [2**89, -(2**89)]
