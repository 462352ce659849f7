"""Bounds that nobody knew: the mean that follows, beside Google's rule, and how far they lie
outside the data.

    perfect     all of ε for the mean, between the smallest and the largest value
    discreet    a part of ε for `discreet.bounds`, the rest for the mean between these bounds
    Google      the same with the rule of its library for approximate bounds [WZLDSG20], written
                again after
                cc/algorithms/approx-bounds.h: 2,047 octaves of each sign from the smallest double
                on, Laplace noise of scale 1/ε, the outermost bins at or above a threshold that
                empty bins all stay below with a probability of 1 − 10⁻⁹; where none is, 1 − 10⁻⁸
                and so on, down to 1 − 10⁻⁶

All means are discreet's, under add-remove. A setting counts where at most half of the runs found no
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import discreet
from bench.measure import table

SIZES = (1_000, 3_000, 30_000)
EPSILONS = (Fraction(1, 10), Fraction(1))
RUNS, FAR_RUNS, FAR_SIZE = 40, 10_000, 4_000
BINS = 2_047
BEGIN = -1022

COLUMNS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "ages": lambda rng, n: rng.normal(45, 18, n).round().clip(0, 100),
    "incomes, lognormal": lambda rng, n: rng.lognormal(10, 0.8, n),
    "Pareto, exponent 2": lambda rng, n: 1_000 * (1 + rng.pareto(2, n)),
    "uniform in [0, 1]": lambda rng, n: rng.random(n),
    "normal, both signs": lambda rng, n: rng.normal(0, 1, n),
    "waiting times": lambda rng, n: rng.exponential(30, n),
    "normal, far from 0": lambda rng, n: rng.normal(1_000, 50, n),
    "60 % zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0, rng.lognormal(6, 1, n)),
}

Bounds = tuple[float, float] | None


def ours(x: np.ndarray, epsilon: Fraction) -> Bounds:
    return discreet.bounds(x, epsilon=epsilon, neighbors="add-remove").bounds


class Google:
    """Approximate bounds of a column by Google's rule."""

    def __init__(self, x: np.ndarray, rng: np.random.Generator) -> None:
        sizes, exponents = np.frexp(np.abs(x))
        octaves = np.where(sizes == 0.5, exponents - 1, exponents) - BEGIN  # (2^(k−1), 2^k]
        octaves = np.where(x == 0, 0, octaves.clip(0, BINS - 1))
        self.counts = [np.bincount(octaves[side], minlength=BINS) for side in (x >= 0, x < 0)]
        self.rng = rng

    def bounds(self, epsilon: Fraction) -> Bounds:
        positive, negative = (
            counts + self.rng.laplace(0, 1 / float(epsilon), BINS) for counts in self.counts
        )
        for failure in (1e-9, 1e-8, 1e-7):  # the next is not above 1 − 10⁻⁶
            empty = -math.expm1(math.log1p(-failure) / (2 * BINS))
            threshold = -math.log(2 * empty) / float(epsilon)
            up, down = (np.flatnonzero(noisy >= threshold) for noisy in (positive, negative))
            if up.size or down.size:
                lower = -_end(down[-1]) if down.size else _end(up[0] - 1)
                return lower, _end(up[-1]) if up.size else -_end(down[0] - 1)
        return None


def _end(octave: int) -> float:
    """The larger end of an octave; that before the first is 0."""
    return 2.0 ** (int(octave) + BEGIN) if octave >= 0 else 0.0


def error(x: np.ndarray, bounds: Bounds, epsilon: Fraction) -> float | None:
    """The squared error of the mean between bounds, if there are any that a mean can have."""
    if bounds is None or not bounds[0] < bounds[1]:
        return None
    limited = tuple(math.copysign(max(abs(end), 1e-300), end) if end else 0 for end in bounds)
    return (
        float(
            discreet.mean(x, bounds=limited, epsilon=epsilon, neighbors="add-remove").value
            - x.mean()
        )
        ** 2
    )


