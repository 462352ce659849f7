"""Frames and Arrow objects as Arrow tables in which no cell makes DuckDB fail, or changes how
another cell is read.

A pandas column of objects, or a category, has only the types of its items: it becomes a column of
texts, which a policy may declare to be numbers, dates or truth values. These cells are missing:
times with a zone that do not fit into microseconds, dates in milliseconds outside of the years 1 to
9999. Texts that are not valid UTF-8 are passed on as they are, because each statement takes them
for missing.

Whether a column can be read depends on its type alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import methodcaller
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from discreet.engines.base import by_filter, without_zone
from discreet.errors import InvalidParameter

_DAY = 86_400_000
_YEARS = range(1 - 1970, 10_000 - 1970)
_DIGITS = 38
"""The most digits of a decimal number in DuckDB."""


def arrow_table(source: Any) -> tuple[Any, dict[str, str]]:
    """A pandas or polars frame or an Arrow object as an Arrow table that DuckDB can read.

    Also returned are the types of the columns that cannot be read and are left out.
    """
    names, columns, unread = [], [], {}
    for name, kind, values in _columns(source):
        column = None if values is None else _readable(values)
        if column is None:
            unread[name] = kind.partition("<")[0].partition("[")[0].partition("(")[0]
        else:
            names.append(name)
            columns.append(column)
    return pa.table(columns, names=names), unread


def what_chose(source: Any) -> str:
    """What chooses the rows of data in memory, as in `Engine.chosen`: nothing for a frame."""
    held = (
        isinstance(source, pa.Table | pa.RecordBatch)
        or hasattr(source, "iloc")
        or type(source).__name__ == "DataFrame"
    )
    return "" if held else by_filter(f"a {type(source).__name__}")


def _columns(source: Any) -> Iterator[tuple[str, str, Any]]:
    """The columns of a source: name, type, and an Arrow array, or None if Arrow lacks the type."""
    module = type(source).__module__.partition(".")[0]
    if module == "pandas" and hasattr(source, "iloc") and source.ndim == 2:
        frame = source.copy()  # the frame may change later
        for index, name in enumerate(frame.columns):
            series = frame.iloc[:, index]
            yield str(name), str(series.dtype), of_pandas(series)
        return
    if module == "polars" and hasattr(source, "lazy"):
        for series in source.lazy().collect().get_columns():
            yield (
                series.name,
                str(series.dtype),
                _if_typed(methodcaller("to_arrow"), series.clear(), series),
            )
        return
    if hasattr(source, "read_all"):
        source = source.read_all()
    elif isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif hasattr(source, "to_table"):
        source = source.to_table()
    if not isinstance(source, pa.Table):
        raise InvalidParameter(
            "the source must be a path, a SELECT, a pandas or polars frame, an Arrow table or a"
            f" DuckDB relation, got a {type(source).__name__}"
        )
    for field, values in zip(source.schema, source.columns, strict=True):
        yield field.name, str(field.type), values


def of_pandas(series: Any) -> Any:
    """A pandas column as an Arrow array; objects and categories, of any type, become texts."""
    kind = series.dtype
    if kind.kind == "O" and (
        isinstance(kind, np.dtype)
        or hasattr(kind, "categories")
        or getattr(kind, "storage", "") == "python"
    ):
        return category_texts(series) if hasattr(kind, "categories") else texts_of(series.tolist())
    return _if_typed(pa.Array.from_pandas, series.iloc[:0], series)


def texts_of(items: Sequence[object]) -> Any:
    """Items of any type as an Arrow array of texts; items without a text are missing.

    Half a surrogate pair becomes bytes that are not UTF-8, like those of other sources: one takes
    no time of others.
    """
    with np.errstate(all="ignore"):  # a warning would reveal an item
        texts = [item if type(item) is str else text_of(item) for item in items]
    raw = [None if text is None else text.encode(errors="surrogatepass") for text in texts]
    return pa.array(raw, pa.large_binary()).view(pa.large_string())


def category_texts(series: Any) -> Any:
    """A pandas category as texts; each of its values is converted once."""
    codes = np.asarray(series.cat.codes if hasattr(series, "cat") else series.codes)
    return texts_of(series.dtype.categories.tolist()).take(pa.array(codes, mask=codes < 0))


def _if_typed(arrow: Callable[[Any], Any], empty: Any, series: Any) -> Any:
    """The series as an Arrow array; None if Arrow lacks its type, which is tried without values."""
    try:
        arrow(empty)
    except Exception:  # because of the type: there are no values
        return None
    return arrow(series)


def text_of(item: object) -> str | None:
    """An item of any type as the text that a file would have for it, or None; it never raises."""
    try:
        text = _written(item)
        return None if text is None else str.encode(text).decode()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # an item of any class may raise anything
        return None


def _written(item: Any) -> Any:  # noqa: PLR0911 - one case for each type
    if isinstance(item, np.datetime64):  # NaT has no year in the range
        near = int(item.astype("datetime64[Y]").astype(np.int64)) in _YEARS
        return str(item.astype("datetime64[us]").item()) if near else None
    if isinstance(item, np.floating):
        item = float(item)
    elif isinstance(item, np.generic) and not isinstance(item, np.timedelta64):
        item = item.item()
    if item != item:  # noqa: PLR0124 - NaN, NaT
        return None
    match item:
        case str():
            return item
        case bool():
            return str(item).lower()
        case datetime():
            return without_zone(item).isoformat(" ", "microseconds")
        case date() | int() | Decimal() | UUID():
            return str(item)
        case float() if math.isfinite(item):
            return repr(float(item))
    return None


def _readable(values: Any) -> Any:
    """A column in a type that DuckDB can always read, or None if its type has no such type."""
    if not _has_reader(values.type.value_type if _is_encoded(values.type) else values.type):
        return None
    values = decoded(values)
    kind = values.type
    if types.is_decimal(kind):
        return _within_precision(values)
    if types.is_float16(kind):
        return values.cast(pa.float32())
    if types.is_date64(kind):
        first, last = (
            day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max)
        )
        near = _between(values.cast(pa.int64()), first * _DAY, (last + 1) * _DAY - 1)
        return near.cast(pa.timestamp("ms")).cast(pa.date32(), safe=False)
    if types.is_timestamp(kind) and kind.tz is not None and kind.unit != "us":
        return _in_microseconds(values)
    return values


def decoded(values: Any) -> Any:
    """A column without a dictionary and without runs."""
    kind = values.type
    if not _is_encoded(kind):
        return values
    if types.is_run_end_encoded(kind):
        return compute.run_end_decode(values)
    # all texts together may not fit into 32-bit offsets
    return values.cast(pa.large_string() if types.is_string(kind.value_type) else kind.value_type)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_encoded(kind: Any) -> bool:
    return bool(types.is_dictionary(kind) or types.is_run_end_encoded(kind))


def _has_reader(kind: Any) -> bool:
    if types.is_decimal(kind):
        return bool(kind.bit_width <= 128 and 0 <= kind.scale <= kind.precision <= _DIGITS)
    tests = (
        "boolean",
        "integer",
        "floating",
        "string",
        "large_string",
        "string_view",
        "date",
        "timestamp",
    )
    return any(getattr(types, f"is_{test}")(kind) for test in tests) or kind == pa.uuid()


def _within_precision(values: Any) -> Any:
    """Decimals within the digits of their type; others, which Arrow does not check, are missing.

    DuckDB has no room for these, and would give the row the value of another row instead.
    """
    kind = values.type
    wide = values.cast(pa.decimal128(_DIGITS, kind.scale))
    least, most = (
        pa.scalar(Decimal((sign, (9,) * kind.precision, -kind.scale)), wide.type) for sign in (1, 0)
    )
    return _between(wide, least, most).cast(pa.decimal128(kind.precision, kind.scale))


def _between(numbers: Any, lowest: Any, highest: Any) -> Any:
    """Numbers within a range; other numbers are missing."""
    near = compute.and_(
        compute.greater_equal(numbers, lowest), compute.less_equal(numbers, highest)
    )
    return compute.if_else(near, numbers, None)


def _in_microseconds(values: Any) -> Any:
    """Times with a zone in microseconds, as DuckDB reads them; missing if they do not fit."""
    count = values.cast(pa.int64())
    if values.type.unit == "ns":
        count = compute.divide(count, 1000)
    else:
        micros = 10**6 if values.type.unit == "s" else 10**3
        most = (2**63 - 1) // micros
        count = compute.multiply(_between(count, -most, most), micros)
    return count.cast(pa.timestamp("us", values.type.tz))
