"""The picture of the way of a question is what its tool prints, and the way is short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def printed() -> str:
    return subprocess.run(
        [sys.executable, "tools/walk.py"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def test_a_question_goes_back_and_forth_seldom(printed: str) -> None:
    changes, back = map(int, re.findall(r"(\d+) changes of package, (\d+) of them", printed)[0])
    assert changes <= 66
    assert back <= 43


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="a later Python calls no function for a list comprehension"
)
def test_the_picture_is_what_the_tool_prints(printed: str) -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    assert f"```text\n{printed}```" in page, "make it again: python tools/walk.py"
