"""The machinery under `Ledger`: how a ledger is made, checked, opened and written to.

Every change runs through `Book.page`, which holds the one safe order,

    read the anchor → lock the study → compare → change → commit → advance the anchor

or, for most spends on PostgreSQL, through `Book.append_at_once`: the same order, with the middle in one statement. The
anchor is read before the lock, so it can only be older than what the lock shows: a study that lacks the anchored head
was rolled back. A new ledger is built under another name and put in place whole, after its anchor, so a crash
leaves no ledger that looks new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

from sqlalchemy import URL, Connection, bindparam, func, insert, inspect, select, tuple_, update

from discreet.calibrate.epsilon import quote
from discreet.draw.entropy import keystream
from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.release.anchor import Anchor, AnchorFile, Head, sync_folder
from discreet.release.ledger_chain import COLUMNS, START, Balance, Entry, digest, replay
from discreet.release.ledger_schema import ANALYST, ENTRY, LEDGER, STUDY, VERSION, Database
from discreet.release.ledger_statements import ADD, APPEND, APPEND_SHARED, FIND, SHARE

_NAME = 100
"""Characters of a study's or an analyst's name, a request id or a data version: a name fits a line of the anchor."""

_PRINTABLE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]*")
"""No control characters, which PostgreSQL or a terminal cannot take, and no half of a surrogate pair."""

_ENTRY = [ENTRY.c[name] for name in COLUMNS]

_IDENTITY, _STUDIES, _SHARES = select(LEDGER), select(STUDY), select(ANALYST)
_ENDS = select(ENTRY.c.study, func.max(ENTRY.c.number)).group_by(ENTRY.c.study).subquery()
_HEADS = select(*_ENTRY).join(_ENDS, tuple_(ENTRY.c.study, ENTRY.c.number) == tuple_(*_ENDS.c))
_HASH = select(ENTRY.c.hash).where(ENTRY.c.study == bindparam("study"), ENTRY.c.number == bindparam("number"))

_Run = Callable[..., list[Any]]
"""`Database.run` on some connection."""


class Page:
    """A study's part of the ledger while its lock is held, and what is known of one request."""

    def __init__(self, book: Book, connection: Connection, head: Head, rows: list[Any]) -> None:
        self._book, self.connection, self.head = book, connection, head
        self.request: Any = None
        """The entry of the same request id, or None."""
        self.asked = False
        """Whether the question was paid for."""
        self.answer: bytes | None = None
        """Its stored answer, or None."""
        for row in rows:
            if row.part == "request":
                self.request = row
            elif row.part == "question" and row.kind == "spend":
                self.asked = True
            elif row.part == "question":
                self.answer = bytes(row.answer)
        self.moved = False
        self.durable = self.answer is not None  # it will be shown: see anchor

    def append(self, **columns: Any) -> None:
        """Add an entry after the head and move the head to it; the amount of a spend is spent."""
        self.head = self._book.append(self.connection, self.head, columns)
        self.moved = True
        self.durable = self.durable or columns["kind"] != "spend"

    def analyst(self, name: str) -> Any:
        """An analyst's share, or None if they have none."""
        rows = self._book.database.run(self.connection, SHARE, study=self.head.study, analyst=name)
        return rows[0] if rows else None

    def share(self, name: str, *, allotted: int, spent: int) -> None:
        """Write an analyst's share."""
        values = {"allotted": allotted, "spent": spent}
        where = (ANALYST.c.study == self.head.study, ANALYST.c.name == name)
        if self.connection.execute(update(ANALYST).where(*where).values(values)).rowcount == 0:
            self.connection.execute(insert(ANALYST).values(study=self.head.study, name=name, **values))


