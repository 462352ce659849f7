"""Categories of a column in memory: the index of each value among declared keys, for any type of
column.

A column of numbers, truth values or dates is compared in its own type. A column of texts, or of
items of any type (a list, an array of objects, a pandas category), is read in the kind of the keys,
as in a study: its items become the texts that a file would have for them (`frames`), and a text may
spell a number, a date or a truth value.

No data raises or is shown. Whether a value can be missing, or in no category, depends on types and
keys alone.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from discreet.ask.expression import Kind
from discreet.ask.keys.column import Keys
from discreet.ask.keys.key import Key, as_kind
from discreet.engines import array
from discreet.engines.array import Column
from discreet.engines.frames import decoded, is_text, of_pandas, texts_of
from discreet.engines.presence import NUMBERS
from discreet.engines.sql.patterns import FALSE_WORDS, NUMBER_PATTERN, TRUE_WORDS
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.parameters import quote

_NUMBER = re.compile(NUMBER_PATTERN)
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - dates here have no zone
_TABLE = 2**20
"""Integer keys within a smaller range are looked up in a table."""
_NONE = -1
"""The index of a value in no category."""

_SECONDS = {"Y": 366 * 86_400, "M": 31 * 86_400, "W": 7 * 86_400, "D": 86_400, "h": 3600, "m": 60}
"""The most seconds of a unit of time."""

_CALENDAR = 2**14
"""More than the years or months from year 0 to 1970, which are counted by the calendar."""


def placed(data: Any, keys: Keys, *, other: bool = False, missing: Key | None = None) -> Column:
    """The index of each value among the keys; with `other`, values that are not keys have the index
    after the last.

    A missing value is in no category, or counts as `other`, or as the key `missing`.
    """
    cells = array.safely(data, _cells)
    kind = _kind_of(cells)
    kind = keys.kind if kind == "text" else kind
    listed = keys.as_kind(kind)
    rest = len(listed) if other else _NONE
    missing_index = rest if missing is None else _missing_index(missing, kind, listed, other)
    indices = array.safely(data, lambda _: _indices(cells, kind, listed, rest, missing_index))
    complete = isinstance(cells, Column) and not cells.nullable
    covered = other or (kind == "truth" and len(listed) == 2 and (missing_index >= 0 or complete))
    return Column(values=indices, whole=True, truth=False, nullable=not covered)


def _cells(data: Any) -> Any:  # noqa: PLR0911, PLR0912 - one for each container
    """The column as a `Column` of numbers or truth values, or as an Arrow array of texts, days or
    times.
    """
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(data, "type"):
        return _of_arrow(data)
    if module == "polars" and hasattr(data, "dtype"):
        return (
            _of_arrow(data.to_arrow()) if str(data.dtype) != "Object" else texts_of(data.to_list())
        )
    if module == "pandas" and hasattr(data, "dtype"):
        if data.dtype.kind in NUMBERS:
            return array.column(data)
        if data.dtype.kind not in "OMU" and not hasattr(data.dtype, "categories"):
            raise _refused(data.dtype.name)
        values = of_pandas(
            data
            if hasattr(data, "iloc")
            else data.to_series()
            if hasattr(data, "to_series")
            else data
        )
        if values is None:
            raise _refused(data.dtype.name)
        return _of_arrow(values)
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind not in NUMBERS:
        # masked items become None; tolist() of times may give whole numbers
        if data.dtype.kind != "M":
            return texts_of(data.tolist())
        nothing: Any = np.array("NaT", data.dtype)
        return _cells(data.filled(nothing))
    if hasattr(data, "to_numpy") and not isinstance(data, np.ndarray):
        return _cells(np.asarray(data.to_numpy()))
    plain = data if isinstance(data, np.ndarray) else array.as_numpy(data)
    if plain.ndim != 1:
        raise InvalidParameter(
            f"the data must be one column of values, got {plain.ndim} dimensions"
        )
    match plain.dtype.kind:
        case "M":
            return _of_arrow(pa.array(_in_arrow_unit(plain)))
        case "O" | "U" | "T":
            return texts_of(plain.tolist())
        case "b" | "i" | "u" | "f":
            return array.column(plain)
    raise _refused(array.type_name(plain))


def _in_arrow_unit(times: NDArray[Any]) -> NDArray[Any]:
    """Times in a unit of Arrow; times beyond 2⁶³ seconds are clamped, because numpy overflows or
    raises.
    """
    unit, count = np.datetime_data(times.dtype)
    if unit in ("s", "ms", "us", "ns"):
        return times
    if unit not in _SECONDS:
        return times.astype("datetime64[ns]")  # finer units
    missing, most = np.isnat(times), (2**63 - 1) // (_SECONDS[unit] * count) - _CALENDAR
    ticks = times.astype(times.dtype.newbyteorder("=")).view(np.int64)
    clamped = np.clip(ticks, -most, most).view(f"datetime64[{count}{unit}]").astype("datetime64[s]")
    clamped[missing] = np.array("NaT", clamped.dtype)
    return clamped


def _of_arrow(values: Any) -> Any:
    values = decoded(values)
    kind = values.type
    if types.is_null(kind):
        return values.cast(pa.large_string())
    if is_text(kind):
        return values
    if types.is_date(kind) or types.is_timestamp(kind):
        return values
    if (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
    ):
        return array.column(values)
    raise _refused(str(kind).partition("<")[0].partition("[")[0])


def _refused(kind: str) -> InvalidParameter:
    return InvalidParameter(
        f"the data must be texts, numbers, dates or truth values, got a column of {kind}"
    )


def _kind_of(cells: Any) -> Kind:
    if isinstance(cells, Column):
        return "truth" if cells.truth else "number"
    return "date" if types.is_date(cells.type) or types.is_timestamp(cells.type) else "text"


def _missing_index(missing: Key, kind: Kind, keys: Keys, other: bool) -> int:
    """The index of the key that missing values count as."""
    listed = list(keys)
    with suppress(InvalidParameter):
        key = as_kind(missing, kind)
        if key in listed or other:
            return listed.index(key) if key in listed else len(listed)
    raise InvalidParameter(
        f"missing must be one of the keys, got {quote(missing)}; add it to the keys"
    )


def _indices(cells: Any, kind: Kind, keys: Keys, rest: int, missing: int) -> NDArray[np.int64]:
    if isinstance(cells, Column):
        # Arrow and polars have doubles if a value is missing: no row may decide how another is
        # compared
        values = cells.values.astype(np.float64, copy=False) if cells.nullable else cells.values
        absent = np.isnan(values) if values.dtype.kind == "f" else None
        indices = _among(values, [_as_type(key, values.dtype) for key in keys], rest)
    elif _kind_of(cells) == "date":
        values, per_unit = _times(cells)
        absent = ~np.asarray(cells.is_valid(), np.bool_)
        micros = [(key - _EPOCH) // timedelta(microseconds=1) for key in keys]  # type: ignore[operator]
        units = [Fraction(micro) / per_unit for micro in micros]
        indices = _among(values, [_as_type(unit, values.dtype) for unit in units], rest)
    else:
        # as bytes, and each text once: a text that is not UTF-8 takes as long as any other
        encoded = compute.dictionary_encode(cells.cast(pa.large_binary()))
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        index_of_key = {key: index for index, key in enumerate(keys)}
        read = [
            _read(text, kind, index_of_key, rest, missing)
            for text in encoded.dictionary.to_pylist()
        ]
        codes = encoded.indices.fill_null(len(read)).to_numpy(zero_copy_only=False)
        index_of_text = np.array([*read, missing], np.int64)
        return index_of_text[codes]  # type: ignore[no-any-return]
    if absent is not None:
        indices[absent] = missing
    return indices


def _read(raw: bytes, kind: Kind, index_of_key: dict[Key, int], rest: int, missing: int) -> int:
    """The index of a text; a text that is not UTF-8, or cannot be read in the kind of the keys, is
    missing.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return missing
    if kind == "text":
        return index_of_key.get(text, rest)
    if kind == "truth":
        word = text.strip(" ").lower()
        return (
            index_of_key.get(word in TRUE_WORDS, rest)
            if word in TRUE_WORDS + FALSE_WORDS
            else missing
        )
    if kind == "number" and not _NUMBER.fullmatch(text):
        return missing
    with suppress(InvalidParameter, ValueError, OverflowError):
        return index_of_key.get(as_kind(text.strip(" "), kind), rest)
    return missing


