"""Lines of a CSV file that are not UTF-8: a study leaves them out, unless it declares an encoding."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from discreet.engines.sources import CSV

USUAL = "windows-1252"
"""The encoding that spreadsheets in western offices write; it contains Latin-1, except control characters."""


def undecoded_lines(source: object, most: int | None = None) -> int:
    """The number of lines that are not UTF-8 among the first `most` of a plain CSV file; 0 for other sources."""
    if not isinstance(source, str) or Path(source).suffix.lower() not in CSV or not Path(source).is_file():
        return 0
    with Path(source).open("rb") as file:
        return sum(not _is_utf8(line) for line in islice(file, most))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
