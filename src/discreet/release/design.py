"""What a statistic is to a release: its integers, its plan and its estimate.

A *design* releases statistics together. It names the integers that it needs (`measures`), and turns
exact integers into estimates with intervals (`estimate`), for all groups at once. The designs of a
study also state their cost and error before the release (`lines`). Only
`calibrate.sensitivity.UnitLimits` says how far one unit moves the integers; `mechanism` adds the
noise. Counts and cumulative counts are in `statistics.counts`, sums, means and variances in
`statistics.moments`, quantiles and extremes in `statistics.ranks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from discreet.ask.expression import Cast, Expression
from discreet.ask.kinds import kind_of
from discreet.calibrate.grid import ValueGrid
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.draw.noted import in_order
from discreet.engines.base import Exact, OnGrid
from discreet.threads import on_all_cores

Secret: TypeAlias = Exact[list[list[Any]]]
"""For each measure of a design, a list of the integers of all groups."""

Item: TypeAlias = tuple[Any, Any, Any]
"""A released number and the ends of its interval."""

Columns: TypeAlias = tuple[Any, Any, Any]
"""The numbers of all groups, and the lower and upper ends of their intervals: arrays, or lists of a
few.
"""

PART = 2**16
"""Groups that are drawn and estimated at a time: their arrays stay in the cache of a core, which
halves the time. The fixed cost of a part is that of some hundred groups."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Released numbers of all groups, and the ends of their intervals at any confidence."""

    values: Any
    ends: Callable[[Fraction], tuple[Any, Any]]


Error: TypeAlias = tuple[str, float | None]
"""An error in words, and as the half-width of the interval for groups of the given size; None if it
depends on data.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """What a plan says about an aggregate before its release."""

    name: str
    sensitivity: Fraction
    scale: Fraction
    error: Error | Callable[[], Error]
    """A function where the error takes long to compute and a release does not need it."""
    sized: bool = False
    """Whether the half-width is known once a size is given."""
    step: Fraction = Fraction(1)
    """Released numbers are multiples of this, before any arithmetic."""
    draws: tuple[Fraction, ...] | Callable[[], tuple[Fraction, ...]] = ()
    """The scales of the draws whose sum is the error, for counts and sums; likewise."""

    @cached_property
    def _error(self) -> Error:
        return self.error() if callable(self.error) else self.error

    @cached_property
    def noise(self) -> tuple[Fraction, ...]:
        """The scales of the draws whose sum is the error, for counts and sums."""
        return self.draws() if callable(self.draws) else self.draws

    def __eq__(self, other: object) -> bool:
        names = [part.name for part in fields(self) if part.name not in ("error", "draws")]
        return isinstance(other, Line) and all(
            getattr(self, name) == getattr(other, name) for name in (*names, "_error", "noise")
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def within(self) -> str:
        """The error in words."""
        return self._error[0]

    @property
    def reach(self) -> float | None:
        """The half-width of the interval for groups of the given size; None if it depends on the
        data.
        """
        return self._error[1]


class Released(Protocol):
    """Statistics that are released together."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics."""

    def measures(self) -> tuple[Any, ...]:
        """The integers that it needs: measures of `engines.base`, or of a column in memory."""

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, confidence: Fraction
    ) -> Mapping[str, Estimate]:
        """The released numbers by name; brackets of quantiles are released at this confidence."""


class Design(Released, Protocol):
    """Aggregates of a question, which can be planned."""

    @property
    def weight(self) -> int:
        """Its share of ε, in parts."""

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, confidence: Fraction, size: int | None
    ) -> list[Line]:
        """Its cost and error, for groups of so many rows."""


def columns(
    design: Released, exact: Secret, terms: UnitLimits, epsilon: Fraction, confidence: Fraction
) -> dict[str, Columns]:
    """The released numbers of all groups by name, with the ends of their intervals."""
    estimates = design.estimate(exact, terms, epsilon, confidence)
    return {
        name: (estimate.values, *estimate.ends(confidence)) for name, estimate in estimates.items()
    }


def in_parts(work: Callable[[slice], dict[str, Columns]], cells: int) -> dict[str, Columns]:
    """The numbers of all groups, of which `work` computes one part, on all cores."""
    numbers = list(
        in_order(on_all_cores)(
            work, (slice(start, start + PART) for start in range(0, cells, PART))
        )
    )
    # removed from its part when it is joined, so that a number is in memory once
    return {
        name: tuple(map(np.concatenate, zip(*(part.pop(name) for part in numbers), strict=True)))  # type: ignore[misc]
        for name in list(numbers[0])
    }


def items(
    design: Released, exact: Secret, terms: UnitLimits, epsilon: Fraction, confidence: Fraction
) -> dict[str, list[Item]]:
    """The same row by row, as Python's own numbers."""
    plain = {
        name: [column.tolist() if isinstance(column, np.ndarray) else column for column in three]
        for name, three in columns(design, exact, terms, epsilon, confidence).items()
    }
    return {name: list(zip(*three, strict=True)) for name, three in plain.items()}


def on_grid(of: Expression, grid: ValueGrid, missing: Fraction | None) -> OnGrid:
    """An expression as integers of a grid, a truth as 1 or 0; missing values as declared, or
    dropped.
    """
    number = Cast(of, "number") if kind_of(of) == "truth" else of
    return OnGrid(number, grid, None if missing is None else grid.point(missing))
