"""What a mechanism gave, many times over: kinds of outputs, lengths of their texts, and numbers by coordinate.

An output is a number, a list of numbers, None, a text, or an error: an exception is an output like any other.
A mechanism that takes `size` gives an array of so many outputs in one call (its first axis); another gives one a call.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

TEXTS = 2_000
"""Outputs of a batch whose text is looked at: writing numbers as text is slow."""

_MOST_COUNTED = 2**20
"""Integers within a range of this size are counted, not sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Outputs of one side."""

    kinds: Counter[str] = field(default_factory=Counter)
    lengths: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    """Outputs whose text was looked at."""
    numbers: NDArray[Any]
    """Outputs × coordinates, of those that are numbers: int64 or float64."""


class Failure:
    """An exception as an output; only its type is kept."""

    def __init__(self, error: Exception) -> None:
        self.name = type(error).__name__


def takes_size(mechanism: Callable[..., Any]) -> bool:
    """Whether the mechanism gives many outputs in one call."""
    try:
        return "size" in inspect.signature(mechanism).parameters
    except (TypeError, ValueError):
        return False


def batches(mechanism: Callable[..., Any], x: Any, draws: int, batch: int) -> Iterator[Batch]:
    """So many outputs, some at a time."""
    many = takes_size(mechanism)
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        yield _together(mechanism, x, size) if many else _one_by_one([_output(mechanism, x) for _ in range(size)])


def _output(mechanism: Callable[..., Any], x: Any) -> Any:
    try:
        output = mechanism(x)
    except Exception as error:  # an outcome that may depend on the data
        return Failure(error)
    return getattr(output, "value", output)


def _together(mechanism: Callable[..., Any], x: Any, size: int) -> Batch:
    try:
        array = np.asarray(mechanism(x, size=size))
    except Exception as error:  # all of them, then
        return Batch(kinds=Counter({f"error {type(error).__name__}": size}), numbers=np.empty((0, 1)))
    if array.ndim == 0 or len(array) != size:
        raise InvalidParameter(f"a mechanism that takes size must give so many outputs, {size}, got {array.shape}")
    if array.dtype.kind not in "biuf":
        return _one_by_one(list(array))
    array = array.reshape(size, -1)
    numbers = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    kinds = Counter({f"{array.shape[1]} × {array.dtype.name}": size})
    return _batch(numbers, kinds, array[:TEXTS].tolist(), min(TEXTS, size))


def _one_by_one(outputs: list[Any]) -> Batch:
    read = [_read(output) for output in outputs]
    rows = [row for _, row in read if row is not None]
    width = max((len(row) for row in rows), default=1)
    rows = [row for row in rows if len(row) == width]
    whole = all(isinstance(number, int) and abs(number) < 2**62 for row in rows for number in row)
    numbers = np.array(rows, np.int64 if whole else np.float64).reshape(len(rows), width)
    shown = [output for output in outputs[:TEXTS] if not isinstance(output, Failure)]
    return _batch(numbers, Counter(kind for kind, _ in read), shown, min(TEXTS, len(outputs)))


def _read(output: Any) -> tuple[str, list[Any] | None]:
    """The kind of an output, and its numbers."""
    if isinstance(output, Failure):
        return f"error {output.name}", None
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, bool | int | float):
        return type(output).__name__, [float(output) if isinstance(output, float) else int(output)]
    if isinstance(output, list | tuple) and output and all(isinstance(item, bool | int | float) for item in output):
        return f"{len(output)} × {type(output[0]).__name__}", list(output)
    return type(output).__name__, None


def _batch(numbers: NDArray[Any], kinds: Counter[str], shown: list[Any], texts: int) -> Batch:
    """Numbers and texts as a batch; what floats can be besides numbers is a kind."""
    if numbers.dtype == np.float64:
        zero = (numbers == 0) & np.signbit(numbers)
        for name, mask in (("NaN", np.isnan(numbers)), ("infinite", np.isinf(numbers)), ("−0.0", zero)):
            if count := int(mask.any(axis=1).sum()):
                kinds[name] = count
        usable = np.isfinite(numbers).all(axis=1)
        numbers = numbers if usable.all() else numbers[usable]
    lengths = Counter(f"text of {len(repr(output))} characters" for output in shown)
    return Batch(kinds=kinds, lengths=lengths, texts=texts, numbers=numbers)


def counted(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct values of a column in order, and how often each occurs."""
    if column.size == 0:
        return column, np.empty(0, np.int64)
    if column.dtype == np.int64:
        low, high = int(column.min()), int(column.max())
        if high - low < _MOST_COUNTED:
            counts = np.bincount(column - low)
            there = np.flatnonzero(counts)
            return there + low, counts[there]
    values, counts = np.unique(column, return_counts=True)
    return values, counts
