"""A column of exact integers of many groups: an array that behaves like a list of Python integers.

They are stored as int64, or as Python integers if one does not fit. Arithmetic on whole columns first asks `near`
whether the result fits into int64, and otherwise uses Python integers: nothing overflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_FEW = 64
"""Up to this many groups a list is faster."""


class Integers(Sequence[int]):
    """A sequence of integers that never prints them."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        """Wrap an array of int64 or of Python integers."""
        self.array = array

    def __len__(self) -> int:
        return self.array.size

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Integers: ...
    def __getitem__(self, index: int | slice) -> int | Integers:
        return Integers(self.array[index]) if isinstance(index, slice) else int(self.array[index])

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
    """The integers of an array: a list if they are few, otherwise `Integers`."""
    return array.tolist() if array.size <= _FEW else Integers(array)


def near(array: Array, limit: int) -> bool:
    """Whether all values are int64 and of absolute value below the limit."""
    return array.dtype == np.int64 and (array.size == 0 or bool(array.min() > -limit and array.max() < limit))


def roomy(arrays: Sequence[Array], factors: Sequence[int]) -> list[Array]:
    """The arrays, as Python integers unless the sum of up to four of them times their factors fits into int64."""
    if all(near(array, 2**60 // max(factor, 1)) for array, factor in zip(arrays, factors, strict=True)):
        return list(arrays)
    return [array.astype(object) for array in arrays]
