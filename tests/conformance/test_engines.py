"""DuckDB and PostgreSQL give the integers of the slow reference, for random tables, expressions and requests."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reference
from conforming import (
    FIELDS,
    GRIDS,
    KINDS,
    NAMES,
    corners,
    expressions,
    functions,
    in_memory,
    on_postgresql,
    read_cells,
    requests,
    same,
    tables,
)
from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.engines.base import Cells, OnGrid, Request, Rows, Total, Units


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def opened(request):
    """A function from a table to an engine over it, and to the rows that it holds."""
    return in_memory if request.param == "duckdb" else on_postgresql(request.getfixturevalue("postgres"))


quick = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


@given(table=tables(), expression=st.sampled_from(sorted(KINDS)).flatmap(expressions), number=expressions("number"))
@quick
def test_an_expression_has_the_value_of_the_reference_on_every_row(opened, table, expression, number):
    request = Request(
        (Rows(expression), *(Total(OnGrid(number, grid, None)) for grid in GRIDS), Cells(OnGrid(number, GRIDS[1], 0)))
    )
    engine, rows = opened(table)
    assert same(engine.fetch(request).reveal(), reference.fetch(request, rows))


@given(table=tables(), request_=requests())
@quick
def test_a_request_has_the_integers_of_the_reference(opened, table, request_):
    engine, rows = opened(table)
    assert same(engine.fetch(request_).reveal(), reference.fetch(request_, rows))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_function_has_the_very_values_of_the_reference(opened, kind):
    """The values that the reference finds are the keys: each must be found as often, and all the rest be missing."""
    engine, rows = opened(corners())
    for expression in functions():
        values = [reference.evaluate(expression, row) for row in rows]
        keys = tuple(dict.fromkeys(value for value in values if value is not None))
        if keys and reference.kind_of(keys[0]) == kind:
            group = Group(
                "value", expression, tuple(Fraction(key) if kind == "number" else key for key in keys), "missing"
            )
            expected = [[*(values.count(key) for key in keys), values.count(None)]]
            assert engine.fetch(Request((Rows(),), (group,))).reveal() == expected, expression


@pytest.mark.parametrize("unit", ["person", "name", "day", "zoned", "moment", "flag", "huge", "tiny", "text", "real"])
def test_units_above_a_limit_keep_the_rows_of_the_reference(opened, unit):
    engine, rows = opened(corners())
    measures = (
        Rows(),
        Units(),
        Total(OnGrid(ask.Column("whole", "number"), GRIDS[0], None)),
        Rows(ask.Column("flag", "truth")),
    )
    groups = (
        Group("text", ask.Column("name", "text"), tuple(NAMES[:4]), "other"),
        Group("flag", ask.Column("flag", "truth"), (True, False)),
    )
    for max_rows, max_groups in [(1, None), (3, None), (None, 1), (None, 2), (4, 2)]:
        request = Request(measures, groups, unit=unit, max_rows=max_rows, max_groups=max_groups)
        assert engine.fetch(request).reveal() == reference.fetch(request, rows), (max_rows, max_groups)


@given(table=tables(), unit=st.sampled_from([None, *FIELDS]))
@settings(quick, max_examples=30)
def test_units_are_the_rows_or_the_values_that_are_there(opened, table, unit):
    engine, rows = opened(table)
    there = {row[unit] for row in rows if row[unit] is not None and row[unit] == row[unit]} if unit else rows
    assert engine.units(unit).reveal() == len(there)


def test_texts_are_read_as_declared(opened):
    """Every cell in every declared way: each value as often as the reference finds it, and all the rest missing."""
    table, columns = read_cells()
    engine, rows = opened(table)
    measures = []
    for column in columns:
        values = {value for row in rows if (value := reference.evaluate(column, row)) is not None}
        assert values, column
        kind = column.kind
        constants = [ask.Constant(Fraction(value) if kind == "number" else value, kind) for value in values]
        measures += [Rows(ask.Comparison("=", column, constant)) for constant in constants]
        measures.append(Rows(ask.Missing(column)))
    request = Request(tuple(measures))
    assert engine.fetch(request).reveal() == reference.fetch(request, rows)
