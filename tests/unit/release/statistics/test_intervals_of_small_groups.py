"""Intervals of groups that say little: nobody, one value, values at a bound, all of them missing."""

import pytest

from studies import Paper, select, study_of

ROWS = [
    {"place": "north", "level": 1, "age": 10, "pay": 5.0, "well": True},
    {"place": "north", "level": 2, "age": 0, "pay": None, "well": False},
    *[{"place": "south", "level": 1, "age": None, "pay": -3.0, "well": None}] * 3,
]


@pytest.mark.parametrize("asked", ["count(*), count(age), avg(age), avg(pay), sum(well)", "avg(age)", "stddev(pay)"])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("clauses", ["", "GROUP BY place, level"])
def test_a_number_lies_in_its_interval(asked, neighbors, clauses):
    """Also where the interval of a count has no whole number, or noise leaves a group without anybody."""
    study = study_of(ROWS, Paper(), neighbors=neighbors)
    for epsilon in (3, 100, 10**4):
        plan = study.sql(select(asked, clauses), epsilon=epsilon, confidence="0.5")
        for _ in range(4):
            for numbers in plan.release().full_record["numbers"].values():
                for value, low, high in zip(numbers["value"], numbers["low"], numbers["high"], strict=True):
                    assert low <= value <= high, (epsilon, value, low, high)
