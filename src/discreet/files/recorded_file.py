"""A release that is a file: drawn once, written completely or not at all, and recorded by its
SHA-256.

    spend → write beside the target → sync to disk → record hash and path → rename → show

After a crash ε is spent, and no file has the target's name. The noise is never drawn again, because
a part of it may have been read: the same question returns the recorded file, if it still has its
hash, or is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.engines.base import Failure, of_system
from discreet.errors import (
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    QueryRefused,
    without_context,
)
from discreet.files.writer import NOTHING, Draft, Kept, free, is_plain_file, refuse_kept
from discreet.release.account import Asking, file_record, once, refuse_begun


@without_context
def released(
    target: str | os.PathLike[str],
    write: Callable[[Draft], dict[str, Any]],
    asking: Asking | None,
    *,
    kept: Kept = NOTHING,
    force: bool = False,
) -> dict[str, Any]:
    """The record of a new file, whose content `write` writes, or of the file that was released
    before.
    """
    path = _target_path(target, asking, kept, force=force)
    failed, records = None, dict[bytes, dict[str, Any]]()
    # before the spend: the folder must accept new files
    with Draft(path, hashed=asking is not None) as draft:

        def work() -> bytes:
            record = {**write(draft), "file": str(path), "sha256": draft.sealed()}
            written = json.dumps(
                record, ensure_ascii=False, allow_nan=False, separators=(",", ":")
            ).encode()
            records[written] = record
            return written

        try:
            recorded = work() if asking is None else once(asking, work, refuse_begun)[0]
            if recorded in records:
                _publish(draft, path, spent=asking is not None, force=force)
                return records[recorded]
        except DiscreetError:
            raise
        except Exception as failure:  # the message of a reader or a disk may quote data
            if asking is None and isinstance(failure, OSError):  # only the disk's message
                raise
            failed = of_system(failure) or Failure(
                f"its rows could not be written ({type(failure).__name__})"
            )
    if failed is not None:  # raised here, so that no `__context__` holds that message
        words = f"{path.name} could not be made, since {failed.sentence}"
        raise EngineFailed(words, spent=asking is not None, code=failed.code)
    return _checked_record(recorded)


def _publish(draft: Draft, path: Path, *, spent: bool, force: bool) -> None:
    """Rename the file; if that fails after the spend, the only draw is saved under another name."""
    try:
        return draft.publish(force=force)
    except Exception as failure:
        if not spent:
            raise
        why = (
            "was taken in the meantime"
            if isinstance(failure, InvalidParameter)
            else "could not be named"
        )
    raise EngineFailed(
        f"the name {path.name} {why}: the complete release is in {draft.rescue().name}; rename it"
        f" to {path.name} and ask again, which is free",
        spent=True,
    )


def _target_path(
    target: str | os.PathLike[str], asking: Asking | None, kept: Kept, *, force: bool
) -> Path:
    """The absolute target; it may exist only if it is the answer."""
    path = Path(os.path.abspath(target))
    exists = is_plain_file(path)
    refuse_kept(path, kept)
    if exists and asking is not None and asking.answered(str(path)):
        return path
    return free(path, force=force, kept=kept)


def _checked_record(answer: bytes) -> dict[str, Any]:
    """The record of a released file, which must still exist and have its hash."""
    record = file_record(answer)
    if record is None:
        raise QueryRefused("this was released before, but not as a file: ask for it without a file")
    path = Path(record["file"])
    change = "is gone"
    if path.is_file():
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == record.get("sha256"):
                return record
        change = "has changed"
    raise QueryRefused(
        f"this was released to {path}; the file {change}, and a release is made once"
    )
