"""A messy file, read as declared or cleaned by a SELECT, gives the numbers of the clean data within
their intervals.

All intervals hold together but with a chance of 10⁻⁶ for each question: a false alarm in 10⁵ runs
of the suite. A reading that dropped one row in twenty would move each count by five times its
interval.
"""

from collections import Counter, defaultdict
from statistics import fmean

import pytest

import discreet
from messy import blocks, by_rows, hospital

ROWS = 4_000
TERMS = {"epsilon": 20, "confidence": "0.999999", "simultaneous": True}
SOURCES = {"declared": ("study.toml", 1), "cleaned": ("clean.toml", 0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hospital")


@pytest.fixture(scope="module")
def truth(folder):
    return hospital(folder, ROWS)


def study_of(folder, kind):
    name, at = SOURCES[kind]
    file = folder / f"{kind}.toml"
    file.write_text(by_rows(blocks()[name][at]), "utf-8")
    return discreet.open(file)


def inside(answer, key, name, expected):
    """Whether each number of a column is within its interval around what it should be."""
    table = answer.to_arrow().to_pylist()
    assert [row[key] for row in table] == list(expected)
    for row in table:
        assert row[f"{name}_low"] <= expected[row[key]] <= row[f"{name}_high"], row
        # or it says nothing
        assert row[f"{name}_high"] - row[f"{name}_low"] < 0.3 * max(expected[row[key]], 1)


@pytest.mark.parametrize("kind", SOURCES)
def test_released_numbers_are_those_of_the_clean_data(folder, truth, kind):
    with study_of(folder, kind) as study:
        months = Counter(f"{admitted:%Y-%m}" for _, _, admitted, *_ in truth)
        by_month = (
            "SELECT strftime(admitted, '%Y-%m') AS month, count(*) AS visits FROM visits GROUP BY"
            " month"
        )
        inside(
            study.sql(by_month, **TERMS).release(), "month", "visits", dict(sorted(months.items()))
        )

        costs = defaultdict(list)
        for _, ward, _, _, _, cost in truth:
            costs[ward].append(cost)
        by_ward = "SELECT ward, count(*) AS visits, avg(cost) AS cost FROM visits GROUP BY ward"
        answer = study.sql(by_ward, **TERMS).release()
        wards = sorted(costs)
        inside(answer, "ward", "visits", {ward: len(costs[ward]) for ward in wards})
        inside(
            answer,
            "ward",
            "cost",
            {ward: fmean(c for c in costs[ward] if c is not None) for ward in wards},
        )


def test_a_stay_in_days_is_one_date_less_the_other(folder, truth):
    with study_of(folder, "declared") as study:
        days = (
            "SELECT ward, avg(least(greatest(discharged - admitted, 0), 60)) AS days FROM visits"
            " GROUP BY ward"
        )
        stays = defaultdict(list)
        for _, ward, _, stay, _, _ in truth:
            stays[ward].append(stay)
        expected = {ward: fmean(stays[ward]) for ward in sorted(stays)}
        inside(study.sql(days, **TERMS).release(), "ward", "days", expected)


def test_the_plain_promise_is_far_from_the_truth(folder, truth):
    """What the others would look like if they could fail: the promise that `discreet check` warns
    about.
    """
    file = folder / "plain.toml"
    file.write_text(by_rows(blocks()["study.toml"][0]), "utf-8")
    with discreet.open(file) as study:
        answer = study.sql(
            "SELECT ward, count(*) AS visits FROM visits GROUP BY ward", **TERMS
        ).release()
        wards = Counter(ward for _, ward, *_ in truth)
        assert all(
            row["visits_high"] < 0.9 * wards[row["ward"]] for row in answer.to_arrow().to_pylist()
        )
