"""Certificates of joint questions and reports: what their families lose, said apart from the code
that releases.
"""

from dataclasses import replace
from fractions import Fraction
from unittest import mock

import pytest

from discreet.errors import InvalidParameter
from discreet.release.reports.design import ReportDesign
from discreet.release.reports.plan import ReportPlan
from discreet.release.statistics.families import JointDesign
from discreet.verify import certify, check
from discreet.verify.loss import Part
from discreet.verify.parts import parts_of_plan
from studies import Paper, select, study_of

ROWS = [{"place": "north", "level": 1, "age": 3, "pay": 2.0, "well": True}] * 5
FULL = {"columns": {"age": {"missing": 0}, "pay": {"missing": 0}}}
CASES = [
    ("add-remove", {}, "count(*), avg(age)", "GROUP BY place", "families"),
    ("add-remove", FULL, "avg(age), avg(pay)", "", "families"),
    (
        "change-one",
        {},
        "count(*), count(well), avg(age), avg(pay), stddev(age)",
        "GROUP BY place, level",
        "families",
    ),
    ("change-one", FULL, "count(*), avg(age), stddev(pay)", "WHERE well", "columns"),
]


def plan_of(neighbors, columns, asked, clauses, **more):
    return study_of(ROWS, Paper(), neighbors=neighbors, **columns, **more).sql(
        select(asked, clauses), epsilon=1
    )


@pytest.mark.parametrize(("neighbors", "columns", "asked", "clauses", "law"), CASES)
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 3}])
def test_a_joint_question_loses_nearly_all_of_epsilon_and_not_more(
    neighbors, columns, asked, clauses, law, unit
):
    [part] = parts_of_plan(plan_of(neighbors, columns, asked, clauses, **unit))
    assert part.law == law
    assert Fraction(9, 10) < part.loss <= part.epsilon == 1
    assert certify(plan_of(neighbors, columns, asked, clauses, **unit)).holds


@pytest.mark.parametrize(("neighbors", "columns", "asked", "clauses", "law"), CASES)
def test_half_of_the_noise_is_seen(neighbors, columns, asked, clauses, law):  # noqa: ARG001
    real = JointDesign.scales

    def halved(self, terms, epsilon):
        return [scale / 2 for scale in real(self, terms, epsilon)]

    plan = plan_of(neighbors, columns, asked, clauses)
    with mock.patch.object(JointDesign, "scales", halved):
        assert not certify(plan).holds


@pytest.mark.parametrize(("neighbors", "columns", "asked", "clauses", "law"), CASES[:3])
def test_parts_that_add_up_to_more_than_one_are_seen(neighbors, columns, asked, clauses, law):  # noqa: ARG001
    plan = plan_of(neighbors, columns, asked, clauses)
    [share] = plan.shares
    (attributes, part), *others = share.design.families
    design = replace(share.design, families=((attributes, part * Fraction(65, 64)), *others))
    assert not certify(replace(plan, shares=(replace(share, design=design),))).holds


def test_totals_that_a_row_moves_further_than_a_unit_are_refused():
    plan = plan_of("add-remove", {}, "count(*), avg(age)", "GROUP BY place")
    real = JointDesign.totals

    def doubled(self, integers, terms):
        first, *others = real(self, integers, terms)
        return [[2 * total for total in first], *others]

    with (
        mock.patch.object(JointDesign, "totals", doubled),
        pytest.raises(InvalidParameter, match="moves the totals"),
    ):
        parts_of_plan(plan)


def test_of_many_columns_any_total_that_a_row_moves_further_is_seen():
    """The rows that are tried are not only those in which the first columns are at their lower
    bounds.
    """
    asked = (
        "count(*), avg(age), avg(pay), avg(age + pay), avg(age - pay), avg(2 * age), avg(2 * pay)"
    )
    plan = plan_of("add-remove", FULL, asked, "GROUP BY place")
    design, terms = next(
        (share.design, share.terms)
        for share in plan.shares
        if isinstance(share.design, JointDesign)
    )
    real = JointDesign.totals
    for index in range(0, len(design.units(terms)), 5):

        def tripled(self, integers, terms, index=index):
            totals = list(real(self, integers, terms))
            return [*totals[:index], [3 * total for total in totals[index]], *totals[index + 1 :]]

        with (
            mock.patch.object(JointDesign, "totals", tripled),
            pytest.raises(InvalidParameter, match="moves the tot"),
        ):
            parts_of_plan(plan)


