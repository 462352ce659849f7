"""The anchor: the last known state of the ledger, kept outside its database.

A copy of last week's ledger is a perfect ledger, with last week's budget. So after each commit the
head of the study's chain (how many entries, the hash of the last, ε spent, ε in total) is written
to a second file, and a ledger that does not contain that head is refused. After a crash between the
commit and this write, the ledger is ahead of its anchor, which is harmless; it can never be behind.

The file is text, in lines of 4 KiB, each with its own hash: one line for the ledger, then two for
each study. An advance overwrites the older of the two; a torn write leaves the other intact. Any
other change (a new study, a restored ledger) replaces the whole file in one rename. A spend writes
its head without waiting for the disk; `record` waits for both heads before anything is shown. So
after a power failure the anchor may lack a spend, but never a release.

A line also holds some earlier heads, fewer with growing age. If the ledger has lost its newest
entries, they show from which entry on the anchor knows more than the ledger. The first line holds
the key under which the ledger stores the versions of the data.

The anchor does not help if it and the ledger are both restored from old copies. Keep their backups
apart.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from discreet.draw.entropy import random_digits
from discreet.errors import EngineFailed, LedgerDamaged, errno_code
from discreet.outside import read_json

# bytes: a whole number of sectors, so that no write touches two lines; names stay below 400 bytes
_LINE = 4096
_DIGITS = 32  # digits of the hash of an earlier head: 128 bits, so that 40 of them fit in a line
_EARLIER = 40  # earlier heads in a line: enough for 10⁶ advances
_UNWRITTEN = (
    "cannot be written ({}): nothing is released; {}, and ask again with the same request_id"
)
_ADVICE = {
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room on its disk",
    errno.EACCES: "make the file and its folder accessible",
    errno.EPERM: "make the file and its folder accessible",
    errno.EROFS: "make its disk writable",
}
_OR_RESTORE = ", or, to continue without it on purpose, use Ledger.restore"

# the same for a line that is overwritten: the file does not grow
_sync = getattr(os, "fdatasync", os.fsync)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last entry of a study's chain, and the balance after it."""

    study: str
    count: int
    hash: str
    spent: int
    total: int


