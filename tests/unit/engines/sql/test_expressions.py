"""Expressions as trees: what is named, what is quoted, what stays small."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import duckdb
import pytest

from discreet.ask import expression as ask
from discreet.ask.expression import ColumnType
from discreet.engines.sql.expressions import Translator, constant, limited
from discreet.errors import InvalidParameter

SCHEMA = {
    "x": ColumnType("number", False, "DOUBLE"),
    "n": ColumnType("number", True, "INTEGER"),
    "t": ColumnType("text", False, "VARCHAR"),
    'odd "name" -- ;': ColumnType("text", False, "VARCHAR"),
}
X, T = ask.Column("x", "number"), ask.Column("t", "text")


def read(tree):
    return duckdb.sql(f"SELECT {tree.sql('duckdb')}").fetchall()[0][0]


@pytest.mark.parametrize(
    "value", ["", "'", "''; DROP TABLE x; --", "\\", "a\0b", "é\n%", '"', "{{x}}", "$1", "?"]
)
def test_a_text_is_read_back_as_it_was(value):
    assert read(constant(value, "text")) == value


@pytest.mark.parametrize(
    "value", [0.1, 1 / 3, 5e-324, 1e100, -1e-100, 123456789.123456789, 2.0**53, 1e22]
)
def test_a_number_is_read_back_as_the_same_double(value):
    assert read(constant(Fraction(value), "number")) == limited(Fraction(value))


def test_a_date_with_a_zone_is_taken_in_utc():
    zone = timezone(timedelta(hours=5, minutes=45))
    assert read(constant(datetime(2024, 1, 1, 5, 45, tzinfo=zone), "date")) == datetime(2024, 1, 1)  # noqa: DTZ001
    assert read(constant(datetime(1, 2, 3, 4, 5, 6, 7, tzinfo=UTC), "date")) == datetime(  # noqa: DTZ001
        1, 2, 3, 4, 5, 6, 7
    )


def test_a_missing_constant_has_the_type_of_its_kind():
    types = {"number": "DOUBLE", "text": "VARCHAR", "date": "TIMESTAMP", "truth": "BOOLEAN"}
    for kind, name in types.items():
        assert (
            duckdb.sql(f"SELECT typeof({constant(None, kind).sql('duckdb')})").fetchall()[0][0]
            == name
        )


def test_a_lone_surrogate_is_refused():
    with pytest.raises(InvalidParameter, match="lone surrogate"):
        constant("\ud800", "text")


def test_numbers_are_limited():
    assert limited(Fraction(10) ** 400) == 1e100
    assert limited(-(Fraction(10) ** 400)) == -1e100
    assert limited(Fraction(1, 10**400)) == 0.0


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InvalidParameter, match="must have the column 'nobody'"):
        Translator(SCHEMA).term(ask.Column("nobody", "number"))


def test_a_deep_expression_grows_by_a_layer_and_not_by_doubling():
    deep = X
    for _ in range(30):
        deep = ask.Arithmetic("+", deep, X)
    translator = Translator(SCHEMA)
    term = translator.term(deep)
    assert len(translator.layers) == 30
    assert (
        sum(len(tree.sql("duckdb")) for layer in translator.layers for tree in layer.values())
        < 50_000
    )
    assert len(term.tree.sql("duckdb")) < 2_000


def test_one_expression_is_computed_once():
    translator = Translator(SCHEMA)
    once = ask.Arithmetic("*", X, X)
    translator.term(ask.Function("floor", (once,)))
    before = sum(map(len, translator.layers))
    translator.term(ask.Function("abs", (once,)))
    translator.term(ask.Function("floor", (ask.Arithmetic("*", X, X),)))
    assert sum(map(len, translator.layers)) == before


def test_names_of_the_source_are_kept_out_of_the_trees():
    translator = Translator(SCHEMA)
    tree = translator.term(ask.Missing(ask.Column('odd "name" -- ;', "text"))).tree
    assert "odd" not in tree.sql("duckdb")
    assert translator.columns == {'odd "name" -- ;': "c0"}


def test_a_column_declared_in_another_kind_is_cast():
    assert Translator(SCHEMA).term(ask.Column("t", "number")).kind == "number"
    assert Translator(SCHEMA).term(ask.Column("n", "text")).kind == "text"
