"""TRUST 33 over HTTP: answers leave on a quantum, so that the time of a slow statement and a quick one is the same.

The control: without a quantum the two are told apart at once.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from unittest import mock

from discreet.serve.limits import Limits
from serving import Served, body, folder_in_memory, served

SLOWER = 0.25
QUANTUM = 0.5
TIMES = 4


@contextmanager
def slower(site: Served, seconds: float) -> Iterator[None]:
    """A statement that takes longer, as one over data with one heavy unit might."""
    real = site.study.engine.fetch

    def fetch(request: Any) -> Any:
        found = real(request)
        time.sleep(seconds)
        return found

    with mock.patch.object(site.study.engine, "fetch", fetch):
        yield


def times(limits: Limits, seconds: float) -> list[float]:
    """How long some answers take, one after the other."""
    found = []
    with folder_in_memory() as folder, served(folder, limits=limits) as site, slower(site, seconds):
        client = site.client()
        for at in range(TIMES):
            began = time.perf_counter()
            assert client.post("/release", json=body(epsilon=f"0.00{at + 1}")).status_code == 200
            found.append(time.perf_counter() - began)
    return found


def test_time_tells_a_multiple_of_the_quantum_and_no_more():
    limits = Limits(quantum=QUANTUM, rate=10**6, burst=10**6)
    for seconds in (0.0, SLOWER):
        found = times(limits, seconds)
        assert min(found) >= QUANTUM
        assert median(one % QUANTUM for one in found) < QUANTUM / 3


def test_without_a_quantum_the_slow_one_is_seen():
    limits = Limits(quantum=0, rate=10**6, burst=10**6)
    assert min(times(limits, SLOWER)) - min(times(limits, 0.0)) > SLOWER / 2


def test_refusals_and_failures_leave_on_the_quantum_too():
    limits = Limits(quantum=0.3, rate=10**6, burst=10**6)
    with folder_in_memory() as folder, served(folder, limits=limits) as site:
        client = site.client()
        failing = mock.patch.object(site.study.engine, "fetch", side_effect=RuntimeError)
        with failing:
            for path, asked, status in (
                ("/release", body(epsilon="99"), 403),
                ("/release", body(sql="SELECT * FROM people"), 422),
                ("/plan", body(epsilon="0", request_id=None), 400),
                ("/release", body(), 503),
            ):
                began = time.perf_counter()
                assert client.post(path, json=asked).status_code == status
                passed = time.perf_counter() - began
                assert passed >= 0.3
