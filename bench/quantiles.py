"""Medians beside OpenDP's: mean absolute errors of the same data, under change-one, where n is
public.

OpenDP's median chooses among listed values. It gets 1,024 even candidates in all rows, and beside
them the number that serves it best in each row, of 256, 1,024 and 4,096, as if that were known
beforehand. Both choose by permute-and-flip, so that they differ in their candidates alone.

The table takes a minute or two. Exact counts and scores of a data set are computed once and the
choice is drawn anew many times, for discreet all at once; candidates that are chosen with a chance
below 10⁻⁶ are left out of the draws, on both sides. A gain has its standard error beside it, over
the data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bench.measure import table
from bench.peers import CANDIDATES, OpenDP
from discreet.engines.base import Exact
from discreet.release.question import question
from discreet.release.statistics import ranks

SETTINGS = ((100, "1"), (1_000, "1"), (1_000, "10"), (10_000, "1"))
NUMBERS = (256, 1_024, 4_096)
DATA_SETS, HALF = 60, Fraction(1, 2)
FARTHEST = 25.0
"""In logarithms of the chance to be chosen, below that of the best."""

COLUMNS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "beta(2, 2)": lambda rng, n: rng.beta(2, 2, n),
    "beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "lognormal, bounds 90 medians wide": lambda rng, n: np.clip(rng.lognormal(-4.5, 1, n), 0, 1),
    "normal, a hundredth of the bounds": lambda rng, n: rng.normal(0.37, 0.01, n).clip(0, 1),
}
"""Values between 0 and 1, which are the bounds."""

Draws = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Near:
    """The points of a choice among the cells from `first` on."""

    points: Any
    cells: int
    first: int

    @property
    def handicap(self) -> Fraction:
        return self.points.handicap  # type: ignore[no-any-return]

    def among(self, size: int) -> np.ndarray:
        return self.points.among(self.cells)[self.first : self.first + size]  # type: ignore[no-any-return]


@contextmanager
def nearby() -> Iterator[None]:
    """Choices among the cells that can be chosen: the records beyond them count in the outermost
    two.
    """
    whole = ranks.find

    def find(
        counts: Any, grid: Any, share: Fraction, rate: Fraction, points: Any = None
    ) -> list[int]:
        groups = counts.reveal()
        exact, after = groups[0], np.cumsum(groups[0])
        gaps = np.maximum(0, np.maximum(after - exact - after[-1] / 2, after[-1] / 2 - after))
        handicap = max(
            (float(one.handicap) for one in points or () if one is not None), default=0.0
        )
        inside = np.flatnonzero(gaps * float(rate) < FARTHEST + handicap)
        first, last = int(inside[0]), int(inside[-1])
        some = exact[first : last + 1].copy()
        some[0], some[-1] = some[0] + exact[:first].sum(), some[-1] + exact[last + 1 :].sum()
        near = points and [None if one is None else Near(one, exact.size, first) for one in points]
        shifted = replace(grid, lower=grid.lower + first)
        return whole(Exact([some] * len(groups)), shifted, share, rate, near)

    ranks.find = find
    try:
        yield
    finally:
        ranks.find = whole


def ours(epsilon: Fraction, bracketed: bool, x: np.ndarray, runs: int) -> np.ndarray:
    """Medians as `discreet.median` releases them, many at once."""
    ask = question("median", x, (0, 1), epsilon, "change-one")
    of, size = ask.quantiles(HALF), len(x) * epsilon
    design = ranks.QuantileDesign(
        names=("median",), of=of, cells=1, bracketed=bracketed, rows_epsilon=size
    )
    grid = design.grid
    counts = np.bincount(
        np.floor(x / float(grid.step) + 0.5).astype(np.int64) - grid.lower, minlength=grid.width + 1
    )
    rate = design.rate(HALF, ask.terms, ask.epsilon)
    with nearby():
        values, _, _ = design._chosen(Exact([counts] * runs), runs, HALF, rate, Fraction(19, 20))
    return np.array(values, np.float64)


def theirs(epsilon: Fraction, candidates: int, x: np.ndarray, runs: int) -> np.ndarray:
    draw = OpenDP(x, x > 0, epsilon=float(epsilon), public_size=True).drawn_quantile(
        0.5, candidates, FARTHEST
    )
    return np.array([draw() for _ in range(runs)])


def errors(draws: Draws, column: str, n: int, runs: int) -> np.ndarray:
    """The mean absolute error in each of many data sets."""
    found = []
    for seed in range(DATA_SETS):
        x = np.sort(COLUMNS[column](np.random.default_rng(seed), n))
        found.append(
            np.abs(draws(x, runs) - np.quantile(x, 0.5, method="averaged_inverted_cdf")).mean()
        )
    return np.array(found)


def gain(theirs: np.ndarray, ours: np.ndarray) -> str:
    """The quotient of two mean errors, and its standard error over the data sets."""
    quotient = theirs.mean() / ours.mean()
    deviation = (theirs - quotient * ours).std(ddof=1) / ours.mean() / np.sqrt(ours.size)
    return f"{quotient:.2f} ± {deviation:.2f}"


def row(column: str, n: int, written: str) -> list[str]:
    epsilon = Fraction(written)
    runs = 16 if n * epsilon >= 1_000 else 4  # where the noise is small, few candidates are near
    value, bracketed = (
        errors(partial(ours, epsilon, one), column, n, runs) for one in (False, True)
    )
    peers = {
        number: errors(partial(theirs, epsilon, number), column, n, runs) for number in NUMBERS
    }
    best = min(peers, key=lambda number: peers[number].mean())
    return [
        column,
        f"{n:,}",
        written,
        f"{value.mean():.3g}",
        f"{bracketed.mean():.3g}",
        f"{peers[CANDIDATES].mean():.3g}",
        *(gain(peers[CANDIDATES], one) for one in (value, bracketed)),
        f"{best:,}",
        *(gain(peers[best], one) for one in (value, bracketed)),
    ]


def main() -> None:
    rows = [row(column, n, epsilon) for column in COLUMNS for n, epsilon in SETTINGS]
    headings = [
        "data",
        "n",
        "ε",
        "discreet",
        "with a bracket",
        f"OpenDP, {CANDIDATES:,}",
        "gain",
        "with a bracket",
    ]
    headings += ["OpenDP's best", "gain", "with a bracket"]
    print(table("Medians: mean absolute error", headings, rows))


if __name__ == "__main__":
    main()
