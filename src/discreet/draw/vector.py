"""Exact draws in arrays: a table of 2¹⁶ cells for each digit of `draw.digits`, and its edges where a cell is undecided.

A block of draws reads 16 bits of V for each digit of each draw, and looks up their values. A cell that an edge divides
holds a mark instead, for at most one draw in a hundred. These draws are settled together, by 48 more bits of V against
the 64-bit edges, and one by one if even that is undecided. X is the exclusive or of the contributions of its digits, so
the mark is removed by the same operation. Everything is integers: the distribution is exactly that of the digits.

`add` clamps x + Z to int64. The result is a function of x + Z alone, so this is post-processing; nothing overflows, and
no data raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.draw.digits import FIELD, Digit, Digits, digits
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.noted import note
from discreet.errors import InvalidParameter

Integers = NDArray[np.int64]
Signed = NDArray[np.signedinteger[Any]]
Fields = NDArray[np.uint16]

BLOCK = 2**18
"""Draws per look-up, 5 MB: with smaller blocks two threads wait for each other, and one thread is no faster."""

_THREAD_SHARE = 2**18
"""A second thread pays off from this many draws on."""

_BITS = (4, 8)
"""Bits of the largest scale of a top, and of the middle digit: 0.4 % of the cells of each are then undecided."""

_INT32_LIMIT, _INT64_LIMIT = 22, 50
"""Below a scale of 2²² (2⁵⁰) a draw beyond int32 (int64) has a probability below e^(−511) (e^(−8191)); from 2⁵⁰ on
arrays hold Python integers."""

_FEW = 6
"""Up to this many draws are made one by one: arrays would cost more than they save."""

_FEW_OPEN = 16
"""The same for draws that a table leaves undecided."""

_FAR = 2**62
"""The sum of two integers of smaller absolute value fits into int64."""

_ENDS = np.iinfo(np.int64)


def sample(scale: Fraction, size: Any = None) -> Any:
    """Exact draws from DLap(scale): an int, or an array of the shape `size`."""
    if size is None:
        return draw_one(scale)
    try:
        out = np.empty(size, object if beyond_int64(scale) else np.int64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"size must be a shape such as 10 or (2, 3), got {size!r}") from None
    flat = out.reshape(-1)
    if out.dtype == object:
        flat[:] = [draw_one(scale) for _ in range(flat.size)]
    else:
        fill(flat, scale)
    return out


def samples(scales: Sequence[Fraction], counts: Sequence[int]) -> list[Any]:
    """For each scale an array of exact draws."""
    return [sample(scale, count) for scale, count in zip(scales, counts, strict=True)]


def draw_one(scale: Fraction, entropy: Entropy | None = None) -> int:
    """One exact draw of any size, without the cost of arrays."""
    note("laplace", scale)
    return _draw(scale, entropy or keystream())


def _draw(scale: Fraction, entropy: Entropy) -> int:
    return digits(scale, *_BITS).draw(entropy.more)


def beyond_int64(scale: Fraction) -> bool:
    """Whether draws of this scale need Python integers."""
    return scale.numerator >> _INT64_LIMIT >= scale.denominator


def fill(out: Integers, scale: Fraction, *, entropy: Entropy | None = None, threads: int | None = None) -> None:
    """Overwrite the contiguous int64 array `out` with exact draws, on several threads if that is faster."""
    note("laplace", scale, out.size)
    if out.size <= _FEW and entropy is None:
        out[:] = [_draw(scale, keystream()) for _ in range(out.size)]
        return
    if threads is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = min(cores, out.size // _THREAD_SHARE)
    if threads < 2 or entropy is not None:
        _fill_here(out, scale, entropy or keystream())
        return
    share = max(1, -(-out.size // threads))
    parts = [out[start : start + share] for start in range(0, out.size, share)]
    with ThreadPoolExecutor(threads) as pool:
        # a new thread has a keystream of its own
        list(pool.map(lambda part: _fill_here(part, scale, keystream()), parts))


def _fill_here(out: Integers, scale: Fraction, entropy: Entropy) -> None:
    """Overwrite `out` with exact draws, block by block; undecided draws are settled last."""
    tables, whole = _tables(scale), digits(scale, *_BITS)
    size, dtype, mask = min(out.size, BLOCK), tables[0].cells.dtype, 2**whole.low - 1
    narrowest = np.dtype(np.uint8 if mask < 2**8 else np.uint16 if mask < 2**16 else np.int64)
    sums, values, flags = np.empty(size, dtype), np.empty(size, dtype), np.empty(size, np.bool_)
    words, lowest = _room(len(tables) * size, np.uint16), _room(size if mask else 0, narrowest)
    for start in range(0, out.size, BLOCK):
        block = out[start : start + BLOCK]
        if block.size < size:
            size = block.size
            sums, values, flags = sums[:size], values[:size], flags[:size]
            words, lowest = _room(len(tables) * size, np.uint16), _room(size if mask else 0, narrowest)
        entropy.fill(words)
        fields = words.view(np.uint16)
        unsettled = []
        for number, table in enumerate(tables):
            part = fields[number * size : (number + 1) * size]
            unsettled.append(table.look_up(part, values if number else sums, flags))
        if len(tables) > 1:
            np.bitwise_xor(sums, values, sums)
        if mask:
            entropy.fill(lowest)
            uniform = lowest.view(narrowest)[:size]
            np.bitwise_and(uniform, mask, uniform)
            np.bitwise_xor(sums, uniform, block)
        else:
            np.copyto(block, sums)
        for table, (indices, cells) in zip(tables, unsettled, strict=True):
            table.settle(block, indices, cells, entropy)


def _room(count: int, dtype: Any) -> Integers:
    """Memory for `count` random integers of a type."""
    return np.empty(-(-count * np.dtype(dtype).itemsize // 8), np.int64)


@dataclass(frozen=True, slots=True)
class _Table:
    """The top, or the middle digit, for many draws at once."""

    whole: Digits
    digit: Digit
    edges: NDArray[np.uint64]
    values: Integers
    """The contribution to X of each value of the digit; the mark if the digit alone does not determine it."""
    cells: Signed
    """The same for each of the 2¹⁶ cells; the mark if an edge lies in the cell."""
    mark: int

    def look_up(self, fields: Fields, out: Signed, flags: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Fields]:
        """Overwrite `out` with the values for `fields`; return the indices and fields of the undecided draws."""
        np.take(self.cells, fields, out=out, mode="clip")
        np.equal(out, self.mark, flags)
        indices = np.flatnonzero(flags)
        return indices, fields[indices]

    def settle(self, out: Integers, indices: NDArray[np.intp], fields: Fields, entropy: Entropy) -> None:
        """Put the undecided digits into `out`."""
        if indices.size < _FEW_OPEN:
            numbers = [self.digit.index(cell, entropy.more) for cell in fields.tolist()]
        else:
            settled = self._numbers(fields, entropy)
            values = self.values[settled]
            out[indices] ^= values ^ self.mark  # if the value is the mark, the mark remains
            special = np.flatnonzero(values == self.mark)
            indices, numbers = indices[special], settled[special].tolist()
        for index, number in zip(indices.tolist(), numbers, strict=True):
            out[index] = self._with_digit(int(out[index]) ^ self.mark, number, entropy.more)

    def _numbers(self, fields: Fields, entropy: Entropy) -> NDArray[np.intp]:
        """The digits of numbers V that begin with `fields`."""
        words = np.empty(fields.size, np.int64)
        entropy.fill(words)
        first = fields.astype(np.uint64) << np.uint64(64 - FIELD) | words.view(np.uint64) >> np.uint64(FIELD)
        numbers = np.searchsorted(self.edges, first, "right")
        for index in np.flatnonzero(self.edges[numbers - 1] == first).tolist():
            numbers[index] = self.digit.settled(int(numbers[index]), int(first[index]), entropy.more)
        return numbers

    def _with_digit(self, value: int, number: int, more: Callable[[], int]) -> int:
        """X with this digit added to a `value` without it."""
        if self.values[number] != self.mark:
            return value ^ int(self.values[number])
        if self.digit is self.whole.top:
            return value ^ self.whole.end_value(number, more)
        # U is not uniform: the bits below the top are replaced, and inverted if X is negative
        sign, lower = value >> 63, self.whole.lower
        return ((value ^ sign) >> lower << lower | self.whole.lower_digits(number, 0, more)) ^ sign


@lru_cache(maxsize=8)
def _tables(scale: Fraction) -> list[_Table]:
    whole = digits(scale, *_BITS)
    dtype: Any = np.int64 if scale.numerator >> _INT32_LIMIT >= scale.denominator else np.int32
    mark = int(np.iinfo(dtype).min)
    tops = [mark, *(whole.top_value(number) for number in range(1, 2 * whole.half)), mark]
    middles = [*(number << whole.low for number in range(whole.base)), mark]
    return [
        _table(whole, digit, np.array(values[: len(digit.edges) + 1]), mark, dtype)
        for digit, values in ((whole.top, tops), (whole.middle, middles))
        if digit is not None
    ]


def _table(whole: Digits, digit: Digit, values: Integers, mark: int, dtype: Any) -> _Table:
    starts = np.array(digit.cells)
    # a value fills the cells from the edge before it to the edge after it
    cells = np.repeat(values.astype(dtype), np.diff(starts, prepend=0, append=2**FIELD))
    cells[starts] = mark
    return _Table(whole, digit, np.array(digit.edges, np.uint64), values, cells, mark)


def add(source: NDArray[Any], noise: Integers, target: Integers) -> None:
    """Overwrite `target`, which may be `noise`, with source + noise: min(max(x + Z, −2⁶³), 2⁶³ − 1)."""
    far: list[int] = []
    if source.size and source.dtype.itemsize == 8 and not (source.min() > -_FAR and source.max() < _FAR):
        far = np.flatnonzero((source <= -_FAR) | (source >= _FAR)).tolist()
    exact = [min(max(int(source[index]) + int(noise[index]), _ENDS.min), _ENDS.max) for index in far]
    np.add(source.astype(np.int64, copy=False), noise, target)  # correct where no value is far
    target[far] = exact


def noisy(
    source: NDArray[Any], scale: Fraction, *, out: Integers | None = None, threads: int | None = None
) -> Integers:
    """Integers of any width with exact noise, in `out` if given; the scale must not be `beyond_int64`."""
    out = np.empty(source.size, np.int64) if out is None else out
    fill(out, scale, threads=threads)
    add(source, out, out)
    return out
