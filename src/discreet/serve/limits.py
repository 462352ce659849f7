"""Limits for one client, so that others are served: requests, bytes, seconds, cells and ε.

    an answer is sent at  arrival + k·quantum,  with the smallest k for which it is ready

so the time of an answer reveals little more than k: see `app`. `server` enforces the limits of time
and connections, the desk those of a question, `lanes` what is worked on at the same time, and this
module the others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from fractions import Fraction

from starlette.requests import ClientDisconnect, Request

from discreet.errors import InvalidParameter
from discreet.serve.refusals import Refusal
from discreet.serve.schema import LONGEST, too_long


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    quantum: float = 0.25  # seconds; with 0, answers are sent when they are ready
    rate: float = 20.0  # requests of one person per second, on average
    burst: int = 40  # requests of one person at once, after a pause
    # requests of one person and one lane that are processed or sent at the same time
    at_once: int = 2
    # of one person, with free repeats: each new id takes a row of `discreet.requests`
    releases_per_day: int = 1_000
    # seconds for a request to arrive, for a client to read something, for an idle connection
    patience: float = 10.0
    # bytes per second that a client must read on average, after the first `patience`
    pace: int = 16 * 1024
    reading: float = 300.0  # seconds for a client to read a whole answer
    # seconds for requests to finish when the server stops; then their statements are interrupted
    grace: float = 30.0
    # open; another one closes the connection that has waited longest for its request
    connections: int = 500
    # open connections from one address; None behind a proxy, which hides addresses
    per_address: int | None = None
    threads: int = 8  # plans, and releases, of each study that are processed at the same time
    most_numbers: int = 100_000  # numbers in an answer, each with its interval
    # of a charged question: a total of 1 pays for at most 10,000 of them
    least_epsilon: Fraction = Fraction(1, 10_000)
    # whether analysts may run the one discovery of a study, which spends its δ
    discovery: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.quantum <= 60:
            raise InvalidParameter(f"quantum must lie between 0 and 60 seconds, got {self.quantum}")
        positive = (
            "rate",
            "burst",
            "at_once",
            "releases_per_day",
            "patience",
            "pace",
            "reading",
            "grace",
        )
        for name in (*positive, "connections", "threads", "most_numbers"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(f"{name} must be positive, got {getattr(self, name)}")
        if self.least_epsilon < 0:
            raise InvalidParameter(f"least_epsilon must not be negative, got {self.least_epsilon}")


class Rate:
    """A token bucket for each person: it fills at `rate` and holds at most `burst`."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst, self._lock = rate, float(burst), threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> bool:
        now = time.monotonic()
        with self._lock:
            left, then = self._buckets.get(name, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            self._buckets[name] = (left - 1 if left >= 1 else left), now
        return left >= 1


async def read_body(request: Request) -> bytes:
    """The body, if it is short enough; the server closes a connection whose body is late."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > LONGEST:
        raise too_long()
    try:
        return await request.body()
    except ClientDisconnect:
        raise Refusal(
            408, "The body of the request did not arrive.", "Send it again; nothing was spent."
        ) from None
