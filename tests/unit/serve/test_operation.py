"""What an operator sees and does: logs, health, metrics, the end of a server, its port, TLS."""

import io
import json
import logging
import os
import re
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import httpx
import pytest

import discreet
import shell
from discreet.errors import EngineFailed, InvalidParameter
from discreet.serve.operation import guard, metrics
from discreet.serve.operation.log import JsonLine, tell_operator
from discreet.serve.refusals import FAILURE
from discreet.serve.server import Endpoint, bound, refuse_certificate
from serving import QUICK, Client, body, clock_of, new_token, process, running, served, written
from waiting import PATIENCE, wait

SAMPLE = re.compile(
    r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (-?[0-9.e+-]+|\+Inf|NaN)'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(tmp_path_factory.mktemp("operation")) as made:
        yield made


def samples(text: str) -> dict[str, float]:
    """The samples of a text in Prometheus' format; it must be in that format."""
    found, kinds = {}, {}
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            matched = SAMPLE.fullmatch(line)
            assert matched, line
            assert re.sub(r"_(bucket|sum|count)$", "", matched[1]) in kinds or matched[1] in kinds
            assert line.rpartition(" ")[0] not in found
            found[line.rpartition(" ")[0]] = float(matched[3])
    return found


def test_health_needs_no_token_and_readiness_looks_at_the_ledger(site, caplog):
    client = site.client(None)
    failing = mock.patch.object(site.study.ledger, "recent", side_effect=EngineFailed("row 7319"))
    with clock_of("operation.guard") as clock:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok"}
        with failing:
            # what was seen holds for a second: anybody may ask
            assert client.get("/readyz").status_code == 200
            clock.move(2)
            failed = client.get("/readyz")
        assert failed.status_code == 503
        assert failed.json() == {"status": "failing", "failed": ["ledger"]}
        assert client.get("/healthz").status_code == 200
    assert "the ledger of study 'people' failed with EngineFailed" in caplog.text


def test_a_ledger_that_was_replaced_makes_a_server_not_ready(tmp_path, caplog):
    with served(tmp_path) as site, clock_of("operation.guard") as clock:
        client, ledger = site.client(None), site.study.ledger.files[0]
        assert client.get("/readyz").status_code == 200
        shutil.copy(ledger, f"{ledger}.copy")
        os.replace(f"{ledger}.copy", ledger)
        clock.move(2)
        assert client.get("/readyz").status_code == 503
        assert site.client("ann").post("/release", json=body(epsilon="0.125")).status_code == 503
    assert "was moved or replaced while it was open" in caplog.text


def test_a_part_that_does_not_answer_holds_one_thread_however_often_anybody_asks(monkeypatch):
    """Those who ask whether a server is ready need no token, and none of them waits for long."""
    monkeypatch.setattr(guard, "_HOLDS", 0.0)
    monkeypatch.setattr(guard, "_PATIENCE", 0.2)
    asked, answered = [], threading.Event()
    ready = guard.Readiness(
        {}, disk=lambda: (asked.append(1), answered.wait(PATIENCE)), tokens=lambda: None
    )
    with ThreadPoolExecutor(4) as pool:
        assert [other.result() for other in [pool.submit(ready) for _ in range(4)]] == [
            ["disk"]
        ] * 4
    assert len(asked) == 1
    answered.set()
    wait(lambda: ready() == [])


def test_metrics_are_for_custodians_and_of_their_studies(site):
    assert site.client(None).get("/metrics").status_code == 401
    assert site.client("ann").get("/metrics").status_code == 403
    before = samples(site.client("cleo").get("/metrics").text)
    assert site.client("ann").post("/release", json=body(epsilon="0.125")).status_code == 200
    assert site.client("ann").post("/release", json=body(epsilon="0.9")).status_code == 403
    answer = site.client("cleo").get("/metrics")
    assert answer.headers["content-type"] == metrics.MEDIA_TYPE
    after = samples(answer.text)
    assert after['discreet_epsilon_budget{study="people"}'] == 1
    assert after['discreet_epsilon_spent{study="people"}'] == float(site.study.spent)
    assert after['discreet_epsilon_left{study="people"}'] == float(site.study.remaining)
    assert not [name for name in after if 'study="other"' in name]
    for status in ("200", "403"):
        name = f'discreet_requests_total{{route="/release",status="{status}"}}'
        assert after[name] == before.get(name, 0) + 1
    for operation, many in (("spend", 2), ("record", 1)):  # what is refused was looked at, too
        name = f'discreet_ledger_seconds_count{{operation="{operation}"}}'
        assert after[name] == before.get(name, 0) + many
        assert (
            after[f'discreet_ledger_seconds_bucket{{operation="{operation}",le="+Inf"}}']
            == after[name]
        )
    assert after["discreet_requests_in_progress"] >= 1
    assert "ann" not in re.sub(r"# HELP.*", "", answer.text)


def test_the_key_of_the_metrics_opens_nothing_else(tmp_path):
    file, key = tmp_path / "metrics.key", "0123456789abcdef" * 4
    file.write_text(f"{key}\n")
    file.chmod(0o644)
    with pytest.raises(InvalidParameter, match=r"chmod 640 metrics\.key"):
        metrics.metrics_key(file)
    file.chmod(0o600)
    hashed = metrics.metrics_key(file)
    with served(tmp_path, metrics_key=hashed) as site:
        monitor = Client(site.app, site.portal, {"authorization": f"Bearer {key}"})
        assert {
            'discreet_epsilon_left{study="people"}',
            'discreet_epsilon_left{study="other"}',
        } <= set(samples(monitor.get("/metrics").text))
        for path in ("/studies", "/ledger", "/releases/x"):
            assert monitor.get(path).status_code == 401
        assert monitor.post("/release", json=body()).status_code == 401
        for wrong in ("", key[:-1], key + "0", hashed.hex()):
            assert (
                Client(site.app, site.portal, {"authorization": f"Bearer {wrong}"})
                .get("/metrics")
                .status_code
                == 401
            )
    for short in ("", "short", f"{key[:31]}", f"{key} {key}", "é" * 40):
        file.write_text(short)
        with pytest.raises(InvalidParameter, match="32 or more random characters"):
            metrics.metrics_key(file)


@pytest.fixture
def said():
    """What is logged, as JSON."""
    stream, logger = io.StringIO(), logging.getLogger("discreet")
    handler, level = logging.StreamHandler(stream), logger.level
    handler.setFormatter(JsonLine())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_log_in_json_has_routes_and_no_tokens_keys_or_data(site, said):
    ann, token = site.client("ann"), site.tokens["ann"]
    ann.get(f"/{token}")
    ann.get(f"/releases/{token}", params={"format": token})
    ann.get("/ledger", params={"study": "Wolpertinger"})
    sql = "SELECT count(*) FROM people WHERE county = 'Wolpertinger'"
    ann.post("/plan", json={"study": "people", "sql": sql, "epsilon": "0.1"})
    ann.get("/page/../../etc")
    ann.request(token, "/plan")
    lines = said()
    assert [line["route"] for line in lines] == [
        "-",
        "/releases/{id}",
        "/ledger",
        "/plan",
        "-",
        "/plan",
    ]
    assert [line["method"] for line in lines[3:]] == ["POST", "GET", "-"]
    assert {line["name"] for line in lines} == {"ann", "-"}
    text = json.dumps(lines)
    assert token.lower() not in text.lower()
    assert token.rpartition("_")[2] not in text.lower()
    assert "Wolpertinger" not in text
    # and no duration
    assert set(lines[1]) == {"time", "level", "event", "name", "method", "route", "status"}
    assert datetime.fromisoformat(lines[1]["time"]).tzinfo == UTC


def test_a_failure_in_json_tells_its_kind_and_place(said):
    for error in (RuntimeError("row 7319\nis too much"), EngineFailed("the disk is full")):
        try:
            raise error
        except Exception as caught:
            tell_operator(caught, "release 'ann:1'")
    logging.getLogger("discreet.rows").error("one %s\nline", "whole")
    strange, ours, last = said()
    assert (strange["event"], strange["error"], "words" in strange) == (
        "failure",
        "RuntimeError",
        False,
    )
    assert strange["place"].startswith("test_operation.py:")
    assert "7319" not in json.dumps(strange)
    assert ours["words"] == "the disk is full; nothing was spent"
    assert (last["event"], last["message"]) == ("message", "one whole\nline")


def test_a_port_in_use_is_said_in_one_sentence_before_the_address(tmp_path):
    policy = written(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidParameter, match=f"port {port} is in use: .* --port"):
            bound(Endpoint(port=port))
        shell.discreet("serve", policy.name, "--port", str(port), cwd=tmp_path).refused(
            2, f"port {port} is in use"
        )
    # nothing was made
    assert {file.name for file in tmp_path.iterdir()} == {"people.toml", "people.parquet"}
    with pytest.raises(InvalidParameter, match="must be an address of this machine"):
        bound(Endpoint(host="192.0.2.7", port=port, insecure_public=True))


WAITING = (
    "import time; from pathlib import Path; from discreet.engines.duckdb import DuckDB; fetch ="
    " DuckDB.fetch\ndef waits(engine, request):\n    while not Path('go').exists():"
    " time.sleep(0.02)\n    return fetch(engine, request)\nDuckDB.fetch = waits; from"
    " discreet.__main__ import main; main()"
)


def test_a_server_that_is_told_to_end_finishes_what_runs(tmp_path, monkeypatch):
    """The statement goes on when the server has said that it ends."""
    monkeypatch.chdir(tmp_path)
    policy = written(tmp_path)
    token = new_token(policy, "ann", "0.5")
    options = ("--grace", str(PATIENCE), "--log-format", "json")
    with (
        process(policy, *options, program=("-c", WAITING)) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        headers = {"authorization": f"Bearer {token}"}
        answer = pool.submit(httpx.post, f"{server.url}/release", json=body(), headers=headers)
        wait(lambda: "spent" in discreet_spent(policy))
        server.popen.send_signal(signal.SIGTERM)
        wait(lambda: '"event": "ending"' in server.log.read_text("utf-8"))
        (tmp_path / "go").touch()
        assert answer.result().status_code == 200
        assert server.popen.wait(PATIENCE) == 0
        log = server.log.read_text("utf-8")
    events = [json.loads(line) for line in log.splitlines()]
    assert (events[0]["event"], events[0]["message"]) == (
        "start",
        f"Serving people at {server.url} (Ctrl-C to stop)",
    )
    assert [event["event"] for event in events][-3:] == ["ending", "request", "ended"]
    assert events[-2]["route"] == "/release"
    assert token not in log


def discreet_spent(policy) -> str:
    """ "spent" as soon as something is."""
    with discreet.Ledger.open(policy.with_suffix(".ledger")) as ledger:
        return "spent" if ledger.spent("people") else ""


def test_what_does_not_end_in_its_grace_is_stopped_spent_and_free_when_asked_again(tmp_path):
    limits = replace(QUICK, grace=0.3)
    stopped = threading.Event()

    def slow(*_):
        assert stopped.wait(PATIENCE)
        raise EngineFailed("stopped")

    with served(tmp_path, limits=limits) as site:
        asked = body()
        with (
            mock.patch.object(site.study.engine, "fetch", slow),
            mock.patch.object(site.study.engine, "interrupt", stopped.set),
        ):
            answers = []
            with running(site, limits) as url:
                headers = site.headers("ann")
                thread = threading.Thread(
                    target=lambda: answers.append(
                        httpx.post(f"{url}/release", json=asked, headers=headers)
                    )
                )
                thread.start()
                wait(lambda: site.study.spent > 0)
            thread.join()
        assert [answer.status_code for answer in answers] == [503]
        spent = site.study.spent
        assert site.client().post("/release", json=asked).status_code == 200
        assert site.study.spent == spent


def test_what_cannot_be_stopped_gets_the_one_503_too(tmp_path, said):
    """The statement goes on until its client has been told, which the server does not wait for."""
    limits, ended = replace(QUICK, grace=0.1, patience=0.2), threading.Event()

    def slow(*_):
        assert ended.wait(PATIENCE)
        raise EngineFailed("late")

    with served(tmp_path, limits=limits) as site, clock_of("server"):
        asked = body()
        with mock.patch.object(site.study.engine, "fetch", slow), ThreadPoolExecutor(1) as pool:
            with running(site, limits) as url:
                answer = pool.submit(
                    httpx.post, f"{url}/release", json=asked, headers=site.headers("ann")
                )
                answer.add_done_callback(lambda _: ended.set())
                wait(lambda: site.study.spent > 0)
            told = answer.result()
        assert (told.status_code, told.json()) == (503, FAILURE.body)
        assert told.headers["cache-control"] == "no-store"
        assert (
            next(line["error"] for line in said() if line["event"] == "failure") == "CancelledError"
        )
        spent = site.study.spent
        assert site.client().post("/release", json=asked).status_code == 200
        assert site.study.spent == spent


def test_a_reader_has_so_long_for_a_whole_answer_however_steadily_it_reads(tmp_path):
    limits = replace(QUICK, reading=60.0, pace=1, patience=30.0)
    keys = {f"county {at}": None for at in range(20_000)}
    columns = {"county": {"keys": list(keys)}, "age": {"bounds": [0, 120]}}
    with (
        mock.patch("serving.COLUMNS", columns),
        served(tmp_path, limits=limits) as site,
        clock_of("server") as clock,
        running(site, limits, buffer=4096) as url,
    ):
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(place)
            reader.settimeout(PATIENCE)
            sent = json.dumps(body()).encode()
            head = (
                "POST /release HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer"
                f" {site.tokens['ann']}\r\n"
            )
            more = f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
            reader.sendall((head + more).encode() + sent)
            taken = len(reader.recv(1024))
            try:
                while piece := reader.recv(1024):  # a little, always in time
                    taken += len(piece)
                    clock.move(1)
                    time.sleep(0.01)  # so that the server looks at its clock now and then
            except ConnectionResetError:
                pass
            assert taken < 1_000_000
        assert site.client("bob").get("/studies").status_code == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that its maker has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1)
    )
    made = made.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False
    )
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    folder, pem = tmp_path_factory.mktemp("tls"), serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, plain))
    return folder


