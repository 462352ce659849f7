"""SIGKILL at every step (TRUST 5): what was shown was spent and stored; the ledger opens again;
nothing is refunded.
"""

import pytest

from ledgers import judge, postgresql_place, prepared, run_faults

KILL, TEAR = "1", "2"


@pytest.fixture
def tmp_path(in_memory):
    return in_memory


@pytest.mark.parametrize("mode", [KILL, TEAR])
def test_a_kill_at_every_write_and_sync_of_a_file(inner, faults, tmp_path, mode):
    """TRUST 5: before, or in the middle of, every call that changes the disk during two releases."""
    prepared(inner, tmp_path)
    reports = run_faults(inner, faults, tmp_path / "inner", tmp_path, mode)
    assert len(reports) > 30
    assert [(report["fault"], judge(report)) for report in reports if judge(report)] == []
    killed = [report for report in reports if report["ended"] == -9]
    assert len(killed) == len(reports) if mode == KILL else len(killed) > 15
    for count in (0, 1):
        # the faults fall before and after a commit
        assert any(len(report["spends"]) == count for report in reports)
        assert any(len(report["answers"]) == count for report in reports)


def test_a_kill_at_every_message_to_a_server(postgres, faults, tmp_path):
    """TRUST 5: the same, between any two messages to PostgreSQL."""
    place = postgresql_place(postgres, tmp_path)
    prepared(place, tmp_path)
    reports = run_faults(place, faults, "socket", tmp_path, KILL)
    assert len(reports) > 15
    assert [(report["fault"], judge(report)) for report in reports if judge(report)] == []
    assert all(report["ended"] == -9 for report in reports)
    assert any(len(report["spends"]) == 1 and not report["answers"] for report in reports)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_kill_between_any_two_verbs(database, request, faults, tmp_path):
    """TRUST 5: before spend, after spend, after work, after record, after show."""
    sqlite = database == "sqlite"
    place = (
        request.getfixturevalue("inner")
        if sqlite
        else postgresql_place(request.getfixturevalue("postgres"), tmp_path)
    )
    prepared(place, tmp_path)
    reports = run_faults(
        place, faults, tmp_path / "inner" if sqlite else "socket", tmp_path, "steps"
    )
    assert [(report["fault"], judge(report)) for report in reports if judge(report)] == []
    counts = [
        tuple(len(report[name]) for name in ("spends", "answers", "shown")) for report in reports
    ]
    assert counts == [(0, 0, 0), (1, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]


def test_the_judge_catches_a_release_before_its_spend():
    """TRUST 5, the control: what a server that charges after answering leaves behind."""
    good = {
        "shown": ["first x"],
        "answers": ["first x"],
        "spends": ["first"],
        "spent": "3/10",
        "in all": "3/5",
    }
    good["again"] = ["first x", "second y"]
    assert judge(good) is None
    assert judge({**good, "spends": [], "spent": "0"}) == "shown and not spent"
    assert judge({**good, "answers": []}) == "shown and not stored"
    assert judge({**good, "spent": "0"}) == "a spend was lost or doubled"
    assert judge({**good, "in all": "9/10"}) == "asking again was charged again"
    assert (
        judge({**good, "again": ["first z", "second y"]}) == "asked again, another answer was shown"
    )
