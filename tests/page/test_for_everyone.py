"""The page for phones, for the keyboard and the ear, in light and dark; and that it loads nothing
but itself.
"""

import httpx
import pytest

UNNAMED = """() => [...document.querySelectorAll("input, select, textarea, button")].filter((field) => {
    const labels = [...(field.labels ?? [])].map((label) => label.textContent).join("");
    const words = field.getAttribute("aria-label") ?? (labels || (field.tagName === "BUTTON" ? field.textContent : ""));
    return !words && !field.closest("[hidden], dialog:not([open])");
}).map((field) => field.outerHTML.slice(0, 80))"""
"""Fields that can be seen and have no name."""

PALE = """() => {
    const dot = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const canvas = dot.getContext("2d", { willReadFrequently: true });
    const seen = (colors) => {
        for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const light = ([red, green, blue]) =>
        0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !element.checkVisibility() || element.closest(":disabled, svg, .away, .skip")) continue;
        const behind = [];
        for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
        const ground = seen(["white", ...behind]);
        const ink = seen([`rgb(${ground})`, getComputedStyle(element).color]);
        const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) found.push([element.textContent.slice(0, 40), ratio]);
    }
    return found;
}"""
"""Text whose contrast is below 4.5."""

WIDER = """() => {
    const seen = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility());
    const loose = seen.filter((one) => !one.closest(".scroll, .away, pre"));
    const ends = loose.map((one) => one.getBoundingClientRect().right);
    return Math.max(document.documentElement.scrollWidth, ...ends) - innerWidth;
}"""
"""By how much the page is wider than the window."""

COUNT = "SELECT count(*), sum(age) FROM people"
LONG_NAMES = ", ".join(f"count(*) AS a_rather_long_name_for_a_column_{at}" for at in range(5))


def shown_everywhere(tab, site, look):
    """A look at each state of the page."""
    look("the token")
    tab.enter(site.analyst())
    look("the plan")
    tab.page.get_by_role("button", name="Add a condition").click()
    tab.page.get_by_role("button", name="Add a statistic").click()
    tab.page.get_by_label("Statistic", exact=True).nth(1).select_option("quantile")
    tab.page.get_by_label("region").check()
    tab.planned()
    look("a longer question")
    tab.page.locator("#release").click()
    look("the price")
    tab.page.locator("#confirm-yes").click()
    tab.answered()
    look("the answer")
    tab.write(f"SELECT {LONG_NAMES} FROM people")  # noqa: S608 - it is no database's
    tab.release()
    tab.answered()
    look("long names")
    tab.write(
        "SELECT a_rather_long_name_for_a_column_that_nobody_has_declared_in_this_study FROM people"
    )
    look("a refusal")
    tab.page.get_by_label("A report").check()
    tab.tables(
        {"by_score": "SELECT score, count(*), avg(age) FROM people GROUP BY score", "all": COUNT}
    )
    look("a report")
    tab.release()
    tab.answered()
    look("the tables of a report")


def test_a_phone_needs_no_scrolling_sideways(open_tab, site):
    tab = open_tab(viewport={"width": 360, "height": 740})

    def look(state):
        assert tab.page.evaluate(WIDER) <= 0, state

    shown_everywhere(tab, site, look)
    tab.page.evaluate("document.querySelector('#study-name').style.width = '400px'")
    assert tab.page.evaluate(WIDER) > 0, "the control: what is too wide is noticed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_field_has_a_name_and_every_text_can_be_read(open_tab, site, scheme):
    tab = open_tab(color_scheme=scheme)

    def look(state):
        assert tab.page.evaluate(UNNAMED) == [], state
        assert tab.page.evaluate(PALE) == [], state

    shown_everywhere(tab, site, look)
    tab.page.evaluate("""() => { document.querySelector("#study-name").style.color = "#777";
        document.querySelector("main").append(document.createElement("input")); }""")
    assert len(tab.page.evaluate(UNNAMED)) == 1, "the control: a field without a name is noticed"
    assert len(tab.page.evaluate(PALE)) == 1, "the control: pale text is noticed"


def test_every_table_and_drawing_says_what_it_is(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("A report").check()
    by_place, by_level = (
        f"SELECT {by}, count(*), avg(age) FROM people GROUP BY {by}"  # noqa: S608
        for by in ("place", "level")
    )
    tab.tables({"by_place": by_place, "by_level": by_level, "again": by_level})
    tab.release()
    tab.answered()
    assert tab.page.evaluate(
        "[...document.querySelectorAll('table')].every((table) => table.caption?.textContent)"
    )
    unsaid = (
        "[...document.querySelectorAll('svg')].filter((one) => !one.ariaLabel && one.ariaHidden !=="
        " 'true').length"
    )
    assert tab.page.evaluate(unsaid) == 0
    assert tab.page.evaluate(
        "new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size"
    ) == (tab.page.evaluate("document.querySelectorAll('[id]').length"))


def test_the_page_may_run_nothing_but_its_own_files(open_tab, site):
    policy = httpx.get(site.url).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    tab = open_tab()
    tab.page.evaluate("""() => { const script = document.createElement("script");
        script.append("window.broken = 1");
        document.body.append(script);
        document.body.setAttribute("style", "color: red");
        try { document.body.innerHTML = "<p>broken"; } catch { window.kept = 1; } }""")
    assert tab.page.evaluate("[window.broken, document.body.style.color, window.kept]") == [
        None,
        "",
        1,
    ]
    assert tab.complaints
    tab.complaints.clear()


def test_reading_aloud_says_the_plan(open_tab, site):
    tab = open_tab()
    tab.enter(site.analyst())
    tab.page.get_by_label("region").check()
    tab.planned()
    said = tab.page.locator("#plan-said")
    assert said.get_attribute("role") == "status"
    assert said.text_content().startswith("Plan: costs ε 0.05. count(*): ± ")
