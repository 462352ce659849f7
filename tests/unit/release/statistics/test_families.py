"""Families: what a row adds, what one unit costs, and what is made of the noisy cells."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.ask.expression import Column
from discreet.ask.query import Count, Moment
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Present, Product, Rows, Squares, Total
from discreet.engines.integers import Integers
from discreet.release.statistics.families import JointDesign, fitted
from discreet.release.statistics.moments import MomentDesign
from discreet.release.statistics.weights import candidates, parted

EPSILON = Fraction(2, 7)
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def column(name, top, *wanted, missing=None):
    of = Moment(
        "mean", Column(name, "number"), Fraction(0), Fraction(top), whole=True, missing=missing
    )
    return MomentDesign(wanted=tuple((f"{name} {what}", what) for what in wanted), of=of)


A, B = column("a", 3, "mean"), column("b", 2, "mean", "sum")
FULL_A, FULL_B = (
    column(name, top, "mean", missing=Fraction(1)) for name, top in (("a", 3), ("b", 2))
)
SQUARED = column("c", 3, "variance", missing=Fraction(1))
ROWS, HELD = ("n", Count()), ("k", Count(Column("well", "truth")))

DESIGNS = {
    "a count and a mean": JointDesign(
        counts=(ROWS,), columns=(FULL_A,), families=(((0,), Fraction(1)),)
    ),
    "with a cell for missing values": JointDesign(
        counts=(ROWS,), columns=(A,), families=(((0,), Fraction(1)),)
    ),
    "two means": JointDesign(
        counts=(ROWS,), columns=(A, FULL_B), families=(((0,), THIRD), ((1,), 1 - THIRD))
    ),
    "a product": JointDesign(
        counts=(), columns=(FULL_A, FULL_B), families=(((0, 1), Fraction(1)),)
    ),
    "a product with missing values": JointDesign(
        counts=(ROWS,), columns=(A, B), families=(((0, 1), Fraction(1)),)
    ),
    "all kinds": JointDesign(
        counts=(ROWS, HELD),
        columns=(A, B, SQUARED),
        families=(
            ((), Fraction(1, 8)),
            ((2,), Fraction(1, 8)),
            ((3,), Fraction(1, 4)),
            ((0, 1), HALF),
        ),
    ),
}
CENTRED = {
    "a count and a mean": JointDesign(
        counts=(ROWS,), columns=(FULL_A,), families=(((0,), Fraction(1)),)
    ),
    "more for the count": JointDesign(
        counts=(ROWS,), columns=(FULL_A,), families=(((), THIRD), ((0,), 1 - THIRD))
    ),
    "two means and a variance": JointDesign(
        counts=(ROWS,),
        columns=(FULL_A, FULL_B, SQUARED),
        families=tuple(((at,), THIRD) for at in range(3)),
    ),
}


def terms_of(*, replaced, cells, rows=1):
    return UnitLimits(rows=rows, max_groups=rows, replaced=replaced, public=False, cells=cells)


def rows_of(design):
    """What every possible row adds to the measures."""
    values = [
        [*range(one.grid.width + 1), *([None] if one.of.missing is None else [])]
        for one in design.columns
    ]
    found = []
    for point in product(*values, *([[0, 1]] * len(design.conditions))):
        by_column = {
            one.measures()[0].value: a for one, a in zip(design.columns, point, strict=False)
        }
        held = dict(
            zip(
                (count.of for count in design.conditions), point[len(design.columns) :], strict=True
            )
        )
        found.append([integer(measure, by_column, held) for measure in design.measures()])
    return found


def integer(measure, values, held):
    match measure:
        case Rows(of):
            return 1 if of is None else held[of]
        case Product(first, second, (p, q)):
            a, b = values[first], values[second]
            return 0 if a is None or b is None else a**p * b**q
    a = values[measure.value]
    return 0 if a is None else {Present: 1, Total: a, Squares: a * a}[type(measure)]


def totals_of(design, terms, integers):
    return [values[0] for values in design.totals([[value] for value in integers], terms)]


def worst(design, terms):
    """The largest Σ|ΔT|/b that one row makes: it comes, or it takes another's place in the only
    group.
    """
    scales = design.scales(terms, EPSILON)
    totals = [totals_of(design, terms, row) for row in rows_of(design)]
    others = [[0] * len(scales), *(totals if terms.same_group else [])]
    return max(
        sum((abs(a - b) / scale for a, b, scale in zip(one, two, scales, strict=True)), Fraction())
        for one in totals
        for two in others
    )


@pytest.mark.parametrize("name", DESIGNS)
def test_every_row_spreads_one_unit_over_each_family(name):
    design, terms = DESIGNS[name], terms_of(replaced=False, cells=2)
    units = design.units(terms)
    for row in rows_of(design):
        shares = [
            Fraction(total, unit)
            for total, unit in zip(totals_of(design, terms, row), units, strict=True)
        ]
        assert min(shares) >= 0
        assert sum(shares) == len(design.families)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_row_costs_exactly_epsilon(name, replaced, rows):
    """Of families: a unit has so many rows, and twice as many where it is replaced."""
    terms = terms_of(replaced=replaced, cells=5, rows=rows)
    assert worst(DESIGNS[name], terms) * terms.factor == EPSILON


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", CENTRED)
def test_a_row_in_another_s_place_costs_at_most_epsilon(name, rows):
    terms = terms_of(replaced=True, cells=1, rows=rows)
    found = worst(CENTRED[name], terms) * rows
    assert EPSILON * Fraction(95, 100) <= found <= EPSILON


@pytest.mark.parametrize("name", DESIGNS)
def test_control_parts_that_add_up_to_more_than_one_are_caught(name):
    design, terms = DESIGNS[name], terms_of(replaced=False, cells=5)
    (attributes, part), *rest = design.families
    assert (
        worst(replace(design, families=((attributes, part * Fraction(65, 64)), *rest)), terms)
        > EPSILON
    )


def test_control_a_count_that_takes_what_columns_need_is_caught():
    design, terms = CENTRED["two means and a variance"], terms_of(replaced=True, cells=1)
    *others, rows = design.scales(terms, EPSILON)
    totals = [totals_of(design, terms, row) for row in rows_of(design)]
    scales = [*others, rows * Fraction(63, 64)]
    assert (
        max(sum(abs(a) / b for a, b in zip(one, scales, strict=True)) for one in totals) > EPSILON
    )


@pytest.mark.parametrize(
    ("designs", "replaced", "cells"), [(DESIGNS, False, 2), (CENTRED, True, 1)]
)
def test_without_noise_everything_is_what_it_is(designs, replaced, cells):
    """Counts and sums of thirty rows, from their exact totals, through the fit."""
    rng, terms = np.random.default_rng(5), terms_of(replaced=replaced, cells=cells)
    for design in designs.values():
        possible = rows_of(design)
        rows = [possible[at] for at in rng.integers(len(possible), size=30)]
        totals = totals_of(design, terms, [sum(column) for column in zip(*rows, strict=True)])
        shares = np.array(totals, float) / np.array(design.units(terms), float)
        of_counts, of_columns = design.partitions(terms)
        for (_, count), partition in zip(design.counts, of_counts, strict=True):
            at = (
                0
                if count.of is None
                else [getattr(one, "of", None) for one in design.measures()].index(count.of)
            )
            assert np.array(partition.matrix) @ shares == pytest.approx(
                sum(row[at] for row in rows)
            )
        for one, partition in zip(design.columns, of_columns, strict=True):
            at = design.measures().index(Total(one.measures()[0].value))
            found = np.array(partition.values) @ np.array(partition.matrix) @ shares
            assert found == pytest.approx(sum(row[at] for row in rows) / one.grid.width)


def test_a_fit_is_the_best_linear_unbiased_estimate():
    """Against weighted least squares of all cells of the full table, by a dense pseudo-inverse."""
    shape = ((2, True), (2, False), (1, True))
    families = (
        ((), Fraction(1, 10)),
        ((0,), Fraction(2, 10)),
        ((2,), Fraction(3, 10)),
        ((0, 1), Fraction(4, 10)),
    )
    cells = list(product(range(3), range(2), range(2)))
    rows, weights = [], []
    for attributes, part in families:
        for kept in product(*(range(shape[at][0] + shape[at][1]) for at in attributes)):
            rows.append(
                [
                    float(all(cell[at] == k for at, k in zip(attributes, kept, strict=True)))
                    for cell in cells
                ]
            )
            weights.append(float(part))
    matrix, scale = np.array(rows), np.array(weights)
    best = np.linalg.pinv(matrix * scale[:, None]) * scale
    found = fitted(shape, families)
    assert np.allclose(found.rows, np.ones(len(cells)) @ best)
    for index, (size, _) in enumerate(shape):
        wanted = np.array([[float(cell[index] == k) for cell in cells] for k in range(size)])
        assert np.allclose(found.cells[index], wanted @ best)


@pytest.mark.parametrize("name", DESIGNS)
def test_many_groups_have_the_totals_of_each(name):
    design, terms = DESIGNS[name], terms_of(replaced=False, cells=100)
    possible = np.array(rows_of(design), object)
    rows = possible[np.random.default_rng(3).integers(len(possible), size=100)]
    few = design.totals([list(measure) for measure in rows.T], terms)
    many = design.totals([Integers(measure.astype(np.int64)) for measure in rows.T], terms)
    large = design.totals([Integers(measure * 2**58) for measure in rows.T], terms)
    assert [list(total) for total in many] == few
    assert [list(total) for total in large] == [[value * 2**58 for value in total] for total in few]


def test_the_planner_gives_all_to_the_pair_that_answers_both():
    """A count and a mean: the pair alone.

    Two means: their product. A heavy count: some for itself.
    """
    terms = terms_of(replaced=False, cells=3)
    joint = replace(DESIGNS["a count and a mean"], families=())
    assert parted(joint, terms, (1.0, 1.0), ())[0] == (((0,), 1),)
    assert dict(parted(joint, terms, (1000.0, 1.0), ())[0])[()] > HALF
    two = replace(DESIGNS["a product"], families=())
    assert parted(two, terms, (1.0, 1.0), ())[0] == (((0, 1), 1),)
    assert candidates(two, terms_of(replaced=True, cells=1)) == ((0,), (1,))


@pytest.mark.parametrize("others", [(), (1.0,), (27.0, 1.0)])
def test_parts_add_up_to_one(others):
    terms = terms_of(replaced=False, cells=3)
    for design in DESIGNS.values():
        families, part, rest = parted(
            replace(design, families=()), terms, (1.0,) * len(design.names), others
        )
        assert part + sum(rest) == 1
        assert sum(share for _, share in families) == 1
        assert {index for attributes, _ in families for index in attributes} == set(
            range(len(design.shape))
        )


def test_so_many_numbers_that_none_would_have_a_sixty_fourth_are_parted_all_the_same():
    """As many as are asked for at once over HTTP, in a bounded number of exchanges."""
    conditions = tuple((f"k{at}", Count(Column(f"well{at}", "truth"))) for at in range(70))
    design = JointDesign(counts=conditions, columns=(), families=())
    families, part, rest = parted(
        design, terms_of(replaced=False, cells=3), (1.0,) * 70, (1.0,) * 30
    )
    assert part + sum(rest) == sum(share for _, share in families) == 1
    assert min(*rest, *(part * share for _, share in families)) >= Fraction(1, 200)
    assert {attributes for attributes, _ in families} >= {(at,) for at in range(70)}
