"""Law, TRUST 17: one plan, replayed on data that differ in one unit, loses at most the ε that each
design was given.

Tables, policies, questions and neighbours are random; the loss is exact, in fractions, and is taken
over the integers as they are when the noise is added to them (after clamping, limits on rows and
groups, and rounding to a public step). What is shown (keys, order, names, types) and what is
charged is the same for both. The controls break one thing each and must be caught by the same
comparison; for each design there is a pair of tables that reaches ε, so that none of them has more
noise than the relation asks for.
"""

import math
from fractions import Fraction
from unittest import mock

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.release import plan as plans
from discreet.release import split as shares
from discreet.release.statistics.moments import MomentDesign
from studies import Paper, Record, replayed, select, study_of

EPSILON = Fraction(3, 10)


@pytest.fixture(scope="module")
def ledger():
    return Paper()


AGES = st.sampled_from([None, -(2**62), -9, -8, -2, 0, 1, 3, 5, 9, 10, 99, 100, 101, 102, 2**62])
PAYS = st.sampled_from(
    [None, math.nan, math.inf, -math.inf, -4.0, -3.0, -0.0, 0.1, 1.5, 4.999, 5.0, 7.0, 1e300]
)
ROWS = st.fixed_dictionaries(
    {
        "place": st.sampled_from([None, "north", "south", "west", "west", "nowhere", "NORTH"]),
        "level": st.sampled_from([None, 1, 2, 3]),
        "age": AGES,
        "pay": PAYS,
        "well": st.sampled_from([None, True, False]),
    }
)

BOUNDS = st.sampled_from([(0, 10), (100, 101), (-7, 3), (-9, -2), (0, 1), (-(10**6), 10**12)])
AGGREGATES = st.sampled_from(
    [
        "count(*)",
        "count(age)",
        "count(well)",
        "count(*) FILTER (WHERE well)",
        "sum(age)",
        "sum(pay)",
        "sum(age * 2 - 1)",
        "avg(age)",
        "avg(pay)",
        "avg(well)",
        "avg(age >= 5)",
        "variance(age)",
        "var_pop(pay)",
        "stddev(age)",
        "stddev_pop(pay)",
        "median(age)",
        "median(pay)",
        "quantile(age, 0.9)",
        "quantile(pay, [0.25, 0.75])",
        "quantile(age, 1)",
        "min(age)",
        "max(pay)",
        "max(age)",
    ]
)
CONDITIONS = st.sampled_from(
    [
        "",
        "",
        " WHERE age > 3",
        " WHERE well",
        " WHERE pay IS NOT NULL AND level <> 2",
        " WHERE place LIKE '%t%'",
    ]
)
GROUPS = st.sampled_from(
    [
        "",
        "",
        "place",
        "level",
        "place, level",
        "bin(age, 0, 3, 10)",
        "well",
        "place, bin(pay, -3, 0, 5)",
    ]
)


@st.composite
def policies(draw):
    by_unit = draw(st.booleans())
    terms = {"neighbors": draw(st.sampled_from(["change-one", "add-remove"]))}
    if by_unit:
        terms |= {"unit": "who", "max_rows": draw(st.integers(1, 4))}
        if draw(st.booleans()):
            terms["max_groups"] = draw(st.integers(1, terms["max_rows"]))
    lower, upper = draw(BOUNDS)
    columns = {
        "age": {"bounds": [lower, upper], "missing": draw(st.sampled_from(["drop", lower, upper]))},
        "pay": {"missing": draw(st.sampled_from(["drop", 0, -3]))},
        "place": {"other": draw(st.sampled_from([None, "elsewhere"]))},
        "level": {"missing": draw(st.sampled_from(["drop", 2]))},
    }
    if draw(st.booleans()):
        columns["pay"]["precision"] = draw(st.sampled_from(["0.01", 2]))
    return {**terms, "columns": columns}


