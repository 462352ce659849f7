"""Plans: what they show, what they cost, and the least ε for an accuracy."""

from datetime import UTC, date, datetime
from fractions import Fraction
from unittest import mock

import pyarrow as pa
import pytest

import discreet
from discreet import Count, InvalidParameter, Mean, Policy, Study
from discreet.engines.duckdb import DuckDB
from studies import Paper, select, study_of

ROWS = [{"who": f"u{at}", "place": "north", "age": at % 11, "pay": 2.0, "well": True} for at in range(50)]
BY_PLACE = "GROUP BY place"


def study(**terms):
    return study_of(ROWS, Paper(), **{"unit": "who", "max_rows": 4, **terms})


def test_a_plan_is_shown_as_a_table_with_its_price_and_its_errors():
    plan = study().sql(select("place, count(*) AS visits, avg(age)", BY_PLACE), epsilon="0.2")
    assert repr(plan).splitlines() == [
        "3 rows · ε 0.2 of 1,000,000 (left after: 999,999.8) · change-one · up to 4 rows a who",
        "column    Δ   scale  error (95 %)",
        "visits    8   40     ± 200",
        "avg(age)  80  400    ± 1.09 at 1,000 rows, ± 0.118 at 10,000 rows",
        "Missing values of age are left out. Values of age outside 0–10 count as 0 or 10. "
        "Rows whose place is not listed are left out.",
        "Nothing was read, nothing is spent.",
    ]


def test_a_release_does_not_compute_the_errors_that_a_plan_shows():
    with mock.patch("discreet.release.statistics.grouped.mean_error", side_effect=ZeroDivisionError):
        plan = study().sql(select("place, count(*), avg(age)", BY_PLACE), epsilon="0.3")
        assert len(plan.release()) == 3
        with pytest.raises(ZeroDivisionError):
            repr(plan)


def test_plans_between_two_powers_of_two_share_a_rehearsal():
    asked = select("place, count(*), sum(age), avg(pay)", BY_PLACE)
    with mock.patch("discreet.release.plan.items", return_value={}) as rehearsed:
        for epsilon in ("0.26", "0.3", "0.49"):
            study().sql(asked, epsilon=epsilon)
        assert rehearsed.call_count == 1
        assert rehearsed.call_args.args[3] == Fraction(1, 4)  # more noise than any of them
        study().sql(asked, epsilon="0.5")
        assert rehearsed.call_count == 2


def test_the_notes_say_what_happens_to_values_that_are_missing_or_not_listed():
    columns = {"age": {"missing": 3}, "place": {"other": "elsewhere"}}
    plan = study(columns=columns).sql(select("place, median(age), sum(age + pay)", BY_PLACE), epsilon=1)
    assert plan.notes == [
        "Missing values of age count as 3.",
        "Errors of quantiles are shown as if values of age were spread evenly over 0–10.",
        "Values of age outside 0–10 count as 0 or 10.",
        "Missing values of an expression are left out.",
        "Rows whose place is not listed count as elsewhere.",
        "The error of sum(age + pay) leaves out the rounding of values, at most 7.45e-09 a row, since the number of "
        "values is private; a mean asked with it gives that number.",
    ]


def test_a_plan_of_bins_says_what_lies_in_none():
    plan = study().sql(select("bin(age, 0, 5, 10) AS band, count(*)", "GROUP BY band"), epsilon=1)
    assert plan.notes == ["Rows whose band lies in no bin are left out."]


def test_a_plan_by_parts_of_dates_says_between_which():
    days = pa.table({"day": pa.array([0], pa.timestamp("us"))})
    bounds = {"bounds": [date(2024, 11, 5), date(2025, 2, 7)]}
    here = Study(Policy(source=days, epsilon=1, columns={"day": bounds}), ledger=Paper(1))
    for group, ends in {
        "strftime(day, '%Y-%m')": "2024-11 to 2025-02",
        "year(day)": "2024 to 2025",
        "date_trunc('month', day)": "2024-11-01 to 2025-02-01",
    }.items():
        plan = here.sql(select(f"{group} AS m, count(*)", "GROUP BY m"), epsilon="0.1")
        assert plan.notes == [f"Rows whose m lies outside {ends} are left out."]


