"""Who may ask: tokens, roles and studies.

A token is `discreet_<id>_<secret>`. The id finds its row; the secret is 256 random bits, shown
once, of which only the SHA-256 is stored. A study is identified by its ledger and its name there
(`study_key`), so that a token for one `people.toml` does not open another `people.toml`. An analyst
spends from an allotment, which the ledger keeps below the study's total; a custodian spends from
the study itself and sees every entry. A revoked, replaced or expired token is refused at once. What
was spent under a name stays spent: the ledger records the name, not the token.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from sqlite3 import Connection
from typing import Any, Literal, TypeAlias

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter
from discreet.parameters import quote
from discreet.serve.store import Store

Role: TypeAlias = Literal["analyst", "custodian"]

_NAME = re.compile(r"(?!discreet\.)[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
_TOKEN = re.compile(r"discreet_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)
_NOBODY = bytes(32)

_ALIVE = "revoked = 0 AND (expires IS NULL OR expires > ?)"
FILE = "discreet.access"  # beside the first study, unless the custodian names another file


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    role: Role
    studies: frozenset[str]

    @property
    def analyst(self) -> str | None:
        """The name of the allotment in the ledger; None for a custodian."""
        return self.name if self.role == "analyst" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A token as the custodian sees it; times are in UTC."""

    name: str
    role: Role
    studies: tuple[str, ...]
    made: str
    expires: str | None
    state: Literal["in use", "expired", "revoked"]


