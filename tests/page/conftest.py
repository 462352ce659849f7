"""A site with a small study, and Chromium to look at it."""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from conftest import absent
from discreet import Policy, Study
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.desk import study_key
from discreet.serve.limits import Limits
from discreet.serve.store import Requests
from serving import QUICK, folder_in_memory, running
from waiting import PATIENCE

MARKUP = "<img src=x onerror=window.broken=1>"
REGIONS = ["Dukes", "Essex", MARKUP]
ODD = 'Select "it"'
TERMS: dict[str, Any] = {
    "table": "people",
    "epsilon": 100,
    "version": "v1",
    "neighbors": "add-remove",
}
_names = itertools.count()


@dataclass
class Site:
    """A server with one study, called people, of which everybody may spend ε 0.5 of 100."""

    url: str
    study: Study
    access: Access
    markup: str = MARKUP
    """A key of region that looks like HTML."""

    def analyst(self, allot: str = "0.5") -> str:
        """The token of a new analyst."""
        name = f"analyst{next(_names)}"
        self.study.ledger.allot(name, allot, study="people")
        return str(self.access.permit(name, role="analyst", study=study_key(self.study)))


@pytest.fixture(scope="module")
def site(site_of) -> Iterator[Site]:
    declared: dict[str, tuple[Any, dict[str, Any]]] = {
        "region": (lambda at: REGIONS[at % 3], {"keys": REGIONS}),
        "age": (lambda at: float(at % 90), {"bounds": [0, 120]}),
        "insured": (lambda at: at % 4 > 0, {}),
        "place": (lambda at: f"key {at % 400}", {"keys": [f"key {at}" for at in range(400)]}),
        "level": (lambda at: at % 2, {"keys": [0, 1]}),
        "score": (lambda at: float(at % 10), {"bounds": [0, 10], "bins": [0, 5, 10]}),
        "seen": (lambda at: date(2026, 1 + at % 12, 1), {}),
        ODD: (lambda at: "it's" if at % 2 else "not", {"keys": ["it's", "not"]}),
    }
    table = pa.table(
        {name: [make(at) for at in range(3_000)] for name, (make, _) in declared.items()}
    )
    columns = {name: told for name, (_, told) in declared.items()}
    policy = Policy(
        source=table.append_column("who", [range(3_000)]),
        unit="who",
        max_rows=1,
        columns=columns,
        **TERMS,
    )
    with site_of(policy) as opened:
        yield opened


@pytest.fixture(scope="module")
def site_of() -> Any:
    """Servers with the study of a policy, for tests that need another one."""
    return contextlib.contextmanager(_site_of)


def _site_of(policy: Policy, limits: Limits = QUICK) -> Iterator[Site]:
    with folder_in_memory() as folder:
        study = Study(policy, ledger=folder / "people.ledger", name="people")
        access = Access(folder / "discreet.access", new=True)
        requests = Requests(folder / "discreet.requests")
        app = application({"people": study}, access, requests, limits=limits)
        with running(SimpleNamespace(app=app)) as url:
            yield Site(url, study, access)
        requests.close()
        study.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, as long as tests of pages follow one another; it is not asked to download anything."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("no Playwright: pip install playwright")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        absent("no Chromium: apt install chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=found,
            timeout=1000 * PATIENCE,
            args=["--no-sandbox", "--disable-background-networking", "--renderer-process-limit=1"],
        )
        yield made
        made.close()


@pytest.fixture(scope="package")
def window(browser) -> Iterator[Any]:
    """One window for all tabs: another takes a second of CPU.

    What a tab keeps in its session, no other one sees.
    """
    context = browser.new_context(reduced_motion="reduce", accept_downloads=True)
    context.set_default_timeout(1000 * PATIENCE)
    context.new_page()  # so that it is never closed with its last tab
    yield context
    context.close()


class Tab:
    """A page, and all that it asked for and complained of."""

    def __init__(self, window: Any, site: Site, viewport: Any = None, **media: str) -> None:
        self.site, self.context, self.page = site, window, window.new_page()
        if viewport:
            self.page.set_viewport_size(viewport)
        if media:
            self.page.emulate_media(reduced_motion="reduce", **media)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(site.url)

    def _heard(self, message: Any) -> None:
        # the browser itself notes each refusal of the server, which the page shows as a sentence
        if message.type in ("error", "warning") and not message.text.startswith(
            "Failed to load resource"
        ):
            self.complaints.append(message.text)

    def enter(self, token: str) -> None:
        self.page.get_by_label("Your token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.locator("#desk").wait_for()
        self.planned()

    def planned(self) -> None:
        """Until the plan of what is asked now is there."""
        self.page.wait_for_function(
            "() => !document.querySelector('#plan').hasAttribute('aria-busy')", polling=20
        )

    def write(self, sql: str) -> None:
        self.page.get_by_label("SQL").fill(sql)
        self.planned()

    def tables(self, asked: dict[str, str]) -> None:
        """Write the tables of a report, of which the form has one."""
        for at, (name, sql) in enumerate(asked.items()):
            if at:
                self.page.get_by_role("button", name="Add a table").click()
            self.page.get_by_label("Name of the table").nth(at).fill(name)
            self.page.get_by_label("SELECT of the table").nth(at).fill(sql)
        self.planned()

    def release(self) -> None:
        self.page.locator("#release").click()
        self.page.locator("#confirm-yes").click()

    def answered(self) -> Any:
        self.page.wait_for_function(
            "() => document.activeElement.id === 'result-title'", polling=20
        )
        return self.page.locator("#answer")


@pytest.fixture
def open_tab(window, site) -> Iterator[Any]:
    """Opens pages; none may complain, or ask anybody but this server."""
    tabs: list[Tab] = []

    def opened(**look: Any) -> Tab:
        tabs.append(Tab(window, site, **look))
        return tabs[-1]

    yield opened
    for tab in tabs:
        # the next tab finds nothing
        assert tab.page.evaluate("localStorage.length + document.cookie.length") == 0
        tab.page.close()
        assert tab.complaints == []
        assert [
            url for url in tab.asked if not url.startswith((f"{site.url}/", "blob:", "data:"))
        ] == []
