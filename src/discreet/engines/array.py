"""Exact integer answers from a column in memory: list, numpy, pandas, polars, Arrow.

A value becomes an integer of the public grid, ⌊clamp(x)·2^(−e) + ½⌋, block by block in doubles:
scaling by a power of two is exact, and so is the sum of a block of integers, which is below 2⁵³.
Sums of blocks are Python integers: nothing overflows.

No data raises, warns or is shown. NaN, None and anything that is not a number are missing; ±inf is
clamped; −0.0 is 0. In a list or an array of objects, a text with a decimal number is that number
(`patterns`), and any other is missing. Whether a column holds integers, and whether its values can
be missing, depends on its type; a list has no type: its grid is for real numbers, and any value can
be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import Cells, Exact, Measure, Present, Rows, Total
from discreet.engines.sql.patterns import NUMBER_PATTERN
from discreet.errors import InvalidParameter
from discreet.threads import cores, on_all_cores

_BLOCK = 2**16
"""Values per block: half a MiB of doubles stays in a core's cache, and 2¹⁶ squares below 2⁴⁷ fit
into int64.
"""

_THREAD_SHARE = 2**20
"""A second thread pays off from this many values on."""

_WORDS = {"U": "text", "T": "text", "S": "bytes", "V": "records"}
"""Names for the numpy kinds whose own names contain the length of the longest value."""

_LETTERS = {"bool": "b", "boolean": "b", "int": "i", "uint": "u", "object": "O"}
_LETTERS |= dict.fromkeys(("halffloat", "float", "double", "null"), "f")
"""Numpy's letters for the types of polars and Arrow, without their numbers of bits."""

_NUMBER = re.compile(NUMBER_PATTERN)

