"""TRUST 38: a copy of the ledger that was taken between a spend and its answer, and is put back,
gives no second draw.

The copy knows that the question was paid for, and not that it was answered. After the restore that
question is void in every form, and so is a grant that another process still holds. The control is a
crash without a restore: its draw was never shown, and the same question goes on free.
"""

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet
from discreet import Ledger, LedgerDamaged, Policy, QueryRefused, Study
from discreet.files.add_noise import add_noise
from ledgers import Place

POLICY = Policy(
    source=pa.table({"age": list(range(50))}),
    epsilon=1,
    columns={"age": {"bounds": [0, 100]}},
    version="1",
)


def put_back(place: Place, entries: int) -> Ledger:
    """The ledger, restored from a copy that has so many entries."""
    if place.kind == "sqlite":
        os.replace(place.where + ".copy", place.where)
    else:
        place.execute("DELETE FROM discreet_entry WHERE number > ?", entries)
    with pytest.raises(LedgerDamaged, match="do not include the anchored entry") as refusal:
        place.open()
    accept = str(refusal.value).partition("accept='")[2][:16]
    return Ledger.restore(place.where, anchor=place.anchor, accept=accept)


def copied_between(place: Place, monkeypatch) -> None:
    """Take a copy of the ledger after the next spend, before its answer."""
    spend = Ledger.spend

    def copying(self, *arguments, **more):
        grant = spend(self, *arguments, **more)
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        monkeypatch.setattr(Ledger, "spend", spend)
        return grant

    monkeypatch.setattr(Ledger, "spend", copying)


def ask_table(ledger, _folder, epsilon="0.1"):
    return (
        Study(POLICY, ledger=ledger, name="s")
        .sql("SELECT avg(age) FROM data", epsilon=epsilon)
        .release()
    )


def ask_array(ledger, _folder, epsilon="0.1"):
    account = {"ledger": ledger, "study": "s", "data_name": "people", "data_version": "1"}
    return discreet.sum(list(range(50)), bounds=(0, 100), epsilon=epsilon, **account)


def ask_file(ledger, folder, epsilon="0.1"):
    parquet.write_table(pa.table({"people": list(range(50))}), folder / "in.parquet")
    account = {"ledger": ledger, "study": "s", "data_name": "people", "data_version": "1"}
    target = folder / f"{len(list(folder.glob('*noisy*')))}-noisy.parquet"
    return add_noise(
        folder / "in.parquet", target, columns=["people"], sensitivity=1, epsilon=epsilon, **account
    )


def ask_discovery(ledger, _folder, epsilon="0.1"):
    columns = {"town": {"keys": "discover"}}
    policy = Policy(
        source=pa.table({"town": ["a"] * 99}), epsilon=1, delta="1e-6", columns=columns, version="1"
    )
    return Study(policy, ledger=ledger, name="s").discover("town", epsilon=epsilon)


@pytest.mark.parametrize("ask", [ask_table, ask_array, ask_file, ask_discovery])
def test_a_copy_from_between_spend_and_answer_gives_no_second_draw(
    place, tmp_path, ask, monkeypatch
):
    with place.open(new=True) as ledger:
        ledger.create("s", 1, promise=POLICY.promise)
        copied_between(place, monkeypatch)
        ask(ledger, tmp_path)
        assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "answer"]
    with put_back(place, 2) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "restore"]
        for _ in range(2):
            with pytest.raises(
                QueryRefused, match=r"ask at another epsilon|declare the keys in the policy"
            ):
                ask(ledger, tmp_path)
        assert (ledger.spent("s"), ledger.verify()) == (Fraction(1, 10), 3)
        if ask is not ask_discovery:  # which has no second one: its delta is spent
            ask(ledger, tmp_path, epsilon="0.2")
            assert ledger.spent("s") == Fraction(3, 10)


