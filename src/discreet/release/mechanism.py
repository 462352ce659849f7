"""Algorithm 1: the Laplace mechanism, f(x) + (Z₁, …, Z_d), on answers that the caller has computed [DMNS06].

    integers: out = answer + DLap(Δ/ε)                       exactly; integers in, integers out
    floats:   out = g · ( round(answer/g) + DLap(t) )        on a public step g = 2^e (calibrate.grid)

Theorem: if no unit can move the answer by more than Δ in the L1 norm, the output is ε-differentially private.
Nothing in the data raises: NaN counts as 0, ±inf as the largest float, an int64 array stops at the ends of int64
instead of wrapping. What it cannot do: know the sensitivity of your f (`verify` can look for counterexamples).
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.epsilon import exact_epsilon, exact_sensitivity
from discreet.calibrate.grid import Grid, float_grid, floor_log2, integer_grid
from discreet.draw.choice import choose, common_unit
from discreet.draw.vector import beyond_int64, draw_one, fill
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.release.tree import Tree

_CHUNK = 2**19
"""Numbers that are noised at a time: 4 MiB of noise, whatever the length of the answer."""

_FAR = 2**62
"""Two integers below this in size have a sum in int64."""

_ORDINARY = 900
"""Steps between 2⁻⁹⁰⁰ and 2⁹⁰⁰: scaling int64 by them neither overflows nor loses bits."""

_LARGEST = sys.float_info.max


def laplace_mechanism(
    answer: Any, *, sensitivity: Any, epsilon: Any, changes: int | None = None, out: Any = None
) -> Any:
    """The answer plus exact Laplace noise: an int or float for a number, a list for a list, an array for an array.

    `sensitivity` is Δ, the most that one unit can move the answer, summed over its coordinates. `changes` is the
    number of coordinates that one unit can move (all of them, if not given); it matters for floats only. `out`
    receives the result of an array in place; it may be the answer itself.

    >>> noisy = laplace_mechanism([120, 80, 0], sensitivity=2, epsilon="0.1")
    >>> [type(count).__name__ for count in noisy]
    ['int', 'int', 'int']
    """
    delta, exact = exact_sensitivity(sensitivity), exact_epsilon(epsilon)
    if changes is not None:
        changes = _counted(changes)
    match answer:
        case bool() | int() | float() if out is None:
            return _noisy_number(answer, delta, exact, changes)
        case list() | tuple() if out is None:
            array = _array(answer)
            return _noisy_array(array, delta, exact, changes, None).tolist()
    array = answer if isinstance(answer, np.ndarray) else _array(answer)
    if array.ndim == 0 and out is None:
        whole = _is_whole(array)
        return _noisy_number(int(array.item()) if whole else float(array.item()), delta, exact, changes)
    return _noisy_array(array, delta, exact, changes, out)


def _noisy_number(answer: float, delta: Fraction, epsilon: Fraction, changes: int | None) -> int | float:
    if isinstance(answer, int):
        return int(answer) + draw_one(_grid(True, delta, epsilon, 1).scale)
    grid = _grid(False, delta, epsilon, changes or 1)
    return _to_float(_to_steps(answer, grid) + draw_one(grid.scale), grid)


def _noisy_array(
    array: NDArray[Any], delta: Fraction, epsilon: Fraction, changes: int | None, out: Any
) -> NDArray[Any]:
    whole = _is_whole(array)
    grid = _grid(whole, delta, epsilon, changes or max(1, array.size))
    big = array.dtype == object or (whole and beyond_int64(grid.scale))
    dtype = np.dtype(object if big and whole else np.int64 if whole else np.float64)
    result = np.empty(array.shape, dtype) if out is None else _checked_out(out, array.shape, dtype)
    if array.size == 0:
        return result
    if big or beyond_int64(grid.scale):
        for source, target in _chunks(array, result):
            target[...] = [_noisy_item(item, whole, grid) for item in source.tolist()]
        return result
    noise = np.empty(min(array.size, _CHUNK), np.int64)
    add = _add_whole if whole else _add_real
    for source, target in _chunks(array, result):
        part = noise[: source.size]
        fill(part, grid.scale)
        add(source, part, target, grid)
    return result


def _chunks(array: NDArray[Any], result: NDArray[Any]) -> Any:
    """Pairs of one-dimensional parts, in the same order; views wherever the layout allows."""
    if array.flags.c_contiguous and result.flags.c_contiguous:
        source, target = array.reshape(-1), result.reshape(-1)
        for start in range(0, source.size, _CHUNK):
            yield source[start : start + _CHUNK], target[start : start + _CHUNK]
        return
    with np.nditer(
        [array, result],
        flags=["external_loop", "buffered", "refs_ok", "zerosize_ok"],
        op_flags=[["readonly"], ["writeonly"]],
        order="C",
        buffersize=_CHUNK,
    ) as pairs:
        yield from pairs


def _add_whole(source: NDArray[Any], noise: NDArray[np.int64], target: NDArray[np.int64], _: Grid) -> None:
    """target = source + noise, exactly, held at the ends of int64."""
    ends = np.iinfo(np.int64)
    far: list[int] = []
    if source.dtype.itemsize == 8 and not (source.min() > -_FAR and source.max() < _FAR):
        far = np.flatnonzero((source <= -_FAR) | (source >= _FAR)).tolist()
    exact = [min(max(int(source[index]) + int(noise[index]), ends.min), ends.max) for index in far]
    np.add(source.astype(np.int64, copy=False), noise, target)  # right wherever no value is far
    target[far] = exact


def _add_real(source: NDArray[Any], noise: NDArray[np.int64], target: NDArray[np.float64], grid: Grid) -> None:
    """target = (round(source/step) + noise)·step; in int64, but in Python integers for values far out."""
    if abs(grid.exponent) > _ORDINARY:
        pairs = zip(source.tolist(), noise.tolist(), strict=True)
        target[...] = [_to_float(_to_steps(one, grid) + other, grid) for one, other in pairs]
        return
    step = 2.0**grid.exponent
    with np.errstate(all="ignore"):
        steps = np.multiply(source, 1 / step, dtype=np.float64)  # exact: a power of two
        np.rint(steps, steps)
        far: list[int] = []
        if not (np.minimum.reduce(steps) > -_FAR and np.maximum.reduce(steps) < _FAR):  # so for NaN, too
            far = np.flatnonzero(~(np.abs(steps) < _FAR)).tolist()
        exact = [_to_float(_to_steps(source[index], grid) + int(noise[index]), grid) for index in far]
        np.add(noise, steps.astype(np.int64), noise)
        np.multiply(noise, step, target)
    target[far] = exact


def _noisy_item(item: Any, whole: bool, grid: Grid) -> int | float:
    noise = draw_one(grid.scale)
    return int(item) + noise if whole else _to_float(_to_steps(item, grid) + noise, grid)


def _to_steps(answer: Any, grid: Grid) -> int:
    """The multiple of the step nearest to the answer; NaN counts as 0, ±inf as the largest float."""
    number = float(answer)
    if number != number:  # noqa: PLR0124 - NaN
        return 0
    number = min(max(number, -_LARGEST), _LARGEST)
    if abs(grid.exponent) <= _ORDINARY and abs(number) < 2.0**100:
        return round(math.ldexp(number, -grid.exponent))  # exact: a power of two
    return round(Fraction(number) / grid.step)


def _to_float(steps: int, grid: Grid) -> float:
    """The float nearest to so many steps, held at the largest float."""
    try:
        if abs(steps) < 2**53:
            return math.ldexp(steps, grid.exponent)
        return float(steps * grid.step)
    except OverflowError:
        return _LARGEST if steps > 0 else -_LARGEST


@lru_cache(maxsize=256)
def _grid(whole: bool, delta: Fraction, epsilon: Fraction, changes: int) -> Grid:
    return integer_grid(delta, epsilon) if whole else float_grid(delta, epsilon, changes)


def _array(answer: Any) -> NDArray[Any]:
    """Lists keep their Python integers, of any size; everything else is numpy's choice."""
    try:
        return np.asarray(answer, object if isinstance(answer, list | tuple) else None)
    except (TypeError, ValueError):
        raise InvalidParameter("answer must be numbers in a regular shape") from None


