"""How a ledger is created, restored from a copy, or joined by another machine.

A new ledger is built under another name and renamed when it is complete, after its anchor was
written, so that a crash leaves no ledger that looks new.

`restore` accepts a ledger as it is, although its anchor knows more. Everything that the anchor saw
after the last entry that both share is charged, and every spend without an answer is void: it may
have been answered in the lost entries. A void spend can be neither answered nor asked again, so
that no ε pays for two draws. The entry of a restore names the anchored head that it has charged
for; a head is charged only once, even if the restore fails before its anchor is written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import URL, Connection, insert, inspect, select

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter, LedgerDamaged, errno_code
from discreet.ledger.anchor import (
    Anchor,
    AnchorFile,
    locked,
    opened,
    private_file,
    sync_folder,
    temporary_name,
)
from discreet.ledger.book import Book, terms_of
from discreet.ledger.chain import whole_rows
from discreet.ledger.database import Database, server_of
from discreet.ledger.refusals import swapped
from discreet.ledger.schema import LEDGER, STUDY, TABLES, VERSION
from discreet.ledger.statements import ERAS, POINT, UNANSWERED
from discreet.outside import read_json


def refuse_unusable(database: Path | URL, anchor: Path) -> None:
    """Refuse files that do not exist or cannot be written."""
    if isinstance(database, Path):
        if not database.is_file():
            with _alone_in(anchor.parent):  # wait for another process that is creating it
                pass
        if not database.is_file() or database.stat().st_size == 0:
            raise LedgerDamaged(
                f"there is no ledger in {database.name}: put it back from a copy, or, if there was"
                " never one here, create it with discreet ledger create or the first release of a"
                " study"
            )
        if not (os.access(database, os.W_OK) and os.access(database.parent, os.W_OK)):
            raise LedgerDamaged(
                f"the ledger {database.name} cannot be written: make the file and its folder"
                " writable"
            )
    if anchor.exists() and not (os.access(anchor, os.W_OK) and os.access(anchor.parent, os.W_OK)):
        raise LedgerDamaged(
            f"the anchor {anchor.name} cannot be written: make the file and its folder writable"
        )


def make(where: Path | URL, anchor: Path) -> None:
    """Create an empty ledger; of two processes that try at once, the second is refused."""
    with ExitStack() as clean_up:
        clean_up.enter_context(_alone_in(anchor.parent))
        if where.exists() if isinstance(where, Path) else has_tables(where):
            raise InvalidParameter(
                "new must be False for a ledger that exists: open it without new; on another"
                " machine, join it with a copy of the anchor of a machine that uses it (discreet"
                " ledger join)"
            )
        try:
            building = (
                clean_up.enter_context(building_file(where)) if isinstance(where, Path) else where
            )
        except OSError as failure:
            raise _unmade(failure) from None
        book = Book(building, anchor)
        clean_up.callback(book.database.close)
        book.id, anchored = random_digits(2), False
        try:
            with book.database.transaction() as connection:
                TABLES.create_all(connection, checkfirst=False)
                connection.execute(insert(LEDGER).values(id=book.id, version=VERSION))
                schema = book.database.fingerprint(connection)
                book.anchor.create(Anchor(ledger=book.id, schema=schema, key=random_digits(4)))
                anchored = True
            book.database.close()
            if isinstance(where, Path) and isinstance(building, Path):
                os.replace(building, where)
                sync_folder(where.parent)
        except FileExistsError:
            raise LedgerDamaged(
                f"the anchor {anchor.name} exists but its ledger does not: put the ledger back; "
                "if the ledger was never in use, remove the anchor"
            ) from None
        except BaseException:
            if anchored:
                anchor.unlink()
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a restore does to a study; amounts are in units of 10⁻⁹ ε."""

    study: str
    total: int
    spent: int  # according to the ledger
    forgotten: int
    """Entries that the anchor saw after the last entry that it shares with the ledger, as far as is
    known.
    """
    charge: int
    # the spends that have no answer: request id, analyst and question
    void: tuple[tuple[str, str | None, str], ...]
    # whether the ledger holds the study; if not, the study is restored without its promise
    is_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What a restore would do: the mark to accept, and the loss of each study."""

    mark: str
    losses: tuple[Loss, ...]
    is_anchor_lost: bool
    """Whether nobody knows what was spent last: there is no anchor, or it is older than the backup.
    """
    made: str | None = None
    """When the backup was made."""


@contextmanager
def building_file(target: Path) -> Iterator[Path]:
    """An empty file beside the target, under another name, in which a ledger is built; removed
    unless renamed.
    """
    building = temporary_name(target)
    os.close(private_file(building))
    try:
        yield building
    finally:
        for end in ("", "-journal", ".lock"):
            building.with_name(building.name + end).unlink(missing_ok=True)


def restore(book: Book, accept: str, charge: int) -> None:
    """Accept the ledger as it is, charge what the anchor knows and the ledger lacks, and write a
    new anchor.
    """
    book.verify(against_anchor=False)
    older = anchor_of(book)
    with book.database.transaction() as connection:
        for table in (LEDGER, STUDY):  # locks out everybody who would add a study or an entry
            connection.execute(select(table).with_for_update()).all()
        refuse_other_mark(accept, book.mark(connection, older))
        anchor = begin_eras(connection, book, older, charge)
    write_anchor(book, anchor)


def restoration(
    book: Book, state: Anchor | None, backup_time: str | None, charge: int
) -> Restoration:
    """What a restore of this ledger would do; nothing is changed.

    `state` is the anchor as a backup knows it.
    """
    book.verify(against_anchor=False)
    older = anchor_of(book)
    with book.database.reading() as connection:
        losses = losses_of(connection, book, older, charge)
        mark, lost = book.mark(connection, older), _is_lost(connection, book, older, state)
    return Restoration(mark=mark, losses=losses, is_anchor_lost=lost, made=backup_time)


def anchor_of(book: Book) -> Anchor | None:
    """The anchor of a verified ledger; None if there is none."""
    anchor = book.anchor.read() if os.path.lexists(book.anchor.path) else None
    if anchor is not None and anchor.ledger != book.id:
        raise swapped()
    return anchor


def _is_lost(
    connection: Connection, book: Book, older: Anchor | None, state: Anchor | None
) -> bool:
    """Whether the newest anchor is lost: an anchor whose head is older than the backup's is an old
    copy.

    Its head is then an earlier entry of the backup, or a head that a restore in the backup has
    charged for. Counts are no evidence: after a restore a chain is shorter than the chain that it
    replaces.
    """
    if older is None or state is None:
        return older is None
    for study, head in state.heads.items():
        anchored = older.heads.get(study)
        if anchored is None:
            return True
        entries = book.database.run(connection, POINT, study=study, number=anchored.count)
        is_earlier = anchored.hash != head.hash and anchored.hash in [row.hash for row in entries]
        if is_earlier or anchored.hash in _accepted(connection, book, study):
            return True
    return False


@whole_rows()
def _accepted(connection: Connection, book: Book, study: str) -> list[str | None]:
    """The anchored heads that restores of a study have charged for."""
    return [
        read_json(era.terms)["accepted"] for era in book.database.run(connection, ERAS, study=study)
    ]


def refuse_other_mark(accept: str, mark: str) -> None:
    if accept != mark:
        raise InvalidParameter(f"accept must be the mark of this ledger, {mark!r}, got {accept!r}")


def losses_of(
    connection: Connection, book: Book, older: Anchor | None, charge: int
) -> tuple[Loss, ...]:
    """What the anchor knows and the ledger lacks, by study; `charge` is added to each."""
    losses = []
    studies = connection.execute(select(STUDY.c.name).order_by(STUDY.c.name)).scalars().all()
    for study in dict.fromkeys((*studies, *(older.heads if older is not None else ()))):
        anchored = None if older is None else older.heads.get(study)
        points = [] if older is None else book.shared(connection, older, study)
        last = points[-1] if points else None
        forgotten = 0 if anchored is None else anchored.spent - (last.spent if last else 0)
        entries = 0 if anchored is None else anchored.count - (last.number if last else 0)
        if study not in studies and anchored is not None:
            total, spent, void = anchored.total, 0, []
        else:
            page = book.find(connection, study, None)
            total, spent = page.head.total, page.head.spent
            void = book.database.run(connection, UNANSWERED, study=study, era=page.era.number)
            if anchored is not None and anchored.hash in _accepted(connection, book, study):
                # an earlier restore charged it, but stopped before it wrote its anchor
                forgotten = 0
        loss = Loss(
            study=study,
            total=total,
            spent=spent,
            forgotten=entries,
            charge=min(forgotten + charge, total - spent),
            void=tuple((row.request_id, row.analyst, row.query) for row in void),
            is_known=study in studies,
        )
        losses.append(loss)
    return tuple(losses)


def begin_eras(connection: Connection, book: Book, older: Anchor | None, charge: int) -> Anchor:
    """Add the entry of a restore to each study, and return the anchor that remembers them."""
    schema = book.database.fingerprint(connection)
    anchor = Anchor(
        ledger=book.id, schema=schema, key=random_digits(4) if older is None else older.key
    )
    for loss in losses_of(connection, book, older, charge):
        anchored = None if older is None else older.heads.get(loss.study)
        points = () if older is None else book.shared(connection, older, loss.study)
        if not loss.is_known:
            book.begin_study(connection, loss.study, loss.total, None)
        terms = terms_of(
            server=server_of(connection), accepted=None if anchored is None else anchored.hash
        )
        head = book.find(connection, loss.study, None).head
        anchor.points[loss.study] = tuple(points)
        entry = {"kind": "restore", "amount": loss.charge, "terms": terms}
        anchor = anchor.advanced(book.append(connection, head, entry))
    return anchor


def write_anchor(book: Book, anchor: Anchor) -> None:
    if os.path.lexists(book.anchor.path):
        book.anchor.replace(anchor)
    else:
        book.anchor.create(anchor)


def join(where: Path | URL, anchor: Path, other: Path) -> None:
    """Write the anchor of a machine that joins a ledger, which must contain what another machine
    has seen.
    """
    if not isinstance(where, URL):
        raise InvalidParameter(
            "where must be a PostgreSQL address: a ledger in a file has one machine and one anchor"
        )
    if os.path.lexists(anchor):
        raise InvalidParameter(
            f"anchor must be a new file, but {anchor.name} exists: open the ledger with it"
        )
    book = Book(where, other)
    with closing(book.database):
        heads, joined = book.verify(), replace(book.anchor.read(), heads={}, points={})
    for head in heads.values():
        joined = joined.advanced(head)
    AnchorFile(anchor).create(joined)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from creating a ledger in the folder; if folders cannot be locked, the
    anchor decides.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(locked(stack.enter_context(opened(folder, os.O_RDONLY))))
        yield


def _unmade(failure: OSError) -> InvalidParameter:
    """Why a file for a ledger cannot be created."""
    advice = {
        errno.EROFS: "the disk is read-only: make it writable",
        errno.ENOSPC: "the disk is full: make room",
    }
    why = advice.get(failure.errno or 0, f"{failure.strerror}: make the folder, and writable")
    return InvalidParameter(
        f"the ledger must be in a folder where files can be created, and {why}, or name another"
        " place with --ledger",
        code=errno_code(failure.errno or 0),
    )


def has_tables(url: URL) -> bool:
    """Whether a server has a ledger already."""
    with closing(Database(url)) as database, database.transaction() as connection:
        return inspect(connection).has_table(LEDGER.name)
