"""From a token to a downloaded answer, in a real browser."""

import json
from fractions import Fraction

from pyarrow import csv, parquet

from waiting import PATIENCE


def test_the_whole_way_from_the_token_to_the_file(open_tab, site, tmp_path):
    tab, token = open_tab(), site.analyst()
    page = tab.page
    tab.enter(token)
    assert page.get_by_role("heading", level=1).inner_text() == "people"
    assert "0 to 120" in page.locator("#columns").inner_text()
    assert page.locator("#like-this").inner_text() == "Enough for 10 questions like this one."

    page.get_by_label("region").check()
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("Statistic", exact=True).nth(1).select_option("mean")
    tab.planned()
    assert (
        page.get_by_label("SQL").input_value()
        == "SELECT region, count(*), avg(age)\nFROM people\nGROUP BY region"
    )
    assert "leaves ε 0.45" in page.locator("#plan-lines").inner_text()
    page.locator("#release").click()
    words = page.locator("#confirm").inner_text()
    assert "Spend ε 0.05?" in words
    assert "You have ε 0.5 left of your share. After this release, ε 0.45 will be left." in words
    before = site.study.remaining
    page.get_by_role("button", name="Not now").click()
    assert site.study.remaining == before
    tab.release()
    answer = tab.answered()
    assert "ε 0.05 spent; 0.45 left." in answer.inner_text()
    assert answer.locator("tbody tr").count() == 3
    assert answer.locator("figure svg .whisker").count() == 3
    tab.planned()
    assert "ε 0.45 left of 0.5" in page.locator("#gauges").inner_text()

    files = {}
    for name in ("CSV", "JSON", "Parquet"):
        with page.expect_download() as waiting:
            answer.get_by_role("button", name=name).click()
        files[name] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(files[name])
    shown = json.loads(files["JSON"].read_text("utf-8"))["table"]
    assert shown["region"] == ["Dukes", "Essex", site.markup]
    assert csv.read_csv(files["CSV"])["count(*)"].to_pylist() == shown["count(*)"]
    assert parquet.read_table(files["Parquet"])["avg(age)_low"].to_pylist() == shown["avg(age)_low"]

    page.get_by_role(
        "button", name="SELECT region, count(*), avg(age) FROM people GROUP BY region"
    ).click()
    page.get_by_text("Opened again, free").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.locator("#login").wait_for()
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0
    assert token not in page.content()
    assert page.get_by_label("Your token").evaluate("field => field === document.activeElement")


EVERYTHING = """() => [document.documentElement.outerHTML, document.title, location.href, JSON.stringify(history.state),
    ...[...document.querySelectorAll("input, select, textarea")].map((field) => field.value)].join(" ")"""


def test_log_out_leaves_nothing_of_the_study_in_the_page(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst("0.4375"))
    tab.page.evaluate("location.hash = '#people'")
    tab.write("SELECT region, avg(age) FROM people WHERE age > 17 GROUP BY region")
    tab.release()
    tab.answered()
    secrets = [
        "region",
        "Dukes",
        "0.4375",
        "insured",
        "avg(age)",
        "SELECT",
        "±",
        "#people",
        "people · ",
    ]
    before = tab.page.evaluate(EVERYTHING)
    assert [word for word in secrets if word not in before] == []
    tab.page.get_by_role("button", name="Log out").click()
    tab.page.locator("#login").wait_for()
    after = tab.page.evaluate(EVERYTHING)
    assert [word for word in secrets if word in after] == []
    tab.page.go_back()
    tab.page.locator("#login").wait_for()


def test_a_revoked_token_is_told_on_an_empty_page(open_tab, site):
    tab = open_tab()
    token = site.analyst()
    tab.enter(token)
    site.access.revoke(site.access.person(token).name)
    tab.page.get_by_label("Price in ε").fill("0.02")
    tab.page.get_by_role("alert").filter(has_text="unknown, expired or revoked").wait_for()
    assert "insured" not in tab.page.evaluate(EVERYTHING)