Reals = NDArray[np.float64]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Column:
    """A column of values that are never shown. Its properties depend on its type alone."""

    values: NDArray[Any]
    whole: bool
    """Whether it holds integers or truth values."""
    truth: bool
    nullable: bool
    """Whether values can be missing."""
    counted: NDArray[np.bool_] | None = None
    """For items of any type: which of them are neither missing nor False."""

    @property
    def typed(self) -> bool:
        """Whether the column has a type, so that all its values are numbers of that type or
        missing.
        """
        return self.counted is None

    def shares(self) -> Column:
        """The same column for values from 0 to 1; one of integers then holds truth values."""
        return replace(self, truth=self.whole)

    def __len__(self) -> int:
        return int(self.values.size)

    def __repr__(self) -> str:
        return "Column(…)"

    def __eq__(self, _other: object) -> bool:
        raise TypeError("a column cannot be compared; release a statistic of it")

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str:
        raise TypeError("a column cannot be copied or stored; release a statistic of it")


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The number of values in each bin [edge, next edge) of a column in memory; the outer bins are
    unbounded.
    """

    edges: Reals
    missing: int | None
    """The bin of missing values, or None to drop them."""
    even: bool
    """Whether the edges are those of `numpy.linspace`."""
    apart: bool = False
    """Whether missing values have their own bin, the last."""

    @property
    def number(self) -> int:
        return int(self.edges.size) - (not self.apart)


@dataclass(frozen=True, slots=True)
class Listed:
    """The number of values of each category, for a column of indices (`categories`)."""

    number: int


def column(data: Any) -> Column:
    """The data as a column, with one value for each unit."""
    # `isinstance` would ask the data for its class
    return data if type(data) is Column else safely(data, _column)


def safely(
    data: Any, work: Callable[[Any], Value], refusal: InvalidParameter | None = None
) -> Value:
    """The result of `work` on the data; any error but a refusal is dropped, as its words may quote
    a value.

    Containers and items may run code of their own here, before any spend; what `work` returns must
    run none.
    """
    try:
        with np.errstate(all="ignore"):  # a warning would reveal a value
            return work(data)
    except (InvalidParameter, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: S110 - no `__context__` may hold the error of a container
        pass
    raise refusal or _refused(data)


def _column(data: Any) -> Column:
    if isinstance(data, np.ma.MaskedArray):
        kind = data.dtype.kind
        if kind in "biuf":
            return _of_numbers(np.ma.filled(data.astype(np.float64), np.nan), kind, nullable=True)
        array = np.where(np.ma.getmaskarray(data), np.nan, data.data) if kind == "O" else data.data
        return _of_numbers(array, kind, nullable=True)
    if not isinstance(data, np.ndarray) and hasattr(data, "to_numpy"):
        return _series(data)
    array = data if isinstance(data, np.ndarray) else as_numpy(data)
    return _of_numbers(array, array.dtype.kind)


def _of_numbers(array: NDArray[Any], kind: str, *, nullable: bool = False) -> Column:
    """A column of this kind: "b", "i", "u", "f", or "O" for items of any type."""
    # without a subclass, whose code would run in every calculation, after the spend
    array = np.asarray(array)
    if array.ndim != 1:
        raise InvalidParameter(
            f"the data must be one column of values, got {array.ndim} dimensions"
        )
    if kind not in "biufO":
        hint = "; count the days since a public date, or use keys=" if kind == "M" else ""
        raise InvalidParameter(
            f"the data must be numbers, got a column of {type_name(array)}{hint}"
        )
    if kind == "O":
        items = array.tolist()
        values = np.array([_number(item) for item in items], np.float64)
        kinds = [type(item) for item in items]  # `isinstance` would call code of the item
        truths = np.array([issubclass(kind, bool | np.bool_) for kind in kinds], np.bool_)
        texts = np.array(
            [
                issubclass(kind, str) and _is_text(item)
                for item, kind in zip(items, kinds, strict=True)
            ],
            bool,
        )
        false = truths & (values == 0)
        counted = ~false & (texts | ~np.isnan(values) | _dates(items, kinds))
        return Column(values=values, whole=False, truth=False, nullable=True, counted=counted)
    values = array.astype(np.float64) if array.dtype == object else array  # None becomes NaN
    return Column(
        values=values, whole=kind in "biu", truth=kind == "b", nullable=nullable or kind == "f"
    )


def type_name(array: NDArray[Any]) -> str:
    """The type of an array in a refusal, without a length, which would be that of the longest
    value.
    """
    return _WORDS.get(array.dtype.kind, array.dtype.name)


def _is_text(item: str) -> bool:
    """Whether a text can be written in UTF-8: it has no half surrogate pair."""
    try:
        return str.encode(item) is not None
    except UnicodeEncodeError:
        return False


def _dates(items: list[Any], kinds: list[type]) -> NDArray[np.bool_]:
    """Which items are dates, times or UUIDs that are not missing."""
    dates = np.array(
        [issubclass(kind, date | np.datetime64) or kind.__name__ == "UUID" for kind in kinds],
        np.bool_,
    )
    if dates.any():
        from discreet.engines.frames import text_of

        dates[dates] = [text_of(items[index]) is not None for index in np.flatnonzero(dates)]
    return dates


def fetch(data: Column, measures: tuple[Measure | Bins | Listed, ...]) -> Exact[list[list[Any]]]:
    """For each measure of a design, a list over its only group, or over its bins; see
    `base.Engine`.
    """
    match measures:
        case (Rows(),):
            return count(data).map(lambda group: [group])
        case (Cells(value),):
            return counts(data, value.grid, value.missing).map(lambda cells: [[cells]])
        case (Bins() as bins,):
            return binned(data, bins).map(lambda cells: [cells])  # type: ignore[list-item]
        case (Listed(number),):
            indices = data.values[data.values >= 0]
            return Exact([np.bincount(indices, minlength=number)])  # type: ignore[list-item]
        case (Present(value), Total(), *squares):
            return moments(data, value.grid, value.missing, squares=bool(squares)).map(
                lambda sums: [[n] for n in sums]
            )
    raise TypeError("a column in memory has no such measures")


def count(data: Column) -> Exact[list[int]]:
    """The number of values that are neither missing nor False; any text is a value."""
    if data.counted is not None:
        return Exact([int(np.count_nonzero(data.counted))])
    missing = int(np.count_nonzero(np.isnan(data.values))) if data.values.dtype.kind == "f" else 0
    return Exact([(int(np.count_nonzero(data.values)) if data.truth else len(data)) - missing])


def moments(
    data: Column, grid: ValueGrid, missing: int | None, *, squares: bool
) -> Exact[tuple[int, ...]]:
    """(n, Σa) or (n, Σa, Σa²) with a = x − lower in steps; squares need grids of at most 2²³ steps.

    Missing values count as `missing`, or are dropped if that is None: n is then the number of the
    other values.
    """

    def sums(values: NDArray[Any]) -> list[int]:
        size = total = squared = 0
        for block, subtotal in _steps(values, grid, missing):
            size += block.size
            total += int(subtotal)
            if squares:
                whole = block.astype(np.int64)
                squared += int(np.add.reduce(np.multiply(whole, whole, out=whole)))
        return [size, total, squared] if squares else [size, total]

    share = max(1, -(-len(data) // max(1, min(cores(), len(data) // _THREAD_SHARE))))
    parts = on_all_cores(
        sums, [data.values[start : start + share] for start in range(0, max(1, len(data)), share)]
    )
    return Exact(tuple(sum(part) for part in zip(*parts, strict=True)))


def counts(data: Column, grid: ValueGrid, missing: int | None) -> Exact[NDArray[np.int64]]:
    """The number of values on each point of the grid, from lower to upper."""
    cells = np.zeros(grid.width + 1, np.int64)
    for block, _ in _steps(data.values, grid, missing, size=max(_BLOCK, cells.size)):
        cells += np.bincount(block.astype(np.int64), minlength=cells.size)
    return Exact(cells)


def binned(data: Column, request: Bins) -> Exact[NDArray[np.int64]]:
    edges, bins = request.edges, request.edges.size - 1
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / bins
        # the rounding of an edge, and of a value's distance from the first edge, is far less than a
        # bin
        quick = (
            request.even
            and width >= 16 * np.spacing(np.abs(edges).max())
            and np.isfinite(1 / width)
        )
        cells = np.zeros(bins + 1, np.int64)  # and one for dropped values
        for start in range(0, len(data), max(_BLOCK, bins)):
            block = data.values[start : start + max(_BLOCK, bins)].astype(np.float64)
            index = (
                _even_bins(block, edges, 1 / width)
                if quick
                else np.searchsorted(edges[1:-1], block, side="right")
            )
            nan = np.isnan(block)
            if nan.any():
                index[nan] = bins if request.missing is None else request.missing
            cells += np.bincount(index, minlength=bins + 1)
    return Exact(cells if request.apart else cells[:bins])


def sorted_steps(data: Column, grid: ValueGrid, missing: int | None) -> Exact[NDArray[np.int64]]:
    """All values in steps above lower, sorted, for the textbook's median, minimum and maximum."""
    blocks = [block.astype(np.int64) for block, _ in _steps(data.values, grid, missing)]
    return Exact(np.sort(np.concatenate(blocks)) if blocks else np.empty(0, np.int64))


