"""Probabilities to the last bit, against mpmath."""

import math
from fractions import Fraction
from inspect import signature

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import DiscreteLaplace, InvalidParameter, Laplace

scales = st.fractions(min_value=Fraction(1, 60), max_value=10**6, max_denominator=1000)
integers = st.integers(-(10**7), 10**7)


def correctly_rounded(found: float, exact: mpmath.mpf) -> bool:
    error = abs(exact - mpmath.mpf(found))
    return all(
        error <= abs(exact - mpmath.mpf(math.nextafter(found, side)))
        for side in (math.inf, -math.inf)
    )


def formula(scale: Fraction, k: int) -> tuple[mpmath.mpf, mpmath.mpf, mpmath.mpf]:
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    pmf = (1 - q) / (1 + q) * q ** abs(k)
    above = q ** (k + 1) / (1 + q) if k >= 0 else 1 - q ** (-k) / (1 + q)
    return pmf, 1 - above, above


@given(scales, integers)
@settings(max_examples=300)
def test_probabilities_are_correctly_rounded(scale, k):
    law = DiscreteLaplace(scale)
    k = k % (int(scale * 700) + 2) * (1 if k > 0 else -1)
    with mpmath.workdps(800):
        pmf, below, above = formula(scale, k)
        assert correctly_rounded(law.pmf(k), pmf)
        assert correctly_rounded(law.cdf(k), below)
        assert correctly_rounded(law.sf(k), above)


@pytest.mark.slow
@given(scales, st.floats(min_value=1e-300, max_value=1 - 2**-53))
@settings(max_examples=300)
def test_ppf_is_the_smallest_integer_that_reaches_p(scale, p):
    law = DiscreteLaplace(scale)
    k = law.ppf(p)
    with mpmath.workdps(800):
        assert formula(scale, k)[1] >= mpmath.mpf(p)
        assert formula(scale, k - 1)[1] < mpmath.mpf(p)


@pytest.mark.slow
@given(st.fractions(min_value=Fraction(1, 100), max_value=1000), st.floats(-1e4, 1e4))
def test_the_continuous_law_is_correctly_rounded(scale, x):
    law = Laplace(scale)
    with mpmath.workdps(6000 if abs(x) / float(scale) > 1000 else 600):
        t = mpmath.mpf(scale.numerator) / scale.denominator
        tail = mpmath.exp(-abs(mpmath.mpf(x)) / t) / 2
        assert correctly_rounded(law.pdf(x), tail / t)
        assert correctly_rounded(law.sf(x), tail if x >= 0 else 1 - tail)
        assert correctly_rounded(law.cdf(x), tail if x <= 0 else 1 - tail)


def test_moments_of_the_texts():
    for scale in (1, 2, 4, 7):
        assert Laplace(scale).mean_absolute() == scale
        assert Laplace(scale).std() == pytest.approx(math.sqrt(2) * scale, rel=1e-15)
        assert Laplace(scale).pdf(0) == 1 / (2 * scale)
    k = np.arange(-3000, 3001)
    for scale in ("1/2", 3, 50):
        law = DiscreteLaplace(scale)
        p = law.pmf(k)
        assert p.sum() == pytest.approx(1, rel=1e-12)
        assert (np.abs(k) * p).sum() == pytest.approx(law.mean_absolute(), rel=1e-10)
        assert (k * k * p).sum() == pytest.approx(law.std() ** 2, rel=1e-10)


def test_the_continuous_ppf():
    law = Laplace(1)
    assert law.ppf(0.5) == 0.0
    assert law.ppf(0.25) == -law.ppf(0.75) == pytest.approx(-math.log(2), rel=1e-15)


def test_odd_arguments():
    law = DiscreteLaplace(1)
    assert law.pmf(0.5) == 0.0
    assert law.cdf(0.5) == law.cdf(0)
    assert (law.cdf(-math.inf), law.cdf(math.inf), law.sf(math.inf), law.pmf(math.inf)) == (
        0.0,
        1.0,
        0.0,
        0.0,
    )
    assert math.isnan(law.cdf(math.nan))
    assert law.pmf(10**400) == 0.0
    assert law.cdf(np.array([[0, 1], [2, 3]])).shape == (2, 2)
    assert law.pmf([0, 1])[0] == law.pmf(0)
    assert law.cdf(np.longdouble(3)) == law.cdf(3)
    assert law.cdf(np.float64(math.inf)) == 1.0
    assert isinstance(law.ppf(0.9), int)
    assert law.ppf(np.array([0.1, 0.9])).dtype == float
    assert (
        DiscreteLaplace(2**80).isf(Fraction(1, 10))
        == DiscreteLaplace(2**80).ppf(Fraction(9, 10))
        > 2**80
    )
    assert (Laplace(1).pdf(-math.inf), Laplace(1).sf(math.inf), Laplace(1).cdf(math.inf)) == (
        0.0,
        0.0,
        1.0,
    )


