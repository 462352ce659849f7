"""Keys are told as often as π(n) says: 200,000 keys of each size, with real entropy, and one
discovery of a study.

Alarm where the exact two-sided binomial test gives a value below 10⁻¹⁰. There are at most 30 such
tests in the file, so its false-alarm rate is at most 3·10⁻⁹. At π = 1/2 a rate that is 0.015 off is
missed with a probability below 10⁻¹⁰. The controls hold the same tosses against one unit more, one
less, an ε 5 % larger and a δ 20 % larger.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from discreet import Policy, Study
from discreet.calibrate.ball import nearest
from discreet.engines.base import Exact
from discreet.release.discovery import Keeping, keeping, rule_of
from discreet.release.mechanism import kept_keys

KEYS = 200_000
ALARM = 1e-10
PRICES = [
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(2), Fraction(1, 10)),
]


def rate(rule: Keeping, units: int) -> float:
    chance = rule.chance(units)
    return float(chance) if isinstance(chance, Fraction) else nearest(chance)


def fits(kept: int, tossed: int, chance: float) -> bool:
    return bool(stats.binomtest(kept, tossed, chance).pvalue > ALARM)


def sizes(rule: Keeping) -> list[int]:
    """Around the middle, at the ends and at the bends."""
    middle = next(units for units in range(rule.last + 1) if rate(rule, units + 1) >= 0.5)
    wanted = {
        1,
        2,
        middle - 1,
        middle,
        middle + 1,
        rule.bend,
        rule.bend + 1,
        rule.last,
        rule.last + 1,
    }
    return sorted(units for units in wanted if units > 0)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_keys_are_told_with_their_chance_and_no_other(epsilon, delta):
    rule = keeping(epsilon, delta)
    kept = {
        units: len(kept_keys(Exact(dict.fromkeys(range(KEYS), units)), rule.chance))
        for units in sizes(rule)
    }
    assert all(fits(count, KEYS, rate(rule, units)) for units, count in kept.items())
    mutants = {
        "one unit more": lambda units: rate(rule, units + 1),
        "one unit less": lambda units: rate(rule, units - 1),
        "more epsilon": lambda units: rate(keeping(epsilon * Fraction(21, 20), delta), units),
        "more delta": lambda units: rate(keeping(epsilon, delta * Fraction(6, 5)), units),
    }
    for name, mutant in mutants.items():
        assert not all(fits(count, KEYS, mutant(units)) for units, count in kept.items()), name


def test_a_discovery_of_a_study_has_these_rates(tmp_path):
    """Units of two rows in two keys each, change-one: ε/4 and δ/4 for every key."""
    many, counts = 3_000, (2, 6, 9)
    names = [f"{units}-{index}" for units in counts for index in range(many)]
    held = np.repeat(np.arange(len(names)), np.repeat(counts, many))
    # rows of the first and of the second half belong to the same units; no unit has one key twice
    half = held.size // 2
    who = np.concatenate([np.arange(half), np.arange(held.size - half)])
    table = pa.table({"who": who, "county": [names[key] for key in held]})
    policy = Policy(
        source=table,
        epsilon=4,
        delta="0.04",
        unit="who",
        max_rows=2,
        columns={"county": {"keys": "discover"}},
    )
    rule = rule_of(policy, 1, Fraction(4), Fraction(1, 25))
    assert (rule.epsilon, rule.delta) == (1, Fraction(1, 100))
    with Study(policy, ledger=tmp_path / "ledger") as study:
        found = study.discover("county", epsilon=4)["county"]
    for units in counts:
        kept = sum(str(key).startswith(f"{units}-") for key in found)
        assert fits(kept, many, rate(rule, units)), units
    assert not fits(sum(str(key).startswith("2-") for key in found), many, rate(rule, 3))
