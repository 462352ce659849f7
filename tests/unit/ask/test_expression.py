"""The row language: kinds, refusals, and one text for all spellings."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.ask.expression import (
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    Column,
    Comparison,
    Constant,
    Every,
    Expression,
    Function,
    Likeness,
    Membership,
    Missing,
    Negation,
    Part,
    Some,
    Truncated,
)
from discreet.ask.kinds import kind_of
from discreet.ask.normal import canonical, decimal, normal
from discreet.errors import QueryRefused

NEW_YEAR = datetime(2020, 1, 1)  # noqa: DTZ001 - dates of the row language have no zone
AGE, NAME = Column("age", "number"), Column("name", "text")
DAY, SMOKER, OTHER = Column("day", "date"), Column("smoker", "truth"), Column("other", "truth")


def number(value: object) -> Constant:
    return Constant(Fraction(value), "number")  # type: ignore[arg-type]


OLD = Comparison(">=", AGE, number(65))


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (AGE, "number"),
        (Constant(None, "date"), "date"),
        (Arithmetic("/", AGE, number(0)), "number"),
        (OLD, "truth"),
        (Every((OLD, SMOKER)), "truth"),
        (Negation(SMOKER), "truth"),
        (Membership(NAME, (Constant("a", "text"),)), "truth"),
        (Missing(DAY), "truth"),
        (Likeness(NAME, "a%"), "truth"),
        (Case(((OLD, NAME),), Constant(None, "text")), "text"),
        (Coalesce((DAY, Constant(NEW_YEAR, "date"))), "date"),
        (Function("length", (NAME,)), "number"),
        (Function("substring", (NAME, number(1), number(2))), "text"),
        (Part("year", DAY), "number"),
        (Truncated("month", DAY), "date"),
        (Cast(AGE, "text"), "text"),
    ],
)
def test_every_expression_has_a_kind(expression: Expression, kind: str) -> None:
    assert kind_of(expression) == kind


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            Arithmetic("+", AGE, NAME),
            r"\+ needs a number, got a text; CAST\(… AS DOUBLE\) makes one",
        ),
        (Comparison("=", AGE, NAME), "= needs values of one kind, got a number and a text"),
        (Every((OLD, AGE)), "AND needs a condition, got a number"),
        (Negation(NAME), "NOT needs a condition"),
        (Membership(NAME, ()), "IN needs at least one value"),
        (Membership(NAME, (Constant(None, "text"),)), "IS NULL"),
        (Membership(AGE, (Constant("a", "text"),)), "IN needs values of one kind"),
        (Likeness(AGE, "a"), "LIKE needs a text"),
        (Likeness(NAME, "\0"), "NUL"),
        (Constant("\ud800", "text"), "lone surrogates"),
        (Case((), AGE), "CASE needs at least one WHEN"),
        (Coalesce(()), "COALESCE needs at least one argument"),
        (Coalesce((AGE, NAME)), "COALESCE needs values of one kind"),
        (Function("abs", (AGE, AGE)), "ABS needs one argument, got 2"),
        (Function("least", ()), "LEAST needs at least one"),
        (Function("lower", (AGE,)), "LOWER needs a text"),
        (
            Function("substring", (NAME, number(0), number(1))),
            "SUBSTRING needs a text and whole numbers",
        ),
        (Function("substring", (NAME, AGE, number(1))), "SUBSTRING needs a text and whole numbers"),
        (Part("year", NAME), "YEAR needs a date"),
        (Truncated("year", AGE), "DATE_TRUNC needs a date"),
        (Cast(DAY, "number"), "a date is not a number"),
        (number(10**101), "between 1e-100 and 1e100"),
        (Constant(Fraction(1), "text"), "1 is a number, not a text"),
    ],
)
def test_an_expression_without_a_kind_is_refused_with_what_works(
    expression: Expression, message: str
) -> None:
    with pytest.raises(QueryRefused, match=message) as refusal:
        kind_of(expression)
    assert str(refusal.value).endswith("Nothing was spent.")


def test_deep_and_long_expressions_are_refused_without_recursion() -> None:
    deep: Expression = SMOKER
    for _ in range(20_000):
        deep = Negation(deep)
    with pytest.raises(QueryRefused, match="50 levels"):
        canonical(deep)
    with pytest.raises(QueryRefused, match="1,000 parts"):
        kind_of(Some((SMOKER,) * 1_000))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Comparison(">", AGE, Column("x", "number")), Comparison("<", Column("x", "number"), AGE)),
        (Comparison("=", AGE, Column("x", "number")), Comparison("=", Column("x", "number"), AGE)),
        (OLD, Comparison("<=", number("65.0"), AGE)),
        (Negation(Comparison("=", AGE, number(1))), Comparison("<>", AGE, number(1))),
        (Negation(Negation(SMOKER)), SMOKER),
        (Every((OLD, Every((SMOKER, OLD)))), Every((SMOKER, OLD))),
        (Every((SMOKER, SMOKER)), SMOKER),
        (Every((SMOKER, Constant(True, "truth"))), SMOKER),
        (Some((SMOKER, Constant(True, "truth"))), Constant(True, "truth")),
        (
            Negation(Every((SMOKER, OLD))),
            Some((Comparison("<", AGE, number(65)), Negation(SMOKER))),
        ),
        (
            Membership(AGE, (number(2), number(1), number(2))),
            Membership(AGE, (number(1), number("2"))),
        ),
        (Membership(AGE, (number(1),)), Comparison("=", AGE, number(1))),
        (Comparison("=", SMOKER, Constant(True, "truth")), SMOKER),
        (Comparison("<>", SMOKER, Constant(True, "truth")), Negation(SMOKER)),
        (Arithmetic("+", AGE, number(1)), Arithmetic("+", number(1), AGE)),
        (Function("least", (AGE, number(1), AGE)), Function("least", (number(1), AGE))),
        (Coalesce((AGE, Coalesce((number(1), AGE)))), Coalesce((AGE, number(1)))),
        (Coalesce((AGE, Constant(None, "number"))), AGE),
        (Cast(AGE, "number"), AGE),
    ],
)
def test_spellings_of_one_expression_have_one_text(left: Expression, right: Expression) -> None:
    assert canonical(left) == canonical(right)
    assert normal(left) == normal(right)


def test_different_expressions_have_different_texts() -> None:
    texts = [
        canonical(expression)
        for expression in (
            Comparison("<", AGE, number(1)),
            Comparison("<=", AGE, number(1)),
            Comparison("<", AGE, Column("1", "number")),
            Comparison("=", NAME, Constant("1", "text")),
            Comparison("=", NAME, Constant("a' OR 'b", "text")),
            Some(
                (
                    Comparison("=", NAME, Constant("a", "text")),
                    Comparison("=", NAME, Constant("b", "text")),
                )
            ),
            Comparison("=", Column('na"me', "text"), Constant("1", "text")),
            Arithmetic("-", AGE, number(1)),
            Arithmetic("-", number(1), AGE),
            Arithmetic("+", Arithmetic("+", AGE, number(1)), number(2)),
            Arithmetic("+", AGE, Arithmetic("+", number(1), number(2))),
            Constant(None, "text"),
            Constant(None, "number"),
            Constant("NULL", "text"),
            Constant(True, "truth"),
            number(1),
            Cast(AGE, "text"),
            Cast(AGE, "truth"),
            Every((SMOKER, OTHER)),
            Some((SMOKER, OTHER)),
        )
    ]
    assert len(set(texts)) == len(texts)


CONDITIONS = st.recursive(
    st.sampled_from(
        [SMOKER, OTHER, OLD, Missing(AGE), Constant(True, "truth"), Constant(False, "truth")]
    ),
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Every(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts))),
        st.builds(Comparison, st.sampled_from(["=", "<>", "<", ">="]), inner, inner),
    ),
    max_leaves=8,
)
ROWS = st.fixed_dictionaries(
    {name: st.sampled_from([None, False, True]) for name in ("smoker", "other", "old", "miss")}
)


def value(expression: Expression, row: dict[str, bool | None]) -> bool | None:  # noqa: PLR0911 - one for each class
    """Three-valued logic, as SQL has it."""
    match expression:
        case Column(name, _):
            return row[name]
        case Constant(held, _):
            return held  # type: ignore[return-value]
        case Missing():
            return bool(row["miss"])
        case Negation(part):
            inner = value(part, row)
            return None if inner is None else not inner
        case Every(parts):
            values = [value(part, row) for part in parts]
            return False if False in values else None if None in values else True
        case Some(parts):
            values = [value(part, row) for part in parts]
            return True if True in values else None if None in values else False
        case Comparison(sign, left, right) if AGE in (left, right):
            old = row["old"]
            return old if sign == ">=" or old is None else not old
        case Comparison(sign, left, right):
            one, two = value(left, row), value(right, row)
            if one is None or two is None:
                return None
            signs = {"=": one == two, "<>": one != two, "<": one < two, ">=": one >= two}
            return {**signs, ">": one > two, "<=": one <= two}[sign]
    raise AssertionError(expression)


@given(CONDITIONS, ROWS)
def test_the_normal_form_means_the_same_in_three_valued_logic(
    condition: Expression, row: dict[str, bool | None]
) -> None:
    assert value(normal(condition), row) == value(condition, row)
    assert normal(normal(condition)) == normal(condition)


@given(st.fractions())
def test_a_decimal_reads_back_as_the_number(fraction: Fraction) -> None:
    assert Fraction(decimal(fraction)) == fraction
