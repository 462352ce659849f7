"""Profiles of studies and arrays: refused before the spend, spent before the reading, recorded,
free when repeated.
"""

import json
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet import BudgetExceeded, InvalidParameter, Ledger, Policy, QueryRefused, Study
from discreet.release.profiles import plan as plans
from discreet.release.profiles.octaves import octave_edges
from discreet.release.profiles.profile import ColumnProfile, Share
from discreet.verify import certify, check

N = 3_000
COLUMNS = {
    "cost": {},
    "age": {"missing": 40},
    "score": {},
    "place": {"keys": ["a", "b"]},
    "pay": {"bounds": (0, 9)},
}


def table(n: int = N) -> pa.Table:
    return pa.table(
        {
            "who": [f"p{row // 3}" for row in range(n)],
            "cost": pa.array([None if row % 4 == 0 else 100.0 + row % 50 for row in range(n)]),
            "age": [row % 90 for row in range(n)],
            "score": [float((-1) ** row * (8 + row % 8)) for row in range(n)],
            "place": ["a"] * n,
            "pay": [1] * n,
        }
    )


def study_of(tmp_path, *, rows=N, **terms) -> Study:
    told = {"epsilon": 1000, "version": "1", "columns": COLUMNS, **terms}
    return Study(Policy(source=table().slice(0, rows), **told), ledger=tmp_path / "ledger")


def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
def test_bounds_and_shares_are_told_and_the_policy_stays_as_it_is(tmp_path, neighbors):
    """At ε = 50 for each column a draw is not 0 once in 10¹⁰."""
    with study_of(tmp_path, neighbors=neighbors) as study:
        before = study.policy
        profile = study.profile(["cost", "age", "score"], epsilon=150)
        assert {name: one.bounds for name, one in profile.columns.items()} == {
            "age": (0, 128),
            "cost": (64, 256),
            "score": (-16, 16),
        }
        assert profile["cost"].missing.value == pytest.approx(0.25, abs=0.01)
        assert profile["score"].negative.value == pytest.approx(0.5, abs=0.05)
        assert profile["age"].zero.value == pytest.approx(1 / 90, abs=0.005)
        assert profile["cost"].zero.text == profile["cost"].negative.text == "none seen"
        assert profile.lines["cost"] == "cost = { bounds = [64, 256] }"
        assert profile.lines["age"] == "age = { bounds = [0, 128], missing = 40 }"
        assert (profile.epsilon, profile.remaining, study.spent) == (150, 850, 150)
        assert study.policy is before
        assert "between" in repr(profile)
        assert "64 and 256" in repr(profile)
        assert json.loads(json.dumps(profile.to_dict()))["columns"]["cost"]["bounds"] == [64, 256]
        with pytest.raises(InvalidParameter, match="the profile is of age, cost, score, got 'pay'"):
            profile["pay"]


def test_what_missing_values_count_as_lies_within_the_bounds(tmp_path):
    with study_of(tmp_path, columns={"cost": {"missing": 0, "bounds": (0, 9)}}) as study:
        profile = study.profile(["cost"], epsilon=50)
        assert profile["cost"].bounds == (64, 256)
        assert profile.proposals == {"cost": (0, 256)}


def test_the_rows_of_units_are_told_by_the_name_of_the_unit(tmp_path):
    with study_of(tmp_path, unit="who", max_rows=20) as study:
        profile = study.profile(["WHO", "cost"], epsilon=100)
        assert profile.unit.max_rows == 4
        assert profile.lines["who"] == "max_rows = 4"
        assert profile["cost"].units == N // 3
        assert {one.scale for one in (profile.unit, profile["cost"])} == {Fraction(2, 50)}
        assert sum(profile["cost"].counts) == N // 3  # each unit once


def test_without_names_it_is_of_numbers_without_bounds_and_of_the_unit(tmp_path):
    with study_of(tmp_path, unit="who", max_rows=3) as study:
        profile = study.profile(epsilon=200)
        assert list(profile.columns) == ["age", "cost", "score"]
        assert profile.unit.name == "who"
    with (
        study_of(elsewhere(tmp_path), columns={"pay": {"bounds": (0, 9)}}) as study,
        pytest.raises(QueryRefused, match="name the columns to profile"),
    ):
        study.profile(epsilon=1)


