"""How large the error will be, before anything is spent.

    the noise     expected_error, root_mean_square_error, tail, expected_l1, max_tail, expected_max,
                  half_width (Lemma 1.4 of the texts, and the exact discrete form),
                  randomized_response
    the plan      people_needed, epsilon_needed: what a target error requires;
                  split: one ε over several statistics

>>> from discreet.calibrate import accuracy
>>> accuracy.expected_error(20)
20.0
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from flint import arb, fmpz

from discreet.calibrate.ball import ball, lower_bound, upper_bound
from discreet.calibrate.lemma import (
    expected_error,
    expected_l1,
    expected_max,
    half_width,
    max_tail,
    randomized_response,
    root_mean_square_error,
    tail,
)
from discreet.calibrate.planning import epsilon_needed, people_needed
from discreet.errors import InvalidParameter
from discreet.parameters import UNIT, Epsilon, Number, exact, exact_count, exact_epsilon, quote

__all__ = [
    "epsilon_needed",
    "expected_error",
    "expected_l1",
    "expected_max",
    "half_width",
    "max_tail",
    "people_needed",
    "randomized_response",
    "root_mean_square_error",
    "split",
    "tail",
]

_BITS = 256
"""Precision of the roots that shares are proportional to."""


def split(
    epsilon: Epsilon,
    *,
    parts: int | None = None,
    sensitivities: Sequence[Number] | None = None,
    errors: Sequence[Number] | None = None,
    weights: Sequence[Number] | None = None,
    minimize: Literal["variance", "absolute"] = "variance",
) -> tuple[Fraction, ...]:
    """Split ε over several statistics. A joint release, where there is one, is better than a split.

    Parameters
    ----------
    epsilon : number or text
        The total.
    parts : int, optional
        The number of equal shares, instead of sensitivities.
    sensitivities : sequence of numbers, optional
        Δᵢ of each statistic.
    errors : sequence of numbers, optional
        Target errors eᵢ: shares are proportional to Δᵢ/eᵢ, so that all errors are the same multiple
        of their targets.
    weights : sequence of numbers, optional
        wᵢ, 1 by default, of the sum that is minimised.
    minimize : {"variance", "absolute"}
        Σ wᵢ·variance, with shares proportional to (wᵢΔᵢ²)^(1/3), or Σ wᵢ·E|error|, with
        (wᵢΔᵢ)^(1/2).

    Returns
    -------
    tuple of Fraction
        Multiples of 10⁻⁹, whose exact sum is at most ε.

    Examples
    --------
    >>> split(1, sensitivities=[1, 27], minimize="variance")
    (Fraction(1, 10), Fraction(9, 10))

    """
    budget = exact_epsilon(epsilon)
    bounds = _proportions(parts, sensitivities, errors, weights, minimize)
    whole = sum((upper for _, upper in bounds), Fraction(0))
    # rounds down: the sum is at most ε
    shares = tuple(budget * lower / whole // UNIT * UNIT for lower, _ in bounds)
    if not min(shares):
        raise InvalidParameter(
            f"epsilon={epsilon} is too small to split: a share falls below 0.000000001"
        )
    return shares


def _proportions(
    parts: object,
    sensitivities: Sequence[Number] | None,
    errors: Sequence[Number] | None,
    weights: Sequence[Number] | None,
    minimize: str,
) -> list[tuple[Fraction, Fraction]]:
    """A lower and an upper bound of the number that each share is proportional to."""
    if (parts is None) == (sensitivities is None) or (errors is not None and weights is not None):
        raise InvalidParameter(
            "split takes either parts, or sensitivities with at most one of errors and weights"
        )
    if sensitivities is None:
        if errors is not None or weights is not None:
            raise InvalidParameter(
                "errors and weights need sensitivities; parts gives equal shares"
            )
        return [(Fraction(1), Fraction(1))] * _parts(parts)
    factors = (
        errors
        if errors is not None
        else weights
        if weights is not None
        else [1] * len(sensitivities)
    )
    if not sensitivities or len(factors) != len(sensitivities):
        raise InvalidParameter(
            f"split needs {len(sensitivities)} errors or weights, as many as sensitivities, got"
            f" {len(factors)}"
        )
    deltas = [exact("sensitivities", value) for value in sensitivities]
    if errors is not None:
        ratios = [
            delta / exact("errors", value) for delta, value in zip(deltas, errors, strict=True)
        ]
        return [(ratio, ratio) for ratio in ratios]
    pairs = [(delta, exact("weights", value)) for delta, value in zip(deltas, factors, strict=True)]
    match minimize:
        case "variance":
            powers, degree = [weight * delta**2 for delta, weight in pairs], 3
        case "absolute":
            powers, degree = [weight * delta for delta, weight in pairs], 2
        case _:
            raise InvalidParameter(
                f"minimize must be 'variance' or 'absolute', got {quote(minimize)}"
            )
    return [_root(power / powers[0], degree) for power in powers]  # equal powers stay equal


def _parts(parts: object) -> int:
    several = exact_count("parts", parts)
    if several > 10**6:  # the shares are a tuple in memory
        raise InvalidParameter(f"parts must be at most 1000000, got {several}")
    return several


def _root(number: Fraction, degree: int) -> tuple[Fraction, Fraction]:
    """Bounds of the degree-th root from below and from above, equal where the root is rational."""
    exact_root = Fraction(
        int(fmpz(number.numerator).root(degree)), int(fmpz(number.denominator).root(degree))
    )
    if exact_root**degree == number:
        return exact_root, exact_root

    def root() -> arb:
        return ball(number).root(degree)

    return lower_bound(root, _BITS), upper_bound(root, _BITS)
