"""A question about one column, read and checked before any row is: who is asked, within which bounds, at what ε."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.calibrate.bounds import Bounds, Neighbors, exact_bounds, exact_neighbors, exact_number
from discreet.calibrate.epsilon import exact_epsilon, quote
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines.array import Column, column
from discreet.errors import InvalidParameter
from discreet.release.mechanism import NoisySum
from discreet.release.result import Ends, Release, Spread, as_float
from discreet.release.spread import radius

_LARGEST_RANGE = Fraction(10**150)
"""Its square is a float, and so is that of its inverse."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Question:
    """The parameters of a call; its column shows nothing."""

    statistic: str
    data: Column
    bounds: Bounds
    epsilon: Fraction
    neighbors: Neighbors
    textbook: bool
    missing: Fraction | None

    @property
    def public_size(self) -> bool:
        """Whether the number of units is public."""
        return self.neighbors == "change-one"

    @property
    def n(self) -> int:
        """The number of units, at least 1; only change-one makes it public."""
        if not self.public_size:
            raise TypeError("the number of units is private under add-remove")
        return max(1, len(self.data))

    def require(self, least: int) -> None:
        """Refuse fewer units than a statistic needs, where their number is public."""
        if self.public_size and len(self.data) < least:
            records = "one record" if least == 1 else f"{least} records"
            raise InvalidParameter(f"{self.statistic} needs at least {records} under change-one, got {len(self.data)}")

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes this question another one, but for ε and the data."""
        return {
            "bounds": list(self.bounds),
            "neighbors": self.neighbors,
            "missing": self.missing,
            "textbook": self.textbook,
        }

    @property
    def range(self) -> Fraction:
        """R, in the units of the data."""
        return self.bounds[1] - self.bounds[0]

    def grid(self, bits: int) -> ValueGrid:
        """The grid of the values: a function of the bounds and of the type of the column."""
        return value_grid(self.bounds, bits=bits, whole=self.data.whole)

    def square_grid(self, bits: int) -> ValueGrid:
        """The same for statistics of squares, which must be floats, too."""
        if not 1 / _LARGEST_RANGE <= self.range <= _LARGEST_RANGE:
            raise InvalidParameter(f"{self.statistic} needs bounds that are between 1e-150 and 1e150 apart")
        return self.grid(bits)

    def missing_on(self, grid: ValueGrid) -> int:
        """Where a missing value lies on the grid."""
        return grid.middle if self.missing is None else grid.point(self.missing)

    def with_truth(self) -> Question:
        """The same about whether the values are true."""
        return replace(self, data=self.data.truths())

    def release(
        self, value: Any, spread: Spread, *, sensitivity: Fraction, scale: Fraction, step: Fraction, note: str = ""
    ) -> Release:
        """The answer, with what it cost."""
        return Release(
            value=value,
            epsilon=self.epsilon,
            sensitivity=sensitivity,
            scale=scale,
            step=step,
            neighbors=self.neighbors,
            statistic=self.statistic,
            note=note,
            _spread=spread,
        )

    def of_sum(
        self, noisy: NoisySum, *, sensitivity: Fraction, unit: Fraction, whole: bool, slack: Fraction = Fraction(0)
    ) -> Release:
        """A total of so many units as an answer of its own; `slack` is what rounding to the grid can have moved."""

        def read(total: int) -> int | float:
            return total if whole else as_float(total * unit)

        def spread(confidence: Fraction, _: bool) -> Ends:
            reach = radius(noisy, confidence)
            wider = math.ceil(slack / unit)
            return read(noisy.value - reach - wider), read(noisy.value + reach + wider)

        scale = noisy.spread * unit
        return self.release(read(noisy.value), spread, sensitivity=sensitivity, scale=scale, step=noisy.step * unit)


def question(
    statistic: str,
    x: Any,
    bounds: Any,
    epsilon: Any,
    neighbors: Any,
    *,
    missing: Any = None,
    method: Any = "best",
) -> Question:
    """The question, or `InvalidParameter`; no value of the data is looked at."""
    if method not in ("best", "laplace"):
        raise InvalidParameter(f"method must be 'best' or 'laplace', got {quote(method)}")
    return Question(
        statistic=statistic,
        epsilon=exact_epsilon(epsilon),
        bounds=exact_bounds(bounds),
        neighbors=exact_neighbors(neighbors),
        missing=None if missing is None else exact_number("missing", missing),
        textbook=method == "laplace",
        data=column(x),
    )
