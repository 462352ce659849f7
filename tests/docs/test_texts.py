"""The table of the texts holds: each item is two steps from the index, and what checks it is there."""

from __future__ import annotations

import ast
import doctest
import re
from functools import cache
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "course"
TABLE = COURSE / "texts.md"
ITEMS = {
    "The chapter [US21]": [
        "Definition 1.1",
        *[f"Equation ({number})" for number in range(2, 6)],
        "equation (1)",
        *[f"Exercise {number}" for number in ("1.2", "1.5", "1.6", "1.7")],
        "Figure 1",
        "Algorithm 1",
        "Theorem 1.3",
        *[f"Lemma 1.4, {part}" for part in ("1a", "1b", "1c", "2a", "2b", "2c")],
        "ℓ₁ norm",
        "proportion",
        "histogram",
        "Lap(λ)",
        "GKS08",
        "Key point",
    ],
    "The slides": [
        "density",
        "translates",
        "definition",
        "sensitivity",
        "Theorem",
        "sliding",
        "Figure",
        "proof",
    ],
    "Niu's notes": [
        "mean",
        "Figure",
        "deterministic",
        "L1-sensitivity",
        "mechanism",
        "proof",
        "Remark",
    ],
    "The unsigned notes": [
        *[
            "mechanism",
            "Sensitivity",
            "average",
            "standard deviation",
            "maximum",
            "median",
            "variance",
            "Figure",
        ],
        *["b = Δf/ε", "Remark", "ratio", "bound", "sets S"],
    ],
}
"""What the texts name or number; a row for each must be there."""


def rows(text: str) -> dict[str, list[list[str]]]:
    """The rows of each section: item, where, checked by."""
    return {
        section.partition("\n")[0]: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in section.splitlines()
            if line.startswith("| ") and not line.startswith("| item |")
        ]
        for section in text.split("\n## ")[1:]
    }


@cache
def names_in(path: str) -> set[str]:
    """The names of the tests in a file."""
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def examples_of(page: Path) -> list[str]:
    """The code of the examples of a page."""
    return [
        example.source for example in doctest.DocTestParser().get_examples(page.read_text("utf-8"))
    ]


def exists(name: str) -> bool:
    """Whether a public name such as discreet.accuracy.tail exists."""
    found: object = discreet
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def faults(row: list[str]) -> list[str]:
    """What a row names that does not exist, and what it lacks."""
    if len(row) != 3:
        return [f"{len(row)} cells"]
    links = re.findall(r"\]\(([^)#\s]+)", row[1] + row[2])
    pages = [(COURSE / link).resolve() for link in links]
    lost = [link for link, page in zip(links, pages, strict=True) if not page.is_file()]
    code = [example for page in pages if page.is_file() for example in examples_of(page)]
    names, checks = re.findall(r"`(discreet[^`]*)`", row[1]), re.findall(r"`([^`]+)`", row[2])
    lost += [name for name in names if not exists(name)]
    for check in checks:
        path, _, name = check.partition("::")
        if check.startswith(">>> "):
            lost += [] if any(source.startswith(check[4:]) for source in code) else [check]
        elif not name.startswith("test_") or name not in names_in(path):
            lost.append(check)
    return (
        lost
        + ([] if re.search(r"\]\(", row[1]) else ["no link"])
        + ([] if checks else ["no check"])
    )


ROWS = {row[0]: row for section in rows(TABLE.read_text("utf-8")).values() for row in section}


@pytest.mark.parametrize("item", ROWS)
def test_what_a_row_names_is_there(item: str) -> None:
    assert faults(ROWS[item]) == []


@pytest.mark.parametrize("text", ITEMS)
def test_every_item_of_a_text_has_a_row(text: str) -> None:
    items = [row[0] for row in rows(TABLE.read_text("utf-8"))[text]]
    assert len(set(items)) == len(items)
    assert not [label for label in ITEMS[text] if not any(label in item for item in items)]


def test_every_item_is_two_steps_from_the_index() -> None:
    """The index leads to the table, and a row leads to its page; the course leads there as well."""
    assert "](course/texts.md)" in (ROOT / "docs" / "index.md").read_text("utf-8")
    assert "](course/slips.md)" in (ROOT / "docs" / "index.md").read_text("utf-8")
    assert "](texts.md)" in (COURSE / "index.md").read_text("utf-8")


def test_every_slip_says_what_is_right_and_checks_it() -> None:
    text = (COURSE / "slips.md").read_text("utf-8").partition("## Notation")[0]
    slips = text.split("\n### ")[1:]
    assert len(slips) == 18
    for slip in slips:
        assert "*Printed" in slip, slip
        assert "*Right" in slip, slip
        assert ">>> " in slip, slip


def test_every_citation_of_the_course_is_listed() -> None:
    listed = re.findall(
        r"^- \*\*\[(\w+)\]\*\*", (ROOT / "docs" / "references.md").read_text("utf-8"), re.MULTILINE
    )
    cited = {
        key
        for page in COURSE.glob("*.md")
        for key in re.findall(r"\[([A-Z]\w*\d\d)\]", page.read_text("utf-8"))
    }
    assert cited <= set(listed)
    # what the chapter refers to
    assert cited >= {"US21", "DMNS06", "DMNS16", "DR14", "WAB18", "GKS08"}


def test_control_a_row_that_names_what_is_not_there_is_found() -> None:
    item, where, check = ROWS["Lemma 1.4, 1c: P(∣Z∣ > tλ) ≤ e^(−t)"]
    assert faults([item, where.replace("accuracy.tail", "accuracy.tails"), check]) == [
        "discreet.accuracy.tails"
    ]
    assert faults([item, where.replace("lemma.md", "lemmas.md"), check]) == ["lemmas.md"]
    assert faults([item, "`discreet.accuracy.tail`", check]) == ["no link"]
    assert faults([item, where, ""]) == ["no check"]
    assert faults([item, where, "`>>> 1 + 1`"]) == [">>> 1 + 1"]
    assert faults([item, where, check.replace("rounded", "squared")]) == [
        check.strip("`").replace("rounded", "squared")
    ]
    assert faults([item, where, "`tests/no.py::test_it`"]) == ["tests/no.py::test_it"]
