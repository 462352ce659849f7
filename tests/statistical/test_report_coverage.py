"""Intervals of a report cover as often as they say, and its plan promises what its errors are.

One report is drawn N = 400 times, with all of its kinds of numbers: counts, a count under WHERE,
nested group columns, a sum, means and a proportion. How far noise reaches is computed once, as it
is the same in all draws. For each number the share of covered cells, and for counts and sums the
share of errors within the plan, must lie between bounds that a binomial law of N·cells/16
independent cells exceeds with 10⁻⁸: cells of one draw share their noise, and 16 is more than any
variance that was seen. At 95 % the bounds are 87 and 99.7 %: reaches of 0.6 of what they should be
are caught. Of intervals that hold together, all of a draw must hold in as many draws as a binomial
law allows with 10⁻⁸, which catches 88 %.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from discreet import Policy, Study
from discreet.release.reports import report as report_module
from discreet.release.reports.report import Report

DRAWS = 400
TABLES = {
    "counties": "SELECT state, county, count(*) AS n FROM data GROUP BY state, county",
    "states": "SELECT state, count(*) AS n FROM data GROUP BY state",
    "sexes": "SELECT sex, state, count(*) AS n FROM data GROUP BY sex, state",
    "some": "SELECT sex, count(*) AS n FROM data WHERE county IN ('c1', 'c7') GROUP BY sex",
    "cost": (
        "SELECT sex, sum(cost) AS total, avg(cost) AS mean, avg(ok) AS good FROM data GROUP BY sex"
    ),
}


@pytest.mark.parametrize(
    ("neighbors", "together"), [("add-remove", False), ("change-one", False), ("add-remove", True)]
)
def test_intervals_of_a_report_cover_as_often_as_they_say(
    tmp_path, neighbors, together, monkeypatch
):
    random = np.random.default_rng(2)
    county = random.integers(0, 9, 4000)
    parents = ["a", "a", "a", "a", "b", "b", "c", "c", "c"]
    cost, good = random.beta(2, 5, 4000) * 40, random.choice([True, False, None], 4000)
    lines = [f"c{index},{parent}" for index, parent in enumerate(parents)]
    (tmp_path / "keys.csv").write_text("\n".join(["county,state", *lines]))
    sex = random.choice(["f", "m"], 4000, p=[0.3, 0.7])
    data = pa.table(
        {
            "county": [f"c{index}" for index in county],
            "state": [parents[index] for index in county],
            "sex": sex,
            "cost": cost,
            "ok": pa.array(good.tolist(), pa.bool_()),
        }
    )
    columns = {
        "county": {"keys": "keys.csv#county", "parent": "state"},
        "state": {"keys": ["a", "b", "c"]},
        "sex": {"keys": ["f"], "other": "m"},
        "cost": {"bounds": [0, 40], "missing": 0},
        "ok": {},
    }
    policy = Policy(source=data, epsilon=10, columns=columns, folder=tmp_path, neighbors=neighbors)
    with Study(policy, ledger=tmp_path / "study.ledger") as study:
        plan = study.report(TABLES, epsilon=1, size=1000, simultaneous=together)
        exact = _exact(county, parents, sex, cost, good)
        secret, template = plan.fetched(), plan.release()
        inside = {name: [] for name in exact}
        within = {name: [] for name in exact}
        reach = {(line.table, line.column): line.reach for line in plan.lines}
        for name in ("reaches", "mean_reaches"):  # after the plan, which has imported them
            monkeypatch.setattr(report_module, name, _once(getattr(report_module, name)))
        shown = {name: template[name].to_dict() for name, _ in exact}
        for draw in range(DRAWS + 1):
            noisy = (
                plan.design.noisy(secret, plan.terms, plan.epsilon) if draw else template.columns
            )
            report = _drawn(plan, template, noisy)
            for (table, column), truth in exact.items():
                asked = plan.table_of(table)
                number = next(one for one in asked.numbers if plan._title(asked, one) == column)
                value, low, high = (column.ravel() for column in report._numbers(asked, number))
                if not draw:  # a table shows these numbers
                    rows = [shown[table][column + end] for end in ("", "_low", "_high")]
                    np.testing.assert_array_equal(rows, [value, low, high])
                    continue
                inside[table, column] += ((low <= truth + 1e-9) & (truth - 1e-9 <= high)).tolist()
                within[table, column] += (np.abs(value - truth) <= reach[table, column]).tolist()
        if together:
            draws = np.concatenate(
                [np.reshape(covered, (DRAWS, -1)) for covered in inside.values()], axis=1
            )
            assert draws.all(axis=1).mean() >= binom.ppf(1e-8, DRAWS, 0.95) / DRAWS
            return
        for name, covered in inside.items():
            least, most = _bounds(len(covered))
            assert least <= np.mean(covered) <= most, (name, np.mean(covered))
        for name in [name for name in within if name[1] in ("n", "total")]:
            least, most = _bounds(len(within[name]))
            assert least <= np.mean(within[name]) <= most, (name, np.mean(within[name]))


def _once(function):
    known = {}

    def called(table, axes, number, noise, level, *cell):
        key = table.name, number.name, level, *map(tuple, cell)
        if key not in known:
            known[key] = function(table, axes, number, noise, level, *cell)
        return known[key]

    return called


def _bounds(cells):
    many = math.ceil(cells / 16) if cells > 16 * DRAWS else DRAWS
    least, most = binom.ppf(1e-8, many, 0.95) / many, binom.isf(1e-8, many, 0.95) / many
    return least - 0.005, max(most, 0.98)


def _drawn(plan, template, columns):
    """The report of other draws of the same integers."""
    report = Report(template.content, plan, template.remaining, template.entry)
    report.__dict__["columns"] = columns
    return report


def _exact(county, parents, sex, cost, good):
    """The exact tables, in the order in which they are shown."""
    state = np.array([parents[index] for index in county])
    some = np.isin(county, [1, 7])
    sexes, states = ["f", "m"], ["a", "b", "c"]
    truth = np.array([1.0 if one is True else 0.0 for one in good])
    known = np.array([one is not None for one in good])
    return {
        ("counties", "n"): np.array([(county == index).sum() for index in range(9)]),
        ("states", "n"): np.array([(state == one).sum() for one in states]),
        ("sexes", "n"): np.array(
            [((sex == a) & (state == b)).sum() for a in sexes for b in states]
        ),
        ("some", "n"): np.array([((sex == one) & some).sum() for one in sexes]),
        ("cost", "total"): np.array([cost[sex == one].sum() for one in sexes]),
        ("cost", "mean"): np.array([cost[sex == one].mean() for one in sexes]),
        ("cost", "good"): np.array([truth[known & (sex == one)].mean() for one in sexes]),
    }
