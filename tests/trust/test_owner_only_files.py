"""TRUST 40: what the custodian keeps is for its owner alone, goes through no planted link, and
tells nothing of a row.

The ledger knows the data by its version. A plain hash of the rows would let anyone who reads the
ledger, and knows all rows but one, try values for that one; so it is kept under the anchor's key.
"""

import hashlib
import multiprocessing
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet import Ledger, LedgerDamaged, Policy, Study
from discreet.cli.ledger import export
from discreet.engines.choose import engine_of
from ledgers import Place, sqlite_place


def policy(ages: list[int]) -> Policy:
    return Policy(source=pa.table({"age": ages}), epsilon=1, columns={"age": {"bounds": [0, 100]}})


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request):
    old = os.umask(request.param)
    yield
    os.umask(old)


def readable_by_others(folder: Path) -> list[str]:
    files = [file for file in folder.iterdir() if stat.S_IMODE(file.stat().st_mode) != 0o600]
    return [f"{file.name} {stat.S_IMODE(file.stat().st_mode):o}" for file in files]


@pytest.mark.usefixtures("umask")
def test_everything_is_made_for_its_owner_alone(tmp_path):
    """While a spend is being written, too, when SQLite's journal is full; and after a restore, and
    a new study.
    """
    place = sqlite_place(tmp_path)
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.create("t", 1)
        with ledger._book.page("s") as page:
            page.append(
                kind="spend",
                amount=1,
                request_id="r",
                query="q",
                question="k",
                epsilon="1/1000000000",
            )
            assert {file.name for file in tmp_path.iterdir()} == {
                "study.ledger",
                "study.ledger.anchor",
                "study.ledger-journal",
                "study.ledger.lock",
            }
            assert readable_by_others(tmp_path) == []
    Path(place.anchor).unlink()
    with pytest.raises(ValueError, match="accept must be the mark") as refusal:
        Ledger.restore(place.where, accept="")
    Ledger.restore(place.where, accept=str(refusal.value).partition("ledger, '")[2][:16]).close()
    assert readable_by_others(tmp_path) == []


@pytest.mark.usefixtures("umask")
def test_the_export_is_for_its_owner_alone(tmp_path):
    place = sqlite_place(tmp_path)
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        export(ledger, str(tmp_path / "all.json"), None)
    assert readable_by_others(tmp_path) == []


def test_the_version_of_the_data_cannot_be_guessed_at(tmp_path):
    """The attacker has the ledger and every age but the last, and tries them all."""
    with Study(policy([1, 2, 42]), ledger=tmp_path / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon="0.1").release()
        kept = {
            text
            for entry in study.ledger.entries()
            for text in (entry.data_version, entry.question)
            if text
        }
        queries = [entry.query for entry in study.ledger.entries() if entry.query]
    guesses = {engine_of(policy([1, 2, age]).source).version() for age in range(30, 50)}
    assert len(guesses) == 20
    assert not guesses & kept
    questions = {
        hashlib.sha256(f'["{query}",{{"version":"{guess}"}}]'.encode()).hexdigest()
        for query in queries
        for guess in guesses
    }
    assert not questions & kept
    content = (tmp_path / "l").read_bytes()
    assert not any(
        guess.encode() in content or bytes.fromhex(guess) in content for guess in guesses
    )


def test_the_key_is_with_the_anchor_and_the_same_data_is_known_again(tmp_path):
    with Study(policy([1, 2]), ledger=tmp_path / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon="0.1").release()
        key = study.ledger._book.anchor.read().key
        assert len(key) == 64
        assert key not in repr(study.ledger._book.anchor.read())
        assert key.encode() not in (tmp_path / "l").read_bytes()
    with Study(policy([1, 2]), ledger=tmp_path / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon="0.1").release()
        assert float(study.spent) == 0.1
    with Study(policy([1, 3]), ledger=tmp_path / "l") as study:
        study.sql("SELECT avg(age) FROM data", epsilon="0.1").release()
        assert float(study.spent) == 0.2


def test_a_planted_link_is_not_followed(tmp_path):
    """Beside the anchor, where the next one is built; and where the first one, or the ledger, is to
    be.
    """
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("study.ledger.anchor.new", "study.ledger.new"):
        (tmp_path / name).symlink_to(victim)
    place = sqlite_place(tmp_path)
    with place.open(new=True) as ledger:
        ledger.create("s", 1)
        ledger.create("t", 1)
    assert victim.read_text() == "precious"
    (tmp_path / "other.anchor").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LedgerDamaged, match=r"anchor other\.anchor exists"):
        Ledger.open(tmp_path / "other", new=True)
    assert not (tmp_path / "nowhere").exists()


def test_an_anchor_that_its_owner_has_linked_elsewhere_stays_there(tmp_path):
    place = sqlite_place(tmp_path)
    with place.open(new=True) as ledger:
        (tmp_path / "disk").mkdir()
        moved = Path(place.anchor).rename(tmp_path / "disk" / "anchor")
        Path(place.anchor).symlink_to(moved)
        ledger.create("s", 1)
        assert Path(place.anchor).is_symlink()
        assert ledger._book.anchor.read().heads["s"].count == 1


def _first(folder: str, barrier, results) -> None:
    barrier.wait()
    try:
        with discreet.open(Path(folder, "study.toml")) as study:
            results.put(str(study.ledger.remaining("study")))
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("_round", range(3))
def test_processes_that_open_a_new_study_at_once_all_open_it(in_memory, _round):
    """One of them makes its ledger; nobody is told to remove the anchor of the ledger that is being
    made.
    """
    (in_memory / "data.csv").write_text("age\n1\n")
    (in_memory / "study.toml").write_text(
        'source = "data.csv"\nepsilon = "1"\n[columns]\nage = { bounds = [0, 9] }\n'
    )
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(6), context.Queue()
    children = [
        context.Process(target=_first, args=(str(in_memory), barrier, results)) for _ in range(6)
    ]
    for child in children:
        child.start()
    assert {results.get() for _ in children} == {"1"}
    for child in children:
        child.join()
    with Ledger.open(in_memory / "study.ledger", study="study") as ledger:
        assert ledger.verify() == 1


def test_a_study_whose_maker_died_before_its_total_was_written_is_made(tmp_path):
    """The ledger has no study yet, and its anchor knows of none: nothing was ever spent."""
    Ledger.open(tmp_path / "study.ledger", new=True).close()
    with Study(policy([1]), ledger=tmp_path / "study.ledger") as study:
        assert study.remaining == 1


def _begin(where: str, barrier) -> None:
    barrier.wait()
    try:
        with Ledger.open(where, new=True) as ledger:
            ledger.create("s", 1)
    except Exception:  # noqa: S110 - all but one are refused
        pass


@pytest.mark.parametrize("_round", range(5))
def test_forked_processes_that_start_at_once_leave_one_ledger(in_memory, _round):
    """After a fork the threads of all have the same name; a name made of it alone is everybody's."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(6)
    where = str(in_memory / "study.ledger")
    children = [context.Process(target=_begin, args=(where, barrier)) for _ in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert sorted(
        file.name for file in in_memory.iterdir() if not file.name.endswith("-journal")
    ) == [
        "study.ledger",
        "study.ledger.anchor",
        "study.ledger.lock",
    ]
    with Place("sqlite", where, where + ".anchor").open(study="s") as ledger:
        assert ledger.verify() == 1
