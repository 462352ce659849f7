"""The error bounds of a table: the distribution of a combination of all draws of a report, which is public.

A cell of a table is a combination of the noisy cells of all sets. By symmetry few weights differ, so the distribution
of a sum of thousands of draws needs only a short list of weights with their multiplicities. This is post-processing, so
floats are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TypeAlias

import numpy as np

from discreet.release.reports.allocation import Measured
from discreet.release.reports.axes import Axis, Floats, Levels
from discreet.release.reports.fit import GRAIN, averages
from discreet.release.statistics.spread import combined_radius

Question: TypeAlias = Sequence[tuple[int, Floats]]
"""For each axis, a level and a combination of its cells; one axis may have several combinations, side by side."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of a report."""

    axes: tuple[Axis, ...]
    measured: Measured
    scales: tuple[float, ...]
    """For each set, the scale of a continuous draw with the variance of its noise, in rows."""
    slacks: tuple[float, ...]
    """For each set, how much further than such a draw its discrete noise can reach."""
    known: bool
    """Whether the number of rows is public."""

    def reach(self, question: Question, confidence: float) -> Floats:
        """The radius of the noise of each combination at this confidence."""
        times, weights, slack = self._law(question)
        if not weights.size:
            return np.zeros(weights.shape[1])
        return combined_radius(weights.T, confidence, times) + slack

    def variance(self, question: Question) -> Floats:
        """The variance of each combination."""
        times, weights, _ = self._law(question)
        variances: Floats = 2 * times @ weights**2
        return variances

    def _law(self, question: Question) -> tuple[Floats, Floats, Floats]:
        """The multiplicity of each weight, the weights of each combination, and what discreteness adds."""
        times: list[Floats] = []
        weights: list[Floats] = []
        slacks: list[Floats] = []
        combinations = max((query[0].size for _, query in question), default=1)
        for index, (levels, _) in enumerate(self.measured):
            many: Floats = np.ones(1)
            by_part: dict[Levels, Floats] = {(): np.ones((1, 1))}
            for position, ((level, query), measured) in enumerate(zip(question, levels, strict=True)):
                if level == measured == 0 and query.size == 1:  # all rows, on both sides
                    by_part = {(*part, 0): before * query for part, before in by_part.items()}
                    continue
                count, own = self._weights(position, level, query, measured)
                many = np.outer(many, count).ravel()
                by_part = {
                    (*part, step): (before[:, None] * own[:, step]).reshape(len(many), -1)
                    for part, before in by_part.items()
                    for step in range(min(level, measured) + 1)
                }
            total = np.zeros((len(many), combinations))
            for part, before in by_part.items():
                if any(part) or not self.known:  # the sets do not determine the public number of rows
                    total = total + self._averages(part)[index] / GRAIN * before
            used = np.abs(total).max(axis=1) > 1e-12
            times.append(many[used])
            weights.append(total[used] * self.scales[index])
            slacks.append(np.abs(total).max(axis=0, initial=0.0) * self.slacks[index])
        if not times:
            return np.zeros(0), np.zeros((0, combinations)), np.zeros(combinations)
        return np.concatenate(times), np.concatenate(weights), np.max(slacks, axis=0)

    def _weights(self, index: int, level: int, query: Floats, measured: int) -> tuple[Floats, Floats]:
        """The weights of a combination on an axis, cached: tables of one report share most of them."""
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
        """The weights of all sets in the estimate of a part, cached: with many axes only few parts are needed."""
        return cache(partial(averages, self.axes, self.measured))
