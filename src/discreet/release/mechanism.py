"""Where exact answers become releases: the only code that opens `Exact`, and it adds the noise.

    noisy_sums, noisy_columns   integer totals plus discrete Laplace noise, of one group or of many
    noisy_counts, noisy_tree    counts of bins, and of the nodes of a tree
    choose_cells                a cell near a rank in every group, by permute-and-flip
    textbook                    a rational answer by Algorithm 1
    kept_keys                   keys by the coins of a discovery

Every draw goes by way of the tape (`release.tape`), so that what was recorded can be shown again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate.grid import Grid, grid_of, public_step
from discreet.draw.addition import noisy, noisy_each
from discreet.draw.choice import Runs, choose, common_unit
from discreet.draw.coin import Chance, flips
from discreet.draw.noted import in_order
from discreet.engines.base import Exact
from discreet.engines.integers import CellCounts, Integers
from discreet.release.statistics.points import Points, split_runs
from discreet.release.statistics.tree import Tree
from discreet.release.tape import drawn, on_tape
from discreet.threads import on_all_cores

_CELLS = 2**15
"""Occupied cells of all groups that are chosen among at once: some arrays of 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySum:
    """A noisy integer total: `value` = step·(round(total/step) + DLap(scale)), in grid units."""

    value: int
    step: int
    scale: Fraction
    """The scale of the noise, in steps."""

    @property
    def spread(self) -> Fraction:
        """The scale of the noise, in grid units."""
        return self.scale * self.step


