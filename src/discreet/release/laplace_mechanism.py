"""Algorithm 1 [DMNS06]: the Laplace mechanism, f(x) + (Z₁, …, Z_d), on answers from the caller.

    integers: out = answer + DLap(Δ/ε)                   exactly; integers in, integers out
    floats:   out = g · ( round(answer/g) + DLap(t) )    on a public step g = 2^e (calibrate.grid)

Theorem: if no unit can move the answer by more than Δ in the L1 norm, the output is
ε-differentially private. Data never raises an error: NaN counts as 0, ±inf and integers beyond the
floats count as the largest float, and int64 arrays saturate instead of wrapping. Answers are
converted to plain numbers before ε is spent; a subclass of int or float counts as the number that
it holds, whatever its methods do. The mechanism cannot know the sensitivity of f.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.calibrate.grid import Grid, grid_of
from discreet.draw.addition import add_into, noisy, noisy_into
from discreet.draw.vector import beyond_int64
from discreet.engines.array import safely
from discreet.errors import InvalidParameter
from discreet.parameters import Epsilon, Number, exact_count, exact_epsilon, exact_sensitivity
from discreet.release.account import Account, charged
from discreet.release.size import refuse_long
from discreet.release.tape import drawn, on_tape

# numbers that get noise at a time: 4 MiB of noise, whatever the length of the answer
_CHUNK = 2**19
_FAR = 2**62  # the sum of two integers below this in size fits in int64
# steps between 2⁻⁹⁰⁰ and 2⁹⁰⁰: scaling int64 by them neither overflows nor loses bits
_ORDINARY = 900

_LARGEST = sys.float_info.max


def laplace_mechanism(
    answer: Number | ArrayLike | Sequence[Number],
    *,
    sensitivity: Number,
    epsilon: Epsilon,
    changes: int | None = None,
    out: NDArray[Any] | None = None,
    **account: Unpack[Account],
) -> Any:
    """Add exact Laplace noise to an answer that you computed: Algorithm 1.

    Parameters
    ----------
    answer : number, list or array
        f(x). NaN counts as 0; no value raises an error.
    sensitivity : number or text
        Δ, the most that one person can move the answer, summed over its coordinates. You must know
        it.
    epsilon : number or text
        The privacy parameter: the smaller, the more noise. Calls add up.
    changes : int, optional
        How many coordinates one person can move; by default all of them. It matters for floats
        only.
    out : array, optional
        An array for the result; it may be the answer itself.
    **account
        ledger= and study=: the call is charged before the noise is drawn; `out` is filled after the
        record is on disk.

    Returns
    -------
    int, float, list or array
        The type of the answer: integers stay integers, and a list stays a list.

    Examples
    --------
    >>> noisy = laplace_mechanism([120, 80, 0], sensitivity=2, epsilon="0.1")
    >>> [type(count).__name__ for count in noisy]
    ['int', 'int', 'int']

    See docs/index.md.

    """
    delta, exact = exact_sensitivity(sensitivity), exact_epsilon(epsilon)
    if changes is not None:
        changes = exact_count("changes", changes)
    if issubclass(type(answer), int | float) and out is None and not account:
        number = _plain(answer)
        whole = isinstance(number, int)
        grid = grid_of(whole, delta, exact, changes or 1)
        return drawn(lambda: _noisy_number(number, whole, grid), "answer", grid)
    array = _array(answer)
    task = _Task(array, delta, exact, changes)
    target = _memory(out)
    if out is not None and (
        target is None or (target.shape, target.dtype) != (array.shape, task.dtype)
    ):
        raise InvalidParameter(
            f"out must be a writeable array of {task.dtype} with the shape {array.shape}"
        )
    parameters = {
        "sensitivity": delta,
        "changes": changes,
        "type": task.dtype.name,
        "shape": list(array.shape),
    }
    if account:
        refuse_long(array.size)
    result = (
        charged(account, "laplace_mechanism", parameters, exact, task.release)
        if account
        else task.release(target)
    )
    if target is not None:
        # after the record is on disk: earlier, a caller could see an unrecorded draw
        if result is not target:
            target[...] = result
        return out
    return result.tolist() if array.ndim == 0 or _is_list(answer) else result


class _Task:
    """Noise on an array, after all checks."""

    def __init__(
        self, array: NDArray[Any], delta: Fraction, epsilon: Fraction, changes: int | None
    ) -> None:
        self.array = array
        self.whole = _is_whole(array)
        self.grid = grid_of(self.whole, delta, epsilon, changes or max(1, array.size))
        self.big = array.dtype == object or beyond_int64(self.grid.scale)
        self.dtype = np.dtype(
            object if self.big and self.whole else np.int64 if self.whole else np.float64
        )

    def release(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The result, via the tape if there is one, otherwise in `out`."""
        terms = "answer", self.grid, self.dtype.name, *self.array.shape
        result = drawn(
            lambda: self._written(self._run(None)) if on_tape() else self._run(out), *terms
        )
        return result if isinstance(result, np.ndarray) else self._read(result)

    def _written(self, result: NDArray[Any]) -> list[Any]:
        """The numbers in JSON's types; large integers in hexadecimal, because Python limits the
        digits of a decimal.
        """
        numbers = result.reshape(-1).tolist()
        return [hex(number) for number in numbers] if self.dtype == object else numbers

    def _read(self, numbers: list[Any]) -> NDArray[Any]:
        result = np.empty(len(numbers), self.dtype)
        result[:] = [int(number, 16) for number in numbers] if self.dtype == object else numbers
        return result.reshape(self.array.shape)

    def _run(self, out: NDArray[Any] | None) -> NDArray[Any]:
        """The result, drawn in chunks."""
        result = np.empty(self.array.shape, self.dtype) if out is None else out
        if self.array.size == 0:
            return result
        if self.big:
            for source, target in _chunks(self.array, result):
                target[...] = _noisy_numbers(source.tolist(), self.whole, self.grid)
            return result
        noise = np.empty(min(self.array.size, _CHUNK), np.int64)
        for source, target in _chunks(self.array, result):
            part = noise[: source.size]
            if self.whole:
                noisy_into(target, source, self.grid.scale, noise=part)
            else:
                _noisy_reals(source, part, target, self.grid)
        return result