def test_what_was_answered_before_is_said_to_be_free(tmp_path):
    asked = select("place, count(*) AS n", BY_PLACE)
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="1") as first:
        plan = first.sql(asked, epsilon="0.8")
        assert not plan.asked_before
        plan.release()
        for again in (plan, first.sql(select("count(*) AS n, place", BY_PLACE), epsilon=0.8)):
            assert again.summary.startswith("3 rows · ε 0.8 of 1 (asked before: free, 0.2 left) · ")
        assert "left after: 0.1" in first.sql(asked, epsilon="0.1").summary  # another ε is another question
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version="2") as changed:
        assert "only 0.2 is left" in changed.sql(asked, epsilon="0.8").summary
    with study_of(ROWS, tmp_path / "study.ledger", epsilon=1, version=None) as unnamed:  # what the rows say is not read
        free = "asked before: free while the data is the same, 0.2 left"
        assert free in unnamed.sql(asked, epsilon="0.8").summary


def test_the_error_of_a_quantile_is_in_the_units_of_its_column():
    here = study_of(ROWS, Paper())
    [sized] = here.sql(select("median(age)"), epsilon="0.2", size=10_000).lines
    both = here.sql(select("quantile(age, 0.9)"), epsilon="0.2").lines[0].within
    assert sized.within == "about ± 0.445 at 10,000 rows (± 445 ranks)"
    assert both == "about ± 4.45 at 1,000 rows, ± 0.445 at 10,000 rows (± 445 ranks)"
    assert sized.reach is None  # it depends on the data


def test_a_quantile_of_evenly_spread_values_has_the_planned_error():
    """The mean of 40 half-widths has a standard error of about 3 %: 25 % is eight of them, a chance below 10⁻¹²."""
    here = study_of([{"pay": -3 + 8 * row / 4000} for row in range(4000)], Paper())
    plan = here.sql(select("quantile(pay, 0.6) AS q"), epsilon=1, size=4000)
    widths = [high - low for _, low, high in (plan.release().rows[0]["q"] for _ in range(40))]
    planned = float(plan.lines[0].within.split()[2])
    assert 0.75 < sum(widths) / 2 / len(widths) / planned < 1.25


def test_a_row_as_the_unit_and_a_budget_that_is_too_small_are_said():
    small = study_of(ROWS, Paper(1), epsilon=1)
    lines = repr(small.sql(select("count(*)", "WHERE well"), epsilon=2)).splitlines()
    assert lines[0] == "1 row · ε 2 of 1 (only 1 is left) · change-one · each row a unit"
    assert lines[2].split() == ["count(*)", "1", "0.5", "±", "1"]


def test_numbers_that_are_only_computed_with_are_called_by_what_they_are():
    plan = study().sql(select("count(*) * 2 AS twice", BY_PLACE), epsilon=1)
    assert "count(*)" in repr(plan)
    assert "a1" not in repr(plan)


def test_noise_that_is_larger_than_the_bounds_is_warned_about():
    noisy = study().sql(select("avg(age) AS mean, stddev(age), sum(age)", BY_PLACE), epsilon="0.1", size=20)
    assert noisy.warnings == [
        "warning: the noise of mean is larger than its bounds at 20 rows",
        "warning: the noise of stddev(age) is larger than its bounds at 20 rows",
    ]
    assert study().sql(select("avg(age)", BY_PLACE), epsilon="0.1", size=20_000).warnings == []


def test_an_epsilon_below_one_over_n_is_warned_about():
    plan = study().sql(select("count(*)", BY_PLACE), epsilon="0.001", size=500)
    assert plan.warnings == ["warning: ε below 1/500 tells nothing useful about so few"]
    assert study().sql(select("count(*)", BY_PLACE), epsilon="0.01", size=500).warnings == []


