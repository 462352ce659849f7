"""DuckDB and PostgreSQL give the integers of the slow reference, for random tables, expressions and
requests.
"""

from __future__ import annotations

from fractions import Fraction

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conforming import (
    FIELDS,
    GRIDS,
    KINDS,
    LONG_TEXTS,
    NAMES,
    check_custodians_counts,
    check_declared_texts,
    check_octaves,
    check_report,
    corners,
    expressions,
    functions,
    in_memory,
    on_postgresql,
    requests,
    same,
    tables,
)
from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.engines.base import Cells, OnGrid, Request, Rows, Total, Units
from discreet.engines.duckdb import DuckDB
from discreet.engines.postgres import PostgreSQL
from discreet.verify import reference


@pytest.fixture(scope="module", params=["duckdb", "postgresql"])
def opened(request):
    """A function from a table to an engine over it, and to the rows that it holds."""
    return (
        in_memory
        if request.param == "duckdb"
        else on_postgresql(request.getfixturevalue("postgres"))
    )


quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@given(
    table=tables(),
    expression=st.sampled_from(sorted(KINDS)).flatmap(expressions),
    number=expressions("number"),
)
@quick
def test_an_expression_has_the_value_of_the_reference_on_every_row(
    opened, table, expression, number
):
    request = Request(
        (
            Rows(expression),
            *(Total(OnGrid(number, grid, None)) for grid in GRIDS),
            Cells(OnGrid(number, GRIDS[1], 0)),
        )
    )
    engine, rows = opened(table)
    assert same(engine.fetch(request).reveal(), reference.fetch(request, rows))


@given(table=tables(), request_=requests())
@quick
def test_a_request_has_the_integers_of_the_reference(opened, table, request_):
    engine, rows = opened(table)
    assert same(engine.fetch(request_).reveal(), reference.fetch(request_, rows))


@pytest.fixture(scope="module")
def odd(request, opened):
    """Every odd value of every column, in an engine and as rows."""
    place = in_memory if opened is in_memory else on_postgresql(request.getfixturevalue("postgres"))
    return place(corners())


def test_every_function_has_the_very_values_of_the_reference(odd):
    """The values that the reference finds are the keys: each must be found as often, and all the
    rest be missing.
    """
    engine, rows = odd
    seen = set()
    for expression in functions():
        values = [reference.evaluate(expression, row) for row in rows]
        keys = tuple(dict.fromkeys(value for value in values if value is not None))
        if keys:
            kind = reference.kind_of(keys[0])
            group = Group(
                "value",
                expression,
                tuple(Fraction(key) if kind == "number" else key for key in keys),
                "missing",
            )
            expected = [[*(values.count(key) for key in keys), values.count(None)]]
            assert engine.fetch(Request((Rows(),), (group,))).reveal() == expected, expression
            seen.add(kind)
    assert seen == set(KINDS)


@pytest.mark.parametrize(
    "unit", ["person", "name", "day", "zoned", "moment", "flag", "huge", "tiny", "text", "real"]
)
def test_units_above_a_limit_keep_the_rows_of_the_reference(odd, unit):
    engine, rows = odd
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
        assert engine.fetch(request).reveal() == reference.fetch(request, rows), (
            max_rows,
            max_groups,
        )


@given(table=tables(), unit=st.sampled_from([None, *FIELDS]))
@settings(quick, max_examples=30)
def test_units_are_the_rows_or_the_values_that_are_there(opened, table, unit):
    engine, rows = opened(table)
    there = (
        {row[unit] for row in rows if row[unit] is not None and row[unit] == row[unit]}
        if unit
        else rows
    )
    assert engine.units(unit).reveal() == len(there)


