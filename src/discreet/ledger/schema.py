"""The ledger's tables, and the transactions that use them.

SQLite and PostgreSQL have the same schema. Rows are only ever added to `entry`: each holds the hash
of the previous row and what the study has spent so far, which a CHECK keeps within the total. A
row's number is unique, so even without a lock two writers could not both add the next row.
`analyst` holds the balance of each share.

    SQLite       BEGIN IMMEDIATE: the writer's lock before the first read. journal_mode=TRUNCATE and
                 synchronous=FULL: a commit is on the disk, in one file; there is no -wal file to
                 lose.
    PostgreSQL   SELECT … FOR UPDATE of the study's row before any other read; synchronous_commit
                 on.
                 Or a single statement: see `statements`.

See `database` for how a process connects, waits for its turn and translates errors.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from discreet.ledger.chain import Entry

VERSION = 1  # the version of the tables and of the hash; a ledger of another version is refused
_UNITS = sa.Integer().with_variant(sa.BigInteger(), "postgresql")  # 10⁶ ε are 10¹⁵ units
_TYPES: dict[str, Any] = {"str": sa.Text, "int": _UNITS, "bytes": sa.LargeBinary}

TABLES = sa.MetaData()


def _table(name: str, *parts: Any, rowid: bool = False) -> sa.Table:
    return sa.Table(f"discreet_{name}", TABLES, *parts, sqlite_strict=True, sqlite_with_rowid=rowid)


LEDGER = _table(
    "ledger",
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

# PostgreSQL locks a row, which never changes
STUDY = _table("study", sa.Column("name", sa.Text, primary_key=True))
ANALYST = _table(
    "analyst",
    *(sa.Column(name, sa.Text, nullable=False) for name in ("study", "name")),
    *(sa.Column(name, _UNITS, nullable=False) for name in ("allotted", "spent")),
    sa.Column("hash", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("study", "name"),
    sa.CheckConstraint(
        "spent >= 0 AND spent <= allotted AND allotted > 0", name="discreet_analyst_within_allotted"
    ),
)

ENTRY = _table(
    "entry",
    *(
        sa.Column(part.name, _TYPES[str(part.type).split()[0]], nullable=part.default is None)
        for part in fields(Entry)
    ),
    sa.PrimaryKeyConstraint("study", "number"),
    sa.CheckConstraint(
        "spent >= 0 AND spent <= total AND total > 0", name="discreet_entry_within_total"
    ),
    sa.CheckConstraint(
        "number > 0 AND length(nonce) = 32 AND length(before) = 64 AND length(hash) = 64",
        name="discreet_entry_chained",
    ),
    sa.CheckConstraint(
        "kind IN ('create', 'allot', 'spend', 'repeat', 'answer', 'restore')",
        name="discreet_entry_known_kind",
    ),
    sa.CheckConstraint(
        "amount >= 0 AND (kind = 'restore' OR (kind IN ('repeat', 'answer')) = (amount = 0))",
        name="discreet_entry_amount",
    ),
    sa.CheckConstraint(
        "(kind IN ('spend', 'repeat', 'answer')) = (request_id IS NOT NULL) AND (request_id IS"
        " NULL) = (question IS NULL) AND (request_id IS NULL) = (epsilon IS NULL) AND (kind ="
        " 'spend') = (query IS NOT NULL) AND (kind = 'answer') = (answer IS NOT NULL) AND (kind IN"
        " ('create', 'restore')) = (terms IS NOT NULL) AND (asked IS NULL OR kind IN ('spend',"
        " 'repeat'))",
        name="discreet_entry_complete",
    ),
    rowid=True,
)
"""The fields of an `Entry`; a field whose default is None may be NULL.

Without rowids SQLite would read a whole row, and its answer of perhaps many MB, to compare its
number with another.
"""


def _index(
    name: str, where: str, *columns: sa.ColumnElement[Any], unique: bool = False
) -> sa.TextClause:
    """Add an index on a study's entries, and return the condition of the rows that it covers."""
    rows = sa.text(where)
    sa.Index(
        f"discreet_{name}",
        ENTRY.c.study,
        *columns,
        unique=unique,
        sqlite_where=rows,
        postgresql_where=rows,
    )
    return rows


_KIND, _NUMBER = ENTRY.c.kind, ENTRY.c.number
BY_WHOM: sa.ColumnElement[str] = sa.literal_column("coalesce(analyst, '')")

REQUESTS = _index("one_request", "kind IN ('spend', 'repeat')", ENTRY.c.request_id, unique=True)
QUESTIONS = _index(
    "one_spend_one_answer",
    "kind IN ('spend', 'answer')",
    ENTRY.c.question,
    ENTRY.c.epsilon,
    _KIND,
    unique=True,
)
# with the kind, SQLite prefers it to the key
RESTORES = _index("restores", "kind = 'restore'", _KIND, _NUMBER)
REPEATS = _index("repeats", "kind = 'repeat'", BY_WHOM, ENTRY.c.time)
_index("by_analyst", "analyst IS NOT NULL", ENTRY.c.analyst, _NUMBER)
