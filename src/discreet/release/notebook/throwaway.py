"""A ledger in memory: it is in a temporary folder, which is removed with its study."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

MEMORY = "memory"
"""The word for such a ledger instead of a path."""


def throwaway(owner: object) -> tuple[Path, Callable[[], object]]:
    """The path of a ledger that is removed when its owner is freed or Python ends, and a function to remove it now."""
    folder = Path(mkdtemp(prefix="discreet-"))
    return folder / "study.ledger", finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        rmtree(folder, ignore_errors=True)
