"""Certificates hold for what is released, speak of the noise that is drawn, and no changed file
passes.
"""

import json
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidParameter
from discreet.release import split as shares
from discreet.release.statistics.moments import MomentDesign
from discreet.verify import certify, check
from noiseless import recorded
from studies import Paper, replayed, select, study_of

RELATIONS = ("change-one", "add-remove")
BOUNDED = {"bounds": (-3, 120)}
ARRAYS = {
    "count": {},
    "sum": BOUNDED,
    "mean": BOUNDED,
    "proportion": {},
    "variance": BOUNDED,
    "std": BOUNDED,
    "median": BOUNDED,
    "quantile": {**BOUNDED, "q": "0.9"},
    "min": BOUNDED,
    "max": BOUNDED,
    "cdf": BOUNDED,
}
ASKED = (
    "count(*), sum(pay), avg(age), avg(well), stddev(pay), median(age), quantile(pay, [0.25, 0.9]),"
    " min(age), max(pay)"
)
POLICIES = [
    {},
    {"columns": {"age": {"missing": 0}, "pay": {"missing": 1, "precision": "0.01"}}},
    {"neighbors": "add-remove"},
    {"unit": "who", "max_rows": 3},
    {"unit": "who", "max_rows": 3, "max_groups": 2, "neighbors": "add-remove"},
]
CLAUSES = ["", " WHERE age > 3", " GROUP BY place", " WHERE well GROUP BY place, level"]


def plan_of(policy, clauses, epsilon="7/10", asked=ASKED):
    extra = ", count(DISTINCT who)" if "unit" in policy else ""
    return study_of([], Paper(), **policy).sql(select(asked + extra, clauses), epsilon=epsilon)


@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_plan_is_proved_and_its_bound_is_not_far_below(policy, clauses):
    certificate = certify(plan_of(policy, clauses))
    assert certificate.holds
    assert certificate.epsilon == Fraction(7, 10)
    assert 0 <= certificate.slack < Fraction(1, 10**6)


