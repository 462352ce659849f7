"""Many clients on one server: plans, releases and reports at once, until every allotment is spent,
and on from there.

    make bench ONLY=load                                       20 seconds, 16 clients
    python -m bench.load --seconds 600 --clients 200 --rest 20     the long run, with people who read what they get

What must hold: each analyst is granted what was allotted, to the last unit, and the ledger says the
same; no answer is a failure (5xx) or anything else that was not expected; the server's memory stays
flat; 95 % of plans take at most 5 times as long as one of a client that is alone. Clients rest
between two requests, as people do. A plan reads the ledger, and waits there for spends that go to
disk: TMPDIR=/dev/shm leaves the disk out.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import httpx

import discreet
from bench.measure import table
from bench.serve import new_token, serving, written

COST = Fraction(1, 1000)
"""Of each release and each report: an allotment is a multiple of it, and can be spent to the last
unit.
"""

ANALYSTS = {"ann": Fraction(1, 20), "bob": Fraction(3, 100), "eve": Fraction(1, 100)}
REST = 2.0
"""Seconds between two requests of a client."""

MIX = (
    "/plan",
    "/release",
    "/plan",
    "/report/plan",
    "/plan",
    "/report",
    "/studies",
    "/plan",
    "/release",
    "/ledger",
)
LATENCY, GROWTH = 5.0, 1.2
"""How much slower plans may be than alone, and how much more memory may be held at the end than
after a third.
"""

_numbers = itertools.count()


def question(path: str) -> dict[str, Any]:
    """A question that nobody asked before."""
    at = next(_numbers)
    where = f"age > {at / 1000}"
    sql = (
        f"SELECT county, count(*) AS people, avg(age) AS age FROM people WHERE {where} GROUP BY"
        " county"
    )
    asked = {"tables": {"counties": sql}} if path.startswith("/report") else {"sql": sql}
    named = {"request_id": f"r{at}"} if path in ("/release", "/report") else {}
    return {"study": "people", "epsilon": str(COST), **asked, **named}


def memory(process: int) -> int:
    """Bytes that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@dataclass
class Run:
    """What happened."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    granted: Counter[str] = field(default_factory=Counter)
    alone: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    async def ask(
        self, session: httpx.AsyncClient, name: str, token: str, path: str, times: list[float]
    ) -> int:
        headers, began = {"authorization": f"Bearer {token}"}, time.perf_counter()
        if path in ("/studies", "/ledger"):
            answer = await session.get(path, headers=headers)
        else:
            answer = await session.post(path, json=question(path), headers=headers)
        if path == "/plan":
            times.append(time.perf_counter() - began)
        self.statuses[path, answer.status_code] += 1
        if path in ("/release", "/report") and answer.status_code == 200:
            self.granted[name] += 1
        return answer.status_code

    @property
    def slower(self) -> float:
        """How much longer 95 % of plans take at most than one of a lone client."""
        return sorted(self.plans)[int(0.95 * (len(self.plans) - 1))] / median(self.alone)

    @property
    def growth(self) -> float:
        return self.held[-1] / self.held[len(self.held) // 3]

    def faults(self, allotted: Mapping[str, Fraction], spent: Fraction) -> list[str]:
        """What does not hold, apart from times."""
        odd = {key: many for key, many in self.statuses.items() if not _is_expected(*key)}
        wrong = [name for name, share in allotted.items() if COST * self.granted[name] != share]
        found = {
            f"answers that nobody expected: {odd}": odd,
            f"not granted what was allotted: {', '.join(wrong)}": wrong,
            f"ε {spent} in the ledger, {COST * self.granted.total()} granted": (
                spent != COST * self.granted.total()
            ),
            f"memory grew {self.growth:.2f} ×": self.growth > GROWTH,
        }
        return [sentence for sentence, holds in found.items() if holds]


def _is_expected(path: str, status: int) -> bool:
    return status == 200 or (status == 403 and path in ("/release", "/report"))


async def run(
    url: str,
    tokens: Mapping[str, str],
    process: int,
    *,
    seconds: float,
    clients: int,
    rest: float | None = None,
) -> Run:
    """Plans of a lone client, then all clients at once, then what is left of each allotment."""
    made, owners, rest = Run(), itertools.cycle(tokens.items()), REST if rest is None else rest
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as session:
        name, token = next(owners)
        for _ in range(5):
            # the first ones load what the others share
            await made.ask(session, name, token, "/plan", [])
        for _ in range(20):
            await made.ask(session, name, token, "/plan", made.alone)
        end = time.monotonic() + seconds

        async def client(at: int, name: str, token: str) -> None:
            await asyncio.sleep(rest * at / clients)
            for path in itertools.islice(itertools.cycle(MIX), 3 * at % len(MIX), None):
                await made.ask(session, name, token, path, made.plans)
                if time.monotonic() > end:  # each has asked something, on a machine however busy
                    return
                await asyncio.sleep(rest)

        async def watch() -> None:
            while time.monotonic() < end:
                made.held.append(memory(process))
                await asyncio.sleep(seconds / 20)

        await asyncio.gather(watch(), *(client(at, *next(owners)) for at in range(clients)))
        for name, token in tokens.items():
            while await made.ask(session, name, token, "/release", []) == 200:
                pass
    return made


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rest", type=float, default=REST)
    given = parser.parse_args(words or [])
    with tempfile.TemporaryDirectory() as folder:
        policy = written(Path(folder))
        tokens = {name: new_token(policy, name, str(share)) for name, share in ANALYSTS.items()}
        with serving(policy) as (url, process):
            length = {"seconds": given.seconds, "clients": given.clients, "rest": given.rest}
            made = asyncio.run(run(url, tokens, process, **length))
        with discreet.open(policy) as study:
            faults = made.faults(ANALYSTS, study.spent)
    asked = made.statuses.total()
    cells = [
        f"{asked:,}",
        f"{sum(made.granted.values()):,}",
        f"{made.slower:.1f} ×",
        f"{made.growth:.2f} ×",
    ]
    headings = [
        "requests",
        "granted",
        "95 % of plans, beside a lone one",
        "memory, last two thirds",
    ]
    print(table(f"Load: {given.clients} clients, {given.seconds:g} s", headings, [cells]))
    if made.slower > LATENCY:
        faults.append(f"plans took {made.slower:.1f} × as long as alone")
    if faults:
        raise SystemExit("; ".join(faults))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
