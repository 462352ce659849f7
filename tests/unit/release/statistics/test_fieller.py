"""Ends by halving: the same floats as by looking at every point."""

import numpy as np
import pytest

from discreet.release.statistics import fieller

POINTS = np.linspace(0, 1, 129)
REACHES = {
    "convex": 3 + np.abs(POINTS - 0.5) * 4,
    "bent": 3 + np.sin(POINTS * 40),  # neither convex nor smooth: only steep denominators may be halved
}


@pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
def test_halving_finds_the_ends_that_all_points_give(reach: np.ndarray) -> None:
    generator = np.random.default_rng(1)
    sizes = generator.choice([1, 10, 100, 1000], 20_000)
    denominators = generator.normal(size=20_000) * sizes
    numerators = denominators * generator.uniform(-0.2, 1.2, 20_000) + generator.normal(size=20_000)
    expected = fieller._in_blocks(fieller._some_edges, numerators, denominators, POINTS, reach[None, :])
    for mine, theirs in zip(fieller.edges(numerators, denominators, POINTS, reach[None, :]), expected, strict=True):
        assert np.array_equal(mine, theirs)
    halved = fieller._in_blocks(fieller._halved_edges, numerators, denominators, POINTS, reach[None, :])
    alike = all(np.array_equal(mine, theirs) for mine, theirs in zip(halved, expected, strict=True))
    assert alike == fieller._is_convex(reach)  # halving all of them would go wrong where the reach is bent
