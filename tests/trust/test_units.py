"""TRUST 18: a unit counts by its limit however many rows it has, and under as many names as it has
spellings.

A unit is a value of the unit column. What the source holds as one value is one unit, however it was
written there; what it holds as two values is two, and each of them is protected for itself: that is
said in docs/limits.md.
"""

from fractions import Fraction

import pyarrow as pa
import pytest

from discreet import Policy, Study
from studies import Paper, replayed

EPSILON = Fraction(1)
OTHERS = 5
LIMIT = 3


def replay(units, kind, *, max_rows=LIMIT):
    """A count by place and a sum without noise, of rows with these units; everybody is 10 years
    old.
    """
    places = ["north" if at % 2 else "south" for at in range(len(units))]
    table = pa.table({"who": pa.array(units, kind), "place": places, "age": [10] * len(units)})
    columns = {"place": {"keys": ["north", "south"]}, "age": {"bounds": [0, 10]}}
    policy = Policy(
        source=table,
        columns=columns,
        epsilon=10**6,
        version="1",
        unit="who",
        max_rows=max_rows,
        neighbors="add-remove",
    )
    study = Study(policy, ledger=Paper())
    question = "SELECT place, count(*) AS rows, sum(age) AS years FROM data GROUP BY place"
    return replayed(study.sql(question, epsilon=EPSILON), study)


def rows_counted(record) -> int:
    """What is released of them, here without noise."""
    [name] = [one["name"] for one in record.content["statistics"] if one["asked"] == "count(*)"]
    return sum(record.content["numbers"][name]["value"])


def loss(one, other) -> Fraction:
    return sum(lost for _, _, lost in one.losses(other))


@pytest.mark.parametrize("times", [1, LIMIT, LIMIT + 1, 1000, 1_000_000])
def test_a_unit_with_a_million_rows_costs_what_a_unit_with_a_few_costs(times):
    others = [f"u{at}" for at in range(OTHERS)]
    without, with_it = replay(others, pa.string()), replay(others + ["me"] * times, pa.string())
    assert loss(without, with_it) <= EPSILON
    assert rows_counted(with_it) == OTHERS + min(times, LIMIT)


def test_control_a_unit_that_is_not_limited_costs_far_more():
    """The scales of a limit of 3, and the rows of a unit that has 1,000."""
    others = [f"u{at}" for at in range(OTHERS)]
    without, limited = replay(others, pa.string()), replay(others + ["me"] * 1000, pa.string())
    unlimited = replay(others + ["me"] * 1000, pa.string(), max_rows=1000)
    for (_, _, events), (_, _, mine) in zip(unlimited.events, limited.events, strict=True):
        for event, known in zip(events, mine, strict=True):
            event.public = known.public  # as if the noise were that of the limit
    unlimited.events = [
        (name, share, events)
        for (_, _, events), (name, share, _) in zip(unlimited.events, limited.events, strict=True)
    ]
    assert loss(without, unlimited) > 100 * EPSILON


SAME = {
    "both zeros": ([0.0, -0.0] * 4, pa.float64()),
    "one number": ([1e3, 1000.0] * 4, pa.float64()),
    "one text": (["Zoë", "Zo" + chr(0xEB)] * 4, pa.string()),
    "one day": ([0, 0] * 4, pa.timestamp("us")),
}


@pytest.mark.parametrize("name", SAME)
def test_what_the_source_holds_as_one_value_is_one_unit(name):
    units, kind = SAME[name]
    assert rows_counted(replay(units, kind)) == LIMIT


SPELLINGS = ["Zoë", "Zoë ", "zoë", "Zoe" + chr(0x308), "ZOË", "Zo\u200bë"]


def test_every_spelling_of_a_name_is_a_unit_and_pays_as_one():
    others = [f"u{at}" for at in range(OTHERS)]
    records = [
        replay(others + [name for name in SPELLINGS[:many] for _ in range(9)], pa.string())
        for many in (0, 1, 6)
    ]
    assert loss(records[0], records[1]) <= EPSILON
    assert EPSILON < loss(records[0], records[2]) <= len(SPELLINGS) * EPSILON
    assert rows_counted(records[2]) == OTHERS + len(SPELLINGS) * LIMIT


@pytest.mark.parametrize(
    ("nobody", "kind"), [(None, pa.string()), (float("nan"), pa.float64()), (None, pa.int64())]
)
def test_rows_of_nobody_do_not_count(nobody, kind):
    assert rows_counted(replay([nobody] * 9, kind)) == 0
