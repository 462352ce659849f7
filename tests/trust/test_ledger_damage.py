"""A ledger that is not what it was (TRUST 24, 25): refused with what to do, never opened as a fresh
budget.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from discreet import InvalidParameter, Ledger, LedgerDamaged, Policy, QueryRefused, Study
from discreet.ledger.chain import digest
from discreet.release.discovery import REQUEST
from ledgers import change_of, damaged, postgresql_place, sqlite_place


@pytest.fixture
def tmp_path(in_memory):
    return in_memory


def filled(place, total=1) -> str:
    """Put a small ledger in the place; its export."""
    with place.open(new=True) as ledger:
        ledger.create("s", total)
        ledger.allot("ann", "0.5", study="s")
        ledger.record(
            ledger.spend("r1", "q", "0.1", study="s", data_version="1", analyst="ann"), b"answer"
        )
        ledger.spend("r2", "q", "0.1", study="s", data_version="1")
        ledger.spend("r3", "q3", "0.2", study="s")
        return ledger.export()


def changed_everywhere(tmp_path, kind):
    """What went wrong when bytes of a small ledger were changed, or the file cut there."""
    place = sqlite_place(tmp_path)
    filled(place)
    connection = sqlite3.connect(place.where)
    # the same content in a smaller file: 4 KiB pages are mostly empty
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()
    with place.open() as ledger:
        export = ledger.export()
    whole = Path(place.where).read_bytes()
    folder = tmp_path / "changed"
    folder.mkdir()
    shutil.copy(place.anchor, folder)
    # all of the header, of every page of 512 bytes its head, and each 53rd byte, others in each
    # run; bits in turn
    heads = {start + at for start in range(0, len(whole), 512) for at in range(12)}
    rest = range(random.SystemRandom().randrange(53), len(whole), 53)
    every = sorted({*range(100), *heads, *rest, len(whole) - 1} & {*range(len(whole))})
    assert len(every) > 500
    return damaged(str(folder), whole, export, [(kind, index) for index in every])


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    """TRUST 24: from the empty file to the one that lacks its last byte."""
    assert changed_everywhere(tmp_path, "cut") == []


def test_a_flip_of_any_byte_is_refused_or_changes_nothing(tmp_path):
    """TRUST 24: a byte that SQLite never reads may differ; then every entry, answer and budget is
    the same. A byte of an old entry may differ, too, if the budget is the same; then it is refused
    where all entries are read."""
    assert changed_everywhere(tmp_path, "flip") == []


def test_the_control_opens_with_another_budget(tmp_path):
    """TRUST 24, the control: the same flips of a bare table change its budget unseen."""
    path = tmp_path / "twin.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE spend (cost INTEGER)")
        connection.execute("INSERT INTO spend VALUES (123456789)")
    connection.close()
    whole, fooled = path.read_bytes(), 0
    for index in range(len(whole) - 40, len(whole)):
        path.write_bytes(
            whole[:index] + bytes([whole[index] ^ 1 << index % 8]) + whole[index + 1 :]
        )
        connection = sqlite3.connect(path)
        try:
            fooled += connection.execute("SELECT sum(cost) FROM spend").fetchone() != (123456789,)
        except sqlite3.DatabaseError:
            pass
        finally:
            connection.close()
    assert fooled > 0


def refused(place, words, **options):
    """The refusal, which says what to do."""
    with pytest.raises(LedgerDamaged, match=words) as refusal:
        place.open(**options)
    assert any(word in str(refusal.value) for word in ("put ", "make ", "open "))
    return str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"not a database at all", None])
def test_a_file_that_is_no_ledger_is_refused(file_place, content):
    """TRUST 24: empty, zeros, text, gone; and a new one is not made beside the old anchor."""
    filled(file_place)
    if content is None:
        Path(file_place.where).unlink()
        refused(file_place, "anchor .* exists but its ledger does not", new=True)
    else:
        Path(file_place.where).write_bytes(content)
    refused(file_place, "no ledger|not a complete ledger")
    assert content is not None or not Path(file_place.where).exists()


def test_another_database_is_refused(file_place):
    """TRUST 24: a good SQLite file that is no ledger."""
    filled(file_place)
    Path(file_place.where).unlink()
    connection = sqlite3.connect(file_place.where)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    refused(file_place, "not a complete ledger")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE discreet_ledger SET version = 2", "not a ledger of version 1"),
        ("DELETE FROM discreet_ledger", "not a ledger of version 1"),
        ("UPDATE discreet_ledger SET id = 'other'", "anchor belongs to another ledger"),
        (
            "UPDATE discreet_entry SET amount = 1, spent = 1 WHERE number = 6",
            "entry 6 of study 's' was changed",
        ),
        (
            "UPDATE discreet_entry SET query = 'other' WHERE number = 6",
            "entry 6 of study 's' was changed",
        ),
        ("UPDATE discreet_entry SET total = 9000000000", "entry 6 of study 's' was changed"),
        ("DELETE FROM discreet_entry WHERE number = 6", "do not include the anchored entry"),
        ("DELETE FROM discreet_entry", "do not include the anchored entry"),
        ("DELETE FROM discreet_study", "mentions a study that it does not hold"),
        ("DROP TABLE discreet_analyst", "no complete ledger|tables are not the ones"),
    ],
)
def test_a_change_of_what_the_budget_rests_on_is_refused(place, statement, words):
    """TRUST 24: when the ledger is opened; by the anchored entry, the version or the tables, on
    both databases.
    """
    filled(place)
    place.execute(statement)
    refused(place, words)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE discreet_entry SET amount = 1, spent = 1 WHERE number = 3",
            "entry 3 of study 's' was changed",
        ),
        ("UPDATE discreet_entry SET answer = ? WHERE kind = 'answer'", "entry 4 of study 's'"),
        ("UPDATE discreet_entry SET time = '2000-01-01' WHERE number = 2", "entry 2 of study 's'"),
        ("DELETE FROM discreet_entry WHERE number = 3", "entry 3 of study 's'"),
        ("UPDATE discreet_analyst SET spent = 0", "not what its entries add up to"),
        ("UPDATE discreet_analyst SET allotted = 1000000000", "not what its entries add up to"),
        ("DELETE FROM discreet_analyst", "not what its entries add up to"),
        (
            "INSERT INTO discreet_analyst VALUES ('other', 'ann', 1, 1, '')",
            "mentions a study that it does not hold",
        ),
    ],
)
def test_a_change_of_an_old_entry_or_a_share_is_found_by_verify(place, statement, words):
    """TRUST 24: opening does not walk over what the anchor has passed; the study's budget is the
    same all the while.
    """
    filled(place)
    place.execute(statement, *[b"other"] * statement.count("?"))
    with place.open() as ledger:
        assert ledger.remaining("s") == Fraction(7, 10)
        for verb in (ledger.verify, ledger.export):
            with pytest.raises(LedgerDamaged, match=words):
                verb()


def test_an_answer_is_never_shown_from_an_entry_that_was_changed(place):
    """TRUST 24: though the ledger opens, its hash is checked whenever it is to be shown."""
    filled(place)
    place.execute("UPDATE discreet_entry SET answer = ? WHERE kind = 'answer'", b"other")
    with place.open() as ledger:
        for verb in (
            lambda: ledger.spend("r1", "q", "0.1", study="s", data_version="1", analyst="ann"),
            lambda: ledger.spend("r9", "q", "0.1", study="s", data_version="1"),
            lambda: ledger.answer(study="s", request_id="r1"),
            lambda: ledger.answer(study="s", query="q", data_version="1"),
            lambda: ledger.entries("s"),
        ):
            with pytest.raises(LedgerDamaged, match="entry 4 of study 's' was changed"):
                verb()


def flipped(place, cell: bytes, ask) -> list[object]:
    """What is answered with each byte of one cell of an index changed in turn; the others are
    refused.
    """
    answers = []
    whole, anchor = Path(place.where).read_bytes(), Path(place.anchor).read_bytes()
    assert whole.count(cell) == 1
    for index in range(whole.index(cell), whole.index(cell) + len(cell)):
        Path(place.where).write_bytes(change_of(whole, "flip", index))
        Path(place.anchor).write_bytes(anchor)
        with suppress(LedgerDamaged), place.open() as ledger:
            answers.append(ask(ledger))
    assert len(answers) < len(cell)
    return answers


def test_an_index_that_hides_an_answer_gives_no_second_draw(file_place):
    """TRUST 24: a flipped bit in the index of questions; what is drawn again is charged again, or
    refused.
    """
    filled(file_place)
    with file_place.open() as ledger:
        question, spent = ledger.entries()[3].question, ledger.spent("s")

    def ask(ledger):
        grant = ledger.spend("r9", "q", "0.1", study="s", data_version="1")
        return ledger.record(grant, b"second"), ledger.spent("s") - spent

    answers = flipped(file_place, b"s" + question.encode() + b"1/10answer", ask)
    assert {*answers} <= {
        (b"answer", 0),
        (b"second", Fraction(1, 10)),
    }  # where the spend is hidden, too, it is a new one


def test_an_index_that_hides_an_answer_while_it_is_drawn_gives_no_second_one(file_place):
    """TRUST 24: another process has answered meanwhile, and the first one cannot see it."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        grant = ledger.spend("r1", "q", "0.1", study="s", data_version="1")
        ledger.record(ledger.spend("r2", "q", "0.1", study="s", data_version="1"), b"answer")

    def answer(ledger):
        with suppress(InvalidParameter):  # the spend is hidden, too
            return ledger.record(grant, b"second")

    assert {*flipped(file_place, b"s" + grant.question.encode() + b"1/10answer", answer)} <= {
        b"answer",
        None,
    }


