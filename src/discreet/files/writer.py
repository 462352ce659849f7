"""How every file is written: under a new private name beside its target, and renamed when it is whole.

    refuse → (spend) → write `.….part`, mode 0600 → fsync → mode by the umask → name it → fsync the folder

A target must be a new file in a folder that can be written; it is found out before anything is spent. With `force` it
may replace a plain file, but never one of the custodian's own (`Kept`: data, policy, keys, ledger, anchor), and never
anything through a link. A name that comes up meanwhile is not overwritten without `force`.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Self

from discreet.errors import InvalidParameter
from discreet.ledger.anchor import sync_folder
from discreet.ledger.questions import new_request_id

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_JOURNALS = ("", "-wal", "-shm", "-journal", ".new", ".lock")
_QUOTED = re.compile(r"""'((?:[^']|'')+)'|"((?:[^"]|"")+)"|\$(\w*)\$(.+?)\$\3\$""", re.DOTALL)
"""What stands between quotes, which are doubled inside, or between dollars."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a custodian keeps, and no output may replace or join: files, folders of data, and globs."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.files + other.files, self.folders + other.folders, self.globs + other.globs)

    def holds(self, target: Path) -> bool:
        """Whether a target is one of them, by whatever name, or would become one."""
        location = os.path.realpath(target)
        for file in self.files:
            with suppress(OSError):
                if os.path.realpath(file) == location or os.path.samefile(file, target):
                    return True
        # a glob names a file by its last part alone, which is enough to be careful
        name = os.path.basename(location)
        globs = (pattern for pattern in self.globs if fnmatch.fnmatch(name, os.path.basename(pattern)))
        for folder in (*self.folders, *map(_root, globs)):
            top = os.path.realpath(folder)
            if location == top or location.startswith(top.rstrip(os.sep) + os.sep):
                return True
        return False


NOTHING = Kept()


def kept_source(source: object, folder: Path | None = None) -> Kept:
    """The files behind the source of a policy: a file, `file#table`, a folder, a glob, or those that a SELECT names.

    Those of a SELECT are named from the folder of the policy, or else from the working directory.
    """
    if not isinstance(source, str) or "://" in source:
        return NOTHING
    path = source.removeprefix("spark:")
    if path.lower().split(maxsplit=1)[:1] in (["select"], ["with"], ["from"]):
        parts = _QUOTED.findall(path)
        texts = [
            single.replace("''", "'") or double.replace('""', '"') or dollars for single, double, _, dollars in parts
        ]
        return sum((kept_source(str((folder or Path()) / text)) for text in texts), NOTHING)
    if os.path.isdir(path):
        return Kept(folders=(path,))
    if not os.path.exists(path) and glob.has_magic(path):
        return Kept(globs=(path,))
    return Kept(files=(path, path.rpartition("#")[0]) if "#" in path else (path,))


def kept_files(files: Iterable[str | os.PathLike[str]]) -> Kept:
    """Files, each with what a database writes beside it."""
    return Kept(files=tuple(os.fspath(file) + more for file in files for more in _JOURNALS))


def free(target: str | os.PathLike[str], *, force: bool = False, kept: Kept = NOTHING) -> Path:
    """The absolute target, if it can be written; nothing is spent before this is known."""
    path = Path(os.path.abspath(target))
    mode = _mode(path)
    refuse_kept(path, kept)
    if mode is not None:
        if stat.S_ISLNK(mode):
            raise InvalidParameter(f"the target must be a file of its own, and {path.name} is a link: name another")
        if not stat.S_ISREG(mode):
            raise InvalidParameter(f"the target must be a plain file, and {path.name} is none: name another")
        if not force:
            raise taken(path)
    if not path.parent.is_dir():
        raise InvalidParameter(f"the folder of {path.name} must exist, and does not; nothing was spent")
    with Draft(path):  # the folder takes new files
        return path


def is_plain_file(path: Path) -> bool:
    """Whether a target is there as a file of its own, and no link; a name that no file can have is refused."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    """The type and the permissions of what has this name; None if nothing has it."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # a ValueError: no system call takes the name
        why = error.strerror if isinstance(error, OSError) else "no file can have this name"
    raise InvalidParameter(f"{path.name[:60]} cannot be written: {why}; name another file")


