"""Who may ask: tokens, roles and studies.

A token is `discreet_<id>_<secret>`: the id finds a line, the secret is 256 random bits of which only the SHA-256 is
kept; it is shown once. A study is named by the identity of its ledger and its name there (`study_key`), so that a
token for one `people.toml` opens no other `people.toml`. An analyst spends of an allotment that the ledger holds under
the study's cap; a custodian spends of the study itself and sees every entry. A revoked token is refused at once.
What was spent under a name stays spent: the ledger knows the name, whatever its token.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter
from discreet.serve.store import Store

Role: TypeAlias = Literal["analyst", "custodian"]

_NAME = re.compile(r"(?!discreet\.)[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
_TOKEN = re.compile(r"discreet_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)
_NOBODY = bytes(32)

FILE = "discreet.access"
"""Beside the studies, unless the custodian says otherwise."""

_SCHEMA = """
CREATE TABLE person (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('analyst', 'custodian')),
    token_id TEXT NOT NULL UNIQUE,
    token_hash BLOB NOT NULL CHECK (length(token_hash) = 32),
    revoked INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1))
) STRICT;
CREATE TABLE permit (
    name TEXT NOT NULL REFERENCES person,
    study TEXT NOT NULL,
    PRIMARY KEY (name, study)
) STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    role: Role
    studies: frozenset[str]

    @property
    def analyst(self) -> str | None:
        """The name under which the ledger keeps a share; a custodian has none."""
        return self.name if self.role == "analyst" else None


class Access(Store):
    schema = _SCHEMA

    def permit(self, name: str, *, role: Role, study: str) -> str | None:
        """A new token, shown this once; None if the name has one already, which now opens this study, too."""
        require_name(name)
        with self.opened(write=True) as file:
            person = file.execute("SELECT role, revoked FROM person WHERE name = ?", (name,)).fetchone()
            if person is not None and person[0] != role:
                raise InvalidParameter(
                    f"{name!r} must stay what it is: {person[0]}; choose another name for another role"
                )
            token = None
            if person is None or person[1]:
                identity, secret = random_digits(1), random_digits(4)
                token = f"discreet_{identity}_{secret}"
                file.execute(
                    "INSERT INTO person (name, role, token_id, token_hash) VALUES (?, ?, ?, ?) ON CONFLICT (name) "
                    "DO UPDATE SET token_id = excluded.token_id, token_hash = excluded.token_hash, revoked = 0",
                    (name, role, identity, _hash(secret)),
                )
                file.execute("DELETE FROM permit WHERE name = ?", (name,))  # a token after a revoked one starts anew
            file.execute("INSERT OR IGNORE INTO permit (name, study) VALUES (?, ?)", (name, study))
        return token

    def revoke(self, name: str) -> None:
        require_name(name)
        with self.opened(write=True) as file:
            done = file.execute("UPDATE person SET revoked = 1 WHERE name = ? AND revoked = 0", (name,)).rowcount
        if not done:
            raise InvalidParameter(f"name must be that of a token in use, got {name!r}; nothing was revoked")

    def names(self) -> list[str]:
        with self.opened() as file:
            return [row[0] for row in file.execute("SELECT name FROM person WHERE revoked = 0 ORDER BY name")]

    def person(self, token: str) -> Person | None:
        """Whose token it is; None for no token, an unknown one and a revoked one alike."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        with self.opened() as file:
            row = file.execute(
                "SELECT name, role, token_hash FROM person WHERE token_id = ? AND revoked = 0", (parts[1],)
            ).fetchone()
            if not hmac.compare_digest(_hash(parts[2]), _NOBODY if row is None else row[2]) or row is None:
                return None
            studies = file.execute("SELECT study FROM permit WHERE name = ?", (row[0],)).fetchall()
        return Person(name=row[0], role=row[1], studies=frozenset(study for (study,) in studies))


def require_name(name: str) -> None:
    """Refuse a name that could be taken for something else in an address, a log or a ledger."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            "name must be 1 to 40 of the characters A–Z, a–z, 0–9, '.', '_' and '-', and not begin with 'discreet.'"
        )


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
