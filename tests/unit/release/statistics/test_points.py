"""The points that a quantile is chosen among first: where they lie, what they depend on, and what
they gain.

The test of the gain has a false-alarm rate below 10⁻⁷: its means, of 12,000 errors each, lie more
than five of their standard deviations from the bound between them.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from cells import spread_out
from discreet.calibrate.ball import ball, upper_bound
from discreet.draw.choice import Runs
from discreet.engines.base import Exact
from discreet.release.mechanism import choose_cells
from discreet.release.statistics.points import WORST_WEIGHT, Points, split_runs, spread_points


def runs_of(points, cells):
    """The points of a row of cells that cost nothing, and its other cells; costs are hundredths of
    logarithms.
    """
    zero = np.array([0])
    run = Runs(exponents=zero, sizes=np.array([cells]), rows=zero, cell=lambda _, numbers: numbers)
    return split_runs(run, zero, [points], Fraction(1, 100))


def costs(points, cells):
    return spread_out(runs_of(points, cells))[0]


def test_points_are_multiples_of_their_step_whatever_the_bounds():
    assert np.flatnonzero(costs(Points(bits=2, lower=0), 10) == 0).tolist() == [0, 4, 8]
    assert np.flatnonzero(costs(Points(bits=2, lower=-3), 10) == 0).tolist() == [3, 7]
    assert set(costs(Points(bits=2, lower=-3), 10).tolist()) == {0, 350}
    assert set(costs(None, 10).tolist()) == {0}


def test_spacing_is_rounded_down_and_leaves_enough_points():
    assert spread_points(0, 2**16, Fraction(100)).bits == 6
    assert spread_points(0, 2**16, Fraction(10**9)).bits == 16 - 5
    assert spread_points(0, 2**16, Fraction(3, 2)) is None
    assert spread_points(0, 2**16, Fraction(-5)) is None


def weight(points, cells):
    """How many cells without handicaps would make gross errors as likely: Σ e^(handicap − own
    handicap).
    """
    number = int(runs_of(points, cells).sizes[0])
    return math.ceil(number * upper_bound(lambda: ball(points.handicap).exp())) + cells - number


@pytest.mark.parametrize("cells", [2**9, 2**16, 2**16 + 1, 122_881, 2**18, 2**21])
def test_gross_errors_are_no_likelier_than_among_so_many_cells(cells):
    for bits in range(1, cells.bit_length() - 5):
        assert weight(Points(bits=bits, lower=7), cells) <= WORST_WEIGHT * cells


def mean_error(spread):
    """Of the median of one record in each cell, in noise scales of 32 cells, wherever points lie
    beside it.
    """
    rate = Fraction(1, 32)
    half = {"share": Fraction(1, 2), "offset": Fraction(0), "over": rate, "under": rate}
    every = [spread and Points(bits=5, lower=lower) for lower in range(0, 32, 4)] * 1_500
    counts = Exact([np.ones(2**10 + 1, np.int64)] * len(every))
    return np.mean(
        np.abs(np.array(choose_cells(counts, points=every if spread else None, **half)) - 512) / 32
    )


@pytest.mark.slow
def test_points_a_noise_scale_apart_err_less_than_all_cells():
    assert mean_error(True) < 0.94 < mean_error(False)


def test_a_value_between_the_points_that_many_share_is_found():
    x = np.full(2_000, 0.3)
    x[:500], x[500:1000] = np.linspace(0, 1, 500), np.linspace(0.2, 0.4, 500)
    for confidence in ("0.95", None):
        found = discreet.median(x, bounds=(0, 1), epsilon=1, confidence=confidence).value
        assert abs(found - 0.3) < 2**-16


@pytest.mark.parametrize("confidence", ["0.95", None])
def test_the_grid_depends_on_the_number_of_rows_only_where_it_is_public(confidence):
    def step(x, neighbors):
        found = discreet.median(
            x, bounds=(0, 1), epsilon=1, neighbors=neighbors, confidence=confidence
        )
        return found.step, found.error

    few, many = np.zeros(10), np.zeros(10**5)
    assert step(few, "add-remove") == step(many, "add-remove")
    assert step(few, "change-one") != step(many, "change-one")
    many[1:] = np.nan  # dropped, and how many of them is private
    assert step(many, "change-one") == step(np.zeros(10**5), "change-one")
