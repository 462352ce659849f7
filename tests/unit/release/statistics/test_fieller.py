"""Ends by Newton's method: the same floats as by looking at every point."""

import numpy as np
import pytest

from discreet.release.statistics import fieller

POINTS = np.linspace(0, 1, 129)
CONVEX = 3 + np.abs(POINTS - 0.5) * 4
REACHES = {
    "convex": CONVEX,
    "hardly bent": CONVEX + 1e-4 * np.sin(POINTS * 40),
    "bent": 3 + np.sin(POINTS * 40),
}


def quotients() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    denominators = generator.normal(size=20_000) * generator.choice([1, 10, 100, 1000], 20_000)
    return (
        denominators * generator.uniform(-0.2, 1.2, 20_000) + generator.normal(size=20_000),
        denominators,
    )


@pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
def test_newton_finds_the_ends_that_all_points_give(reach: np.ndarray) -> None:
    numerators, denominators = quotients()
    expected = fieller.edges(numerators, denominators, POINTS, reach[None, :])
    for mine, theirs in zip(
        fieller.SharedReach(POINTS, reach).edges(numerators, denominators), expected, strict=True
    ):
        assert np.array_equal(mine, theirs)


@pytest.mark.filterwarnings("error")
def test_denominators_of_minus_zero_and_lines_along_the_reach_have_the_ends_that_all_points_give() -> (
    None
):
    # larger at the last point: a line without a slope falls to it
    reach = 3 + np.abs(POINTS - 0.25) * 4
    numerators = np.repeat([3.5, 4.5, 5.5, 9.0], 4)
    denominators = np.tile([-0.0, 0.0, 4.0, -4.0], 4)
    expected = fieller.edges(numerators, denominators, POINTS, reach[None, :])
    for mine, theirs in zip(
        fieller.SharedReach(POINTS, reach).edges(numerators, denominators), expected, strict=True
    ):
        assert np.array_equal(mine, theirs)


def test_nearly_all_ends_are_found_by_newton_where_the_reach_is_hardly_bent() -> None:
    *_, sure = fieller.SharedReach(POINTS, REACHES["hardly bent"]).fitted(*quotients())
    assert sure.mean() > 0.98


def test_control_a_bent_reach_that_is_taken_as_convex_gives_other_ends() -> None:
    reach = REACHES["bent"]
    low, _, sure = fieller.SharedReach(POINTS, reach, hull=reach, slack=0.0).fitted(*quotients())
    expected, _ = fieller.edges(*quotients(), POINTS, reach[None, :])
    assert not np.array_equal(low[sure], expected[sure])
