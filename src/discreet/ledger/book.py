"""The layer below `Ledger`: how a ledger is opened, checked and written to.

Every change runs through `Book.page`, which keeps to the only safe order,

    read the anchor → lock the study → compare → change → commit → advance the anchor

or, for most spends on PostgreSQL, through `Book.append_at_once`: the same order, with the middle in
one statement. The anchor is read before the study is locked, so it can only be older than the
locked study: a study that lacks the anchored head was rolled back.

`open` checks what the budget depends on: the tables, the anchored entry and the entries after it.
Earlier entries were checked when the anchor passed them. `verify` walks everything, in short
batches, so that spends can continue.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import URL, ColumnElement, Connection, TextClause, insert, select, update

from discreet.draw.entropy import random_digits
from discreet.errors import LedgerDamaged
from discreet.ledger import chain, refusals, statements
from discreet.ledger.anchor import Anchor, AnchorFile, Head, Point
from discreet.ledger.chain import COLUMNS, Balance, Entry, checked, digest, replay, whole_rows
from discreet.ledger.database import Database, server_of
from discreet.ledger.schema import ANALYST, ENTRY, LEDGER, QUESTIONS, STUDY, VERSION
from discreet.ledger.statements import WALK
from discreet.outside import read_json

# entries that are read at a time: some MB with their questions, and the longest that a writer waits
# for
_BATCH = 250
_IDENTITY, _STUDIES, _SHARES = select(LEDGER), select(STUDY).order_by(STUDY.c.name), select(ANALYST)


class StudyState:
    """A study at one moment, locked if it may change, and what is known of a request.

    `request` is the entry with the same request id, `paid` is the entry that paid for the question,
    and `answer` is its stored answer; each is None if there is none. `era` is the entry that
    created the study or last restored it.
    """

    def __init__(self, book: Book, connection: Connection, head: Head, rows: list[Any]) -> None:
        self._book, self.connection, self.head = book, connection, head
        parts = {row.part if row.part != "question" else row.kind: row for row in rows}
        self.request: Any = parts.get("request")
        self.era: Any = parts["era"]
        self.paid: Any = parts.get("spend")
        answer = parts.get("answer")
        self.answer = None if answer is None else bytes(checked(book.id, answer).answer)
        self.void = self.paid is not None and answer is None and self.paid.number < self.era.number
        """Whether the question was paid for and unanswered when the study was restored: a lost
        entry may answer it.
        """
        self.moved = False
        self.durable = self.answer is not None  # the answer will be shown: see anchor

    def append(self, **columns: Any) -> None:
        """Add an entry after the head and move the head to it; the amount of a spend is spent."""
        self.head = self._book.append(self.connection, self.head, columns)
        self.moved = True
        self.durable = self.durable or columns["kind"] != "spend"

    @whole_rows()
    def analyst(self, name: str) -> Any:
        """An analyst's share, or None if they have none; `LedgerDamaged` if its hash is wrong."""
        run = partial(self._book.database.run, self.connection, study=self.head.study, analyst=name)
        rows = run(statements.SHARE)
        if not rows and not run(statements.BY_ANALYST):
            return None
        if not rows or chain.share_digest(*rows[0][:-1]) != rows[0].hash:
            raise refusals.damaged()
        return rows[0]

    def share(self, name: str, *, allotted: int, spent: int) -> None:
        digest = chain.share_digest(self.head.study, name, allotted, spent)
        values = {"allotted": allotted, "spent": spent, "hash": digest}
        conditions = (ANALYST.c.study == self.head.study, ANALYST.c.name == name)
        if self.connection.execute(update(ANALYST).where(*conditions).values(values)).rowcount == 0:
            self.connection.execute(
                insert(ANALYST).values(study=self.head.study, name=name, **values)
            )

    def repeats(self, analyst: str | None, most: int) -> int:
        """How many repeats of an analyst were recorded today, counted up to `most`."""
        today = datetime.now(UTC).date().isoformat()
        request = {"study": self.head.study, "analyst": analyst or "", "since": today, "most": most}
        return len(self._book.database.run(self.connection, statements.REPEATED, **request))


