"""Law: for every table of at most 5 people in 4 cells and every neighbour, no choice is more than
e^ε times as likely.

All tables, all neighbours, both relations; the gaps and rates of quantiles (one rate, two rates)
and of absolute ranks (minimum, maximum). Probabilities come from the closed form, a sum over all
sets of survivors, in 50 digits:

    P(v) = p(v) · Σ over S ⊆ others of Π_{S} p · Π_{others∖S} (1−p) / (|S|+1)

The bound is reached where one side spends everything, so the margin is 10⁻³⁰ of ε; 4 cells with
even rates reach 68 to 83 % of it. Controls: rates calibrated to the sensitivity instead of the
range, the whole ε for each side, and one side 1 % too steep must break the law.
"""

from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations

import pytest

from discreet.draw.choice import common_unit

CELLS = 4
PEOPLE = 5
EPSILONS = [Fraction(1, 4), Fraction(1), Fraction(3)]
QUANTILES = [Fraction(text) for text in ("0", "1/10", "1/4", "1/3", "1/2", "3/4", "1")]
RELATIONS = ["change-one", "add-remove"]
DIGITS = Context(prec=50)

Table = tuple[int, ...]
Gaps = Callable[[Table], list[tuple[Fraction, Fraction]]]
"""Overshoot and undershoot of every cell."""


def tables(people: int, cells: int = CELLS) -> Iterator[Table]:
    if cells == 1:
        yield (people,)
        return
    for first in range(people + 1):
        yield from ((first, *rest) for rest in tables(people - first, cells - 1))


def neighbours(table: Table, relation: str) -> Iterator[Table]:
    for source in range(CELLS):
        if table[source] == 0:
            continue
        without = [count - (cell == source) for cell, count in enumerate(table)]
        if relation == "add-remove":
            yield tuple(without)
        else:
            yield from (
                tuple(count + (cell == target) for cell, count in enumerate(without))
                for target in range(CELLS)
                if target != source
            )


@cache
def quantile_gaps(quantile: Fraction) -> Gaps:
    @cache
    def gaps(table: Table) -> list[tuple[Fraction, Fraction]]:
        rank = quantile * sum(table)
        upto = list(accumulate(table))
        return [
            (max(Fraction(0), upto[cell] - table[cell] - rank), max(Fraction(0), rank - upto[cell]))
            for cell in range(CELLS)
        ]

    return gaps


@cache
def rank_gaps(records_above: Fraction) -> Gaps:
    @cache
    def gaps(table: Table) -> list[tuple[Fraction, Fraction]]:
        above = [sum(table[cell + 1 :]) for cell in range(CELLS)]
        return [
            (
                max(Fraction(0), records_above - above[cell] - table[cell]),
                max(Fraction(0), above[cell] - records_above),
            )
            for cell in range(CELLS)
        ]

    return gaps


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


@cache
def law(exponents: tuple[Fraction, ...]) -> tuple[Decimal, ...]:
    """The closed form, for exponents of which the smallest is 0."""
    with localcontext(DIGITS):
        alive = [(-decimal(x)).exp() for x in exponents]
        result = []
        for cell, chance in enumerate(alive):
            others = [other for other in range(len(alive)) if other != cell]
            total = Decimal(0)
            for size in range(len(others) + 1):
                for survivors in combinations(others, size):
                    term = chance / (size + 1)
                    for other in others:
                        term *= alive[other] if other in survivors else 1 - alive[other]
                    total += term
            result.append(total)
        return tuple(result)


known_unit = cache(common_unit)


def choice_law(
    table: Table, gaps: Gaps, over_rate: Fraction, under_rate: Fraction
) -> tuple[Decimal, ...]:
    unit, over_times, under_times = known_unit(over_rate, under_rate)
    exponents = [over_times * over + under_times * under for over, under in gaps(table)]
    least = min(exponents)
    return law(tuple(unit * (exponent - least) for exponent in exponents))


def worst_loss(gaps: Gaps, over_rate: Fraction, under_rate: Fraction, relation: str) -> Decimal:
    """The largest |ln P(v)/P′(v)| over all tables, neighbours and cells."""
    every = [table for people in range(PEOPLE + 1) for table in tables(people)]
    laws = {table: choice_law(table, gaps, over_rate, under_rate) for table in every}
    pairs = ((table, other) for table in every for other in neighbours(table, relation))
    with localcontext(DIGITS):
        ratios = (
            max(one, two) / min(one, two)
            for table, other in pairs
            if table > other  # the other way it is the same; without a person a table is smaller
            for one, two in zip(laws[table], laws[other], strict=True)
        )
        return max(ratios).ln()