class Access(Store):
    schema = """
CREATE TABLE person (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('analyst', 'custodian')),
    token_id TEXT NOT NULL UNIQUE,
    token_hash BLOB NOT NULL CHECK (length(token_hash) = 32),
    revoked INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1)),
    made TEXT NOT NULL CHECK (length(made) = 20),
    expires TEXT CHECK (length(expires) = 20)
) STRICT;
CREATE TABLE permit (
    name TEXT NOT NULL REFERENCES person,
    study TEXT NOT NULL,
    PRIMARY KEY (name, study)
) STRICT;
"""

    def permit(
        self, name: str, *, role: Role, study: str, expires: str | None = None
    ) -> str | None:
        """A new token; None if the name already has a token, which now opens this study as well.

        `expires` (see `end_of`) is when the token, new or existing, expires.
        """
        require_name(name)
        with self.opened(write=True) as file:
            _refuse_other_role(file, name, role)
            token = None
            statement = f"SELECT 1 FROM person WHERE name = ? AND {_ALIVE}"  # noqa: S608
            if file.execute(statement, (name, _now())).fetchone() is None:
                token, identity, secret = _new_token()
                file.execute(
                    "INSERT INTO person (name, role, token_id, token_hash, made) VALUES (?, ?, ?,"
                    " ?, ?) ON CONFLICT (name) DO UPDATE SET token_id = excluded.token_id,"
                    " token_hash = excluded.token_hash, made = excluded.made, revoked = 0, expires"
                    " = NULL",
                    (name, role, identity, secret, _now()),
                )
                # the new token inherits no study from an expired or revoked one
                file.execute("DELETE FROM permit WHERE name = ?", (name,))
            if expires is not None:
                file.execute("UPDATE person SET expires = ? WHERE name = ?", (expires, name))
            file.execute("INSERT OR IGNORE INTO permit (name, study) VALUES (?, ?)", (name, study))
        return token

    def refuse_other_role(self, name: str, role: Role) -> None:
        """Refuse a name that has another role, before the ledger allots ε to it."""
        require_name(name)
        with self.opened() as file:
            _refuse_other_role(file, name, role)

    def rotate(self, name: str, *, expires: str | None = None) -> str:
        """A new token for a name, for the same studies; the old token is refused from now on.

        The new token expires when the old one would have, unless `expires` says otherwise.
        """
        require_name(name)
        token, identity, secret = _new_token()
        with self.opened(write=True) as file:
            row = file.execute(
                "SELECT expires FROM person WHERE name = ? AND revoked = 0", (name,)
            ).fetchone()
            if row is None:
                raise InvalidParameter(f"name must have a token that was not revoked, got {name!r}")
            if expires is None and row[0] is not None and row[0] <= _now():
                raise InvalidParameter(
                    f"the token of {name!r} has expired, and a new one would expire at once: give"
                    " --expires"
                )
            file.execute(
                "UPDATE person SET token_id = ?, token_hash = ?, made = ?, expires = ? WHERE"
                " name = ?",
                (identity, secret, _now(), expires or row[0], name),
            )
        return token

    def revoke(self, name: str, *, study: str | None = None) -> None:
        """Revoke a token, or its access to one study."""
        require_name(name)
        with self.opened(write=True) as file:
            if study is None:
                changed = file.execute(
                    "UPDATE person SET revoked = 1 WHERE name = ? AND revoked = 0", (name,)
                ).rowcount
            else:
                changed = file.execute(
                    "DELETE FROM permit WHERE name = ? AND study = ?", (name, study)
                ).rowcount
        if not changed:
            where = "" if study is None else " that opens this study"
            raise InvalidParameter(
                f"name must have a token in use{where}, got {name!r}; nothing was revoked"
            )

    def names(self) -> list[str]:
        """The names with a token in use."""
        return [line.name for line in self.lines() if line.state == "in use"]

    def lines(self) -> list[Line]:
        """All tokens: in use, expired and revoked."""
        with self.opened() as file:
            people = file.execute(
                "SELECT name, role, revoked, made, expires FROM person ORDER BY name"
            ).fetchall()
            permits = file.execute("SELECT name, study FROM permit ORDER BY study").fetchall()
        lines = []
        for name, role, revoked, created, expires in people:
            state: Any = (
                "revoked"
                if revoked
                else "expired"
                if expires is not None and expires <= _now()
                else "in use"
            )
            studies = tuple(study for owner, study in permits if owner == name)
            lines.append(
                Line(
                    name=name,
                    role=role,
                    studies=studies,
                    made=created,
                    expires=expires,
                    state=state,
                )
            )
        return lines

    def person(self, token: str) -> Person | None:
        """The owner of a token; None if the token is malformed, unknown, expired or revoked."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        with self.opened() as file:
            row = file.execute(
                f"SELECT name, role, token_hash FROM person WHERE token_id = ? AND {_ALIVE}",  # noqa: S608
                (parts[1], _now()),
            ).fetchone()
            if (
                not hmac.compare_digest(_hash(parts[2]), _NOBODY if row is None else row[2])
                or row is None
            ):
                return None
            studies = file.execute("SELECT study FROM permit WHERE name = ?", (row[0],)).fetchall()
        return Person(name=row[0], role=row[1], studies=frozenset(study for (study,) in studies))


def end_of(text: str) -> str:
    """The time, in UTC, at which a token expires: in 90d or 12h, or at the end of a day such as
    2027-01-31.
    """
    span = re.fullmatch(r"([1-9][0-9]{0,4})([dh])", text, re.ASCII)
    try:
        if span is not None:
            end = datetime.now(UTC) + int(span[1]) * timedelta(
                **{{"d": "days", "h": "hours"}[span[2]]: 1}
            )
        else:
            end = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) + timedelta(
                days=1
            )
    except (ValueError, OverflowError):
        raise InvalidParameter(
            "expires must be a day such as 2027-01-31, or a time such as 90d or 12h, got"
            f" {quote(text)}"
        ) from None
    if _text(end) <= _now():
        raise InvalidParameter(
            f"expires must be in the future, got {quote(text)}; to end a token now, revoke it"
        )
    return _text(end)


def require_name(name: str) -> None:
    """Refuse a name that could be misread in an address, a log or a ledger."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            "name must be 1 to 40 of the characters A–Z, a–z, 0–9, '.', '_' and '-', and not begin"
            " with 'discreet.'"
        )


def _refuse_other_role(file: Connection, name: str, role: Role) -> None:
    person = file.execute("SELECT role FROM person WHERE name = ?", (name,)).fetchone()
    if person is not None and person[0] != role:
        raise InvalidParameter(
            f"{name!r} already has the role {person[0]}; choose another name for another role"
        )


def _new_token() -> tuple[str, str, bytes]:
    """A token, its id, and the hash of its secret."""
    identity, secret = random_digits(1), random_digits(4)
    return f"discreet_{identity}_{secret}", identity, _hash(secret)


def _now() -> str:
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    """A time as text; texts sort in the order of time."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z".rjust(20, "0")


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
