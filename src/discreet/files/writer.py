"""How every file is written: under a new private name beside its target, and renamed when it is
complete.

    refuse → (spend) → write `.….part`, mode 0600 → fsync → mode by the umask → rename → fsync the
    folder

A target must be a new file in a folder that can be written; this is checked before anything is
spent. With `force` it may replace a plain file, but never one of the custodian's files (`Kept`:
data, policy, keys, ledger, anchor), and never through a link. A file created in the meantime is not
overwritten without `force`.
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
"""Text in quotes, which are doubled inside, or between dollars."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Files, data folders and globs of a custodian, which no output may replace or be added to."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()

    def __add__(self, other: Kept) -> Kept:
        return Kept(
            self.files + other.files, self.folders + other.folders, self.globs + other.globs
        )

    def holds(self, target: Path) -> bool:
        """Whether a target is one of these files under any name, or would become one."""
        location = os.path.realpath(target)
        for file in self.files:
            with suppress(OSError):
                if os.path.realpath(file) == location or os.path.samefile(file, target):
                    return True
        # only the last part of a glob is compared: this may refuse too much, never too little
        name = os.path.basename(location)
        globs = (
            pattern for pattern in self.globs if fnmatch.fnmatch(name, os.path.basename(pattern))
        )
        for folder in (*self.folders, *map(_root, globs)):
            top = os.path.realpath(folder)
            if location == top or location.startswith(top.rstrip(os.sep) + os.sep):
                return True
        return False


NOTHING = Kept()


def kept_source(source: object, folder: Path | None = None) -> Kept:
    """The files of a policy's source: one, a list, `file#table`, a folder, a glob, or those that a
    SELECT names.

    Paths in a SELECT are relative to the folder of the policy, or to the working directory.
    """
    if isinstance(source, tuple):
        return sum((kept_source(path, folder) for path in source), NOTHING)
    if not isinstance(source, str) or "://" in source:
        return NOTHING
    path = source.removeprefix("spark:")
    if path.lower().split(maxsplit=1)[:1] in (["select"], ["with"], ["from"]):
        parts = _QUOTED.findall(path)
        texts = [
            single.replace("''", "'") or double.replace('""', '"') or dollars
            for single, double, _, dollars in parts
        ]
        return sum((kept_source(str((folder or Path()) / text)) for text in texts), NOTHING)
    if os.path.isdir(path):
        return Kept(folders=(path,))
    if not os.path.exists(path) and glob.has_magic(path):
        return Kept(globs=(path,))
    return Kept(files=(path, path.rpartition("#")[0]) if "#" in path else (path,))


def kept_files(files: Iterable[str | os.PathLike[str]]) -> Kept:
    """Files, each with the files that a database writes beside it."""
    return Kept(files=tuple(os.fspath(file) + suffix for file in files for suffix in _JOURNALS))


def free(target: str | os.PathLike[str], *, force: bool = False, kept: Kept = NOTHING) -> Path:
    """The absolute target, if it can be written; this is checked before anything is spent."""
    path = Path(os.path.abspath(target))
    mode = _mode(path)
    refuse_kept(path, kept)
    if mode is not None:
        if stat.S_ISLNK(mode):
            raise InvalidParameter(
                f"the target must not be a link, and {path.name} is a link: name another file"
            )
        if not stat.S_ISREG(mode):
            raise InvalidParameter(
                f"the target must be a plain file, and {path.name} is not: name another file"
            )
        if not force:
            raise _exists(path)
    if not path.parent.is_dir():
        raise InvalidParameter(
            f"the folder of {path.name} must exist, and does not; nothing was spent"
        )
    with Draft(path):  # checks that the folder accepts new files
        return path


