"""The site in a real browser: the copy button of a block copies its code, without prompts and
outputs.
"""

import functools
import re
import runpy
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_parts):
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    assert TOOL["build"](folder) == []
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_button_of_each_block_copies_its_code(browser, address):
    text = (ROOT / "docs" / "course" / "sensitivity.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(>>> .*?)^```", text, re.MULTILINE | re.DOTALL)
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(1000 * PATIENCE)
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/course/sensitivity.html")
    page.get_by_text("Solution").click()
    buttons = page.locator(
        ".highlight:has(pre) button[data-md-type=copy], .highlight:has(pre) .md-clipboard"
    )
    buttons.first.wait_for(state="attached")
    copied = []
    for at in range(buttons.count()):
        page.evaluate("navigator.clipboard.writeText('')")
        buttons.nth(at).click(force=True)
        page.wait_for_function("navigator.clipboard.readText().then(text => text !== '')")
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    assert copied == [TOOL["code_of"](block).rstrip() for block in blocks]
    assert not [url for url in asked if not url.startswith(address)]
    assert complaints == []
    context.close()
