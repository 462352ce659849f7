"""Trust 8: keys, their order and the number of rows come from the declaration, and empty groups
have noisy numbers.
"""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from studies import Paper, select, study_of

EVERYTHING = (
    "count(*) AS people, count(age) AS known, sum(age) AS total, sum(pay) AS paid, avg(age) AS"
    " mean, avg(well) AS share, stddev(pay) AS spread, variance(age) AS var, median(age) AS middle,"
    " quantile(pay, 0.9) AS high, min(age) AS least, max(pay) AS most"
)
TABLES = {
    "empty": [],
    "all missing": [{}] * 7,
    "one group only": [{"place": "south", "level": 1, "age": 3, "pay": 1.0, "well": True}] * 9,
    "undeclared keys only": [{"place": "nowhere", "level": 9, "age": 3}] * 9,
    "NaN and infinities": [
        {"place": "north", "pay": value} for value in (math.nan, math.inf, -math.inf, -0.0)
    ],
    "odd texts": [
        {"place": text, "age": 1}
        for text in ("", "north ", "NORTH", "n\u200borth", "'; DROP TABLE x", "\u0130")
    ],
    "full": [
        {"place": p, "level": n, "age": n, "pay": 2.0, "well": False}
        for p in ("north", "south", "west")
        for n in (1, 2)
    ],
}


def types(answer):
    return [
        {name: tuple(type(part) for part in item) for name, item in row.items()}
        for row in answer.rows
    ]


@pytest.mark.parametrize(
    "policy", [{}, {"unit": "who", "max_rows": 2}, {"neighbors": "add-remove"}], ids=str
)
@pytest.mark.parametrize(
    "clauses",
    ["", "WHERE age > 5", "GROUP BY place", "GROUP BY level, place", "GROUP BY bin(age, 0, 5, 10)"],
)
def test_shape_order_and_types_are_the_same_whatever_the_table_holds(policy, clauses):
    shapes, keys = set(), set()
    studies = [
        study_of([{**row, "who": f"u{at}"} for at, row in enumerate(rows)], Paper(), **policy)
        for rows in TABLES.values()
    ]
    plan = studies[0].sql(select(EVERYTHING, clauses), epsilon=2)  # a plan reads no rows: TRUST 20
    for study in studies:
        answer = replace(plan, study=study).release()
        shapes.add(str(types(answer)))
        keys.add(str(answer.full_record["keys"]))
        for row in answer.rows:
            for value, low, high in row.values():
                assert None not in (value, low, high)
                assert all(map(math.isfinite, (value, low, high)))
    assert len(shapes) == 1
    assert len(keys) == 1


def test_keys_come_in_declared_order_the_last_group_fastest_and_others_last():
    columns = {
        "place": {"keys": ["west", "south", "north"], "other": "elsewhere"},
        "level": {"keys": "1..3"},
    }
    here = study_of(TABLES["full"], Paper(), columns=columns)
    answer = here.sql(
        select("place, level, count(*)", "GROUP BY level, place"), epsilon=1
    ).release()
    pairs = list(zip(answer["place"], answer["level"], strict=True))
    assert len(answer) == 12
    assert sorted(pairs) == sorted(
        (p, n) for p in ("west", "south", "north", "elsewhere") for n in (1, 2, 3)
    )
    one = here.sql(select("place, count(*)", "GROUP BY place"), epsilon=1).release()
    assert one["place"] == ["west", "south", "north", "elsewhere"]


def test_undeclared_keys_go_to_the_rest_or_nowhere():
    rows = [{"place": place} for place in ["north"] * 3 + ["nowhere"] * 5 + [None] * 7]
    question = select("place, count(*) AS people", "GROUP BY place")
    with_rest = (
        study_of(rows, Paper(), columns={"place": {"other": "elsewhere"}})
        .sql(question, epsilon=10**6)
        .release()
    )
    assert dict(zip(with_rest["place"], with_rest["people"], strict=True)) == {
        "north": 3,
        "south": 0,
        "west": 0,
        "elsewhere": 12,
    }
    dropped = study_of(rows, Paper()).sql(question, epsilon=10**6).release()
    assert dropped["people"] == [3, 0, 0]


def test_empty_groups_get_noise_like_all_others():
    # P(DLap(10) = 0) = tanh(1/20) = 0.05: of 3,000 groups 150 ± 12; 0 or 3,000 zeros would be no
    # noise at all; outside of 150 ± 90 with probability below 1e-12
    here = study_of([], Paper(), columns={"level": {"keys": "1..3000"}})
    answer = here.sql(
        select("level, count(*) AS people", "GROUP BY level"), epsilon=Fraction(1, 5)
    ).release()
    zeros = answer["people"].count(0)
    assert 60 < zeros < 240
    assert min(answer["people"]) < 0 < max(answer["people"])


def test_control_groups_without_rows_that_are_left_out_would_be_seen():
    rows = TABLES["one group only"]
    question = select("place, count(*)", "GROUP BY place")
    told = study_of(rows, Paper()).sql(question, epsilon=1).release()
    found = study_of(
        rows, Paper(), columns={"place": {"keys": sorted({row["place"] for row in rows})}}
    )
    assert told["place"] != found.sql(question, epsilon=1).release()["place"]