@st.composite
def questions(draw, by_unit):
    asked = draw(st.lists(AGGREGATES, min_size=1, max_size=4, unique=True))
    if by_unit and draw(st.booleans()):
        asked.append("count(DISTINCT who)")
    groups = draw(GROUPS)
    by = f" GROUP BY {groups}" if groups else ""
    return select(", ".join(asked), draw(CONDITIONS) + by)


@st.composite
def neighbors(draw, policy):
    """Two tables that differ in one unit."""
    if "unit" in policy:
        units = draw(st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=4))
        tables = [[{**row, "who": f"u{at}"} for row in rows] for at, rows in enumerate(units)]
        nobody = [{**row, "who": None} for row in draw(st.lists(ROWS, max_size=2))]
        mine, theirs = (
            [{**row, "who": "me"} for row in draw(st.lists(ROWS, min_size=1, max_size=9))]
            for _ in "12"
        )
    else:
        tables, nobody = [draw(st.lists(ROWS, max_size=6))], []
        mine, theirs = [draw(ROWS)], [draw(ROWS)]
    others = [row for rows in tables for row in rows] + nobody
    if policy["neighbors"] == "add-remove":
        theirs = []
    pair = ([*others, *mine], [*theirs, *others])
    return pair if draw(st.booleans()) else pair[::-1]


@st.composite
def cases(draw):
    policy = draw(policies())
    return policy, draw(questions("unit" in policy)), draw(neighbors(policy))


def compared(ledger, policy, question, pair, epsilon=EPSILON) -> tuple[Record, Record]:
    """One plan on two tables."""
    one, two = (study_of(rows, ledger, **policy) for rows in pair)
    plan = one.sql(question, epsilon=epsilon)
    return replayed(plan, one), replayed(plan, two)


def broken(ledger, policy, question, pair) -> list[str]:
    """The designs that lose more than their share."""
    first, second = compared(ledger, policy, question, pair)
    return [name for name, share, loss in first.losses(second) if loss > share]


@settings(
    max_examples=25,  # TRUST 46 has hundreds
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases())
def test_no_unit_makes_a_design_lose_more_than_its_share_of_epsilon(ledger, case):
    policy, question, pair = case
    first, second = compared(ledger, policy, question, pair)
    for name, share, loss in first.losses(second):
        event(f"{name} {'reaches' if loss == share else 'below' if loss else 'unmoved'}")
        assert loss <= share, (name, share, loss)
    assert sum(share for _, share, _ in first.losses(second)) == EPSILON or first.charge == 0
    assert first.shape() == second.shape()
    assert first.charge == second.charge
    assert first.charge in (0, EPSILON)


HERE = {"place": "north", "level": 1, "age": 10, "pay": 5.0, "well": True}
LOW = {"place": "south", "level": 2, "age": 0, "pay": -3.0, "well": False}
WEST = {**HERE, "place": "west"}

ROW, UNIT = {}, {"unit": "who", "max_rows": 3}
CHANGE, REMOVE = {"neighbors": "change-one"}, {"neighbors": "add-remove"}
REPLACED = {"columns": {"age": {"missing": 0}, "pay": {"missing": 0}}}


def rows_of(unit, *rows):
    return [{**row, "who": unit} for row in rows]


