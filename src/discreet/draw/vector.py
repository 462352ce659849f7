"""Exact draws in arrays: one look-up by 16 bits for almost every draw, and the edges of
`draw.digits` for the others.

A block of draws reads 16 bits of V for each draw, looks the top up in a table of 2¹⁶ cells, and
takes the exclusive or with uniform bits. Up to 2 % of the draws are in cells that several numbers
share. These are settled together: 48 more bits of V find the number in a table of smaller parts, or
by a search among the 64-bit edges where an edge divides the part, and one by one where even that is
open. The draws that are an excess get their lower bits from the number, and a new top by 16 bits
that were not used. All of it is integers: the law is that of the numbers, bit for bit.

`add` holds x + Z at the ends of int64: a function of x + Z alone, so it is post-processing; nothing
wraps, nothing in the data raises.
"""

from __future__ import annotations

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.draw.digits import FIELD, REST, Digits, digits
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.noted import note
from discreet.errors import InvalidParameter
from discreet.threads import cores

Integers = NDArray[np.int64]
Fields = NDArray[np.uint16]
Indices = NDArray[np.intp]

BLOCK = 2**20
"""Draws whose shared cells are settled together: in smaller blocks Python's part of the time is
noticed.
"""

PART = 2**15
"""Draws per look-up: 1 MB with the indices and the table, which stays in the cache of a core."""

_WIDE_PART = 2**16
"""The same with several threads, which wait for Python's lock at the ends of smaller parts."""

_THREAD_SHARE = 2**18
"""A second thread is worth its start from this many draws on."""

_BITS, _BITS_OF_FEW = (6, 10), (4, 6)
"""Bits of the largest scale of a top, and high bits of an excess: in arrays, and in short arrays
and for a draw alone. In arrays a draw is in a shared cell in up to 2 % of the cases, and its low
bits are an excess in 2 of 100,000. The shorter list takes half the time to make, and a draw from it
a little longer."""

_INT64_LIMIT = 50
"""Below a scale of 2⁵⁰ a draw beyond int64 has a probability below e^(−8191); above it arrays hold
Python integers.
"""

_ALONE, _FEW = 32, 2**12
"""Up to so many draws are made one by one, and up to so many from the shorter list."""

_FEW_SHARED = 12
"""Up to so many draws in shared cells are settled one by one."""


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


def draw_one(scale: Fraction, entropy: Entropy | None = None) -> int:
    """One exact draw, of any size, without the cost of arrays."""
    drawn = digits(scale, *_BITS_OF_FEW).draw((entropy or keystream()).more)
    note("laplace", scale, drawn)
    return drawn


def beyond_int64(scale: Fraction) -> bool:
    """Whether draws of this scale need Python integers: a function of the scale alone."""
    return scale.numerator >> _INT64_LIMIT >= scale.denominator


def fill(
    out: Integers, scale: Fraction, *, entropy: Entropy | None = None, threads: int | None = None
) -> None:
    """Overwrite the contiguous int64 array `out` with exact draws, on several threads where that
    pays.
    """
    _fill(out, scale, entropy, threads)
    note("laplace", scale, out)


