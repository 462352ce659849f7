"""A report in a real browser: several tables, one price, and all of them to read and to keep."""

from fractions import Fraction

from pyarrow import csv

BY_INSURED = "SELECT insured, count(*) AS people, avg(age) AS age FROM people GROUP BY insured"


def test_the_whole_way_from_the_tables_to_the_file(open_tab, site, tmp_path):
    tab = open_tab()
    page = tab.page
    tab.enter(site.analyst())
    page.get_by_label("region").check()
    page.get_by_label("A report").check()
    assert page.get_by_label("Name of the table").input_value() == "by_region"
    assert page.get_by_label("SELECT of the table").input_value().endswith("GROUP BY region")
    page.get_by_role("button", name="Add a table").click()
    assert (
        page.get_by_label("Name of the table")
        .nth(1)
        .evaluate("field => field === document.activeElement")
    )
    page.get_by_label("SELECT of the table").nth(1).fill(BY_INSURED)
    page.get_by_label("Title").fill("Visits")
    tab.planned()
    plan = page.locator("#plan-lines")
    assert plan.locator(".summary").inner_text() == "2 tables · ε 0.05 · leaves ε 0.45"
    assert plan.locator("thead th").all_inner_texts() == [
        "Table",
        "Error (95 %)",
        "Asked one by one",
    ]
    assert plan.locator("tbody tr").count() == 3
    assert page.locator("#like-this").inner_text() == "Enough for 10 reports like this one."
    assert (
        page.locator("#plan-said")
        .text_content()
        .startswith("Plan: costs ε 0.05. by_region, count(*): ± ")
    )
    page.locator("#release").click()
    assert "-- by_insured\nSELECT insured" in page.locator("#confirm").inner_text()
    before = site.study.remaining
    page.locator("#confirm-yes").click()
    answer = tab.answered()
    assert before - site.study.remaining == Fraction("0.05")
    assert page.locator("#result-title").inner_text() == "Visits"
    assert "ε 0.05 spent; 0.45 left." in answer.inner_text()
    tables = answer.get_by_role("region", name="by_", exact=False)
    assert answer.locator("h3").all_inner_texts() == ["by_region", "by_insured"]
    assert tables.locator("tbody tr").count() == 3 + 2
    assert answer.locator("figure svg .whisker").count() == 3 + 2
    with page.expect_download() as waiting:
        answer.get_by_role("group", name="Download by_insured").get_by_role(
            "button", name="CSV"
        ).click()
    assert waiting.value.suggested_filename == "people-by_insured.csv"
    waiting.value.save_as(tmp_path / "table.csv")
    assert csv.read_csv(tmp_path / "table.csv").column_names[:3] == [
        "insured",
        "people",
        "people_low",
    ]

    shown = answer.locator("tbody").all_inner_texts()
    page.get_by_label("One question").check()
    tab.planned()
    assert page.get_by_label("SQL").is_visible()
    assert page.locator("#plan-lines thead th").all_inner_texts() == ["Column", "Error (95 %)"]
    page.get_by_role("button", name="report 'Visits' of").click()
    page.get_by_text("Opened again, free").wait_for()
    assert answer.locator("tbody").all_inner_texts() == shown


def test_tables_need_names_of_their_own(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("A report").check()
    assert not tab.page.get_by_role("button", name="Remove this table").is_visible()
    status, names = tab.page.locator("#plan-error"), tab.page.get_by_label("Name of the table")
    tab.tables({"people": "SELECT count(*) FROM people", "rows": "SELECT * FROM people"})
    assert "SELECT * would release rows." in status.inner_text()
    names.nth(1).fill("people")
    tab.planned()
    assert status.inner_text() == "Two tables have the same name."
    names.nth(1).fill("")
    tab.planned()
    assert status.inner_text() == "Each table needs a name."
    assert tab.page.locator("#release").is_disabled()
    tab.page.get_by_role("button", name="Remove this table").nth(1).click()
    tab.planned()
    assert (status.inner_text(), names.count()) == ("", 1)
    assert tab.page.locator("#release").is_enabled()