TIGHT = [
    # without groups, the rows that go and those that come meet in one number
    ("count(*)", " WHERE age > 5", CHANGE | ROW, [HERE], [LOW]),
    (
        "count(*)",
        " WHERE age > 5",
        CHANGE | UNIT,
        rows_of("me", HERE, HERE, HERE),
        rows_of("me", LOW),
    ),
    ("count(*)", "", REMOVE | ROW, [HERE], []),
    ("count(*)", "", REMOVE | UNIT, rows_of("me", *[HERE] * 9), []),
    (
        "count(*)",
        " GROUP BY place",
        CHANGE | UNIT,
        rows_of("me", *[HERE] * 9),
        rows_of("me", *[LOW] * 9),
    ),
    (
        "count(DISTINCT who)",
        " GROUP BY place",
        CHANGE | UNIT,
        rows_of("me", HERE),
        rows_of("me", LOW, WEST),
    ),
    ("sum(age)", " WHERE age > 5", CHANGE | ROW, [HERE], [LOW]),
    ("sum(age)", "", CHANGE | ROW | REPLACED, [HERE], [LOW]),
    ("sum(age)", " GROUP BY place", CHANGE | ROW, [HERE], [{**HERE, "place": "south"}]),
    ("sum(age)", "", REMOVE | UNIT, rows_of("me", HERE, HERE, HERE, HERE), []),
    ("avg(age)", "", CHANGE | ROW | REPLACED, [HERE], [LOW]),
    ("avg(age)", "", CHANGE | ROW, [HERE], [LOW]),
    (
        "avg(age)",
        " GROUP BY place",
        CHANGE | UNIT,
        rows_of("me", *[HERE] * 4),
        rows_of("me", *[LOW] * 4),
    ),
    ("avg(well)", "", REMOVE | ROW, [HERE], []),
    (
        "avg(age)",
        " WHERE age >= 0",
        CHANGE | UNIT,
        rows_of("me", *[HERE] * 3),
        rows_of("me", {**LOW, "age": -1}),
    ),
    (
        "var_pop(age)",
        " WHERE age >= 0",
        CHANGE | UNIT,
        rows_of("me", *[HERE] * 3),
        rows_of("me", {**LOW, "age": -1}),
    ),
    ("var_pop(age)", "", REMOVE | ROW, [HERE], []),
]


@pytest.mark.parametrize(("asked", "clauses", "policy", "one", "two"), TIGHT)
def test_some_pair_of_tables_makes_a_design_lose_all_of_its_share(
    ledger, asked, clauses, policy, one, two
):
    first, second = compared(ledger, policy, select(asked, clauses), (one, two))
    [(_, share, loss)] = first.losses(second)
    assert loss == share == EPSILON


@pytest.mark.parametrize(
    ("asked", "policy", "least"),
    [
        ("median(age)", CHANGE | ROW, 1),
        ("quantile(age, 0.9)", CHANGE | ROW | REPLACED, Fraction(1, 2)),
        ("median(age)", REMOVE | ROW, Fraction(1, 2)),
        ("max(age)", CHANGE | ROW, 1),
        ("min(age)", CHANGE | UNIT, Fraction(1, 5)),
        ("min(age)", REMOVE | ROW, 1),
    ],
)
def test_a_choice_loses_much_of_its_share_when_a_row_jumps_over_it(ledger, asked, policy, least):
    crowd = [{"who": f"u{age}.{at}", "age": age} for age in range(11) for at in range(60)]
    # near the ends ranks are few
    crowd = crowd[::60] if "(age)" in asked and "median" not in asked else crowd
    here, low = {**HERE, "who": "me"}, {**LOW, "who": "me"}
    pair = (
        ([*crowd, here], [*crowd, low])
        if policy["neighbors"] == "change-one"
        else ([*crowd, low], crowd)
    )
    first, second = compared(ledger, policy, select(asked), pair, epsilon=1)
    [(_, share, loss)] = first.losses(second)
    assert share * least <= loss <= share


def test_a_joint_variance_loses_nearly_all_of_its_share_between_the_worst_two_values(ledger):
    # 9/8 = max d + 2d(1−d) is reached at d = 3/4: from one end to three quarters of the range
    policy = CHANGE | {"columns": {"age": {"bounds": [0, 400], "missing": 0}}}
    first, second = compared(
        ledger, policy, "SELECT var_pop(age) FROM data", ([{"age": 0}], [{"age": 300}])
    )
    [(name, share, loss)] = first.losses(second)
    assert name == "MomentDesign"
    assert share * Fraction(999, 1000) < loss <= share


