"""TRUST 37 for tables in memory: no cell changes how another row is read, or whether a question is
answered.
"""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ask.expression import Column, Comparison, Constant, Missing
from discreet.ask.policy import Policy
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import OnGrid, Request, Rows, Total
from discreet.engines.choose import engine_of
from discreet.engines.duckdb import DuckDB
from discreet.engines.textfiles import Layout
from discreet.errors import InvalidParameter
from discreet.release.study import Study
from studies import Paper


class Hostile:
    """An object that fails whatever is asked of it."""

    def __str__(self):
        raise LookupError("secret")

    __eq__ = __ne__ = __bool__ = __str__
    __hash__ = object.__hash__


class HostileNumber(int):
    def __str__(self):
        return "\ud800"


class HostileText(str):
    __slots__ = ()

    def encode(self, *_):
        raise RuntimeError("secret")

    def __ne__(self, other):
        raise ArithmeticError("secret")

    __hash__ = str.__hash__


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
    np.longdouble("1e4000"),
    np.int8(3),
    Hostile(),
    HostileNumber(7),
    HostileText("a"),
    [1],
    {},
    object(),
    pd.NaT,
    pd.NA,
]
"""What one cell of a column of objects may hold."""


def question(column: pd.Series) -> list:
    """All that a reader sees of a sum, but for its noise: what the plan says, or the refusal."""
    frame = pd.DataFrame({"x": column, "n": range(len(column))})
    policy = Policy(source=frame, epsilon=10, columns={"x": {"bounds": (0, 10)}})
    plan = Study(policy, ledger=Paper(10)).sql(
        "SELECT sum(x), count(x), avg(x) FROM data", epsilon=1
    )
    plan.release()
    return [(line.sensitivity, line.scale, line.step) for line in plan.lines]


def objects(kind, *values) -> pd.Series:
    return pd.Series(values, dtype=object).astype(kind)


@cache
def plain(kind) -> list:
    """The same of numbers alone."""
    return question(objects(kind, 1, 2, 3))


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(type(item).__name__))
def test_an_object_in_a_frame_changes_nothing_for_the_others(item, kind):
    if isinstance(item, list | dict):
        kind = object  # pandas makes no category of what has no hash
    assert question(objects(kind, 1, 2, item)) == plain(kind)


def test_a_frame_of_objects_is_read_as_a_file_would_be():
    """The same numbers whether they are written as text or not; what is no number is missing."""
    cells = pd.Series([1, 2.5, "3", Decimal("4.5"), "x", None, True], dtype=object)
    study_of = Policy(
        source=pd.DataFrame({"x": cells}), epsilon=10, columns={"x": {"bounds": (0, 10)}}
    )
    assert "x" in study_of.columns
    assert DuckDB(pd.DataFrame({"x": cells})).schema()["x"].kind == "text"


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_is_too_far(unit, zone):
    """The ends of 64 bits, in every unit; with a zone DuckDB would multiply them."""
    values = [2**62, -(2**62), 2**63 - 1, -(2**63), 0, None]
    table = pa.table(
        {"x": pa.array(values, pa.int64()).cast(pa.timestamp(unit, zone)), "n": [1] * 6}
    )
    engine = DuckDB(table)
    assert engine.fetch(Request((Rows(),))).reveal() == [[6]]
    assert engine.fetch(Request((Rows(),), unit="x", max_rows=1)).reveal()[0][0] >= 1


