"""The wrapper of the application: checks the host, adds headers, logs, and lets no exception out.

Also whether a server can answer (`Readiness`), and how it interrupts its statements (`stop`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from discreet.ledger.chain import Entry
from discreet.release.study import Study
from discreet.serve.address import host_name
from discreet.serve.operation.log import tell, tell_operator
from discreet.serve.operation.metrics import METRICS
from discreet.serve.refusals import FAILURE, Refusal
from discreet.serve.schema import json_bytes

# The page may load only its own files and no inline code; no text becomes markup.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src"
    b" 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; trusted-types;"
    b" require-trusted-types-for 'script'"
)
HEADERS = [  # of every response
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
_EXTRA = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}}
_SINGLE = (b"authorization", b"content-length", b"content-type")
"""Headers that may occur once: a proxy in front might read two of them differently."""
_HOLDS = 1.0  # seconds for which a result of `Readiness` is reused, since anybody may ask
_PATIENCE = 2.0  # seconds for all checks of `Readiness` together
_CLOSE = (b"connection", b"close")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
"""Methods that the log names: a client may send any word as a method, even a token."""


class Guarded:
    """The application, guarded; `stop` ends the statements that it runs."""

    def __init__(self, app: Starlette, hosts: Collection[str], stop: Callable[[], None]) -> None:
        self._app, self._hosts, self.stop = app, hosts, stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = _misdirection(scope, self._hosts)
        headers = dict(scope["headers"])
        has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"").strip(
            b"0 "
        )
        status, unread = 0, refusal is not None or bool(has_body)

        async def hear() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                closing = [_CLOSE] if unread else []  # the rest of the body is not read
                message = {**message, "headers": [*message["headers"], *HEADERS, *closing]}
            await send(message)

        route = self._route(scope)
        METRICS.add("discreet_requests_in_progress")
        try:
            async with AsyncExitStack() as scope["discreet.exit"]:
                await (self._app if refusal is None else refusal_response(refusal))(
                    scope, hear, answer
                )
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # cancelled: the server ends before this request has
            tell_operator(error, route)
            if not status:
                await refusal_response(FAILURE)(scope, hear, answer)
        finally:
            METRICS.add("discreet_requests_in_progress", -1)
        METRICS.add("discreet_requests_total", route=route, status=str(status))
        name = scope.get("discreet.name", "-")
        method = scope["method"] if scope["method"] in _METHODS else "-"
        tell(
            "request",
            f"{name} {method} {route!r} {status}",
            name=name,
            method=method,
            route=route,
            status=status,
        )

    def _route(self, scope: Scope) -> str:
        """The route of a request, without any text of the client; "-" if there is none."""
        for route in self._app.routes:
            if route.matches(scope)[0] is not Match.NONE:
                return str(getattr(route, "path", "-"))
        return "-"


def refusal_response(refusal: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        json_bytes(refusal.body),
        refusal.status,
        headers or _EXTRA.get(refusal.status),
        "application/json",
    )


def _misdirection(scope: Scope, hosts: Collection[str]) -> Refusal | None:
    """The refusal of a request for another server, or one that a proxy may read differently."""
    names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    counts = Counter(name for name, _ in scope["headers"])
    if scope["http_version"] not in ("1.0", "1.1") or not scope["path"].startswith("/"):
        return Refusal(
            400,
            "A request must have a path and use HTTP/1.1.",
            "GET /openapi.json lists the paths.",
        )
    if len(names) != 1 or host_name(names[0]) not in hosts:
        return Refusal(
            421,
            "The header Host names another server than this one.",
            "Use the address that the custodian gave you; the custodian allows names with"
            " --allowed-host.",
        )
    if any(counts[name] > 1 for name in _SINGLE):
        return Refusal(
            400,
            "The headers Authorization, Content-Length and Content-Type must not occur twice.",
            "Send each once.",
        )
    if counts[b"transfer-encoding"]:
        return Refusal(
            411,
            "A body must have a Content-Length.",
            "Send Content-Length and no Transfer-Encoding.",
        )
    return None


class Check:
    """One thing that an answer needs; a check that hangs holds one thread, however often asked."""

    def __init__(self, part: str, study: str, work: Callable[[], Any]) -> None:
        self.part, self.study, self._work = part, study, work
        self._until, self._lock, self._done = 0.0, threading.Lock(), threading.Event()
        self.passes = False
        self.value: Any = None
        self._done.set()

    def begin(self, *, anew: bool) -> None:
        """Look again in a thread, unless somebody does, or, without `anew`, has just done so."""
        with self._lock:
            if (anew or time.monotonic() >= self._until) and self._done.is_set():
                self._done.clear()
                threading.Thread(target=self._look, daemon=True).start()

    def result(self, end: float) -> bool:
        """Whether it passes; not if that is unknown at the end of our patience."""
        return self._done.wait(max(0.0, end - time.monotonic())) and self.passes

    def _look(self) -> None:
        try:
            self.value = self._work()
            self.passes = True
        except Exception as error:
            self.passes, self.value = False, None
            tell_operator(
                error, f"the {self.part}{f' of study {self.study!r}' if self.study else ''}"
            )
        finally:
            self._until = time.monotonic() + _HOLDS
            self._done.set()


class Readiness:
    """Whether sources, ledgers, tokens and disk can be used; failures go to the operator's log."""

    def __init__(self, studies: Mapping[str, Study], **others: Callable[[], Any]) -> None:
        self.checks = [
            *(Check("source", name, study.engine.probe) for name, study in studies.items()),
            *(Check("ledger", name, partial(_usable, study)) for name, study in studies.items()),
            *(Check(part, "", work) for part, work in others.items()),
        ]

    def __call__(self) -> list[str]:
        """The kinds of what failed, or did not answer in time."""
        return sorted({check.part for check, passes in self.results() if not passes})

    def results(self, *, anew: bool = False) -> list[tuple[Check, bool]]:
        """The checks, and whether they pass."""
        for check in self.checks:
            check.begin(anew=anew)
        end = time.monotonic() + _PATIENCE
        return [(check, check.result(end)) for check in self.checks]


def _usable(study: Study) -> Entry:
    """The last entry of a ledger that can be read and written."""
    study.ledger.refuse_full()
    [head] = study.ledger.recent(study.name, last=1)
    return head


def stop(studies: Mapping[str, Study]) -> None:
    """Interrupt running statements: their ε is spent, and asking again is free."""
    for study in studies.values():
        getattr(study.engine, "interrupt", lambda: None)()
