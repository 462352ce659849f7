"""Partitions: sums over which a value spreads its weight, and the totals that get noise.

With u = a/R these are the pair (u, 1−u) or Bernstein's ((1−u)², 2u(1−u), u²). The sums get noise,
or centred totals do, of which they are combinations:

    pair        as drawn  |  Σu = S + N/2, Σ(1−u) = N/2 − S              S = Σ(u − ½)
    Bernstein   as drawn  |  3N/8 − S − Q,   2Q + N/4,   3N/8 + S − Q    Q = Σ(u(1−u) − ⅛)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.statistics.spread import Floats

Matrix: TypeAlias = tuple[tuple[float, ...], ...]


Kinds: TypeAlias = tuple[tuple[float, ...], ...]
"""Of each kind of totals: their scale, how many they are, and their coefficient in each sum."""


@dataclass(frozen=True)
class Partition:
    """Sums over which a value spreads its weight, and the totals that get noise."""

    values: tuple[float, ...]
    """The u of a value that lies entirely in one of the sums: Σu = Σ values·sums."""
    matrix: tuple[tuple[float, ...], ...]
    """The coefficients of each sum: sum = Σ coefficient·total/unit."""
    scales: tuple[float, ...]
    """The noise scale of each total, in its units, up to a common factor."""
    units: tuple[int, ...]
    """The unit of each total."""

    def mixed(self, weights: Floats) -> Floats:
        """A combination of the sums as a combination of the totals in their units."""
        combined: Floats = np.asarray(weights, np.float64) @ np.array(self.matrix)
        return combined

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of totals that count in a sum: equal scales and coefficients, in their order.

        A joint design has hundreds of totals and few kinds, and columns that differ in their order
        alone have the same.
        """
        return self._kinds[0]

    @cached_property
    def kind_of(self) -> NDArray[np.int64]:
        """The kind of each total, or one more than the last for totals that count in no sum."""
        return self._kinds[1]

    @cached_property
    def _kinds(self) -> tuple[Kinds, NDArray[np.int64]]:
        columns = list(zip(self.scales, *self.matrix, strict=True))
        times = Counter(column for column in columns if any(column[1:]))
        places = {column: place for place, column in enumerate(sorted(times))}
        kinds = tuple((column[0], float(times[column]), *column[1:]) for column in places)
        return kinds, np.array([places.get(column, len(places)) for column in columns])


def pair(width: int) -> Partition:
    """Σu and Σ(1−u)."""
    return Partition((1, 0), ((1, 0), (0, 1)), (1, 1), (width, width))


def bernstein(width: int) -> Partition:
    """Σ(1−u)², Σ2u(1−u) and Σu²."""
    return Partition((0, 1 / 2, 1), ((1, 0, 0), (0, 1, 0), (0, 0, 1)), (1, 1, 1), (width**2,) * 3)


def centred(width: int) -> Partition:
    """The pair from Σ(u − ½) and N."""
    return Partition((1, 0), ((1, 1 / 2), (-1, 1 / 2)), (1, 2), (2 * width, 1))


def centred_squares(width: int) -> Partition:
    """Bernstein's sums from Σ(u − ½), Σ(u(1−u) − ⅛) and N."""
    matrix = ((-1, -1, 3 / 8), (0, 2, 1 / 4), (1, -1, 3 / 8))
    return Partition((0, 1 / 2, 1), matrix, (9 / 8, 9 / 16, 3), (2 * width, 8 * width**2, 1))
