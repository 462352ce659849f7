"""Choices as their sampler sees them: true ones keep their certificate however often it is made,
others lose it.
"""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.release import mechanism
from discreet.release.mechanism import choose_cells
from discreet.verify import certify
from discreet.verify.choices import require_costs
from discreet.verify.loss import Part
from discreet.verify.recorded import recording

RATE = Fraction(1, 4)
WIDTH = 9


def release(exact, share=Fraction(1, 2), **given):
    rank = {"share": share, "offset": Fraction(0), "over": RATE, "under": RATE}
    return {"median": [choose_cells(exact.map(lambda measures: measures[0]), **{**rank, **given})]}


def part(neighbors="add-remove", cells=1, rows=1, share=Fraction(1, 2), over=RATE):
    facts = {"share": share, "over": over, "under": RATE}
    about = {"statistic": "median", "law": "choice", "epsilon": Fraction(1)}
    return Part(**about, neighbors=neighbors, cells=cells, rows=rows, facts=facts)


def required(work, of):
    from discreet.engines.base import Exact

    with recording() as draws:
        work(Exact([[np.zeros(WIDTH, np.int64)] * of.cells]))
    require_costs(work, WIDTH, draws, [of])


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("cells", [1, 2, 3, 7])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)])
def test_true_costs_are_those_of_the_law(neighbors, cells, share):
    for rows in (1, 3):
        required(lambda exact: release(exact, share), part(neighbors, cells, rows, share))


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("cells", [1, 3])
def test_some_unit_moves_the_costs_by_all_that_the_law_allows(neighbors, cells):
    less = mock.patch.object(
        Part, "loss", property(lambda self: self._choice() * Fraction(999, 1000))
    )
    of = part(neighbors, cells)
    with (
        less,
        pytest.raises(
            InvalidParameter, match="a unit moves the costs of median by more than their law allows"
        ),
    ):
        required(release, of)


def test_records_that_count_twice_move_the_costs_too_far():
    def twice(exact):
        return release(exact.map(lambda measures: [[2 * counts for counts in measures[0]]]))

    with pytest.raises(InvalidParameter, match="a unit moves the costs of median"):
        required(twice, part())


def test_a_rank_that_depends_on_rows_beyond_its_group_is_noticed():
    real = mechanism._cost_runs

    def wrong(groups, times, shift, *given):
        return real(groups, times, shift + len(groups.cells), *given)

    with (
        mock.patch.object(mechanism, "_cost_runs", wrong),
        pytest.raises(InvalidParameter, match="a rank of median does not cost what its law says"),
    ):
        required(release, part())


@pytest.mark.parametrize("many", [10, 1_000, 1_000_000])
def test_costs_that_differ_for_many_records_only_are_noticed(many):
    real = mechanism._cost_runs

    def wrong(groups, *given):
        runs, firsts = real(groups, *given)
        return (
            replace(runs, exponents=runs.exponents * (2 if groups.counts.sum() > many else 1)),
            firsts,
        )

    with (
        mock.patch.object(mechanism, "_cost_runs", wrong),
        pytest.raises(InvalidParameter, match="a rank of median does not cost what its law says"),
    ):
        required(release, part())


def test_numbers_that_depend_on_rows_beside_the_choices_are_noticed():
    def wrong(exact):
        rows = []
        exact.map(lambda measures: rows.append(int(sum(counts.sum() for counts in measures[0]))))
        return {"median": [*release(exact)["median"], rows]}

    with pytest.raises(
        InvalidParameter, match="median must show the same numbers for the same choices"
    ):
        required(wrong, part())


def test_points_that_depend_on_rows_are_noticed():
    from discreet.release.statistics.points import Points

    def wrong(exact):
        bits = exact.map(lambda measures: int(measures[0][0].sum()) % 2 + 1).reveal()
        return release(exact, points=[Points(bits=bits, lower=0)])

    with pytest.raises(
        InvalidParameter, match=r"must choose the same on all tables|must not depend on rows"
    ):
        required(wrong, part())


def test_a_choice_outside_of_the_sampler_is_none():
    with (
        mock.patch.object(
            mechanism, "choose", lambda runs, _unit: np.zeros(len(runs.rows), np.int64)
        ),
        pytest.raises(InvalidParameter, match="must be one exact choice in every group"),
    ):
        certify("median", bounds=(0, 9), epsilon=1)


def test_a_certificate_does_not_depend_on_draws():
    """Points follow from brackets, which are replies and not drawn: no chance is left that a
    certificate is lost.
    """
    first = certify("median", bounds=(0, 2**9), epsilon=1, neighbors="add-remove")
    for _ in range(20):
        assert certify("median", bounds=(0, 2**9), epsilon=1, neighbors="add-remove") == first
