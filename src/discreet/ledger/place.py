"""Where a ledger and its anchor are.

    1   --ledger, --anchor, or ledger= and anchor= in Python
    2   DISCREET_LEDGER, DISCREET_ANCHOR in the environment
    3   ledger and anchor in study.toml, relative to it
    4   beside study.toml: study.ledger and study.ledger.anchor

The first line that names a ledger decides. Its anchor is named in that line or in a line above; an
anchor that belongs to another ledger does not count. By default, the anchor of a file is beside the
file, and the anchor of a ledger on PostgreSQL is `discreet.anchor` beside study.toml, shared by all
studies of the folder.

A shared ledger cannot tell two files called study.toml apart. So on a server, and where the
environment or the policy names the ledger, the policy must say what the study is called there.

An address may contain a password; the `repr` of a `Place` does not show it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from discreet.ask.policy import LARGEST_FILE
from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.outside import read_toml

Where: TypeAlias = str | os.PathLike[str]  # a file; as text also the address of a database

LEDGER, ANCHOR = "DISCREET_LEDGER", "DISCREET_ANCHOR"
FILE = "discreet.anchor"  # the anchor of a ledger on PostgreSQL, beside study.toml


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Place:
    """A ledger's path or address, and its anchor."""

    where: str
    anchor: str | None
    study: str | None = None  # the name of the study in the ledger
    ordinary: Path | None = None
    """The ledger that the study would have if neither the environment nor its policy had named this
    one.
    """

    @property
    def is_server(self) -> bool:
        return is_address(self.where)

    @property
    def is_new(self) -> bool:
        """Whether neither the ledger's file nor its anchor exists."""
        files = self.where, f"{self.where}.anchor", self.anchor or self.where
        return not self.is_server and not any(map(os.path.lexists, files))

    def refuse_missing_anchor(self) -> None:
        """Refuse a server whose ledger has no anchor on this machine, and say how to get one."""
        if self.is_server and self.anchor is not None and not os.path.lexists(self.anchor):
            raise LedgerDamaged(
                f"there is no anchor {Path(self.anchor).name} here for the ledger on PostgreSQL: if"
                " there is no ledger yet, create it with discreet ledger create; if another"
                " machine uses it, use discreet ledger join; otherwise put the anchor back"
            )

    def refuse_second_budget(self) -> None:
        """Refuse to create a ledger while the study has one beside its policy."""
        beside = self.ordinary
        if beside is None or beside.absolute() == Path(self.where).absolute():
            return
        if os.path.lexists(beside) or os.path.lexists(f"{beside}.anchor"):
            raise InvalidParameter(
                f"{beside.name} exists, and another ledger is a new budget: what both spend on the"
                " same people adds up; move it away, or confirm with discreet ledger create"
                " --another-budget"
            )

    def __repr__(self) -> str:
        return f"Place({without_secrets(self.where)!r}, anchor={self.anchor!r})"


def place_of(
    policy: Path,
    declared: Mapping[str, Any] | None = None,
    *,
    ledger: Where | None = None,
    anchor: Where | None = None,
) -> Place:
    """The ledger of a study: arguments take precedence over the environment, and the environment
    over the policy.
    """
    declared = ledger_keys(policy) if declared is None else declared
    levels = [
        (ledger, anchor),
        (os.environ.get(LEDGER) or None, os.environ.get(ANCHOR) or None),
        tuple(_relative(declared.get(name), policy.parent) for name in ("ledger", "anchor")),
        (policy.with_suffix(".ledger"), None),
    ]
    number = next(number for number, level in enumerate(levels) if level[0] is not None)
    where = os.fspath(levels[number][0] or "")
    anchor_file = next((level[1] for level in levels[: number + 1] if level[1] is not None), None)
    if anchor_file is None and is_address(where):
        anchor_file = policy.with_name(FILE)
    study = declared.get("study")
    if study is None and (is_address(where) or number in (1, 2)):
        raise InvalidParameter(
            f'study is missing in {policy.name}: write study = "people-2024", a name that no other'
            " study in the ledger has, because others may use the ledger and their files may have"
            " the same name"
        )
    ordinary = policy.with_suffix(".ledger") if number in (1, 2) else None
    anchor = None if anchor_file is None else os.fspath(anchor_file)
    return Place(where=where, anchor=anchor, study=study or policy.stem, ordinary=ordinary)


def ledger_keys(policy: Path) -> dict[str, Any]:
    """What a policy says about its ledger, even if the rest of it is invalid; empty if there is no
    such file.
    """
    try:
        if not policy.is_file() or policy.stat().st_size > LARGEST_FILE:
            return {}
        table = read_toml(policy.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        raise InvalidParameter(
            f"{policy.name} must be a policy in TOML, which says where its ledger is"
        ) from None
    keys: dict[str, Any] = {
        name: table[name] for name in ("ledger", "anchor", "study") if name in table
    }
    if not all(isinstance(value, str) and value for value in keys.values()):
        raise InvalidParameter(f"{policy.name}: ledger, anchor and study must be text, not empty")
    return keys


def places(where: Where, anchor: Where | None) -> tuple[Path | URL, Path]:
    """The file or the address of a ledger, and the file of its anchor."""
    # libpq's other form: no file name
    if "password=" in os.fspath(where) and not is_address(where):
        raise InvalidParameter("where must be a file or an address that begins with postgresql://")
    if isinstance(where, str) and is_address(where):
        try:
            url = make_url(where)
        except (ArgumentError, ValueError):
            url = URL.create("unknown")
        if url.get_backend_name() != "postgresql":
            raise InvalidParameter(
                "where must be a file or an address that begins with postgresql://"
            )
        if anchor is None:
            raise InvalidParameter(
                "anchor must be given for a PostgreSQL ledger: a file on this machine"
            )
        return url, Path(anchor).absolute()
    path = Path(where).absolute()
    return path, (
        path.with_name(path.name + ".anchor") if anchor is None else Path(anchor).absolute()
    )


def is_address(where: object) -> bool:
    """Whether this is an address, not a path; a mistyped address counts, so that no file is named
    after a password.
    """
    return isinstance(where, str) and (
        "://" in where or where.lower().startswith(("postgresql:", "postgres:"))
    )


def without_secrets(where: str | None) -> str | None:
    """The path or address of a ledger, without anything that may be a password.

    >>> (
    ...     without_secrets("a.ledger"),
    ...     without_secrets("postgresql://me@h/x"),
    ...     without_secrets("postgresql://me:no@h/x"),
    ... )
    ('a.ledger', 'postgresql://me@h/x', 'postgresql://…')
    """
    if where is None or not is_address(where):
        return where
    scheme, _, address = where.partition(":")  # a mistyped address may have the password anywhere
    secret = not address.startswith("//") or "?" in address or ":" in address.rpartition("@")[0]
    return f"{scheme}://…" if secret else where


def _relative(name: str | None, folder: Path) -> str | None:
    """A path in a policy, relative to the policy's folder; an address is unchanged."""
    return name if name is None or is_address(name) else os.fspath(folder / name)
