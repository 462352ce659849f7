"""TRUST 7 and 8: no row makes an error or moves the shape of an answer; groups are those that were
declared.

The control is the question in plain SQL, where such a row raises an error, and a plain row does
not.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines.base import Cells, OnGrid, Present, Request, Rows, Squares, Total, Units
from discreet.engines.duckdb import DuckDB

FIELDS = {
    "n": pa.int64(),
    "x": pa.float64(),
    "t": pa.string(),
    "d": pa.timestamp("us"),
    "who": pa.string(),
}
PLAIN = {"n": 1, "x": 1.0, "t": "1", "d": datetime(2024, 1, 1), "who": "a"}  # noqa: DTZ001
N, X, T, D = (
    ask.Column(name, kind)
    for name, kind in zip("nxtd", ("number", "number", "text", "date"), strict=True)
)


def number(value) -> ask.Constant:
    return ask.Constant(Fraction(value), "number")


QUESTIONS = {
    "an overflow of integers": (ask.Arithmetic("*", N, N), {"n": 2**63 - 1}, "n * n"),
    "a sum that overflows": (ask.Arithmetic("+", N, number(1)), {"n": 2**63 - 1}, "n + 1"),
    "a division by zero": (ask.Arithmetic("/", number(1), X), {"x": 0.0}, "CAST(1 / x AS BIGINT)"),
    "an overflow of doubles": (ask.Arithmetic("*", X, X), {"x": 1e308}, "CAST(x * x AS BIGINT)"),
    "a cast to a number": (ask.Cast(T, "number"), {"t": "one"}, "CAST(t AS DOUBLE)"),
    "a cast to a date": (ask.Cast(T, "date"), {"t": "2023-02-30"}, "CAST(t AS TIMESTAMP)"),
    "a cast to a truth": (ask.Cast(T, "truth"), {"t": "perhaps"}, "CAST(t AS BOOLEAN)"),
    "a cast of an infinite number": (ask.Cast(X, "text"), {"x": float("inf")}, "CAST(x AS BIGINT)"),
    "a pattern with odd signs": (ask.Likeness(T, "([%\\"), {"t": "([\\"}, None),
    "a substring far away": (ask.Function("substring", (T, N, N)), {"n": 2**63 - 1}, "substring(t, n, n)"),
    "a text with a zero byte": (ask.Function("lower", (T,)), {"t": "\0É"}, None),
    "a date at the end of time": (ask.Truncated("week", D), {"d": datetime(9999, 12, 31, 23)}, None),  # noqa: DTZ001
    "not a number": (X, {"x": float("nan")}, "CAST(x AS BIGINT)"),
}  # fmt: skip


def table(*rows):
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in FIELDS.items()}
    )


def requests(of: ask.Expression):
    grid = ValueGrid(exponent=0, lower=-3, upper=3, exact=True)
    value = OnGrid(ask.Cast(of, "number"), grid, None)
    measures = (
        Rows(),
        Rows(of),
        Total(value),
        Squares(value),
        Present(value),
        Cells(value),
        Units(),
    )
    groups = (
        Group("t", T, ("1", "never"), "other"),
        Group("x", X, ("low", "high"), None, (Fraction(0), Fraction(1), Fraction(2))),
    )
    yield Request(measures)
    yield Request(measures, groups)
    yield Request(measures, where=ask.Missing(of))
    yield Request(measures, groups, unit="who", max_rows=1, max_groups=1)
    yield Request(
        measures,
        (Group("cast", ask.Cast(of, "text"), ("1", "0"), "other"),),
        where=ask.Negation(ask.Missing(of)),
    )


def shape(answer):
    return [
        [value.shape if isinstance(value, np.ndarray) else type(value) for value in values]
        for values in answer
    ]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_row_that_would_fail_changes_neither_shape_nor_error(name):
    of, row, _ = QUESTIONS[name]
    for request in requests(of):
        without = DuckDB(table(PLAIN)).fetch(request).reveal()
        with_row = DuckDB(table(PLAIN, {**PLAIN, **row, "who": "b"})).fetch(request).reveal()
        assert shape(with_row) == shape(without)


@pytest.mark.parametrize("name", [name for name, (_, _, sql) in QUESTIONS.items() if sql])
def test_the_same_row_raises_in_plain_sql(name):
    _, row, sql = QUESTIONS[name]
    with duckdb.connect() as connection:
        connection.register(
            "plain", table({**PLAIN, "t": "2024-01-01"} if "date" in name else PLAIN)
        )
        connection.sql(f"SELECT {sql} FROM plain").fetchall()  # noqa: S608
        connection.register("odd", table({**PLAIN, **row}))
        with pytest.raises(duckdb.Error):
            connection.sql(f"SELECT {sql} FROM odd").fetchall()  # noqa: S608


@pytest.mark.parametrize("rows", [(), (dict.fromkeys(FIELDS),), (dict.fromkeys(FIELDS),) * 3])
def test_empty_tables_and_missing_columns_have_the_shape_of_any_other(rows):
    for of in (X, T):
        for request in requests(of):
            expected = shape(
                DuckDB(table(PLAIN, {**PLAIN, "t": "zzz", "x": 1.5})).fetch(request).reveal()
            )
            assert shape(DuckDB(table(*rows)).fetch(request).reveal()) == expected


def test_a_key_that_nobody_declared_shows_nowhere():
    rows = [{**PLAIN, "t": text} for text in ("1", "canary", "1 ", "", None)]
    request = Request((Rows(),), (Group("t", T, ("2", "1")),))
    assert DuckDB(table(*rows)).fetch(request).reveal() == [[0, 1]]
    assert "canary" not in repr(DuckDB(table(*rows)).fetch(request))
    assert "canary" not in repr(DuckDB(table(*rows)))


def test_sums_of_the_largest_integers_neither_wrap_nor_raise():
    grid = value_grid((Fraction(0), Fraction(2**62)), bits=50)
    request = Request((Total(OnGrid(N, grid, None)),))
    one = DuckDB(table({**PLAIN, "n": 2**62})).fetch(request).reveal()[0][0]
    two = DuckDB(table(*[{**PLAIN, "n": 2**62}] * 2)).fetch(request).reveal()[0][0]
    assert (one, two) == (grid.width, 2 * grid.width)


def test_seventeen_rows_that_break_every_sum_of_floats_move_ours_by_one_step_each():
    low, high = (1 + 2.0**-49 - 2.0**-52) / 2, (1 + 2.0**-49) / 2
    grid = value_grid((Fraction(low), Fraction(high)), bits=30)
    request = Request((Total(OnGrid(X, grid, None)),))
    rows = [{**PLAIN, "x": float(index % 2)} for index in range(17)]
    whole, fewer = (
        DuckDB(table(*some)).fetch(request).reveal()[0][0] for some in (rows, rows[:-1])
    )
    assert 0 <= whole - fewer <= grid.width