def test_a_time_in_milliseconds_of_a_parquet_file_is_refused_by_its_type(tmp_path):
    """DuckDB fails in the middle of a statement where one is too far: whatever the rows hold, it is
    not read.
    """
    for values in ([0, 1], [0, 2**62]):
        table = pa.table(
            {"when": pa.array(values, pa.int64()).cast(pa.timestamp("ms")), "n": [1, 2]}
        )
        pq.write_table(table, tmp_path / "rows.parquet")
        engine = DuckDB(str(tmp_path / "rows.parquet"))
        assert list(engine.schema()) == ["n"]
        assert engine.fetch(Request((Rows(),))).reveal() == [[2]]
        with pytest.raises(InvalidParameter, match="microseconds"):
            DuckDB(str(tmp_path / "rows.parquet"), Layout(("when",), None))


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
@pytest.mark.parametrize("source", ["file", "select", "relation"])
def test_the_smallest_and_largest_value_of_a_parquet_file_decide_nothing(tmp_path, writer, source):
    """They leave NaN out, and DuckDB would take it that there is none: one row would change what
    all NaN are.
    """
    path = tmp_path / "people.parquet"
    for value in (1.0, 0.0, float("inf"), None):
        table = pa.table({"age": pa.array([1.0, 1.0, value, *[float("nan")] * 50], pa.float64())})
        (
            pq.write_table(table, path)
            if writer == "pyarrow"
            else pl.from_arrow(table).write_parquet(path)
        )
        select = f"SELECT * FROM '{path}'"  # noqa: S608
        engine = DuckDB(
            {"file": str(path), "select": select, "relation": duckdb.sql(select).materialize()}[
                source
            ]
        )
        age = Column("age", "number")
        on_grid = OnGrid(age, ValueGrid(exponent=0, lower=0, upper=100, exact=True), None)
        counted = [
            [2 + (value is not None)],
            [2 + (0 if value is None else min(100, int(min(value, 100))))],
        ]
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


def texts(column) -> dict:
    """What DuckDB has of a column of a frame: each text and how often it is there, and how many
    rows there are.
    """
    engine = DuckDB(
        pd.DataFrame({"x": column}) if isinstance(column, pd.Series) else pa.table({"x": column})
    )
    found = engine.discover(Column("x", "text"), None, 1).reveal()
    assert engine.fetch(Request((Rows(),))).reveal() == [[len(column)]]
    assert engine.fetch(Request((Rows(Missing(Column("x", "text"))),))).reveal() == [
        [len(column) - sum(found.values())]
    ]
    return found


def test_scalars_of_numpy_are_read_as_those_of_python():
    items = {
        "1.5": np.float64(1.5),
        "2.5": np.float16(2.5),
        "0.25": np.longdouble("0.25"),
        "-3": np.int8(-3),
        "18446744073709551615": np.uint64(2**64 - 1),
        "ä": np.str_("ä"),
        "true": np.bool_(True),
        "2024-02-29 00:00:00": np.datetime64("2024-02-29"),
        "2024-02-29 12:00:00.123456": np.datetime64("2024-02-29T12:00:00.123456789"),
    }
    missing = [
        pd.NaT,
        pd.NA,
        np.datetime64("NaT"),
        np.datetime64("NaT", "D"),
        np.float64("nan"),
        Decimal("NaN"),
    ]
    missing += [
        Decimal("sNaN"),
        np.timedelta64(5, "s"),
        np.complex128(1),
        np.bytes_(b"a"),
        np.array([1]),
        np.ma.masked,
    ]
    missing += [
        np.datetime64(10**6, "Y"),
        np.datetime64(2**62, "ms"),
        Hostile(),
        HostileText("a"),
        HostileNumber(1),
    ]
    column = pd.Series([*items.values(), *missing], dtype=object)
    assert texts(column) == dict.fromkeys(items, 1)


def unchecked(kind, unscaled):
    """Decimals of which Arrow does not check that they fit their type, as after a cast that is not
    safe.
    """
    size = kind.bit_width // 8
    raw = b"".join(number.to_bytes(size, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(raw)])


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        (pa.decimal128(4, 1), 10**20),
        (pa.decimal128(9, 0), -(10**9)),
        (pa.decimal128(18, 3), 2**100),
        (pa.decimal64(4, 1), 10**17),
        (pa.decimal128(38, 0), -(2**127)),
        (pa.decimal128(38, 38), 10**38),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", ["frame", "polars", "parquet", "relation"])
def test_a_decimal_beyond_its_type_is_missing_and_no_value_of_another_row(
    tmp_path, source, kind, odd
):
    """DuckDB left the value of the row 2,048 rows before it in its place, or failed at −2¹²⁷, which
    ended its work.
    """
    table = pa.table({"d": unchecked(kind, [5] * 2048 + [odd] * 3 + [-5])})
    if source == "polars" and kind.bit_width != 128:
        pytest.skip("polars has one size of decimals")
    if source in ("parquet", "relation") and abs(odd) < 2**127:
        pytest.skip("the bytes beyond the type are cut off where they are written")
    pq.write_table(table, tmp_path / "rows.parquet")
    opened = {
        "frame": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "parquet": lambda: str(tmp_path / "rows.parquet"),
        "relation": lambda: duckdb.connect().from_arrow(table).materialize(),
    }
    engine = DuckDB(opened[source](), Layout(("d",)))
    d = Column("d", "number")
    for request in (Request((Rows(Missing(d)), Rows(d))), Request((Rows(),), unit="d", max_rows=1)):
        counted = engine.fetch(request).reveal()
        assert counted == ([[3], [2049]] if request.unit is None else [[2]])
    assert engine.version()


