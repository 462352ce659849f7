"""The server: routes, tokens and formats around a desk.

    GET  /studies         what may be asked about             POST /plan      what a question would cost and give; free
    GET  /ledger          what was spent                      POST /release   the answer, spent for
    GET  /releases/{id}   an answer again: JSON, CSV, Parquet, PNG
    GET  /openapi.json    this, for programs                  GET  /          the page          GET /health

Work that blocks runs in threads. No exception leaves the application, so no traceback reaches a log.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.errors import InvalidParameter
from discreet.release.answer import Answer
from discreet.release.study import Study
from discreet.serve import strict
from discreet.serve.access import Access, Person
from discreet.serve.asked import asked
from discreet.serve.desk import Desk
from discreet.serve.limits import Limits, Rate, hold, read_body
from discreet.serve.openapi import document
from discreet.serve.refusal import FAILURE, Refusal, log, tell_operator
from discreet.serve.requests import Requests
from discreet.serve.wire import answer_json

PAGE = Path(__file__).with_name("page")

_FORMATS = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; trusted-types; require-trusted-types-for 'script'"
)
"""What the page may load: its own files, and nothing that is written inside it; no text becomes markup."""

_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
_EXTRA = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},  # what is still to come of the body is not waited for
    413: {"connection": "close"},
    429: {"retry-after": "1"},
}
_WORDS = {
    404: ("There is nothing here.", "GET /openapi.json lists what there is."),
    405: ("This cannot be done here.", "GET /openapi.json lists what can."),
}

_drawing = threading.Lock()
"""The renderer draws one figure at a time."""

Result = TypeVar("Result")
Handler = Callable[[Request], Awaitable[Response]]


def application(
    studies: Mapping[str, Study], access: Access, requests: Requests, *, limits: Limits | None = None
) -> ASGIApp:
    """The ASGI application that serves these studies to those who have a token."""
    front = Front(Desk(studies, requests), access, limits or Limits())
    routes = [
        Route("/", front.page),
        Route("/health", front.health),
        Route("/openapi.json", front.openapi),
        Route("/studies", front.studies),
        Route("/plan", front.plan, methods=["POST"]),
        Route("/release", front.release, methods=["POST"]),
        Route("/ledger", front.ledger),
        Route("/releases/{id}", front.released),
        *([Mount("/page", StaticFiles(directory=PAGE))] if PAGE.is_dir() else []),
    ]
    handlers: Any = {Refusal: _refused, HTTPException: _foreign, Exception: _failed}
    return guarded(Starlette(routes=routes, exception_handlers=handlers))


class Front:
    """The endpoints."""

    def __init__(self, desk: Desk, access: Access, limits: Limits) -> None:
        self._desk, self._access, self._limits = desk, access, limits
        self._rate = Rate(limits)
        self._threads: anyio.CapacityLimiter | None = None

    async def page(self, _: Request) -> Response:
        """The page."""
        index = PAGE / "index.html"
        if not index.exists():
            raise HTTPException(404)
        return FileResponse(index)

    async def health(self, _: Request) -> Response:
        """Whether the server is up."""
        return told({"status": "ok"})

    async def openapi(self, _: Request) -> Response:
        """The description for programs."""
        return told(document())

    async def studies(self, request: Request) -> Response:
        """What the token may ask about."""
        person = self._person(request)
        return told({"studies": await self._blocking(self._desk.studies, person)})

    async def ledger(self, request: Request) -> Response:
        """What was spent."""
        person = self._person(request)
        _only(request, {"study"})
        return told({"entries": await self._blocking(self._desk.entries, person, request.query_params.get("study"))})

    async def plan(self, request: Request) -> Response:
        """What a question would cost and give."""
        return await self._asked(request, self._desk.plan, release=False)

    async def release(self, request: Request) -> Response:
        """The answer to a question."""
        return await self._asked(request, self._desk.release, release=True)

    async def released(self, request: Request) -> Response:
        """An answer again, in the format that the client likes best."""
        person = self._person(request)
        form = _format(request)
        answer, kept = await self._blocking(self._desk.answer, person, request.path_params["id"])
        if form == "json":
            return told(answer_json(answer, kept.study, kept.view))
        return Response(await self._blocking(_written, answer, form), media_type=_FORMATS[form])

    async def _asked(self, request: Request, work: Callable[..., dict[str, Any]], *, release: bool) -> Response:
        """What the desk makes of a body; it leaves on the quantum, also if it is a refusal."""
        person = self._person(request)
        _only(request, set())
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "The content type must be application/json.", "Send the question as JSON.")
        body = await read_body(request, self._limits.patience)
        arrival = time.monotonic()
        try:
            question = asked(strict.read(body), release=release)
            response = told(await self._blocking(work, person, question))
        except Refusal as refusal:
            response = told(refusal.body, refusal.status)
        except Exception as error:
            tell_operator(error, request.url.path)
            response = told(FAILURE.body, FAILURE.status)
        await hold(arrival, self._limits.quantum)
        return response

    def _person(self, request: Request) -> Person:
        """Whose token came with the request; it is one of their requests."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        person = self._access.person(token.strip()) if scheme.lower() == "bearer" else None
        if person is None:
            raise Refusal(401, "A token is needed.", "Send the header Authorization: Bearer <your token>.")
        self._rate.take(person.name)
        request.scope["discreet"] = person.name
        return person

    async def _blocking(self, work: Callable[..., Result], *arguments: Any) -> Result:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self._limits.threads)
        found: Result = await anyio.to_thread.run_sync(partial(work, *arguments), limiter=self._threads)
        return found


