"""Studies: data, policy and ledger together."""

from fractions import Fraction

import pyarrow.csv
import pytest

import discreet
from discreet import (
    BudgetExceeded,
    Count,
    InvalidParameter,
    Ledger,
    LedgerDamaged,
    Mean,
    Policy,
    QueryRefused,
    Study,
)
from shell import study_in
from studies import Paper, policy_of, select, study_of, table_of

ROWS = [{"place": "north", "age": at % 11} for at in range(40)]
TOML = """
source  = "people.csv"
table   = "data"
epsilon = "1"
[columns]
place = { keys = ["north", "south"] }
age   = { bounds = [0, 10] }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(TOML)
    pyarrow.csv.write_csv(table_of(ROWS).select(["place", "age"]), tmp_path / "people.csv")
    return tmp_path


def test_a_study_opens_from_its_file_with_a_ledger_beside_it(folder):
    with discreet.open(folder / "study.toml") as study:
        assert (
            repr(study)
            == "Study('study': 2 columns declared · ε 1 of 1 left · change-one · unit row)"
        )
        answer = study.sql(select("place, count(*)", "GROUP BY place"), epsilon="0.25").release()
        assert study.spent == Fraction(1, 4)
    assert (folder / "study.ledger").exists()
    with discreet.open(str(folder / "study.toml")) as again:
        assert again.remaining == Fraction(3, 4)
        assert (
            again.sql(select("place, count(*)", "GROUP BY place"), epsilon="0.25").release()
            == answer
        )
        assert again.remaining == Fraction(3, 4)


def test_a_ledger_elsewhere_can_be_named(folder, tmp_path):
    with discreet.open(folder / "study.toml", ledger=tmp_path / "other.ledger") as study:
        assert study.remaining == 1
        assert not (tmp_path / "other.ledger").exists()
        study.sql(select("avg(age)"), epsilon="0.7").release()
    assert (tmp_path / "other.ledger").exists()
    with Ledger.open(tmp_path / "other.ledger") as ledger:
        assert ledger.studies() == ["study"]


def test_a_total_stands_for_ever(folder):
    discreet.open(folder / "study.toml").ledger.close()
    (folder / "study.toml").write_text(TOML.replace('"1"', '"2"'))
    with pytest.raises(
        InvalidParameter, match="policy must be 1, what the ledger was created with, got 2"
    ):
        discreet.open(folder / "study.toml")


def test_a_ledger_that_was_lost_is_no_fresh_budget(folder):
    discreet.open(folder / "study.toml").ledger.close()
    (folder / "study.ledger").unlink()
    with pytest.raises(LedgerDamaged):
        discreet.open(folder / "study.toml")


def test_a_budget_ends(folder):
    with discreet.open(folder / "study.toml") as study:
        study.sql(select("avg(age)"), epsilon="0.7").release()
        with pytest.raises(BudgetExceeded):
            study.sql(select("sum(age)"), epsilon="0.4").release()
        study.sql(select("sum(age)"), epsilon="0.3").release()
        assert study.remaining == 0
        study.sql(select("avg(age)"), epsilon="0.7").release()  # asked again, it is free


def test_analysts_have_shares(folder):
    with discreet.open(folder / "study.toml") as study:
        study.ledger.allot("ann", "0.2", study="study")
        plan = study.sql(select("avg(age)"), epsilon="0.2")
        assert plan.release(analyst="ann").remaining == 0
        with pytest.raises(BudgetExceeded):
            study.sql(select("sum(age)"), epsilon="0.1").release(analyst="ann")
        assert study.remaining == Fraction(4, 5)


def test_a_chain_of_verbs_never_changes_what_it_was_made_from():
    study = study_of(ROWS, Paper())
    base = study.where("age > 3")
    narrower = base.where("age < 9").by("place")
    assert (base.conditions, base.columns) == (("age > 3",), ())
    assert narrower.ask(n=Count()).ask(mean=Mean("age")).plan(epsilon=1).query.groups
    assert study.ask(n=Count("age > 3")).plan(epsilon=1).cost == 1
    with pytest.raises(QueryRefused):
        base.plan(epsilon=1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"nobody": {"bounds": [0, 1]}}, "the data has no such column"),
        ({"well": {"bounds": [0, 1]}}, "they must be of the column's kind"),
        ({"well": {"bins": [0, 1]}}, "they need a number"),
    ],
)
def test_a_policy_that_does_not_fit_the_data_is_refused_before_any_spend(columns, message):
    policy = Policy(
        source=table_of(ROWS), epsilon=1, columns={"age": {"bounds": [0, 10]}, **columns}
    )
    study = Study(policy, ledger=Paper(1))
    with pytest.raises(InvalidParameter, match=message):
        study.sql(select("avg(age)"), epsilon=1)
    assert study.spent == 0


def test_a_unit_that_is_not_in_the_data_is_refused_before_any_spend():
    policy = Policy(
        source=table_of(ROWS),
        epsilon=1,
        unit="nobody",
        max_rows=1,
        columns={"age": {"bounds": [0, 10]}},
    )
    study = Study(policy, ledger=Paper(1))
    with pytest.raises(InvalidParameter, match="unit: the data has no column 'nobody'"):
        study.sql(select("avg(age)"), epsilon=1)
    assert study.spent == 0


def test_a_study_takes_an_open_ledger(tmp_path):
    with Ledger.open(tmp_path / "shared.ledger", new=True) as ledger:
        for name, total in (("one", 1), ("two", 2)):
            ledger.create(name, total, promise=policy_of(ROWS, epsilon=total).promise)
        one = Study(policy_of(ROWS, epsilon=1), ledger=ledger, name="one")
        two = Study(policy_of(ROWS, epsilon=2), ledger=ledger, name="two")
        one.sql(select("avg(age)"), epsilon="0.5").release()
        assert (one.remaining, two.remaining) == (Fraction(1, 2), 2)
        with pytest.raises(InvalidParameter):
            Study(policy_of(ROWS, epsilon=1), ledger=ledger, name="two")


def test_ages_beyond_the_bounds_are_clamped_and_missing_ones_counted_as_declared():
    rows = [{"age": -5}, {"age": 99}, {"age": None}, {"age": 4}]
    dropped = (
        study_of(rows, Paper())
        .sql(select("sum(age) AS total, count(age) AS n"), epsilon=10**5)
        .release()
    )
    assert (dropped["total"], dropped["n"]) == ([14], [3])
    counted = study_of(rows, Paper(), columns={"age": {"missing": 7}})
    assert counted.sql(select("sum(age) AS total, avg(age) AS mean"), epsilon=10**5).release()[
        "total"
    ] == [21]


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
    assert [line.reach <= most for line, most in zip(plan.lines, (400, 100), strict=True)] == [
        True,
        True,
    ]
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
        REPORT.replace(
            'count(*) AS visits FROM visits"\nwithin', 'median(age) FROM visits"\nwithin'
        ),
        "utf-8",
    )
    with pytest.raises(Exception, match="a report may have counts, sums and means"):
        discreet.report(path, ledger=ledger)
    assert ledger.spent("study") == 0
    ledger.close()


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InvalidParameter, match=r"none\.toml: there is no such file"):
        discreet.report(tmp_path / "none.toml")
