"""Curves of errors, and of an attacker, against their formulas."""

import math

import pytest

from discreet import InvalidParameter, accuracy
from discreet.show.figures.accuracy import error, largest, moves, planned, response
from discreet.show.figures.laws import attacker
from released import data_in
from studies import Paper, select, study_of


def test_the_error_of_a_mean_has_the_readers_own_point():
    data = data_in(error(n=1000, epsilon="0.1", bounds="0, 120"))
    own = [row for row in data if "series" not in row and "x" in row]
    assert sorted(row["x"] for row in own) == [0.1, 1000]
    assert [row["error"] for row in own] == [
        pytest.approx(math.log(20) * 120 / (1000 * 0.1), rel=1e-12)
    ] * 2
    assert float(
        accuracy.epsilon_needed(
            error=own[0]["error"] * 1.000001, n=1000, statistic="mean", bounds=(0, 120)
        )
    ) == (pytest.approx(0.1, rel=1e-5))


def test_the_curves_of_a_mean_follow_the_formula():
    for row in data_in(error(n=500, epsilon=1, bounds=(-1, 1), confidence="0.99")):
        name, _, text = row.get("series", "").partition(" = ")
        other = float(text.replace(",", "") or 0)
        if name in ("ε", "n"):
            assert row["error"] == pytest.approx(math.log(100) * 2 / (row["x"] * other), rel=1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(1, "1e-9"), (10**18, 10**6), (7, "1/3")])
def test_extreme_errors_can_be_drawn(n, epsilon):
    assert all(row["error"] > 0 for row in data_in(error(n=n, epsilon=epsilon)) if "error" in row)


def test_randomized_response_is_the_root_of_half_of_n_times_worse():
    data = data_in(response(epsilon=1, largest=10_000))
    errors = {(row["series"].split()[0], row["x"]): row["error"] for row in data}
    for n in (1, 100, 10_000):
        assert errors["randomized", n] / errors["Laplace", n] == pytest.approx(
            math.sqrt(n / 2), rel=1e-12
        )


def test_the_attackers_limit_begins_at_a_coin_and_keeps_measured_points():
    data = data_in(attacker(measured=[("0.1", 0.52), (8, 1)]))
    limits = [row for row in data if set(row) == {"epsilon", "rate", "limit"}]
    assert [row["rate"] for row in limits if row["epsilon"] == 0] == [0.5, 0.5]
    assert {"epsilon": 0.1, "rate": 0.52} in data
    once, twice = (row["rate"] for row in limits if row["epsilon"] == 2)
    assert once == pytest.approx(math.exp(2) / (1 + math.exp(2)), rel=1e-12)
    assert twice == pytest.approx(math.exp(4) / (1 + math.exp(4)), rel=1e-12)
    assert max(row["epsilon"] for row in limits) == 8
    for measured in ([(1, 1.5)], [(1,)], [(-1, 0.5)], ["ab"]):
        with pytest.raises(InvalidParameter):
            attacker(measured=measured)


def test_a_plan_shows_its_own_point_and_costs_nothing():
    study = study_of([{"age": 3}], Paper())
    plan = study.sql(
        select("place, count(*) AS people, sum(age) AS years", "GROUP BY place"), epsilon="0.2"
    )
    data = data_in(plan.figure())
    own = {row["x"]: None for row in data if "series" not in row}
    assert list(own) == [0.2]
    reaches = {plan.titles()[line.name]: line.reach for line in plan.lines}
    drawn = {row["series"]: row["error"] for row in data if row["x"] == 0.2 and "series" in row}
    assert drawn == reaches
    assert study.spent == 0


def test_a_plan_whose_errors_are_not_known_says_so():
    study = study_of([{"age": 3}], Paper())
    with pytest.raises(InvalidParameter, match="depend on the data"):
        planned(study.sql(select("median(age)"), epsilon=1))


def test_the_largest_error_has_the_numbers_of_the_counties():
    """Exercise 1.5: 20 for one county, at most 181.06 for the worst of 3,143, and all within ± 220."""
    rows = {
        (row["series"], row["x"]): row["error"]
        for row in data_in(largest(epsilon="0.1", most=3143))
    }
    at = {name.split(":")[0].split(",")[0]: value for (name, d), value in rows.items() if d == 3143}
    assert at["expected error of one count"] == 20
    assert at["all errors below this"] == 220
    assert rows["expected largest error: bound λ(ln d + 1)", 3143] == pytest.approx(
        181.06, abs=0.005
    )
    assert rows["expected largest error: exact", 3143] == pytest.approx(172.61, abs=0.005)


def test_moves_are_the_sensitivities_of_the_texts():
    rows = {(row["series"], row["x"]): row["error"] for row in data_in(moves(most=100))}
    assert rows["histogram", 100] == 2
    assert rows["maximum, median of an odd n", 100] == 1
    assert rows["standard deviation", 100] == pytest.approx(math.sqrt(99) / 100, rel=1e-12)
    assert rows["mean, proportion", 100] == 0.01
