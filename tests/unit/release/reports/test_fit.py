"""Radii that are kept from ε to ε: never too small, and at most 10⁻⁴ too large."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.release.reports.axes import Axis
from discreet.release.reports.fit import COLD, WARM, Combined, key_of

AXES = (Axis((1, 4), ((0,) * 4,)), Axis((1, 7), ((0,) * 7,)))
MEASURED = (((1, 0), Fraction(1, 2)), ((0, 1), Fraction(1, 4)), ((1, 1), Fraction(1, 4)))
QUESTION = [(1, np.eye(4)[0]), (0, np.ones(1))]


def combined():
    return Combined(axes=AXES, measured=MEASURED, known=False)


@pytest.mark.parametrize(
    ("ratios", "steps"),
    [
        ((3, 3, 3), 0),
        ((3, 3.0002, 3.0001), 0),
        ((3, 3.01, 3.1), WARM),
        ((3, 4, 3), COLD),
        ((1e-9, 1e9, 1), COLD),
    ],
)
def test_a_kept_radius_is_never_too_small_and_hardly_too_large(ratios, steps):
    kept, key, scales = combined(), key_of(QUESTION), np.array([20.0, 40.0, 40.0])
    kept.law(QUESTION, key)
    kept.radii(key, scales, 0.95)
    other = scales * ratios
    assert kept.begun(key, other, 0.95)[0] == steps
    assert kept.begun(key, other, 0.9)[0] == COLD
    fresh = combined()
    fresh.law(QUESTION, key)
    exact, found = fresh.radii(key, other, 0.95), kept.radii(key, other, 0.95)
    assert (found >= exact * (1 - 2e-6)).all()
    assert (found <= exact * (1 + 1.02e-4)).all()
