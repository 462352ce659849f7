"""A discovery is (ε, δ)-private: every set of outcomes, every pair of neighbours, both directions.

For one key the four inequalities of π are checked in balls of 2,000 bits. Two of them hold with
equality (that is what makes π the largest), so they are checked up to 2⁻¹⁰⁰⁰. For several keys the
largest P(S) − e^ε·P′(S) over all sets S of outcomes is the sum of what is positive over all single
outcomes; an outcome is the set of keys that are told.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pyarrow as pa
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import Policy
from discreet.ask.expression import Column
from discreet.calibrate.ball import ball
from discreet.engines.duckdb import DuckDB
from discreet.release.discovery import Keeping, keeping, keys_of_unit, rule_of

BITS = 2000
TINY = arb((1, -1000))

PRICES = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("1/50", "1/10", "1/2", "1", "7/3", "10", "200")
    for delta in ("1e-30", "1e-8", "1/100000", "1/100", "1/3", "0.499999")
]


def number(rule: Keeping, units: int) -> arb:
    chance = rule.chance(units)
    return ball(chance) if isinstance(chance, Fraction) else chance()


def excess(rule: Keeping, units: int, epsilon: Fraction, delta: Fraction) -> list[arb]:
    """P(S) − e^ε·P′(S) − δ for both outcomes of a key with n and with n + 1 units, both ways round."""
    fewer, more = number(rule, units), number(rule, units + 1)
    growth, failing = ball(epsilon).exp(), ball(delta)
    pairs = [(more, fewer), (fewer, more), (1 - more, 1 - fewer), (1 - fewer, 1 - more)]
    return [one - growth * other - failing for one, other in pairs]


def sizes(rule: Keeping) -> list[int]:
    """All numbers of units up to where π is 1, or those around the bends if they are many."""
    near = {at + step for at in (0, rule.bend, rule.last) for step in range(-3, 4)}
    return sorted(at for at in near | set(range(0, rule.last + 2, 1 + rule.last // 300)) if at >= 0)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_a_unit_more_or_less_moves_the_chance_of_a_key_within_epsilon_and_delta(epsilon, delta):
    rule = keeping(epsilon, delta)
    with ctx.workprec(BITS):
        for units in sizes(rule):
            assert all(one < TINY for one in excess(rule, units, epsilon, delta)), units
            assert 0 <= number(rule, units) <= 1


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_no_rule_tells_a_key_more_often(epsilon, delta):
    """Wherever π is not yet 1, one of the inequalities holds with equality."""
    rule = keeping(epsilon, delta)
    with ctx.workprec(BITS):
        for units in sizes(rule):
            if units < rule.last:
                assert number(rule, units + 1) < 1
                assert (
                    max(excess(rule, units, epsilon, delta), key=lambda one: float(one.mid()))
                    > -TINY
                ), units


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_a_rule_with_more_delta_epsilon_or_an_early_end_is_caught(epsilon, delta):
    right = keeping(epsilon, delta)
    wrong = {
        "more delta": keeping(epsilon, delta * Fraction(1_000_001, 1_000_000)),
        "more epsilon": keeping(epsilon * Fraction(1_000_001, 1_000_000), delta),
        "told a unit early": Keeping(
            epsilon=epsilon, delta=delta, bend=right.bend, last=right.last - 1
        ),
    }
    with ctx.workprec(BITS):
        for name, rule in wrong.items():
            found = (one for units in sizes(rule) for one in excess(rule, units, epsilon, delta))
            assert any(one > TINY for one in found), name


# Several keys.

KEYS = "abc"
EPSILON, DELTA = Fraction(1), Fraction(1, 20)


def policy(neighbors: str, groups: int | None, rows: int | None = None) -> Policy:
    unit = (
        {"unit": "who", "max_rows": rows or groups, "max_groups": groups} if groups or rows else {}
    )
    columns = {"key": {"keys": "discover"}}
    return Policy(
        source="x.csv", epsilon=1, delta="0.05", neighbors=neighbors, columns=columns, **unit
    )


def law(counts: Counter[str], rule: Keeping) -> dict[frozenset[str], arb]:
    """The probability of every set of keys that may be told."""
    found = {frozenset[str](): arb(1)}
    for key in KEYS:
        chance = number(rule, counts[key])
        without = {told: one * (1 - chance) for told, one in found.items()}
        found = without | {told | {key}: one * chance for told, one in found.items()}
    return found


def divergence(
    one: dict[frozenset[str], arb], other: dict[frozenset[str], arb], epsilon: Fraction
) -> arb:
    """The largest P(S) − e^ε·P′(S) over all sets S of outcomes."""
    growth = ball(epsilon).exp()
    gaps = (one[told] - growth * other[told] for told in one)
    return sum((gap.upper() for gap in gaps if gap.upper() > 0), arb(0))


def neighbours(relation: str, limit: int) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Numbers of units of each key, without and with one unit that has up to `limit` of them, or
    with one replaced.
    """
    units = [
        frozenset(some) for size in range(limit + 1) for some in itertools.combinations(KEYS, size)
    ]
    for counts in itertools.product(range(4), repeat=len(KEYS)):
        before = Counter(dict(zip(KEYS, counts, strict=True)))
        if relation == "add-remove":
            yield from ((before, before + Counter(unit)) for unit in units)
        else:
            yield from (
                (before + Counter(one), before + Counter(other))
                for one, other in itertools.combinations(units, 2)
            )


