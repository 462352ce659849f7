"""SQL to queries: what is in the language, and the refusal of what is not."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import pytest

from asking import COLUMNS, POLICY, SCHEMA, one_text, query
from discreet.ask.expression import Column, Comparison, Constant, Expression, Missing, Negation
from discreet.ask.policy import Policy
from discreet.ask.query import (
    Aggregate,
    Combined,
    Count,
    CountUnits,
    Extreme,
    Moment,
    Named,
    Number,
    Quantiles,
)
from discreet.ask.query import (
    Test as Condition,
)
from discreet.ask.sql import parse, parse_condition
from discreet.errors import QueryRefused

AGE, INCOME = Column("age", "number"), Column("income", "number")
OLD = Comparison(">=", AGE, Constant(Fraction(65), "number"))
AGES = (Fraction(0), Fraction(120), True, None)
INCOMES = (Fraction(0), Fraction(10**6), False, Fraction(0))
HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("call", "aggregate"),
    [
        ("count(*)", Count()),
        ("count()", Count()),
        ("count(1)", Count()),
        ("count(age)", Count(AGE)),
        ("count(smoker)", Count(Negation(Missing(Column("smoker", "truth"))))),
        ("count_if(age IS NOT NULL)", Count(AGE)),
        ("count_if(age >= 65)", Count(OLD)),
        ("count(*) FILTER (WHERE age >= 65)", Count(OLD)),
        ("sum(age >= 65)", Count(OLD)),
        ("count(DISTINCT patient)", CountUnits()),
        ("count(DISTINCT (PATIENT))", CountUnits()),
        ("sum(age)", Moment("sum", AGE, *AGES)),
        ("avg(age)", Moment("mean", AGE, *AGES)),
        ("mean(income)", Moment("mean", INCOME, *INCOMES, precision=HALF)),
        ("avg(age >= 65)", Moment("mean", OLD, Fraction(0), Fraction(1), True, None)),
        ("var_pop(age)", Moment("variance", AGE, *AGES)),
        ("var_samp(age)", Moment("variance", AGE, *AGES, sample=True)),
        ("variance(age)", Moment("variance", AGE, *AGES, sample=True)),
        ("var(age)", Moment("variance", AGE, *AGES, sample=True)),
        ("stddev(age)", Moment("std", AGE, *AGES, sample=True)),
        ("stddev_samp(age)", Moment("std", AGE, *AGES, sample=True)),
        ("std(age)", Moment("std", AGE, *AGES, sample=True)),
        ("stddev_pop(age)", Moment("std", AGE, *AGES)),
        ("median(age)", Quantiles(AGE, (HALF,), *AGES)),
        ("quantile(age, 0.5)", Quantiles(AGE, (HALF,), *AGES)),
        ("quantile_cont(age, 0.5)", Quantiles(AGE, (HALF,), *AGES)),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY age)", Quantiles(AGE, (HALF,), *AGES)),
        ("min(age)", Extreme("min", AGE, *AGES)),
        ("max(age)", Extreme("max", AGE, *AGES)),
    ],
)
def test_aggregates_are_read(call: str, aggregate: Aggregate) -> None:
    found = query(f"SELECT {call} AS x FROM t").aggregates  # noqa: S608
    assert found == (("a1", aggregate),)


@pytest.mark.parametrize(
    ("expression", "lower", "upper", "whole"),
    [
        ("age + 1", 1, 121, True),
        ("1 - age", -119, 1, True),
        ("-age", -120, 0, True),
        ("age * age - age", -120, 14400, True),
        ("age / 2", 0, 60, False),
        ("age / (age + 1)", 0, 120, False),
        ("abs(age - 60)", 0, 60, True),
        ("floor(income / 1000)", 0, 1000, True),
        ("round(age / 7)", 0, 17, True),
        ("ceil(age / 7)", 0, 18, True),
        ("least(greatest(length(name), 1), 10)", 1, 10, True),
        ("CASE WHEN age > 3 THEN 1 WHEN age > 2 THEN age END", 0, 120, True),
        ("coalesce(age, -1)", -1, 120, True),
        ("month(day)", 1, 12, True),
        ("year(day)", 2020, 2021, True),
        ("least(greatest(CAST(name AS DOUBLE), 0), 9.5)", 0, "9.5", False),
        ("CAST(smoker AS INTEGER)", 0, 1, True),
        ("CAST(income AS INTEGER)", 0, 10**6, True),
    ],
)
def test_bounds_of_expressions_follow_from_those_of_columns(
    expression: str, lower: object, upper: object, whole: bool
) -> None:
    [(_, found)] = query(f"SELECT sum({expression}) FROM t").aggregates  # noqa: S608
    assert isinstance(found, Moment)
    assert (found.lower, found.upper, found.whole) == (Fraction(lower), Fraction(upper), whole)  # type: ignore[arg-type]
    assert found.missing is None


@pytest.mark.parametrize(
    ("item", "keys", "other"),
    [
        ("county", ("Suffolk", "Kings", "Bronx"), "elsewhere"),
        ("band", ("[0, 18)", "[18, 65)", "[65, 120]"), None),
        ("bin(age, -1.5, 0, 18)", ("[-1.5, 0)", "[0, 18]"), None),
        ("bin(income * 2, 0, 1, 2)", ("[0, 1)", "[1, 2]"), None),
        ("month(day)", tuple(range(1, 13)), None),
        ("date_part('quarter', day)", (1, 2, 3, 4), None),
        ("extract(isodow FROM day)", tuple(range(1, 8)), None),
        ("hour(day)", tuple(range(24)), None),
        ("year(day)", (2020, 2021), None),
        ("smoker", (False, True), None),
        ("age >= 65", (False, True), None),
        (
            "CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'grown' ELSE 'old' END",
            ("young", "grown", "old"),
            None,
        ),
        ("CASE WHEN age < 18 THEN 1 WHEN age < 20 THEN 1 END", (1,), None),
    ],
)
@pytest.mark.parametrize("shape", ["SELECT {0} AS k, count(*) FROM t GROUP BY {1}"])
@pytest.mark.parametrize("reference", ["1", "k", "{0}"])
def test_groups_have_keys_that_follow_from_the_policy(
    item: str, keys: tuple[object, ...], other: str | None, shape: str, reference: str
) -> None:
    found = query(shape.format(item, reference.format(item)))
    [group] = found.groups
    assert (group.name, tuple(group.keys), group.other) == ("g1", keys, other)
    assert found.outputs[0] == ("k", Named("g1"))


def test_months_between_the_bounds_of_a_date_are_keys() -> None:
    [group] = query("SELECT date_trunc('month', day), count(*) FROM t GROUP BY 1").groups
    assert len(group.keys) == 24
    assert group.keys[1] == datetime(2020, 2, 1)  # noqa: DTZ001
    for unit, count in (
        ("year", 2),
        ("quarter", 8),
        ("week", 105),
        ("day", 731),
        ("hour", 731 * 24 - 23),
    ):
        assert (
            len(
                query(f"SELECT date_trunc('{unit}', day), count(*) FROM t GROUP BY 1")  # noqa: S608
                .groups[0]
                .keys
            )
            == count
        )


def test_a_missing_key_counts_as_declared() -> None:
    columns = {**COLUMNS, "sex": {"keys": ["f", "m", "?"], "missing": "?"}}
    policy = Policy(source="x", table="t", epsilon=1, columns=columns)
    [group] = parse("SELECT sex, count(*) FROM t GROUP BY sex", policy, SCHEMA).groups
    assert group.of == parse_condition("COALESCE(sex, '?') = 'x'", policy, SCHEMA).left  # type: ignore[union-attr]


def test_what_is_done_to_released_numbers_is_read() -> None:
    found = query(
        """SELECT county AS place, sum(age) / count(*) AS mean, mean * 2 - 1, -count(*)
        FROM t GROUP BY county
        HAVING NOT (count(*) < 10 OR mean BETWEEN 1 AND 2) ORDER BY mean DESC, place, count(*) LIMIT 3"""
    )
    mean = Combined("/", Named("a2"), Named("a1"))
    assert found.outputs == (
        ("place", Named("g1")),
        ("mean", mean),
        (
            "mean * 2 - 1",
            Combined("-", Combined("*", mean, Number(Fraction(2))), Number(Fraction(1))),
        ),
        ("-count(*)", Combined("-", Number(Fraction(0)), Named("a1"))),
    )
    outside = Condition(
        "or",
        (Condition("<", (mean, Number(Fraction(1)))), Condition(">", (mean, Number(Fraction(2))))),
    )
    assert found.having == Condition(
        "and", (Condition(">=", (Named("a1"), Number(Fraction(10)))), outside)
    )
    assert found.order == ((mean, True), (Named("g1"), False), (Named("a1"), False))
    assert found.limit == 3


def test_several_quantiles_are_one_aggregate_with_a_column_each() -> None:
    found = query(
        "SELECT quantile(age, [0.75, 0.25]) AS q, median(age), quantile(age, [0.999]) FROM t"
    )
    [(name, one)] = found.aggregates
    assert isinstance(one, Quantiles)
    assert (name, one.shares) == ("a1", tuple(map(Fraction, ("0.25", "0.5", "0.75", "0.999"))))
    assert [(column, output.name) for column, output in found.outputs] == [  # type: ignore[union-attr]
        ("q_75", "a1.2"),
        ("q_25", "a1.0"),
        ("median(age)", "a1.1"),
        ("age_99.9", "a1.3"),
    ]


def test_a_histogram_is_a_count_by_bins() -> None:
    assert one_text("SELECT histogram(band) FROM t") == one_text(
        "SELECT band, count(*) FROM t GROUP BY band"
    )
    found = query("SELECT sex, histogram(age, 0, 18, 65) AS ages FROM t GROUP BY sex")
    assert [name for name, _ in found.outputs] == ["sex", "ages", "count"]


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("day >= '2020-01-31'", "DATE '2020-01-31' <= day"),
        (
            "day IN ('2020-01-31', '2020-02-01')",
            "day IN (DATE '2020-02-01', TIMESTAMP '2020-01-31 00:00:00')",
        ),
        ("name NOT LIKE 'a%'", "NOT name LIKE 'a%'"),
        ("age::VARCHAR = '3'", "CAST(age AS TEXT) = '3'"),
        ("CASE age WHEN 1 THEN smoker END", "CASE WHEN age = 1 THEN smoker ELSE NULL END"),
        ("SUBSTRING(name, 1, 2) = 'ab'", "substring(name FROM 1 FOR 2) = 'ab'"),
        ("len(name) = 1", "length(name) = 1"),
        ("year(day) = 2020", "date_part('year', day) = 2020"),
        ("ifnull(age, 0) > 1", "COALESCE(age, 0) > 1"),
        ("if(smoker, 1, 2) = 1", "CASE WHEN smoker THEN 1 ELSE 2 END = 1"),
        ("age ISNULL", "age IS NULL"),
        ("day < CAST('2020-01-31 12:30' AS DATE)", "day < '2020-01-31'"),
    ],
)
def test_conditions_are_read(condition: str, same: str) -> None:
    left: Expression = parse_condition(condition, POLICY, SCHEMA)
    assert left == parse_condition(same, POLICY, SCHEMA)


REFUSED = {
    "SELECT * FROM t": (
        "would release rows. Ask for count, sum, avg, variance, stddev, median, quantile, min"
        " or max"
    ),
    "SELECT t.* FROM t": "* would release rows",
    "SELECT age FROM t": "'age' would release rows",
    "SELECT sex, age FROM t": "'sex' would release rows",
    "SELECT sex, count(*) FROM t": "'sex' is beside an aggregate; add GROUP BY sex.",
    "SELECT sex, county, mean(age) FROM t": "add GROUP BY sex, county.",
    "SELECT count(*) FROM t ORDER BY sex": "add GROUP BY sex.",
    "SELECT age, count(*) FROM t GROUP BY county": "GROUP BY age needs keys or bins",
    "SELECT sex, count(*) FROM t GROUP BY county": (
        "'sex' is not grouped by; aggregate it, or add it to GROUP BY"
    ),
    "SELECT secret, count(*) FROM t GROUP BY secret": (
        "the policy declares no column 'secret'; declare it"
    ),
    "SELECT count(*) FROM t WHERE secret = 'x'": (
        "the policy declares no column 'secret'; declare it"
    ),
    "SELECT count(*) FROM t WHERE agee = 3": (
        "the policy declares no column 'agee'; did you mean age?"
    ),
    "SELECT count(*) FROM t ORDER BY secret": "the policy declares no column 'secret'",
    "SELECT count(*) FROM t HAVING max(secret) > 1": "the policy declares no column 'secret'",
    "SELECT count(*) FROM t WHERE patient = 'x'": (
        "'patient' identifies the unit, and may only be counted"
    ),
    "SELECT patient, count(*) FROM t GROUP BY patient": "'patient' identifies the unit",
    "SELECT count(DISTINCT county) FROM t": (
        "count(DISTINCT …) counts units only; write count(DISTINCT patient)"
    ),
    "SELECT count(DISTINCT patient, county) FROM t": "count(DISTINCT …) counts units only",
    "SELECT count(DISTINCT u.patient) FROM t": "there is no table 'u' here",
    "SELECT sum(name) FROM t": "sum needs a number, got a text",
    "SELECT max(day) FROM t": "max needs a number, got a date",
    "SELECT sum(band) FROM t": (
        "sum of band needs bounds; declare band = { bounds = [lower, upper] }"
    ),
    "SELECT sum(length(name)) FROM t": 'sum of LENGTH("name") has no bounds',
    "SELECT sum(income / age) FROM t": "limit it, as in LEAST(GREATEST(x, 0), 100)",
    "SELECT sum(3) FROM t": "sum of a constant needs no data",
    "SELECT variance(smoker) FROM t": "a condition has only a count or a proportion",
    "SELECT count(NULL) FROM t": "NULL has a kind only in",
    "SELECT quantile(age, 1.5) FROM t": "shares between 0 and 1",
    "SELECT quantile(age, age) FROM t": "a literal share",
    "SELECT count(*) FROM t WHERE age > 1 IS NULL": "two comparisons in a row are ambiguous",
    "SELECT count(*) FROM t WHERE 1 < age < 3": "two comparisons in a row are ambiguous",
    "SELECT name, count(*) FROM t GROUP BY name": (
        "GROUP BY name needs keys or bins; declare name = { keys = […] }"
    ),
    "SELECT upper(name), count(*) FROM t GROUP BY 1": "has no keys that follow from the policy",
    "SELECT bin(age), count(*) FROM t GROUP BY 1": "BIN takes a number and edges",
    "SELECT bin(age, 3, 2), count(*) FROM t GROUP BY 1": "edges must increase",
    "SELECT bin(age, 0, income), count(*) FROM t GROUP BY 1": "BIN takes literal edges",
    "SELECT CASE WHEN smoker THEN name END, count(*) FROM t GROUP BY 1": "literal results",
    "SELECT count(*) FROM t GROUP BY 2": "a position must be a whole number from 1 to 1",
    "SELECT county FROM t GROUP BY county": "the question has no aggregate; add count(*)",
    "SELECT 1 FROM t": "a constant needs no data",
    "SELECT count(*), count(*) FROM t": "two columns are called 'count(*)'",
    "SELECT county, count(*) + county FROM t GROUP BY county": (
        "a group's key is not a released number"
    ),
    "SELECT county, count(*) FROM t GROUP BY county HAVING county = 'x'": "select keys with WHERE",
    "SELECT count(*) FROM t HAVING smoker": "HAVING compares released numbers",
    "SELECT round(avg(age)) FROM t": "ROUND of a released number is not supported",
    "SELECT mode(age) FROM t": (
        "MODE is not supported. Ask for count, sum, avg, variance, stddev, median, quantile"
    ),
    "SELECT count(*) FROM t WHERE strftime(day, '%B') = 'May'": (
        "write STRFTIME(day, '%Y-%m'), or '%Y' or '%Y-%m-%d'"
    ),
    "SELECT count(*) FROM t WHERE date_diff(day, day, day) = 1": (
        "write DATE_DIFF('day', admitted, discharged)"
    ),
    "SELECT count(*) FROM t WHERE date_diff('minute', day, day) = 1": (
        "'minute' is not a part of a date"
    ),
    "SELECT avg(day) FROM t": (
        "DATE_DIFF('day', DATE '2020-01-31', day) counts days, YEAR(day) and MONTH(day) are"
    ),
    "SELECT count(*) FROM t WHERE day + 1 > day": (
        "+ needs a number, got a date; DATE_DIFF('day', DATE"
    ),
    "SELECT avg(CAST(day AS DOUBLE)) FROM t": (
        "a date is not a number; DATE_DIFF('day', DATE '2020-01-31', day)"
    ),
    "SELECT count(*) FROM t WHERE day - age > 3": "- needs a number, got a date",
    "SELECT count(*) FROM t WHERE cbrt(age) = 1": (
        "COALESCE, YEAR, QUARTER, MONTH, WEEK, DAY, ISODOW, HOUR"
    ),
    "SELECT count(*) FROM t WHERE lowr(name) = 'a'": (
        "'LOWR' is not supported; did you mean LOWER? Nothing"
    ),
    "SELECT avg(avg(age)) FROM t": "use aggregates in SELECT",
    "SELECT count(*) FROM t WHERE count(*) > 1": "use aggregates in SELECT",
    "SELECT count(*) FROM t WHERE age": "a condition is needed here, such as age >= 65",
    "SELECT count(*) FROM t WHERE age = '3'": "= needs values of one kind",
    "SELECT count(*) FROM t WHERE age = NULL": "write IS NULL",
    "SELECT count(*) FROM t WHERE smoker IS TRUE": "IS is supported with NULL only",
    "SELECT count(*) FROM t WHERE day > '2020-13-01'": "a date must be written as '2020-01-31'",
    "SELECT count(*) FROM t WHERE age IN ()": "IN needs at least one value",
    "SELECT count(*) FROM t WHERE age IN (1, band)": "IN takes literals",
    "SELECT count(*) FROM t WHERE name LIKE county": "LIKE takes a literal",
    "SELECT count(*) FROM t WHERE round(age, 2) = 1": "ROUND takes one number",
    "SELECT count(*) FROM t WHERE weekday(day) = 1": "ISODOW, with Monday as 1",
    "SELECT count(*) FROM t WHERE extract(epoch FROM day) = 1": "'EPOCH' is not a part of a date",
    "SELECT count(*) FROM t WHERE sqrt(age) = 1": "'SQRT' is not supported",
    "SELECT count(*) FROM t WHERE people.age = 1": "there is no table 'people' here",
    "SELECT count(*) FROM t WHERE CAST(age AS BLOB) = 1": "CAST supports DOUBLE, INTEGER",
    "SELECT count(*) FROM t WHERE CAST(age AS DECIMAL(3, 1)) = 1": "CAST supports DOUBLE, INTEGER",
    "SELECT count(*) FROM t WHERE age > 1e200": "between 1e-100 and 1e100",
    "SELECT count(*) FROM t WHERE 'a' || name = 'b'": "'||' is not supported",
    "SELECT count(*) FROM t WHERE trim(BOTH 'x' FROM name) = 'b'": "out of place after 'BOTH'",
    "SELECT count(*) FROM t WHERE trim(name, 'x') = 'b'": "of TRIM is not supported",
    "SELECT sum(age) FILTER (WHERE smoker) FROM t": "FILTER is supported with count(*) only",
    "SELECT quantile(age, 0.5, 1) FROM t": "a quantile needs a share between 0 and 1",
    "SELECT avg(age, 2) FROM t": "a second argument of AVG is not supported",
    "SELECT avg() FROM t": "AVG needs one argument, got none",
    "SELECT histogram(band), mean(age) FROM t": (
        "a histogram takes a column and must be asked alone"
    ),
    "SELECT round(mean(age)) FROM t": "ROUND of a released number is not supported",
    "SELECT count(*) FROM t WHERE CAST(name AS VARCHAR(3)) = 'a'": (
        "TIMESTAMP and BOOLEAN, without a length"
    ),
    "SELECT count(*) FROM t WHERE substring(name) = 'a'": "write SUBSTRING(name, 1, 3)",
    "SELECT count(*) FROM t WHERE date_trunc(month, day) = day": "write DATE_TRUNC('month', day)",
    "SELECT count(*) FROM t WHERE date_to_date_str(day, 1) = 'a'": (
        "'DATE_TO_DATE_STR' is not supported"
    ),
    "SELECT count(*) FROM t WHERE now() > day": "'NOW' is not supported",
    "SELECT count(*) FROM t WHERE bin(age, 0, 1) = 1": "write GROUP BY bin(age, 0, 18, 65)",
    "SELECT count(*) FROM t WHERE age IN [1]": "'[' is out of place after 'IN'",
    "SELECT count(*) FROM t WHERE [1, 2] = age": (
        "a list is supported for the shares of quantiles only"
    ),
    "SELECT count(*) FROM t WHERE age = 0x10": "'0x10' cannot be read as a number",
    "SELECT count(*) * 2twice FROM t": "'2twice' cannot be read as a number",
    "SELECT count(*) FROM t WHERE name = 'a": "the closing ' is missing",
    "SELECT count(*) FROM t /* a /* b */ c */": (
        "a comment is not closed, or contains another comment"
    ),
    "SELECT count(*)" + " + count(*)" * 200 + " FROM t": "nested too deeply",
    "SELECT count(*)": "FROM is missing",
    "SELECT count(*) FROM t, u": "joins and second tables are not supported",
    "SELECT count(*) FROM s.t": "a name with a schema is not supported",
    "SELECT count(*) FROM t LIMIT 0": "LIMIT takes a whole number",
    "SELECT count(*) FROM t LIMIT 1.5": "LIMIT takes a whole number",
    "SELECT histogram(age) FROM t": "needs keys or bins",
    "SELECT histogram(band), count(*) FROM t": "a histogram takes a column and must be asked alone",
    "SELECT quantile(age, [0.1, 0.2]) + 1 FROM t": (
        "several quantiles at once must be an item of SELECT"
    ),
    "": "only SELECT can be asked, got nothing",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_in_the_language_is_refused_by_name(text: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        query(text)
    assert REFUSED[text] in str(refusal.value)
    assert str(refusal.value).endswith("Nothing was spent.")


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("COUNT( * )", "count(*)"),
        ("people . County", "County"),
        ('"county"', "county"),
        ("Sum(age)/-COUNT(*)", "sum(age) / -count(*)"),
        ("count(*) - - 1", "count(*) - -1"),
        ("- -count(*)", "- -count(*)"),
        ("Avg( case when smoker then age end )", "avg(CASE WHEN smoker THEN age END)"),
        (
            "count(*)filter(where cast(name as double)in(1,.5))",
            "count(*) FILTER (WHERE CAST(name AS double) IN (1, .5))",
        ),
        ("sum(age) /* all */ * 2", "sum(age) * 2"),
        (
            "sum(age + 1) + sum(age + 2) + sum(age + 3) + sum(age + 4) + 5",
            "sum(age + 1) + sum(age + 2) + sum(age + 3) + sum(age + 4)…",
        ),
    ],
)
def test_a_column_without_a_name_is_called_as_it_is_written(item: str, name: str) -> None:
    assert (
        query(f"SELECT {item}, max(income) FROM t AS people GROUP BY county").outputs[0][0] == name  # noqa: S608
    )


def test_units_of_rows_are_counted_with_count_star() -> None:
    policy = Policy(source="x", table="t", epsilon=1, columns=COLUMNS)
    with pytest.raises(QueryRefused, match="use GROUP BY"):
        parse("SELECT count(DISTINCT patient) FROM t", policy, SCHEMA)


def test_a_quoted_name_is_exact_and_another_ignores_capitals() -> None:
    assert one_text("SELECT sum(AGE) FROM t") == one_text('SELECT sum("age") FROM t')
    with pytest.raises(QueryRefused, match="no column 'AGE'"):
        query('SELECT sum("AGE") FROM t')


def test_a_column_may_be_called_as_a_word_of_sql() -> None:
    policy = Policy(
        source="x",
        table="t",
        epsilon=1,
        columns={"sample": {"bounds": [0, 1]}, "group": {"bounds": [0, 1]}},
    )
    schema = {"sample": SCHEMA["age"], "group": SCHEMA["age"]}
    assert parse('SELECT sum(sample), sum("group") FROM t', policy, schema).aggregates
