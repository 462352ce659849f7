"""Shell examples of the documentation run, in order, in one folder for each page.

    ```console            lines after `$ ` are run by the shell, `> ` goes on with a line; the rest
                          is what it prints
    ```python make.py     a block whose first line names a file becomes that file, before the next
                          command runs

`…` in what is printed stands for anything within its line, and alone on a line for any lines: noisy
numbers differ every time. A command that prints `discreet: …` is one that is refused, and must
fail; all others must succeed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from shell import discreet
from waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WHOLE = "…"


def pages() -> list[Path]:
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    return [page for page in every if "```console\n$ " in page.read_text("utf-8")]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with the text that it is said to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        more = next(
            (at for at, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines)
        )
        yield "\n".join([lines[0], *(line[2:] for line in lines[1:more])]), "\n".join(lines[more:])


def plain(text: str) -> str:
    """A text without empty ends; columns of a table are one blank apart, since their width may
    depend on the noise.
    """
    return "\n".join(
        re.sub(r"(?<=\S) +", " ", line.rstrip()) for line in text.strip("\n").rstrip().split("\n")
    )


def pattern(expected: str) -> str:
    """What is said to be printed, as a regular expression for the same with a new line at its end."""
    lines = plain(expected).split("\n")
    return "".join(
        (
            r"(?:.*\n)*?"
            if line == WHOLE
            else r"[^\n]*".join(map(re.escape, line.split(WHOLE))) + r"\n"
        )
        for line in lines
    )


def printed(command: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command and all that it prints; a plain command of ours needs no other
    process.
    """
    if re.fullmatch(r"""discreet (?:"[^"$`\\]*"|[^|&;<>$`*?"'\\\n])*""", command):
        with mock.patch.dict(os.environ, {"NO_COLOR": "1"}):
            ended = discreet(*shlex.split(command)[1:], cwd=folder, together=True)
        return ended.code, ended.out
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": place, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    return ran.returncode, ran.stdout.decode("utf-8")


def differences(text: str, folder: Path) -> list[str]:
    """What the commands of a page do otherwise than the page says."""
    found = []
    for heading, block in FENCE.findall(text):
        language, _, name = heading.partition(" ")
        if name and re.fullmatch(r"[\w.-]+", name):
            (folder / name).write_text(block, "utf-8")
        if language != "console":
            continue
        for command, expected in commands(block):
            code, output = printed(command, folder)
            refused = expected.lstrip().startswith("discreet: ")
            if (code != 0) != refused or not re.fullmatch(pattern(expected), plain(output) + "\n"):
                found.append(
                    f"$ {command}\nsaid:\n{expected}\nprinted, with code {code}:\n{output}"
                )
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    found = differences(page.read_text("utf-8"), tmp_path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("block", "faults"),
    [
        ("$ echo hello\nhello", 0),
        ("$ echo hello\nhullo", 1),
        ("$ echo hello\n", 1),
        ("$ echo 12 of 30\n… of 30", 0),
        ("$ echo 12 of 31\n… of 30", 1),
        ("$ printf 'a\\nb\\nc\\n'\na\n…\nc", 0),
        ("$ printf 'a\\nb\\nc\\n'\na\n…\nb", 1),
        ("$ cat made.txt\nas written", 0),
        ("$ echo one \\\n> two\none two", 0),
        ("$ true\n$ false\n", 1),
        ("$ echo 'discreet: no'; exit 2\ndiscreet: no", 0),
        ("$ echo 'discreet: no'\ndiscreet: no", 1),
    ],
)
def test_a_wrong_command_is_caught(block: str, faults: int, tmp_path: Path) -> None:
    page = f"# Page\n\n```text made.txt\nas written\n```\n\n```console\n{block}\n```\n"
    assert len(differences(page, tmp_path)) == faults


def test_there_are_pages_with_commands() -> None:
    assert "docs/tutorial.md" in {page.relative_to(ROOT).as_posix() for page in pages()}
