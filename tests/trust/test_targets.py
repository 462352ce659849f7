"""TRUST 49: no output replaces what is there, belongs to the study or lies behind a link: it is
refused before a spend.

Every writer is tried with every bad target, and then with a good one; a wrong target leaves the
folder as it was and the budget untouched.
"""

import hashlib
import os
import stat
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import EngineFailed, InvalidParameter, Ledger, Policy
from discreet.files import writer
from discreet.files.add_noise import add_noise
from discreet.show import figures
from discreet.verify import certify
from shell import one_after_another

POLICY = """source = "people.parquet"
epsilon = "1000"
[columns]
place = { keys = "places.csv" }
age = { bounds = [0, 120] }
"""
SQL = "SELECT place, count(*) AS n, avg(age) FROM people GROUP BY place"
TABLE = pa.table(
    {"place": ["a", "b", "c"] * 20, "age": [float(at) for at in range(60)], "n": range(60)}
)


@pytest.fixture
def folder(tmp_path):
    """A study with its files, and a few things that are none of its business."""
    pq.write_table(TABLE, tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(POLICY, "utf-8")
    (tmp_path / "places.csv").write_text("place\na\nb\n", "utf-8")
    (tmp_path / "mine.csv").write_text("a letter", "utf-8")
    (tmp_path / "mine.parquet").write_text("a letter", "utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not to be touched", "utf-8")
    for form in ("csv", "parquet", "html", "svg", "json", "xlsx", "md"):
        (tmp_path / f"link.{form}").symlink_to("outside/secret")
        (tmp_path / f"dangling.{form}").symlink_to("outside/nothing")
        (tmp_path / f"folder.{form}").mkdir()
    discreet.open(tmp_path / "study.toml").ledger.close()
    for name in ("alias.parquet", "alias.csv"):
        os.link(
            tmp_path / ("people.parquet" if name.endswith("parquet") else "places.csv"),
            tmp_path / name,
        )
    return tmp_path


def state(folder: Path) -> dict[str, str]:
    """Every name in the folder with what it holds or where it leads, but for SQLite's own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(("-wal", "-shm")):
            continue
        if path.is_symlink():
            found[str(path.relative_to(folder))] = f"-> {path.readlink()}"
        elif path.is_file():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


TARGETS = {
    "the data": ("people.parquet", True),
    "the data by another name": ("alias.parquet", True),
    "the data by another way": ("outside/../people.parquet", True),
    "the keys": ("places.csv", True),
    "the keys by another name": ("alias.csv", True),
    "a link": ("link.csv", True),
    "a dangling link": ("dangling.parquet", True),
    "a folder": ("folder.csv", True),
    "no folder": ("nowhere/a.csv", True),
    "a long name": (f"{'a' * 252}.csv", True),
    "a file": ("mine.csv", False),
}
"""Each bad target, and whether `force` does not help either."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_command_refuses_before_it_spends(name, folder):
    target, always = TARGETS[name]
    with discreet.open(folder / "study.toml") as study:
        study.ledger.verify()
    before = state(folder)
    release = ["release", "study.toml", SQL, "--epsilon", "1"]
    cases = [[*release, "-o", target], [*release, "-o", "fine.csv", "-o", target]]
    if always:
        cases.append([*release, "-o", target, "--force"])
    if target.startswith("mine"):  # the record beside it is an output, too
        cases.append([*release, "-o", "people.release.json"])
        (folder / "other.release.json").write_text("mine", "utf-8")
        (folder / "linked.release.json").symlink_to("outside/nothing")
        cases += [
            [*release, "-o", "other.csv"],
            [*release, "-o", "linked.csv"],
            [*release, "-o", "linked.csv", "--force"],
        ]
        cases.append([*release, "-o", "twice.csv", "-o", "twice.csv"])
        before = state(folder)
    for ended in one_after_another(cases, folder):
        if ended.code == 0:  # people.release.json is a table of its own
            (folder / "people.release.json").unlink()
            (folder / "people.release.release.json").unlink(missing_ok=True)
            continue
        ended.refused(2)
    assert state(folder).keys() == before.keys()
    changed = [file for file, hashed in state(folder).items() if hashed != before[file]]
    assert not [file for file in changed if ".ledger" not in file]


def test_the_ledger_is_no_target_of_any_command(folder):
    assert {"study.ledger", "study.ledger.anchor"} <= set(os.listdir(folder))
    commands = [
        ["ledger", "export", "study.toml", "-o", name, "--format", "jsonl", "--force"]
        for name in ("study.ledger", "study.ledger.anchor", "study.ledger-wal")
    ]
    commands += [["figure", "budget", "--ledger", "study.ledger", "-o", "link.svg", "--force"]]
    commands += [
        ["init", "people.parquet", "-o", "dangling.json", "--yes"],
        ["figure", "slide", "-o", "dangling.svg"],
    ]
    commands += [
        [
            "noise",
            "people.parquet",
            "people.parquet",
            "--column",
            "n",
            "--sensitivity",
            "1",
            "--epsilon",
            "1",
        ]
    ]
    commands += [[*commands[-1], "--force"]]
    commands += [["noise", "people.parquet", name, "--column", "n", "--sensitivity", "1", "--epsilon", "1", "--force"]
                 for name in ("alias.parquet", "link.parquet", "dangling.parquet", "folder.parquet")]  # fmt: skip
    before = state(folder)
    for ended in one_after_another(commands, folder):
        ended.refused(2)
    assert state(folder) == before


@pytest.fixture
def answer(folder):
    with discreet.open(folder / "study.toml") as study:
        yield study.sql(SQL, epsilon=1).release()


WRITERS = {
    "save .csv": lambda answer, place, force: answer.save(place.with_suffix(".csv"), force=force),
    "save .parquet": lambda answer, place, force: answer.save(
        place.with_suffix(".parquet"), force=force
    ),
    "save .json": lambda answer, place, force: answer.save(place.with_suffix(".json"), force=force),
    "save .xlsx": lambda answer, place, force: answer.save(place.with_suffix(".xlsx"), force=force),
    "save .md": lambda answer, place, force: answer.save(place.with_suffix(".md"), force=force),
    "save .html": lambda answer, place, force: answer.save(place.with_suffix(".html"), force=force),
    "figure": lambda answer, place, force: figures.save(
        answer.figure(), place.with_suffix(".svg"), force=force, kept=answer.kept
    ),
    "certificate": (
        lambda _answer, place, force: certify("count", epsilon=1).save(
            place.with_suffix(".json"), force=force
        )
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_has_the_same_rules(name, answer, folder):
    write = WRITERS[name]
    before = state(folder)
    for bad in ("link", "dangling", "folder"):
        for force in (False, True):
            with pytest.raises(InvalidParameter):
                write(answer, folder / bad, force)
    if name == "save .parquet":
        for bad in ("people", "alias"):
            with pytest.raises(InvalidParameter, match="among the data"):
                write(answer, folder / bad, True)
    assert {file: hashed for file, hashed in state(folder).items() if file in before} == before
    assert not list(folder.glob(".*.part"))
    write(answer, folder / "new", False)
    [made] = [
        file for file in folder.glob("new.*") if not file.name.endswith(".release.json")
    ] or folder.glob("new.*")
    content = made.read_bytes()
    made.write_text("changed by hand", "utf-8")
    with pytest.raises(InvalidParameter, match="must not exist"):
        write(answer, folder / "new", False)
    assert made.read_text("utf-8") == "changed by hand"
    write(answer, folder / "new", True)
    assert len(made.read_bytes()) == len(content) or name in ("save .html", "figure", "save .xlsx")


IMPOSSIBLE = {
    "too long": "a" * 300,
    "too long with its record": "a" * 245,
    "a zero": "a\0b",
    "half a letter": "a\ud800",
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_name_that_no_file_can_have_is_refused_in_one_sentence(name, answer, folder):
    wanted = folder / IMPOSSIBLE[name]
    with discreet.open(folder / "study.toml") as study:
        before, spent = state(folder), study.spent
        writers = [
            *(lambda write=write: write(answer, wanted, False) for write in WRITERS.values())
        ]
        if name == "too long with its record":  # which only some have
            writers = writers[:6]
        writers += [lambda: study.sql(SQL, epsilon=2).release(to=wanted.with_suffix(".parquet"))]
        for write in writers:
            with pytest.raises(
                InvalidParameter, match=r"cannot be written: .*; name another file"
            ) as refused:
                write()
            assert len(str(refused.value)) < 200
        assert (state(folder), study.spent) == (before, spent)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_noise_to_and_from_a_name_that_no_file_can_have_is_refused(name, folder):
    good = folder / "people.parquet"
    with Ledger.open(folder / "other.ledger", new=True) as ledger:
        ledger.create("s", 10)
        terms = {"columns": ["n"], "sensitivity": 1, "epsilon": 1}
        for more in ({}, {"ledger": ledger, "study": "s"}):
            for source, target in ((good, folder / name), (folder / name, folder / "new.parquet")):
                with pytest.raises(InvalidParameter):
                    add_noise(source, target, **terms, **more)
        assert ledger.spent("s") == 0


def test_a_file_of_an_answer_has_the_same_rules(folder):
    with discreet.open(folder / "study.toml") as study:
        plan, spent = study.sql(SQL, epsilon=1), study.spent
        (folder / "beside.release.json").write_text("mine", "utf-8")
        (folder / "linked.release.json").symlink_to("outside/nothing")
        before = state(folder)
        for bad in (
            "people",
            "alias",
            "mine",
            "link",
            "dangling",
            "folder",
            "beside",
            "linked",
            "nowhere/a",
        ):
            with pytest.raises(InvalidParameter):
                plan.release(to=folder / f"{bad}.parquet")
        assert study.spent == spent
        assert state(folder) == before
        made = plan.release(to=folder / "new.parquet")
        # asked again, it is there
        assert plan.release(to=folder / "new.parquet").record == made.record
        assert study.spent == spent + 1


def test_noise_has_the_same_rules(folder):
    before = state(folder)
    with Ledger.open(folder / "other.ledger", new=True) as ledger:
        ledger.create("s", 10)
        terms = {"columns": ["n"], "sensitivity": 1, "epsilon": 1}
        account = {"ledger": ledger, "study": "s"}
        for bad in (
            "people.parquet",
            "alias.parquet",
            "mine.parquet",
            "link.parquet",
            "dangling.parquet",
        ):
            for more in ({}, account):
                with pytest.raises(InvalidParameter):
                    add_noise(folder / "people.parquet", folder / bad, **terms, **more)
        for bad in ("other.ledger", "other.ledger.anchor", "other.ledger-journal"):
            with pytest.raises(InvalidParameter, match="among the data"):
                add_noise(folder / "people.parquet", folder / bad, **terms, **account)
        assert ledger.spent("s") == 0
    add_noise(folder / "people.parquet", folder / "mine.parquet", **terms, force=True)
    assert len(pq.read_table(folder / "mine.parquet")) == 60
    after = state(folder)
    assert {file for file in before if after[file] != before[file]} == {"mine.parquet"}


@pytest.mark.parametrize(
    ("source", "bad", "good"),
    [
        ("parts", ["parts/new.csv", "parts/deep/new.csv", "link-to-parts/new.csv"], "new.csv"),
        ("parts/*.csv", ["parts/new.csv", "parts/a.csv"], "parts/new.json"),
        ("**/*.csv", ["new.csv", "parts/deep/new.csv"], "new.json"),
        (["parts/a.csv", "parts/deep"], ["parts/a.csv", "parts/deep/new.csv"], "parts/b.json"),
        ("SELECT * FROM 'parts/*.csv'", ["parts/new.csv"], "new.csv"),
        ("SELECT * FROM read_csv('parts/a.csv')", ["parts/a.csv"], "new.csv"),
        ("SELECT * FROM 'parts/it''s.csv'", ["parts/it's.csv"], "new.csv"),
        ('SELECT * FROM "parts/a "" b.csv"', ['parts/a " b.csv'], "new.csv"),
        ("SELECT * FROM read_csv($$parts/a.csv$$)", ["parts/a.csv"], "new.csv"),
        ("SELECT * FROM read_csv($x$parts/a.csv$x$)", ["parts/a.csv"], "new.csv"),
    ],
)
def test_no_output_joins_the_data(tmp_path, monkeypatch, source, bad, good):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    pc.write_csv(pa.table({"age": [1, 2]}), tmp_path / "parts" / "a.csv")
    pc.write_csv(pa.table({"age": [1, 2]}), tmp_path / "parts" / "b.csv")
    (tmp_path / "link-to-parts").symlink_to("parts")
    kept = writer.kept_source(
        Policy(source=source, epsilon=1, columns={"age": {"bounds": [0, 9]}}).source
    )
    for target in bad:
        for force in (False, True):
            with pytest.raises(InvalidParameter, match="among the data"):
                writer.free(target, force=force, kept=kept)
    assert writer.free(good, kept=kept) == tmp_path / good


def written_beside(target: Path, intruder) -> None:
    with writer.new_file(target) as draft:
        draft.write(b"ours")
        intruder()


def test_a_name_that_comes_up_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "new.csv"
    for intruder in (
        lambda: target.write_text("theirs", "utf-8"),
        lambda: target.symlink_to(tmp_path / "theirs"),
    ):
        with pytest.raises(InvalidParameter, match="must not exist"):
            written_beside(target, intruder)
        assert target.is_symlink() or target.read_text("utf-8") == "theirs"
        assert not (tmp_path / "theirs").exists()
        target.unlink()
    with writer.new_file(target, force=True) as draft:
        draft.write(b"ours")
        target.symlink_to(tmp_path / "theirs")
    assert not target.is_symlink()
    assert target.read_bytes() == b"ours"
    assert not (tmp_path / "theirs").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_a_draft_is_private_and_the_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with writer.new_file(tmp_path / "new.csv") as draft:
            draft.write(b"half")
            [part] = tmp_path.glob(".*.part")
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640
    finally:
        os.umask(before)
    with pytest.raises(RuntimeError), writer.new_file(tmp_path / "other.csv") as draft:
        raise RuntimeError
    assert os.listdir(tmp_path) == ["new.csv"]


def test_a_release_whose_name_is_taken_while_it_is_written_is_not_lost(folder, monkeypatch):
    """It is drawn once: what was paid for stays, under another name, and counts as the release once
    it is moved.
    """
    publish = writer.Draft.publish
    target = folder / "new.parquet"

    def late(draft: writer.Draft, **terms: bool) -> None:
        target.write_text("theirs", "utf-8")
        publish(draft, **terms)

    with discreet.open(folder / "study.toml") as study:
        planned = study.sql(SQL, epsilon="0.1")
        with monkeypatch.context() as patch:
            patch.setattr(writer.Draft, "publish", late)
            with pytest.raises(
                EngineFailed, match="was taken in the meantime: the complete release is in"
            ) as told:
                planned.release(to=target, request_id="r")
        assert target.read_text("utf-8") == "theirs"
        spent = study.spent
        (folder / str(told.value).partition("release is in ")[2].partition(";")[0]).replace(target)
        assert (planned.release(to=target, request_id="r").path, study.spent) == (target, spent)
