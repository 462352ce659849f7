"""Sums, means and variances with joint noise: several statistics at the cost of one.

In steps of the grid let a = x − L, R = H − L, q = a(R−a). The table of `calibrate.sensitivity` says
what is released with which noise: a lone or joint design if the number of rows is public, a centred
design if a removed row and an added row change the same number, the pair and Bernstein's sums
otherwise. If the number of contributing rows is public (change-one, each row a unit, no WHERE, no
groups, missing values replaced, no text file), a sum moves by R, a mean needs no count, and a
variance is joint. `grouped` computes statistics from sums with private N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from discreet.ask.query import Moment
from discreet.ask.statistics import moment
from discreet.calibrate.grid import ValueGrid, public_step, value_grid
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Measure, OnGrid, Present, Squares, Total
from discreet.engines.integers import Integers, without_overflow
from discreet.formats import readable
from discreet.release.design import Error, Estimate, Line, Secret, on_grid
from discreet.release.mechanism import NoisyColumn, NoisySum, noisy_columns, public_count
from discreet.release.statistics.grouped import (
    FINEST_SLACK,
    Draws,
    Law,
    PrivateSizeMoments,
    is_sample,
)
from discreet.release.statistics.partition import (
    Partition,
    bernstein,
    centred,
    centred_squares,
    pair,
)
from discreet.release.statistics.spread import (
    NoisySumOnly,
    combined_radius,
    half_width,
    radius,
    rounding,
)

SUM_BITS = 30
SQUARE_BITS = 22
"""Bits of the grids: the rounding of a sum is negligible beside any noise; the squares of a block
fit in int64.
"""

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class MomentDesign:
    """Sum, mean, variance and std of one expression, from one joint release."""

    wanted: tuple[tuple[str, str], ...]
    """(name, statistic): rows of `ask.statistics` with a base; a + marks the statistic of a sample.
    """
    of: Moment
    weight: int = 1
    most: int = 0
    """The number of values is at most this, if something about it is public; else 0."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.wanted)

    @cached_property
    def squares(self) -> bool:
        return any(moment(statistic).base == "variance" for _, statistic in self.wanted)

    @cached_property
    def alone(self) -> bool:
        """Whether only the sum is wanted."""
        return all(moment(statistic).base == "sum" for _, statistic in self.wanted)

    @cached_property
    def grid(self) -> ValueGrid:
        """The grid of the values, a function of the declaration alone."""
        bits = SQUARE_BITS if self.squares else SUM_BITS
        if self.of.precision is not None:
            levels = (self.of.upper - self.of.lower) / self.of.precision
            bits = min(bits, max(1, math.ceil(levels).bit_length()))
        return value_grid((self.of.lower, self.of.upper), bits=bits, whole=self.of.whole)

    def uncovered(self, terms: UnitLimits) -> Fraction:
        """How far rounding can move each value, where the interval leaves it out because a sum
        alone is released.

        Then nothing tells how many values it has. Beside a mean, or beside a count that is measured
        with it, it does.
        """
        covered = not self.alone or terms.public or self.most or self.grid.exact
        return Fraction(0) if covered else self.grid.step / 2

    def measures(self) -> tuple[Measure, ...]:
        """n, Σa and, if asked for, Σa²."""
        return (Present(self.value), Total(self.value), Squares(self.value))[
            : 3 if self.squares else 2
        ]

    @cached_property
    def value(self) -> OnGrid:
        """The column on its grid."""
        return on_grid(self.of.of, self.grid, self.of.missing)

    def scales(self, terms: UnitLimits, epsilon: Fraction) -> list[Fraction]:
        """Scales of the sums, in grid units."""
        grid = self.grid
        if self.squares:
            sensitivities = terms.variance(grid.width)
        else:
            sensitivities = (
                [terms.sum(grid.lower, grid.upper)] if self.alone else terms.mean(grid.width)
            )
        return [scale / epsilon for scale in sensitivities]

    def partition(self, terms: UnitLimits) -> Partition:
        """The partition that gives the number, mean and variance of a private number of rows from
        the totals.
        """
        if self.squares:
            return (centred_squares if terms.same_group else bernstein)(self.grid.width)
        return (centred if terms.same_group else pair)(self.grid.width)

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, confidence: Fraction, size: int | None
    ) -> list[Line]:
        """The largest errors from the noise; for a std, on data whose std is a quarter of the
        range.
        """
        scales = self.scales(terms, epsilon)
        return [
            moment_line(
                name,
                statistic,
                self.noise(statistic, scales, terms, epsilon),
                epsilon,
                partial(
                    planned_error,
                    self.of,
                    self.grid,
                    statistic,
                    partial(self._reach, terms, scales, float(confidence)),
                ),
                self._sum_noise(terms, scales) if moment(statistic).base == "sum" else (),
                size,
            )
            for name, statistic in self.wanted
        ]

    def noise(
        self, statistic: str, scales: list[Fraction], terms: UnitLimits, epsilon: Fraction
    ) -> tuple[Fraction, Fraction]:
        """The scale and the step of the noise of a statistic: on a count, a sum or a sum of
        squares.

        They are in the units of the data, before a division by the number of rows; `scales` are
        those of the sums.
        """
        index, power = {"count": (-1, 0), "variance": (1, 2)}.get(
            moment(statistic).base or "", (0, 1)
        )
        scale, width = scales[index], self.grid.width
        share = (
            width ** (2 if index == 1 else 1)
            if terms.public or self.alone
            else self.partition(terms).units[index]
        )
        unit = (width * self.grid.step) ** power / share
        return scale * unit, public_step(scale, epsilon, terms.touched) * unit

    def _sum_noise(self, terms: UnitLimits, scales: list[Fraction]) -> tuple[Fraction, ...]:
        """The scales of the draws in a sum: each the scale of a released total times its weight in
        the sum.
        """
        grid = self.grid
        if terms.public or self.alone:
            return (scales[0] * grid.step,)
        partition = self.partition(terms)
        return sum_noise(grid, partition, rows_of(scales, partition.units))

    def _reach(
        self,
        terms: UnitLimits,
        scales: list[Fraction],
        level: float,
        base: str,
        deviation: bool,
        rows: int,
    ) -> float:
        """The error from noise of a sum, mean or variance of so many rows; for a deviation, where
        the std is R/4.
        """
        grid, step, size = self.grid, float(self.grid.step), float(self.grid.width * self.grid.step)
        if len(scales) == 1:
            return half_width(scales[0], Fraction(level)) * step / (rows if base == "mean" else 1)
        if not terms.public:
            totals = [NoisyColumn(values=[0], step=1, scale=scale) for scale in scales]
            partition = self.partition(terms)
            law = Law(Draws(totals, partition.units), partition, FINEST_SLACK)
            sums = PrivateSizeMoments(grid=grid, partition=partition, law=law)
            return sums.planned(level, base, deviation, rows)
        first, second = float(scales[0]) * step, float(scales[1]) * step**2
        if base in ("sum", "mean"):
            return float(combined_radius(np.array([first]), level)) / (
                rows if base == "mean" else 1
            )
        # m(R−m) − Σq/n has the slope R − 2m: R at the bounds, at most √3/2·R if the std is R/4
        slope = size * (0.75**0.5 if deviation else 1)
        return float(combined_radius(np.array([first * slope, second]), level)) / max(
            rows - is_sample(base), 1
        )

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        """The joint release: noisy sums of all groups, with the statistics and intervals at any
        confidence.
        """
        sums = self.noisy(exact, terms, epsilon)
        return {name: estimate_of(sums, statistic) for name, statistic in self.wanted}

    def noisy(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction
    ) -> NoisySumOnly | PublicSizeMoments | PrivateSizeMoments:
        """The noisy sums of all groups."""
        grid = self.grid
        sums = lambda measured: self.totals(measured, terms)  # noqa: E731
        totals = noisy_columns(exact, self.scales(terms, epsilon), epsilon, terms.touched, sums)
        n = public_count(exact.map(lambda measured: int(measured[0][0]))) if terms.public else 0
        if self.alone:
            return NoisySumOnly(grid=grid, n=n, total=totals[0], most=n or self.most)
        if not terms.public:
            return PrivateSizeMoments(grid=grid, partition=self.partition(terms), totals=totals)
        first, *second = (column[0] for column in totals)
        return PublicSizeMoments(grid=grid, n=n, total=first, mixed=second[0] if second else None)

    def totals(self, measured: list[Any], terms: UnitLimits) -> list[Any]:
        """The sums of the design, for every group, from n, Σa and Σa²."""
        width, lower = self.grid.width, self.grid.lower
        if (
            not terms.same_group
            and not terms.public
            and all(isinstance(column, Integers) for column in measured)
        ):
            factors = [width**2, 2 * width, 2] if self.squares else [max(width, abs(lower)), 1]
            arrays = without_overflow([column.array for column in measured], factors)
            return [Integers(column) for column in self._sums(terms, *arrays)]
        rows = [self._sums(terms, *row) for row in zip(*measured, strict=True)]
        return [list(column) for column in zip(*rows, strict=True)]

    def _sums(self, terms: UnitLimits, n: Any, total: Any, squared: Any = None) -> list[Any]:
        """The sums of one group, or of arrays of groups."""
        width = self.grid.width
        if terms.public:
            return joint_totals(total, squared, width) if self.squares else [total]
        if self.alone:
            return [total + self.grid.lower * n]
        if self.squares:
            totals_of = centred_square_totals if terms.same_group else bernstein_totals
            return totals_of(n, total, squared, width)
        return (centred_totals if terms.same_group else pair_totals)(n, total, width)


