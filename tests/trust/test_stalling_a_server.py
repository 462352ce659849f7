"""TRUST 50: slow senders, readers that do not read, dear questions and endless repeats stall and
fill nothing.

Small numbers on this machine: tens of connections, and a clock that stands still until a test moves
it on, so that whoever is cut was late by that clock, on a machine however busy. The control is
uvicorn as it comes, which the same senders shut.
"""

import gc
import http.client
import itertools
import json
import select
import socket
import sqlite3
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
import uvicorn

from discreet import Policy, Study
from discreet.serve.access import Access
from discreet.serve.app import PIECE, application
from discreet.serve.desk import study_key
from discreet.serve.limits import Limits
from discreet.serve.server import Connection, _Transport
from discreet.serve.store import Requests
from serving import QUICK, Clock, Served, body, clock_of, folder_in_memory, running, served
from waiting import PATIENCE as LONG
from waiting import wait

PATIENCE = 5.0
HASTY = replace(QUICK, patience=PATIENCE, connections=30)
PACE = 50_000


@pytest.fixture(scope="module", autouse=True)
def clock() -> Iterator[Clock]:
    """The time of the limits of all servers here."""
    with clock_of("server") as moved:
        yield moved


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with folder_in_memory() as folder, served(folder, epsilon=1000, limits=HASTY) as made:
        yield made


@pytest.fixture(scope="module")
def port(site) -> Iterator[int]:
    with running(site, HASTY) as url:
        yield port_of(url)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def head(
    site: Served, who: str | None, method: str = "POST", path: str = "/plan", length: int = 0
) -> bytes:
    token = "" if who is None else f"authorization: Bearer {site.tokens[who]}\r\n"
    text = (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\n"
    )
    return f"{text}content-length: {length}\r\n\r\n".encode()