def _chunks(array: NDArray[Any], result: NDArray[Any]) -> Any:
    """Pairs of one-dimensional parts, in the same order; views where the layout allows."""
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


def _noisy_reals(
    source: NDArray[Any], part: NDArray[np.int64], target: NDArray[np.float64], grid: Grid
) -> None:
    """target = (round(source/step) + noise)·step; in int64 if it fits, or Python's integers."""
    if abs(grid.exponent) > _ORDINARY:
        target[...] = _noisy_numbers(source.tolist(), False, grid)
        return
    step = 2.0**grid.exponent
    with np.errstate(all="ignore"):
        steps = np.multiply(source, 1 / step, dtype=np.float64)  # exact: a power of two
        np.rint(steps, steps)
        beyond: dict[int, int] = {}
        if not (np.minimum.reduce(steps) > -_FAR and np.maximum.reduce(steps) < _FAR):  # NaN, too
            far = np.flatnonzero(~(np.abs(steps) < _FAR)).tolist()
            beyond = {index: _to_steps(source[index], grid) for index in far}
        sums = add_into(part, steps.astype(np.int64), grid.scale, beyond)
        np.multiply(part, step, target)
    target[list(beyond)] = [_to_float(total, grid) for total in sums]


def _noisy_number(number: Any, whole: bool, grid: Grid) -> int | float:
    """One number with noise."""
    if whole:
        return noisy(int(number), grid.scale)
    return _to_float(noisy(_to_steps(number, grid), grid.scale), grid)


