"""The number of values at or below each point of a grid, and quantiles: one release of a tree of counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.ask.query import Quantiles
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.calibrate.sensitivity.terms import Terms
from discreet.engines.base import Cells, Measure
from discreet.release.design import Estimate, Secret, on_grid
from discreet.release.mechanism import noisy_tree, public_count
from discreet.release.statistics.tree import Floats, Tree, quantile_interval, quantiles_from, tree_design


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDesign:
    """The cumulative counts of one group ("below"), and quantiles from them ("quantiles"), if shares are given."""

    of: Quantiles
    bits: int
    """A grid of about 2^bits points."""
    names: tuple[str, ...] = ("below", "quantiles")

    @property
    def grid(self) -> ValueGrid:
        return value_grid((self.of.lower, self.of.upper), bits=self.bits, whole=self.of.whole)

    def measures(self) -> tuple[Measure, ...]:
        return (Cells(on_grid(self.of.of, self.grid, self.of.missing)),)

    def tree(self, terms: Terms, epsilon: Fraction) -> Tree:
        """The shape of the tree and the scale of its noise."""
        return tree_design(self.grid.width + 1, terms, epsilon)

    def estimate(self, exact: Secret, terms: Terms, epsilon: Fraction, _confidence: Fraction) -> Mapping[str, Estimate]:
        tree, counts = self.tree(terms, epsilon), exact.map(lambda integers: integers[0][0])
        nodes = noisy_tree(counts, tree)
        total = public_count(counts.map(lambda integers: int(integers.sum()))) if terms.public else None
        below = tree.cumulative(nodes, total)
        points = (self.grid.lower + np.asarray(quantiles_from(below, self.of.shares, total))) * float(self.grid.step)
        return {
            "below": Estimate(below, partial(band_ends, below, tree)),
            "quantiles": Estimate(points, partial(quantile_ends, self.grid, self.of.shares, below, tree, total)),
        }


def band_ends(below: Floats, tree: Tree, confidence: Fraction) -> tuple[Any, Any]:
    """The band of cumulative counts; it holds at all points together."""
    reach = tree.band(confidence)
    return np.maximum(below - reach, 0), below + reach


def quantile_ends(
    grid: ValueGrid, shares: tuple[Fraction, ...], below: Floats, tree: Tree, total: int | None, confidence: Fraction
) -> tuple[Any, Any]:
    """The ends of the intervals of quantiles from cumulative counts."""
    step, lower, half = float(grid.step), grid.lower, 0.0 if grid.exact else 0.5
    reach = tree.band(confidence, () if total is not None else shares)
    intervals = [quantile_interval(below, share, total, reach) for share in shares]
    low = np.array([(lower + first - half) * step for first, _ in intervals])
    high = np.array([(lower + last + half) * step for _, last in intervals])
    return np.maximum(low, lower * step), np.minimum(high, grid.upper * step)
