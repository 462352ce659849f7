import socket
import time
from dataclasses import replace

import pytest

from discreet.errors import InvalidParameter
from discreet.serve.address import is_local
from discreet.serve.server import Endpoint, open_studies
from serving import QUICK, running, served, written

HASTY = replace(QUICK, patience=0.5)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "127.0.0.1.example.org"])  # noqa: S104
def test_a_public_address_needs_tls_or_a_word(host, tmp_path):
    assert not is_local(host)
    with pytest.raises(InvalidParameter, match="--insecure-public"):
        Endpoint(host=host)
    for more in ({"insecure_public": True}, {"certfile": tmp_path, "keyfile": tmp_path}):
        assert Endpoint(host=host, allowed_hosts=("data.example.org",), **more).hosts == {host, "data.example.org"}


def test_a_certificate_needs_its_key(tmp_path):
    with pytest.raises(InvalidParameter, match="together"):
        Endpoint(certfile=tmp_path)


def test_two_studies_of_one_name_are_refused(tmp_path):
    policy = written(tmp_path)
    with pytest.raises(InvalidParameter, match="twice"):
        open_studies([policy, policy])


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


@pytest.mark.parametrize("sent", [b"", b"POST /plan HT", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "])
def test_headers_that_do_not_come_are_not_waited_for(place, sent):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(sent)
        assert closed_after(connection) < 3


def test_a_slow_second_request_is_not_waited_for(place):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        connection.settimeout(5)
        try:
            for letter in b"GET /healthz HTTP/1.1\r\nx-dribble: " + b"x" * 100:
                connection.sendall(bytes([letter]))
                time.sleep(0.05)
            dropped = False
        except OSError:
            dropped = True
        assert dropped
        assert time.monotonic() - began < 3


def test_a_request_in_time_is_answered_however_long_it_takes(place):
    with socket.create_connection(place[1]) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n")
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
