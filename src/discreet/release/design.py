"""How a query is released: its aggregates joined into designs, each with its integers, its noise and its estimator.

One row moves a count by 1, a pair of sums by R in L1, Bernstein's three by R², a rank gap by at most max(q, 1−q) to
either side. One unit has up to max_rows rows, in all groups together; under change-one its rows go and others come. So

    a design at rate ε/factor a row loses at most ε,     factor = max_rows (add-remove) or 2·max_rows (change-one)

In an answer without groups the rows that go and those that come meet in one number, which cannot move by both: a count
moves by max_rows, a sum by max_rows·(max(H, 0) − min(L, 0)), a gap by one to either side a row, and means and variances
have the centred designs at rate ε/max_rows. And where the number of contributing rows is public (change-one, each row a
unit, no WHERE, no groups, missing values replaced) one row is replaced by one row, and the sharper designs serve: a sum
moves by R, a mean needs no count, a variance is joint. `moments` has the designs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from discreet.ask.expression import Cast, Expression
from discreet.ask.kinds import kind_of
from discreet.ask.query import Count, CountUnits, Moment
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.calibrate.lemma import half_width
from discreet.engines.base import Exact, Measure, OnGrid, Present, Rows, Squares, Total, Units
from discreet.engines.integers import Integers, roomy
from discreet.formats import readable
from discreet.release.mechanism import NoisyColumn, noisy_columns, public_count, public_step
from discreet.release.statistics import moments
from discreet.release.statistics.grouped import (
    BERNSTEIN,
    CENTRED_BERNSTEIN,
    CENTRED_PAIR,
    PAIR,
    Lone,
    Partition,
    Private,
    around,
)
from discreet.release.statistics.spread import radius

SUM_BITS = 30
SQUARE_BITS = 22
"""Steps of the grids: a sum's rounding vanishes beside any noise; the squares of a block stay within int64."""

Secret: TypeAlias = Exact[list[list[Any]]]
"""For each measure of a design, a list over all groups."""

Item: TypeAlias = tuple[Any, Any, Any]
"""A released number and the ends of its interval."""

Columns: TypeAlias = tuple[Any, Any, Any]
"""The numbers of all groups, and the lower and upper ends of their intervals: arrays, or lists of a few."""

