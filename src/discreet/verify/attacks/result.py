"""What an attack found: how often the attacker is right against a naive twin and against discreet.

    allowed = e^ε/(1+e^ε)     the most that anyone who guesses a fair bit from an ε-private release can be right

Under two neighbours no outcome is more than e^ε times as likely, so after any outcome the odds of a fair bit are at
most e^ε to 1. The same holds for many bits, one of each unit: the number of right guesses is stochastically at most
Binomial(trials, allowed) [SNJ23]. What an attacker claims to know *for certain* is allowed in no trial at all.

A verdict allows for chance: discreet is called broken only where a rate as high as the measured one has a probability
below 10⁻⁹, by Chernoff's bound e^(−trials·KL(rate, allowed)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

_FALSE_ALARMS = 1e-9
"""How often a sound mechanism may be called broken, in one attack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack, tried on a naive twin and on discreet."""

    name: str
    what: str
    """What the attacker does, in one sentence."""
    trials: int
    naive: float
    """Share of trials in which the attacker is right against the naive twin."""
    discreet: float
    """The same against discreet."""
    allowed: float
    """What theory allows anyone."""
    faults: tuple[str, ...] = ()
    """What went wrong beside the rate, such as a budget that was over-spent."""

    @property
    def limit(self) -> float:
        """The rate from which on chance is no explanation."""
        return chance_limit(self.allowed, self.trials)

    @property
    def works(self) -> bool:
        """Whether the attack breaks the naive twin; if not, it shows nothing."""
        return self.naive > self.limit

    @property
    def held(self) -> bool:
        """Whether discreet stays within what theory allows."""
        return not self.faults and self.discreet <= self.limit

    @property
    def verdict(self) -> str:
        """`held`, `broken`, or `void` where even the naive twin withstood."""
        if not self.held:
            return "broken"
        return "held" if self.works else "void"


def best_guess(epsilon: Fraction) -> float:
    """e^ε/(1+e^ε).

    >>> round(best_guess(Fraction(1)), 3)
    0.731
    """
    return 1 / (1 + math.exp(-min(float(epsilon), 700.0)))


def chance_limit(allowed: float, trials: int) -> float:
    """The least rate whose Chernoff bound, at a true rate of `allowed`, is below 10⁻⁹; 0 where nothing is allowed.

    >>> round(chance_limit(0.5, 20_000), 3)
    0.523
    """
    needed = -math.log(_FALSE_ALARMS) / trials
    low, high = allowed, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _divergence(middle, allowed) >= needed else (middle, high)
    return low


def _divergence(rate: float, allowed: float) -> float:
    """KL(rate, allowed) of two coins."""
    if rate <= allowed:
        return 0.0
    if allowed == 0:
        return math.inf
    tails = (1 - rate) * math.log((1 - rate) / (1 - allowed)) if rate < 1 else 0.0
    return rate * math.log(rate / allowed) + tails
