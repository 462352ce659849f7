"""TRUST 32 in bytes: requests that a proxy and a server may read differently, and hosts that are
not this one.

Each request is written by hand on a real connection. A second request hides behind the first; if
the server took the first to end where the attacker says, it would answer the second, whose path is
known here.
"""

import contextlib
import io
import json
import logging
import re
import socket
import sys
import threading
from collections.abc import Iterator

import httpx
import pytest

from discreet import Policy, Study
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.desk import study_key
from discreet.serve.operation.log import OneLine, configure_log
from discreet.serve.refusals import FAILURE
from discreet.serve.store import Requests
from serving import COLUMNS, QUICK, Served, body, folder_in_memory, people, running, served
from waiting import PATIENCE

HIDDEN = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def site():
    with folder_in_memory() as folder, served(folder, epsilon=1000) as made:
        yield made


@pytest.fixture(scope="module")
def port(site):
    with running(site) as url:
        yield int(url.rpartition(":")[2])


def statuses(told: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3})", told)]


def exchange(port: int, sent: bytes, *last: int) -> bytes:
    """What comes back until the server closes, or after statuses that end with `last`, and then for
    a moment more.
    """
    told = b""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        try:
            while True:
                is_enough = last and tuple(statuses(told)[-len(last) :]) == last
                connection.settimeout(0.3 if is_enough else PATIENCE)
                part = connection.recv(65_536)
                if not part:
                    return told
                told += part
        except (TimeoutError, ConnectionResetError):
            return told