def planned_error(
    of: Moment, grid: ValueGrid, statistic: str, reach: Callable[[str, bool, int], float], rows: int
) -> float:
    """The error of a statistic of so many rows: the error of its base, times the slope in the
    middle.

    `reach` is that of the noise. Rounding to the grid adds at most half a step to each value, to a
    mean and to a std.
    """
    row, width = moment(statistic), float(of.upper - of.lower)
    deviation = row.base == "variance" and row.shape is not None
    typical = width**2 / 16 if row.base == "variance" else float(of.lower) + width / 2
    error, half = reach(base_of(statistic), deviation, rows), grid.half_step
    match row.base:
        case "sum":
            error += half * rows
        case "mean":
            error = min(error + half, width)
        case "variance":  # (σ + half)² − σ², with a σ of R/4 or at most R/2
            error += half * (width / 2 if deviation else width + half)
    return error if row.slope is None else error * float(row.slope(typical))


def base_of(statistic: str) -> str:
    """The statistic from which a moment follows, with a + for that of a sample."""
    return f"{moment(statistic).base}{'+' if is_sample(statistic) else ''}"


def largest(of: Moment) -> float:
    """The largest possible size of a statistic that follows from a mean or a variance; infinite for
    a sum.
    """
    row, width = moment(of.statistic), float(of.upper - of.lower)
    if row.base == "sum":
        return math.inf
    most = width**2 if row.base == "variance" else width
    return most if row.shape is None else float(row.shape(most))


