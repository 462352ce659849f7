"""The ledger: it spends ε on disk before the first row is read, and keeps what was released.

    spend → commit → anchor → (read, compute, draw) → record → commit → anchor → show

- Granted ≤ total, exactly, in units of 10⁻⁹ ε, for any number of threads, processes and machines.
- After a crash ε is spent, and the question perhaps unanswered. There are no refunds. A second request with the same id
  goes on where the first one stopped: nothing more is charged, and only the first recorded answer is ever shown.
- The same query of the same data version at the same ε is one question: one charge, one answer, for everybody.
- A ledger that is damaged, rolled back, foreign or missing is refused with `LedgerDamaged`, never opened as a new
  budget. Every `open` looks for the anchored head and walks the chain of hashes from there; `verify` walks all of it.
- Each study keeps the promise that it was created with; each answer is shown only if its entry has the right hash.

What it does not do: prevent forgery by a custodian who can write both the database and the anchor.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from sqlalchemy import and_, or_, select

from discreet import views
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.ledger import backup as backups
from discreet.ledger import refusals, statements
from discreet.ledger import restore as files
from discreet.ledger.book import Book, Page, entries_of
from discreet.ledger.chain import COLUMNS, Entry, checked, in_epsilon, question_of
from discreet.ledger.grant import Grant
from discreet.ledger.place import places
from discreet.ledger.questions import repeat_of, typed
from discreet.ledger.refusals import require_text
from discreet.ledger.restore import Restoration
from discreet.ledger.schema import ANALYST, ENTRY, LEDGER, QUESTIONS, STUDY, VERSION
from discreet.parameters import Epsilon, charge, exact_epsilon, quote
from discreet.records import readable

_QUERY = 1_000_000
"""Characters of a canonical query."""

_BODY = ("question", "epsilon", "analyst")
"""What a request id stands for."""

_REPEATS = 1_000
"""Repeats of an analyst and a day that are kept, each with its request id; further ones are free and leave no trace."""


class Ledger:
    """Budgets and what was spent of them; safe to share between threads and over a fork."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        study: str | None = None,
        anchor: str | os.PathLike[str] | None = None,
        new: bool = False,
    ) -> Self:
        """The ledger in a file, or in the database of a `postgresql://` address, checked from its anchored head on.

        `anchor` is the file that remembers its head: `<file>.anchor` beside a ledger's file by default; for PostgreSQL
        it must be given. `study` is a name that the ledger must hold. `new` makes a ledger where there is none.
        """
        database, file = places(where, anchor)
        if new:
            files.make(database, file)
        files.refuse_unusable(database, file)
        ledger = cls(Book(database, file))
        try:
            if study not in {None, *ledger._book.open()}:
                raise refusals.foreign(str(study))
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def restore(
        cls,
        where: str | os.PathLike[str],
        *,
        accept: str,
        anchor: str | os.PathLike[str] | None = None,
        backup: str | os.PathLike[str] | None = None,
        charge: Any = None,
    ) -> Self:
        """The ledger, taken as it is on purpose: an older copy, one whose anchor was lost, or one from a `backup`.

        `accept` is the mark that the refusal, or `restoration`, names. What the anchor saw after the last entry that it
        shares with this copy is charged at once, so that no budget comes back; `charge` more, where the anchor was
        lost. A spend without an answer is void: it may have been answered in what was lost, so it is neither answered
        nor asked again.
        """
        backups.restore(*places(where, anchor), accept, backup, charge)
        return cls.open(where, anchor=anchor)

    @classmethod
    def restoration(
        cls,
        where: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        backup: str | os.PathLike[str] | None = None,
        charge: Any = None,
    ) -> Restoration:
        """What `restore` would charge and make void; nothing is changed."""
        return backups.restoration(*places(where, anchor), backup, charge)

    def backup(self, target: str | os.PathLike[str]) -> int:
        """Write the whole ledger to a new file while others spend, and return how many entries it has."""
        return backups.write(self._book, Path(target).absolute())

    @classmethod
    def join(
        cls, where: str | os.PathLike[str], *, anchor: str | os.PathLike[str], other: str | os.PathLike[str]
    ) -> Self:
        """The PostgreSQL ledger on one more machine, after a full check, with a new anchor at its end; free.

        `other` is a copy of the anchor of a machine that uses the ledger: what that has seen must be there, and its
        key is shared, so that both know a version of the data by the same name.
        """
        database, file = places(where, anchor)
        files.join(database, file, Path(other).absolute())
        return cls.open(where, anchor=anchor)

    @property
    def id(self) -> str:
        """The ledger's identity: random, and the same in every copy."""
        return self._book.id

    def close(self) -> None:
        """Close all connections to the database."""
        self._book.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, study: str, total: Epsilon, *, promise: Mapping[str, Any] | None = None) -> None:
        """Give a new study its total ε, once and for all.

        `promise` is what each ε stands for: `Policy.promise`. Without one the study is for arrays and files alone.
        """
        require_text("study", study)
        units = charge(exact_epsilon(total))
        with self._book.database.transaction() as connection:
            connection.execute(select(LEDGER).with_for_update()).one()  # two cannot create at once
            if connection.execute(select(STUDY).where(STUDY.c.name == study)).first() is not None:
                raise InvalidParameter(f"study must be new to the ledger, got {study!r}, which has its total already")
            head = self._book.begin_study(connection, study, units, None if promise is None else dict(promise))
        self._book.anchor.advance(head)

    def promise(self, study: str) -> dict[str, Any] | None:
        """What the study was created with; None if it is for arrays and files alone."""
        with self._book.page(study, reading=True) as page:
            return self._book.promise(page)  # type: ignore[no-any-return]

    def keyed(self, version: str) -> str:
        """The HMAC-SHA256 of a version, a hash of all rows, under the anchor's key: nobody can try values for a row."""
        key = self._book.anchor.read().key
        return hmac.digest(bytes.fromhex(key), version.encode(), "sha256").hex()

    def allot(self, analyst: str, epsilon: Epsilon, *, study: str) -> None:
        """Let an analyst spend up to ε in all, of what the study has; a later call sets a new limit."""
        require_text("analyst", analyst)
        units = charge(exact_epsilon(epsilon))
        with self._book.page(study) as page:
            share = page.analyst(analyst)
            spent = 0 if share is None else share.spent
            if not spent <= units <= page.head.total:
                raise InvalidParameter(
                    f"epsilon must lie between what {analyst!r} has spent ({refusals.shown(spent)}) "
                    f"and the study's total ({refusals.shown(page.head.total)}), got {quote(epsilon)}"
                )
            page.share(analyst, allotted=units, spent=spent)
            page.append(kind="allot", analyst=analyst, amount=units)

    def spend(
        self,
        request_id: str,
        query: str,
        epsilon: Epsilon,
        *,
        study: str,
        analyst: str | None = None,
        data_version: str | None = None,
        asked: str | None = None,
    ) -> Grant:
        """Permission to answer the query, with its ε charged on disk; free if the same was asked before.

        `query` is in canonical form. Without a `data_version` the data may have changed, so every request is charged.
        `asked` is the question as it was typed, which the entry keeps for readers.
        Refused, with nothing spent: more than is left (`BudgetExceeded`); a request id that was used for another
        question, ε or analyst (`InvalidParameter`); a spend that a restore made void (`QueryRefused`).
        """
        require_text("request_id", request_id)
        require_text("query", query, _QUERY)
        for name, value in (("data_version", data_version), ("analyst", analyst)):
            if value is not None:
                require_text(name, value)
        exact, question = exact_epsilon(epsilon), question_of(query, data_version, request_id)
        request: dict[str, Any] = {"request_id": request_id, "question": question, "epsilon": str(exact)}
        entry = {"query": query, "data_version": data_version, "analyst": analyst, "asked": typed(asked), **request}
        repeated, answer = False, None
        head = self._book.append_at_once(study, kind="spend", amount=charge(exact), **entry)
        if head is None:
            with self._book.page(study, **request) as page:
                _spend(page, charge(exact), entry)
            repeated, answer, head = page.paid is not None, page.answer, page.head
            if repeated and answer is None:
                self._book.refuse_hidden_answer(page, None)
        result: dict[str, Any] = {"epsilon": exact, "repeated": repeated, "answer": answer, "head": head}
        return Grant(study=study, request_id=request_id, question=question, analyst=analyst, **result)

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the ledger's files: the database, if it is a file, and the anchor."""
        return self._book.files

    def record(self, grant: Grant, answer: bytes) -> bytes:
        """Put the answer on disk and return what is to be shown: this answer, or the one that was recorded before."""
        refusals.require_answer(answer)
        epsilon = str(grant.epsilon)
        request: dict[str, Any] = {"request_id": grant.request_id, "question": grant.question, "epsilon": epsilon}
        with self._book.page(grant.study, **request) as page:
            if page.paid is None:
                raise InvalidParameter("grant must come from a spend of this ledger")
            if page.void:
                raise refusals.void()
            if page.answer is None:
                self._book.refuse_hidden_answer(page, grant.head, page.connection)
                page.append(kind="answer", analyst=grant.analyst, amount=0, answer=answer, **request)
        return answer if page.answer is None else page.answer

    def answer(
        self, *, study: str, request_id: str | None = None, query: str | None = None, data_version: str | None = None
    ) -> bytes | None:
        """The stored answer to a request, or to a query of a data version (the one at the largest ε); None if none."""
        with self._book.page(study, request_id=request_id or "", reading=True) as page:
            if request_id is not None and query is None and data_version is None:
                if page.request is None:
                    return None
                wanted = [ENTRY.c.question == page.request.question, ENTRY.c.epsilon == page.request.epsilon]
            elif request_id is None and query is not None and data_version is not None:
                wanted = [ENTRY.c.question == question_of(query, data_version, "")]
            else:
                raise InvalidParameter("answer takes a request_id, or a query with its data_version")
            wanted += [ENTRY.c.study == study, ENTRY.c.kind == "answer", QUESTIONS]
            answers = page.connection.execute(select(ENTRY.c.number, ENTRY.c.epsilon).where(*wanted)).all()
            if not answers:
                return None
            best = max(answers, key=lambda answer: Fraction(answer.epsilon)).number
            row = page.connection.execute(select(ENTRY).where(ENTRY.c.study == study, ENTRY.c.number == best)).one()
        return bytes(checked(self._book.id, row).answer)

    def studies(self) -> list[str]:
        """The names of the studies."""
        with self._book.database.reading() as connection:
            return list(connection.execute(select(STUDY.c.name).order_by(STUDY.c.name)).scalars())

    def total(self, study: str, *, analyst: str | None = None) -> Fraction:
        """All the ε that the study has, or that the analyst was allotted."""
        return in_epsilon(self._balance(study, analyst)[0])

    def spent(self, study: str, *, analyst: str | None = None) -> Fraction:
        """The ε that was spent."""
        return in_epsilon(self._balance(study, analyst)[1])

    def remaining(self, study: str, *, analyst: str | None = None) -> Fraction:
        """The ε that can still be spent: for an analyst, the less of their share and the study's."""
        return in_epsilon(self._balance(study, analyst)[2])

    def entries(self, study: str | None = None) -> list[Entry]:
        """Every entry, by study, in order."""
        with self._book.database.reading() as connection:
            return list(entries_of(connection, self._book.id, *([] if study is None else [ENTRY.c.study == study])))

    def entry(self, request_id: str, *, study: str) -> Entry | None:
        """The entry under which a request was charged, or found to be free; None if the study has none."""
        wanted = ENTRY.c.study == study, ENTRY.c.request_id == request_id, ENTRY.c.kind.in_(("spend", "repeat"))
        with self._book.database.reading() as connection:
            return next(entries_of(connection, self._book.id, *wanted), None)

    def requests(self, study: str, beginning: str) -> list[Entry]:
        """The spends of a study whose request ids begin like this, in their order, without their answers."""
        database, last = self._book.database, beginning[:-1] + chr(ord(beginning[-1]) + 1)
        wanted = statements.SPENDS if database.is_file else statements.SPENDS_BY_BYTES
        with database.reading() as connection:
            rows = database.run(connection, wanted, study=study, beginning=beginning, last=last)
        return [checked(self._book.id, Entry(**row._asdict())) for row in rows]

    def answered(self, query: str, epsilon: Fraction, *, study: str) -> list[str]:
        """The versions of the data of which a query was answered at this ε, among the last entries of the study."""
        with self._book.database.reading() as connection:
            asked = {"study": study, "query": query, "epsilon": str(epsilon)}
            return [row.data_version for row in self._book.database.run(connection, statements.ANSWERED, **asked)]

    def _refuse_twice(self, request_id: str, *, study: str) -> None:
        """Refuse a ledger that has spent for a request id twice, or may have: a restore has charged for what it forgot.

        They are counted without indexes, which may be damaged.
        """
        paid = and_(ENTRY.c.kind == "spend", ENTRY.c.request_id + "" == request_id)
        forgotten = and_(ENTRY.c.kind + "" == "restore", ENTRY.c.amount > 0)
        wanted = select(ENTRY.c.number).where(ENTRY.c.study == study, or_(paid, forgotten))
        with self._book.database.reading() as connection:
            if len(connection.execute(wanted).all()) > 1:
                raise refusals.damaged_file()

    def _has_forgotten(self, study: str) -> bool:
        """Whether a restore has charged for spends that it forgot: nobody knows what they were."""
        with self._book.database.reading() as connection:
            return any(era.amount for era in self._book.database.run(connection, statements.ERAS, study=study))

    def recent(self, study: str, *, last: int, analyst: str | None = None) -> list[Entry]:
        """The last entries of a study, or of one analyst in it, in order, without their answers.

        A repeat has the question that it repeats, though its entry does not hold it.
        """
        wanted = select(*(ENTRY.c[name] for name in COLUMNS if name != "answer")).where(ENTRY.c.study == study)
        if analyst is not None:
            wanted = wanted.where(ENTRY.c.analyst == analyst)
        with self._book.database.reading() as connection:
            rows = connection.execute(wanted.order_by(ENTRY.c.number.desc()).limit(last)).all()
            repeated = {row.question for row in rows if row.kind == "repeat"}
            paid = select(ENTRY.c.question, ENTRY.c.query).where(ENTRY.c.study == study, QUESTIONS)
            paid = paid.where(ENTRY.c.question.in_(repeated), ENTRY.c.kind == "spend")
            queries = dict(connection.execute(paid).all()) if repeated else {}
        entries = [Entry(**row._mapping) for row in reversed(rows)]
        return [
            replace(entry, query=queries.get(entry.question)) if entry.kind == "repeat" else entry for entry in entries
        ]

    def figure(self, **options: Any) -> Any:
        """What was spent over time as a chart; `study=` names one of several."""
        return views.budget(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def verify(self) -> int:
        """The number of entries, after a walk along every chain; `LedgerDamaged` at the first fault."""
        return sum(head.count for head in self._book.verify().values())

    def export(self) -> str:
        """Everything in the ledger, as JSON; an answer as a reader takes it (`records.readable`)."""
        self.verify()
        with self._book.database.reading() as connection:
            everything: dict[str, Any] = {"ledger": self._book.id, "version": VERSION}
            shares = connection.execute(select(ANALYST).order_by(ANALYST.c.study, ANALYST.c.name)).mappings()
            everything["analyst"] = [dict(share) for share in shares]
            everything["entry"] = [asdict(entry) for entry in entries_of(connection, self._book.id)]
        return json.dumps(everything, ensure_ascii=False, indent=1, default=readable)

    def _balance(self, study: str, analyst: str | None) -> tuple[int, int, int]:
        with self._book.page(study, reading=True) as page:
            total, spent = page.head.total, page.head.spent
            if analyst is None:
                return total, spent, total - spent
            if (share := page.analyst(analyst)) is None:
                return 0, 0, 0
            return share.allotted, share.spent, min(share.allotted - share.spent, total - spent)


def _spend(page: Page, cost: int, entry: dict[str, Any]) -> None:
    """Decide on a spend while the study is locked: refuse it, charge it, or find that nothing is to be charged."""
    study, analyst, request = page.head.study, entry["analyst"], page.request
    share = None if analyst is None else page.analyst(analyst)
    if analyst is not None and share is None:
        raise BudgetExceeded(f"analyst {quote(analyst)} has no share of study {study!r}: see Ledger.allot")
    if request is not None and any(entry[name] != getattr(request, name) for name in _BODY):
        raise refusals.RequestTaken(
            f"request_id must be new for a new question, got {request.request_id!r}, which was used for another; "
            "nothing was spent"
        )
    if page.void:
        raise refusals.void()
    if page.paid is not None:
        if request is None and page.repeats(analyst, _REPEATS) < _REPEATS:
            page.append(kind="repeat", **repeat_of(entry))
        return
    if share is not None:
        refusals.refuse_above(cost, share.allotted - share.spent, f"the share of analyst {analyst!r}")
        page.share(share.name, allotted=share.allotted, spent=share.spent + cost)
    refusals.refuse_above(cost, page.head.total - page.head.spent, f"study {study!r}")
    page.append(kind="spend", amount=cost, **entry)
