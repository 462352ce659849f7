"""What a notebook shows: tables in which every text is escaped, and no color but the notebook's
own.
"""

import math
import re
from html.parser import HTMLParser

import pytest

import discreet
from discreet import InvalidParameter
from discreet.show import html
from released import answer_of, group, numbers
from reports import MARKUP, plan_in
from studies import select, study_of

ODD = "<script>alert(\"1\")</script> & 'x'"


class Cells(HTMLParser):
    """The texts of the cells, by row, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open_tags

    @property
    def open_tags(self) -> list[str]:
        return [
            tag
            for tag in set(self.tags)
            if self.tags.count(tag) != self.tags.count(f"/{tag}") and tag[0] != "/"
        ]

    def handle_starttag(self, tag, _attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.tags.append(f"/{tag}")

    def handle_data(self, data):
        if self.tags and self.tags[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_an_answer_is_a_table_and_a_key_is_escaped():
    answer = answer_of(
        [group(1, ODD, [ODD, "b"])], {"<i>": ("count(*)", numbers([41207, -3], 120))}
    )
    cells = Cells(answer._repr_html_())
    assert cells.rows == [[ODD, "<i>"], [ODD, "41,207 ± 120"], ["b", "-3 ± 120"]]
    assert set(cells.tags) <= {
        mark + tag
        for tag in ("div", "table", "thead", "tbody", "tr", "th", "td")
        for mark in ("", "/")
    }
    assert "ε 0.2 spent, 0.8 left" in answer._repr_html_()


def test_a_long_answer_shows_its_beginning_and_its_end():
    keys = [f"k{number}" for number in range(3143)]
    text = answer_of(
        [group(1, "k", keys)], {"n": ("count(*)", numbers(list(range(3143)), 1))}
    )._repr_html_()
    rows = Cells(text).rows
    assert [row[0] for row in rows[1:]] == [*keys[:10], "…", *keys[-10:]]
    assert "3,143 rows" in text


def test_missing_and_endless_numbers_do_not_fail():
    ends = {
        "value": [3.5, None, -2.0],
        "low": [1.0, None, -math.inf],
        "high": [6.0, None, math.inf],
    }
    rows = Cells(
        answer_of([group(1, "k", list("abc"))], {"x": ("mean(x)", ends)})._repr_html_()
    ).rows
    assert rows[1:] == [["a", "3.5 ± 2.5"], ["b", ""], ["c", "-2 (-inf to inf)"]]


def test_plans_studies_and_ledgers_are_tables(tmp_path):
    with study_of([{"age": 3}], tmp_path / "study.ledger", epsilon=2) as study:
        plan = study.sql(select("place, count(*) AS people", "GROUP BY place"), epsilon="0.2")
        assert Cells(plan._repr_html_()).rows == [
            ["column", "Δ", "scale", "error (95 %)"],
            ["people", "2", "10", "± 30"],
        ]
        assert "Nothing was read, nothing is spent." in plan._repr_html_()
        plan.release()
        assert Cells(study._repr_html_()).rows[:4] == [
            ["column", "declared"],
            ["place", "3 keys"],
            ["level", "2 keys"],
            ["age", "0 to 10"],
        ]
        assert "ε 1.8 of 2 left" in study._repr_html_()
        assert Cells(study.ledger._repr_html_()).rows[1] == ["study", "2", "0.2", "1.8"]


def test_releases_out_of_memory_are_tables():
    ages = [30.0, 40.0, 70.0] * 100
    histogram = discreet.histogram(ages, bins=[0, 50, 60, 120], epsilon=1)
    rows = Cells(histogram._repr_html_()).rows
    assert [row[0] for row in rows] == ["bin", "0 to 50", "50 to 60", "60 to 120"]
    assert [row[1] for row in rows[1:]] == [str(count) for count in histogram.value.tolist()]
    assert len(Cells(discreet.cdf(ages, bounds=(0, 120), epsilon=1)._repr_html_()).rows) == 22
    mean = discreet.mean(ages, bounds=(0, 120), epsilon=1)
    assert Cells(mean._repr_html_()).rows[1][0] == "mean"
    both = discreet.mean_and_std(ages, bounds=(0, 120), epsilon=1)
    assert [row[0] for row in Cells(both._repr_html_()).rows] == ["statistic", "mean", "std"]
    top = discreet.max(ages, bounds=(0, 120), epsilon=1)
    assert "records lie above" in top._repr_html_()


def test_colors_are_the_notebooks_own():
    text = answer_of([group(1, "k", ["a"])], {"n": ("count(*)", numbers([1], 1))})._repr_html_()
    assert "<style" not in text
    assert not re.search(r"#[0-9a-f]{3,6}|(?<!-)color:(?!inherit)", text)


def test_what_has_no_table_is_refused():
    with pytest.raises(InvalidParameter, match="expected a plan, an answer"):
        html.of(3)


def test_a_report_shows_its_plan_and_its_tables(tmp_path):
    plan = plan_in(tmp_path)
    text = plan._repr_html_()
    assert Cells(text).rows == plan.table
    for said in (
        plan.summary,
        "measured: county × ",
        plan.agreement,
        "Nothing was read, nothing is spent.",
    ):
        assert said in text
    report = plan.release()
    text = report._repr_html_()
    answers = list(report.tables.values())
    shown = [row for answer in answers[:2] for row in (answer.columns, *answer.cells)]
    assert Cells(text).rows[: len(shown)] == shown
    assert MARKUP not in text
    for said in (
        "People &amp; &lt;more&gt;",
        "by_county",
        "both",
        "27 rows",
        "ε 1 spent, 2 left · add-remove",
    ):
        assert said in text
