"""Builds the documentation site into site/ from the same Markdown: search, dark mode, nothing from
another host.

    docs/            in a temporary folder: the pages, those of the root, the reference and the
                     commands from the code
    zensical.toml    beside them; its navigation: tutorial, how-to guides, reference, explanation
    site/            what zensical makes of it, and explore.html; copy buttons leave out prompts and
                     outputs

Zensical is by the authors of Material for MkDocs, which ends in 2027.

Run it as: python tools/build_docs.py, or make docs. It ends with code 1 if a link leads nowhere, or
if a page loads anything from another host.
"""

from __future__ import annotations

import doctest
import html
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
BLOCK = re.compile(r'(<div class="(?:[\w-]+ )*highlight")>(<pre>.*?</pre>)', re.DOTALL)

ELSEWHERE = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "src/discreet/draw/PROOF.md": "project/proof.md",
}
"""Pages that are not in docs/, with their place on the site."""

NAVIGATION: dict[str, tuple[str, ...]] = {
    "Tutorial": ("tutorial.md",),
    "How-to guides": ("how-to/*.md", "discover.md", "figures.md", "serve.md", "verify.md"),
    "Reference": (
        "statistics.md",
        "coverage.md",
        "studies.md",
        "engines.md",
        "ledger.md",
        "scale.md",
        "cli.md",
        "reference.md",
        "limits.md",
    ),
    "Explanation": (
        "course/*.md",
        "how-it-works.md",
        "together.md",
        "comparison.md",
        "performance.md",
        "performance-tables.md",
        "attacks-tried.md",
        "mutants.md",
        "project/proof.md",
        "decisions/*.md",
        "references.md",
        "*.md",
    ),
    "Project": ("project/*.md",),
}
"""Sections with their pages; a page stands where it is named first, and one that is named nowhere
is explanation.
"""

FOLDERS = {"course": "The course", "decisions": "Decisions"}
"""Folders that are a section of their own, and what it is called."""


CONFIGURATION = """
[project]
site_name = "discreet"
site_description = "Publish statistics about people without revealing any one of them."
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
extra_css = ["site.css"]
nav = {}

[project.theme]
language = "en"
font = false
features = ["navigation.sections", "navigation.top", "navigation.footer", "content.code.copy", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/moon"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/sun"
toggle.name = "Switch to light mode"

[project.markdown_extensions.attr_list]
[project.markdown_extensions.footnotes]
[project.markdown_extensions.md_in_html]
[project.markdown_extensions.tables]
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]

[project.markdown_extensions.toc]
permalink = true
slugify = {{object = "pymdownx.slugs.slugify", kwds = {{case = "lower"}}}}
"""
"""Of zensical. Without a font it takes those of the reader's machine."""

STYLE = """
.md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 0; padding: .55em .8em; }
"""
"""Tables with many columns fit."""

LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
    "use": "href",
    "image": "href",
}
"""Tags that load a file, each with the attribute that names it."""


