"""Which sets of columns a report measures, and with which share of ε.

A set is a level of each axis: its cells are those of the table with these columns. Sets whose
shares of ε add up to 1 cost ε together. With p_A the share of a set, n its cells, and B a part of
tables (`axes`),

    V_B = Σ over sets A ≥ B of p_A²·Π n(B)/n(A)             the information of all sets about B
    variance of a table C = 2Δ²/ε² · Σ over B ≤ C of spread(C, B)/V_B

The shares minimise the weighted sum of the variances of all tables, or the largest variance. A set
that contains several tables can be better than all of them, so it is a candidate, too. The sum is
not convex, so several descents are made from different starts, by θ_A ← θ_A·√(−∂/∂θ_A); at the
minimum all these factors are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from discreet.release.reports.axes import Axis, Floats, Levels

Measured: TypeAlias = tuple[tuple[Levels, Fraction], ...]
"""Sets with their shares of ε, which add up to at most 1."""

MOST_CELLS = 10**7
"""Most cells of all measured sets together."""

_ALL = 1024  # if there are at most so many sets, each is a candidate
_UNION = 30_000  # if there are more, unions of two tables with at most so many cells are candidates
_MOST_UNIONS = 10**6  # and only where tables are few: parts times pairs of tables
_STARTS, _WORK = (24, 400), 3 * 10**6  # descents at first: fewer if each takes more work

_BLOCK = 250_000
"""Products of small matrices use one thread: several threads would wait for each other on a busy
machine.
"""

_ROUNDS = ((8, 60), (1, 150), (1, 400))  # how many descents continue after so many steps
_LEAST = 1e-3  # a smaller share is not worth a set
_GRAIN = 4096  # shares are multiples of 1/4096
_SHARPNESS = 8  # the norm that approximates the largest variance
_HALVINGS = 4  # of an exponent, from 1 to 1/(2·_SHARPNESS)


@dataclass(frozen=True)
class Target:
    """The properties of a column of a table that determine its variance."""

    levels: Levels
    spreads: tuple[tuple[float, ...], ...]
    """For each axis, the sum of squares of its weights on each part."""
    weight: float = 1.0


@lru_cache(maxsize=64)
def allocated(
    axes: tuple[Axis, ...],
    targets: tuple[Target, ...],
    halves: frozenset[int],
    *,
    known: bool,
    largest: bool = False,
) -> Measured:
    """The sets to measure, with their shares of ε; `halves` are axes over which a row spreads.

    With `known`, the number of rows is public. With `largest`, the shares minimise the largest
    variance.
    """
    parts, sets = listed(axes, targets, halves, known=known)
    information = information_of(axes, parts, sets)
    spreads = _spreads(targets, parts)
    weights = np.array([[target.weight] for target in targets])
    spreads *= weights / weights.max()
    used = np.flatnonzero(information.any(axis=0))
    shares = _starts(used.size, _starts_of(information.size))
    for many, steps in _ROUNDS:
        shares = _descended(spreads, information[:, used], shares, steps, largest)[:many]
        selected = np.asarray((shares > (_LEAST if many == 1 else 1e-9)).any(axis=0))
        # by the selected sets: the most informative stays
        untold = ~(information[:, used[selected]] > 0).any(axis=1)
        selected[(information[untold][:, used] * shares[0] ** 2).argmax(axis=1)] = True
        used = used[selected]
        shares = shares[:, selected] / shares[:, selected].sum(axis=1, keepdims=True)
    return tuple((sets[index], part) for index, part in zip(used, _rounded(shares[0]), strict=True))


def distinct(targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets that matter for the largest variance: of those that differ only in weight, the
    heaviest.
    """
    heaviest: dict[object, Target] = {}
    for target in targets:
        key = target.levels, target.spreads
        heaviest[key] = max(target, heaviest.get(key, target), key=lambda one: one.weight)
    return tuple(heaviest.values())


@lru_cache(maxsize=64)
def listed(
    axes: tuple[Axis, ...], targets: tuple[Target, ...], halves: frozenset[int], *, known: bool
) -> tuple[list[Levels], list[Levels]]:
    """The parts of all tables, and the sets that may be measured."""
    parts = sorted(
        {
            part
            for target in targets
            for part in product(*(range(level + 1) for level in target.levels))
        }
    )
    if known and len(parts) > 1:
        parts = [part for part in parts if any(part)]
    return parts, _candidates(axes, targets, halves)


