"""A request as one SELECT: what it contains, what it refuses, and how its rows become an answer."""

from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from discreet.ask import expression as ask
from discreet.ask.expression import ColumnType
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines.base import Cells, OnGrid, Present, Request, Rows, Squares, Total, Units
from discreet.engines.sql.dialect import KEYS, SOURCE
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.postgres import POSTGRESQL
from discreet.engines.sql.spark import SPARK
from discreet.engines.sql.statement import statement
from discreet.errors import InvalidParameter

SCHEMA = {
    "age": ColumnType("number", False, "DOUBLE"),
    "n": ColumnType("number", True, "BIGINT"),
    "county": ColumnType("text", False, "VARCHAR"),
    "person": ColumnType("text", False, "VARCHAR"),
}
AGE = OnGrid(ask.Column("age", "number"), value_grid((Fraction(0), Fraction(120)), bits=30), None)
COUNTY = ask.Column("county", "text")


def run(request, table):
    wanted = statement(request, SCHEMA)
    with duckdb.connect() as connection:
        connection.register(SOURCE, table)
        connection.register(KEYS, wanted.keys if wanted.keys is not None else pa.table({"k": [0]}))
        return wanted.answer([connection.sql(wanted.sql).to_arrow_table()])


def table(**columns):
    types = {"age": pa.float64(), "n": pa.int64(), "county": pa.string(), "person": pa.string()}
    size = len(next(iter(columns.values())))
    return pa.table(
        {name: pa.array(columns.get(name, [None] * size), kind) for name, kind in types.items()}
    )


def test_it_is_one_select_and_holds_no_key():
    keys = tuple(f"a secret of county {index}" for index in range(3143))
    sql = statement(Request((Rows(), Total(AGE)), (Group("county", COUNTY, keys),)), SCHEMA).sql
    (tree,) = sqlglot.parse(sql, dialect="duckdb")
    assert isinstance(tree, sqlglot.exp.Select)
    assert "secret" not in sql
    assert len(sql) < 2_000


def test_rows_are_added_up_twice_only_where_keys_share_a_place() -> None:
    def groupings(other: str | None) -> int:
        return statement(
            Request((Rows(),), (Group("county", COUNTY, ("a", "b"), other),)), SCHEMA
        ).sql.count("GROUP BY")

    assert (groupings(None), groupings("rest")) == (1, 2)


def test_equal_facts_are_one():
    wanted = statement(Request((Total(AGE), Present(AGE), Squares(AGE), Rows(AGE.of))), SCHEMA)
    assert wanted.facts == ("f0", "f0", "f0", "f1")


def test_no_window_without_a_limit_and_none_over_all_rows_with_one():
    free = Request((Rows(),), (Group("county", COUNTY, ("a",)),), unit="person")
    limited = Request((Rows(),), (Group("county", COUNTY, ("a",)),), unit="person", max_rows=2)
    assert "OVER" not in statement(free, SCHEMA).sql
    assert "ANTI JOIN heavy" in statement(limited, SCHEMA).sql
    assert "SEMI JOIN heavy" in statement(limited, SCHEMA).sql


def test_groups_come_in_declared_order_with_zeros_and_the_other_one_last():
    groups = (
        Group("county", COUNTY, ("b", "a", "never"), other="rest"),
        Group("n", ask.Column("n", "number"), (Fraction(2), Fraction(1), Fraction(1, 2))),
    )
    data = table(county=["a", "b", "x", None, "a", "a"], n=[1, 2, 2, 1, 3, None])
    assert run(Request((Rows(),), groups), data) == [[1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0]]


@pytest.mark.parametrize("bins", [4, 40, 400])
def test_bins_are_closed_below_and_the_last_one_above(bins):
    edges = tuple(Fraction(index) for index in range(bins + 1))
    data = table(
        age=[-0.5, 0.0, 0.999, 1.0, bins - 1, bins, bins + 0.001, float("nan"), None, float("inf")]
    )
    group = Group("age", AGE.of, tuple(map(str, edges[:-1])), "other", edges)
    assert run(Request((Rows(),), (group,)), data) == [[2, 1, *[0] * (bins - 3), 2, 5]]


@pytest.mark.parametrize("bins", [3, 40, 400])
def test_of_equal_edges_the_last_opens_the_bin(bins):
    edges = (Fraction(0), Fraction(1), Fraction(1), *(Fraction(index) for index in range(2, bins)))
    group = Group("age", AGE.of, tuple(map(str, range(bins))), None, edges)
    assert run(Request((Rows(),), (group,)), table(age=[0.5, 1.0, 1.5]))[0][:3] == [1, 0, 2]


def test_sums_beyond_64_bits_are_exact():
    wide = OnGrid(
        ask.Column("n", "number"), ValueGrid(exponent=0, lower=0, upper=2**42, exact=True), None
    )
    data = table(n=[2**62] * 1000)
    assert run(Request((Total(wide), Squares(wide))), data) == [[1000 * 2**42], [1000 * 2**84]]


