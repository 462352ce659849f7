"""The fast sampler: a float filter that is certain or says so, and the exact path for the rest.

For the int64 word of a draw let w be its 63 bits of V. Then h = t·(ln(2/(1+q)) + 63·ln 2 − ln w) − 1/2 is y − 1/2 of
`draw.laplace`, and the draw is sign·rint(h). A block of words goes through numpy ufuncs: cast, log, ·(−t), + offset,
sign; adding a magic number then leaves the result in the mantissa, in fixed point with `shift` fraction bits. The
float error of all this is below

    E = t·2⁻⁴² + 2⁻shift      for every w ≥ 2⁴⁴      (PROOF.md; assumes a log within 8 ulp, checked on first use)

so a fraction further than E from the edge decides the draw with certainty. The others, and those with w < 2⁴⁴, go
one by one through `laplace.from_word` with the same word. The law is that of the exact path, bit for bit.

`add` holds x + Z at the ends of int64: a function of x + Z alone, so it is post-processing; nothing wraps, nothing in
the data raises.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.calibrate.ball import ball, nearest
from discreet.calibrate.grid import floor_log2
from discreet.draw.entropy import Entropy, keystream
from discreet.draw.laplace import from_word
from discreet.draw.noted import note
from discreet.errors import EngineFailed, InvalidParameter

Integers = NDArray[np.int64]

BLOCK = 2**17
"""Words per pass, 1 MiB: small enough for the caches, large enough that two threads seldom meet at the GIL."""

_THREAD_SHARE = 2 * BLOCK
"""A second thread is worth its start from this many draws on."""

_SMALLEST_LOG = 30.5
"""Just above ln 2⁴⁴ = 30.498…: below it the cell of V is too wide for the filter."""

_WIDE_CELLS = 2**45
"""Words below this in size are looked at again where a block holds one with so small a logarithm."""

_LOG_ULPS = 8
"""What the proof allows `np.log` to be off, in units in the last place; `_checked_log` demands 1."""

_FILTER_LIMIT = 34
"""Above a scale of 2³⁴ the filter fails too often to pay; the exact path serves alone."""

_INT64_LIMIT = 50
"""Up to a scale of 2⁵⁰ a draw beyond int64 has probability below e^(−8192); above, arrays hold Python integers."""

_FEW = 6
"""Up to so many draws are made one by one: arrays would cost more than they save."""

_FAR = 2**62
"""Two integers below this in size have a sum in int64."""

_ENDS = np.iinfo(np.int64)

_SIGN = np.array(-(2**63))
"""Constants are arrays without dimensions: numpy takes them faster than scalars."""


@dataclass(frozen=True, slots=True)
class _Filter:
    minus_scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    magic: NDArray[np.float64]
    shift: Integers
    base: Integers
    fraction: Integers
    doubt: int
    scalar: tuple[float, float, float]
    """−t, the offset and E as plain floats, for a draw alone."""


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
    """One exact draw, of any size: the same filter on Python floats, without the cost of arrays."""
    note("laplace", scale)
    return _one(scale, entropy or keystream())


def _one(scale: Fraction, entropy: Entropy) -> int:
    word = entropy.more()
    word -= (word >> 63) << 64  # as int64
    if not _exact_only(scale):
        minus_scale, offset, error = _constants(scale).scalar
        if abs(word) > 2**44:
            shifted = offset + minus_scale * math.log(abs(word))
            nearest_integer = round(shifted)
            if abs(shifted - nearest_integer) < 0.5 - error:
                return nearest_integer if word >= 0 else -nearest_integer
    return from_word(scale, word, entropy.more)


def _exact_only(scale: Fraction) -> bool:
    return scale.numerator >> _FILTER_LIMIT >= scale.denominator


def beyond_int64(scale: Fraction) -> bool:
    """Whether draws of this scale need Python integers: a function of the scale alone."""
    return scale.numerator >> _INT64_LIMIT >= scale.denominator


def fill(out: Integers, scale: Fraction, *, entropy: Entropy | None = None, threads: int | None = None) -> None:
    """Overwrite the contiguous int64 array `out` with exact draws, on several threads where that pays."""
    note("laplace", scale, out.size)
    if out.size <= _FEW and entropy is None:
        out[:] = [_one(scale, keystream()) for _ in range(out.size)]
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
    constants = None if _exact_only(scale) else _constants(scale)
    words = _aligned(min(out.size, BLOCK))
    reals = _aligned(words.size).view(np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for start in range(0, out.size, BLOCK):
            block = out[start : start + BLOCK]
            words, reals = words[: block.size], reals[: block.size]
            entropy.fill(words)
            doubtful = range(block.size) if constants is None else _filter(constants, words, reals, block)
            for index in doubtful:
                block[index] = from_word(scale, int(words[index]), entropy.more)


def _aligned(size: int) -> Integers:
    """Memory that starts on a cache line: the ufuncs are some 5 % faster there."""
    raw = np.empty(size + 8, np.int64)
    start = -(raw.ctypes.data // 8) % 8 if size >= BLOCK else 0
    return raw[start : start + size]


def _filter(constants: _Filter, words: Integers, reals: NDArray[np.float64], out: Integers) -> list[int]:
    """Write the draws of a block into `out`; the indices that only the exact path may decide come back."""
    bits = reals.view(np.int64)
    np.copyto(reals, words)
    np.abs(reals, reals)
    np.log(reals, reals)
    smallest = np.minimum.reduce(reals)
    np.multiply(reals, constants.minus_scale, reals)
    np.add(reals, constants.offset, reals)
    np.bitwise_and(words, _SIGN, out)
    np.bitwise_xor(bits, out, bits)
    np.add(reals, constants.magic, reals)
    np.right_shift(bits, constants.shift, out)
    np.subtract(out, constants.base, out)
    np.bitwise_and(bits, constants.fraction, bits)
    if smallest >= _SMALLEST_LOG and np.minimum.reduce(bits) >= constants.doubt:
        return []
    doubtful = bits < constants.doubt
    doubtful |= (words < _WIDE_CELLS) & (words > -_WIDE_CELLS)
    indices: list[int] = np.flatnonzero(doubtful).tolist()
    return indices


def add(source: NDArray[Any], noise: Integers, target: Integers) -> None:
    """Overwrite `target`, which may be `noise`, with source + noise: min(max(x + Z, −2⁶³), 2⁶³ − 1)."""
    far: list[int] = []
    if source.size and source.dtype.itemsize == 8 and not (source.min() > -_FAR and source.max() < _FAR):
        far = np.flatnonzero((source <= -_FAR) | (source >= _FAR)).tolist()
    exact = [min(max(int(source[index]) + int(noise[index]), _ENDS.min), _ENDS.max) for index in far]
    np.add(source.astype(np.int64, copy=False), noise, target)  # right wherever no value is far
    target[far] = exact


def noisy(
    source: NDArray[Any], scale: Fraction, *, out: Integers | None = None, threads: int | None = None
) -> Integers:
    """The integers of any width with exact noise of a scale that `beyond_int64` allows, in `out` if given."""
    out = np.empty(source.size, np.int64) if out is None else out
    fill(out, scale, threads=threads)
    add(source, out, out)
    return out


@lru_cache(maxsize=256)
def _constants(scale: Fraction) -> _Filter:
    """The filter of a scale: every constant correctly rounded from its exact value (PROOF.md, step 4)."""
    _checked_log()
    # |h| ≤ 14·t + 1 for w ≥ 2⁴⁴, and h + 1/2 + E must stay below 2^(51 − shift)
    shift = 51 - (floor_log2(14 * scale + 3) + 1)
    error = math.ceil(scale * Fraction(2) ** (shift - 42)) + 1  # E in fixed point; rounds up: more doubt
    magic = Fraction(3, 2) * 2 ** (52 - shift)
    base = int(np.float64(float(magic)).view(np.int64))

    def offset() -> arb:
        times = ball(scale)
        return times * ((2 / (1 + (-1 / times).exp())).log() + 63 * arb(2).log()) - arb((1, -1))

    minus_scale, shifted = -float(scale), nearest(offset)  # a quotient of integers is rounded correctly
    return _Filter(
        minus_scale=np.array(minus_scale),
        offset=np.array(shifted),
        magic=np.array(float(magic + Fraction(1, 2) + Fraction(error, 2**shift))),
        shift=np.array(shift),
        base=np.array(base >> shift),
        fraction=np.array(2**shift - 1),
        doubt=2 * error,
        scalar=(minus_scale, shifted, error / 2**shift),
    )


@cache
def _checked_log() -> None:
    """Refuse a machine whose `log` is off by more than 1 ulp where the proof allows 8."""
    words = np.array([2.0**power + step * 2.0**power / 13 for power in range(44, 63) for step in range(13)])
    for word, measured in zip(words.tolist(), np.log(words).tolist(), strict=True):
        exact = nearest(lambda word=word: arb(word).log())  # type: ignore[misc]
        allowed = math.ulp(exact) * _LOG_ULPS / 8
        if abs(measured - exact) > allowed or abs(math.log(word) - exact) > allowed:
            raise EngineFailed("the logarithm is too inexact on this machine; nothing was drawn")