def estimate_of(
    sums: NoisySumOnly | PublicSizeMoments | PrivateSizeMoments, statistic: str
) -> Estimate:
    """A statistic and its intervals: those of its base, transformed."""
    base = base_of(statistic)
    if moment(statistic).shape is None:
        return Estimate(sums.value(base), partial(sums.ends, base))

    return Estimate(
        _shaped(statistic, sums.value(base)),
        partial(shaped_ends, statistic, partial(sums.ends, base)),
    )


def shaped_ends(
    statistic: str, ends: Callable[[Fraction], tuple[Any, Any]], confidence: Fraction
) -> tuple[Any, Any]:
    """The ends of the base of a statistic, transformed."""
    low, high = ends(confidence)
    return _shaped(statistic, low), _shaped(statistic, high)


def _shaped(statistic: str, numbers: Any) -> Any:
    shape: Any = moment(statistic).shape
    return (
        shape(numbers)
        if isinstance(numbers, np.ndarray)
        else [float(shape(number)) for number in numbers]
    )


def moment_line(
    name: str,
    statistic: str,
    noise: tuple[Fraction, Fraction],
    epsilon: Fraction,
    reach: Callable[[int], float],
    draws: tuple[Fraction, ...] | Callable[[], tuple[Fraction, ...]],
    size: int | None,
) -> Line:
    """The line of a plan for a statistic with noise of this scale and step; `reach` takes the rows
    of a group.

    A sum is shown without the rounding of its values if their number is not given.
    """

    def error() -> Error:
        is_sum = moment(statistic).base == "sum"
        sizes = [size] if size is not None else [0] if is_sum else [1_000, 10_000]
        errors = [reach(rows) for rows in sizes]
        at = [f" at {rows:,} rows" if rows > 1 and not is_sum else "" for rows in sizes]
        shown = [f"± {readable(error, 3)}{rows}" for error, rows in zip(errors, at, strict=True)]
        return ", ".join(shown), errors[0] if size is not None or is_sum else None

    return Line(
        name=name,
        sensitivity=noise[0] * epsilon,
        scale=noise[0],
        error=error,
        sized=True,
        step=noise[1],
        draws=draws,
    )