def ask(port: int, site: Served, who: str = "bob", path: str = "/studies") -> int:
    """The status of a request on a connection of its own; 0 if it was let go of."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    try:
        connection.request("GET", path, headers=site.headers(who))
        response = connection.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


class Senders:
    """Connections that send a first part and then a byte now and then."""

    def __init__(self, port: int, many: int, first: bytes, source: str = "127.0.0.1") -> None:
        self.connections = [
            socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
            for _ in range(many)
        ]
        for connection in self.connections:
            connection.sendall(first)
        self.first, self.stop = first, threading.Event()
        self.thread = threading.Thread(target=self.drip)

    def drip(self) -> None:
        while self.first and not self.stop.wait(0.1):
            for connection in self.connections:
                try:
                    connection.send(b" ")
                except OSError:
                    continue

    def answered(self) -> bool:
        """Whether each was told something, or closed."""
        return len(select.select(self.connections, [], [], 0)[0]) == len(self.connections)

    def held(self) -> int:
        """How many the server still holds."""
        return sum(not is_closed(connection) for connection in self.connections)

    def __enter__(self) -> "Senders":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        for connection in self.connections:
            connection.close()


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


SLOW: dict[str, Any] = {
    "nothing": lambda _: b"",
    "a head that does not end": lambda site: head(site, None)[:-2] + b"x-slow: ",
    "a body without a token": lambda site: head(site, None, length=60_000),
    "a body with a token": lambda site: head(site, "ann", length=60_000),
    "a body that nobody reads": lambda site: head(site, None, "GET", "/healthz", 60_000),
    "an idle connection": lambda site: head(site, None, "GET", "/healthz"),
}
ANSWERED = ("a body without a token", "a body that nobody reads", "an idle connection")
"""Of which the server may have closed all by then."""


@pytest.mark.parametrize("name", SLOW)
def test_slow_senders_hold_nothing_and_others_are_served(site, port, clock, name):
    with Senders(port, 60, SLOW[name](site)) as slow:
        # until they are answered, sixty whole requests are work: others get 503
        if name == "an idle connection":
            wait(slow.answered)
        assert {ask(port, site) for _ in range(10)} == {200}
        assert 0 < slow.held() <= HASTY.connections or name in ANSWERED
        clock.move(1.01 * PATIENCE)
        wait(lambda: slow.held() == 0)


def plain(app: Any, *, limits: Limits, **_: Any) -> uvicorn.Server:
    """A server as it comes, with as many connections."""
    options = {
        "lifespan": "off",
        "log_level": "critical",
        "access_log": False,
        "http": "h11",
        "ws": "none",
    }
    return uvicorn.Server(uvicorn.Config(app, limit_concurrency=limits.connections, **options))


def test_a_plain_server_would_be_shut_by_them(site):
    with (
        running(site, HASTY, make=plain) as url,
        Senders(port_of(url), 60, SLOW["a head that does not end"](site)),
    ):
        assert {ask(port_of(url), site) for _ in range(10)} == {503}


def test_a_late_request_is_told_so(site, port, clock):
    with socket.create_connection(("127.0.0.1", port), LONG) as connection:
        connection.sendall(head(site, "ann", length=60_000) + b"{")
        # connections are read in their order: the server has seen the head, too
        assert ask(port, site) == 200
        clock.move(1.01 * PATIENCE)
        told = connection.recv(65_536)
    assert told.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in told.lower()
    assert set(json.loads(told.rpartition(b"\r\n\r\n")[2])) == {"error", "advice"}


def test_a_refusal_that_leaves_a_body_unread_closes(site, port):
    """At once, not when it is late: the clock stands still."""
    with socket.create_connection(("127.0.0.1", port), LONG) as connection:
        connection.sendall(head(site, None, length=60_000))
        told = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert told.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in told.lower()


def test_an_address_pushes_out_its_own_connections_only(site):
    limits = replace(HASTY, per_address=5, connections=1000)
    with ExitStack() as stack:
        port = port_of(stack.enter_context(running(site, limits)))
        others = stack.enter_context(Senders(port, 3, b"", "127.0.0.2"))
        many = stack.enter_context(Senders(port, 40, b"GET"))
        assert ask(port, site) == 200
        wait(lambda: many.held() <= 5)
        assert others.held() == 3


# Readers that do not read.


@pytest.fixture(scope="module")
def big() -> Iterator[tuple[Served, str]]:
    """A study with an answer of more than a megabyte, under ann's id `big`."""
    keys = [f"key {at:07d} {'x' * 40}" for at in range(9_000)]
    policy = Policy(
        source=pa.table({"place": keys[:100]}),
        table="people",
        columns={"place": {"keys": keys}},
        epsilon=1,
        version="v1",
        neighbors="add-remove",
    )
    limits = replace(HASTY, at_once=2, pace=PACE)
    with folder_in_memory() as folder, ExitStack() as stack:
        study = stack.enter_context(Study(policy, ledger=folder / "people.ledger", name="people"))
        access = Access(folder / "discreet.access", new=True)
        requests = Requests(folder / "discreet.requests")
        tokens = {}
        for name in ("ann", "bob"):
            study.ledger.allot(name, "0.5", study="people")
            tokens[name] = str(access.permit(name, role="analyst", study=study_key(study)))
        app = application({"people": study}, access, requests, limits=limits)
        site = Served(app, study, access, folder, tokens, None)  # type: ignore[arg-type]
        with running(site, limits, buffer=8192) as url:
            connection = http.client.HTTPConnection("127.0.0.1", port_of(url), timeout=LONG)
            sql = "SELECT place, count(*) AS n FROM people GROUP BY place"
            asked = json.dumps(body(sql=sql, request_id="big"))
            connection.request(
                "POST",
                "/release",
                asked,
                {**site.headers("ann"), "content-type": "application/json"},
            )
            response = connection.getresponse()
            content = response.read()
            connection.close()
            assert (response.status, len(content) > 2**20) == (200, True)
            yield site, url
        requests.close()


