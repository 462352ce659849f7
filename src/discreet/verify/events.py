"""Events that an audit looks at, fixed before the outputs that it counts: from public lists and from a pilot sample.

    every coordinate   tails ≤ t and ≥ t at quantiles of the pilot; single values near both centres and the most
                       frequent ones; residues modulo 2 … 10 of integers; multiples of 2^k, k = −80 … 10
    several            the first coordinates that tell the sides apart, all beyond their centres at once
    kinds              types, NaN, ±inf, −0.0, errors by name, anything not seen in the pilot; lengths of texts

The pilot is a sample of its own, thrown away afterwards, so the bounds of the main sample hold for every event at once
by Bonferroni's inequality. What no event here tells apart, the audit does not see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.verify.outputs import Batch, counted

Integers = NDArray[np.int64]

_LEVELS = (0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.999)
_NEAR = 4
"""Integers to either side of a centre that are events of their own."""

_FREQUENT = 12
_COORDINATES = 4
"""Coordinates that are looked at: those whose centres are furthest apart in the pilot."""

_POWERS = range(-80, 11)
_MODULI = range(2, 11)
LENGTH_LABELS = [f"text of {length} characters" for length in range(1, 40)]
"""Events of texts, of which only some are looked at."""

_ALWAYS = ("error of any kind", "NaN", "infinite", "−0.0", "NoneType", "another kind than in the pilot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """The events of one coordinate."""

    index: int
    tails: NDArray[Any]
    values: NDArray[Any]
    centres: tuple[float, float]
    separation: float
    """How far apart the centres are, in units of the spread."""

    def labels(self, several: bool) -> list[str]:
        """What each event is."""
        name = f"output[{self.index}]" if several else "output"
        return [
            *(f"{name} ≤ {edge:.6g}" for edge in self.tails.tolist()),
            *(f"{name} ≥ {edge:.6g}" for edge in self.tails.tolist()),
            *(f"{name} = {value:.6g}" for value in self.values.tolist()),
            *(f"{name} mod {modulus} = {rest}" for modulus in _MODULI for rest in range(modulus)),
            *(f"{name} is a multiple of 2^{power}" for power in _POWERS),
        ]

    def count(self, column: NDArray[Any]) -> Integers:
        """How often each event happened."""
        values, counts = counted(column)
        below = np.concatenate([[0], np.cumsum(counts)])
        until = below[np.searchsorted(values, self.tails, side="right")]
        before = below[np.searchsorted(values, self.tails, side="left")]
        alike = below[np.searchsorted(values, self.values, side="right")]
        alike = alike - below[np.searchsorted(values, self.values, side="left")]
        return np.concatenate([until, below[-1] - before, alike, _residues(values, counts), _multiples(values, counts)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """All events of an audit, in one order."""

    coordinates: tuple[Coordinate, ...]
    kinds: tuple[str, ...]
    labels: tuple[str, ...]

    def count(self, batch: Batch) -> Integers:
        """How often each event happened."""
        seen = batch.kinds
        known = set(self.kinds) | set(_ALWAYS)
        fixed = {
            "error of any kind": sum(count for kind, count in seen.items() if kind.startswith("error ")),
            "another kind than in the pilot": sum(count for kind, count in seen.items() if kind not in known),
        }
        kinds = np.array([fixed.get(kind, seen[kind]) for kind in (*_ALWAYS, *self.kinds)], np.int64)
        parts = [axis.count(_column(batch, axis.index)) for axis in self.coordinates]
        return np.concatenate([kinds, *parts, np.array(_joint(self.coordinates, batch), np.int64)])


def events_of(first: Batch, second: Batch) -> Events:
    """The events for two sides, from a pilot of each."""
    width = max(first.numbers.shape[1], second.numbers.shape[1])
    coordinates = [axis for index in range(width) if (axis := _coordinate(first, second, index)) is not None]
    apart = sorted(coordinates, key=lambda axis: -axis.separation)[:_COORDINATES]
    kinds = tuple(sorted((set(first.kinds) | set(second.kinds)) - set(_ALWAYS)))
    labels = [label for axis in apart for label in axis.labels(width > 1)]
    labels += [f"the first {many} of them beyond {side}" for many, side in _joined(apart)]
    return Events(coordinates=tuple(apart), kinds=kinds, labels=(*_ALWAYS, *kinds, *labels))


def merged(parts: Sequence[Batch]) -> Batch:
    """Several batches as one."""
    width = max(part.numbers.shape[1] for part in parts)
    columns = [part.numbers for part in parts if part.numbers.shape[1] == width and part.numbers.size]
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
    sides = [side if side.size else sides[1 - at] for at, side in enumerate(sides)]
    if not sides[0].size:
        return None
    pooled = np.concatenate(sides)
    values, counts = counted(pooled)
    centres = [np.quantile(side, 0.5, method="lower") for side in sides]
    tails = np.quantile(pooled, _LEVELS, method="lower")
    near = [centre + step for centre in centres for step in range(-_NEAR, _NEAR + 1)]
    frequent = values[np.argsort(-counts, kind="stable")[:_FREQUENT]]
    return Coordinate(
        index=index,
        tails=np.unique(np.concatenate([tails, near])),
        values=np.unique(np.concatenate([frequent, np.array(near, pooled.dtype)])),
        centres=(float(centres[0]), float(centres[1])),
        separation=abs(float(centres[0]) - float(centres[1])) / (float(np.abs(own - np.median(own)).mean()) or 1.0),
    )


def _joined(coordinates: Sequence[Coordinate]) -> list[tuple[int, str]]:
    return [(many, side) for many in range(2, len(coordinates) + 1) for side in ("x", "its neighbor")]


def _joint(coordinates: Sequence[Coordinate], batch: Batch) -> list[int]:
    """How often the first coordinates lie beyond the centre of a side, seen from the other, all at once."""
    found = []
    for many, side in _joined(coordinates):
        alive = np.ones(len(batch.numbers), np.bool_)
        for axis in coordinates[:many]:
            mine, theirs = axis.centres if side == "x" else axis.centres[::-1]
            column = _column(batch, axis.index)
            if column.size != alive.size:  # this side has fewer coordinates
                alive[:] = False
                break
            alive &= column >= mine if mine >= theirs else column <= mine
        found.append(int(alive.sum()))
    return found


def _residues(values: NDArray[Any], counts: Integers) -> Integers:
    """Of integers; floats have none."""
    if values.dtype != np.int64:
        return np.zeros(sum(_MODULI), np.int64)
    residues = [np.bincount(values % modulus, counts, modulus).astype(np.int64) for modulus in _MODULI]
    return np.concatenate(residues)


def _multiples(values: NDArray[Any], counts: Integers) -> Integers:
    """How many values are multiples of each power of two: by the last bit that is set."""
    mantissas, exponents = np.frexp(values.astype(np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = (np.frexp((whole & -whole).astype(np.float64))[1] - 1) + exponents - 53
    lowest = np.where(whole == 0, _POWERS[-1], np.clip(lowest, _POWERS[0] - 1, _POWERS[-1])) - (_POWERS[0] - 1)
    each = np.bincount(lowest, counts, len(_POWERS) + 1).astype(np.int64)
    return np.cumsum(each[::-1])[::-1][1:]