def rows_of(scales: Sequence[Fraction], units: Sequence[int]) -> list[Fraction]:
    """The scales of totals in rows; equal ones are one object."""
    each: dict[Fraction, Fraction] = {}
    rows = (scale / unit for scale, unit in zip(scales, units, strict=True))
    return [each.setdefault(scale, scale) for scale in rows]


def sum_noise(
    grid: ValueGrid, partition: Partition, scales: Sequence[Fraction]
) -> tuple[Fraction, ...]:
    """The scales of the draws in a sum that follows from a partition; `scales` are those of its
    totals, in rows.
    """
    ends = [grid.lower + Fraction(value) * grid.width for value in partition.values]
    of_kinds = [
        abs(
            sum(
                (end * Fraction(part) for end, part in zip(ends, kind[2:], strict=True)), Fraction()
            )
        )
        * grid.step
        for kind in partition.kinds
    ]
    of_kinds.append(Fraction(0))
    known: dict[tuple[int, int], Fraction] = {}
    noise = []
    for scale, kind in zip(scales, partition.kind_of.tolist(), strict=True):
        key = id(scale), kind
        if key not in known:
            known[key] = scale * of_kinds[kind]
        if known[key]:
            noise.append(known[key])
    return tuple(noise)


def joint_totals(total: Any, squared: Any, width: int) -> list[Any]:
    """Σa and Σq."""
    return [total, width * total - squared]


def centred_totals(n: Any, total: Any, width: int) -> list[Any]:
    """Σ(2a−R) and N."""
    return [2 * total - n * width, n]


def centred_square_totals(n: Any, total: Any, squared: Any, width: int) -> list[Any]:
    """Σ(2a−R), Σ(8q−R²) and N."""
    return [2 * total - n * width, 8 * (width * total - squared) - n * width**2, n]


def pair_totals(n: Any, total: Any, width: int) -> list[Any]:
    """Σa and Σ(R−a)."""
    return [total, n * width - total]


