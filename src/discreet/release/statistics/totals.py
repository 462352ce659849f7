"""Totals of a released table: counts and sums over some of its groups, which agree with it exactly.

    answer.totals("state")     the counties of each state together, one row per state
    answer.totals()            everybody

A total is the sum of released cells, so the table and all of its totals add up; it costs nothing.
The error of a total of k cells is a sum S of k·m independent Laplace draws of scales bᵢ (m of them
in each cell), with

    P(|S| ≤ x) = (2/π) ∫₀^∞ sin(θx)/θ · Π (1 + bᵢ²θ²)^(−k) dθ

and its interval is the x at which that equals the confidence (`spread`): about √k times as wide as
a cell's, not k times. It leaves out the rounding of values, as its record says. Means, variances
and quantiles of a whole are not sums over its parts: ask for them without groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.ask.query import Moment, Named, Query
from discreet.draw.addition import fits_int64
from discreet.errors import InvalidParameter
from discreet.outside import read_fraction
from discreet.records import Record, array_of
from discreet.release.split import subject
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.spread import combined_radius

if TYPE_CHECKING:
    from discreet.release.answer import Answer


def totals(answer: Answer, by: tuple[str, ...]) -> Answer:
    """The answer's counts and sums, added up over all group columns except these."""
    record, query = answer.record, answer.query
    if "totals_over" in record:
        raise InvalidParameter("these are already totals: take other totals from the answer itself")
    titles = {output.name: name for name, output in query.outputs if isinstance(output, Named)}
    keys = answer.recorded.keys
    kept_keys = {name: column for name, column in keys.items() if titles.get(name, name) in by}
    for name in by:
        if name not in {titles.get(group, group) for group in kept_keys}:
            groups = ", ".join(titles.get(group, group) for group in keys) or "none"
            raise InvalidParameter(f"totals must be by group columns ({groups}), got {name!r}")
    statistics = [
        item for item in record["statistics"] if item.get("noise") and item["name"] in titles
    ]
    if not statistics:
        raise InvalidParameter(
            "the answer must have counts or sums: only these add up; ask for others without groups"
        )
    many = math.prod(map(len, kept_keys.values()))
    merged = answer.recorded.cells // many
    together = many * len(statistics) if record["simultaneous"] else 1
    level = float(1 - (1 - read_fraction(record["confidence"])) / together)
    numbers: dict[str, Any] = {}
    for place, statistic in enumerate(statistics):
        reach = sum_radius([float(Fraction(scale)) for scale in statistic["noise"]], merged, level)
        reach += float(read_fraction(statistic["step"]))  # totals lie on the grid of the cells
        added = _added(answer.recorded.numbers[statistic["name"]][0], keys, kept_keys)
        if all(isinstance(value, int) for value in added):
            reach = math.ceil(reach)
        ends = added, [value - reach for value in added], [value + reach for value in added]
        numbers[statistic["name"]] = tuple(map(array_of, ends))
        if half := _half_step(query, statistic["name"]):
            statistics[place] = {**statistic, "rounding": str(half)}
    over = [titles.get(name, name) for name in keys if name not in kept_keys]
    outputs = [(name, output) for name, output in query.outputs if isinstance(output, Named)]
    return replace(
        answer,
        content=Record(
            {**record, "statistics": statistics, "totals_over": over}, kept_keys, numbers
        ).pack(),
        query=replace(
            query,
            groups=tuple(group for group in query.groups if group.name in kept_keys),
            outputs=tuple(
                (name, output) for name, output in outputs if output.name in {*kept_keys, *numbers}
            ),
            having=None,
            order=(),
            limit=None,
            sql=None,  # nobody typed this question
        ),
    )


def _half_step(query: Query, name: str) -> Fraction:
    """How far rounding can move each value of a sum: the totals have noise alone."""
    moments = {
        one: aggregate for one, aggregate in query.aggregates if isinstance(aggregate, Moment)
    }
    if name not in moments:
        return Fraction(0)
    of = subject(moments[name])
    wanted = tuple(
        (one, moment.statistic) for one, moment in moments.items() if subject(moment) == of
    )
    grid = MomentDesign(wanted=wanted, of=of).grid
    return Fraction(0) if grid.exact else grid.step / 2


def sum_radius(scales: list[float], times: int, confidence: float) -> float:
    """The x with P(|S| ≤ x) = confidence, for the sum S of `times` independent Laplace draws of
    each of these scales.

    >>> round(sum_radius([1.0], 1, 0.95), 4), round(sum_radius([1.0], 10_000, 0.95) / 141.42, 3)
    (2.9957, 1.96)
    """
    return float(
        combined_radius(np.array([scales]), confidence, np.full(len(scales), float(times)))[0]
    )


def _added(values: Any, keys: Mapping[str, Any], kept_keys: Mapping[str, Any]) -> list[Any]:
    """The values of the cells, added up over the other columns; the last column varies fastest."""
    small = values.dtype == np.float64 or fits_int64(values, 2**62 // max(values.size, 1))
    exact = values if small else values.astype(object)
    places = sorted(range(len(keys)), key=lambda index: list(keys)[index] in kept_keys)
    cells = exact.reshape([len(column) for column in keys.values()]).transpose(places)
    many = math.prod(map(len, kept_keys.values()))
    # sequentially, as a reader adds
    added: list[Any] = np.cumsum(cells.reshape(-1, many), axis=0)[-1].tolist()
    return added
