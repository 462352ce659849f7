"""The budget's figure is made of the ledger's entries: amounts, times, names, and nothing else."""

import json

import pytest

from discreet import DiscreetError, InvalidParameter, Ledger
from discreet.show.figures import budget
from released import data_in


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "study.ledger", new=True) as ledger:
        ledger.create("people", 1)
        yield ledger


def test_spends_add_up_by_name_under_the_total(ledger):
    for name in ("ana", "bo"):
        ledger.allot(name, "0.5", study="people")
    ledger.spend("r1", "SECRET QUESTION", "0.25", study="people", analyst="ana")
    ledger.spend("r2", "another", "0.125", study="people", analyst="bo")
    grant = ledger.spend("r3", "a third", "0.125", study="people")
    ledger.record(grant, b"SECRET ANSWER")
    data = data_in(ledger.figure())
    spends = [
        (row["analyst"], row["epsilon"], row["spent"])
        for row in data
        if "time" in row and "analyst" in row
    ]
    wanted = [("ana", 0.25, 0.25), ("bo", 0.125, 0.375), ("no name given", 0.125, 0.5)]
    assert set(spends) == set(wanted)
    shares = {row["analyst"]: row["share"] for row in data if "share" in row}
    assert shares == {"ana": 0.25, "bo": 0.125, "no name given": 0.125}
    text = json.dumps(ledger.figure().to_dict(), ensure_ascii=False)
    assert "total ε = 1" in text
    assert "0.5 of 1 spent in 3 spends, 0.5 left" in text
    assert "SECRET" not in text


def test_many_names_share_a_color(ledger):
    for number in range(9):
        ledger.allot(f"analyst {number}", "0.1", study="people")
        ledger.spend(
            f"r{number}",
            f"q{number}",
            f"0.0{number + 1}",
            study="people",
            analyst=f"analyst {number}",
        )
    names = {row["analyst"] for row in data_in(ledger.figure()) if "analyst" in row}
    shares = {row["analyst"]: row["share"] for row in data_in(ledger.figure()) if "share" in row}
    assert shares["others"] == pytest.approx(0.01 + 0.02 + 0.03 + 0.04 + 0.05)
    assert names == {"analyst 8", "analyst 7", "analyst 6", "analyst 5", "others"}


def test_of_very_many_spends_some_are_drawn_and_the_last_one_always(ledger, monkeypatch):
    monkeypatch.setattr(budget, "_MOST_POINTS", 4)
    for number in range(10):
        ledger.spend(f"r{number}", f"q{number}", "0.0625", study="people")
    spent = {row["spent"]: None for row in data_in(ledger.figure()) if "epsilon" in row}
    assert list(spent) == [0.0625 * number for number in (1, 4, 7, 10)]


def test_an_untouched_budget_can_be_drawn(ledger):
    assert "ε 0 of 1 spent in 0 spends, 1 left" in json.dumps(
        ledger.figure().to_dict(), ensure_ascii=False
    )


def test_a_study_must_be_named_where_there_are_several(ledger):
    ledger.create("other", 2)
    with pytest.raises(InvalidParameter, match=r"study must be named, .* it has 'other', 'people'"):
        ledger.figure()
    assert "The budget of other" in json.dumps(ledger.figure(study="other").to_dict())
    with pytest.raises(DiscreetError, match="'nobody' is not in this ledger"):
        ledger.figure(study="nobody")
