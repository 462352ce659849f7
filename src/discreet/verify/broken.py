"""Mechanisms that violate their claim, each in a way that was seen in practice: an audit must catch all of them.

Each is right except for one line, or one parameter of the code that releases. They take `size`, so that millions of
draws are cheap, and use our own entropy. Textbook noise on floats is also the naive mechanism that attacks break.
Nothing here protects anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.draw.coin import flips
from discreet.draw.entropy import keystream
from discreet.draw.vector import fill
from discreet.verify.subjects import joint_question, small_report

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A mechanism that violates its claim, and two neighbours that show it."""

    name: str
    """What is wrong."""
    mechanism: Callable[..., Any]
    x: Any
    x_neighbor: Any
    epsilon: Fraction = Fraction(1)
    draws: int = 100_000
    """A sufficient number of draws."""


def controls() -> list[Control]:
    """The broken mechanisms that an audit must catch.

    Examples
    --------
    >>> raises = next(control for control in controls() if control.name == "a row raises")
    >>> raises.draws
    1000

    """
    five, rows, whole = [5] * 20, [(0, 0)] * 4, Fraction(1)
    cells = [(0, 0), (0, 1), (1, 0)]
    wide = Fraction(10)  # values are declared to lie in [0, 10]
    # name, mechanism, a data set, its neighbour, draws
    table: list[tuple[str, Callable[..., Any], Any, Any, int]] = [
        ("textbook noise on floats", _textbook, 0.0, 1.0, 100_000),
        ("scale 5 % too small", _noisy(lambda x: x, Fraction(95, 100)), 0, 1, 1_000_000),
        ("sign 51 : 49", _biased_sign, 0, 1, 10_000_000),
        ("clamped after the sum", _noisy(_late_clamp, wide), five, [*five[1:], 1000], 100_000),
        ("private n used as it is", _raw_count, [1] * 9, [1] * 10, 100_000),
        ("NaN comes through", _noisy(_float_sum, wide), [1.0, 2.0], [1.0, math.nan], 100_000),
        ("a row raises", _noisy(lambda x: sum(10 // value for value in x), wide), [1, 2], [1, 0], 1_000),
        ("a group without rows is left out", _observed_groups, [0, 1], [0, 0], 1_000),
        ("a joint question at half its noise", _joint(epsilon=Fraction(2)), rows, [*rows, (10, 10)], 20_000),
        ("a joint question, a part forgotten", _joint(parts=(whole, whole)), rows, [*rows, (10, 10)], 20_000),
        ("a report, a set forgotten", _report(parts=(whole, whole)), cells, [*cells, (1, 1)], 20_000),
    ]
    return [
        Control(name=name, mechanism=mechanism, x=x, x_neighbor=other, draws=draws)
        for name, mechanism, x, other, draws in table
    ]


def secrets(count: int) -> NDArray[np.bool_]:
    """Fair coins: the bits that an attacker tries to guess."""
    return flips(Fraction(1, 2), count)


def uniforms(count: int) -> Floats:
    """Multiples of 2⁻⁵³ in (0, 1], as every generator of floats returns them."""
    words = np.empty(count, np.int64)
    keystream().fill(words)
    return ((words.view(np.uint64) >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def float_noise(scale: float, count: int) -> list[float]:
    """Draws of s·b·ln U, with a fair sign s, by `math.log`: the least bits are those of a textbook [Mir12]."""
    signs = np.where(secrets(count), scale, -scale).tolist()
    return [sign * math.log(uniform) for sign, uniform in zip(signs, uniforms(count).tolist(), strict=True)]


def many_floats(scale: float, count: int) -> Floats:
    """Draws from the same distribution by numpy, where millions are needed."""
    return np.where(secrets(count), scale, -scale) * np.log(uniforms(count))


def _noise(scale: Fraction, size: int) -> NDArray[np.int64]:
    out = np.empty(size, np.int64)
    fill(out, scale)
    return out


def _noisy(answer: Callable[[Any], Any], scale: Fraction) -> Callable[..., Any]:
    return lambda x, size: answer(x) + _noise(scale, size)


def _textbook(x: float, size: int) -> Floats:
    return x + many_floats(1.0, size)


def _biased_sign(x: int, size: int) -> NDArray[np.int64]:
    noise = np.abs(_noise(Fraction(1), size))
    return x + np.where(uniforms(size) < 0.51, noise, -noise)


def _late_clamp(x: list[int]) -> int:
    return min(max(sum(x), 0), 10 * len(x))


def _raw_count(x: list[int], size: int) -> Floats:
    """The mean of values in [0, 1] under add-remove: a noisy sum over the true n."""
    return (sum(x) + _noise(Fraction(1), size)) / len(x)


def _float_sum(x: list[float]) -> float:
    return float(np.clip(np.array(x), 0, 10).sum())  # which lets NaN through


_joint, _report = partial(joint_question, "add-remove"), partial(small_report, "add-remove")
"""The number of rows and the product of two columns, and two sets of a report, by the code that releases. With parts
that add up to more than ε, each has the noise of a part that costs everything."""


def _observed_groups(x: list[int], size: int) -> NDArray[np.int64]:
    """A count for each group that occurs in the data."""
    counts = np.unique(np.array(x), return_counts=True)[1]
    return counts + _noise(Fraction(2), size * counts.size).reshape(size, counts.size)