def _is_whole(array: NDArray[Any]) -> bool:
    """Whether the answers are integers; decided by their types, never by their values."""
    if array.dtype == object:
        kinds = {type(item) for item in array.flat}
        if not all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
            raise InvalidParameter("answer must be integers or floats in a regular shape")
        return all(issubclass(kind, int | np.integer | np.bool_) for kind in kinds)
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(f"answer must be integers or floats, got an array of {array.dtype}")
    return array.dtype.kind != "f"


def _checked_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype or not out.flags.writeable:
        raise InvalidParameter(f"out must be a writeable array of {dtype} with the shape {shape}")
    return out


def _counted(changes: Any) -> int:
    try:
        count = 0 if isinstance(changes, bool) else operator.index(changes)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidParameter(f"changes must be a whole number of at least 1, got {changes!r}")
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySum:
    """An integer total after noise: `value` = step·(round(total/step) + DLap(scale)), in grid units."""

    value: int
    step: int
    scale: Fraction
    """The scale of the noise, in steps."""

    @property
    def spread(self) -> Fraction:
        """The scale of the noise, in grid units."""
        return self.scale * self.step


def noisy_sums(totals: Exact[Any], scales: list[Fraction], epsilon: Fraction) -> list[NoisySum]:
    """The totals Tᵢ with exact noise of scales bᵢ, where no unit moves Σ|Tᵢ|/bᵢ by more than ε.

    A large total is first rounded to a public step cᵢ of about 2⁻²⁰·bᵢ·ε, which moves it by up to one step more. The
    scale in steps becomes bᵢ/(cᵢ·(1−θ)) with θ = Σ cᵢ/(bᵢ·ε), since then Σ(|Tᵢ|/cᵢ + 1)·cᵢ·(1−θ)/bᵢ ≤
    (1−θ)·ε + (1−θ)·θ·ε ≤ ε.
    """
    steps = [2 ** max(0, floor_log2(scale * epsilon) - 20) for scale in scales]
    rounded = sum((step / (scale * epsilon) for step, scale in zip(steps, scales, strict=True) if step > 1), Fraction())
    found = []
    for total, step, scale in zip(totals.reveal(), steps, scales, strict=True):
        widened = scale if not rounded else _rounded_up(scale / (1 - rounded) / step)
        noise = draw_one(widened)
        found.append(NoisySum(value=step * (_nearest_multiple(total, step) + noise), step=step, scale=widened))
    return found


