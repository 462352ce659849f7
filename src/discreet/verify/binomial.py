"""Exact bounds on a probability after k successes in n trials: Clopper–Pearson [CP34], and Chernoff
for a quick look.

    lower: the p with P(Binomial(n, p) ≥ k) = α,      upper: the p with P(Binomial(n, p) ≤ k) = α

The tails are regularised incomplete beta functions, computed as Arb balls. At the returned bound
the whole ball is at most α, so the bound errs on the safe side only. `chernoff` is cheaper and
wider: it bounds the same tails by e^(−n·KL(k/n ‖ p)), for whole arrays of events.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# of a ball, whose upper end is taken: fewer bits widen it by a part in 10¹³, and take a quarter of
# the time
_BITS = 64
_HALVINGS = 60
_FALSE_ALARMS = 1e-9  # the probability that a sound mechanism is called broken because of its rate
# the relative accuracy of the bounds: far below the sampling error of any number of draws
_NEAR = 2.0**-30


def lower(successes: int, trials: int, doubt: float) -> float:
    """A lower bound on the probability, which fails with probability at most `doubt`.

    It is the largest p whose tail is at most `doubt`, found by bracketed secants on the logarithm
    of the tail.
    """
    safe, beyond = float(chernoff(np.array([successes]), trials, doubt)[0][0]), successes / trials
    if successes == 0 or safe <= 0.0:
        return 0.0

    def height(chance: float) -> float:
        """ln P(Binomial ≥ successes) − ln doubt, rounded up."""
        with ctx.workprec(_BITS):
            tail = (
                arb(chance)
                .beta_lower(arb(successes), arb(trials - successes + 1), regularized=True)
                .upper()
            )
            return (float(tail.log().upper()) if tail > 0 else -math.inf) - math.log(doubt)

    heights = [height(safe), height(beyond)]
    for _ in range(_HALVINGS):
        if beyond - safe <= _NEAR * safe or heights[1] <= 0:
            break
        share = heights[0] / (heights[0] - heights[1])
        middle = safe + (beyond - safe) * min(max(share, 0.02), 0.98)
        between = height(middle)
        if between <= 0:
            safe, heights[0] = middle, between
        else:
            beyond, heights[1] = middle, between
    return safe


def upper(successes: int, trials: int, doubt: float) -> float:
    """An upper bound on the probability, which fails with probability at most `doubt`."""
    # rounds up: the safe side
    return math.nextafter(1.0 - lower(trials - successes, trials, doubt), 2.0)


def chernoff(successes: NDArray[np.int64], trials: Any, doubt: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds for many events, each with this doubt: never narrower than
    Clopper–Pearson bounds.
    """
    share = successes / trials
    limit = -math.log(doubt) / trials
    ends = []
    for side in (0.0, 1.0):
        far, near = np.full(share.shape, side), share.copy()
        for _ in range(_HALVINGS):
            middle = (far + near) / 2
            beyond = _divergence(share, middle) > limit
            far, near = np.where(beyond, middle, far), np.where(beyond, near, middle)
        ends.append(far)
    return ends[0], ends[1]


def chance_limit(allowed: float, trials: int) -> float:
    """The least rate whose Chernoff bound, at a true rate of `allowed`, is below 10⁻⁹; 0 if nothing
    is allowed.

    >>> round(chance_limit(0.5, 20_000), 3)
    0.523
    """
    needed = -math.log(_FALSE_ALARMS) / trials
    low, high = allowed, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        far = _divergence(np.array(middle), np.array(allowed)) >= needed
        low, high = (low, middle) if far else (middle, high)
    return low


def _divergence(share: Floats, chance: Floats) -> Floats:
    """KL(share ‖ chance)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(share > 0, share * np.log(share / chance), 0.0)
        second = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
    return np.asarray(first + second)
