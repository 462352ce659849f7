"""TRUST 33: time separates neither two neighbouring data sets nor large noise from small, on a fixed question's path.

Measurements come in pairs, one with the bit unset and one with it set, in an order that a coin decides. If time does
not depend on the bit, either of a pair is as likely to be the slower: the number of pairs in which the set bit is
slower is binomial. The alarm is raised where that has a probability below 10⁻⁹ (either side) *and* the median
difference is more than a quarter of the median time; so the false-alarm rate of each test is below 10⁻⁹ however busy
the machine is, and what is caught is a difference of a quarter or more. The controls sleep when the bit is set, 1 ms
beside a call and as long as the release itself beside that of a study, or draw by counting one by one.
"""

import random
import statistics
import time

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet import laplace_mechanism
from studies import Paper, select, study_of

Pairs = list[tuple[int, int]]
_coins = random.SystemRandom()


def timed(call) -> int:
    began = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - began


def measured(unset, bit_set, count: int) -> Pairs:
    """Pairs of times, (unset, set), each pair in a random order."""
    for call in (unset, bit_set, unset, bit_set):
        call()
    pairs = []
    for _ in range(count):
        if _coins.random() < 0.5:
            first = timed(unset)
            pairs.append((first, timed(bit_set)))
        else:
            first = timed(bit_set)
            pairs.append((timed(unset), first))
    return pairs


def separates(pairs: Pairs) -> bool:
    """Whether time tells the bit."""
    different = [(low, high) for low, high in pairs if low != high]
    slower = sum(high > low for low, high in different)
    if stats.binomtest(slower, len(different)).pvalue > 1e-9:
        return False
    typical = statistics.median(low for low, _ in pairs)
    return abs(statistics.median(high - low for low, high in pairs)) > typical / 4


def asleep(call, seconds: float):
    """The control: the same, and a while longer."""

    def slow() -> None:
        call()
        time.sleep(seconds)

    return slow


def counted(bob: bool):
    """A count on an array with and without one person: the data that the attacker tries to tell apart."""
    people = np.array([True, False] * 500 + [bob])
    return lambda: discreet.count(people, epsilon=1, neighbors="change-one")


def mean_of(bob: float):
    ages = np.array([20.0, 30.0, 40.0] * 300 + [bob])
    return lambda: discreet.mean(ages, bounds=(0, 120), epsilon=1, neighbors="add-remove")


@pytest.mark.parametrize(
    ("make", "bits"), [(counted, (False, True)), (mean_of, (0.0, 1e300)), (mean_of, (50.0, np.nan))]
)
def test_one_value_of_an_array_does_not_show_in_the_time(make, bits):
    unset, bit_set = (make(bit) for bit in bits)
    assert not separates(measured(unset, bit_set, 500))


@pytest.mark.parametrize("make", [counted, mean_of])
def test_control_a_millisecond_more_is_seen(make):
    unset, bit_set = make(0.0), make(1.0)
    assert separates(measured(unset, asleep(bit_set, 0.001), 500))


def released(bob: dict):
    """A release of a study, each time with its own draws; the ledger is one without a disk."""
    rows = [{"who": f"u{at}", "place": "north", "age": at % 11, "pay": 1.0, "well": at % 2 == 0} for at in range(200)]
    study = study_of([*rows, {"who": "bob", **bob}], Paper(), version="1")
    plan = study.sql(select("count(*), avg(age)", "WHERE well"), epsilon=1)
    return plan.release


PLAIN = {"place": "north", "age": 0, "pay": 0.0, "well": False}
ODD = {"place": "elsewhere", "age": 10**9, "pay": float("nan"), "well": True}


@pytest.mark.parametrize("bob", [{**PLAIN, "well": True}, ODD], ids=["counted", "odd"])
def test_one_row_of_a_study_does_not_show_in_the_time(bob):
    assert not separates(measured(released(PLAIN), released(bob), 90))


def test_control_twice_the_time_of_a_release_is_seen():
    unset, bit_set = released(PLAIN), released(ODD)
    typical = statistics.median(timed(unset) for _ in range(15)) / 1e9
    assert separates(measured(unset, asleep(bit_set, max(0.001, typical)), 90))


def by_size(draw, count: int) -> Pairs:
    """Pairs of neighbouring draws of which one is small and one is large: (time of the small, time of the large)."""
    for _ in range(100):
        draw()
    found = []
    for _ in range(count):
        began = time.perf_counter_ns()
        size = abs(draw())
        found.append((size, time.perf_counter_ns() - began))
    middle = statistics.median(size for size, _ in found)
    pairs = zip(found[::2], found[1::2], strict=True)
    return [
        (one[1], other[1]) if one[0] <= middle else (other[1], one[1])
        for one, other in pairs
        if (one[0] <= middle) != (other[0] <= middle)
    ]


@pytest.mark.parametrize("epsilon", ["1", "0.01"])
def test_large_noise_takes_no_longer_than_small(epsilon):
    assert not separates(by_size(lambda: laplace_mechanism(0, sensitivity=1, epsilon=epsilon), 20_000))


def test_large_noise_takes_no_longer_than_small_for_a_float():
    assert not separates(by_size(lambda: laplace_mechanism(0.0, sensitivity=1, epsilon="0.5"), 20_000))


def test_control_a_sampler_that_counts_one_by_one_is_seen():
    """The geometric law by its definition: go on until a coin of e^(−1/100) fails."""
    chance = 0.99

    def draw() -> int:
        size = 0
        while _coins.random() < chance:
            size += 1
        return size

    assert separates(by_size(draw, 600))