def worst(relation: str, groups: int | None, rule: Keeping) -> arb:
    limit = keys_of_unit(policy(relation, groups))
    laws: dict[tuple[tuple[str, int], ...], dict[frozenset[str], arb]] = {}

    def known(counts: Counter[str]) -> dict[frozenset[str], arb]:
        name = tuple(sorted(counts.items()))
        if name not in laws:
            laws[name] = law(counts, rule)
        return laws[name]

    pairs = [(known(one), known(other)) for one, other in neighbours(relation, limit)]
    both = (
        divergence(*pair, EPSILON) for one, other in pairs for pair in ((one, other), (other, one))
    )
    return max(both, key=lambda one: float(one.mid()))


@pytest.mark.parametrize("groups", [None, 1, 2, 3])
@pytest.mark.parametrize("relation", ["add-remove", "change-one"])
def test_no_set_of_outcomes_tells_more_of_a_unit_than_epsilon_and_delta(relation, groups):
    with ctx.workprec(256):
        rule = rule_of(policy(relation, groups), 1, EPSILON, DELTA)
        assert worst(relation, groups, rule) < ball(DELTA) + arb((1, -200))


@pytest.mark.parametrize("relation", ["add-remove", "change-one"])
def test_a_rule_that_forgets_how_many_keys_a_unit_moves_is_caught(relation):
    with ctx.workprec(256):
        rule = keeping(EPSILON, DELTA)
        assert worst(relation, 2, rule) > ball(DELTA) * 3 / 2


@pytest.mark.parametrize(
    ("relation", "groups", "rows", "columns", "parts"),
    [
        ("add-remove", None, None, 1, 1),
        ("change-one", None, None, 1, 2),
        ("add-remove", 3, 5, 1, 3),
        ("add-remove", None, 5, 1, 5),
        ("change-one", 3, 5, 2, 12),
    ],
)
def test_epsilon_and_delta_are_shared_by_columns_keys_and_both_ends_of_a_move(
    relation, groups, rows, columns, parts
):
    rule = rule_of(policy(relation, groups, rows), columns, EPSILON, DELTA)
    assert (rule.epsilon, rule.delta) == (EPSILON / parts, DELTA / parts)


# The engine.

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["u", "v", "w", None]),
        st.sampled_from(["a", "b", "c", "d", "", "a|b", "é", None]),
    ),
    max_size=25,
)


def counted(rows: list[tuple[str | None, str | None]], limit: int) -> dict[str | int, int]:
    table = pa.table(
        {
            "who": pa.array([r[0] for r in rows], pa.string()),
            "key": pa.array([r[1] for r in rows], pa.string()),
        }
    )
    return DuckDB(table).discover(Column("key", "text"), "who", limit).reveal()


@settings(max_examples=25, deadline=None)
@given(rows=ROWS, limit=st.integers(1, 3), unit=st.sampled_from("uvw"))
@example(rows=[("u", "a"), ("u", "a"), ("u", "b")], limit=3, unit="u")
def test_a_unit_counts_once_in_at_most_the_allowed_number_of_keys(rows, limit, unit):
    with_unit = counted(rows, limit)
    without = counted([row for row in rows if row[0] != unit], limit)
    moved = {key: with_unit.get(key, 0) - without.get(key, 0) for key in {*with_unit, *without}}
    own = {key for who, key in rows if who == unit and key is not None}
    assert all(move in (0, 1) for move in moved.values())
    assert sum(moved.values()) == min(limit, len(own))
    assert {key for key, move in moved.items() if move} <= own
    assert counted(rows[::-1], limit) == with_unit  # no order matters
