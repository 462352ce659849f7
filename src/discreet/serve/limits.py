"""How much a client may take: requests in a second, bytes and seconds of a body, and what the time of an answer tells.

    an answer leaves at  arrival + k·quantum,  with the least k for which it is ready

so time tells k, and hardly more than that. A client that sends its headers or its body too slowly is let go of.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from dataclasses import dataclass
from typing import Any

import anyio
import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.errors import InvalidParameter
from discreet.serve.refusal import Refusal
from discreet.serve.strict import LONGEST, too_long


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds for every client."""

    quantum: float = 0.25
    """Seconds; 0 lets answers leave when they are ready."""
    rate: float = 20.0
    """Requests of one token in a second, on average."""
    burst: int = 40
    """Requests of one token at once."""
    patience: float = 10.0
    """Seconds for the headers of a request, and as many for its body."""
    threads: int = 8
    """Requests that are worked on at once; the ledger serves one at a time in any case."""
    connections: int = 1_000
    """Beyond this many at once, a request is told to come again."""

    def __post_init__(self) -> None:
        if not 0 <= self.quantum <= 60:
            raise InvalidParameter(f"quantum must lie between 0 and 60 seconds, got {self.quantum}")
        if not (self.rate > 0 and self.burst >= 1 and self.patience > 0 and self.threads >= 1):
            raise InvalidParameter("rate, burst, patience and threads must be positive")


class Rate:
    """A bucket of requests for each token: it fills at the rate, and holds one burst."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """One request of this name, or a `Refusal`."""
        limits, now = self._limits, time.monotonic()
        with self._lock:
            held, then = self._buckets.get(name, (float(limits.burst), now))
            held = min(float(limits.burst), held + (now - then) * limits.rate)
            if held >= 1:
                self._buckets[name] = held - 1, now
                return
            self._buckets[name] = held, now
        raise Refusal(429, "Too many requests.", "Wait a second, then ask again; nothing was spent.")


async def read_body(request: Request, patience: float) -> bytes:
    """The body, if it comes in time and is short enough."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > LONGEST:
        raise too_long()
    body = bytearray()
    try:
        with anyio.fail_after(patience):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST:
                    raise too_long()
    except TimeoutError:
        raise Refusal(408, "The body did not come in time.", "Send it again; nothing was spent.") from None
    except ClientDisconnect:
        raise Refusal(400, "The body did not come.", "Send it again; nothing was spent.") from None
    return bytes(body)


async def hold(arrival: float, quantum: float) -> None:
    """Wait for the next multiple of the quantum after the arrival."""
    if quantum > 0:
        passed = time.monotonic() - arrival
        await anyio.sleep(math.ceil(passed / quantum) * quantum - passed)


def punctual(patience: float) -> type[H11Protocol]:
    """The protocol of a server that waits so many seconds for the headers of a request, and no longer."""

    class Punctual(H11Protocol):  # type: ignore[misc, unused-ignore]
        """HTTP/1.1; a connection without a request in time is closed."""

        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self._waiting is None:  # a further request has begun
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(patience, self._late)

        def _stop(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

        def _late(self) -> None:
            self._waiting = None
            if not self.transport.is_closing():
                self.transport.abort()

    return Punctual