def reader(site: Served, url: str) -> socket.socket:
    """A connection that has asked for the answer and has not read it."""
    connection = socket.socket()
    connection.settimeout(LONG)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port_of(url)))
    connection.sendall(head(site, "ann", "GET", "/releases/big"))
    return connection


@contextmanager
def held() -> Iterator[list[int]]:
    """The bytes that all connections hold after each write."""
    found, real = [], _Transport.write

    def write(transport: _Transport, data: bytes) -> None:
        real(transport, data)
        live = [
            one for one in gc.get_objects() if issubclass(type(one), Connection) and one in one.live
        ]
        found.append(sum(one.transport.get_write_buffer_size() for one in live))

    with mock.patch.object(_Transport, "write", write):
        yield found


def test_readers_that_do_not_read_stall_nobody_and_hold_little(big, clock):
    site, url = big
    with ExitStack() as stack, held() as written:
        readers = [stack.enter_context(reader(site, url)) for _ in range(6)]
        wait(lambda: max(written, default=0) > PIECE)  # two of them are answered, and do not read
        assert {ask(port_of(url), site) for _ in range(10)} == {200}
        # whoever asks for something else does not wait for them
        assert ask(port_of(url), site, "ann") == 200

        def are_closed() -> bool:
            clock.move(PATIENCE / 10)
            return sum(map(is_closed, readers)) >= 4

        wait(are_closed)
        # two answers are being sent, and of each what one write adds
        assert max(written) <= 2 * 3 * PIECE


def test_a_reader_who_takes_a_little_now_and_then_is_cut(big, clock):
    site, url = big
    all_of_it = 0
    with reader(site, url) as connection:

        def is_cut() -> bool:
            nonlocal all_of_it
            clock.move(PATIENCE / 6)
            try:
                taken = len(connection.recv(2_000))
            except ConnectionResetError:
                return True
            all_of_it += taken
            return not taken

        wait(is_cut, pause=0.05)
    assert all_of_it < 2**20


