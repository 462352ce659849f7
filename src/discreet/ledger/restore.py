"""Where a ledger is, and what is done to it once: it is made, put back from a copy, or joined by another machine.

A new ledger is built under another name and renamed when it is whole, after its anchor, so that a crash leaves no
ledger that looks new.

`restore` takes a ledger as it is, though its anchor knows more. All that the anchor saw after the last entry that both
are known to share is charged, and every spend that has no answer is void: perhaps it was answered in what was lost. It
can be neither answered nor asked again, so that no ε buys two draws. The entry of a restore names the anchored head
that it has charged for; the same head is charged once, even if the restore fails before its anchor is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError

from discreet.draw.entropy import random_digits
from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.ledger.anchor import Anchor, AnchorFile, building_name, locked, opened, private_file, sync_folder
from discreet.ledger.book import Book, terms_of
from discreet.ledger.database import Database, server_of
from discreet.ledger.refusals import swapped
from discreet.ledger.schema import LEDGER, STUDY, TABLES, VERSION
from discreet.ledger.statements import ERAS


def places(where: str | os.PathLike[str], anchor: str | os.PathLike[str] | None) -> tuple[Path | URL, Path]:
    if isinstance(where, str) and where.partition("://")[1]:
        try:
            url = make_url(where)
        except (ArgumentError, ValueError):
            url = URL.create("unknown")
        if url.get_backend_name() != "postgresql":
            raise InvalidParameter("where must be a file or an address that begins with postgresql://")
        if anchor is None:
            raise InvalidParameter("anchor must be given for a PostgreSQL ledger: a file on this machine")
        return url, Path(anchor).absolute()
    path = Path(where).absolute()
    return path, path.with_name(path.name + ".anchor") if anchor is None else Path(anchor).absolute()


def refuse_unusable(database: Path | URL, anchor: Path) -> None:
    """Refuse files that are not there, or cannot be written."""
    if isinstance(database, Path):
        if not database.is_file():
            with _alone_in(anchor.parent):  # until another process that makes it is done
                pass
        if not database.is_file() or database.stat().st_size == 0:
            raise LedgerDamaged(
                f"there is no ledger in {database.name}: put it back from a copy, "
                "or, if none was ever here, the first plan of a study makes it (in Python: Ledger.open(…, new=True))"
            )
        if not (os.access(database, os.W_OK) and os.access(database.parent, os.W_OK)):
            raise LedgerDamaged(f"the ledger {database.name} cannot be written: make the file and its folder writable")
    if anchor.exists() and not (os.access(anchor, os.W_OK) and os.access(anchor.parent, os.W_OK)):
        raise LedgerDamaged(f"the anchor {anchor.name} cannot be written: make the file and its folder writable")


def make(where: Path | URL, anchor: Path) -> None:
    """Make an empty ledger; of two who try at once, the second finds that it is there."""
    with ExitStack() as clean_up:
        clean_up.enter_context(_alone_in(anchor.parent))
        if where.exists() if isinstance(where, Path) else _has_tables(where):
            raise InvalidParameter("new must be False for a ledger that exists: open it without new")
        building = building_name(where) if isinstance(where, Path) else where
        if isinstance(building, Path):
            os.close(private_file(building))
            for end in ("", "-journal", ".lock"):
                clean_up.callback(building.with_name(building.name + end).unlink, missing_ok=True)
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
                f"the anchor {anchor.name} is there and its ledger is not: put the ledger back; "
                "if none was ever in use, remove the anchor"
            ) from None
        except BaseException:
            if anchored:
                anchor.unlink()
            raise


def restore(book: Book, accept: str) -> None:
    """Take the ledger as it is, charge what the anchor knows and the ledger forgot, and write a new anchor."""
    heads = book.verify(against_anchor=False)
    older = book.anchor.read() if os.path.lexists(book.anchor.path) else None
    if older is not None and older.ledger != book.id:
        raise swapped()
    with book.database.transaction() as connection:
        for table in (LEDGER, STUDY):
            connection.execute(select(table).with_for_update()).all()  # nobody adds a study, or an entry
        mark = book.mark(connection, older)
        if accept != mark:
            raise InvalidParameter(f"accept must be the mark of this ledger, {mark!r}, got {accept!r}")
        schema = book.database.fingerprint(connection)
        anchor = Anchor(ledger=book.id, schema=schema, key=random_digits(4) if older is None else older.key)
        older = older or anchor
        for study in dict.fromkeys((*heads, *older.heads)):
            anchored, points = older.heads.get(study), book.shared(connection, older, study)
            if study not in heads and anchored is not None:
                book.begin_study(connection, study, anchored.total, None)
            head = book.find(connection, study, None).head
            forgotten = 0 if anchored is None else anchored.spent - (points[-1].spent if points else 0)
            eras = book.database.run(connection, ERAS, study=study)
            if anchored is not None and anchored.hash in [json.loads(era.terms)["accepted"] for era in eras]:
                forgotten = 0  # an earlier restore has charged it, and was broken off before it wrote its anchor
            columns = {
                "kind": "restore",
                "amount": min(forgotten, head.total - head.spent),
                "terms": terms_of(server=server_of(connection), accepted=None if anchored is None else anchored.hash),
            }
            anchor.points[study] = tuple(points)
            anchor = anchor.advanced(book.append(connection, head, columns))
    if os.path.lexists(book.anchor.path):
        book.anchor.replace(anchor)
    else:
        book.anchor.create(anchor)


def join(where: Path | URL, anchor: Path, other: Path) -> None:
    """Write the anchor of a machine that joins: at the head of a ledger that contains what another machine has seen."""
    if not isinstance(where, URL):
        raise InvalidParameter("where must be a PostgreSQL address: a ledger in a file has one machine and one anchor")
    if os.path.lexists(anchor):
        raise InvalidParameter(f"anchor must be a new file, and {anchor.name} is there: open the ledger with it")
    book = Book(where, other)
    with closing(book.database):
        heads, seen = book.verify(), book.anchor.read()
    joined = Anchor(ledger=seen.ledger, schema=seen.schema, key=seen.key)
    for head in heads.values():
        joined = joined.advanced(head)
    AnchorFile(anchor).create(joined)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from making a ledger in the folder; without locks of folders the anchor alone decides."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(locked(held.enter_context(opened(folder, os.O_RDONLY))))
        yield


def _has_tables(url: URL) -> bool:
    with closing(Database(url)) as database, database.transaction() as connection:
        return inspect(connection).has_table(LEDGER.name)