def told(content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, headers, "application/json")


async def _refused(_: Request, refusal: Refusal) -> Response:
    return told(refusal.body, refusal.status, _EXTRA.get(refusal.status))


async def _foreign(_: Request, error: HTTPException) -> Response:
    words, advice = _WORDS.get(error.status_code, ("This cannot be answered.", "GET /openapi.json lists what can."))
    return told({"error": words, "advice": advice}, error.status_code, error.headers)


async def _failed(_: Request, __: Exception) -> Response:
    return told(FAILURE.body, FAILURE.status)


def _only(request: Request, known: set[str]) -> None:
    """Refuse parameters in the address that are not known, or come twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    if not set(names) <= known or len(names) != len(set(names)):
        wanted = ", ".join(sorted(known)) or "none"
        raise Refusal(400, f"The address may have these parameters, once each: {wanted}.", "Leave the others out.")


def _format(request: Request) -> str:
    """The format of an answer: what the address names, or what the Accept header likes best of ours."""
    _only(request, {"format"})
    wanted: str | None = request.query_params.get("format")
    if wanted is not None and wanted not in _FORMATS:
        raise Refusal(400, f"format must be one of {', '.join(_FORMATS)}.", "Correct the address.")
    if wanted is not None:
        return wanted
    liked: list[tuple[float, str]] = []
    for part in request.headers.get("accept", "*/*").split(","):
        media, *parameters = [piece.strip().lower() for piece in part.split(";")]
        weight = next((_weight(one[2:]) for one in parameters if one.startswith("q=")), 1.0)
        kinds = {name for name, kind in _FORMATS.items() if media == kind}
        if media in ("*/*", "application/*", ""):
            kinds, weight = {"json"}, weight - 1e-6  # named formats come first
        liked += [(weight, name) for name in kinds if weight > 0]
    if not liked:
        raise Refusal(406, f"An answer can be had as {', '.join(_FORMATS.values())}.", "Accept one of them.")
    return max(liked, key=lambda one: one[0])[1]


def _weight(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _written(answer: Answer, form: str) -> bytes:
    """The table of an answer in a format that is not JSON."""
    sink = io.BytesIO()
    if form == "csv":
        from pyarrow import csv  # type: ignore[import-untyped, unused-ignore]

        csv.write_csv(answer.to_arrow(), sink)
    elif form == "parquet":
        from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

        parquet.write_table(answer.to_arrow(), sink)
    else:
        return _drawn(answer)
    return sink.getvalue()


def _drawn(answer: Answer) -> bytes:
    """The figure of an answer."""
    from discreet.show import figures

    try:
        with _drawing, TemporaryDirectory() as folder:
            return figures.save(figures.make("release", answer=answer), Path(folder) / "figure.png").read_bytes()
    except InvalidParameter as error:
        raise Refusal(406, str(error), "Ask for json, csv or parquet.") from None


def guarded(app: ASGIApp) -> ASGIApp:
    """The application with our headers on every response, one line in the log for each, and no exception out of it."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        try:
            await app(scope, receive, answer)
        except Exception as error:
            tell_operator(error, scope["path"])
            if not status:
                await told(FAILURE.body, FAILURE.status)(scope, receive, answer)
        log.info("%s %s %r %s", scope.get("discreet", "-"), scope["method"], scope["path"], status)

    return guard
