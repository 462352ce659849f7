"""What a question does to released numbers, on columns: the same as row by row with Python's own
numbers.
"""

import math
import operator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ask.expression import Column
from discreet.ask.query import Combined, Group, Named, Number, Query
from discreet.ask.query import Test as Compare
from discreet.records import Record, from_whole, unpack
from discreet.release.postprocessing import Numbers, columns_of

SIGNS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
MISSING = (None, None, None)


def by_row(whole: dict[str, Any], query: Query) -> list[dict[str, Any]]:
    """The rows of an answer, one after the other."""
    table = []
    for cell, keys in enumerate(product(*whole["keys"].values())):
        row = {name: (key,) * 3 for name, key in zip(whole["keys"], keys, strict=True)}
        ends = whole["numbers"].items()
        table.append(
            row
            | {
                name: tuple(three[end][cell] for end in ("value", "low", "high"))
                for name, three in ends
            }
        )
    table = [row for row in table if query.having is None or holds(query.having, row)]
    for output, descending in reversed(query.order):
        group = next((one for one in query.groups if output == Named(one.name)), None)
        values = [item(output, row)[0] for row in table]
        if group is not None and group.edges is not None:
            values = [[*group.keys, group.other].index(value) for value in values]
        elif group is not None and group.other is not None:
            values = [None if value == group.other else value for value in values]
        there = [at for at, value in enumerate(values) if value is not None]
        there.sort(key=lambda at: values[at], reverse=descending)
        table = [
            table[at] for at in [*there, *(at for at, value in enumerate(values) if value is None)]
        ]
    return [
        {name: item(output, row) for name, output in query.outputs} for row in table[: query.limit]
    ]


def item(output: Any, row: dict[str, Any]) -> Any:
    match output:
        case Named(name):
            return row[name]
        case Number(value):
            return (float(value),) * 3
        case Combined(sign, left, right):
            return combined(sign, item(left, row), item(right, row))


def combined(sign: str, left: Any, right: Any) -> Any:
    if None in (left[0], right[0]):
        return MISSING
    if sign == "/":
        if right[0] == 0 or right[1] <= 0 <= right[2]:
            return (left[0] / right[0], -math.inf, math.inf) if right[0] else MISSING
        ends = [a / b for a in left[1:] for b in right[1:]]
        return left[0] / right[0], min(ends), max(ends)
    ends = [ARITHMETIC[sign](a, b) for a in left[1:] for b in right[1:]]
    return ARITHMETIC[sign](left[0], right[0]), min(ends), max(ends)


def holds(test: Compare, row: dict[str, Any]) -> bool:
    if test.sign in ("and", "or"):
        return (all if test.sign == "and" else any)(holds(part, row) for part in test.parts)
    left, right = (item(part, row)[0] for part in test.parts)
    return left is not None and right is not None and bool(SIGNS[test.sign](left, right))


def rows_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    items = [
        (
            list(zip(*column.items(), strict=True))
            if isinstance(column, Numbers)
            else [
                (key,) * 3
                for key in (
                    column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
                )
            ]
        )
        for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*items, strict=True)]


WHOLE = st.one_of(
    st.integers(-9, 9),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**31]),
)
REAL = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, 2.0**53, -0.5]))
REACH = st.integers(0, 9)


@st.composite
def numbers(draw: Any, size: int) -> dict[str, list[Any]]:
    kind = draw(st.sampled_from([st.integers(-9, 9), WHOLE, REAL]))
    values = [draw(kind) for _ in range(size)]
    reach = draw(REACH)
    return {
        "value": values,
        "low": [value - reach for value in values],
        "high": [value + reach for value in values],
    }


KEYS: list[tuple[list[Any], str | None, tuple[Fraction, ...] | None]] = [
    (["b", "a", "ä", "c"], None, None),
    ([3, 1, 2], "rest", None),
    ([0.5, 3, 1], None, None),
    (["x", "b", "a"], "k", None),
    (["[0, 5)", "[5, 10)", "[10, 20]"], None, tuple(map(Fraction, (0, 5, 10, 20)))),
    ([True, False], None, None),
]
OUTPUT = st.recursive(
    st.one_of(
        st.sampled_from([Named("a1"), Named("a2")]),
        st.sampled_from([Number(Fraction(2)), Number(Fraction(0))]),
    ),
    lambda inner: st.builds(Combined, st.sampled_from("+-*/"), inner, inner),
    max_leaves=3,
)
TEST = st.recursive(
    st.builds(Compare, st.sampled_from(sorted(SIGNS)), st.tuples(OUTPUT, OUTPUT)),
    lambda inner: st.builds(Compare, st.sampled_from(["and", "or"]), st.tuples(inner, inner)),
    max_leaves=3,
)


@st.composite
def questions(draw: Any) -> tuple[dict[str, Any], Query]:
    chosen = draw(st.lists(st.sampled_from(KEYS), max_size=2))
    groups, keys = [], {}
    for at, (listed, other, edges) in enumerate(chosen, 1):
        groups.append(
            Group(f"g{at}", Column(f"c{at}", "text"), tuple(listed), other=other, edges=edges)
        )
        keys[f"g{at}"] = [*listed, *([] if other is None else [other])]
    size = math.prod(map(len, keys.values()))
    order = st.tuples(
        st.one_of(OUTPUT, st.sampled_from([Named(one.name) for one in groups] or [Named("a1")])),
        st.booleans(),
    )
    query = Query(
        aggregates=(),
        outputs=(
            *((one.name, Named(one.name)) for one in groups),
            ("x", draw(OUTPUT)),
            ("n", Named("a1")),
        ),
        groups=tuple(groups),
        having=draw(st.none() | TEST),
        order=tuple(draw(st.lists(order, max_size=2))),
        limit=draw(st.none() | st.integers(0, 5)),
    )
    return {
        "epsilon": "1",
        "keys": keys,
        "numbers": {name: draw(numbers(size)) for name in ("a1", "a2")},
    }, query


@settings(max_examples=200, deadline=None)
@given(questions())
def test_columns_are_what_rows_of_python_numbers_would_be(
    asked: tuple[dict[str, Any], Query],
) -> None:
    whole, query = asked
    try:
        expected = by_row(whole, query)
    except OverflowError:  # a quotient of integers beyond the floats
        return
    columns = columns_of(unpack(from_whole(whole).pack()), query)
    assert repr(rows_of(columns)) == repr(expected)


@settings(max_examples=200, deadline=None)
@given(questions())
def test_a_record_comes_back_as_it_was_with_the_same_bytes(
    asked: tuple[dict[str, Any], Query],
) -> None:
    whole, _ = asked
    content = from_whole(whole).pack()
    assert repr(unpack(content).whole()) == repr(whole)
    assert unpack(content).pack() == content


def test_where_a_number_is_missing_nothing_follows_from_it() -> None:
    record = Record(
        {}, {"g1": np.arange(3)}, {"a1": tuple(np.array([None, 3, 4], object) for _ in range(3))}
    )  # type: ignore[arg-type]
    query = Query(aggregates=(), outputs=(("x", Combined("*", Named("a1"), Number(Fraction(2)))),))
    assert columns_of(record, query)["x"].items() == [[None, 6.0, 8.0]] * 3