class Book:
    """A database and its anchor."""

    def __init__(self, place: Path | URL, anchor: Path) -> None:
        self.files = (place, anchor) if isinstance(place, Path) else (anchor,)
        self.database = Database(place)
        self.anchor = AnchorFile(anchor)
        self.id = ""

    @contextmanager
    def page(self, study: str, *, request_id: str = "", question: str = "", epsilon: str = "") -> Iterator[Page]:
        """A study, locked and not behind its anchor; what was added is on disk and anchored at the end."""
        known = self._anchored(study)
        with self.database.transaction(study) as connection:
            page = self._page(connection, study, known, request_id=request_id, question=question, epsilon=epsilon)
            yield page
        if page.moved or page.answer is not None:
            self.anchor.advance(page.head, durable=page.durable)

    def append_at_once(self, study: str, **columns: Any) -> bool:
        """Whether a spend was added right after the anchored head, and anchored; if not, nothing was: take a `page`."""
        known = None if self.database.is_file or self.database.is_busy else self._anchored(study)
        if known is None or known.spent + columns["amount"] > known.total:
            return False
        values, head = self._next(known, columns)
        if self.database.run_alone(APPEND if values["analyst"] is None else APPEND_SHARED, **values) != 1:
            return False
        self.anchor.advance(head, durable=False)
        return True

    def _anchored(self, study: str) -> Head | None:
        require_text("study", study)
        anchor = self.anchor.read()
        if anchor.ledger != self.id:
            raise _swapped()
        return anchor.heads.get(study)

    def _page(self, connection: Connection, study: str, known: Head | None, **request: str) -> Page:
        anchored = 0 if known is None else known.count
        rows = self.database.run(connection, FIND, study=study, anchored=anchored, **request)
        head = next((_head(row) for row in rows if row.part == "head"), None)
        if known is not None and known.hash not in [row.hash for row in rows if row.part == "anchored"]:
            raise _behind(study, 0 if head is None else head.count, known.count, mark(self._heads(connection)))
        if head is None:
            raise foreign(study)
        return Page(self, connection, head, rows)

    def begin_study(self, connection: Connection, study: str, total: int) -> Head:
        """Write a study's row and its first entry."""
        connection.execute(insert(STUDY).values(name=study))
        start = Head(study=study, count=0, hash=START, spent=0, total=total)
        return self.append(connection, start, {"kind": "create", "amount": total})

    def append(self, connection: Connection, head: Head, columns: dict[str, Any]) -> Head:
        """Write the entry after the head; the head is then the entry's."""
        values, head = self._next(head, columns)
        self.database.run(connection, ADD, **values)
        return head

    def _next(self, head: Head, columns: dict[str, Any]) -> tuple[dict[str, Any], Head]:
        """The row of the entry after the head, and its head."""
        spent = head.spent + (columns["amount"] if columns["kind"] in ("spend", "restore") else 0)
        entry = Entry(
            study=head.study,
            number=head.count + 1,
            spent=spent,
            total=head.total,
            time=datetime.now(UTC).isoformat(timespec="seconds"),  # for a reader only: order is by number
            before=head.hash,
            **columns,
        )
        values = {name: getattr(entry, name) for name in COLUMNS}
        values["hash"] = digest(self.id, entry)
        return values, Head(study=head.study, count=entry.number, hash=values["hash"], spent=spent, total=head.total)

    def verify(self, *, against_anchor: bool = True) -> dict[str, Head]:
        """The heads, after a check of the database and a walk along every chain; then of the anchor."""
        anchor = self.anchor.read() if against_anchor else None  # before the ledger: so it can only be older
        with self.database.transaction() as connection:
            self.database.check(connection)
            run = partial(self.database.run, connection)
            self.id = _identity(run)
            schema = self.database.fingerprint(connection)
            heads = self._heads(connection)
            balances = {study: _replayed(connection, self.id, study) for study in heads}
            _check_balances(run, heads, balances)
            if anchor is not None:
                _check_anchor(run, anchor, self.id, schema, heads)
        return heads

    def _heads(self, connection: Connection) -> dict[str, Head]:
        return {row.study: _head(row) for row in self.database.run(connection, _HEADS)}

    def restore(self, accept: str) -> None:
        """Take the ledger as it is, charge what the anchor knows and the ledger forgot, and write a new anchor."""
        heads = self.verify(against_anchor=False)
        if accept != mark(heads):
            raise InvalidParameter(f"accept must be the mark of this ledger, {mark(heads)!r}, got {accept!r}")
        known = self.anchor.read() if self.anchor.path.exists() else Anchor(ledger=self.id, schema="")
        if known.ledger != self.id:
            raise _swapped()
        with self.database.transaction() as connection:
            schema = self.database.fingerprint(connection)
            for study, was in {**heads, **known.heads}.items():
                if study not in heads:
                    self.begin_study(connection, study, was.total)
                page = self._page(connection, study, None, request_id="", question="", epsilon="")
                page.append(kind="restore", amount=max(0, min(was.spent, page.head.total) - page.head.spent))
            heads = self._heads(connection)
        self.anchor.replace(Anchor(ledger=self.id, schema=schema, heads=heads))


