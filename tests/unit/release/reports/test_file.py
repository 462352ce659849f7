"""`discreet.report`: a file gives the plan that the same tables give in Python."""

import pytest

import discreet
from discreet import InvalidParameter, Ledger
from shell import study_in

REPORT = """study = "study.toml"
within = 400
[tables.by_county]
sql = "SELECT county, count(*) AS visits FROM visits GROUP BY county"
[tables.all]
sql = "SELECT count(*) AS visits FROM visits"
within = 100
weight = 3
"""


@pytest.fixture
def path(tmp_path):
    study_in(tmp_path)
    (tmp_path / "report.toml").write_text(REPORT, "utf-8")
    return tmp_path / "report.toml"


def test_a_file_is_the_same_report_as_in_python(path):
    plan = discreet.report(path)
    tables = {
        "by_county": "SELECT county, count(*) AS visits FROM visits GROUP BY county",
        "all": "SELECT count(*) AS visits FROM visits",
    }
    same = plan.study.report(tables, within={"by_county": 400, "all": 100}, weights={"all": 3})
    assert (plan.canonical, plan.epsilon, repr(plan)) == (same.canonical, same.epsilon, repr(same))
    assert [line.reach <= most for line, most in zip(plan.lines, (400, 100), strict=True)] == [True, True]
    assert plan.study.spent == 0
    plan.study.close()


def test_a_ledger_elsewhere_is_used_and_left_open(path, tmp_path):
    with discreet.report(path, ledger=tmp_path / "other.ledger").study as study:
        assert study.ledger.files[0].name == "other.ledger"
        assert not (tmp_path / "study.ledger").exists()
    ledger = Ledger.open(tmp_path / "mine.ledger", new=True)
    policy = discreet.Policy.load(tmp_path / "study.toml")
    ledger.create("study", policy.epsilon, promise=policy.promise)
    path.write_text(
        REPORT.replace('count(*) AS visits FROM visits"\nwithin', 'median(age) FROM visits"\nwithin'), "utf-8"
    )
    with pytest.raises(Exception, match="a report may have counts, sums and means"):
        discreet.report(path, ledger=ledger)
    assert ledger.spent("study") == 0
    ledger.close()


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InvalidParameter, match=r"none\.toml: there is no such file"):
        discreet.report(tmp_path / "none.toml")
