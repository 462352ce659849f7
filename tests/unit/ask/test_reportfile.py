"""A report in a file: each error is one sentence that names the file, the key and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.ask.reportfile import ReportFile, refuse_names, rows_file
from discreet.errors import InvalidParameter

REPORT = """
study   = "studies/study.toml"
title   = "Visits 2026"
epsilon = "1/2"
confidence = 0.9
simultaneous = true
integers = true
rows = "rows.parquet"
[tables.by_county]
sql = "SELECT county, count(*) FROM visits GROUP BY county"
[tables.by-ward]
sql = "SELECT ward, count(*) FROM visits GROUP BY ward"
weight = 2
"""


def load(folder: Path, text: str) -> ReportFile:
    (folder / "report.toml").write_text(text, "utf-8")
    return ReportFile.load(folder / "report.toml")


def test_a_file_says_what_is_asked_and_at_what_price(tmp_path: Path) -> None:
    file = load(tmp_path, REPORT)
    assert file.study == tmp_path / "studies" / "study.toml"
    assert list(file.tables) == ["by_county", "by-ward"]
    assert file.tables["by-ward"] == "SELECT ward, count(*) FROM visits GROUP BY ward"
    look = file.terms["presentation"]
    assert (look.title, look.caption, look.decimals) == ("Visits 2026", None, None)
    assert {name: value for name, value in file.terms.items() if name != "presentation"} == {
        "title": "Visits 2026",
        "epsilon": "1/2",
        "confidence": 0.9,
        "simultaneous": True,
        "integers": True,
        "rows": "rows.parquet",
        "weights": {"by-ward": 2},
        "within": None,
    }


@pytest.mark.parametrize(
    ("common", "own", "within"),
    [
        ("within = 50", "", {"by_county": 50, "by-ward": 50}),
        ("within = 50", "within = 9", {"by_county": 50, "by-ward": 9}),
        ("", "within = 9", {"by-ward": 9}),
    ],
)
def test_errors_are_asked_for_all_tables_or_by_table(
    tmp_path: Path, common: str, own: str, within: object
) -> None:
    text = REPORT.replace('epsilon = "1/2"', common) + own
    assert load(tmp_path, text).terms["within"] == within


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('study   = "studies/study.toml"', "", 'study is missing; write study = "study.toml"'),
        (
            'study   = "studies/study.toml"',
            "study = 3",
            "study: it must be a text, got 3; write study =",
        ),
        ("title ", "tittle ", "tittle is not a key of a report; did you mean title?"),
        ('title   = "Visits 2026"', "title = 2026", "title: it must be a text"),
        (
            'epsilon = "1/2"',
            "",
            'write either epsilon = "1", the budget of all tables together, or within = 50',
        ),
        ('epsilon = "1/2"', 'epsilon = "1"\nwithin = 5', "write either epsilon"),
        ("weight = 2", "within = 5", "write either epsilon"),
        ('epsilon = "1/2"', "epsilon = 0", "epsilon must be positive, got 0"),
        ('epsilon = "1/2"', 'within = "near"', "within must be a positive number"),
        ("confidence = 0.9", "confidence = 95", "confidence must"),
        ("simultaneous = true", "simultaneous = 1", "simultaneous must be true or false, got 1"),
        ("integers = true", 'integers = "yes"', "integers must be true or false, got 'yes'"),
        (
            'rows = "rows.parquet"',
            'rows = "../rows.parquet"',
            "rows must name a file beside the tables",
        ),
        ('rows = "rows.parquet"', 'rows = "rows.csv"', "rows must name a file beside the tables"),
        ("weight = 2", "weight = -2", "tables.by-ward: weight must be positive, got -2"),
        (
            "weight = 2",
            "wieght = 2",
            "tables.by-ward.wieght is not a key of a table; did you mean weight?",
        ),
        ("[tables.by-ward]\nsql", "[tables.by-ward]\n#", "tables.by-ward: its question is missing"),
        (
            "[tables.by-ward]\nsql =",
            "[tables.by-ward]\nsql = 1 #",
            "tables.by-ward: it must be a text, got 1",
        ),
        (
            "[tables.by-ward]",
            '[tables."../by"]',
            "the name of a table must be letters, digits, _ and -",
        ),
        (
            "[tables.by-ward]",
            '[tables."by ward"]',
            "the name of a table must be letters, digits, _ and -",
        ),
        (
            "[tables.by-ward]",
            "[tables.By_County]",
            "tables must have different file names, got 'by_county'",
        ),
        ("[tables.by-ward]", "[tables.by-ward", "the file must be TOML"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in REPORT
    with pytest.raises(InvalidParameter) as refused:
        load(tmp_path, REPORT.replace(old, new))
    assert str(refused.value).startswith("report.toml: ")
    assert message in str(refused.value)


def test_tables_are_needed(tmp_path: Path) -> None:
    head = REPORT.partition("[tables")[0]
    with pytest.raises(
        InvalidParameter, match=r"tables is missing; write \[tables\.by_county\] and under it sql ="
    ):
        load(tmp_path, head)
    for tables in ("tables = 3", "[tables]", 'tables.a = "SELECT 1"'):
        with pytest.raises(InvalidParameter, match=r"report.toml: tables"):
            load(tmp_path, f"{head}\n{tables}\n")
    with pytest.raises(InvalidParameter, match="there is no such file"):
        ReportFile.load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "-a", "a.csv", "a\n", "x" * 61, 3, None]
)
def test_a_name_that_no_file_should_have_is_refused(name: object) -> None:
    with pytest.raises(InvalidParameter, match="the name of a table"):
        refuse_names([name])
    with pytest.raises(InvalidParameter, match="rows must name a file"):
        rows_file(f"{name}.parquet" if name not in ("a.csv", 3, None) else name)


def test_names_that_are_one_file_somewhere_are_refused() -> None:
    refuse_names(["by_county", "by-county", "Größe"])
    for two in (["a", "A"], ["straße", "STRASSE"], ["\u212bs", "\u00c5s"]):
        with pytest.raises(InvalidParameter, match="tables must have different file names"):
            refuse_names(two)
