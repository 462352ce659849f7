"""TRUST 37 for tables in memory: no cell changes how another row is read, or whether a question is answered."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ask.expression import Column, Missing
from discreet.ask.policy import Policy
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import OnGrid, Request, Rows, Total
from discreet.engines.duckdb import DuckDB
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter
from discreet.release.study import Study

ITEMS = [
    None,
    3.5,
    float("nan"),
    float("inf"),
    Decimal("2.55"),
    Decimal("1e60"),
    2**70,
    10**5000,
    Fraction(1, 3),
    "three",
    "\ud800",
    b"\xff",
    True,
    date(2024, 2, 29),
    datetime.fromisoformat("2024-02-29T12:00"),
    np.float32(1.5),
    np.int8(3),
    [1],
    {},
    object(),
    pd.NaT,
    pd.NA,
]
"""What one cell of a column of objects may hold."""


def question(column: pd.Series, ledger) -> list:
    """All that a reader sees of a sum, but for its noise: what the plan says, or the refusal."""
    frame = pd.DataFrame({"x": column, "n": range(len(column))})
    policy = Policy(source=frame, epsilon=10, columns={"x": {"bounds": (0, 10)}})
    with Study(policy, ledger=ledger) as study:
        plan = study.sql("SELECT sum(x), count(x), avg(x) FROM data", epsilon=1)
        plan.release()
        return [(line.sensitivity, line.scale, line.step) for line in plan.lines]


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(type(item).__name__))
def test_an_object_in_a_frame_changes_nothing_for_the_others(tmp_path, item, kind):
    if isinstance(item, list | dict):
        kind = object  # pandas makes no category of what has no hash
    columns = [pd.Series(values, dtype=object).astype(kind) for values in ([1, 2, 3], [1, 2, item])]
    first, second = (question(column, tmp_path / str(index)) for index, column in enumerate(columns))
    assert first == second


def test_a_frame_of_objects_is_read_as_a_file_would_be():
    """The same numbers whether they are written as text or not; what is no number is missing."""
    cells = pd.Series([1, 2.5, "3", Decimal("4.5"), "x", None, True], dtype=object)
    study_of = Policy(source=pd.DataFrame({"x": cells}), epsilon=10, columns={"x": {"bounds": (0, 10)}})
    assert "x" in study_of.columns
    assert DuckDB(pd.DataFrame({"x": cells})).schema()["x"].kind == "text"


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_is_too_far(unit, zone):
    """The ends of 64 bits, in every unit; with a zone DuckDB would multiply them."""
    values = [2**62, -(2**62), 2**63 - 1, -(2**63), 0, None]
    table = pa.table({"x": pa.array(values, pa.int64()).cast(pa.timestamp(unit, zone)), "n": [1] * 6})
    engine = DuckDB(table)
    assert engine.fetch(Request((Rows(),))).reveal() == [[6]]
    assert engine.fetch(Request((Rows(),), unit="x", max_rows=1)).reveal()[0][0] >= 1


def test_a_time_in_milliseconds_of_a_parquet_file_is_refused_by_its_type(tmp_path):
    """DuckDB fails in the middle of a statement where one is too far: whatever the rows hold, it is not read."""
    for values in ([0, 1], [0, 2**62]):
        table = pa.table({"when": pa.array(values, pa.int64()).cast(pa.timestamp("ms")), "n": [1, 2]})
        pq.write_table(table, tmp_path / "rows.parquet")
        engine = DuckDB(str(tmp_path / "rows.parquet"))
        assert list(engine.schema()) == ["n"]
        assert engine.fetch(Request((Rows(),))).reveal() == [[2]]
        with pytest.raises(InvalidParameter, match="microseconds"):
            DuckDB(str(tmp_path / "rows.parquet"), Layout(("when",), None))


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
@pytest.mark.parametrize("source", ["file", "select", "relation"])
def test_the_smallest_and_largest_value_of_a_parquet_file_decide_nothing(tmp_path, writer, source):
    """They leave NaN out, and DuckDB would take it that there is none: one row would change what all NaN are."""
    path = tmp_path / "people.parquet"
    for value in (1.0, 0.0, float("inf"), None):
        table = pa.table({"age": pa.array([1.0, 1.0, value, *[float("nan")] * 50], pa.float64())})
        pq.write_table(table, path) if writer == "pyarrow" else pl.from_arrow(table).write_parquet(path)
        select = f"SELECT * FROM '{path}'"  # noqa: S608
        engine = DuckDB({"file": str(path), "select": select, "relation": duckdb.sql(select)}[source])
        age = Column("age", "number")
        on_grid = OnGrid(age, ValueGrid(exponent=0, lower=0, upper=100, exact=True), None)
        counted = [[2 + (value is not None)], [2 + (0 if value is None else min(100, int(min(value, 100))))]]
        measures = (Rows(age), Total(on_grid))
        assert engine.fetch(Request(measures)).reveal() == counted
        assert engine.fetch(Request((Rows(Missing(age)),))).reveal() == [[53 - counted[0][0]]]


def test_files_of_unequal_types_are_refused_by_their_types(tmp_path):
    """DuckDB would cast the second to the first, and fail for one row that does not fit."""
    for value in (60, 3 * 10**9):
        pq.write_table(pa.table({"age": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"age": pa.array([value], pa.int64())}), tmp_path / "b.parquet")
        with pytest.raises(InvalidParameter, match="same columns and types"):
            DuckDB(str(tmp_path))


@pytest.mark.parametrize("value", [1000, 2**62])
def test_times_in_milliseconds_that_polars_writes_are_not_read_either(tmp_path, value):
    frame = pl.DataFrame({"age": [30, 40], "seen": pl.Series([0, value]).cast(pl.Datetime("ms"))})
    nested = frame.with_columns(more=pl.struct(age=pl.Series([0, value]).cast(pl.Datetime("ms"))))
    nested.write_parquet(tmp_path / "rows.parquet")
    engine = DuckDB(str(tmp_path / "rows.parquet"))
    assert list(engine.schema()) == ["age"]
    assert engine.fetch(Request((Rows(),))).reveal() == [[2]]
