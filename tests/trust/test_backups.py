"""TRUST 54: backups that are made under load and put back: no budget comes back, no spend buys two
draws.

The control is a plain copy of ledger and anchor together: put back, it opens with the budget of its
day.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from discreet import InvalidParameter, Ledger, LedgerDamaged, Policy, QueryRefused, Study
from ledgers import Place, postgresql_place, sqlite_place
from shell import POLICY, QUESTION, discreet, study_in
from waiting import wait

TENTH = Fraction(1, 10)


def spend(ledger: Ledger, name: str, *, answered: bool = True, **options) -> bytes | None:
    grant = ledger.spend(name, f"q of {name}", "0.1", study="s", data_version="1", **options)
    return ledger.record(grant, f"{name} {os.urandom(4).hex()}".encode()) if answered else None


def lost(place: Place) -> None:
    """The ledger is gone, with all that it was; the anchor is not."""
    if place.kind == "sqlite":
        for end in ("", "-journal", ".lock"):
            Path(place.where + end).unlink(missing_ok=True)
    else:
        for table in ("entry", "analyst", "study", "ledger"):
            place.execute(f"DROP TABLE discreet_{table}")


def restored(place: Place, backup: Path, **options) -> Ledger:
    planned = Ledger.restoration(place.where, anchor=place.anchor, backup=backup, **options)
    return Ledger.restore(
        place.where, anchor=place.anchor, backup=backup, accept=planned.mark, **options
    )


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_what_the_backup_forgot_is_charged_and_what_is_unanswered_is_void(
    place, target, tmp_path, request
):
    backup = tmp_path / "ledger.backup"
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.create("idle", 2, promise={"unit": "row"})
        ledger.allot("ann", "0.5", study="s")
        kept = spend(ledger, "kept", analyst="ann")
        spend(ledger, "open", answered=False)
        key = ledger.keyed("data")
        assert ledger.backup(backup) == 6
        shown = spend(ledger, "open")  # after the backup
        spend(ledger, "gone")
        spend(ledger, "gone too", answered=False)
    assert backup.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidParameter, match="restored only where there is no"):
        restored(place, backup)
    lost(place)
    if target != place.kind:  # a ledger may move from a file to a server, or back
        other = (
            sqlite_place(tmp_path)
            if target == "sqlite"
            else request.getfixturevalue("server_place")
        )
        place = Place(other.kind, other.where, place.anchor)
    planned = Ledger.restoration(place.where, anchor=place.anchor, backup=backup)
    assert not planned.is_anchor_lost
    (loss,) = [loss for loss in planned.losses if loss.study == "s"]
    assert (loss.charge, [void[0] for void in loss.void]) == (2 * 10**8, ["open"])
    with pytest.raises(InvalidParameter, match="accept must be"):
        Ledger.restore(place.where, anchor=place.anchor, backup=backup, accept="yes")
    with restored(place, backup) as ledger:
        assert (ledger.spent("s"), ledger.spent("idle")) == (4 * TENTH, 0)
        assert ledger.promise("idle") == {"unit": "row"}
        assert ledger.spent("s", analyst="ann") == TENTH
        assert spend(ledger, "kept", analyst="ann") == kept
        assert ledger.keyed("data") == key
        assert shown is not None
        with pytest.raises(QueryRefused, match="answered a second time"):
            spend(ledger, "open")
        ledger.verify()


@pytest.mark.parametrize("forgotten", ["discovery", "spend", "share"])
def test_a_discovery_that_the_backup_may_have_forgotten_is_not_made_again(
    place, tmp_path, forgotten
):
    """Its δ went with its ε, and nobody knows what the charge of a restore was for.

    What costs nothing was none.
    """
    terms = {"delta": "1e-6", "columns": {"town": {"keys": "discover"}}, "version": "1"}
    policy = Policy(source=pa.table({"town": ["a"] * 999}), epsilon=1, **terms)
    with place.open(new=True) as ledger:
        ledger.create("s", 1, promise=policy.promise)
        study = Study(policy, ledger=ledger, name="s")
        ledger.backup(tmp_path / "x.backup")
        match forgotten:
            case "discovery":
                study.discover("town", epsilon="0.1")
            case "spend":
                spend(ledger, "a")
            case _:
                ledger.allot("ann", "0.1", study="s")
    lost(place)
    with restored(place, tmp_path / "x.backup") as ledger:
        study = Study(policy, ledger=ledger, name="s")
        if forgotten == "share":
            assert study.discover("town", epsilon="0.1").keys == {"town": ("a",)}
            return
        with pytest.raises(QueryRefused, match="delta of this study counts as spent"):
            study.discover("town", epsilon="0.1")
        assert ledger.spent("s") == TENTH


def test_a_backup_is_no_ledger_and_holds_no_key(file_place, tmp_path):
    backup = tmp_path / "x.backup"
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        spend(ledger, "a")
        ledger.backup(backup)
        with pytest.raises(InvalidParameter, match="new file"):
            ledger.backup(backup)
        key = ledger._book.anchor.read().key
        spend(ledger, "b")
    assert key.encode() not in backup.read_bytes()
    shutil.copy(backup, file_place.where)
    with pytest.raises(LedgerDamaged):
        file_place.open()
    assert not [file for file in tmp_path.iterdir() if ".new" in file.name]


def test_the_control_a_plain_copy_of_both_files_has_the_budget_of_its_day(file_place):
    """Which nobody can tell: so a backup is another kind of file."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        copies = [
            shutil.copy(name, f"{name}.copy") for name in (file_place.where, file_place.anchor)
        ]
        spend(ledger, "a")
    for copy in copies:
        os.replace(copy, copy.removesuffix(".copy"))
    with file_place.open() as ledger:
        assert ledger.remaining("s") == 1