def test_of_a_unit_with_very_many_rows_only_max_rows_count(ledger):
    policy = CHANGE | {"unit": "who", "max_rows": 2, "max_groups": 1}
    many = rows_of(
        "me",
        *({**HERE, "age": at % 11, "place": "north" if at % 2 else "west"} for at in range(20_000)),
    )
    question = (
        "SELECT count(*), count(DISTINCT who), avg(age), median(age) FROM data GROUP BY place"
    )
    assert broken(ledger, policy, question, (many, rows_of("me", LOW))) == []


def test_large_sums_are_rounded_to_a_step_that_the_scale_pays_for(ledger):
    policy = CHANGE | {"columns": {"age": {"bounds": [0, 2**29]}}}
    odd = [{"age": 2**29 - 1, "place": "north"}, {"age": 3, "place": "south"}]
    moved = [{"age": 2**29 - 1, "place": "south"}, {"age": 3, "place": "south"}]
    first, second = compared(
        ledger, policy, "SELECT avg(age) FROM data GROUP BY place", (odd, moved)
    )
    [(_, share, loss)] = first.losses(second)
    assert first.events[0][2][0].public[2] > 1
    assert share * Fraction(99, 100) < loss <= share


def terms_with(**changed):
    """The planner, with other terms for every design."""
    real = shares.UnitLimits
    return mock.patch.object(shares, "UnitLimits", lambda **given: real(**{**given, **changed}))


def test_control_change_one_taken_for_add_remove_is_caught(ledger):
    question, pair = "SELECT count(*), avg(age) FROM data GROUP BY place", ([HERE], [LOW])
    assert broken(ledger, CHANGE, question, pair) == []
    with terms_with(replaced=False):
        assert broken(ledger, CHANGE, question, pair) == ["JointDesign"]


def test_control_a_mean_by_groups_needs_the_factor_of_two(ledger):
    with mock.patch.object(UnitLimits, "factor", property(lambda self: self.rows)):
        assert broken(
            ledger, CHANGE, "SELECT avg(age) FROM data GROUP BY place", ([HERE], [LOW])
        ) == ["MomentDesign"]


def test_control_a_centred_design_for_groups_is_caught(ledger):
    """Where a row that goes and one that comes are in two groups, they move two numbers of rows."""
    question, pair = "SELECT avg(age) FROM data GROUP BY place", ([HERE], [LOW])
    assert broken(ledger, CHANGE, question, pair) == []
    with mock.patch.object(UnitLimits, "same_group", True):
        assert broken(ledger, CHANGE, question, pair) == ["MomentDesign"]


def test_control_scales_that_ignore_max_rows_are_caught(ledger):
    pair = rows_of("me", HERE, HERE, HERE), rows_of("me", LOW, LOW, LOW)
    question = "SELECT count(*), sum(age), median(age), max(age) FROM data GROUP BY place"
    assert broken(ledger, CHANGE | UNIT, question, pair) == []
    with terms_with(rows=1):
        assert "JointDesign" in broken(ledger, CHANGE | UNIT, question, pair)


def test_control_rows_beyond_max_rows_are_caught(ledger):
    pair = rows_of("me", *[HERE] * 4), rows_of("me", *[{**HERE, "place": "south"}] * 4)
    question = "SELECT count(*), sum(age) FROM data GROUP BY place"
    assert broken(ledger, CHANGE | UNIT, question, pair) == []
    real = plans.Request
    with mock.patch.object(plans, "Request", lambda **given: real(**{**given, "max_rows": 99})):
        assert broken(ledger, CHANGE | UNIT, question, pair) == ["JointDesign"]