def bernstein_totals(n: Any, total: Any, squared: Any, width: int) -> list[Any]:
    """Σ(R−a)², Σ2a(R−a), Σa²."""
    return [n * width**2 - 2 * width * total + squared, 2 * (width * total - squared), squared]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSizeMoments:
    """Sum, mean and variance of n values with public n: variance = m(R−m) − Σq/n with m = Σa/n."""

    grid: ValueGrid
    n: int
    total: NoisySum
    mixed: NoisySum | None = None
    """Σq, if squares are asked for."""

    @property
    def _rows(self) -> int:
        """n, or 1 if there is nobody, of whom a mean and a variance tell nothing."""
        return max(self.n, 1)

    def value(self, statistic: str) -> list[float]:
        """The sum, mean or variance of the only group, or the sample form variance+."""
        match statistic:
            case "sum":  # not clamped
                return [float((self.total.value + self.n * self.grid.lower) * self.grid.step)]
            case "mean":
                return [self._value(Fraction(self.total.value, self._rows))]
        return [self.variance() * self._factor(statistic)]

    def ends(self, statistic: str, confidence: Fraction) -> tuple[list[float], list[float]]:
        """The lower and the upper end of the interval of the only group."""
        match statistic:
            case "sum":
                reach = float(
                    (radius(self.total, confidence) + rounding(self.grid, self.n)) * self.grid.step
                )
                [value] = self.value("sum")
                low, high = value - reach, value + reach
            case "mean":
                low, high = self.mean_interval(confidence)
            case _:
                factor = self._factor(statistic)
                low, high = (end * factor for end in self.variance_interval(confidence))
        return [low], [high]

    def mean_interval(self, confidence: Fraction) -> Interval:
        """The exact interval of one discrete Laplace draw, half a step wider for rounding, within
        the bounds.
        """
        reach = radius(self.total, confidence)
        half = Fraction(0) if self.grid.exact else Fraction(1, 2)
        low, high = (
            Fraction(self.total.value + sign * reach, self._rows) + sign * half for sign in (-1, 1)
        )
        return self._value(low), self._value(high)

    def variance(self) -> float:
        """The variance of the population, clamped to 0 and to a quarter of the squared range."""
        width, mixed = self.grid.width, self._mixed()
        m = self._clamped(Fraction(self.total.value, self._rows))
        estimate = m * (width - m) - Fraction(mixed.value, self._rows)
        return float(min(max(estimate, Fraction(0)), Fraction(width**2, 4)) * self.grid.step**2)

    def variance_interval(self, confidence: Fraction) -> Interval:
        """The image of a box with half the error probability for each total.

        The image is concave in m.
        """
        width, level, mixed = self.grid.width, (1 + confidence) / 2, self._mixed()
        reach = radius(self.total, level)
        means = [
            self._clamped(Fraction(self.total.value + sign * reach, self._rows)) for sign in (-1, 1)
        ]
        peaks = [*means, Fraction(width, 2)] if means[0] < Fraction(width, 2) < means[1] else means
        images = [m * (width - m) for m in peaks]
        reach = radius(mixed, level)
        low = min(images) - Fraction(mixed.value + reach, self._rows)
        high = max(images) - Fraction(mixed.value - reach, self._rows)
        # rounding to the grid moves a std by at most half a step
        size, half = float(width * self.grid.step), self.grid.half_step
        roots = [
            math.sqrt(min(max(float(end) / width**2, 0.0), 0.25)) * size for end in (low, high)
        ]
        return max(roots[0] - half, 0.0) ** 2, min(roots[1] + half, size / 2) ** 2

    def _mixed(self) -> NoisySum:
        if self.mixed is None:
            raise TypeError("a variance needs the sum of squares")
        return self.mixed

    def _factor(self, statistic: str) -> float:
        """The factor of a sample variance."""
        return self.n / (self.n - 1) if is_sample(statistic) and self.n > 1 else 1.0

    def _clamped(self, steps: Fraction) -> Fraction:
        return min(max(steps, Fraction(0)), Fraction(self.grid.width))

    def _value(self, steps: Fraction) -> float:
        """The value in the units of the data, clamped to the bounds."""
        return float((self.grid.lower + self._clamped(steps)) * self.grid.step)
