"""A release that is a file: drawn once, written completely or not at all, and recorded by its SHA-256.

    spend → write beside the target → sync to disk → record hash and path → rename → show

After a crash ε is spent, and no file has the target's name. The noise is never drawn again, because a part of it may
have been read: the same question returns the recorded file, if it still has its hash, or is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.engines.base import Failure, of_system
from discreet.errors import (
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    QueryRefused,
    after_spending,
    without_context,
)
from discreet.files.writer import NOTHING, Draft, Kept, free, is_plain_file, refuse_kept
from discreet.ledger.grant import Grant
from discreet.ledger.ledger import Ledger
from discreet.ledger.questions import new_request_id
from discreet.outside import read_fraction, read_json


@without_context
def released(
    target: str | os.PathLike[str],
    write: Callable[[Draft], dict[str, Any]],
    asking: Asking | None,
    *,
    kept: Kept = NOTHING,
    force: bool = False,
) -> dict[str, Any]:
    """The record of a new file, whose content `write` writes, or of the file that was released before."""
    path = _target_path(target, asking, kept, force=force)
    failed = None
    with Draft(path, hashed=asking is not None) as draft:  # before the spend: the folder must accept new files
        grant = None if asking is None else asking.spend()
        if grant is not None and grant.answer is not None:
            return _checked_record(grant.answer)
        if grant is not None:
            refuse_begun(grant)
        try:
            with nullcontext() if grant is None else after_spending():
                record = {**write(draft), "file": str(path), "sha256": draft.sealed()}
            mine = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            recorded = mine
            if asking is not None and grant is not None:
                with after_spending():
                    recorded = asking.ledger.record(grant, mine)
            if recorded == mine:
                _publish(draft, path, spent=grant is not None, force=force)
                return record
        except DiscreetError:
            raise
        except Exception as failure:  # the message of a reader or a disk may quote data
            if asking is None and isinstance(failure, OSError):  # only the disk's message
                raise
            failed = of_system(failure) or Failure(f"its rows could not be written ({type(failure).__name__})")
    if failed is not None:  # raised here, so that no `__context__` holds that message
        words = f"{path.name} could not be made, since {failed.sentence}"
        raise EngineFailed(words, spent=grant is not None, code=failed.code)
    return _checked_record(recorded)


def _publish(draft: Draft, path: Path, *, spent: bool, force: bool) -> None:
    """Rename the file; if that fails after the spend, the only draw is saved under another name."""
    try:
        return draft.publish(force=force)
    except Exception as failure:
        if not spent:
            raise
        why = "was taken in the meantime" if isinstance(failure, InvalidParameter) else "could not be named"
    raise EngineFailed(
        f"the name {path.name} {why}: the complete release is in {draft.rescue().name}; rename it to {path.name} and "
        "ask again, which is free",
        spent=True,
    )


def _target_path(target: str | os.PathLike[str], asking: Asking | None, kept: Kept, *, force: bool) -> Path:
    """The absolute target; it may exist only if it is the answer."""
    path = Path(os.path.abspath(target))
    exists = is_plain_file(path)
    refuse_kept(path, kept)
    if exists and asking is not None and asking.answered(str(path)):
        return path
    return free(path, force=force, kept=kept)


def refuse_begun(grant: Grant) -> None:
    """Refuse a release that was started before and never recorded."""
    if grant.repeated:
        raise QueryRefused(
            "this was asked before and has no file yet: another process is writing it, or it was interrupted; a "
            "release is made once, and its epsilon stays spent: ask with another epsilon"
        )


def _checked_record(answer: bytes) -> dict[str, Any]:
    """The record of a released file, which must still exist and have its hash."""
    record = _record_of(answer)
    if record is None:
        raise QueryRefused("this was released before, but not as a file: ask for it without a file")
    path = Path(record["file"])
    change = "is gone"
    if path.is_file():
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == record.get("sha256"):
                return record
        change = "has changed"
    raise QueryRefused(f"this was released to {path}; the file {change}, and a release is made once")


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
    asked: str | None = None
    promised: tuple[Fraction, Mapping[str, Any]] | None = None
    """The total and the promise that the study must have."""

    def spend(self) -> Grant:
        account = {name: getattr(self, name) for name in ("study", "analyst", "data_version", "asked", "promised")}
        return self.ledger.spend(self.request_id or new_request_id(), self.query, self.epsilon, **account)

    def answered(self, path: str) -> bool:
        """Whether the recorded answer is the file at this path."""
        answers = []
        if self.request_id is not None:
            answers.append(self.ledger.answer(study=self.study, request_id=self.request_id))
        if self.data_version is not None:
            answers.append(self.ledger.answer(study=self.study, query=self.query, data_version=self.data_version))
        records = filter(None, (_record_of(answer) for answer in answers if answer is not None))
        return any(record["file"] == path and read_fraction(record["epsilon"]) == self.epsilon for record in records)


def _record_of(answer: bytes) -> dict[str, Any] | None:
    """The record of a file or of a folder written by Spark; None for any other answer."""
    try:
        record = read_json(answer)
    except ValueError:
        return None
    return record if isinstance(record, dict) and {"file", "epsilon"} <= set(record) else None
