"""Why a file of a source cannot be read: gone, a folder, forbidden, cut, encrypted, or no file of
its kind.

It looks at the first and the last bytes of a file after an engine has failed, and says nothing
about a row.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from discreet.engines.base import Failure, of_errno
from discreet.engines.endings import PARQUET, ROWS, suffix_of

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
_ENCRYPTED = "is encrypted: name a copy without encryption as the source"
_CUT = "is shorter than it says, since its copying or writing was cut off: copy or write it again"
_BLOCKS, _FLAGS = 3 * 4096, 20
"""The three headers of a DuckDB file, in bytes, and where the flags begin, of which the first means
encryption.
"""


def why_unreadable(files: Iterable[Path]) -> Failure | None:
    """Why the first of these files that cannot be read cannot; None if they look as they should."""
    return next(filter(None, map(_why, files)), None)


def _why(file: Path) -> Failure | None:
    try:
        if stat.S_ISDIR(file.stat().st_mode):
            return of_errno(errno.EISDIR, file.name)
        if not file.is_file():  # reading a pipe could wait for ever
            return None
        with file.open("rb") as opened:
            head = opened.read(100)
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - 8))
            tail = opened.read()
    except OSError as error:
        return of_errno(error.errno or errno.EIO, file.name)
    words = ""
    if suffix_of(file) in ROWS:
        words = _of_parquet(head, tail, size) if suffix_of(file) in PARQUET else ""
    elif head.startswith(SQLITE):
        words = _of_sqlite(head, size)
    elif head[8:12] == DUCKDB:
        encrypted = len(head) > _FLAGS and head[_FLAGS] & 1
        words = _ENCRYPTED if encrypted else _CUT if size < _BLOCKS else ""
    return Failure(f"{file.name} {words}") if words else None


def _of_parquet(head: bytes, tail: bytes, size: int) -> str:
    if b"PARE" in (head[:4], tail[-4:]):
        return _ENCRYPTED
    if head[:4] != b"PAR1":
        return "is no Parquet file: write it as Parquet, or give it the ending of what it is"
    if tail[-4:] != b"PAR1" or size < 12 + int.from_bytes(tail[:4], "little"):
        return _CUT
    return ""


def _of_sqlite(head: bytes, size: int) -> str:
    """https://www.sqlite.org/fileformat.html."""
    if len(head) < 100:
        return _CUT
    if head[19] > 2 or int.from_bytes(head[44:48], "big") > 4:
        return (
            "is of a newer version of SQLite: write it with this one, or copy the table to Parquet"
        )
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    is_counted = head[24:28] == head[92:96]
    return _CUT if is_counted and size < pages * (65536 if page == 1 else page) else ""
