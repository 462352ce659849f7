"""A profile loses at most ε, whatever one unit does: it comes, goes or is replaced, with any rows
and any values.

The counts that an engine hands to the noise are compared on two neighbours; with discrete Laplace
noise of scale b on each, the loss is Σ |Δcount|/b, exactly, and what is left of the record may not
depend on the data. The losses of some pairs reach ε: a smaller Δ would be caught.
"""

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Policy, Study
from discreet.engines import array
from discreet.release.profiles.octaves import OctaveDesign
from discreet.release.profiles.plan import ProfilePlan, profile_plan
from discreet.release.question import question
from studies import Paper

EPSILON = Fraction(3, 5)
RELATIONS = ["change-one", "add-remove"]
NUMBERS = [
    None,
    0.0,
    -0.0,
    1.0,
    1.5,
    2.0,
    -1.0,
    -3.0,
    7.9,
    2.0**70,
    -(2.0**70),
    1e-300,
    float("nan"),
    float("inf"),
]
WHOLES = [None, 0, 1, -1, 2, 5, 2**63 - 1, -(2**63), 2**53 + 1]
TEXTS = [None, "", "x", " 4 ", "1,5", "-2", "1e400", "n/a", "0"]
COLUMNS = {
    "real": {},
    "whole": {},
    "text": {"type": "number", "trim": True, "decimal": ",", "missing_values": ["n/a"]},
}
TYPES = pa.schema(
    [("who", pa.string()), ("real", pa.float64()), ("whole", pa.int64()), ("text", pa.string())]
)

Row = tuple[str | None, float | None, int | None, str | None]

values = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(WHOLES), st.sampled_from(TEXTS))


def plan_of(rows: list[Row], neighbors: str, *, by_unit: bool) -> ProfilePlan:
    columns = {name: [row[at] for row in rows] for at, name in enumerate(TYPES.names)}
    unit = {"unit": "who", "max_rows": 2} if by_unit else {}
    policy = Policy(
        source=pa.table(columns, TYPES),
        epsilon=1,
        neighbors=neighbors,
        columns=COLUMNS,
        version="1",
        **unit,
    )
    study = Study(policy, ledger=Paper(1))
    study.engine.chosen = "a test"  # so few are refused
    return profile_plan(study, [*COLUMNS, *(["who"] if by_unit else [])], EPSILON)


def counts(plan: ProfilePlan) -> list[tuple[Fraction, list[int]]]:
    """For each design the scale of its noise, and the exact counts, each of which has it."""
    found = []
    for design in plan.designs:
        exact = np.asarray(plan.fetched(design).reveal()[0], np.int64)
        assert exact.shape == (design.cells,)
        assert exact.min() >= 0
        found.append((design.scale(plan.terms(design), plan.share), exact.tolist()))
    return found


def loss(one: ProfilePlan, other: ProfilePlan) -> Fraction:
    assert one.canonical == other.canonical
    pairs = list(zip(counts(one), counts(other), strict=True))
    assert all(mine[0] == theirs[0] for mine, theirs in pairs)
    moved = [
        sum(abs(a - b) for a, b in zip(mine[1], theirs[1], strict=True)) / mine[0]
        for mine, theirs in pairs
    ]
    return sum(moved, Fraction(0))


@given(
    others=st.lists(st.tuples(st.sampled_from(["b", "c", None]), values), max_size=5),
    before=st.lists(values, max_size=4),
    after=st.lists(values, max_size=4),
    by_unit=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_no_unit_costs_more_than_epsilon(others, before, after, by_unit):
    rest = [(who, *row) for who, row in others]
    if not by_unit:
        before, after = before[:1], after[:1]
    with_it, without = ([("a", *row) for row in rows] for rows in (before, after))
    change = loss(
        *(plan_of([*rest, *rows], "change-one", by_unit=by_unit) for rows in (with_it, without))
    )
    come = loss(*(plan_of([*rows, *rest], "add-remove", by_unit=by_unit) for rows in (with_it, [])))
    assert change <= EPSILON
    assert come <= EPSILON


@pytest.mark.parametrize("by_unit", [True, False])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_some_pair_of_tables_loses_all_of_epsilon(neighbors, by_unit):
    rest = [("b", 1.0, 1, "1"), ("c", None, None, None)]
    before = [("a", 1.0, 1, "1")] if neighbors == "change-one" else []
    after = [("a", -4.0, 4, "x")] * (2 if by_unit else 1)
    assert (
        loss(*(plan_of([*rest, *rows], neighbors, by_unit=by_unit) for rows in (before, after)))
        == EPSILON
    )


def test_a_unit_is_in_one_bin_however_many_rows_it_has():
    rows = [
        (who, *row) for who in "ab" for row in itertools.product(NUMBERS[:4], WHOLES[:3], TEXTS[:4])
    ]
    plan = plan_of([*rows, (None, 1.0, 1, "1")], "add-remove", by_unit=True)
    assert [sum(exact) for _, exact in counts(plan)] == [2, 2, 2, 2]


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_no_value_of_an_array_costs_more_than_epsilon(neighbors):
    """All pairs of odd values, in an array that is otherwise the same."""
    design, exact = OctaveDesign(name="x", whole=False), []
    for value in [*NUMBERS, "x", 10**400]:
        ask = question("bounds", [1.0, value], (0, 1), EPSILON, neighbors)
        exact.append(np.asarray(array.fetch(ask.data, design.measures()).reveal()[0]))
    scale = design.scale(ask.terms, EPSILON)
    without = np.asarray(array.fetch(array.column([1.0]), design.measures()).reveal()[0])
    pairs = (
        itertools.combinations(exact, 2)
        if neighbors == "change-one"
        else ((one, without) for one in exact)
    )
    losses = {int(np.abs(one - other).sum()) / scale for one, other in pairs}
    assert max(losses) == EPSILON


def test_the_study_s_ledger_is_charged_what_the_parts_add_up_to(tmp_path: Path):
    table = pa.table({"x": [1.0] * 1000, "y": [1] * 1000})
    policy = Policy(source=table, epsilon=1, columns={"x": {}, "y": {}}, version="1")
    with Study(policy, ledger=tmp_path / "ledger") as study:
        profile = study.profile(epsilon="0.6")
        assert study.spent == sum(one.epsilon for one in profile.columns.values()) == EPSILON