class Point(NamedTuple):
    """An earlier head: how many advances came before it, and the first digits of its hash."""

    advance: int
    number: int
    hash: str
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The content of the file: the ledger, the heads, and some earlier heads, the oldest first."""

    ledger: str
    schema: str
    key: str = field(default="", repr=False)
    heads: dict[str, Head] = field(default_factory=dict)
    points: dict[str, tuple[Point, ...]] = field(default_factory=dict)

    def advanced(self, head: Head) -> Anchor:
        """A copy with a new head of a study; the previous head becomes an earlier head."""
        points = _thin((*self.points.get(head.study, ()), head))
        return replace(
            self, heads={**self.heads, head.study: head}, points={**self.points, head.study: points}
        )


def _thin(points: tuple[Any, ...]) -> tuple[Point, ...]:
    """The points with the last, a head, numbered, and only some of the older points.

    The m-th advance is kept while fewer than 4·2ᵏ have followed, where 2ᵏ is the largest power of 2
    that divides m. So for each d there is a point that is d to 2d advances old, and there are about
    2·log₂(n) points of n.
    """
    *older, head = points
    newest = older[-1].advance + 1 if older else 0
    recent = [
        point
        for point in older[1:]
        if newest - point.advance < 4 * (point.advance & -point.advance)
    ]
    last = Point(newest, head.count, head.hash[:_DIGITS], head.spent)
    return (*older[:1], *recent[2 - _EARLIER :], last)


class AnchorFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[bytes, Anchor, dict[str, int]] = b"", Anchor(ledger="", schema=""), {}

    def read(self) -> Anchor:
        """The content of the file now; `LedgerDamaged` if it is missing or unreadable."""
        with (
            self._failing("cannot be read ({}): {}"),
            opened(self.path, os.O_RDONLY | os.O_NONBLOCK) as descriptor,
        ):
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # reading a pipe could wait for ever
                raise self._damaged()
            content = os.read(descriptor, os.fstat(descriptor).st_size)
        return self.parse(content)[0]

    def create(self, anchor: Anchor) -> None:
        """Write the first anchor; FileExistsError if there is one: only one ledger is created."""
        with self._failing():
            _write(private_file(self.path), content_of(anchor))
            sync_folder(self.path.parent)

    def replace(self, anchor: Anchor) -> None:
        """Replace the whole file in one rename."""
        with self._failing():
            target = self.path.resolve()  # the anchor may be a link to another disk: the link stays
            new = temporary_name(target)
            _write(private_file(new), content_of(anchor))
            os.replace(new, target)
            sync_folder(target.parent)

    def advance(self, head: Head, *, durable: bool = True, spent: bool = True) -> None:
        """Move a study's head forward, never back; if durable, it is on disk when this returns.

        `spent` says whether the head was moved by who asks now.
        """
        with self._failing(spent=spent), self._lock() as descriptor:
            content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            anchor, older = self.parse(content)
            now = anchor.heads.get(head.study)
            if now is None:
                self.replace(anchor.advanced(head))
            elif now.count < head.count:
                anchor = anchor.advanced(head)
                start, line = _LINE * older[head.study], _line(_values(anchor, head.study))
                if os.pwrite(descriptor, line, start) != _LINE:
                    raise OSError
                # the other line is older now
                older = {**older, head.study: ((older[head.study] - 1) ^ 1) + 1}
                self._known = content[:start] + line + content[start + _LINE :], anchor, older
            if durable:
                _sync(descriptor)

    def parse(self, content: bytes) -> tuple[Anchor, dict[str, int]]:
        """The anchor in the bytes of such a file, and the number of each study's older line."""
        # read and replaced at once: another thread may know another content by now
        known = self._known
        if content != known[0]:
            self._known = known = content, *self._read_lines(content)
        return known[1:]

    def _read_lines(self, content: bytes) -> tuple[Anchor, dict[str, int]]:
        count, remainder = divmod(len(content), _LINE)
        first = _value(content, 0)
        if remainder or count % 2 == 0 or first is None:
            raise self._damaged()
        heads, older, points = {}, {}, {}
        for number in range(1, count, 2):
            pair = [
                (line, value)
                for line in (number, number + 1)
                if (value := _value(content, line)) is not None
            ]
            if not pair or pair[0][1]["study"] != pair[-1][1]["study"]:
                raise self._damaged()
            line, newest = max(pair, key=lambda numbered: int(numbered[1]["count"]))
            study = newest["study"]
            points[study] = tuple(Point(*point) for point in newest.pop("points"))
            heads[study], older[study] = Head(**newest), 2 * number + 1 - line
        return Anchor(**first, heads=heads, points=points), older

    def _damaged(self) -> LedgerDamaged:
        return LedgerDamaged(
            f"the ledger's anchor is damaged: put {self.path.name} back from a copy, or move it"
            f" away{_OR_RESTORE}"
        )

    @contextmanager
    def _failing(self, words: str = _UNWRITTEN, *, spent: bool = False) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise
        except FileNotFoundError:
            raise LedgerDamaged(
                f"the ledger's anchor is missing: put {self.path.name} back{_OR_RESTORE}"
            ) from None
        except OSError as failure:
            number = failure.errno or errno.EIO  # a write of fewer bytes has none
            words = words.format(os.strerror(number), _ADVICE.get(number, "repair its disk"))
            raise EngineFailed(
                f"the ledger's anchor {words}", spent=spent, code=errno_code(number)
            ) from None

    @contextmanager
    def _lock(self) -> Iterator[int]:
        """The open file, with its lock; opened again if it was replaced meanwhile."""
        while True:
            with opened(self.path, os.O_RDWR) as descriptor, locked(descriptor):
                if os.fstat(descriptor).st_ino == os.stat(self.path).st_ino:
                    yield descriptor
                    return


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        # closing is not enough if a fork has copied the descriptor
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def temporary_name(path: Path) -> Path:
    """A name beside the path that nobody else uses or can guess, for a file to be renamed."""
    return path.with_name(f"{path.name}.{os.getpid()}.{random_digits(1)}.new")


def private_file(path: Path) -> int:
    """A new file, for its owner only and open for writing; FileExistsError if the name is taken,
    even by a link.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)  # whatever the umask takes away
    return descriptor


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, after a file was created or renamed."""
    with opened(folder, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def content_of(anchor: Anchor) -> bytes:
    """The bytes of an anchor's file."""
    first = _line({"ledger": anchor.ledger, "schema": anchor.schema, "key": anchor.key})
    return first + b"".join(2 * _line(_values(anchor, study)) for study in anchor.heads)


def _values(anchor: Anchor, study: str) -> dict[str, object]:
    head = anchor.heads[study]
    return {
        **{part: getattr(head, part) for part in head.__slots__},
        "points": anchor.points[study],
    }


def _line(value: dict[str, object]) -> bytes:
    text = _encode(value).encode()
    return (sha256(text).hexdigest().encode() + b" " + text).ljust(_LINE - 1) + b"\n"


def _value(content: bytes, number: int) -> dict[str, Any] | None:
    """The value of a line; None if its hash is wrong."""
    mark, _, text = content[_LINE * number : _LINE * (number + 1)].partition(b" ")
    text = text.rstrip()
    if sha256(text).hexdigest().encode() != mark:
        return None
    value: dict[str, Any] = read_json(text)  # the hash vouches for the names and types
    return value