def test_far_and_infinite_dates_are_missing_and_name_units(request, opened):
    """Beyond the years 1 to 9999, in every type that reaches there, up to its ends."""
    kinds = {"date": 5874897, "timestamp": 294247, "timestamptz": 294247}
    if opened is in_memory:
        kinds |= {"date": 5881580, "timestamp_s": 290308, "timestamp_ms": 290308}
    for kind, year in kinds.items():
        days = [
            "infinity",
            "-infinity",
            f"{year - 1}-01-01",
            "10000-01-01",
            "0044-03-15 (BC)",
            "9999-12-31",
            "0001-01-01",
        ]
        engine = far_dates(
            kind, days, None if opened is in_memory else request.getfixturevalue("postgres")
        )
        there = ask.Column("x", "date")
        parts = [ask.Part("year", there), ask.Truncated("week", there), ask.Cast(there, "text")]
        measures = (Rows(there), *(Rows(ask.Negation(ask.Missing(part))) for part in parts))
        assert engine.fetch(Request(measures)).reveal() == [[4]] * 4, kind
        assert engine.fetch(Request((Rows(), Units()), unit="x", max_rows=1)).reveal() == [
            [7],
            [7],
        ], kind
        assert engine.units("x").reveal() == 7, kind
        assert engine.discover(ask.Column("n", "number"), "x", 1).reveal() == {1: 7}, kind
        assert engine.version() == engine.version()


def far_dates(kind, days, server):
    """An engine over two rows for each date."""
    if server is None:
        rows = ", ".join(f"(CAST('{day}' AS {kind}), 1)" for day in [*days, *days])
        return DuckDB(f"SELECT * FROM (VALUES {rows}) AS t(x, n)")  # noqa: S608
    rows = ", ".join(
        f"(CAST('{day.replace('(BC)', 'BC')}' AS {kind}), 1)" for day in [*days, *days]
    )
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS far")
        connection.execute(f"CREATE TABLE far AS SELECT * FROM (VALUES {rows}) AS t(x, n)")  # noqa: S608
    return PostgreSQL(f"{server}#far")


def test_texts_that_are_too_long_are_missing_and_nobody_s(opened):
    engine, rows = opened(pa.table({"x": ["a", *LONG_TEXTS, *LONG_TEXTS], "n": [1] * 7}))
    text = ask.Column("x", "text")
    texts = [ask.Function(name, (text,)) for name in ("lower", "trim", "length")]
    measures = tuple(
        map(
            Rows,
            [text, *texts, ask.Missing(text), ask.Likeness(text, "%a%"), ask.Cast(text, "number")],
        )
    )
    request = Request(
        measures, (Group("x", text, ("a", LONG_TEXTS[1]), "other"),), unit="x", max_rows=1
    )
    assert engine.fetch(request).reveal() == reference.fetch(request, rows)
    free = Request(measures)
    assert (
        engine.fetch(free).reveal()
        == reference.fetch(free, rows)
        == [[3], [3], [3], [3], [4], [3], [0]]
    )
    assert engine.units("x").reveal() == 2
    assert engine.discover(ask.Column("x", "text"), "n", 5).reveal() == dict.fromkeys(
        ["a", LONG_TEXTS[0]], 1
    )
    assert engine.discover(ask.Column("n", "number"), "x", 5).reveal() == {1: 2}


def test_texts_are_read_as_declared(opened):
    check_declared_texts(opened)


def test_many_bins_are_found_in_their_order(odd):
    engine, rows = odd
    edges = tuple(Fraction(index, 7) for index in range(-400, 401))
    for size in (31, 41, 251, 801):
        some = edges[:size]
        bins = Group(
            "real", ask.Column("real", "number"), tuple(map(str, some[:-1])), "other", some
        )
        request = Request((Rows(),), (bins,))
        assert engine.fetch(request).reveal() == reference.fetch(request, rows), size


def test_octaves_are_exact_and_each_unit_is_in_one(opened):
    check_octaves(opened)


def test_the_statement_of_a_report_has_the_integers_of_the_reference(opened):
    check_report(opened)


def test_what_custodians_look_at_is_counted(opened):
    check_custodians_counts(opened)
