"""A figure of a release holds exactly what was released, in every shape that an answer can have."""

import json
import math
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet import InvalidParameter
from discreet.ask.query import Named
from discreet.show import figures
from discreet.show.figures.release import release
from released import answer_of, data_in, group, numbers, triples_in

COUNTIES = ["Dukes", "Essex", "Suffolk"]
BINS = {"edges": tuple(Fraction(edge) for edge in (0, 18, 65, 120))}
YEARS = [Fraction(2000 + number) for number in range(9)]
DAYS = [datetime(2024, 1, 1) + timedelta(days=number) for number in range(100)]  # noqa: DTZ001
SHAPES = {
    "three groups": [group(1, "county", COUNTIES)],
    "bins": [group(1, "age", ["[0, 18)", "[18, 65)", "[65, 120]"], **BINS)],
    "numbers": [group(1, "year", YEARS)],
    "numbers with a rest": [group(1, "year", YEARS, other="other")],
    "dates": [group(1, "day", DAYS)],
    "truths": [group(1, "well", [False, True])],
    "two texts": [group(1, "county", COUNTIES), group(2, "sex", ["f", "m"])],
    "bins and texts": [group(1, "sex", ["f", "m"]), group(2, "age", ["a", "b", "c"], **BINS)],
    "years and many texts": [
        group(1, "year", YEARS),
        group(2, "place", [f"p{number}" for number in range(8)]),
    ],
    "texts and many texts": [
        group(1, "a", [f"a{number}" for number in range(9)]),
        group(2, "b", [f"b{number}" for number in range(7)]),
    ],
    "too many for small pictures": [
        group(1, "a", list("abcdefghijklmnop")),
        group(2, "b", list("abcdefghijklmn")),
    ],
    "three columns": [
        group(1, "a", ["x", "y"]),
        group(2, "b", ["u", "v"]),
        group(3, "c", ["1", "2"]),
    ],
    "none": [],
}


def rows_of(groups) -> int:
    return math.prod(len(column.keys) + (column.other is not None) for column in groups)


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        *((shape, "count(*)") for shape in SHAPES),
        *((shape, "mean(age)") for shape in ("bins", "two texts", "none")),
    ],
)
def test_a_spec_contains_exactly_the_released_numbers(shape, asked):
    groups = SHAPES[shape]
    values = [7 * number - 20 for number in range(rows_of(groups))]
    chart = release(answer_of(groups, {"n": (asked, numbers(values, 3))}))
    spec = chart.to_dict()
    text = json.dumps(spec, allow_nan=False)
    assert triples_in(spec) == {(value, value - 3, value + 3) for value in values}
    assert "change-one" in text
    assert all(name.of.name in text for name in groups)


@pytest.mark.parametrize(
    "shape", ["two texts", "years and many texts", "too many for small pictures"]
)
def test_every_shape_can_be_drawn(shape):
    chart = release(
        answer_of(
            SHAPES[shape], {"n": ("count(*)", numbers(list(range(rows_of(SHAPES[shape]))), 3))}
        )
    )
    assert len(figures.svg(chart)) > 10_000


def test_thousands_of_groups_are_all_there_and_the_largest_have_labels():
    keys = [f"county {number}" for number in range(3143)]
    values = [(number * 7919) % 3143 for number in range(3143)]
    chart = release(
        answer_of([group(1, "county", keys)], {"people": ("count(*)", numbers(values, 60))})
    )
    spec = chart.to_dict()
    assert "the largest 40 of 3,143" in json.dumps(spec)
    rows = data_in(spec)
    ranked = [row for row in rows if "rank" in row]
    assert [row["value"] for row in ranked] == sorted(values, reverse=True)
    labeled = [row["key"] for row in rows if "key" in row and "rank" not in row]
    assert labeled == [row["key"] for row in ranked[:40]]


def test_an_ordered_answer_keeps_its_order():
    keys = [f"k{number}" for number in range(50)]
    answer = answer_of(
        [group(1, "k", keys)],
        {"n": ("count(*)", numbers(list(range(50)), 1))},
        order=((Named("a1"), False),),
    )
    labeled = [row["key"] for row in data_in(release(answer)) if "key" in row and "rank" not in row]
    assert labeled == keys[:40]


