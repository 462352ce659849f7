"""Draws that a certificate is made of: the same with a ledger and without one."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.release.mechanism import choose_cells
from discreet.release.statistics.points import spread_points
from discreet.verify.recorded import recorded

COUNTS = Exact([np.eye(1, 2**12, 9, dtype=np.int64)[0]])
HALF, RATE = Fraction(1, 2), Fraction(1, 4)


def choice(points, rate):
    return choose_cells(COUNTS, share=HALF, offset=Fraction(0), over=rate, under=rate, points=[points])


def test_the_points_of_a_choice_may_differ_because_they_follow_from_its_bracket():
    spreads = iter([None, spread_points(0, 2**12, Fraction(64))])
    _, [draw] = recorded(lambda: choice(next(spreads), RATE))
    assert draw.rates(1) == (HALF, RATE, RATE)


def test_the_rates_of_a_choice_may_not_differ():
    rates = iter([RATE, RATE / 2])
    with pytest.raises(InvalidParameter, match="must draw the same with a ledger and without one"):
        recorded(lambda: choice(None, next(rates)))
