"""Medians beside OpenDP's: mean absolute errors in value and in ranks, of the same data, under change-one.

OpenDP's median chooses among listed values. It gets 1,024 even candidates in all rows, and beside them the number that
serves it best in each row, of 256, 1,024 and 4,096, as if that were known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import discreet
from bench.measure import table
from bench.peers import CANDIDATES, OpenDP

SIZES = (100, 1_000, 10_000)
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))
NUMBERS = (256, 1_024, 4_096)
DATA_SETS, RUNS = 30, 20

COLUMNS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "lognormal, bounds 90 medians wide": lambda rng, n: np.clip(rng.lognormal(-4.5, 1, n), 0, 1),
    "normal, a hundredth of the bounds": lambda rng, n: rng.normal(0.37, 0.01, n).clip(0, 1),
}
"""Values between 0 and 1, which are the bounds."""

Errors = tuple[float, float]


def errors(release: Callable[[np.ndarray], Callable[[], Any]], column: str, n: int) -> Errors:
    """The mean absolute errors in value and in ranks, over many runs on each of many data sets."""
    values, ranks = [], []
    for seed in range(DATA_SETS):
        x = np.sort(COLUMNS[column](np.random.default_rng(seed), n))
        run = release(x)
        found = np.array([run() for _ in range(RUNS)])
        values.append(np.abs(found - np.quantile(x, 0.5, method="averaged_inverted_cdf")))
        before, upto = np.searchsorted(x, found, "left"), np.searchsorted(x, found, "right")
        ranks.append(np.maximum(0, np.maximum(before - n / 2, n / 2 - upto)))
    return float(np.mean(values)), float(np.mean(ranks))


def ours(epsilon: Fraction, confidence: str | None, x: np.ndarray) -> Callable[[], Any]:
    return lambda: discreet.median(x, bounds=(0, 1), epsilon=epsilon, confidence=confidence).value


def theirs(epsilon: Fraction, candidates: int, x: np.ndarray) -> Callable[[], Any]:
    peer = OpenDP(x, x > 0, epsilon=float(epsilon), public_size=True)
    return peer.quantile(0.5, candidates=candidates)


def row(column: str, n: int, epsilon: Fraction) -> list[str]:
    value, bracketed = (errors(partial(ours, epsilon, level), column, n) for level in (None, "0.95"))
    peers = {number: errors(partial(theirs, epsilon, number), column, n) for number in NUMBERS}
    best = min(peers, key=lambda number: peers[number][0])
    usual = peers[CANDIDATES]
    return [
        column,
        f"{n:,}",
        f"{float(epsilon):g}",
        *map(_shown, (value, bracketed, usual)),
        f"{usual[0] / value[0]:.2f} ×",
        f"{_shown(peers[best])}, {best:,}",
        f"{peers[best][0] / value[0]:.2f} ×",
    ]


def _shown(error: Errors) -> str:
    return f"{error[0]:.3g} ({error[1]:.3g})"


def main() -> None:
    rows = [row(column, n, epsilon) for column in COLUMNS for n in SIZES for epsilon in EPSILONS]
    usual = f"OpenDP, {CANDIDATES:,}"
    headings = ["data", "n", "ε", "discreet", "with a bracket", usual, "gain", "OpenDP at its best", "gain"]
    print(table("Medians: mean absolute error (in ranks)", headings, rows))


if __name__ == "__main__":
    main()