def _steps(
    values: NDArray[Any], grid: ValueGrid, missing: int | None, size: int = _BLOCK
) -> Iterator[tuple[Reals, np.float64]]:
    """Blocks of a = ⌊clamp(x)/step + ½⌋ − lower as doubles that are integers, each with its sum.

    Missing values are `missing`, or left out. The sum of integers in a block is below 2⁵³: exact in
    any order.
    """
    lower, upper, scale = float(grid.lower), float(grid.upper), 2.0**-grid.exponent
    work = np.empty(min(size, max(1, values.size)))
    for start in range(0, values.size, size):
        source = values[start : start + size]
        block = work[: source.size]
        with np.errstate(all="ignore"):
            # not in shorter floats of the source
            np.multiply(source, scale, out=block, dtype=np.float64)
            np.clip(block, lower, upper, out=block)
            np.add(block, 0.5, out=block)
            np.floor(block, out=block)
            if lower:
                np.subtract(block, lower, out=block)
            total = np.add.reduce(block)
            if np.isnan(total):
                nan = np.isnan(block)
                if missing is None:
                    block = block[~nan]
                else:
                    block[nan] = missing - grid.lower
                total = np.add.reduce(block)
        yield block, total


def _even_bins(block: Reals, edges: Reals, per_unit: float) -> NDArray[np.int64]:
    """The same as a search among the edges, by a multiplication and a correction.

    The error of the guess is less than a quarter of a bin plus rounding: at most one bin to either
    side.
    """
    last = edges.size - 2
    guess = np.subtract(block, edges[0])
    np.multiply(guess, per_unit, out=guess)
    np.clip(guess, 0.0, last, out=guess)
    index: NDArray[np.int64] = guess.astype(np.int64)
    index[index < 0] = 0  # from NaN
    index -= (block < edges[index]) & (index > 0)
    index += (block >= edges[index + 1]) & (index < last)
    return index


