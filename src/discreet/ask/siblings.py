"""Other studies of the same data: each has its own ledger, and the privacy losses of their releases add up."""

from __future__ import annotations

import glob
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ask.policy import LARGEST_FILE, is_no_path

Identity: TypeAlias = tuple[Any, ...]


def siblings(policy: Path, source: object) -> tuple[str, ...]:
    """The other policies in the folder of `policy` whose source shares a file or a table with this source."""
    own = _identities(source, Path())
    files = sorted(file for file in policy.parent.glob("*.toml") if file.name != policy.name)
    return tuple(file.name for file in files if own & _identities(_source(file), file.parent))


def budgets(study: str, siblings: Sequence[str]) -> str:
    """A warning for a study whose data has other studies.

    >>> budgets("survey", ["people.toml"])
    'survey.toml and people.toml are 2 budgets for the same data: what they release adds up.'
    """
    listed = ", ".join([f"{study}.toml", *siblings[:-1]])
    return f"{listed} and {siblings[-1]} are {len(siblings) + 1} budgets for the same data: what they release adds up."


def _source(file: Path) -> object:
    """The source in a policy file; None if it cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE:  # reading a pipe would block
            return None
        return tomllib.loads(file.read_text(encoding="utf-8-sig")).get("source")
    except (OSError, ValueError, RecursionError):
        return None


def _identities(source: object, folder: Path) -> set[Identity]:
    """For each file its device, inode and table; for anything else its text."""
    if not isinstance(source, str):
        return set()
    if is_no_path(source):
        return {(source,)}
    path = folder / source
    table = ""
    if not path.exists() and "#" in source:
        file_name, _, table = source.rpartition("#")
        path = folder / file_name
    paths = path.rglob("*") if path.is_dir() else [path, *map(Path, glob.glob(str(path), recursive=True))]
    try:
        stats = [file.stat() for file in paths if file.is_file()]
    except OSError:
        stats = []
    return {(stat.st_dev, stat.st_ino, table) for stat in stats} or {(str(path.absolute()), table)}
