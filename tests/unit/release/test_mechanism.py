"""Choices of cells near a rank: the costs in runs are those of all cells, and every cell has its
run.
"""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells import spread_out
from discreet.draw.choice import Runs, common_unit
from discreet.draw.noted import noting
from discreet.engines.base import Exact
from discreet.engines.integers import CellCounts
from discreet.release import mechanism
from discreet.release.mechanism import choose_cells
from discreet.release.statistics.points import Points

RATES = st.fractions(Fraction(1, 10**9), 10**6, max_denominator=10**9)


def dense_costs(groups, share, offset, over, under, beyond, points):
    """The costs of all cells in Python's integers, from the docstring of `choose_cells`, and their
    unit.
    """
    unit, above, below = common_unit(over, under)
    shared = math.lcm(share.denominator, offset.denominator)
    costs = []
    for counts, spread in zip(groups, points or [None] * len(groups), strict=True):
        rank = share * sum(counts) + offset
        cells, before = [], 0
        for count in counts:
            cells.append(max(above * (before - rank), below * (rank - before - count), 0))
            before += count
        if beyond:
            cells = [max(below * rank, 0), *cells, max(above * (before - rank), 0)]
        costs.append([int(cost * shared) for cost in cells])
        if spread is not None:
            handicap = math.ceil(spread.handicap / (unit / shared))
            points_of = range(-spread.lower % 2**spread.bits, len(cells), 2**spread.bits)
            costs[-1] = [
                cost + (0 if cell in points_of else handicap) for cell, cost in enumerate(costs[-1])
            ]
    return costs, unit / shared


@st.composite
def tables(draw):
    width = draw(st.integers(1, 40))
    largest = draw(st.sampled_from([1, 3, 1000, 2**40]))
    filled = draw(st.sampled_from([0, 1, 3, width]))
    group = st.dictionaries(st.integers(0, width - 1), st.integers(0, largest), max_size=filled)
    groups = [
        [counts.get(cell, 0) for cell in range(width)]
        for counts in draw(st.lists(group, min_size=1, max_size=5))
    ]
    beyond = draw(st.booleans())
    spread = st.none() | st.builds(
        Points, bits=st.integers(1, 5), lower=st.integers(-(10**6), 10**6)
    )
    number = len(groups)
    points = (
        None if beyond else draw(st.none() | st.lists(spread, min_size=number, max_size=number))
    )
    return groups, beyond, points


@given(
    tables(),
    st.fractions(0, 1, max_denominator=1000),
    st.fractions(-(10**4), 10**4, max_denominator=4),
    RATES,
    st.sampled_from([Fraction(1), Fraction(3, 7), Fraction(7, 3)]),
    st.integers(1, 50),
)
def test_the_runs_cost_what_all_cells_cost_one_by_one(table, share, offset, over, ratio, part):
    groups, beyond, points = table
    under = over * ratio
    expected, unit = dense_costs(groups, share, offset, over, under, beyond, points)
    drawn = []

    def choose(runs: Runs, unit: Fraction) -> np.ndarray:
        drawn.append((spread_out(runs).tolist(), unit))
        return np.arange(len(runs.rows)) + len(drawn)

    arrays = [np.array(counts) for counts in groups]
    for counts in (arrays, CellCounts.of(arrays)):
        drawn.clear()
        patched = mock.patch.multiple(mechanism, choose=choose, _CELLS=part)
        with patched, noting():  # one part after the other
            choose_cells(
                Exact(counts),
                share=share,
                offset=offset,
                over=over,
                under=under,
                beyond=beyond,
                points=points,
            )
        assert [row for rows, _ in drawn for row in rows] == expected
        assert {each for _, each in drawn} == {unit}


def test_every_group_gets_its_own_choice():
    groups = [np.eye(9, dtype=np.int64)[cell] * 10**6 for cell in range(9)] * 50
    half = {
        "share": Fraction(1, 2),
        "offset": Fraction(0),
        "over": Fraction(1),
        "under": Fraction(1),
    }
    with mock.patch.object(mechanism, "_CELLS", 64):
        assert choose_cells(Exact(groups), **half) == list(range(9)) * 50
        points = [Points(bits=3, lower=0), None] * 225
        assert choose_cells(Exact(groups), points=points, **half) == list(range(9)) * 50


def test_choices_are_made_on_all_cores_but_one_after_the_other_if_they_are_noted():
    def cores(work, parts):
        used.append(parts := list(parts))
        return map(work, parts)

    used: list[list[slice]] = []
    groups = [np.arange(9)] * 50
    half = {
        "share": Fraction(1, 2),
        "offset": Fraction(0),
        "over": Fraction(1),
        "under": Fraction(1),
    }
    with mock.patch.multiple(mechanism, _CELLS=64, on_all_cores=cores):
        with noting() as notes:
            choose_cells(Exact(groups), **half)
        assert (used, sum(note.count for note in notes)) == ([], 50)
        choose_cells(Exact(groups), **half)
    assert len(used) == 1
    assert len(used[0]) == len(notes) > 1


@pytest.mark.parametrize(("offset", "expected"), [(-(10**6), 0), (0, 5), (10**6, 10)])
def test_a_rank_beyond_everybody_is_in_a_cell_of_its_own(offset, expected):
    groups = [np.array([0, 0, 0, 0, 100, 0, 0, 0, 0])] * 20
    rank = {
        "share": Fraction(1, 2),
        "offset": Fraction(offset),
        "over": Fraction(9),
        "under": Fraction(9),
    }
    assert choose_cells(Exact(groups), beyond=True, **rank) == [expected] * 20
