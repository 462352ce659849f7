"""Declared keys in the types in which engines compare them with rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.ask.keys.column import Keys
from discreet.engines.sql.expressions import limited
from discreet.records import number_column


def key_values(keys: Keys, *, integers: bool) -> pa.Array | None:
    """The keys as an Arrow array of texts, moments, truth values or doubles; None if two of them
    are equal there.

    With `integers` the column holds integers of up to 64 bits and is joined as such, if all keys
    have an absolute value below 2⁵³: the keys are int64, and NULL for a fraction, which no integer
    equals.
    """
    if keys.kind != "number":
        return None if keys.repeated is not None else keys.column
    doubles = np.from_dlpack(keys.column).astype(np.float64) if keys.whole else _doubles(keys)
    small = bool((np.abs(doubles) < 2.0**53).all())
    exact = keys.whole and small
    if keys.repeated is not None if exact else np.unique(doubles).size < doubles.size:
        return None
    if not (integers and small):
        return number_column(doubles)
    return (
        keys.column
        if exact
        else pa.array(doubles.astype(np.int64), mask=doubles != np.floor(doubles))
    )


@lru_cache(maxsize=16)
def _doubles(keys: Keys) -> NDArray[Any]:
    return np.array([limited(key) for key in keys], np.float64)  # type: ignore[arg-type]
