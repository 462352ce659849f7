"""A running server: uvicorn around the application, on this machine only unless the custodian says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from discreet.errors import InvalidParameter
from discreet.release.study import Study
from discreet.release.study import open as open_study
from discreet.serve.access import FILE
from discreet.serve.address import is_local
from discreet.serve.limits import Limits, punctual
from discreet.serve.requests import FILE as REQUESTS

_HEADER_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure_public: bool = False

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameter("tls-cert and tls-key must be given together")
        if not (self.tls_cert or self.insecure_public or is_local(self.host)):
            raise InvalidParameter(
                f"host must be this machine (127.0.0.1) unless the server has TLS, got {self.host!r}: tokens would "
                "travel in the clear; give --tls-cert and --tls-key, or --insecure-public behind a proxy that has TLS"
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


def server(app: ASGIApp, *, place: Place, limits: Limits) -> uvicorn.Server:
    """A server that is ready to run."""
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        http=punctual(limits.patience),
        ws="none",
        loop="asyncio",
        lifespan="off",
        ssl_certfile=place.tls_cert,
        ssl_keyfile=place.tls_key,
        limit_concurrency=limits.connections,
        timeout_keep_alive=int(max(1, limits.patience)),
        timeout_graceful_shutdown=30,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
    )
    return uvicorn.Server(config)
