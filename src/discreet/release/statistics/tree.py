"""The tree of noisy counts: one release gives the whole CDF over K ordered cells, and any number of
quantiles.

    node     j of level h = 1 … H is the number of records in the cells
             j·b^(H−h) ≤ v < (j+1)·b^(H−h); level H is the cells, and there is no root [HRMS10]
    release  every node + DLap(2H/ε) with change-one, + DLap(H/ε) with add-remove: a record is
             in one node of each level, so that a neighbour moves the nodes by 2H, or H, in total
    shape    flat (H = 1) for K ≤ 64 with change-one, K ≤ 16 with add-remove; else H = 2 for
             K ≤ 1024, 3 for K ≤ 8192, 4 beyond, and b = ⌈K^(1/H)⌉

Everything is an integer up to the noisy nodes. Then, as post-processing in floats: F̂(v), the
records in cells ≤ v, by weighted least squares in two passes, isotonic regression, and clamping to
[0, F̂(K−1)]. With V a variance in units of the variance of a node, and S the sum over a node's
children:

    up     z = y + (S(z) − y)/(1 + S(V)),   V = S(V)/(1 + S(V));   at the cells z = y, V = 1
    down   x = z + V/S(V)·(x − S(z) of the parent);
           above level 1 the public total n, or nothing to spread

The last node of a level may have fewer than b children. Records outside the cells are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.draw.addition import noisy
from discreet.draw.vector import fill
from discreet.errors import InvalidParameter
from discreet.parameters import Neighbors, exact_count, exact_epsilon

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_FLAT: dict[Neighbors, int] = {"change-one": 64, "add-remove": 16}
"""Up to so many cells the tree is flat: at this border within 6 % of two levels, as measured."""

_HEIGHTS = ((1024, 2), (8192, 3))
"""Up to so many cells, so many levels; beyond, 4.

One more at a border: 1 % less error, 5 to 15 % with add-remove.
"""

_SIMULATION_DOUBT = 1e-6  # the probability that a simulated band is narrower than the true band

_SIMULATED_DRAWS = 2**24
_MOST_SIMULATIONS = 2**16
"""Most draws, a third of a second, and most simulations, which give the width to a percent."""

_SIMULATED_TOGETHER = 2**19
"""Draws in memory at a time, 4 MiB: more exceed the caches, fewer make numpy's rows short."""

_ROUNDED_UP = 1 + 2**-20
"""Rounds up: wider.

It covers the rounding of F̂ itself, which would break ties with the band up to some 10⁹ records.
"""

_MOST_CONFIDENCE = Fraction(999, 1000)
"""Beyond this a simulation would need too many draws to bound the quantile from above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The public shape of a tree and the noise scale of each node; `tree_design` creates it."""

    cells: int
    neighbors: Neighbors
    """The relation of neighbours; with "add-remove" the number of records is private."""
    height: int
    branching: int
    scale: Fraction

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, from the top; the last is the number of cells."""
        return tuple(
            -(-self.cells // self.branching**below) for below in reversed(range(self.height))
        )

    def noisy(self, counts: Integers) -> tuple[Integers, ...]:
        """The exact sums of each level's nodes, from the top, with independent exact noise."""
        if counts.shape != (self.cells,):
            raise InvalidParameter(
                f"counts must have one dimension of {self.cells} cells, got {counts.shape}"
            )
        levels = [counts.astype(np.int64)]
        for size in reversed(self.sizes[1:]):
            levels.append(np.add.reduceat(levels[-1], np.arange(0, size, self.branching)))
        nodes = noisy(np.concatenate(levels[::-1]), self.scale)
        return tuple(np.split(nodes, list(accumulate(self.sizes[:-1]))))

    def cumulative(self, nodes: Sequence[NDArray[np.number]], total: int | None) -> Floats:
        """F̂(v) for every cell: ascending, ≥ 0, at most `total`, which is None with add-remove.

        The levels may have a common first axis, such as simulations; it is kept. The clamp at
        F̂(K−1), which the isotonic regression alone would raise, keeps the band of
        `quantile_interval` valid if the total is private.
        """
        if (total is None) != (self.neighbors == "add-remove"):
            got = "no total" if total is None else "a total"
            raise InvalidParameter(
                f"total must be given with change-one only, got {got} with {self.neighbors}"
            )
        levels = [np.asarray(level, np.float64) for level in nodes]
        columns = self._prefix_sums(
            [level.reshape(-1, level.shape[-1]).T for level in levels], float(total or 0)
        )
        prefix = columns.T.reshape(levels[-1].shape)
        if total is not None:
            prefix[..., -1] = total  # equal up to rounding
        return np.clip(isotonic(prefix), 0.0, np.maximum(prefix[..., -1:], 0.0))

    def band(self, confidence: Fraction, shares: Sequence[Fraction] = ()) -> float:
        """The half-width of the band around F̂ that covers all of F with this confidence.

        With `shares` and a private total, the half-width of the band for F(v) − q·F(K−1), for all v
        and all q between the shares together. It is simulated from the noise alone: e, the error
        before isotonic regression, is linear in the noise. Of m simulations the k-th smallest is
        taken, with the least k for which P(Binomial(m, confidence) ≥ k) ≤ 10⁻⁶: it is below the
        true quantile only if k or more simulations are, that is, with probability at most 10⁻⁶.
        """
        if not 0 < confidence <= _MOST_CONFIDENCE:
            raise InvalidParameter(
                f"confidence must be above 0 and at most {_MOST_CONFIDENCE}, got {confidence}"
            )
        _check(shares)
        private = self.neighbors == "add-remove" and len(shares) > 0
        # |e(v) − q·e(K−1)| is convex in q: the extreme shares bound all shares
        return _band(self, confidence, (min(shares), max(shares)) if private else ())

    def _noise(self, simulations: int) -> list[Integers]:
        """Fresh draws for each level, nodes × simulations; one simulation has no second axis."""
        draws = np.empty(sum(self.sizes) * simulations, np.int64)
        fill(draws, self.scale)
        columns = draws.reshape(-1, simulations) if simulations > 1 else draws
        return np.split(columns, list(accumulate(self.sizes[:-1])))

    def _prefix_sums(self, levels: Sequence[Floats], total: float) -> Floats:
        """F̂ before isotonic regression, from nodes × simulations: linear in nodes and total."""
        weights, shares = _weights(self)
        rising = [levels[-1]]
        sums = []
        for level, weight in zip(reversed(levels[:-1]), reversed(weights), strict=True):
            sums.append(
                np.add.reduceat(rising[-1], np.arange(0, len(rising[-1]), self.branching), axis=0)
            )
            # exactly the level if the children agree
            rising.append(level + (sums[-1] - level) * weight)
        parents = rising.pop()
        if self.neighbors == "change-one":
            parents = parents + shares[0] * (total - parents.sum(axis=0))
        for children, share in zip(reversed(rising), shares[1:], strict=True):
            surplus = np.repeat(parents - sums.pop(), self.branching, axis=0)[: len(children)]
            surplus *= share
            surplus += children
            parents = surplus
        return np.cumsum(parents, axis=0)


