"""TRUST 1 and 2: the precision attack and the least-bits attack, on discreet and on the naive twin.

Both attacks look for outputs that only one of two neighbouring answers can produce. On discreet
none exists: every output is a multiple of a public step, and every multiple is possible from both
sides. The control is naive noise.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import laplace_mechanism
from discreet.calibrate.grid import float_grid
from discreet.verify import attacks
from discreet.verify.attacks import feasible, named
from discreet.verify.mechanisms import float_noise, uniforms

PAIRS = [(0.0, 1.0), (0.0, 1024.0), (-1.0, 1.0), (2.0**52, 2.0**52 + 1), (0.1, 1.1)]
SCALES = ["0.1", "0.5", "1", "10"]
RELEASES = 10_000
POWERS = range(-80, 21)


def textbook(answer: float) -> np.ndarray:
    return answer + np.array(float_noise(1.0, RELEASES))


def by_numpy(answer: float) -> np.ndarray:
    return answer + np.random.default_rng().laplace(0, 1.0, RELEASES)


def by_four_uniforms(answer: float) -> np.ndarray:
    """Laplace noise from four uniforms each, so that no logarithm can be inverted [HB21]; the sum
    is still a float.
    """
    first, second, third, fourth = (uniforms(RELEASES) for _ in range(4))
    noise = np.log(first) * np.cos(np.pi * second) + np.log(third) * np.cos(np.pi * fourth)
    return answer + noise


def ours(answer: float, distance: float, scale: str, *, at_once: bool) -> np.ndarray:
    """So many releases of one answer, each by a call of its own or all by one call."""
    given = {"sensitivity": Fraction(distance), "epsilon": Fraction(distance) / Fraction(scale)}
    if at_once:  # one of them changes, as if it were alone
        return laplace_mechanism(np.full(RELEASES, answer), changes=1, **given)
    return np.array([laplace_mechanism(answer, **given) for _ in range(RELEASES)])


def multiples(outputs: np.ndarray, power: int) -> int:
    """How many outputs are multiples of 2^power, exactly."""
    scaled = np.ldexp(outputs, -power)
    return int((scaled == np.floor(scaled)).sum())


def worst_loss(left: np.ndarray, right: np.ndarray, error_rate: float = 1e-9) -> float:
    """A lower bound on ε from all the events 'is (not) a multiple of 2^k', by Clopper and Pearson."""
    level = error_rate / (4 * 2 * len(POWERS))
    counts = [(multiples(left, power), multiples(right, power)) for power in POWERS]
    counts += [(RELEASES - one, RELEASES - other) for one, other in counts]
    pairs = {*counts, *((other, one) for one, other in counts)}
    return max(loss(one, other, RELEASES, level) for one, other in pairs)


def loss(hits: int, other: int, trials: int, level: float) -> float:
    """A lower bound on the log-ratio of an event's probabilities, wrong with probability 2·level at
    most.
    """
    if hits == 0:
        return 0.0
    low = stats.beta.ppf(level, hits, trials - hits + 1)
    high = stats.beta.ppf(1 - level, other + 1, trials - other) if other < trials else 1.0
    return max(0.0, math.log(low / high))


@pytest.mark.parametrize(
    ("pair", "scale", "at_once"),
    [
        (pair, SCALES[(at + more) % 4], more == 2)
        for at, pair in enumerate(PAIRS)
        for more in (0, 2)
    ],
    ids=str,
)
def test_precision_attack_learns_nothing(pair, scale, at_once):
    """TRUST 1.

    False alarms: 10⁻⁹ for each of the 10 cases. Catches an event with a real loss of ε + 0.15.
    """
    distance = pair[1] - pair[0]
    left, right = (ours(answer, distance, scale, at_once=at_once) for answer in pair)
    epsilon = Fraction(distance) / Fraction(scale)
    step = float_grid(Fraction(distance), epsilon, 1).step
    # far out the float itself is coarser than the step; conversion is post-processing
    if abs(pair[1]) < 2**30:
        for outputs in (left, right):
            assert np.all(np.ldexp(outputs, -int(math.log2(step))) % 1 == 0), (
                "an output off the public grid"
            )
    assert worst_loss(left, right) <= float(epsilon)


@pytest.mark.parametrize("mechanism", [textbook, by_numpy, by_four_uniforms])
def test_control_precision_attack_breaks_naive_noise(mechanism):
    left, right = (mechanism(answer) for answer in (0.0, 1.0))
    assert worst_loss(left, right) >= 4


def possible(scale: float):
    return lambda output, value: feasible(output, value, scale)


@pytest.mark.parametrize("scale", [0.5, 1.0, 10.0])
def test_least_bits_attack_learns_nothing(scale):
    """TRUST 2.

    Every output is a whole number of steps from both answers, so both can always have produced it.
    """
    epsilon = Fraction(1) / Fraction(str(scale))
    step = float_grid(Fraction(1), epsilon, 1).step
    released = {
        h: [laplace_mechanism(h, sensitivity=1, epsilon=epsilon) for _ in range(5000)]
        for h in (0.0, 1.0)
    }
    for output in (Fraction(one) for outputs in released.values() for one in outputs):
        assert output % step == 0
        assert (output - 1) % step == 0
    # the attacker names 0 from releases of 0 hardly more often than from releases of 1: within e^ε,
    # as for any event
    for truth, other in ((0.0, 1.0), (1.0, 0.0)):
        right, wrong = (named(released[h], truth, other, possible(scale)) for h in (truth, other))
        assert loss(right, wrong, 5000, level=1e-9) <= float(epsilon)


@pytest.mark.parametrize("scale", [0.5, 1.0, 10.0])
def test_control_least_bits_attack_breaks_naive_noise(scale):
    outputs = [1.0 + noise for noise in float_noise(scale, 3000)]
    assert named(outputs, 1.0, 0.0, possible(scale)) > 0.5 * len(outputs)


@pytest.mark.parametrize(
    "attack", [attacks.least_bits, attacks.precision], ids=lambda attack: attack.__name__
)
@pytest.mark.parametrize("epsilon", ["0.1", 1, 10])
def test_nobody_is_ever_certain(attack, epsilon):
    """TRUST 1 and 2 as `discreet attack` shows them: in no release is a value named that only one
    side can give.
    """
    found = attack(epsilon=epsilon, trials=5000)
    assert found.discreet == 0
    assert found.naive > 0.005