Estimate: TypeAlias = Lone | moments.Known | Private
"""Noisy sums of all groups, and the statistics that follow from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for a design."""

    rows: int
    """Rows of one unit that may count."""
    spread: int
    """Groups that rows of one unit can be in."""
    replaced: bool
    """Whether a unit is replaced (change-one) rather than added or removed."""
    public: bool
    """Whether the number of contributing rows is public, and each row a unit."""
    cells: int
    """Groups of the answer."""

    @property
    def factor(self) -> int:
        """How many rows come or go when one unit changes."""
        return self.rows * (2 if self.replaced else 1)

    @property
    def steps(self) -> int:
        """The same, where a row that goes and one that comes in the same group count as one."""
        return self.rows if self.cells == 1 else self.factor

    @property
    def touched(self) -> int:
        """How many groups one unit can change."""
        return min(self.cells, self.spread * (2 if self.replaced else 1))

    @property
    def meets(self) -> bool:
        """Whether a row that goes and one that comes in its place are in the same group."""
        return self.replaced and self.cells == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a plan says of one aggregate before it is released."""

    name: str
    sensitivity: Fraction
    scale: Fraction
    within: str
    reach: float | None
    """The half-width of the interval in the size that was asked for; None if it depends on the data."""
    sized: bool = False
    """Whether a size would make it known."""
    step: Fraction = Fraction(1)
    """What released numbers are multiples of, before any arithmetic with them."""
    noise: tuple[Fraction, ...] = ()
    """The scales of the draws whose sum is the error, if it is such a sum: of counts and sums."""


class Design(Protocol):
    """Aggregates that are released together."""

    @property
    def names(self) -> tuple[str, ...]:
        """The aggregates."""

    @property
    def weight(self) -> int:
        """Its share of ε, in parts."""

    def measures(self) -> tuple[Measure, ...]:
        """The integers it needs."""

    def lines(self, terms: Terms, epsilon: Fraction, confidence: Fraction, size: int | None) -> list[Line]:
        """What it will cost and give, for groups of so many rows."""

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, list[Item]]:
        """The released numbers, for each name one for each group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDesign:
    """Counts of rows or of units."""

    name: str
    of: Count | CountUnits
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    def measures(self) -> tuple[Measure, ...]:
        """One count."""
        return (Units(),) if isinstance(self.of, CountUnits) else (Rows(self.of.of),)

    def _moved(self, terms: Terms) -> int:
        return terms.touched if isinstance(self.of, CountUnits) else terms.steps

    def lines(self, terms: Terms, epsilon: Fraction, confidence: Fraction, _size: int | None) -> list[Line]:
        """Known whatever the size."""
        moved = Fraction(self._moved(terms))
        reach = half_width(moved / epsilon, confidence)
        line = Line(name=self.name, sensitivity=moved, scale=moved / epsilon, within=f"± {reach:,}", reach=float(reach))
        step = Fraction(public_step(line.scale, epsilon, terms.touched))
        return [replace(line, step=step, noise=(line.scale,))]

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, list[Item]]:
        """Every count with noise, also an empty one."""
        return _items(self.columns(exact, terms, epsilon, confidence))

    def columns(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, Columns]:
        """The same, column by column."""
        [noisy] = noisy_columns(exact, [self._moved(terms) / epsilon], epsilon, terms.touched)
        return {self.name: around(noisy.values, radius(noisy[0], confidence), 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCount:
    """The number of rows or units where it is public: no noise, no cost."""

    name: str
    of: Count | CountUnits
    weight: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    def measures(self) -> tuple[Measure, ...]:
        """One count."""
        return (Units(),) if isinstance(self.of, CountUnits) else (Rows(),)

    def lines(self, _terms: Terms, _epsilon: Fraction, _confidence: Fraction, _size: int | None) -> list[Line]:
        """Exact."""
        none = Fraction(0)
        return [Line(name=self.name, sensitivity=none, scale=none, within="exact: this number is public", reach=0.0)]

    def release(self, exact: Secret, _terms: Terms, _epsilon: Fraction, _level: Fraction) -> dict[str, list[Item]]:
        """The number."""
        known = public_count(exact.map(lambda found: int(found[0][0])))
        return {self.name: [(known, known, known)]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentDesign:
    """Sum, mean, variance and std of one expression, out of one joint release."""

    wanted: tuple[tuple[str, str], ...]
    """(name, statistic): sum, mean, variance, std, and the sample forms variance+ and std+."""
    of: Moment
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """All that are wanted."""
        return tuple(name for name, _ in self.wanted)

    @property
    def squares(self) -> bool:
        """Whether squares are needed."""
        return any(statistic.rstrip("+") in ("variance", "std") for _, statistic in self.wanted)

    @property
    def alone(self) -> bool:
        """Whether only the sum is wanted."""
        return all(statistic == "sum" for _, statistic in self.wanted)

    @property
    def grid(self) -> ValueGrid:
        """A function of what is declared."""
        bits = SQUARE_BITS if self.squares else SUM_BITS
        if self.of.precision is not None:
            levels = (self.of.upper - self.of.lower) / self.of.precision
            bits = min(bits, max(1, math.ceil(levels).bit_length()))
        return value_grid((self.of.lower, self.of.upper), bits=bits, whole=self.of.whole and self.of.precision is None)

    def measures(self) -> tuple[Measure, ...]:
        """n, Σa and, if asked for, Σa²."""
        value = OnGrid(as_number(self.of.of), self.grid, grid_point(self.of.missing, self.grid))
        found: tuple[Measure, ...] = (Present(value), Total(value))
        return (*found, Squares(value)) if self.squares else found

    def scales(self, terms: Terms, epsilon: Fraction) -> list[Fraction]:
        """Scales of the sums, in grid units."""
        grid, each = self.grid, epsilon / (terms.rows if terms.meets else terms.factor)
        if terms.public:
            return moments.joint_scales(grid.width, epsilon) if self.squares else [grid.width / epsilon]
        if self.alone:  # 0 is what a row that does not count has
            moved = max(grid.upper, 0) - min(grid.lower, 0) if terms.meets else max(abs(grid.lower), abs(grid.upper))
            return [moved / each]
        if self.squares:
            found = moments.centred_square_scales if terms.meets else moments.bernstein_scales
        else:
            found = moments.centred_scales if terms.meets else moments.pair_scales
        return found(grid.width, each)

    def partition(self, terms: Terms) -> Partition:
        """How the number, the mean and the variance of a private number of rows follow from the totals."""
        if self.squares:
            return CENTRED_BERNSTEIN if terms.meets else BERNSTEIN
        return CENTRED_PAIR if terms.meets else PAIR

    def lines(self, terms: Terms, epsilon: Fraction, confidence: Fraction, size: int | None) -> list[Line]:
        """The widest that an interval can be; a std is taken of data whose std is a quarter of the range."""
        found = []
        for name, statistic in self.wanted:
            scale, step = self.noise(statistic, terms, epsilon)
            reach = self._reach(statistic, terms, epsilon, confidence)
            sizes = [1] if statistic == "sum" else [size] if size is not None else [1_000, 10_000]
            shown = [f"± {readable(reach / rows, 3)}" + (f" at {rows:,} rows" if rows > 1 else "") for rows in sizes]
            found.append(
                Line(
                    name=name,
                    sensitivity=scale * epsilon,
                    scale=scale,
                    within=", ".join(shown),
                    reach=reach / sizes[0] if size is not None or statistic == "sum" else None,
                    sized=True,
                    step=step,
                    noise=self._sum_noise(terms, epsilon) if statistic == "sum" else (),
                )
            )
        return found

    def noise(self, statistic: str, terms: Terms, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """The scale and the step of the noise that a statistic rests on: on a count, a sum or a sum of squares.

        In the units of the data, before a division by the number of rows.
        """
        at, power = {"count": (-1, 0), "sum": (0, 1), "mean": (0, 1)}.get(statistic, (1, 2))
        factor, degree = (((1, 1), (1, 2)) if terms.public or self.alone else self.partition(terms).units)[at]
        scale, width = self.scales(terms, epsilon)[at], self.grid.width
        unit = (width * self.grid.step) ** power / (factor * width**degree)
        return scale * unit, public_step(scale, epsilon, terms.touched) * unit

    def _sum_noise(self, terms: Terms, epsilon: Fraction) -> tuple[Fraction, ...]:
        """The scales of the draws in a sum: each the scale of a released total times its weight in the sum."""
        grid, scales = self.grid, self.scales(terms, epsilon)
        if terms.public or self.alone:
            return (scales[0] * grid.step,)
        partition = self.partition(terms)
        ends = [grid.lower + Fraction(value) * grid.width for value in partition.values]
        found = []
        for scale, (factor, power), *column in zip(scales, partition.units, *partition.matrix, strict=True):
            weight = sum((end * Fraction(part) for end, part in zip(ends, column, strict=True)), Fraction())
            found.append(scale * abs(weight) / (factor * grid.width**power) * grid.step)
        return tuple(scale for scale in found if scale)

    def _reach(self, statistic: str, terms: Terms, epsilon: Fraction, confidence: Fraction) -> float:
        """The half-width of a sum; of a mean, variance or std, times the number of rows."""
        grid, scales, level = self.grid, self.scales(terms, epsilon), float(confidence)
        width, step = float(grid.width), float(grid.step)
        if len(scales) == 1:
            return half_width(scales[0], confidence) * step
        if terms.public and statistic in ("sum", "mean"):
            return float(scales[0]) * -math.log(1 - level) * step
        half = (1 + level) / 2  # variances give half of the error to the mean
        if terms.public:
            found = (float(scales[0]) * width + float(scales[1])) * -math.log(1 - half) * step**2
        else:
            totals = [NoisyColumn(values=[0], step=1, scale=scale) for scale in scales]
            partition = self.partition(terms)
            noise = Private(grid=grid, partition=partition, totals=totals)
            values = np.array(partition.values)
            if statistic == "sum":
                return float(noise.reach(grid.lower + values * width, level)) * step
            if statistic == "mean":  # an end of the bounds is worst
                return float(noise.reach(values, level)) * width * step
            found = float(noise.reach(values == 1, half)) * (width * step) ** 2
        return found / (width * step / 2) if statistic.startswith("std") else found

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, list[Item]]:
        """The joint release, and every wanted statistic from it."""
        return _items(self.columns(exact, terms, epsilon, confidence))

    def columns(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, Columns]:
        """The same, column by column."""
        noisy = self.estimate(exact, terms, epsilon)
        return {name: (noisy.value(statistic), *noisy.ends(statistic, confidence)) for name, statistic in self.wanted}

    def estimate(self, exact: Secret, terms: Terms, epsilon: Fraction) -> Estimate:
        """The joint release: noisy sums of all groups, from which the statistics follow at any confidence."""
        grid = self.grid
        totals = noisy_columns(
            exact.map(lambda found: self._totals(found, terms)), self.scales(terms, epsilon), epsilon, terms.touched
        )
        n = public_count(exact.map(lambda found: int(found[0][0]))) if terms.public else 0
        if self.alone:
            return Lone(grid=grid, n=n, total=totals[0])
        if not terms.public:
            return Private(grid=grid, partition=self.partition(terms), totals=totals)
        first, *second = (column[0] for column in totals)
        return moments.Known(grid=grid, n=max(n, 1), total=first, mixed=second[0] if second else None)

    def _totals(self, found: list[Any], terms: Terms) -> list[Any]:
        """The sums of the design, for every group, from n, Σa and Σa²."""
        width, lower = self.grid.width, self.grid.lower
        if not terms.meets and not terms.public and all(isinstance(column, Integers) for column in found):
            factors = [width**2, 2 * width, 2] if self.squares else [max(width, abs(lower)), 1]
            return [Integers(column) for column in self._sums(terms, *roomy([one.array for one in found], factors))]
        rows = [self._sums(terms, *row) for row in zip(*found, strict=True)]
        return [list(column) for column in zip(*rows, strict=True)]

    def _sums(self, terms: Terms, n: Any, total: Any, squared: Any = None) -> list[Any]:
        """The same of one group, or of arrays of them."""
        width = self.grid.width
        if terms.public:
            return moments.joint_totals(total, squared, width) if self.squares else [total]
        if self.alone:
            return [total + self.grid.lower * n]
        if self.squares:
            found = moments.centred_square_totals if terms.meets else moments.bernstein_totals
            return found(n, total, squared, width)
        return (moments.centred_totals if terms.meets else moments.pair_totals)(n, total, width)


def as_number(of: Expression) -> Expression:
    """The expression, a truth as 1 or 0."""
    return Cast(of, "number") if kind_of(of) == "truth" else of


def grid_point(missing: Fraction | None, grid: ValueGrid) -> int | None:
    """Where a declared replacement lies on the grid; None stays None: missing values are dropped."""
    return None if missing is None else grid.point(missing)


def _items(columns: dict[str, Columns]) -> dict[str, list[Item]]:
    """Row by row, as Python's own numbers."""
    plain = {
        name: [column.tolist() if isinstance(column, np.ndarray) else column for column in three]
        for name, three in columns.items()
    }
    return {name: list(zip(*three, strict=True)) for name, three in plain.items()}
