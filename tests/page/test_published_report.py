"""The page of a published report, in a browser without a network: on light and dark, and on a
phone.
"""

import re

import pytest

from reports import TABLES, plan_in


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    return plan_in(folder).release().save(folder / "out")[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_reads_on_light_and_dark_and_asks_nobody(browser, published, scheme):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 380, "height": 800}, offline=True
    )
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(published.as_uri())
    background, text = page.evaluate(
        "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
    )
    assert (brightness(background) > brightness(text)) == (scheme == "light")
    figure = page.locator("figure svg text").first
    drawn = brightness(figure.evaluate("text => getComputedStyle(text).fill"))
    assert (brightness(background) > drawn) == (scheme == "light")
    assert page.evaluate("document.documentElement.scrollWidth") == 380
    page.get_by_role("link", name="How these numbers were made").click()
    assert page.locator("#method").is_visible()
    assert page.locator("figure svg").count() == len(TABLES)
    assert page.evaluate("window.broken") is None
    assert asked == [published.as_uri()]
    assert complaints == []
    context.close()


def brightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3]))
