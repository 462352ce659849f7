"""The share of ε of each family and each other design of a question.

With shares p of ε that add up to 1, the sum over all numbers of weight · variance/(variance alone
at ε) is minimised over multiples of 1/64 (finer if there are more than sixteen shares): families
and designs exchange steps as long as the sum decreases, up to a limit of exchanges. The result
depends only on the question, and differences in rounding between two machines do not change it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from discreet.ask.statistics import moment
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.release.statistics.families import Family, JointDesign, cells_of
from discreet.release.statistics.partition import Partition, centred, centred_squares
from discreet.release.statistics.spread import Floats

# the number of steps of ε, and of further steps for each further sixteen shares
_STEPS, _PARTS = 64, 16

_STRIDES = (16, 4, 1)
DESCENTS = 2  # descents are made from so many of the starts, the best
# exchanges tried from each start, times the shares; five of a cube are usual
_EFFORT, _EFFORT_OF_CUBE = 20_000, 16
_BETTER = 1 - 1e-6  # a step must reduce the sum by this share

_MEANS, _VARIANCE = (0.2, 0.5, 0.8), 0.05
"""Where errors of means and variances are weighted: shares of the range and of its square."""

Attributes: TypeAlias = tuple[int, ...]
Units: TypeAlias = tuple[int, ...]
"""The shares of ε in steps: of families, then of other designs."""


@lru_cache(maxsize=512)
def parted(
    design: JointDesign | None,
    terms: UnitLimits,
    wishes: tuple[float, ...],
    others: tuple[float, ...],
) -> tuple[tuple[Family, ...], Fraction, tuple[Fraction, ...]]:
    """The families of the design, its share of ε, and the shares of other designs.

    `wishes` are the weights of the numbers of the design, in the order of its names. Another design
    has weight w if its error at a share p of ε weighs w/p².
    """
    slots = candidates(design, terms) if design is not None else ()
    best = _best(design, terms, wishes, others, slots)
    rest = tuple(Fraction(units, sum(best)) for units in best[len(slots) :])
    return _families(slots, best), 1 - sum(rest, Fraction()), rest


def candidates(design: JointDesign, terms: UnitLimits) -> tuple[Attributes, ...]:
    """What may be measured: rows, each attribute, products of halves of neighbouring columns."""
    rows: list[Attributes] = [()] if any(count.of is None for _, count in design.counts) else []
    halves = [index for index, column in enumerate(design.columns) if not column.squares]
    products = [] if terms.same_group else list(pairwise(halves))
    return (*rows, *((index,) for index in range(len(design.shape))), *products)


def _families(slots: tuple[Attributes, ...], units: Units) -> tuple[Family, ...]:
    """The families that have a share."""
    joint = units[: len(slots)]
    return tuple(
        (slot, Fraction(part, sum(joint))) for slot, part in zip(slots, joint, strict=True) if part
    )


def _best(
    design: JointDesign | None,
    terms: UnitLimits,
    wishes: tuple[float, ...],
    others: tuple[float, ...],
    slots: tuple[Attributes, ...],
) -> Units:
    if len(slots) + len(others) == 1:
        return (_STEPS,)
    of_joint = None if design is None else _joint_error(design, terms, wishes, slots)

    def error(units: Units) -> float:
        joint, rest, steps = units[: len(slots)], units[len(slots) :], sum(units)
        if not all(rest):
            return math.inf
        of_rest = sum(weight / part**2 for weight, part in zip(others, rest, strict=True))
        return (of_rest + (0.0 if of_joint is None else of_joint(joint))) * steps**2

    starts = sorted((_start(slots, len(others), chosen) for chosen in _choices(slots)), key=error)
    descents = [_descended(start, error) for start in starts[:DESCENTS]]
    return min(descents, key=lambda units: (float(f"{error(units):.6g}"), units))


def _joint_error(
    design: JointDesign, terms: UnitLimits, wishes: tuple[float, ...], slots: tuple[Attributes, ...]
) -> Callable[[Units], float]:
    """The weighted sum of the variances of a joint design, as a function of its families' shares.

    Every number is a share of the rows and a difference between the cells of one attribute:
    `families.fitted` says how near both are known.
    """
    of_rows, of_cells = _parts_of_errors(design, terms, wishes)
    if terms.same_group:  # Σu of a column has its own share, and the number of rows what is left
        places = {index: place for place, slot in enumerate(slots) for index in slot}
        comes = [0.0] * len(slots)
        for index, place in places.items():
            comes[place] = float(terms.comes(design.columns[index].squares))
        owns = [(share, places[index]) for index, share in enumerate(of_cells)]

        def centred_error(units: Units) -> float:
            if not all(units[place] for _, place in owns) or not any(units):
                return math.inf
            left = sum(part * (1 - came) for part, came in zip(units, comes, strict=True))
            return sum(share / units[place] ** 2 for share, place in owns) + of_rows / left**2

        return centred_error
    cells = [cells_of(design.shape, slot) for slot in slots]
    measured = [
        (share, [place for place, slot in enumerate(slots) if index in slot])
        for index, share in enumerate(of_cells)
    ]

    def error(units: Units) -> float:
        known = [part * part / several for part, several in zip(units, cells, strict=True)]
        whole, infinite = sum(known), math.inf
        if not whole:
            return infinite
        return of_rows / whole + sum(
            share / told if (told := sum(known[place] for place in places)) else infinite
            for share, places in measured
        )

    return error


def _parts_of_errors(
    design: JointDesign, terms: UnitLimits, wishes: tuple[float, ...]
) -> tuple[float, list[float]]:
    """The weight of the variance of the rows' number, and of those of each attribute's cells."""
    whole, cells = 0.0, [0.0] * len(design.shape)
    attributes = [design.attribute_of(count) for _, count in design.counts]
    attributes += [index for index, column in enumerate(design.columns) for _ in column.wanted]
    for wish, index, weights in zip(wishes, attributes, _errors(design, terms), strict=True):
        if index is None:
            whole += wish
        elif terms.same_group:
            column = (centred_squares if design.columns[index].squares else centred)(1)
            mixed = column.mixed(weights)
            cells[index] += wish * float(
                np.square(mixed[:, :-1] * column.scales[:-1]).sum(axis=1).mean()
            )
            whole += wish * float(np.square(mixed[:, -1]).mean())
        else:
            several = sum(design.shape[index])
            means = weights.sum(axis=1) / several
            spread = np.square(weights).sum(axis=1) - several * means**2
            whole += wish * float(np.square(means).mean())
            cells[index] += wish * float(spread.mean()) / several
    return whole, cells


def effort(shares: int) -> int:
    """How many exchanges of so many shares are tried from each start, times their number."""
    return min(_EFFORT, _EFFORT_OF_CUBE * shares**3)


def _choices(slots: tuple[Attributes, ...]) -> Iterator[list[int]]:
    """Starts: attributes alone, as many products of two as possible, and these with the rows."""
    singles = [index for index, slot in enumerate(slots) if len(slot) == 1]
    rows = [index for index, slot in enumerate(slots) if not slot]
    yield singles or rows
    if rows and singles:
        yield [*rows, *singles]
    covered: set[int] = set()
    products = []
    for index, slot in enumerate(slots):
        if len(slot) == 2 and not covered & set(slot):
            products.append(index)
            covered |= set(slot)
    if products:
        chosen = [*products, *(index for index in singles if not covered & set(slots[index]))]
        yield from [chosen, [*rows, *chosen]] if rows else [chosen]


def _start(slots: tuple[Attributes, ...], others: int, chosen: list[int]) -> Units:
    """Equal shares for some families and for the other designs."""
    active = [*chosen, *range(len(slots), len(slots) + others)]
    steps = _STEPS * -(-len(active) // _PARTS)
    ends = [steps * position // len(active) for position in range(len(active) + 1)]
    sizes = dict(zip(active, (after - before for before, after in pairwise(ends)), strict=True))
    return tuple(sizes.get(index, 0) for index in range(len(slots) + others))


def _descended(units: Units, error: Callable[[Units], float]) -> Units:
    """Shares that no exchange of two improves, or the best that was found within the limit."""
    least, tries = error(units), effort(len(units)) // len(units)
    for stride in _STRIDES:
        moved = True
        while moved:
            moved = False
            for giver in range(len(units)):
                for taker in range(len(units)):
                    if giver == taker or units[giver] < stride:
                        continue
                    if not tries:
                        return units
                    tries -= 1
                    tried = list(units)
                    tried[giver] -= stride
                    tried[taker] += stride
                    if (now := error(tuple(tried))) < least * _BETTER:
                        units, least, moved = tuple(tried), now, True
    return units


def _errors(design: JointDesign, terms: UnitLimits) -> list[Floats]:
    """A number's errors as combinations of its attribute's cells, with mean square 1 if alone."""
    weights: list[Floats] = [np.array([design.counted(count)]) for _, count in design.counts]
    for column in design.columns:
        lower = float(column.grid.lower)
        upper = float(column.grid.upper)
        lone = column.partition(terms)
        for _, statistic in column.wanted:
            base = moment(statistic).base
            if base == "sum":
                weights.append(
                    (lower + np.array(lone.values) * (upper - lower))[None]
                    / max(abs(lower), abs(upper))
                )
                continue
            u = np.array(_MEANS)[:, None]
            if base == "mean":
                errors = np.array(lone.values) - u
            else:
                errors = np.hstack([u * u, u * u - u, (1 - u) ** 2]) - _VARIANCE
            weights.append(errors / np.sqrt(_variance(errors, lone)))
    return weights


def _variance(weights: Floats, partition: Partition) -> float:
    """The mean of half the variances of combinations of the sums, at ε = 1."""
    return float(
        np.square(partition.mixed(weights) * np.array(partition.scales)).sum(axis=-1).mean()
    )
