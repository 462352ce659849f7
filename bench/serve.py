"""A question over HTTP beside the same call in process: the time of a plan and of a release, and
how many in a second.

    make bench ONLY=serve      the tables; the quantum is 0, so that the work itself is measured

The server is a process of its own on this machine; a release is on disk before it is shown, in
both.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
import tempfile
import time
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
# each of them is a new question
_epsilons = (Fraction(1, 1000) + Fraction(at, 10**9) for at in itertools.count())


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


def new_token(policy: Path, name: str, allot: str) -> str:
    words = [
        sys.executable,
        "-m",
        "discreet",
        "serve",
        "token",
        name,
        "--study",
        str(policy),
        "--allot",
        allot,
    ]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]


@contextmanager
def serving(policy: Path) -> Iterator[tuple[str, int]]:
    """The address of a server and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    run = [sys.executable, "-m", "discreet", "serve", str(policy), "--port", port, "--quantum", "0"]
    # a token stands for many people
    run += ["--rate", "1000000", "--at-once", "100", "--releases-per-day", "1000000"]
    server = subprocess.Popen(run, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/healthz")
                break
            time.sleep(0.1)
        yield url, server.pid
    finally:
        server.terminate()
        server.wait()


async def rate(url: str, token: str, path: str) -> float:
    """Requests in a second, from many clients at once."""
    async with httpx.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60
    ) as session:
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
        token = new_token(there, "ann", "1000")
        with discreet.open(here) as study, serving(there) as (url, _):
            headers, ids = {"authorization": f"Bearer {token}"}, itertools.count()
            with httpx.Client(base_url=url, headers=headers, timeout=60) as session:
                times = fastest(
                    {
                        "here /plan": lambda: planned(study.sql(QUESTION, epsilon=next(_epsilons))),
                        "there /plan": (
                            lambda: session.post("/plan", json=question()).raise_for_status()
                        ),
                        "here /release": (
                            lambda: study.sql(QUESTION, epsilon=next(_epsilons)).release()
                        ),
                        "there /release": (
                            lambda: session.post(
                                "/release", json=question(request_id=f"r{next(ids)}")
                            ).raise_for_status()
                        ),
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
    print(
        table(
            title, ["", "in process", "over HTTP", "ratio", f"a second, {CLIENTS} clients"], lines
        )
    )


if __name__ == "__main__":
    main()
