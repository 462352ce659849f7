"""A token opens the study that it was made for, and no other of the same file name.

The control is a permit that names the file, as a careless server would keep it: it opens both.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli.app import app as commands
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.command import app
from discreet.serve.desk import study_key
from discreet.serve.operation.metrics import METRICS
from discreet.serve.store import Requests
from serving import QUICK, Served, body, folder_in_memory, people, running, served, written
from waiting import wait

COUNT = "SELECT count(*) AS n FROM people"


def token(policy: Path, access: Path, name: str = "ann") -> str:
    """What the custodian is shown for a token in a shared file."""
    done = CliRunner().invoke(
        app, ["token", name, "--study", str(policy), "--allot", "0.5", "--access", str(access)]
    )
    assert done.exit_code == 0, done.output
    return (done.stdout.split() or [""])[-1]


@contextmanager
def serving(policy: Path, access: Path) -> Iterator[Served]:
    """The study of a policy with a shared file of tokens, and a shared file of requests beside it."""
    with ExitStack() as stack:
        study = stack.enter_context(discreet.open(policy))
        requests = Requests(access.with_name("discreet.requests"))
        known = Access(access)
        made = application({study.name: study}, known, requests, limits=QUICK)
        yield Served(
            made, study, known, policy.parent, {}, stack.enter_context(start_blocking_portal())
        )
        requests.close()


@pytest.fixture
def years() -> Iterator[tuple[Path, Path, Path]]:
    """Two studies called people, in two folders, and the file of tokens that they share."""
    with folder_in_memory() as folder:
        for name in ("2023", "2024"):
            (folder / name).mkdir()
            policy = written(folder / name)
            policy.write_text(
                policy.read_text("utf-8").replace("add-remove", "change-one"), "utf-8"
            )
        parquet.write_table(
            pa.concat_tables([people(), people()]), folder / "2024" / "people.parquet"
        )
        yield (
            folder / "2023" / "people.toml",
            folder / "2024" / "people.toml",
            folder / "discreet.access",
        )


def test_a_token_of_last_year_opens_nothing_this_year(years):
    old, new, access = years
    secret = token(old, access)
    with serving(old, access) as site:
        site.tokens["ann"] = secret
        assert site.client().post("/release", json=body()).status_code == 200
    with serving(new, access) as site:
        site.tokens["ann"] = secret
        client = site.client()
        assert client.get("/studies").json()["studies"] == []
        assert client.get("/ledger").json() == {"entries": []}
        for path, asked in (("/plan", body(request_id=None)), ("/release", body())):
            assert client.post(path, json=asked).status_code == 404
        assert client.get("/ledger?study=people").status_code == 404
        assert site.study.spent == 0
        assert token(new, access) == ""  # the name has a token, and it now opens this one, too
        assert client.post("/release", json=body()).status_code == 200


def test_ids_and_public_answers_of_two_studies_do_not_mix(years):
    """The number of units is public here, so it is kept beside the tokens and not in a ledger."""
    old, new, access = years
    secret = token(old, access)
    token(new, access)
    told = {}
    for policy in (old, new):
        with serving(policy, access) as site:
            site.tokens["ann"] = secret
            before = site.client().get("/releases/same")
            assert before.status_code == 404
            told[policy] = (
                site.client().post("/release", json=body(sql=COUNT, request_id="same")).json()
            )
            assert site.client().get("/releases/same").json() == told[policy]
    assert (told[old]["table"]["n"], told[new]["table"]["n"]) == ([400], [800])


def test_a_new_ledger_needs_new_permits(years):
    old, _, access = years
    secret = token(old, access)
    ledger = old.with_suffix(".ledger")
    with serving(old, access) as site:
        assert len(site.access.person(secret).studies) == 1
        first = study_key(site.study)
    ledger.unlink()
    ledger.with_name(ledger.name + ".anchor").unlink()
    with serving(old, access) as site:
        assert study_key(site.study) != first
        site.tokens["ann"] = secret
        assert site.client().get("/studies").json()["studies"] == []


def test_two_studies_in_one_ledger_have_names_tokens_and_budgets_of_their_own(years):
    *policies, access = years
    shared = access.with_name("team.ledger")
    secrets = {}
    for policy, name, who in zip(
        policies, ("people-2023", "people-2024"), ("ann", "bob"), strict=True
    ):
        policy.write_text(
            f'study = "{name}"\nledger = "{shared}"\n{policy.read_text("utf-8")}', "utf-8"
        )
        made = CliRunner().invoke(commands, ["ledger", "create", str(policy)])
        assert made.exit_code == 0, made.output
        again = CliRunner().invoke(commands, ["ledger", "create", str(policy)])
        assert "must be new" in str(again.exception)
        secrets[who] = token(policy, access, who)
    with serving(policies[1], access) as site:
        site.tokens |= secrets
        asked = body(study="people-2024")
        assert site.client("ann").post("/release", json=asked).status_code == 404
        assert site.client("bob").post("/release", json=asked).status_code == 200
        assert [
            float(site.study.ledger.spent(name)) for name in ("people-2023", "people-2024")
        ] == [0, 0.1]


def test_a_permit_that_names_a_file_would_open_both(years):
    old, new, access = years
    with mock.patch("discreet.serve.desk.study_key", lambda study: study.name):
        secret = token(old, access)
        with serving(new, access) as site:
            site.tokens["ann"] = secret
            assert len(site.client().get("/studies").json()["studies"]) == 1


@pytest.mark.parametrize("end", ["revoked", "of no study", "replaced"])
def test_a_token_that_ends_while_its_request_comes_spends_nothing(end):
    with folder_in_memory() as folder, served(folder) as site, running(site) as url:
        sent, before = json.dumps(body()).encode(), site.study.remaining
        head = (
            f"Host: localhost\r\nAuthorization: Bearer {site.tokens['ann']}\r\nContent-Length:"
            f" {len(sent)}"
        )
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as line:
            request = f"POST /release HTTP/1.1\r\n{head}\r\nContent-Type: application/json\r\n\r\n"
            line.sendall(request.encode() + sent[:-1])
            wait(lambda: "discreet_requests_in_progress 1\n" in METRICS.text({}))
            if end == "replaced":
                site.access.rotate("ann")
            else:
                site.access.revoke(
                    "ann", study=study_key(site.study) if end == "of no study" else None
                )
            line.sendall(sent[-1:])
            assert line.recv(100).split()[1] == (b"404" if end == "of no study" else b"401")
        assert site.study.remaining == before
