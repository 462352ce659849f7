"""A question over HTTP beside the same call in process: the time of a plan and of a release, and how many in a second.

    make bench ONLY=serve                       the tables; the quantum is 0, so that the work itself is measured
    python -m bench.serve --soak [SECONDS]      200 clients on one budget: spent exactly, no failure, memory flat

The server is a process of its own on this machine; a release is on disk before it is shown, in both.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import parquet

import discreet
from bench.measure import fastest, table
from discreet.serve.desk import curve
from discreet.show.json import plan_json

KEYS = 100
POLICY = f"""
source = "people.parquet"
epsilon = "1000"
neighbors = "add-remove"
version = "1"
[columns]
county = {{ keys = {[f"county {at}" for at in range(KEYS)]} }}
age = {{ bounds = [0, 120] }}
"""
QUESTION = "SELECT county, count(*) AS people, avg(age) AS age FROM people GROUP BY county"
ROUNDS = 60
CLIENTS = 16
ALLOTTED = "0.3"
_epsilons = (Fraction(1, 1000) + Fraction(at, 10**9) for at in itertools.count())  # each of them is a new question


def question(**more: Any) -> dict[str, Any]:
    return {"study": "people", "sql": QUESTION, "epsilon": str(next(_epsilons)), **more}


def planned(plan: Any) -> dict[str, Any]:
    return {**plan_json(plan), "curve": curve(plan)}


def written(folder: Path) -> Path:
    rows = 100_000
    counties = [f"county {at % KEYS}" for at in range(rows)]
    data = pa.table({"county": counties, "age": pa.array([float(at % 97) for at in range(rows)])})
    parquet.write_table(data, folder / "people.parquet")
    (folder / "people.toml").write_text(POLICY, "utf-8")
    return folder / "people.toml"


@contextmanager
def serving(policy: Path, allot: str = "1000") -> Iterator[tuple[str, str, int]]:
    """The address of a server, a token and its process id."""
    program = [sys.executable, "-m", "discreet", "serve"]
    token = [*program, "token", "ann", "--study", str(policy), "--allot", allot]
    secret = subprocess.run(token, capture_output=True, text=True, check=True).stdout.split()[-1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    run = [*program, str(policy), "--port", port, "--quantum", "0", "--rate", "1000000"]
    run += ["--at-once", "100", "--releases-per-day", "1000000"]  # one token stands for many people
    server = subprocess.Popen(run, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/health")
                break
            time.sleep(0.1)
        yield url, secret, server.pid
    finally:
        server.terminate()
        server.wait()


async def rate(url: str, token: str, path: str) -> float:
    """Requests in a second, from many clients at once."""
    async with httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60) as session:
        names = itertools.count()

        async def client() -> None:
            for _ in range(ROUNDS // 4):
                named = {"request_id": f"{path[1:]}-{next(names)}"} if path == "/release" else {}
                (await session.post(path, json=question(**named))).raise_for_status()

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        return CLIENTS * (ROUNDS // 4) / (time.perf_counter() - began)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("here", "there"):
            (folder / part).mkdir()
        here, there = written(folder / "here"), written(folder / "there")
        with discreet.open(here) as study, serving(there) as (url, token, _):
            headers, ids = {"authorization": f"Bearer {token}"}, itertools.count()
            with httpx.Client(base_url=url, headers=headers, timeout=60) as session:
                times = fastest(
                    {
                        "here /plan": lambda: planned(study.sql(QUESTION, epsilon=next(_epsilons))),
                        "there /plan": lambda: session.post("/plan", json=question()).raise_for_status(),
                        "here /release": lambda: study.sql(QUESTION, epsilon=next(_epsilons)).release(),
                        "there /release": lambda: session.post(
                            "/release", json=question(request_id=f"r{next(ids)}")
                        ).raise_for_status(),
                    },
                    rounds=ROUNDS,
                )
            many = {path: asyncio.run(rate(url, token, path)) for path in ("/plan", "/release")}
    lines = [
        [
            f"POST {path}",
            f"{times[f'here {path}'] * 1e3:.1f} ms",
            f"{times[f'there {path}'] * 1e3:.1f} ms",
            f"{times[f'there {path}'] / times[f'here {path}']:.2f}",
            f"{many[path]:.0f}",
        ]
        for path in many
    ]
    title = f"Over HTTP: {KEYS} counties, count and mean, 100,000 rows"
    print(table(title, ["", "in process", "over HTTP", "ratio", f"a second, {CLIENTS} clients"], lines))


def memory(process: int) -> int:
    """Bytes that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


async def flood(url: str, token: str, process: int, seconds: float) -> tuple[Counter[int], Fraction, list[int]]:
    """Statuses, the ε that was granted, and the memory of the server at some moments."""
    statuses: Counter[int] = Counter()
    granted, held, names, end = Fraction(0), [], itertools.count(), time.monotonic() + seconds
    session = httpx.AsyncClient(
        base_url=url,
        headers={"authorization": f"Bearer {token}"},
        timeout=120,
        limits=httpx.Limits(max_connections=200, max_keepalive_connections=200),
    )

    async def client(plans: bool) -> None:
        nonlocal granted
        while time.monotonic() < end:
            named = {} if plans else {"request_id": f"s{next(names)}"}
            asked = question(**named)
            told = await session.post("/plan" if plans else "/release", json=asked)
            statuses[told.status_code] += 1
            if told.status_code == 200 and not plans:
                granted += Fraction(asked["epsilon"])

    async def watch() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(seconds / 10)
            held.append(memory(process))

    async with session:
        await asyncio.gather(watch(), *(client(at % 4 == 0) for at in range(200)))
    return statuses, granted, held


def soak(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        policy = written(Path(name))
        with serving(policy, ALLOTTED) as (url, token, process):
            statuses, granted, held = asyncio.run(flood(url, token, process, seconds))
        with discreet.open(policy) as study:
            spent = study.spent
    growth = held[-1] / held[len(held) // 3]
    print(f"{seconds:.0f} s, 200 clients: {dict(statuses)}")
    print(f"ε {float(granted)} of {ALLOTTED} granted, {float(spent)} spent")
    print(f"memory {min(held) / 2**20:.0f}–{max(held) / 2**20:.0f} MiB, ×{growth:.2f} over the last two thirds")
    if set(statuses) - {200, 403} or growth > 1.2 or not granted == spent <= Fraction(ALLOTTED):
        raise SystemExit("the soak found something")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--soak"]:
        soak(float(sys.argv[2]) if len(sys.argv) > 2 else 30.0)
    else:
        main()
