"""Two attacks on the bits of a float, which name the true value for certain from one single release.

Least bits [Mir12]: x + s·b·ln U has holes. For an output y and a guess h try the few U = k·2⁻⁵³ near e^(−|y−h|/b): if
none gives y exactly, h is impossible. The true value is named in some 60 % of releases, at any ε.

Precision [HDHSH22]: the sum of two floats has the last place of the larger. If x = 1, every output is a multiple of
2⁻⁵³; if x = 0, some are not. At ε = 1 one release in four of a true 0 is impossible for a true 1.

discreet's outputs are multiples of a public step, and every multiple is possible from every value: the attacker is
certain in no trial, and none is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.calibrate.grid import float_grid
from discreet.parameters import exact_epsilon
from discreet.release.laplace_mechanism import laplace_mechanism
from discreet.verify.attacks.result import Attack
from discreet.verify.attacks.twins import float_noise

Mechanism: TypeAlias = Callable[..., Any]
Possible: TypeAlias = Callable[[float, float], bool]
"""Whether an output can come from a true value."""

_TRUTH, _OTHER = 0.0, 1.0
_NEARBY = 6
"""How far around the likeliest U to look: the rounding of exp, log and the sum moves it by fewer places."""


def least_bits(*, epsilon: Any = 1, trials: int = 3_000, mechanism: Mechanism = laplace_mechanism) -> Attack:
    """How often the true value is named for certain, since the other cannot give this very float."""
    exact = exact_epsilon(epsilon)
    scale = float(1 / exact)

    def possible(output: float, value: float) -> bool:
        return feasible(output, value, scale)

    what = "tries which true value can give this very float (Mironov)"
    return _certain("least bits", what, (_OTHER, _TRUTH), possible, mechanism, exact, trials)


def precision(*, epsilon: Any = 1, trials: int = 20_000, mechanism: Mechanism = laplace_mechanism) -> Attack:
    """How often a true 0 is named for certain, since the output is finer than any that a true 1 gives."""
    exact = exact_epsilon(epsilon)

    def possible(output: float, value: float) -> bool:
        return value == _TRUTH or multiple(output, -53)

    what = "looks for an output that is finer than the other true value allows"
    return _certain("precision", what, (_TRUTH, _OTHER), possible, mechanism, exact, trials)


def _certain(
    name: str,
    what: str,
    pair: tuple[float, float],
    possible: Possible,
    mechanism: Mechanism,
    epsilon: Fraction,
    trials: int,
) -> Attack:
    """How often the first of a pair of values is named for certain, by naive floats and by a mechanism."""
    truth, other = pair
    naive = [truth + noise for noise in float_noise(float(1 / epsilon), trials)]
    ours = _released(mechanism, truth, epsilon, trials)
    return Attack(
        name=name,
        what=what,
        trials=trials,
        naive=named(naive, truth, other, possible) / trials,
        discreet=named(ours, truth, other, on_grid(epsilon, possible)) / trials,
        allowed=0.0,
    )


def named(outputs: list[float], truth: float, other: float, possible: Possible) -> int:
    """In how many single releases the attacker names `truth`, because `other` is impossible."""
    return sum(not possible(output, other) and possible(output, truth) for output in outputs)


def feasible(output: float, value: float, scale: float) -> bool:
    """Whether any U = k·2⁻⁵³ gives exactly this output through value ± scale·ln U."""
    guess = round(math.exp(-abs(output - value) / scale) * 2**53)
    for nearby in range(-_NEARBY, _NEARBY + 1):
        uniform = (guess + nearby) * 2.0**-53
        if 0 < uniform <= 1:
            size = scale * math.log(uniform)
            if output in (value + size, value - size):
                return True
    return False


def multiple(output: float, power: int) -> bool:
    """Whether the output is a multiple of 2^power, exactly."""
    scaled = math.ldexp(output, -power)
    return scaled == math.floor(scaled)


def on_grid(epsilon: Fraction, otherwise: Possible) -> Possible:
    """What is possible under discreet at sensitivity 1: whole numbers of steps from the true value, all of them.

    An output off the grid is none of discreet's; of such a one it is asked what is possible `otherwise`.
    """
    step = float_grid(Fraction(1), epsilon, 1).step

    def possible(output: float, value: float) -> bool:
        return (Fraction(output) - Fraction(value)) % step == 0 or otherwise(output, value)

    return possible


def _released(mechanism: Mechanism, value: float, epsilon: Fraction, trials: int) -> list[float]:
    return [mechanism(value, sensitivity=1, epsilon=epsilon) for _ in range(trials)]
