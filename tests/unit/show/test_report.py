"""A report is one file: the numbers, the figure, what they cost, and the record that they are made of."""

import html
import json
import re

import pytest

from discreet import InvalidParameter
from discreet.show import report
from released import answer_of, group, numbers

ODD = "<script>alert(1)</script>"


def answer():
    return answer_of([group(1, "county", [ODD, "b"])], {"people": ("count(*)", numbers([41207, -3], 120))})


def test_a_report_has_everything_in_one_file(tmp_path):
    text = report.write(answer(), tmp_path / "it.html", title="Ages & <more>").read_text(encoding="utf-8")
    assert "<title>Ages &amp; &lt;more&gt;</title>" in text
    assert "41,207 ± 120" in text
    assert "<svg" in text
    assert "ε = 0.2 was spent; 0.8 was left" in text
    assert "e^ε = 1.221" in text
    assert "Each true number lies within its ± in 95 % of releases." in text
    record = re.search(r"<pre>(.*?)</pre>", text, re.DOTALL)
    assert record is not None
    assert json.loads(html.unescape(record[1])) == answer().record


def test_a_report_needs_no_network_runs_nothing_and_escapes_keys():
    text = report.report(answer())
    assert "<script" not in text
    assert html.escape(ODD) in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "prefers-color-scheme: dark" in text


def test_what_simultaneous_intervals_mean_is_said():
    released = answer()
    released.record["simultaneous"] = True
    assert "In 95 % of releases all true numbers of the table lie within their ± at once." in report.report(released)


def test_a_report_is_html_only(tmp_path):
    with pytest.raises(InvalidParameter, match=r"path of a report must end in \.html, got 'it.pdf'"):
        report.write(answer(), tmp_path / "it.pdf")
    assert not list(tmp_path.iterdir())
