import socket
import time
from dataclasses import replace

import pytest

from discreet.errors import InvalidParameter
from discreet.serve.limits import Limits, Rate
from serving import QUICK, running, served

HASTY = replace(QUICK, patience=0.5)


def test_a_bucket_fills_at_its_rate():
    rate = Rate(100, 2)
    assert [rate.take("ann") for _ in range(3)] == [True, True, False]
    assert rate.take("bob")
    time.sleep(0.03)
    assert rate.take("ann")


@pytest.mark.parametrize("wrong", [{"quantum": -1}, {"quantum": 61}, {"rate": 0}, {"burst": 0}, {"threads": 0}])
def test_limits_make_sense(wrong):
    with pytest.raises(InvalidParameter):
        Limits(**wrong)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with served(tmp_path_factory.mktemp("limits"), limits=HASTY) as site, running(site, HASTY) as url:
        yield site, ("127.0.0.1", int(url.rpartition(":")[2]))


def closed_after(connection: socket.socket) -> float:
    """Seconds until the server lets go."""
    began = time.monotonic()
    connection.settimeout(5)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


@pytest.mark.parametrize("sent", [b"", b"POST /plan HT", b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "])
def test_headers_that_do_not_come_are_not_waited_for(place, sent):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(sent)
        assert closed_after(connection) < 3


def test_a_slow_second_request_is_not_waited_for(place):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        connection.settimeout(5)
        try:
            for letter in b"GET /health HTTP/1.1\r\nx-dribble: " + b"x" * 100:
                connection.sendall(bytes([letter]))
                time.sleep(0.05)
            dropped = False
        except OSError:
            dropped = True
        assert dropped
        assert time.monotonic() - began < 3


def test_a_request_in_time_is_answered_however_long_it_takes(place):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        time.sleep(0.2)
        connection.sendall(b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_not_waited_for(place):
    site, address = place
    head = f"POST /plan HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {site.tokens['ann']}\r\n"
    head += "content-type: application/json\r\ncontent-length: 50\r\n\r\n{"
    with socket.create_connection(address) as connection:
        connection.sendall(head.encode())
        connection.settimeout(5)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
