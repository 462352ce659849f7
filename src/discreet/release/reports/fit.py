"""All tables of a report from its noisy cells, exactly (integers over a common denominator), and
their error bounds.

The estimates of a part (`axes`) from several sets are averaged with weights close to the inverse
variances, multiples of 2⁻¹⁶ that add up to 1. Any such weights give unbiased estimates, and tables
that agree with each other and with their totals, whatever the noise was.

A cell of a table is a combination of the noisy cells of all sets, so its error is the same
combination of all draws, whose distribution is public. By symmetry few weights differ, so the
distribution of a sum of thousands of draws needs only a short list of weights with their
multiplicities. This is post-processing, so floats are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.reports.allocation import Measured, below, information_of
from discreet.release.reports.axes import Axis, Floats, Levels
from discreet.release.statistics.spread import combined_radius

Question: TypeAlias = Sequence[tuple[int, Floats]]
"""For each axis, a level and a combination of its cells, or several combinations side by side."""

Key: TypeAlias = tuple[tuple[int, tuple[int, ...], bytes], ...]
"""What a question is known by."""

GRAIN = 2**16
"""The denominator of weights."""

COLD, WARM = 5, 2
"""Steps of Newton's method from a guess, and from the radius at another ε: at most, or nearly so.
"""

_ALIKE = 1 + 1e-4
"""Scales whose ratios to others differ by at most this factor are those of another ε: radii are in
the same ratio, and too large by no more than this. A search goes to four digits."""

_SIMILAR = 1.1
"""The same for a start: integrals far beyond a radius need nodes without end."""


def averages(axes: tuple[Axis, ...], measured: Measured, part: Levels) -> list[int]:
    """The weights of all sets in the estimate of a part."""
    precise = information_of(axes, [part], [levels for levels, _ in measured])[0]
    precise *= np.array([float(share) for _, share in measured]) ** 2
    weights = np.floor(precise / precise.sum() * GRAIN).astype(int)
    weights[weights.argmax()] += GRAIN - weights.sum()
    return [int(weight) for weight in weights]


def key_of(question: Question) -> Key:
    """What a question is known by."""
    return tuple((level, query.shape, query.tobytes()) for level, query in question)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Tables from noisy cells."""

    axes: tuple[Axis, ...]
    measured: Measured
    cells: Mapping[Levels, NDArray[Any]]
    """The noisy cells of each set, an array with an axis for each column."""
    unit: int
    """The integer that stands for one row."""
    known: int | None
    """The number of rows, if it is public."""

    def table(self, levels: Levels) -> tuple[NDArray[Any], int]:
        """The cells of a table as numerators and their common denominator."""
        steps = [axis.denominators(level) for axis, level in zip(self.axes, levels, strict=True)]
        numerators: Any = 0
        for part in product(*(range(level + 1) for level in levels)):
            cells = self._part(part)
            for index, (axis, low, high) in enumerate(zip(self.axes, part, levels, strict=True)):
                cells = axis.lifted(cells, index, low, high)
                cells = cells * math.prod(steps[index][: max(low - 1, 0)])
            numerators = numerators + cells
        return numerators, GRAIN * self.unit * math.prod(math.prod(step) for step in steps)

    @cached_property
    def _parts(self) -> dict[Levels, NDArray[Any]]:
        return {}

    @cached_property
    def _exact(self) -> Any:
        """An integer type that is large enough for everything."""
        largest = max(
            max(abs(int(cells.max())), abs(int(cells.min()))) * cells.size
            for cells in self.cells.values()
        )
        steps = math.prod(math.prod(axis.denominators(axis.levels)) for axis in self.axes)
        room = (
            max(largest, (self.known or 0) * self.unit)
            * GRAIN
            * steps
            * 2 ** (2 * len(self.axes) + 1)
        )
        return np.int64 if room < 2**62 else object

    def _part(self, part: Levels) -> NDArray[Any]:
        """The estimate of a part from all sets, times the denominators of its centres."""
        if part not in self._parts:
            self._parts[part] = self._averaged(part)
        return self._parts[part]

    def _averaged(self, part: Levels) -> NDArray[Any]:
        if self.known is not None and not any(part):
            return np.array(GRAIN * self.unit * self.known, self._exact).reshape(
                [1] * len(self.axes)
            )
        average: Any = 0
        for (levels, _), weight in zip(
            self.measured, averages(self.axes, self.measured, part), strict=True
        ):
            if weight == 0 or not below(part, levels):
                continue
            cells = self.cells[levels].astype(self._exact)
            for index, (axis, high, low) in enumerate(zip(self.axes, levels, part, strict=True)):
                cells = axis.summed(cells, index, high, low)
            average = average + weight * cells
        for index, (axis, low) in enumerate(zip(self.axes, part, strict=True)):
            average = axis.centred(average, index, low)
        return np.asarray(average)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of a report."""

    scales: tuple[float, ...]
    """For each set, the scale of a continuous draw with the variance of its noise, in rows."""
    slacks: tuple[float, ...]
    """For each set, how much further than such a draw its discrete noise can reach."""
    combined: Combined
    """What does not depend on ε, and is kept between the plans of a search."""

    def reach(self, question: Question, confidence: float) -> Floats:
        """The radius of the noise of each combination at this confidence."""
        key = key_of(question)
        _, _, weights, largest = self.combined.law(question, key)
        if not weights.size:
            return np.zeros(weights.shape[1])
        slack: Floats = (largest * np.array(self.slacks)[:, None]).max(axis=0)
        return self.combined.radii(key, np.array(self.scales), confidence) + slack


@dataclass(frozen=True, kw_only=True)
class Combined:
    """Combinations of cells of tables as combinations of the cells of all sets."""

    axes: tuple[Axis, ...]
    measured: Measured
    known: bool
    """Whether the number of rows is public."""

    def law(
        self, question: Question, key: Key | None = None
    ) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
        """The multiplicity and the set of each weight, the weights of each combination, and their
        largest by set.
        """
        key = key_of(question) if key is None else key
        if key not in self._laws:
            self._laws[key] = self._law(question)
        return self._laws[key]

    def kept_law(self, key: Key) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
        """The same for a question that was looked at before."""
        return self._laws[key]

    def radii(self, key: Key, scales: Floats, confidence: float) -> Floats:
        """The radii of continuous draws of these scales for a known law, kept from ε to ε."""
        steps, start = self.begun(key, scales, confidence)
        if not steps and start is not None:
            return start
        times, sets, weights, _ = self._laws[key]
        radii = combined_radius((weights * scales[sets][:, None]).T, confidence, times, start)
        self._radii[key, confidence] = scales, radii
        return radii

    def begun(self, key: Key, scales: Floats, confidence: float) -> tuple[int, Floats | None]:
        """The steps of Newton's method that radii need, and their start: 0 if close enough."""
        if (key, confidence) not in self._radii:
            return COLD, None
        before, radii = self._radii[key, confidence]
        if not (before > 0).all():  # of an ε so large that only the draw 0 is likely
            return COLD, None
        ratios = scales / before
        largest, smallest = float(ratios.max()), float(ratios.min())
        if largest > smallest * _SIMILAR:
            return COLD, None
        return 0 if largest <= smallest * _ALIKE else WARM, radii * largest

    @cached_property
    def keys(self) -> dict[tuple[str, str], list[Key]]:
        """The keys of the questions of a number of a table, kept."""
        return {}

    @cached_property
    def blocks(self) -> dict[Key, list[tuple[int, int, int]]]:
        """The work of the integrals of questions, kept (`spread.work`)."""
        return {}

    @cached_property
    def _radii(self) -> dict[tuple[Key, float], tuple[Floats, Floats]]:
        """Radii, and the scales that they are of."""
        return {}

    def _own(self, question: Question) -> set[int]:
        """The axes on which a combination is not all rows."""
        return {
            index
            for index, (level, query) in enumerate(question)
            if level or query.size > 1 or query[0] != 1
        }

    @cached_property
    def _laws(self) -> dict[Key, tuple[Floats, NDArray[np.int64], Floats, Floats]]:
        return {}

    def _law(self, question: Question) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
        combinations = max((query[0].size for _, query in question), default=1)
        plain = tuple([0] * len(self.axes))
        own = self._own(question)
        times: list[Floats] = []
        weights: list[Floats] = []
        sets: list[int] = []
        largest = np.zeros((len(self.measured), combinations))
        for number, (levels, _) in enumerate(self.measured):
            many: Floats = np.ones(1)
            by_part: dict[Levels, Floats] = {plain: np.ones((1, 1))}
            for index in sorted(own.union(index for index, level in enumerate(levels) if level)):
                (level, query), measured = question[index], levels[index]
                if level == measured == 0 and query.size == 1:  # all rows, on both sides
                    by_part = {part: before * query for part, before in by_part.items()}
                    continue
                count, on_axis = self._weights(index, level, query, measured)
                many = np.outer(many, count).ravel()
                by_part = {
                    (*part[:index], step, *part[index + 1 :]): (
                        (before[:, None] * on_axis[:, step]).reshape(len(many), -1)
                    )
                    for part, before in by_part.items()
                    for step in range(min(level, measured) + 1)
                }
            total = np.zeros((len(many), combinations))
            for part, before in by_part.items():
                # the sets do not determine the public number of rows
                if any(part) or not self.known:
                    total = total + self._averages(part)[number] / GRAIN * before
            used = np.abs(total).max(axis=1) > 1e-12
            times.append(many[used])
            weights.append(total[used])
            sets += [number] * int(used.sum())
            largest[number] = np.abs(total).max(axis=0, initial=0.0)
        if not times:
            return np.zeros(0), np.zeros(0, np.int64), np.zeros((0, combinations)), largest
        return np.concatenate(times), np.array(sets, np.int64), np.concatenate(weights), largest

    def _weights(
        self, index: int, level: int, query: Floats, measured: int
    ) -> tuple[Floats, Floats]:
        """The weights of a combination on an axis, cached: a report's tables share most of them."""
        key = index, level, measured, query.shape, query.tobytes()
        if key not in self._known_weights:
            count, own = self.axes[index].weights(level, query, measured)
            self._known_weights[key] = count, own.reshape(*own.shape[:2], -1)
        return self._known_weights[key]

    @cached_property
    def _known_weights(self) -> dict[object, tuple[Floats, Floats]]:
        return {}

    @cached_property
    def _averages(self) -> Callable[[Levels], list[int]]:
        """The weights of all sets in the estimate of a part, cached: with many axes only few parts
        are needed.
        """
        return cache(partial(averages, self.axes, self.measured))
