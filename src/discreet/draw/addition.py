"""Integers plus noise in int64: exact wherever the sum fits, held at the ends of int64 where it does not.

    out = min(max(x + Z, −2⁶³), 2⁶³ − 1)        Z ~ DLap(t)

The hold is a function of x + Z alone, so it is post-processing; nothing wraps and nothing in the data raises.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.draw.vector import Integers, fill

_FAR = 2**62
"""Two integers below this in size have a sum in int64."""

_ENDS = np.iinfo(np.int64)


def add(source: NDArray[Any], noise: Integers, target: Integers) -> None:
    """Overwrite `target`, which may be `noise`, with source + noise."""
    far: list[int] = []
    if source.size and source.dtype.itemsize == 8 and not (source.min() > -_FAR and source.max() < _FAR):
        far = np.flatnonzero((source <= -_FAR) | (source >= _FAR)).tolist()
    exact = [min(max(int(source[index]) + int(noise[index]), _ENDS.min), _ENDS.max) for index in far]
    np.add(source.astype(np.int64, copy=False), noise, target)  # right wherever no value is far
    target[far] = exact


def noisy(
    source: NDArray[Any], scale: Fraction, *, out: Integers | None = None, threads: int | None = None
) -> Integers:
    """The integers of any width with exact noise of a scale that `vector.beyond_int64` allows, in `out` if given."""
    found = np.empty(source.size, np.int64) if out is None else out
    fill(found, scale, threads=threads)
    add(source, found, found)
    return found
