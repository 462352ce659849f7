"""How a query is released: its aggregates joined into designs, each with its integers, its noise and its estimator.

One row moves a count by 1, a pair of sums by R in L1, Bernstein's three by R², a rank gap by at most max(q, 1−q) to
either side. One unit has up to max_rows rows, in all groups together; under change-one its rows go and others come. So

    a design at rate ε/factor a row loses at most ε,     factor = max_rows (add-remove) or 2·max_rows (change-one)

In an answer without groups the rows that go and those that come meet in one number, which cannot move by both: a count
moves by max_rows, a sum by max_rows·(max(H, 0) − min(L, 0)), a gap by one to either side a row. And where the number of
contributing rows is public (change-one, each row a unit, no WHERE, no groups, missing values replaced) one row is
replaced by one row, and the sharper designs serve: a sum moves by R, a mean needs no count, a variance is joint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from discreet.release import moments
from discreet.release.grouped import Pairs, Triples
from discreet.release.mechanism import NoisySum, noisy_columns, public_count, public_step
from discreet.release.result import readable
from discreet.release.spread import combined_radius, radius

SUM_BITS = 30
SQUARE_BITS = 22

Secret: TypeAlias = Exact[list[list[Any]]]
"""For each measure of a design, a list over all groups."""

Item: TypeAlias = tuple[Any, Any, Any]
"""A released number and the ends of its interval."""

Columns: TypeAlias = tuple[Any, Any, Any]
"""The numbers of all groups, and the lower and upper ends of their intervals: arrays, or lists of a few."""


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
        return {self.name: _around(noisy.values, radius(noisy[0], confidence), 1)}


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
        grid, each = self.grid, epsilon / terms.factor
        if terms.public:
            return moments.joint_scales(grid.width, epsilon) if self.squares else [grid.width / epsilon]
        if self.squares:
            return moments.bernstein_scales(grid.width, each)
        if not self.alone:
            return moments.pair_scales(grid.width, each)
        if terms.cells == 1 and terms.replaced:  # 0 is what a row that does not count has
            return [terms.rows * (max(grid.upper, 0) - min(grid.lower, 0)) / epsilon]
        return [max(abs(grid.lower), abs(grid.upper)) / each]

    def lines(self, terms: Terms, epsilon: Fraction, confidence: Fraction, size: int | None) -> list[Line]:
        """The widest that an interval can be; a std is taken of data whose std is a quarter of the range."""
        scale, unit = self.scales(terms, epsilon)[-1], self.grid.step ** (2 if self.squares else 1)
        found = []
        for name, statistic in self.wanted:
            reach = self._reach(statistic, terms, epsilon, confidence)
            sizes = [1] if statistic == "sum" else [size] if size is not None else [1_000, 10_000]
            shown = [f"± {readable(reach / rows, 3)}" + (f" at {rows:,} rows" if rows > 1 else "") for rows in sizes]
            found.append(
                Line(
                    name=name,
                    sensitivity=scale * epsilon * unit,
                    scale=scale * unit,
                    within=", ".join(shown),
                    reach=reach / sizes[0] if size is not None or statistic == "sum" else None,
                    sized=True,
                    step=public_step(scale, epsilon, terms.touched) * unit,
                    noise=self._sum_noise(terms, epsilon) if statistic == "sum" else (),
                )
            )
        return found

    def _sum_noise(self, terms: Terms, epsilon: Fraction) -> tuple[Fraction, ...]:
        """The scales of the draws in a sum: each the scale of a released total times its weight in the sum."""
        grid, scales = self.grid, self.scales(terms, epsilon)
        high, low, width = grid.upper, grid.lower, grid.width
        match len(scales), terms.public:
            case (1, _) | (_, True):
                weights = [Fraction(1)]
            case (2, _):
                weights = [Fraction(abs(high), width), Fraction(abs(low), width)]
            case _:
                weights = [Fraction(abs(part), 2 * width**2) for part in (2 * low, high + low, 2 * high)]
        return tuple(scale * weight * grid.step for scale, weight in zip(scales, weights, strict=False) if weight)

    def _reach(self, statistic: str, terms: Terms, epsilon: Fraction, confidence: Fraction) -> float:
        """The half-width of a sum; of a mean, variance or std, times the number of rows."""
        grid, scales, level = self.grid, [float(scale) for scale in self.scales(terms, epsilon)], float(confidence)
        width, step = float(grid.width), float(grid.step)
        lone, joint = len(scales) == 1, terms.public and self.squares
        if lone:
            return half_width(self.scales(terms, epsilon)[0], confidence) * step
        if statistic in ("sum", "mean") and joint:
            return scales[0] * -math.log(1 - level) * step
        ends = [width + grid.lower, float(grid.lower)] if statistic == "sum" else [width, 0.0]  # (H, L), or (R, 0)
        if statistic in ("sum", "mean"):
            weights = [ends[0], (ends[0] + ends[1]) / 2, ends[1]] if self.squares else ends
            # a discrete draw is within one grid unit of the continuous one
            reach = scales[0] * float(combined_radius(np.array(weights), level)) + float(np.abs(weights).sum())
            return reach * step / width ** (len(scales) - 1)
        half = -math.log((1 - level) / 2)  # variances give half of the error to the mean
        found = (scales[0] * width + scales[1] if joint else scales[0]) * half * step**2
        return found / (width * step / 2) if statistic.startswith("std") else found

    def release(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, list[Item]]:
        """The joint release, and every wanted statistic from it."""
        return _items(self.columns(exact, terms, epsilon, confidence))

    def columns(self, exact: Secret, terms: Terms, epsilon: Fraction, confidence: Fraction) -> dict[str, Columns]:
        """The same, column by column."""
        grid, wanted = self.grid, self.wanted
        totals = exact.map(lambda found: self._totals(found, terms.public))
        sums = noisy_columns(totals, self.scales(terms, epsilon), epsilon, terms.touched)
        n = public_count(exact.map(lambda found: int(found[0][0]))) if terms.public else 0
        if self.alone:
            reach, unit = radius(sums[0][0], confidence), 1 if grid.exact else float(grid.step)
            centres = [value + grid.lower * n for value in sums[0].values] if n else sums[0].values
            return {name: _around(centres, reach, unit) for name, _ in wanted}
        if terms.public:
            one = self._estimator([column[0] for column in sums], n)
            found = {name: _statistic(one, statistic, confidence) for name, statistic in wanted}
            return {name: ([item[0]], [item[1]], [item[2]]) for name, item in found.items()}
        many = Triples(grid=grid, sums=sums) if self.squares else Pairs(grid=grid, above=sums[0], below=sums[1])
        return {name: _statistics(many, statistic, confidence) for name, statistic in wanted}

    def _totals(self, found: list[Any], public: bool) -> list[Any]:
        """The sums of the design, for every group, from n, Σa and Σa²."""
        width, lower = self.grid.width, self.grid.lower
        if all(isinstance(column, Integers) for column in found) and not public:
            factors = [width**2, 2 * width, 2] if self.squares else [max(width, abs(lower)), 1]
            n, total, *squared = roomy([column.array for column in found], factors)
            if self.alone:
                return [Integers(total + lower * n)]
            pairs: Any = moments.bernstein_totals if self.squares else moments.pair_totals
            return [Integers(made) for made in pairs(n, total, *squared, width)]
        rows = zip(*found, strict=True)
        if public:
            made = [moments.joint_totals(row[1], row[2], width) if self.squares else [row[1]] for row in rows]
        elif self.squares:
            made = [moments.bernstein_totals(row[0], row[1], row[2], width) for row in rows]
        elif self.alone:
            made = [[row[1] + lower * row[0]] for row in rows]
        else:
            made = [moments.pair_totals(row[0], row[1], width) for row in rows]
        return [list(column) for column in zip(*made, strict=True)]

    def _estimator(self, sums: list[NoisySum], n: int) -> moments.Lone | moments.Joint:
        if not self.squares:
            return moments.Lone(grid=self.grid, n=max(n, 1), total=sums[0])
        return moments.Joint(grid=self.grid, n=max(n, 1), total=sums[0], mixed=sums[1])


def as_number(of: Expression) -> Expression:
    """The expression, a truth as 1 or 0."""
    return Cast(of, "number") if kind_of(of) == "truth" else of


def grid_point(missing: Fraction | None, grid: ValueGrid) -> int | None:
    """Where a declared replacement lies on the grid; None stays None: missing values are dropped."""
    return None if missing is None else grid.point(missing)


def _around(centres: Sequence[int], reach: int, unit: float) -> Columns:
    """Numbers and the ends of their intervals, (centre ± reach)·unit; arrays of many, lists of a few."""
    if isinstance(centres, Integers):
        [middle] = roomy([centres.array], [1 if reach < 2**60 else 2**61])
        return middle * unit, (middle - reach) * unit, (middle + reach) * unit
    return tuple([(centre + end) * unit for centre in centres] for end in (0, -reach, reach))  # type: ignore[return-value]


def _items(columns: dict[str, Columns]) -> dict[str, list[Item]]:
    """Row by row, as Python's own numbers."""
    plain = {
        name: [column.tolist() if isinstance(column, np.ndarray) else column for column in three]
        for name, three in columns.items()
    }
    return {name: list(zip(*three, strict=True)) for name, three in plain.items()}


def _statistics(many: Pairs | Triples, statistic: str, confidence: Fraction) -> Columns:
    """One statistic of the joint releases of many groups."""
    if statistic == "sum":
        found = many.sum(confidence)
    elif statistic == "mean" or isinstance(many, Pairs):
        found = many.mean(confidence)
    else:
        found = many.variance(confidence, sample=statistic.endswith("+"))
    value, low, high = map(np.sqrt, found) if statistic.startswith("std") else found
    return value, low, high


def _statistic(one: moments.Lone | moments.Joint, statistic: str, confidence: Fraction) -> Item:
    """One statistic of a joint release."""
    if statistic == "sum":
        return (one.sum(), *one.sum_interval(confidence))
    if statistic == "mean" or isinstance(one, moments.Lone):
        return (one.mean(), *one.mean_interval(confidence))
    factor = one.sample_factor() if statistic.endswith("+") else 1.0
    values = [value * factor for value in (one.variance(), *one.variance_interval(confidence))]
    value, low, high = (math.sqrt(value) for value in values) if statistic.startswith("std") else values
    return value, low, high
