"""Radii of noise and the sets that they cut out."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.draw.laplace import DiscreteLaplace
from discreet.release.mechanism import NoisySum
from discreet.release.statistics.spread import (
    combined_radius,
    continuous_scale,
    discrete_radius,
    radius,
    slack_of,
)
from one_group import solutions

LEVELS = [0.5, 0.8, 0.95, 0.999, 1 - 1e-9]


def tail_by_integral(weights: list[float], at: float) -> float:
    """P(|Σ wY| > at) for two weights, from one integral of the convolution."""
    first, second = weights

    def beyond(y: float) -> float:
        above, below = (at - first * y) / second, (-at - first * y) / second
        return float(stats.laplace.pdf(y) * (stats.laplace.sf(above) + stats.laplace.cdf(below)))

    found, _ = integrate.quad(
        beyond,
        -60,
        60,
        points=[0, at / first, -at / first],
        limit=400,
    )
    return found


@pytest.mark.parametrize("confidence", LEVELS)
def test_the_radius_of_one_draw_is_a_logarithm(confidence):
    found = combined_radius(np.array([3.0]), confidence)
    assert float(found) == pytest.approx(-3 * math.log1p(-confidence), rel=1e-9)


@pytest.mark.parametrize("confidence", LEVELS)
def test_the_radius_of_two_equal_draws_solves_its_closed_form(confidence):
    """P(|Y₁ + Y₂| > t) = (1 + t/2)·e^(−t); near ties are a thousandth too wide."""
    t = float(combined_radius(np.array([1.0, 1.0]), confidence))
    assert (1 + t / 2) * math.exp(-t) <= 1 - confidence
    t /= 1.0015
    assert (1 + t / 2) * math.exp(-t) > 1 - confidence


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 0.1], [0.3, 0.7], [5.0, 4.0]])
def test_the_radius_of_two_draws_is_that_of_the_integral(weights):
    for confidence in (0.5, 0.95):
        t = float(combined_radius(np.array(weights), confidence))
        assert tail_by_integral(weights, t) == pytest.approx(1 - confidence, rel=1e-5)


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [0.2, 0.0, 0.9], [1.0, 1.0, 0.5]]
)
def test_the_radius_of_three_draws_is_that_of_a_simulation(weights):
    """400,000 draws: an error of the coverage by 0.2 % is caught, with a false-alarm rate of 10⁻⁸."""
    draws = np.random.default_rng(8).laplace(size=(400_000, 3)) @ weights
    for confidence in (0.5, 0.95):
        inside = float(np.mean(np.abs(draws) <= combined_radius(np.array(weights), confidence)))
        assert inside == pytest.approx(
            confidence, abs=5.8 * math.sqrt(confidence * (1 - confidence) / 400_000) + 1e-3
        )


@pytest.mark.parametrize(
    ("weights", "times"), [((1.0,), (1,)), ((1.0, 0.3), (1, 5)), ((1.0, 0.05), (1, 3000))]
)
def test_the_reach_of_many_draws_is_the_quantile_of_their_law(weights, times):
    """By the characteristic function on a fine grid, which is another way to the same number."""
    weights, times = np.array(weights), np.array(times, float)
    reach = combined_radius(weights[None], 0.95, times)[0]
    step = 0.002
    theta = (np.arange(400_000) + 0.5) * step
    law = np.exp(-(np.log1p(np.outer(theta**2, weights**2)) @ times))
    inside = 2 / math.pi * (np.sin(theta * reach) / theta * law).sum() * step
    assert inside == pytest.approx(0.95, abs=2e-5)


def test_radii_come_in_rows():
    weights = np.random.default_rng(1).uniform(-2, 2, (4, 5, 3))
    found = combined_radius(weights, 0.95)
    assert found.shape == (4, 5)
    assert found[2, 3] == pytest.approx(float(combined_radius(weights[2, 3], 0.95)), rel=1e-9)
    assert np.array_equal(combined_radius(-weights, 0.95), found)
    assert np.allclose(combined_radius(weights * 1e9, 0.95), found * 1e9)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.3, 0.7), (1.0, 0.0), (0.1, 0.9), (0.25, 0.75)])
def test_the_discrete_radius_is_the_smallest_that_holds(weights, scale):
    law = DiscreteLaplace(scale)
    chances = [law.pmf(k) for k in range(-80, 81)]
    sums = np.abs(
        np.add.outer(weights[0] * np.arange(-80, 81), weights[1] * np.arange(-80, 81))
    ).ravel()
    both = np.outer(chances, chances).ravel()
    for confidence in (0.5, 0.95, 0.999):
        t = float(discrete_radius(np.array(weights), scale, confidence))
        assert both[sums <= t].sum() >= confidence
        assert both[sums < t * (1 - 1e-5)].sum() <= confidence * (1 + 1e-3) or t < 1e-3
        assert t <= scale * float(combined_radius(np.array(weights), confidence)) + 1


@pytest.mark.parametrize("step", [1, 2, 16])
def test_the_radius_of_a_total_pays_for_its_rounding(step):
    noisy = NoisySum(value=0, step=step, scale=Fraction(10))
    assert radius(noisy, Fraction(19, 20)) == 30 * step + (step // 2 if step > 1 else 0)
    assert slack_of(noisy, 0.95) == pytest.approx(0.65 if step == 1 else 1.15 * step)
    assert noisy.spread == 10 * step


def test_solutions_are_the_ends_of_an_interval():
    low, high = solutions(
        np.array([1.0, 0.1, 1.9, 2.0]), 2.0, lambda z: np.full_like(z, 0.3), 0.0, 1.0
    )
    assert low == pytest.approx([0.35, 0.0, 0.8, 0.85], abs=1e-9)
    assert high == pytest.approx([0.65, 0.2, 1.0, 1.0], abs=1e-9)


def test_solutions_are_never_too_narrow():
    rng = np.random.default_rng(4)
    for _ in range(200):
        numerator = rng.uniform(0, 1)
        denominator = rng.uniform(0.5, 1e6)
        flat = rng.uniform(0, 1)
        slope = rng.uniform(0, 0.4)
        numerator *= denominator
        low, high = solutions(
            np.array([numerator]), denominator, lambda z, f=flat, s=slope: f + s * z, 0.0, 1.0
        )
        ends = (
            (numerator - flat) / (denominator + slope),
            (numerator + flat) / (denominator - slope),
        )
        assert low[0] <= max(ends[0], 0)
        assert high[0] >= min(ends[1], 1)
        assert [low[0], high[0]] == pytest.approx([max(ends[0], 0), min(ends[1], 1)], abs=1e-9)


@pytest.mark.parametrize("denominator", [0.0, -3.0, 50.0])
def test_where_the_noise_has_swallowed_everything_all_is_possible(denominator):
    low, high = solutions(np.array([100.0]), denominator, lambda z: np.full_like(z, 1e-9), 0.0, 1.0)
    assert (low[0], high[0]) == (0.0, 1.0)


def miss_of(
    weights: list[int], scales: list[float], miss: float, slack: Callable[..., float]
) -> float:
    """How often a combination of discrete draws is beyond its interval, by its exact law, as a
    share of `miss`.
    """
    chances = np.ones(1)
    for weight, scale in zip(weights, scales, strict=True):
        sizes = np.abs(np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1))
        spaced = np.zeros((sizes.size - 1) * weight + 1)
        spaced[::weight] = math.tanh(0.5 / scale) * np.exp(-sizes / scale)
        chances = np.convolve(chances, spaced)
    middle = chances.size // 2
    totals = [NoisySum(value=0, scale=Fraction(scale), step=1) for scale in scales]
    spreads = [
        weight * continuous_scale(total) for weight, total in zip(weights, totals, strict=True)
    ]
    further = max(
        weight * slack(total, 1 - miss) for weight, total in zip(weights, totals, strict=True)
    )
    reach = math.floor(float(combined_radius(np.array([spreads]), 1 - miss)[0]) + further)
    return 2 * float(chances[: max(0, middle - reach)].sum()) / miss


MISSES = (0.2, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
RANDOM = np.random.default_rng(29)
COMBINATIONS = [
    (RANDOM.integers(1, most + 1, count).tolist(), [float(RANDOM.uniform(low, 3 * low))] * count)
    for count in (1, 2, 3, 5, 7)
    for most in (1, 5)
    for low in (0.1, 0.2, 0.4, 1.0, 2.0)
] + [
    ([1] * 6, [1.0] * 6),
    ([1] * 4, [1.071] * 4),
    ([1] * 7, [0.204] * 7),
    ([3], [1.01]),
    ([1] * 6, [0.154] * 6),
]


@pytest.mark.parametrize("miss", MISSES)
def test_a_combination_of_discrete_draws_misses_no_more_often_than_allowed(miss):
    """The last five combinations are the worst that a search found; see `slack_of`."""
    assert max(miss_of(*combination, miss, slack_of) for combination in COMBINATIONS) <= 1


def test_control_without_its_growth_the_slack_is_too_small_at_high_confidences():
    fixed = {scale: 0.65 if scale >= 1 else 1.0 for _, (scale, *_) in COMBINATIONS}
    shares = [
        max(
            miss_of(*some, miss, lambda total, _: fixed[float(total.scale)])
            for some in COMBINATIONS
        )
        for miss in (1e-4, 1e-6, 1e-10)
    ]
    assert [share > limit for share, limit in zip(shares, (1.01, 1.2, 2.5), strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize("times", [(1, 1, 1, 1), (1, 2, 3, 40)])
@pytest.mark.parametrize("confidence", [1e-6, 1e-4, 0.003, 0.0099, 0.01, 0.1, 0.2])
def test_a_small_confidence_is_held_and_hardly_more(confidence, times):
    """Against the integral of the characteristic function; at 10⁻⁶ a radius was 0."""
    weights = np.array([1.0, 0.7, 0.45, 0.2])
    [reach] = combined_radius(weights[None], confidence, np.array(times, np.float64))
    u = (np.arange(2_000_000) + 0.5) * 1e-4
    law = np.prod(
        [(1 + (weight * u) ** 2) ** -many for weight, many in zip(weights, times, strict=True)],
        axis=0,
    )
    held = 2 / np.pi * 1e-4 * float((np.sin(u * reach) / u * law).sum())
    # integrals are exact to about 2·10⁻⁶
    assert confidence * (1 - 3e-4) <= held <= confidence * 1.01
