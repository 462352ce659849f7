"""Law: whatever unit of whatever small table is changed, a study's question shows it in nothing but
integers within Δ.

What `test_studies_are_private` holds in its own way, by the public door, `discreet.verify.replay`:
every statistic, both relations, units of a row and of several. The controls break one thing each,
in the engine or in the release, and the replay must fail.
"""

import contextlib
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.engines.duckdb import DuckDB
from discreet.errors import EngineFailed, InvalidParameter
from discreet.release import plan as plans
from discreet.release.statistics.counts import CountDesign
from discreet.verify import replay
from discreet.verify.rerun import CHECKS
from studies import select, study_of

AGGREGATES = [
    "count(*)",
    "count(age)",
    "sum(pay)",
    "avg(age)",
    "avg(well)",
    "variance(age)",
    "stddev_pop(pay)",
    "median(age)",
    "quantile(age, 0.9)",
    "min(age)",
    "max(pay)",
]
ROWS = st.fixed_dictionaries(
    {
        "place": st.sampled_from([None, "north", "west", "nowhere"]),
        "level": st.sampled_from([None, 1, 3]),
        "age": st.sampled_from([None, -(2**62), -9, 0, 5, 10, 11, 2**62]),
        "pay": st.sampled_from([None, float("nan"), float("inf"), -4.0, -0.0, 0.1, 5.0, 1e300]),
        "well": st.sampled_from([None, True, False]),
        "who": st.sampled_from(["me", "me", "you", None]),
    }
)
POLICIES = st.sampled_from(
    [
        {"neighbors": neighbors, **unit, "columns": columns}
        for neighbors in ("change-one", "add-remove")
        for unit in (
            {},
            {"unit": "who", "max_rows": 2},
            {"unit": "who", "max_rows": 3, "max_groups": 1},
        )
        for columns in ({}, {"age": {"missing": 0}, "pay": {"missing": 1}})
    ]
)
QUICK = settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def open_study(in_memory, monkeypatch):
    """Studies whose ledgers, and those of their replays, lie in memory."""
    monkeypatch.setattr("tempfile.tempdir", str(in_memory))
    made = iter(range(10**6))
    with contextlib.ExitStack() as stack:
        yield lambda rows, **policy: stack.enter_context(
            study_of(rows, in_memory / f"{next(made)}.ledger", **policy)
        )


def unit_of(study, rows):
    return "me" if study.policy.unit_column else len(rows) // 2


@QUICK
@given(
    rows=st.lists(ROWS, max_size=6),
    policy=POLICIES,
    clauses=st.sampled_from(["", " WHERE age > 3", " GROUP BY place"]),
)
def test_no_unit_shows_in_any_statistic(open_study, rows, policy, clauses):
    study = open_study(rows, **policy)
    found = replay(
        study,
        select(", ".join(AGGREGATES), clauses),
        unit_of(study, rows),
        other={"age": 7, "place": "south"},
    )
    assert found.passed, repr(found)
    assert study.spent == 0


TABLE = [
    {"who": "me", "place": "north", "age": 10, "pay": 5.0, "well": True},
    {"who": "you", "place": "west", "age": 0, "pay": -3.0, "well": False},
    {"who": "you", "place": "west", "age": 4, "pay": 1.0, "well": None},
]
UNIT = {"unit": "who", "max_rows": 2}


def failed(study, question, unit="me"):
    return [name for name, held in replay(study, question, unit).checks.items() if not held]


def test_a_replay_says_what_holds_and_nothing_of_the_data(open_study):
    study = open_study(TABLE, **UNIT)
    found = replay(study, study.sql("SELECT sum(age) FROM data", epsilon="0.25"), "me")
    assert found
    assert list(found.checks) == list(CHECKS)
    assert found.sensitivities == (("sum(age)", Fraction(20)),)
    assert (
        repr(found)
        == "passed: no unit shows (errors, flow, shape, charge, public numbers, sensitivity) · ε"
        " 0.25 · change-one\nsum(age) Δ 20"
    )
    same = replay(study, "SELECT sum(age) FROM data", "someone who is not there", epsilon="0.25")
    assert repr(same) == repr(found)
    assert study.spent == 0


