"""Places for ledgers, and what child processes do with them."""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from discreet import BudgetExceeded, Ledger, LedgerDamaged

UNIT = Fraction(1, 10**9)
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where a ledger is, or will be."""

    kind: str
    where: str
    anchor: str

    def open(self, **options) -> Ledger:
        return Ledger.open(self.where, anchor=self.anchor, **options)

    def elsewhere(self, name: object) -> "Place":
        """The same ledger on another machine, which has an anchor of its own."""
        return replace(self, anchor=shutil.copy(self.anchor, f"{self.anchor}.{name}"))

    def execute(self, statement: str, *values):
        """Run a statement behind the ledger's back."""
        if self.kind == "sqlite":
            import sqlite3

            connection = sqlite3.connect(self.where, isolation_level=None)
        else:
            import psycopg

            connection = psycopg.connect(self.where, autocommit=True)
            statement = statement.replace("?", "%s")
        try:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()


def sqlite_place(folder: Path) -> Place:
    return Place("sqlite", str(folder / "study.ledger"), str(folder / "study.ledger.anchor"))


def postgresql_place(server: str, folder: Path) -> Place:
    """A schema of its own on the server: an empty database, as far as a ledger can see."""
    import psycopg

    name = f"place_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    joint = "&" if "?" in server else "?"
    return Place(
        "postgresql",
        f"{server}{joint}options=-csearch_path%3D{name}",
        str(folder / f"{name}.anchor"),
    )


def race(place: Place, worker: int, threads: int, largest: int, results) -> None:
    """Spend random costs from several threads until each has been refused four times; some on
    another machine.
    """
    place = place.elsewhere(worker) if worker % 2 else place
    with place.open() as ledger, ThreadPoolExecutor(threads) as pool:
        work = [
            pool.submit(_race, ledger, f"{worker}/{thread}", largest) for thread in range(threads)
        ]
        found = [item.result() for item in work]
    results.put(
        (
            [cost for granted, _ in found for cost in granted],
            [cost for _, refused in found for cost in refused],
        )
    )


def _race(ledger: Ledger, name: str, largest: int) -> tuple[list[int], list[int]]:
    costs = random.Random(name)
    granted, refused = [], []
    while len(refused) < 4:
        cost = costs.randint(1, largest)
        request = f"{name}/{len(granted)}/{len(refused)}"
        try:
            ledger.spend(request, "q", cost * UNIT, study="s")
        except BudgetExceeded:
            refused.append(cost)
        else:
            granted.append(cost)
    return granted, refused


def ask_at_once(place: Place, worker: int, threads: int, results) -> None:
    """The same request from several threads, each with an answer of its own; what each would show."""
    barrier = threading.Barrier(threads)

    def ask(thread: int) -> tuple[bytes, bool]:
        barrier.wait()
        grant = ledger.spend("one", "q", "0.1", study="s", data_version="1")
        return ledger.record(grant, f"{worker}/{thread}".encode() + os.urandom(8)), grant.repeated

    with place.open() as ledger, ThreadPoolExecutor(threads) as pool:
        results.put(list(pool.map(ask, range(threads))))


def damaged(
    folder: str, whole: bytes, export: str, changes: list[tuple[str, int]]
) -> list[tuple[str, int, str]]:
    """The changes of a ledger's file that were neither refused nor without any effect."""
    place = sqlite_place(Path(folder))
    wrong = []
    last = json.loads(export)["entry"][-1]
    remaining = (last["total"] - last["spent"]) * UNIT
    for change in changes:
        Path(place.where).write_bytes(change_of(whole, *change))
        Path(place.where + "-journal").unlink(missing_ok=True)
        try:
            with place.open() as ledger:
                if change[0] == "cut":
                    wrong.append((*change, "opened"))
                elif ledger.remaining("s") != remaining:
                    wrong.append((*change, "opened with another budget"))
                elif ledger.export() != export:  # which verifies it first
                    wrong.append((*change, "opened with other content"))
        except LedgerDamaged as refusal:
            if not any(word in str(refusal) for word in ("put", "make", "open")):
                wrong.append((*change, f"does not say what to do: {refusal}"))
        except Exception as other:
            wrong.append((*change, f"{type(other).__name__}: {other}"))
    return wrong


def change_of(whole: bytes, kind: str, index: int) -> bytes:
    if kind == "cut":
        return whole[:index]
    return whole[:index] + bytes([whole[index] ^ (1 << index % 8)]) + whole[index + 1 :]


def run_faults(place: Place, faults: Path, folder: object, tmp_path: Path, mode: str) -> list[dict]:
    """The reports of ledger_faults.py, which runs with the faults preloaded."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(faults),
        "PYTHONPATH": str(Path(__file__).parent),
    }
    arguments = [place.kind, place.where, place.anchor, str(folder), mode]
    program = [sys.executable, str(Path(__file__).with_name("ledger_faults.py")), *arguments]
    done = subprocess.run(
        program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "unexpected" not in done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(report: dict) -> str | None:
    """Whether a release under a fault kept the promise; the reason if it did not."""
    requests_shown = {line.split()[0] for line in report["shown"]}
    if not set(report["shown"]) <= set(report["answers"]):
        return "shown and not stored"
    if not requests_shown <= set(report["spends"]):
        return "shown and not spent"
    if Fraction(report["spent"]) != Fraction(3, 10) * len(report["spends"]):
        return "a spend was lost or doubled"
    if Fraction(report["in all"]) != Fraction(6, 10):
        return "asking again was charged again"
    stored = [line for line in report["answers"] if line not in report["again"]]
    return "asked again, another answer was shown" if stored else None


def prepared(place: Place, tmp_path: Path) -> None:
    """A ledger with one study; for a file, also a copy to start from each time."""
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
    if place.kind == "sqlite":
        shutil.copytree(Path(place.where).parent, tmp_path / "fresh")
