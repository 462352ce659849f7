"""The way of one question through the source: which files it passes, and how often it goes back and
forth.

    python tools/walk.py

A question is planned and released twice over a small table; calls of the second time are counted in
their order (`sys.setprofile`, our files only; modules at the root of the package belong to no
room).
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import discreet

ROOT = Path(discreet.__file__).parent
ROOMS = ("ask", "calibrate", "draw", "engines", "ledger", "release", "files")
QUESTION = (
    "SELECT county, count(*) AS people, avg(age) AS age FROM data WHERE age >= 18 GROUP BY county"
)


WALKS = 8
"""The shortest of so many is shown: now and then a draw needs more than a look-up, and its coins
are made.
"""


def walked(question: str = QUESTION) -> list[str]:
    """The files that the calls of a question lie in, in their order."""
    return min((walk(question, f"0.2{number}") for number in range(1, WALKS + 1)), key=len)


def walk(question: str, epsilon: str) -> list[str]:
    """The files of one walk."""
    table = pa.table({"county": ["Essex", "Dukes"] * 50, "age": list(range(100))})
    columns = {"county": {"keys": ["Dukes", "Essex"]}, "age": {"bounds": (0, 120)}}
    files: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(ROOT)):
            files.append(str(Path(path).relative_to(ROOT)))

    with tempfile.TemporaryDirectory() as folder:
        policy = discreet.Policy(source=table, columns=columns, epsilon=10, version="1")
        with discreet.Study(policy, ledger=Path(folder, "walk.ledger")) as study:
            study.sql(question, epsilon="0.5").release()
            sys.setprofile(note)
            try:
                study.sql(question, epsilon=epsilon).release()
            finally:
                sys.setprofile(None)
    return files


def rooms(files: list[str]) -> list[str]:
    """The packages that a walk enters, one after the other; modules at the root are left out."""
    return [room for room, _ in groupby(file.partition("/")[0] for file in files if "/" in file)]


def picture(files: list[str]) -> str:
    """The figures, the walk from left to right with a mark in the package where it is, and the
    files of each.
    """
    way = rooms(files)
    back = sum(one == three for one, three in zip(way, way[2:], strict=False))
    lines = [
        f"{len(set(files))} files; {len(way) - 1} changes of package, {back} of them A → B → A",
        "",
    ]
    order = [room for room in ROOMS if room in way]
    lines += [
        f"{room:<10} {''.join('■' if here == room else '·' for here in way)}" for room in order
    ]
    lines.append("")
    for room in order:
        inside = dict.fromkeys(file for file in files if file.startswith(f"{room}/"))
        names = ", ".join(file.partition("/")[2].removesuffix(".py") for file in inside)
        lines += textwrap.wrap(
            names, 108, initial_indent=f"{room:<10} ", subsequent_indent=" " * 11
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(picture(walked()))
