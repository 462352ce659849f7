"""The work of a free plan, computed from its shape before it is done: plans that would take longer
are refused.

Work is counted in steps. Every operation has a price, which is about its processor time in
microseconds on the machine of docs/performance-tables.md, rounded up; `python -m bench plans`
measures it.

    numbers       each is named, shared, and shown at every ε
    rehearsals    of each design, which draws the noise of an empty group
    totals        each has an exact scale and a slack at every ε
    coefficients  of each total in each number, and its scale in what is written
    radii, nodes  integrals of the law of combinations of draws: rows of combinations times weights,
                  or times nodes
    errors        of means: searches for the worst share
    sets          the weights of each measured set of a report in each combination
    cells         of the axes of a report that a combination looks at
    targets, listed   numbers, parts and sets that an allocation looks at
    descents      of an allocation: starts times steps times parts times sets

A question is planned at one ε, at those of a slider (`CURVE`), and where its error is given, at
those of a search. The tests count these operations while they are done: there are never more than
were computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.ask.kinds import refused
from discreet.ask.statistics import moment
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.grouped import (
    MEAN_POINTS,
    SAMPLE_POINTS,
    VARIANCE_POINTS,
    is_sample,
)
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.partition import Partition
from discreet.release.statistics.ranks import QuantileDesign
from discreet.release.statistics.weights import DESCENTS, effort

if TYPE_CHECKING:
    from discreet.release.split import Share

Steps: TypeAlias = Counter[str]
"""The steps of each kind of operation."""

MOST = 1_500_000
"""Steps of a plan: about a second, since prices are rounded up.

More would let few clients stop a server.
"""

MOST_ASKED = 400
"""Numbers of a question, before their shares of ε are sought."""

MOST_COLUMNS = 1_000
"""Columns of a profile or a discovery: a third of a millisecond each."""

MOST_TEXT = 100_000
"""Characters of all questions of a report: ten microseconds each."""

CURVE = 13
"""Points of a slider."""

NUMBER, NUMBER_AT, TOTAL_AT, COEFFICIENT, QUANTILE_AT, REHEARSAL = 500, 200, 12, 5, 450, 2_000
DECISION, RADIUS, WEIGHT, WEIGHT_OF_ROW, ROW, MEAN_ERROR = 8, 500, 8, 5, 60, 800
NODE, NODE_OF_WEIGHT = 0.1, 0.04  # of each step of Newton's method
_EXCHANGE = 0.6  # of a share, in each exchange that is tried
_FEW = 3  # draws whose radii are a formula
_FINE = 2**20  # grids of more steps round by nothing: their columns have the same errors


def refuse_much(steps: Steps, whole: str, advice: str) -> None:
    """Refuse a plan that takes too many steps; `whole` says what has them."""
    if steps.total() > MOST:
        raise refused(
            f"a plan may take {MOST:,} steps of work, but {whole} needs {steps.total():,} or more:"
            f" {advice}"
        )


def refuse_more(what: str, count: int, most: int, noun: str) -> None:
    """Refuse a list that is too long to be planned."""
    if count > most:
        raise refused(
            f"{what} may have at most {most:,} {noun}, but this has {count:,}: ask in two parts"
        )


def radius(rows: int, weights: int) -> int:
    """The price of the radii of so many rows of weights; few weights need more nodes of their
    integrals.
    """
    return RADIUS + weights * WEIGHT + rows * max(WEIGHT_OF_ROW * weights, ROW)


def integrals(blocks: Sequence[tuple[int, int, int]], weights: int, newton: int) -> Steps:
    """The same in so many steps of Newton's method, where the blocks of integrals are known
    (`spread.work`).
    """
    rows = sum(block[0] for block in blocks)
    nodes = sum(rows * nodes * (NODE + NODE_OF_WEIGHT * large) for rows, nodes, large in blocks)
    return Steps(radii=RADIUS + weights * WEIGHT + rows * ROW, nodes=int(newton * nodes))


def closed_radius(rows: int, weights: int) -> int:
    """The same, where a formula has the radii of up to three weights."""
    return RADIUS + rows * weights


def of_question(shares: Sequence[Share], epsilons: int) -> Steps:
    """The steps of a question at so many ε."""
    numbers = sum(len(share.design.names) for share in shares)
    shared = int(DESCENTS * effort(2 * numbers) * _EXCHANGE) if numbers > 1 else 0
    steps = Steps(
        shares=shared,
        numbers=numbers * (NUMBER + NUMBER_AT * epsilons),
        rehearsals=REHEARSAL * len(shares),
    )
    laws: set[tuple[Any, ...]] = set()
    errors: set[tuple[Any, ...]] = set()
    for share in shares:
        design: Any = share.design
        if isinstance(design, JointDesign):
            totals = len(design.units(share.terms))
            steps["totals"] += TOTAL_AT * totals * epsilons
            steps["coefficients"] += COEFFICIENT * totals * len(design.names)
            if steps.total() > MOST:  # to compute the coefficients would take too long
                return steps
            counts, columns = design.partitions(share.terms)
            laws |= {("count", 1, partition.kinds) for partition in counts}
            columns_of = list(zip(design.columns, columns, strict=True))
        elif isinstance(design, MomentDesign) and not share.terms.public and not design.alone:
            columns_of = [(design, design.partition(share.terms))]
        else:
            columns_of = []
            steps["quantiles"] += (
                QUANTILE_AT * epsilons * isinstance(design, QuantileDesign) * len(design.names)
            )
        for column, partition in columns_of:
            laws.update(_laws(column, partition))
            if any(moment(statistic).base == "mean" for _, statistic in column.wanted):
                width = column.grid.width
                errors.add(
                    (
                        partition.values,
                        partition.kinds,
                        width if width < _FINE else 0,
                        share.epsilon,
                    )
                )
    for _, rows, kinds, *_ in laws:
        price = closed_radius if sum(kind[1] for kind in kinds) <= _FEW else radius
        steps["radii"] += price(rows, len(kinds))
    steps["errors"] = MEAN_ERROR * len(errors) * (epsilons + 1)  # a plan without a size shows two
    return steps


def _laws(column: MomentDesign, partition: Partition) -> Iterator[tuple[Any, ...]]:
    """The radii that a column needs, each with the number of its rows, the kinds of draws, and what
    else it is of.
    """
    small = len(partition.scales) <= _FEW
    means, variances, larger = (
        points[small] for points in (MEAN_POINTS, VARIANCE_POINTS, SAMPLE_POINTS)
    )
    for _, statistic in column.wanted:
        match moment(statistic).base:
            case "mean":  # at the level, and at a lower one for the error
                yield "mean", means, partition.kinds, partition.values, 1
                yield "mean", means, partition.kinds, partition.values, 2
            # at the level, and with half of the doubt for the mean and for the variance
            case "variance":
                yield "variance", variances, partition.kinds, 1
                yield "variance", variances, partition.kinds, 2
                yield "mean", means, partition.kinds, partition.values, 3
                if is_sample(statistic):  # larger variances, at both
                    yield "sample", larger, partition.kinds, 1
                    yield "sample", larger, partition.kinds, 2
            # in steps of the grid, and in the units of the data, with the rounding of values to
            # either side
            case _:
                for number in range(2 if column.grid.exact else 3):
                    yield "sum", 1, partition.kinds, column.of.lower, column.of.upper, number
