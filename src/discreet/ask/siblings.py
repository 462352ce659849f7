"""Other studies of the same data: each has a ledger of its own, and what they release adds up."""

from __future__ import annotations

import glob
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ask.policy import LARGEST_FILE, is_no_path

Identity: TypeAlias = tuple[Any, ...]


def siblings(place: Path, source: object) -> tuple[str, ...]:
    """The policies in the folder of `place` whose source has a file, or is a table, of this source."""
    own = _identities(source, Path())
    others = sorted(file for file in place.parent.glob("*.toml") if file.name != place.name)
    return tuple(file.name for file in others if own & _identities(_source(file), file.parent))


def budgets(study: str, others: Sequence[str]) -> str:
    """What to know of a study whose data others have, too.

    >>> budgets("survey", ["people.toml"])
    'survey.toml and people.toml are 2 budgets for the same data: what they release adds up.'
    """
    listed = ", ".join([f"{study}.toml", *others[:-1]])
    return f"{listed} and {others[-1]} are {len(others) + 1} budgets for the same data: what they release adds up."


def _source(file: Path) -> object:
    """The source that a policy names; what cannot be read names none."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE:  # a pipe would be waited for
            return None
        return tomllib.loads(file.read_text(encoding="utf-8-sig")).get("source")
    except (OSError, ValueError, RecursionError):
        return None


def _identities(source: object, folder: Path) -> set[Identity]:
    """Of each file its number on its disk, with the table in it; of anything else its text."""
    if not isinstance(source, str):
        return set()
    if is_no_path(source):
        return {(source,)}
    path = folder / source
    table = ""
    if not path.exists() and "#" in source:
        place, _, table = source.rpartition("#")
        path = folder / place
    paths = path.rglob("*") if path.is_dir() else [path, *map(Path, glob.glob(str(path), recursive=True))]
    try:
        stats = [file.stat() for file in paths if file.is_file()]
    except OSError:
        stats = []
    return {(stat.st_dev, stat.st_ino, table) for stat in stats} or {(str(path.absolute()), table)}
