"""Counts of rows, units, bins of a histogram, and values up to each point of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.ask.query import Count, CountUnits, Quantiles
from discreet.calibrate.grid import ValueGrid, public_step, value_grid
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.array import Bins, Listed
from discreet.engines.base import Cells, Measure, Rows, Units
from discreet.release.design import Estimate, Line, Secret, on_grid
from discreet.release.intervals.spreads import constant, counted
from discreet.release.mechanism import (
    NoisyColumn,
    noisy_columns,
    noisy_counts,
    noisy_tree,
    public_count,
)
from discreet.release.statistics.grouped import PrivateSizeMoments
from discreet.release.statistics.spread import around, half_width, radius
from discreet.release.statistics.tree import (
    Floats,
    Tree,
    quantile_interval,
    quantiles_from,
    tree_design,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDesign:
    """Counts of rows or of units; every count has noise, even for an empty group."""

    name: str
    of: Count | CountUnits
    weight: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def measures(self) -> tuple[Measure, ...]:
        return (Units(),) if isinstance(self.of, CountUnits) else (Rows(self.of.of),)

    def scale(self, terms: UnitLimits, epsilon: Fraction) -> Fraction:
        return (
            Fraction(terms.touched if isinstance(self.of, CountUnits) else terms.row_changes)
            / epsilon
        )

    def lines(
        self, terms: UnitLimits, epsilon: Fraction, confidence: Fraction, _size: int | None
    ) -> list[Line]:
        """The line of the count; its error does not depend on the size."""
        scale = self.scale(terms, epsilon)
        reach = half_width(scale, confidence)
        line = Line(
            name=self.name,
            sensitivity=scale * epsilon,
            scale=scale,
            error=(f"± {reach:,}", float(reach)),
            step=Fraction(public_step(scale, epsilon, terms.touched)),
            draws=(scale,),
        )
        return [line]

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        [noisy] = noisy_columns(exact, [self.scale(terms, epsilon)], epsilon, terms.touched)
        return {self.name: Estimate(around(noisy.values, 0, 1)[0], partial(count_ends, noisy))}


def count_ends(noisy: NoisyColumn, confidence: Fraction) -> tuple[Any, Any]:
    """The ends of the intervals of noisy counts."""
    _, low, high = around(noisy.values, radius(noisy[0], confidence), 1)
    return low, high


def whole(counts: Floats) -> Any:
    """Rounded counts as integers; Python's integers if the noise of a tiny ε exceeds 64 bits."""
    if max(counts.max(initial=0.0), -counts.min(initial=0.0)) < 2.0**63:
        return counts.astype(np.int64)
    return np.array([int(count) for count in counts.tolist()], object)


def whole_ends(sums: PrivateSizeMoments, counts: Any, confidence: Fraction) -> tuple[Any, Any]:
    """The integers within the ends, widened to include the count itself."""
    low, high = sums.ends("count", confidence)
    return np.minimum(whole(np.ceil(low, low)), counts), np.maximum(
        whole(np.floor(high, high)), counts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCount:
    """The number of rows or units if it is public: no noise, no cost."""

    name: str
    of: Count | CountUnits
    weight: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def measures(self) -> tuple[Measure, ...]:
        return (Units(),) if isinstance(self.of, CountUnits) else (Rows(),)

    def lines(
        self, _terms: UnitLimits, _epsilon: Fraction, _confidence: Fraction, _size: int | None
    ) -> list[Line]:
        none = Fraction(0)
        return [
            Line(
                name=self.name,
                sensitivity=none,
                scale=none,
                error=("exact: this number is public", 0.0),
            )
        ]

    def estimate(
        self, exact: Secret, _terms: UnitLimits, _epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        counts = [public_count(exact.map(lambda integers: int(integers[0][0])))]
        return {self.name: Estimate(counts, partial(constant, counts, counts))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistogramDesign:
    """Counts of a column's bins or keys; for two bins of a public total, one count and the rest."""

    name: str
    bins: Bins | Listed

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def measures(self) -> tuple[Any, ...]:
        return (self.bins,)

    def halves(self, terms: UnitLimits) -> bool:
        """Whether there are two bins, and the second has all values that are not in the first."""
        return terms.public and self.bins.number == 2

    def scale(self, terms: UnitLimits, epsilon: Fraction) -> Fraction:
        bins_as_groups = replace(terms, cells=1 if self.halves(terms) else self.bins.number)
        return Fraction(bins_as_groups.row_changes) / epsilon

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        scale = self.scale(terms, epsilon)
        counts = exact.map(lambda integers: np.asarray(integers[0]))
        if self.halves(terms):
            [first] = noisy_counts(counts.map(lambda integers: integers[:1]), scale).tolist()
            noisy = np.array(
                [first, public_count(counts.map(lambda integers: int(integers.sum()))) - first]
            )
        else:
            noisy = noisy_counts(counts, scale)
        together = 1 if self.halves(terms) else self.bins.number
        return {
            self.name: Estimate(noisy, partial(counted, noisy, scale, together, simultaneous=False))
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDesign:
    """Cumulative counts of a group ("below") and, for given shares, "quantiles" from them."""

    of: Quantiles
    bits: int
    """A grid of about 2^bits points."""
    names: tuple[str, ...] = ("below", "quantiles")

    @property
    def grid(self) -> ValueGrid:
        return value_grid((self.of.lower, self.of.upper), bits=self.bits, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        return (Cells(on_grid(self.of.of, self.grid, self.of.missing)),)

    def tree(self, terms: UnitLimits, epsilon: Fraction) -> Tree:
        """The shape of the tree and the scale of its noise."""
        return tree_design(self.grid.width + 1, terms, epsilon)

    def estimate(
        self, exact: Secret, terms: UnitLimits, epsilon: Fraction, _confidence: Fraction
    ) -> Mapping[str, Estimate]:
        tree, counts = self.tree(terms, epsilon), exact.map(lambda integers: integers[0][0])
        nodes = noisy_tree(counts, tree)
        total = (
            public_count(counts.map(lambda integers: int(integers.sum()))) if terms.public else None
        )
        below = tree.cumulative(nodes, total)
        points = (
            self.grid.lower + np.asarray(quantiles_from(below, self.of.shares, total))
        ) * float(self.grid.step)
        return {
            "below": Estimate(below, partial(band_ends, below, tree)),
            "quantiles": Estimate(
                points, partial(quantile_ends, self.grid, self.of.shares, below, tree, total)
            ),
        }


def band_ends(below: Floats, tree: Tree, confidence: Fraction) -> tuple[Any, Any]:
    """The band of cumulative counts; it holds at all points together."""
    reach = tree.band(confidence)
    return np.maximum(below - reach, 0), below + reach


def quantile_ends(
    grid: ValueGrid,
    shares: tuple[Fraction, ...],
    below: Floats,
    tree: Tree,
    total: int | None,
    confidence: Fraction,
) -> tuple[Any, Any]:
    """The ends of the intervals of quantiles from cumulative counts."""
    step, lower, half = float(grid.step), grid.lower, 0.0 if grid.exact else 0.5
    reach = tree.band(confidence, () if total is not None else shares)
    intervals = [quantile_interval(below, share, total, reach) for share in shares]
    low = np.array([(lower + first - half) * step for first, _ in intervals])
    high = np.array([(lower + last + half) * step for _, last in intervals])
    return np.maximum(low, lower * step), np.minimum(high, grid.upper * step)
