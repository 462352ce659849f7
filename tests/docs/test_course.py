"""The course is whole: every exercise has its parts, the chapter's are all there, and the pages
lead on in order.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
INDEX = (COURSE / "index.md").read_text("utf-8")
ORDER = re.findall(r"^\| \[\d+\. [^\]]+\]\((\w+\.md)\)", INDEX, re.MULTILINE)
PARTS = (
    r"\*\*Question\.\*\* ",
    r"\*\*Hint\.\*\* ",
    r"\*\*Check your answer\.\*\* ",
    r'<details markdown="1"><summary>Solution</summary>',
    r"</details>",
)


def exercises() -> dict[str, str]:
    """Every exercise by its number or letter."""
    text = "\n".join((COURSE / page).read_text("utf-8") for page in ORDER)
    sections = re.split(r"^## Exercise ", text, flags=re.MULTILINE)[1:]
    return {
        re.match(r"[\w.]+(?=:)", section)[0]: re.split(r"^#+ ", section, flags=re.MULTILINE)[0]
        for section in sections
    }  # type: ignore[index]


def missing(section: str) -> list[str]:
    """The parts that an exercise does not have; its check must refuse a wrong answer, and then
    accept a right one.
    """
    found, place = [], 0
    number = re.escape(section.partition(":")[0])
    for part in (*PARTS[:3], rf'>>> (check\("{number}",)', *PARTS[3:]):
        match = re.search(part, section[place:])
        if match is None:
            found.append(part)
        else:
            place += match.end()
    before, _, solution = section.partition("<details")
    lines = [
        re.findall(rf"^{number}(?:, \w+)?: (right|not yet)", text, re.MULTILINE)
        for text in (before, solution)
    ]
    wrong, right = (set(line) for line in lines)
    return (
        found
        if (wrong, right) == ({"not yet"}, {"right"})
        else [*found, "a wrong and a right answer"]
    )


def test_the_exercises_of_the_chapter_are_all_there() -> None:
    assert sorted(exercises()) == ["1.2", "1.5", "1.6", "1.7", *"ABCDEFGHI"]


@pytest.mark.parametrize("name", exercises())
def test_an_exercise_has_question_hint_check_and_a_folded_solution(name: str) -> None:
    assert missing(exercises()[name]) == []


def test_control_an_exercise_without_a_hint_or_a_right_answer_is_found() -> None:
    section = exercises()["1.2"]
    assert missing(section.replace("**Hint.** ", "")) == [PARTS[1]]
    answers = ["a wrong and a right answer"]
    assert missing(section.replace("1.2: right", "")) == answers
    assert missing(section.replace("1.2: not yet", "1.2: right")) == answers
    assert missing(section.replace('check("1.2"', 'check("1.5"')) == [r'>>> (check\("1\.2",)']


def test_every_page_leads_to_the_next() -> None:
    assert sorted([*ORDER, "index.md", "slips.md", "texts.md"]) == sorted(
        page.name for page in COURSE.glob("*.md")
    )
    for page, following in pairwise(ORDER):
        last = (COURSE / page).read_text("utf-8").rstrip().splitlines()[-1]
        assert last.startswith("Next: ")
        assert f"]({following})" in last
