"""The command line as a person meets it, in a folder of its own."""

import contextlib
import hashlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.__main__ import ended

QUESTION = "SELECT county, count(*) AS visits, avg(age) FROM visits GROUP BY county"
CANARY = "Wolpertinger"
"""A value that is in the data and nowhere else."""

POLICY = """source = "visits.parquet"
unit = "patient"
max_rows = 2
epsilon = "1"
version = "1"
[columns]
county = { keys = ["Dukes", "Essex", "Suffolk"] }
age = { bounds = [0, 120] }
"""


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def refused(self, code: int, *words: str) -> None:
        """Nothing was shown but one sentence without a traceback or a row."""
        assert self.code == code, (self.code, self.err)
        assert self.err.startswith("discreet: ")
        assert self.err.count("\n") == 1
        assert len(self.err) < 400
        for word in words:
            assert word in self.err, self.err
        for never in ("Traceback", CANARY, 'File "'):
            assert never not in self.err + self.out


def discreet(*arguments: str, cwd: Path | str, stdin: str = "", together: bool = False) -> Ended:
    """What `discreet …` prints and ends with, in this process: the start of another costs more than
    most commands.

    Where it is wanted together, errors are in what is printed, as on a terminal.
    """
    given, out, err = (
        io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (stdin.encode(), b"", b"")
    )
    err = out if together else err
    streams = mock.patch.multiple(
        sys, argv=["discreet", *arguments], stdin=given, stdout=out, stderr=err
    )
    with streams, contextlib.chdir(cwd):
        code = ended()
    for stream in (out, err):
        stream.flush()
    return Ended(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def one_after_another(cases: list[list[str]], cwd: Path) -> list[Ended]:
    """The same for many commands."""
    return [discreet(*arguments, cwd=cwd) for arguments in cases]


def visits(rows: int = 3000) -> pa.Table:
    """Visits of patients, with a county that nobody declared."""
    counties = ["Suffolk", "Essex", "Dukes", CANARY]
    return pa.table(
        {
            "patient": [f"{CANARY}{row // 2}" for row in range(rows)],
            "county": [counties[row % 4] for row in range(rows)],
            "age": [float(row % 90) for row in range(rows)],
            "well": [row % 3 == 0 for row in range(rows)],
            "born": (
                pa.array([row * 1000 for row in range(rows)], pa.timestamp("s")).cast(
                    pa.timestamp("us")
                )
            ),
        }
    )


def study_in(folder: Path, policy: str = POLICY) -> Path:
    """A folder with data and a policy."""
    pq.write_table(visits(), folder / "visits.parquet")
    (folder / "study.toml").write_text(policy, "utf-8")
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The files of a folder, hashed; a file that SQLite only holds while it works is none."""
    files = (
        file
        for file in folder.iterdir()
        if file.is_file() and not file.name.endswith(("-wal", "-shm"))
    )
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