def test_cells_are_dense_and_leave_out_what_is_missing():
    grid = ValueGrid(exponent=0, lower=-1, upper=2, exact=True)
    of = ask.Column("age", "number")
    data = table(age=[-5.0, 0.0, 0.5, 9.0, None, float("nan")])
    dropped, replaced = run(
        Request((Cells(OnGrid(of, grid, None)), Cells(OnGrid(of, grid, 2)))), data
    )
    assert dropped[0].tolist() == [1, 1, 1, 1]
    assert replaced[0].tolist() == [1, 1, 1, 3]
    assert dropped[0].dtype == "int64"


def test_a_unit_keeps_at_most_its_rows_and_groups():
    data = table(person=["a"] * 50 + ["b", None], county=["x", "y"] * 25 + ["x", "x"])
    group = Group("county", COUNTY, ("x", "y"))
    (rows,) = run(Request((Rows(),), (group,), unit="person", max_rows=7), data)
    assert sum(rows) == 8
    rows, units = run(
        Request((Rows(), Units()), (group,), unit="person", max_rows=7, max_groups=1), data
    )
    assert sorted(rows) in ([0, 8], [1, 7])
    assert sum(units) == 2


def test_rows_of_undeclared_groups_do_not_use_up_the_limit():
    data = table(person=["a"] * 10, county=["never"] * 9 + ["x"])
    assert run(
        Request((Rows(),), (Group("county", COUNTY, ("x",)),), unit="person", max_rows=1), data
    ) == [[1]]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request((Rows(),), (Group("g", COUNTY, ("a", "a")),)), "must differ"),
        (Request((Rows(),), (Group("g", COUNTY, (Fraction(1),)),)), "of kind text"),
        (Request((Rows(),), (Group("g", AGE.of, (True,)),)), "of kind number"),
        (Request((Rows(),), (Group("g", AGE.of, (2**53, 2**53 + 1)),)), "must differ"),
        (
            Request((Rows(),), (Group("g", AGE.of, ("a",), None, (Fraction(1), Fraction(0))),)),
            "edges in order",
        ),
        (
            Request((Rows(),), (Group("g", COUNTY, ("a",), None, (Fraction(0), Fraction(1))),)),
            "need numbers",
        ),
        (
            Request(
                (
                    Squares(
                        OnGrid(
                            AGE.of, ValueGrid(exponent=0, lower=0, upper=2**43, exact=True), None
                        )
                    ),
                )
            ),
            "2⁴²",
        ),
        (
            Request(
                (
                    Total(
                        OnGrid(
                            AGE.of, ValueGrid(exponent=0, lower=0, upper=2**53, exact=True), None
                        )
                    ),
                )
            ),
            "2⁵²",
        ),
        (Request((Rows(ask.Column("nobody", "text")),)), "nobody"),
        (Request((Rows(),), unit="nobody"), "nobody"),
    ],
)
def test_what_cannot_be_fetched_is_refused_before_a_row_is_read(request_, message):
    with pytest.raises(InvalidParameter, match=message):
        statement(request_, SCHEMA)


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRESQL, SPARK], ids=lambda dialect: dialect.name)
def test_no_aggregate_hands_null_to_arithmetic(dialect):
    """Each sum stands in a CASE that says 0 for no values; all else is counted, or compared in
    HAVING.
    """
    types = {
        "duckdb": ("DOUBLE", "VARCHAR"),
        "postgres": ("double precision", "text"),
        "spark": ("double", "string"),
    }
    double, text = types[dialect.name]
    schema = {"age": ColumnType("number", False, double), "person": ColumnType("text", False, text)}
    values = [OnGrid(AGE.of, AGE.grid, missing) for missing in (None, 5)]
    small = ValueGrid(exponent=0, lower=0, upper=3, exact=True)
    measures = (
        Rows(),
        Units(),
        *(kind(value) for value in values for kind in (Total, Squares, Present)),
    )
    group = Group("person", ask.Column("person", "text"), ("a",), "other")
    for more in ({}, {"groups": (group,)}, {"unit": "person", "max_rows": 2, "max_groups": 1}):
        for asked in (measures, (*measures, Cells(OnGrid(AGE.of, small, None)))):
            tree = sqlglot.parse_one(
                statement(Request(asked, **more), schema, dialect).sql, dialect=dialect.name
            )
            for found in tree.find_all(sqlglot.exp.AggFunc):
                if isinstance(found, sqlglot.exp.Sum):
                    empty = f"CASE WHEN COUNT({found.this.sql()}) = 0 THEN 0 ELSE"
                    assert found.find_ancestor(sqlglot.exp.Case).sql().startswith(empty)
                elif isinstance(found, sqlglot.exp.Min | sqlglot.exp.Max):
                    assert found.find_ancestor(sqlglot.exp.Having)
                else:
                    assert found.key in {"count", "rownumber", "denserank", "grouping"}
