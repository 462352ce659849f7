"""TRUST 33: time separates neither two neighbouring data sets nor large noise from small, on a
fixed question's path.

`tests/timing.py` says how that is decided, with a false-alarm rate below 2·10⁻⁹ for each test
however busy the machine is; what is caught is a bit that makes calls a quarter longer or shorter.
The controls sleep for a millisecond beside a call of a fraction of that, do a release twice, or
draw by counting one by one: they are decided by the same test, and missed with a chance below 10⁻⁹.
All of them run alone, after the other tests.
"""

import random
import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet import laplace_mechanism
from studies import Paper, select, study_of
from timing import Pair, measured, told, twice

pytestmark = pytest.mark.clock
_coins = random.SystemRandom()


def asleep(call, seconds: float):
    """The control: the same, and a while longer, which no processor is needed for."""

    def slow() -> None:
        call()
        time.sleep(seconds)

    return slow


def counted(bob: bool):
    """A count on an array with and without one person: the data that the attacker tries to tell
    apart.
    """
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
    assert not told(measured(unset, bit_set))


@pytest.mark.parametrize("make", [counted, mean_of])
def test_control_a_millisecond_more_is_seen(make):
    unset, bit_set = make(0.0), make(1.0)
    assert told(measured(unset, asleep(bit_set, 0.001)))


def released(bob: dict):
    """A release of a study, each time with its own draws; the ledger is one without a disk."""
    rows = [
        {"who": f"u{at}", "place": "north", "age": at % 11, "pay": 1.0, "well": at % 2 == 0}
        for at in range(200)
    ]
    study = study_of([*rows, {"who": "bob", **bob}], Paper(), version="1")
    plan = study.sql(select("count(*), avg(age)", "WHERE well"), epsilon=1)
    return plan.release


PLAIN = {"place": "north", "age": 0, "pay": 0.0, "well": False}
ODD = {"place": "elsewhere", "age": 10**9, "pay": float("nan"), "well": True}


@pytest.mark.parametrize("bob", [{**PLAIN, "well": True}, ODD], ids=["counted", "odd"])
def test_one_row_of_a_study_does_not_show_in_the_time(bob):
    assert not told(measured(released(PLAIN), released(bob)))


def placed(bob: bytes):
    """A histogram of texts, as Arrow has them or as Python's own, one of which may be no UTF-8."""
    raw = [b"north", b"south", b"east", b"west"] * 5_000 + [bob]
    return pa.array(raw, pa.binary()).view(pa.string()), [
        text.decode(errors="surrogateescape") for text in raw
    ]


@pytest.mark.parametrize("kind", [0, 1], ids=["arrow", "objects"])
def test_one_text_that_is_no_utf_8_does_not_show_in_the_time(kind):
    plain, odd = (placed(bob)[kind] for bob in (b"west", b"caf\xe9"))
    unset, bit_set = (
        partial(
            discreet.histogram,
            np.array(data, object) if kind else data,
            keys=["north", "south"],
            other="o",
            epsilon=1,
        )
        for data in (plain, odd)
    )
    assert not told(measured(unset, bit_set))


def test_control_twice_the_time_of_a_release_is_seen():
    assert told(measured(released(PLAIN), twice(released(ODD))))


def by_size(draw) -> Iterator[Pair]:
    """Pairs of draws, one small and one large, without end: (time of the small, time of the large).

    The draws are independent, so each order of the two is as likely: chance has put them into it,
    as a coin would.
    """
    middle = statistics.median(abs(draw()) for _ in range(1_001))
    while True:
        pair = []
        for _ in range(2):
            began = time.perf_counter_ns()
            size = abs(draw())
            pair.append((size > middle, time.perf_counter_ns() - began))
        (is_large, first), (other_is_large, second) = pair
        if is_large != other_is_large:
            yield (second, first) if is_large else (first, second)


@pytest.mark.parametrize("epsilon", ["1", "0.01"])
def test_large_noise_takes_no_longer_than_small(epsilon):
    assert not told(by_size(lambda: laplace_mechanism(0, sensitivity=1, epsilon=epsilon)))


def test_large_noise_takes_no_longer_than_small_for_a_float():
    assert not told(by_size(lambda: laplace_mechanism(0.0, sensitivity=1, epsilon="0.5")))


def test_control_a_sampler_that_counts_one_by_one_is_seen():
    """The geometric law by its definition: go on until a coin of e^(−1/100) fails."""
    chance = 0.99

    def draw() -> int:
        size = 0
        while _coins.random() < chance:
            size += 1
        return size

    assert told(by_size(draw))
