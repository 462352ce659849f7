"""Randomized response: everyone tells the truth with probability e^ε/(1+e^ε), and lies otherwise
[War65].

    estimate of the proportion = (mean − (1−p)) / (2p − 1)          p = e^ε/(1+e^ε), unbiased
    standard deviation         = 1 / (2·√n·sinh(ε/2))               whatever the bits are

Each person's answer is ε-differentially private on its own: nobody must be trusted with the true
bits. The cost is an error of √(n/2) times that of DLap(1/ε) added to the true count, for every ε
(`accuracy.randomized_response`).

The coins are exact (draw.coin). A column of real numbers is refused by its type. Data never raises
an error: in a list, whose entries have no common type, and in a column of integers, anything but 1
and True counts as 0, including 0.5, NaN and missing values. The number of people is public, and who
answered is not hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from discreet.calibrate import lemma
from discreet.calibrate.ball import ball, nearest
from discreet.draw.coin import flips, logistic
from discreet.draw.entropy import Entropy, keystream
from discreet.engines.array import column
from discreet.errors import InvalidParameter
from discreet.parameters import Epsilon, Number, exact_confidence, exact_epsilon


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Response:
    """The randomised bits, and the estimated proportion of ones."""

    bits: NDArray[np.bool_]
    epsilon: Fraction

    @property
    def count(self) -> int:
        """How many people answered."""
        return int(self.bits.size)

    @property
    def proportion(self) -> float:
        """The unbiased estimate; it may lie outside [0, 1]."""
        ones = int(np.count_nonzero(self.bits))

        def estimate() -> arb:
            growth = ball(self.epsilon).exp()
            return (ones * growth - (self.count - ones)) / (self.count * (growth - 1))

        return nearest(estimate)

    @property
    def std(self) -> float:
        """The standard deviation of the estimate, 1/(2·√n·sinh(ε/2)); it does not depend on the
        data.
        """
        return lemma.randomized_response(n=self.count, epsilon=self.epsilon)

    def accuracy(self, confidence: Number = "0.95") -> float:
        """A bound on the distance from the true proportion, with at least this confidence.

        It is the smaller of Hoeffding's and Bernstein's bounds, so it holds for every n and all
        bits; it is wider than a normal approximation (by a factor of 1.4 at 95 % and small ε). It
        does not include sampling error.
        """
        doubt = 1 - exact_confidence(confidence)

        def hoeffding() -> arb:
            return ((2 / ball(doubt)).log() / (2 * self.count)).sqrt() / (
                ball(self.epsilon) / 2
            ).tanh()

        def bernstein() -> arb:
            # s² = 2·l·(n·p(1−p) + p·s/3) with l = ln(2/doubt): one person is off by at most p
            logarithm = (2 / ball(doubt)).log()
            truth = 1 / (1 + (-ball(self.epsilon)).exp())
            linear = truth * logarithm / 3
            variance = self.count * truth * (1 - truth)
            distance = linear + (linear**2 + 2 * logarithm * variance).sqrt()
            return distance / (self.count * (ball(self.epsilon) / 2).tanh())

        return min(nearest(hoeffding), nearest(bernstein))

    def interval(self, confidence: Number = "0.95") -> tuple[float, float]:
        """The confidence interval of the true proportion, with at least this confidence."""
        distance = self.accuracy(confidence)
        return self.proportion - distance, self.proportion + distance

    def __repr__(self) -> str:
        return (
            f"Response(proportion={self.proportion:.4g}, std={self.std:.2g}, "
            f"count={self.count}, epsilon={self.epsilon})"
        )


def randomized_response(bits: ArrayLike | Sequence[object], *, epsilon: Epsilon) -> Response:
    """Flip each person's bit by an exact coin: it stays as it is with probability e^ε/(1+e^ε).

    Parameters
    ----------
    bits : array_like
        A 0 or 1 for each person. A column of real numbers is refused; other entries of a list count
        as 0.
    epsilon : number or text
        The privacy parameter of each person: the smaller, the more bits are flipped.

    Returns
    -------
    Response
        The noisy `bits`, and the estimated `proportion` of ones with its interval.

    Examples
    --------
    >>> response = randomized_response([1, 0, 1, 1], epsilon=2)
    >>> response.count, response.bits.dtype.name, round(response.std, 3)
    (4, 'bool', 0.213)

    See docs/index.md.

    """
    return _respond(bits, exact_epsilon(epsilon), keystream())


def _respond(bits: Any, epsilon: Fraction, entropy: Entropy) -> Response:
    true_bits = _ones(bits)
    randomised = true_bits == flips(logistic(epsilon), true_bits.size, entropy=entropy)
    randomised.flags.writeable = False
    return Response(bits=randomised, epsilon=epsilon)


def _ones(bits: Any) -> NDArray[np.bool_]:
    """Which entries are 1. The type of a column is refused, never an entry."""
    data = column(bits)
    if len(data) == 0:
        raise InvalidParameter("bits must have at least one entry, got none")
    if data.typed and not data.whole:
        raise InvalidParameter(
            "bits must be truth values or whole numbers, 0 or 1, got a column of real numbers;"
            " write a condition such as x >= 0.5, or take the proportion, whose numbers may lie"
            " between 0 and 1"
        )
    return np.asarray(data.values == 1, np.bool_)
