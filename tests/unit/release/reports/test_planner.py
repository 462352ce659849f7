"""Reports at the edges of what can be asked: what breaks a plan is refused before the spend, the
rest is right.
"""

import warnings
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from discreet import Policy, Study
from discreet.ask.expression import Coalesce, Column, Constant, Missing
from discreet.ask.keys.column import Keys
from discreet.ask.query import Group
from discreet.errors import InvalidParameter, QueryRefused
from discreet.release.discovery import Discovered, discovery_facts
from reports import TABLES, study_in


def study_of(folder, data, columns, **terms):
    told = {"epsilon": 10_000, "version": "1", "neighbors": "add-remove", **terms}
    return Study(
        Policy(source=pa.table(data), columns=columns, folder=folder, **told),
        ledger=folder / "s.ledger",
    )


def test_parts_that_do_not_add_up_to_epsilon_release_nothing(tmp_path):
    with study_in(tmp_path) as study:
        plan = study.report(TABLES, epsilon=1)
        for factor in (2, Fraction(1, 2)):
            with pytest.raises(InvalidParameter, match="add up to its epsilon"):
                replace(
                    plan, measured=tuple((levels, part * factor) for levels, part in plan.measured)
                ).release()
        with pytest.raises(InvalidParameter, match="add up to its epsilon"):
            replace(plan, measured=()).release()
        assert study.spent == 0


@pytest.mark.parametrize("weight", ["1000001", "1e10", "1e300", "1e-300"])
def test_a_weight_that_leaves_nothing_for_others_is_refused(tmp_path, weight):
    with (
        study_in(tmp_path) as study,
        pytest.raises(InvalidParameter, match="between 1/1000000 and 1000000"),
    ):
        study.report(TABLES, epsilon=1, weights={"by_county": weight})


@pytest.mark.slow
@pytest.mark.parametrize(
    "terms", [{"weights": {"by_county": 10**6, "both": "1e-6"}}, {"within": {"by_county": "0.01"}}]
)
def test_tables_that_weigh_next_to_nothing_are_measured_too(tmp_path, terms):
    with study_in(tmp_path, epsilon=10_000) as study, warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = study.report(TABLES, **({} if "within" in terms else {"epsilon": 100}), **terms)
        assert sum(part for _, part in plan.measured) == 1
        assert all(part > 0 for _, part in plan.measured)
        report = plan.release()
    for at, n in enumerate(report["by_level"]["people"]):
        low, high = report["by_level"].interval("people")[at]
        assert low - (high - low) <= 3_000 / 9 <= high + (high - low), n


@pytest.mark.parametrize(
    ("within", "words"), [({}, "name at least one table"), ("1e-300", "must be larger")]
)
def test_errors_that_nothing_reaches_are_refused(tmp_path, within, words):
    with study_in(tmp_path) as study, pytest.raises(InvalidParameter, match=words):
        study.report(TABLES, within=within)


@pytest.mark.parametrize("missing", [{}, {"missing": 0}])
def test_a_number_that_is_0_or_1_has_halves_and_its_values_are_counted(tmp_path, missing):
    data = {"sex": ["f", "m"] * 500, "smokes": [0, 1, 1, 1, None] * 200}
    columns = {"sex": {"keys": ["f", "m"]}, "smokes": {"bounds": [0, 1], **missing}}
    tables = {
        "by_sex": (
            "SELECT sex, avg(smokes) AS p, sum(smokes) AS s, count(smokes) AS c FROM data GROUP"
            " BY sex"
        ),
        "all": "SELECT count(smokes) AS c, avg(smokes) AS p FROM data",
    }
    with study_of(tmp_path, data, columns) as study:
        report = study.report(tables, epsilon=5_000).release()
        share = 0.6 if missing else 0.75
        assert report["by_sex"]["p"] == pytest.approx([share] * 2, abs=1e-3)
        assert report["by_sex"]["s"] == pytest.approx([300] * 2, abs=0.1)
        assert report["by_sex"]["c"] == pytest.approx([400] * 2, abs=0.1)
        for name, text in tables.items():  # asked alone, it is the same
            plan = study.sql(text, epsilon=5_000)
            assert plan.cost == 0
            assert plan.release().rows == report[name].rows
            with pytest.raises(InvalidParameter, match="release\\(\\) and save it"):
                plan.release(to=tmp_path / f"{name}.parquet")


def test_other_parents_are_another_report(tmp_path):
    data = {"county": ["a"] * 900 + ["b"] * 50 + ["c"] * 10 + ["d"], "state": ["A"] * 961}
    tables = {
        "counties": "SELECT county, count(*) AS n FROM data GROUP BY county",
        "states": "SELECT state, count(*) AS n FROM data GROUP BY state",
    }
    for parents, states, spent in (("AABB", [950, 11], 1_000), ("ABAB", [910, 51], 2_000)):
        rows = [f"{county},{state}" for county, state in zip("abcd", parents, strict=True)]
        (tmp_path / "keys.csv").write_text("\n".join(["county,state", *rows]) + "\n")
        columns = {
            "county": {"keys": "keys.csv#county", "parent": "state"},
            "state": {"keys": ["A", "B"]},
        }
        with study_of(tmp_path, data, columns) as study:
            report = study.report(tables, epsilon=1_000).release()
            assert report["states"]["n"] == pytest.approx(states, abs=0.2)
            assert report["counties"]["n"] == pytest.approx([900, 50, 10, 1], abs=0.2)
            assert study.spent == spent