def test_the_loss_of_families_is_that_of_the_worst_cell_of_each():
    """Two families of cells with units 4, 4, 1 and 1, 1: each at its largest unit over scale."""
    facts = {
        "0.0": Fraction(4),
        "0.1": Fraction(4),
        "0.2": Fraction(1),
        "1.0": Fraction(1),
        "1.1": Fraction(1),
    }
    scales = tuple(map(Fraction, (10, 8, 3, 5, 4)))
    about = {
        "statistic": "x",
        "law": "families",
        "epsilon": Fraction(1),
        "facts": facts,
        "scales": scales,
    }
    part = Part(**about, steps=(Fraction(1),) * 5, neighbors="add-remove", cells=3)
    assert part.loss == Fraction(4, 8) + Fraction(1, 4)
    assert replace(part, neighbors="change-one", rows=2).loss == 4 * part.loss


def test_the_loss_of_columns_is_that_of_a_row_that_comes_or_takes_another_s_place():
    facts = {
        "0.width": Fraction(6),
        "0.squares": Fraction(0),
        "1.width": Fraction(2),
        "1.squares": Fraction(0),
    }
    about = {
        "statistic": "x",
        "law": "columns",
        "epsilon": Fraction(1),
        "facts": facts,
        "neighbors": "change-one",
    }
    part = Part(**about, scales=tuple(map(Fraction, (24, 8, 4))), steps=(Fraction(1),) * 3)
    assert part.loss == max(
        Fraction(12, 24) + Fraction(4, 8), Fraction(6, 24) + Fraction(2, 8) + Fraction(1, 4)
    )
    assert (
        replace(part, scales=tuple(map(Fraction, (24, 8, 1)))).loss
        == Fraction(6, 24) + Fraction(2, 8) + 1
    )


TABLES = {
    "places": "SELECT place, count(*), avg(age) FROM data GROUP BY place",
    "levels": "SELECT place, level, count(*), sum(age), avg(pay) FROM data GROUP BY place, level",
    "some": "SELECT count(*), avg(well) FROM data WHERE place = 'north'",
}


def report_of(neighbors, columns=None, **more):
    study = study_of(ROWS, Paper(), neighbors=neighbors, **(columns or {}), **more)
    return study.report(TABLES, epsilon=1)


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("columns", [{}, FULL])
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 3, "max_groups": 2}])
def test_a_report_loses_nearly_all_of_epsilon_and_not_more(neighbors, columns, unit, tmp_path):
    plan = report_of(neighbors, columns, **unit)
    [part] = certify(plan).parts
    assert part.law == "families"
    assert len({name.partition(".")[0] for name in part.facts}) == len(plan.measured) > 1
    assert Fraction(99, 100) < part.loss <= part.epsilon == 1
    certify(plan).save(tmp_path / "report.certificate.json")
    assert check(tmp_path / "report.certificate.json").loss == part.loss


def test_the_certificate_of_a_report_counts_every_measured_set():
    """A set that is forgotten in Δ: those of the others are drawn as if it cost nothing."""
    plan = report_of("add-remove")
    real = ReportDesign.scales

    def forgetful(self, terms, epsilon):
        left = 1 - self.measured[-1][1]
        return [scale * left for scale in real(self, terms, epsilon)]

    with mock.patch.object(ReportDesign, "scales", forgetful):
        assert not certify(plan).holds
    (levels, part), *rest = plan.measured
    assert not certify(replace(plan, measured=((levels, part + Fraction(1, 4096)), *rest))).holds


def test_a_set_in_which_a_row_counts_twice_is_refused():
    plan = report_of("add-remove")
    real = ReportDesign._columns

    def doubled(self, levels, found):
        return (
            [2 * column for column in real(self, levels, found)]
            if sum(map(bool, levels)) > 1
            else real(self, levels, found)
        )

    with (
        mock.patch.object(ReportDesign, "_columns", doubled),
        pytest.raises(InvalidParameter, match="moves the cells"),
    ):
        certify(plan)


def test_a_number_of_rows_that_is_private_is_not_opened():
    plan = report_of("add-remove")
    with (
        mock.patch.object(ReportPlan, "known", property(lambda _: True)),
        pytest.raises(InvalidParameter, match="treats the number of rows as public"),
    ):
        certify(plan)
