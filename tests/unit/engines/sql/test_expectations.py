"""What we rely on in an engine is asked of it when it is opened, and refused by its name if it
differs.
"""

import duckdb
import numpy as np
import pytest
from sqlglot import exp

from discreet.engines import duckdb as ours
from discreet.engines.duckdb import DuckDB
from discreet.engines.postgres import PostgreSQL
from discreet.engines.spark import _CHECKED, Spark
from discreet.engines.sql import expectations
from discreet.engines.sql.expectations import QUESTIONS, ROWS
from discreet.engines.sql.postgres import PostgreSQLDialect
from discreet.engines.sql.spark import SparkDialect
from discreet.errors import EngineFailed
from discreet.verify import reference


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_known_answers_are_those_of_the_reference(question):
    rows = [{name: values[row] for name, (_, values) in ROWS.items()} for row in range(6)]
    expected = reference.fetch(question.request, rows)
    plain = [
        [part.tolist() if isinstance(part, np.ndarray) else part for part in answer]
        for answer in expected
    ]
    assert plain == [known for _, _, known in question.expectations]


def test_no_two_expectations_have_one_name():
    names = [name for question in QUESTIONS for name, _, _ in question.expectations]
    assert len(set(names)) == len(names) > 30


@pytest.mark.parametrize(
    ("macro", "name"),
    [
        ("isnan(x) AS false", "NaN in a sum"),
        ("greatest(a, b) AS CASE WHEN a > 0 THEN a ELSE b END", "GREATEST"),
        ("floor(x) AS trunc(x)", "FLOOR"),
        ("md5(x) AS 'same'", "the hash that chooses rows"),
        ("date_trunc(unit, x) AS x", "beginnings of months"),
    ],
)
def test_a_connection_with_other_functions_is_refused_by_what_differs(macro, name):
    connection = duckdb.connect()
    assert list(DuckDB(connection.sql("SELECT 1 AS x")).schema()) == ["x"]
    connection.execute(f"CREATE MACRO {macro}")
    with pytest.raises(
        EngineFailed, match=rf"^DuckDB [\d.]+ does not do what discreet relies on: .*{name}"
    ) as caught:
        DuckDB(connection.sql("SELECT 1 AS x"))
    assert caught.value.__context__ is None


@pytest.fixture
def fresh_statements():
    """Statements are written again after a change of a dialect, and after the test."""
    yield expectations._statement.cache_clear
    expectations._statement.cache_clear()


def test_a_connection_of_ours_is_asked_once(monkeypatch):
    DuckDB("SELECT 1 AS x")
    monkeypatch.setattr(ours, "check", lambda *_: pytest.fail("asked again"))
    DuckDB("SELECT 1 AS x")


def no_nan(*_):
    """A dialect's test for NaN that is never true."""
    return exp.false()


def test_a_server_that_differs_is_refused(postgres, monkeypatch, fresh_statements):
    assert PostgreSQL(f"{postgres}#pg_catalog.pg_class").schema()
    monkeypatch.setattr(PostgreSQLDialect, "is_nan", no_nan)
    fresh_statements()
    with pytest.raises(
        EngineFailed, match=r"^PostgreSQL \d+ does not do what .* relies on: .*NaN in a sum.*; use"
    ):
        PostgreSQL(f"{postgres}#pg_catalog.pg_class")


@pytest.mark.spark
def test_a_session_that_differs_is_refused_and_one_that_does_not_is_asked_once(
    spark, monkeypatch, fresh_statements
):
    assert Spark(spark.range(1)).schema()
    assert spark in _CHECKED
    monkeypatch.setattr(SparkDialect, "is_nan", no_nan)
    Spark(spark.range(1))
    _CHECKED.discard(spark)
    fresh_statements()
    with pytest.raises(
        EngineFailed, match=r"^Spark [\d.]+ does not do what .* relies on: .*NaN in a sum.*; use"
    ):
        Spark(spark.range(1))