def test_endless_intervals_and_missing_numbers_do_not_fail():
    ends = {
        "value": [3.5, None, -2.0, 1],
        "low": [1.0, None, -math.inf, 1],
        "high": [6.0, None, math.inf, 1],
    }
    for groups in (
        [group(1, "k", list("abcd"))],
        [group(1, "k", [Fraction(number) for number in range(4)])],
    ):
        chart = release(answer_of(groups, {"x": ("mean(x)", ends)}))
        assert triples_in(chart) == {
            (3.5, 1.0, 6.0),
            (None, None, None),
            (-2.0, None, None),
            (1, 1, 1),
        }
        assert len(figures.svg(chart)) > 4_000
    chart = release(
        answer_of([], {"x": ("mean(x)", {"value": [None], "low": [None], "high": [None]})})
    )
    assert ">missing</text>" in figures.svg(chart)


def test_numbers_beyond_what_a_browser_holds_become_floats():
    huge = [2**53, 2**53 + 1, 10**30, 10**400, -(10**400)]
    answer = triples_in(
        release(answer_of([group(1, "k", list("abcde"))], {"n": ("count(*)", numbers(huge, 0))}))
    )
    limit = np.finfo(float).max
    assert {value for value, _, _ in answer} == {2**53, float(2**53), 1e30, limit, -limit}


def test_an_answer_without_rows_says_so():
    answer = answer_of([group(1, "k", [])], {"n": ("count(*)", numbers([], 0))})
    assert ">no rows</text>" in figures.svg(release(answer))


def test_one_of_several_columns_can_be_chosen():
    columns = {
        name: ("count(*)", numbers([number, number + 10], 1))
        for number, name in enumerate("abcdef")
    }
    answer = answer_of([group(1, "k", ["x", "y"])], columns)
    assert triples_in(release(answer, column="f")) == {(5, 4, 6), (15, 14, 16)}
    assert "the first 4 of 6 columns" in json.dumps(release(answer).to_dict())
    with pytest.raises(InvalidParameter, match="column must be one of a, b, c, d, e, f, got 'z'"):
        release(answer, column="z")


def test_keys_that_would_look_the_same_when_joined_stay_apart():
    groups = [group(1, "a", ["x", "x · y"]), group(2, "b", ["y · z", "z"]), group(3, "c", ["1"])]
    chart = release(answer_of(groups, {"n": ("mean(x)", numbers([1, 2, 3, 4], 1))}))
    assert len({row["key"] for row in data_in(chart)}) == 4


def test_a_histogram_has_its_edges_and_its_counts():
    answer = discreet.histogram([1.0, 2.5, 9.0] * 50, bins=[0, 1, 5, 10], epsilon=1)
    low, high = answer.interval()
    data = data_in(answer.figure())
    assert [(row["left"], row["right"]) for row in data] == [(0, 1), (1, 5), (5, 10)]
    columns = [[row[name] for row in data] for name in ("value", "low", "high")]
    assert columns == [answer.value.tolist(), low.tolist(), high.tolist()]


def test_a_cumulative_release_has_its_points_and_its_band():
    answer = discreet.cdf([1.0, 2.5, 9.0] * 50, bounds=(0, 10), epsilon=1, cells=16)
    low, high = answer.interval()
    data = data_in(answer.figure())
    assert [row["point"] for row in data] == answer.points.tolist()
    assert [(row["low"], row["high"]) for row in data] == list(
        zip(low.tolist(), high.tolist(), strict=True)
    )


def test_single_numbers_vectors_and_joint_releases_have_figures():
    ages = [30.0, 40.0, 70.0] * 100
    mean = discreet.mean(ages, bounds=(0, 120), epsilon=1)
    assert triples_in(mean.figure()) == {(mean.value, *mean.interval())}
    some = discreet.quantiles(ages, [0.1, 0.5, 0.9], bounds=(0, 120), epsilon=1)
    assert {value for value, _, _ in triples_in(some.figure())} == set(some.value.tolist())
    both = discreet.mean_and_std(ages, bounds=(0, 120), epsilon=1)
    assert {value for value, _, _ in triples_in(both.figure())} == {
        both["mean"].value,
        both["std"].value,
    }
    assert "ε 1 in all" in json.dumps(both.figure().to_dict(), ensure_ascii=False)


def test_what_is_no_release_is_refused():
    with pytest.raises(InvalidParameter, match="answer must be an answer or a release, got a list"):
        release([1, 2, 3])
