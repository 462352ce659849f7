"""Exact integers of many groups: a column like a list of Python integers, and counts of cells.

They are stored as int64, or as Python integers if one does not fit. Arithmetic on whole columns
first asks `near` whether the result fits into int64, and otherwise uses Python integers: nothing
overflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from discreet.draw.addition import fits_int64
from discreet.errors import EngineFailed

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


def without_overflow(arrays: Sequence[Array], factors: Sequence[int]) -> list[Array]:
    """The arrays; as Python integers unless sums of up to four, times factors, fit into int64."""
    if all(
        fits_int64(array, 2**60 // max(factor, 1))
        for array, factor in zip(arrays, factors, strict=True)
    ):
        return list(arrays)
    return [array.astype(object) for array in arrays]


class CellCounts(Sequence[NDArray[np.int64]]):
    """The counts of the occupied cells of each group; never printed."""

    __slots__ = ("cells", "counts", "starts", "width")

    def __init__(self, width: int, starts: Array, cells: Array, counts: Array) -> None:
        """Wrap arrays of int64; group g has `cells[starts[g]:starts[g + 1]]`, increasing."""
        self.width, self.starts, self.cells, self.counts = width, starts, cells, counts

    @classmethod
    def added(
        cls, groups: int, width: int, parts: Sequence[tuple[Array, Array, Array]]
    ) -> CellCounts:
        """The counts from parts (groups, cells, counts) in any order; those of a cell are added."""
        columns = [
            np.concatenate([np.empty(0, np.int64), *part]) for part in zip(*parts, strict=True)
        ]
        group, cell, counts = columns or [np.empty(0, np.int64)] * 3
        if cell.size and (cell.min() < 0 or cell.max() >= width):
            raise EngineFailed(
                "the engine returned a cell outside of the grid; nothing is released"
            )
        keys = group * width + cell
        bits = int(counts.max(initial=0)).bit_length()
        # sorted together, several times faster than by an order
        if (groups * width) << bits < 2**63:
            both = np.sort(keys << bits | counts)
            keys, counts = both >> bits, both & ((1 << bits) - 1)
        else:
            order = np.argsort(keys)
            keys, counts = keys[order], counts[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        if firsts.size < keys.size:
            keys, counts = keys[firsts], np.add.reduceat(counts, firsts)
        starts = np.searchsorted(keys, np.arange(groups + 1) * width)
        return cls(
            width, starts, keys - np.repeat(np.arange(groups) * width, np.diff(starts)), counts
        )

    @classmethod
    def of(cls, groups: Sequence[NDArray[np.int64]]) -> CellCounts:
        """The counts of all cells of each group, as arrays or as such an object."""
        if isinstance(groups, CellCounts):
            return groups
        occupied = [np.flatnonzero(counts) for counts in groups]
        starts = np.cumsum([0, *map(len, occupied)])
        counts = [counts[cells] for counts, cells in zip(groups, occupied, strict=True)]
        return cls(groups[0].size, starts, np.concatenate(occupied), np.concatenate(counts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> NDArray[np.int64]: ...
    @overload
    def __getitem__(self, index: slice) -> CellCounts: ...
    def __getitem__(self, index: int | slice) -> NDArray[np.int64] | CellCounts:
        """The counts of all cells of a group, or some groups that follow each other."""
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            starts = self.starts[first : max(first, last) + 1]
            part = slice(starts[0], starts[-1])
            return CellCounts(self.width, starts - starts[0], self.cells[part], self.counts[part])
        first, last = self.starts[range(len(self))[index]], self.starts[range(len(self))[index] + 1]
        counts = np.zeros(self.width, np.int64)
        counts[self.cells[first:last]] = self.counts[first:last]
        return counts

    def gathered(self, places: NDArray[np.int64], width: int) -> CellCounts:
        """The counts of coarser cells; each cell has its place among these, in increasing order."""
        cells, groups = places[self.cells], np.repeat(np.arange(len(self)), np.diff(self.starts))
        firsts = np.flatnonzero(np.diff(groups * width + cells, prepend=-1))
        starts = np.searchsorted(firsts, self.starts)
        return CellCounts(
            width,
            starts,
            cells[firsts],
            np.add.reduceat(self.counts, firsts) if firsts.size else cells,
        )

    def __repr__(self) -> str:
        return f"CellCounts({len(self)})"
