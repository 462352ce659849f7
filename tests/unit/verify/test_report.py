"""The report of `discreet verify`, with few draws: its lines, its JSON, and that it can fail."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

import pytest

import discreet
from discreet.errors import InvalidParameter
from discreet.verify import report
from discreet.verify.rerun import CHECKS, Replay

PASSED = Replay(
    checks=dict.fromkeys(CHECKS, True),
    sensitivities=(),
    neighbors="change-one",
    epsilon=Fraction(1),
)
CERTIFIED = [
    "count(*)",
    "sum(age)",
    "avg(age)",
    "variance(pay)",
    "median(age)",
    "min(age)",
    "max(age)",
    "avg(well)",
]


@pytest.fixture(scope="module")
def certificates():
    """The rows of the report, each proved once."""
    return [
        (name, relation, partial(lambda proof: proof, prove()))
        for name, relation, prove in report._certificates()
    ]


@pytest.fixture
def quick(certificates):
    """Some subjects and controls, with fewer draws."""
    few = [
        replace(subject, draws=100_000)
        for subject in report.subjects()
        if subject.statistic in ("count", "randomized_response")
    ]
    some = [subject for subject in report.controls() if subject.draws <= 1_000]
    rows = [("sums of a column", "change-one", lambda: PASSED)]
    replacements = {
        "subjects": few,
        "controls": some,
        "_replays": rows,
        "_certificates": certificates,
    }
    functions = {name: mock.Mock(return_value=value) for name, value in replacements.items()}
    short = [
        (name, work) for name, work in report.SHORT if name in ("randomized response", "profiles")
    ]
    with mock.patch.multiple(report, **functions, SHORT=short):
        yield


@pytest.mark.usefixtures("quick")
def test_the_report_shows_certificates_audits_and_controls():
    lines = []
    passed = report.run(lines.append)
    assert [line for line in lines if line.startswith("✗")] == []
    assert passed
    text = "\n".join(lines)
    assert any(
        line.startswith("✓ randomized response ") and line.endswith(" numbers") for line in lines
    )
    for name in CERTIFIED:
        for relation in report.RELATIONS:
            assert any(line.startswith(f"✓ {name} ") and relation in line for line in lines), (
                name,
                relation,
            )
    assert "randomized_response" in text
    assert "a row raises" in text
    assert "✗" not in text
    assert lines[-1] == "Everything is as it must be."


@pytest.mark.usefixtures("quick")
def test_the_report_in_json_is_one_text():
    lines = []
    assert report.run(lines.append, as_json=True)
    [text] = lines
    content = json.loads(text)
    assert set(content) == {"additions", "certificates", "replays", "audits", "controls", "passed"}
    assert [one["name"] for one in content["additions"]] == [
        "randomized response",
        "profiles",
        "noise",
    ]
    assert all(one["numbers"] > 1_000 and "refused" not in one for one in content["additions"])
    assert content["replays"] == [
        {
            "name": "sums of a column",
            "neighbors": "change-one",
            "checks": PASSED.checks,
            "passed": True,
        }
    ]
    assert all(subject["verdict"] == "silent" for subject in content["audits"])
    assert all(subject["verdict"] == "violated" for subject in content["controls"])


@pytest.mark.usefixtures("quick")
def test_control_a_blind_auditor_and_a_leaking_statistic_make_the_report_fail():
    def finding(bound):
        """An auditor with this bound, whatever it draws."""
        few = {"draws": 1_000}
        return lambda *given, **named: replace(
            discreet.verify.audit(*given, **{**named, **few}), bound=bound
        )

    for bound in (0.0, 1.01):
        lines = []
        with mock.patch.object(report, "audit", finding(bound)):
            assert not report.run(lines.append)
        assert "SOMETHING IS WRONG" in lines[-1]
        assert any(line.startswith("✗") for line in lines)


def test_every_public_name_of_verify_is_there():
    for name in discreet.verify.__all__:
        assert getattr(discreet.verify, name) is not None
    assert set(dir(discreet.verify)) == set(discreet.verify.__all__)
    assert callable(discreet.verify.audit)
    assert callable(discreet.verify.replay)
    with pytest.raises(AttributeError, match="no attribute 'prove'"):
        discreet.verify.prove  # noqa: B018


@pytest.mark.usefixtures("quick")
def test_control_a_replay_that_fails_and_a_certificate_that_is_refused_make_the_report_fail():
    failed = replace(PASSED, checks={**PASSED.checks, "sensitivity": False})

    def refused():
        raise InvalidParameter("sum does not draw what its law requires")

    def fails(_):
        raise KeyError("place")

    for work, text in ((lambda _: refused(), "sum does not draw"), (fails, "KeyError: 'place'")):
        lines = []
        with mock.patch.multiple(report, SHORT=[("questions", work)], subjects=list, controls=list):
            assert not report.run(lines.append)
        [line] = [line for line in lines if line.startswith("✗")]
        assert line.startswith("✗ questions ")
        assert text in line
    wrong = {
        "_replays": ([("sums of a column", "change-one", lambda: failed)], "✗ sums of a column"),
        "_certificates": ([("sum", "change-one", refused)], "no certificate: sum does not draw"),
    }
    for name, (value, text) in wrong.items():
        for as_json in (False, True):
            lines = []
            with (
                mock.patch.object(report, name, mock.Mock(return_value=value)),
                mock.patch.multiple(report, subjects=list, controls=list),
            ):
                assert not report.run(lines.append, as_json=as_json)
            assert as_json or any(text in line for line in lines)