def noisy_counts(counts: Exact[NDArray[np.int64]], scale: Fraction) -> NDArray[np.int64]:
    """Every count, also an empty one, with exact noise of this scale."""
    exact = counts.reveal()
    noise = np.empty(exact.size, np.int64)
    fill(noise, scale)
    return np.add(exact, noise, noise)


def noisy_tree(counts: Exact[NDArray[np.int64]], tree: Tree) -> tuple[NDArray[np.int64], ...]:
    """The sums of the nodes of a tree over the counts, each with exact noise."""
    return tree.noisy(counts.reveal())


def choose_cell(
    counts: Exact[NDArray[np.int64]],
    *,
    share: Fraction,
    offset: Fraction,
    over: Fraction,
    under: Fraction,
    beyond: bool = False,
) -> int:
    """The index of a cell near rank r = share·N + offset, by permute-and-flip.

    With c₍ records before a cell and c₎ up to its end, a cell that begins after rank r costs over·(c₍ − r), one that
    ends before it under·(r − c₎), and one that holds it nothing. With `beyond` there is an empty cell before all others
    (it has the index 0) and one after all others.
    """
    exact = counts.reveal()
    if beyond:
        exact = np.concatenate([[0], exact, [0]])
    after = np.cumsum(exact)
    unit, above, below = common_unit(over, under)
    shared = math.lcm(share.denominator, offset.denominator)
    rank = int((share * int(after[-1]) + offset) * shared)
    gaps = np.maximum(above * ((after - exact) * shared - rank), below * (rank - after * shared))
    return choose(np.maximum(gaps, 0, gaps), unit / shared)


def textbook(
    answer: Exact[Callable[[Fraction], int]], sensitivity: Fraction, epsilon: Fraction
) -> tuple[Fraction, Grid]:
    """An answer by Algorithm 1, on a public grid that pays for its rounding; the answer gives its floor in steps."""
    grid = _grid(False, sensitivity, epsilon, 1)
    return (answer.reveal()(grid.step) + draw_one(grid.scale)) * grid.step, grid


def _nearest_multiple(total: int, step: int) -> int:
    return (2 * total + step) // (2 * step)


def _rounded_up(scale: Fraction) -> Fraction:
    """A scale with a short denominator."""
    return Fraction(-(-scale.numerator * 2**20 // scale.denominator), 2**20)  # rounds up: more noise
