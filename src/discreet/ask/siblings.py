"""Other studies of the same data: each has its own budget, and the privacy losses of their releases
add up.

Two policies have one budget if they name the same ledger and the same study in it, whatever their
files are called. The same study in two ledgers, or two studies in one ledger, are two budgets.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ask.policy import LARGEST_FILE, is_no_path
from discreet.outside import read_toml

Identity: TypeAlias = tuple[Any, ...]

_VARIABLE = "DISCREET_LEDGER"  # as in `ledger.place`


def siblings(policy: Path, source: object) -> tuple[str, ...]:
    """The other policies in the folder of `policy` with a budget of their own for a file or a table
    of this source.
    """
    own, budget = _identities(source, Path()), _budget(policy, _read(policy))
    files = sorted(file for file in policy.parent.glob("*.toml") if file.name != policy.name)
    others = [(file, _read(file)) for file in files]
    return tuple(
        file.name
        for file, keys in others
        if own & _identities(keys.get("source"), file.parent) and _budget(file, keys) != budget
    )


def budgets(study: str, siblings: Sequence[str]) -> str:
    """A warning for a study whose data has other studies.

    >>> budgets("survey", ["people.toml"])
    'survey.toml and people.toml are 2 budgets for the same data: what they release adds up.'
    """
    listed = ", ".join([f"{study}.toml", *siblings[:-1]])
    return (
        f"{listed} and {siblings[-1]} are {len(siblings) + 1} budgets for the same data: what they"
        " release adds up."
    )


def _read(file: Path) -> dict[str, Any]:
    """The keys of a policy file; none if it cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE:  # reading a pipe would block
            return {}
        return read_toml(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}


def _budget(file: Path, keys: dict[str, Any]) -> Identity:
    """The ledger of a policy, and the name of the study in it."""
    variable, declared = os.environ.get(_VARIABLE), keys.get("ledger")
    if variable:
        ledger = variable if is_no_path(variable) else os.path.realpath(variable)
    elif isinstance(declared, str):
        ledger = declared if is_no_path(declared) else os.path.realpath(file.parent / declared)
    else:
        ledger = os.path.realpath(file.with_suffix(".ledger"))
    return ledger, keys.get("study", file.stem)


def _identities(source: object, folder: Path) -> set[Identity]:
    """For each file its device, inode and table; for anything else its text."""
    if isinstance(source, list | tuple):
        return {
            identity
            for path in source
            if isinstance(path, str)
            for identity in _identities(path, folder)
        }
    if not isinstance(source, str):
        return set()
    if is_no_path(source):
        return {(source,)}
    path = folder / source
    table = ""
    if not path.exists() and "#" in source:
        file_name, _, table = source.rpartition("#")
        path = folder / file_name
    paths = (
        path.rglob("*")
        if path.is_dir()
        else [path, *map(Path, glob.glob(str(path), recursive=True))]
    )
    try:
        stats = [file.stat() for file in paths if file.is_file()]
    except OSError:
        stats = []
    return {(stat.st_dev, stat.st_ino, table) for stat in stats} or {(str(path.absolute()), table)}
