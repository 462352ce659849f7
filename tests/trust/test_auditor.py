"""TRUST 35: the auditor on correct mechanisms stays silent, and finds the known-bad ones.

False alarms: 10⁻⁹ for each audit of a correct mechanism (some thirty here). The smallest error that
is caught here: a scale 5 % too small in a million draws, a sign of 51 : 49 in ten million.
"""

from fractions import Fraction

import numpy as np
import pytest

from discreet import DiscreteLaplace
from discreet.draw.vector import fill
from discreet.verify import audit, controls
from discreet.verify.mechanisms import subjects
from discreet.verify.report import RELATIONS

CONTROLS = {control.name: control for control in controls()}
SUBJECTS = {f"{one.statistic} {one.neighbors}": one for one in subjects()}
STATISTICS = (
    "count sum mean variance std median quantile min max proportion histogram randomized_response"
)


def drawn(scale, size):
    out = np.empty(size, np.int64)
    fill(out, Fraction(scale))
    return out


@pytest.mark.parametrize("name", CONTROLS)
def test_a_known_bad_mechanism_is_caught(name):
    control = CONTROLS[name]
    found = audit(
        control.mechanism,
        control.x,
        control.x_neighbor,
        epsilon=control.epsilon,
        draws=control.draws,
    )
    assert found.violated, repr(found)


def test_all_that_must_be_caught_is_there():
    wanted = [
        "floats",
        "5 %",
        "sign",
        "clamped after",
        "private n",
        "NaN",
        "raises",
        "half its noise",
        "part forgotten",
        "set forgotten",
    ]
    assert all(any(word in name for name in CONTROLS) for word in wanted)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_known_bad_mechanism_on_the_same_data_twice_is_silent(name):
    """The auditor reacts to the difference, not to the mechanism."""
    control = CONTROLS[name]
    assert (
        audit(control.mechanism, control.x, control.x, epsilon=control.epsilon, draws=20_000).bound
        < 0.2
    )


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_statistic_is_silent_and_shows_what_it_must(name):
    subject = SUBJECTS[name]
    fewer = 50_000 if subject.least else max(subject.draws // 10, 500)
    found = audit(
        subject.mechanism,
        subject.x,
        subject.x_neighbor,
        epsilon=1,
        draws=fewer,
        batch=subject.batch,
    )
    assert not found.violated, repr(found)
    assert found.bound >= subject.least * 0.9  # nine standard deviations below what is expected


def test_every_statistic_is_audited():
    audited = {one.statistic for one in SUBJECTS.values()}
    assert {
        *STATISTICS.split(),
        "laplace_mechanism",
        "joint question",
        "report",
        "profile",
    } <= audited
    assert {one.neighbors for one in SUBJECTS.values()} == set(RELATIONS)


@pytest.mark.parametrize("epsilon", ["1/10", "1/2", 1, 2])
def test_the_auditor_is_silent_on_exact_noise_and_alarmed_by_seven_percent_less(epsilon):
    exact = Fraction(epsilon)
    draws = 4_000_000
    right = audit(lambda x, size: x + drawn(1 / exact, size), 0, 1, epsilon=exact, draws=draws)
    assert exact * Fraction(8, 10) < right.bound <= exact
    if exact > Fraction(1, 5):  # at a tenth, seven percent take more draws
        wrong = audit(
            lambda x, size: x + drawn(Fraction(100, 107) / exact, size),
            0,
            1,
            epsilon=exact,
            draws=draws,
        )
        assert wrong.violated, repr(wrong)


def test_pairs_that_are_one_apart_at_any_height_are_alike():
    law = DiscreteLaplace(1)
    for at in (0, -1, 2**40):
        assert (
            0.9
            < audit(
                lambda x, size: x + law.sample(size), at, at + 1, epsilon=1, draws=200_000
            ).bound
            <= 1
        )
