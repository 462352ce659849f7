"""The server: routes, tokens and formats around a desk.

    GET  /studies         the studies and what is left
    GET  /ledger          what was spent
    POST /plan            cost and errors of a question; free
    POST /release         the answer, for ε
    GET  /releases/{id}   a released answer: JSON, CSV, Parquet, XLSX, PNG
    POST /discover/plan, /discover
                          keys without a public list, if the custodian allows it
    GET  /openapi.json    this, for programs
    GET  /                the page
    GET  /healthz, /readyz, /metrics
                          for operators

Blocking work runs in the threads of its lane. Whatever reads a ledger or a source has a lane for
each study, or for the studies that a token opens: where one of them hangs, those who may not use it
do not wait. No exception leaves the application, so no traceback reaches a log.
"""

from __future__ import annotations

import hmac
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from discreet.ask.statistics import STATISTICS
from discreet.release.answer import Answer
from discreet.release.study import Study
from discreet.serve import bodies
from discreet.serve.access import Access, Person
from discreet.serve.address import LOCAL
from discreet.serve.answers import answer_body, offered_formats, report_body, table_bytes, view_json
from discreet.serve.bodies import FORMATS
from discreet.serve.desk import Desk
from discreet.serve.lanes import Lane, Standing
from discreet.serve.limits import Limits, Rate, read_body
from discreet.serve.operation.guard import Guarded, Readiness, refusal_response, stop
from discreet.serve.operation.log import tell_operator
from discreet.serve.operation.metrics import MEDIA_TYPE, METRICS, MONITOR, hashed
from discreet.serve.refusals import FAILURE, Refusal
from discreet.serve.schema import document, json_bytes, read
from discreet.serve.store import Requests, refuse_full

PAGE = Path(__file__).with_name("page")
# bytes that are written to a connection at a time; the next piece waits until most of them are sent
PIECE = 64 * 1024
_LONG = 1024 * 1024

_WORDS = {
    404: ("There is nothing at this path.", "GET /openapi.json lists the paths."),
    405: ("This method is not allowed here.", "GET /openapi.json lists the methods of each path."),
}
_OTHER = ("This request cannot be answered.", "GET /openapi.json lists what can be asked.")
_SHORT_THREADS = 4
Question = TypeVar("Question")


