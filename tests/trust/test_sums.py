"""TRUST 12 to 16: the attacks on sums, through a study from the row to the integer that gets the
noise.

A plan is replayed on two tables that differ in one row, without noise; what is compared is how far
the integers move in the scale of the noise that they would get, in exact fractions. Each control is
the naive sum that falls to the same rows. (The same attacks on arrays are laws:
test_joint_designs_are_private.)
"""

import math
import sqlite3
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet import Policy, Study
from studies import Paper, replayed

EPSILON = Fraction(1)
ASKED = "sum(x) AS total, avg(x) AS mean, stddev(x) AS spread"


def record(values, kind, bounds, asked="sum(x)", **terms):
    """The release without noise of a question about one column."""
    table = pa.table({"x": pa.array(values, kind)})
    columns = {"x": {"bounds": list(bounds)}}
    policy = Policy(
        source=table, columns=columns, epsilon=10**6, version="1", neighbors="add-remove", **terms
    )
    study = Study(policy, ledger=Paper())
    return replayed(study.sql(f"SELECT {asked} FROM data", epsilon=EPSILON), study)  # noqa: S608


def loss(one, other) -> Fraction:
    return sum(lost for _, _, lost in one.losses(other))


def integers(found):
    return [event.secret for _, _, events in found.events for event in events]


@pytest.mark.parametrize("asked", ["sum(x)", "avg(x)"])
def test_integers_whose_sum_leaves_64_bits_neither_wrap_nor_raise(asked):
    bounds = (0, 2**62)
    one, two, many = (record([2**62] * times, pa.int64(), bounds, asked) for times in (1, 2, 9))
    assert loss(one, two) <= EPSILON
    assert loss(two, many) > 6 * EPSILON  # seven rows, each of them there
    assert max(integers(many)[0]) > 8 * max(integers(one)[0])


def test_control_naive_sums_of_the_same_integers_wrap_or_raise():
    with np.errstate(over="ignore"):
        assert np.add.reduce(np.array([2**62, 2**62])) < 0
    with (
        sqlite3.connect(":memory:") as connection,
        pytest.raises(sqlite3.OperationalError, match="integer overflow"),
    ):
        connection.execute(
            "SELECT sum(x) FROM (SELECT ? AS x UNION ALL SELECT ?)", (2**62, 2**62)
        ).fetchall()
    connection.close()


def rounding_set(p: int, ones: int):
    """n = 2^p + 1 rows, so many of them 1, and bounds so near to each other that every sum of
    floats is rounded.
    """
    low, high = 0.5 * (1 + 2.0 ** (p - 53) - 2.0**-52), 0.5 * (1 + 2.0 ** (p - 53))
    return [1.0] * ones + [0.0] * (2**p + 1 - ones), low, high


def float_sum(p: int, ones: int) -> float:
    rows, low, high = rounding_set(p, ones)
    return math.fsum(np.clip(rows, low, high))


def worst(p: int) -> int:
    """The number of ones at which one more moves the float sum most."""
    return max(range(2**p + 1), key=lambda ones: abs(float_sum(p, ones + 1) - float_sum(p, ones)))


@pytest.mark.parametrize("p", [4, 6])
def test_the_rounding_set_moves_a_study_by_no_more_than_it_pays_for(p):
    for ones in {worst(p), 0, 2**p}:
        rows, low, high = rounding_set(p, ones + 1)
        bounds = (Fraction(low), Fraction(high))
        whole = record(rows, pa.float64(), bounds, ASKED)
        for fewer in (rows[1:], rows[:-1]):
            assert loss(whole, record(fewer, pa.float64(), bounds, ASKED)) <= EPSILON


@pytest.mark.parametrize(("p", "times"), [(4, 16), (6, 64)])
def test_control_the_same_rows_move_a_float_sum_many_times_the_claim(p, times):
    """One row moves from the lower to the upper bound, and the sum, the most careful of floats, by
    so many ranges.
    """
    _, low, high = rounding_set(p, 0)
    assert abs(float_sum(p, worst(p) + 1) - float_sum(p, worst(p))) == times * (high - low)


def repeated_rounding():
    """2¹⁷ values of float32: a running sum is pulled up at every step, or not at all."""
    m, k = 2**16, 23
    push = m / 2**k
    pulls = np.tile(np.array([push * (0.5 + 2.0**-k), -push * (0.5 - 2.0**-k)], np.float32), m // 2)
    return np.concatenate([np.ones(m, np.float32), pulls])


def test_repeated_rounding_in_short_floats_moves_one_row_and_no_more():
    rows = repeated_rounding()
    one, other = (record(some, pa.float32(), (-1, 1)) for some in (rows, rows[1:]))
    assert 0 < loss(one, other) <= EPSILON


def test_control_a_running_sum_of_the_same_floats_moves_257_rows():
    rows = repeated_rounding()
    whole, fewer = (float(np.cumsum(some, dtype=np.float32)[-1]) for some in (rows, rows[1:]))
    assert whole - fewer == 257


def orders(values):
    yield values
    yield values[::-1]
    yield values[len(values) // 2 :] + values[: len(values) // 2]
    yield sorted(values, key=lambda value: (hash(value) * 2654435761) % 2**32)


def test_any_order_of_rows_gives_the_same_integers():
    values = [2.0**53, *[1.0] * 1000, -(2.0**53), 0.1, 0.2, 0.3]
    found = [
        integers(record(some, pa.float64(), (-(2**53), 2**53), ASKED)) for some in orders(values)
    ]
    assert all(one == found[0] for one in found)


def test_control_the_order_moves_a_running_sum_of_the_same_rows():
    forward, backward = [2.0**53, *[1.0] * 1000], [*[1.0] * 1000, 2.0**53]
    assert np.cumsum(backward)[-1] - np.cumsum(forward)[-1] == 1000


ODD = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    -5e-324,
    1.7e308,
    -1.7e308,
    2.0**63,
    float(2**53 + 2),
    None,
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("asked", [ASKED, "count(x) AS people", "median(x) AS middle"])
def test_no_odd_number_costs_more_than_a_plain_one_or_shows(odd, asked):
    plain = [1.0, 2.0, -2.5]
    without, with_it = (
        record(some, pa.float64(), (-3, 5), asked) for some in (plain, [*plain, odd])
    )
    assert loss(without, with_it) <= EPSILON
    assert without.shape() == with_it.shape()
    shown = [
        value
        for column in with_it.content["numbers"].values()
        for ends in column.values()
        for value in ends
    ]
    assert all(math.isfinite(value) and (value or math.copysign(1, value) > 0) for value in shown)


@pytest.mark.parametrize("huge", [2**63 - 1, -(2**63), 2**53 + 1])
def test_huge_integers_are_clamped_as_they_are_and_not_as_floats(huge):
    small, large = (record([value], pa.int64(), (0, 10)) for value in (0, huge))
    assert loss(small, large) in (0, EPSILON)


def test_control_naive_clipping_keeps_what_is_not_a_number():
    assert math.isnan(float(np.clip([1.0, math.nan], 0, 10).sum()))
    assert (min(10, max(0, math.nan)), max(0, min(10, math.nan))) == (0, 10)
