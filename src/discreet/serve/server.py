"""A running server: uvicorn around the application, on this machine only unless the custodian says otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from discreet.errors import InvalidParameter
from discreet.release.study import Study
from discreet.release.study import open as open_study
from discreet.serve.access import FILE
from discreet.serve.address import LOCAL, host_name, is_local
from discreet.serve.connections import Connection
from discreet.serve.limits import Limits
from discreet.serve.requests import FILE as REQUESTS

_HEADER_BYTES = 16 * 1024

PER_ADDRESS = 100
"""Connections of one network address, where the server sees them: many people of one institute may share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_public: bool = False
    allowed_hosts: tuple[str, ...] = ()
    """Names under which clients reach the server, besides `host`."""

    @property
    def hosts(self) -> frozenset[str]:
        """What the header Host of a request may name."""
        return frozenset({*map(host_name, (self.host, *self.allowed_hosts)), *(LOCAL if is_local(self.host) else ())})

    @property
    def is_behind_proxy(self) -> bool:
        """Whether all connections may come from one address, that of a proxy."""
        return self.insecure_public or is_local(self.host)

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameter("tls-cert and tls-key must be given together")
        if not (self.tls_cert or self.insecure_public or is_local(self.host)):
            raise InvalidParameter(
                f"host must be this machine (127.0.0.1) unless the server has TLS, got {self.host!r}: tokens would "
                "travel in the clear; give --tls-cert and --tls-key, or --insecure-public behind a proxy that has TLS"
            )
        if host_name(self.host) in ("0.0.0.0", "::") and not self.allowed_hosts:  # noqa: S104
            raise InvalidParameter(
                f"allowed-host must say under which name clients reach the server if host is {self.host!r}, "
                "as in --allowed-host data.example.org"
            )


def opened(paths: Sequence[Path]) -> dict[str, Study]:
    """The studies of these policies, by name."""
    studies: dict[str, Study] = {}
    for path in paths:
        if path.stem in studies:
            raise InvalidParameter(f"studies must differ in name, got {path.stem!r} twice: rename one of the files")
        studies[path.stem] = open_study(path)
    return studies


def files_of(paths: Sequence[Path], access: Path | None) -> tuple[Path, Path]:
    """Where tokens and requests are kept: beside the first study, or where the custodian says."""
    tokens = access or paths[0].parent / FILE
    return tokens, tokens.with_name(REQUESTS)


class Server(uvicorn.Server):
    """uvicorn, with limits of time for connections, also while TLS is being agreed on."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self._limits = limits

    def run(self, sockets: list[socket] | None = None) -> None:
        """Serve until told to end."""
        patience = self._limits.patience

        class Loop(asyncio.SelectorEventLoop):
            async def create_server(self, *given: Any, **options: Any) -> asyncio.Server:
                if options.get("ssl") is not None:
                    options |= {"ssl_handshake_timeout": patience, "ssl_shutdown_timeout": patience}
                return await super().create_server(*given, **options)

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(self.serve(sockets))

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: end the connections that are late."""
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.look(now)
        return await super().on_tick(counter)


def server(app: ASGIApp, *, place: Place, limits: Limits) -> Server:
    """A server that is ready to run."""
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        http=type("Limited", (Connection,), {"limits": limits, "live": set()}),
        ws="none",
        lifespan="off",
        ssl_certfile=place.tls_cert,
        ssl_keyfile=place.tls_key,
        timeout_keep_alive=int(max(1, limits.patience)),
        timeout_graceful_shutdown=30,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )
    return Server(config, limits)
