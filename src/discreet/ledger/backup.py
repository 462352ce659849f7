"""Backups: a ledger in one file, written while others spend, and how it is restored.

A backup is an SQLite file, whatever database the ledger uses. It has the ledger's tables, each
study as it was at one moment, and one more table, which says when it was made and what the anchor
knew then. A backup is not a ledger: it cannot be opened, and it is refused if it is copied over a
ledger. Only `restore` turns it into a ledger, by its rules: what the anchor saw and the backup
lacks is charged, and spends without an answer are void.

The anchor's key is left out, so that nobody can test guesses about the data with a backup.

An anchor whose head is older than the backup's is not the newest anchor. Then, as without an
anchor, nobody knows what was spent since the backup, and the custodian says what to charge for it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    URL,
    Column,
    Connection,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    insert,
    select,
)
from sqlalchemy.exc import SQLAlchemyError

from discreet.errors import EngineFailed, InvalidParameter, LedgerDamaged, errno_code
from discreet.ledger import restore as restores
from discreet.ledger.anchor import Anchor, AnchorFile, Head, content_of, sync_folder
from discreet.ledger.book import Book, entries_of
from discreet.ledger.place import Where
from discreet.ledger.restore import Restoration, building_file
from discreet.ledger.schema import ANALYST, ENTRY, LEDGER, STUDY, TABLES, VERSION
from discreet.parameters import LARGEST, quote, read
from discreet.parameters import charge as charge_of

BACKUP = Table("discreet_backup", MetaData(), Column("time", Text), Column("anchor", LargeBinary))

_BATCH = 250  # entries that are read at a time: the longest that a writer waits for
# seconds between two batches from a file: longer than a waiting process sleeps between two tries
_REST = 0.025
_FEW = 25  # entries that are held in memory at a time: an answer may be large


class Candidate(NamedTuple):
    """A ledger to restore; if it was built from a backup, what the backup knew of the anchor, and
    when it was made.
    """

    book: Book
    state: Anchor | None = None
    backup_time: str | None = None


def write(book: Book, target: Path) -> int:
    """Write a verified backup of the ledger to a new file, and return how many entries it has."""
    if os.path.lexists(target):
        raise InvalidParameter(
            f"a backup must be a new file, but {target.name} exists: choose another name"
        )
    state = replace(book.anchor.read(), key="")
    with _failing(), building_file(target) as building:
        copy = Book(building, book.anchor.path)
        with closing(copy):
            with copy.database.transaction() as connection:
                TABLES.create_all(connection, checkfirst=False)
                connection.execute(insert(LEDGER).values(id=book.id, version=VERSION))
                for study in book.studies():
                    head = _copy_study(book, study, state, connection)
                    state = state.advanced(head) if state.heads.get(study) != head else state
                BACKUP.create(connection)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                connection.execute(insert(BACKUP).values(time=now, anchor=content_of(state)))
            heads = copy.verify(against_anchor=False)
        for head in heads.values():
            book.anchor.advance(head)  # durable: an anchor that is behind a backup counts as old
        _publish(building, target)
    return sum(head.count for head in heads.values())


def restore(
    where: Path | URL, anchor: Path, accept: str, backup: Where | None, charge: Any
) -> None:
    """Continue with the ledger as it is, or rebuild it from a backup where there is none; see
    `Ledger.restore`.
    """
    extra = None if charge is None else _extra(charge)
    with _candidate(where, anchor, backup) as candidate:
        if backup is None:
            restores.restore(candidate.book, accept, extra or 0)
        else:
            _put_back(candidate, where, anchor, accept, extra)


def restoration(where: Path | URL, anchor: Path, backup: Where | None, charge: Any) -> Restoration:
    """What a restore would do; nothing is changed."""
    extra = 0 if charge is None else _extra(charge)
    with _candidate(where, anchor, backup) as candidate:
        return restores.restoration(*candidate, extra)


def _extra(value: object) -> int:
    """What the custodian charges each study for unknown spends, in units of 10⁻⁹ ε; "all" is all
    that is left.
    """
    amount = LARGEST if value == "all" else read("charge", value)
    if not 0 <= amount <= LARGEST:
        raise InvalidParameter(f"charge must be an ε of 0 or more, or all, got {quote(value)}")
    return charge_of(amount)


def _put_back(
    candidate: Candidate, where: Path | URL, anchor: Path, accept: str, charge: int | None
) -> None:
    book, preview = candidate.book, restores.restoration(*candidate, charge or 0)
    restores.refuse_other_mark(accept, preview.mark)
    if preview.is_anchor_lost and charge is None:
        raise InvalidParameter(
            "charge must say how much ε may have been spent after the backup was made, because the"
            " newest anchor is lost and nothing else records it; all closes the study"
        )
    older = restores.anchor_of(book)
    if isinstance(where, Path):
        with book.database.transaction() as connection:
            new = restores.begin_eras(connection, book, older, charge or 0)
        book.close()
        _publish(book.files[0], where)
    else:
        with closing(Book(where, anchor)) as server, server.database.transaction() as target:
            server.id = book.id
            TABLES.create_all(target, checkfirst=False)
            with book.database.reading() as source:
                _copy_tables(source, target, book.id)
            new = restores.begin_eras(target, server, older, charge or 0)
    restores.write_anchor(book, new)


@contextmanager
def _candidate(where: Path | URL, anchor: Path, path: Where | None) -> Iterator[Candidate]:
    """The ledger as it is, or that of a backup in a file that is removed at the end; the backup
    itself is only read.
    """
    if path is None:
        restores.refuse_unusable(where, anchor)
        with closing(Book(where, anchor)) as book:
            yield Candidate(book)
        return
    _refuse_taken(where)
    backup = Path(path).absolute()
    address = f"{backup.as_uri()}?mode=ro&immutable=1"
    source = create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True))
    with _failing(), building_file(where if isinstance(where, Path) else anchor) as building:
        backup.stat()
        with closing(Book(building, anchor)) as book:
            try:
                with source.connect() as rows, book.database.transaction() as target:
                    book.id = rows.execute(select(LEDGER.c.id)).scalar_one()
                    backup_time, content = rows.execute(select(BACKUP)).one()
                    TABLES.create_all(target, checkfirst=False)
                    _copy_tables(rows, target, book.id)
                state, _ = AnchorFile(backup).parse(content)
                whole = book.verify(against_anchor=False) == state.heads and state.ledger == book.id
            except (SQLAlchemyError, LedgerDamaged, TypeError, ValueError):
                whole = False
            finally:
                source.dispose()
            if not whole:
                raise LedgerDamaged(
                    f"{backup.name} is not a complete backup of a ledger: name a file that discreet"
                    " ledger backup wrote"
                )
            yield Candidate(book, state, str(backup_time))


def _refuse_taken(where: Path | URL) -> None:
    """Refuse a path or server that already has a ledger, or the remains of one."""
    if isinstance(where, URL):
        if restores.has_tables(where):
            raise InvalidParameter(
                "the database has a ledger, and a backup is restored only where there is none; move"
                " its tables to another schema, or restore the existing ledger without a backup"
            )
        return
    journal = where.with_name(f"{where.name}-journal")
    for file in (where, journal):
        if os.path.lexists(file) and not (
            file is journal and journal.is_file() and not journal.stat().st_size
        ):
            raise InvalidParameter(
                f"{file.name} exists, and a backup is restored only where there is no ledger; move"
                " it away, but leave the anchor where it is, or restore the existing ledger"
                " without a backup"
            )


def _copy_study(book: Book, study: str, anchor: Anchor, target: Connection) -> Head:
    """Copy a study as it is at one moment: old entries in batches, the last entries and the shares
    under its lock.
    """
    target.execute(insert(STUDY).values(name=study))
    count, copied = 0, _BATCH
    while copied == _BATCH:
        with book.database.reading() as connection:
            copied = _copy_entries(book, connection, target, study, count, count + _BATCH)
        count += copied
        if book.database.is_file:
            time.sleep(_REST)
    with book.database.transaction(study) as connection:
        _copy_entries(book, connection, target, study, count, 2**62)
        _copy(
            target,
            ANALYST,
            connection.execute(select(ANALYST).where(ANALYST.c.study == study)).mappings(),
        )
        return book.find(connection, study, anchor).head


def _copy_entries(
    book: Book, source: Connection, target: Connection, study: str, after: int, last: int
) -> int:
    conditions = ENTRY.c.study == study, ENTRY.c.number > after, ENTRY.c.number <= last
    return _copy(target, ENTRY, map(asdict, entries_of(source, book.id, *conditions)))


def _copy_tables(source: Connection, target: Connection, ledger: str) -> None:
    for table in (LEDGER, STUDY, ANALYST):
        _copy(target, table, source.execute(select(table)).mappings())
    _copy(target, ENTRY, map(asdict, entries_of(source, ledger)))


def _copy(target: Connection, table: Table, rows: Any) -> int:
    """Insert rows, a few at a time, and return their number."""
    rows, count = map(dict, rows), 0
    while few := list(islice(rows, _FEW)):
        target.execute(insert(table), few)
        count += len(few)
    return count


def _publish(building: Path, target: Path) -> None:
    """Give a file its name, which no other process may have taken in the meantime."""
    try:
        os.link(building, target, follow_symlinks=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{target.name} was created by another process: choose another name"
        ) from None
    except OSError:  # the file system has no hard links
        os.rename(building, target)
    sync_folder(target.parent)


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InvalidParameter(
            "the backup, or the folder for it, must exist: name one that does"
        ) from None
    except OSError as failure:
        words = (
            f"the backup failed ({failure.strerror}): make room on the disk, or repair it, then try"
            " again"
        )
        raise EngineFailed(words, code=errno_code(failure.errno or 0)) from None
