"""`discreet report`: the price of all tables first, then one spend and one folder."""

import json
import re
from fractions import Fraction

import openpyxl
import pytest

from discreet import Ledger
from shell import CANARY, contents, discreet, study_in

REPORT = """study = "study.toml"
title = "Visits 2026"
epsilon = "0.5"
[tables.by_county]
sql = "SELECT county, count(*) AS visits, avg(age) AS age FROM visits GROUP BY county"
[tables.wellness]
sql = "SELECT count(*) AS visits, avg(age > 40) AS older FROM visits"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study and a report that was planned and released."""
    place = study_in(tmp_path_factory.mktemp("report"))
    (place / "report.toml").write_text(REPORT, "utf-8")
    return place


@pytest.fixture(scope="module")
def released(folder):
    planned = discreet("report", "plan", "report.toml", cwd=folder)
    assert not (folder / "study.ledger").exists()  # a plan makes no ledger
    return planned, discreet("report", "release", "report.toml", "-o", "out/", cwd=folder)


def spent(folder) -> Fraction:
    with Ledger.open(folder / "study.ledger") as ledger:
        return ledger.spent("study")


def test_a_plan_shows_price_errors_and_sets_and_spends_nothing(released):
    planned, _ = released
    assert planned.code == 0, planned.err
    lines = planned.out.splitlines()
    assert lines[0].startswith("2 tables · ε 0.5 of 1 for all together (0.5 left after) · ")
    assert lines[1].split() == ["table", "rows", "error", "(95", "%)", "one", "by", "one"]
    names = ["by_county: visits", "by_county: age", "wellness: visits", "wellness: older"]
    assert [line.partition("  ")[0] for line in lines[2:6]] == names
    assert lines[6].startswith("measured: county × ")
    assert lines[7] == "All tables agree: every patient counts in all of them alike."
    assert lines[-2:] == [
        "Nothing was spent. Release it with:",
        "discreet report release report.toml -o report/",
    ]


def test_a_release_spends_once_and_writes_a_folder(folder, released):
    _, ended = released
    assert ended.code == 0, ended.err
    wrote = "Wrote out/index.html, 2 tables as CSV and Parquet, visits-2026.release.json"
    assert ended.out == f"ε 0.5 spent, 0.5 left (entry 2 of study.ledger). {wrote}\n"
    files = {"index.html", "visits-2026.release.json"}
    files |= {f"{name}.{form}" for name in ("by_county", "wellness") for form in ("csv", "parquet")}
    assert set(contents(folder / "out")) == files
    assert not any(CANARY.encode() in file.read_bytes() for file in (folder / "out").iterdir())
    with Ledger.open(folder / "study.ledger") as ledger:
        assert [entry.kind for entry in ledger.entries()][:3] == ["create", "spend", "answer"]


def test_a_report_may_be_one_file_with_titles_captions_and_decimals_of_its_own(folder, released):
    assert released[1].code == 0
    words = 'caption = "Said in the file."\ndecimals = 3\nepsilon'
    own = '[tables.wellness]\ntitle = "How well?"\ncaption = "Of all."\ndecimals = 1'
    text = REPORT.replace("epsilon", words).replace("[tables.wellness]", own)
    (folder / "look.toml").write_text(text, "utf-8")
    plain = discreet("report", "release", "look.toml", "-o", "look.md", cwd=folder)
    assert plain.out.endswith("Wrote look.md, look.release.json\n"), plain.err
    page = (folder / "look.md").read_text("utf-8")
    assert page.startswith(
        "# Visits 2026\n\nSaid in the file.\n\nSource: study, version 1 · Released on "
    )
    assert "## How well?\n\nOf all.\n\nvisits is the number of rows" in page
    assert re.search(r"\| Dukes \| [\d,.]+\.\d{3} ", page)
    assert re.search(r"\n\| [\d,]+\.\d ± ", page)
    sheet = ["-o", "look.xlsx", "--title", "Ours", "--decimals", "0", "--force"]
    assert discreet("report", "release", "look.toml", *sheet, cwd=folder).code == 0
    book = openpyxl.load_workbook(folder / "look.xlsx")
    assert book.sheetnames == ["by_county", "wellness", "Method"]
    assert book["by_county"]["B2"].number_format == "#,##0"
    method = {row[0].value: row[1].value for row in book["Method"].iter_rows()}
    assert method["Title"] == "Ours"
    assert (
        method["SQL of wellness"] == "SELECT count(*) AS visits, avg(age > 40) AS older FROM visits"
    )
    assert "It does not cover sampling error" in method["What the intervals cover"]
    for name, bad in (("bom.md", ["--bom"]), ("d.md", ["--decimals", "13"])):
        refused = discreet("report", "release", "look.toml", "-o", name, *bad, cwd=folder)
        refused.refused(2, bad[0].removeprefix("--"))
    (folder / "bad.toml").write_text(REPORT.replace("epsilon", 'decimals = "x"\nepsilon'), "utf-8")
    discreet("report", "plan", "bad.toml", cwd=folder).refused(
        2, "decimals must be a whole number from 0 to 12"
    )
    assert spent(folder) == Fraction(1, 2)


