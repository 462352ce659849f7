"""What the documentation prints is what happens: every `>>>` in README, docs and docstrings is
executed.
"""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if "\n>>> " in page.read_text("utf-8")
]
MODULES = [
    "discreet",
    *(module.name for module in pkgutil.walk_packages(discreet.__path__, "discreet.")),
]


def executed(page: Path) -> doctest.TestResults:
    """The examples of one page, in order, in one session; the fences are no output."""
    text = "\n".join(
        "" if line.lstrip().startswith("```") else line
        for line in page.read_text("utf-8").split("\n")
    )
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    return doctest.DocTestRunner().run(examples)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_a_page_prints_what_it_says(page: Path) -> None:
    results = executed(page)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_every_example_of_a_docstring_prints_what_it_says(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_a_wrong_example_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n```\n", "utf-8")
    assert executed(page).failed == 1
    assert "Expected" in capsys.readouterr().out
