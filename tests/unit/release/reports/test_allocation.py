"""Axes, parts of ε, fits and noise of reports, against dense linear algebra."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from discreet.release.reports.allocation import Target, allocated, variance
from discreet.release.reports.axes import Axis
from discreet.release.reports.fit import GRAIN, Combined, Fit, Noise, averages

FLAT = (Axis((1, 3)), Axis((1, 2)), Axis((1, 4)))
NESTED = (Axis((1, 3, 6), ((0, 0, 0, 1, 1, 2),)), Axis((1, 2)))
EVEN = (Axis((1, 2, 6), ((0, 0, 0, 1, 1, 1),)), Axis((1, 3)))


def ways(axes, *sizes):
    """Tables of so many of the axes, on their finest levels."""
    numbers = range(len(axes))
    return [
        tuple(axes[i].levels if i in chosen else 0 for i in numbers)
        for size in sizes
        for chosen in combinations(numbers, size)
    ]


def target(axes, levels, weight=1.0):
    return Target(
        levels,
        tuple(tuple(a.spreads(level)) for a, level in zip(axes, levels, strict=True)),
        weight,
    )


def summing(axes, levels):
    """The matrix that adds up the full table to a set."""
    shape = tuple(axis.sizes[-1] for axis in axes)
    rows = []
    for cell in range(math.prod(shape)):
        table = np.zeros(shape)
        table.ravel()[cell] = 1
        for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
            table = axis.summed(table, index, axis.levels, level)
        rows.append(table.ravel())
    return np.array(rows).T


def dense_variances(axes, measured, levels):
    """Of all cells of a table, by the pseudo-inverse."""
    matrices = [summing(axes, chosen) * float(part) for chosen, part in measured]
    stacked = np.concatenate(matrices)
    wanted = summing(axes, levels) @ np.linalg.pinv(stacked)
    return 2 * (wanted**2).sum(axis=1)


@pytest.mark.parametrize("axes", [FLAT, EVEN])
def test_variances_are_those_of_least_squares(axes):
    tables = ways(axes, 1, 2)
    measured = allocated(
        axes, tuple(target(axes, table) for table in tables), frozenset(), known=False
    )
    noise = noise_of(axes, measured)
    for table in tables:
        dense = dense_variances(axes, measured, table)
        assert variance(axes, target(axes, table), measured, known=False) == pytest.approx(
            dense.mean(), rel=1e-9
        )
        for cell in (0, -1):
            cells = np.unravel_index(
                range(dense.size), [a.sizes[b] for a, b in zip(axes, table, strict=True)]
            )
            chosen = [int(index[cell]) for index in cells]
            ours = spread(
                noise, [(b, a.unit(b, c)) for a, b, c in zip(axes, table, chosen, strict=True)]
            )
            assert ours == pytest.approx(dense[cell], rel=1e-3)  # weights are multiples of 2⁻¹⁶


def noise_of(axes, measured, known=False):
    scales = tuple(1 / float(part) for _, part in measured)
    combined = Combined(axes=axes, measured=measured, known=known)
    return Noise(scales=scales, slacks=(0.0,) * len(scales), combined=combined)


def spread(noise, question):
    """The variance of a combination."""
    times, sets, weights, _ = noise.combined.law(question)
    return 2 * times @ (weights * np.array(noise.scales)[sets][:, None]) ** 2


def test_noise_of_siblings_that_differ_in_number_is_that_of_the_fit():
    tables = [(1, 0), (2, 0), (2, 1), (0, 1)]
    measured = allocated(
        NESTED, tuple(target(NESTED, table) for table in tables), frozenset(), known=False
    )
    noise, sizes = noise_of(NESTED, measured), [axis.sizes[-1] for axis in NESTED]
    for table in tables:
        weights = linear(NESTED, measured, table)
        scales = np.concatenate(
            [np.full(weight.shape[1], 1 / float(part)) for weight, (_, part) in weights]
        )
        dense = 2 * ((np.concatenate([weight for weight, _ in weights], axis=1) * scales) ** 2).sum(
            axis=1
        )
        shape = [axis.sizes[level] for axis, level in zip(NESTED, table, strict=True)]
        for cell in range(math.prod(shape)):
            places = np.unravel_index(cell, shape)
            question = [
                (b, a.unit(b, int(c))) for a, b, c in zip(NESTED, table, places, strict=True)
            ]
            assert spread(noise, question) == pytest.approx(dense[cell], rel=1e-6)
    assert sizes == [6, 2]


def linear(axes, measured, table):
    """The weights of every noisy cell in a table, by fitting unit vectors."""
    found = []
    for chosen, part in measured:
        shape = [axis.sizes[level] for axis, level in zip(axes, chosen, strict=True)]
        columns = []
        for cell in range(math.prod(shape)):
            cells = {
                levels: np.zeros(
                    [axis.sizes[b] for axis, b in zip(axes, levels, strict=True)], np.int64
                )
                for levels, _ in measured
            }
            cells[chosen].ravel()[cell] = 1
            numerators, denominator = Fit(
                axes=axes, measured=measured, cells=cells, unit=1, known=None
            ).table(table)
            columns.append(numerators.ravel() / denominator)
        found.append((np.array(columns).T, (chosen, part)))
    return found


@pytest.mark.parametrize("axes", [FLAT, NESTED, EVEN])
@pytest.mark.parametrize("known", [False, True])
def test_tables_agree_exactly_whatever_the_noise_was_and_are_exact_without_it(axes, known):
    random = np.random.default_rng(5)
    full = random.integers(0, 50, [axis.sizes[-1] for axis in axes])
    tables = [*ways(axes, 0, 1, 2), *([(1, 0), (1, axes[1].levels)] if axes is not FLAT else [])]
    measured = allocated(
        axes, tuple(target(axes, table) for table in tables), frozenset(), known=known
    )
    for noise in (0, 40):
        cells = {}
        for levels, _ in measured:
            exact = full
            for index, (axis, level) in enumerate(zip(axes, levels, strict=True)):
                exact = axis.summed(exact, index, axis.levels, level)
            cells[levels] = exact + random.integers(-noise, noise + 1, exact.shape)
        fit = Fit(
            axes=axes,
            measured=measured,
            cells=cells,
            unit=1,
            known=int(full.sum()) if known else None,
        )
        found = {table: fit.table(table) for table in tables}
        for table, (numerators, denominator) in found.items():
            for coarse in tables:
                if all(a <= b for a, b in zip(coarse, table, strict=True)):
                    summed = numerators
                    for index, (axis, low, high) in enumerate(
                        zip(axes, coarse, table, strict=True)
                    ):
                        summed = axis.summed(summed, index, high, low)
                    other, below = found[coarse]
                    exact = zip(summed.ravel(), other.ravel(), strict=True)
                    assert all(
                        Fraction(int(a), denominator) == Fraction(int(b), below) for a, b in exact
                    )
            if not noise:
                summed = full
                for index, (axis, level) in enumerate(zip(axes, table, strict=True)):
                    summed = axis.summed(summed, index, axis.levels, level)
                assert (numerators == summed * denominator).all()
        if known:
            numerators, denominator = found[(0,) * len(axes)]
            assert numerators.item() == full.sum() * denominator


def test_large_cells_are_fitted_in_integers_of_any_size():
    axes = (Axis((1, 3)), Axis((1, 2)))
    measured = (((1, 1), Fraction(1)),)
    cells = {(1, 1): np.array([[2**80, 1], [0, -(2**70)], [3, 5]], object)}
    numerators, denominator = Fit(
        axes=axes, measured=measured, cells=cells, unit=1, known=None
    ).table((1, 0))
    assert [int(n) // denominator for n in numerators.ravel()] == [2**80 + 1, -(2**70), 8]
    assert all(int(n) % denominator == 0 for n in numerators.ravel())


def test_parts_of_epsilon_add_up_to_one_and_weights_of_a_part_to_one():
    axes = tuple(Axis((1, n)) for n in (9, 7, 5, 2, 6, 2))
    measured = allocated(
        axes, tuple(target(axes, t) for t in ways(axes, 1, 2)), frozenset(), known=False
    )
    assert sum(part for _, part in measured) == 1
    assert all(part > 0 for _, part in measured)
    for part in product((0, 1), repeat=6):
        if any(all(a <= b for a, b in zip(part, levels, strict=True)) for levels, _ in measured):
            weights = averages(axes, measured, part)
            assert sum(weights) == GRAIN
            assert min(weights) >= 0


HALF = (2, 18, 50, 2)


@pytest.mark.parametrize(
    ("sizes", "tables", "mean", "worst"),
    [
        ((9, 7, 5, 2, 6, 2), lambda axes: ways(axes, 1, 2), 14.8, 19.8),
        ((2, 18, 50), lambda axes: ways(axes, 0, 1, 2), 6.3, 7.5),
        (HALF, lambda _: [*((*t, 0) for t in SIX), *((*t, 1) for t in FOUR)], 6.45, 8.5),
        ((2, 2, 7, 20, 8, 4), lambda axes: ways(axes, 0, 1, 2, 3), 21.4, 36),
        ((2,) * 8, lambda axes: ways(axes, 3), 8.01, 8.01),
    ],
)
def test_plans_are_as_accurate_as_the_best_known(sizes, tables, mean, worst):
    axes = tuple(Axis((1, n)) for n in sizes)
    targets = tuple(target(axes, table) for table in tables(axes))
    halves = frozenset([3]) if sizes == HALF else frozenset()
    measured = allocated(axes, targets, halves, known=False)
    errors = [math.sqrt(variance(axes, one, measured, known=False)) for one in targets]
    assert np.mean(errors) <= mean
    assert max(errors) <= worst


SIX = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1)]
FOUR = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]


def test_weights_and_the_largest_error_move_the_plan():
    axes = tuple(Axis((1, n)) for n in (9, 7, 5, 2, 6, 2))
    tables = ways(axes, 1, 2)
    plain = [target(axes, table) for table in tables]
    even = errors_of(axes, plain, largest=False)
    first = errors_of(axes, [target(axes, tables[0], 50.0), *plain[1:]], largest=False)
    assert first[0] < 0.8 * even[0]
    assert max(errors_of(axes, plain, largest=True)) < max(even)


def errors_of(axes, targets, *, largest):
    measured = allocated(axes, tuple(targets), frozenset(), known=False, largest=largest)
    return [math.sqrt(variance(axes, one, measured, known=False)) for one in targets]


def test_a_public_number_of_rows_makes_errors_smaller():
    axes = tuple(Axis((1, n)) for n in (9, 7, 5, 2, 6, 2))
    targets = tuple(target(axes, table) for table in ways(axes, 1, 2))
    found = {}
    for known in (False, True):
        measured = allocated(axes, targets, frozenset(), known=known)
        found[known] = np.mean(
            [math.sqrt(variance(axes, one, measured, known=known)) for one in targets]
        )
    assert found[True] < 0.97 * found[False]