@pytest.mark.parametrize("unit", [-1, True, "me", 1.5])
def test_a_row_is_named_by_its_number(open_study, unit):
    with pytest.raises(InvalidParameter, match="number of a row"):
        replay(open_study(TABLE), "SELECT count(age) FROM data", unit)


def test_a_unit_or_rows_of_another_kind_are_refused(open_study):
    study = open_study(TABLE, **UNIT)
    with pytest.raises(InvalidParameter, match="type of the unit column"):
        replay(study, "SELECT sum(age) FROM data", 3.5)
    with pytest.raises(InvalidParameter, match="a column that the data does not have"):
        replay(study, "SELECT sum(age) FROM data", "me", other={"height": 3})
    with pytest.raises(InvalidParameter, match="a plan of this study"):
        replay(study, open_study(TABLE).sql("SELECT sum(age) FROM data", epsilon=1), "me")


def request_with(**changed):
    real = plans.Request
    return mock.patch.object(plans, "Request", lambda **given: real(**{**given, **changed}))


@pytest.mark.parametrize("asked", ["count(*)", "avg(age)", "median(age)", "max(age)"])
def test_control_more_rows_of_a_unit_than_may_count_are_found(open_study, asked):
    with request_with(max_rows=99):
        assert failed(open_study(TABLE, **UNIT), select(asked, "GROUP BY place")) == ["sensitivity"]


def test_control_values_that_are_not_clamped_are_found(open_study):
    real = DuckDB.fetch

    def unclamped(self, request):
        return real(self, request).map(
            lambda found: [[number * 3 for number in column] for column in found]
        )

    with mock.patch.object(DuckDB, "fetch", unclamped):
        assert failed(open_study(TABLE, **UNIT), "SELECT sum(age) FROM data") == ["sensitivity"]


def test_control_groups_that_come_from_the_data_are_found(open_study):
    real = CountDesign.estimate

    def without_empty(self, exact, *given):
        # of zeros, which a certificate is made of, all are kept
        some = exact.map(
            lambda found: [[number for number in column if number] or column for column in found]
        )
        return real(self, some, *given)

    with mock.patch.object(CountDesign, "estimate", without_empty):
        assert failed(open_study(TABLE, **UNIT), "SELECT count(*) FROM data GROUP BY place") == [
            "flow",
            "shape",
        ]


def test_control_a_private_number_that_is_taken_as_public_is_found(open_study):
    from discreet.release.statistics import moments

    policy = {"columns": {"age": {"missing": 0}}}
    question = "SELECT avg(age) FROM data"
    assert failed(open_study(TABLE, **policy), question, 0) == []
    real = moments.public_count
    shifted = lambda n: real(  # noqa: E731
        n.map(lambda count: count + int(np.random.default_rng().integers(10**9)))
    )
    with mock.patch.object(moments, "public_count", shifted):
        assert failed(open_study(TABLE, **policy), question, 0) == ["public numbers"]


def test_control_an_error_on_some_rows_is_found(open_study):
    real = DuckDB.fetch

    def raising(self, request):
        def look(found):
            if found[0][0] > 1:
                raise EngineFailed("overflow")
            return found

        return real(self, request).map(look)

    with mock.patch.object(DuckDB, "fetch", raising):
        assert "errors" in failed(
            open_study(TABLE, **UNIT), "SELECT count(*) FROM data WHERE well OR age > 9"
        )


def test_control_a_charge_that_depends_on_the_data_is_found(open_study):
    from discreet.release.plan import Plan

    real = Plan._answered

    def charging(self, rest):
        if self.study.engine.units(None).reveal() > len(TABLE):
            self.study.ledger.spend("more", "more", Fraction(1, 10), study=self.study.name)
        return real(self, rest)

    with mock.patch.object(Plan, "_answered", charging):
        assert failed(open_study(TABLE, **UNIT), "SELECT sum(age) FROM data WHERE well") == [
            "charge"
        ]


def test_a_question_that_fails_on_every_copy_is_an_error_and_no_pass(open_study):
    with (
        mock.patch.object(DuckDB, "fetch", side_effect=EngineFailed("no")),
        pytest.raises(EngineFailed, match="fails on all copies"),
    ):
        replay(open_study(TABLE), "SELECT count(age) FROM data", 0)
