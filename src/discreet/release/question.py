"""A question about a column in memory, released by studies' designs: one group, a row per unit.

All parameters (the statistic, the bounds, ε) are read and checked before any row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.ask.expression import Column as Named
from discreet.ask.query import Count, Extreme, Moment, Quantiles
from discreet.ask.statistics import moment
from discreet.calibrate.grid import ValueGrid, public_step, value_grid
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines import array as engine
from discreet.engines.array import Column, column
from discreet.errors import InvalidParameter
from discreet.formats import as_float, readable
from discreet.parameters import (
    Bounds,
    Neighbors,
    exact_bounds,
    exact_count,
    exact_epsilon,
    exact_neighbors,
    exact_number,
    quote,
)
from discreet.release.design import Estimate, Released, Secret
from discreet.release.intervals.spreads import Spread, constant, plain, single, vector
from discreet.release.release import Release, Vector, fields_of
from discreet.release.statistics.counts import CountDesign, TreeDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign
from discreet.release.tape import record_grid

USUAL = Fraction(19, 20)
"""The default confidence of a bracket."""

_VALUES = Named("values", "number")  # the column, as a design names it
_MOST_BINS = 10**8  # eight bytes each, and their edges: a larger histogram does not fit into memory
_LARGEST_RANGE = Fraction(10**150)  # its square and the square of its inverse are floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Question:
    """The parameters of a call; the `repr` does not show its column."""

    statistic: str
    data: Column
    bounds: Bounds
    epsilon: Fraction
    neighbors: Neighbors
    textbook: bool
    missing: Fraction | None

    @property
    def dropped(self) -> bool:
        """Whether missing values are left out; the type of the column decides, never its values."""
        return self.data.nullable and self.missing is None

    @property
    def public_size(self) -> bool:
        """Whether the number of values is public: under change-one, and if none is missing."""
        return self.neighbors == "change-one" and not self.dropped

    @property
    def n(self) -> int:
        """The number of values that count, at least 1."""
        if not self.public_size:
            raise TypeError(
                "the number of values is private under add-remove, and if missing values are"
                " dropped"
            )
        return max(1, len(self.data))

    @property
    def terms(self) -> UnitLimits:
        """The terms of the release: one row per unit, one group."""
        replaced = self.neighbors == "change-one"
        return UnitLimits(rows=1, max_groups=1, replaced=replaced, public=self.public_size, cells=1)

    def require(self, least: int) -> None:
        """Refuse fewer units than a statistic needs, if their number is public."""
        if self.neighbors == "change-one" and len(self.data) < least:
            records = "one record" if least == 1 else f"{least} records"
            raise InvalidParameter(
                f"{self.statistic} needs at least {records} under change-one, got {len(self.data)}"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """What the release depends on, except ε, draws and other parameters of the statistic."""
        return {
            "bounds": list(self.bounds),
            "neighbors": self.neighbors,
            "missing": self.missing,
            "textbook": self.textbook,
            "whole": self.data.whole,
            "truth": self.data.truth,
            "nullable": self.data.nullable,
            "size": len(self.data) if self.neighbors == "change-one" else None,
        }

    @property
    def missing_note(self) -> str:
        """What was done with missing values; empty if there can be none."""
        if not self.data.nullable:
            return ""
        if self.missing is None:
            return "missing values dropped"
        return f"missing values count as {readable(as_float(self.missing), 6)}"

    @property
    def range(self) -> Fraction:
        """R, in the units of the data."""
        return self.bounds[1] - self.bounds[0]

    def grid(self, bits: int) -> ValueGrid:
        """The grid of the values: a function of the bounds and of the type of the column."""
        return record_grid(value_grid(self.bounds, bits=bits, whole=self.data.whole))

    def square_grid(self, bits: int) -> ValueGrid:
        """The grid for statistics of squares, which must be floats, too."""
        if not 1 / _LARGEST_RANGE <= self.range <= _LARGEST_RANGE:
            raise InvalidParameter(
                f"{self.statistic} needs bounds that are between 1e-150 and 1e150 apart"
            )
        return self.grid(bits)

    def missing_on(self, grid: ValueGrid) -> int | None:
        """The grid point of a missing value; None if missing values are dropped."""
        return None if self.missing is None else grid.point(self.missing)

    def of_shares(self) -> Question:
        """The same question about values from 0 to 1, such as truth values."""
        return replace(self, data=self.data.shares())

    def release(
        self,
        value: Any,
        spread: Spread,
        *,
        sensitivity: Fraction,
        scale: Fraction,
        step: Fraction,
        error: str = "",
    ) -> Release:
        """The answer, with its cost; `error` describes the error where an interval says nothing."""
        return Release(
            value=value,
            epsilon=self.epsilon,
            sensitivity=sensitivity,
            scale=scale,
            step=step,
            neighbors=self.neighbors,
            statistic=self.statistic,
            missing=self.missing_note,
            error=error,
            _spread=spread,
        )

    def estimates(self, design: Released, confidence: Fraction = USUAL) -> Mapping[str, Estimate]:
        """The estimates that a design releases from the column."""
        noted, measures = _noted.get(), design.measures()

        def release(exact: Secret) -> Mapping[str, Estimate]:
            return design.estimate(exact, self.terms, self.epsilon, confidence)

        if noted is not None:
            noted.append((design, self.epsilon, release))
        for grid in dict.fromkeys(
            measure.value.grid for measure in measures if hasattr(measure, "value")
        ):
            record_grid(grid)
        return release(engine.fetch(self.data, measures))

    def released(
        self,
        estimate: Estimate,
        *,
        sensitivity: Fraction,
        scale: Fraction,
        step: Fraction,
        error: str = "",
    ) -> Release:
        """A release of the only number of an estimate."""
        value, spread = plain(estimate.values[0]), partial(single, estimate.ends)
        return self.release(
            value, spread, sensitivity=sensitivity, scale=scale, step=step, error=error
        )

    @property
    def moment(self) -> Moment:
        """The column within its bounds, as an aggregate of a study."""
        return Moment("mean", _VALUES, *self.bounds, self.data.whole, self.missing)

    def quantiles(self, *shares: Fraction) -> Quantiles:
        """The same for quantiles."""
        return Quantiles(_VALUES, shares, *self.bounds, self.data.whole, self.missing)


NotedDesign: TypeAlias = tuple[Released, Fraction, Callable[[Secret], Any]]
"""A design, its ε, and what makes its release of exact integers."""

_noted: ContextVar[list[NotedDesign] | None] = ContextVar("designs", default=None)


@contextmanager
def noting_designs() -> Iterator[list[NotedDesign]]:
    """The designs that are released in the block."""
    designs: list[NotedDesign] = []
    token = _noted.set(designs)
    try:
        yield designs
    finally:
        _noted.reset(token)


def question(
    statistic: str,
    x: Any,
    bounds: Any,
    epsilon: Any,
    neighbors: Any,
    *,
    missing: Any = None,
    method: Any = "best",
    reader: Callable[[Any], Column] = column,
) -> Question:
    """The question, or `InvalidParameter`; `reader` reads the column, and no value raises."""
    if method not in ("best", "laplace"):
        raise InvalidParameter(f"method must be 'best' or 'laplace', got {quote(method)}")
    return Question(
        statistic=statistic,
        epsilon=exact_epsilon(epsilon),
        bounds=exact_bounds(bounds),
        neighbors=exact_neighbors(neighbors),
        missing=None if missing is None else exact_number("missing", missing),
        textbook=method == "laplace",
        data=reader(x),
    )


def counted(ask: Question) -> Release:
    """The number of values that are neither missing nor, for truth values, false."""
    design = CountDesign(name="count", of=Count())
    scale = design.scale(ask.terms, ask.epsilon)
    step = Fraction(public_step(scale, ask.epsilon, changes=1))
    return ask.released(
        ask.estimates(design)["count"], sensitivity=scale * ask.epsilon, scale=scale, step=step
    )


def moments(ask: Question, *statistics: str) -> dict[str, Release]:
    """Moments (rows of `ask.statistics` with a base) from one joint release; a + marks the
    statistic of a sample.
    """
    most = len(ask.data) if ask.neighbors == "change-one" else 0
    design = MomentDesign(
        wanted=tuple((name, name) for name in statistics), of=ask.moment, most=most
    )
    estimates, scales, releases = ask.estimates(design), design.scales(ask.terms, ask.epsilon), {}
    for name in statistics:
        scale, step = design.noise(name, scales, ask.terms, ask.epsilon)
        base, n = moment(name).base, 1
        match base:
            case "sum":
                sensitivity = scale * ask.epsilon
            case "count":
                sensitivity = Fraction(1)
            case _:  # if n is public, in terms of the mean rather than of the sum
                n = ask.n if ask.public_size else 1
                sensitivity = (design.grid.width * design.grid.step) ** (
                    1 if base == "mean" else 2
                ) / n
        called = replace(ask, statistic=name) if len(statistics) > 1 else ask
        release = called.released(
            estimates[name], sensitivity=sensitivity, scale=scale / n, step=step / n
        )
        half = design.uncovered(ask.terms)
        releases[name] = replace(release, rounding=rounding_text(half)) if half else release
    return releases


def rounding_text(half: Fraction) -> str:
    """That an interval leaves out the rounding of values to the grid, and how far it moves each."""
    return f"without rounding, at most {readable(as_float(half), 3)} a value"


def known_count(ask: Question) -> Release:
    """A release of the public number of values."""
    n, none = ask.n, Fraction(0)
    free = replace(ask, statistic="count", epsilon=none)
    return free.release(
        n,
        partial(single, partial(constant, [n], [n])),
        sensitivity=none,
        scale=none,
        step=Fraction(1),
    )


def public_total(ask: Question) -> int | None:
    """The number of values if it is public, otherwise None."""
    return len(ask.data) if ask.public_size else None


def of_tree(ask: Question, design: TreeDesign, estimate: Estimate, step: Fraction) -> Vector:
    """All numbers of an estimate of a tree."""
    scale = design.tree(ask.terms, ask.epsilon).scale
    spread = partial(vector, estimate.ends)
    release = ask.release(
        estimate.values, spread, sensitivity=scale * ask.epsilon, scale=scale, step=step
    )
    return Vector(**fields_of(release))


def chosen(ask: Question, share: Fraction, bracket: Fraction | None) -> Release:
    """One quantile, with or without a bracket at this confidence."""
    design = QuantileDesign(
        names=(ask.statistic,),
        of=ask.quantiles(share),
        cells=1,
        bracketed=bracket is not None,
        rows_epsilon=len(ask.data) * ask.epsilon if ask.neighbors == "change-one" else None,
    )
    rate = design.rate(share, ask.terms, ask.epsilon)
    error = "" if bracket is not None else f"within {design.rank_error(rate):,.0f} ranks, 95 %"
    estimate = ask.estimates(design, confidence=bracket or USUAL)[ask.statistic]
    return ask.released(
        estimate, sensitivity=Fraction(1), scale=1 / rate, step=design.grid.step, error=error
    )


def extreme(ask: Question, side: Literal["min", "max"]) -> Release:
    """The minimum or the maximum."""
    of = Extreme(side, _VALUES, *ask.bounds, whole=ask.data.whole, missing=ask.missing)
    design = ExtremeDesign(name=side, of=of)
    beyond = design.beyond(ask.terms, ask.epsilon).format("records")
    scale, estimate = 1 / ask.epsilon, ask.estimates(design)[side]
    return ask.released(
        estimate, sensitivity=Fraction(1), scale=scale, step=design.grid.step, error=beyond
    )


def bin_edges(bins: Any, bounds: Any) -> tuple[NDArray[np.float64], bool]:
    """The edges, and whether they are evenly spaced."""
    listed = bins.tolist() if hasattr(bins, "tolist") else bins
    if isinstance(listed, list | tuple | range):
        edges = np.array([_float_edge(edge) for edge in listed])
        if edges.size < 2 or bool(np.any(edges[1:] <= edges[:-1])):
            raise InvalidParameter(
                f"bins must be two or more edges in rising order, got {edges.size}"
            )
        exact_bounds((edges[0], edges[-1]))
        return edges, False
    if bounds is None:
        raise InvalidParameter(
            f"bins must be edges, or a number together with bounds, got {quote(bins)} alone"
        )
    number = exact_count("bins", bins)
    if number > _MOST_BINS:
        raise InvalidParameter(f"bins must be at most {_MOST_BINS:,}, got {number:,}")
    lower, upper = (float(bound) for bound in exact_bounds(bounds))
    return np.linspace(lower, upper, number + 1), True


def _float_edge(edge: Any) -> float:
    return (
        edge if type(edge) is float and math.isfinite(edge) else float(exact_number("bins", edge))
    )
