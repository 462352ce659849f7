"""`discreet plan` and `discreet release`: the price first, then the answer, then what is left."""

import json
import re
import shlex
from datetime import date
from fractions import Fraction

import openpyxl
import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet import Ledger
from shell import CANARY, QUESTION, contents, discreet, one_after_another, study_in

BAD_EPSILONS = ["nan", "inf", "0", "-1", "True", "0.1x", "1e400", "9" * 5000]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study whose ledger was made by its first plan."""
    folder = study_in(tmp_path_factory.mktemp("study"))
    planned = discreet("plan", "study.toml", QUESTION, "--epsilon", "0.2", cwd=folder)
    assert planned.code == 0, planned.err
    return folder, planned


def test_a_plan_shows_price_error_and_fates_and_spends_nothing(study):
    folder, planned = study
    lines = planned.out.splitlines()
    assert lines[0] == "3 rows · ε 0.2 of 1 (left after: 0.8) · change-one · up to 2 rows a patient"
    assert lines[1].split() == ["column", "Δ", "scale", "error", "(95", "%)"]
    assert lines[2].split() == ["visits", "4", "20", "±", "100"]
    assert (
        lines[4]
        == "Missing values of age are left out. Values of age outside 0–120 count as 0 or 120. "
        "Rows whose county is not listed are left out."
    )
    assert lines[-2] == "Nothing was spent. Release it with:"
    assert lines[-1] == f"discreet release study.toml '{QUESTION}' --epsilon 0.2"
    assert planned.err == ""
    assert not list(folder.glob("study.ledger*"))


def test_a_plan_in_json_has_exact_numbers(study):
    terms = [
        "--within",
        "20",
        "--size",
        "50",
        "--weight",
        "visits=3",
        "--confidence",
        "0.9",
        "--json",
    ]
    planned = discreet("plan", "study.toml", QUESTION, *terms, cwd=study[0])
    found = json.loads(planned.out)
    assert Fraction(found["left"]) - Fraction(found["epsilon"]) == Fraction(found["left_after"])
    assert [column["name"] for column in found["columns"]] == ["visits", "avg(age)"]
    assert all(column["accuracy"] <= 20 for column in found["columns"])
    assert found["confidence"] == "9/10"


def test_the_command_to_copy_is_the_question_as_it_was_asked(study):
    text = "SELECT count(*) AS n\nFROM visits WHERE county = 'Dukes'"
    terms = [
        "--within",
        "20",
        "--size",
        "50",
        "--weight",
        "n=3",
        "--confidence",
        "0.9",
        "--simultaneous",
    ]
    odd = f'{text} AND age > 3 AND county <> "county"'
    planned = one_after_another(
        [["plan", "study.toml", sql, *terms] for sql in (text, odd)], study[0]
    )
    for ended, sql in zip(planned, (text, odd), strict=True):
        command = ended.out.partition("Release it with:\n")[2]
        flags = shlex.split(command)
        assert flags[:4] == ["discreet", "release", "study.toml", sql]
        assert sorted(flags[4:]) == sorted(terms)
    assert f'"{text}"' in planned[0].out


def test_a_plan_that_cannot_be_paid_says_so_unless_it_was_asked_before(tmp_path):
    folder = study_in(tmp_path)
    ask = ["study.toml", "SELECT count(*) FROM visits", "--epsilon", "0.7"]
    other = ["study.toml", QUESTION, "--epsilon", "0.7"]
    cases = [["release", *ask], ["plan", *ask], ["plan", *other], ["plan", *other[:3], "0.3"]]
    _, again, poor, rich = one_after_another(cases, folder)
    assert "(asked before: free, 0.3 left)" in again.out
    assert json.loads(discreet("plan", *ask, "--json", cwd=folder).out)["asked_before"]
    assert not json.loads(discreet("plan", *other, "--json", cwd=folder).out)["asked_before"]
    assert again.out.splitlines()[-1].startswith("discreet release")
    assert (
        poor.out.splitlines()[-1]
        == "Nothing was spent. A release would be refused: only ε 0.3 is left."
    )
    assert "discreet release" not in poor.out
    assert rich.out.splitlines()[-1].startswith("discreet release")


def test_words_of_python_are_not_said_at_the_shell(study):
    terms = [QUESTION, "--within", "5"]
    discreet("plan", "study.toml", *terms, cwd=study[0]).refused(
        2, "within needs --size, the least number"
    )
    wrong = ["SELECT avg(ag) FROM visits", "--epsilon", "1"]
    told = discreet("plan", "study.toml", *wrong, cwd=study[0])
    told.refused(2, "did you mean age?", "Nothing was spent.")
    assert "?." not in told.err


def test_a_plan_warns_of_noise_that_drowns_the_answer(study):
    planned = discreet(
        "plan", "study.toml", QUESTION, "--epsilon", "0.001", "--size", "100", cwd=study[0]
    )
    assert "warning: ε below 1/100" in planned.out
    assert "warning: the noise of avg(age) is larger than its bounds" in planned.out


def test_a_release_is_published_with_a_title_and_as_many_decimals_as_are_asked_for(tmp_path):
    folder = study_in(tmp_path)
    look = ["--title", "Visits", "--caption", "All of them.", "--decimals", "avg(age)=3", "--bom"]
    flags = [part for file in ("a.csv", "a.xlsx", "a.md", "a.txt") for part in ("-o", file)]
    ended = discreet(
        "release", "study.toml", QUESTION, "--epsilon", "0.5", *look, *flags, cwd=folder
    )
    assert ended.code == 0, ended.err
    assert "Saved a.csv, a.release.json, a.xlsx, a.md, a.txt" in ended.out
    ages = [line.split("  ")[-1].split() for line in ended.out.splitlines()[1:4]]
    assert all(re.fullmatch(r"\d+\.\d{3}", age[0]) for age in ages)
    assert (folder / "a.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert (
        (folder / "a.md")
        .read_text("utf-8")
        .startswith("# Visits\n\nAll of them.\n\nSource: study, version 1 · Rel")
    )
    assert (folder / "a.txt").read_text("utf-8").startswith("Visits\n======\n\nAll of them.")
    book = openpyxl.load_workbook(folder / "a.xlsx")
    assert book["Table"]["E2"].number_format == "#,##0.000"
    assert book["Method"]["B1"].value == "Visits"
    for file in ("a.csv", "a.xlsx", "a.md", "a.txt"):
        assert str(tmp_path).encode() not in (folder / file).read_bytes()


def test_a_release_is_shown_saved_and_written_down_and_free_when_asked_again(tmp_path):
    folder = study_in(tmp_path)
    files = ["a.csv", "a.parquet", "b.json"]
    flags = [part for file in files for part in ("-o", file)]
    first = discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", *flags, cwd=folder)
    assert first.code == 0, first.err
    lines = first.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["county", "Dukes", "Essex", "Suffolk"]
    assert "±" in lines[1]
    saved = "Saved a.csv, a.release.json, a.parquet, b.json, b.release.json"
    assert lines[-1] == f"ε 0.2 spent, 0.8 left (entry 2 of study.ledger). {saved}"
    assert CANARY not in first.out

    again = discreet(
        "release", "study.toml", QUESTION.lower(), "--epsilon", "1/5", "--json", cwd=folder
    )
    found = json.loads(again.out)
    assert found["left"] == "4/5"
    assert found["columns"] == json.loads((folder / "b.json").read_text("utf-8"))
    assert (
        pyarrow.csv.read_csv(folder / "a.csv").to_pydict()["visits"] == found["columns"]["visits"]
    )
    assert pyarrow.parquet.read_table(folder / "a.parquet").to_pydict() == found["columns"]

    record = json.loads((folder / "a.release.json").read_text("utf-8"))
    assert {
        name: record[name] for name in ("epsilon", "delta", "neighbors", "unit", "data_version")
    } == {
        "epsilon": "1/5",
        "delta": "0",
        "neighbors": "change-one",
        "unit": "patient",
        "data_version": "1",
    }
    assert record["software"].startswith("discreet ")
    assert record["sql"] == QUESTION
    assert date.fromisoformat(record["date"])
    assert all({"sensitivity", "scale", "step"} <= set(one) for one in record["statistics"])
    with Ledger.open(folder / "study.ledger") as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["create", "spend", "answer", "repeat"]
        assert ledger.entries()[1].request_id == record["entry"]


def test_a_request_id_can_be_used_again_and_an_analyst_pays_from_a_share(tmp_path):
    folder = study_in(tmp_path)
    ask = [
        "release",
        "study.toml",
        "SELECT count(*) FROM visits",
        "--epsilon",
        "0.3",
        "--analyst",
        "ann",
    ]
    named = [*ask, "--request-id", "one"]
    poor, allotted, first, again = one_after_another(
        [ask, ["ledger", "allot", "study.toml", "ann", "0.4"], named, named], folder
    )
    poor.refused(3, "no share", "Nothing was spent")
    assert allotted.code == 0, allotted.err
    assert "ε 0.3 spent, 0.1 left" in first.out
    assert "ε 0 spent (asked before), 0.1 left" in again.out


REFUSED = [
    (2, ["SELECT * would release rows"], ["SELECT * FROM visits", "--epsilon", "1"]),
    (2, ["height"], ["SELECT avg(height) FROM visits", "--epsilon", "1"]),
    (2, [""], ["SELECT count(* FROM", "--epsilon", "1"]),
    (2, ["takes either epsilon, ", "or within"], [QUESTION]),
    (2, ["--weight"], [QUESTION, "--epsilon", "1", "--weight", "visits"]),
    (2, ["-o must end in"], [QUESTION, "--epsilon", "0.1", "-o", "a.xls"]),
    (2, ["--bom marks a .csv"], [QUESTION, "--epsilon", "0.1", "--bom", "-o", "a.xlsx"]),
    (2, ["from 0 to 12, got '-1'"], [QUESTION, "--epsilon", "0.1", "--decimals", "-1"]),
    (
        2,
        ["of a column (county, visits, avg(age)), got 'x'"],
        [QUESTION, "--epsilon", "0.1", "--decimals", "x=1"],
    ),
    (2, ["folder"], [QUESTION, "--epsilon", "0.1", "-o", "nowhere/a.csv"]),
    (3, ["1 is left, 1.5 was asked for"], [QUESTION, "--epsilon", "1.5"]),
    *[(2, ["epsilon must"], [QUESTION, "--epsilon", text]) for text in BAD_EPSILONS],
]


def test_what_is_refused_is_one_sentence_and_spends_nothing(study):
    before = contents(study[0])
    discreet("release", "study.toml", *REFUSED[0][2], cwd=study[0]).refused(
        2, *REFUSED[0][1], "othing was spent"
    )
    cases = [["release", "study.toml", *terms] for _, _, terms in REFUSED]
    for ended, (code, words, _) in zip(one_after_another(cases, study[0]), REFUSED, strict=True):
        ended.refused(code, *words, "othing was spent")
    assert contents(study[0]) == before


POLICIES = {
    "broken": ("source = [", ["broken.toml", "TOML"]),
    "unknown": (
        'source = "visits.parquet"\nepsilon = "1"\n[columns]\nheight = { bounds = [0, 1] }',
        ["height"],
    ),
    "empty": (
        'source = "gone.parquet"\nepsilon = "1"\n[columns]\nage = { bounds = [0, 1] }',
        ["gone.parquet"],
    ),
}


def test_a_policy_that_cannot_be_used_is_refused(tmp_path):
    study_in(tmp_path)
    for name, (policy, _) in POLICIES.items():
        (tmp_path / f"{name}.toml").write_text(policy, "utf-8")
    asked = ["SELECT avg(age) FROM visits", "--epsilon", "1"]
    told = one_after_another(
        [["release", f"{name}.toml", *asked] for name in ["gone", *POLICIES]], tmp_path
    )
    told[0].refused(2, "gone.toml", "no such file", "discreet init", "Nothing was spent")
    for ended, (_, words) in zip(told[1:], POLICIES.values(), strict=True):
        ended.refused(2, *words, "Nothing was spent")


def test_data_that_cannot_be_read_is_told_without_a_row_and_its_spend_stays(tmp_path):
    folder = study_in(tmp_path)
    data = bytearray((folder / "visits.parquet").read_bytes())
    end = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    data[4:end] = b"\xff" * (end - 4)  # every page, and none of the schema
    (folder / "visits.parquet").write_bytes(data)
    told = discreet("release", "study.toml", QUESTION, "--epsilon", "0.2", cwd=folder)
    told.refused(5, "ε 0.2 was spent (entry 2)")
    with Ledger.open(folder / "study.ledger") as ledger:
        assert ledger.spent("study") == Fraction(1, 5)
