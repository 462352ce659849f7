"""Prints what docs/comparison.md says was measured with OpenDP and numpy beside discreet: three
small experiments.

    holes    of releases of 0 and of 1 at scale 1, how many are no multiple of 2⁻⁵³: if none of one
             side is, the others
             name the true value for certain (the precision attack [HDHSH22])
    law      how often a draw is 0, against the law, in standard deviations
    sum      the sensitivity that is paid for in a sum of floats in [0, 120]

Needs opendp (dependency group bench). Run it as: python tools/compare.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

import discreet

RELEASES = 4_000
DRAWS = 200_000


def fine(outputs: list[float]) -> float:
    """The share of outputs that are no multiple of 2⁻⁵³."""
    return sum(math.ldexp(output, 53) % 1 != 0 for output in outputs) / len(outputs)


def holes(name: str, release: Callable[[float], float]) -> None:
    """One line about the outputs of a mechanism on 0 and on 1."""
    shares = [fine([release(truth) for _ in range(RELEASES)]) for truth in (0.0, 1.0)]
    print(f"holes  {name:<9} true 0: {shares[0]:.1%}   true 1: {shares[1]:.1%}")


def law(name: str, draws: np.ndarray, scale: float) -> None:
    """One line about how often a draw is 0."""
    chance = math.tanh(1 / (2 * scale))  # (1−q)/(1+q)
    distance = ((draws == 0).mean() - chance) / math.sqrt(chance * (1 - chance) / draws.size)
    print(f"law    {name:<9} scale {scale:g}: P(0) off by {distance:+.1f} standard deviations")


def main() -> None:
    """All three, for each library."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    print(f"OpenDP {version('opendp')}, numpy {version('numpy')}, discreet {version('discreet')}")
    generator = np.random.default_rng()  # noqa: TID251 - it is what is looked at
    opendp = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
    )
    holes("numpy", lambda truth: truth + generator.laplace())
    holes("OpenDP", opendp)
    holes("discreet", lambda truth: discreet.laplace_mechanism(truth, sensitivity=1, epsilon=1))
    for scale in (3.0, 10.0):
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        law("OpenDP", np.array(dp.m.make_laplace(*space, scale=scale)([0] * DRAWS)), scale)
        law("discreet", discreet.DiscreteLaplace(scale).sample(DRAWS), scale)
    for size in (1_000, 5_000_000, 50_000_000):
        space = (
            dp.vector_domain(dp.atom_domain(bounds=(0.0, 120.0), nan=False), size=size),
            dp.symmetric_distance(),
        )
        print(f"sum    OpenDP    {size:,} rows: {dp.t.make_sum(*space).map(2):.9g}")
    print(f"sum    discreet  any number: {discreet.sensitivity.sum(bounds=(0, 120))}")


if __name__ == "__main__":
    main()