class Book:
    def __init__(self, where: Path | URL, anchor: Path) -> None:
        self.files = (where, anchor) if isinstance(where, Path) else (anchor,)
        self.database = Database(where)
        self.anchor = AnchorFile(anchor)
        self.id = ""
        self._server = ""

    def close(self) -> None:
        self.database.close()

    def studies(self) -> list[str]:
        with self.database.reading() as connection:
            return self._studies(connection)

    @contextmanager
    def page(self, study: str, *, reading: bool = False, **request: str) -> Iterator[StudyState]:
        """A study, locked and not behind its anchor; additions are on disk at the end."""
        anchor = self._read_anchor(study)
        with self.database.reading() if reading else self.database.transaction(study) as connection:
            page = self.find(connection, study, anchor, **request)
            yield page
        if page.moved or page.answer is not None:
            self.anchor.advance(page.head, durable=page.durable)

    def append_at_once(self, study: str, **columns: Any) -> Head | None:
        """Add a spend right after the anchored head, and return the new head; None if nothing was
        added: use `page`.
        """
        is_idle = not self.database.is_file and not self.database.is_busy(study)
        anchored = self._read_anchor(study).heads.get(study) if is_idle else None
        if anchored is None or anchored.spent + columns["amount"] > anchored.total:
            return None
        values, head = self._next(anchored, columns)
        statement = statements.APPEND if values["analyst"] is None else statements.APPEND_SHARED
        if self.database.run_alone(statement, server=self._server, **values) != 1:
            return None
        self.anchor.advance(head, durable=False)
        return head

    def refuse_hidden_answer(
        self, page: StudyState, since: Head | None, connection: Connection | None = None
    ) -> None:
        """Refuse a ledger whose index lacks the answer to a paid question that its chain has.

        With a damaged index the answer would be drawn again at no charge. So all entries after the
        spend, or `since` a head at which there was no answer, are walked: they must contain neither
        the answer nor a restore, which makes the spend void. Without a connection each batch has
        its own transaction, so that spends can continue.
        """
        end, paid, decisive = page.head, page.paid, []
        count, before = (
            (paid.number - 1, paid.before) if since is None else (since.count, since.hash)
        )
        while count < end.count:
            with (
                self.database.reading() if connection is None else nullcontext(connection)
            ) as reader:
                last = min(count + _BATCH, end.count)
                rows = self.database.run(reader, WALK, study=end.study, after=count, last=last)
            with whole_rows():
                for row, number in zip(rows, range(count + 1, last + 1), strict=True):
                    if (row.number, row.before, row.hash) != (
                        number,
                        before,
                        digest(self.id, row, row.answer_hash),
                    ):
                        raise refusals.changed(end.study, number)
                    before = row.hash
                    same = (row.question, row.epsilon) == (paid.question, paid.epsilon)
                    decisive += (
                        [row.kind]
                        if row.kind == "restore" or (same and row.kind != "repeat")
                        else []
                    )
            count = last
        if before != end.hash or decisive != ([] if since else ["spend"]):
            raise refusals.damaged()

    def promise(self, page: StudyState) -> Any:
        """The promise of a study: that of the entry that created it, or of the last correction."""
        *_, row = self._creations(page)
        return read_json(row.terms)["promise"]

    @whole_rows()
    def _creations(self, page: StudyState) -> list[Any]:
        """The entry that created a study, and its corrections; the anchored hash covers it."""
        study, found, before = page.head.study, [], chain.START
        points = {point.number: point.hash for point in self.anchor.read().points.get(study, ())}
        for number in range(1, page.head.count + 1):
            [row] = self.database.run(
                page.connection, WALK, study=study, after=number - 1, last=number
            )
            if row.before != before:
                raise refusals.changed(study, max(1, number - 1))
            if row.kind != "create":
                break
            if digest(self.id, row, None) != row.hash or not row.hash.startswith(
                points.get(number, "")
            ):
                raise refusals.changed(study, number)
            found.append(row)
            before = row.hash
        return found

    def correct(self, page: StudyState, total: int, promise: Any) -> None:
        """Add a correction of the total and the promise, before anything is spent or allotted."""
        if len(self._creations(page)) < page.head.count:
            raise refusals.used(page.head.study)
        page.head = replace(page.head, total=total)
        terms = terms_of(promise=promise, server=server_of(page.connection))
        page.append(kind="create", amount=total, terms=terms)

    def _read_anchor(self, study: str) -> Anchor:
        refusals.require_text("study", study)
        anchor = self.anchor.read()
        if anchor.ledger != self.id:
            raise refusals.swapped()
        return anchor

    @whole_rows()
    def find(
        self, connection: Connection, study: str, anchor: Anchor | None, **request: str
    ) -> StudyState:
        """What is known of a study and a request; refused if the anchor knows more, or if the
        server has changed.
        """
        anchored = None if anchor is None else anchor.heads.get(study)
        values = {"request_id": "", "question": "", "epsilon": "", **request, "study": study}
        rows = self.database.run(
            connection, statements.FIND, anchored=anchored.count if anchored else 0, **values
        )
        head = next((_head(row) for row in rows if row.part == "head"), None)
        if head is None:
            self._refuse_other_version(connection)
        if anchor is not None and anchored is not None:
            if anchored.hash not in [row.hash for row in rows if row.part == "anchored"]:
                count = 0 if head is None else head.count
                raise refusals.behind(study, count, anchored.count, self.mark(connection, anchor))
            if head is None or (head.count <= anchored.count and head != anchored):
                raise refusals.changed(study, anchored.count)
        if head is None:
            raise refusals.foreign(study)
        page = StudyState(self, connection, head, rows)
        if anchor is not None:
            if read_json(page.era.terms)["server"] != server_of(connection) and checked(
                self.id, page.era
            ):
                raise refusals.moved(self.mark(connection, anchor))
            self._server = server_of(connection)
        return page

    def begin_study(self, connection: Connection, study: str, total: int, promise: Any) -> Head:
        connection.execute(insert(STUDY).values(name=study))
        start = Head(study=study, count=0, hash=chain.START, spent=0, total=total)
        terms = terms_of(promise=promise, server=server_of(connection))
        return self.append(connection, start, {"kind": "create", "amount": total, "terms": terms})

    def append(self, connection: Connection, head: Head, columns: dict[str, Any]) -> Head:
        """Write the entry after the head, and return the new head."""
        values, head = self._next(head, columns)
        self.database.run(connection, statements.ADD, **values)
        return head

    def _next(self, head: Head, columns: dict[str, Any]) -> tuple[dict[str, Any], Head]:
        """The row of the next entry, and the head after it."""
        spent = head.spent + (columns["amount"] if columns["kind"] in ("spend", "restore") else 0)
        entry = Entry(
            study=head.study,
            number=head.count + 1,
            spent=spent,
            total=head.total,
            # for readers only: entries are ordered by number
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            nonce=random_digits(2),
            before=head.hash,
            **columns,
        )
        values = {name: getattr(entry, name) for name in COLUMNS}
        values["hash"] = digest(self.id, entry, chain.sha256_of(entry.answer))
        return values, Head(
            study=head.study, count=entry.number, hash=values["hash"], spent=spent, total=head.total
        )

    def open(self) -> dict[str, Head]:
        """The heads, after a check of the tables, of the anchored entries and of all entries after
        them.
        """
        anchor = self.anchor.read()  # before the ledger, so that the anchor can only be older
        with self.database.reading() as connection:
            self._identify(connection, anchor)
            studies = self._studies(connection)
            pages = [
                self.find(connection, study, anchor)
                for study in dict.fromkeys((*anchor.heads, *studies))
            ]
        if not set(anchor.heads) <= set(studies):
            raise refusals.unnamed()
        return {
            page.head.study: self._open_study(page.head, anchor.heads.get(page.head.study))
            for page in pages
        }

    def _open_study(self, end: Head, anchored: Head | None) -> Head:
        study, balance = end.study, Balance()
        if anchored is not None:
            balance = Balance(
                total=anchored.total,
                spent=anchored.spent,
                count=anchored.count,
                head=anchored.hash,
                paid=None,
            )
        self._walk(study, balance, anchored)
        head = _balance_head(study, balance)
        if head.count < end.count:
            raise refusals.changed(study, head.count + 1)
        if anchored is None or anchored.count < head.count:
            self.anchor.advance(head, durable=False, spent=False)
        return head

    def _walk(self, study: str, balance: Balance, anchored: Head | None = None) -> None:
        """Check the anchored entry, and add those after it to the balance, batch by batch."""
        while True:
            first, last = balance.count + (anchored is None), balance.count + _BATCH
            with self.database.reading() as connection:
                rows = self.database.run(connection, WALK, study=study, after=first - 1, last=last)
            if anchored is not None:
                with whole_rows():
                    row, *rows = rows
                    if (
                        digest(self.id, row, row.answer_hash) != anchored.hash
                        or _head(row) != anchored
                    ):
                        raise refusals.changed(study, anchored.count)
                anchored = None
            replay(self.id, study, rows, balance)
            if len(rows) < _BATCH:
                return

    def verify(self, *, against_anchor: bool = True) -> dict[str, Head]:
        """The heads, after a check of the database, of every chain, and of the anchor."""
        # before the ledger, so that it can only be older
        anchor = self.anchor.read() if against_anchor else None
        with self.database.reading() as connection:
            self._identify(connection, anchor)
            self.database.check_pages(connection)
            studies = self._studies(connection)
            mentioned = set(
                connection.execute(select(ENTRY.c.study).union(select(ANALYST.c.study))).scalars()
            )
        if mentioned != set(studies):
            raise refusals.unnamed()
        names = dict.fromkeys((*(anchor or _NONE).heads, *studies))
        return {study: self._verify_study(study, anchor) for study in names}

    def _verify_study(self, study: str, anchor: Anchor | None) -> Head:
        balance = Balance()
        self._walk(study, balance)
        with self.database.transaction(study) as connection:
            run = partial(self.database.run, connection)
            replay(self.id, study, run(WALK, study=study, after=balance.count, last=2**62), balance)
            head = self.find(connection, study, anchor).head
            shares = {
                (row.name, row.allotted, row.spent, row.hash)
                for row in run(_SHARES)
                if row.study == study
            }
        sums = [
            (name, allotted, balance.spent_by[name]) for name, allotted in balance.allotted.items()
        ]
        if _balance_head(study, balance) != head or shares != {
            (*of, chain.share_digest(study, *of)) for of in sums
        }:
            raise LedgerDamaged(
                f"the balance of study {study!r} is not what its entries add up to: put back an"
                " intact copy"
            )
        return head

    def _identify(self, connection: Connection, anchor: Anchor | None) -> None:
        """Read the id of the ledger, and refuse tables other than those it was created with."""
        self.database.check(connection)
        self.id = self._refuse_other_version(connection)
        if anchor is not None and anchor.ledger != self.id:
            raise refusals.swapped()
        if anchor is not None and anchor.schema != self.database.fingerprint(connection):
            raise refusals.other_tables()

    def _refuse_other_version(self, connection: Connection) -> str:
        """The id of the ledger, whose tables must have the version of this code."""
        rows = self.database.run(connection, _IDENTITY)
        if len(rows) != 1 or rows[0].version != VERSION:
            raise LedgerDamaged(
                f"this is not a ledger of version {VERSION}: open it with the version that made it,"
                " or put back a copy"
            )
        return str(rows[0].id)

    def _studies(self, connection: Connection) -> list[str]:
        return [row.name for row in self.database.run(connection, _STUDIES)]

    def shared(self, connection: Connection, anchor: Anchor, study: str) -> list[Point]:
        """The heads that the anchor remembers and the chain contains, the oldest first."""
        points = anchor.points.get(study, ())
        run = partial(self.database.run, connection, statements.POINT, study=study)
        return [
            point
            for point in points
            if any(row.hash.startswith(point.hash) for row in run(number=point.number))
        ]

    def mark(self, connection: Connection, anchor: Anchor | None) -> str:
        """Sixteen digits that identify where the ledger and the anchor diverge; a custodian types
        them to accept that.

        They do not change while others add entries. Without an anchor they identify the whole state
        of the ledger.
        """
        studies = self._studies(connection)
        if anchor is None:
            state: list[Any] = [self.find(connection, study, None).head for study in studies]
        else:
            state = [server_of(connection)]
            state += [
                (head, self.shared(connection, anchor, study)[-1:])
                for study, head in anchor.heads.items()
            ]
        return sha256(repr([self.id, state]).encode()).hexdigest()[:16]


