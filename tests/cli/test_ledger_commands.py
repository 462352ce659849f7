"""`discreet ledger`: what was spent, that it is whole, all of it in a file, and shares."""

import csv
import io
import json

from rich.console import Console

from discreet import Ledger
from discreet.cli import terminal
from shell import QUESTION, discreet, one_after_another, study_in


def test_a_custodian_sees_checks_exports_and_allots(tmp_path):
    folder = study_in(tmp_path)
    cases = [
        ["ledger", "show", "study.toml"],
        ["release", "study.toml", QUESTION, "--epsilon", "0.2"],
        ["ledger", "show", "study.ledger", "--json"],
        ["ledger", "verify", "study.ledger"],
        ["ledger", "export", "study.toml"],
        ["ledger", "export", "study.toml", "-o", "all.csv"],
        ["ledger", "export", "study.toml", "-o", "all.csv"],
        ["ledger", "export", "study.toml", "--format", "xml"],
        ["ledger", "allot", "study.toml", "ann", "0.4"],
        ["ledger", "allot", "study.toml", "ann", "4"],
    ]
    too_early, released, shown, verified, lines, table, twice, unknown, allotted, too_much = (
        one_after_another(cases, folder)
    )
    too_early.refused(2, "no ledger yet: nothing was spent", "discreet ledger create study.toml")
    discreet("ledger", "show", "gone.ledger", cwd=folder).refused(
        2, "no ledger gone.ledger", "study.toml"
    )
    assert released.code == 0, released.err
    found = json.loads(shown.out)["study"]
    assert found["left"] == "4/5"
    assert "answer" not in found["entries"][2]
    assert verified.out.startswith("3 entries of study: complete")
    assert [json.loads(line)["kind"] for line in lines.out.splitlines()] == [
        "create",
        "spend",
        "answer",
    ]
    assert table.code == 0, table.err
    rows = list(csv.DictReader(io.StringIO((folder / "all.csv").read_text("utf-8"))))
    assert json.loads(rows[2]["answer"])["record"]["epsilon"] == "1/5"
    twice.refused(2, "must not exist")
    unknown.refused(2, "xml")
    assert allotted.code == 0, allotted.err
    too_much.refused(2, "total")
    with Ledger.open(folder / "study.ledger") as ledger:
        assert float(ledger.total("study", analyst="ann")) == 0.4

    told = discreet("ledger", "show", "study.toml", cwd=folder)
    assert told.out.startswith("study: ε 0.2 of 1 spent, 0.8 left\n")
    with Ledger.open(folder / "study.ledger") as ledger:
        ledger.spend("r", "a question", "1/3", study="study")
    added = discreet("ledger", "show", "study.toml", cwd=folder)
    assert added.out.startswith("study: ε 0.533333334 of 1 spent, 0.466666666 left\n")
    assert [line.split()[0] for line in told.out.splitlines()[2:]] == ["1", "2", "3", "4"]
    assert told.out.splitlines()[3].endswith(QUESTION)


def test_on_a_terminal_the_question_is_cut_to_its_width(tmp_path, monkeypatch):
    folder = study_in(tmp_path)
    assert (
        discreet(
            "release", "study.toml", f"{QUESTION}\n ORDER BY visits", "--epsilon", "0.2", cwd=folder
        ).code
        == 0
    )
    monkeypatch.setattr(terminal, "console", lambda: Console(highlight=False, width=80))
    lines = discreet("ledger", "show", "study.toml", cwd=folder).out.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) == 80
    assert lines[3].endswith("…")
    assert " SELECT county, count(*) AS " in lines[3]


def test_a_backup_goes_into_a_folder_that_exists_and_is_named_by_time(tmp_path):
    folder = study_in(tmp_path)
    backup = ["ledger", "backup", "study.toml", "backups/"]
    created, refused = one_after_another([["ledger", "create", "study.toml"], backup], folder)
    assert created.code == 0, created.err
    refused.refused(2, "the folder of the backup must exist", "create it first")
    assert not (folder / "backups").exists()
    (folder / "backups").mkdir()
    written = discreet(*backup, cwd=folder)
    assert written.code == 0, written.err
    [file] = (folder / "backups").iterdir()
    assert file.suffix == ".backup"
