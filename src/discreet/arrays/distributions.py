"""Histograms and cumulative counts of a column in memory."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays.call import Range, Values, run
from discreet.engines.array import Bins
from discreet.errors import InvalidParameter
from discreet.formats import as_float
from discreet.parameters import Epsilon, Neighbors, Number, exact_count
from discreet.release.account import Account
from discreet.release.question import bin_edges, of_tree, public_total, question
from discreet.release.release import Cumulative, Ends, Histogram, fields_of
from discreet.release.statistics.counts import HistogramDesign
from discreet.release.statistics.cumulative import TreeDesign

_MOST_CELLS = 2**20
"""A band is simulated for all cells at once: beyond this it takes minutes, and tells nothing more."""


def histogram(
    x: Values,
    *,
    bins: int | Sequence[Number] | ArrayLike,
    epsilon: Epsilon,
    bounds: Range | None = None,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    **account: Unpack[Account],
) -> Histogram:
    """Count the values in each bin.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are in no bin, or in that of `missing`.
    bins : int or sequence of numbers
        The number of even bins between the bounds, or the edges: [edge, next edge), the last closed.
    epsilon : number or text
        The privacy parameter: the smaller, the more noise. Every bin has it, also an empty one. Calls add up.
    bounds : (lower, upper), optional
        For even bins. What lies beyond the bounds, or the edges, is in the first or the last bin.
    neighbors, missing, **account
        The same for all statistics: see `help(discreet.arrays)`.

    Returns
    -------
    Histogram
        Its `value` is an array of whole numbers, which may be negative; its `edges` are those of the bins.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> children, others = discreet.histogram(ages, bins=[0, 18, 120], epsilon=1).value
    >>> bool(100 < children < 260)
    True

    See docs/statistics.md, "Histogram, cumulative counts".

    """
    edges, even = bin_edges(bins, bounds)
    ask = question("histogram", x, (edges[0], edges[-1]), epsilon, neighbors, missing=missing)
    home = None if ask.missing is None else int(np.searchsorted(edges[1:-1], as_float(ask.missing), side="right"))
    design = HistogramDesign(name="histogram", bins=Bins(edges, home, even))

    def work() -> Histogram:
        scale = design.scale(ask.terms, ask.epsilon)
        noisy = ask.estimates(design)["histogram"].values
        several = 1 if design.halves(ask.terms) else design.bins.number

        def spread(confidence: Fraction, simultaneous: bool) -> Ends:
            return design.ends(noisy, scale, confidence, several if simultaneous else 1)

        release = ask.release(noisy, spread, sensitivity=scale * ask.epsilon, scale=scale, step=Fraction(1))
        return Histogram(**fields_of(release), edges=tuple(edges.tolist()), total=public_total(ask))

    return run(ask, account, work, edges=edges)


def cdf(
    x: Values,
    *,
    bounds: Range,
    epsilon: Epsilon,
    neighbors: Neighbors = "change-one",
    missing: Number | None = None,
    cells: int = 1024,
    **account: Unpack[Account],
) -> Cumulative:
    """Count the values at or below each point of a grid, from one tree of counts.

    Parameters
    ----------
    x : array_like
        One value for each person. Missing values are dropped, or count as `missing`.
    bounds : (lower, upper)
        Values beyond them are clamped. Choose them without a look at the data.
    epsilon : number or text
        The privacy parameter: the smaller, the more noise. Calls add up.
    cells : int
        About how many points the grid has, 2²⁰ at most.
    neighbors, missing, **account
        The same for all statistics: see `help(discreet.arrays)`.

    Returns
    -------
    Cumulative
        Its `value` is a rising array, with a count for each of its `points`.

    Examples
    --------
    >>> import discreet
    >>> ages = list(range(100)) * 10
    >>> below = discreet.cdf(ages, bounds=(0, 120), epsilon=1, cells=8)
    >>> len(below.value) == len(below.points)
    True

    See docs/statistics.md, "Histogram, cumulative counts".

    """
    ask = question("cdf", x, bounds, epsilon, neighbors, missing=missing)
    number = exact_count("cells", cells, least=2)
    if number > _MOST_CELLS:
        raise InvalidParameter(f"cells must be at most {_MOST_CELLS:,}, got {number:,}")
    design = TreeDesign(of=ask.quantiles(), bits=number.bit_length() - 1)

    def work() -> Cumulative:
        release, grid = of_tree(ask, design, ask.estimates(design)["below"], step=Fraction(1)), design.grid
        points = np.array([float((grid.lower + index) * grid.step) for index in range(grid.width + 1)])
        return Cumulative(**fields_of(release), points=points, total=public_total(ask))

    return run(ask, account, work, cells=number)