@pytest.mark.parametrize("anchor", ["none", "older"])
def test_without_the_newest_anchor_the_custodian_says_what_is_charged(file_place, tmp_path, anchor):
    backup = tmp_path / "x.backup"
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        old = shutil.copy(file_place.anchor, tmp_path / "old.anchor")
        spend(ledger, "a")
        ledger.backup(backup)
        spend(ledger, "b")
    lost(file_place)
    Path(file_place.anchor).unlink()
    if anchor == "older":
        shutil.copy(old, file_place.anchor)
    assert Ledger.restoration(file_place.where, backup=backup).is_anchor_lost
    with pytest.raises(InvalidParameter, match="charge must say"):
        restored(file_place, backup)
    assert not Path(file_place.where).exists()
    for wrong in ("-1", "x", "nan", "1e9"):
        with pytest.raises(InvalidParameter):
            restored(file_place, backup, charge=wrong)
    with restored(file_place, backup, charge="0.25") as ledger:
        assert ledger.spent("s") == Fraction("0.35")
    lost(file_place)
    with restored(file_place, backup, charge="all") as ledger:
        assert ledger.remaining("s") == 0


def test_an_anchor_that_was_restored_is_the_newest_though_its_chain_is_shorter(
    file_place, tmp_path
):
    """And the journal of a ledger that is gone is not taken for that of the one that is put back."""
    early, late = tmp_path / "early.backup", tmp_path / "late.backup"
    with file_place.open(new=True) as ledger:
        ledger.create("s", 10)
        ledger.backup(early)
        for number in range(5):
            spend(ledger, str(number))
        ledger.backup(late)
    lost(file_place)
    with restored(file_place, early) as ledger:
        assert ledger.spent("s") == Fraction(1, 2)
    lost(file_place)
    old = shutil.copy(file_place.anchor, tmp_path / "old.anchor")
    with restored(file_place, late) as ledger:
        assert ledger.spent("s") == 1  # which the one chain has, and the other was charged for
        ledger.backup(tmp_path / "last.backup")
    lost(file_place)
    shutil.copy(old, file_place.anchor)
    assert Ledger.restoration(file_place.where, backup=tmp_path / "last.backup").is_anchor_lost
    Path(file_place.where + "-journal").write_bytes(b"half an entry")
    with pytest.raises(InvalidParameter, match=r"study\.ledger-journal exists"):
        restored(file_place, late)


