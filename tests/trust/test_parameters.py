"""TRUST 9: a parameter that cannot be used is refused by name, and nothing is drawn."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet import DiscreteLaplace, InvalidParameter, Laplace, laplace_mechanism
from discreet.draw import entropy
from scripted import Odd

BAD = [
    float("nan"),
    float("inf"),
    float("-inf"),
    0,
    0.0,
    -1,
    -0.1,
    True,
    False,
    np.True_,
    "0.1x",
    "",
    " 0.1",
    "0,1",
    "1_000",
    "٠.١",
    "nan",
    "inf",
    "1/0",
    "0/5",
    "-1/3",
    "0x10",
    Decimal("NaN"),
    Decimal("Infinity"),
    "9" * 5000,
    "0." + "0" * 5000 + "1",
    10**5000,
    Fraction(1, 10**5000),
    None,
    [0.1],
    {"epsilon": 1},
    b"0.1",
    1j,
    Odd(),
]
BAD_EPSILON = [*BAD, "1e400", 1e300, 5e-324, "5e-324", "1e-10", 1_000_001, "1000000.1"]


def name(bad: object) -> str:
    try:
        return repr(bad)[:20]
    except ValueError:  # an integer too long to print
        return "5000 digits"


@pytest.fixture
def no_draws(monkeypatch):
    """Any use of randomness fails the test."""
    monkeypatch.setattr(entropy.Keystream, "more", lambda _self: pytest.fail("noise was drawn"))
    monkeypatch.setattr(
        entropy.Keystream, "fill", lambda _self, _words: pytest.fail("noise was drawn")
    )


@pytest.mark.usefixtures("no_draws")
@pytest.mark.parametrize(
    "answer", [5, 5.0, [1, 2], np.arange(3)], ids=["int", "float", "list", "array"]
)
@pytest.mark.parametrize("bad", BAD_EPSILON, ids=name)
def test_a_bad_epsilon_is_refused(bad, answer):
    with pytest.raises(InvalidParameter, match="epsilon") as caught:
        laplace_mechanism(answer, sensitivity=1, epsilon=bad)
    assert len(str(caught.value)) < 200
    assert isinstance(caught.value, ValueError | discreet.DiscreetError)


@pytest.mark.usefixtures("no_draws")
@pytest.mark.parametrize("bad", BAD, ids=name)
def test_a_bad_sensitivity_or_scale_is_refused(bad):
    with pytest.raises(InvalidParameter, match="sensitivity"):
        laplace_mechanism(5, sensitivity=bad, epsilon=1)
    for law in (Laplace, DiscreteLaplace):
        with pytest.raises(InvalidParameter, match="scale"):
            law(bad)


def test_privacy_parameters_have_no_defaults_and_no_positions():
    for arguments, keywords in (
        ((5,), {}),
        ((5, 1, 1), {}),
        ((5,), {"sensitivity": 1}),
        ((5,), {"epsilon": 1}),
    ):
        with pytest.raises(TypeError):
            laplace_mechanism(*arguments, **keywords)


def test_no_scale_is_zero():
    """Floats would underflow here: 5·10⁻³²⁴ / 10 is 0.0 in doubles, and there would be no noise."""
    found = {laplace_mechanism(0.0, sensitivity=5e-324, epsilon="0.001") for _ in range(200)}
    assert len(found) > 50
