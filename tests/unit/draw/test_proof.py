"""PROOF.md: every inequality with numbers is computed anew, in fractions or in 60 digits.

Most of them hold numbers alone. The others, about the list of a scale, are computed for scales at
both ends of every octave that a list can have: t from 1/50 to 2⁶⁰, in arrays (T ≤ 2⁶, n ≤ 2¹⁰) and
in short arrays (T ≤ 2⁴, n ≤ 2⁶).
"""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from discreet.draw import choice, digits, vector

U = Fraction(1, 2**53)
"""The largest relative error of a rounding to the nearest double."""

LISTS = [vector._BITS, vector._BITS_OF_FEW]
OCTAVES = [
    Fraction(1, 50),
    Fraction(1, 3),
    *(Fraction(2) ** power for power in (0, 2, 4, 5, 6, 7, 11, 16, 17, 40, 60)),
]
SCALES = sorted({*OCTAVES, *(octave * (1 + Fraction(1, 10**6)) for octave in OCTAVES)})


def two_to(power: int) -> Fraction:
    return Fraction(2) ** power


def power(exponent: Fraction) -> mpmath.mpf:
    """e^(−exponent)."""
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


def missing(exponent: Fraction) -> mpmath.mpf:
    """1 − e^(−exponent)."""
    return -mpmath.expm1(-mpmath.mpf(exponent.numerator) / exponent.denominator)