def tree_design(cells: int, terms: UnitLimits, epsilon: Fraction) -> Tree:
    """The tree for so many ordered cells: its shape, and the exact scale of its noise.

    If a record may be in no cell, the number of records is private under change-one, too.

    >>> tree_design(
    ...     1000,
    ...     UnitLimits(rows=1, max_groups=1, replaced=True, public=True, cells=1),
    ...     Fraction(1, 2),
    ... )
    Tree(cells=1000, neighbors='change-one', height=2, branching=32, scale=Fraction(8, 1))
    """
    size = exact_count("cells", cells)
    relation: Neighbors = "change-one" if terms.public else "add-remove"
    height = (
        1
        if size <= _FLAT[relation]
        else next((levels for most, levels in _HEIGHTS if size <= most), 4)
    )
    scale = terms.tree(height) / exact_epsilon(epsilon)
    return Tree(
        cells=size, neighbors=relation, height=height, branching=_root_up(size, height), scale=scale
    )


def quantiles_from(cumulative: Floats, shares: Sequence[Fraction], total: int | None) -> Integers:
    """For each share q, the first cell v with F̂(v) ≥ q·n, where n is F̂(K−1) if the total is None.

    >>> quantiles_from(
    ...     np.array([1.0, 5.0, 9.0, 10.0]), [Fraction(1, 2), Fraction(9, 10)], 10
    ... ).tolist()
    [1, 2]
    """
    _check(shares)
    ranks = [_rank(cumulative, share, total) for share in shares]
    return np.minimum(np.searchsorted(cumulative, ranks, side="left"), cumulative.size - 1).astype(
        np.int64
    )


def quantile_interval(
    cumulative: Floats, share: Fraction, total: int | None, band: float
) -> tuple[int, int]:
    """The first and the last cell of {v : F̂(v) + band ≥ q·n and F̂(v−1) − band ≤ q·n}.

    The true quantile, the first cell with F(v) ≥ q·n, is among them whenever the band holds.

    >>> quantile_interval(np.array([1.0, 5.0, 9.0, 10.0]), Fraction(1, 2), 10, 1.5)
    (1, 2)
    """
    _check([share])
    rank, end = _rank(cumulative, share, total), cumulative.size - 1
    first = int(np.searchsorted(cumulative, rank - band, side="left"))
    last = int(np.searchsorted(cumulative, rank + band, side="right"))
    return min(first, end), min(last, end)