def _times(cells: Any) -> tuple[NDArray[np.int64], Fraction]:
    """Days or times as whole numbers of their unit, and the microseconds of the unit."""
    kind = cells.type
    plain = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if types.is_date32(kind):
        numbers, unit = plain.view(pa.int32()).cast(pa.int64()), Fraction(86_400 * 10**6)
    else:
        name = "ms" if types.is_date64(kind) else kind.unit
        numbers = plain.view(pa.int64())
        unit = Fraction(_MICROSECONDS[name]) if name != "ns" else Fraction(1, 1000)
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), unit


def _as_type(key: Any, kind: np.dtype[Any]) -> Any:
    """A key as a value of a numpy type; None if no value of the type equals it."""
    if kind.kind == "f":
        return as_float(Fraction(key))
    if kind.kind == "b":
        return bool(key)
    room = np.iinfo(kind)
    return int(key) if Fraction(key).denominator == 1 and room.min <= key <= room.max else None


def _among(values: NDArray[Any], keys: list[Any], rest: int) -> NDArray[np.int64]:
    """The index of the key that each value equals, or `rest`."""
    index_of_key = {key: index for index, key in enumerate(keys) if key is not None}
    if len(index_of_key) < len([key for key in keys if key is not None]):
        raise InvalidParameter("keys must differ from each other as floats of 64 bits")
    result = np.full(values.size, rest, np.int64)
    if not index_of_key:
        return result
    increasing = sorted(index_of_key)
    indices = np.array([index_of_key[key] for key in increasing], np.int64)
    if values.dtype.kind in "iu" and increasing[-1] - increasing[0] < _TABLE:
        table = np.full(increasing[-1] - increasing[0] + 1, rest, np.int64)
        table[[key - increasing[0] for key in increasing]] = indices
        within = (values >= increasing[0]) & (values <= increasing[-1])
        near = values[within]  # their distance to the first key fits into 64 bits
        first = np.array(increasing[0], near.dtype)
        result[within] = table[
            near - first if near.dtype == np.uint64 else near.astype(np.int64) - int(first)
        ]
        return result
    possible = np.array(increasing, np.float64 if values.dtype.kind == "f" else values.dtype)
    plain = values.astype(possible.dtype, copy=False)
    nearest = np.minimum(np.searchsorted(possible, plain), possible.size - 1)
    equal = possible[nearest] == plain
    result[equal] = indices[nearest[equal]]
    return result
