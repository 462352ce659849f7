"""Draws that a certificate is made of: the same with a ledger and without one."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.release.mechanism import choose_cells
from discreet.release.statistics.points import spread_points
from discreet.verify.recorded import recorded, recording

COUNTS = Exact([np.eye(1, 2**12, 9, dtype=np.int64)[0]])
HALF, RATE = Fraction(1, 2), Fraction(1, 4)


def choice(points, rate):
    return choose_cells(
        COUNTS, share=HALF, offset=Fraction(0), over=rate, under=rate, points=[points]
    )


def test_what_a_choice_returns_is_decided_by_its_rank_and_not_drawn():
    with recording() as draws:
        values = [
            choose_cells(COUNTS, share=HALF, offset=Fraction(offset), over=RATE, under=RATE)
            for offset in (-1, 0, 1)
        ]
    assert values == [[2**10], [2**11], [3 * 2**10]]
    unit, costs = draws[1].costs(1, 0)
    assert (unit, costs[9], set(costs.tolist())) == (RATE / 2, 0, {0, 1})


def test_the_points_of_a_choice_may_not_differ():
    spreads = iter([None, spread_points(0, 2**12, Fraction(64))])
    with pytest.raises(InvalidParameter, match="must draw the same with a ledger and without one"):
        recorded(lambda: choice(next(spreads), RATE))


def test_the_rates_of_a_choice_may_not_differ():
    rates = iter([RATE, RATE / 2])
    with pytest.raises(InvalidParameter, match="must draw the same with a ledger and without one"):
        recorded(lambda: choice(None, next(rates)))