SCALES = (Fraction(1, 3), Fraction(1), Fraction(2), Fraction(20), Fraction(1000))
PAIRS = [
    *[
        pytest.param(Laplace(scale), stats.laplace(scale=float(scale)), id=f"Laplace {scale}")
        for scale in SCALES
    ],
    *[
        pytest.param(
            DiscreteLaplace(scale), stats.dlaplace(1 / float(scale)), id=f"discrete {scale}"
        )
        for scale in SCALES
    ],
]
POINTS = [-math.inf, -41.0, -3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 40.0, math.inf, math.nan]
SHARES = [
    -math.inf,
    -0.1,
    0.0,
    1e-9,
    0.025,
    0.25,
    0.5,
    0.75,
    0.9,
    0.975,
    1.0,
    1.5,
    math.inf,
    math.nan,
]
ARGUMENTS = {
    "pdf": POINTS,
    "logpdf": POINTS,
    "pmf": POINTS,
    "logpmf": POINTS,
    "cdf": POINTS,
    "sf": POINTS,
    "ppf": SHARES,
    "isf": SHARES,
    "interval": [0.0, 0.5, 0.95, 1.0, math.nan],
}


def same(found, scipys) -> bool:
    """Equal up to the rounding of scipy, whose sf is 1 − cdf; in shape, too."""
    if isinstance(scipys, tuple):
        return len(found) == len(scipys) and all(map(same, found, scipys))
    return np.shape(found) == np.shape(scipys) and np.allclose(
        found, scipys, rtol=1e-12, atol=2e-15, equal_nan=True
    )


@pytest.mark.parametrize(("ours", "scipys"), PAIRS)
def test_each_method_answers_as_the_one_of_scipy(ours, scipys):
    """For numbers, lists, arrays of any shape, and numpy's scalars; positions and keywords."""
    named = {"Laplace": {"pmf", "logpmf"}, "DiscreteLaplace": {"pdf", "logpdf"}}[
        type(ours).__name__
    ]
    for name in ARGUMENTS.keys() - named:
        values = ARGUMENTS[name]
        mine, theirs = getattr(ours, name), getattr(scipys, name)
        array = np.array(values)
        forms = [values, tuple(values), array, array.reshape(-1, 1), array[:0]]
        with np.errstate(invalid="ignore", divide="ignore"):
            for form in [*values, *array, *forms, [0, 1], True, np.int64(1), np.array(0.5)]:
                assert same(mine(form), theirs(form)), (name, form)
        (word,) = (part for part in signature(mine).parameters)
        assert word in signature(theirs).parameters
    for name in ("mean", "var", "std", "median"):
        assert same(getattr(ours, name)(), getattr(scipys, name)()), name
    assert not [name for name in named if hasattr(ours, name)]


def test_control_a_wrong_scale_is_no_match():
    for ours, scipys in (
        (Laplace(2), stats.laplace(scale=2.0001)),
        (DiscreteLaplace(2), stats.dlaplace(0.50001)),
    ):
        for name in ("cdf", "sf"):
            assert not same(getattr(ours, name)(POINTS), getattr(scipys, name)(POINTS))
        assert not same(ours.std(), scipys.std())


@pytest.mark.parametrize("confidence", [-0.1, 1.5, 95, math.inf, [0.5, 95]])
def test_an_interval_needs_a_confidence_here_and_in_scipy(confidence):
    for law in (DiscreteLaplace(1), Laplace(1)):
        with pytest.raises(InvalidParameter, match="confidence must lie between 0 and 1"):
            law.interval(confidence)
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.dlaplace(1).interval(confidence)


@given(scales, integers)
def test_logarithms_and_variances_are_correctly_rounded(scale, k):
    k = k % (int(scale * 700) + 2) * (1 if k > 0 else -1)
    with mpmath.workdps(800):
        t = mpmath.mpf(scale.numerator) / scale.denominator
        q = mpmath.exp(-1 / t)
        assert correctly_rounded(
            DiscreteLaplace(scale).logpmf(k), mpmath.log((1 - q) / (1 + q)) - abs(k) / t
        )
        assert correctly_rounded(DiscreteLaplace(scale).var(), 2 * q / (1 - q) ** 2)
        assert correctly_rounded(Laplace(scale).logpdf(k), -abs(k) / t - mpmath.log(2 * t))
        assert correctly_rounded(Laplace(scale).var(), 2 * t**2)


def test_words_are_no_numbers():
    with pytest.raises(InvalidParameter, match="expected numbers"):
        DiscreteLaplace(1).pmf("0")


def test_laws_are_values():
    assert DiscreteLaplace("0.5") == DiscreteLaplace(Fraction(1, 2))
    assert hash(Laplace(1)) == hash(Laplace("1"))
    assert repr(DiscreteLaplace(2)) == "DiscreteLaplace(scale=Fraction(2, 1))"
    with pytest.raises(AttributeError):
        DiscreteLaplace(1).scale = Fraction(2)


def test_continuous_samples_lie_on_a_grid():
    draws = Laplace(3).sample(1000)
    assert np.all(draws * 2**20 == np.rint(draws * 2**20))
    assert isinstance(Laplace(3).sample(), float)
