"""Questions in Python give the same query as in SQL."""

from __future__ import annotations

import math

import pytest

from asking import POLICY, SCHEMA, query
from discreet.ask.query import Query, canonical
from discreet.ask.questions import build
from discreet.ask.sql import parse
from discreet.ask.statistics import (
    Count,
    CountUnits,
    Histogram,
    Max,
    Mean,
    Median,
    Min,
    Proportion,
    Quantile,
    Question,
    Std,
    Sum,
    Variance,
)
from discreet.errors import InvalidParameter, QueryRefused


def asked(**options: object) -> Query:
    return build(POLICY, SCHEMA, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "call"),
    [
        (Count(), "count(*)"),
        (Count("age"), "count(age)"),
        (Count("age >= 65"), "count_if(age >= 65)"),
        (CountUnits(), "count(DISTINCT patient)"),
        (Sum("income / 1000"), "sum(income / 1000)"),
        (Mean("age"), "avg(age)"),
        (Variance("age"), "var_pop(age)"),
        (Variance("age", sample=True), "variance(age)"),
        (Std("age"), "stddev_pop(age)"),
        (Std("age", sample=True), "stddev(age)"),
        (Median("age"), "median(age)"),
        (Quantile("age", 0.9), "quantile(age, 0.9)"),
        (Quantile("age", "9/10"), "quantile(age, 0.9)"),
        (Min("age"), "min(age)"),
        (Max("age"), "max(age)"),
        (Proportion("age >= 65"), "avg(age >= 65)"),
    ],
)
def test_a_question_is_the_same_query_as_its_sql(question: Question, call: str) -> None:
    text = f"SELECT county, {call} AS x FROM t WHERE age >= 18 AND smoker GROUP BY county"  # noqa: S608
    assert asked(where="smoker AND 18 <= age", by="county", ask={"x": question}) == query(text)
    assert asked(where=["smoker", "age >= 18"], by=["county"], ask={"x": question}) == query(text)


def test_several_questions_and_groups_are_one_query() -> None:
    python = asked(
        by=["bin(age, 0, 18, 65) AS band", "sex"],
        ask={"n": Count(), "q": Quantile("age", [0.25, 0.75])},
    )
    sql = query(
        "SELECT bin(age, 0, 18, 65) AS band, sex, count(*) AS n, quantile(age, [0.25, 0.75]) AS q"
        " FROM t GROUP BY 1, 2"
    )
    assert python == sql


def test_a_histogram_is_the_same_query_as_its_sql() -> None:
    assert asked(ask={"ages": Histogram("band")}) == query("SELECT histogram(band) AS ages FROM t")
    assert canonical(asked(by="sex", ask={"ages": Histogram("age", [0, 18, 65])})) == canonical(
        query("SELECT histogram(age, 0, 18, 65), sex FROM t GROUP BY sex")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ask": {}}, "asks for no statistic"),
        ({"ask": {"x": "age"}}, "'x' must be a question such as"),
        ({"ask": {"x": Mean}}, "'x' must be a question such as"),
        ({"ask": {"x": Mean("secret")}}, "declares no column 'secret'"),
        ({"ask": {"x": Mean(3)}}, "an expression must be a text"),  # type: ignore[arg-type]
        ({"ask": {"x": Mean("age, age")}}, "a single expression is needed"),
        ({"ask": {"x": Mean("age FROM t")}}, "'FROM' is out of place"),
        ({"ask": {"x": Mean("age) FROM t --")}}, "cannot be read|out of place"),
        ({"ask": {"x": Mean("age AS y")}}, "not supported"),
        ({"ask": {"x": Proportion("age")}}, "a proportion needs a condition"),
        ({"ask": {"x": Quantile("age", 2)}}, "shares between 0 and 1"),
        ({"ask": {"x": Quantile("age", [])}}, "shares between 0 and 1"),
        ({"ask": {"x": Histogram("age")}}, "needs keys or bins"),
        ({"ask": {"x": Histogram("county")}}, "a histogram needs bins"),
        ({"ask": {"x": Histogram("band"), "y": Count()}}, "a histogram must be asked alone"),
        ({"ask": {"x": Count()}, "by": "sum(age)"}, "use aggregates in SELECT"),
        ({"ask": {"sex": Count()}, "by": "sex"}, "two columns are called 'sex'"),
        ({"ask": {"x": Count()}, "where": "age"}, "a condition is needed"),
        ({"ask": {"x": Count()}, "where": "1 = 1 GROUP BY x"}, "out of place"),
        ({"ask": {"x": Count()}, "where": ""}, None),
        ({"ask": {"x": Count()}, "where": [" "]}, "an expression must be a text"),
    ],
)
def test_a_question_outside_of_the_language_is_refused(
    options: dict[str, object], message: str | None
) -> None:
    if message is None:
        assert asked(**options).where is None
        return
    with pytest.raises(QueryRefused, match=message) as refusal:
        asked(**options)
    assert str(refusal.value).endswith("Nothing was spent.")


@pytest.mark.parametrize("share", [math.nan, "x", None, True])
def test_a_share_that_is_no_number_is_refused(share: object) -> None:
    with pytest.raises(InvalidParameter, match="share must be a finite number"):
        asked(ask={"x": Quantile("age", share)})


@pytest.mark.parametrize("end", ["_low", "_high"])
def test_a_name_of_the_end_of_an_interval_is_refused(end):
    with pytest.raises(QueryRefused, match=f"'n{end}' is the name of an interval end of 'n'"):
        parse(" ".join(["SELECT count(*) AS n, sum(age) AS", f"n{end}", "FROM t"]), POLICY, SCHEMA)
    with pytest.raises(QueryRefused, match=f"'n{end}' is the name of an interval end of 'n'"):
        build(POLICY, SCHEMA, where=(), by=(), ask={"n": Count(), f"n{end}": Sum("age")})


@pytest.mark.parametrize("clause", ["sum(age) * 1e400", "sum(age) - 1e301"])
def test_a_number_beyond_the_doubles_is_refused(clause):
    with pytest.raises(QueryRefused, match="at most 1e300"):
        parse(" ".join(["SELECT", clause, "AS x FROM t"]), POLICY, SCHEMA)
    with pytest.raises(QueryRefused, match="at most 1e300"):
        parse("SELECT count(*) AS n FROM t HAVING count(*) > 1e400", POLICY, SCHEMA)


def test_bins_that_are_no_list_are_refused():
    with pytest.raises(InvalidParameter, match="bins must be at least two edges"):
        build(POLICY, SCHEMA, where=(), by=(), ask={"h": Histogram("age", 1e9)})
