"""Keys that nobody could declare, discovered on the page; and charts of two group columns."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from discreet import Policy
from serving import QUICK

JOBS = ["nurse"] * 900 + ["baker"] * 800 + ["<b>cook"] * 700 + ["astronaut"]
SIDES = ["north", "south"]


@pytest.fixture(scope="module")
def site(site_of):
    rows = range(len(JOBS))
    table = pa.table(
        {
            "job": JOBS,
            "side": [SIDES[at % 2] for at in rows],
            "age": [float(at % 90) for at in rows],
        }
    )
    columns = {"job": {"keys": "discover"}, "side": {"keys": SIDES}, "age": {"bounds": [0, 120]}}
    terms = {"table": "people", "epsilon": 100, "version": "v1", "neighbors": "add-remove"}
    policy = Policy(source=table, columns=columns, delta="1e-9", **terms)
    with site_of(policy, replace(QUICK, discovery=True)) as opened:
        yield opened


def test_the_keys_are_discovered_of_the_share_and_then_grouped_by(open_tab, site, tmp_path):
    tab, token = open_tab(), site.analyst()
    page = tab.page
    tab.enter(token)
    assert page.locator("#who").inner_text() == site.access.person(token).name
    assert page.get_by_label("Statistic", exact=True).evaluate(
        "field => field === document.activeElement"
    )
    groups = page.get_by_label("For each")
    assert groups.locator("label").all_inner_texts() == ["side"]
    tab.write("SELECT job, count(*) FROM people GROUP BY job")
    refusal = "GROUP BY job needs its keys; choose “Discover keys”. Nothing was spent."
    assert page.locator("#plan-error").inner_text() == refusal
    page.get_by_label("Discover keys").check()
    page.get_by_label("Price in ε").fill("0.2")
    tab.planned()
    words = page.locator("#plan-lines").inner_text()
    assert "ε 0.2 · all of δ · leaves ε 0.3" in words
    meaning = (
        "For each row, the promise e^ε may fail with probability at most δ = 1e-09, as where a key"
        " is shown that only this row has. Of n such keys, up to about n·δ are shown."
    )
    assert meaning in words
    page.locator("#release").click()
    assert meaning in page.locator("#confirm").inner_text()
    assert site.study.spent == 0
    page.locator("#confirm-yes").click()
    answer = tab.answered()
    assert page.locator("#result-title").inner_text() == "Discovered keys"
    assert "ε 0.2 spent; 0.3 left." in answer.inner_text()
    assert answer.locator("li").all_inner_texts() == ["<b>cook", "baker", "nurse"]
    assert site.study.spent == Fraction(1, 5)

    tab.planned()
    assert page.get_by_label("Discover keys").is_hidden()
    assert groups.locator("label").all_inner_texts() == ["job", "side"]
    for name in ("job", "side"):
        groups.get_by_label(name).check()
    tab.planned()
    tab.release()
    page.get_by_role("heading", name="Answer").wait_for()
    assert answer.locator(".panel-name").all_inner_texts() == ["side: north", "side: south"]
    drawn = [
        panel.locator(".bar-name").all_text_contents()
        for panel in answer.locator(".panels > div").all()
    ]
    assert drawn == [["<b>cook", "baker", "nurse"]] * 2
    assert answer.locator(".panels .whisker").count() == 6
    with page.expect_download() as waiting:
        answer.get_by_role("button", name="Chart (PNG)").click()
    waiting.value.save_as(tmp_path / "chart.png")
    assert waiting.value.suggested_filename.endswith(".png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")

    page.get_by_role("button", name="Discovered keys").click()
    page.get_by_text("Opened again, free").wait_for()
    assert answer.locator("li").all_inner_texts() == ["<b>cook", "baker", "nurse"]
    other = open_tab()
    other.enter(site.analyst())
    assert other.page.get_by_label("Discover keys").is_hidden()
    assert other.page.get_by_label("For each").locator("label").all_inner_texts() == ["job", "side"]
