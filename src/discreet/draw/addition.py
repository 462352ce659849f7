"""Noise meets exact integers here, and nowhere else.

    step·(round(exact/step) + Z)        Z from DLap(scale), a draw for each integer

`noisy` takes integers of any size in any container: one, a list, an array. Where a result might
leave int64 it is computed in Python's integers, so nothing wraps. `noisy_into` writes the results
of long arrays into memory of the caller, in int64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.draw import vector

Container = TypeVar("Container", int, list[int], NDArray[Any])

_FAR = 2**62
"""Two integers below this in size have a sum in int64."""

_NEAR = 2**60
"""The same, where an integer is doubled before it is rounded to a step."""

_ENDS = np.iinfo(np.int64)


def noisy(exact: Container, scale: Fraction, step: int = 1) -> Container:
    """The integers with noise, in the same container; an array of int64 may become one of Python's.

    A step is a power of two.
    """
    if isinstance(exact, np.ndarray):
        return _noisy_array(exact, vector.sample(scale, exact.shape), step)
    if isinstance(exact, list):
        draws = vector.sample(scale, len(exact)).tolist()
        return [_noisy_one(integer, draw, step) for integer, draw in zip(exact, draws, strict=True)]
    return _noisy_one(exact, vector.draw_one(scale), step)


def noisy_each(
    columns: Sequence[Container], scales: Sequence[Fraction], steps: Sequence[int]
) -> list[Container]:
    """Several columns with noise, each with a scale and a step of its own."""
    return [noisy(*column) for column in zip(columns, scales, steps, strict=True)]


def _noisy_one(exact: int, draw: int, step: int) -> int:
    return step * ((2 * exact + step) // (2 * step) + draw)


def _noisy_array(exact: NDArray[Any], draws: NDArray[Any], step: int) -> NDArray[Any]:
    if not (fits_int64(exact, _NEAR) and fits_int64(draws, _NEAR // step)):
        exact, draws = exact.astype(object), draws.astype(object)
    if step == 1:
        sums: NDArray[Any] = exact + draws
        return sums
    bits = step.bit_length()  # shifts: divisions would take longer than all the rest
    sums = (2 * exact + step >> bits) + draws
    sums <<= bits - 1
    return sums


def fits_int64(array: NDArray[Any], limit: int) -> bool:
    """Whether all values are int64 and of absolute value below the limit."""
    if array.dtype != np.int64:
        return False
    return not array.size or bool(array.min() > -limit and array.max() < limit)


def noisy_into(
    target: NDArray[np.int64],
    exact: NDArray[Any],
    scale: Fraction,
    *,
    noise: NDArray[np.int64] | None = None,
    threads: int | None = None,
) -> None:
    """Overwrite `target` with the integers and noise: min(max(x + Z, −2⁶³), 2⁶³ − 1).

    The scale is one that `vector.beyond_int64` allows. `noise` is memory for the draws: by default
    the target, which then must not be that of the integers.
    """
    beyond: dict[int, int] = {}
    wide = exact.size and exact.dtype.itemsize == target.itemsize
    if wide and not (exact.min() > -_FAR and exact.max() < _FAR):
        places = np.flatnonzero((exact <= -_FAR) | (exact >= _FAR)).tolist()
        beyond = {place: int(exact[place]) for place in places}
    sums = add_into(target, exact, scale, beyond, noise=noise, threads=threads)
    for place, total in zip(beyond, sums, strict=True):
        target[place] = min(max(total, _ENDS.min), _ENDS.max)


def add_into(
    target: NDArray[np.int64],
    exact: NDArray[Any],
    scale: Fraction,
    beyond: Mapping[int, int],
    *,
    noise: NDArray[np.int64] | None = None,
    threads: int | None = None,
) -> list[int]:
    """Overwrite `target` likewise, and return the sums of the integers in `beyond`, of any size.

    `beyond` has them by their places, where the sums in the target mean nothing.
    """
    noise = target if noise is None else noise
    vector.fill(noise, scale, threads=threads)
    sums = [integer + int(noise[place]) for place, integer in beyond.items()]
    np.add(exact.astype(np.int64, copy=False), noise, target)  # right wherever no sum is beyond
    return sums
