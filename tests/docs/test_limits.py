"""docs/limits.md: every sentence of the promise, and every attack that is tried, names tests, and
each of them exists.

Tests are looked up in the files' syntax trees: nothing is imported.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text("utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ATTACKS = 52
"""The least number of attacks; more of them have numbers with gaps."""


def items(text: str, section: str) -> list[str]:
    """The items of the list in a section, each with the lines that belong to it."""
    body = re.split(r"^## ", text, flags=re.MULTILINE)
    [found] = [part for part in body if part.startswith(section + "\n")]
    return re.split(r"^(?:- |\d+\. )", found, flags=re.MULTILINE)[1:]


def unshown(text: str, section: str) -> list[str]:
    """The sentences that name no test."""
    return [item.split("\n")[0] for item in items(text, section) if not NAMED.search(item)]


def missing(text: str) -> list[str]:
    """The named tests that do not exist."""
    return [
        f"{file}::{name}"
        for file, name in NAMED.findall(text)
        if name not in defined_in(ROOT / file)
    ]


def defined_in(file: Path) -> set[str]:
    if not file.exists():
        return set()
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_sentence_of_the_promise_names_a_test() -> None:
    assert len(items(PAGE, "What is promised")) >= 20
    assert unshown(PAGE, "What is promised") == []


def test_every_attack_names_a_test() -> None:
    assert len(items(PAGE, "Attacks that the tests try")) >= ATTACKS
    assert unshown(PAGE, "Attacks that the tests try") == []


def test_every_named_test_exists() -> None:
    assert len(NAMED.findall(PAGE)) > ATTACKS
    assert missing(PAGE) == []


def test_every_attack_is_named_by_its_number_in_the_tests() -> None:
    """TRUST n stands in the test, so that a reader of either finds the other."""
    mentioned: set[int] = set()
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for numbers in re.findall(
            r"\bTRUST ((?:\d+(?:, | and | to )?)+)", file.read_text("utf-8"), re.IGNORECASE
        ):
            found = [int(number) for number in re.findall(r"\d+", numbers)]
            mentioned.update(range(found[0], found[-1] + 1) if " to " in numbers else found)
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", PAGE, flags=re.MULTILINE)]
    assert numbers == sorted(set(numbers))
    assert {*range(1, ATTACKS + 1)} <= {*numbers} <= mentioned


@pytest.mark.parametrize(
    ("text", "section"),
    [
        (
            (
                "## What is promised\n\n- **A.** True. `tests/docs/test_limits.py::test_x`\n-"
                " **B.** Also true.\n"
            ),
            "B",
        )
    ],
)
def test_control_a_sentence_without_a_test_and_a_test_that_does_not_exist_are_found(
    text: str, section: str
) -> None:
    assert unshown(text, "What is promised") == [f"**{section}.** Also true."]
    assert missing(text) == ["tests/docs/test_limits.py::test_x"]
    assert missing("`tests/docs/no_such_file.py::test_y`") == ["tests/docs/no_such_file.py::test_y"]