def noisy_sums(totals: Exact[Any], scales: list[Fraction], epsilon: Fraction) -> list[NoisySum]:
    """The totals Tᵢ with exact noise of scales bᵢ, where no unit moves Σ|Tᵢ|/bᵢ by more than ε."""
    columns = noisy_columns(
        totals.map(lambda sums: [[total] for total in sums]), scales, epsilon, changes=1
    )
    return [column[0] for column in columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyColumn:
    """The same total of many groups after noise, all with one step and one scale."""

    values: Sequence[int]
    """A list, or `Integers` of many groups."""
    step: int
    scale: Fraction

    def __getitem__(self, cell: int) -> NoisySum:
        return NoisySum(value=self.values[cell], step=self.step, scale=self.scale)


def noisy_columns(
    exact: Exact[Any],
    scales: list[Fraction],
    epsilon: Fraction,
    changes: int,
    totals: Callable[[Any], Sequence[Sequence[int]]] | None = None,
) -> list[NoisyColumn]:
    """Many groups' totals Tᵢ with exact noise of scales bᵢ; no unit moves Σ|Tᵢ|/bᵢ by more than ε.

    The exact integers are the totals, or `totals` makes them of these.

    Large totals are first rounded to a public step cᵢ of about 2⁻²⁰·bᵢ·ε, which moves each of the
    `changes` groups that one unit can touch by up to one step more. The scale in steps becomes
    bᵢ/(cᵢ·(1−θ)) with θ = changes·Σ cᵢ/(bᵢ·ε), since then Σ(|Tᵢ|/cᵢ + 1)·cᵢ·(1−θ)/bᵢ ≤ (1−θ)·ε +
    (1−θ)·θ·ε ≤ ε.
    """
    steps = [public_step(scale, epsilon, changes) for scale in scales]
    pairs = list(zip(steps, scales, strict=True))
    rounded = sum(
        (changes * step / (scale * epsilon) for step, scale in pairs if step > 1), Fraction()
    )
    widened = [
        scale if not rounded else _rounded_up(scale / (1 - rounded) / step) for step, scale in pairs
    ]

    def draw() -> list[Sequence[int]]:
        columns = [_plain(column) for column in exact.reveal(totals)]
        return [
            Integers(sums) if isinstance(sums, np.ndarray) else sums
            for sums in noisy_each(columns, widened, steps)
        ]

    return [
        NoisyColumn(values=values, step=step, scale=scale)
        for values, step, scale in zip(
            drawn(draw, "sums", *steps, *widened), steps, widened, strict=True
        )
    ]


def noisy_counts(counts: Exact[NDArray[np.int64]], scale: Fraction) -> NDArray[np.int64]:
    """Every count, including the empty ones, with exact noise of this scale."""

    def draw() -> Any:
        noise = noisy(counts.reveal(), scale)
        return noise.tolist() if on_tape() else noise

    return np.asarray(drawn(draw, "counts", scale), np.int64)


def noisy_tree(counts: Exact[NDArray[np.int64]], tree: Tree) -> tuple[NDArray[np.int64], ...]:
    """The sums of the nodes of a tree over the counts, each with exact noise."""
    levels = drawn(lambda: [level.tolist() for level in tree.noisy(counts.reveal())], "tree", tree)
    return tuple(np.array(level, np.int64) for level in levels)


def choose_cells(
    counts: Exact[Sequence[NDArray[np.int64]]],
    *,
    share: Fraction,
    offset: Fraction,
    over: Fraction,
    under: Fraction,
    beyond: bool = False,
    points: Sequence[Points | None] | None = None,
) -> list[int]:
    """For every group the index of a cell near rank r = share·N + offset, by permute-and-flip.

    With c₍ records before a cell and c₎ up to its end, a cell that begins after rank r costs
    over·(c₍ − r), one that ends before it under·(r − c₎), and one that holds it nothing. With
    `beyond` there is an empty cell before all others (it has the index 0), which holds all ranks
    below 0, and one after all others, which holds all ranks above N. With `points` of a group every
    cell that is not one of them costs their handicap more, whatever the data.
    """
    unit, above, below = common_unit(over, under)
    shared = math.lcm(share.denominator, offset.denominator)
    times, shift = int(share * shared), int(offset * shared)

    def draw() -> list[int]:
        groups = CellCounts.of(counts.reveal())

        def chosen(part: slice) -> list[int]:
            runs, firsts = _cost_runs(groups[part], times, shift, shared, above, below, beyond)
            if points and any(points[part]):
                runs = split_runs(runs, firsts, points[part], unit / shared)
            cells: list[int] = choose(_occupied(runs), unit / shared).tolist()
            return cells

        return list(chain.from_iterable(in_order(on_all_cores)(chosen, _parts(groups.starts))))

    indices: list[int] = drawn(draw, "choice", share, offset, over, under, beyond, points)
    return indices


def _parts(starts: NDArray[np.int64]) -> Iterator[slice]:
    """Groups that follow each other, with at most 2¹⁵ occupied cells together, or one group."""
    first, groups = 0, len(starts) - 1
    while first < groups:
        last = int(np.searchsorted(starts, starts[first] + _CELLS, "right")) - 1
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


def _cost_runs(
    groups: CellCounts, times: int, shift: int, shared: int, above: int, below: int, beyond: bool
) -> tuple[Runs, NDArray[np.int64]]:
    """The costs of all cells, in runs: of every occupied cell, the empty cells between it and the
    one before, then it.

    All cells of a run follow each other; the second array has the first of them. Runs may have no
    cell. A group ends with a cell after all others, and with `beyond` it begins with one before
    them; these exist with `beyond` only.
    """
    occupied = np.diff(groups.starts)
    lengths = occupied + 1 + beyond
    lasts = np.cumsum(lengths) - 1
    firsts = lasts - lengths + 1
    places = np.arange(groups.cells.size)
    places += np.repeat(firsts + beyond - groups.starts[:-1], occupied)
    cells, counts = np.empty(lengths.sum(), np.int64), np.zeros(lengths.sum(), np.int64)
    cells[firsts], cells[lasts] = -1, groups.width
    cells[places], counts[places] = groups.cells, groups.counts
    before = np.cumsum(counts) - counts
    before -= np.repeat(before[firsts], lengths)
    # how far each cell begins after the rank, in units of 1/shared records
    begun = before * shared
    begun -= np.repeat(times * before[lasts] + shift, lengths)
    starts = np.empty((cells.size, 2), np.int64)
    starts[:, 1] = cells
    starts[1:, 0] = cells[:-1] + 1
    starts[firsts, 0] = -1 if beyond else 0
    sizes = np.ones_like(starts)
    np.subtract(cells, starts[:, 0], sizes[:, 0])
    sizes[lasts, 1] = beyond
    costs = np.empty_like(starts)
    overs = above * begun
    np.maximum(overs, -below * begun, out=costs[:, 0])
    begun += shared * counts
    unders = -below * begun
    if beyond:  # a rank below 0 lies before everybody, one above N after everybody
        overs[firsts] = unders[lasts] = 0
    np.maximum(np.maximum(overs, unders, out=overs), 0, out=costs[:, 1])
    cell_numbers = starts.ravel() + beyond
    runs = Runs(
        exponents=costs.ravel(),
        sizes=sizes.ravel(),
        rows=2 * firsts,
        cell=lambda runs, numbers: cell_numbers[runs] + numbers,
    )
    return runs, cell_numbers


def _occupied(runs: Runs) -> Runs:
    """The runs that have cells."""
    filled = runs.sizes > 0
    if filled.all():
        return runs
    kept = np.flatnonzero(filled)
    return Runs(
        exponents=runs.exponents[kept],
        sizes=runs.sizes[kept],
        rows=np.searchsorted(kept, runs.rows),
        cell=lambda chosen, numbers: runs.cell(kept[chosen], numbers),
    )


def textbook(
    answer: Exact[Callable[[Fraction], int]], sensitivity: Fraction, epsilon: Fraction
) -> tuple[Fraction, Grid]:
    """An answer by Algorithm 1, on a public grid that pays for its rounding, with its floor."""
    grid = grid_of(False, sensitivity, epsilon, 1)
    return (
        drawn(lambda: noisy(answer.reveal()(grid.step), grid.scale), "answer", grid) * grid.step,
        grid,
    )


def _rounded_up(scale: Fraction) -> Fraction:
    """A scale with a short denominator."""
    # rounds up: more noise
    return Fraction(-(-scale.numerator * 2**20 // scale.denominator), 2**20)


def public_count(count: Exact[int]) -> int:
    """A number that the relation makes public: of all units under change-one, and no other."""
    return int(drawn(count.reveal, "public"))


def _plain(totals: Sequence[int]) -> Any:
    """The totals of all groups: an array if they are many, else a list; for a tape a list."""
    return totals.array if isinstance(totals, Integers) and not on_tape() else list(totals)


def kept_keys(
    units: Exact[dict[str | int, int]], chance: Callable[[int], Chance]
) -> list[str | int]:
    """The keys shown, sorted: with n units, by an exact coin of probability `chance(n)`."""

    def draw() -> list[Any]:
        alike: dict[int, list[Any]] = {}
        for key, count in units.reveal().items():
            alike.setdefault(count, []).append(key)
        shown: list[Any] = []
        for count, keys in alike.items():
            heads = flips(chance(count), len(keys)).tolist()
            shown += [key for key, head in zip(keys, heads, strict=True) if head]
        return sorted(shown)

    keys: list[str | int] = drawn(draw, "keys")
    return keys
