"""Exact integer answers from a column in memory: list, numpy, pandas, polars, Arrow.

A value becomes an integer of the public grid, ⌊clamp(x)·2^(−e) + ½⌋, block by block in doubles: scaling by a power of
two is exact, and so are sums of a block, whose parts are integers below 2⁵³. Sums of blocks are Python integers:
nothing wraps.

Nothing in the data raises or shows. NaN, None and whatever is no number are missing; ±inf is clamped; −0.0 is 0.
Whether a column is of integers is read from its type where it has one; a list has none: its grid is that of reals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter

_BLOCK = 2**15
"""Values at a time: a block of doubles and its work space stay in a core's cache."""

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """A column of values, none of which it shows."""

    values: NDArray[Any]
    whole: bool
    """Whether the type of the column is one of integers."""

    @property
    def truth(self) -> bool:
        """Whether the type of the column is that of truth values."""
        return self.values.dtype == np.bool_

    def truths(self) -> Column:
        """Whether each value is true: neither 0 nor missing."""
        return Column((self.values != 0) & ~np.isnan(self.values) if not self.whole else self.values != 0, whole=True)

    def __len__(self) -> int:
        return int(self.values.size)

    def __repr__(self) -> str:
        return "Column(…)"


def column(data: Any) -> Column:
    """The column that `data` holds: one value for each unit."""
    if isinstance(data, Column):
        return data
    array = _as_numpy(data)
    if array.ndim != 1:
        raise InvalidParameter(f"the data must be one column of values, got {array.ndim} dimensions")
    if array.dtype == object:
        return Column(np.array([_number(item) for item in array.tolist()], np.float64), whole=False)
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(f"the data must be numbers, got a column of {array.dtype}")
    return Column(array, whole=array.dtype.kind in "biu")


def count_true(data: Column) -> Exact[list[int]]:
    """How many values are true: neither 0 nor missing."""
    return Exact([int(np.count_nonzero(data.values)) - _missing(data)])


def count_present(data: Column) -> Exact[list[int]]:
    """How many values are not missing."""
    return Exact([len(data) - _missing(data)])


def moments(data: Column, grid: ValueGrid, missing: int, *, squares: bool) -> Exact[tuple[int, int, int]]:
    """(n, Σa, Σa²) with a = x − lower in steps; Σa² only if asked for. Squares need grids of 2²³ steps at most."""
    total = squared = 0
    for block in _steps(data, grid, missing):
        total += int(np.add.reduce(block))  # integers below 2⁵³: exact in any order
        if squares:
            whole = block.astype(np.int64)
            squared += int(np.add.reduce(np.multiply(whole, whole, whole)))
    return Exact((len(data), total, squared))


def counts(data: Column, grid: ValueGrid, missing: int) -> Exact[NDArray[np.int64]]:
    """How many values lie on each point of the grid, from lower to upper."""
    found = np.zeros(grid.width + 1, np.int64)
    for block in _steps(data, grid, missing, size=max(_BLOCK, found.size)):
        found += np.bincount(block.astype(np.int64), minlength=found.size)
    return Exact(found)


def binned(data: Column, edges: tuple[Fraction, ...], missing: int) -> Exact[NDArray[np.int64]]:
    """How many values lie in each bin [edge, next edge); what lies outside counts in the first or the last bin.

    A value is compared with each edge rounded to the nearest double, the same for every value.
    """
    rounded = np.array([float(edge) for edge in edges])
    bins = len(edges) - 1
    even = _even_step(edges)
    found = np.zeros(bins, np.int64)
    for start in range(0, len(data), max(_BLOCK, bins)):
        block = data.values[start : start + max(_BLOCK, bins)].astype(np.float64)
        nan = np.isnan(block)
        if even is None:
            index = np.searchsorted(rounded[1:-1], block, side="right")
        else:
            index = _even_bins(block, rounded, even)
        if nan.any():
            index[nan] = missing
        found += np.bincount(index, minlength=bins)
    return Exact(found)


def sorted_steps(data: Column, grid: ValueGrid, missing: int) -> Exact[NDArray[np.int64]]:
    """All values in steps above lower, in order: for the textbook's median, minimum and maximum."""
    blocks = [block.astype(np.int64) for block in _steps(data, grid, missing)]
    return Exact(np.sort(np.concatenate(blocks)) if blocks else np.empty(0, np.int64))


def _steps(data: Column, grid: ValueGrid, missing: int, size: int = _BLOCK) -> Iterator[Reals]:
    """Blocks of a = ⌊clamp(x)/step + ½⌋ − lower as doubles that are integers; missing values are `missing`."""
    values = data.values
    lower, upper, scale = float(grid.lower), float(grid.upper), 2.0**-grid.exponent
    work = np.empty(min(size, max(1, values.size)))
    with np.errstate(all="ignore"):
        for start in range(0, values.size, size):
            source = values[start : start + size]
            block = work[: source.size]
            np.multiply(source, scale, block)
            np.maximum(block, lower, block)
            np.minimum(block, upper, block)
            np.add(block, 0.5, block)
            np.floor(block, block)
            if lower:
                np.subtract(block, lower, block)
            if not data.whole and np.isnan(np.add.reduce(block)):
                block[np.isnan(block)] = missing - grid.lower
            yield block


def _even_step(edges: tuple[Fraction, ...]) -> float | None:
    """Bins per unit where all bins are equally wide."""
    width = edges[1] - edges[0]
    if any(after - before != width for before, after in pairwise(edges)):
        return None
    return float(1 / width)


def _even_bins(block: Reals, edges: Reals, per_unit: float) -> NDArray[np.int64]:
    """The same as a search among the edges, by one multiplication and a step to the side where it was rounded."""
    last = edges.size - 2
    with np.errstate(all="ignore"):
        guess = np.subtract(block, edges[0])
        np.multiply(guess, per_unit, guess)
        np.maximum(guess, 0.0, guess)
        np.minimum(guess, last, guess)
        index: NDArray[np.int64] = guess.astype(np.int64)
        index[index < 0] = 0  # what NaN became
        index -= (block < edges[index]) & (index > 0)
        index += (block >= edges[index + 1]) & (index < last)
    return index


def _missing(data: Column) -> int:
    return 0 if data.whole else int(np.count_nonzero(np.isnan(data.values)))


def _as_numpy(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, list | tuple | range):
        return np.fromiter(data, object, len(data))
    if hasattr(data, "to_numpy"):
        return _series(data)
    array = np.asarray(data)
    if array.ndim == 0:
        raise InvalidParameter(f"the data must be a list, an array or a column, got a {type(data).__name__}")
    return array


def _series(data: Any) -> NDArray[Any]:
    """A pandas, polars or Arrow column; where integers can be missing, they are taken as real numbers."""
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow":
        return np.asarray(data.to_numpy(zero_copy_only=False) if hasattr(data, "offset") else data.to_numpy())
    if module == "pandas" and str(data.dtype)[:1] in "IUFb" and getattr(data.dtype, "na_value", None) is not None:
        return np.asarray(data.to_numpy(dtype="float64", na_value=float("nan")))
    return np.asarray(data.to_numpy())


def _number(item: Any) -> float:
    """An item of a list as a float; what is no number is missing, what is beyond the floats is infinite."""
    try:
        number = isinstance(item, int | float | np.number | np.bool_) or hasattr(item, "as_integer_ratio")
        return float(item) if number else np.nan
    except OverflowError:
        return np.inf if item > 0 else -np.inf
    except Exception:  # a strange object in the data must not show itself by an error
        return np.nan