def descents(size: int) -> list[tuple[int, int, int]]:
    """The descents of each round at most, their blocks, and their steps, for so many parts times
    sets.
    """
    many = [_starts_of(size), *(before for before, _ in _ROUNDS[:-1])]
    in_block = max(1, _BLOCK // max(1, size))
    return [
        (count, -(-count // in_block), steps)
        for count, (_, steps) in zip(many, _ROUNDS, strict=True)
    ]


def _starts_of(size: int) -> int:
    return int(np.clip(_WORK // max(1, size), *_STARTS))


def _rounded(shares: Floats) -> list[Fraction]:
    """The shares as positive multiples of 1/4096 that add up to exactly 1."""
    counts = np.maximum(np.floor(shares * _GRAIN).astype(int), 1)
    missing = _GRAIN - int(counts.sum())
    counts[np.argsort(counts - shares * _GRAIN)[: max(missing, 0)]] += 1
    counts[counts.argmax()] += min(missing, 0)
    return [Fraction(int(count), _GRAIN) for count in counts]


def variance(axes: tuple[Axis, ...], target: Target, measured: Measured, *, known: bool) -> float:
    """The variance of a column of a table at Δ = ε = 1."""
    parts = [
        part
        for part in product(*(range(level + 1) for level in target.levels))
        if any(part) or not known
    ]
    if not parts:
        return 0.0
    shares = np.array([float(part) for _, part in measured])
    information = information_of(axes, parts, [levels for levels, _ in measured]) @ shares**2
    return 2 * float(_spreads([target], parts)[0] @ (1 / information))


def cells_of(axes: tuple[Axis, ...], levels: Levels) -> int:
    """The number of cells of a set."""
    return math.prod(axis.sizes[level] for axis, level in zip(axes, levels, strict=True))


def below(part: Levels, levels: Levels) -> bool:
    """Whether a set has information about a part."""
    return all(low <= high for low, high in zip(part, levels, strict=True))


def information_of(
    axes: tuple[Axis, ...], parts: Sequence[Levels], sets: Sequence[Levels]
) -> Floats:
    """For each part, the information of each set about it, at a share of 1."""
    inner, outer = np.array(parts, np.int64), np.array(sets, np.int64)
    information = np.ones((len(parts), len(sets)))
    for index, axis in enumerate(axes):
        sizes = np.array(axis.sizes, np.float64)
        low = inner[:, index, None]
        high = outer[None, :, index]
        information *= np.where(low <= high, sizes[low] / sizes[high], 0.0)
    return information


def _spreads(targets: Sequence[Target], parts: Sequence[Levels]) -> Floats:
    """The spread of each target over each part: 0 for parts that it does not have."""
    levels, spreads = np.array(parts, np.int64), np.ones((len(targets), len(parts)))
    for index in range(levels.shape[1]):
        on_axis = np.array([target.spreads[index] for target in targets])
        spreads *= on_axis[:, levels[:, index]]
    return spreads


def _candidates(
    axes: tuple[Axis, ...], targets: tuple[Target, ...], halves: frozenset[int]
) -> list[Levels]:
    """The sets that may be measured."""
    tables = list(dict.fromkeys(target.levels for target in targets))
    tops = [max(levels) for levels in zip(*tables, strict=True)]
    if math.prod(top + 1 for top in tops) <= _ALL:
        candidates = set(product(*(range(top + 1) for top in tops)))
    else:
        candidates = {
            part for table in tables for part in product(*(range(level + 1) for level in table))
        }
        if len(candidates) * math.comb(len(tables), 2) <= _MOST_UNIONS:
            unions = {tuple(map(max, first, second)) for first, second in combinations(tables, 2)}
            candidates |= {union for union in unions if cells_of(axes, union) <= _UNION}
    few = [levels for levels in candidates if sum(levels[index] > 0 for index in halves) <= 2]
    return sorted(
        levels for levels in few if levels in tables or cells_of(axes, levels) <= MOST_CELLS // 4
    )


def _starts(sets: int, many: int) -> Floats:
    """The starts of descents: all sets alike, and many that favour some sets, by the fractions of
    multiples of √2.
    """
    spread = np.modf(np.outer(np.arange(many), np.arange(1, sets + 1) ** 2) * 2**0.5)[0]
    starts = spread ** np.where(np.arange(many) % 2, 4, 16)[:, None] + 1e-4
    starts[0] = 1.0
    starts[1, -1] = 10.0 * sets  # the set that contains all others, if there is one
    return np.asarray(starts / starts.sum(axis=1, keepdims=True))


def _descended(
    spreads: Floats, information: Floats, shares: Floats, steps: int, largest: bool
) -> Floats:
    """The shares at the ends of the descents, the best first."""
    many = max(1, _BLOCK // information.size)
    blocks = [shares[first : first + many] for first in range(0, len(shares), many)]
    shares = np.concatenate(
        [_downhill(spreads, information, block, steps, largest) for block in blocks]
    )
    variances = (1 / (shares**2 @ information.T)) @ spreads.T
    order = np.argsort(variances.max(axis=1) if largest else variances.sum(axis=1))
    return shares[order]


def _downhill(
    spreads: Floats, information: Floats, shares: Floats, steps: int, largest: bool
) -> Floats:
    pull = spreads.sum(axis=0)  # the weight of each part in the slope
    for _ in range(steps):
        precise = shares**2 @ information.T
        if largest:
            variances = (1 / precise) @ spreads.T
            relative = variances / variances.max(axis=1, keepdims=True)
            squares = relative * relative
            # relative**(_SHARPNESS - 1), in less time
            pull = (squares * squares * squares * relative) @ spreads
        slope = (pull / precise**2) @ information * shares
        downhill = slope / slope.max(axis=1, keepdims=True)
        for _ in range(_HALVINGS if largest else 1):
            np.sqrt(downhill, out=downhill)
        shares = np.maximum(shares * downhill, 1e-12)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares
