"""Totals of a released table: they add up, and their intervals hold."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet import InvalidParameter, Policy, Study
from discreet.release.statistics.totals import sum_radius

PLACES, LEVELS = ["north", "south", "west"], [1, 2]


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    table = pa.table(
        {"place": PLACES * 40, "level": [1, 2] * 60, "pay": [float(at % 7) for at in range(120)]}
    )
    columns = {"place": {"keys": PLACES}, "level": {"keys": LEVELS}, "pay": {"bounds": [-3, 5]}}
    policy = Policy(source=table, epsilon=10, columns=columns)
    with Study(policy, ledger=tmp_path_factory.mktemp("totals") / "study.ledger") as study:
        asked = (
            "SELECT place, level, count(*) AS people, sum(pay) AS paid, avg(pay) FROM data GROUP BY"
            " place, level"
        )
        yield study.sql(asked, epsilon=1).release()


def test_totals_are_the_sums_of_the_released_cells(answer):
    by_place = answer.totals("place")
    assert by_place.columns == ["place", "people", "paid"]
    for place, people, paid in zip(
        by_place["place"], by_place["people"], by_place["paid"], strict=True
    ):
        cells = [row for row in answer.rows if row["place"][0] == place]
        assert people == sum(row["people"][0] for row in cells)
        assert paid == pytest.approx(sum(row["paid"][0] for row in cells), rel=1e-12)
    [all_of_them] = answer.totals()["people"]
    assert (
        all_of_them
        == sum(answer["people"])
        == sum(by_place["people"])
        == sum(answer.totals("level")["people"])
    )
    assert answer.totals("place", "level")["people"] == answer["people"]


def test_totals_say_that_they_leave_rounding_out(answer):
    assert answer.roundings == {}  # the mean tells how many values a cell has
    assert answer.totals("place").roundings == {"paid": Fraction(1, 2**28)}
    assert "paid without rounding, at most 3.73e-09 a row" in repr(answer.totals("place"))


def test_a_total_is_wider_than_a_cell_and_narrower_than_all_cells_together(answer):
    def reach(found):
        low, high = found.interval("people")[0]
        return (high - low) / 2

    assert reach(answer) < reach(answer.totals("place")) < 2 * reach(answer)
    assert reach(answer.totals("place")) < reach(answer.totals()) < 6 * reach(answer)


def test_totals_cost_nothing_and_can_be_saved(answer, tmp_path):
    found = answer.totals("level")
    assert found.remaining == answer.remaining
    assert found.record["totals_over"] == ["place"]
    assert found.save(tmp_path / "levels.csv").read_text().startswith('"level","people"')


def test_what_does_not_add_up_is_refused(answer, tmp_path):
    with pytest.raises(
        InvalidParameter, match=r"totals must be by group columns \(level, place\), got 'pay'"
    ):
        answer.totals("pay")
    with pytest.raises(InvalidParameter, match="already totals"):
        answer.totals("place").totals()
    table = pa.table({"place": PLACES, "pay": [1.0, 2.0, 3.0]})
    policy = Policy(
        source=table, epsilon=10, columns={"place": {"keys": PLACES}, "pay": {"bounds": [-3, 5]}}
    )
    with Study(policy, ledger=tmp_path / "study.ledger") as study:
        means = study.sql("SELECT place, avg(pay) FROM data GROUP BY place", epsilon=1).release()
    with pytest.raises(InvalidParameter, match="must have counts or sums"):
        means.totals()


@pytest.mark.parametrize(
    ("scales", "times"),
    [([1.0], 2), ([1.0], 4), ([2.0, 0.25], 3), ([1.0, 0.5, 0.1], 20), ([3.0], 500)],
)
def test_the_radius_of_a_sum_holds_as_often_as_it_says(scales, times):
    """400,000 sums: ± 6 deviations are a false alarm once in 10⁹; a radius that is off by 2 % is
    caught.
    """
    generator, draws = np.random.default_rng(7), 400_000
    sums = np.zeros(draws)
    for scale in scales:
        # a Laplace draw is a difference of two exponential ones, so a sum of k is one of two gamma
        # ones
        sums += scale * (generator.gamma(times, size=draws) - generator.gamma(times, size=draws))
    covered = float(np.mean(np.abs(sums) <= sum_radius(scales, times, 0.95)))
    # near ties of few draws are widened by 10⁻³
    assert abs(covered - 0.95) < 6 * (0.95 * 0.05 / draws) ** 0.5 + 0.0005
