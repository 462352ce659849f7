"""Brackets of quantiles: each end has a draw of its own."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.calibrate.grid import value_grid
from discreet.engines.base import Exact
from discreet.release.statistics.ranks import find_brackets

GRID = value_grid((0, 100), bits=30, whole=True)


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20)])
def test_a_bracket_rises_although_its_ends_have_draws_of_their_own(confidence):
    """With four rows that lie far apart, the draw of the lower end is the larger one in 2 % of the
    groups at ½.
    """
    group = np.zeros(GRID.width + 1, np.int64)
    group[[10, 20, 70, 80]] = 1
    first, last = find_brackets(
        Exact([group] * 3000), GRID, Fraction(1, 2), Fraction(1, 8), confidence
    )
    assert (first <= last).all()
    assert GRID.lower <= first.min() < last.max() <= GRID.upper


@pytest.mark.parametrize(
    ("draws", "bracket"),
    [
        ((31, 11), (10, 30)),
        ((11, 31), (10, 30)),
        ((102, 0), (0, 100)),
        ((102, 102), (100, 100)),
        ((0, 0), (0, 0)),
    ],
)
def test_the_ends_of_a_bracket_are_put_in_order_and_lie_within_the_bounds(
    monkeypatch, draws, bracket
):
    """The cell 0 lies below the bounds, and the cell 102 above them."""
    given = iter([[draws[0]], [draws[1]]])
    monkeypatch.setattr(
        "discreet.release.statistics.ranks.choose_cells", lambda *_, **__: next(given)
    )
    ends = find_brackets(
        Exact([np.ones(101, np.int64)]), GRID, Fraction(1, 2), Fraction(1), Fraction(19, 20)
    )
    assert tuple(int(end[0]) for end in ends) == bracket
