"""TRUST 5 and 6 over HTTP: two hundred clients on one budget, and a server that is killed while
they ask.

Whatever the order: granted ≤ allotted, to the last 10⁻⁹; no answer that is not spent for; no
failure of the server.
"""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import httpx

import discreet
from discreet import Ledger
from discreet.errors import BudgetExceeded
from serving import folder_in_memory, new_token, process, running, served, written
from studies import Paper
from waiting import PATIENCE

SELECT = "SELECT count(*) AS n FROM people WHERE age > "
COST = Fraction("0.02")
OPTIONS = ("--quantum", "0", "--rate", "1e6", "--at-once", "100", "--patience", str(PATIENCE))


def question(at: int) -> dict[str, Any]:
    """A question that no other is the same as."""
    return {"study": "people", "sql": f"{SELECT}{at}", "epsilon": str(COST), "request_id": f"r{at}"}


async def ask_all(
    url: str,
    tokens: list[str],
    rounds: int,
    first: int = 0,
    shown: Callable[[], None] = lambda: None,
    attempts: int = 1,
) -> list[tuple[str, int, Any]]:
    """What many clients at once are told, each of them some questions: (request id, status, body).

    A connection that was late on a busy machine is cut: the same request is then sent again, up to
    so many `attempts`.
    """
    numbers = itertools.count(first)
    found: list[tuple[str, int, Any]] = []

    async def client(session: httpx.AsyncClient, token: str) -> None:
        for _ in range(rounds):
            asked = question(next(numbers))
            headers = {"authorization": f"Bearer {token}"}
            for attempt in range(attempts):
                try:
                    told = await session.post("/release", json=asked, headers=headers)
                    break
                except httpx.TransportError:
                    if attempt == attempts - 1:
                        found.append((asked["request_id"], 0, None))
                        return
            found.append((asked["request_id"], told.status_code, told.json()))
            shown()

    limits = httpx.Limits(max_connections=len(tokens), max_keepalive_connections=len(tokens))
    async with httpx.AsyncClient(base_url=url, limits=limits) as session:
        await asyncio.gather(*(client(session, token) for token in tokens))
    return found


def granted(found: Iterable[tuple[str, int, Any]]) -> Counter[str]:
    """How many questions each analyst was granted."""
    return Counter(body["id"].partition(":")[0] for _, status, body in found if status == 200)


def overspent(
    found: list[tuple[str, int, Any]], allotted: dict[str, Fraction], total: Fraction
) -> bool:
    counts = granted(found)
    return (
        any(COST * counts[name] > allotted[name] for name in allotted)
        or COST * counts.total() > total
    )


def test_two_hundred_clients_on_one_budget():
    with folder_in_memory() as folder:
        policy = written(folder)
        tokens = [new_token(policy, name, "0.6") for name in ("ann", "bob")]
        with process(
            policy,
            "--quantum",
            "0",
            "--rate",
            "1e6",
            "--at-once",
            "100",
            "--patience",
            str(PATIENCE),
        ) as server:
            found = asyncio.run(ask_all(server.url, tokens * 100, rounds=1, attempts=5))
            assert len(found) == 200
            assert {status for _, status, _ in found} == {200, 403}
            assert httpx.get(f"{server.url}/healthz").status_code == 200
        share = Fraction("0.6")
        assert not overspent(found, {"ann": share, "bob": share}, Fraction(1))
        counts = granted(found)
        assert counts.total() == 50  # all of it, and no unit more
        with Ledger.open(folder / "people.ledger", study="people") as ledger:
            assert ledger.spent("people") == COST * counts.total() == 1
            for name in ("ann", "bob"):
                assert ledger.spent("people", analyst=name) == COST * counts[name] <= share
            entries = [entry for entry in ledger.entries("people") if entry.kind == "spend"]
            assert sum(entry.amount for entry in entries) == 10**9
        assert "Traceback" not in server.log.read_text("utf-8")


def test_one_id_many_times_at_once_is_one_charge():
    with folder_in_memory() as folder, served(folder) as site, running(site) as url:
        with ThreadPoolExecutor(20) as pool, httpx.Client(headers=site.headers("ann")) as client:
            told = list(
                pool.map(lambda _: client.post(f"{url}/release", json=question(1)), range(40))
            )
        assert {one.status_code for one in told} == {200}
        assert len({one.content for one in told}) == 1
        assert site.study.spent == COST


class Racy(Paper):
    """A ledger that looks first and spends afterwards, as Python's default isolation does.

    Six look before any of them spends, so that the race is lost for certain: five could be paid
    for.
    """

    together = threading.Barrier(6)

    def close(self) -> None:
        """There is nothing to close."""

    def spend(self, request_id: str, query: str, epsilon: Any, **given: Any) -> Any:
        if self._spent + epsilon > self._total:
            raise BudgetExceeded("too little is left")
        self.together.wait(PATIENCE)
        return super().spend(request_id, query, epsilon, **given)


def test_a_server_that_looks_before_it_spends_would_be_seen():
    with folder_in_memory() as folder, served(folder) as site:
        site.study.ledger.close()
        site.study.ledger = Racy("0.1")
        with running(site) as url:
            found = asyncio.run(ask_all(url, [site.tokens["ann"]] * 6, rounds=1))
        assert overspent(found, {"ann": Fraction("0.1")}, Fraction("0.1"))


def unpaid(shown: Iterable[str], ledger: Ledger) -> set[str]:
    """Answers that were shown and not spent for."""
    return set(shown) - {
        str(entry.request_id) for entry in ledger.entries("people") if entry.kind == "spend"
    }


def test_a_server_that_is_killed_has_shown_nothing_that_is_not_spent():
    shown: list[str] = []
    lost: list[str] = []
    with folder_in_memory() as folder:
        policy = written(folder, epsilon="100")
        token = new_token(policy, "ann", "100")
        for first, answers in ((0, 3), (10_000, 20)):
            with process(
                policy,
                "--quantum",
                "0",
                "--rate",
                "1e6",
                "--at-once",
                "100",
                "--patience",
                str(PATIENCE),
            ) as server:
                ask_again(server.url, token, lost)
                counted = itertools.count(1)

                def shoot(
                    many: int = answers, counted: Any = counted, popen: Any = server.popen
                ) -> None:
                    if next(counted) == many:
                        popen.kill()

                found = asyncio.run(
                    ask_all(server.url, [token] * 40, rounds=100, first=first, shown=shoot)
                )
            assert {status for _, status, _ in found} == {0, 200}
            shown += [body["id"] for _, status, body in found if status == 200]
            lost = [asked for asked, status, _ in found if status == 0]
            # it opens, or refuses loudly
            with Ledger.open(folder / "people.ledger", study="people") as ledger:
                assert unpaid(shown, ledger) == set()
                assert ledger.spent("people") <= 100
        assert len(shown) >= 23


def ask_again(url: str, token: str, lost: list[str]) -> None:
    """Spent, maybe unanswered: asked again, it is answered, and not charged."""
    with discreet.connect(url, token) as remote:
        paid = {entry["id"] for entry in remote.entries() if entry["kind"] == "spend"}
        before = remote.remaining
        for name in [name for name in lost if f"ann:{name}" in paid][:3]:
            assert (
                len(remote.sql(f"{SELECT}{name[1:]}", epsilon=str(COST)).release(request_id=name))
                == 1
            )
        assert remote.remaining == before


def test_an_answer_that_nobody_paid_for_would_be_seen():
    with folder_in_memory() as folder, served(folder) as site:
        assert unpaid(["ann:made-up"], site.study.ledger) == {"ann:made-up"}
