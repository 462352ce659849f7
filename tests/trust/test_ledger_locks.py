"""TRUST 6, by itself: a transaction of the ledger holds its study's lock before it reads anything.

Races find this out by luck and in minutes; here another connection tries for the lock while a
transaction is open that has not written yet. The control is a transaction that is begun in the
default way, which shuts nobody out.
"""

import contextlib
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import EngineFailed
from discreet.ledger import database, turns
from waiting import PATIENCE


def locked(place) -> bool:
    """Whether another connection is shut out from spending."""
    if place.kind == "sqlite":
        with contextlib.closing(
            sqlite3.connect(place.where, timeout=0, isolation_level=None)
        ) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False
    psycopg = pytest.importorskip("psycopg")
    with contextlib.closing(psycopg.connect(place.where)) as other:
        try:
            other.execute("SELECT name FROM discreet_study WHERE name = 's' FOR UPDATE NOWAIT")
        except psycopg.errors.LockNotAvailable:
            return True
        return False


def test_a_transaction_shuts_others_out_before_its_first_read(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        assert not locked(place)
        with ledger._book.database.transaction("s"):
            assert locked(place)
        assert not locked(place)


def test_control_a_transaction_in_the_default_way_shuts_nobody_out(file_place):
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
    with contextlib.closing(sqlite3.connect(file_place.where)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM discreet_entry").fetchall()
        assert not locked(file_place)


ASK = """
import sys
from discreet import Ledger

print("here", flush=True)
with Ledger.open(sys.argv[1]) as ledger:
    ledger.record(ledger.spend("other", "another question", "0.6", study="s"), b"the other answer")
"""


def test_a_copy_of_the_file_by_the_same_process_lets_nobody_in(file_place):
    """Closing any descriptor of a file drops all POSIX locks of the process on it, SQLite's too."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        with ledger._book.page("s") as page:
            Path(file_place.where).read_bytes()
            other = subprocess.Popen(
                [sys.executable, "-c", ASK, file_place.where], stdout=subprocess.PIPE
            )
            assert other.stdout.readline() == b"here\n"
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(1)
            page.append(kind="allot", analyst="ann", amount=10**8)
            page.share("ann", allotted=10**8, spent=0)
        other.communicate(timeout=PATIENCE)
        assert other.returncode == 0
        assert [entry.kind for entry in ledger.entries("s")] == [
            "create",
            "allot",
            "spend",
            "answer",
        ]
        assert ledger.verify() == 4


def test_a_wait_for_another_process_ends_with_nothing_spent(file_place, monkeypatch):
    for module in (database, turns):
        monkeypatch.setattr(module, "PATIENCE", 1)
    with file_place.open(new=True) as ledger, file_place.open() as other:
        ledger.create("s", 1)
        with (
            ledger._book.page("s"),
            pytest.raises(EngineFailed, match="busy for 1 seconds"),
        ):
            other.spend("r", "q", "0.1", study="s")
        other.spend("r", "q", "0.1", study="s")


def test_a_lock_that_was_removed_is_made_anew(file_place):
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        Path(file_place.where + ".lock").unlink()
        ledger.spend("r", "q", "0.1", study="s")
        assert Path(file_place.where + ".lock").stat().st_size == 0


FORK = """
import os, signal, sys
from discreet import Ledger
from discreet.ledger.book import StudyState

def fork(*_):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)

signal.signal(signal.SIGUSR1, fork)
append = StudyState.append

def interrupted(page, **columns):
    os.kill(os.getpid(), signal.SIGUSR1)
    append(page, **columns)

StudyState.append = interrupted
with Ledger.open(sys.argv[1]) as ledger:
    ledger.spend("r", "q", "0.1", study="s")
    StudyState.append = append
    ledger.spend("r2", "q2", "0.1", study="s")
"""


def test_a_handler_that_forks_in_a_transaction_of_its_own_thread_does_not_wait_for_itself(
    file_place,
):
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        subprocess.run([sys.executable, "-c", FORK, file_place.where], check=True, timeout=PATIENCE)
        assert ledger.spent("s") == Fraction(1, 5)
