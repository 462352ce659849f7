"""A study that somebody else keeps: the same questions, plans and answers, over HTTP.

    remote = discreet.connect("https://data.example.org", token)
    plan = remote.sql("SELECT count(*) FROM visits WHERE age >= 65", epsilon="0.1")
    answer = plan.release()

A plan is what the server says it is. An answer is made of the bytes that the server's ledger keeps. A release that the
network loses is asked for again under the same id, so it is charged once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    QueryRefused,
    one_line,
    printable,
)
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.release.design import Line
from discreet.release.spending import new_request_id
from discreet.serve.address import is_local
from discreet.serve.wire import answer_of, question_json

if TYPE_CHECKING:
    import httpx

    from discreet.ask.questions import Question

_ERRORS: dict[int, type[DiscreetError]] = {
    403: BudgetExceeded,
    422: QueryRefused,
    500: EngineFailed,
    502: EngineFailed,
    503: EngineFailed,
    504: EngineFailed,
}
_OWN_WORDS = (400, 403, 422)
"""Errors that say what a study of one's own would say."""

_TOKEN = re.compile(r"[!-~]+", re.ASCII)
_PATIENCE = 600.0
_TRIES = 3


def connect(url: str, token: str, *, study: str | None = None) -> Remote:
    """A study on a server; its name is needed where the token opens several."""
    server = Server(url, token)
    try:
        names = [one["name"] for one in server.get("/studies")["studies"]]
        if study is None and len(names) != 1:
            raise InvalidParameter(f"study must be named; the token opens {', '.join(names) or 'none'}")
        if study is not None and study not in names:
            raise InvalidParameter(f"study must be one of {', '.join(names) or 'none'}, got {study!r}")
    except BaseException:
        server.close()
        raise
    return Remote(server, study or names[0])