def test_control_groups_beyond_max_groups_are_caught(ledger):
    policy = REMOVE | UNIT | {"max_groups": 1}
    pair = rows_of("me", HERE, LOW, {**LOW, "place": "west"}), []
    question = "SELECT count(DISTINCT who) FROM data GROUP BY place"
    assert broken(ledger, policy, question, pair) == []
    real = plans.Request
    with mock.patch.object(plans, "Request", lambda **given: real(**{**given, "max_groups": None})):
        assert broken(ledger, policy, question, pair) == ["CountDesign"]


def test_control_a_sum_under_where_that_is_given_only_the_range_is_caught(ledger):
    policy = CHANGE | {"columns": {"age": {"bounds": [100, 101]}}}
    question = "SELECT sum(age) FROM data WHERE well"
    pair = (
        [{"age": 101, "well": True}],
        [{"age": 101}],
    )
    assert broken(ledger, policy, question, pair) == []
    only_range = lambda self, terms, epsilon: [self.grid.width * terms.rows / epsilon]  # noqa: E731
    with mock.patch.object(MomentDesign, "scales", only_range):
        assert broken(ledger, policy, question, pair) == ["MomentDesign"]


@pytest.mark.parametrize("asked", ["sum(age)", "avg(age)", "stddev(age)"])
def test_control_a_design_for_public_sizes_is_caught_where_missing_values_are_dropped(
    ledger, asked
):
    # the number of rows that count is then a secret, and it is used as it is
    policy = CHANGE | {"columns": {"age": {"bounds": [100, 110], "missing": "drop"}}}
    question, pair = select(asked), ([{"age": 110}, {"age": 105}], [{"age": None}, {"age": 105}])
    first, second = compared(ledger, policy, question, pair)
    assert [name for name, share, loss in first.losses(second) if loss > share] == []
    hidden = [record.content["numbers"]["a1"]["value"] for record in (first, second)]
    # without noise the answers differ, and what differs is paid for by the loss
    assert hidden[0] != hidden[1]
    with terms_with(public=True):
        first, second = compared(ledger, policy, question, pair)
    assert first.opened != second.opened
    with pytest.raises(AssertionError):
        first.losses(second)


def test_control_the_number_of_rows_that_is_taken_as_public_is_the_same_on_both_tables(ledger):
    policy = CHANGE | REPLACED
    question = "SELECT count(*), sum(age), stddev(age) FROM data"
    pair = (
        [HERE, LOW],
        [HERE, {"age": None}],
    )
    first, second = compared(ledger, policy, question, pair)
    assert set(first.opened) == set(second.opened) == {2}


def test_control_half_of_the_rank_rate_that_a_group_needs_is_caught(ledger):
    crowd = [
        {"age": age, "place": place}
        for age in range(11)
        for place in ("north", "south")
        for _ in range(60)
    ]
    pair = [*crowd, {"age": 10, "place": "north"}], [*crowd, {"age": 10, "place": "south"}]
    question = "SELECT quantile(age, 0.9) FROM data GROUP BY place"
    assert broken(ledger, CHANGE, question, pair) == []
    with mock.patch.object(UnitLimits, "ranks", return_value=Fraction(1)):
        assert broken(ledger, CHANGE, question, pair) == ["QuantileDesign"]


def test_control_keys_from_the_data_are_caught(ledger):
    pair = [HERE], [LOW]
    question = "SELECT place, count(*) FROM data GROUP BY place"
    first, second = compared(ledger, CHANGE, question, pair)
    assert first.shape() == second.shape()
    for rows, record in zip(pair, (first, second), strict=True):
        record.content["keys"]["g1"] = [row["place"] for row in rows]
    assert first.shape() != second.shape()


def test_a_policy_of_another_relation_gives_another_plan(ledger):
    asked = select("avg(age)", "GROUP BY place")
    one, two = (
        study_of([HERE], ledger, **policy).sql(asked, epsilon=1) for policy in (CHANGE, REMOVE)
    )
    assert one.lines[0].scale == 2 * two.lines[0].scale
    assert one.canonical != two.canonical