@pytest.mark.slow
def test_many_columns_are_planned_in_time_and_too_many_are_refused(tmp_path):
    columns = {f"c{at}": {"keys": ["a"]} for at in range(61)}
    with study_of(tmp_path, {name: ["a"] * 3 for name in columns}, columns) as study:
        tables = {
            f"t{at}": f"SELECT c{at}, count(*) AS n FROM data GROUP BY c{at}"  # noqa: S608
            for at in range(61)
        }
        some = dict(list(tables.items())[:24])  # of 2²⁴ parts, 25 are asked for
        assert study.report(some, epsilon=5_000).release()["t23"]["n"] == pytest.approx(
            [3], abs=0.5
        )
        with pytest.raises(QueryRefused, match="at most 60 group columns"):
            study.report(tables, epsilon=1)
        assert study.spent == 5_000


@pytest.mark.parametrize("number", ["0.1000000000000000000001", "0.1"])
def test_results_of_case_that_no_engine_tells_apart_are_refused_or_one(tmp_path, number):
    asked = f"SELECT CASE WHEN x < 3 THEN 0.1 ELSE {number} END AS g, count(*) AS n FROM data GROUP BY g"  # noqa: S608
    with study_of(tmp_path, {"x": [1.0, 5.0]}, {"x": {"bounds": [0, 9]}}) as study:
        if number == "0.1":
            assert len(study.sql(asked, epsilon=1).release()) == 1
            return
        for ask in (study.sql, lambda text, **terms: study.report({"t": text}, **terms)):
            with pytest.raises(QueryRefused, match="first 15 digits"):
                ask(asked, epsilon=1)
        assert study.spent == 0


def test_a_report_over_discovered_keys_tells_their_delta(tmp_path):
    data = {"town": ["a"] * 300 + ["b"] * 200, "sex": ["f", "m"] * 250}
    columns = {"town": {"keys": "discover"}, "sex": {"keys": ["f", "m"]}}
    tables = {
        "towns": "SELECT town, count(*) AS n FROM data GROUP BY town",
        "sexes": "SELECT sex, count(*) AS n FROM data GROUP BY sex",
        "in_a": "SELECT sex, count(*) AS n FROM data WHERE town = 'a' GROUP BY sex",
    }
    with study_of(tmp_path, data, columns, delta="1e-6") as study:
        study.discover("town", epsilon=5)
        report = study.report(tables, epsilon=5).release()
        told = {"columns": ["town"], "epsilon": "5", "delta": "1/1000000"}
        assert report.record["discovered"] == told
        assert (
            report["towns"].record["discovered"]
            == told
            == study.sql(tables["towns"], epsilon=9).release().record["discovered"]
        )
        assert "discovered" not in report["sexes"].record
        assert report["in_a"].record["discovered"] == told  # its cells are those of discovered keys
        # from the report
        assert study.sql(tables["in_a"], epsilon=5).release().record["discovered"] == told
        # it rests on rows alone
        assert "discovered" not in study.sql(tables["in_a"], epsilon=6).release().record
        assert "δ is only that of the discovered keys" in report.save(tmp_path / "it.md")[
            0
        ].read_text("utf-8")
        alone = study.sql(tables["towns"], epsilon=5)
        assert alone.cost == 0
        assert alone.release().record["discovered"] == told


def test_a_condition_that_no_key_fulfils_counts_nobody(tmp_path):
    data = {"sex": ["f", "m"] * 25, "x": [1.0] * 50}
    columns = {
        "sex": {"keys": ["f", "m"]},
        "x": {"bounds": [0, 9]},
    }
    nobody = "sex IN ('f') AND sex IN ('m')"
    tables = {
        "sexes": "SELECT sex, count(*) AS n FROM data GROUP BY sex",
        "nobody": (f"SELECT count(*) AS n, sum(x) AS s, avg(x) AS m FROM data WHERE {nobody}"),  # noqa: S608
        "none": f"SELECT sex, count(*) AS n FROM data WHERE {nobody} GROUP BY sex",  # noqa: S608
    }
    with study_of(tmp_path, data, columns) as study:
        report = study.report(tables, epsilon=1_000).release()
        assert report["nobody"]["n"] == report["nobody"]["s"] == [0]
        assert report["nobody"].interval("m") == [(0, 9)]
        assert report["sexes"]["n"] == pytest.approx([25, 25], abs=0.5)
        assert len(report["none"]) == 0


def test_a_discovered_column_is_named_also_where_missing_values_have_a_label():
    """A policy refuses the two together; where a group has both, the record still names the column."""
    with pytest.raises(InvalidParameter, match="it would add a key to the discovered keys"):
        Policy(
            source="x.csv",
            epsilon=1,
            delta="1e-6",
            columns={"town": {"keys": "discover", "missing": "a"}},
        )
    town = Column("town", "text")
    groups = [Group("g", Coalesce((town, Constant("a", "text"))), Keys.of(["a", "b"]))]
    found = Discovered(keys={"town": ("a", "b")}, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    for told in (discovery_facts(found, groups), discovery_facts(found, (), [town])):
        assert told["discovered"]["columns"] == ["town"]
    assert discovery_facts(found, [replace(groups[0], of=Missing(town))]) == {}
