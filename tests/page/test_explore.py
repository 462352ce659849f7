"""The page to play with, in a real browser: sliders move by keys, and everything follows. No request leaves it."""

import pytest

from discreet.show import explore


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return explore.save(tmp_path_factory.mktemp("explore") / "explore.html").as_uri()


def test_a_slider_moves_by_keys_and_everything_follows(browser, file):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file)
    epsilon, delta, people = (page.get_by_label(name) for name in ("ε, the", "Δ, the", "n, the"))
    assert [slider.get_attribute("aria-valuetext") for slider in (epsilon, delta, people)] == ["0.5", "2", "1,000"]
    assert "scale is Δ/ε = 4." in page.locator("#said-curves").inner_text()
    before = page.locator("#curves").inner_html()
    page.keyboard.press("Tab")
    assert epsilon.evaluate("slider => slider === document.activeElement")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert page.locator("#epsilon-shown").inner_text() == "3"
    assert page.locator("#delta-shown").inner_text() == "1"
    assert page.locator("#curves").inner_html() != before
    assert "e^ε = 20.1" in page.locator("#ratio").text_content()
    assert "right in 95.3 % of all trials. This is the limit" in page.locator("#said-attacker").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "the mean age of 3,000 people" in page.locator("#mean").get_attribute("aria-label")
    assert "√(n/2) = 38.7 times" in page.locator("#said-response").inner_text()
    assert page.locator("#said").text_content().startswith("Scale 0.3333.")
    assert asked == [file]
    assert complaints == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_follows_the_readers_colours(browser, file, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(file)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    card = page.locator("figure").first.evaluate("card => getComputedStyle(card).backgroundColor")
    assert card == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 31)"}[scheme]
    for chart in page.locator("figure > svg").all():
        frame = chart.bounding_box()
        for text in chart.locator("text").all():
            box = text.bounding_box()
            assert frame["x"] - 1 <= box["x"] <= box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    context.close()