_NONE = Anchor(ledger="", schema="")


def entries_of(
    connection: Connection, ledger: str, *conditions: ColumnElement[bool] | TextClause
) -> Generator[Entry]:
    """The entries that meet the conditions, in order; `LedgerDamaged` at a wrong hash."""
    statement = select(ENTRY).where(*conditions).order_by(ENTRY.c.study, ENTRY.c.number)
    with connection.execute(statement.execution_options(yield_per=_BATCH // 10)) as rows:
        for row in rows:
            yield checked(ledger, Entry(**row._mapping))


def recent_entries(
    connection: Connection, study: str, last: int, analyst: str | None
) -> list[Entry]:
    """The last entries of a study, or of an analyst; a repeat gets the question it repeats."""
    query = select(*(ENTRY.c[name] for name in COLUMNS if name != "answer")).where(
        ENTRY.c.study == study
    )
    if analyst is not None:
        query = query.where(ENTRY.c.analyst == analyst)
    rows = connection.execute(query.order_by(ENTRY.c.number.desc()).limit(last)).all()
    repeated = {row.question for row in rows if row.kind == "repeat"}
    paid = select(ENTRY.c.question, ENTRY.c.query).where(ENTRY.c.study == study, QUESTIONS)
    paid = paid.where(ENTRY.c.question.in_(repeated), ENTRY.c.kind == "spend")
    queries = dict(connection.execute(paid).all()) if repeated else {}
    entries = [Entry(**row._mapping) for row in reversed(rows)]
    return [
        replace(entry, query=queries.get(entry.question)) if entry.kind == "repeat" else entry
        for entry in entries
    ]


def terms_of(**terms: Any) -> str:
    """The terms of an era as the chain stores them."""
    return json.dumps(terms, sort_keys=True, separators=(",", ":"))


def _head(row: Any) -> Head:
    if not (isinstance(row.spent, int) and isinstance(row.total, int)):
        raise refusals.changed(row.study, row.number)
    return Head(study=row.study, count=row.number, hash=row.hash, spent=row.spent, total=row.total)


def _balance_head(study: str, balance: Balance) -> Head:
    return Head(
        study=study,
        count=balance.count,
        hash=balance.head,
        spent=balance.spent,
        total=balance.total,
    )