def test_an_index_that_hides_a_restore_gives_no_second_draw(file_place):
    """TRUST 24, 38: the spend without an answer stays void."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.spend("r1", "q", "0.1", study="s", data_version="1")
    Path(file_place.anchor).unlink()
    Ledger.restore(file_place.where, accept=_mark(file_place)).close()

    def ask(ledger):
        with pytest.raises(QueryRefused, match="before the ledger was restored"):
            ledger.spend("r1", "q", "0.1", study="s", data_version="1")

    flipped(file_place, b"srestore\3", ask)


def test_an_index_that_hides_a_discovery_gives_no_second_one(file_place):
    """TRUST 24: a second one would be charged its epsilon, but its delta is spent."""
    columns = {"town": {"keys": "discover"}}
    policy = Policy(
        source=pa.table({"town": ["a"] * 99}), epsilon=1, delta="1e-6", columns=columns, version="1"
    )
    with Study(policy, ledger=file_place.where, name="s") as study:
        study.discover("town", epsilon="0.1")

    def ask(ledger):
        with pytest.raises(QueryRefused, match="the delta of this study is spent"):
            Study(policy, ledger=ledger, name="s").discover("town", epsilon="0.2")

    flipped(file_place, b"s" + REQUEST.encode() + b"\2", ask)


@pytest.mark.parametrize("rehashed", [False, True])
def test_a_promise_that_was_changed_is_refused(place, rehashed):
    """TRUST 24, 39: by the hash of its entry; and by the anchor, if the entry was given the right
    hash again.
    """
    with place.open(new=True) as ledger:
        ledger.create("s", 1, promise={"unit": "person"})
        ledger.spend("r1", "q", "0.1", study="s")
        first = ledger.entries()[0]
        other = replace(first, terms=first.terms.replace("person", "visit"))
        mark = digest(ledger.id, other, None) if rehashed else first.hash
    place.execute(
        "UPDATE discreet_entry SET terms = ?, hash = ? WHERE number = 1", other.terms, mark
    )
    with (
        place.open() as ledger,
        pytest.raises(LedgerDamaged, match="entry 1 of study 's' was changed"),
    ):
        ledger.promise("s")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE discreet_analyst SET spent = 0",
        "UPDATE discreet_analyst SET allotted = 900",
        "DELETE",
    ],
)
def test_a_share_that_was_changed_is_refused(place, statement):
    """TRUST 24: where it is read, charged or set anew."""
    filled(place)
    place.execute(
        statement.replace("900", "900000000").replace("DELETE", "DELETE FROM discreet_analyst")
    )
    with place.open() as ledger:
        for verb in (
            lambda: ledger.spend("r9", "q9", "0.1", study="s", analyst="ann"),
            lambda: ledger.remaining("s", analyst="ann"),
            lambda: ledger.allot("ann", "0.6", study="s"),
        ):
            with pytest.raises(LedgerDamaged, match="damaged: put back an intact copy"):
                verb()
        assert ledger.spent("s") == Fraction(3, 10)


def test_entries_after_the_anchored_one_are_walked_when_it_is_opened(place):
    """TRUST 24: another machine added them; nobody here has checked them yet."""
    filled(place)
    old = Path(place.anchor).read_bytes()
    with place.open() as ledger:
        ledger.spend("r8", "q", "0.1", study="s")
        ledger.spend("r9", "q", "0.1", study="s")
    Path(place.anchor).write_bytes(old)
    place.execute("UPDATE discreet_entry SET query = 'other' WHERE number = 7")
    refused(place, "entry 7 of study 's' was changed")
    place.execute("DELETE FROM discreet_entry WHERE number = 7")
    refused(place, "entry 7 of study 's' was changed")


def test_an_open_ledger_that_lost_an_entry_refuses_the_next_spend(place):
    """TRUST 25: also where the process never closed it."""
    filled(place)
    with place.open() as ledger:
        place.execute("DELETE FROM discreet_entry WHERE number = 6")
        for verb in (
            lambda: ledger.spend("r4", "q", "0.1", study="s"),
            lambda: ledger.remaining("s"),
            ledger.verify,
        ):
            with pytest.raises(LedgerDamaged, match="do not include the anchored entry"):
                verb()


def test_a_weakened_check_is_refused(file_place):
    """TRUST 23, 24: the tables are the ones that the ledger was made with."""
    filled(file_place)
    connection = sqlite3.connect(file_place.where)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'spent <= total', 'spent <> total')"
    )
    connection.commit()
    connection.close()
    refused(file_place, "tables are not the ones")


def test_a_ledger_in_wal_mode_that_loses_its_wal_is_refused(file_place):
    """TRUST 24: discreet leaves no -wal; if somebody makes one and it is deleted, the anchor knows
    what is missing.
    """
    filled(file_place)
    connection = sqlite3.connect(file_place.where)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    shutil.copy(file_place.where, file_place.where + ".old")
    with file_place.open() as ledger:
        ledger.spend("r4", "q", "0.1", study="s")
        assert not Path(file_place.where + "-wal").exists()
    os.replace(file_place.where + ".old", file_place.where)
    refused(file_place, "do not include the anchored entry, number 7")


def test_a_deleted_journal_of_a_closed_ledger_changes_nothing(file_place):
    """TRUST 24: it is empty between commits."""
    export = filled(file_place)
    assert Path(file_place.where + "-journal").stat().st_size == 0
    Path(file_place.where + "-journal").unlink()
    with file_place.open() as ledger:
        assert ledger.export() == export


def test_a_read_only_ledger_is_refused():
    """TRUST 24: by a user who may not write it; the superuser may write everything, so the test is
    run as nobody.
    """
    folder = Path(tempfile.mkdtemp())
    place = sqlite_place(folder)
    try:
        filled(place)
        code = (
            "import os, sys\nfrom discreet import Ledger\nif os.getuid() == 0: os.setuid(65534)\n"
        )
        code += (
            "try: Ledger.open(sys.argv[1])\nexcept Exception as error: print(type(error).__name__,"
            " error)"
        )
        for file_mode, folder_mode in ((0o444, 0o777), (0o666, 0o555)):
            for name in (place.where, place.anchor, place.where + "-journal"):
                Path(name).chmod(file_mode)
            folder.chmod(folder_mode)
            program = [sys.executable, "-c", code, place.where]
            done = subprocess.run(program, capture_output=True, text=True, check=False)
            assert done.stdout.startswith(
                "LedgerDamaged the ledger study.ledger cannot be written: make"
            ), done
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_an_old_copy_is_refused_and_restored_only_on_purpose(file_place):
    """TRUST 25: and what the copy forgot is charged, so no budget comes back."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.spend("r1", "q", "0.1", study="s")
    shutil.copy(file_place.where, file_place.where + ".old")
    with file_place.open() as ledger:
        ledger.spend("r2", "q", "0.3", study="s")
        ledger.create("late", 2)
        ledger.spend("r", "q", "0.5", study="late")
    os.replace(file_place.where + ".old", file_place.where)
    refusal = refused(file_place, "put the newest copy back")
    accept = refusal.partition("accept='")[2][:16]
    before = Path(file_place.where).read_bytes(), Path(file_place.anchor).read_bytes()
    with pytest.raises(InvalidParameter, match="accept must be the mark of this ledger"):
        Ledger.restore(file_place.where, accept="yes")
    assert before == (Path(file_place.where).read_bytes(), Path(file_place.anchor).read_bytes())
    with Ledger.restore(file_place.where, accept=accept) as ledger:
        assert ledger.spent("s") == Fraction(4, 10)
        assert (ledger.total("late"), ledger.spent("late")) == (2, Fraction(5, 10))
        assert [entry.kind for entry in ledger.entries("s")] == ["create", "spend", "restore"]
    with file_place.open() as ledger:
        assert ledger.remaining("s") == Fraction(6, 10)
        ledger.spend("r2", "q", "0.6", study="s")


