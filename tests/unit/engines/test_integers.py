"""Columns of integers: a list to whoever reads them, exact to whoever computes with them."""

import numpy as np
import pytest

from discreet.draw.addition import fits_int64
from discreet.engines.integers import CellCounts, Integers, column, without_overflow
from discreet.errors import EngineFailed


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
    assert fits_int64(np.array(values, np.int64), 2**60) is expected
    assert not fits_int64(np.array([1], object), 2**60)


def test_where_int64_has_no_room_python_integers_go_on():
    large = np.array([2**59, -(2**59)])
    [kept] = without_overflow([large], [1])
    assert kept.dtype == np.int64
    [wide] = without_overflow([large], [4])
    assert (wide * 2**30).tolist() == [2**89, -(2**89)]


def dense(groups, width, parts):
    counts = np.zeros((groups, width), np.int64)
    for part in parts:
        np.add.at(counts, part[:2], part[2])
    return counts


@pytest.mark.parametrize("largest", [5, 2**40, 2**61])
def test_counts_of_cells_are_those_of_all_cells_added_up(largest):
    generator = np.random.default_rng(largest)
    for groups, width, rows in ((1, 1, 0), (1, 5, 3), (7, 3, 0), (40, 9, 60), (3, 1000, 50)):
        parts = []
        for _ in range(2):
            some = generator.integers(0, groups, rows), generator.integers(0, width, rows)
            parts.append(
                (*some, generator.integers(1, largest, rows, endpoint=True) // (rows + 1) + 1)
            )
        for given in (parts, parts[:1], []):
            counts, expected = CellCounts.added(groups, width, given), dense(groups, width, given)
            for copy in (counts, CellCounts.of(counts), CellCounts.of(list(expected))):
                assert np.array_equal(list(copy), expected)
                assert len(copy) == groups
                assert np.array_equal(copy[-1], expected[-1])
                for part in (slice(0, 1), slice(2, 5), slice(None), slice(1, None)):
                    assert [each.tolist() for each in copy[part]] == expected[part].tolist()
            places = np.arange(width) // 4
            together = np.add.reduceat(expected, np.arange(0, width, 4), axis=1)
            assert np.array_equal(list(counts.gathered(places, int(places[-1]) + 1)), together)
    assert repr(counts) == "CellCounts(3)"


def test_a_cell_outside_of_the_grid_is_refused():
    for cell in (-1, 3):
        with pytest.raises(EngineFailed, match="outside of the grid"):
            CellCounts.added(2, 3, [(np.array([0]), np.array([cell]), np.array([1]))])
