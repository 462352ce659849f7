"""Releases of one column in memory by the designs of studies: one group, one row a unit."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.parameters import exact_bounds, exact_count, exact_number, quote
from discreet.release.design import Estimate
from discreet.release.question import USUAL, Question
from discreet.release.release import Release
from discreet.release.statistics.cumulative import TreeDesign
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import QuantileDesign

_MOST_BINS = 10**8
"""Eight bytes each, and their edges: beyond this a histogram does not fit into memory."""


def moments(ask: Question, *statistics: str) -> dict[str, Release]:
    """Count, sum, mean, variance and std, or the sample forms variance+ and std+, from one joint release."""
    design = MomentDesign(wanted=tuple((name, name) for name in statistics), of=ask.moment)
    found = ask.estimates(design)
    called = {name: replace(ask, statistic=name) if len(statistics) > 1 else ask for name in statistics}
    return {name: _of_moments(called[name], design, found[name], name) for name in statistics}


def _of_moments(ask: Question, design: MomentDesign, estimate: Estimate, statistic: str) -> Release:
    """One statistic of a joint release; where n is public, in terms of the mean rather than of the sum."""
    scale, step = design.noise(statistic, ask.terms, ask.epsilon)
    match statistic:
        case "sum":
            return ask.released(estimate, sensitivity=scale * ask.epsilon, scale=scale, step=step)
        case "count":
            return ask.released(estimate, sensitivity=Fraction(1), scale=scale, step=step)
    size = (design.grid.width * design.grid.step) ** (1 if statistic == "mean" else 2)
    n = ask.n if ask.public_size else 1
    return ask.released(estimate, sensitivity=size / n, scale=scale / n, step=step / n)


def known_count(ask: Question) -> Release:
    """The number of values where it is public."""
    n, none = ask.n, Fraction(0)
    free = replace(ask, statistic="count", epsilon=none)
    return free.release(n, lambda _confidence, _: (n, n), sensitivity=none, scale=none, step=Fraction(1))


def public_total(ask: Question) -> int | None:
    """The number of values, where it is public."""
    return len(ask.data) if ask.public_size else None


def of_tree(ask: Question, design: TreeDesign, estimate: Estimate, step: Fraction) -> Release:
    """All numbers of an estimate of a tree."""
    scale = design.tree(ask.terms, ask.epsilon).scale
    spread = lambda confidence, _: estimate.ends(confidence)  # noqa: E731
    return ask.release(estimate.values, spread, sensitivity=scale * ask.epsilon, scale=scale, step=step)


def chosen(ask: Question, share: Fraction, bracket: Fraction | None) -> Release:
    """One quantile, and a bracket around it at this confidence, or none."""
    design = QuantileDesign(names=(ask.statistic,), of=ask.quantiles(share), cells=1, bracketed=bracket is not None)
    rate = design.rate(share, ask.terms, ask.epsilon)
    error = "" if bracket is not None else f"within {design.rank_error(rate):,.0f} ranks, 95 %"
    found = ask.estimates(design, confidence=bracket or USUAL)[ask.statistic]
    return ask.released(found, sensitivity=Fraction(1), scale=1 / rate, step=design.grid.step, error=error)


def bin_edges(bins: Any, bounds: Any) -> tuple[NDArray[np.float64], bool]:
    """The edges, and whether they are even."""
    listed = bins.tolist() if hasattr(bins, "tolist") else bins
    if isinstance(listed, list | tuple | range):
        edges = np.array([_float_edge(edge) for edge in listed])
        if edges.size < 2 or bool(np.any(edges[1:] <= edges[:-1])):
            raise InvalidParameter(f"bins must be two or more edges in rising order, got {edges.size}")
        exact_bounds((edges[0], edges[-1]))
        return edges, False
    if bounds is None:
        raise InvalidParameter(f"bins must be edges, or a number together with bounds, got {quote(bins)} alone")
    number = exact_count("bins", bins)
    if number > _MOST_BINS:
        raise InvalidParameter(f"bins must be at most {_MOST_BINS:,}, got {number:,}")
    lower, upper = (float(bound) for bound in exact_bounds(bounds))
    return np.linspace(lower, upper, number + 1), True


def _float_edge(edge: Any) -> float:
    return edge if type(edge) is float and math.isfinite(edge) else float(exact_number("bins", edge))
