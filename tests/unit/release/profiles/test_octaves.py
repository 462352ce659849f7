"""Where octaves begin, and what the decision rule makes of counts. No noise is drawn here."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines import array
from discreet.release.profiles.octaves import (
    ROW_LIMITS,
    Limits,
    OctaveDesign,
    UnitRowsDesign,
    bins_between,
    ends,
    limits_of,
    octave_edges,
    rounded_bounds,
    span,
)
from discreet.release.profiles.profile import UnitProfile

NEVER = math.inf


def counts(values, whole=False) -> list[int]:
    """How many values are in each bin, exactly."""
    column = np.array(values, np.int64 if whole else np.float64)
    [[bins]] = [
        array.fetch(array.column(column), OctaveDesign(name="x", whole=whole).measures()).reveal()
    ]
    return bins.tolist()


def limits(core: float, near=NEVER, far=NEVER, across=NEVER) -> Limits:
    return Limits(core=core, near=near, far=far, across=across)


def found(values, core, whole=False, **more):
    return ends(counts(values, whole), whole, limits(core, **more))


@pytest.mark.parametrize("whole", [True, False])
def test_edges_rise_and_every_number_has_one_bin(whole):
    edges = octave_edges(whole)
    assert list(edges) == sorted(set(edges))
    assert {abs(edge) for edge in edges} >= {Fraction(2) ** power for power in range(63)}
    assert len(counts([], whole)) == OctaveDesign(name="x", whole=whole).cells == len(edges)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (1.0, 1, 2),
        (math.nextafter(2.0, 0), 1, 2),
        (2.0, 2, 4),
        (-1.0, -1, Fraction(-1, 2)),
        (math.nextafter(-2.0, 0), -2, -1),
        (-2.0, -2, -1),
        (0.0, 0, Fraction(1, 10**100)),
        (-0.0, 0, Fraction(1, 10**100)),
        (1e-200, 0, Fraction(1, 10**100)),
        (2.0**-41, Fraction(1, 10**100), Fraction(2) ** -40),
        (math.inf, 2**64, 10**100),
        (-math.inf, -(10**100), -(2**64)),
    ],
)
def test_a_value_is_in_its_octave(value, low, high):
    edges = octave_edges(False)
    [index] = np.flatnonzero(counts([value]))
    assert (edges[index], edges[index + 1]) == (low, high)


def test_what_is_missing_has_a_bin_of_its_own():
    [[bins]] = [
        array.fetch(
            array.column([None, math.nan, "x", "7", math.inf]),
            OctaveDesign(name="x", whole=False).measures(),
        ).reveal()
    ]
    assert bins[-1] == 3
    assert bins.sum() == 5


# The cases of Google's tests of approximate bounds [WZLDSG20], where they apply: with the same
# threshold, no growth. There an octave is (2^(k−1), 2^k], here [2^k, 2^(k+1)) and, for negative
# numbers, [−2^(k+1), −2^k).

GOOGLE = {
    "basic": ([0, -5, -5, -(2**31), -7, 7, 7, 3, -6, 6, 5, 1], 3, (-8, 8)),
    "several entries": ([x for x in (1, 2, 3, 5, 8, 13) for _ in range(x)], 2.5, (2, 16)),
    "empty": ([], 1, None),
    "negative maximum": ([-3] * 4 + [-8] * 4, 4, (-8, -2)),
    "fractions": ([0, -0.5, -0.5, 0.1, -0.7, 0.7, 0.8, 0.3, -0.5, 0.6, 0.5, 0.1], 3, (-0.5, 1)),
    "both signs": ([-1, -1, -1, -1, 3, 9, 9, 9, 28, 12, 34], 3.04886, (-1, 16)),
    "integers of 32 bits": ([-(2**31)] * 5 + [2**31 - 1] * 5, 4, (-(2**31), 2**31)),
    "NaN is dropped": ([1, 1, 1, math.nan], 2, (1, 2)),
    "explicit thresholds stay": ([3], 1.0001, None),
    "one that reaches the threshold": ([3], 1, (2, 4)),
    # theirs is the largest double: here it is said, and no bound is made of it
    "infinite": ([1, 1, 1, math.inf, math.inf], 2, (1, 2)),
    "the largest doubles": ([1.7e308] * 30 + [-1.7e308] * 30, 4, None),
}


@pytest.mark.parametrize("case", GOOGLE)
def test_google_s_cases(case):
    values, threshold, expected = GOOGLE[case]
    assert found(values, threshold) == expected
    if all(abs(x) < 2**60 and x == int(x) for x in values if not math.isnan(x)) and not any(
        map(math.isnan, values)
    ):
        assert found(values, threshold, whole=True) == expected


def test_a_core_is_what_noise_alone_would_fill_in_one_profile_of_a_million():
    for scale in (Fraction(1, 50), Fraction(1), Fraction(20), Fraction(2000)):
        cells, r = 131, math.exp(-1 / float(scale))
        core = int(limits_of(scale, cells).core)
        assert cells * r**core / (1 + r) <= 1e-6
        if core > 1:
            assert cells * r ** (core - 1) / (1 + r) > 1e-6


def test_growth_goes_outward_and_needs_more_from_the_third_step_on():
    octaves = [8] * 1 + [16] * 4 + [32] * 4 + [64] * 4 + [300] * 40
    grow = {"near": 3, "far": 4}
    assert found(octaves, 40, **grow) == (256, 512)
    full = [*octaves, *[128] * 4]
    assert found(full, 40, **grow) == (64, 512)  # the third step needs more than 4
    assert found([*full, 32], 40, **grow) == (32, 512)
    assert found(full, 41, **grow) is None
    assert found([-x - 1 for x in full], 40, **grow) == (-512, -64)


def test_growth_does_not_cross_zero():
    grow = {"near": 3, "far": 3}
    assert found([0] * 40 + [-1] * 10, 40, whole=True, **grow) == (0, 0)
    assert found([1] * 40 + [0] * 10 + [-1] * 10, 40, whole=True, **grow) == (0, 2)
    assert found([-1] * 40 + [0] * 10 + [1] * 10, 40, whole=True, **grow) == (-1, 0)
    assert found([1] * 40 + [-1] * 40, 40, whole=True, **grow) == (-1, 2)


def test_the_other_sign_needs_enough_in_ten_octaves():
    # 36 of them, none of which is a core
    spread = [-(2**power) for power in range(1, 7) for _ in range(6)]
    for sign in (1, -1):
        values = [sign * x for x in [*[100] * 50, *spread]]
        assert found(values, 40, across=30) == (-128, 128)
        one_side = found(values, 40, across=40)
        assert one_side in {(64, 128), (-128, -64)}
    assert len(bins_between(False, Fraction(-128), Fraction(-1, 8))) == 10


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (16, 16384, (0, 16384)),
        (16, 128, (0, 128)),
        (32, 128, (32, 128)),
        (-128, -16, (-128, 0)),
        (-128, -32, (-128, -32)),
        (-4, 4, (-4, 4)),
        (0, 0, None),
    ],
)
def test_a_small_end_becomes_zero(lower, upper, expected):
    assert rounded_bounds(Fraction(lower), Fraction(upper)) == expected


def test_rows_of_units_end_where_few_units_are():
    assert ROW_LIMITS[:4] == (1, 2, 4, 8)
    units = [10_000, 5_000, 2_000, 300, 0, 1, *[0] * 16]
    profile = UnitProfile(name="who", counts=tuple(units), scale=Fraction(1), epsilon=Fraction(1))
    assert profile.max_rows == 8
    assert (
        UnitProfile(
            name="who", counts=(10**6, *[0] * 21), scale=Fraction(1), epsilon=Fraction(1)
        ).max_rows
        == 1
    )
    assert (
        UnitProfile(name="who", counts=(0,) * 22, scale=Fraction(1), epsilon=Fraction(1)).max_rows
        is None
    )
    assert span([0, 50, 5, 0], limits(40, near=3, far=8)) == (1, 2)


@pytest.mark.parametrize("design", [OctaveDesign(name="x", whole=True), UnitRowsDesign(name="who")])
def test_the_scale_does_not_depend_on_the_rows_of_a_unit(design):
    for replaced, delta in ((True, 2), (False, 1)):
        for rows in (1, 7):
            terms = UnitLimits(
                rows=rows, max_groups=rows, replaced=replaced, public=False, cells=design.cells
            )
            assert design.scale(terms, Fraction(1, 10)) == 10 * delta
