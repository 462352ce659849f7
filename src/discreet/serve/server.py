"""A running server: uvicorn around the application, reachable only from this machine unless the
custodian opens it.

Nobody can hold a connection forever:

    a request must be complete within `patience` of its first byte; an idle connection is closed
    after `patience` a client must read something every `patience`, `pace` bytes per second on
    average, and all within `reading`

When all connections are in use, a new one closes the connection that has waited longest for its
request, so that slow senders displace each other and not those who ask. Connections are checked ten
times a second.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL
from pathlib import Path
from socket import AI_PASSIVE, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from threading import Timer
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.errors import InvalidParameter
from discreet.release.study import Study
from discreet.release.study import open as open_study
from discreet.serve.access import FILE
from discreet.serve.address import LOCAL, host_name, is_local
from discreet.serve.limits import Limits
from discreet.serve.operation.guard import HEADERS
from discreet.serve.operation.log import tell
from discreet.serve.operation.metrics import METRICS
from discreet.serve.refusals import Refusal
from discreet.serve.schema import json_bytes
from discreet.serve.store import REQUESTS

_HEADER_BYTES = 16 * 1024

_HEAD = re.compile(rb".*?\n\r?\n", re.DOTALL)
"""The head of a request: up to what h11 takes for an empty line."""

_UNCLEAR = re.compile(
    rb"(?<!\r)\n|\r(?!\n)"  # a line that ends without CR or without LF
    rb"|\n[ \t]"  # a header in several lines
    # anything but one length
    rb"|\ncontent-length:(?![ \t]*[0-9]+[ \t]*\r)|\ncontent-length:.*\ncontent-length:",
    re.IGNORECASE | re.DOTALL,
)
"""What h11 accepts in a head, and another reader on the way may read otherwise [RFC9112]."""

_LATE = Refusal(408, "The request did not arrive in time.", "Send it again; nothing was spent.")
_FULL = Refusal(503, "All connections are in use.", "Try again in a moment; nothing was spent.")
_FOREIGN = Refusal(
    400, "This is not a request in HTTP/1.1.", "GET /openapi.json lists what can be asked."
)
_REASONS = {_LATE.status: "late", _FULL.status: "full", _FOREIGN.status: "no HTTP"}
_QUIET = 2  # seconds that a server may wait at its start without a word
# connections from one address, if the server sees it: many people of an institute may share one
PER_ADDRESS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    host: str = "127.0.0.1"
    port: int = 8000
    certfile: Path | None = None
    keyfile: Path | None = None
    insecure_public: bool = False
    # names under which clients reach the server, besides `host`
    allowed_hosts: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """The names that the header Host of a request may have."""
        return frozenset(
            {
                *map(host_name, (self.host, *self.allowed_hosts)),
                *(LOCAL if is_local(self.host) else ()),
            }
        )

    @property
    def is_behind_proxy(self) -> bool:
        """Whether all connections may come from the address of a proxy."""
        return self.insecure_public or is_local(self.host)

    def __post_init__(self) -> None:
        if (self.certfile is None) != (self.keyfile is None):
            raise InvalidParameter("certfile and keyfile must be given together")
        if not (self.certfile or self.insecure_public or is_local(self.host)):
            raise InvalidParameter(
                "host must be this machine (127.0.0.1) unless the server has TLS, got"
                f" {self.host!r}: tokens would be sent unencrypted; give --certfile and --keyfile,"
                " or --insecure-public behind a proxy that has TLS"
            )
        if host_name(self.host) in ("0.0.0.0", "::") and not self.allowed_hosts:  # noqa: S104
            raise InvalidParameter(
                f"allowed-host must name the host that clients use if host is {self.host!r}, "
                "as in --allowed-host data.example.org"
            )


@contextmanager
def waiting(say: Callable[[str], object], what: str) -> Iterator[None]:
    """Within the block: say once what the server waits for, if that takes longer than `_QUIET`."""
    words = (
        f"Waiting for {what}, which did not answer within {_QUIET:g} s: it is slow, or another"
        " process uses it."
    )
    late = Timer(_QUIET, say, [words])
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def open_studies(
    paths: Sequence[Path],
    ledger: str | None = None,
    anchor: str | None = None,
    time_limit: str | None = None,
    *,
    say: Callable[[str], object],
) -> dict[str, Study]:
    """The studies by name, with their ledgers and their sources open."""
    studies: dict[str, Study] = {}
    for path in paths:
        with waiting(say, f"the ledger of {path}"):
            study = open_study(path, ledger=ledger, anchor=anchor, time_limit=time_limit)
        if (name := study.name) in studies:
            raise InvalidParameter(
                f"studies must have different names, got {name!r} twice: rename one of the files"
            )
        studies[name] = study
        with waiting(say, f"the source of {path}"):
            study.schema  # noqa: B018 - kept by the study
    return studies


def files_of(paths: Sequence[Path], access: Path | None) -> tuple[Path, Path]:
    """The files of tokens and of requests: beside the first study, or at `access`."""
    tokens = access or paths[0].parent / FILE
    return tokens, tokens.with_name(REQUESTS)


class _Transport:
    def __init__(self, transport: Any) -> None:
        self._transport, self.written = transport, 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(H11Protocol):  # type: ignore[misc, unused-ignore]
    limits: Limits
    live: ClassVar[set[Connection]]  # the open connections of this server

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_Transport(transport))  # type: ignore[arg-type, unused-ignore]
        self.network = _network(self.client[0]) if self.client else None
        self.is_idle, self.since = True, time.monotonic()
        # since when bytes wait to be read, and how many were read before
        self._slow: tuple[float, int] | None = None
        self._taken, self._moved = 0, self.since
        self._answering: float | None = None  # since when an answer is being sent
        has_room = _has_room(self.limits.connections, self.live)
        if self.limits.per_address is not None:
            same_network = {other for other in self.live if other.network == self.network}
            has_room = has_room and _has_room(self.limits.per_address, same_network)
        if not has_room:
            self._refuse(_FULL)
        self.live.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.live.discard(self)
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether no complete request has arrived."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered or self.conn.their_state is h11.SEND_BODY

    def data_received(self, data: bytes) -> None:
        """Read more of a request; its time starts with the first byte."""
        if self.is_idle:
            self.is_idle, self.since = False, time.monotonic()
        super().data_received(data)

    def handle_events(self) -> None:
        """Read the next request, whose head h11 alone would read more kindly than a proxy may."""
        is_new = self.conn.their_state is h11.IDLE
        head = _HEAD.match(self.conn.trailing_data[0]) if is_new else None
        if head is not None and _UNCLEAR.search(head[0]):
            self._refuse(_FOREIGN)
        else:
            super().handle_events()

    def on_response_complete(self) -> None:
        self.is_idle, self.since = True, time.monotonic()
        super().on_response_complete()

    def send_400_response(self, _: str) -> None:
        self._refuse(_FOREIGN)

    def look(self, now: float) -> None:
        patience, pace = self.limits.patience, self.limits.pace
        waits = self.transport.get_write_buffer_size()
        taken = self.transport.written - waits  # type: ignore[attr-defined, unused-ignore]
        if taken > self._taken:
            self._taken, self._moved = taken, now
        is_answering = (
            self.cycle is not None
            and self.cycle.response_started
            and not self.cycle.response_complete
        )
        self._answering = (self._answering or now) if is_answering or waits else None
        if self._answering is not None and now - self._answering > self.limits.reading:
            self._end("slow", "the client took too long to read the answer")
        elif not waits:
            self._slow = None
            if self.is_waiting and now - self.since > patience and not self.transport.is_closing():
                self._refuse(_LATE)
        elif self._slow is None:
            self._slow, self._moved = (now, taken), now
        else:
            began, before = self._slow
            if now - self._moved > patience or now - began > patience + (taken - before) / pace:
                self._end("slow", "the client read too slowly")

    def _end(self, reason: str, words: str) -> None:
        METRICS.add("discreet_closed_total", reason=reason)
        tell("closed", f"- closed: {words}", reason=reason)
        self.abort()

    def abort(self) -> None:
        self.live.discard(self)
        self.transport.abort()

    def _refuse(self, refusal: Refusal) -> None:
        """Send the refusal if no response has begun, and close the connection."""
        if (self.is_idle and refusal is _LATE) or self.conn.our_state not in (
            h11.IDLE,
            h11.SEND_RESPONSE,
        ):
            self.abort()
            return
        body = json_bytes(refusal.body)
        described = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        headers = [*described, (b"connection", b"close"), *HEADERS]
        response = h11.Response(status_code=refusal.status, headers=headers, reason=b"")
        events = response, h11.Data(data=body), h11.EndOfMessage()
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        METRICS.add("discreet_closed_total", reason=_REASONS[refusal.status])
        tell(
            "closed",
            f"- refused {refusal.status}",
            reason=_REASONS[refusal.status],
            status=refusal.status,
        )


def _has_room(most: int, crowd: set[Connection]) -> bool:
    """Whether one more fits; if there are too many, those that have waited longest are closed, a
    few at a time.
    """
    if len(crowd) < most:
        return True
    waiting = sorted(
        (member for member in crowd if member.is_waiting), key=lambda member: member.since
    )
    for connection in waiting[: 1 + most // 20]:
        connection.abort()
    return bool(waiting)


def _network(host: str) -> object:
    """The network of an address: an IPv6 customer has at least a /64.

    >>> _network("10.0.0.1"), _network("2001:db8::1") == _network("2001:db8::2")
    (IPv4Network('10.0.0.1/32'), True)
    """
    try:
        bits = 32 if ipaddress.ip_address(host).version == 4 else 64
        return ipaddress.ip_network((host, bits), strict=False)
    except ValueError:
        return host


class Server(uvicorn.Server):
    """uvicorn with time limits for connections, including the TLS handshake."""

    def __init__(self, config: uvicorn.Config, limits: Limits, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._limits, self._stop = limits, stop

    def run(self, sockets: list[socket] | None = None) -> None:
        patience = self._limits.patience

        class Loop(asyncio.SelectorEventLoop):
            async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
                if options.get("ssl") is not None:
                    options |= {"ssl_handshake_timeout": patience, "ssl_shutdown_timeout": patience}
                return await super().create_server(*args, **options)

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(self.serve(sockets))

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: close connections that are too slow."""
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.look(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Let requests finish; after `grace`, interrupt their statements, and tell their clients to
        ask again.
        """
        running = len(self.server_state.tasks)
        tell(
            "ending",
            f"ending: {running} requests have {self._limits.grace:g} s to finish",
            requests=running,
        )
        stopping = asyncio.ensure_future(self._stop_late())
        try:
            await super().shutdown(sockets)
        finally:
            stopping.cancel()
        tell("ended", "ended")

    async def _stop_late(self) -> None:
        await asyncio.sleep(self._limits.grace)
        tell(
            "stopping",
            f"interrupting {len(self.server_state.tasks)} requests",
            requests=len(self.server_state.tasks),
        )
        while True:  # a statement may be about to start
            await asyncio.to_thread(self._stop)
            await asyncio.sleep(0.1)


def bound(endpoint: Endpoint) -> socket:
    """A socket bound to the address of a server, not listening yet; refused if the address cannot
    be used.
    """
    try:
        family, kind, number, _, address = getaddrinfo(
            endpoint.host, endpoint.port, type=SOCK_STREAM, flags=AI_PASSIVE
        )[0]
        listener = socket(family, kind, number)
    except OSError:
        raise InvalidParameter(
            f"host must be an address of this machine, got {endpoint.host!r}"
        ) from None
    try:
        # a server that has just ended leaves connections in TIME_WAIT
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        why = {
            EADDRINUSE: (
                f"port {endpoint.port} is in use: stop that program, or choose another with --port"
            ),
            EACCES: (
                f"port {endpoint.port} needs more rights: choose a port above 1023, with a proxy in"
                " front"
            ),
            EADDRNOTAVAIL: f"host must be an address of this machine, got {endpoint.host!r}",
        }
        raise InvalidParameter(
            why.get(error.errno or 0, f"port {endpoint.port}: {error.strerror}")
        ) from None
    return listener


def refuse_certificate(endpoint: Endpoint) -> None:
    """Refuse an unusable certificate before anything is opened."""
    if endpoint.certfile is None:
        return
    try:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(endpoint.certfile, endpoint.keyfile, password=lambda: b"")
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise InvalidParameter(
            "certfile and keyfile must be a certificate and its private key, in PEM and without a"
            " password"
        ) from None


def server(app: Any, *, endpoint: Endpoint, limits: Limits) -> Server:
    """uvicorn around the application, whose `stop` interrupts its statements."""
    config = uvicorn.Config(
        app,
        host=endpoint.host,
        port=endpoint.port,
        http=type("Limited", (Connection,), {"limits": limits, "live": set()}),
        ws="none",
        lifespan="off",
        ssl_certfile=endpoint.certfile,
        ssl_keyfile=endpoint.keyfile,
        timeout_keep_alive=int(max(1, limits.patience)),
        timeout_graceful_shutdown=math.ceil(limits.grace + limits.patience),
        h11_max_incomplete_event_size=_HEADER_BYTES,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )
    return Server(config, limits, getattr(app, "stop", lambda: None))