@pytest.mark.parametrize(
    ("asked", "clauses", "neighbors", "sensitivity"),
    [
        ("count(*)", "WHERE well", "change-one", 4),
        ("count(*)", BY_PLACE, "change-one", 8),
        ("count(*)", BY_PLACE, "add-remove", 4),
        ("count(DISTINCT who)", BY_PLACE, "change-one", 3),
        ("count(DISTINCT who)", BY_PLACE, "add-remove", 3),
        ("sum(age)", "", "change-one", 40),
        ("sum(age)", BY_PLACE, "change-one", 80),
        ("sum(age)", BY_PLACE, "add-remove", 40),
        ("avg(age)", "", "change-one", 40),
        ("avg(age)", BY_PLACE, "change-one", 80),
        ("avg(age)", "", "add-remove", 40),
        ("stddev(age)", BY_PLACE, "add-remove", 400),
        ("median(age)", "", "change-one", 4),
        ("max(age)", BY_PLACE, "change-one", 8),
    ],
)
def test_sensitivities_are_those_of_a_unit_with_four_rows(asked, clauses, neighbors, sensitivity):
    [line] = study(neighbors=neighbors).sql(select(asked, clauses), epsilon=1).lines
    assert line.sensitivity == sensitivity
    if "median" not in asked:
        assert line.scale == sensitivity


def test_where_sizes_are_public_one_row_is_replaced_by_one_row():
    here = study_of(ROWS, Paper(), columns={"age": {"bounds": [100, 101], "missing": 100}})
    scales = {asked: here.sql(select(asked), epsilon=1).lines[0].scale for asked in ("sum(age)", "avg(age)")}
    assert scales == {"sum(age)": 1, "avg(age)": 1}
    assert here.sql(select("sum(age)", "WHERE well"), epsilon=1).lines[0].scale == 101
    assert here.sql(select("avg(age)", "WHERE well"), epsilon=1).lines[0].scale == 1


def test_counts_sums_and_means_are_one_release_and_choices_have_shares_of_their_own():
    plan = study().sql(select("avg(age), sum(age), stddev(age), count(*), avg(pay)", BY_PLACE), epsilon="0.3")
    assert [share.epsilon for share in plan.shares] == [plan.epsilon]
    four = study().sql(select("count(*), quantile(age, [0.1, 0.5, 0.9])", BY_PLACE), epsilon=1)
    by_kind = {type(share.design).__name__: share.epsilon for share in four.shares}
    assert sum(by_kind.values()) == 1
    # three quantiles weigh 27/p² beside the count's 1/p²: the best p is as 3 to 1
    assert by_kind["QuantileDesign"] == Fraction(3, 4)


def test_weights_divide_epsilon_and_the_parts_add_up():
    def shares(**weights):
        asked = select("count(*) AS n, median(age) AS middle", BY_PLACE)
        plan = study().sql(asked, epsilon="0.3", weights=weights)
        assert sum(share.epsilon for share in plan.shares) == plan.epsilon
        return {plan.titles()[share.design.names[0]]: share.epsilon for share in plan.shares}

    assert shares()["n"] == Fraction(3, 20)
    assert shares(n=8)["n"] == pytest.approx(Fraction(3, 10) * 2 / 3, rel=0.02)
    assert shares(middle=8)["n"] == pytest.approx(Fraction(3, 10) / 3, rel=0.04)


def test_weights_move_the_families_of_a_joint_release():
    def errors(**weights):
        asked = select("count(*) AS n, avg(age) AS a, avg(pay) AS b", BY_PLACE)
        here = study(columns={"age": {"missing": 0}, "pay": {"missing": 0}})
        plan = here.sql(asked, epsilon=1, weights=weights, size=1000)
        return {plan.titles()[line.name]: line.reach for line in plan.lines}

    plain, heavy, counted = errors(), errors(a=50), errors(n=1000)
    assert heavy["a"] < 0.92 * plain["a"]
    assert heavy["b"] > plain["b"]
    assert counted["n"] < 0.8 * plain["n"]


