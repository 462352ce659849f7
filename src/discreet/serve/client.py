"""A study on a server: the same questions, plans and answers, over HTTP.

    remote = discreet.connect("https://data.example.org", token)
    plan = remote.sql("SELECT count(*) FROM visits WHERE age >= 65", epsilon="0.1")
    answer = plan.release()

The server computes a plan. An answer is built from the record in the server's ledger. A release
that is lost on the network is asked for again under the same id, so it is charged once.
"""

from __future__ import annotations

import math
import os
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from discreet.ask.questions import Askable, Asked
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    QueryRefused,
    one_line,
    printable,
)
from discreet.formats import as_float
from discreet.ledger.questions import new_request_id
from discreet.outside import Unreadable, read_fraction, read_json
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.release.design import Line
from discreet.release.discovery import Discovered
from discreet.release.reports.report import ReportLine, report_text, table_of
from discreet.serve import bodies
from discreet.serve.address import is_local
from discreet.serve.answers import answer_of, content_of
from discreet.serve.schema import fits
from discreet.show.json import ReportLineJson

if TYPE_CHECKING:
    import httpx

Body = TypeVar("Body")

_ERRORS: dict[int, type[DiscreetError]] = {
    403: BudgetExceeded,
    422: QueryRefused,
    **dict.fromkeys((500, 502, 503, 504), EngineFailed),
}
_OWN_WORDS = (400, 403, 422)  # statuses whose error has the words of a local study
_TOKEN = re.compile(r"[!-~]+", re.ASCII)
_PATIENCE = 600.0
_TRIES = 3
_PART = 2**16  # bytes of an answer that are unpacked at a time
_LARGEST = 2**28  # bytes of an answer: twenty times those of 100,000 numbers with their intervals


def connect(
    url: str, token: str, *, study: str | None = None, verify: str | PathLike[str] | None = None
) -> Remote:
    """A study on a server; its name is needed if the token opens several.

    `verify` is a file of certificates (PEM) to trust instead of those of this machine, for a server
    whose certificate the custodian has issued.
    """
    server = Server(url, token, verify)
    try:
        names = [entry["name"] for entry in server.get("/studies", bodies.Studies)["studies"]]
        if study is None and len(names) != 1:
            raise InvalidParameter(
                f"study must be named, since the token opens {', '.join(names) or 'none'}"
            )
        if study is not None and study not in names:
            raise InvalidParameter(
                f"study must be one of {', '.join(names) or 'none'}, got {study!r}"
            )
    except BaseException:
        server.close()
        raise
    return Remote(server, study or names[0])


