"""Studies behind HTTP: in this process, or on a real server in a process or thread of its own."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pyarrow import parquet
from typer.testing import CliRunner

from discreet import Policy, Study
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.command import app
from discreet.serve.desk import study_key
from discreet.serve.limits import Limits
from discreet.serve.server import Endpoint, server
from discreet.serve.store import Requests
from waiting import wait

QUICK = Limits(quantum=0, rate=10**6, burst=10**6, at_once=100, releases_per_day=10**6)
COLUMNS = {"county": {"keys": ["Dukes", "Essex", "Suffolk"]}, "age": {"bounds": [0, 120]}}
BY_COUNTY = (
    "SELECT county, count(*) AS people, avg(age) AS age FROM people GROUP BY county ORDER BY people"
    " DESC"
)
_ids = itertools.count()


def people(extra: list[tuple[str, float]] = ()) -> pa.Table:
    """A table of people; what is extra comes last."""
    rows = [("Suffolk", 34.0), ("Essex", 71.5), ("Suffolk", None), ("Dukes", 48.0)] * 100 + list(
        extra
    )
    return pa.table(
        {
            "county": [row[0] for row in rows],
            "age": pa.array([row[1] for row in rows], pa.float64()),
        }
    )


@contextlib.contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder that no disk slows down, where there is one."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="discreet-", dir=memory) as folder:
        yield Path(folder)


@dataclass
class Served:
    """An application with its studies, tokens and files."""

    app: Any
    study: Study
    access: Access
    folder: Path
    tokens: dict[str, str]

    portal: BlockingPortal

    def client(self, who: str | None = "ann") -> "Client":
        """A client in this process."""
        return Client(self.app, self.portal, {} if who is None else self.headers(who))

    def headers(self, who: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[who]}"}


class Client:
    """Requests to an application without a network."""

    def __init__(self, app: Any, portal: BlockingPortal, headers: dict[str, str]) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        self._client = httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        )
        self._portal = portal

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self._portal.call(partial(self._client.request, method, path, **given))

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.request("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.request("POST", path, **given)


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    table: Any = None,
    limits: Limits = QUICK,
    metrics_key: bytes | None = None,
    **terms: Any,
) -> Iterator[Served]:
    """One study, called people, with two analysts and a custodian; and a second one that only zoe
    may see.
    """
    given = {"epsilon": 1, "version": "v1", "neighbors": "add-remove", "columns": COLUMNS, **terms}
    policy = Policy(source=people() if table is None else table, table="people", **given)
    study = Study(policy, ledger=folder / "people.ledger", name="people")
    other = Study(policy, ledger=folder / "other.ledger", name="other")
    access = Access(folder / "discreet.access", new=True)
    tokens = {}
    for name, role in (("ann", "analyst"), ("bob", "analyst"), ("cleo", "custodian")):
        if role == "analyst":
            study.ledger.allot(name, policy.epsilon * 6 / 10, study="people")
        tokens[name] = str(access.permit(name, role=role, study=study_key(study)))
    tokens["zoe"] = str(access.permit("zoe", role="custodian", study=study_key(other)))
    requests = Requests(folder / "discreet.requests")
    made = application(
        {"people": study, "other": other}, access, requests, limits=limits, metrics_key=metrics_key
    )
    with start_blocking_portal() as portal:
        yield Served(made, study, access, folder, tokens, portal)
    requests.close()
    study.close()
    other.close()


def body(**changed: Any) -> dict[str, Any]:
    """A question to be released, with an id of its own."""
    plain = {"study": "people", "sql": BY_COUNTY, "epsilon": "0.1", "request_id": f"r{next(_ids)}"}
    return {name: value for name, value in {**plain, **changed}.items() if value is not None}


class Clock:
    """A clock that stands still until it is moved on, so that nobody is late because the machine is
    busy.
    """

    def __init__(self) -> None:
        self._now = time.monotonic()

    def monotonic(self) -> float:
        return self._now

    def move(self, seconds: float) -> None:
        self._now += seconds


@contextlib.contextmanager
def clock_of(module: str) -> Iterator[Clock]:
    """The clock that a module of the server looks at from now on."""
    clock = Clock()
    with mock.patch(f"discreet.serve.{module}.time", clock):
        yield clock


@contextlib.contextmanager
def running(
    site: Served,
    limits: Limits = QUICK,
    *,
    make: Any = server,
    buffer: int | None = None,
    **endpoint: Any,
) -> Iterator[str]:
    """The address of a real server in a thread; the system takes `buffer` bytes of an answer before
    it is read.
    """
    with socket.socket() as listener:
        if buffer is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        listener.bind(("127.0.0.1", 0))
        made = make(site.app, endpoint=Endpoint(**endpoint), limits=limits)
        thread = threading.Thread(target=made.run, args=([listener],))
        thread.start()
        wait(lambda: made.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            made.should_exit = True
            thread.join()


@dataclass
class Process:
    """`discreet serve` as its own process."""

    popen: subprocess.Popen[bytes]
    url: str
    log: Path


def written(folder: Path, epsilon: str = "1") -> Path:
    """A study in files."""
    parquet.write_table(people(), folder / "people.parquet")
    policy = folder / "people.toml"
    policy.write_text(
        f'source = "people.parquet"\nepsilon = "{epsilon}"\nneighbors = "add-remove"\nversion ='
        ' "v1"\n[columns]\ncounty = { keys = ["Dukes", "Essex", "Suffolk"] }\nage = { bounds ='
        " [0, 120] }\n",
        "utf-8",
    )
    return policy


def new_token(policy: Path, name: str, allot: str) -> str:
    """What `discreet serve token` prints."""
    result = CliRunner().invoke(app, ["token", name, "--study", str(policy), "--allot", allot])
    assert result.exit_code == 0, result.output
    return result.stdout.strip().splitlines()[-1]


@contextlib.contextmanager
def process(
    policy: Path, *options: str, program: tuple[str, ...] = ("-m", "discreet")
) -> Iterator[Process]:
    """A server of its own process, ended by SIGKILL if it still runs; `program` is what Python
    runs.

    Its port is bound here all the time, which shuts out everybody but who says SO_REUSEADDR, as the
    server does.
    """
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        with _started(policy, kept.getsockname()[1], options, program) as started:
            yield started


@contextlib.contextmanager
def _started(
    policy: Path, port: int, options: tuple[str, ...], program: tuple[str, ...]
) -> Iterator[Process]:
    log = policy.parent / f"server-{port}.log"
    with log.open("wb") as out:
        popen = subprocess.Popen(
            [sys.executable, *program, "serve", str(policy), "--port", str(port), *options],
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    url = f"http://127.0.0.1:{port}"

    def up() -> bool:
        assert popen.poll() is None, log.read_text("utf-8")
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/healthz").status_code == 200
        return False

    try:
        wait(up)
        yield Process(popen, url, log)
    finally:
        popen.kill()
        popen.wait()
