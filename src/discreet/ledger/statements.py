"""The statements of a spend: constants, so that each is compiled to SQL once.

`FIND` and `ADD` are for the general case: in a transaction that holds the study's lock, look,
decide, insert.

`APPEND` is one message to PostgreSQL for the usual case: nobody else is writing, and the caller
knows the last entry. The whole new entry, with its hash and balance, follows from the last entry,
so the server only has to check:

    lock the study, if it is free and ends in the entry before → insert, unless a unique key objects
    → commit

A statement sees the tables as they were when it began, which may be before another writer's last
commit. That is enough: an entry committed since then has the number of this entry, so the primary
key refuses this one. A request id or a question that already exists is refused by its unique index.
Then nothing has changed, and the general case decides. The lock protects writers in the general
case: what they read stays true until they insert.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from discreet.ledger.chain import COLUMNS
from discreet.ledger.schema import (
    ANALYST,
    BY_WHOM,
    ENTRY,
    LEDGER,
    QUESTIONS,
    REPEATS,
    REQUESTS,
    RESTORES,
    STUDY,
    VERSION,
)

_ASKED = {
    name: ENTRY.c[name] == sa.bindparam(name)
    for name in ("request_id", "question", "epsilon", "analyst")
}
_OF_STUDY = ENTRY.c.study == sa.bindparam("study")
_NONE: sa.ColumnElement[int] = sa.literal_column("0")
_FIRST: sa.ColumnElement[int] = sa.literal_column("1")
_NUMBER_OF_LAST = sa.select(sa.func.max(ENTRY.c.number)).where(_OF_STUDY).scalar_subquery()


def _part(
    name: str, answer: sa.ColumnElement[bytes], *where: sa.ColumnElement[bool] | sa.TextClause
) -> sa.Select[*tuple[Any, ...]]:
    none = {name: sa.cast(sa.null(), sa.Text).label(name) for name in ("query", "asked")}
    labelled = {**none, "answer": answer.label("answer")}
    columns = [labelled.get(column, ENTRY.c[column]) for column in COLUMNS]
    return sa.select(sa.literal_column(f"'{name}'").label("part"), *columns).where(
        _OF_STUDY, *where
    )


_OUR_VERSION = sa.exists().where(LEDGER.c.version == sa.literal_column(str(VERSION)))
"""Whether the tables still have the version that this code reads and writes: another may upgrade
them meanwhile.
"""

_NO_ANSWER = sa.cast(sa.null(), sa.LargeBinary)
_LAST_RESTORE = sa.select(sa.func.max(ENTRY.c.number)).where(_OF_STUDY, RESTORES).scalar_subquery()
FIND = sa.union_all(
    _part("head", _NO_ANSWER, ENTRY.c.number == _NUMBER_OF_LAST, _OUR_VERSION),
    _part("anchored", _NO_ANSWER, ENTRY.c.number == sa.bindparam("anchored")),
    _part("era", _NO_ANSWER, ENTRY.c.number == sa.func.coalesce(_LAST_RESTORE, _FIRST)),
    _part("request", _NO_ANSWER, _ASKED["request_id"], REQUESTS),
    _part("question", ENTRY.c.answer, _ASKED["question"], _ASKED["epsilon"], QUESTIONS),
)
"""Everything that a spend must know, in one statement: after the lock, so that it sees the last
writer's commit.
"""

ADD = sa.insert(ENTRY)

WALK = (
    sa.select(
        *(ENTRY.c[name] for name in COLUMNS if name != "answer"),
        sa.func.sha256(ENTRY.c.answer, type_=sa.LargeBinary).label("answer_hash"),
    )
    .where(
        _OF_STUDY, ENTRY.c.number > sa.bindparam("after"), ENTRY.c.number <= sa.bindparam("last")
    )
    .order_by(ENTRY.c.number)
)
"""The next entries, in order, with the hash of each answer instead of the answer, which may be
large. A range of numbers always uses the primary key; with a LIMIT, PostgreSQL might sort all
remaining rows for each batch."""

POINT = sa.select(ENTRY.c.hash).where(_OF_STUDY, ENTRY.c.number == sa.bindparam("number"))


def _spends(name: sa.ColumnElement[Any]) -> sa.Select[*tuple[Any, ...]]:
    columns = [ENTRY.c[column] for column in COLUMNS if column != "answer"]
    # BETWEEN allows no COLLATE
    in_range = name >= sa.bindparam("beginning"), name < sa.bindparam("last")
    return (
        sa.select(*columns)
        .where(_OF_STUDY, *in_range, ENTRY.c.kind == _SPEND, REQUESTS)
        .order_by(ENTRY.c.number)
    )


_SPEND: sa.ColumnElement[str] = sa.literal_column("'spend'")
SPENDS, SPENDS_BY_BYTES = _spends(ENTRY.c.request_id), _spends(ENTRY.c.request_id.collate("C"))
"""The spends whose request ids lie in a range, compared by bytes: PostgreSQL's own order depends on
its locale.
"""

_PAID = ENTRY.alias("paid")
_LAST_ENTRIES: sa.ColumnElement[int] = sa.literal_column("10000")
ANSWERED = (
    sa.select(_PAID.c.data_version)
    .where(_PAID.c.data_version.is_not(None))  # nothing is free for an unknown version
    .where(_PAID.c.study == sa.bindparam("study"), _PAID.c.number > _NUMBER_OF_LAST - _LAST_ENTRIES)
    .where(
        _PAID.c.kind == _SPEND,
        _PAID.c.query == sa.bindparam("query"),
        _PAID.c.epsilon == sa.bindparam("epsilon"),
    )
    .where(
        sa.exists()
        .where(_OF_STUDY, ENTRY.c.question == _PAID.c.question, ENTRY.c.epsilon == _PAID.c.epsilon)
        .where(ENTRY.c.kind == sa.literal_column("'answer'"), QUESTIONS)
    )
)
"""The data versions for which a query was answered, among the last entries: a plan must not read
all of them.
"""

# the restores of a study
ERAS = sa.select(ENTRY.c.terms, ENTRY.c.amount).where(_OF_STUDY, RESTORES)
_ANSWER = ENTRY.alias()
UNANSWERED = (
    sa.select(ENTRY.c.number, ENTRY.c.request_id, ENTRY.c.analyst, ENTRY.c.query)
    .where(_OF_STUDY, ENTRY.c.kind == _SPEND, ENTRY.c.number > sa.bindparam("era"))
    .where(
        ~sa.exists().where(
            *(_ANSWER.c[name] == ENTRY.c[name] for name in ("study", "question", "epsilon")),
            _ANSWER.c.kind == sa.literal_column("'answer'"),
        )
    )
    .order_by(ENTRY.c.number)
)
"""The spends since the beginning of an era that have no answer."""

REPEATED = (
    sa.select(ENTRY.c.number)
    .where(
        _OF_STUDY,
        sa.bindparam("analyst") == BY_WHOM,
        ENTRY.c.time >= sa.bindparam("since"),
        REPEATS,
    )
    .limit(sa.bindparam("most"))
    .offset(_NONE)
)
"""The repeats of an analyst, or of requests without an analyst (""), since a time."""

_THEIRS = (ANALYST.c.study == sa.bindparam("study"), ANALYST.c.name == sa.bindparam("analyst"))

SHARE = sa.select(ANALYST).where(*_THEIRS)

BY_ANALYST = (
    sa.select(ENTRY.c.number).where(_OF_STUDY, _ASKED["analyst"]).limit(_FIRST).offset(_NONE)
)
"""An entry of an analyst, if there is any: then there must be a share."""

_NEW = {name: sa.bindparam(name, type_=ENTRY.c[name].type) for name in COLUMNS if name != "answer"}
_LAST = (
    sa.select(ENTRY.c.number + _FIRST, ENTRY.c.hash, ENTRY.c.spent + _NEW["amount"], ENTRY.c.total)
    .where(_OF_STUDY)
    .order_by(ENTRY.c.number.desc())
    .limit(_FIRST)
)
_FOLLOWS = (
    sa.tuple_(_NEW["number"], _NEW["before"], _NEW["spent"], _NEW["total"])
    == _LAST.scalar_subquery()
)
_DURABLE: sa.ColumnElement[bool] = sa.literal_column("current_setting('synchronous_commit') = 'on'")
_SPACE, _UTF8, _HEX = (sa.literal_column(f"'{text}'", sa.Text) for text in (" ", "UTF8", "hex"))


def _share_digest(spent: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    """See `chain.share_digest`."""
    words = sa.func.concat_ws(_SPACE, ANALYST.c.allotted, spent, ANALYST.c.study, ANALYST.c.name)
    return sa.func.encode(sa.func.sha256(sa.func.convert_to(words, _UTF8)), _HEX, type_=sa.Text)


_FITS = sa.exists().where(
    *_THEIRS,
    ANALYST.c.hash == _share_digest(ANALYST.c.spent),
    ANALYST.c.spent + _NEW["amount"] <= ANALYST.c.allotted,
)


def _append(*where: sa.ColumnElement[bool]) -> postgresql.Insert:
    rows = sa.select(*_NEW.values()).where(
        STUDY.c.name == sa.bindparam("study"), _OUR_VERSION, _DURABLE, _FOLLOWS, *where
    )
    new = postgresql.insert(ENTRY).from_select(
        list(_NEW), rows.with_for_update(of=STUDY, skip_locked=True)
    )
    return new.on_conflict_do_nothing()


APPEND = _append()  # changes one row if the spend was added, otherwise none
_ADDED = _append(_FITS).returning(ENTRY.c.amount).cte("added")
_SPENT = ANALYST.c.spent + _ADDED.c.amount
APPEND_SHARED = sa.update(ANALYST).where(*_THEIRS).values(spent=_SPENT, hash=_share_digest(_SPENT))
"""The same for an analyst, whose share is charged if and only if the spend was added."""