def build(target: Path) -> list[str]:
    """Make the site; what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        stage(work / "docs")
        (work / "zensical.toml").write_text(
            CONFIGURATION.format(navigation(work / "docs")), "utf-8"
        )
        command = [
            str(Path(sys.executable).with_name("zensical")),
            "build",
            "--strict",
            "-f",
            "zensical.toml",
        ]
        ended = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if ended.returncode:
            return [ended.stdout + ended.stderr]
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "site", target)
    for page in target.rglob("*.html"):
        page.write_text(copyable(page.read_text("utf-8")), "utf-8")
    from discreet.show import explore

    explore.save(target / "explore.html", force=True)
    return [*broken(target), *fetched(target)]


def stage(folder: Path) -> None:
    """The pages as the site has them."""
    shutil.copytree(ROOT / "docs", folder)
    for page, place in ELSEWHERE.items():
        (folder / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / page, folder / place)
    (folder / "reference.md").write_text(
        runpy.run_path(str(ROOT / "tools" / "reference.py"))["page"](), "utf-8"
    )
    (folder / "cli.md").write_text(
        runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))["reference"](), "utf-8"
    )
    (folder / "site.css").write_text(STYLE, "utf-8")
    homes = {folder / place: ROOT / page for page, place in ELSEWHERE.items()}
    for page in sorted(folder.rglob("*.md")):
        home = homes.get(page, ROOT / "docs" / page.relative_to(folder))
        page.write_text(adapted(page.read_text("utf-8"), home, page, folder), "utf-8")


def adapted(text: str, home: Path, page: Path, folder: Path) -> str:
    """A page with links that lead to the places of the site, and with what only the site can show."""

    def link(match: re.Match[str]) -> str:
        place, _, anchor = match[2].partition("#")
        if "://" in match[2] or not place:
            return match[0]
        target = (home.parent / place).resolve().relative_to(ROOT).as_posix()
        there = folder / ELSEWHERE.get(target, target.removeprefix("docs/"))
        if not there.exists():  # a file of the source, which the site does not have
            return (
                f"`{target}`"
                if match[1].startswith("[`")
                else match[1][match[1].index("[") + 1 : -2]
            )
        return f"{match[1]}{os.path.relpath(there, page.parent)}{'#' if anchor else ''}{anchor}{match[3]}"

    explore = os.path.relpath(folder / "explore.html", page.parent)
    text = text.replace("<!-- site: explore.html -->", f'<a href="{explore}">Open it here</a>.')
    return LINK.sub(link, text.replace("```python\n>>>", "```pycon\n>>>"))


def copyable(page: str) -> str:
    """A built page on which the button of a block with prompts copies the code alone."""

    def block(match: re.Match[str]) -> str:
        shown = html.unescape(re.sub("<[^>]+>", "", match[2]))
        if not shown.startswith(">>>"):
            return match[0]
        copied = html.escape(code_of(shown)).replace("\n", "&#10;")
        # zensical copies data-copy where it is given
        return f'{match[1]} data-copy="{copied}">{match[2]}'

    return BLOCK.sub(block, page)


def code_of(block: str) -> str:
    """The code of a block without prompts and outputs.

    A blank line ends each definition, so that `python` accepts the code, too.
    """
    sources = (example.source for example in doctest.DocTestParser().get_examples(block))
    return (
        "".join(
            f"{source}\n" if source.splitlines()[-1].startswith(" ") else source
            for source in sources
        ).rstrip()
        + "\n"
    )


def navigation(folder: Path) -> str:
    """The sections as a list of TOML."""
    taken = {folder / "index.md"}
    sections = []
    for title, patterns in NAVIGATION.items():
        entries: list[str] = []
        for pattern in patterns:
            pages = [page for page in ordered(folder, pattern) if page not in taken]
            taken.update(pages)
            names = [json.dumps(page.relative_to(folder).as_posix()) for page in pages]
            part = pattern.partition("/")[0]
            if part in FOLDERS and names:
                entries.append(f"{{ {json.dumps(FOLDERS[part])} = [{', '.join(names)}] }}")
            else:
                entries += names
        sections.append(f"{{ {json.dumps(title)} = [{', '.join(entries)}] }}")
    home = '{ Documentation = "index.md" }'
    return f"[{', '.join([home, *sections])}]"


def ordered(folder: Path, pattern: str) -> list[Path]:
    """The pages of a pattern: those of a folder with an index in the order of its links, else by
    name.
    """
    pages = sorted(folder.glob(pattern))
    index = folder / pattern.partition("/")[0] / "index.md"
    if "/" not in pattern or index not in pages:
        return pages
    links = [
        index,
        *(
            (index.parent / place).resolve()
            for _, place, _ in LINK.findall(index.read_text("utf-8"))
        ),
    ]
    return sorted(pages, key=lambda page: links.index(page) if page in links else len(links))


class StudyState(HTMLParser):
    """The anchors of a built page, what it links to, and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        given = {name: value for name, value in attributes if value}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get(LOADS.get(tag, ""))
        if loaded and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(loaded)
            self.links.append(loaded)


def broken(site: Path) -> Iterator[str]:
    """Links of built pages to files or headings that are not there."""
    pages = {file: StudyState(file) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        if file.name == "404.html":  # its links are from the root of the host
            continue
        for link in page.links:
            place, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (file.parent / unquote(place.partition("?")[0])).resolve() if place else file
            target = target / "index.html" if target.is_dir() else target
            known = not anchor or target not in pages or unquote(anchor) in pages[target].anchors
            if not target.exists() or not known:
                yield f"{file.relative_to(site)}: {link} leads nowhere"


def fetched(site: Path) -> Iterator[str]:
    """What a page or a style sheet would load from another host."""
    for file in sorted(site.rglob("*.html")):
        yield from (
            f"{file.relative_to(site)} loads {load}"
            for load in StudyState(file).loads
            if re.match(r"(https?:)?//", load)
        )
    for file in sorted(site.rglob("*.css")):
        for address in re.findall(
            r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", file.read_text("utf-8")
        ):
            yield f"{file.relative_to(site)} loads {address}"


if __name__ == "__main__":
    faults = build(ROOT / "site")
    print(
        *faults or ["site/ is built. To read it: python -m http.server --directory site"], sep="\n"
    )
    sys.exit(bool(faults))
