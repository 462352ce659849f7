"""Mechanisms that break their claim, each in a way that was seen in the field: an audit that misses one is no audit.

Each is right but for one line. They take `size`, so that millions of draws are cheap, and draw from our own entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.draw.entropy import keystream
from discreet.draw.vector import fill

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A mechanism that is not what it claims, and neighbours on which it shows."""

    name: str
    """What is wrong."""
    mechanism: Callable[..., Any]
    x: Any
    x_neighbor: Any
    epsilon: Fraction = Fraction(1)
    draws: int = 100_000
    """So many show it."""


def controls() -> list[Control]:
    """All of them."""
    five = [5] * 20
    return [
        Control(name="textbook noise on floats", mechanism=_float_laplace, x=0.0, x_neighbor=1.0),
        Control(name="scale 5 % too small", mechanism=_small_scale, x=0, x_neighbor=1, draws=1_000_000),
        Control(name="sign 51 : 49", mechanism=_biased_sign, x=0, x_neighbor=1, draws=10_000_000),
        Control(name="clamped after the sum", mechanism=_late_clamp, x=five, x_neighbor=[*five[1:], 1000]),
        Control(name="private n used as it is", mechanism=_raw_count, x=[1] * 9, x_neighbor=[1] * 10),
        Control(name="NaN comes through", mechanism=_float_mean, x=[1.0, 2.0], x_neighbor=[1.0, float("nan")]),
        Control(name="a row raises", mechanism=_raising, x=[1, 2], x_neighbor=[1, 0], draws=1_000),
        Control(
            name="a group without rows is left out",
            mechanism=_observed_groups,
            x=[0, 1],
            x_neighbor=[0, 0],
            draws=1_000,
        ),
    ]


def _noise(scale: Fraction, size: int) -> Integers:
    out = np.empty(size, np.int64)
    fill(out, scale)
    return out


def _words(size: int) -> Integers:
    out = np.empty(size, np.int64)
    keystream().fill(out)
    return out


def _float_laplace(x: float, size: int) -> NDArray[np.float64]:
    """x − sgn(u)·ln(1 − 2|u|), u uniform in floats: the inverse of the distribution function [Mir12]."""
    uniform = ((_words(size) >> 11) & (2**53 - 1)) * 2.0**-53 - 0.5
    with np.errstate(divide="ignore"):
        noisy: NDArray[np.float64] = x - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return noisy


def _small_scale(x: int, size: int) -> Integers:
    return x + _noise(Fraction(95, 100), size)


def _biased_sign(x: int, size: int) -> Integers:
    """The sign is plus with 51 %."""
    noise = _noise(Fraction(1), size)
    plus = _words(size).view(np.uint64) < np.uint64(51 * 2**64 // 100)
    return x + np.where(plus, np.abs(noise), -np.abs(noise))


def _late_clamp(x: list[int], size: int) -> Integers:
    """Values are declared to lie in [0, 10]; the total is clamped to [0, 10·n]."""
    return min(max(sum(x), 0), 10 * len(x)) + _noise(Fraction(10), size)


def _raw_count(x: list[int], size: int) -> NDArray[np.float64]:
    """The mean of values in [0, 1] under add-remove: a noisy sum over the true n."""
    return (sum(x) + _noise(Fraction(1), size)) / len(x)


def _float_mean(x: list[float], size: int) -> NDArray[np.float64]:
    """Clamped to [0, 10], which lets NaN through."""
    return float(np.clip(np.array(x), 0, 10).sum()) + _noise(Fraction(10), size).astype(np.float64)


def _raising(x: list[int], size: int) -> Integers:
    """A quotient of rows."""
    return sum(10 // value for value in x) + _noise(Fraction(10), size)


def _observed_groups(x: list[int], size: int) -> Integers:
    """A count for each group that the data has."""
    counts = np.unique(np.array(x), return_counts=True)[1]
    return counts + _noise(Fraction(2), size * counts.size).reshape(size, counts.size)