def test_a_grant_from_before_the_restore_gets_no_answer(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        ledger.record(ledger.spend("r2", "q2", "0.1", study="s"), b"another")
    with put_back(place, 2) as ledger:
        with pytest.raises(QueryRefused, match="before the ledger was restored"):
            ledger.record(grant, b"answer")
        assert ledger.answer(study="s", request_id="r") is None
        assert (ledger.spent("s"), ledger.verify()) == (Fraction(2, 10), 3)


def test_answers_that_the_copy_has_are_free_after_a_restore(place):
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.record(ledger.spend("r", "q", "0.1", study="s", data_version="1"), b"answer")
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        ledger.spend("r2", "q2", "0.1", study="s")
    with put_back(place, 3) as ledger:
        assert ledger.spend("r3", "q", "0.1", study="s", data_version="1").answer == b"answer"
        # the copy has forgotten it: a new question
        new = ledger.spend("r2", "q2", "0.1", study="s")
        assert ledger.record(new, b"new") == b"new"
        assert ledger.spent("s") == Fraction(3, 10)


def test_an_answer_that_was_written_to_a_void_spend_is_found(place):
    """By `verify`: a program that does not know of void spends has gone on with one."""
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        ledger.spend("r2", "q2", "0.1", study="s")
    with put_back(place, 2) as ledger:
        asked = {
            "request_id": grant.request_id,
            "question": grant.question,
            "epsilon": str(grant.epsilon),
        }
        with ledger._book.page("s") as page:
            page.append(kind="answer", amount=0, answer=b"answer", **asked)
        with pytest.raises(LedgerDamaged, match="entry 4 of study 's'"):
            ledger.verify()


def test_the_control_without_a_restore_goes_on(place):
    """The process died between the spend and the answer: nothing was shown, and nothing more is
    charged.
    """
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.spend("r", "q", "0.1", study="s", data_version="1")
    with place.open() as ledger:
        grant = ledger.spend("r", "q", "0.1", study="s", data_version="1")
        assert (grant.answer, ledger.record(grant, b"answer"), ledger.spent("s")) == (
            None,
            b"answer",
            Fraction(1, 10),
        )


RESTORE = """
import os, sys
from discreet import Ledger
from discreet.ledger.anchor import AnchorFile

def died(self, anchor):
    os._exit(9)

AnchorFile.replace = died
Ledger.restore(sys.argv[1], anchor=sys.argv[2], accept=sys.argv[3])
"""


def test_a_restore_that_was_killed_before_its_anchor_charges_once(place):
    """Also a study that the copy did not have; and what is forgotten later is charged as ever."""
    with place.open(new=True) as ledger:
        ledger.create("s", 2)
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        ledger.spend("r1", "q", "0.3", study="s")
        ledger.create("late", 2)
        ledger.spend("r2", "q", "0.4", study="late")
    if place.kind == "sqlite":
        os.replace(place.where + ".copy", place.where)
    else:
        place.execute("DELETE FROM discreet_entry WHERE number > 1 OR study = 'late'")
        place.execute("DELETE FROM discreet_study WHERE name = 'late'")
    for _ in range(3):
        with pytest.raises(LedgerDamaged) as refusal:
            place.open()
        accept = str(refusal.value).partition("accept='")[2][:16]
        program = [sys.executable, "-c", RESTORE, place.where, place.anchor, accept]
        assert subprocess.run(program, check=False).returncode == 9
    with Ledger.restore(place.where, anchor=place.anchor, accept=accept) as ledger:
        assert (ledger.spent("s"), ledger.spent("late")) == (Fraction(3, 10), Fraction(4, 10))
        if place.kind == "sqlite":
            shutil.copy(place.where, place.where + ".copy")
        entries = ledger.entries("s")[-1].number
        ledger.spend("r3", "q", "0.5", study="s")
    with put_back(place, entries) as ledger:
        assert (ledger.spent("s"), ledger.spent("late")) == (Fraction(8, 10), Fraction(4, 10))
        ledger.verify()


@pytest.mark.parametrize("spends", [3, 70])
def test_a_restore_charges_at_least_what_was_forgotten_and_at_most_twice_that(in_memory, spends):
    """The anchor remembers ever fewer of its heads with their age."""
    tmp_path = in_memory
    place = Place("sqlite", str(tmp_path / "l"), str(tmp_path / "l.anchor"))
    for forgotten in {1, 2, spends // 2, spends}:
        for file in tmp_path.iterdir():
            file.unlink()
        with place.open(new=True) as ledger:
            ledger.create("s", 1)
            for number in range(spends):
                if number == spends - forgotten:
                    shutil.copy(place.where, place.where + ".copy")
                ledger.spend(f"r{number}", "q", "0.001", study="s")
        with put_back(place, 0) as ledger:
            charged = ledger.entries()[-1].amount // 10**6
            assert forgotten <= charged <= min(spends, 2 * forgotten)
        assert Path(place.anchor).stat().st_size == 3 * 4096
