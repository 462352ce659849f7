"""How large the error will be, before anything is spent.

    the noise     expected_error, root_mean_square, tail, expected_l1, max_tail, expected_max, half_width
                  (Lemma 1.4 of the texts, and the exact discrete form), randomized_response
    the plan      people_needed, epsilon_needed: what a target error requires;  split: one ε over several statistics

>>> from discreet.calibrate import accuracy
>>> accuracy.expected_error(20)
20.0
"""

from discreet.calibrate.lemma import (
    expected_error,
    expected_l1,
    expected_max,
    half_width,
    max_tail,
    randomized_response,
    root_mean_square,
    tail,
)
from discreet.calibrate.planning import epsilon_needed, people_needed
from discreet.calibrate.shares import split

__all__ = [
    "epsilon_needed",
    "expected_error",
    "expected_l1",
    "expected_max",
    "half_width",
    "max_tail",
    "people_needed",
    "randomized_response",
    "root_mean_square",
    "split",
    "tail",
]
