"""TRUST 5, 6 and 55: two servers over one PostgreSQL ledger, raced against each other and killed.

Granted on both ≤ allotted ≤ total, to the last 10⁻⁹. What a killed server has spent and not
recorded is answered by the other one under the same id, free. Controls, a racing ledger and an
unpaid answer, are in `test_http_load.py`.
"""

import asyncio
import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import discreet
from discreet import Ledger
from discreet.cli.app import app
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.store import Requests
from ledgers import Place
from serving import QUICK, Served, folder_in_memory, new_token, process, running, served, written
from waiting import PATIENCE

COST = Fraction("0.05")
SELECT = "SELECT count(*) AS n FROM people WHERE age > "
OPTIONS = ("--quantum", "0", "--rate", "1e6", "--at-once", "100")
DYING = (
    "import os, signal; from discreet.ledger.ledger import Ledger; "
    "Ledger.record = lambda *given: os.kill(os.getpid(), signal.SIGKILL); "
    "from discreet.__main__ import main; main()"
)


def question(at: int, name: str = "") -> dict[str, Any]:
    return {
        "study": "people",
        "sql": f"{SELECT}{at}",
        "epsilon": str(COST),
        "request_id": name or f"r{at}",
    }


def team(place: Place, folder: Path) -> tuple[Path, dict[str, str]]:
    """A study with its ledger on a server, and the tokens of two analysts."""
    policy = written(folder)
    policy.write_text(
        f'study = "people"\nledger = "{place.where}"\n{policy.read_text("utf-8")}', "utf-8"
    )
    made = CliRunner().invoke(app, ["ledger", "create", str(policy)])
    assert made.exit_code == 0, made.output
    return policy, {name: new_token(policy, name, "0.6") for name in ("ann", "bob")}


@contextmanager
def here(policy: Path) -> Iterator[str]:
    """The address of a further server over the same files, in this process."""
    study, requests = discreet.open(policy), Requests(policy.with_name("discreet.requests"))
    with closing(study), closing(requests):
        made = application(
            {"people": study}, Access(policy.with_name("discreet.access")), requests, limits=QUICK
        )
        with running(Served(made, study, None, policy.parent, {}, None)) as url:
            yield url


async def race(urls: list[str], tokens: dict[str, str], clients: int) -> list[tuple[str, int]]:
    """Who was granted or refused, of many clients that ask both servers until they are refused."""
    numbers, found = itertools.count(200), []

    async def client(session: httpx.AsyncClient, url: str, name: str) -> None:
        status = 200
        while status == 200:
            headers = {"authorization": f"Bearer {tokens[name]}"}
            told = await session.post(
                f"{url}/release", json=question(next(numbers)), headers=headers
            )
            status = told.status_code
            found.append((name, status))

    async with httpx.AsyncClient() as session:
        pairs = itertools.islice(itertools.cycle(itertools.product(urls, tokens)), clients)
        await asyncio.gather(*(client(session, url, name) for url, name in pairs))
    return found


def test_two_servers_spend_one_budget_and_one_goes_on_where_the_other_was_killed(server_place):
    with folder_in_memory() as folder, ExitStack() as servers:
        policy, tokens = team(server_place, folder)
        ann, bob = ({"authorization": f"Bearer {tokens[name]}"} for name in ("ann", "bob"))
        first = servers.enter_context(process(policy, *OPTIONS, program=("-c", DYING)))
        second = servers.enter_context(process(policy, *OPTIONS))
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{first.url}/release", json=question(1), headers=ann)
        assert first.popen.wait(PATIENCE) == -9
        with Ledger.open(server_place.where, anchor=folder / "discreet.anchor") as ledger:
            assert [entry.kind for entry in ledger.recent("people", last=1)] == ["spend"]
            assert ledger.spent("people") == COST
            taken = httpx.post(f"{second.url}/release", json=question(2, "r1"), headers=ann)
            assert (taken.status_code, taken.json()["error"]) == (
                409,
                "The request_id was used for another question.",
            )
            told = httpx.post(f"{second.url}/release", json=question(1), headers=ann)
            assert told.status_code == 200, told.text
            same = httpx.post(f"{second.url}/release", json=question(1, "mine"), headers=bob)
            assert same.json()["table"] == told.json()["table"]
            assert ledger.spent("people") == COST

            third = servers.enter_context(here(policy))
            again = httpx.get(f"{third}/releases/r1", headers=ann)
            assert again.json() == told.json() | {"remaining": again.json()["remaining"]}
            found = asyncio.run(race([second.url, third], tokens, 16))
            assert {status for _, status in found} == {200, 403}
            granted = [name for name, status in found if status == 200]
            assert COST * (1 + len(granted)) == 1 == ledger.spent("people")
            for name, paid in (("ann", 1), ("bob", 0)):
                assert (
                    COST * (paid + granted.count(name))
                    == ledger.spent("people", analyst=name)
                    <= Fraction("0.6")
                )
            ledger.verify()
        for server in (first, second):
            log = server.log.read_text("utf-8")
            assert "Traceback" not in log
            assert server_place.where not in log


def test_an_id_of_another_machine_is_refused_where_it_names_another_question():
    """Each machine has a file of requests of its own; the ledger knows the ids of all."""
    with folder_in_memory() as folder, served(folder) as site:
        client = site.client()
        assert client.post("/release", json=question(1)).status_code == 200
        with closing(sqlite3.connect(folder / "discreet.requests")) as file, file:
            file.execute("DELETE FROM request")  # as on another machine
        taken = client.post("/release", json=question(2, "r1"))
        assert taken.status_code == 409
        assert "nothing was spent" in taken.json()["error"]
        assert client.get("/releases/r1").status_code == 404
        assert client.post("/release", json=question(1)).status_code == 200
        assert client.get("/releases/r1").status_code == 200
        assert site.study.spent == COST
