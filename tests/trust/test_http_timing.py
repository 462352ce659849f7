"""TRUST 33 over HTTP: answers leave on a quantum, so that the time of a slow statement and a quick
one is the same.

The clock is ours: a statement moves it on, and so does the wait for the quantum, so that times are
exact on a machine however busy. The control: without a quantum the two are told apart. On the real
clock, nothing leaves before it.
"""

import time
from unittest import mock

import pytest

from discreet.serve.limits import Limits
from serving import body, clock_of, folder_in_memory, served

QUANTUM = 0.5


def times(quantum: float, slowness: list[float]) -> list[float]:
    """How long answers take, one after the other, whose statements take so many seconds."""
    found, limits = [], Limits(quantum=quantum, rate=10**6, burst=10**6)
    with (
        folder_in_memory() as folder,
        served(folder, limits=limits) as site,
        clock_of("app") as clock,
    ):
        real, steps = site.study.engine.fetch, iter(slowness)

        def fetch(request: object) -> object:
            clock.move(next(steps))
            return real(request)

        async def sleep(seconds: float) -> None:
            clock.move(seconds)

        client = site.client()
        with mock.patch.object(site.study.engine, "fetch", fetch), mock.patch("anyio.sleep", sleep):
            for at in range(len(slowness)):
                began = clock.monotonic()
                assert (
                    client.post("/release", json=body(epsilon=f"0.00{at + 1}")).status_code == 200
                )
                found.append(clock.monotonic() - began)
    return found


def test_time_tells_a_multiple_of_the_quantum_and_no_more():
    found = times(QUANTUM, [1e-6, 0.1, 0.25, 0.499, 0.501, 0.75, 1.2])
    assert found == pytest.approx([QUANTUM] * 4 + [2 * QUANTUM] * 2 + [3 * QUANTUM], abs=1e-6)


def test_without_a_quantum_the_slow_one_is_seen():
    assert times(0, [0.01, 0.25]) == pytest.approx([0.01, 0.25], abs=1e-6)


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
                began = time.monotonic()
                assert client.post(path, json=asked).status_code == status
                passed = time.monotonic() - began
                assert passed >= 0.3


def test_an_answer_waits_for_the_quantum_by_the_clock_on_the_wall():
    limits = Limits(quantum=0.3, rate=10**6, burst=10**6)
    with folder_in_memory() as folder, served(folder, limits=limits) as site:
        began = time.monotonic()
        assert site.client().post("/release", json=body()).status_code == 200
        assert time.monotonic() - began >= 0.3
