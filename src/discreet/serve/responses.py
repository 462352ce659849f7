"""What leaves the server: JSON, and long bodies from a file, so that no connection holds one in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE = 64 * 1024
"""Bytes that are handed to a connection at a time; the next ones wait until it has sent most of them."""

_LONG = 1024 * 1024

_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; trusted-types; require-trusted-types-for 'script'"
)
"""What the page may load: its own files, and nothing that is written inside it; no text becomes markup."""

HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
"""On every response."""


class StoredResponse(Response):
    """A long body, in a file that has no name and is gone when it was sent."""

    def __init__(self, body: bytes, media_type: str) -> None:
        super().__init__(media_type=media_type)
        self.headers["content-length"] = str(len(body))
        self._file = TemporaryFile()  # noqa: SIM115 - closed when it was sent
        self._file.write(body)

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Send it piece by piece."""
        with self._file as file:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            file.seek(0)
            while piece := file.read(PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def sent(body: bytes, media_type: str = "application/json") -> Response:
    """A response with this body."""
    return StoredResponse(body, media_type) if len(body) > _LONG else Response(body, media_type=media_type)


def encoded(content: Mapping[str, Any]) -> bytes:
    """JSON without spaces."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def told(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    return Response(encoded(content), status, headers, "application/json")
