"""Probabilities to the last bit, against mpmath."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import DiscreteLaplace, InvalidParameter, Laplace

scales = st.fractions(min_value=Fraction(1, 60), max_value=10**6, max_denominator=1000)
integers = st.integers(-(10**7), 10**7)


def correctly_rounded(found: float, exact: mpmath.mpf) -> bool:
    error = abs(exact - mpmath.mpf(found))
    return all(error <= abs(exact - mpmath.mpf(math.nextafter(found, side))) for side in (math.inf, -math.inf))


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
def test_the_quantile_is_the_smallest_integer_that_reaches_p(scale, p):
    law = DiscreteLaplace(scale)
    k = law.quantile(p)
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
        assert Laplace(scale).mean_absolute == scale
        assert Laplace(scale).std == pytest.approx(math.sqrt(2) * scale, rel=1e-15)
        assert Laplace(scale).pdf(0) == 1 / (2 * scale)
    k = np.arange(-3000, 3001)
    for scale in ("1/2", 3, 50):
        law = DiscreteLaplace(scale)
        p = law.pmf(k)
        assert p.sum() == pytest.approx(1, rel=1e-12)
        assert (np.abs(k) * p).sum() == pytest.approx(law.mean_absolute, rel=1e-10)
        assert (k * k * p).sum() == pytest.approx(law.std**2, rel=1e-10)


def test_the_continuous_quantile():
    law = Laplace(1)
    assert law.quantile(0.5) == 0.0
    assert law.quantile(0.25) == -law.quantile(0.75) == pytest.approx(-math.log(2), rel=1e-15)


def test_odd_arguments():
    law = DiscreteLaplace(1)
    assert law.pmf(0.5) == 0.0
    assert law.cdf(0.5) == law.cdf(0)
    assert (law.cdf(-math.inf), law.cdf(math.inf), law.sf(math.inf), law.pmf(math.inf)) == (0.0, 1.0, 0.0, 0.0)
    assert math.isnan(law.cdf(math.nan))
    assert law.pmf(10**400) == 0.0
    assert law.cdf(np.array([[0, 1], [2, 3]])).shape == (2, 2)
    assert law.pmf([0, 1])[0] == law.pmf(0)
    assert law.quantile(np.array([0.1, 0.9])).dtype.kind == "i"
    assert (Laplace(1).pdf(-math.inf), Laplace(1).sf(math.inf), Laplace(1).cdf(math.inf)) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.5])
def test_a_quantile_needs_a_probability(p):
    for law in (DiscreteLaplace(1), Laplace(1)):
        with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
            law.quantile(p)


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
