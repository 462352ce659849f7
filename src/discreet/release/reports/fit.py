"""All tables of a report from its noisy cells, exactly: integers over a common denominator, so that they agree.

The estimates of a part (`axes`) from several sets are averaged with weights close to the inverse variances, multiples
of 2⁻¹⁶ that add up to 1. Any such weights give unbiased estimates, and tables that agree with each other and with their
totals, whatever the noise was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.release.reports.allocation import Measured, below, information_of
from discreet.release.reports.axes import Axis, Levels

GRAIN = 2**16
"""The denominator of weights."""


def averages(axes: tuple[Axis, ...], measured: Measured, part: Levels) -> list[int]:
    """The weights of all sets in the estimate of a part."""
    precise = information_of(axes, [part], [levels for levels, _ in measured])[0]
    precise *= np.array([float(share) for _, share in measured]) ** 2
    weights = np.floor(precise / precise.sum() * GRAIN).astype(int)
    weights[weights.argmax()] += GRAIN - weights.sum()
    return [int(weight) for weight in weights]


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
        largest = max(max(abs(int(cells.max())), abs(int(cells.min()))) * cells.size for cells in self.cells.values())
        steps = math.prod(math.prod(axis.denominators(axis.levels)) for axis in self.axes)
        room = max(largest, (self.known or 0) * self.unit) * GRAIN * steps * 2 ** (2 * len(self.axes) + 1)
        return np.int64 if room < 2**62 else object

    def _part(self, part: Levels) -> NDArray[Any]:
        """The estimate of a part from all sets, times the denominators of its centres."""
        if part not in self._parts:
            self._parts[part] = self._averaged(part)
        return self._parts[part]

    def _averaged(self, part: Levels) -> NDArray[Any]:
        if self.known is not None and not any(part):
            return np.array(GRAIN * self.unit * self.known, self._exact).reshape([1] * len(self.axes))
        average: Any = 0
        for (levels, _), weight in zip(self.measured, averages(self.axes, self.measured, part), strict=True):
            if weight == 0 or not below(part, levels):
                continue
            cells = self.cells[levels].astype(self._exact)
            for index, (axis, high, low) in enumerate(zip(self.axes, levels, part, strict=True)):
                cells = axis.summed(cells, index, high, low)
            average = average + weight * cells
        for index, (axis, low) in enumerate(zip(self.axes, part, strict=True)):
            average = axis.centred(average, index, low)
        return np.asarray(average)
