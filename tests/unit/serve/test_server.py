import fcntl
import itertools
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import discreet
from discreet.errors import InvalidParameter
from discreet.serve.address import is_local
from discreet.serve.command import app
from discreet.serve.server import Endpoint, open_studies
from serving import QUICK, clock_of, new_token, running, served, written
from waiting import PATIENCE, wait

HASTY = replace(QUICK, patience=5.0)
LATE = 5.1


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.2", "example.org", "127.0.0.1.example.org"],  # noqa: S104
)
def test_a_public_address_needs_tls_or_a_word(host, tmp_path):
    assert not is_local(host)
    with pytest.raises(InvalidParameter, match="--insecure-public"):
        Endpoint(host=host)
    for more in ({"insecure_public": True}, {"certfile": tmp_path, "keyfile": tmp_path}):
        assert Endpoint(host=host, allowed_hosts=("data.example.org",), **more).hosts == {
            host,
            "data.example.org",
        }


def test_a_certificate_needs_its_key(tmp_path):
    with pytest.raises(InvalidParameter, match="together"):
        Endpoint(certfile=tmp_path)


def test_two_studies_of_one_name_are_refused(tmp_path):
    policy = written(tmp_path)
    with pytest.raises(InvalidParameter, match="twice"):
        open_studies([policy, policy], say=print)


def test_a_server_that_waits_for_its_ledger_at_its_start_says_so(tmp_path, monkeypatch):
    """The lock is held until the server says what it waits for; without a lock it says nothing."""
    monkeypatch.setattr("discreet.serve.server._QUIET", 0.05)
    policy, heard = written(tmp_path), []
    with discreet.open(policy) as study:
        assert study.ledger.total("people") == 1
    with (tmp_path / "people.ledger.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def say(words: str) -> None:
            heard.append(words)
            fcntl.flock(lock, fcntl.LOCK_UN)

        open_studies([policy], say=say)["people"].close()
    assert heard[0].startswith(
        f"Waiting for the ledger of {policy}, which did not answer within 0.05 s"
    )
    monkeypatch.setattr("discreet.serve.server._QUIET", PATIENCE)
    heard.clear()
    open_studies([policy], say=heard.append)["people"].close()
    assert not heard


def test_a_server_that_waits_for_its_tokens_at_its_start_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.serve.server._QUIET", 0.05)
    monkeypatch.setattr("discreet.serve.store._PATIENCE", 1.0)
    # of all tests of this process
    monkeypatch.setattr("discreet.serve.operation.log.configure_log", lambda **_: None)
    policy = written(tmp_path)
    new_token(policy, "ann", "0.5")
    with (
        closing(sqlite3.connect(tmp_path / "discreet.access", isolation_level=None)) as other,
        socket.socket() as free,
    ):
        other.execute("BEGIN EXCLUSIVE")
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as in `serving.process`
        free.bind(("127.0.0.1", 0))
        ended = CliRunner().invoke(app, ["run", str(policy), "--port", str(free.getsockname()[1])])
    words = f"Waiting for the tokens in {tmp_path / 'discreet.access'}, which did not answer"
    assert words in ended.output
    assert "is busy" in str(ended.exception)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server whose time the tests move on: whoever is cut was late by that, and not on a busy
    machine.
    """
    with (
        clock_of("server") as clock,
        served(tmp_path_factory.mktemp("limits"), limits=HASTY) as site,
        running(site, HASTY) as url,
    ):
        yield site, ("127.0.0.1", int(url.rpartition(":")[2])), clock


@contextmanager
def connected(address) -> Iterator[socket.socket]:
    with socket.create_connection(address) as connection:
        connection.settimeout(PATIENCE)
        yield connection


def is_let_go(connection: socket.socket) -> bool:
    """Waits until the server closes."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def answered(connection: socket.socket) -> bool:
    """Whether the next answer is 200; so the server knows of this connection, whose time has begun."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    told = connection.recv(65536)
    while not told.endswith(b'{"status":"ok"}'):
        part = connection.recv(65536)
        assert part, told
        told += part
    return told.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent", [b"", b"POST /plan HT", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "]
)
def test_headers_that_do_not_come_are_not_waited_for(place, sent):
    _, address, clock = place
    with connected(address) as connection, connected(address) as later:
        connection.sendall(sent)
        # connections are taken in their order, so the first one is there, too
        assert answered(later)
        clock.move(LATE)
        assert is_let_go(connection)


def test_a_slow_second_request_is_not_waited_for(place):
    _, address, clock = place
    with connected(address) as connection:
        assert answered(connection)
        letters = itertools.chain(b"GET /healthz HTTP/1.1\r\nx-dribble: ", itertools.repeat(120))

        def is_dropped() -> bool:
            clock.move(HASTY.patience / 50)
            try:
                connection.sendall(bytes([next(letters)]))
            except OSError:
                return True
            return False

        wait(is_dropped, pause=0.002)


def test_a_request_in_time_is_answered_however_long_it_takes(place):
    _, address, clock = place
    with connected(address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        clock.move(HASTY.patience - 0.1)
        connection.sendall(b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_not_waited_for(place):
    site, address, clock = place
    head = (
        f"POST /plan HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {site.tokens['ann']}\r\n"
    )
    head += "content-type: application/json\r\ncontent-length: 50\r\n\r\n{"
    with connected(address) as connection, connected(address) as later:
        connection.sendall(head.encode())
        assert answered(later)
        clock.move(LATE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
