"""The server's two small files beside the studies: who may ask, and what was asked under which id.

They contain hashes of tokens and the form of answers, but no row and no budget, which only the ledger keeps. Without
them, nobody has access. They are SQLite files that only their owner can read, and are opened for each request, so that
a revoked token is refused at once and a missing file lets nobody in.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import ClassVar

from discreet.errors import EngineFailed, InvalidParameter
from discreet.ledger.anchor import building_name, private_file

_VERSION = 2
_PATIENCE = 10.0  # seconds to wait for another process


class Store:
    schema: ClassVar[str]
    forgetful: ClassVar[bool] = False
    """Whether writes do not wait for the disk: they survive a crash of the process, but maybe not of the machine."""

    def __init__(self, path: str | os.PathLike[str], *, new: bool = False) -> None:
        """Opens the file; a missing file is created with `new`, or if the store is forgetful."""
        self.path = Path(path).absolute()
        self._writing = threading.Lock()  # threads of one process wait here, since SQLite would make them sleep
        if (new or self.forgetful) and not self.path.exists():
            self._make()
        with self.opened():
            pass
        self._held = self._connect() if self.forgetful else None  # closing the last connection would wait for the disk

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection; with `write`, in a transaction that is committed to disk at the end, or rolled back."""
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
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.OperationalError as failure:
            if "unable to open" in str(failure):
                raise self._unusable() from None
            raise EngineFailed(f"the file {self.path.name} cannot be used at the moment; nothing was changed") from None
        except sqlite3.DatabaseError:
            raise self._unusable() from None

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)

    def _make(self) -> None:
        """Create the file under a temporary name, then link it; a second process finds the complete file."""
        building = building_name(self.path)
        os.close(private_file(building))
        try:
            with closing(sqlite3.connect(building, isolation_level=None)) as connection:
                journal = "WAL" if self.forgetful else "DELETE"  # DELETE leaves no other file behind
                connection.execute(f"PRAGMA journal_mode={journal}")
                connection.executescript(f"BEGIN; {self.schema} PRAGMA user_version = {_VERSION}; COMMIT;")
            os.link(building, self.path)
        except FileExistsError:
            pass
        finally:
            building.unlink()

    def _unusable(self) -> InvalidParameter:
        return InvalidParameter(
            f"{self.path.name} must be a file that discreet serve created; restore it, or create a token"
        )