@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_certificate_speaks_of_the_noise_that_is_drawn(policy, clauses):
    plan = plan_of(policy, clauses)
    drawn = [event.public for _, _, events in replayed(plan, plan.study).events for event in events]
    parts = certify(plan).parts
    noise = [
        (scale, step) for part in parts for scale, step in zip(part.scales, part.steps, strict=True)
    ]
    assert [(scale, step) for kind, scale, step, *_ in drawn if kind == "noise"] == noise
    assert sum(kind == "choice" for kind, *_ in drawn) == plan.cells * sum(
        part.law == "choice" for part in parts
    )
    units = {unit for kind, unit, *_ in drawn if kind == "choice"}
    for part in parts:
        if part.law == "choice":  # the exponents are whole multiples of the unit
            assert any(
                all((part.facts[rate] / unit).denominator == 1 for rate in ("over", "under"))
                for unit in units
            )


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("statistic", ARRAYS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_statistic_of_an_array_is_proved_by_the_noise_that_it_draws(statistic, neighbors, whole):
    given = ARRAYS[statistic]
    column = np.zeros(50, np.int64 if whole else np.float64)
    named = {name: value for name, value in given.items() if name != "q"}
    more = (given["q"],) if "q" in given else ()
    call = lambda: getattr(discreet, statistic)(  # noqa: E731
        column, *more, **named, epsilon="1/3", neighbors=neighbors
    )
    record = recorded(call)
    certificate = certify(statistic, **given, whole=whole, epsilon="1/3", neighbors=neighbors)
    assert certificate.holds
    # of a joint variance, where four does not divide the width
    assert 0 <= certificate.slack < Fraction(1, 10**5)
    scales = [scale for part in certificate.parts for scale in part.scales]
    drawn = []
    for kind, scale, *_ in record.public():
        drawn += [] if kind == "choice" else [scale] if kind == "even" else list(scale)
    assert drawn == scales
    assert sum(kind == "choice" for kind, *_ in record.public()) == sum(
        p.law == "choice" for p in certificate.parts
    )


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("bins", [1, 2, 3, 50])
def test_a_histogram_is_proved(neighbors, bins):
    certificate = certify("histogram", bins=bins, epsilon=1, neighbors=neighbors)
    assert certificate.holds
    release = discreet.histogram([1, 2], bins=bins, bounds=(0, 9), epsilon=1, neighbors=neighbors)
    assert certificate.parts[0].scales == (release.scale,)


def test_a_release_is_certified_with_the_parameters_of_its_call_and_no_others():
    release = discreet.mean([1.0, 2.0, 3.0], bounds=(0, 10), epsilon="0.1", missing=5)
    certificate = certify(release, bounds=(0, 10), n=3, missing=5)
    assert certificate.holds
    assert certificate.epsilon == Fraction(1, 10)
    assert [part.law for part in certificate.parts] == ["lone"]
    dropped = certify(
        discreet.mean([1.0, None, 3.0], bounds=(0, 10), epsilon=1), bounds=(0, 10), n=3
    )
    assert dropped.holds
    assert [part.law for part in dropped.parts] == ["centred"]
    right = {"bounds": (0, 10), "n": 3, "missing": 5}
    for wrong in (
        {**right, "n": 4},
        {**right, "bounds": (0, 9)},
        {**right, "missing": None},
        {**right, "missing": 6},
    ):
        with pytest.raises(InvalidParameter, match="not those of the release"):
            certify(release, **wrong)
    with pytest.raises(InvalidParameter, match="n must be given"):
        certify(release, bounds=(0, 10))
    assert certify(
        discreet.median([1, 2], bounds=(0, 9), epsilon=1, neighbors="add-remove"), bounds=(0, 9)
    ).holds


@pytest.mark.parametrize("whole", [True, False])
def test_algorithm_one_is_proved_for_the_declared_sensitivity(whole):
    certificate = certify(
        "laplace_mechanism", sensitivity="0.3", epsilon="0.1", changes=7, whole=whole
    )
    assert certificate.loss == Fraction(1, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        ("mode", {}),
        ("mean", {}),
        ("mean", {"bounds": (0, 1), "seed": 1}),
        ("count", {"epsilon": 0}),
        (3, {}),
    ],
)
def test_what_cannot_be_certified_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        certify(wrong[0], **{"epsilon": 1, **wrong[1]})


# Broken code: the certificate must not hold.


def terms_with(**changed):
    real = shares.UnitLimits
    return mock.patch.object(shares, "UnitLimits", lambda **given: real(**{**given, **changed}))


@pytest.mark.parametrize(
    ("policy", "changed"),
    [({}, {"replaced": False}), ({"unit": "who", "max_rows": 3}, {"rows": 1}), ({}, {"cells": 1})],
)
def test_control_a_plan_with_too_little_noise_is_not_proved(policy, changed):
    asked = "count(*), sum(age), avg(pay), median(age)"
    assert certify(plan_of(policy, " GROUP BY place", asked=asked)).holds
    with terms_with(**changed):
        plan = plan_of(policy, " GROUP BY place", asked=asked)
    if "cells" in changed:  # noise on one group alone
        with pytest.raises(InvalidParameter, match="one exact choice in every group"):
            certify(plan)
        return
    certificate = certify(plan)
    assert not certificate.holds
    assert certificate.loss > certificate.epsilon
    assert "NOT proved" in repr(certificate)


def test_control_a_scale_a_billionth_too_small_is_not_proved():
    real = MomentDesign.scales
    smaller = lambda *given: [scale * (1 - Fraction(1, 10**9)) for scale in real(*given)]  # noqa: E731
    with mock.patch.object(MomentDesign, "scales", smaller):
        assert not certify(plan_of({}, "", asked="sum(age)")).holds


@pytest.mark.parametrize("clauses", ["", " WHERE age > 3"])
def test_control_a_design_for_public_sizes_is_refused_where_they_are_private(clauses):
    with terms_with(public=True):
        plan = plan_of({}, clauses, asked="avg(age)")
    with pytest.raises(InvalidParameter, match="private here"):
        certify(plan)