def is_plain_file(path: Path) -> bool:
    """Whether a target exists as a plain file and not as a link; an impossible file name is
    refused.
    """
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    """The type and permissions of the file with this name; None if there is no such file."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # a ValueError: no system call accepts the name
        why = error.strerror if isinstance(error, OSError) else "no file can have this name"
    raise InvalidParameter(f"{path.name[:60]} cannot be written: {why}; name another file")


def refuse_kept(path: Path, kept: Kept) -> None:
    """Refuse to overwrite, or add to, the custodian's files."""
    if kept.holds(path):
        raise InvalidParameter(
            f"{path.name} is, or would be, among the data, keys, policy or ledger of the study:"
            " name another file"
        )


def _exists(path: Path) -> InvalidParameter:
    return InvalidParameter(
        f"the target must not exist, and {path.name} does: name another file, or use force"
    )


class Draft:
    """A new file beside its target, readable by its owner alone; it is removed unless it is
    published.
    """

    def __init__(self, target: Path, *, hashed: bool = False) -> None:
        self._target = target
        self._part = target.with_name(f".{new_request_id()}.part")
        self._hash = hashlib.sha256() if hashed else None
        try:
            descriptor = os.open(self._part, _NEW, 0o666)
        except OSError as error:
            raise InvalidParameter(
                f"the folder of {target.name} must accept new files: {error.strerror}"
            ) from None
        self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)  # as set by the umask
        os.fchmod(descriptor, 0o600)
        self.file: IO[bytes] = os.fdopen(descriptor, "wb")
        self.closed = False
        self._stays = False

    def write(self, data: Any) -> int:
        if self._hash is not None:
            self._hash.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        """Flush the buffer, as Arrow's writers expect of a file."""
        self.file.flush()

    def close(self) -> None:
        """Do nothing: a writer closes its sink at the end, but the draft is still needed."""

    def sealed(self) -> str | None:
        """Write the content to disk and return its SHA-256; None if the draft is not hashed."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return None if self._hash is None else self._hash.hexdigest()

    def publish(self, *, force: bool = False, private: bool = False) -> None:
        """Rename the file to its target; without `force` only if the target does not exist."""
        if not private:
            os.fchmod(self.file.fileno(), self._mode)
        try:
            if force:
                self._part.replace(self._target)  # this replaces a link, not its target
            else:
                os.link(self._part, self._target)
        except FileExistsError:
            raise _exists(self._target) from None
        except OSError:  # a file system without links
            if os.path.lexists(self._target):
                raise _exists(self._target) from None
            self._part.rename(self._target)
        with suppress(OSError):  # on systems where folders cannot be opened
            sync_folder(self._target.parent)

    def rescue(self) -> Path:
        """Save a file that could not be renamed to its target under a random name beside it, and
        return its path.
        """
        self.file.flush()
        path = self._target.with_name(
            f"{self._target.stem}.{new_request_id()[:8]}{self._target.suffix}"
        )
        try:
            return self._part.rename(path)
        except OSError:
            self._stays = True
            return self._part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(
            OSError
        ):  # what was sealed is on the disk; what is left in the buffer of a full one is not wanted
            self.file.close()
        if not self._stays:
            self._part.unlink(missing_ok=True)


@contextmanager
def new_file(
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    private: bool = False,
    kept: Kept = NOTHING,
) -> Iterator[Draft]:
    """A draft that is published when the block ends without an error; only its owner can read a
    private file.
    """
    path = free(target, force=force, kept=kept)
    with Draft(path) as draft:
        yield draft
        draft.sealed()
        draft.publish(force=force, private=private)


def write(
    target: str | os.PathLike[str],
    content: str | bytes,
    *,
    force: bool = False,
    kept: Kept = NOTHING,
) -> Path:
    with new_file(target, force=force, kept=kept) as draft:
        draft.write(content.encode() if isinstance(content, str) else content)
    return Path(target)


def has(target: str | os.PathLike[str], content: bytes) -> bool:
    """Whether a file exists and has this content."""
    path = Path(target)
    return is_plain_file(path) and path.read_bytes() == content


def _root(pattern: str) -> str:
    """The folder in which a glob searches."""
    return os.path.join(".", *takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts))