def test_asked_again_it_is_free_and_gives_the_same_files(folder, released):
    assert released[1].code == 0
    before = {
        name: one
        for name, one in contents(folder / "out").items()
        if name.endswith((".csv", ".parquet"))
    }
    again = discreet(
        "report", "release", "report.toml", "-o", "out", "--force", "--request-id", "r", cwd=folder
    )
    assert re.match(
        r"ε 0 spent \(asked before\), 0\.5 left \(entry \d+ of study\.ledger\)\. Wrote"
        r" out/index\.html",
        again.out,
    )
    assert before.items() <= contents(folder / "out").items()
    known = discreet(
        "report", "release", "report.toml", "-o", "json", "--request-id", "r", "--json", cwd=folder
    )
    found = json.loads(known.out)
    assert found["left"] == "1/2"
    assert list(found["tables"]) == ["by_county", "wellness"]
    assert found["tables"]["by_county"]["county"] == ["Dukes", "Essex", "Suffolk"]
    assert found["record"]["epsilon"] == "1/2"
    assert found["saved"][0] == "json/index.html"
    assert spent(folder) == Fraction(1, 2)
    planned = discreet("report", "plan", "report.toml", cwd=folder)
    assert "ε 0.5 of 1 for all together (asked before: free, 0.5 left)" in planned.out


def test_a_table_of_a_report_asked_alone_costs_nothing_and_says_so(folder, released):
    assert released[1].code == 0
    sql = "SELECT county, count(*) AS visits, avg(age) AS age FROM visits GROUP BY county"
    alone = discreet("release", "study.toml", sql, "--epsilon", "0.5", cwd=folder)
    assert (
        alone.out.splitlines()[-1]
        == "ε 0 spent (asked before), 0.5 left (entry 2 of study.ledger)."
    )
    assert spent(folder) == Fraction(1, 2)


def test_a_plan_in_json_has_exact_numbers(folder):
    found = json.loads(discreet("report", "plan", "report.toml", "--json", cwd=folder).out)
    assert found["epsilon"] == "1/2"
    assert sum(Fraction(one["epsilon"]) for one in found["measured"]) == Fraction(1, 2)
    assert [(line["table"], line["column"]) for line in found["lines"]][::2] == [
        ("by_county", "visits"),
        ("wellness", "visits"),
    ]


def test_what_cannot_be_written_or_asked_is_refused_before_anything_is_spent(tmp_path):
    folder = study_in(tmp_path)
    (folder / "report.toml").write_text(REPORT, "utf-8")
    (folder / "taken").mkdir()
    (folder / "taken" / "wellness.parquet").write_bytes(b"mine")
    release = ["report", "release", "report.toml", "-o"]
    discreet(*release, "taken", cwd=folder).refused(
        2, "wellness.parquet does", "Nothing was spent."
    )
    discreet(*release, "visits.parquet", cwd=folder).refused(
        2, "visits.parquet is a file", "Nothing was spent."
    )
    discreet(*release, "none/out", cwd=folder).refused(2, "the folder of out must exist")
    discreet(*release[:3], cwd=folder).refused(2, "--output")
    wrong = {
        "study.toml": ("none.toml", "none.toml: there is no such file"),
        "title =": ("titel =", "report.toml: titel is not a key of a report; did you mean title?"),
        "avg(age > 40)": ("median(age)", "wellness: a report may have counts, sums and means"),
        "avg(age > 40) AS": ("avg(agge > 40) AS", "wellness: ", "did you mean age?"),
        '"0.5"': ('"1.5"', "only 1"),
    }
    for old, (new, *words) in wrong.items():
        (folder / "report.toml").write_text(REPORT.replace(old, new), "utf-8")
        code = 3 if new == '"1.5"' else 2
        ended = discreet(*release, "out", cwd=folder)
        assert not (folder / "out").exists()
        ended.refused(code, "othing was spent", *(words if code == 2 else ()))
    (folder / "report.toml").write_text(REPORT, "utf-8")
    discreet("ledger", "allot", "study.toml", "ann", "0.1", cwd=folder)
    discreet(*release, "out", "--analyst", "ann", cwd=folder).refused(3, "nothing was spent")
    assert not (folder / "out").exists()
    (folder / "report.toml").write_text(REPORT.replace('"0.5"', '"1.5"'), "utf-8")
    poor = discreet("report", "plan", "report.toml", cwd=folder)
    assert (
        poor.out.splitlines()[-1]
        == "Nothing was spent. A release would be refused: only ε 1 is left."
    )
    assert spent(folder) == 0
    assert (folder / "taken" / "wellness.parquet").read_bytes() == b"mine"


def test_a_folder_that_fails_after_the_spend_says_that_the_report_is_kept(tmp_path, monkeypatch):
    folder = study_in(tmp_path)
    (folder / "report.toml").write_text(REPORT, "utf-8")
    from discreet.show import tables

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables, "write", full)
    failed = discreet("report", "release", "report.toml", "-o", "out", cwd=folder)
    failed.refused(
        5, "the report could not be written: No space left on device", "The ledger keeps it"
    )
    assert spent(folder) == Fraction(1, 2)
    monkeypatch.undo()
    again = discreet("report", "release", "report.toml", "-o", "out", "--force", cwd=folder)
    assert again.out.startswith("ε 0 spent (asked before), 0.5 left")