def test_a_backup_that_was_changed_is_refused(file_place, tmp_path):
    backup, broken = tmp_path / "x.backup", tmp_path / "broken.backup"
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.allot("ann", "0.5", study="s")
        for name in "abc":
            spend(ledger, name, analyst="ann")
        ledger.backup(backup)
        export = ledger.export()
    whole, wrong = backup.read_bytes(), []
    for index in range(0, len(whole), 2999):
        broken.write_bytes(
            whole[:index] + bytes([whole[index] ^ (1 << index % 8)]) + whole[index + 1 :]
        )
        lost(file_place)
        try:
            with restored(file_place, broken) as ledger:  # a byte that no row uses
                entries = ledger.export().partition('"entry"')[2]
            wrong += [] if export.partition('"entry"')[2][:-5] in entries else [index]
        except LedgerDamaged:
            pass
    assert wrong == []
    for statement in (
        "DELETE FROM discreet_entry WHERE number > 3",
        # the last answer: only what the anchor knew tells
        "DELETE FROM discreet_entry WHERE number > 7",
        "UPDATE discreet_analyst SET spent = 0",
        "UPDATE discreet_ledger SET id = 'x'",
        "DELETE FROM discreet_backup",
        "DROP TABLE discreet_study",
    ):
        broken.write_bytes(whole)
        with sqlite3.connect(broken) as file:
            file.execute(statement)
        file.close()
        lost(file_place)
        with pytest.raises(LedgerDamaged, match="not a complete backup"):
            restored(file_place, broken)
    for content in (b"", b"x", Path(file_place.anchor).read_bytes()):
        broken.write_bytes(content)
        with pytest.raises(LedgerDamaged, match="not a complete backup"):
            restored(file_place, broken)
    with pytest.raises(InvalidParameter, match="must exist"):
        restored(file_place, tmp_path / "none.backup")


ASKING = """
import os, sys, time
from discreet import Ledger
where, anchor, worker = sys.argv[1:]
with Ledger.open(where, anchor=anchor) as ledger:
    for number in range(10**6):
        name = f"{worker}/{number}"
        grant = ledger.spend(name, name, "0.001", study="s", data_version="1")
        shown = ledger.record(grant, os.urandom(8))
        print(name, shown.hex(), flush=True)
        time.sleep(0.004)
"""

BACKING = """
import sys
from discreet import Ledger
where, anchor, folder = sys.argv[1:]
for number in range(10**6):
    with Ledger.open(where, anchor=anchor) as ledger:
        ledger.backup(f"{folder}/{number:06}.backup")
"""


def test_a_loop_of_backups_under_load_with_kills_gives_backups_that_lose_nothing(in_memory):
    """Two processes ask and one backs up, all are killed at some time; then each backup is put back
    on its own.
    """
    place = sqlite_place(in_memory)
    with place.open(new=True) as ledger:
        ledger.create("s", 100)
    shown: dict[str, str] = {}
    folder = in_memory / "backups"
    folder.mkdir()
    for round_ in range(2):  # the second goes on where the first was killed
        own = folder / str(round_)
        own.mkdir()
        said = [(own / f"{worker}.txt").open("w+") for worker in range(2)]
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", ASKING, place.where, place.anchor, f"{round_}{worker}"],
                stdout=out,
            )
            for worker, out in enumerate(said)
        ]
        backing = subprocess.Popen([sys.executable, "-c", BACKING, place.where, place.anchor, own])

        def is_enough(own: Path = own) -> bool:
            told = [file.read_text("utf-8").count("\n") for file in own.glob("*.txt")]
            return len(list(own.glob("*.backup"))) >= 2 and min(told) > 5

        wait(is_enough)
        for process in (backing, *asking):
            process.send_signal(signal.SIGKILL)
            process.wait()
        for out in said:
            out.seek(0)
            shown |= dict(line.split() for line in out if line.endswith("\n"))
            out.close()
    backups = sorted(folder.glob("*/*.backup"))
    assert len(backups) >= 4
    assert len(shown) > 10
    anchor = Path(place.anchor).read_bytes()
    with place.open() as ledger:
        spent = ledger.spent("s")
    for backup in (backups[0], backups[-1]):
        lost(place)
        Path(place.anchor).write_bytes(anchor)
        with restored(place, backup) as ledger:
            ledger.verify()
            assert spent <= ledger.spent("s") <= 2 * spent
            again = {}
            for name in list(shown)[:5] + list(shown)[-5:]:
                before = ledger.spent("s")
                try:
                    grant = ledger.spend(name, name, "0.001", study="s", data_version="1")
                except QueryRefused:  # void: perhaps it was shown, and it is not drawn again
                    continue
                if ledger.spent("s") == before:  # what is free is what was shown
                    again[name] = grant.answer
            assert {name: answer.hex() for name, answer in again.items()} == {
                name: shown[name] for name in again
            }