def test_asked_again_it_is_free_and_the_same(tmp_path):
    with study_of(tmp_path) as study:
        first = study.profile(["score", "cost"], epsilon="0.2")
        with mock.patch.object(plans.ProfilePlan, "_answered", side_effect=AssertionError):
            again = study.profile(["COST", "score", "score"], epsilon=0.2)
        assert (again.columns, study.spent) == (first.columns, Fraction(1, 5))
        assert study.profile(["cost"], epsilon="0.2").columns["cost"] != first.columns["cost"]
        assert study.spent == Fraction(2, 5)
    with study_of(tmp_path) as study:
        assert study.profile(["cost", "score"], epsilon="0.2").columns == first.columns
        assert study.spent == Fraction(2, 5)
    with study_of(tmp_path, columns={**COLUMNS, "cost": {"bounds": (0, 256)}}) as study:
        assert study.profile(["cost", "score"], epsilon="0.2").columns == first.columns
        assert study.spent == Fraction(2, 5)  # its bounds are no part of the question
    with study_of(tmp_path, version="2") as study:
        study.profile(["cost", "score"], epsilon="0.2")
        assert study.spent == Fraction(3, 5)


def test_the_spend_comes_before_the_reading_and_a_crash_is_not_charged_twice(tmp_path):
    with study_of(tmp_path) as study:
        spent = []

        def stopped(*_):
            spent.append(study.spent)
            raise ZeroDivisionError

        with (
            mock.patch.object(type(study.engine), "fetch", stopped),
            pytest.raises(ZeroDivisionError),
        ):
            study.profile(["cost"], epsilon="0.2")
        assert spent == [study.spent] == [Fraction(1, 5)]
        assert study.profile(["cost"], epsilon="0.2")["cost"].counts
        assert study.spent == Fraction(1, 5)


