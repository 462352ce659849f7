"""Draws docs/images/serve-*.png: the server's page with a study of invented people, as Chromium
shows it.

Run it as: python tools/page_pictures.py. It needs Chromium and Playwright. Answers are noisy, so
every run draws other pictures.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from playwright.sync_api import Page, sync_playwright

from discreet import Policy, Study
from discreet.serve.access import Access
from discreet.serve.app import application
from discreet.serve.desk import study_key
from discreet.serve.limits import Limits
from discreet.serve.server import Endpoint, server
from discreet.serve.store import Requests

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PEOPLE = {
    "Berkshire": 1_100,
    "Bristol": 3_000,
    "Dukes": 280,
    "Essex": 4_400,
    "Middlesex": 11_000,
    "Suffolk": 7_400,
}
SEASONS = ["spring", "summer", "autumn", "winter"]
JOBS = ["baker", "clerk", "cook", "driver", "nurse", "teacher"]
DESK, PHONE = {"width": 1280, "height": 930}, {"width": 390, "height": 844}


def invented() -> pa.Table:
    """Some 27,000 people, made by formulas."""
    regions = [region for region, many in PEOPLE.items() for _ in range(many)]
    rows = range(len(regions))
    return pa.table(
        {
            "region": regions,
            "age": [float((row * 7_919 % 53 + row * 104_729 % 47) % 105) for row in rows],
            "insured": [row % 10 > 0 for row in rows],
            "season": [SEASONS[(row * row * 13 + row) % 11 % 4] for row in rows],
            "job": [JOBS[row * 31 % 6] for row in rows],
        }
    )


@contextlib.contextmanager
def page_of(folder: Path) -> Iterator[tuple[str, str]]:
    """The address of a server, and the token of one of its analysts."""
    policy = Policy(
        source=invented(),
        table="people",
        epsilon=1,
        delta="1e-9",
        version="2026",
        columns={
            "region": {"keys": list(PEOPLE)},
            "age": {"bounds": [0, 120]},
            "insured": {},
            "season": {"keys": SEASONS},
            "job": {"keys": "discover"},
        },
    )
    study = Study(policy, ledger=folder / "people.ledger", name="people")
    access = Access(folder / "access", new=True)
    requests, limits = Requests(folder / "requests"), Limits(discovery=True)
    study.ledger.allot("ann", "0.8", study="people")
    token = str(access.permit("ann", role="analyst", study=study_key(study)))
    app = application({"people": study}, access, requests, limits=limits)
    running = server(app, endpoint=Endpoint(), limits=limits)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        while not running.started:
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", token
        finally:
            running.should_exit = True
            thread.join()
            requests.close()
            study.close()


def planned(page: Page) -> None:
    """Wait for the plan of what is asked now."""
    page.wait_for_function("() => !document.querySelector('#plan').hasAttribute('aria-busy')")


def entered(browser: Any, url: str, token: str, **look: Any) -> Page:
    """The page after the token was given."""
    page: Page = browser.new_context(reduced_motion="reduce", **look).new_page()
    page.goto(url)
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.locator("#desk").wait_for()
    planned(page)
    return page


def ask(page: Page, *groups: str) -> None:
    """Ask for the number and the mean age of groups."""
    for group in groups:
        page.get_by_label("For each").get_by_label(group).check()
    page.get_by_role("button", name="Add a statistic").click()
    page.get_by_label("Statistic", exact=True).nth(1).select_option("mean")
    planned(page)


def release(page: Page) -> None:
    """Release what is planned, and wait for the answer."""
    page.locator("#release").click()
    page.locator("#confirm-yes").click()
    page.wait_for_function("() => document.activeElement.id === 'result-title'")
    planned(page)


def draw(browser: Any, url: str, token: str) -> None:
    """Draw all pictures."""
    phone = entered(browser, url, token, viewport=PHONE)
    phone.get_by_label("Discover keys").check()
    planned(phone)
    phone.locator("#ask").evaluate("part => part.scrollIntoView()")
    phone.screenshot(path=IMAGES / "serve-phone.png")

    light = entered(browser, url, token, viewport=DESK)
    ask(light, "region")
    light.get_by_label("Error at most").fill("50")
    planned(light)
    release(light)
    light.get_by_role("button", name="Add a condition").click()
    light.locator("#conditions").get_by_label("Column").select_option("age")
    light.get_by_label("Comparison").select_option(label="≥")
    light.get_by_label("Value").fill("18")
    planned(light)
    light.evaluate("scrollTo(0, 0)")
    light.screenshot(path=IMAGES / "serve-light.png")

    dark = entered(browser, url, token, viewport=DESK, color_scheme="dark")
    ask(dark, "region", "season")
    release(dark)
    dark.locator("#result").evaluate("part => part.scrollIntoView()")
    dark.screenshot(path=IMAGES / "serve-dark.png")


if __name__ == "__main__":
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as folder,
        page_of(Path(folder)) as (url, token),
        sync_playwright() as playwright,
    ):
        draw(
            playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]), url, token
        )