def test_a_copy_that_went_on_by_itself_is_refused(file_place):
    """TRUST 25: as many entries as the anchor knows, but other ones."""
    with file_place.open(new=True) as ledger:
        ledger.create("s", 1)
    for name in (file_place.where, file_place.anchor):
        shutil.copy(name, name + ".old")
    with file_place.open() as ledger:
        ledger.spend("r1", "q", "0.9", study="s")
    newest = Path(file_place.anchor).read_bytes()
    for name in (file_place.where, file_place.anchor):
        os.replace(name + ".old", name)
    with file_place.open() as ledger:
        ledger.spend("r2", "q", "0.1", study="s")
    Path(file_place.anchor).write_bytes(newest)
    refused(file_place, "2 entries, which do not include the anchored entry, number 2")


def test_two_ledgers_that_were_swapped_are_refused(tmp_path):
    """TRUST 25: the same study, the same total, another ledger; a restore does not accept it
    either.
    """
    places = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        places.append(sqlite_place(tmp_path / name))
        filled(places[-1])
    one, other = places
    open_ledger = one.open()
    os.replace(one.where, one.where + ".kept")
    os.replace(other.where, one.where)
    refused(one, "anchor belongs to another ledger")
    with pytest.raises(
        LedgerDamaged, match=r"moved or replaced while it was open|anchor belongs to another ledger"
    ):
        open_ledger.spend("r9", "q", "0.1", study="s")
    open_ledger.close()
    with pytest.raises(LedgerDamaged, match="anchor belongs to another ledger"):
        Ledger.restore(one.where, accept="any")


