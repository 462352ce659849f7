"""How much one client may take, so that others are served: requests, bytes, seconds, cells and ε.

    an answer leaves at  arrival + k·quantum,  with the least k for which it is ready

so the time of an answer shows k, and hardly more: see `app`. `server` enforces the limits of time and of connections,
the desk those of a question, and this module the others.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from starlette.requests import ClientDisconnect, Request

from discreet.errors import InvalidParameter
from discreet.serve.refusals import Refusal
from discreet.serve.schema import LONGEST, too_long

_WAITING = 4
"""Requests of a person that wait, for each that is worked on: a page sends three at once when it opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    quantum: float = 0.25
    """Seconds; 0 lets answers leave when they are ready."""
    rate: float = 20.0
    """Requests of one person in a second, on average."""
    burst: int = 40
    """Requests of one person in an instant, after a rest."""
    at_once: int = 2
    """Requests of one person that are worked on or being sent at a time."""
    releases_per_day: int = 1_000
    """Releases of one person, free repeats included: each new id takes a row of `discreet.requests`."""
    patience: float = 10.0
    """Seconds in which a request must come in whole, a reader must take something, and an idle connection ends."""
    pace: int = 16 * 1024
    """Bytes a second that a reader must take on average, after the first `patience`."""
    reading: float = 300.0
    """Seconds in which a reader must have taken a whole answer, however steadily."""
    grace: float = 30.0
    """Seconds that what runs has to end when the server is stopped; then its statements are stopped."""
    connections: int = 500
    """Open connections; one more closes the one that has waited longest for its request."""
    per_address: int | None = None
    """Open connections of one network address; None where a proxy in front has the addresses."""
    threads: int = 8
    """Plans and releases that are worked on at a time; short work has threads of its own."""
    most_numbers: int = 100_000
    """Numbers in an answer, each with its interval."""
    least_epsilon: Fraction = Fraction(1, 10_000)
    """ε of a question that is charged: a total of 1 then pays for at most 10,000 of them."""
    discovery: bool = False
    """Whether analysts may make the one discovery of a study, which spends its δ."""

    def __post_init__(self) -> None:
        if not 0 <= self.quantum <= 60:
            raise InvalidParameter(f"quantum must lie between 0 and 60 seconds, got {self.quantum}")
        positive = ("rate", "burst", "at_once", "releases_per_day", "patience", "pace", "reading", "grace")
        for name in (*positive, "connections", "threads", "most_numbers"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(f"{name} must be positive, got {getattr(self, name)}")
        if self.least_epsilon < 0:
            raise InvalidParameter(f"least_epsilon must not be negative, got {self.least_epsilon}")


class Rate:
    """A bucket of requests for each person: it fills at a rate, and holds one burst."""

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


class Turns:
    """A few requests of each person are worked on at a time, a few more wait, and the rest are refused."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._counts: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}

    @contextmanager
    def standing(self, name: str) -> Iterator[None]:
        """A place in the person's line for as long as the request is here, or a `Refusal`."""
        most = self._at_once * (1 + _WAITING)
        if self._counts[name] >= most:
            raise Refusal(
                429,
                f"{most} requests of this token are being answered or wait already.",
                "Wait for their answers, then ask again; nothing was spent.",
            )
        self._counts[name] += 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
                self._turns.pop(name, None)

    def turn(self, name: str) -> asyncio.Semaphore:
        return self._turns.setdefault(name, asyncio.Semaphore(self._at_once))


async def read_body(request: Request) -> bytes:
    """The body, if it is short enough; the connection ends one that does not come in time."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > LONGEST:
        raise too_long()
    try:
        return await request.body()
    except ClientDisconnect:
        raise Refusal(408, "The body did not come.", "Send it again; nothing was spent.") from None