def test_a_certificate_that_is_none_is_refused(certificate, tmp_path):
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    refuse_certificate(Endpoint(certfile=cert, keyfile=key))
    for pair in ((cert, cert), (key, key), (tmp_path / "nothing", key)):
        with pytest.raises(
            InvalidParameter, match="certfile and keyfile must be a certificate and its private key"
        ):
            refuse_certificate(Endpoint(certfile=pair[0], keyfile=pair[1]))


def test_a_certificate_of_ones_own_is_trusted_by_name(site, certificate):
    terms = {"certfile": certificate / "cert.pem", "keyfile": certificate / "key.pem"}
    with running(site, **terms) as url:
        address = url.replace("http://127.0.0.1", "https://localhost")
        with pytest.raises(
            InvalidParameter, match=r'is not trusted \(self.signed certificate\).*verify="ca\.pem"'
        ):
            discreet.connect(address, site.tokens["ann"])
        with discreet.connect(
            address, site.tokens["ann"], verify=certificate / "cert.pem"
        ) as remote:
            assert remote.name == "people"
        # another name than the certificate has
        with pytest.raises(InvalidParameter, match="is not trusted"):
            discreet.connect(
                address.replace("localhost", "127.0.0.1"),
                site.tokens["ann"],
                verify=terms["certfile"],
            )
        for wrong in (False, True, 0):
            with pytest.raises(InvalidParameter, match="verify must be a file of certificates"):
                discreet.connect(address, site.tokens["ann"], verify=wrong)
        for wrong in (certificate / "key.pem", certificate / "nothing.pem"):
            with pytest.raises(InvalidParameter, match=f"PEM.*{wrong.name}"):
                discreet.connect(address, site.tokens["ann"], verify=wrong)
