"""What an audit looks at: every kind of output, both directions, many or one at a time.

Audits have a false-alarm rate of 10⁻⁹ each. Those of mechanisms that are private here number about
ten.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidParameter
from discreet.verify import audit


def geometric(size):
    return discreet.laplace_mechanism(np.zeros(size, np.int64), sensitivity=1, epsilon=1)


def noisy(x, size):
    return x + geometric(size)


def always(value):
    return lambda x: value if x else 0


def test_an_audit_of_exact_noise_comes_near_to_epsilon_and_stays_below():
    result = audit(noisy, 5, 6, epsilon=1, draws=1_000_000)
    assert 0.96 < result.bound < 1
    assert not result.violated
    assert result.verdict == "silent"
    assert result.draws == 1_000_000
    assert "at least 0.9" in repr(result)


def test_both_directions_count():
    for pair in ((0, 1), (1, 0)):
        assert audit(noisy, *pair, epsilon="0.5", draws=20_000).violated


def test_one_output_a_call_or_many_are_the_same_to_it():
    def one(x):
        return discreet.laplace_mechanism(x, sensitivity=1, epsilon=1)

    result = audit(one, 5, 6, epsilon=1, draws=5_000)
    assert 0.5 < result.bound < 1


@pytest.mark.parametrize(
    ("mechanism", "event"),
    [
        (always(math.nan), "NaN"),
        (always(math.inf), "infinite"),
        (always(None), "NoneType"),
        (always(1.0), "float"),
        (always("a text"), "int"),
        (always([0, 0]), "2 × int"),
        (always(10**30), "output"),
        (lambda x: -0.0 if x else 0.0, "−0.0"),
        (lambda x: 1 / (1 - x), "error of any kind"),
        (lambda x: 0.1 if x else 0.125, "output"),
        (lambda x: discreet.laplace_mechanism(0, sensitivity=1, epsilon=1) * (1 + x), ""),
    ],
)
def test_every_kind_of_output_can_give_a_mechanism_away(mechanism, event):
    result = audit(mechanism, 0, 1, epsilon=1, draws=2_000)
    assert result.violated or event == ""
    assert event in result.event
    assert result.event in repr(result)


def test_residues_tails_and_single_values_are_looked_at():
    even = lambda x, size: 2 * noisy(0, size) if x else noisy(0, size)  # noqa: E731
    result = audit(even, 0, 1, epsilon=1, draws=50_000)
    assert result.violated
    coarse = lambda x, size: noisy(0, size) / 8 + (x / 3 if x else 0)  # noqa: E731
    assert audit(coarse, 0, 1, epsilon=1, draws=50_000).violated


def test_a_nan_in_one_of_thousand_outputs_is_looked_at():
    def rare(x, size):
        return np.where(geometric(size) > 6, np.nan, 0.0) if x else np.zeros(size)

    result = audit(rare, 0, 1, epsilon=1, draws=500_000)
    assert result.violated
    assert result.event == "NaN"


def test_of_many_coordinates_those_that_tell_are_found():
    """One unit moves two of sixty counts by one each: at scale 1 they lose 2 together, and each
    alone 1.
    """

    def histogram(x, size):
        counts = np.zeros(60, np.int64)
        counts[[17, 41]] = (1, 0) if x else (0, 1)
        return counts + geometric(size * 60).reshape(size, 60)

    result = audit(histogram, 0, 1, epsilon=1, draws=50_000)
    assert 1.5 < result.bound < 2
    assert "2 of them" in result.event


def test_an_error_rate_makes_the_bound_smaller():
    bounds = [
        audit(noisy, 0, 1, epsilon=1, draws=50_000, error_rate=rate).bound
        for rate in ("0.01", "1e-100")
    ]
    assert bounds[0] > bounds[1] + 0.05


def test_a_result_is_plain_data():
    result = audit(noisy, 0, 1, epsilon="1/2", draws=1_000)
    assert result.to_dict()["epsilon"] == "1/2"
    assert set(result.to_dict()) >= {
        "epsilon",
        "bound",
        "draws",
        "event",
        "shares",
        "error_rate",
        "verdict",
    }
    assert result.epsilon == Fraction(1, 2)


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"draws": 10}, {"error_rate": 2}, {"batch": 0}])
def test_what_cannot_be_audited_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        audit(noisy, 0, 1, **{"epsilon": 1, "draws": 1_000, **wrong})


def test_a_mechanism_that_takes_size_must_give_so_many():
    def three(_x, size):
        return np.zeros(3 + 0 * size)

    with pytest.raises(InvalidParameter, match="must return"):
        audit(three, 0, 1, epsilon=1, draws=1_000)
