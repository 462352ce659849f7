"""Which values of a column in memory are not missing, whatever its type, for counts of any column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engines import array
from discreet.engines.array import Column
from discreet.errors import InvalidParameter

NUMBERS = "biuf"
"""Numpy's letters for truth values and numbers."""


def presence(data: Any) -> Column:
    """The column for `count`: numbers and truth values as they are, other types as whether a value is not missing."""
    presence_and_nullable = array.safely(data, _valid)
    if presence_and_nullable is None:
        return array.column(data)
    valid, nullable = presence_and_nullable
    return Column(values=np.where(valid, 1.0, np.nan), whole=False, truth=False, nullable=nullable)


def _valid(data: Any) -> tuple[NDArray[np.bool_], bool] | None:
    """Whether each value is not missing, and whether any can be; None for numbers and for items of any type."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "dtype"):
        if data.dtype.kind in NUMBERS or data.dtype == object:
            return None
        return np.asarray(data.notna(), np.bool_), True
    if module == "polars" and hasattr(data, "dtype"):
        number = data.dtype.is_numeric() or str(data.dtype) in ("Boolean", "Null", "Object")
        return None if number else (data.is_not_null().to_numpy(), True)
    if module == "pyarrow" and hasattr(data, "type"):
        from pyarrow import types

        kind = data.type
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
        return None if number or types.is_null(kind) else (np.asarray(data.is_valid(), np.bool_), True)
    if not isinstance(data, np.ndarray) or data.dtype.kind in f"{NUMBERS}O":
        return None
    if data.ndim != 1:
        raise InvalidParameter(f"the data must be one column of values, got {data.ndim} dimensions")
    plain = data.data if isinstance(data, np.ma.MaskedArray) else data
    masked = np.ma.getmaskarray(data) if plain is not data else np.zeros(plain.size, np.bool_)
    if plain.dtype.kind == "T":
        absent = np.array([not isinstance(text, str) for text in plain.tolist()], np.bool_)
    else:
        absent = np.isnan(plain) if plain.dtype.kind in "mMc" else np.zeros(plain.size, np.bool_)
    return ~(masked | absent), plain is not data or plain.dtype.kind in "mMcT"
