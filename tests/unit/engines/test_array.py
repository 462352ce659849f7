"""Columns in memory become exact integers."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet.ask import expression as ask
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines import array as engine
from discreet.engines.array import Bins, Column, column
from discreet.errors import InvalidParameter
from discreet.verify import reference

UNIT = value_grid((Fraction(0), Fraction(1)), bits=3)
"""Steps of an eighth."""


def grid_of(lower: int, upper: int, bits: int = 30) -> ValueGrid:
    return value_grid((Fraction(lower), Fraction(upper)), bits=bits)


def steps(values: object, grid: ValueGrid, missing: int = 0) -> list[int]:
    return engine.sorted_steps(column(values), grid, missing).reveal().tolist()


def test_values_go_to_the_nearest_step_and_halves_upward():
    assert steps([0, 0.06, 0.0625, 0.07, 0.5, 1, 1.01], UNIT) == [0, 0, 1, 1, 4, 8, 8]


def test_values_are_clamped_and_missing_ones_are_where_they_were_put():
    assert steps([-math.inf, math.inf, -5, 5], UNIT) == [0, 0, 8, 8]
    assert steps([math.nan, None, "word"], UNIT, missing=5) == [5, 5, 5]
    shifted = grid_of(4, 8, bits=2)
    assert steps([math.nan, 5.0], shifted, missing=6) == [1, 2]


def test_minus_zero_and_subnormals_are_zero():
    assert steps([-0.0, 5e-324, -5e-324], UNIT) == [0, 0, 0]


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "longdouble"])
def test_short_floats_are_scaled_as_doubles(kind):
    """2³⁰ steps are beyond the largest float16, 2¹³⁰ beyond the largest float32."""
    assert steps(np.array([0, 0.25, 1], kind), grid_of(0, 1)) == [0, 2**28, 2**30]
    tiny = value_grid((Fraction(0), Fraction(1, 2**100)), bits=30)
    assert steps(np.array([0, 1], kind), tiny) == [0, 2**30]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64", "bool"])
def test_integers_of_every_size_are_taken_as_they_are(kind):
    assert steps(
        np.array([0, 1, 1], kind), value_grid((Fraction(0), Fraction(1)), bits=30, whole=True)
    ) == [0, 1, 1]


def test_moments_are_exact_sums():
    rng = np.random.default_rng(2)
    values = rng.uniform(-2, 3, 200_000)
    grid = grid_of(-1, 2, bits=22)
    a = [
        math.floor(min(max(Fraction(x), -1), 2) / grid.step + Fraction(1, 2)) - grid.lower
        for x in values[:2000]
    ]
    n, total, squared = engine.moments(column(values[:2000]), grid, 0, squares=True).reveal()
    assert (n, total, squared) == (2000, sum(a), sum(x * x for x in a))
    whole = engine.moments(column(values), grid, 0, squares=True).reveal()
    parts = [
        engine.moments(column(part), grid, 0, squares=True).reveal()
        for part in np.array_split(values, 7)
    ]
    assert whole == tuple(map(sum, zip(*parts, strict=True)))
    assert engine.moments(column(values), grid, 0, squares=False).reveal() == whole[:2]
    holes = np.where(np.arange(200_000) % 3 == 0, np.nan, values)
    dropped = engine.moments(column(holes), grid, None, squares=True).reveal()
    assert (
        dropped
        == engine.moments(column(holes[~np.isnan(holes)]), grid, None, squares=True).reveal()
    )
    assert dropped[0] == 133_333


def test_squares_of_the_widest_grid_do_not_wrap():
    grid = value_grid((Fraction(0), Fraction(2**23 - 1)), bits=22, whole=True)
    assert grid.width == 2**23 - 1
    values = np.full(2**17, 2**23 - 1)
    assert (
        engine.moments(column(values), grid, 0, squares=True).reveal()[2]
        == 2**17 * (2**23 - 1) ** 2
    )


def test_counts_are_of_grid_points():
    assert engine.counts(column([0, 0.5, 0.5, 9, math.nan]), UNIT, 8).reveal().tolist() == [
        1,
        0,
        0,
        0,
        2,
        0,
        0,
        0,
        2,
    ]
    assert engine.counts(column([]), UNIT, 8).reveal().tolist() == [0] * 9


def test_nobody_has_no_sum():
    assert engine.moments(column([]), UNIT, 0, squares=True).reveal() == (0, 0, 0)
    assert steps([], UNIT) == []
    assert engine.count(column([])).reveal() == [0]
    assert engine.moments(column([math.nan, None]), UNIT, None, squares=True).reveal() == (0, 0, 0)
    assert engine.binned(
        column([math.nan, None]), Bins(np.array([0.0, 1.0, 2.0]), None, even=True)
    ).reveal().tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("even", [True, False])
def test_bins_hold_their_lower_edge(even):
    edges = np.linspace(0, 1, 5)
    values = [0, 0.2, 0.25, 0.5, 0.74999, 1, 2, -1, math.nan, math.inf]
    assert engine.binned(column(values), Bins(edges, 1, even=even)).reveal().tolist() == [
        3,
        2,
        2,
        3,
    ]


@pytest.mark.parametrize("bins", [1, 3, 10, 1000, 12345])
def test_the_quick_search_among_even_edges_is_the_search(bins):
    rng = np.random.default_rng(bins)
    for low, high in (
        (0.0, 1.0),
        (-7.3, 1e6),
        (1e15, 1e15 + 4),
        (0.1, 0.3),
        (-1e300, 1e300),
        (1e-300, 3e-300),
    ):
        edges = np.linspace(low, high, bins + 1)
        near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        values = column(
            np.concatenate([near, rng.uniform(low, high, 1000), [-np.inf, np.inf, 1e308, -0.0]])
        )
        quick, slow = (
            engine.binned(values, Bins(edges, 0, even=even)).reveal() for even in (True, False)
        )
        assert np.array_equal(quick, slow)


def test_what_kind_a_column_is_depends_on_its_type_alone():
    for values, whole, truth in (
        ([1, 2], False, False),
        ([True, False], False, False),
        (np.array([1, 2]), True, False),
        (np.array([True]), True, True),
        (np.array([1.0]), False, False),
        (np.array([1, None], object), False, False),
        (np.ma.MaskedArray([1, 2], [0, 1]), True, False),
        (np.ma.MaskedArray([True, True], [0, 1]), True, True),
        (range(3), False, False),
    ):
        found = column(values)
        assert (found.whole, found.truth) == (whole, truth)
        assert column(found) is found
        assert len(found) == len(values)


def test_a_masked_value_is_missing():
    masked = np.ma.MaskedArray([1, 100, 3], [False, True, False])
    assert steps(masked, grid_of(0, 4, bits=2), missing=2) == [1, 2, 3]
    assert engine.count(column(masked)).reveal() == [2]


def test_items_of_a_list_are_numbers_or_missing():
    items = [
        Decimal("0.5"),
        Fraction(1, 4),
        np.float32(1),
        np.int8(1),
        True,
        10**400,
        -(10**400),
        1j,
        "half",
        b"1",
        [1],
    ]
    items += [
        np.complex64(1),
        np.timedelta64(1, "s"),
        np.datetime64("2020"),
        Decimal("sNaN"),
        object,
        {},
    ]
    values = column(items).values
    assert values[:7].tolist() == [0.5, 0.25, 1, 1, 1, math.inf, -math.inf]
    assert np.isnan(values[7:]).all()


NUMBERS = ["34", " -1.5 ", "+2e3", ".5", "7.", "0" * 39 + "1", "1e-99"]
OTHER_TEXTS = [
    "n/a",
    "",
    " ",
    "3,5",
    "1_0",
    "0x1",
    "nan",
    "inf",
    "1e400",
    "1e-400",
    "\t1",
    "1\n",
    "١",
    "1 2",
    "9" * 41,
    "--1",
]


@pytest.mark.parametrize(
    "make",
    [list, lambda cells: np.array(cells, object), lambda cells: pd.Series(cells, dtype=object)],
)
def test_a_text_in_a_list_is_the_number_it_writes_by_the_rule_of_cast(make):
    values = column(make([*NUMBERS, np.str_("8"), *OTHER_TEXTS])).values
    assert values[: len(NUMBERS) + 1].tolist() == [34, -1.5, 2000, 0.5, 7, 1, 1e-99, 8]
    assert np.isnan(values[len(NUMBERS) + 1 :]).all()
    cells = [*NUMBERS, *OTHER_TEXTS]
    assert [number if number == number else None for number in column(cells).values] == [  # noqa: PLR0124 - NaN
        reference.evaluate(ask.Cast(ask.Column("cell", "text"), "number"), {"cell": cell})
        for cell in cells
    ]


def test_every_text_counts_as_a_value():
    assert engine.count(
        column(["34", "n/a", "", None, False, True, 0, math.nan, object()])
    ).reveal() == [5]


@pytest.mark.parametrize(
    "texts", [np.array(["1", "2"]), pa.array(["1", "2"]), pd.Series(["1"], dtype="string")]
)
def test_a_column_whose_type_is_text_is_refused(texts):
    with pytest.raises(InvalidParameter, match="the data must be numbers"):
        column(texts)


class Quoting:
    def __array__(self, *_args, **_options):
        raise ValueError("canary")


def test_what_a_strange_container_says_is_kept_nowhere():
    with pytest.raises(InvalidParameter) as caught:
        column(Quoting())
    assert caught.value.__context__ is None


def test_shares_are_truths_if_their_type_is_whole_and_numbers_otherwise():
    for whole in (np.array([0, 1]), np.array([True, False]), np.array([0, 1], np.uint8)):
        found = column(whole).shares()
        assert (found.whole, found.truth, found.nullable, found.typed) == (True, True, False, True)
    for real in (np.array([0.0, 1.0]), np.array([0.5, math.nan])):
        found = column(real).shares()
        assert (found.whole, found.truth, found.nullable, found.typed) == (False, False, True, True)
    for items in ([True, False], [0, 1], [0.5, None]):  # a list has no type, whatever its items are
        found = column(items).shares()
        assert (found.whole, found.truth, found.nullable, found.typed) == (
            False,
            False,
            True,
            False,
        )


def test_two_dimensions_are_refused():
    with pytest.raises(InvalidParameter, match="got 2 dimensions"):
        column(np.zeros((2, 2)))


def test_a_column_is_frozen():
    with pytest.raises(AttributeError):
        column([1]).whole = True  # type: ignore[misc]
    assert repr(column([1])) == "Column(…)"
    assert isinstance(column([1]), Column)