def _fill(out: Integers, scale: Fraction, entropy: Entropy | None, threads: int | None) -> None:
    if out.size <= _ALONE and entropy is None:
        draw, more = digits(scale, *_BITS_OF_FEW).draw, keystream().more
        out[:] = [draw(more) for _ in range(out.size)]
        return
    if threads is None:
        threads = min(cores(), out.size // _THREAD_SHARE)
    if threads < 2 or entropy is not None:
        _fill_here(out, scale, entropy or keystream())
        return
    share = max(1, -(-out.size // threads))
    parts = [out[start : start + share] for start in range(0, out.size, share)]
    with ThreadPoolExecutor(threads) as pool:
        # a new thread has a keystream of its own
        list(pool.map(lambda part: _fill_here(part, scale, keystream(), _WIDE_PART), parts))


def _fill_here(out: Integers, scale: Fraction, entropy: Entropy, part: int | None = None) -> None:
    """Overwrite `out` with exact draws, block by block, with so many draws per look-up."""
    table = _table(scale, *(_BITS if out.size > _FEW else _BITS_OF_FEW))
    for start in range(0, out.size, BLOCK):
        table.fill(out[start : start + BLOCK], entropy, part or PART)


def _narrowest(bits: int) -> type[np.integer[Any]]:
    """The smallest type of random integers with so many bits."""
    return (
        np.uint8
        if bits <= 8
        else np.uint16
        if bits <= 16
        else np.uint32
        if bits <= 32
        else np.int64
    )


def _words(count: int, dtype: Any) -> int:
    """How many words of 64 bits hold so many integers of that type."""
    return -(-count * int(np.dtype(dtype).itemsize) // 8)


@dataclass(frozen=True, slots=True)
class _Table:
    """The numbers of a scale, for many draws at once."""

    whole: Digits
    cells: NDArray[np.signedinteger[Any]]
    """The top of each of the 2¹⁶ cells, 0 if the cell is shared; of the narrowest type, for the
    cache's sake.
    """
    shared: int
    """The first cell that is shared."""
    parts: NDArray[np.int16]
    """The number of each part of the shared cells, −1 if an edge divides it."""
    width: int
    """A part has 2^width of the words of 64 bits."""
    edges: NDArray[np.uint64]
    values: Integers
    """What each number puts into X, 0 for the ends of the tops and the excesses."""

    def fill(self, out: Integers, entropy: Entropy, size: int) -> None:
        """Overwrite a block with exact draws."""
        positions, cells = self._look_up(out, entropy, size)
        positions, numbers, cells = self._settle(out, positions, cells, entropy)
        if positions.size:
            out[positions] = self._excesses(numbers, out[positions], entropy) ^ self._new_tops(
                cells, entropy
            )

    def _look_up(self, out: Integers, entropy: Entropy, size: int) -> tuple[Indices, Fields]:
        """Overwrite `out` with tops and uniform bits; the positions of shared cells and the cells
        come back.

        These positions have the uniform bits and no top.
        """
        bits, narrow, narrowest = self.whole.lower, self.cells.dtype, _narrowest(self.whole.lower)
        positions, cells = [], []
        for start in range(0, out.size, size):
            part = out[start : start + size]
            if start == 0 or part.size < size:
                first = _words(part.size, np.uint16)
                words = np.empty(first + (_words(part.size, narrowest) if bits else 0), np.int64)
                fields = words[:first].view(np.uint16)[: part.size]
                random = words[first:].view(narrowest)[: part.size]
                tops, uniform = np.empty(part.size, narrow), np.empty(part.size, narrow)
            entropy.fill(words)
            np.copyto(part, fields)  # as indices, of which `part` has room for one each
            # 16 bits are always an index, and wrap is the fastest mode
            self.cells.take(part, out=tops, mode="wrap")
            shared = (fields >= self.shared).nonzero()[0]
            cells.append(fields[shared])
            shared += start
            positions.append(shared)
            if bits:
                np.bitwise_and(random, 2**bits - 1, random)
                np.copyto(uniform, random, casting="unsafe")
                np.bitwise_xor(tops, uniform, tops)
            np.copyto(part, tops)
        return np.concatenate(positions), np.concatenate(cells)

    def _settle(
        self, out: Integers, positions: Indices, cells: Fields, entropy: Entropy
    ) -> tuple[Indices, Indices, Fields]:
        """XOR the tops of shared cells to `out`; of excesses the positions, the numbers, and new
        cells come back.
        """
        if positions.size == 0:
            return positions, positions, cells
        numbers, cells = self._numbers(cells, entropy)
        out[positions] ^= self.values[numbers]
        last = 2 * self.whole.half
        for index in ((numbers == 0) | (numbers == last)).nonzero()[0].tolist():
            out[positions[index]] ^= self.whole.top(int(numbers[index]), entropy.more)
        above = (numbers > last).nonzero()[0]
        return positions[above], numbers[above], cells[above]

    def _numbers(self, cells: Fields, entropy: Entropy) -> tuple[Indices, Fields]:
        """The numbers of V that begin with these shared cells, and a new cell beside each."""
        more = np.empty(cells.size, np.int64)
        entropy.fill(more)
        words = cells.astype(np.uint64) << REST | more.view(np.uint64) >> FIELD
        if cells.size < _FEW_SHARED:
            settled, edges = self.whole.settled, self.whole.edges
            alone = [
                settled(bisect_right(edges, word), word, entropy.more) for word in words.tolist()
            ]
            return np.array(alone, np.intp), more.astype(np.uint16)
        parts = words - (self.shared << REST) >> self.width
        numbers = self.parts.take(parts.view(np.int64)).astype(np.intp)
        divided = (numbers < 0).nonzero()[0]
        words = words[divided]
        searched = np.searchsorted(self.edges, words, "right")
        for index in (self.edges[searched - 1] == words).nonzero()[0].tolist():
            searched[index] = self.whole.settled(
                int(searched[index]), int(words[index]), entropy.more
            )
        numbers[divided] = searched
        return numbers, more.astype(np.uint16)

    def _excesses(self, numbers: Indices, uniform: Integers, entropy: Entropy) -> Integers:
        """The bits below the top of these numbers, each with the lowest of its uniform bits."""
        whole, last = self.whole, self.edges.size
        lower = uniform & (1 << whole.low) - 1 | numbers - (2 * whole.half + 1) << whole.low
        for index in (numbers == last).nonzero()[0].tolist() if whole.low else ():
            lower[index] = whole.excess(last, 0, entropy.more)
        return lower

    def _new_tops(self, cells: Fields, entropy: Entropy) -> Integers:
        """The tops of these cells; numbers that are an excess are drawn again."""
        tops, positions = np.zeros(cells.size, np.int64), np.arange(cells.size)
        while positions.size:
            tops[positions] = self.cells[cells]
            shared = (cells >= self.shared).nonzero()[0]
            positions, _, cells = self._settle(tops, positions[shared], cells[shared], entropy)
        return tops


@lru_cache(maxsize=8)
def _table(scale: Fraction, top_bits: int, high_bits: int) -> _Table:
    whole = digits(scale, top_bits, high_bits)
    edges = np.array(whole.edges, np.uint64)
    values = np.zeros(edges.size + 1, np.int64)
    tops = np.arange(1 - whole.half, whole.half)
    values[1 : 2 * whole.half] = tops << whole.lower | np.where(tops < 0, (1 << whole.lower) - 1, 0)
    shared = whole.cells[-1]
    # numpy takes items of one byte more slowly than items of two
    kind = np.promote_types(np.int16, np.min_scalar_type(-int(np.abs(values).max()) - 1))
    cells = np.zeros(2**FIELD, kind)
    cells[:shared] = np.repeat(values[1 : 2 * whole.half], np.diff(whole.cells, prepend=0))
    left = 2**FIELD - shared
    width = REST - FIELD + left.bit_length()
    starts = (edges - (shared << REST) >> width).astype(np.intp)
    # a number fills the parts from that of the edge before it up to that of the edge after it
    parts = np.repeat(
        np.arange(values.size, dtype=np.int16),
        np.diff(starts, prepend=0, append=left << REST >> width),
    )
    parts[starts] = -1
    return _Table(whole, cells, shared, parts, width, edges, values)
