"""The server's two small files beside the studies: who may ask, and what was asked under which id.

They contain hashes of tokens and the form of answers, but no row and no budget, which only the
ledger keeps. Without them, nobody has access. They are SQLite files that only their owner can read,
and are opened for each request, so that a revoked token is refused at once and a missing file lets
nobody in. `Access` is the first, and `Requests` the second.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from shutil import disk_usage
from typing import Any, ClassVar

from discreet.errors import EngineFailed, InvalidParameter, errno_code
from discreet.ledger.anchor import private_file, temporary_name
from discreet.outside import read_json
from discreet.serve.refusals import Refusal

REQUESTS = "discreet.requests"  # beside the file of tokens
_VERSION = 2
_SPARE = 4 * 2**20  # bytes that must be free for a server to be ready
_PATIENCE = 10.0  # seconds to wait for another process


_ERRNOS = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EACCES: sqlite3.SQLITE_READONLY,
    errno.EPERM: sqlite3.SQLITE_READONLY,
    errno.EROFS: sqlite3.SQLITE_READONLY,
}


def refuse_full(file: Path) -> None:
    """Refuse a folder whose disk has no room for a store to grow, or that cannot be written."""
    disk = os.statvfs(file.parent)
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < _SPARE:
        raise EngineFailed(
            f"the disk of {file.name} has less than {_SPARE >> 20} MiB left: make room"
        )
    if not os.access(file, os.W_OK):
        raise EngineFailed(
            f"the file {file.name} cannot be written: make the file and its folder writable"
        )


class Store:
    schema: ClassVar[str]
    forgetful: ClassVar[bool] = False
    """Whether writes do not wait for the disk: they survive a crash of the process, but maybe not
    of the machine.
    """

    def __init__(self, path: str | os.PathLike[str], *, new: bool = False) -> None:
        """Opens the file; a missing file is created with `new`, or if the store is forgetful."""
        self.path = Path(path).absolute()
        # threads of one process wait here, since SQLite would make them sleep
        self._writing = threading.Lock()
        if (new or self.forgetful) and not self.path.exists():
            try:
                self._make()
            except (sqlite3.DatabaseError, OSError) as failure:
                raise self._translated(failure) from None
        with self.opened():
            pass
        # closing the last connection would wait for the disk
        self._held = self._connect() if self.forgetful else None

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection; with `write`, in a transaction that is committed to disk at the end, or
        rolled back.
        """
        try:
            with self._writing if write else nullcontext(), closing(self._connect()) as connection:
                if connection.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                    raise self._unusable()
                if not write:
                    yield connection
                    return
                connection.execute(f"PRAGMA synchronous={'NORMAL' if self.forgetful else 'FULL'}")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    # where the disk is full, SQLite has ended it itself
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as failure:
            raise self._translated(failure) from None

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode=rw"
        return sqlite3.connect(
            uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )

    def _make(self) -> None:
        """Create the file under a temporary name, then link it; a second process finds the complete
        file.
        """
        building = temporary_name(self.path)
        os.close(private_file(building))
        try:
            with closing(sqlite3.connect(building, isolation_level=None)) as connection:
                # DELETE leaves no other file behind
                journal = "WAL" if self.forgetful else "DELETE"
                connection.execute(f"PRAGMA journal_mode={journal}")
                connection.executescript(
                    f"BEGIN; {self.schema} PRAGMA user_version = {_VERSION}; COMMIT;"
                )
            os.link(building, self.path)
        except FileExistsError:
            pass
        finally:
            building.unlink()

    def _translated(
        self, failure: sqlite3.DatabaseError | OSError
    ) -> EngineFailed | InvalidParameter:
        """What a failure of SQLite or of the disk means for the operator; nothing was changed."""
        if isinstance(failure, OSError):
            name = errno_code(failure.errno or 0)
            number = _ERRNOS.get(failure.errno or 0, sqlite3.SQLITE_IOERR)
        else:
            name = getattr(failure, "sqlite_errorname", "")
            # https://sqlite.org/rescode.html
            number = getattr(failure, "sqlite_errorcode", 0) & 0xFF
        # for the file that readers share
        if number == sqlite3.SQLITE_IOERR and not disk_usage(self.path.parent).free:
            number = sqlite3.SQLITE_FULL
        match number:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                words = f"is busy: another process has held it for {_PATIENCE:g} s; ask again"
            case sqlite3.SQLITE_FULL:
                words = "cannot grow: its disk is full; make room"
            case sqlite3.SQLITE_IOERR:
                words = "cannot be used: its disk failed; repair the disk"
            case sqlite3.SQLITE_READONLY:
                words = "cannot be written: make the file, its folder and their disk writable"
            case sqlite3.SQLITE_CANTOPEN if os.path.exists(self.path):
                words = (
                    "cannot be opened: make the file and its folder accessible, and their disk"
                    " writable"
                )
            case _:
                return self._unusable()
        return EngineFailed(f"the file {self.path.name} {words}", code=name)

    def _unusable(self) -> InvalidParameter:
        return InvalidParameter(
            f"{self.path.name} must be a file that discreet serve created; restore it, or create a"
            " token"
        )