@lru_cache(maxsize=64)
def _band(tree: Tree, confidence: Fraction, shares: tuple[Fraction, ...]) -> float:
    simulations, order = _simulations(sum(tree.sizes), confidence)
    at_once = max(1, _SIMULATED_TOGETHER // sum(tree.sizes))
    largest = []
    for start in range(0, simulations, at_once):
        noise = tree._noise(min(at_once, simulations - start))
        errors = tree._prefix_sums(
            [level.reshape(len(level), -1).astype(np.float64) for level in noise], 0.0
        )
        high, low, last = errors.max(axis=0), errors.min(axis=0), errors[-1]
        centres = [float(share) * last for share in shares] or [0.0]
        largest.append(
            np.max([np.maximum(high - centre, centre - low) for centre in centres], axis=0)
        )
    return float(np.sort(np.concatenate(largest))[order - 1]) * _ROUNDED_UP


def _simulations(nodes: int, confidence: Fraction) -> tuple[int, int]:
    """The number of simulations, and the rank of the one that bounds the quantile from above."""
    log_chance = math.log(confidence.numerator) - math.log(confidence.denominator)
    log_doubt = math.log((1 - confidence).numerator) - math.log((1 - confidence).denominator)
    # the largest of these would be enough
    least = math.ceil(math.log(_SIMULATION_DOUBT) / log_chance)
    simulations = max(2 * least, min(_SIMULATED_DRAWS // nodes, _MOST_SIMULATIONS))
    # P(B = k−1)/P(B = k) = k/(m−k+1)·(1−p)/p from k = m down, then P(B ≥ k)
    below = np.arange(simulations, 0, -1, dtype=np.float64)
    ratios = np.log(below / (simulations + 1 - below)) + (log_doubt - log_chance)
    tails = np.cumsum(np.exp(simulations * log_chance + np.concatenate([[0.0], np.cumsum(ratios)])))
    return simulations, simulations + 1 - int(np.count_nonzero(tails <= _SIMULATION_DOUBT))


@lru_cache(maxsize=16)
def _weights(tree: Tree) -> tuple[list[Floats], list[Floats]]:
    """1/(1 + S(V)) for nodes of all levels but the last, and V/S(V) of the parent for all nodes."""
    variance = np.ones((tree.cells, 1))
    weights: list[Floats] = []
    shares: list[Floats] = []
    for _ in range(tree.height - 1):
        sums = np.add.reduceat(variance, np.arange(0, len(variance), tree.branching), axis=0)
        shares.append(variance / np.repeat(sums, tree.branching, axis=0)[: len(variance)])
        weights.append(1 / (1 + sums))
        variance = sums / (1 + sums)
    shares.append(variance / variance.sum())
    return weights[::-1], shares[::-1]


def _root_up(number: int, degree: int) -> int:
    """The smallest integer whose power reaches the number; a float only gives a start below it."""
    root = max(1, int(number ** (1 / degree)) - 1)
    while root**degree < number:
        root += 1
    return root


def _rank(cumulative: Floats, share: Fraction, total: int | None) -> float:
    return float(share * (Fraction(float(cumulative[-1])) if total is None else total))


def _check(shares: Sequence[Fraction]) -> None:
    for share in shares:
        if not 0 <= share <= 1:
            raise InvalidParameter(f"a share must lie between 0 and 1, got {share}")


def isotonic(values: Floats) -> Floats:
    """The ascending g of least Σ (g − x)² along the last axis, by pooling adjacent violators.

    If |x − f| ≤ c everywhere for an ascending truth f, then |g − f| ≤ c everywhere, so a
    simultaneous band for x is one for g: by the max–min formula g(v) is at most the largest mean of
    x(s … v) over s ≤ v, which is at most f(v) + c, and at least the smallest mean of x(v … t), at
    least f(v) − c.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).round(2).tolist()
    [1.0, 2.33, 2.33, 2.33, 5.0]
    """
    result = np.array(values, dtype=np.float64, ndmin=1)
    for row in result.reshape(-1, result.shape[-1]):
        if np.any(row[1:] < row[:-1]):
            row[:] = _pooled(row.tolist())
    return result


def project(counts: Floats, total: float) -> Floats:
    """The counts h = max(x − θ, 0) that sum to `total`, nearest to `counts`; a total below 0 is 0.

    They are biased (empty cells gain, full cells lose): use them for display, never for adding up.

    >>> project(np.array([5.0, -1.0, 2.0]), 5).tolist()
    [4.0, 0.0, 1.0]
    """
    values = np.array(counts, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    if values.min() >= 0 and math.fsum(values) == total:
        return values
    falling = np.sort(values)[::-1]
    # the surplus per cell if only the largest 1, 2, … cells stay above 0
    surplus = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    # the largest cell stays, even if its surplus rounds
    support = max(1, int(np.count_nonzero(falling > surplus)))
    nearest: Floats = np.maximum(values - surplus[support - 1], 0.0)
    return nearest


def _pooled(values: list[float]) -> Floats:
    """Block means by a stack: a value joins the blocks before it as long as they are above it."""
    means: list[float] = []
    sums: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, total, size = value, value, 1
        while means and means[-1] > mean:
            means.pop()
            total += sums.pop()
            size += sizes.pop()
            mean = total / size
        means.append(mean)
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)
