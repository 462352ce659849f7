"""Threads for one kind of work, by turns: plans never wait for releases, nor one study's work for
another's.

    of one token   a few requests are worked on and sent at the same time, a few more wait, and the
                   rest are refused
    of a lane      a thread that becomes free goes to the token that has the fewest; of several, to
                   each in its turn

As long as there are several threads, one token never has all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import anyio

from discreet.serve.refusals import Refusal

Result = TypeVar("Result")

# waiting requests of a token for each that is worked on: a page sends three at once when it opens
_WAITING = 4


class Standing:
    """How many requests of each token are worked on or wait; more are refused."""

    def __init__(self, at_once: int) -> None:
        self._most = at_once * (1 + _WAITING)
        self._counts: Counter[str] = Counter()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """A place while a request lasts, or a `Refusal`."""
        if self._counts[name] >= self._most:
            raise Refusal(
                429,
                f"This token already has {self._most} requests in progress or waiting.",
                "Wait for the answers, then ask again; nothing was spent.",
            )
        self._counts[name] += 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]


class Lane:
    """A few threads, in which blocking work waits for no other lane; used by one event loop."""

    def __init__(self, threads: int, at_once: int) -> None:
        self._threads = anyio.CapacityLimiter(threads)
        self._most = max(1, threads - 1)  # of one token
        self._at_once = at_once
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    def turn(self, name: str) -> asyncio.Semaphore:
        """One of the requests of a token that may be worked on and sent at the same time."""
        return self._turns.setdefault(name, asyncio.Semaphore(self._at_once))

    async def run(self, name: str, work: Callable[[], Result]) -> Result:
        """The result of blocking work in a thread, as soon as it is this token's turn."""
        await self._enter(name)
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        finally:
            self._leave(name)

    async def _enter(self, name: str) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave(name)
            else:
                with suppress(KeyError, ValueError):
                    self._waiting[name].remove(place)
            raise

    def _leave(self, name: str) -> None:
        self._busy[name] -= 1
        if not self._busy[name]:
            del self._busy[name]
        self._admit()

    def _admit(self) -> None:
        """Give each free thread to the token that has the fewest; of those, to the one that has
        waited longest.
        """
        while self._busy.total() < self._threads.total_tokens:
            names = [
                name
                for name, places in self._waiting.items()
                if places and self._busy[name] < self._most
            ]
            if not names:
                break
            name = min(names, key=lambda name: self._busy[name])
            places = self._waiting.pop(name)
            place = places.popleft()
            if places:
                self._waiting[name] = places  # now last
            self._busy[name] += 1
            place.set_result(None)
        self._waiting = {name: places for name, places in self._waiting.items() if places}
