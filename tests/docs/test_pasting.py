"""What the copy button of the site copies runs in IPython, block after block, on every page with
examples.
"""

from __future__ import annotations

import doctest
import html
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))
BLOCK = re.compile(r"^```python\n(>>> .*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    page.relative_to(ROOT).as_posix(): found
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if (found := BLOCK.findall(page.read_text("utf-8")))
}

PASTED = """
import contextlib, io, json, sys, warnings
from IPython.terminal.interactiveshell import TerminalInteractiveShell

asked = json.load(sys.stdin)
shell = TerminalInteractiveShell.instance()
ended = {}
for page, cells in asked.items():
    shell.reset(new_session=True)
    ended[page] = []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()):
            result = shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
        ended[page].append(error and type(error).__name__)
print(json.dumps(ended))
"""


def pasted(pages: dict[str, list[str]], folder: Path) -> dict[str, list[str | None]]:
    """The error that each cell ends with in a real IPython, or None; each page begins a new
    session.
    """
    ended = subprocess.run(
        [sys.executable, "-c", PASTED],
        input=json.dumps(pages),
        env=os.environ | {"IPYTHONDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, list[str | None]] = json.loads(ended.stdout.splitlines()[-1])
    return found


def error(block: str) -> str | None:
    """The error that the last example of a block shows."""
    shown = doctest.DocTestParser().get_examples(block)[-1].exc_msg
    return re.match(r"(?:\w+\.)*(\w+)", shown)[1] if shown else None  # type: ignore[index]


def test_what_is_copied_runs_in_ipython_on_every_page(tmp_path: Path) -> None:
    code = {page: [TOOL["code_of"](block) for block in blocks] for page, blocks in PAGES.items()}
    assert not [cell for cells in code.values() for cell in cells if ">>>" in cell]
    assert pasted(code, tmp_path) == {
        page: [error(block) for block in blocks] for page, blocks in PAGES.items()
    }


def test_control_a_block_with_its_prompts_and_outputs_does_not_run(tmp_path: Path) -> None:
    """IPython drops the prompts and runs the outputs; some are Python, and others are not."""
    name = "docs/course/attacker.md"
    ended = pasted(
        {name: PAGES[name], "other": [">>> 1 + 1\n2\n", ">>> print(1, 2)\n1 2\n"]}, tmp_path
    )
    assert "SyntaxError" in ended["other"]


@pytest.mark.parametrize("page", PAGES)
def test_an_error_ends_its_block(page: str) -> None:
    """A cell ends with its first error, so examples below it would not run."""
    for block in PAGES[page]:
        assert not [
            shown.source
            for shown in doctest.DocTestParser().get_examples(block)[:-1]
            if shown.exc_msg
        ]


def test_a_blank_line_ends_a_definition() -> None:
    shown = ">>> def twice(x):\n...     return 2 * x\n>>> twice(2)\n4\n"
    assert TOOL["code_of"](shown) == "def twice(x):\n    return 2 * x\n\ntwice(2)\n"


def test_only_blocks_with_prompts_are_copied_in_another_way() -> None:
    block = (
        '<div class="language-pycon highlight"><pre><span></span><code><span>&gt;&gt;&gt;</span> x'
        " = &quot;a&quot;\n"
    )
    page = TOOL["copyable"](
        block
        + '&gt;&gt;&gt; x\n&#39;a&#39;\n</code></pre></div><div class="highlight"><pre>$ ls</pre>'
    )
    (copied,) = re.findall(r'data-copy="([^"]*)"', page)
    assert html.unescape(copied) == 'x = "a"\nx\n'
