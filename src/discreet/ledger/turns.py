"""Turns: which thread and, for a file, which process may use a ledger's database now.

SQLite's locks are POSIX locks: the system drops all locks of a process on a file as soon as the
process closes any descriptor of that file, even one that a thread opened to make a copy. So a
transaction on a file also holds a `flock` on `<file>.lock`, which only closing its own descriptor
releases. That file is empty and needs no backup.

A fork waits until no other thread has its turn, because SQLite's locks do not survive a fork. A
thread that forks during its own turn, in a signal handler, does not wait for itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from weakref import WeakSet

from discreet.ledger.anchor import private_file

# seconds that a transaction waits for its turn, or that a session may be idle in a transaction
PATIENCE = 60
_NAP = 0.001
_LONGEST_NAP = 0.02  # seconds between two attempts to lock a file

_registry = threading.RLock()
_turns: WeakSet[Turn] = WeakSet()
_held_turns: list[list[Turn]] = []


class Busy(Exception):
    """A turn that did not come in time."""


class Turn:
    """A lock for one user at a time; with a file, one among all processes that use the file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.lock = threading.RLock()
        self.taken = False  # whether somebody holds it now, or held it a moment ago
        with _registry:
            _turns.add(self)

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Hold the turn; `Busy` if it comes too late, `OSError` if the file cannot be locked."""
        end = time.monotonic() + PATIENCE
        if not self.lock.acquire(timeout=PATIENCE):
            raise Busy
        try:
            self.taken = True
            with nullcontext() if self._file is None else _alone(self._file, end):
                yield
        finally:
            self.taken = False
            self.lock.release()


@contextmanager
def _alone(file: Path, end: float) -> Iterator[None]:
    """Hold the lock of the file against other processes, and other ledgers in this process."""
    nap = _NAP
    while True:
        descriptor = _open_lock(file)
        try:
            if _try_lock(descriptor, file):
                try:
                    yield
                    return
                finally:
                    # closing is not enough if a fork has copied it
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)
        if time.monotonic() >= end:
            raise Busy
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP)


def _open_lock(file: Path) -> int:
    while True:
        with suppress(FileNotFoundError):
            return os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        with suppress(FileExistsError):
            return private_file(file)


def _try_lock(descriptor: int, file: Path) -> bool:
    """Whether we got the lock, and the file still has this name."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == os.stat(file).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as failure:
        if failure.errno != errno.EACCES:  # some systems report this for a lock that is held
            raise
        return False


def _hold_all() -> None:
    _registry.acquire()
    _held_turns.append(sorted(_turns, key=id))
    for turn in _held_turns[-1]:
        turn.lock.acquire()


def _release_all() -> None:
    for turn in _held_turns.pop():
        turn.lock.release()
    _registry.release()


os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)