def test_a_file_that_was_replaced_while_it_was_open_is_neither_read_nor_written(file_place):
    """A copy that was put back under a running server: the budget that it shows would be one that
    nobody keeps.
    """
    filled(file_place)
    open_ledger = file_place.open()
    before = open_ledger.spent("s")
    shutil.copy(file_place.where, file_place.where + ".copy")
    os.replace(file_place.where + ".copy", file_place.where)
    for use in (
        lambda: open_ledger.spent("s"),
        lambda: open_ledger.spend("r9", "q9", "0.1", study="s"),
        lambda: open_ledger.allot("ann", "0.1", study="s"),
        open_ledger.studies,
    ):
        with pytest.raises(
            LedgerDamaged, match="was moved or replaced while it was open: nothing is released"
        ):
            use()
    open_ledger.close()
    with file_place.open() as ledger:
        assert ledger.spent("s") == before


def test_tables_that_were_upgraded_while_they_were_open_are_neither_read_nor_written(place):
    """A newer version may store what this one does not understand."""
    filled(place)
    with place.open() as ledger:
        place.execute("UPDATE discreet_ledger SET version = 2")
        for use in (
            lambda: ledger.spent("s"),
            lambda: ledger.spend("r9", "q9", "0.1", study="s"),
            lambda: ledger.spend("r9", "q9", "0.1", study="s", analyst="ann"),
        ):
            with pytest.raises(
                LedgerDamaged,
                match="not a ledger of version 1: open it with the version that made it",
            ):
                use()
        place.execute("UPDATE discreet_ledger SET version = 1")
        entries = len(ledger.entries())
        ledger.spend("r9", "q9", "0.1", study="s")
        assert len(ledger.entries()) == entries + 1


