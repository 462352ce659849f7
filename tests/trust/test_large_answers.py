"""TRUST 53: what cannot be answered because it is too large is refused before it is paid for, in
its own words.
"""

import sqlite3

import numpy as np
import pytest
from sqlalchemy import event

import discreet
from discreet import EngineFailed, InvalidParameter, Ledger, QueryRefused
from discreet.ledger import refusals
from discreet.release import plan, size
from discreet.release.tape import Tape

POLICY = """
source = "people.parquet"
unit = "row"
neighbors = "add-remove"
epsilon = "5"

[columns]
a = { keys = "1..20000" }
b = { keys = "1..20000" }
c = { keys = "1..3", bounds = [0, 10] }
"""


@pytest.fixture
def study(tmp_path):
    import pandas as pd

    pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}).to_parquet(
        tmp_path / "people.parquet"
    )
    (tmp_path / "study.toml").write_text(POLICY)
    with discreet.open(tmp_path / "study.toml") as study:
        yield study


def test_cells_that_fit_nowhere_are_known_by_their_number(study):
    planned = study.sql("SELECT a, b, count(*) FROM people GROUP BY a, b", epsilon="0.1")
    with pytest.raises(QueryRefused, match=r"60,000,000 numbers.* to a file with to="):
        size.refuse_large(planned, 0)
    with pytest.raises(QueryRefused, match="fewer groups at once; nothing was spent"):
        size.refuse_large_file(planned)


def test_cells_that_fit_nowhere_are_refused_before_the_spend(study, tmp_path, monkeypatch):
    """With small limits, so that a release that does not ask ends soon."""
    monkeypatch.setattr(size, "MOST_RELEASED", 8)
    monkeypatch.setattr(size, "_MOST_READ", 2)
    planned = study.sql("SELECT c, count(*) FROM people GROUP BY c", epsilon="0.1")
    with pytest.raises(QueryRefused, match="an answer may have at most 8 numbers"):
        planned.release()
    with pytest.raises(QueryRefused, match="a file may need at most 2 integers"):
        planned.release(to=tmp_path / "cells.parquet")
    assert (study.spent, (tmp_path / "cells.parquet").exists()) == (0, False)


def test_grids_of_too_many_groups_are_refused_before_the_spend(study, monkeypatch):
    monkeypatch.setattr(size, "_MOST_POINTS", 30)
    planned = study.sql("SELECT c, median(c) FROM people GROUP BY c", epsilon="0.1")
    with pytest.raises(QueryRefused, match="counts in memory"):
        planned.release()
    assert study.spent == 0


def test_a_lack_of_memory_after_the_spend_is_told_and_the_answer_is_still_to_be_had(
    study, monkeypatch
):
    planned = study.sql("SELECT c, count(*) FROM people GROUP BY c", epsilon="0.1")

    def fail(*_: object) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(plan.Plan, "_answered", fail)
        with pytest.raises(EngineFailed, match="does not fit into memory"):
            planned.release()
    spent = study.spent
    assert (len(planned.release()), study.spent) == (3, spent)


def test_a_lack_of_memory_for_an_array_is_told_and_the_answer_is_still_to_be_had(
    tmp_path, monkeypatch
):
    def fail(_: object) -> bytes:
        raise MemoryError

    terms = {"sensitivity": 1, "epsilon": "0.1", "study": "s", "request_id": "r"}
    with Ledger.open(tmp_path / "s.ledger", new=True) as ledger:
        ledger.create("s", 1)
        with monkeypatch.context() as patch:
            patch.setattr(Tape, "written", fail)
            with pytest.raises(EngineFailed, match="does not fit into memory"):
                discreet.laplace_mechanism(np.arange(9), ledger=ledger, **terms)
        spent = ledger.spent("s")
        assert len(discreet.laplace_mechanism(np.arange(9), ledger=ledger, **terms)) == 9
        assert ledger.spent("s") == spent > 0


def test_an_array_that_a_ledger_cannot_keep_is_refused_before_the_spend(tmp_path, monkeypatch):
    monkeypatch.setattr(size, "MOST_NUMBERS", 1000)
    with Ledger.open(tmp_path / "s.ledger", new=True) as ledger:
        ledger.create("s", 1)
        with pytest.raises(InvalidParameter, match="at most 1,000 numbers"):
            discreet.laplace_mechanism(
                np.arange(1001), sensitivity=1, epsilon="0.1", ledger=ledger, study="s"
            )
        assert ledger.spent("s") == 0


def test_an_answer_beyond_the_limit_is_no_damaged_ledger(place, monkeypatch):
    monkeypatch.setattr(refusals, "MOST_BYTES", 1000)
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        grant = ledger.spend("r", "q", "0.1", study="s")
        with pytest.raises(EngineFailed, match="larger than a ledger stores"):
            ledger.record(grant, b"x" * 1001)
        assert ledger.record(grant, b"x" * 1000) == b"x" * 1000


def test_what_sqlite_does_not_take_is_no_damaged_ledger(file_place):
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        engine = ledger._book.database._engine
        event.listen(
            engine, "connect", lambda one, _: one.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 20_000)
        )
        engine.dispose()
        grant = ledger.spend("r", "q", "0.1", study="s")
        with pytest.raises(EngineFailed, match="larger than a ledger stores"):
            ledger.record(grant, b"x" * 30_000)


def test_what_postgresql_does_not_take_is_no_damaged_ledger(server_place):
    with (
        server_place.open(new=True) as ledger,
        pytest.raises(EngineFailed, match="larger than a ledger stores"),
        ledger._book.database.reading() as connection,
    ):
        connection.exec_driver_sql("SELECT repeat('x', 2000000000)")