def wide(path, digits, odd):
    """A Parquet file whose decimals of some digits have 16 bytes, as some writers make them; one
    value is odd.
    """
    rows = pa.table(
        {"d": pa.array(map(Decimal, (5, odd, 7)), pa.decimal128(38, 0)), "n": [1, 2, 3]}
    )
    pq.write_table(rows, path, store_schema=False, write_statistics=False, use_dictionary=["n"])
    raw = path.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    # the precision, as Thrift has it
    footer = raw[start:-8].replace(bytes([0x15, 2 * 38]), bytes([0x15, 2 * digits]))
    path.write_bytes(raw[:start] + footer + raw[-8:])
    assert pq.read_schema(path).field("d").type == pa.decimal128(digits, 0)
    return str(path)


@pytest.mark.parametrize("digits", [4, 9, 18])
def test_decimals_in_more_bytes_than_they_need_are_refused_by_their_type(tmp_path, digits):
    """DuckDB failed on a row whose value uses these bytes, before the spend or after it."""
    told = set()
    for odd in (6, 2**70, -(10**37)):
        file = wide(tmp_path / "rows.parquet", digits, odd)
        assert DuckDB(file, Layout(("n",))).units(None).reveal() == 3
        with pytest.raises(
            InvalidParameter, match=r"'d' exists, .* stored in more bytes than their digits need"
        ) as caught:
            DuckDB(file, Layout(("d",)))
        told.add(str(caught.value))
    assert len(told) == 1


def test_control_decimals_in_the_bytes_that_they_need_are_read(tmp_path):
    for digits in range(1, 39):
        rows = pa.table({"d": pa.array([Decimal(5), Decimal(7)], pa.decimal128(digits, 0))})
        for as_integers in (False, True):
            pq.write_table(rows, tmp_path / "rows.parquet", store_decimal_as_integer=as_integers)
            engine = DuckDB(str(tmp_path / "rows.parquet"), Layout(("d",)))
            assert engine.fetch(Request((Rows(Column("d", "number")),))).reveal() == [[2]]


@pytest.mark.spark
def test_long_decimals_that_spark_did_not_write_are_refused_by_their_type(spark, tmp_path):
    """Spark fails on a value beyond the precision of its column, which other writers let in."""
    told = set()
    for odd in (6, 10**37):
        file = wide(tmp_path / "rows.parquet", 30, odd)
        assert engine_of(f"spark:{file}", Layout(("n",))).units(None).reveal() == 3
        for source in (f"spark:{file}", spark.read.parquet(file)):
            with pytest.raises(
                InvalidParameter, match=r"'d' exists, .* more than 18 digits, which Spark did not"
            ) as caught:
                engine_of(source, Layout(("d",)))
            told.add(str(caught.value))
    assert len(told) == 1
    spark.sql("SELECT CAST(5 AS DECIMAL(30, 0)) AS d").write.parquet(str(tmp_path / "own.parquet"))
    for file in (f"{tmp_path}/own.parquet", wide(tmp_path / "short.parquet", 18, 2**70)):
        engine = engine_of(f"spark:{file}", Layout(("d",)))
        assert engine.fetch(Request((Rows(),))).reveal() == [[1 if "own" in file else 3]]


BAD = pa.Array.from_buffers(
    pa.string(), 3, pa.array([b"ok", b"\xff\xfe", b"caf\xc3"], pa.binary()).buffers()
)