def _noisy_numbers(numbers: list[Any], whole: bool, grid: Grid) -> list[Any]:
    """Numbers of any size with noise."""
    if whole:
        return noisy(numbers, grid.scale)
    return [
        _to_float(total, grid)
        for total in noisy([_to_steps(one, grid) for one in numbers], grid.scale)
    ]


def _to_steps(answer: Any, grid: Grid) -> int:
    """The nearest multiple of the step; NaN counts as 0, and too large numbers as the largest."""
    try:
        number = float(answer)
    except OverflowError:  # an integer among floats
        number = _LARGEST if answer > 0 else -_LARGEST
    if number != number:  # noqa: PLR0124 - NaN
        return 0
    number = min(max(number, -_LARGEST), _LARGEST)
    if abs(grid.exponent) <= _ORDINARY and abs(number) < 2.0**100:
        return round(math.ldexp(number, -grid.exponent))  # exact: a power of two
    return round(Fraction(number) / grid.step)


def _to_float(steps: int, grid: Grid) -> float:
    """The float nearest to so many steps, clamped to the largest float."""
    try:
        if abs(steps) < 2**53:
            return math.ldexp(steps, grid.exponent)
        return float(steps * grid.step)
    except OverflowError:
        return _LARGEST if steps > 0 else -_LARGEST


def _memory(out: object) -> NDArray[Any] | None:
    """The array without its subclass, whose code would run after the spend; None if read-only."""
    if not issubclass(type(out), np.ndarray) or issubclass(type(out), np.ma.MaskedArray):
        return None
    array = np.asarray(out)
    return array if array.flags.writeable else None


def _array(answer: Any) -> NDArray[Any]:
    """The answer as an array of numpy's numbers or, for lists, of Python's, which have any size."""
    if issubclass(type(answer), np.ma.MaskedArray):
        raise InvalidParameter(
            "answer must be an array without a mask; fill it first, as in answer.filled(0)"
        )
    return safely(
        answer, _read, InvalidParameter("answer must be integers or floats in a regular shape")
    )


def _read(answer: Any) -> NDArray[Any]:
    if _is_list(answer) or issubclass(type(answer), int | float):
        return np.asarray(_plain_items(answer), object)
    array = np.asarray(answer)  # without a subclass, whose code would run after the spend
    if array.dtype != object:
        return array
    plain = np.empty(array.size, object)
    plain[:] = [_plain(item) for item in array.reshape(-1).tolist()]
    return plain.reshape(array.shape)


def _plain_items(answer: Any) -> Any:
    """Lists of plain numbers, however deep."""
    if issubclass(type(answer), np.ndarray):
        answer = answer.tolist()
    return [_plain_items(item) for item in answer] if _is_list(answer) else _plain(answer)


def _is_list(answer: Any) -> bool:
    return issubclass(type(answer), list | tuple)  # `isinstance` would ask the answer for its class


def _plain(item: Any) -> int | float:
    """The number that an item holds, in Python's own types; no method of a subclass is called."""
    kind = type(item)
    if issubclass(kind, int):
        return int.__int__(item)
    if issubclass(kind, float):
        return float.__float__(item)
    if issubclass(kind, np.integer | np.bool_) and not issubclass(kind, np.timedelta64):
        return int(np.generic.item(item))
    if issubclass(kind, np.floating):
        with np.errstate(all="ignore"):  # a warning would reveal a value
            return float(np.generic.astype(item, np.float64))
    raise TypeError


def _is_whole(array: NDArray[Any]) -> bool:
    """Whether the answers are integers; decided by their types, never by their values."""
    if array.dtype == object:
        kinds = {type(item) for item in array.flat}
        if not kinds <= {int, float}:  # a ragged list
            raise InvalidParameter("answer must be integers or floats in a regular shape")
        return kinds <= {int}
    if array.dtype.kind not in "biuf":
        raise InvalidParameter("answer must be integers or floats")
    return array.dtype.kind != "f"