def setting(
    column: str, n: int, epsilon: Fraction, number: int
) -> dict[str, tuple[float | None, float]]:
    """For each way the RMSE over that with perfect bounds, or None; and the share of runs without
    bounds.
    """
    rng = np.random.default_rng(number)
    x = COLUMNS[column](rng, n)
    google, fifth, half = Google(x, rng), Fraction(1, 5), Fraction(1, 2)
    ways: dict[str, Callable[[], float | None]] = {
        "discreet, 20 %": lambda: error(x, ours(x, epsilon * fifth), epsilon * (1 - fifth)),
        "Google, 20 %": lambda: error(x, google.bounds(epsilon * fifth), epsilon * (1 - fifth)),
        "Google, 50 %": lambda: error(x, google.bounds(epsilon * half), epsilon * half),
    }
    ends = float(x.min()), float(x.max())
    perfect = np.mean([error(x, ends, epsilon) for _ in range(RUNS)])
    ratios: dict[str, tuple[float | None, float]] = {}
    for name, run in ways.items():
        errors = [squared for squared in (run() for _ in range(RUNS)) if squared is not None]
        none = 1 - len(errors) / RUNS
        ratios[name] = (math.sqrt(np.mean(errors) / perfect) if none <= 0.5 else None, none)
    return ratios


def outside(x: np.ndarray, bounds: tuple[float, float]) -> float:
    """How many octaves a bound lies outside those of the data, on its worse side; a wrong sign is
    infinitely many.
    """
    worst = 0.0
    for far, sign in ((x.max(), 1), (-x.min(), -1)):
        bound = sign * bounds[sign == 1]
        if bound > 0:
            worst = max(
                worst, math.log2(bound) - math.floor(math.log2(far)) - 1 if far > 0 else math.inf
            )
    return worst


def mean_of(values: list[float]) -> str:
    return f"{math.exp(np.mean(np.log(values))):.2f} ×" if values else "–"


def main() -> None:
    settings = {
        (column, n, epsilon): setting(column, n, epsilon, number)
        for number, (column, n, epsilon) in enumerate(
            (c, n, e) for c in COLUMNS for n in SIZES for e in EPSILONS
        )
    }
    ways = list(next(iter(settings.values())))

    def row(title: str, chosen: list[dict[str, tuple[float | None, float]]]) -> list[str]:
        cells = []
        for way in ways:
            ratios = [one[way][0] for one in chosen if one[way][0] is not None]
            none = np.mean([one[way][1] for one in chosen])
            cells.append(f"{mean_of(ratios)} ({len(ratios)} of {len(chosen)}; {none:.0%} none)")
        return [title, *cells]

    rows = [
        row(column, [one for key, one in settings.items() if key[0] == column])
        for column in COLUMNS
    ]
    rows.append(row("**all**", list(settings.values())))
    together = [
        one for one in settings.values() if all(ratio is not None for ratio, _ in one.values())
    ]
    rows.append(row("where all find bounds", together))
    print(table("Profiles: RMSE of the mean over that with perfect bounds", ["data", *ways], rows))
    beyond: list[float] = []
    none = 0
    for run in range(FAR_RUNS):
        rng = np.random.default_rng(run)
        x = COLUMNS[list(COLUMNS)[run % len(COLUMNS)]](rng, FAR_SIZE)
        bounds = ours(x, EPSILONS[0])
        if bounds is None:
            none += 1
        else:
            beyond.append(outside(x, bounds))
    cells = [
        f"{FAR_RUNS:,}",
        f"{none:,}",
        *(f"{sum(one > k for one in beyond):,}" for k in (0, 1, 2)),
    ]
    headings = ["runs", "no bounds", "outside", "more than one octave", "more than two"]
    print(
        table(
            f"Profiles: bounds outside the octaves of the data, n = {FAR_SIZE:,}, ε = 0.1",
            headings,
            [cells],
        )
    )


if __name__ == "__main__":
    main()