@pytest.mark.parametrize("within", [5, "0.5", 100])
def test_within_finds_the_least_epsilon_for_a_count(within):
    here = study()
    plan = here.sql(select("count(*)", BY_PLACE), within=within)
    assert plan.lines[0].reach <= float(within)
    less = here.sql(select("count(*)", BY_PLACE), epsilon=plan.epsilon - Fraction(1, 10**9))
    assert less.lines[0].reach > float(within)


def test_within_for_a_mean_takes_the_public_number_of_units_or_a_size():
    here = study()
    full = study(columns={"age": {"missing": 0}}).sql(select("count(*), avg(age) AS m"), within={"m": "0.5"})
    assert full.size == 50
    assert full.lines[1].reach == pytest.approx(0.5, rel=1e-6)
    plan = here.sql(select("avg(age)"), within="0.5", size=50)
    assert plan.lines[0].reach == pytest.approx(0.5, rel=1e-6)
    sized = here.sql(select("avg(age)", BY_PLACE), within="0.5", size=100)
    # twice the rows, but a row that leaves a group enters another: ln 20 · 2 instead of 4.74, but for the lattice
    assert plan.epsilon / 2 < sized.epsilon < plan.epsilon / 2 * Fraction(133, 100)
    with pytest.raises(InvalidParameter, match="within needs size="):
        here.sql(select("avg(age)", BY_PLACE), within="0.5")
    with pytest.raises(InvalidParameter, match="within needs size="):  # of 50 rows, fewer may have an age
        here.sql(select("avg(age)"), within="0.5")
    with pytest.raises(InvalidParameter, match="m has none: give epsilon"):
        here.sql(select("median(age) AS m"), within="0.5")


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
@pytest.mark.parametrize(
    "asked",
    ["count(*)", "sum(age)", "sum(age), avg(age)", "avg(age)", "var_pop(age)", "sum(age), var_pop(age)", "avg(well)"],
)
@pytest.mark.parametrize("bounds", [[-4, 10], [90, 110]])
@pytest.mark.parametrize("clauses", ["", BY_PLACE])
def test_no_interval_of_a_release_is_wider_than_its_plan_said(neighbors, asked, bounds, clauses):
    ages = [
        {"place": "north", "age": bounds[0] + at % (bounds[1] - bounds[0] + 1), "well": at % 2 == 0}
        for at in range(3000)
    ]
    here = study_of(ages, Paper(), neighbors=neighbors, columns={"age": {"bounds": bounds}})
    plan = here.sql(select(asked, clauses), epsilon=2, size=3000)
    answer = plan.release()
    for line in plan.lines:
        low, high = answer.interval(plan.titles()[line.name])[0]
        # the number of rows is noisy, too, and a draw moves the share of the two ends a little
        assert 0 <= (high - low) / 2 <= line.reach * 1.05 + 0.001


def test_simultaneous_intervals_divide_the_error_over_all_numbers():
    here = study()
    plan = here.sql(select("count(*), avg(age)", BY_PLACE), epsilon=1, simultaneous=True, size=100)
    assert plan.level == 1 - Fraction(1, 20) / 6
    assert "error (95 %, all together)" in repr(plan)
    each = here.sql(select("count(*), avg(age)", BY_PLACE), epsilon=1, size=100)
    assert all(wide.reach > narrow.reach for wide, narrow in zip(plan.lines, each.lines, strict=True))


def test_what_is_public_costs_nothing_and_is_exact():
    here = study_of(ROWS, Paper())
    plan = here.sql(select("count(*) AS people"), epsilon="0.5")
    assert plan.cost == 0
    assert "exact: this number is public" in repr(plan)
    answer = plan.release()
    assert answer["people"] == [50]
    assert answer.epsilon == here.spent == 0
    beside = here.sql(select("count(*) AS people, avg(age)"), epsilon="0.5")
    assert [share.epsilon for share in beside.shares if share.epsilon] == [Fraction(1, 2)]
    assert beside.release()["people"] == [50]
    assert here.spent == Fraction(1, 2)