def post(
    *headers: bytes, after: bytes = b"", version: bytes = b"1.1", path: bytes = b"/plan"
) -> bytes:
    lines = [b"POST " + path + b" HTTP/" + version, b"host: localhost", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + after


CHUNKED = b"transfer-encoding: chunked"
AMBIGUOUS: dict[str, tuple[int, bytes]] = {
    "length and chunks": (411, post(b"content-length: 5", CHUNKED, after=b"0\r\n\r\n" + HIDDEN)),
    "chunks and length": (411, post(CHUNKED, b"content-length: 5", after=b"0\r\n\r\n" + HIDDEN)),
    "chunks alone": (411, post(CHUNKED, after=b"0\r\n\r\n" + HIDDEN)),
    "chunks in HTTP/1.0": (411, post(CHUNKED, after=b"0\r\n\r\n" + HIDDEN, version=b"1.0")),
    "chunks over a fold": (
        400,
        post(b"transfer-encoding:\r\n chunked", after=b"0\r\n\r\n" + HIDDEN),
    ),
    "two kinds of chunks": (400, post(b"transfer-encoding: chunked, identity", after=HIDDEN)),
    "chunks twice": (400, post(CHUNKED, CHUNKED, after=b"0\r\n\r\n" + HIDDEN)),
    "nearly chunks": (400, post(b"transfer-encoding: xchunked", after=HIDDEN)),
    "a tab in chunks": (400, post(b"transfer-encoding: \x0bchunked", after=HIDDEN)),
    "a space before the colon": (400, post(b"transfer-encoding : chunked", after=HIDDEN)),
    "two lengths": (400, post(b"content-length: 0", b"content-length: 40", after=HIDDEN)),
    "two lengths in one": (400, post(b"content-length: 0, 40", after=HIDDEN)),
    "one length twice": (400, post(b"content-length: 0", b"Content-Length: 0", after=HIDDEN)),
    "one length twice in one": (400, post(b"content-length: 0, 0", after=HIDDEN)),
    "a length over a fold": (400, post(b"content-length:\r\n 0", after=HIDDEN)),
    "a length and nothing": (400, post(b"content-length: 0,", after=HIDDEN)),
    "an empty length": (400, post(b"content-length:", after=HIDDEN)),
    "a header over a fold": (400, post(b"x: a\r\n b", b"content-length: 0", after=HIDDEN)),
    "a header over a tab": (400, post(b"x: a\r\n\tcontent-length: 0", after=HIDDEN)),
    "lines without CR": (400, post(b"content-length: 0", after=HIDDEN).replace(b"\r\n", b"\n")),
    "a line without CR": (400, post(b"x: a\ncontent-length: 0", after=HIDDEN)),
    "an empty line without CR": (400, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\n" + HIDDEN),
    "a line without LF": (400, post(b"x: a\rcontent-length: 0", after=HIDDEN)),
    "a length with a sign": (400, post(b"content-length: +0", after=HIDDEN)),
    "a length in hexadecimal": (400, post(b"content-length: 0x0", after=HIDDEN)),
    "a negative length": (400, post(b"content-length: -1", after=HIDDEN)),
    "a header without a colon": (400, post(b"content-length", after=HIDDEN)),
    "a NUL in a header": (400, post(b"x: a\0b", after=HIDDEN)),
    "no HTTP at all": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"),
    "another version": (400, post(version=b"3.0", after=HIDDEN)),
    "a version of its own": (400, post(version=b"1.1.1", after=HIDDEN)),
    "no host": (400, b"GET /healthz HTTP/1.1\r\n\r\n" + HIDDEN),
    "two hosts": (
        400,
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n" + HIDDEN,
    ),
    "two tokens": (
        400,
        post(b"authorization: Bearer a", b"authorization: Bearer b", path=b"/release"),
    ),
    "one token twice": (
        400,
        post(b"authorization: Bearer a", b"Authorization: Bearer a", after=HIDDEN),
    ),
    "two types": (
        400,
        post(b"content-type: text/plain", b"content-type: application/json", after=HIDDEN),
    ),
    "a head of a megabyte": (
        400,
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 2**20,
    ),
    "ten thousand headers": (
        400,
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"a: b\r\n" * 10_000,
    ),
    "a target of 20 KB": (400, b"GET /" + b"x" * 20_000),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_refused_and_ends_the_connection(site, port, name):
    status, sent = AMBIGUOUS[name]
    before = site.study.ledger.entries("people")
    told = exchange(port, sent)
    assert statuses(told) == [status]
    assert b"connection: close" in told.lower()
    assert set(json.loads(told.rpartition(b"\r\n\r\n")[2])) == {"error", "advice"}
    assert b'"openapi"' not in told
    assert site.study.ledger.entries("people") == before
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def test_a_second_request_on_a_connection_is_read_as_strictly(port):
    clear = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for sent in (
        clear + clear.replace(b"\r\n", b"\n"),
        clear + post(b"content-length: 0, 0", after=HIDDEN),
    ):
        assert statuses(exchange(port, sent)) == [200, 400]
    assert statuses(exchange(port, 3 * clear)) == [200, 200, 200]


def test_a_head_in_single_bytes_is_read_as_one(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(10)
        for (
            byte
        ) in b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nx: a\tb\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert statuses(connection.recv(65_536)) == [200]


ELSEWHERE: dict[str, tuple[int, bytes]] = {
    "another host": (421, b"GET /studies/ HTTP/1.1\r\nhost: evil.example\r\n\r\n"),
    "a host that ends alike": (
        421,
        b"GET /healthz HTTP/1.1\r\nhost: localhost.evil.example\r\n\r\n",
    ),
    "a host with a name in it": (
        421,
        b"GET /healthz HTTP/1.1\r\nhost: localhost@evil.example\r\n\r\n",
    ),
    "an empty host": (421, b"GET /healthz HTTP/1.1\r\nhost:\r\n\r\n"),
    "no host in HTTP/1.0": (421, b"GET /healthz HTTP/1.0\r\n\r\n"),
    "an address with a host": (
        400,
        b"GET http://evil.example/studies HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ),
    "two slashes": (404, b"GET //evil.example/ HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "a slash too many": (404, b"GET /studies/ HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "a slash too few": (404, b"GET /page HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "a tunnel": (400, b"CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "everything": (400, b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_nothing_leads_to_another_host(port, name):
    status, sent = ELSEWHERE[name]
    told = exchange(port, sent, status)
    assert statuses(told) == [status]
    assert b"evil" not in told
    assert b"\r\nlocation:" not in told.lower()


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "localhost."]
)
def test_this_machine_has_names(port, host):
    assert statuses(
        exchange(port, f"GET /healthz HTTP/1.1\r\nhost: {host}\r\n\r\n".encode(), 200)
    ) == [200]


def test_the_custodian_allows_a_name():
    with folder_in_memory() as folder, served(folder) as site:
        app = application({"people": site.study}, site.access, None, hosts={"data.example.org"})  # type: ignore[arg-type]
        site.app = app
        for host, status in (
            ("data.example.org", 200),
            ("Data.Example.org:443", 200),
            ("localhost", 421),
        ):
            assert site.client().get("/healthz", headers={"host": host}).status_code == status


def test_what_is_unusual_and_clear_is_served(site, port):
    """HTTP/1.0, requests in a row, and a client that waits to be told to go on."""
    assert statuses(exchange(port, b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n", 200)) == [
        200
    ]
    assert statuses(exchange(port, HIDDEN * 5, *[200] * 5)) == [200] * 5
    assert statuses(exchange(port, post(b"Content-Length:0") + HIDDEN, 401, 200)) == [401, 200]
    question = json.dumps(body(request_id=None)).encode()
    told = [
        b"content-type: application/json",
        b"authorization: Bearer " + site.tokens["ann"].encode(),
    ]
    sized = b"content-length: %d" % len(question)
    assert statuses(exchange(port, post(sized, *told, after=question) + HIDDEN, 200, 200)) == [
        200,
        200,
    ]
    waiting = post(sized, *told, b"expect: 100-continue")
    assert statuses(exchange(port, waiting, 100)) == [100]
    assert statuses(exchange(port, waiting + question, 200)) in ([100, 200], [200])
    # nothing is waited for
    assert statuses(exchange(port, post(sized, b"expect: 100-continue"), 401)) == [401]


def test_a_client_that_leaves_is_no_failure(port, caplog):
    caplog.set_level(logging.INFO)
    for sent in (b"GET /hea", post(b"content-length: 50", after=b"{"), HIDDEN * 200):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(sent)
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    assert not [
        record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR
    ]


# A database that is killed.


@contextlib.contextmanager
def logged(stream: io.StringIO) -> Iterator[None]:
    """The log as `discreet serve` writes it."""
    root = logging.getLogger()
    quiet = [logging.getLogger(name) for name in ("discreet", "sqlalchemy")]
    before, hooks = (root.handlers[:], root.level), (threading.excepthook, sys.unraisablehook)
    root.handlers.clear()
    configure_log(stream)
    try:
        yield
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        for logger in quiet:
            logger.setLevel(logging.NOTSET)
        threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)


def test_a_killed_database_is_one_line_and_one_answer(server_place):
    terms = {"table": "people", "epsilon": 1, "version": "v1", "neighbors": "add-remove"}
    policy = Policy(source=people(), columns=COLUMNS, **terms)
    ledger, said = server_place.open(new=True), io.StringIO()
    ledger.create("people", 1, promise=policy.promise)
    with folder_in_memory() as folder:
        study = Study(policy, ledger=ledger, name="people")
        access = Access(folder / "discreet.access", new=True)
        requests = Requests(folder / "discreet.requests")
        tokens = {"cleo": str(access.permit("cleo", role="custodian", study=study_key(study)))}
        app = application({"people": study}, access, requests, limits=QUICK)
        site = Served(app, study, access, folder, tokens, None)  # type: ignore[arg-type]
        with (
            running(site) as url,
            logged(said),
            httpx.Client(base_url=url, headers=site.headers("cleo")) as client,
        ):
            assert client.post("/release", json=body()).status_code == 200
            for path, sent in (
                ("/studies", None),
                ("/plan", body(request_id=None)),
                ("/release", body(epsilon="0.2")),
            ):
                server_place.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <>"
                    " pg_backend_pid() AND datname = current_database()"
                )
                failed = client.get(path) if sent is None else client.post(path, json=sent)
                assert (failed.status_code, failed.json()) == (503, FAILURE.body)
                again = client.get(path) if sent is None else client.post(path, json=sent)
                assert again.status_code == 200
        requests.close()
        study.close()
    assert "Traceback" not in said.getvalue()
    assert not re.search(r"psycopg\.|SELECT|INSERT|terminat", said.getvalue())
    lines = said.getvalue().splitlines()
    assert sum("EngineFailed" in line for line in lines) == 3
    assert len(lines) == 7 + 3  # a line for each request, and one for each failure
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line) for line in lines)


def test_words_and_tracebacks_of_libraries_stay_out_of_the_log():
    said = io.StringIO()
    with logged(said):
        for name in ("duckdb.rows", "psycopg", "asyncio", "uvicorn.error", "discreet.serve"):
            try:
                raise RuntimeError("row 7319\nis too much")
            except RuntimeError:
                logging.getLogger(name).exception("lost" if "." in name else "key 7319")
        handler = logging.getLogger().handlers[0]
        assert isinstance(handler.formatter, OneLine)
    lines = said.getvalue().splitlines()
    assert len(lines) == 5
    assert all(line.endswith("(RuntimeError)") for line in lines)
    assert "7319" not in said.getvalue()
