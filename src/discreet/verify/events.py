"""The events of an audit, fixed before the outputs that it counts: from public lists and from a
pilot sample.

    every coordinate   tails ≤ t and ≥ t at quantiles of the pilot; single values near both centres
                       and the most
                       frequent ones; residues modulo 2 … 10 of integers; multiples of 2^k, k = −80
                       … 10
    several            the coordinates that separate the sides best, all beyond their centres at
                       once
    kinds              types, NaN, ±inf, −0.0, errors by name, anything not seen in the pilot;
                       lengths of texts

The pilot is a separate sample that is discarded afterwards, so the bounds of the main sample hold
for all events at once by Bonferroni's inequality. The audit does not see a difference that no event
here shows. An output is a number, a list of numbers, None, a text, or an error: an exception is an
output like any other. A mechanism that takes `size` returns an array of `size` outputs in one call
(its first axis); any other mechanism returns one output per call.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

Integers = NDArray[np.int64]

_LEVELS = (0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.999)
_NEAR = 4  # integers on either side of a centre that are separate events
_FREQUENT = 12
_COORDINATES = 4  # coordinates that are used: those whose centres are furthest apart in the pilot
_POWERS = range(-80, 11)
_MODULI = range(2, 11)
LENGTH_LABELS = [f"text of {length} characters" for length in range(1, 40)]
_ALWAYS = (
    "error of any kind",
    "NaN",
    "infinite",
    "−0.0",
    "NoneType",
    "another kind than in the pilot",
)
_TEXTS = 2_000  # outputs of a batch that are read as text: formatting numbers is slow
_MOST_COUNTED = 2**20  # integers within a range of this size are counted, not sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    kinds: Counter[str] = field(default_factory=Counter)
    lengths: Counter[str] = field(default_factory=Counter)
    texts: int = 0  # outputs that were read as text
    numbers: NDArray[Any]  # the numeric outputs: outputs × coordinates, int64 or float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    index: int
    tails: NDArray[Any]
    values: NDArray[Any]
    centres: tuple[float, float]
    separation: float  # how far apart the centres are, in units of the spread

    def labels(self, several: bool) -> list[str]:
        name = f"output[{self.index}]" if several else "output"
        return [
            *(f"{name} ≤ {edge:.6g}" for edge in self.tails.tolist()),
            *(f"{name} ≥ {edge:.6g}" for edge in self.tails.tolist()),
            *(f"{name} = {value:.6g}" for value in self.values.tolist()),
            *(
                f"{name} mod {modulus} = {residue}"
                for modulus in _MODULI
                for residue in range(modulus)
            ),
            *(f"{name} is a multiple of 2^{power}" for power in _POWERS),
        ]

    def count(self, column: NDArray[Any]) -> Integers:
        values, counts = _value_counts(column)
        below = np.concatenate([[0], np.cumsum(counts)])
        until = below[np.searchsorted(values, self.tails, side="right")]
        before = below[np.searchsorted(values, self.tails, side="left")]
        alike = below[np.searchsorted(values, self.values, side="right")]
        alike = alike - below[np.searchsorted(values, self.values, side="left")]
        return np.concatenate(
            [
                until,
                below[-1] - before,
                alike,
                _residues(values, counts),
                _multiples(values, counts),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    coordinates: tuple[Coordinate, ...]
    kinds: tuple[str, ...]
    labels: tuple[str, ...]

    def count(self, batch: Batch) -> Integers:
        counts = batch.kinds
        expected = set(self.kinds) | set(_ALWAYS)
        fixed = {
            "error of any kind": sum(
                count for kind, count in counts.items() if kind.startswith("error ")
            ),
            "another kind than in the pilot": sum(
                count for kind, count in counts.items() if kind not in expected
            ),
        }
        kinds = np.array(
            [fixed.get(kind, counts[kind]) for kind in (*_ALWAYS, *self.kinds)], np.int64
        )
        parts = [axis.count(_column(batch, axis.index)) for axis in self.coordinates]
        return np.concatenate([kinds, *parts, np.array(_joint(self.coordinates, batch), np.int64)])


def events_of(first: Batch, second: Batch) -> Events:
    """The events of two sides, from a pilot of each."""
    width = max(first.numbers.shape[1], second.numbers.shape[1])
    coordinates = [
        axis for index in range(width) if (axis := _coordinate(first, second, index)) is not None
    ]
    apart = sorted(coordinates, key=lambda axis: -axis.separation)[:_COORDINATES]
    kinds = tuple(sorted((set(first.kinds) | set(second.kinds)) - set(_ALWAYS)))
    labels = [label for axis in apart for label in axis.labels(width > 1)]
    labels += [f"the first {many} of them beyond {side}" for many, side in _joined(apart)]
    return Events(coordinates=tuple(apart), kinds=kinds, labels=(*_ALWAYS, *kinds, *labels))


def merge(parts: Sequence[Batch]) -> Batch:
    width = max(part.numbers.shape[1] for part in parts)
    columns = [
        part.numbers for part in parts if part.numbers.shape[1] == width and part.numbers.size
    ]
    return Batch(
        kinds=sum((part.kinds for part in parts), Counter()),
        lengths=sum((part.lengths for part in parts), Counter()),
        texts=sum(part.texts for part in parts),
        numbers=np.concatenate(columns) if columns else np.empty((0, width)),
    )


def _column(batch: Batch, index: int) -> NDArray[Any]:
    return batch.numbers[:, index] if index < batch.numbers.shape[1] else np.empty(0)


def _coordinate(first: Batch, second: Batch, index: int) -> Coordinate | None:
    sides = [_column(batch, index) for batch in (first, second)]
    own = np.concatenate(sides)
    sides = [side if side.size else sides[1 - index] for index, side in enumerate(sides)]
    if not sides[0].size:
        return None
    pooled = np.concatenate(sides)
    values, counts = _value_counts(pooled)
    centres = [np.quantile(side, 0.5, method="lower") for side in sides]
    tails = np.quantile(pooled, _LEVELS, method="lower")
    near = [centre + step for centre in centres for step in range(-_NEAR, _NEAR + 1)]
    frequent = values[np.argsort(-counts, kind="stable")[:_FREQUENT]]
    return Coordinate(
        index=index,
        tails=np.unique(np.concatenate([tails, near])),
        values=np.unique(np.concatenate([frequent, np.array(near, pooled.dtype)])),
        centres=(float(centres[0]), float(centres[1])),
        separation=abs(float(centres[0]) - float(centres[1]))
        / (float(np.abs(own - np.median(own)).mean()) or 1.0),
    )


def _joined(coordinates: Sequence[Coordinate]) -> list[tuple[int, str]]:
    return [
        (many, side) for many in range(2, len(coordinates) + 1) for side in ("x", "its neighbor")
    ]


def _joint(coordinates: Sequence[Coordinate], batch: Batch) -> list[int]:
    """How often the first coordinates all lie beyond the centre of a side, seen from the other
    side.
    """
    counts = []
    for many, side in _joined(coordinates):
        alive = np.ones(len(batch.numbers), np.bool_)
        for axis in coordinates[:many]:
            mine, theirs = axis.centres if side == "x" else axis.centres[::-1]
            column = _column(batch, axis.index)
            if column.size != alive.size:  # this side has fewer coordinates
                alive[:] = False
                break
            alive &= column >= mine if mine >= theirs else column <= mine
        counts.append(int(alive.sum()))
    return counts


def _residues(values: NDArray[Any], counts: Integers) -> Integers:
    """How often each residue occurs among integers; floats have none."""
    if values.dtype != np.int64:
        return np.zeros(sum(_MODULI), np.int64)
    residues = [
        np.bincount(values % modulus, counts, modulus).astype(np.int64) for modulus in _MODULI
    ]
    return np.concatenate(residues)


def _multiples(values: NDArray[Any], counts: Integers) -> Integers:
    """How many values are multiples of each power of two: by the last bit that is set."""
    mantissas, exponents = np.frexp(values.astype(np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = (np.frexp((whole & -whole).astype(np.float64))[1] - 1) + exponents - 53
    lowest = np.where(whole == 0, _POWERS[-1], np.clip(lowest, _POWERS[0] - 1, _POWERS[-1])) - (
        _POWERS[0] - 1
    )
    by_power = np.bincount(lowest, counts, len(_POWERS) + 1).astype(np.int64)
    return np.cumsum(by_power[::-1])[::-1][1:]


class _Failure(str):
    """An exception as an output: the name of its type."""

    __slots__ = ()


def takes_size(mechanism: Callable[..., Any]) -> bool:
    try:
        return "size" in inspect.signature(mechanism).parameters
    except (TypeError, ValueError):
        return False


def batches(mechanism: Callable[..., Any], x: Any, draws: int, batch: int) -> Iterator[Batch]:
    many = takes_size(mechanism)
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        yield (
            _together(mechanism, x, size)
            if many
            else _one_by_one([_output(mechanism, x) for _ in range(size)])
        )


def _output(mechanism: Callable[..., Any], x: Any) -> Any:
    try:
        output = mechanism(x)
    except Exception as error:  # an outcome that may depend on the data
        return _Failure(type(error).__name__)
    return getattr(output, "value", output)


def _together(mechanism: Callable[..., Any], x: Any, size: int) -> Batch:
    try:
        array = np.asarray(mechanism(x, size=size))
    except Exception as error:  # all of them, then
        return Batch(
            kinds=Counter({f"error {type(error).__name__}": size}), numbers=np.empty((0, 1))
        )
    if array.ndim == 0 or len(array) != size:
        raise InvalidParameter(
            f"a mechanism that takes size must return {size} outputs, got {array.shape}"
        )
    if array.dtype.kind not in "biuf":
        return _one_by_one(list(array))
    array = array.reshape(size, -1)
    numbers = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    kinds = Counter({f"{array.shape[1]} × {array.dtype.name}": size})
    return _batch(numbers, kinds, array[:_TEXTS].tolist(), min(_TEXTS, size))


def _one_by_one(outputs: list[Any]) -> Batch:
    read = [_read(output) for output in outputs]
    rows = [row for _, row in read if row is not None]
    width = max((len(row) for row in rows), default=1)
    rows = [row for row in rows if len(row) == width]
    whole = all(isinstance(number, int) and abs(number) < 2**62 for row in rows for number in row)
    numbers = np.array(rows, np.int64 if whole else np.float64).reshape(len(rows), width)
    shown = [output for output in outputs[:_TEXTS] if not isinstance(output, _Failure)]
    return _batch(numbers, Counter(kind for kind, _ in read), shown, min(_TEXTS, len(outputs)))


def _read(output: Any) -> tuple[str, list[Any] | None]:
    """The kind of an output, and its numbers."""
    if isinstance(output, _Failure):
        return f"error {output}", None
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, bool | int | float):
        return type(output).__name__, [float(output) if isinstance(output, float) else int(output)]
    if (
        isinstance(output, list | tuple)
        and output
        and all(isinstance(item, bool | int | float) for item in output)
    ):
        return f"{len(output)} × {type(output[0]).__name__}", list(output)
    return type(output).__name__, None


def _batch(numbers: NDArray[Any], kinds: Counter[str], shown: list[Any], texts: int) -> Batch:
    """Numbers and texts as a batch; NaN, infinities and −0.0 become kinds."""
    if numbers.dtype == np.float64:
        zero = (numbers == 0) & np.signbit(numbers)
        for name, mask in (
            ("NaN", np.isnan(numbers)),
            ("infinite", np.isinf(numbers)),
            ("−0.0", zero),
        ):
            if count := int(mask.any(axis=1).sum()):
                kinds[name] = count
        usable = np.isfinite(numbers).all(axis=1)
        numbers = numbers if usable.all() else numbers[usable]
    lengths = Counter(f"text of {len(repr(output))} characters" for output in shown)
    return Batch(kinds=kinds, lengths=lengths, texts=texts, numbers=numbers)


def _value_counts(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct values of a column in order, and how often each occurs."""
    if column.size == 0:
        return column, np.empty(0, np.int64)
    if column.dtype == np.int64:
        low, high = int(column.min()), int(column.max())
        if high - low < _MOST_COUNTED:
            counts = np.bincount(column - low)
            present = np.flatnonzero(counts)
            return present + low, counts[present]
    values, counts = np.unique(column, return_counts=True)
    return values, counts
