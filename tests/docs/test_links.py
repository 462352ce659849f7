"""Every link, picture and path that the documentation names is there, and every page can be reached
from the index.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:tests|src|tools|bench|docs)/[\w./*-]+)(?:::[^`]*)?`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in HEADING.findall(prose(page))]
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(prose(page)):
        place, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_and_picture_is_there(page: Path) -> None:
    assert not broken(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_is_named_is_there(page: Path) -> None:
    assert not [
        name for name in NAMED.findall(prose(page)) if not list(ROOT.glob(name.rstrip("/")))
    ]


def reached(start: Path) -> set[Path]:
    """All pages that links lead to from a page."""
    found, left = {start}, [start]
    while left:
        page = left.pop()
        links = (link.partition("#")[0] for link in LINK.findall(prose(page)) if "://" not in link)
        pages = {(page.parent / link).resolve() for link in links if link.endswith(".md")}
        left += [page for page in pages - found if page.exists()]
        found |= pages
    return found


def test_every_page_can_be_reached_from_the_index() -> None:
    pages = set(ROOT.glob("docs/**/*.md"))
    assert not {
        page.relative_to(ROOT).as_posix() for page in pages - reached(ROOT / "docs" / "index.md")
    }


def test_a_dead_link_is_caught(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading, and more\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-heading-and-more) [b](other.md#b) ![c](c.svg) [d](https://example.org)\n",
        "utf-8",
    )
    assert broken(page) == ["other.md#b", "c.svg"]
    assert reached(page) == {page, tmp_path / "other.md"}
    assert reached(tmp_path / "other.md") == {tmp_path / "other.md"}