def test_a_tab_opened_from_the_page_has_no_token(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    link = """() => {
        const link = Object.assign(document.createElement("a"), { href: "/", target: "_blank", rel: "opener" });
        document.body.append(link); link.click(); link.remove(); }"""
    for opened in ("window.open('/')", link):
        with tab.context.expect_page() as waiting:
            tab.page.evaluate(opened)
        other = waiting.value
        other.locator("#login").wait_for()
        assert other.evaluate("sessionStorage.getItem('discreet.token')") is None
        other.close()
    tab.page.reload()  # the tab itself stays where it was
    tab.page.locator("#desk").wait_for()
    tab.planned()
    assert tab.page.evaluate("sessionStorage.getItem('discreet.token')") is None


def test_a_wrong_token_opens_nothing(open_tab):
    tab = open_tab()
    tab.page.get_by_label("Your token").fill("discreet_nothing")
    tab.page.get_by_label("Your token").press("Enter")
    alert = tab.page.get_by_role("alert").filter(has_text="does not work")
    alert.wait_for()
    assert tab.page.evaluate("sessionStorage.length") == 0
    assert tab.page.locator("#desk").is_hidden()


def test_what_is_not_left_cannot_be_spent_and_says_so(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst("0.1"))
    tab.page.get_by_label("Price in ε").fill("0.2")
    tab.planned()
    assert "only ε 0.1 is left" in tab.page.locator("#plan-lines").inner_text()
    assert (
        tab.page.locator("#like-this").inner_text()
        == "Not enough ε is left for this question at this price."
    )
    before = site.study.remaining
    tab.release()
    alert = tab.page.locator("#release-alert:not(:empty)")
    alert.wait_for()
    assert "larger allotment" in alert.inner_text()
    assert site.study.remaining == before
    assert tab.page.evaluate("sessionStorage.getItem('discreet.pending')") == "{}"


def test_a_question_outside_the_language_is_refused_in_a_sentence(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.write("SELECT * FROM people")
    status = tab.page.locator("#plan-error")
    assert status.get_attribute("role") == "status"
    assert status.inner_text().startswith("SELECT * would release rows.")
    assert tab.page.locator("#release").is_disabled()
    assert tab.page.get_by_label("Statistic", exact=True).is_disabled()
    tab.page.get_by_role("button", name="Use the form again").click()
    tab.planned()
    assert status.inner_text() == ""
    assert tab.page.locator("#release").is_enabled()


def test_the_server_understands_everything_that_the_form_can_say(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    page, kinds = tab.page, tab.page.get_by_label("Statistic", exact=True)
    offered = kinds.first.locator("option").all_inner_texts()
    for at, name in enumerate(offered):
        if at:
            page.get_by_role("button", name="Add a statistic").click()
        kinds.nth(at).select_option(name)
    groups = page.get_by_label("For each").get_by_role("checkbox")
    for box in groups.all():
        box.check()
    groups.nth(2).uncheck()  # 400 keys are too many beside all the others
    columns = page.locator("#columns dt").all_inner_texts()
    for at, name in enumerate(columns):
        page.get_by_role("button", name="Add a condition").click()
        row = page.locator("#conditions .row").nth(at)
        row.get_by_label("Column").select_option(name)
        value = row.get_by_label("Value")
        if value.is_visible():
            value.fill(
                {"age": "64.5", "level": "1", "score": "-2", "seen": "2026-03-01"}.get(name, "it's")
            )
    tab.planned()
    assert page.locator("#plan-error").inner_text() == ""
    assert page.locator("#plan-lines tbody tr").count() == len(offered) == 11
    # 3 · 2 · 2 · 2 · 12 · 2
    assert page.locator("#plan-lines .summary").inner_text().startswith("576 rows")
    text = page.get_by_label("SQL").input_value()
    assert all(
        part in text
        for part in ("count(DISTINCT who)", "quantile(age, 0.9)", "month(seen)", "= 'it''s'")
    )
    assert '"Select ""it"""' in text
    signs = page.get_by_label("Comparison")
    for at in range(len(columns)):
        signs.nth(at).select_option("is not missing")
    tab.planned()
    assert page.locator("#plan-error").inner_text() == ""
    assert page.get_by_label("SQL").input_value().count("IS NOT NULL") == len(columns) == 8


def test_the_slider_moves_the_plan_and_says_what_it_buys(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("region").check()
    tab.planned()
    slider, price = tab.page.get_by_label("Price", exact=True), tab.page.get_by_label("Price in ε")
    before = _reach(tab)
    slider.focus()
    start = tab.page.locator(".dot").get_attribute("cx")
    for _ in range(10):
        slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext").startswith(
        f"ε {price.input_value()}: count(*) ± "
    )
    assert float(tab.page.locator(".dot").get_attribute("cx")) > float(start)
    tab.planned()
    assert _reach(tab) < before
    shown = slider.get_attribute("aria-valuetext").split("± ")[1]
    assert abs(float(shown) - _reach(tab)) <= 1  # the curve between its points, and the plan itself


def _reach(tab) -> float:
    return float(tab.page.locator("#plan-lines td").inner_text().replace("±", "").strip())


def test_the_error_of_a_mean_is_shown_for_the_size_that_is_given_with_its_warnings(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    size = tab.page.get_by_label("Group size")
    assert size.is_hidden()
    tab.page.get_by_label("Statistic", exact=True).select_option("mean")
    tab.planned()
    assert "at 1,000 rows" in tab.page.locator("#plan-lines").inner_text()
    size.fill("10")
    tab.planned()
    assert "at 10 rows" in tab.page.locator("#plan-lines").inner_text()
    assert (
        "larger than its bounds at 10 rows"
        in tab.page.locator("#plan-lines .warning").last.inner_text()
    )


def test_the_keyboard_is_enough(open_tab, site):
    tab = open_tab()
    page, keys = tab.page, tab.page.keyboard
    page.get_by_label("Your token").focus()
    keys.insert_text(site.analyst())
    keys.press("Enter")
    tab.planned()

    def go(words: str) -> None:
        """Press Tab until the focus is on what has these words, and can be seen to be there."""
        for _ in range(40):
            keys.press("Tab")
            found, outline = page.evaluate(
                """() => { const at = document.activeElement, style = getComputedStyle(at);
                return [[at.id, at.textContent, at.value ?? "", at.getAttribute("aria-label") ?? ""].join(" "),
                        style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2]; }"""
            )
            if words in found:
                assert outline, f"the focus on {words} cannot be seen"
                return
        raise AssertionError(f"Tab does not reach {words}")

    go("Add a condition")
    keys.press("Enter")
    keys.type("age")
    go("Comparison")
    keys.type(">")
    go("Value")
    keys.type("64")
    tab.planned()
    assert "WHERE age > 64" in page.get_by_label("SQL").input_value()
    go("slider")
    keys.press("ArrowLeft")
    tab.planned()
    go("Release for")
    keys.press("Enter")
    page.locator("#confirm[open]").wait_for()
    go("confirm-yes")
    keys.press("Enter")
    assert "spent" in tab.answered().inner_text()


def test_a_key_that_looks_like_markup_stays_text(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("region").check()
    tab.planned()
    tab.release()
    assert tab.answered().get_by_role("rowheader", name=site.markup).count() == 1
    tab.write(f"SELECT count(*) FROM people WHERE region = '{site.markup}'")  # noqa: S608 - it is no database's
    tab.release()
    tab.page.locator("#releases code", has_text="onerror").wait_for()
    tab.page.locator("#column-list summary").first.click()
    assert site.markup in tab.page.locator("#column-list").inner_text()
    assert tab.page.locator("img").count() == 0
    assert tab.page.evaluate("window.broken") is None


def test_an_answer_that_the_network_lost_is_charged_once(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.write("SELECT count(*) FROM people WHERE age > 21")
    sent = []

    def lose(route):
        sent.append(route.request.post_data_json["request_id"])
        if len(sent) == 1:
            route.fetch(timeout=1000 * PATIENCE)
            route.abort()
        else:
            route.continue_()

    tab.page.route("**/release", lose)
    before = site.study.remaining
    tab.release()
    again = tab.page.get_by_role("button", name="Ask again")
    again.wait_for()
    tab.page.reload()
    again.click()
    assert "0.45 left" in tab.answered().inner_text()
    assert before - site.study.remaining == Fraction("0.05")
    assert len(sent) == 2
    assert sent[0] == sent[1]


def test_the_same_question_again_is_free(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.write("SELECT avg(age) FROM people WHERE age > 17")
    tab.release()
    assert "ε 0.05 spent; 0.45 left." in tab.answered().inner_text()
    tab.planned()
    assert (
        "ε 0.05 · asked before: free while"
        in tab.page.locator("#plan-lines .summary").first.inner_text()
    )
    tab.page.get_by_label("SQL").focus()
    tab.release()
    assert "Asked before: same answer, free; 0.45 left." in tab.answered().inner_text()


def test_many_groups_come_a_page_at_a_time_and_can_be_found_and_sorted(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("place").check()
    tab.planned()
    tab.release()
    answer = tab.answered()
    assert answer.locator("tbody tr").count() == 50
    answer.get_by_role("button", name="Show more of 400 rows").click()
    assert answer.locator("tbody tr").count() == 250
    answer.get_by_label("Find a row").fill("key 39")
    assert answer.locator("tbody tr").count() == 11
    answer.get_by_role("button", name="count(*)").click()
    shown = [
        float(text.replace(",", "").replace("−", "-"))
        for text in answer.locator(".value").all_inner_texts()
    ]
    assert shown == sorted(shown, reverse=True)
    assert (
        answer.get_by_role("columnheader", name="count(*)").get_attribute("aria-sort")
        == "descending"
    )
