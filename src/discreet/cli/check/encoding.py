"""Lines of a CSV file that are no UTF-8: a study that reads their bytes leaves them out, unless it has an encoding."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from discreet.engines.sources import CSV

USUAL = "windows-1252"
"""What spreadsheets of western offices write; Latin-1 is part of it, but for control characters."""


def undecoded_lines(source: object, most: int | None = None) -> int:
    """How many lines of a plain file of CSV are no UTF-8, of the first ones; 0 of other sources."""
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