def make(place: Path | URL, anchor: Path) -> None:
    """Make an empty ledger; the exclusive creation of its anchor decides between two who try at once."""
    there = place.exists() if isinstance(place, Path) else _has_tables(place)
    if there:
        raise InvalidParameter("new must be False for a ledger that exists: open it without new")
    building = place.with_name(f"{place.name}.{get_ident()}.new") if isinstance(place, Path) else place
    if isinstance(building, Path):
        building.unlink(missing_ok=True)
    book = Book(building, anchor)
    book.id = f"{keystream().more():016x}{keystream().more():016x}"
    made = False
    try:
        with book.database.transaction() as connection:
            book.database.create_tables(connection)
            connection.execute(insert(LEDGER).values(id=book.id, version=VERSION))
            book.anchor.create(Anchor(ledger=book.id, schema=book.database.fingerprint(connection)))
            made = True
        book.database.close()
        if isinstance(place, Path) and isinstance(building, Path):
            os.replace(building, place)
            sync_folder(place.parent)
    except FileExistsError:
        raise LedgerDamaged(
            f"the anchor {anchor.name} is there and its ledger is not: put the ledger back; "
            "if none was ever in use, remove the anchor"
        ) from None
    except BaseException:
        if made:
            anchor.unlink()
        raise
    finally:
        book.database.close()
        if isinstance(building, Path):
            building.unlink(missing_ok=True)
            building.with_name(building.name + "-journal").unlink(missing_ok=True)


def entries_of(connection: Connection, study: str | None) -> Generator[Entry]:
    """Entries by study, in order."""
    wanted = select(*_ENTRY).order_by(ENTRY.c.study, ENTRY.c.number)
    if study is not None:
        wanted = wanted.where(ENTRY.c.study == study)
    with connection.execute(wanted.execution_options(yield_per=1000)) as rows:
        for row in rows:
            yield Entry(**row._mapping)


def require_text(name: str, value: object, longest: int = _NAME) -> None:
    """Refuse what a database or the anchor cannot hold as it is."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not _PRINTABLE.fullmatch(value):
        raise InvalidParameter(f"{name} must be printable text of 1 to {longest} characters, got {quote(value)}")


def mark(heads: dict[str, Head]) -> str:
    """Sixteen digits that stand for this very state of a ledger; a custodian types them to accept it."""
    return sha256(repr([(name, heads[name].count, heads[name].hash) for name in sorted(heads)]).encode()).hexdigest()[
        :16
    ]


def foreign(study: str) -> LedgerDamaged:
    """The refusal of a study that the ledger does not hold."""
    return LedgerDamaged(
        f"study {study!r} is not in this ledger: open the ledger that belongs to it, "
        "or give a new study its total with Ledger.create"
    )


def _identity(run: _Run) -> str:
    rows = run(_IDENTITY)
    if len(rows) != 1 or rows[0].version != VERSION:
        raise LedgerDamaged(
            f"this is not a ledger of version {VERSION}: open it with the discreet that made it, or put back a copy"
        )
    return str(rows[0].id)


def _head(row: Any) -> Head:
    return Head(study=row.study, count=row.number, hash=row.hash, spent=row.spent, total=row.total)


def _replayed(connection: Connection, ledger: str, study: str) -> Balance:
    with closing(entries_of(connection, study)) as entries:
        return replay(ledger, study, entries)


def _check_balances(run: _Run, heads: dict[str, Head], balances: dict[str, Balance]) -> None:
    shares = run(_SHARES)
    for study, balance in balances.items():
        found = Head(study=study, count=balance.count, hash=balance.head, spent=balance.spent, total=balance.total)
        allotted = {row.name: row.allotted for row in shares if row.study == study}
        spent_by = {row.name: row.spent for row in shares if row.study == study}
        if found != heads[study] or allotted != balance.allotted or spent_by != balance.spent_by:
            raise LedgerDamaged(
                f"the balance of study {study!r} is not what its entries add up to: put back a copy that is whole"
            )
    studies = {row.name for row in run(_STUDIES)}
    if studies != set(heads) or not {row.study for row in shares} <= studies:
        raise LedgerDamaged("the ledger names a study that it does not hold: put back a copy that is whole")


def _check_anchor(run: _Run, anchor: Anchor, ledger: str, schema: str, heads: dict[str, Head]) -> None:
    if anchor.ledger != ledger:
        raise _swapped()
    if anchor.schema != schema:
        raise LedgerDamaged("the ledger's tables are not the ones it was made with: put back a copy that is whole")
    for study, head in anchor.heads.items():
        if [row.hash for row in run(_HASH, study=study, number=head.count)] != [head.hash]:
            raise _behind(study, heads[study].count if study in heads else 0, head.count, mark(heads))


def _behind(study: str, count: int, anchored: int, accept: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"study {study!r} has {count} entries, which do not contain the anchored one, number {anchored}: "
        "put the newest copy back; or, to go on with this one and be charged for what it forgot, "
        f"use Ledger.restore(…, accept={accept!r})"
    )


def _swapped() -> LedgerDamaged:
    return LedgerDamaged("the anchor belongs to another ledger: put the ledger and its own anchor together again")


def _has_tables(url: URL) -> bool:
    database = Database(url)
    try:
        with database.transaction() as connection:
            return inspect(connection).has_table(LEDGER.name)
    finally:
        database.close()
