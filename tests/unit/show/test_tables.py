"""A report is a folder: each table in two formats, one page that needs nothing else, the record,
and rows if wanted.
"""

import html
import json
import re
from fractions import Fraction

import openpyxl
import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet import InvalidParameter
from discreet.show import tables
from reports import MARKUP, TABLES, plan_in, study_in


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A released report with whole counts and rows, in its folder."""
    folder = tmp_path_factory.mktemp("report")
    report = plan_in(folder, integers=True, rows="rows.parquet").release()
    return report, folder / "out", report.save(folder / "out")


def test_a_report_becomes_a_folder(saved):
    report, folder, files = saved
    names = ["index.html", *(f"{name}.{form}" for name in TABLES for form in ("csv", "parquet"))]
    assert [file.name for file in files] == [*names, "people-more.release.json", "rows.parquet"]
    assert sorted(file.name for file in folder.iterdir()) == sorted(file.name for file in files)
    for name, answer in report.tables.items():
        columns = pyarrow.parquet.read_table(folder / f"{name}.parquet").to_pydict()
        assert columns == answer.to_dict()
        near = pyarrow.csv.read_csv(folder / f"{name}.csv").to_pydict()
        assert near["people"] == columns["people"]  # whole
        assert near.keys() == columns.keys()
    record = json.loads((folder / "people-more.release.json").read_text("utf-8"))
    assert record == {**report.record, "entry": report.entry, "card": report.card().content}


def test_rows_are_labelled_and_reproduce_the_counts(saved):
    report, folder, _ = saved
    rows = pyarrow.parquet.read_table(folder / "rows.parquet")
    label = rows.schema.metadata[b"discreet"].decode()
    assert "They reproduce the counts of by_county, by_level, both, exactly." in label
    assert "They reproduce nothing else" in label
    counted = dict(
        zip(
            *[column.to_pylist() for column in rows["county"].value_counts().flatten()], strict=True
        )
    )
    shown = dict(zip(report["by_county"]["county"], report["by_county"]["people"], strict=True))
    assert {county: counted.get(county, 0) for county in shown} == shown
    assert label in html.unescape((folder / "index.html").read_text("utf-8"))


def test_the_page_says_how_the_numbers_were_made(saved):
    report, folder, _ = saved
    text = html.unescape((folder / "index.html").read_text("utf-8"))
    assert text.startswith("<!doctype html>")
    assert "<title>People & <more></title>" in text
    opening, _, method = text.partition("How these numbers were made</h2>")
    assert "Source: study, version 1 · Released on 2" in opening
    assert "3 tables. All tables agree: every row counts in all of them alike." in opening
    assert "For each county, people is the number of rows and age is the mean of age." in opening
    assert all(sql in opening for sql in TABLES.values())
    assert "ε" not in opening.partition("<figure>")[0]
    assert "ε = 1 was spent" in method
    assert (
        "ε = 1 was spent; 2 was left of the study's total. If one row is added or removed" in text
    )
    for cells in tables.measured_sets(report.plan):
        assert tables.set_text(cells) in text
        assert f">{float(Fraction(cells['epsilon'])):.4g}<" in text
    assert (
        "age is measured by two cells. A row adds the place of its value between 0 and 120" in text
    )
    assert "Counts are whole and not negative: they count one synthetic set of rows" in text
    assert "Each exact number lies within its ± in 95 % of releases." in text
    assert (
        "It does not cover sampling error or the effect of clamping values to their bounds." in text
    )
    assert text.count("<svg") == 3


def test_the_page_needs_no_network_runs_nothing_and_escapes_keys(saved):
    _, folder, files = saved
    text = (folder / "index.html").read_text("utf-8")
    assert "<script" not in text
    assert MARKUP not in text
    assert html.escape(MARKUP) in text
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= namespaces
    inside = {f"#{name}" for name in (*TABLES, "method")}
    assert set(re.findall(r'href="([^"]+)"', text)) == inside | {file.name for file in files} - {
        "index.html"
    }
    assert "prefers-color-scheme: dark" in text


def test_a_long_table_is_shortened_and_leads_to_its_files(saved):
    text = (saved[1] / "index.html").read_text("utf-8")
    assert text.count("<tr>") < 80
    assert 'All 27 rows: <a href="both.csv">CSV</a>, <a href="both.parquet">Parquet</a>' in text


def test_decimals_together_and_no_rows_are_said(tmp_path):
    report = plan_in(tmp_path, simultaneous=True, title="…").release()
    files = report.save(tmp_path / "out")
    text = html.unescape(files[0].read_text("utf-8"))
    assert (
        "In at least 95 % of releases, all exact numbers of all 3 tables of this report lie within"
        " their ± at once." in text
    )
    assert "an equal part of the probability of a miss (Bonferroni)" in text
    assert "Counts may be negative or fractional. They are not corrected" in text
    assert "synthetic" not in text
    assert files[-1].name == "report.release.json"


def test_a_report_is_one_file_where_that_is_asked_for(saved, tmp_path):
    report, _, _ = saved
    names = {}
    for suffix in (".html", ".txt", ".xlsx"):
        path = tmp_path / f"all{suffix}"
        first, record, rows = report.save(path, force=suffix != ".html", caption="Mine.")
        assert (first, record.name, rows.name) == (path, "all.release.json", "rows.parquet")
        names[suffix] = path
    page = names[".html"].read_text("utf-8")
    assert set(re.findall(r'href="([^"]+)"', page)) == {f"#{name}" for name in (*TABLES, "method")}
    assert page.count("<tr>") > 27  # all rows: there are no other files
    text = names[".txt"].read_text("utf-8")
    assert text.startswith(
        "People & <more>\n===============\n\nMine.\n\nSource: study, version 1 · Released on 2"
    )
    assert (
        text.index("both\n----") < text.index("How these numbers were made") < text.index("ε = 1")
    )
    book = openpyxl.load_workbook(names[".xlsx"])
    assert book.sheetnames == [*TABLES, "Method"]
    assert len(list(book["both"].iter_rows())) == 28
    with pytest.raises(InvalidParameter, match=r"the target must not exist, and all\.html does"):
        report.save(names[".html"])


def test_nothing_is_overwritten_without_force(saved):
    report, folder, files = saved
    (folder / "index.html").write_text("mine", "utf-8")
    with pytest.raises(InvalidParameter, match=r"the target must not exist, and index\.html does"):
        report.save(folder)
    assert (folder / "index.html").read_text("utf-8") == "mine"
    assert report.save(folder, force=True) == files
    assert (folder / "index.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder.write_text("a file"), "a report needs a folder, but out is a file"),
        (
            lambda folder: folder.mkdir() or (folder / "both.csv").mkdir(),
            "must be a plain file, and both.csv is not",
        ),
        (
            lambda folder: folder.mkdir() or (folder / "both.csv").symlink_to("x"),
            "both.csv is a link",
        ),
    ],
)
def test_a_folder_that_does_not_take_the_files_is_refused_before_the_first_of_them(
    tmp_path, make, message
):
    plan = plan_in(tmp_path)
    make(tmp_path / "out")
    with pytest.raises(InvalidParameter, match=message):
        tables.refuse_taken(plan, tmp_path / "out", force=True)
    with pytest.raises(InvalidParameter, match="the folder of out must exist"):
        tables.refuse_taken(plan, tmp_path / "none" / "out")


def test_files_of_the_study_are_not_replaced_even_with_force(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "keys.csv").write_text("county\nDukes\nEssex\n", "utf-8")
    study = study_in(tmp_path)
    policy = {
        name: getattr(study.policy, name) for name in ("source", "epsilon", "version", "neighbors")
    }
    study.close()
    from discreet import Policy, Study

    columns = {"county": {"keys": str(out / "keys.csv")}}
    other = Study(Policy(columns=columns, **policy), ledger=tmp_path / "other.ledger", name="other")
    plan = other.report({"keys": "SELECT county, count(*) FROM data GROUP BY county"}, epsilon=1)
    with pytest.raises(
        InvalidParameter, match=r"keys\.csv is, or would be, among the data, keys, policy or ledger"
    ):
        tables.refuse_taken(plan, out, force=True)


def test_rows_have_a_file_of_their_own_and_groups(tmp_path):
    plan = plan_in(tmp_path, rows="both.parquet")
    with pytest.raises(
        InvalidParameter, match=r"rows must have a file of their own, but both\.parquet is the file"
    ):
        tables.refuse_taken(plan, tmp_path / "out")
    with pytest.raises(InvalidParameter, match="rows must name a file beside the tables"):
        plan.study.report(TABLES, epsilon=1, rows="../rows.parquet")
    with pytest.raises(
        InvalidParameter, match="rows needs group columns in the tables, and there are none"
    ):
        plan.study.report({"all": "SELECT count(*) FROM data"}, epsilon=1, rows="rows.parquet")


def test_a_report_may_have_a_total_alone(tmp_path):
    whole = (
        study_in(tmp_path)
        .report({"all": "SELECT count(*) AS n FROM data"}, epsilon=1, integers=True)
        .release()
    )
    assert isinstance(whole["all"]["n"][0], int)
    assert "<p>1 table. " in whole.save(tmp_path / "out")[0].read_text("utf-8")


def test_a_condition_is_said_with_its_table(tmp_path):
    few = TABLES["by_county"].replace(" GROUP", " WHERE level = 3 GROUP")
    tables_asked = {"few": few, "both": TABLES["both"]}
    page = (
        study_in(tmp_path)
        .report(tables_asked, epsilon=1)
        .release()
        .save(tmp_path / "out")[0]
        .read_text("utf-8")
    )
    assert html.unescape(page).count("Only rows where level = 3 are counted.") == 1


def test_a_question_that_is_refused_says_of_which_table(tmp_path):
    study = study_in(tmp_path)
    with pytest.raises(Exception, match=r"^by_age: "):
        study.report(
            {"by_county": TABLES["by_county"], "by_age": "SELECT agge FROM data"}, epsilon=1
        )
    with pytest.raises(InvalidParameter, match="the name of a table must be letters"):
        study.report({"a/b": TABLES["by_county"]}, epsilon=1)
    assert study.spent == 0
