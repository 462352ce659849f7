"""Which values of a column in memory are not missing, whatever its type, for counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from discreet.engines import array
from discreet.engines.array import Column
from discreet.engines.frames import decoded, is_text, of_pandas, text_of, texts_of
from discreet.errors import InvalidParameter

NUMBERS = "biuf"
"""Numpy's letters for truth values and numbers."""


def presence(data: Any) -> Column:
    """The column for `count`: numbers and truth values as they are, others as whether present."""
    valid_and_nullable = array.safely(data, _valid)
    if valid_and_nullable is None:
        return array.column(data)
    valid, nullable = valid_and_nullable
    return Column(values=np.where(valid, 1.0, np.nan), whole=False, truth=False, nullable=nullable)


def are_texts(values: Any) -> NDArray[np.bool_]:
    """Whether each of the texts of an Arrow column is there and valid UTF-8.

    Each text is looked at once, as bytes: one that is not UTF-8 takes as long as any other.
    """
    encoded = compute.dictionary_encode(values.cast(pa.large_binary()))
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    known = np.array([*map(_is_text, encoded.dictionary.to_pylist()), False], np.bool_)
    indices = encoded.indices.fill_null(known.size - 1).to_numpy(zero_copy_only=False)
    return known[indices]  # type: ignore[no-any-return]


def _of_arrow(data: Any) -> tuple[NDArray[np.bool_], bool] | None:
    kind = data.type
    number = (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )
    if number or types.is_null(kind):
        return None
    values = decoded(data)
    return (
        are_texts(values) if is_text(values.type) else np.asarray(values.is_valid(), np.bool_)
    ), True


def _of_pandas(data: Any) -> NDArray[np.bool_] | bool:
    """Whether each value of a pandas column is no text in invalid UTF-8; other types have none."""
    if hasattr(data.dtype, "categories"):
        items = data.dtype.categories.tolist()
        wrong = np.array(
            [*(type(item) is str and text_of(item) is None for item in items), False], np.bool_
        )
        return ~wrong[np.asarray(data.cat.codes if hasattr(data, "cat") else data.codes)]  # type: ignore[no-any-return]
    values = (
        of_pandas(data if hasattr(data, "iloc") else data.to_series())
        if data.dtype.kind in "OU"
        else None
    )
    values = None if values is None else decoded(values)
    return are_texts(values) if values is not None and is_text(values.type) else True


def _is_text(raw: bytes | None) -> bool:
    try:
        return raw is not None and raw.decode() is not None
    except UnicodeDecodeError:
        return False


def _valid(data: Any) -> tuple[NDArray[np.bool_], bool] | None:
    """Whether each value is not missing, and whether any can be; None for numbers and objects."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "dtype"):
        if data.dtype.kind in NUMBERS or data.dtype == object:
            return None
        return np.asarray(data.notna(), np.bool_) & _of_pandas(data), True
    if module == "polars" and hasattr(data, "dtype"):
        number = data.dtype.is_numeric() or str(data.dtype) in ("Boolean", "Null", "Object")
        return None if number else (data.is_not_null().to_numpy(), True)
    if module == "pyarrow" and hasattr(data, "type"):
        return _of_arrow(data)
    if not isinstance(data, np.ndarray) or data.dtype.kind in f"{NUMBERS}O":
        return None
    if data.ndim != 1:
        raise InvalidParameter(f"the data must be one column of values, got {data.ndim} dimensions")
    plain = data.data if isinstance(data, np.ma.MaskedArray) else data
    masked = np.ma.getmaskarray(data) if plain is not data else np.zeros(plain.size, np.bool_)
    if plain.dtype.kind == "T":
        absent = np.array([not isinstance(text, str) for text in plain.tolist()], np.bool_)
    elif plain.dtype.kind == "U":
        absent = ~are_texts(texts_of(plain.tolist()))
    else:
        absent = np.isnan(plain) if plain.dtype.kind in "mMc" else np.zeros(plain.size, np.bool_)
    return ~(masked | absent), plain is not data or plain.dtype.kind in "mMcT"
