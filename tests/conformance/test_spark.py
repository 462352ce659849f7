"""Spark gives the integers of the slow reference: two executor processes, ANSI mode on and off, an
odd time zone.

A query takes a second here, so that many expressions are asked in one.
"""

from __future__ import annotations

import time
from datetime import datetime
from fractions import Fraction
from functools import reduce

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conforming import (
    GRIDS,
    KINDS,
    LONG_TEXTS,
    NAMES,
    beside_expected,
    check_custodians_counts,
    check_declared_texts,
    check_octaves,
    check_report,
    corners,
    expressions,
    functions,
    on_spark,
    requests,
    same,
    tables,
)
from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.engines.base import Cells, OnGrid, Present, Request, Rows, Squares, Total, Units
from discreet.engines.choose import engine_of
from discreet.engines.spark import Spark
from discreet.engines.textfiles import Layout
from discreet.errors import EngineFailed, InvalidParameter
from discreet.verify import reference
from waiting import PATIENCE

pytestmark = pytest.mark.spark

NUMBER = ask.Column("real", "number")

few = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def opened(spark):
    return on_spark(spark)


@pytest.fixture(scope="module")
def odd(opened):
    """Every odd value of every column, in Spark and as rows."""
    return opened(corners())


USUAL = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""Settings as Spark has them; where codegen is off, expressions are interpreted."""
OTHER = {
    **USUAL,
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
}
OTHER |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.mark.parametrize("configuration", [USUAL, OTHER], ids=["usual", "other"])
def test_every_function_has_the_very_values_of_the_reference(spark, opened, configuration):
    table, measures, answers = beside_expected(corners(), functions())
    engine, before = opened(table)[0], {name: spark.conf.get(name) for name in configuration}
    for name, value in configuration.items():
        spark.conf.set(name, value)
    try:  # with 60 at once, the generated code is short enough to be compiled
        for start in range(0, len(measures), 60):
            batch = measures[start : start + 60]
            found = engine.fetch(Request(tuple(batch))).reveal()
            for measure, expected, got in zip(batch, answers[start:], found, strict=False):
                assert got == expected, measure
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@given(
    table=tables(),
    asked=st.lists(st.sampled_from(sorted(KINDS)).flatmap(expressions), min_size=8, max_size=8),
    numbers=st.lists(expressions("number"), min_size=3, max_size=3),
)
@few
def test_expressions_have_the_values_of_the_reference_on_every_row(opened, table, asked, numbers):
    sums = (Total(OnGrid(number, grid, None)) for number in numbers for grid in GRIDS)
    request = Request((*map(Rows, asked), *sums, Cells(OnGrid(numbers[0], GRIDS[1], 0))))
    engine, rows = opened(table)
    assert same(engine.fetch(request).reveal(), reference.fetch(request, rows))


@given(table=tables(), request_=requests())
@settings(few, max_examples=12)
def test_a_request_has_the_integers_of_the_reference(opened, table, request_):
    engine, rows = opened(table)
    assert same(engine.fetch(request_).reveal(), reference.fetch(request_, rows))


def test_columns_as_they_are_have_exact_sums_of_every_kind(odd):
    engine, rows = odd
    columns = [ask.Column(name, "number") for name in KINDS["number"]]
    grids = [
        OnGrid(column, grid, missing)
        for column in columns
        for grid in GRIDS[:4]
        for missing in (None, grid.upper)
    ]
    request = Request(tuple(measure(one) for one in grids for measure in (Total, Squares, Present)))
    assert engine.fetch(request).reveal() == reference.fetch(request, rows)


@pytest.mark.parametrize("unit", ["name", "day", "zoned", "moment", "flag", "huge", "real"])
def test_units_above_a_limit_keep_the_rows_of_the_reference(odd, unit):
    engine, rows = odd
    measures = (Rows(), Units(), Total(OnGrid(ask.Column("whole", "number"), GRIDS[0], None)))
    groups = (Group("name", ask.Column("name", "text"), tuple(NAMES), "other"),)
    request = Request(measures, groups, unit=unit, max_rows=4, max_groups=2)
    assert engine.fetch(request).reveal() == reference.fetch(request, rows)


def test_many_bins_and_keys_of_every_kind_are_found(odd):
    engine, rows = odd
    edges = tuple(Fraction(index, 7) for index in range(-400, 401))
    bins = Group("real", ask.Column("real", "number"), tuple(map(str, edges[:-1])), "other", edges)
    moments = (datetime(1, 1, 1), datetime(2023, 12, 31, 23, 59, 59), datetime(2024, 1, 1))  # noqa: DTZ001
    zoned = Group("zoned", ask.Column("zoned", "date"), moments, "other")
    for groups in ((bins,), (zoned, Group("flag", ask.Column("flag", "truth"), (False, True)))):
        request = Request((Rows(),), groups)
        assert engine.fetch(request).reveal() == reference.fetch(request, rows)


def test_units_keys_and_versions(spark, opened, odd):
    engine, rows = odd
    for unit in ("name", "real"):
        assert engine.units(unit).reveal() == len(
            {row[unit] for row in rows if row[unit] is not None and row[unit] == row[unit]}
        )
    found = engine.discover(ask.Column("tiny", "number"), "name", 2).reveal()
    assert set(found) <= {-128, 0, 127}
    assert sum(found.values()) <= 2 * len(NAMES)
    names = engine.discover(ask.Column("name", "text"), None, 1).reveal()
    assert names == {name: sum(row["name"] == name for row in rows) for name in NAMES}
    before = engine.version()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert engine.version() == before
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    assert opened(corners(119))[0].version() != before


def test_nothing_is_left_in_the_session(spark, odd):
    before = dict(spark.conf.getAll)
    odd[0].fetch(Request((Rows(),), (Group("flag", ask.Column("flag", "truth"), (True,)),)))
    assert spark.catalog.listTables() == []
    assert dict(spark.conf.getAll) == before


def test_a_text_of_bytes_that_are_no_utf_8_raises_nothing(spark):
    frame = spark.sql(
        "SELECT CAST(unhex(x) AS STRING) AS name FROM VALUES ('FFFE'), ('6F6B'), ('636166C3') AS"
        " t(x)"
    )
    engine, name = Spark(frame), ask.Column("name", "text")
    measures = (
        Rows(ask.Likeness(name, "o%")),
        Rows(ask.Cast(name, "number")),
        Rows(ask.Function("upper", (name,))),
    )
    request = Request(
        (Rows(), *measures), (Group("name", name, ("ok",), "other"),), unit="name", max_rows=1
    )
    assert engine.fetch(request).reveal() == [[1, 0], [1, 0], [0, 0], [1, 0]]
    assert engine.discover(ask.Column("name", "text"), None, 1).reveal() == {"ok": 1}
    assert len(engine.version()) == 64


def test_a_source_is_a_frame_a_table_or_a_file(spark, tmp_path):
    pa.parquet.write_table(
        pa.table({"name": ["a", "b"], "raw": [[1], [2]]}), tmp_path / "people.parquet"
    )
    spark.read.parquet(str(tmp_path / "people.parquet")).createOrReplaceTempView("people")
    try:
        for source in (f"spark:{tmp_path}/people.parquet", "spark:people", spark.table("people")):
            engine = engine_of(source)
            assert list(engine.schema()) == ["name"]
            assert engine.units(None).reveal() == 2
    finally:
        spark.catalog.dropTempView("people")
    with pytest.raises((InvalidParameter, EngineFailed), match="Spark"):
        engine_of("spark:nothing_of_the_sort")


def test_a_statement_that_fails_is_told_without_sparks_words(spark):
    frame = spark.sql("SELECT IF(id = 3, raise_error('canary'), 'a') AS name FROM range(5)")
    with pytest.raises(
        EngineFailed,
        match=r"^a computation of the DataFrame or view that is the source fails: correct it",
    ) as caught:
        Spark(frame).fetch(Request((Rows(ask.Column("name", "text")),)))
    assert caught.value.__context__ is None


def test_far_dates_are_missing_and_name_units(spark):
    far = (2**31 - 1, -(2**31), 106_000_000, -107_000_000, 2_932_897, -719_163)
    days = ", ".join(f"({day})" for day in (*far, 2_932_896, -719_162, 0))
    frame = spark.sql(f"SELECT date_from_unix_date(x) AS x, 1 AS n FROM VALUES {days} AS t(x)")  # noqa: S608
    engine, there = Spark(frame.union(frame)), ask.Column("x", "date")
    parts = [ask.Part("year", there), ask.Truncated("week", there), ask.Cast(there, "text")]
    measures = (
        Rows(),
        Units(),
        Rows(there),
        *(Rows(ask.Negation(ask.Missing(part))) for part in parts),
    )
    assert engine.fetch(Request(measures[2:])).reveal() == [[6]] * 4
    assert engine.fetch(Request(measures, unit="x", max_rows=1)).reveal() == [[9], [9], *[[3]] * 4]
    far = spark.sql(
        "SELECT timestamp_micros(x) AS x FROM VALUES (9223372036854775807), (-9223372036854775808),"
        " (0) t(x)"
    )
    assert Spark(far).fetch(
        Request((Rows(there), Rows(parts[2])), unit="x", max_rows=1)
    ).reveal() == [[1], [1]]


def test_texts_that_are_too_long_are_missing_and_nobody_s(opened):
    engine, rows = opened(pa.table({"x": ["a", *LONG_TEXTS, *LONG_TEXTS]}))
    text = ask.Column("x", "text")
    measures = (Rows(text), Rows(ask.Function("trim", (text,))), Rows(ask.Missing(text)), Units())
    request = Request(
        measures, (Group("x", text, ("a", LONG_TEXTS[1]), "other"),), unit="x", max_rows=1
    )
    assert engine.fetch(request).reveal() == reference.fetch(request, rows)
    assert engine.discover(ask.Column("x", "text"), None, 5).reveal() == {"a": 1, LONG_TEXTS[0]: 2}


def test_texts_are_read_as_declared(opened):
    check_declared_texts(opened)


def test_octaves_are_exact_and_each_unit_is_in_one(opened):
    check_octaves(opened)


def test_what_custodians_look_at_is_counted(opened):
    check_custodians_counts(opened)


def test_times_in_milliseconds_are_refused_by_their_type(spark, tmp_path):
    """Spark multiplies by 1000, and a job fails where one time does not fit."""
    for unit, value in (("ms", 1000), ("ms", 2**62), ("us", 2**62)):
        file = tmp_path / f"a b {unit} {value}.PARQUET"
        times = pa.array([0, value], pa.int64()).cast(pa.timestamp(unit))
        pa.parquet.write_table(pa.table({"when": times, "n": [1, 2]}), file)
        for source in (
            f"spark:{file}",
            spark.read.parquet(str(file)).withColumnRenamed("when", "seen"),
        ):
            engine = engine_of(source, Layout(("n",)))
            name = "when" if isinstance(source, str) else "seen"
            assert list(engine.schema()) == (["n"] if unit == "ms" else [name, "n"])
            assert engine.version()
            if unit == "ms":
                with pytest.raises(
                    InvalidParameter,
                    match=f"the column '{name}' exists, and must be .*microseconds",
                ):
                    engine_of(source, Layout((name,)))


def test_the_statement_of_a_report_has_the_integers_of_the_reference(opened):
    check_report(opened)


def _terms(many):
    """a + 1 + 1 + …"""
    return reduce(
        lambda a, b: ask.Arithmetic("+", a, b), [ask.Constant(Fraction(1), "number")] * many, NUMBER
    )


def test_a_sum_of_many_terms_is_planned_as_fast_as_a_short_one(spark):
    """A term more made the optimizer six times as slow, in conditions and in keys: 100 s for four."""
    source = Spark(spark.createDataFrame([(1.0, "a"), (3.0, "b")], ["real", "name"]))
    unit = {"unit": "name", "max_rows": 1}

    def requests_of(many):
        keys = Group("sums", _terms(many), [Fraction(many + 1), Fraction(many + 2)])
        above = ask.Comparison(">", _terms(many), ask.Constant(Fraction(many + 2), "number"))
        yield Request(measures=(Rows(),), where=above), [[1]]
        yield Request(measures=(Rows(above),), groups=(keys,)), [[0, 0]]
        yield Request(measures=(Rows(),), groups=(keys,), **unit), [[1, 0]]

    seconds = {}
    for many in (1, 2, 12):  # the first is not timed: it compiles what all need
        started = time.perf_counter()
        for request, expected in requests_of(many):
            assert source.fetch(request).reveal() == expected
        seconds[many] = time.perf_counter() - started
    assert seconds[12] < 10 * seconds[2] + PATIENCE  # six times a term would be years


def test_columns_that_spark_takes_for_one_are_refused_if_they_are_in_use(spark):
    frame = spark.sql("SELECT 1D AS x, 2D AS X, 3D AS y")
    with pytest.raises(
        InvalidParameter, match="columns must have names that differ, got 'X' twice"
    ):
        Spark(frame, Layout(("x",)))
    assert Spark(frame, Layout(("y",))).units(None).reveal() == 1
