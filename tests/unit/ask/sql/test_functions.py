"""Days between dates, and labels of months: by DuckDB's own functions, and with ranges that follow
from bounds.
"""

from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Policy, QueryRefused
from discreet.ask.expression import ColumnType
from discreet.ask.query import Moment
from discreet.ask.sql import parse, parse_condition
from discreet.verify import reference

COLUMNS = {
    "a": {"bounds": [date(2024, 1, 15), date(2024, 3, 2)]},
    "b": {"bounds": [date(2024, 1, 1), date(2025, 12, 31)]},
    "free": {},
}
SCHEMA = dict.fromkeys(COLUMNS, ColumnType("date", False, "TIMESTAMP"))
POLICY = Policy(source="t.parquet", epsilon=1, columns=COLUMNS)
UNITS = ["year", "quarter", "month", "day", "hour"]

moments = st.one_of(
    st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
    st.sampled_from(
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23)]  # noqa: DTZ001
    ),
)


def value_of(words: str, a: datetime, b: datetime):
    """The value of an expression, by the slow reference."""
    comparison = parse_condition(f"{words} IS NULL", POLICY, SCHEMA)
    return reference.evaluate(comparison.part, {"a": a, "b": b, "free": a})


@settings(max_examples=60, deadline=None)
@given(a=moments, b=moments)
def test_differences_and_labels_are_those_of_duckdb(a, b):
    for unit in UNITS:  # but for weeks, of which DuckDB counts one less when it goes back
        [(expected,)] = duckdb.execute(
            f"SELECT date_diff('{unit}', ?::TIMESTAMP, ?::TIMESTAMP)", [a, b]
        ).fetchall()
        assert value_of(f"date_diff('{unit}', a, b)", a, b) == expected, unit
    mondays = [moment.date().toordinal() - moment.weekday() for moment in (a, b)]
    assert value_of("date_diff('week', a, b)", a, b) == (mondays[1] - mondays[0]) / 7
    assert value_of("b - a", a, b) == (b.date() - a.date()).days
    for written in ("%Y-%m", "%Y", "%Y-%m-%d"):
        expected = a.date().isoformat()[: {"%Y": 4, "%Y-%m": 7}.get(written, 10)]
        assert value_of(f"strftime(a, '{written}')", a, b) == expected


@pytest.mark.parametrize(
    ("words", "lower", "upper"),
    [
        ("b - a", -61, 716),
        ("date_diff('day', a, b)", -61, 716),
        ("date_diff('day', DATE '2024-01-01', a)", 14, 61),
        ("date_diff('year', a, b)", 0, 1),
        ("least(greatest(b - a, 0), 60)", 0, 60),
        ("a - '2024-01-01'", 14, 61),
    ],
)
def test_the_bounds_of_a_difference_follow_from_those_of_the_dates(words, lower, upper):
    query = parse(f"SELECT avg({words}) AS days FROM t", POLICY, SCHEMA)  # noqa: S608
    [(_, aggregate)] = query.aggregates
    assert isinstance(aggregate, Moment)
    assert (aggregate.lower, aggregate.upper, aggregate.whole) == (
        Fraction(lower),
        Fraction(upper),
        True,
    )


def test_a_label_has_the_keys_of_its_period():
    def keys(group: str):
        [group] = parse(f"SELECT {group} AS g, count(*) FROM t GROUP BY g", POLICY, SCHEMA).groups  # noqa: S608
        return tuple(group.keys)

    months = ("2024-01", "2024-02", "2024-03")
    assert (
        keys("strftime(a, '%Y-%m')")
        == keys("strftime('%Y-%m', a)")
        == keys("to_char(a, 'YYYY-MM')")
        == months
    )
    assert keys("date_format(b, 'yyyy')") == ("2024", "2025")
    assert keys("strftime(a, '%Y-%m-%d')")[::47] == ("2024-01-15", "2024-03-02")
    assert keys("CAST(date_trunc('quarter', a) AS VARCHAR)") == ("2024-01-01",)
    assert keys("CAST(date_trunc('week', a) AS VARCHAR)")[:2] == ("2024-01-15", "2024-01-22")
    for refused in (
        "strftime(free, '%Y-%m')",
        "CAST(a AS VARCHAR)",
        "substring(CAST(a AS VARCHAR), 1, 7)",
    ):
        with pytest.raises(
            QueryRefused, match=r"needs bounds|has no keys .*STRFTIME\(day, '%Y-%m'\)"
        ):
            keys(refused)