def test_a_reader_at_a_fair_pace_gets_all_of_it(big, clock):
    site, url = big
    with reader(site, url) as connection:
        told = b""
        while b"\r\n\r\n" not in told:
            told += connection.recv(4096)
        length = int(told.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        began = clock.monotonic()
        while len(told.partition(b"\r\n\r\n")[2]) < length:
            part = connection.recv(4096)
            assert part, "it was cut"
            clock.move(len(part) / (1.5 * PACE))
            time.sleep(0.004)  # so that the server looks at its clock now and then
            told += part
    assert clock.monotonic() - began > 2 * PATIENCE  # it took longer than a silence may
    assert json.loads(told.partition(b"\r\n\r\n")[2])["id"] == "ann:big"


# Dear questions and endless repeats.


@contextmanager
def slow(site: Served, end: threading.Event) -> Iterator[Counter[str]]:
    """Statements that take until `end`, and how many ran at a time."""
    real, seen, lock = site.study.engine.fetch, Counter(), threading.Lock()

    def fetch(request: Any) -> Any:
        with lock:
            seen["now"] += 1
            seen["most"] = max(seen["most"], seen["now"])
        assert end.wait(LONG)
        with lock:
            seen["now"] -= 1
        return real(request)

    with mock.patch.object(site.study.engine, "fetch", fetch):
        yield seen


def test_two_requests_of_a_person_at_a_time_and_eight_wait(tmp_path):
    limits, end = replace(QUICK, at_once=2), threading.Event()
    with (
        served(tmp_path, epsilon=100, limits=limits) as site,
        running(site, limits) as url,
        slow(site, end) as seen,
    ):
        post = lambda at: site.client().post("/release", json=body(epsilon=f"0.{at + 1:03d}"))  # noqa: E731
        with ThreadPoolExecutor(14) as pool:
            answers = [pool.submit(post, at) for at in range(14)]
            wait(lambda: seen["now"] == 2)
            assert ask(port_of(url), site) == 200  # meanwhile
            wait(lambda: sum(answer.done() for answer in answers) == 4)
            assert seen["now"] == 2
            end.set()
            answers = [answer.result() for answer in answers]
        assert Counter(answer.status_code for answer in answers) == {200: 10, 429: 4}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert "already has 10 requests" in refused.json()["error"]
        assert refused.headers["retry-after"] == "1"
        assert seen["most"] == 2


def test_long_work_leaves_threads_for_short_work(tmp_path):
    limits, end = replace(QUICK, threads=1), threading.Event()
    with (
        served(tmp_path, epsilon=100, limits=limits) as site,
        slow(site, end) as seen,
        ThreadPoolExecutor(2) as pool,
    ):
        busy = [
            pool.submit(site.client().post, "/release", json=body(epsilon=f"0.{at + 1}"))
            for at in range(2)
        ]
        wait(lambda: seen["now"] == 1)
        assert site.client("bob").get("/studies").status_code == 200
        assert (seen["now"], [one.done() for one in busy]) == (1, [False, False])
        end.set()
        assert {one.result().status_code for one in busy} == {200}


@pytest.mark.parametrize(
    "terms", [{"epsilon": "0.00009"}, {"epsilon": "1e-9"}, {"epsilon": None, "within": 10**9}]
)
def test_a_tiny_epsilon_is_refused_before_any_spend(site, terms):
    terms = {**terms, "sql": "SELECT count(*) AS n FROM people"}
    for path, asked in (("/plan", body(request_id=None, **terms)), ("/release", body(**terms))):
        before = site.study.ledger.entries("people")
        refused = site.client().post(path, json=asked)
        assert refused.status_code == 400
        assert "at least 0.0001 over HTTP" in refused.json()["error"]
        assert site.study.ledger.entries("people") == before
    assert (
        site.client().post("/plan", json=body(request_id=None, epsilon="0.0001")).status_code == 200
    )


def test_repeats_under_new_ids_end_with_the_day(tmp_path):
    limits = replace(QUICK, releases_per_day=3)
    with served(tmp_path, limits=limits) as site:
        statuses = [site.client().post("/release", json=body()).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert site.client("bob").post("/release", json=body()).status_code == 200
        assert site.client().get("/ledger").status_code == 200
        with sqlite3.connect(tmp_path / "discreet.requests") as file:
            assert file.execute("SELECT count(*) FROM request").fetchone() == (4,)
        file.close()


# TLS that is never agreed on.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> dict[str, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1)
    )
    place = tmp_path_factory.mktemp("tls")
    (place / "cert").write_bytes(
        made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    plain = serialization.NoEncryption()
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (place / "key").write_bytes(key.private_bytes(pem, form, plain))
    return {"certfile": place / "cert", "keyfile": place / "key"}


def test_a_handshake_that_does_not_come_is_not_waited_for(site, certificate):
    """Its limit is the event loop's: on a clock that nobody moves, a client in a hurry may be late,
    and tries again.
    """
    trusting = ssl.create_default_context(cafile=certificate["certfile"])
    trusting.check_hostname = False

    def is_served() -> bool:
        try:
            with (
                socket.create_connection(("127.0.0.1", port_of(url)), LONG) as raw,
                trusting.wrap_socket(raw) as connection,
            ):
                connection.sendall(head(site, None, "GET", "/healthz"))
                return connection.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    limits = replace(HASTY, patience=0.6)
    with running(site, limits, **certificate) as url, Senders(port_of(url), 5, b"") as silent:
        wait(is_served)
        wait(lambda: silent.held() == 0)


def test_numbers_of_connections_are_bounded(site, port):
    """Whatever the senders do, the server holds no more than it may."""
    kinds = itertools.cycle(SLOW.values())
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(Senders(port, 30, next(kinds)(site)))
            servers = [one.live for one in gc.get_objects() if issubclass(type(one), Connection)]
            assert max(map(len, servers)) <= HASTY.connections
