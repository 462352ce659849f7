"""An answer as a file: for spreadsheets rounded, for programs exact, for people with its question
and its method.
"""

import csv
import json
import sys
from dataclasses import replace

import openpyxl
import pyarrow.parquet
import pytest

from discreet import InvalidParameter
from discreet.show import spreadsheet
from released import answer_of, group, numbers
from studies import select, study_of

ODD = ["=1+2", "+cmd|' /C calc'!A0", "-none", "@SUM(A1)", "-5", "a|b\n\x1b*c*"]
VALUES = [4.123456789012, 5.0, -0.5, 1e-7, 1234567.891, 2.0]
SQL = "SELECT place,\n  count(*) AS people FROM t GROUP BY place"


def odd_answer():
    """Keys and names that a spreadsheet, Markdown or a terminal could take for more than text."""
    columns = {
        "=people": ("count(*)", numbers([41207, 3, -2, 0, 5, 6], 120)),
        "age": ("mean(age)", numbers(VALUES, 0.0123)),
    }
    found = answer_of([group(1, "place", ODD)], columns)
    return replace(found, query=replace(found.query, sql=SQL))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The files of a real release, by their suffix."""
    folder = tmp_path_factory.mktemp("files")
    rows = [
        {"who": str(at), "place": "north" if at % 2 else "south", "age": at % 11, "pay": 1.5}
        for at in range(400)
    ]
    sql = select(
        "place, count(*) AS people, avg(pay) AS pay, median(age) AS age",
        "WHERE age >= 1 GROUP BY place",
    )
    with study_of(rows, folder / "study.ledger") as study:
        answer = study.sql(sql, epsilon=1).release()
    return answer, {
        suffix: answer.save(folder / f"x.{suffix}")
        for suffix in ("csv", "parquet", "xlsx", "md", "txt")
    }


def cells(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_a_workbook_has_numbers_with_formats_intervals_and_texts_that_are_no_formulas(tmp_path):
    book = openpyxl.load_workbook(
        odd_answer().save(tmp_path / "x.xlsx", title="=Title", caption="@caption")
    )
    assert book.sheetnames == ["Table", "Method"]
    sheet = book["Table"]
    head, *rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert head == ["place", "=people", "=people_low", "=people_high", "age", "age_low", "age_high"]
    assert [row[0] for row in rows] == [*ODD[:5], "a|b\n\\x1b*c*"]
    assert rows[0][1:] == [41207, 41087, 41327, 4.123, 4.111, 4.136]
    assert sheet["B2"].number_format == "#,##0"
    assert sheet["E2"].number_format == "#,##0.000"
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s", "n"}
    method = {row[0].value: row[1].value for row in book["Method"].iter_rows()}
    assert {cell.data_type for row in book["Method"].iter_rows() for cell in row} == {"s"}
    assert (method["Title"], method["Source"], method["ε"], method["SQL"]) == (
        "=Title",
        "people",
        "0.2",
        SQL,
    )
    assert method["What the intervals cover"].endswith(
        "It does not cover sampling error or the effect of clamping values to their bounds."
    )
    assert "The list of keys of place is public" in method["What is public"]


def test_csv_has_no_formulas_and_no_more_digits_than_the_error_gives_a_meaning(tmp_path):
    text = odd_answer().save(tmp_path / "x.csv").read_bytes()
    head, *rows = cells(tmp_path / "x.csv")
    assert head[:2] == ["place", "'=people"]
    assert [row[0] for row in rows] == [*(f"'{key}" for key in ODD[:4]), "-5", ODD[5]]
    assert rows[0][1:] == ["41207", "41087", "41327", "4.123", "4.111", "4.136"]
    assert not text.startswith(b"\xef\xbb\xbf")
    record_grid = odd_answer().save(tmp_path / "y.csv", bom=True, decimals=1).read_bytes()
    assert record_grid.startswith(b'\xef\xbb\xbf"place"')
    assert cells(tmp_path / "y.csv")[1][1:] == ["41207", "41087", "41327", "4.1", "4.1", "4.2"]


def test_csv_takes_no_number_with_a_sign_of_formulas_for_a_number(tmp_path):
    keys = ["=5", "@5", "\t5", "=1\n", "-5\n", "\n=1+2", "\uff1d1+2", "\uff20SUM(A1)"]
    answer = answer_of(
        [group(1, "place", [*keys, "+5", "-0.5"])], {"n": ("count(*)", numbers(list(range(10)), 1))}
    )
    _, *rows = cells(answer.save(tmp_path / "x.csv"))
    assert [row[0] for row in rows] == [*(f"'{key}" for key in keys), "+5", "-0.5"]


def test_parquet_and_json_are_exact(tmp_path):
    exact = odd_answer().to_dict()
    assert exact["age"] == VALUES
    for suffix in ("parquet", "json"):
        odd_answer().save(tmp_path / f"{suffix}.{suffix}", decimals=0, title="t")
    assert pyarrow.parquet.read_table(tmp_path / "parquet.parquet").to_pydict() == exact
    assert json.loads((tmp_path / "json.json").read_text("utf-8")) == exact


def test_markdown_opens_with_the_question_and_escapes_keys(tmp_path):
    text = (
        odd_answer().save(tmp_path / "x.md", title="Ages *all*", caption="Below").read_text("utf-8")
    )
    title, caption, source, words, sql, *_ = text.split("\n\n")
    assert (title, caption, source) == ("# Ages \\*all\\*", "Below", "Source: people")
    assert words.startswith("For each place, =people is the number of rows")
    assert sql == f"```sql\n{SQL}\n```"
    assert "| a\\|b\\\\n\\\\x1b\\*c\\* | 6 ± 120 | 2.000 ± 0.013 |" in text
    assert (
        "| place | =people | age |\n| --- | ---: | ---: |\n| =1+2 | 41,207 ± 120 | 4.123 ± 0.013 |"
        in text
    )
    assert text.index("| place |") < text.index("## How these numbers were made") < text.index("ε")


def test_markdown_makes_no_link_list_or_formula_of_a_text(tmp_path):
    keys = ["www.example.org", "see http://example.org", "$x$ and $y$"]
    answer = answer_of([group(1, "place", keys)], {"n": ("count(*)", numbers([1, 2, 3], 1))})
    captions = {
        "- one": r"\- one",
        "+ one": r"\+ one",
        "1. one": r"1\. one",
        "12) one": r"12\) one",
        "---": r"\---",
    }
    for number, (caption, shown) in enumerate(
        {**captions, "    code": "code", "-5": r"\-5", "5.1": "5.1"}.items()
    ):
        text = answer.save(tmp_path / f"{number}.md", caption=caption).read_text("utf-8")
        assert text.split("\n\n")[1] == shown
    for mark in (r"| www\.example.org |", r"| see http\://example.org |", r"| \$x\$ and \$y\$ |"):
        assert mark in text


def test_names_of_sheets_are_as_long_as_excel_counts_them():
    names = spreadsheet._sheet_names(["\U00020000" * 20, "\U00020000" * 20, "a" * 30 + "'b"])
    assert [len(name.encode("utf-16-le")) // 2 for name in names] == [30, 30, 30]
    assert len(set(names)) == 3
    assert not any(name.endswith("'") for name in names)


def test_no_table_has_the_name_of_a_record(tmp_path):
    with pytest.raises(InvalidParameter, match=r"x\.release\.json has the name of a record"):
        odd_answer().save(tmp_path / "x.release.json")
    assert list(tmp_path.iterdir()) == []


def test_text_has_aligned_columns(released):
    answer, files = released
    text = files["txt"].read_text("utf-8")
    assert text.startswith(
        "People, pay, age by place\n=========================\n\nSource: study, version v"
    )
    words = text.split("\n\n")[2].replace("\n", " ")
    assert (
        words
        == "For each place, people is the number of rows, pay is the mean of pay and age is the"
        " median of age. Only rows where age >= 1 are counted."
    )
    table = text.split("\n\n")[4].splitlines()
    assert [line.split("  ")[0] for line in table] == ["place", "north", "south", "west"]
    assert all(line.isprintable() for line in text.splitlines())
    assert answer.query.sql in text


def test_every_form_of_a_release_has_the_same_rounded_numbers(released):
    answer, files = released
    head, *rows = cells(files["csv"])
    sheet = openpyxl.load_workbook(files["xlsx"])["Table"]
    book = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert book[0] == head
    assert [[key, *map(float, numbers)] for key, *numbers in rows] == book[1:]
    exact = answer.to_dict()
    for name in ("people", "pay", "age"):
        near = {
            end: [float(row[head.index(name + end)]) for row in rows]
            for end in ("", "_low", "_high")
        }
        assert all(one <= two for one, two in zip(near["_low"], exact[f"{name}_low"], strict=True))
        assert all(
            one >= two for one, two in zip(near["_high"], exact[f"{name}_high"], strict=True)
        )
        assert all(len(row[head.index(name)]) <= 8 for row in rows)
    # the median of whole numbers is whole
    assert all(row[head.index("age")].isdigit() for row in rows)
    shown = {row[0]: row[1].split(" ")[0] for row in answer.cells}
    assert {row[0]: f"{int(row[1]):,}" for row in rows} == shown


def test_decimals_may_be_by_column(released):
    answer, _ = released
    before = [row[2] for row in answer.cells]
    after = [row[2] for row in answer.shown({"pay": 0})]
    assert before != after
    assert all("." not in cell for cell in after)
    for decimals, words in (
        (13, "from 0 to 12, got 13"),
        (True, "got True"),
        ({"x": 1}, "of a column"),
        (0.5, "0.5"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            answer.shown(decimals)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    with pytest.raises(InvalidParameter, match=r"bom is only for \.csv"):
        odd_answer().save(tmp_path / "x.xlsx", bom=True)
    monkeypatch.setattr(spreadsheet, "_ROWS", 6)
    with pytest.raises(
        InvalidParameter,
        match=r"a sheet has at most 5 rows, but x\.xlsx has 6: save it as \.parquet",
    ):
        odd_answer().save(tmp_path / "x.xlsx")
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(
        InvalidParameter, match=r"^\.xlsx needs XlsxWriter: pip install 'discreet\[xlsx\]'$"
    ):
        odd_answer().save(tmp_path / "x.xlsx")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_missing_endless_or_huge_do_not_fail(tmp_path):
    ends = {
        "value": [3.5, None, -2.0],
        "low": [1.0, None, float("-inf")],
        "high": [6.0, None, float("inf")],
    }
    huge = numbers([2**70, 1, 2], 1)
    found = answer_of(
        [group(1, "k", list("abc"))], {"x": ("mean(x)", ends), "n": ("count(*)", huge)}
    )
    rows = openpyxl.load_workbook(found.save(tmp_path / "x.xlsx"))["Table"].iter_rows(
        values_only=True
    )
    assert list(rows)[1:] == [
        ("a", 3.5, 1, 6, *[pytest.approx(2.0**70)] * 3),
        ("b", None, None, None, 1, 0, 2),
        ("c", -2, None, None, 2, 1, 3),
    ]
    assert cells(found.save(tmp_path / "x.csv"))[2][:4] == ["b", "", "", ""]
    assert "-2 (-inf to inf)" in found.save(tmp_path / "x.md").read_text("utf-8")
