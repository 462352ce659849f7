"""No unit moves the integers that an engine fetches by more than its rows can: over all groups
together, in L1.

With add-remove neighbours and at most max_rows rows each: rows and present 1 a row, totals the
width of the grid, squares its square, cells 1, units 1 in each of max_groups groups. And any order
of the rows gives the same integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import (
    Cells,
    OnGrid,
    Present,
    Product,
    Request,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.engines.duckdb import DuckDB

GRID = ValueGrid(exponent=-1, lower=-3, upper=6, exact=False)
X = ask.Column("x", "number")
FIELDS = {"who": pa.string(), "x": pa.float64(), "place": pa.string(), "y": pa.int64()}
ENGINES = {"duckdb": DuckDB}

row = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.one_of(st.none(), st.floats(-3, 6), st.floats()),
    st.sampled_from(["north", "south", "east", "", None]),
    st.integers(-2, 2),
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    value = OnGrid(X, GRID, draw(st.sampled_from([None, 0])))
    groups = [
        Group(
            "place",
            ask.Column("place", "text"),
            ("south", "north"),
            draw(st.sampled_from([None, "other"])),
        ),
        Group(
            "x",
            X,
            ("low", "high"),
            draw(st.sampled_from([None, "other"])),
            (Fraction(-3), Fraction(0), Fraction(3)),
        ),
    ]
    return Request(
        (
            Rows(),
            Rows(ask.Comparison(">", X, ask.Constant(Fraction(0), "number"))),
            Units(),
            Present(value),
            Total(value),
            Squares(value),
            Cells(value),
            Product(value, OnGrid(ask.Column("y", "number"), GRID, None), (1, 1)),
        ),
        groups=tuple(groups[: draw(st.integers(0, 2))]),
        where=draw(
            st.sampled_from(
                [
                    None,
                    ask.Comparison(
                        ">=", ask.Column("y", "number"), ask.Constant(Fraction(0), "number")
                    ),
                ]
            )
        ),
        unit="who",
        max_rows=draw(st.integers(1, 4)),
        max_groups=draw(st.sampled_from([None, 1, 2])),
    )


def table(rows):
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    return pa.table(
        {
            name: pa.array(column, kind)
            for (name, kind), column in zip(FIELDS.items(), columns, strict=True)
        }
    )


def bounds(request: Request) -> list[int]:
    units = min(request.max_rows, request.max_groups or request.max_rows)
    per_row = [1, 1, 0, 1, GRID.width, GRID.width**2, 1, GRID.width**2]
    return [units if bound == 0 else bound * request.max_rows for bound in per_row]


def moved(before, after) -> list[int]:
    return [
        sum(int(np.abs(a - b).sum()) for a, b in zip(one, two, strict=True))
        for one, two in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@given(rows=st.lists(row, max_size=25), request_=requests())
@settings(max_examples=30, deadline=None)
def test_no_unit_moves_an_integer_by_more_than_its_rows_can(engine, rows, request_):
    whole = engine(table(rows)).fetch(request_).reveal()
    for unit in {who for who, *_ in rows} - {None}:
        without = engine(table([one for one in rows if one[0] != unit])).fetch(request_).reveal()
        assert all(
            moved <= bound
            for moved, bound in zip(moved(whole, without), bounds(request_), strict=True)
        )


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@given(
    rows=st.lists(row, max_size=25).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    ),
    request_=requests(),
)
@settings(max_examples=20, deadline=None)
def test_any_order_of_rows_gives_the_same_integers(engine, rows, request_):
    one, other = (engine(table(order)).fetch(request_).reveal() for order in rows)
    assert sum(moved(one, other)) == 0


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_unit_with_a_million_rows_counts_as_its_limit(engine):
    many = 10**6
    rows = pa.table(
        {
            "who": pa.array(["a"] * many + ["b"]),
            "x": np.arange(many + 1) % 7,
            "place": ["north"] * (many + 1),
            "y": np.arange(many + 1),
        }
    )
    value = OnGrid(X, GRID, None)
    request = Request((Rows(), Units(), Total(value)), unit="who", max_rows=10)
    counted, units, total = (one[0] for one in engine(rows).fetch(request).reveal())
    assert (counted, units) == (11, 2)
    assert total <= 11 * GRID.width


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_without_a_limit_the_same_unit_moves_far_more(engine):
    """The control: what the limit is for."""
    rows = [("a", 6.0, "north", 1)] * 50
    request = Request((Rows(),), unit="who")
    assert moved(
        engine(table(rows)).fetch(request).reveal(), engine(table([])).fetch(request).reveal()
    ) == [50]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_the_choice_among_rows_does_not_favour_a_value(engine):
    """Of 4,000 units with a 0 and a 3, each keeps one row: halves, within five deviations (false
    alarm below 10⁻⁶).
    """
    units = 4000
    rows = pa.table(
        {
            "who": [str(index // 2) for index in range(2 * units)],
            "x": [0.0, 3.0] * units,
            "place": ["north"] * 2 * units,
            "y": [1] * 2 * units,
        }
    )
    grid = ValueGrid(exponent=0, lower=0, upper=3, exact=True)
    request = Request((Cells(OnGrid(X, grid, None)),), unit="who", max_rows=1)
    cells = engine(rows).fetch(request).reveal()[0][0]
    assert cells.sum() == units
    assert abs(cells[3] - units / 2) < 5 * np.sqrt(units) / 2
