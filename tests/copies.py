"""Many releases of the same exact integers at once: so many groups with the noise of one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines import array as engine
from discreet.engines.base import Exact
from discreet.engines.integers import CellCounts, Integers
from discreet.release.design import Estimate, columns
from discreet.release.intervals.spreads import vector
from discreet.release.plan import Plan
from discreet.release.question import USUAL, Question
from discreet.release.statistics.counts import CountDesign, HistogramDesign, KnownCount
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign


def repeated(exact: Exact[list[Any]], times: int) -> Exact[list[Any]]:
    """The groups of every measure, so many times one after the other."""
    return exact.map(lambda measures: [_repeated(measure, times) for measure in measures])


def _repeated(measure: Any, times: int) -> Any:
    if isinstance(measure, Integers):
        return Integers(np.tile(measure.array, times))
    if not isinstance(measure, CellCounts) and not isinstance(measure[0], np.ndarray):
        return list(measure) * times
    groups = CellCounts.of(measure)
    lengths = np.tile(np.diff(groups.starts), times)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return CellCounts(
        groups.width, starts, np.tile(groups.cells, times), np.tile(groups.counts, times)
    )


def with_copies(terms: UnitLimits, times: int) -> UnitLimits:
    """The terms of an answer with so many times its groups, one unit of which is still in a single
    copy of them.
    """
    copies = replace(terms, cells=terms.cells * times)
    vars(copies).update(
        {name: getattr(terms, name) for name in ("row_changes", "touched", "same_group")}
    )
    return copies


def releases_of(
    plan: Plan, rounds: int, exact: Exact[list[Any]] | None = None
) -> dict[str, np.ndarray]:
    """The numbers of so many releases of a plan by name, with the ends of their intervals, groups
    after groups.
    """
    found: dict[str, Any] = {}
    exact = plan.fetched() if exact is None else exact
    for share, part in zip(plan.shares, exact.split(plan.sizes), strict=True):
        terms, design = share.terms, share.design
        one_group = isinstance(design, MomentDesign) and terms.public and not design.alone
        if one_group or isinstance(design, KnownCount):
            draws = [columns(design, part, terms, share.epsilon, plan.level) for _ in range(rounds)]
            found |= {
                name: np.concatenate([draw[name] for draw in draws], axis=1) for name in draws[0]
            }
        else:
            copies = repeated(part, rounds), with_copies(terms, rounds)
            found |= columns(design, *copies, share.epsilon, plan.level)
    return {name: np.array(column, float) for name, column in found.items()}


@contextmanager
def released(runs: int) -> Iterator[None]:
    """Releases of an array with the numbers of so many draws, each a row."""
    with (
        mock.patch.object(
            Question, "estimates", lambda ask, *given, **more: many(ask, runs, *given, **more)
        ),
        mock.patch.object(Question, "released", all_numbers),
    ):
        yield


def all_numbers(ask: Question, estimate: Estimate, **given: Any) -> Any:
    return ask.release(np.asarray(estimate.values), partial(vector, estimate.ends), **given)


def many(
    ask: Question, runs: int, design: Any, confidence: Fraction = USUAL
) -> dict[str, Estimate]:
    exact, terms = engine.fetch(ask.data, design.measures()), ask.terms
    match design:
        case HistogramDesign() if not design.halves(terms):
            copies = exact.map(lambda measures: [np.tile(measures[0], runs)])
            counts = design.estimate(copies, terms, ask.epsilon, confidence)[
                "histogram"
            ].values.reshape(runs, -1)
            return {"histogram": Estimate(counts, None)}  # a histogram has intervals of its own
        case CountDesign() | MomentDesign(alone=True) | QuantileDesign() | ExtremeDesign():
            grouped = True
        case MomentDesign():
            grouped = not terms.public
        case _:
            grouped = False
    if grouped:
        return design.estimate(
            repeated(exact, runs), with_copies(terms, runs), ask.epsilon, confidence
        )
    draws = [design.estimate(exact, terms, ask.epsilon, confidence) for _ in range(runs)]
    return {name: stacked([draw[name] for draw in draws]) for name in draws[0]}


def stacked(draws: list[Estimate]) -> Estimate:
    alone = len(draws[0].values) == 1

    def together(rows: list[Any]) -> np.ndarray:
        return np.array([row[0] for row in rows] if alone else rows)

    def ends(confidence: Fraction) -> tuple[np.ndarray, np.ndarray]:
        lows, highs = zip(*(draw.ends(confidence) for draw in draws), strict=True)
        return together(lows), together(highs)

    return Estimate(together([draw.values for draw in draws]), ends)