def test_the_command_says_what_it_will_do_and_asks(tmp_path, postgres):
    folder = study_in(tmp_path, f'study = "study"\n{POLICY}')
    release = ["release", "study.toml", QUESTION, "--epsilon"]
    assert discreet(*release, "0.2", cwd=folder).code == 0
    made = discreet("ledger", "backup", "study.toml", ".", cwd=folder)
    assert made.out.startswith("Wrote 3 entries to study-"), made.err
    (backup,) = folder.glob("*.backup")
    assert discreet(*release, "0.3", cwd=folder).code == 0
    assert "Nothing to restore" in discreet("ledger", "restore", "study.toml", cwd=folder).out
    restore = ["ledger", "restore", "study.toml", "--from", backup.name]
    discreet(*restore, "--yes", cwd=folder).refused(2, "study.ledger exists", "leave the anchor")
    (folder / "study.ledger").unlink()
    asked = discreet(*restore, cwd=folder)
    assert (
        "ε 0.3 is charged, so that 0.5 of 1 is spent; 0 unanswered spends become void" in asked.out
    )
    assert asked.code == 2
    assert "--yes; nothing was changed" in asked.err
    assert not (folder / "study.ledger").exists()
    done = discreet(*restore, "--yes", cwd=folder)
    assert done.out.endswith("Restored: study has ε 0.5 left.\n"), done.err
    # the answer that the backup has, free
    assert "0.5 left" in discreet(*release, "0.2", cwd=folder).out

    (folder / "study.ledger").unlink()
    (folder / "study.ledger.anchor").unlink()
    discreet(*restore, "--yes", cwd=folder).refused(2, "--charge")
    server = postgresql_place(postgres, tmp_path)
    place = ["--ledger", server.where, "--anchor", server.anchor]
    moved = discreet(*restore, "--yes", "--charge", "0.4", *place, cwd=folder)
    assert moved.out.endswith("Restored: study has ε 0.4 left.\n"), moved.err
    (folder / "study.toml").write_text(
        f'study = "study"\nledger = "{server.where}"\nanchor = "{server.anchor}"\n{POLICY}', "utf-8"
    )
    assert "0.4 left" in discreet(*release, "0.2", cwd=folder).out
    assert discreet("ledger", "backup", "study.toml", "pg.backup", cwd=folder).code == 0


def test_a_restore_says_no_more_than_is_left(tmp_path):
    """0.399999999 is not 0.4, which would be refused as the next question's price."""
    folder = study_in(tmp_path)
    assert discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=folder).code == 0
    assert discreet("ledger", "backup", "study.toml", "the.backup", cwd=folder).code == 0
    (folder / "study.ledger").unlink()
    (folder / "study.ledger.anchor").unlink()
    restore = [
        "ledger",
        "restore",
        "study.toml",
        "--from",
        "the.backup",
        "--yes",
        "--charge",
        "0.400000001",
    ]
    done = discreet(*restore, cwd=folder)
    assert "Restored: study has ε 0.39999" in done.out, done.out + done.err
    assert "0.400000001 is charged" in done.out