def as_numpy(data: Any) -> NDArray[Any]:
    """A buffer keeps its type; any other sequence becomes an array of objects."""
    if isinstance(data, str | bytes | bytearray):
        raise _refused(data)
    if not isinstance(data, list | tuple | range):
        with suppress(TypeError):
            buffer = hasattr(data, "__array__") or hasattr(data, "__array_interface__")
            return np.asarray(data if buffer else memoryview(data))
    if isinstance(data, Sequence):
        return np.fromiter(data, object, len(data))
    raise _refused(data)


def _refused(data: Any) -> InvalidParameter:
    return InvalidParameter(
        f"the data must be a list, an array or a column, got a {type(data).__name__}"
    )


def _series(data: Any) -> Column:
    """A pandas, polars or Arrow column, by its declared type, whether or not a value is missing."""
    module = type(data).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(data, "type"):
        array = data.to_numpy(zero_copy_only=False) if hasattr(data, "offset") else data.to_numpy()
        return _of_numbers(array, _kind(str(data.type)), nullable=True)
    if module == "polars" and hasattr(data, "dtype"):
        return _of_numbers(data.to_numpy(), _kind(str(data.dtype)), nullable=True)
    if module == "pandas" and hasattr(data, "dtype") and not isinstance(data.dtype, np.dtype):
        if data.dtype.kind not in "biuf":
            raise InvalidParameter(f"the data must be numbers, got a column of {data.dtype.name}")
        array = data.to_numpy(dtype="float64", na_value=float("nan"))
        return _of_numbers(array, data.dtype.kind, nullable=True)
    array = np.asarray(data.to_numpy())
    return _of_numbers(array, array.dtype.kind)


def _kind(name: str) -> str:
    """Numpy's letter for the name of a polars or Arrow type."""
    kind = (
        "f"
        if name.lower().startswith("decimal")
        else _LETTERS.get(name.lower().rstrip("0123456789"))
    )
    if kind is None:
        raise InvalidParameter(
            f"the data must be numbers, got a column of {name.partition('(')[0].partition('<')[0]}"
        )
    return kind


def _number(item: Any) -> float:  # noqa: PLR0911 - one for each type
    """An item of a list as a float; NaN if it is not a number, and infinite if it is too large.

    A subclass of a number or a text counts as what it holds, whatever its methods do.
    """
    kind = type(item)
    try:
        if issubclass(kind, float):
            return float.__float__(item)
        if issubclass(kind, int):
            item = int.__int__(item)
        elif issubclass(kind, str):
            text = str.__str__(item)
            return float(text) if _NUMBER.fullmatch(text) else np.nan
        elif issubclass(kind, np.generic):
            real = issubclass(kind, np.number | np.bool_) and not issubclass(
                kind, np.complexfloating | np.timedelta64
            )
            return float(np.generic.astype(item, np.float64)) if real else np.nan
        elif not hasattr(kind, "as_integer_ratio"):
            return np.nan
        try:
            return float(item)
        except OverflowError:
            return np.inf if item > 0 else -np.inf
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # an object in the data must not show itself by an error
        return np.nan
