"""A report is one file: the numbers, the figure, what they cost, and the record that they are made
of.
"""

import html
import json
import re
from dataclasses import replace

from released import answer_of, group, numbers

ODD = "<script>alert(1)</script>"


def answer():
    return answer_of(
        [group(1, "county", [ODD, "b"])], {"people": ("count(*)", numbers([41207, -3], 120))}
    )


def page(tmp_path, released=None, **look):
    return (released or answer()).save(tmp_path / "it.html", **look).read_text(encoding="utf-8")


def test_a_report_opens_with_what_it_is_and_ends_with_how_it_was_made(tmp_path):
    sql = "SELECT county, count(*) AS people\nFROM t -- <all>"
    released = replace(answer(), query=replace(answer().query, sql=sql))
    text = page(tmp_path, released, title="Ages & <more>", caption="A caption.")
    assert "<title>Ages &amp; &lt;more&gt;</title>" in text
    opening, _, method = text.partition("How these numbers were made</h2>")
    order = [
        "A caption.",
        "Source: people",
        "people is the number of rows.",
        html.escape(sql),
        "<svg",
        "41,207 ± 120",
    ]
    assert sorted(order, key=opening.index) == order
    assert not set("εΔ") & set(opening.partition("<figure>")[0])
    assert "ε = 0.2 was spent; 0.8 was left" in method
    assert "e^ε = 1.221" in method
    assert "Each exact number lies within its ± in 95 % of releases." in method
    assert (
        "It does not cover sampling error or the effect of clamping values to their bounds."
        in method
    )
    record = re.search(r"<pre>(.*?)</pre>", method, re.DOTALL)
    assert record is not None
    assert json.loads(html.unescape(record[1])) == released.record


def test_a_report_needs_no_network_runs_nothing_and_escapes_keys(tmp_path):
    text = page(tmp_path)
    assert "<title>People by county</title>" in text
    assert "<script" not in text
    assert html.escape(ODD) in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "prefers-color-scheme: dark" in text


def test_what_simultaneous_intervals_mean_is_said(tmp_path):
    released = answer()
    released.record["simultaneous"] = True
    assert (
        "In at least 95 % of releases, all exact numbers of the table lie within their ± at once."
        in page(tmp_path, released)
    )
