"""The ends of the intervals of a release at any confidence: functions whose first arguments a
release stores.

A release has `partial(function, stored…)`, so that it contains only public parameters and noisy
numbers, and can be pickled, copied and written as JSON (`stored`). The last arguments are the
confidence, and whether the intervals of several numbers must hold together; `ends` of an estimate
(`release.design`) takes the confidence alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.calibrate import lemma
from discreet.formats import as_finite, as_float
from discreet.release.mechanism import NoisySum
from discreet.release.statistics.spread import half_width, radius

Ends: TypeAlias = tuple[Any, Any]
Spread: TypeAlias = Callable[[Fraction, bool], Ends]
"""The ends of the interval at a confidence, for each number or simultaneously."""

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "−": operator.sub,
    "×": operator.mul,
    "/": operator.truediv,
}


def constant(low: Any, high: Any, _confidence: Fraction) -> Ends:
    """Ends that hold with certainty, for an estimate."""
    return low, high


def single(ends: Callable[[Fraction], Ends], confidence: Fraction, _simultaneous: bool) -> Ends:
    """The ends of the only number of an estimate."""
    low, high = ends(confidence)
    return plain(low[0]), plain(high[0])


def vector(ends: Callable[[Fraction], Ends], confidence: Fraction, _simultaneous: bool) -> Ends:
    """The ends of all numbers of an estimate."""
    return ends(confidence)


def counted(
    noisy: NDArray[np.int64],
    scale: Fraction,
    together: int,
    confidence: Fraction,
    simultaneous: bool,
) -> Ends:
    """The ends of counts with noise of one scale; `together` of them may have to hold together."""
    reach = half_width(scale, confidence, d=together if simultaneous else 1)
    return noisy - reach, noisy + reach


def summed(noisy: NoisySum, unit: Fraction, confidence: Fraction, _simultaneous: bool) -> Ends:
    """The ends of a noisy total, in steps of `unit`."""
    reach = radius(noisy, confidence)
    return as_float((noisy.value - reach) * unit), as_float((noisy.value + reach) * unit)


def by_algorithm(
    value: Fraction, scale: Fraction, step: Fraction, confidence: Fraction, _simultaneous: bool
) -> Ends:
    """The ends of an answer by Algorithm 1 that was first rounded down to a step."""
    reach = (lemma.half_width(scale, confidence) + 1) * step
    return as_float(value - reach), as_float(value + reach)


def widened(spread: Spread, by: float, confidence: Fraction, simultaneous: bool) -> Ends:
    """The ends of a number whose values were rounded, which moves it by so much at most."""
    low, high = spread(confidence, simultaneous)
    return low - by, high + by


def mapped(
    spread: Spread, sign: str, number: Any, confidence: Fraction, simultaneous: bool
) -> Ends:
    """The ends of a number after arithmetic with a number without error."""
    low, high = (OPERATIONS[sign](end, number) for end in spread(confidence, simultaneous))
    return (high, low) if sign in ("×", "/") and number < 0 else (low, high)


def combined(
    first: Spread, second: Spread, sign: str, confidence: Fraction, simultaneous: bool
) -> Ends:
    """The ends after arithmetic between two numbers, each with half the error probability."""
    level = (1 + confidence) / 2
    ends = [
        OPERATIONS[sign](a, b)
        for a in first(level, simultaneous)
        for b in second(level, simultaneous)
    ]
    return (
        (np.minimum.reduce(ends), np.maximum.reduce(ends))
        if np.ndim(ends[0])
        else (min(ends), max(ends))
    )


def divided(above: Spread, below: Spread, confidence: Fraction, simultaneous: bool) -> Ends:
    """The ends of a ratio; infinite if the denominator may be 0."""
    level = (1 + confidence) / 2
    bottom = below(level, simultaneous)
    if bottom[0] <= 0 <= bottom[1]:
        return -math.inf, math.inf
    ends = [a / b for a in above(level, simultaneous) for b in bottom]
    return min(ends), max(ends)


def in_order(spreads: Sequence[Spread], confidence: Fraction, simultaneous: bool) -> Ends:
    """The ends of several numbers whose exact values ascend: each interval contains that of its own
    number.

    Lower ends fall to those after them, and upper ends rise to those before them. Sorting the ends
    would exchange them between numbers: then one interval that misses could make others miss.
    """
    level = 1 - (1 - confidence) / len(spreads) if simultaneous else confidence
    lows, highs = zip(*(spread(level, False) for spread in spreads), strict=True)
    return np.minimum.accumulate(lows[::-1])[::-1], np.maximum.accumulate(highs)


def plain(number: Any) -> Any:
    """A number of numpy as a number of Python."""
    return as_finite(number.item() if hasattr(number, "item") else number)