@pytest.mark.parametrize(
    ("columns", "epsilon", "error", "message"),
    [
        (["place"], 1, QueryRefused, "a profile needs numbers, but place is a text"),
        (["cst"], 1, QueryRefused, "did you mean cost"),
        (["who"], 1, QueryRefused, "the policy declares no column 'who'"),
        ([], 1, InvalidParameter, "columns must be a list of names"),
        ("cost", 1, InvalidParameter, "columns must be a list of names"),
        ([3], 1, InvalidParameter, "columns must be a list of names"),
        (["cost"], 0, InvalidParameter, "epsilon must be"),
        (["cost"], 1001, BudgetExceeded, "nothing was spent"),
        (
            ["cost"],
            "0.03",
            QueryRefused,
            "needs about 3,334 units, and there are 3,000: use about epsilon 0.034",
        ),
        (
            ["cost", "age"],
            "0.05",
            QueryRefused,
            "of 2 columns at epsilon 0.05 needs about 4,000 units",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent_or_read(
    tmp_path, columns, epsilon, error, message
):
    with (
        study_of(tmp_path) as study,
        mock.patch.object(type(study.engine), "fetch", side_effect=AssertionError),
        pytest.raises(error, match=message),
    ):
        study.profile(columns, epsilon=epsilon)
    with study_of(tmp_path) as study:
        assert study.spent == 0


def test_where_the_number_of_people_is_private_too_few_are_charged_and_told(tmp_path):
    with study_of(tmp_path, rows=30, neighbors="add-remove") as study:
        profile = study.profile(["cost"], epsilon="0.2")
        assert study.spent == Fraction(1, 5)
        assert profile["cost"].bounds is None
        assert profile["cost"].missing is None
        assert profile.proposals == profile.lines == {}
        assert "too few to say: ask at a larger epsilon" in repr(profile)
    with (
        study_of(elsewhere(tmp_path), rows=0) as study,
        pytest.raises(QueryRefused, match="and there are 0"),
    ):
        study.profile(["cost"], epsilon="0.2")


def test_a_request_id_of_ours_is_kept_for_us(tmp_path):
    with (
        study_of(tmp_path) as study,
        pytest.raises(InvalidParameter, match=r"must not begin with 'discreet\.'"),
    ):
        plans.profile_plan(study, ["cost"], 1).release(request_id="discreet.discover")


def test_a_certificate_of_a_profile_can_be_checked(tmp_path):
    with study_of(tmp_path, unit="who", max_rows=7) as study:
        plan = plans.profile_plan(study, ["cost", "age", "who"], "0.9")
        certificate = certify(plan)
        assert certificate.holds
        assert certificate.loss == Fraction(9, 10)
        assert [part.statistic for part in certificate.parts] == ["age", "cost", "who"]
        certificate.save(tmp_path / "profile.json")
        assert check(tmp_path / "profile.json").loss == certificate.loss


# Arrays.


def test_bounds_of_an_array_are_those_of_the_study():
    rows = table()
    for name, expected in (("cost", (64, 256)), ("age", (0, 128)), ("score", (-16, 16))):
        for neighbors in ("change-one", "add-remove"):
            assert (
                discreet.bounds(rows[name], epsilon=50, neighbors=neighbors).bounds == expected
            ), name


def test_odd_values_of_an_array_raise_nothing():
    odd = [
        None,
        math.nan,
        math.inf,
        -math.inf,
        "x",
        "12",
        10**400,
        -0.0,
        5e-324,
        object(),
        1e308,
        True,
        2**70,
    ]
    for neighbors in ("change-one", "add-remove"):
        profile = discreet.bounds(odd * 1000, epsilon=50, neighbors=neighbors)
        assert profile.bounds == (0, 16)
        assert profile.missing.value == pytest.approx(4 / 13, abs=0.01)
        assert profile.beyond.value == pytest.approx(5 / 13, abs=0.01)
    assert "beyond 18,446,744,073,709,551,616" in repr(profile)
    assert discreet.bounds(np.zeros(1000), epsilon=50).bounds is None
    assert "only 0" in repr(discreet.bounds(np.zeros(1000), epsilon=50))
    assert discreet.bounds(np.full(1000, -7), epsilon=50).bounds == (-8, -4)


def test_bounds_of_an_array_are_charged_and_repeated(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger", new=True)
    ledger.create("survey", 1)
    account = {"ledger": ledger, "study": "survey", "data_name": "cost", "data_version": "1"}
    first = discreet.bounds([100] * 2000, epsilon="0.2", **account)
    assert discreet.bounds([7] * 2000, epsilon="0.2", **account) == first
    assert ledger.spent("survey") == Fraction(1, 5)
    with pytest.raises(
        QueryRefused, match=r"needs about 500 units, and there are 499: use about epsilon 0\.21"
    ):
        discreet.bounds([100] * 499, epsilon="0.2", **account)
    assert discreet.bounds([100] * 20, epsilon="0.2", neighbors="add-remove").bounds is None
    ledger.close()


def test_shares_are_within_their_error():
    """At 95 %, of 100 profiles: fewer than 78 have a chance of 10⁻⁹ for each of six."""
    rng = np.random.default_rng(7)
    values = np.where(rng.random(4000) < 0.3, np.nan, rng.normal(1, 1, 4000))
    exact = {"missing": np.isnan(values).mean(), "negative": (values < 0).mean(), "zero": 0.0}
    for neighbors in ("change-one", "add-remove"):
        profiles = [discreet.bounds(values, epsilon="0.5", neighbors=neighbors) for _ in range(100)]
        for name, share in exact.items():
            near = [
                abs(getattr(one, name).value - share) <= getattr(one, name).within
                for one in profiles
            ]
            assert sum(near) >= 78, (neighbors, name)


def test_a_share_that_noise_alone_could_be_was_not_seen():
    assert Share(0.01, 0.02).text == "none seen"
    assert Share(0.2231, 0.0123).text == "22.3 ± 1.3 %"
    empty = (0,) * len(octave_edges(True))
    profile = ColumnProfile(
        name="x", counts=empty, scale=Fraction(1), epsilon=Fraction(1), whole=True, units=10**6
    )
    assert (profile.missing.text, profile.negative, profile.between) == ("none seen", None, None)