def application(
    studies: Mapping[str, Study],
    access: Access,
    requests: Requests,
    *,
    limits: Limits | None = None,
    hosts: Collection[str] = LOCAL,
    metrics_key: bytes | None = None,
) -> Guarded:
    """The ASGI application that serves these studies, under these hosts, to owners of a token."""
    limits = limits or Limits()
    document()  # reads the types of all bodies once, before the threads start
    desk = Desk(studies, requests, limits)
    ready = Readiness(studies, tokens=access.names, disk=lambda: refuse_full(requests.path))
    front = Front(desk, access, limits, ready, metrics_key)
    routes = [
        Route("/", front.page),
        Route("/healthz", front.health),
        Route("/readyz", front.ready),
        Route("/metrics", front.metrics),
        Route("/openapi.json", front.openapi),
        Route("/studies", front.studies),
        front.question("/plan", bodies.Question, desk.plan),
        front.question("/release", bodies.Request, desk.release, spends=True),
        front.question("/report/plan", bodies.ReportQuestion, desk.report_plan),
        front.question("/report", bodies.ReportRequest, desk.report, spends=True),
        front.question("/discover/plan", bodies.DiscoveryQuestion, desk.discovery_plan),
        front.question("/discover", bodies.DiscoveryQuestion, desk.discover, spends=True),
        Route("/ledger", front.ledger),
        Route("/releases/{id}", front.released),
        Route("/reports/{id}", front.reported),
        Route("/reports/{id}/{table:path}", front.table),
        Route("/page/statistics.js", front.statistics),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    METRICS.begin([route.path for route in routes if isinstance(route, Route)])
    app = Starlette(
        routes=routes,
        exception_handlers=dict.fromkeys((Refusal, HTTPException, Exception), _on_error),
    )
    app.router.redirect_slashes = False  # a redirect would go to the host that the client names
    return Guarded(app, hosts, partial(stop, studies))


class Front:
    def __init__(
        self,
        desk: Desk,
        access: Access,
        limits: Limits,
        ready: Readiness,
        metrics_key: bytes | None,
    ) -> None:
        self._desk, self._access, self._limits, self._ready = desk, access, limits, ready
        self._metrics_key = metrics_key
        self._rate = Rate(limits.rate, limits.burst)
        self._releases = Rate(limits.releases_per_day / 86_400, limits.releases_per_day)
        self._checks = anyio.CapacityLimiter(_SHORT_THREADS)
        # for tokens, whose file another process may hold
        self._door = anyio.CapacityLimiter(_SHORT_THREADS)
        self._asking, self._spending = Standing(limits.at_once), Standing(limits.at_once)
        # no ledger is read in these three: the metrics wait for it in threads of their own
        self._bodies, self._metrics, self._drawings = (
            self._lane(_SHORT_THREADS),
            self._lane(1),
            self._lane(1),
        )
        self._plans_of, self._releases_of = self._lanes(limits.threads), self._lanes(limits.threads)
        self._lists_of, self._views_of = self._lanes(_SHORT_THREADS), self._lanes(limits.threads)

    def _lane(self, threads: int) -> Lane:
        return Lane(threads, self._limits.at_once)

    def _lanes(self, threads: int) -> defaultdict[str | frozenset[str] | None, Lane]:
        """A lane per study, or per set of studies that tokens open; the custodian knows both."""
        return defaultdict(partial(self._lane, threads))

    async def page(self, _: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    async def statistics(self, _: Request) -> Response:
        offers = [
            {**row.menu._asdict(), "sql": row.form} for row in STATISTICS.values() if row.menu
        ]
        values = {"STATISTICS": offers, "FORMATS": offered_formats()}
        script = "".join(
            f"export const {name} = {json.dumps(value)};\n" for name, value in values.items()
        )
        return Response(script, media_type="text/javascript")

    async def health(self, _: Request) -> Response:
        return response_of(json_bytes({"status": "ok"}))

    async def ready(self, request: Request) -> Response:
        """Whether all works that an answer needs; of what does not, only the kind, not the name."""
        failed = await anyio.to_thread.run_sync(self._ready, limiter=self._checks)
        if not failed:
            return await self.health(request)
        return Response(
            json_bytes({"status": "failing", "failed": failed}), 503, media_type="application/json"
        )

    async def metrics(self, request: Request) -> Response:
        """The metrics: of all studies for the metrics key, which gives access to nothing else."""
        is_monitor = self._metrics_key is not None and hmac.compare_digest(
            hashed(_bearer(request)), self._metrics_key
        )
        person = None if is_monitor else await self._person(request)
        if is_monitor:
            self._admit(request, MONITOR, self._asking)
        _allow_parameters(request, set())

        def work() -> bytes:
            return self._desk.metrics(person, self._ready).encode()

        return await self._in_thread(request, self._metrics, work, MEDIA_TYPE)

    async def openapi(self, _: Request) -> Response:
        return response_of(json_bytes(document()))

    async def studies(self, request: Request) -> Response:
        person = await self._person(request)
        lane = self._lists_of[person.studies]
        return await self._in_thread(request, lane, lambda: json_bytes(self._desk.studies(person)))

    async def ledger(self, request: Request) -> Response:
        person = await self._person(request)
        _allow_parameters(request, {"study"})
        study = request.query_params.get("study")
        lane = self._lists_of[person.studies]
        return await self._in_thread(
            request, lane, lambda: json_bytes(self._desk.entries(person, study))
        )

    def question(
        self,
        path: str,
        kind: type[Question],
        answer: Callable[[Person, Question], bytes],
        *,
        spends: bool = False,
    ) -> Route:
        """A route for a kind of body; responses and refusals wait for a multiple of the quantum."""

        async def respond(request: Request) -> Response:
            person = await (self._releasing if spends else self._person)(request)
            _allow_parameters(request, set())
            if (
                request.headers.get("content-type", "").partition(";")[0].strip().lower()
                != "application/json"
            ):
                raise Refusal(
                    415, "The content type must be application/json.", "Send the question as JSON."
                )
            body = await read_body(request)

            arrival = time.monotonic()
            try:
                asked = await self._bodies.run(person.name, lambda: read(body, kind))
                study: str = asked["study"]  # type: ignore[index] # every kind of body has a study
                lanes = self._releases_of if spends else self._plans_of
                # others are refused at once
                lane = lanes[study if study in self._desk.names_of(person) else None]

                # the token may have ended while the body came, or while others had their turn
                def work() -> bytes:
                    return answer(self._owned(request), asked)

                response = await self._in_thread(request, lane, work)
            except Refusal as refusal:
                response = refusal_response(refusal)
            except Exception as error:
                tell_operator(error, request.url.path)
                response = refusal_response(FAILURE)
            if quantum := self._limits.quantum:
                passed = time.monotonic() - arrival
                await anyio.sleep(math.ceil(passed / quantum) * quantum - passed)
            return response

        return Route(path, respond, methods=["POST"])

    async def released(self, request: Request) -> Response:
        return await self._formatted(
            request, lambda person: self._desk.answer(person, request.path_params["id"])
        )

    async def reported(self, request: Request) -> Response:
        person = await self._person(request)
        _allow_parameters(request, set())
        identity = request.path_params["id"]
        lane = self._views_of[person.studies]
        return await self._in_thread(
            request, lane, lambda: report_body(*self._desk.reported(person, identity))
        )

    async def table(self, request: Request) -> Response:
        def find(person: Person) -> tuple[Answer, str, dict[str, Any]]:
            report, study = self._desk.reported(person, request.path_params["id"])
            answer = report.tables.get(request.path_params["table"])
            if answer is None:
                raise Refusal(
                    404, "The report has no such table.", "GET /reports/{id} has all tables."
                )
            return answer, study, view_json(answer.query)

        return await self._formatted(request, find)

    async def _formatted(
        self, request: Request, find: Callable[[Person], tuple[Answer, str, Any]]
    ) -> Response:
        """A released answer with its study and view, in the format that the client prefers."""
        person, form = await self._person(request), _format(request)
        lane = self._views_of[person.studies]

        def work() -> bytes:
            answer, study, view = find(person)
            return answer_body(answer, study, view) if form == "json" else table_bytes(answer, form)

        if form != "png":
            return await self._in_thread(request, lane, work, FORMATS[form])
        async with lane.turn(person.name):  # who draws for everybody waits for no ledger
            answer, *_ = await lane.run(person.name, partial(find, person))
        return await self._in_thread(
            request, self._drawings, partial(table_bytes, answer, form), FORMATS[form]
        )

    async def _person(self, request: Request, standing: Standing | None = None) -> Person:
        """The token's owner; the request counts against their limits until its answer is sent."""
        person = await anyio.to_thread.run_sync(self._owned, request, limiter=self._door)
        self._admit(request, person.name, standing or self._asking)
        return person

    def _owned(self, request: Request) -> Person:
        """The owner of the token, from its file."""
        person = self._access.person(_bearer(request))
        if person is None and "authorization" not in request.headers:
            raise Refusal(
                401, "A token is needed.", "Send the header Authorization: Bearer <your token>."
            )
        if person is None:
            raise Refusal(
                401,
                "The token is mistyped, unknown, expired or revoked, or was replaced.",
                "Send the header Authorization: Bearer <your token>, or ask the custodian for a new"
                " token.",
            )
        return person

    def _admit(self, request: Request, name: str, standing: Standing) -> None:
        """Count a request against the limits of this name, or refuse it."""
        request.scope["discreet.name"] = name
        if not self._rate.take(name):
            raise Refusal(
                429, "Too many requests.", "Wait a second, then ask again; nothing was spent."
            )
        request.scope["discreet.exit"].enter_context(standing.of(name))

    async def _releasing(self, request: Request) -> Person:
        person = await self._person(request, self._spending)
        if not self._releases.take(person.name):
            raise Refusal(
                429,
                f"A person can ask for at most {self._limits.releases_per_day:,} releases per day.",
                "GET /releases/{id} still shows released answers; nothing was spent.",
            )
        return person

    async def _in_thread(
        self,
        request: Request,
        lane: Lane,
        work: Callable[[], bytes],
        media_type: str = "application/json",
    ) -> Response:
        """The result of work in a lane, in the person's turn, which lasts until it is sent."""
        name = request.scope["discreet.name"]
        await request.scope["discreet.exit"].enter_async_context(lane.turn(name))
        return await lane.run(name, lambda: response_of(work(), media_type))


def _bearer(request: Request) -> str:
    """The token of a request; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return str(token).strip() if scheme.lower() == "bearer" else ""


async def _on_error(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return refusal_response(
            Refusal(error.status_code, *_WORDS.get(error.status_code, _OTHER)), error.headers
        )
    return refusal_response(error if isinstance(error, Refusal) else FAILURE)


def _allow_parameters(request: Request, allowed: set[str]) -> None:
    """Refuse parameters of the address that are not allowed or occur twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    if not set(names) <= allowed or len(names) != len(set(names)):
        names_allowed = ", ".join(sorted(allowed)) or "none"
        raise Refusal(
            400,
            f"The address may have only these parameters, once each: {names_allowed}.",
            "Leave the others out.",
        )


def _format(request: Request) -> str:
    """The format of an answer: as the address says, or else as the Accept header prefers."""
    _allow_parameters(request, {"format"})
    form: str | None = request.query_params.get("format")
    if form in FORMATS:
        return form
    if form is not None:
        raise Refusal(400, f"format must be one of {', '.join(FORMATS)}.", "Correct the address.")
    names = {kind: name for name, kind in FORMATS.items()}
    accepted: list[tuple[float, str]] = []
    for part in request.headers.get("accept", "*/*").split(","):
        media, *parameters = [piece.strip().lower() for piece in part.split(";")]
        weight = next((_weight(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
        if media in ("*/*", "application/*", ""):
            media, weight = FORMATS["json"], weight - 1e-6  # named formats come first
        accepted += [(weight, names[media])] if media in names and weight > 0 else []
    if not accepted:
        raise Refusal(
            406, f"An answer is available as {', '.join(FORMATS.values())}.", "Accept one of them."
        )
    return max(accepted, key=lambda pair: pair[0])[1]


def _weight(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


class StoredResponse(Response):
    """A long body in a temporary file, which is removed after it is sent."""

    def __init__(self, body: bytes, media_type: str) -> None:
        super().__init__(media_type=media_type)
        self.headers["content-length"] = str(len(body))
        self._file = TemporaryFile()  # noqa: SIM115 - closed after it is sent
        self._file.write(body)

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        with self._file as file:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            file.seek(0)
            while piece := file.read(PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def response_of(body: bytes, media_type: str = "application/json") -> Response:
    return (
        StoredResponse(body, media_type)
        if len(body) > _LONG
        else Response(body, media_type=media_type)
    )
