"""Permute-and-flip with real entropy against its exact law, enumerated over all sets of survivors.

Per case a Pearson chi-square over 45,000 choices, one bin per cell, alarm at p < 10⁻⁹; with 10
cases and 3 checks of runs the file's false-alarm rate is below 13·10⁻⁹. The same draws are held
against wrong laws and must raise the alarm: rate ±10 %, the first survivor preferred by 40 %, the
last one preferred by 40 %, the exponential mechanism (all cells with weight e^(−x), one drawn) and
best cells only. The smallest error caught is the rate of 10 %, and of 1 % by the checks of runs;
each control is missed with a probability below 10⁻¹².
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from cells import one_by_one
from discreet.draw.choice import Runs, choose

DRAWS = 45_000
ALARM = 1e-9

CASES = [
    ([0, 1, 2, 3], Fraction(7, 10)),
    ([3, 0, 4, 0, 4, 3, 5], Fraction(2, 5)),
    ([10, 3, 13, 20, 6], Fraction(1, 7)),
    ([0, 4, 4, 4, 4, 4], Fraction(2, 5)),
    ([-7, -6, -4], Fraction(1)),
]


def even(_: int, __: int) -> float:
    return 1.0


def chances(exponents: list[int], rate: float) -> list[float]:
    return [math.exp(-rate * (exponent - min(exponents))) for exponent in exponents]


def survivor_law(
    exponents: list[int], rate: float, weight: Callable[[int, int], float] = even
) -> np.ndarray:
    """The law of the chosen cell; `weight(place, number)` says how the survivor in that place is
    preferred.
    """
    alive = chances(exponents, rate)
    law = np.zeros(len(exponents))
    for pattern in product((False, True), repeat=len(exponents)):
        chance = math.prod(
            p if survives else 1 - p for p, survives in zip(alive, pattern, strict=True)
        )
        cells = [index for index, survives in enumerate(pattern) if survives]
        weights = [weight(place, len(cells)) for place in range(len(cells))]
        for index, share in zip(cells, weights, strict=True):
            law[index] += chance * share / sum(weights)
    return law


def permute_and_flip_law(exponents: list[int], rate: float) -> np.ndarray:
    """The law of the published algorithm: go through a random order, stop at the first coin that
    shows heads.
    """
    alive = chances(exponents, rate)
    law = np.zeros(len(exponents))
    orders = list(permutations(range(len(exponents))))
    for order in orders:
        reached = 1.0 / len(orders)
        for cell in order:
            law[cell] += reached * alive[cell]
            reached *= 1 - alive[cell]
    return law


def p_value(observed: np.ndarray, law: np.ndarray) -> float:
    return float(stats.chisquare(observed, law * (observed.sum() / law.sum())).pvalue)


@pytest.mark.parametrize(("exponents", "unit"), CASES)
def test_the_survivor_form_has_the_law_of_permute_and_flip(exponents, unit):
    np.testing.assert_allclose(
        survivor_law(exponents, float(unit)),
        permute_and_flip_law(exponents, float(unit)),
        rtol=1e-13,
    )


@pytest.mark.parametrize(("exponents", "unit"), CASES)
def test_choices_have_their_law_and_no_neighbour_of_it(exponents, unit):
    cells, rate = np.array(exponents), float(unit)
    observed = np.bincount(
        choose(one_by_one(np.tile(cells, (DRAWS, 1))), unit), minlength=cells.size
    )
    assert p_value(observed, survivor_law(exponents, rate)) > ALARM
    wrong = {
        "rate 10 % up": survivor_law(exponents, rate * 1.1),
        "rate 10 % down": survivor_law(exponents, rate * 0.9),
        "first preferred": survivor_law(
            exponents, rate, lambda place, _: 1.4 if place == 0 else 1.0
        ),
        "last preferred": survivor_law(
            exponents, rate, lambda place, number: 1.4 if place == number - 1 else 1.0
        ),
        "exponential mechanism": np.array(chances(exponents, rate)),
        "best cells only": np.array(chances(exponents, rate)) ** 50 + 1e-12,
    }
    missed = [name for name, law in wrong.items() if p_value(observed, law) > ALARM]
    assert missed == []


@pytest.mark.parametrize(("exponents", "unit"), CASES)
def test_cells_that_are_alike_are_chosen_as_one_run_as_they_are_one_by_one(exponents, unit):
    """The cells in another order, so that the cells of a run need not follow each other."""
    order = np.argsort(exponents, kind="stable")
    gaps, firsts, sizes = np.unique(
        np.array(exponents)[order], return_index=True, return_counts=True
    )
    runs = Runs(
        exponents=np.tile(gaps, DRAWS),
        sizes=np.tile(sizes, DRAWS),
        rows=np.arange(DRAWS) * gaps.size,
        cell=lambda chosen, numbers: order[firsts[chosen % gaps.size] + numbers],
    )
    observed = np.bincount(choose(runs, unit), minlength=len(exponents))
    assert p_value(observed, survivor_law(exponents, float(unit))) > ALARM
    assert p_value(observed, survivor_law(exponents, float(unit) * 1.1)) < ALARM
    assert p_value(observed, permute_and_flip_law(exponents, float(unit) * 0.9)) < ALARM


@pytest.mark.parametrize(("size", "parts"), [(1, 10), (5, 3), (60, 2)])
def test_runs_beside_a_best_cell_have_their_chances(size, parts):
    """2·10⁵ to 10⁶ choices at each distance of a run from a best cell, as one chi-square; a rate 1
    % off is caught.
    """
    rows, distances = 10**5, np.arange(1, 12)
    number = 2 * distances.size * rows
    runs = Runs(
        exponents=np.tile(np.stack([np.zeros_like(distances), distances], axis=1).ravel(), rows),
        sizes=np.where(np.arange(number) % 2, size, 1),
        rows=np.arange(0, number, 2),
        cell=lambda chosen, _: chosen % 2,
    )
    observed = sum(choose(runs, Fraction(1, 3)).reshape(rows, -1).sum(axis=0) for _ in range(parts))
    draws = parts * rows

    def alarm(rate: float) -> float:
        # the best cell has the earliest time with ∫ (1 − p·t)^m dt = (1 − (1−p)^(m+1))/((m+1)·p)
        p = np.exp(-rate * distances)
        chances = 1 - (1 - (1 - p) ** (size + 1)) / ((size + 1) * p)
        z = (observed - draws * chances) / np.sqrt(draws * chances * (1 - chances))
        return float(stats.chi2.sf((z**2).sum(), z.size))

    assert alarm(1 / 3) > ALARM
    assert alarm(1 / 3 * 1.01) < ALARM
    assert alarm(1 / 3 * 0.99) < ALARM