class Server:
    """A connection; its errors are those of a local study."""

    def __init__(self, url: str, token: str, verify: str | PathLike[str] | None = None) -> None:
        self.address = _address(url)
        trusted = _trusted(verify)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidParameter(
                "token must be ASCII without spaces: copy it again as the custodian gave it"
            )
        try:
            import httpx
        except ImportError:
            raise InvalidParameter(
                "connect needs httpx; run: pip install 'discreet[serve]'"
            ) from None
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        with suppress(httpx.InvalidURL, ValueError):
            more: dict[str, Any] = {} if trusted is None else {"verify": trusted}
            self._client = httpx.Client(
                base_url=url, headers=headers, timeout=_PATIENCE, trust_env=False, **more
            )
            return
        raise _no_address()

    def get(self, path: str, kind: type[Body], **parameters: str) -> Body:
        return self._reply(lambda: self._client.stream("GET", path, params=parameters), kind)

    def post(self, path: str, body: Mapping[str, Any], kind: type[Body]) -> Body:
        return self._reply(lambda: self._client.stream("POST", path, json=body), kind)

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within the block a body is read; whatever does not fit is an `EngineFailed`."""
        try:
            yield
            return
        except Unreadable:
            pass
        except DiscreetError:
            raise
        except Exception:  # noqa: S110 - a part of another type or with another name may fail in any way
            pass
        raise self._foreign()

    def _foreign(self, status: int | None = None) -> EngineFailed:
        words = f"the server at {self.address} is not a discreet server, or has another version"
        return EngineFailed(words, spent=None, code="" if status is None else f"HTTP {status}")

    def _body(self, response: httpx.Response) -> bytes:
        """What the server sends, unpacked, up to a limit: a few packed bytes may be gigabytes."""
        body = bytearray()
        for part in response.iter_bytes(_PART):
            body += part
            if len(body) > _LARGEST:
                raise EngineFailed(
                    f"the server at {self.address} sent more than {_LARGEST:,} bytes; ask for less",
                    spent=None,
                )
        return bytes(body)

    def _reply(
        self, ask: Callable[[], AbstractContextManager[httpx.Response]], kind: type[Body]
    ) -> Body:
        import httpx

        for attempt in range(_TRIES):
            try:
                with ask() as response:
                    body = self._body(response)
                break
            except httpx.RequestError as failure:
                _refuse_untrusted(self.address, failure)
                if attempt == _TRIES - 1:
                    name = type(failure).__name__
                    raise EngineFailed(
                        f"the server at {self.address} did not answer ({name}); ask again with the"
                        " same request_id",
                        spent=None,
                        code=name,
                    ) from None
        status = response.status_code
        try:
            content = read_json(body)
        except Unreadable:
            content = {
                "error": f"the server answered with status {status} and no JSON",
                "advice": "",
            }
        if status == 401:
            raise InvalidParameter(
                "the token is unknown, expired or revoked; ask the custodian for a new token"
            )
        if status == 200 and fits(kind, content):
            return content  # type: ignore[no-any-return]
        if not fits(bodies.Refusal, content):
            raise self._foreign(status)
        words = (
            content["error"]
            if status in _OWN_WORDS
            else f"{content['error']} {content['advice']}".strip()
        )
        error = _ERRORS.get(status, InvalidParameter)
        raise (
            EngineFailed(words, spent=None, code=f"HTTP {status}")
            if error is EngineFailed
            else error(words)
        )


class Remote(Askable["RemotePlan"]):
    """A study on a server."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self.name = server, name

    @property
    def described(self) -> bodies.Study:
        """The public facts of the study: columns, unit, neighbors, what is left."""
        studies = self._server.get("/studies", bodies.Studies)["studies"]
        return next(study for study in studies if study["name"] == self.name)

    @property
    def remaining(self) -> Fraction:
        """What this token can still spend."""
        described = self.described
        with self._server.reading():
            return read_fraction(described["left"])

    def sql(self, text: str, **terms: Any) -> RemotePlan:
        """The plan of a question in SQL; `terms` are those of `Study.sql`."""
        return self._plan({"sql": text}, terms)

    def report(self, tables: Mapping[str, str], **terms: Any) -> RemoteReportPlan:
        """The plan of a report: tables by name, each in SQL; `terms` as in `Study.report`."""
        if not isinstance(tables, Mapping) or not all(isinstance(name, str) for name in tables):
            raise InvalidParameter('tables must be given by name, as in {"by_county": "SELECT …"}')
        question = {"study": self.name, "tables": dict(tables), **_given(terms)}
        body = self._server.post("/report/plan", question, bodies.ReportPlan)
        with self._server.reading():
            lines = [_report_line(line) for line in body["lines"]]
            fields = _fields(body, ("title", "simultaneous", "integers"), ("epsilon", "confidence"))
        return RemoteReportPlan(
            server=self._server, question=question, body=body, lines=lines, **fields
        )

    def discover(self, *columns: str, epsilon: Any) -> Discovered:
        """Discover the keys of these columns, as `Study.discover` does, if the server allows it."""
        question = {
            "study": self.name,
            "columns": list(columns),
            "epsilon": bodies.exact_json(epsilon),
        }
        body = self._server.post("/discover", question, bodies.Discovery)
        with self._server.reading():
            keys = {column: tuple(names) for column, names in body["keys"].items()}
            return Discovered(keys=keys, **_fields(body, (), ("epsilon", "delta")))

    def entries(self) -> list[bodies.Entry]:
        """The entries of the ledger that this token may see."""
        return self._server.get("/ledger", bodies.Entries, study=self.name)["entries"]

    def answer(self, entry: str) -> Answer:
        """A released answer, by its id."""
        body = self._server.get(f"/releases/{entry}", bodies.Answer)
        with self._server.reading():
            return answer_of(body)

    def released_report(self, entry: str) -> RemoteReport:
        """A released report, by its id."""
        body = self._server.get(f"/reports/{entry}", bodies.Report)
        with self._server.reading():
            return _report_of(body)

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        study = self.described
        with self._server.reading():
            left, total = (as_float(read_fraction(study[name])) for name in ("left", "total"))
            total = as_float(read_fraction(study["allotment"])) if study["allotment"] else total
        whole = f"{'your ' if study['allotment'] else ''}{total:.4g}"
        return (
            f"Remote({self.name!r}: {len(study['columns'])} columns declared · ε {left:.4g} of"
            f" {whole} left · {study['neighbors']} · unit {one_line(study['unit'])})"
        )

    def _plan_of(self, draft: Asked[RemotePlan], terms: Mapping[str, Any]) -> RemotePlan:
        ask = {name: bodies.question_json(question) for name, question in draft.questions}
        return self._plan(
            {"ask": ask, "where": list(draft.conditions), "by": list(draft.columns)}, terms
        )

    def _plan(self, question: Mapping[str, Any], terms: Mapping[str, Any]) -> RemotePlan:
        request = {"study": self.name, **question, **_given(terms)}
        body = self._server.post("/plan", request, bodies.Plan)
        same = ("simultaneous", "cells", "size", "notes", "warnings")
        with self._server.reading():
            lines = [_line(line) for line in body["lines"]]
            fields = _fields(body, same, ("epsilon", "cost", "confidence"))
        return RemotePlan(server=self._server, question=request, body=body, lines=lines, **fields)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RemotePlan:
    """A question with its cost, from the server; the names are those of a local `Plan`."""

    server: Server
    question: Mapping[str, Any]
    body: bodies.Plan
    epsilon: Fraction
    cost: Fraction
    confidence: Fraction
    simultaneous: bool
    cells: int
    size: int | None
    lines: list[Line]
    notes: list[str]
    warnings: list[str]

    def titles(self) -> dict[str, str]:
        """The name of each released number in the answer."""
        return {line["name"]: line["title"] for line in self.body["lines"]}

    def release(self, *, request_id: str | None = None) -> Answer:
        """Spend ε and get the answer; the same question again gives the recorded answer, free."""
        request = {
            **self.question,
            "request_id": new_request_id() if request_id is None else request_id,
        }
        body = self.server.post("/release", request, bodies.Answer)
        with self.server.reading():
            return answer_of(body)

    def __repr__(self) -> str:
        return printable(self.body["text"])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RemoteReportPlan:
    """Tables with one cost, from the server; the names are those of a local `ReportPlan`."""

    server: Server
    question: Mapping[str, Any]
    body: bodies.ReportPlan
    title: str
    epsilon: Fraction
    confidence: Fraction
    simultaneous: bool
    integers: bool
    lines: list[ReportLine]

    def release(self, *, request_id: str | None = None) -> RemoteReport:
        """Spend ε once and get all tables; the same report again gives the recorded ones, free."""
        request = {
            **self.question,
            "request_id": new_request_id() if request_id is None else request_id,
        }
        body = self.server.post("/report", request, bodies.Report)
        with self.server.reading():
            return _report_of(body)

    def __repr__(self) -> str:
        return printable(self.body["text"])


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RemoteReport:
    """Tables that were released together on a server; the names are those of a local `Report`."""

    content: bytes
    title: str
    tables: Mapping[str, Answer]
    record: Mapping[str, Any]
    epsilon: Fraction
    remaining: Fraction
    entry: str

    def __getitem__(self, name: str) -> Answer:
        return table_of(self.tables, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        return report_text(
            self.title, self.tables, self.epsilon, self.remaining, self.record["neighbors"]
        )


def _report_of(body: bodies.Report) -> RemoteReport:
    return RemoteReport(
        content=content_of(body),
        tables={name: answer_of(table) for name, table in body["tables"].items()},
        entry=body["id"],
        **_fields(body, ("title", "record"), ("epsilon", "remaining")),
    )


def _report_line(line: ReportLineJson) -> ReportLine:
    reach, alone = (math.inf if end is None else end for end in (line["reach"], line["alone"]))
    return ReportLine(line["table"], line["column"], line["rows"], reach, alone, line["size"])


def _given(terms: Mapping[str, Any]) -> dict[str, Any]:
    return {name: bodies.exact_json(value) for name, value in terms.items() if value is not None}


def _line(line: Mapping[str, Any]) -> Line:
    fields = _fields(line, ("name", "sized"), ("sensitivity", "scale", "step"))
    return Line(
        error=(line["within"], line["reach"]),
        draws=tuple(map(read_fraction, line["noise"])),
        **fields,
    )


def _fields(body: Mapping[str, Any], same: Iterable[str], exact: Iterable[str]) -> dict[str, Any]:
    """Some fields of a body unchanged, and others as exact numbers."""
    return {
        **{name: body[name] for name in same},
        **{name: read_fraction(body[name]) for name in exact},
    }


def _address(url: str) -> str:
    """The scheme and host of an address, without secrets; refused if a token would go in clear."""
    host = None
    with suppress(ValueError, AttributeError):
        parts = urlsplit(url)
        host = parts.hostname or ""
    if host is None:
        raise _no_address()
    if parts.scheme != "https" and (parts.scheme != "http" or not is_local(host)):
        raise InvalidParameter(
            "url must begin with https:// unless it is this machine, got"
            f" {quote(f'{parts.scheme}://{host}')}"
        )
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _trusted(verify: object) -> ssl.SSLContext | None:
    """The certificates to trust.

    There is no way to trust all, since the token would go to anyone who answers.
    """
    if verify is None:
        return None
    if not isinstance(verify, str | PathLike):
        raise InvalidParameter(
            f'verify must be a file of certificates, as in verify="ca.pem", got {quote(verify)}'
        )
    try:
        return ssl.create_default_context(cafile=verify)
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        name = os.path.basename(verify)
        raise InvalidParameter(
            f"verify must be a file of certificates (PEM), got {quote(name)}"
        ) from None


def _refuse_untrusted(address: str, failure: BaseException) -> None:
    """Refuse a server whose certificate is not trusted, however libraries wrapped the error."""
    cause: BaseException | None = failure
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        raise InvalidParameter(
            f"the certificate of {address} is not trusted ({cause.verify_message.rstrip('.')}):"
            " nothing was sent; if the custodian has issued it, ask for its file, and connect with"
            ' verify="ca.pem"'
        ) from None


def _no_address() -> InvalidParameter:
    return InvalidParameter("url must be an address such as https://data.example.org")
