"""Reconstruction: enough counts of random groups, each a little noisy, give every record back.

Each person has a secret bit. The attacker asks how many in a random half of the people have it, m times over, and
solves the m equations by least squares, rounding to bits [DN03]. With noise of a few people on each count (the naive
twin: scale 1 each, and no account of what m such answers cost together) nearly all bits come back. discreet gives m
answers for ε in all: each has the scale m/ε, and what comes back is little better than coins.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.parameters import exact_epsilon
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.verify.attacks.result import Attack, best_guess
from discreet.verify.attacks.twins import many_floats, secrets

Answerer: TypeAlias = Callable[[NDArray[np.int64], Fraction], NDArray[Any]]
"""Noisy counts, for ε in all."""

_PEOPLE = 100
_QUESTIONS = 8 * _PEOPLE
_NAIVE_SCALE = 1.0


def within_budget(counts: NDArray[np.int64], epsilon: Fraction) -> NDArray[Any]:
    """All counts for ε: one person is in each of them, so together they move by at most their number."""
    noisy: NDArray[Any] = laplace_mechanism(counts, sensitivity=counts.size, epsilon=epsilon)
    return noisy


def without_account(counts: NDArray[np.int64], _epsilon: Fraction) -> NDArray[Any]:
    """The naive twin: small noise on each count, whatever their number."""
    return counts + many_floats(_NAIVE_SCALE, counts.size)


def reconstruction(*, epsilon: Any = 1, rounds: int = 10, answers: Answerer = within_budget) -> Attack:
    """The bits of all people, solved from many counts of random halves."""
    exact = exact_epsilon(epsilon)
    naive, ours = (sum(_right(answerer, exact) for _ in range(rounds)) for answerer in (without_account, answers))
    trials = rounds * _PEOPLE
    return Attack(
        name="reconstruction",
        what=f"solves {_QUESTIONS} counts of random groups for the records of {_PEOPLE} people",
        trials=trials,
        naive=naive / trials,
        discreet=ours / trials,
        allowed=best_guess(exact),
    )


def _right(answerer: Answerer, epsilon: Fraction) -> int:
    """How many bits of one table come back."""
    bits = secrets(_PEOPLE)
    groups = secrets(_QUESTIONS * _PEOPLE).reshape(_QUESTIONS, _PEOPLE).astype(np.float64)
    counts = (groups @ bits).astype(np.int64)
    told = answerer(counts, epsilon).astype(np.float64)
    solved = np.linalg.solve(groups.T @ groups, groups.T @ told)  # the normal equations: small, and well conditioned
    return int(((solved > 0.5) == bits).sum())
