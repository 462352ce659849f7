"""The ledger's tables, and the one kind of transaction that touches them.

One schema for SQLite and PostgreSQL. `entry` is only ever added to: each row holds the hash of the row before it and
what the study has spent so far, which the schema itself keeps within the total. A row's number is unique, so even
without any lock two writers could not both add the next one. `analyst` holds what each share has come to.

    SQLite       BEGIN IMMEDIATE: the writer's lock before the first read. journal_mode=TRUNCATE and
                 synchronous=FULL: a commit is on the disk, in one file; there is no -wal to lose.
    PostgreSQL   SELECT … FOR UPDATE of the study's row before any other read; synchronous_commit on.
                 Or one statement that does all of it: see `statements`.

How a process connects, waits for its turn and translates what goes wrong: see `database`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    literal_column,
    text,
)

VERSION = 1
"""Of the tables and of the hash; a ledger of another version is refused."""

_UNITS = Integer().with_variant(BigInteger(), "postgresql")  # 10⁶ ε are 10¹⁵ units

_tables = MetaData()


def _table(name: str, *parts: Any) -> Table:
    return Table(f"discreet_{name}", _tables, *parts, sqlite_strict=True, sqlite_with_rowid=False)


LEDGER = _table(
    "ledger",
    Column("id", Text, primary_key=True),
    Column("version", Integer, nullable=False),
)

STUDY = _table("study", Column("name", Text, primary_key=True))
"""The row that PostgreSQL locks; it never changes."""

ANALYST = _table(
    "analyst",
    Column("study", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("allotted", _UNITS, nullable=False),
    Column("spent", _UNITS, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("study", "name"),
    CheckConstraint("spent >= 0 AND spent <= allotted AND allotted > 0", name="discreet_analyst_within_allotted"),
)

ENTRY = _table(
    "entry",
    Column("study", Text, nullable=False),
    Column("number", _UNITS, nullable=False),
    Column("kind", Text, nullable=False),
    Column("request_id", Text),
    Column("analyst", Text),
    Column("query", Text),
    Column("data_version", Text),
    Column("question", Text),
    Column("epsilon", Text),
    Column("amount", _UNITS, nullable=False),
    Column("spent", _UNITS, nullable=False),
    Column("total", _UNITS, nullable=False),
    Column("answer", LargeBinary),
    Column("terms", Text),
    Column("time", Text, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("study", "number"),
    CheckConstraint("spent >= 0 AND spent <= total AND total > 0", name="discreet_entry_within_total"),
    CheckConstraint(
        "number > 0 AND length(nonce) = 32 AND length(before) = 64 AND length(hash) = 64", name="discreet_entry_chained"
    ),
    CheckConstraint(
        "kind IN ('create', 'allot', 'spend', 'repeat', 'answer', 'restore')", name="discreet_entry_known_kind"
    ),
    CheckConstraint(
        "amount >= 0 AND (kind = 'restore' OR (kind IN ('repeat', 'answer')) = (amount = 0))",
        name="discreet_entry_amount",
    ),
    CheckConstraint(
        "(kind IN ('spend', 'repeat', 'answer')) = (request_id IS NOT NULL)"
        " AND (request_id IS NULL) = (question IS NULL) AND (request_id IS NULL) = (epsilon IS NULL)"
        " AND (kind = 'spend') = (query IS NOT NULL) AND (kind = 'answer') = (answer IS NOT NULL)"
        " AND (kind IN ('create', 'restore')) = (terms IS NOT NULL)",
        name="discreet_entry_complete",
    ),
)

REQUESTS = text("kind IN ('spend', 'repeat')")
Index(
    "discreet_one_request",
    ENTRY.c.study,
    ENTRY.c.request_id,
    unique=True,
    sqlite_where=REQUESTS,
    postgresql_where=REQUESTS,
)

QUESTIONS = text("kind IN ('spend', 'answer')")
Index(
    "discreet_one_spend_one_answer",
    ENTRY.c.study,
    ENTRY.c.question,
    ENTRY.c.epsilon,
    ENTRY.c.kind,
    unique=True,
    sqlite_where=QUESTIONS,
    postgresql_where=QUESTIONS,
)

RESTORES = text("kind = 'restore'")
Index(
    "discreet_restores",
    ENTRY.c.study,
    ENTRY.c.kind,  # so that SQLite prefers it to the key
    ENTRY.c.number,
    sqlite_where=RESTORES,
    postgresql_where=RESTORES,
)

REPEATS = text("kind = 'repeat'")
BY_WHOM: ColumnElement[str] = literal_column("coalesce(analyst, '')")
Index("discreet_repeats", ENTRY.c.study, BY_WHOM, ENTRY.c.time, sqlite_where=REPEATS, postgresql_where=REPEATS)

_SOMEBODY = text("analyst IS NOT NULL")
Index(
    "discreet_by_analyst",
    ENTRY.c.study,
    ENTRY.c.analyst,
    ENTRY.c.number,
    sqlite_where=_SOMEBODY,
    postgresql_where=_SOMEBODY,
)


def create_tables(connection: Connection) -> None:
    """Make the tables, where there are none."""
    _tables.create_all(connection, checkfirst=False)
