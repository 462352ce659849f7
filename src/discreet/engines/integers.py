"""A column of exact integers of many groups: an array that behaves as a list of Python integers.

Kept as int64, 8 bytes each, or as Python integers where one does not fit. Arithmetic on whole columns asks `near` first
whether int64 has room for the result, and goes on with Python integers if not: nothing wraps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_FEW = 64
"""Up to so many groups a list is faster."""


class Integers(Sequence[int]):
    """Integers by position; it never prints them."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        """Takes an array of int64 or of Python integers as it is."""
        self.array = array

    def __len__(self) -> int:
        return self.array.size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Integers: ...
    def __getitem__(self, at: int | slice) -> int | Integers:
        return Integers(self.array[at]) if isinstance(at, slice) else int(self.array[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Integers({len(self)})"


def column(array: Array) -> Integers | list[int]:
    """The integers of an array: a list of a few, an array of many."""
    return array.tolist() if array.size <= _FEW else Integers(array)


def near(array: Array, limit: int) -> bool:
    """Whether all of it is int64 and smaller in size than the limit."""
    return array.dtype == np.int64 and (array.size == 0 or bool(array.min() > -limit and array.max() < limit))


def roomy(arrays: Sequence[Array], factors: Sequence[int]) -> list[Array]:
    """The arrays as they are, if int64 has room for the sum of up to four of them times their factors."""
    if all(near(array, 2**60 // max(factor, 1)) for array, factor in zip(arrays, factors, strict=True)):
        return list(arrays)
    return [array.astype(object) for array in arrays]