class Server:
    """A connection; errors are those that a study of one's own raises."""

    def __init__(self, url: str, token: str) -> None:
        self.address = _address(url)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidParameter("token must be as the custodian gave it, ASCII without spaces: copy it again")
        try:
            import httpx
        except ImportError:
            raise InvalidParameter("connect needs httpx: pip install 'discreet[serve]'") from None
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        try:
            self._client = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE, trust_env=False)
            return
        except (httpx.InvalidURL, ValueError):
            pass
        raise _no_address()

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        """What a path shows."""
        return self._told(lambda: self._client.get(path, params=parameters))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What comes back for a body."""
        return self._told(lambda: self._client.post(path, json=body))

    def close(self) -> None:
        """Let go of it."""
        self._client.close()

    def _told(self, ask: Any) -> dict[str, Any]:
        import httpx

        for attempt in range(_TRIES):
            try:
                response: httpx.Response = ask()
                break
            except httpx.TransportError as failure:
                if attempt == _TRIES - 1:
                    name = type(failure).__name__
                    raise EngineFailed(
                        f"the server at {self.address} did not answer ({name}); ask again, under the same id"
                    ) from None
        try:
            found: dict[str, Any] = response.json()
        except ValueError:
            found = {"error": f"the server answered with status {response.status_code} and no JSON", "advice": ""}
        if response.status_code == 401:
            raise InvalidParameter("the token is unknown or was revoked; ask the custodian for a new one")
        if response.status_code != 200:
            kind = _ERRORS.get(response.status_code, InvalidParameter)
            known = response.status_code in _OWN_WORDS
            raise kind(str(found.get("error")) if known else f"{found.get('error')} {found.get('advice')}".strip())
        return found


class Remote:
    """A study on a server."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self.name = server, name

    @property
    def described(self) -> dict[str, Any]:
        """What may be known of the study now: columns, unit, neighbors, what is left."""
        studies = self._server.get("/studies")["studies"]
        found: dict[str, Any] = next(one for one in studies if one["name"] == self.name)
        return found

    @property
    def remaining(self) -> Fraction:
        """What this token can still spend."""
        return Fraction(self.described["left"])

    def sql(self, text: str, **terms: Any) -> RemotePlan:
        """The plan of a question in SQL; `terms` are those of a study of one's own."""
        return self._plan({"sql": text}, terms)

    def where(self, condition: str) -> RemoteAsked:
        """A question about the rows where the condition is true."""
        return RemoteAsked(remote=self).where(condition)

    def by(self, *columns: str) -> RemoteAsked:
        """A question for each group."""
        return RemoteAsked(remote=self).by(*columns)

    def ask(self, **questions: Question) -> RemoteAsked:
        """A question about everybody."""
        return RemoteAsked(remote=self).ask(**questions)

    def entries(self) -> list[dict[str, Any]]:
        """What was spent, as far as this token may see it."""
        found: list[dict[str, Any]] = self._server.get("/ledger", study=self.name)["entries"]
        return found

    def answer(self, entry: str) -> Answer:
        """A released answer again, by its id."""
        return answer_of(self._server.get(f"/releases/{entry}"))

    def close(self) -> None:
        """Let go of the server."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        told = self.described
        mine = told["allotment"] is not None
        left, total = (float(Fraction(told[name])) for name in ("left", "allotment" if mine else "total"))
        whole = f"{'your ' if mine else ''}{total:.4g}"
        return (
            f"Remote({self.name!r}: {len(told['columns'])} columns declared · ε {left:.4g} of {whole} left · "
            f"{one_line(str(told['neighbors']))} · unit {one_line(str(told['unit']))})"
        )

    def _plan(self, question: Mapping[str, Any], terms: Mapping[str, Any]) -> RemotePlan:
        given = {name: _json(value) for name, value in terms.items() if value is not None}
        body = {"study": self.name, **question, **given}
        return RemotePlan(server=self._server, body=body, told=self._server.post("/plan", body))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAsked:
    """A question in the making; every verb gives a new one."""

    remote: Remote
    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    questions: tuple[tuple[str, Question], ...] = ()

    def where(self, condition: str) -> RemoteAsked:
        """Only rows where the condition is true, too."""
        return replace(self, conditions=(*self.conditions, condition))

    def by(self, *columns: str) -> RemoteAsked:
        """For each group of these columns."""
        return replace(self, columns=(*self.columns, *columns))

    def ask(self, **questions: Question) -> RemoteAsked:
        """These statistics, under these names."""
        return replace(self, questions=(*self.questions, *questions.items()))

    def plan(self, **terms: Any) -> RemotePlan:
        """The plan; `terms` are those of a study of one's own."""
        ask = {name: question_json(question) for name, question in self.questions}
        where, by = list(self.conditions), list(self.columns)
        return self.remote._plan({"ask": ask, "where": where, "by": by}, terms)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RemotePlan:
    """A question with its price, as the server says it."""

    server: Server
    body: Mapping[str, Any]
    told: Mapping[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """The ε of the plan."""
        return Fraction(self.told["epsilon"])

    @property
    def cost(self) -> Fraction:
        """What a release spends."""
        return Fraction(self.told["cost"])

    @property
    def confidence(self) -> Fraction:
        """That of the intervals."""
        return Fraction(self.told["confidence"])

    @property
    def simultaneous(self) -> bool:
        """Whether the intervals are to hold all together."""
        return bool(self.told["simultaneous"])

    @property
    def cells(self) -> int:
        """Rows of the answer, before HAVING and LIMIT."""
        return int(self.told["cells"])

    @property
    def size(self) -> int | None:
        """Rows of a group that the plan shows errors for."""
        size: int | None = self.told["size"]
        return size

    @property
    def lines(self) -> list[Line]:
        """Δ, scale and error of each aggregate."""
        return [
            Line(
                name=line["name"],
                sensitivity=Fraction(line["sensitivity"]),
                scale=Fraction(line["scale"]),
                within=line["within"],
                reach=line["reach"],
                sized=line["sized"],
                step=Fraction(line["step"]),
                noise=tuple(map(Fraction, line["noise"])),
            )
            for line in self.told["lines"]
        ]

    @property
    def notes(self) -> list[str]:
        """What happens to values that are missing, out of bounds or not among the keys."""
        return list(self.told["notes"])

    @property
    def warnings(self) -> list[str]:
        """What one should know before releasing."""
        return list(self.told["warnings"])

    def titles(self) -> dict[str, str]:
        """What each released number is called in the answer."""
        return {line["name"]: line["title"] for line in self.told["lines"]}

    def release(self, *, request_id: str | None = None) -> Answer:
        """The answer, spent for; asked again, the recorded one, free."""
        body = {**self.body, "request_id": new_request_id() if request_id is None else request_id}
        return answer_of(self.server.post("/release", body))

    def __repr__(self) -> str:
        return printable(str(self.told["text"]))


def _json(value: Any) -> Any:
    """A parameter in JSON's types, an exact number as its text."""
    if isinstance(value, Mapping):
        return {name: _json(item) for name, item in value.items()}
    return value if isinstance(value, str | bool | int) else str(value)


def _address(url: str) -> str:
    """The scheme and the host of an address, which hold no secret; refused if a token would travel in the clear."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except (ValueError, AttributeError):
        parts = None
    if parts is None:
        raise _no_address()
    if parts.scheme != "https" and (parts.scheme != "http" or not is_local(host)):
        raise InvalidParameter(
            f"url must begin with https://, or be of this machine, got {quote(f'{parts.scheme}://{host}')}"
        )
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _no_address() -> InvalidParameter:
    return InvalidParameter("url must be an address such as https://data.example.org")