# Files.


@pytest.fixture
def saved(tmp_path):
    plan = plan_of(
        {"unit": "who", "max_rows": 2},
        " GROUP BY place",
        asked="count(*), avg(pay), sum(age), max(age)",
    )
    path = tmp_path / "a.certificate.json"
    certify(plan).save(path)
    return path


def test_a_saved_certificate_is_checked_again(saved):
    certificate = check(saved)
    assert certificate.holds
    assert certificate.to_dict() == json.loads(saved.read_text())
    assert (certificate.unit, certificate.max_rows, certificate.neighbors, certificate.version) == (
        "who",
        2,
        "change-one",
        discreet.__version__,
    )
    assert "avg(pay)" in repr(certificate)
    assert "mean" in certificate.query


def smaller(text):
    return str(Fraction(text) * (1 - Fraction(1, 10**9)))


def lowered(text):
    return str(Fraction(text) - 1)


def first(content):
    return content["parts"][-1]


CHANGES = {
    "a scale": lambda c: first(c)["scales"].__setitem__(0, smaller(first(c)["scales"][0])),
    "a step": lambda c: first(c)["steps"].__setitem__(0, "2"),
    "a sensitivity": lambda c: first(c).update(sensitivity=lowered(first(c)["sensitivity"])),
    "a loss": lambda c: first(c).update(loss=smaller(first(c)["loss"])),
    "a share of epsilon": lambda c: first(c).update(epsilon=smaller(first(c)["epsilon"])),
    "rows": lambda c: first(c).update(rows=1),
    "cells": lambda c: first(c).update(cells=1),
    "a law": lambda c: first(c).update(law="units"),
    "neighbors of a part": lambda c: first(c).update(neighbors="add-remove"),
    "neighbors": lambda c: c.update(neighbors="add-remove"),
    "max_rows": lambda c: c.update(max_rows=1),
    "epsilon down": lambda c: c.update(epsilon="69/100"),
    "epsilon up": lambda c: c.update(epsilon="71/100"),
    "epsilon in other words": lambda c: c.update(epsilon="0.7"),
    "the bound": lambda c: c.update(loss=smaller(c["loss"])),
    "the slack": lambda c: c.update(slack="1/100"),
    "the ball": lambda c: c.update(log_ratio="[0.5 +/- 1e-30]"),
    "holds": lambda c: c.update(holds=1),
    "a part gone": lambda c: c["parts"].pop(),
    "no parts": lambda c: c.update(parts=[]),
    "one key more": lambda c: c.update(note="trust me"),
    "a key gone": lambda c: c.pop("unit"),
    "the format": lambda c: c.update({"discreet certificate": 2}),
    "a number for a text": lambda c: first(c).update(facts=None),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_certificate_is_refused(saved, what):
    content = json.loads(saved.read_text())
    CHANGES[what](content)
    saved.write_text(json.dumps(content, ensure_ascii=False))
    with pytest.raises(InvalidParameter):
        check(saved)


def test_a_change_that_is_carried_through_shows_that_the_claim_is_broken(saved):
    """A scale lowered, and everything that follows from it computed anew: then the bound exceeds ε."""
    content = json.loads(saved.read_text())
    content["parts"][0]["scales"][0] = smaller(content["parts"][0]["scales"][0])
    from discreet.verify.certificate import _read

    saved.write_text(_read(content, "x").to_json())
    with pytest.raises(InvalidParameter, match="exceeds the claimed"):
        check(saved)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"discreet certificate": 1}', "\x00"])
def test_what_is_no_certificate_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InvalidParameter):
        check(path)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        check(tmp_path / "none.json")


def test_a_changed_certificate_names_what_was_changed(saved):
    content = json.loads(saved.read_text())
    content["parts"][0]["sensitivity"] = "1"
    saved.write_text(json.dumps(content, ensure_ascii=False))
    with pytest.raises(InvalidParameter, match=r"the sensitivity of .*count"):
        check(saved)