@pytest.mark.parametrize(
    ("neighbors", "clauses"), [("add-remove", ""), ("change-one", "WHERE well"), ("change-one", BY_PLACE)]
)
def test_what_is_not_public_is_never_exact(neighbors, clauses):
    here = study(neighbors=neighbors)
    for asked in ("count(*)", "count(DISTINCT who)"):
        assert here.sql(select(asked, clauses), epsilon=1).cost == 1
    assert study_of(ROWS, Paper()).sql(select("count(age)"), epsilon=1).cost == 1
    assert study().sql(select("count(*)"), epsilon=1).cost == 1  # units are public, not their rows
    assert study().sql(select("count(DISTINCT who)"), epsilon=1).cost == 0


def test_planning_is_the_same_in_sql_and_in_python():
    here = study()
    chained = here.where("age >= 5").by("place").ask(people=Count(), mean=Mean("age")).plan(epsilon="0.1")
    written = here.sql(
        select("place, count(*) AS people, avg(age) AS mean", "WHERE age >= 5 GROUP BY place"), epsilon="0.1"
    )
    assert chained.canonical == written.canonical
    assert chained.query == written.query
    assert repr(chained) == repr(written)


def test_a_plan_is_frozen_and_free():
    here = study()
    with mock.patch.object(DuckDB, "fetch", side_effect=AssertionError("a row was read")):
        plan = here.sql(select("count(*)", BY_PLACE), epsilon=1)
        repr(plan)
    with pytest.raises(AttributeError):
        plan.epsilon = Fraction(9)
    assert here.spent == 0


def test_the_record_says_all_that_a_reader_needs_and_nothing_of_the_data():
    plan = study(version="2024").sql(select("place, count(*) AS n", "WHERE age > 3 GROUP BY place"), epsilon="0.25")
    before, record = datetime.now(UTC).date(), plan.release().full_record
    assert record["date"] in {day.isoformat() for day in (before, datetime.now(UTC).date())}
    assert {name: record[name] for name in list(record)[:13]} == {
        "discreet": 1,
        "software": f"discreet {discreet.__version__}",
        "study": "study",
        "date": record["date"],
        "neighbors": "change-one",
        "unit": "who",
        "max_rows": 4,
        "max_groups": None,
        "epsilon": "1/4",
        "delta": "0",
        "confidence": "19/20",
        "simultaneous": False,
        "data_version": "2024",
    }
    assert record["statistics"] == [
        {"name": "a1", "asked": "count(*)", "sensitivity": "8", "scale": "32", "step": "1", "noise": ["32"]}
    ]
    assert record["question"].startswith("SELECT count(*) WHERE")
    assert record["keys"] == {"g1": ["north", "south", "west"]}
    assert set(record["numbers"]) == {"a1"}


def test_a_request_cannot_take_the_name_of_a_discovery(tmp_path):
    with study_of(ROWS, tmp_path / "study.ledger") as study:
        plan = study.sql(select("count(*)", "WHERE age > 3"), epsilon=1)
        with pytest.raises(InvalidParameter, match=r"must not begin with 'discreet\.'"):
            plan.release(request_id="discreet.discover")
        assert study.spent == 0


def test_within_by_column_finds_the_least_epsilon_that_meets_all():
    here = study(columns={"age": {"missing": 0}})
    asked = select("count(*) AS people, avg(age) AS age", BY_PLACE)

    def errors(plan):
        return {plan.titles()[line.name]: line.reach for line in plan.lines}

    plan = here.sql(asked, within={"people": 50, "age": "0.05"}, size=1000)
    found = errors(plan)
    assert found["people"] <= 50
    assert found["age"] <= 0.05
    less = errors(here.sql(asked, epsilon=plan.epsilon - Fraction(1, 10**9), size=1000))
    assert less["people"] > 50 or less["age"] > 0.05
    # a column that is not named may be as far off as it likes
    assert here.sql(asked, within={"people": 50}).epsilon < plan.epsilon


@pytest.mark.parametrize(
    ("within", "sentence"),
    [
        ({}, "within must name at least one column"),
        ({"nobody": 5}, "within must name released columns"),
        ({"people": "x"}, "within must be"),
    ],
)
def test_a_wrong_within_by_column_is_refused(within, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        study().sql(select("count(*) AS people", BY_PLACE), within=within)