class Requests(Store):
    """Which question was asked under which id: an id always means one question, and its answer can
    be fetched again.

    An id belongs to its owner: the ledger stores it as `<name>:<id>`, so nobody can use or probe
    the id of another. A study is identified by its ledger and its name, so that two studies with
    the same file name stay apart. An id accepts only one body. The ledger keeps the answer; this
    file keeps only how it is shown. If the machine fails and the file loses the last ids, the next
    request stores them again, and the ledger still charges once.
    """

    schema = """
CREATE TABLE request (
    study TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL CHECK (length(body) = 32),
    view TEXT NOT NULL,
    content BLOB,
    PRIMARY KEY (id, study)
) STRICT;
"""
    forgetful = True

    def claim(self, study: str, name: str, *, body: bytes, view: dict[str, Any]) -> bool:
        """Whether the id is new; an id that was used with another body is refused."""
        with self.opened(write=True) as file:
            added = file.execute(
                "INSERT OR IGNORE INTO request (study, id, body, view) VALUES (?, ?, ?, ?)",
                (study, name, body, json.dumps(view)),
            ).rowcount
            recorded = file.execute(
                "SELECT body FROM request WHERE study = ? AND id = ?", (study, name)
            ).fetchone()
        if recorded != (body,):
            raise Refusal(
                409,
                "The request_id was used for another question.",
                "Use a new request_id; nothing was spent.",
            )
        return bool(added)

    def forget(self, study: str, name: str) -> None:
        """Remove an id under which nothing was spent."""
        with self.opened(write=True) as file:
            file.execute(
                "DELETE FROM request WHERE study = ? AND id = ? AND content IS NULL", (study, name)
            )

    def keep(self, study: str, name: str, content: bytes) -> bytes:
        """The answer of public numbers under this id: the stored answer, or else this one."""
        key = (study, name)
        with self.opened(write=True) as file:
            file.execute(
                "UPDATE request SET content = coalesce(content, ?) WHERE study = ? AND id = ?",
                (content, *key),
            )
            row = file.execute(
                "SELECT content FROM request WHERE study = ? AND id = ?", key
            ).fetchone()
        return bytes(row[0])

    def find(self, study: str, name: str) -> tuple[dict[str, Any], bytes | None] | None:
        """How the answer of an id is shown, and the answer itself if all its numbers are public: no
        ledger keeps it.
        """
        with self.opened() as file:
            statement = "SELECT view, content FROM request WHERE study = ? AND id = ?"
            row = file.execute(statement, (study, name)).fetchone()
        return None if row is None else (read_json(row[0]), row[1])


def ledger_id(owner: str, request_id: str) -> str:
    """The id of a request in a ledger, where each person has ids of their own."""
    return f"{owner}:{request_id}"
