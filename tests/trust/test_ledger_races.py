"""Many processes and threads on one budget (TRUST 6, 26), with a twin that over-grants as the
control.
"""

import multiprocessing
import sqlite3
import threading
from collections import Counter
from dataclasses import replace

import pytest

from discreet import BudgetExceeded, InvalidParameter, Ledger
from ledgers import UNIT, ask_at_once, race
from waiting import PATIENCE

PROCESSES, THREADS = 8, 8


def in_processes(target, count, *arguments):
    """What each of several fresh processes puts in the queue; they are forked from one that has
    threads of nobody.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["discreet.ledger.ledger", "psycopg"])
    results = context.Queue()
    workers = [
        context.Process(target=target, args=(*arguments[:1], n, *arguments[1:], results))
        for n in range(count)
    ]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=2 * PATIENCE) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    results.close()
    return found


def test_many_spenders_never_exceed_the_total_and_fill_it(place):
    """TRUST 6: 8 processes × 8 threads, random costs; no row is lost or doubled, no refused cost
    would still fit.
    """
    total, largest = 20_000, 150
    with place.open(new=True) as ledger:
        ledger.create("s", total * UNIT)
        found = in_processes(race, PROCESSES, place, THREADS, largest)
        granted = [cost for costs, _ in found for cost in costs]
        refused = [cost for _, costs in found for cost in costs]
        rows = [entry.amount for entry in ledger.entries() if entry.kind == "spend"]
        assert sum(granted) <= total
        assert Counter(rows) == Counter(granted)
        assert ledger.spent("s") == sum(granted) * UNIT
        left = total - sum(granted)
        assert min(refused) > left
        if left:
            ledger.spend("the rest", "q", left * UNIT, study="s")
        with pytest.raises(BudgetExceeded):
            ledger.spend("one more", "q", UNIT, study="s")
        assert ledger.verify() == len(rows) + 1 + bool(left)


def test_spends_in_one_statement_and_in_transactions_share_the_budget(server_place):
    """TRUST 6: 8 processes of one thread each, so that both kinds meet; in the strictest default
    isolation, where a snapshot taken before the lock would show an old last entry."""
    strict = replace(
        server_place, where=server_place.where + "%20-cdefault_transaction_isolation%3Dserializable"
    )
    with strict.open(new=True) as ledger:
        ledger.create("s", 8_000 * UNIT)
        found = in_processes(race, PROCESSES, strict, 1, 150)
        granted = [cost for costs, _ in found for cost in costs]
        assert Counter(granted) == Counter(
            entry.amount for entry in ledger.entries() if entry.kind == "spend"
        )
        assert min(cost for _, costs in found for cost in costs) > 8_000 - sum(granted) >= 0
        assert ledger.verify() == len(granted) + 1


def test_the_control_over_grants(tmp_path):
    """TRUST 6: read, check, insert in Python's default isolation; the same check must raise the
    alarm.
    """
    path, total = tmp_path / "twin.sqlite", 100
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE spend (cost INTEGER)")
    connection.close()
    # all have read before any of them writes: the race is lost for certain
    together = threading.Barrier(8)

    def spender() -> None:
        mine = sqlite3.connect(path, timeout=PATIENCE)
        while True:
            together.wait()
            spent = mine.execute("SELECT coalesce(sum(cost), 0) FROM spend").fetchone()[0]
            together.wait()
            if spent + 7 > total:
                break
            with mine:
                mine.execute("INSERT INTO spend VALUES (7)")
        mine.close()

    threads = [threading.Thread(target=spender) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT sum(cost) FROM spend").fetchone()[0] > total
    connection.close()


def test_one_request_a_hundred_times_at_once_is_one_spend_and_one_answer(place):
    """TRUST 26: 4 processes × 25 threads; then after a restart; then with a changed body."""
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
    found = [item for items in in_processes(ask_at_once, 4, place, 25) for item in items]
    assert len(found) == 100
    assert len({shown for shown, _ in found}) == 1
    assert sum(not repeated for _, repeated in found) == 1
    with place.open() as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "answer"]
        again = ledger.spend("one", "q", "0.1", study="s", data_version="1")
        assert again.answer == found[0][0]
        with pytest.raises(InvalidParameter, match="request_id must be new"):
            ledger.spend("one", "q", "0.2", study="s", data_version="1")
        assert ledger.verify() == 3


def test_one_question_under_many_requests_is_one_spend(place):
    """TRUST 28: the same query from 32 threads at once, each with a request id of its own."""
    shown = []
    with place.open(new=True) as ledger:
        ledger.create("s", "0.1")

        def ask(number: int) -> None:
            grant = ledger.spend(f"r{number}", "q", "0.1", study="s", data_version="1")
            shown.append(ledger.record(grant, str(number).encode()))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(shown), len(set(shown))) == (32, 1)
        assert Counter(entry.kind for entry in ledger.entries()) == {
            "create": 1,
            "spend": 1,
            "repeat": 31,
            "answer": 1,
        }


def test_a_ledger_is_made_once_by_many(file_place):
    """TRUST 6: of 8 who make the same ledger at once one succeeds, and its budget is the only one."""
    made, refused = [], []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        try:
            with Ledger.open(file_place.where, new=True) as ledger:
                ledger.create("s", 1)
                made.append(number)
        except Exception as refusal:
            refused.append(type(refusal).__name__)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 7)
    assert set(refused) <= {"InvalidParameter", "LedgerDamaged"}
    with file_place.open() as ledger:
        assert ledger.verify() == 1


def test_a_ledger_is_shared_over_a_fork(place):
    """TRUST 6, 10: parent and children go on with one open ledger while threads spend; nothing is
    lost.
    """
    context = multiprocessing.get_context("fork")

    def spender(ledger, name: str) -> None:
        for number in range(20):
            ledger.spend(f"{name}/{number}", "q", UNIT, study="s")

    with place.open(new=True) as ledger:
        ledger.create("s", 150 * UNIT)
        thread = threading.Thread(target=spender, args=(ledger, "thread"))
        thread.start()
        children = [
            context.Process(target=spender, args=(ledger, f"child {number}")) for number in range(4)
        ]
        for child in children:
            child.start()
        spender(ledger, "parent")
        for child in children:
            child.join()
            assert child.exitcode == 0
        thread.join()
        assert ledger.spent("s") == 120 * UNIT
        assert ledger.verify() == 121
