"""TRUST 4 for calls on a study's account: if anything of the data was looked at, a committed spend
exists, and stays.

An exception is thrown at every step of a call, one at a time, before it and after it; then the
ledger is opened again from disk. The control gives back what was spent when the work fails, and
must be caught.
"""

import contextlib
import sqlite3
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import discreet
from discreet import Ledger
from discreet.engines import array
from discreet.release import mechanism, tape
from discreet.release.statistics import moments

AGES = np.linspace(1, 99, 50)
STEPS = [
    (array, "moments"),
    (moments, "noisy_columns"),
    (mechanism, "noisy_each"),
    (tape.Tape, "written"),
    (Ledger, "record"),
]


class Broken(Exception):
    """What goes wrong."""


@contextlib.contextmanager
def failing(owner, name, *, before):
    real = getattr(owner, name)

    def failed(*given, **named):
        if not before:
            real(*given, **named)
        raise Broken

    with mock.patch.object(owner, name, failed):
        yield


def called(ledger):
    return discreet.mean(
        AGES, bounds=(0, 120), epsilon="0.3", ledger=ledger, study="survey", request_id="one"
    )


def spends_on_disk(path) -> int:
    """What another process would find."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT count(*) FROM discreet_entry WHERE kind = 'spend'"
        ).fetchone()[0]


@pytest.fixture
def path(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("survey", 1)
    return tmp_path / "study.ledger"


def broken(path, owner, name, *, before) -> None:
    with Ledger.open(path) as ledger, failing(owner, name, before=before), pytest.raises(Broken):
        called(ledger)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_whatever_fails_after_the_spend_it_stays_spent_and_can_be_asked_again_for_nothing(
    path, owner, name, before
):
    broken(path, owner, name, before=before)
    assert spends_on_disk(path) == 1
    with Ledger.open(path) as ledger:
        assert ledger.spent("survey") == Fraction(3, 10)
        first = called(ledger)
        assert called(ledger).value == first.value
        assert ledger.spent("survey") == Fraction(3, 10)


def test_the_spend_is_on_disk_when_the_data_is_looked_at(path):
    found, real = [], array.moments

    def moments(*given, **named):
        found.append(spends_on_disk(path))
        return real(*given, **named)

    with Ledger.open(path) as ledger, mock.patch.object(array, "moments", moments):
        called(ledger)
    assert found == [1]


def test_control_a_call_that_gives_its_epsilon_back_is_caught(path):
    def refunding(ledger):
        with mock.patch.object(Ledger, "record", side_effect=Broken), pytest.raises(Broken):
            called(ledger)
        with ledger._book.database.transaction("survey") as connection:
            connection.exec_driver_sql("DELETE FROM discreet_entry WHERE kind = 'spend'")

    with Ledger.open(path) as ledger:
        refunding(ledger)
    assert spends_on_disk(path) == 0