@pytest.mark.parametrize(
    "column",
    [
        BAD,
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), BAD),
        pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.uint32()), BAD)]),
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["ok", None])),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\xff" * 16] * 3, pa.binary(16))),
        pd.Series(["ok", "\ud800", "\udfff"], dtype="string[python]"),
        pd.Series(["ok", "\ud800", "\udfff"], dtype=object),
    ],
    ids=lambda column: str(column.dtype if isinstance(column, pd.Series) else column.type)[:20],
)
def test_a_text_that_is_no_utf_8_is_missing(column):
    found = texts(column)
    assert found in ({"ok": 1}, {"ffffffff-ffff-ffff-ffff-ffffffffffff": 3})


def test_a_far_date_in_milliseconds_is_missing():
    """DuckDB counts days in 32 bits: 2³² days after 1970 would be 1970 again."""
    day = 86_400_000
    cells = [
        0,
        2**32 * day,
        -(2**32) * day,
        2932896 * day,
        2932897 * day,
        -719162 * day,
        -719163 * day,
        2**63 - 1,
        None,
    ]
    for column in (
        pa.array(cells, pa.int64()).cast(pa.date64()),
        pa.array(cells, pa.int64()).cast(pa.date64()).dictionary_encode(),
    ):
        engine = DuckDB(pa.table({"x": column}))
        x = Column("x", "date")
        assert engine.fetch(Request((Rows(Missing(x)),))).reveal() == [[6]]
        in_1970 = Comparison("<", x, Constant(datetime.fromisoformat("1970-01-02"), "date"))
        assert engine.fetch(Request((Rows(in_1970),))).reveal() == [[2]]
        assert engine.units("x").reveal() == 3


TYPES = {
    "complex": pd.Series([1j, 2]),
    "timedelta": pd.Series([pd.Timedelta(1), pd.Timedelta(2)]),
    "Sparse": pd.Series(pd.arrays.SparseArray([0, 1])),
    "period": pd.Series(pd.period_range("2020", periods=2)),
    "interval": pd.Series(pd.interval_range(0, 2)),
    "float128": pd.Series(np.array([1, 2], np.longdouble)),
    "Int128": pl.Series([1, 2]).cast(pl.Int128),
    "Object": pl.Series([object(), object()]),
    "Binary": pl.Series([b"a", b"b"]),
    "decimal256": pa.array([Decimal(1), Decimal(2)], pa.decimal256(70, 2)),
    "decimal128": pa.array([Decimal(100), Decimal(200)], pa.decimal128(38, -2)),
    "null": pa.array([None, None]),
    "struct": pa.array([{"a": "b"}, None]),
    "list": pa.array([[1], None]),
    "time32": pa.array([1, 2], pa.time32("s")),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]
    ),
    "dictionary": pa.array([b"a", b"b"]).dictionary_encode(),
    "extension": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "{"])),
}


@pytest.mark.parametrize("kind", TYPES)
def test_a_column_of_an_odd_type_is_refused_by_its_type_if_it_is_used_and_else_not_read(kind):
    column = TYPES[kind]
    module = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[
        type(column).__module__.split(".")[0]
    ]
    table = module({"x": column, "n": [1, 2]})
    engine = DuckDB(table, Layout(("n",)))
    assert list(engine.schema()) == ["n"]
    assert engine.fetch(Request((Rows(),), unit="n", max_rows=1)).reveal() == [[2]]
    with pytest.raises(
        InvalidParameter,
        match=rf"^the column 'x' exists, and must be a number.*: its type is {kind}",
    ):
        DuckDB(table, Layout(("X", "n")))


def test_half_floats_are_numbers():
    for table in (
        pa.table({"x": pa.array(np.array([1.5, np.nan], np.float16))}),
        pd.DataFrame({"x": pd.Series([1.5, np.nan], dtype="float16")}),
        pl.DataFrame({"x": pl.Series([1.5, None]).cast(pl.Float16)}),
    ):
        assert DuckDB(table).schema()["x"].kind == "number"
        assert DuckDB(table).fetch(Request((Rows(Missing(Column("x", "number"))),))).reveal() == [
            [1]
        ]


def test_a_file_without_a_column_that_can_be_read_is_refused(tmp_path):
    times = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"when": times, "more": [[1], [2]]}), tmp_path / "rows.parquet")
    with pytest.raises(
        InvalidParameter, match=r"must have a column that can be read; 'when': .*microseconds"
    ):
        DuckDB(str(tmp_path / "rows.parquet"))
