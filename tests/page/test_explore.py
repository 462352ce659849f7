"""The page to play with, in a real browser: sliders move by keys, and everything follows.

No request leaves it.
"""

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
    assert [slider.get_attribute("aria-valuetext") for slider in (epsilon, delta, people)] == [
        "0.5",
        "2",
        "1,000",
    ]
    assert "scale is λ = Δ/ε = 4." in page.locator("#said-curves").inner_text()
    before = page.locator("#curves").inner_html()
    page.keyboard.press("Tab")
    assert epsilon.evaluate("slider => slider === document.activeElement")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert page.locator("#epsilon-shown").inner_text() == "3"
    assert page.locator("#delta-shown").inner_text() == "1"
    assert page.locator("#curves").inner_html() != before
    ratio = page.locator("#ratio text", has_text="= 20.1")
    assert ratio.locator("tspan.raised[font-style=italic]").text_content() == "ε"
    assert ratio.text_content() == "eε = 20.1"
    assert "ratio (logarithmic axis)" in page.locator("#ratio").text_content()
    attacker = page.locator("#said-attacker")
    assert (
        "right in 95.3 % of all trials (the large dot). This is the limit eε/(1+eε)."
        in attacker.inner_text()
    )
    assert "add-remove allows e2ε/(1+e2ε) = 99.8 %" in attacker.inner_text()
    assert attacker.locator("sup").all_text_contents() == ["ε", "ε", "2ε", "2ε"]
    assert "e^(2ε)/(1+e^(2ε)) = 99.8 %" in page.locator("#attacker").get_attribute("aria-label")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    said = page.locator("#mean").get_attribute("aria-label")
    assert (
        "the mean of 3,000 numbers between 0 and Δ = 1 has an error of at most ± 0.000333 " in said
    )
    delta.focus()
    page.keyboard.press("End")  # Δ = 5 moves the mean's error, too
    said = page.locator("#mean").get_attribute("aria-label")
    assert "between 0 and Δ = 5 has an error of at most ± 0.00166 " in said
    page.keyboard.press("Home")
    assert "√(n/2) = 38.7 times" in page.locator("#said-response").inner_text()
    assert page.locator("#said").text_content().startswith("Scale 0.3333.")
    page.get_by_label("t, how far").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_label("d, how many").focus()
    page.keyboard.press("End")
    assert page.locator("#times-shown").inner_text() == "2.25"
    assert page.locator("#draws-shown").inner_text() == "1,000,000"
    said = page.locator("#said-lemma").inner_text()
    assert "The largest of 1,000,000 errors, M, at λ = 0.3333" in said
    assert "exceeds 5.36, is at most e−t = 0.105. It is exactly 0.100." in said
    assert "On average M is 4.80, and at most λ(ln d + 1) = 4.94." in said
    page.keyboard.press("Home")
    assert "For one number the bound is exact." in page.locator("#said-lemma").inner_text()
    curves = [path.get_attribute("d") for path in page.locator("#densities path").all()]
    assert len(curves) == 5
    assert all(curve.count("L") > 20 for curve in curves)
    assert "for your λ = 0.3333" in page.locator("#densities").get_attribute("aria-label")
    assert page.locator("#said").text_content() == "Bound 0.105. Exactly 0.105."
    assert asked == [file]
    assert complaints == []
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 360)])
def test_it_fits_a_phone_and_follows_the_readers_colours(browser, file, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(file)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    card = page.locator("figure").first.evaluate("card => getComputedStyle(card).backgroundColor")
    assert card == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 31)"}[scheme]
    for chart in page.locator("figure > svg").all():
        frame = chart.bounding_box()
        for text in chart.locator("text").all():
            box = text.bounding_box()
            assert (
                frame["x"] - 1
                <= box["x"]
                <= box["x"] + box["width"]
                <= frame["x"] + frame["width"] + 1
            )
    context.close()
