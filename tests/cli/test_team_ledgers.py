"""A ledger on PostgreSQL behind every command: declared once, made, joined, and never shown with
its password.
"""

import shutil

import pytest

from discreet import Ledger
from shell import POLICY, QUESTION, discreet, study_in

LAST = "SELECT count(*) AS visits FROM visits WHERE age > 30"


@pytest.fixture
def team(server_place, tmp_path, monkeypatch):
    """A study whose policy names a ledger on a server, in a folder of its own."""
    for name in ("DISCREET_LEDGER", "DISCREET_ANCHOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "one").mkdir()
    return (
        study_in(
            tmp_path / "one", f'study = "visits-2024"\nledger = "{server_place.where}"\n{POLICY}'
        ),
        server_place.where,
    )


def test_every_command_uses_the_ledger_that_the_policy_names(team, tmp_path):
    folder, address = team
    discreet("plan", "study.toml", QUESTION, "--epsilon", "0.1", cwd=folder).refused(
        4, "discreet ledger create"
    )
    discreet("ledger", "show", "study.toml", cwd=folder).refused(4, "discreet ledger create")
    made = discreet("ledger", "create", "study.toml", cwd=folder)
    assert made.out.startswith("visits-2024 has a total of ε 1. Its anchor is discreet.anchor"), (
        made.err
    )
    discreet("ledger", "create", "study.toml", cwd=folder).refused(2, "must be new")
    released = discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=folder)
    assert "(entry 2 of the ledger)" in released.out, released.err
    shown = discreet("ledger", "show", "study.toml", cwd=folder)
    assert shown.out.startswith("visits-2024: ε 0.2 of 1 spent")
    assert discreet("ledger", "verify", "study.toml", cwd=folder).code == 0
    named = discreet("ledger", "show", address, "--anchor", "discreet.anchor", cwd=folder)
    assert named.out == shown.out
    discreet("ledger", "show", address, cwd=folder).refused(2, "anchor must be given")
    assert not (folder / "study.ledger").exists()

    other = tmp_path / "two"  # another machine
    other.mkdir()
    study_in(other, (folder / "study.toml").read_text("utf-8"))
    discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=other).refused(
        4, "discreet ledger join"
    )
    discreet("ledger", "create", "study.toml", cwd=other).refused(2, "discreet ledger join")
    copied = shutil.copy(folder / "discreet.anchor", other / "copy.anchor")
    joined = discreet("ledger", "join", "study.toml", str(copied), cwd=other)
    assert joined.out.startswith("Joined the ledger of visits-2024"), joined.err
    again = discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=other)
    assert "ε 0 spent (asked before), 0.8 left" in again.out, again.err


def test_the_environment_counts_more_than_the_policy_and_an_option_more_than_both(
    team, monkeypatch
):
    folder, address = team
    assert discreet("ledger", "create", "study.toml", cwd=folder).code == 0
    monkeypatch.setenv("DISCREET_LEDGER", "other.ledger")
    assert discreet("release", "study.toml", LAST, "--epsilon", "0.3", cwd=folder).code == 0
    assert (folder / "other.ledger").exists()
    place = ["--ledger", address, "--anchor", "discreet.anchor"]
    assert "ε 0 of 1 spent" in discreet("ledger", "show", "study.toml", *place, cwd=folder).out
    assert "ε 0.3 of 1 spent" in discreet("ledger", "show", "study.toml", cwd=folder).out
    discreet("ledger", "show", "other.ledger", "--ledger", "other.ledger", cwd=folder).refused(
        2, "leave --ledger out"
    )


def test_an_analyst_has_a_log_of_their_own(tmp_path):
    folder = study_in(tmp_path)
    release = ["release", "study.toml", LAST, "--epsilon", "0.1"]
    assert discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=folder).code == 0
    for name in ("ann", "bob"):
        assert discreet("ledger", "allot", "study.toml", name, "0.4", cwd=folder).code == 0
        assert (
            discreet(*release, "--analyst", name, "--request-id", f"{name}-1", cwd=folder).code == 0
        )
    bob = discreet("ledger", "show", "study.toml", "--analyst", "bob", cwd=folder).out.splitlines()
    assert bob[0] == "bob in study: ε 0 of 0.4 spent, 0.4 left"
    assert [line.split()[2] for line in bob[2:]] == ["allot", "repeat"]
    assert "age > 30" in bob[-1]
    assert not any("ann" in line for line in bob)
    discreet("ledger", "show", "study.toml", "--analyst", "eve", cwd=folder).refused(
        2, "must have a share"
    )

    discreet("ledger", "allot", "study.toml", "ann", "0.05", cwd=folder).refused(
        2, "has spent (0.1)"
    )
    assert discreet("ledger", "allot", "study.toml", "ann", "0.1", cwd=folder).code == 0
    with Ledger.open(folder / "study.ledger") as ledger:
        assert ledger.remaining("study", analyst="ann") == 0
