"""Every page has one place in the navigation of the site, and faults of a built site are found;
`make docs` builds.
"""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site") / "docs"
    TOOL["stage"](folder)
    return folder


def flat(entry: Any) -> list[str]:
    match entry:
        case str():
            return [entry]
        case list():
            return [page for part in entry for page in flat(part)]
    return [page for part in entry.values() for page in flat(part)]


def test_every_page_has_one_place_and_the_sections_their_order(staged: Path) -> None:
    navigation = tomllib.loads(TOOL["CONFIGURATION"].format(TOOL["navigation"](staged)))["project"][
        "nav"
    ]
    titles = [title for section in navigation for title in section]
    assert titles == [
        "Documentation",
        "Tutorial",
        "How-to guides",
        "Reference",
        "Explanation",
        "Project",
    ]
    assert sorted(flat(navigation)) == sorted(
        page.relative_to(staged).as_posix() for page in staged.rglob("*.md")
    )
    explanation = flat(navigation[4])
    assert explanation[:3] == ["course/index.md", "course/attacker.md", "course/mechanism.md"]
    assert explanation[9] == "course/composition.md"


def test_links_lead_to_the_places_of_the_site_and_the_reference_is_made_of_the_code(
    staged: Path,
) -> None:
    index = (staged / "index.md").read_text("utf-8")
    assert "(project/readme.md)" in index
    assert "(project/proof.md)" in index
    assert "(../docs/" not in (staged / "project" / "readme.md").read_text("utf-8")
    assert "(../images/demo.svg)" in (staged / "project" / "readme.md").read_text("utf-8")
    assert '<a href="../explore.html">' in (staged / "course" / "index.md").read_text("utf-8")
    assert "### `laplace_mechanism`" in (staged / "reference.md").read_text("utf-8")
    assert "## discreet explore" in (staged / "cli.md").read_text("utf-8")


def test_control_dead_links_and_files_of_other_hosts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#in">1</a><a href="b.html#out">2</a><a'
        ' href="c.html">3</a><a href="https://example.org">4</a><img'
        ' src="https://example.org/x.png"><link rel="canonical" href="//x.org">',
        "utf-8",
    )
    (tmp_path / "b.html").write_text(
        '<p id="in">B</p><script src="//cdn.example/x.js"></script>', "utf-8"
    )
    (tmp_path / "a.css").write_text(
        "@import 'https://fonts.example/a.css'; p { background: url(here.png) }", "utf-8"
    )
    assert [fault.split(": ", 1)[1] for fault in TOOL["broken"](tmp_path)][:2] == [
        "b.html#out leads nowhere",
        "c.html leads nowhere",
    ]
    assert list(TOOL["fetched"](tmp_path)) == [
        "a.html loads https://example.org/x.png",
        "b.html loads //cdn.example/x.js",
        "a.css loads https://fonts.example/a.css",
    ]