@pytest.mark.parametrize(("top_bits", "high_bits"), LISTS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_list_of_a_scale_is_as_sections_2_to_8_say(scale, top_bits, high_bits):
    whole = digits.digits(scale, top_bits, high_bits)
    k, s, half, n = whole.lower, whole.low, whole.half, 1 << whole.lower - whole.low
    t, rate = scale / 2**k, 2**k / scale
    assert t <= 2**top_bits
    assert k == 0 or 2 * t > 2**top_bits  # k is the smallest
    assert half == math.ceil(12 * t) < 2**10 >= n
    with mpmath.workdps(60):
        z = missing(rate) / missing(1 / scale)
        p = 2**k * power((2**k - 1) / scale) / z
        assert 0 <= 1 - p <= 1 / mpmath.mpf(2 * t.numerator) * t.denominator
        low_is_excess = 0
        if s:  # Σ over l of q^(l·2^s), times Σ over u of q^u − q^(2^s−1), over Z
            low_is_excess = 1 - 2**s * power((2**s - 1) / scale) * missing(1 / scale) / missing(
                2**s / scale
            )
            assert low_is_excess <= two_to(-16 if top_bits == 6 else -10)
        if k:
            c = 2**s * power((2**s - 1) / scale) / z / missing(2**s / scale)
            assert c <= (1 + mpmath.mpf(10) ** -50) / missing(rate)
        assert 1 / missing(rate) < t + 1 < 2**7
        cells = [0, *whole.cells]
        for top in range(1, 2 * half):
            number = top - half
            chance = p * missing(rate) * power(abs(number) * rate) / (1 + power(1 / scale))
            chance *= power(1 / scale) * power(-rate) if number < 0 else 1
            over = chance - mpmath.mpf(cells[top] - cells[top - 1]) / 2**16
            assert 0 < over < two_to(-16) + two_to(-63)
            assert chance > two_to(-30)
        ends = power(half * rate) + power(1 / scale + (half - 1) * rate)
        assert ends / (1 + power(1 / scale)) < 2 * mpmath.exp(-12)
        # numbers between two edges: the last top, and the excesses but for the last one, the least
        # of which is this
        if k:
            assert p * power(half * rate) / (1 + power(1 / scale)) > two_to(-30)
        if n > 2 or (n == 2 and s):
            assert 2**s * (
                power(((n - 1) * 2**s - 1) / scale) - power((2**k - 1) / scale)
            ) / z > two_to(-30)
        if not k:  # number 0 has no edge before it
            first = power((half - 1) * rate + 1 / scale) / (1 + power(1 / scale))
            assert (
                (first < two_to(-64))
                == (whole.edges[0] == whole.cells[-1] << 48)
                == (scale < Fraction(1, 44))
            )
        assert 1 - p < (0.0161 if top_bits == 6 else 0.0625)
    assert all(before < after for before, after in pairwise(whole.edges))
    shared = 1 - Fraction(whole.cells[-1], 2**16)
    assert shared < (Fraction(25, 1000) if top_bits == 6 else Fraction(7, 100))
    parts = vector._table(scale, top_bits, high_bits).parts.size if scale < 2**50 else 1
    assert parts < 2**16


def test_the_errors_in_fixed_point_of_section_6_add_up_to_less_than_the_slack():
    power_error = 0
    for _ in range(1, 32):
        power_error += 2  # less than e + 2 units after one more factor
    assert power_error < 2**7
    assert 2 * 32 <= 2**7  # of r^(32·j), whose factor r³² is a floor of its own
    f, f_error = 2**7, 2**7
    product = f_error * 1 + f * 2**7 + 1  # f·r^(32·j), as r is at most 1
    assert product <= 2**7 + 2**14 + 1
    edge = product * 1 + f * 2**7 + 1  # times r^i; the products of two errors are below a unit
    assert edge < 2**16
    constant, slope = 1 + 2**7, 2 * 2**10
    assert constant < 2**8
    assert slope < 2**12
    lift = digits._SLACK // 2
    assert lift == 2**20
    assert edge + constant + slope < lift
    assert edge + constant + slope + lift < digits._SLACK == 2**21
    assert Fraction(digits._SLACK, 2**64) == two_to(-43)  # the chance of a doubt


def test_the_lower_time_of_section_9_errs_by_less_than_two_to_the_minus_44():
    x = (1 + U) ** 3 - 1  # the distance, the unit and their product
    assert x < Fraction(301, 100) * U
    # of 1 + x/16, of the squares, of m, of w, of a quotient and of a product
    roundings = 16 + (8 + 4 + 2 + 1) + 4
    assert roundings < 50
    assert (1 + U) ** 50 * (1 + Fraction(301, 100) * U) ** 16 - 1 < two_to(-44)
    # a run that is out comes later than the best of them, as T* errs by less than 2⁻³⁰
    assert (1 - two_to(-30)) * (1 + two_to(-28)) > 1 + two_to(-44)
    with mpmath.workdps(60):
        assert mpmath.exp(700) * two_to(-32) / 2**40 > mpmath.mpf(2) ** 900
        assert mpmath.exp(700) * two_to(-32) / 2**63 > mpmath.mpf(2) ** 800
        assert all(
            mpmath.exp(x / mpmath.mpf(16)) >= 1 + x / mpmath.mpf(16) for x in (0, 1, 16, 700)
        )


def times_err_by(functions: Fraction) -> tuple[Fraction, Fraction]:
    """How much T errs in floats for W ≤ ½ and for W > ½, if exp, expm1 and log1p err by so much."""
    small = 2 * (two_to(-32) + two_to(-53))
    large = two_to(21) * two_to(-52)
    x = Fraction(301, 100) * U * 700
    rest = (1 + 2 * functions) * (1 + functions) * (1 + x + x**2) * (1 + U) ** 8 - 1
    return small + rest, large + rest


def test_the_time_of_section_9_errs_by_less_than_two_to_the_minus_30():
    x = Fraction(301, 100) * U * 700
    assert two_to(-42) < x < Fraction(103, 100) * two_to(-42)
    assert 2 * two_to(-50) == two_to(-49)
    assert x + two_to(-50) + 8 * U < two_to(-41)
    assert max(times_err_by(two_to(-50))) < two_to(-30)
    assert max(times_err_by(two_to(-40))) < two_to(-30)
    # so a time that is larger by a share of 2⁻²⁸ in floats is larger
    assert (1 - two_to(-30)) / (1 + two_to(-30)) * (1 + two_to(-28)) > 1
    assert two_to(-28) == Fraction(choice._DOUBT)
    assert (int(choice._SHORT), int(choice._LONG)) == (2**32, 2**64 - 2**44)


@pytest.mark.parametrize("m", [1, 2, 3, 40, 2**18, 2**40])
def test_the_derivatives_of_section_9_are_bounded_as_it_says(m):
    with mpmath.workdps(60):
        for w in [
            *(mpmath.mpf(2) ** -bits for bits in (32, 20, 5, 1)),
            mpmath.mpf("0.7"),
            1 - mpmath.mpf(2) ** -20,
        ]:
            y = -mpmath.expm1(mpmath.log1p(-w) / m)
            slope = (1 - w) ** (mpmath.mpf(1) / m - 1) / m
            tiny = mpmath.mpf(10) ** -50
            assert y >= w / m * (1 - tiny)
            assert slope <= (mpmath.mpf(2) / m if w <= 0.5 else mpmath.mpf(2) ** 20 / m) * (
                1 + tiny
            )
            t = -mpmath.log1p(-w) / m
            assert t / mpmath.expm1(t) <= 1


RANGES = {
    "exp": lambda shares: -700 * shares,
    "expm1": lambda shares: -13.9 * 2.0 ** (-54 * shares),
    "log1p of W up to a half": lambda shares: -(2.0 ** (-1 - 31 * shares)),
    "log1p of W from a half on": lambda shares: -(1 - 2.0 ** (-1 - 19 * shares)),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_elementary_functions_err_by_less_than_the_proof_assumes(name):
    points = RANGES[name](np.random.default_rng(17).random(15_000))
    function = name.split()[0]
    measured = getattr(np, function)(points)
    with mpmath.workprec(120):
        exact = map(getattr(mpmath, function), map(mpmath.mpf, points.tolist()))
        errors = [
            abs(found / true - 1) for found, true in zip(measured.tolist(), exact, strict=True)
        ]
    assert max(errors) < choice._CHECK == 2.0**-50


def test_the_points_that_a_machine_is_checked_at_cover_the_ranges_in_use(monkeypatch):
    asked = {}
    for name in ("exp", "expm1", "log1p"):
        true = getattr(np, name)
        monkeypatch.setattr(
            choice.np, name, lambda x, name=name, true=true: asked.setdefault(name, x) * 0 + true(x)
        )
    choice._check_floats.cache_clear()
    choice._check_floats()
    choice._check_floats.cache_clear()
    needed = {
        "exp": (-700, 0),
        "expm1": (math.log(2.0**-20), -(2.0**-50)),
        "log1p": (-(1 - 2.0**-20), -(2.0**-32)),
    }
    for name, (least, largest) in needed.items():
        points = np.sort(asked[name])
        assert points.size == 1024
        assert points[0] <= least
        assert points[-1] >= largest
        shares = np.sort(-points) if name == "exp" else np.sort(np.log2(-points))
        # no gap: neighbours differ by less than 1 in x, or by less than a factor 2
        assert np.diff(shares).max() < 0.8


@pytest.mark.parametrize("name", RANGES)
def test_the_elementary_functions_do_not_depend_on_the_length_of_an_array(name):
    """So what is checked of arrays of 1,024 holds for the arrays of any choice."""
    points = RANGES[name](np.random.default_rng(18).random(1_024))
    function = getattr(np, name.split()[0])
    whole = function(points)
    for length in (*range(1, 34), 63, 64, 65, 511):
        for start in (0, 1, 7):
            part = slice(start, start + length)
            assert np.array_equal(function(points[part].copy()), whole[part])
