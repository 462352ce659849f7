"""The price and the error of a question: either is given, and the other follows; what was asked
before is free.
"""

import json
from itertools import pairwise

import pytest


@pytest.fixture
def tab(open_tab, site):
    opened = open_tab()
    opened.enter(site.analyst())
    return opened


def error_shown(tab) -> float:
    """The error that the plan says."""
    return float(
        tab.page.locator("#plan-lines td")
        .first.inner_text()
        .replace("±", "")
        .replace(",", "")
        .strip()
    )


def test_an_error_can_be_given_by_keys_and_the_price_follows(tab, site):
    page = tab.page
    error, price = page.get_by_label("Error at most"), page.get_by_label("Price in ε")
    slider = page.get_by_label("Error", exact=True)
    assert float(error.input_value()) == error_shown(tab)
    before = float(price.input_value())
    start = float(page.locator(".dot").get_attribute("cy"))
    slider.focus()
    for _ in range(15):
        slider.press("ArrowDown")
    assert float(page.locator(".dot").get_attribute("cy")) > start
    assert slider.get_attribute("aria-valuetext") == (
        # the curve, until the plan comes
        f"count(*) ± {error.input_value()}: ε {price.input_value()}"
    )
    tab.planned()
    wanted, cost = float(error.input_value()), float(price.input_value())
    assert cost > before
    assert error_shown(tab) <= wanted < error_shown(tab) * 1.1
    assert f"ε {cost}" in page.locator("#plan-lines .summary").inner_text()
    left = site.study.remaining
    tab.release()
    tab.answered()
    assert float(left - site.study.remaining) == pytest.approx(cost, rel=1e-5)

    tab.planned()
    price.fill("0.02")  # and the other way round
    tab.planned()
    assert float(error.input_value()) == error_shown(tab) > wanted


def test_an_error_that_nothing_gives_is_refused_and_another_one_can_be_tried(tab):
    page = tab.page
    page.get_by_label("Statistic", exact=True).select_option("mean")
    tab.planned()
    error = page.get_by_label("Error at most")
    error.fill("0.0000000000001")
    tab.planned()
    assert "within must be larger" in page.locator("#plan-error").inner_text()
    assert page.locator("#release").is_disabled()
    error.fill("2")
    tab.planned()
    assert page.locator("#plan-error").inner_text() == ""
    assert "±\u00a02 at 1,000 rows" in page.locator("#plan-lines").inner_text()
    page.get_by_label("Statistic", exact=True).select_option("median")
    tab.planned()
    assert error.is_hidden()
    assert page.get_by_label("Error", exact=True).is_hidden()


@pytest.mark.parametrize("width", [320, 360, 390])
def test_the_words_below_the_slider_stand_apart(open_tab, site, width):
    tab = open_tab(viewport={"width": width, "height": 844})
    tab.enter(site.analyst())
    tab.planned()
    boxes = [tab.page.locator(place).bounding_box() for place in ("#cheap", ".ends label", "#dear")]
    for left, right in pairwise(boxes):
        assert left["x"] + left["width"] + 8 <= right["x"]
    assert boxes[-1]["x"] + boxes[-1]["width"] <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_the_point_lies_inside_its_chart(open_tab, site, width):
    tab = open_tab(viewport={"width": width, "height": 844})
    tab.enter(site.analyst())
    for price in ("0.0001", "0.02", "99", "1000"):
        tab.page.get_by_label("Price in ε").fill(price)
        tab.planned()
        chart, *parts = (
            tab.page.locator(place).bounding_box()
            for place in ("#curve svg", "#curve .dot", "#curve .dot-label")
        )
        for part in parts:
            for start, size in (("x", "width"), ("y", "height")):
                assert chart[start] - 1 <= part[start], price
                assert part[start] + part[size] <= chart[start] + chart[size] + 1, price


def test_what_was_asked_before_says_that_it_is_free(tab):
    def repeated(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=json.dumps({**answer.json(), "asked_before": True}))

    page = tab.page
    page.route("**/plan", repeated)
    tab.write("SELECT count(*) FROM people WHERE age > 30")
    words = "asked before: free while the data is the same"
    assert page.locator("#plan-lines .summary").inner_text().endswith(words)
    assert words in page.locator("#like-this").inner_text()
    assert words in page.locator("#plan-said").text_content()
    assert page.locator("#release").inner_text() == "Release again"
    page.locator("#release").click()
    assert words in page.locator("#confirm").inner_text()
    assert "If the data has changed, it costs ε 0.05." in page.locator("#confirm").inner_text()


def test_an_answer_shows_its_question_as_it_was_typed_to_be_edited(tab):
    sql = "SELECT count(*)  -- of all\nFROM people WHERE age > 33"

    def with_text(route):
        answer = route.fetch()
        content = answer.json()
        content["view"]["sql"] = sql
        route.fulfill(response=answer, body=json.dumps(content))

    page = tab.page
    page.route("**/release", with_text)
    tab.release()
    answer = tab.answered()
    assert answer.locator("pre").inner_text() == sql
    answer.get_by_role("button", name="Edit this question").click()
    assert page.get_by_label("SQL").input_value() == sql
    assert page.get_by_label("SQL").evaluate("field => field === document.activeElement")