def test_a_missing_or_damaged_anchor_is_refused(place):
    """TRUST 25: and a ledger without one is taken only on purpose, as it is."""
    export = filled(place)
    anchor = Path(place.anchor)
    whole = anchor.read_bytes()
    anchor.write_bytes(whole[:-1])
    refused(place, "anchor is damaged")
    anchor.unlink()
    refused(place, "anchor is missing")
    with Ledger.restore(place.where, accept=_mark(place), anchor=place.anchor) as ledger:
        assert ledger.spent("s") == Fraction(3, 10)
        assert ledger.export() != export  # the restore itself is an entry
    with place.open() as ledger:
        assert [entry.kind for entry in ledger.entries()][-1] == "restore"


def test_a_damaged_ledger_cannot_be_restored(place):
    """TRUST 24: on purpose means an older whole one, never a broken one."""
    filled(place)
    place.execute("DELETE FROM discreet_entry WHERE number = 3")
    with pytest.raises(LedgerDamaged, match="entry 3"):
        Ledger.restore(place.where, accept="x", anchor=place.anchor)


def test_a_server_put_back_to_an_older_state_is_refused(postgres, tmp_path):
    """TRUST 25: PostgreSQL, by the anchor on this machine."""
    place = postgresql_place(postgres, tmp_path)
    filled(place)
    with place.open() as ledger:
        ledger.spend("r9", "q", "0.4", study="s")
    place.execute("DELETE FROM discreet_entry WHERE number > 4")
    refusal = refused(place, "put the newest copy back")
    with Ledger.restore(
        place.where, accept=refusal.partition("accept='")[2][:16], anchor=place.anchor
    ) as ledger:
        assert ledger.spent("s") == Fraction(7, 10)


def test_a_ledger_ahead_of_its_anchor_opens(place):
    """TRUST 5: a crash between the commit and the anchor; the ledger is ahead, and the next spend
    catches up.
    """
    filled(place)
    old = Path(place.anchor).read_bytes()
    with place.open() as ledger:
        ledger.spend("r8", "q", "0.1", study="s")
        ledger.create("t", 1)
    Path(place.anchor).write_bytes(old)
    with place.open() as ledger:
        assert ledger.spent("s") == Fraction(4, 10)
        ledger.spend("r9", "q", "0.1", study="s")
        ledger.spend("r9", "q", "0.1", study="t")
    assert Path(place.anchor).read_bytes() != old
    with place.open() as ledger:
        assert ledger.verify() == 10


def _mark(place) -> str:
    with pytest.raises(InvalidParameter) as refusal:
        Ledger.restore(place.where, accept="", anchor=place.anchor)
    return str(refusal.value).partition("ledger, '")[2][:16]