def refuse_kept(path: Path, kept: Kept) -> None:
    """Refuse to write over, or into, what the custodian keeps."""
    if kept.holds(path):
        raise InvalidParameter(
            f"{path.name} is, or would be, among the data, keys, policy or ledger of the study: name another file"
        )


def taken(path: Path) -> InvalidParameter:
    return InvalidParameter(f"the target must not exist, and {path.name} does: name another, or use force")


class Draft:
    """A new file beside its target, which only its owner can read; it is removed unless it is published."""

    def __init__(self, target: Path, *, hashed: bool = False) -> None:
        self._target = target
        self._part = target.with_name(f".{new_request_id()}.part")
        self._hash = hashlib.sha256() if hashed else None
        try:
            descriptor = os.open(self._part, _NEW, 0o666)
        except OSError as error:
            raise InvalidParameter(f"the folder of {target.name} must take new files: {error.strerror}") from None
        self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)  # as the umask has it
        os.fchmod(descriptor, 0o600)
        self.file: IO[bytes] = os.fdopen(descriptor, "wb")
        self.closed = False
        self._stays = False

    def write(self, data: Any) -> int:
        if self._hash is not None:
            self._hash.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        """Empty the buffer, as writers of Arrow expect of a file."""
        self.file.flush()

    def close(self) -> None:
        """Do nothing: a writer closes its sink when it is done, but the draft is still needed."""

    def sealed(self) -> str | None:
        """The SHA-256 of the content, which is now on disk; None if nobody keeps it."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return None if self._hash is None else self._hash.hexdigest()

    def publish(self, *, force: bool = False, private: bool = False) -> None:
        """Give the file its name; without `force` only if nothing has it."""
        if not private:
            os.fchmod(self.file.fileno(), self._mode)
        try:
            if force:
                self._part.replace(self._target)  # of a link it replaces the link, not what it leads to
            else:
                os.link(self._part, self._target)
        except FileExistsError:
            raise taken(self._target) from None
        except OSError:  # a file system without links
            if os.path.lexists(self._target):
                raise taken(self._target) from None
            self._part.rename(self._target)
        with suppress(OSError):  # where folders cannot be opened
            sync_folder(self._target.parent)

    def rescue(self) -> Path:
        """The path of a file that could not have its name: beside its target, under a random name."""
        self.file.flush()
        other = self._target.with_name(f"{self._target.stem}.{new_request_id()[:8]}{self._target.suffix}")
        try:
            return self._part.rename(other)
        except OSError:
            self._stays = True
            return self._part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.file.close()
        if not self._stays:
            self._part.unlink(missing_ok=True)


@contextmanager
def new_file(
    target: str | os.PathLike[str], *, force: bool = False, private: bool = False, kept: Kept = NOTHING
) -> Iterator[Draft]:
    """A draft that is published when the block ends without an error; a private one only its owner can read."""
    path = free(target, force=force, kept=kept)
    with Draft(path) as draft:
        yield draft
        draft.sealed()
        draft.publish(force=force, private=private)


def write(target: str | os.PathLike[str], content: str | bytes, *, force: bool = False, kept: Kept = NOTHING) -> Path:
    with new_file(target, force=force, kept=kept) as draft:
        draft.write(content.encode() if isinstance(content, str) else content)
    return Path(target)


def has(target: str | os.PathLike[str], content: bytes) -> bool:
    """Whether a file is there that has this content already."""
    path = Path(target)
    return is_plain_file(path) and path.read_bytes() == content


def _root(pattern: str) -> str:
    """The folder below which a glob looks."""
    return os.path.join(".", *takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
