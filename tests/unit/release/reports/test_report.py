"""Whole reports: at ε = 10⁵ they are what plain DuckDB says of the same rows; all tables agree; one
entry.
"""

import json
import math
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet import Policy, Study
from discreet.errors import BudgetExceeded, InvalidParameter, QueryRefused

LARGEST = 10**5
PLACES, PARENTS = [f"c{i}" for i in range(8)], ["s0", "s0", "s0", "s1", "s1", "s2", "s2", "s2"]


def people(rows=3000, seed=4):
    random = np.random.default_rng(seed)
    place = random.integers(0, 9, rows)
    return pa.table(
        {
            "who": random.integers(0, rows // 2, rows),
            "county": pa.array([f"c{i}" if i < 8 else None for i in place.tolist()]),
            "state": pa.array([PARENTS[i] if i < 8 else None for i in place.tolist()]),
            "sex": random.choice(["f", "m", "x"], rows),
            "age": pa.array([None if a > 95 else int(a) for a in random.integers(-2, 110, rows)]),
            "cost": pa.array([None if c > 9 else float(c) for c in random.gamma(2, 2, rows)]),
            "ok": pa.array(random.choice([True, False, None], rows).tolist()),
            "day": pa.array(np.datetime64("2026-01-01") + random.integers(0, 365, rows)),
        }
    )


COLUMNS = {
    "county": {"keys": PLACES},
    "state": {"keys": ["s0", "s1", "s2"]},
    "sex": {"keys": ["f", "m"], "other": "x"},
    "age": {"bounds": [0, 90], "bins": [0, 18, 65, 90]},
    "cost": {"bounds": [0, 8]},
    "ok": {},
    "day": {"bounds": ["2026-01-01", "2026-12-31"]},
}


def study(tmp_path, columns=COLUMNS, data=None, **promise):
    columns = {**columns, "day": {"type": "date"}} if "day" in columns else columns
    policy = Policy(
        source=people() if data is None else data,
        epsilon=promise.pop("epsilon", 10**6),
        columns=columns,
        folder=tmp_path,
        **{"neighbors": "add-remove", **promise},
    )
    return Study(policy, ledger=str(tmp_path / "study.ledger"))


TABLES = {
    "by_county": "SELECT county, count(*) AS n FROM data GROUP BY county",
    "by_sex_month": (
        "SELECT sex, month(day) AS m, count(*) AS n, count(ok) AS k FROM data GROUP BY sex,"
        " month(day)"
    ),
    "ages": (
        "SELECT bin(age, 0, 18, 65, 90) AS a, count(*) AS n, count(cost) AS k FROM data GROUP BY 1"
    ),
    "costs": (
        "SELECT county, avg(cost) AS mean, sum(cost) AS total, avg(ok) AS good FROM data GROUP BY"
        " county"
    ),
    "two": (
        "SELECT sex, avg(cost) AS mean, avg(age) AS age, count(ok = true) AS n FROM data GROUP"
        " BY sex"
    ),
    "all": "SELECT count(*) AS n, avg(age) AS age FROM data",
}
PLAIN = {
    "by_county": "SELECT county, count(*) FROM data WHERE county IS NOT NULL GROUP BY 1 ORDER BY 1",
    "by_sex_month": (
        """SELECT sex, month(day), count(*), count(ok) FILTER (ok IS NOT NULL) FROM data GROUP BY 1, 2
        ORDER BY 1, 2"""
    ),
    "ages": (
        """SELECT CASE WHEN age < 18 THEN '[0, 18)' WHEN age < 65 THEN '[18, 65)' ELSE '[65, 90]' END, count(*),
        count(cost) FROM data WHERE age BETWEEN 0 AND 90 GROUP BY 1 ORDER BY 1"""
    ),
    "costs": (
        """SELECT county, avg(CASE WHEN cost > 8 THEN 8 ELSE cost END),
        sum(CASE WHEN cost > 8 THEN 8 ELSE cost END), avg(ok::INT) FROM data WHERE county IS NOT NULL GROUP BY 1
        ORDER BY 1"""
    ),
    "two": (
        """SELECT sex, avg(CASE WHEN cost > 8 THEN 8 ELSE cost END), avg(CASE WHEN age > 90 THEN 90
        WHEN age < 0 THEN 0 ELSE age END), count(ok) FROM data GROUP BY 1 ORDER BY 1"""
    ),
    "all": (
        "SELECT count(*), avg(CASE WHEN age > 90 THEN 90 WHEN age < 0 THEN 0 ELSE age END) FROM"
        " data"
    ),
}


def plainly(data, text):
    connection = duckdb.connect()
    connection.register("data", data)
    return connection.execute(text).fetchall()


def rows_of(answer):
    columns = answer.to_dict()
    return sorted(zip(*(columns[name] for name in answer.columns), strict=True))


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_without_noise_every_table_is_what_plain_duckdb_says(tmp_path, neighbors):
    data = people()
    with study(tmp_path, data=data, neighbors=neighbors) as opened:
        report = opened.report(TABLES, epsilon=LARGEST).release()
        for name, text in PLAIN.items():
            ours, theirs = rows_of(report[name]), plainly(data, text)
            assert len(ours) == len(theirs)
            for own, plain in zip(ours, theirs, strict=True):
                for a, b in zip(own, plain, strict=True):
                    assert (
                        a == b
                        if isinstance(b, str)
                        else a == pytest.approx(float(b), rel=2e-5, abs=1e-5)
                    ), name


def test_units_with_several_rows_are_capped_once_for_all_tables(tmp_path):
    data = people()
    with study(tmp_path, data=data, unit="who", max_rows=2) as opened:
        report = opened.report(
            {
                "sex": "SELECT sex, count(*) AS n FROM data GROUP BY sex",
                "all": "SELECT count(*) AS n FROM data",
            },
            epsilon=LARGEST,
        ).release()
        [[capped]] = plainly(
            data, "SELECT sum(least(n, 2)) FROM (SELECT count(*) n FROM data GROUP BY who)"
        )
        assert round(report["all"]["n"][0]) == capped
        assert round(sum(report["sex"]["n"])) == capped


WHERE = {
    "county = 'c1'": True,
    "county IN ('c1', 'c2') AND sex = 'f'": True,
    "NOT county <> 'c1'": True,
    "NOT (county = 'c1' AND sex = 'f')": False,
    "county <> 'c1'": False,
    "county IS NOT NULL": False,
    "sex = 'f' OR sex = 'm'": True,
    "ok": True,
    "NOT ok": True,
    "ok IS NULL": True,
    "age >= 18 AND age < 65": True,
    "age >= 18 AND age <= 90": True,
    "age > 18 AND age < 65": False,
    "age >= 18": False,
    "age >= 20 AND age < 65": False,
    "month(day) <= 6": False,
    "month(day) IN (1, 2)": True,
    "cost > 3": False,
    "county = sex": False,
    "county = 'c1' OR sex = 'f'": False,
}


@pytest.mark.parametrize(("condition", "decided"), WHERE.items())
def test_a_condition_on_keys_chooses_cells_and_any_other_is_refused(tmp_path, condition, decided):
    data = people(800)
    tables = {
        "all": "SELECT sex, count(*) AS n FROM data GROUP BY sex",
        "some": f"SELECT sex, count(*) AS n FROM data WHERE {condition} GROUP BY sex",  # noqa: S608
    }
    with study(tmp_path, data=data) as opened:
        if not decided:
            with pytest.raises(QueryRefused, match="some: tables of a report must share one WHERE"):
                opened.report(tables, epsilon=1)
            assert opened.spent == 0
            return
        report = opened.report(tables, epsilon=LARGEST).release()
        [[exact]] = plainly(data, f"SELECT count(*) FROM data WHERE {condition}")  # noqa: S608
        assert round(sum(report["some"]["n"])) == exact
        assert len(report["all"]) == 3


def test_one_where_of_all_tables_may_be_any_condition(tmp_path):
    data = people(800)
    tables = {
        "sex": "SELECT sex, count(*) AS n FROM data WHERE cost > 3 GROUP BY sex",
        "all": "SELECT count(*) AS n FROM data WHERE cost > 3",
    }
    with study(tmp_path, data=data) as opened:
        report = opened.report(tables, epsilon=LARGEST).release()
        [[exact]] = plainly(data, "SELECT count(*) FROM data WHERE cost > 3")
        assert round(report["all"]["n"][0]) == round(sum(report["sex"]["n"])) == exact


def hierarchy(tmp_path):
    lines = [f"{county},{state}" for county, state in zip(PLACES, PARENTS, strict=True)]
    (tmp_path / "counties.csv").write_text("\n".join(["county,state", *lines]))
    return {**COLUMNS, "county": {"keys": "counties.csv#county", "parent": "state"}}


def test_states_are_the_sums_of_their_counties(tmp_path):
    data = people()
    tables = {
        "states": "SELECT state, count(*) AS n FROM data GROUP BY state",
        "counties": "SELECT state, county, count(*) AS n FROM data GROUP BY state, county",
        "sexes": "SELECT state, sex, count(*) AS n FROM data GROUP BY state, sex",
        "one": "SELECT sex, count(*) AS n FROM data WHERE state = 's1' GROUP BY sex",
    }
    with study(tmp_path, hierarchy(tmp_path), data=data) as opened:
        for epsilon in (1, LARGEST):
            report = opened.report(tables, epsilon=epsilon).release()
            counties, states = report["counties"].to_dict(), report["states"].to_dict()
            assert list(zip(counties["state"], counties["county"], strict=True)) == list(
                zip(PARENTS, PLACES, strict=True)
            )
            for state, total in zip(states["state"], states["n"], strict=True):
                parts = [
                    n
                    for n, own in zip(counties["n"], counties["state"], strict=True)
                    if own == state
                ]
                assert sum(parts) == pytest.approx(total, rel=1e-12)
            numerators, below = report.counts("states")
            inner, deep = report.counts("counties")
            sums = [
                sum(int(n) for n, own in zip(inner, PARENTS, strict=True) if own == s)
                for s in ("s0", "s1", "s2")
            ]
            assert [Fraction(int(n), below) for n in numerators] == [
                Fraction(n, deep) for n in sums
            ]
        [[exact]] = plainly(data, "SELECT count(*) FROM data WHERE state = 's1'")
        assert round(sum(report["one"]["n"])) == exact


def test_parents_that_are_no_keys_are_refused(tmp_path):
    columns = {**hierarchy(tmp_path), "state": {"keys": ["s0", "s1"]}}
    with (
        study(tmp_path, columns) as opened,
        pytest.raises(QueryRefused, match="the file of keys of county"),
    ):
        opened.report(
            {
                "a": "SELECT state, count(*) n FROM data GROUP BY state",
                "b": "SELECT county, count(*) n FROM data GROUP BY 1",
            },
            epsilon=1,
        )


@pytest.mark.slow
def test_a_report_is_one_entry_and_free_when_asked_again(tmp_path):
    with study(tmp_path, epsilon=1) as opened:
        plan = opened.report(TABLES, epsilon="0.75")
        assert opened.spent == 0
        report = plan.release()
        again = opened.report(
            dict(reversed(TABLES.items())), epsilon="0.75", confidence="0.9"
        ).release()
        assert report.content == again.content
        assert opened.spent == Fraction(3, 4)
        assert [entry.kind for entry in opened.ledger.entries("study")] == [
            "create",
            "spend",
            "answer",
            "repeat",
        ]
        with pytest.raises(BudgetExceeded):
            opened.report(TABLES, epsilon="0.5").release()
        assert opened.spent == Fraction(3, 4)
        widths = [
            [high - low for low, high in one.interval("n")]
            for one in (report["by_county"], again["by_county"])
        ]
        assert widths[1] < widths[0]


@pytest.mark.slow
def test_a_table_of_a_report_is_free_when_it_is_asked_alone(tmp_path):
    with study(tmp_path, hierarchy(tmp_path), epsilon=10) as opened:
        tables = {
            **TABLES,
            "one": "SELECT sex, count(*) AS n FROM data WHERE county IN ('c1', 'c2') GROUP BY sex",
            "states": "SELECT state, count(*) AS n FROM data GROUP BY state",
        }
        report = opened.report(tables, epsilon=1).release()
        for name, text in tables.items():
            plan = opened.sql(text, epsilon=1)
            assert plan.cost == 0
            assert "answered from a report" in repr(plan)
            assert plan.release().rows == report[name].rows
        assert opened.spent == 1
        repeats = [entry for entry in opened.ledger.entries("study") if entry.kind == "repeat"]
        assert [(entry.asked, entry.amount) for entry in repeats] == [
            (text, 0) for text in tables.values()
        ]
        opened.ledger.verify()
        larger = opened.sql(TABLES["by_county"], epsilon="1.5")
        assert larger.cost == Fraction(3, 2)  # a larger ε is another question
        # no table of it
        assert opened.sql("SELECT sex, count(*) AS n FROM data GROUP BY sex", epsilon=1).cost == 1


def test_a_table_of_another_analysts_report_does_not_tell_its_title(tmp_path):
    with study(tmp_path, epsilon=10) as opened:
        for analyst in ("ann", "bob"):
            opened.ledger.allot(analyst, 2, study="study")
        opened.report(TABLES, epsilon=1, title="Layoffs in Essex").release(analyst="ann")
        plan = opened.sql(TABLES["by_county"], epsilon=1)
        answer = plan.release(analyst="bob", request_id="mine")
        assert (
            "Layoffs" not in f"{plan!r} {plan._repr_html_()} {answer!r} {answer._repr_html_()}"
            f" {answer.recorded}"
        )
        assert opened.ledger.spent("study", analyst="bob") == 0
        [entry] = opened.ledger.recent("study", last=10, analyst="bob")[1:]
        assert (entry.kind, entry.request_id, entry.asked) == (
            "repeat",
            "mine",
            TABLES["by_county"],
        )
        # the same request: no other entry
        assert plan.release(analyst="bob", request_id="mine").rows == answer.rows
        assert len(opened.ledger.recent("study", last=10, analyst="bob")) == 2
        with pytest.raises(InvalidParameter, match="was used for another"):
            opened.sql("SELECT sex, avg(age) AS x FROM data GROUP BY sex", epsilon=1).release(
                request_id="mine"
            )
        with pytest.raises(BudgetExceeded, match="has no share"):
            plan.release(analyst="carl")


def test_data_that_changed_has_no_report(tmp_path):
    with study(tmp_path, epsilon=10) as opened:
        opened.report(TABLES, epsilon=1).release()
    with study(tmp_path, epsilon=10, data=people(seed=5)) as opened:
        assert opened.sql(TABLES["by_county"], epsilon=1).cost == 1


@pytest.mark.parametrize(
    ("tables", "terms", "words"),
    [
        ({}, {"epsilon": 1}, "between 1 and 500 tables"),
        (TABLES, {}, "takes either epsilon"),
        (TABLES, {"epsilon": 1, "within": 5}, "takes either epsilon"),
        (TABLES, {"epsilon": 1, "weights": {"nothing": 2}}, "weights must name tables"),
        (TABLES, {"epsilon": 1, "integers": 1}, "integers must be True or False"),
        (TABLES, {"epsilon": 0}, "epsilon"),
        (
            {"a": "SELECT sex, median(cost) AS x FROM data GROUP BY sex"},
            {"epsilon": 1},
            "a: a report may have counts",
        ),
        (
            {"a": "SELECT sex, stddev(cost) AS x FROM data GROUP BY sex"},
            {"epsilon": 1},
            "a: a report may have counts",
        ),
        ({1: "SELECT count(*) FROM data"}, {"epsilon": 1}, "the name of a table"),
        (TABLES, {"epsilon": 1, "weights": {"all": 10**9}}, "a weight must lie between"),
    ],
)
def test_what_cannot_be_reported_is_refused_before_any_spend(tmp_path, tables, terms, words):
    with study(tmp_path) as opened:
        with pytest.raises((InvalidParameter, QueryRefused), match=words):
            opened.report(tables, **terms)
        assert opened.spent == 0


def test_the_least_epsilon_for_what_is_asked(tmp_path):
    tables = {name: TABLES[name] for name in ("by_county", "all")}
    with study(tmp_path) as opened:
        plan = opened.report(tables, within={"by_county": 30, "all": 40}, size=2000)
        errors = {line.table: line.reach for line in plan.lines if line.column == "n"}
        assert errors["by_county"] <= 30
        assert errors["all"] <= 40
        near = [line.reach / {"by_county": 30, "all": 40}[line.table] for line in plan.lines]
        assert max(near) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("within", ["1/1000", 50, {"costs": 10, "all": 40}])
def test_targets_that_are_far_apart_leave_no_table_unmeasured(tmp_path, within):
    """A sum of values up to 8 has a target that is eight times as near as that of a count."""
    with study(tmp_path, epsilon=10**6) as opened:
        tables = {name: TABLES[name] for name in within} if isinstance(within, dict) else TABLES
        plan = opened.report(tables, within=within, size=100)
        aims = within if isinstance(within, dict) else dict.fromkeys(TABLES, within)
        assert all(
            line.reach <= float(Fraction(aims[line.table]))
            for line in plan.lines
            if line.table in aims
        )
        assert all(math.isfinite(line.reach) for line in plan.lines)
        assert sum(part for _, part in plan.measured) == 1
        assert all(part > 0 for _, part in plan.measured)


def test_weights_make_a_table_more_precise(tmp_path):
    tables = {name: TABLES[name] for name in ("by_county", "by_sex_month")}
    with study(tmp_path) as opened:
        even, heavy = (
            {
                line.table: line.reach
                for line in opened.report(tables, epsilon=1, weights=weights).lines
            }
            for weights in (None, {"by_county": 50})
        )
        assert heavy["by_county"] < 0.8 * even["by_county"]


def test_rows_reproduce_the_tables_and_integers_agree(tmp_path):
    tables = {
        "a": "SELECT county, sex, count(*) AS n FROM data GROUP BY county, sex",
        "b": "SELECT sex, ok, count(*) AS n FROM data GROUP BY sex, ok",
        "all": "SELECT count(*) AS n FROM data",
        "cost": "SELECT sex, avg(cost) AS m FROM data GROUP BY sex",
    }
    with study(tmp_path) as opened:
        plan = opened.report(tables, epsilon=1, integers=True)
        report = plan.release()
        rows = report.rows()
        found = plainly(rows, "SELECT sex, count(*) FROM data GROUP BY 1 ORDER BY 1")
        whole = report["b"].to_dict()
        assert all(isinstance(n, int) and n >= 0 for name in "ab" for n in report[name]["n"])
        assert report["all"]["n"] == [rows.num_rows]
        for name in ("a", "b"):
            keys = [column for column in report[name].columns if column != "n"]
            counted = plainly(rows, f"SELECT {', '.join(keys)}, count(*) FROM data GROUP BY ALL")  # noqa: S608
            shown = {tuple(row[k][0] for k in keys): row["n"][0] for row in report[name].rows}
            assert all(shown.get(tuple(row[:-1]), row[-1]) == row[-1] for row in counted)
        assert set(whole["sex"]) == {"f", "m", "x"} == {sex for sex, _ in found}
        errors = np.array(
            [
                n - plain
                for n, (_, _, plain) in zip(_values(report, "a"), _exact("a", tables), strict=True)
            ]
        )
        assert np.abs(errors).max() < 60
        for low, n, high in zip(
            *(report["a"].to_dict()[name] for name in ("n_low", "n", "n_high")), strict=True
        ):
            assert low <= n <= high


def _values(report, name):
    return [
        row["n"][0]
        for row in sorted(report[name].rows, key=lambda row: (row["county"][0], row["sex"][0]))
    ]


def _exact(_name, _tables):
    return plainly(
        people(),
        """SELECT county, sex, count(*) FROM data WHERE county IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2""",
    )


def test_rows_of_too_many_cells_are_refused_before_any_spend(tmp_path):
    columns = {name: {"keys": "1..400"} for name in ("a", "b", "c")}
    data = pa.table({name: [1, 2] for name in columns})
    tables = {name: f"SELECT {name}, count(*) AS n FROM data GROUP BY {name}" for name in columns}  # noqa: S608
    with study(tmp_path, columns, data=data) as opened:
        with pytest.raises(InvalidParameter, match="a full table of"):
            opened.report(tables, epsilon=1, integers=True)
        assert opened.report(tables, epsilon=1).release().epsilon == 1


def test_tables_of_too_many_numbers_are_refused_before_any_spend(tmp_path):
    """Few cells are measured, and eleven tables are made of them."""
    columns = {name: {"keys": "1..1000"} for name in ("a", "b")}
    data = pa.table({name: [1, 2] for name in columns})
    tables = {f"t{at}": "SELECT a, b, count(*) AS n FROM data GROUP BY a, b" for at in range(11)}
    with study(tmp_path, columns, data=data) as opened:
        with pytest.raises(
            QueryRefused, match="at most 10,000,000 numbers in total, but these have 11,000,000"
        ):
            opened.report(tables, epsilon=1)
        assert opened.spent == 0


def test_all_together_intervals_are_wider(tmp_path):
    with study(tmp_path) as opened:
        alone, together = (
            opened.report(TABLES, epsilon=1, simultaneous=simultaneous)
            for simultaneous in (False, True)
        )
        assert all(
            b.reach > 1.3 * a.reach for a, b in zip(alone.lines, together.lines, strict=True)
        )


def test_the_record_has_the_noisy_integers_and_nothing_of_the_rows(tmp_path):
    with study(tmp_path) as opened:
        report = opened.report(TABLES, epsilon=1, title="Visits").release()
        record = json.loads(report.content)
        assert record["report"] == "Visits"
        assert sum(Fraction(one["epsilon"]) for one in record["sets"]) == 1
        assert all(
            isinstance(v, int)
            for one in record["sets"]
            for c in one["columns"]
            for v in c["values"]
        )
        assert math.isfinite(sum(line.alone for line in report.plan.lines))


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
def test_tables_without_groups_are_reported_also_in_integers(tmp_path, neighbors):
    with study(tmp_path, neighbors=neighbors) as opened:
        tables = {"all": "SELECT count(*) AS n FROM data", "cost": "SELECT sum(cost) FROM data"}
        plan = opened.report(tables, epsilon=1, integers=True)
        line, _ = plan.lines
        assert line.one_by_one == {"change-one": "± 0", "add-remove": "± 6"}[neighbors]
        assert plan.release()["all"].to_dict()["n"][0] == pytest.approx(3000, abs=100)
