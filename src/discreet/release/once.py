"""A release that is a file: drawn once, written whole or not at all, and remembered by its SHA-256.

    spend → write beside the target → to disk → record hash and path → name it → show

A crash leaves it spent, and no file under the target's name. It is never drawn again, for a part of it may have been
read where it was written: who asks again gets the file that was recorded, if it still has its hash, or a refusal.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from discreet.errors import DiscreetError, EngineFailed, InvalidParameter, QueryRefused
from discreet.release.ledger import Grant, Ledger
from discreet.release.spending import new_request_id

_READ = 2**20


class Draft:
    """A file in the making beside its target, hashed as it is written; it goes away unless it is published."""

    def __init__(self, target: Path, *, hashed: bool) -> None:
        self._target = target
        self._part = target.with_name(f".{target.name}.{new_request_id()}.part")
        self._hash = hashlib.sha256() if hashed else None
        self._file = self._part.open("xb")
        self.closed = False

    def write(self, data: Any) -> int:
        """How many bytes were written: all of them."""
        if self._hash is not None:
            self._hash.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Hand everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """Nothing: a writer that is done closes its sink, but the draft is still needed."""

    def sealed(self) -> str | None:
        """The SHA-256 of the content, which is now on disk; None if nobody keeps it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return None if self._hash is None else self._hash.hexdigest()

    def publish(self) -> None:
        """Give the file its name, unless another file has it."""
        try:
            os.link(self._part, self._target)
        except FileExistsError:
            raise _taken(self._target) from None
        except OSError:  # a file system without links
            if self._target.exists():
                raise _taken(self._target) from None
            self._part.rename(self._target)
        _sync_folder(self._target.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            self._part.unlink()


def released(
    target: str | os.PathLike[str], write: Callable[[Draft], dict[str, Any]], asking: Asking | None
) -> dict[str, Any]:
    """What is to be told of the file: `write` fills it and gives the rest; or the record of the file made before."""
    place = free(target, asking)
    grant = None if asking is None else asking.spend()
    if grant is not None and grant.answer is not None:
        return found(grant.answer)
    if grant is not None:
        refuse_begun(grant)
    failed = None
    try:
        with Draft(place, hashed=grant is not None) as draft:
            told = write(draft)
            record = {**told, "file": str(place), "sha256": draft.sealed()}
            mine = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            kept = mine if asking is None or grant is None else asking.ledger.record(grant, mine)
            if kept == mine:
                draft.publish()
                return record
    except DiscreetError:
        raise
    except Exception as failure:  # the words of a reader or a disk may quote what they read
        failed = type(failure).__name__
    if failed is not None:  # out here no `__context__` keeps those words
        spent = "" if grant is None else "; what was spent stays spent"
        raise EngineFailed(f"{place.name} could not be made ({failed}){spent}")
    return found(kept)


def refuse_begun(grant: Grant) -> None:
    """Refuse what was begun before and never recorded."""
    if grant.repeated:
        raise QueryRefused(
            "this was asked before and has no file yet: another process is writing it, or it was broken off; a release "
            "is made once, and what it spent stays spent: ask at another epsilon"
        )


def found(answer: bytes) -> dict[str, Any]:
    """The record of a file that was released, if it is still there as it was."""
    record: dict[str, Any] = json.loads(answer)
    if "sha256" not in record:
        raise QueryRefused("this was released before, and not as a file: ask for it without one")
    place = Path(record["file"])
    if not place.is_file() or _hash_of(place) != record["sha256"]:
        gone = "has changed" if place.is_file() else "is gone"
        raise QueryRefused(f"this was released to {place}; the file {gone}, and a release is made once")
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question to a ledger, before its spend."""

    ledger: Ledger
    study: str
    query: str
    epsilon: Fraction
    request_id: str | None = None
    analyst: str | None = None
    data_version: str | None = None

    def spend(self) -> Grant:
        """Leave to answer it, on disk."""
        return self.ledger.spend(
            self.request_id or new_request_id(),
            self.query,
            self.epsilon,
            study=self.study,
            analyst=self.analyst,
            data_version=self.data_version,
        )

    def answered(self, place: str) -> bool:
        """Whether its answer is known to lie in this place."""
        answers = []
        if self.request_id is not None:
            answers.append(self.ledger.answer(study=self.study, request_id=self.request_id))
        if self.data_version is not None:
            answers.append(self.ledger.answer(study=self.study, query=self.query, data_version=self.data_version))
        records = [json.loads(answer) for answer in answers if answer is not None]
        return any(one.get("file") == place and Fraction(one["epsilon"]) == self.epsilon for one in records)


def free(target: str | os.PathLike[str], asking: Asking | None) -> Path:
    """The absolute target, in a folder that is there; a file may have that name only if it is the answer."""
    place = Path(target).absolute()
    if not place.parent.is_dir():
        raise InvalidParameter(f"the folder of {place.name} must exist, and does not; nothing was spent")
    if place.exists() and not (asking is not None and asking.answered(str(place))):
        raise _taken(place)
    return place


def _taken(place: Path) -> InvalidParameter:
    return InvalidParameter(f"the target must not exist, and {place.name} does: name another")


def _hash_of(place: Path) -> str:
    total = hashlib.sha256()
    with place.open("rb") as file:
        while part := file.read(_READ):
            total.update(part)
    return total.hexdigest()


def _sync_folder(folder: Path) -> None:
    """The new name reaches the disk, too, where folders can be opened."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