def within(loss: Decimal, epsilon: Fraction) -> bool:
    with localcontext(DIGITS):
        return loss <= decimal(epsilon) * (1 + Decimal(10) ** -30)


def quantile_rates(
    quantile: Fraction, epsilon: Fraction, relation: str
) -> list[tuple[Fraction, Fraction]]:
    """One rate for both sides, then the most extreme pairs of rates that the calibration admits."""
    if relation == "change-one":
        shares = [Fraction(1, 2), Fraction(7, 10), Fraction(1, 100), Fraction(1)]
        return [(share * epsilon, epsilon - share * epsilon) for share in shares]
    largest = max(quantile, 1 - quantile)
    even = epsilon / (2 * largest)
    pairs = [(even, even)]
    for share in (Fraction(1), Fraction(7, 10)):
        steep = share * epsilon
        flat = min(epsilon, epsilon / largest - steep)
        pairs += [(steep, flat), (flat, steep)]
    return pairs


def test_the_closed_form_is_a_law():
    with localcontext(DIGITS):
        for exponents in ((0, 1, 2, 3), (0, 0, 0, 0), (5, 0, 100, 1)):
            assert abs(sum(law(tuple(map(Fraction, exponents)))) - 1) < Decimal(10) ** -45
        assert law((Fraction(0),) * 4) == (Decimal(1) / 4,) * 4


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("quantile", QUANTILES)
def test_quantiles_are_private_at_every_admitted_pair_of_rates(quantile, epsilon, relation):
    for over_rate, under_rate in quantile_rates(quantile, epsilon, relation):
        assert within(worst_loss(quantile_gaps(quantile), over_rate, under_rate, relation), epsilon)


def handicapped(gaps: Gaps, handicap: Callable[[Table, int], Fraction]) -> Gaps:
    """Gaps with a handicap more; it is added to overshoot, as both sides have one rate."""

    def added(table: Table) -> list[tuple[Fraction, Fraction]]:
        return [
            (over + handicap(table, cell), under) for cell, (over, under) in enumerate(gaps(table))
        ]

    return added


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("quantile", QUANTILES)
def test_handicaps_of_cells_cost_nothing_unless_they_depend_on_the_data(quantile, relation):
    epsilon, gaps = Fraction(1), quantile_gaps(quantile)
    rates = quantile_rates(quantile, epsilon, relation)[0]
    for handicap in (Fraction(1, 3), Fraction(2), Fraction(30)):
        every_second = handicapped(gaps, lambda _, cell, more=handicap: more * (cell % 2))
        assert within(worst_loss(every_second, *rates, relation), epsilon)
    empty = handicapped(gaps, lambda table, cell: Fraction(3) * (table[cell] == 0))
    assert not within(worst_loss(empty, *rates, relation), epsilon)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "records_above", [Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(4), Fraction(9)]
)
def test_absolute_ranks_are_private_also_where_fewer_people_exist(records_above, epsilon, relation):
    for share in (Fraction(7, 10), Fraction(1, 2), Fraction(1, 5)):
        loss = worst_loss(
            rank_gaps(records_above), share * epsilon, epsilon - share * epsilon, relation
        )
        assert within(loss, epsilon)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_very_largest_value_may_spend_everything_on_undershoot(epsilon, relation):
    assert within(worst_loss(rank_gaps(Fraction(0)), Fraction(0), epsilon, relation), epsilon)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_control_rates_too_high_break_the_law(epsilon, relation):
    even = quantile_rates(Fraction(1, 2), epsilon, relation)[0][0]
    one_percent_up = epsilon * Fraction(101, 100)
    controls = {
        "sensitivity in place of range": (quantile_gaps(Fraction(1, 2)), 2 * even, 2 * even),
        "each side at the whole ε": (rank_gaps(Fraction(1)), epsilon, epsilon),
        "the largest value, 1 % up": (rank_gaps(Fraction(0)), Fraction(0), one_percent_up),
        "the smallest value, 1 % up": (quantile_gaps(Fraction(0)), one_percent_up, Fraction(0)),
    }
    missed = [
        name
        for name, control in controls.items()
        if within(worst_loss(*control, relation), epsilon)
    ]
    assert missed == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_bound_is_reached_where_one_side_spends_everything(relation):
    assert not within(
        worst_loss(rank_gaps(Fraction(0)), Fraction(0), Fraction(1), relation),
        Fraction(9999, 10000),
    )
