"""The share of ε of each family and each other design of a question.

With shares p of ε that add up to 1, the sum over all numbers of weight · variance/(variance alone at ε) is minimised
over multiples of 1/64 (finer if there are more than sixteen shares): families and designs exchange steps as long as the
sum decreases, up to a limit of exchanges. The result depends only on the question, and differences in rounding between
two machines do not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from discreet.ask.statistics import moment
from discreet.calibrate.sensitivity.terms import Terms
from discreet.release.statistics.families import Family, JointDesign
from discreet.release.statistics.partition import Partition
from discreet.release.statistics.spread import Floats

_STEPS, _PARTS = 64, 16  # the number of steps of ε, and of further steps for each further sixteen shares

_STRIDES = (16, 4, 1)
_DESCENTS = 2  # descents are made from so many of the starts, the best
_EFFORT = 20_000  # the number of exchanges tried from each start, times the number of shares
_BETTER = 1 - 1e-6  # a step must reduce the sum by this share

_MEANS, _VARIANCE = (0.2, 0.5, 0.8), 0.05
"""The points at which the errors of means and variances are weighted, as shares of the range and of its square."""

Attributes: TypeAlias = tuple[int, ...]
Units: TypeAlias = tuple[int, ...]
"""The shares of ε in steps: of families, then of other designs."""


@lru_cache(maxsize=512)
def parted(
    design: JointDesign | None, terms: Terms, wishes: tuple[float, ...], others: tuple[float, ...]
) -> tuple[tuple[Family, ...], Fraction, tuple[Fraction, ...]]:
    """The families of the design, its share of ε, and the shares of other designs.

    `wishes` are the weights of the numbers of the design, in the order of its names. Another design has weight w if its
    error at a share p of ε weighs w/p².
    """
    slots = candidates(design, terms) if design is not None else ()
    best = _best(design, terms, wishes, others, slots)
    rest = tuple(Fraction(units, sum(best)) for units in best[len(slots) :])
    return _families(slots, best), 1 - sum(rest, Fraction()), rest


def candidates(design: JointDesign, terms: Terms) -> tuple[Attributes, ...]:
    """The families that may be measured: the rows, each attribute, and products of halves of neighbouring columns."""
    rows: list[Attributes] = [()] if any(count.of is None for _, count in design.counts) else []
    halves = [index for index, column in enumerate(design.columns) if not column.squares]
    products = [] if terms.meets else list(pairwise(halves))
    return (*rows, *((index,) for index in range(len(design.shape))), *products)


def _families(slots: tuple[Attributes, ...], units: Units) -> tuple[Family, ...]:
    """The families that have a share."""
    joint = units[: len(slots)]
    return tuple((slot, Fraction(part, sum(joint))) for slot, part in zip(slots, joint, strict=True) if part)


def _best(
    design: JointDesign | None,
    terms: Terms,
    wishes: tuple[float, ...],
    others: tuple[float, ...],
    slots: tuple[Attributes, ...],
) -> Units:
    if len(slots) + len(others) == 1:
        return (_STEPS,)
    weights = [] if design is None else _errors(design, terms)

    def error(units: Units) -> float:
        joint, rest, steps = units[: len(slots)], units[len(slots) :], sum(units)
        covered = {index for slot, part in zip(slots, joint, strict=True) if part for index in slot}
        if not all(rest) or (design is not None and (not any(joint) or len(covered) < len(design.shape))):
            return float("inf")
        descents = sum(weight * (steps / part) ** 2 for weight, part in zip(others, rest, strict=True))
        if design is not None:
            counts, columns = replace(design, families=_families(slots, units)).partitions(terms)
            wanted = (
                partition for partition, column in zip(columns, design.columns, strict=True) for _ in column.wanted
            )
            variances = (_variance(*pair) for pair in zip(weights, (*counts, *wanted), strict=True))
            descents += float(np.dot(wishes, list(variances))) * (steps / sum(joint)) ** 2
        return descents

    starts = sorted((_start(slots, len(others), chosen) for chosen in _choices(slots)), key=error)
    descents = [_descended(start, error) for start in starts[:_DESCENTS]]
    return min(descents, key=lambda units: (float(f"{error(units):.6g}"), units))


def _choices(slots: tuple[Attributes, ...]) -> Iterator[list[int]]:
    """Families to start from: each attribute alone, as many products of two as possible, and these with the rows."""
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
    """Shares that no exchange between two of them improves, or the best that was found within the limit."""
    least, tries = error(units), _EFFORT // len(units)
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


def _errors(design: JointDesign, terms: Terms) -> list[Floats]:
    """The errors of each number as combinations of the sums of its partition, with mean square 1 if it is alone."""
    weights: list[Floats] = [np.ones((1, 1))] * len(design.counts)
    for column in design.columns:
        lower, upper, lone = float(column.grid.lower), float(column.grid.upper), column.partition(terms)
        for _, statistic in column.wanted:
            base = moment(statistic).base
            if base == "sum":
                weights.append((lower + np.array(lone.values) * (upper - lower))[None] / max(abs(lower), abs(upper)))
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
    return float(np.square(partition.mixed(weights) * np.array(partition.scales)).sum(axis=-1).mean())
