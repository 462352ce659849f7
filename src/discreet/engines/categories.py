"""Categories of a column in memory: the place of each value among declared keys, whatever the column is made of.

A column of numbers, truths or dates is compared in its own type. A column of texts, and one whose items have types of
their own (a list, an array of objects, a category of pandas), is read in the kind of the keys, as in a study: its items
are the texts that a file would have for them (`frames`), and a text may write a number, a date or a truth.

Nothing in the data raises or shows. Whether a value can be missing, or in no category, is read from types and keys.
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
from discreet.engines.frames import decodable, of_pandas, texts_of
from discreet.engines.presence import NUMBERS
from discreet.engines.sql.patterns import FALSE_WORDS, NUMBER_PATTERN, TRUE_WORDS
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.parameters import quote

_NUMBER = re.compile(NUMBER_PATTERN)
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - dates here have no zone
_TABLE = 2**20
"""Whole keys that are nearer to each other are looked up in a table."""
_NONE = -1
"""The place of a value that is in no category."""

_SECONDS = {"Y": 366 * 86_400, "M": 31 * 86_400, "W": 7 * 86_400, "D": 86_400, "h": 3600, "m": 60}
"""The seconds of a unit of times at most."""

_CALENDAR = 2**14
"""More units than lie between the years 0 and 1970, in years and months, which are counted from the calendar."""


def placed(data: Any, keys: Keys, *, other: bool = False, missing: Key | None = None) -> Column:
    """The place of each value among the keys; with `other`, all that are no key have the place behind the last.

    A missing value is in no category, or among the others, or counts as the key `missing`.
    """
    cells = array.safely(data, _cells)
    kind = _kind_of(cells)
    kind = keys.kind if kind == "text" else kind
    listed = keys.as_kind(kind)
    rest = len(listed) if other else _NONE
    where = rest if missing is None else _place_of(missing, kind, listed, other)
    places = array.safely(data, lambda _: _places(cells, kind, listed, rest, where))
    covered = other or (kind == "truth" and len(listed) == 2 and (where >= 0 or not _nullable(cells)))
    return Column(values=places, whole=True, truth=False, nullable=not covered)


def _cells(data: Any) -> Any:  # noqa: PLR0911, PLR0912 - one for each container
    """The column as a `Column` of numbers or truths, or as texts, days or times of Arrow."""
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(data, "type"):
        return _of_arrow(data)
    if module == "polars" and hasattr(data, "dtype"):
        return _of_arrow(data.to_arrow()) if str(data.dtype) != "Object" else texts_of(data.to_list())
    if module == "pandas" and hasattr(data, "dtype"):
        if data.dtype.kind in NUMBERS:
            return array.column(data)
        if data.dtype.kind not in "OMU" and not hasattr(data.dtype, "categories"):
            raise _refused(data.dtype.name)
        values = of_pandas(data if hasattr(data, "iloc") else data.to_series() if hasattr(data, "to_series") else data)
        if values is None:
            raise _refused(data.dtype.name)
        return _of_arrow(values)
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind not in NUMBERS:
        # None where it is masked; a list of times may be of whole numbers
        if data.dtype.kind != "M":
            return texts_of(data.tolist())
        nothing: Any = np.array("NaT", data.dtype)
        return _cells(data.filled(nothing))
    if hasattr(data, "to_numpy") and not isinstance(data, np.ndarray):
        return _cells(np.asarray(data.to_numpy()))
    plain = data if isinstance(data, np.ndarray) else array.as_numpy(data)
    if plain.ndim != 1:
        raise InvalidParameter(f"the data must be one column of values, got {plain.ndim} dimensions")
    match plain.dtype.kind:
        case "M":
            return _of_arrow(pa.array(_in_arrow_unit(plain)))
        case "O" | "U" | "T":
            return texts_of(plain.tolist())
        case "b" | "i" | "u" | "f":
            return array.column(plain)
    raise _refused(array.type_name(plain))


def _in_arrow_unit(times: NDArray[Any]) -> NDArray[Any]:
    """Times in a unit that Arrow has; those beyond 2⁶³ seconds are held there, since numpy wraps or raises."""
    unit, count = np.datetime_data(times.dtype)
    if unit in ("s", "ms", "us", "ns"):
        return times
    if unit not in _SECONDS:
        return times.astype("datetime64[ns]")  # finer ones
    missing, most = np.isnat(times), (2**63 - 1) // (_SECONDS[unit] * count) - _CALENDAR
    ticks = times.astype(times.dtype.newbyteorder("=")).view(np.int64)
    held = np.clip(ticks, -most, most).view(f"datetime64[{count}{unit}]").astype("datetime64[s]")
    held[missing] = np.array("NaT", held.dtype)
    return held


def _of_arrow(values: Any) -> Any:
    kind = values.type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        plain = pa.large_string() if types.is_string(kind.value_type) else kind.value_type
        values = values.cast(plain) if types.is_dictionary(kind) else compute.run_end_decode(values)
        kind = values.type
    if types.is_null(kind):
        return values.cast(pa.large_string())
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return decodable(values)
    if types.is_date(kind) or types.is_timestamp(kind):
        return values
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return array.column(values)
    raise _refused(str(kind).partition("<")[0].partition("[")[0])


def _refused(kind: str) -> InvalidParameter:
    return InvalidParameter(f"the data must be texts, numbers, dates or truths, got a column of {kind}")


def _kind_of(cells: Any) -> Kind:
    if isinstance(cells, Column):
        return "truth" if cells.truth else "number"
    return "date" if types.is_date(cells.type) or types.is_timestamp(cells.type) else "text"


def _nullable(cells: Any) -> bool:
    return not isinstance(cells, Column) or cells.nullable


def _place_of(missing: Key, kind: Kind, keys: Keys, other: bool) -> int:
    """The place of the key that missing values count as."""
    listed = list(keys)
    with suppress(InvalidParameter):
        key = as_kind(missing, kind)
        if key in listed or other:
            return listed.index(key) if key in listed else len(listed)
    raise InvalidParameter(f"missing must be one of the keys, got {quote(missing)}; list it among them")


def _places(cells: Any, kind: Kind, keys: Keys, rest: int, missing: int) -> NDArray[np.int64]:
    if isinstance(cells, Column):
        # Arrow and polars have doubles where a value is missing: no row decides how another is compared
        values = cells.values.astype(np.float64, copy=False) if cells.nullable else cells.values
        absent = np.isnan(values) if values.dtype.kind == "f" else None
        places = _among(values, [_as_type(key, values.dtype) for key in keys], rest)
    elif _kind_of(cells) == "date":
        values, per_unit = _times(cells)
        absent = ~np.asarray(cells.is_valid(), np.bool_)
        micros = [(key - _EPOCH) // timedelta(microseconds=1) for key in keys]  # type: ignore[operator]
        units = [Fraction(micro) / per_unit for micro in micros]
        places = _among(values, [_as_type(unit, values.dtype) for unit in units], rest)
    else:
        encoded = pa.chunked_array(cells) if isinstance(cells, list) else cells
        encoded = compute.dictionary_encode(encoded)
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        texts = encoded.dictionary.to_pylist()
        known = {key: place for place, key in enumerate(keys)}
        each = np.array([*(_read(text, kind, known, rest, missing) for text in texts), missing], np.int64)
        codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        read: NDArray[np.int64] = each[codes]
        return read
    if absent is not None:
        places[absent] = missing
    return places


def _read(text: str, kind: Kind, known: dict[Key, int], rest: int, missing: int) -> int:
    """The place of a text; one that cannot be read in the kind of the keys is missing."""
    if kind == "text":
        return known.get(text, rest)
    if kind == "truth":
        word = text.strip(" ").lower()
        return known.get(word in TRUE_WORDS, rest) if word in TRUE_WORDS + FALSE_WORDS else missing
    if kind == "number" and not _NUMBER.fullmatch(text):
        return missing
    with suppress(InvalidParameter, ValueError, OverflowError):
        return known.get(as_kind(text.strip(" "), kind), rest)
    return missing


def _times(cells: Any) -> tuple[NDArray[np.int64], Fraction]:
    """Days or times as whole numbers of their unit, and how many microseconds a unit has."""
    kind = cells.type
    plain = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    if types.is_date32(kind):
        numbers, unit = plain.view(pa.int32()).cast(pa.int64()), Fraction(86_400 * 10**6)
    else:
        name = "ms" if types.is_date64(kind) else kind.unit
        numbers, unit = plain.view(pa.int64()), Fraction(_MICROSECONDS[name]) if name != "ns" else Fraction(1, 1000)
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), unit


def _as_type(key: Any, kind: np.dtype[Any]) -> Any:
    """A key as a value of a type of numpy; None if no value of the type is equal to it."""
    if kind.kind == "f":
        return as_float(Fraction(key))
    if kind.kind == "b":
        return bool(key)
    room = np.iinfo(kind)
    return int(key) if Fraction(key).denominator == 1 and room.min <= key <= room.max else None


def _among(values: NDArray[Any], keys: list[Any], rest: int) -> NDArray[np.int64]:
    """For each value the place of the key that it is equal to, or `rest`."""
    known = {key: place for place, key in enumerate(keys) if key is not None}
    if len(known) < len([key for key in keys if key is not None]):
        raise InvalidParameter("keys must differ from each other, also as floats of 64 bits")
    result = np.full(values.size, rest, np.int64)
    if not known:
        return result
    rising = sorted(known)
    places = np.array([known[key] for key in rising], np.int64)
    if values.dtype.kind in "iu" and rising[-1] - rising[0] < _TABLE:
        table = np.full(rising[-1] - rising[0] + 1, rest, np.int64)
        table[[key - rising[0] for key in rising]] = places
        within = (values >= rising[0]) & (values <= rising[-1])
        near = values[within]  # whose distance to the first key fits into 64 bits
        first = np.array(rising[0], near.dtype)
        result[within] = table[near - first if near.dtype == np.uint64 else near.astype(np.int64) - int(first)]
        return result
    possible = np.array(rising, np.float64 if values.dtype.kind == "f" else values.dtype)
    plain = values.astype(possible.dtype, copy=False)
    at = np.minimum(np.searchsorted(possible, plain), possible.size - 1)
    equal = possible[at] == plain
    result[equal] = places[at[equal]]
    return result
