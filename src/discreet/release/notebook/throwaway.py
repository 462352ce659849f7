"""A ledger that forgets: it lies in a folder of its own, which is removed with its study."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

MEMORY = "memory"
"""What stands for such a ledger in place of a path."""


def throwaway(owner: object) -> tuple[Path, Callable[[], object]]:
    """The place of a ledger that is removed when its owner is let go or Python ends, and what removes it now."""
    folder = Path(mkdtemp(prefix="discreet-"))
    return folder / "study.ledger", finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # and not a forked child
        rmtree(folder, ignore_errors=True)
