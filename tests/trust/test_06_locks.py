"""TRUST 6, by itself: a transaction of the ledger holds its study's lock before it reads anything.

Races find this out by luck and in minutes; here another connection tries for the lock while a transaction is open that
has not written yet. The control is a transaction that is begun in the default way, which shuts nobody out.
"""

import contextlib
import sqlite3

import pytest


def locked(place) -> bool:
    """Whether another connection is shut out from spending."""
    if place.kind == "sqlite":
        with contextlib.closing(sqlite3.connect(place.where, timeout=0, isolation_level=None)) as other:
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
