"""The naive twins that attacks are tried on first: what a careful programmer writes before reading the papers.

    float_noise   x + s·b·ln U, U a multiple of 2⁻⁵³, s a fair sign: Laplace noise as the textbooks write it, in floats
    four_uniforms the same law from four uniforms, once proposed as a defence [HB21]

An attack that does not break its twin would prove nothing by failing against discreet. The bits come from the one door
for randomness, so that the twins differ from discreet in nothing but their arithmetic.

What it does not do: protect anybody. Nothing outside the attacks may use it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.draw.coin import flips
from discreet.draw.entropy import keystream

Floats = NDArray[np.float64]


def secrets(count: int) -> NDArray[np.bool_]:
    """So many fair coins: the answers that an attacker tries to guess."""
    return flips(Fraction(1, 2), count)


def uniforms(count: int) -> Floats:
    """Multiples of 2⁻⁵³ in (0, 1], as every float generator makes them."""
    words = np.empty(count, np.int64)
    keystream().fill(words)
    return ((words.view(np.uint64) >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def float_noise(scale: float, count: int) -> list[float]:
    """Draws of s·b·ln U, by the logarithm that `math` has: the least bits are those of a textbook's code."""
    signs = secrets(count).tolist()
    pairs = zip(signs, uniforms(count).tolist(), strict=True)
    return [scale * math.log(uniform) if sign else -(scale * math.log(uniform)) for sign, uniform in pairs]


def many_floats(scale: float, count: int) -> Floats:
    """The same by numpy, where millions are wanted and the least bits do not matter."""
    return np.where(secrets(count), scale, -scale) * np.log(uniforms(count))


def four_uniforms(scale: float, count: int) -> Floats:
    """Laplace noise from four uniforms each, so that no logarithm can be inverted; the sum is still a float."""
    one, two, three, four = (uniforms(count) for _ in range(4))
    noise: Floats = scale * (np.log(one) * np.cos(math.pi * two) + np.log(three) * np.cos(math.pi * four))
    return noise
