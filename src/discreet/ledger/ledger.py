"""The ledger: it stores each spend of ε on disk before the first row is read, and each answer.

    spend → commit → anchor → (read, compute, draw) → record → commit → anchor → show

- The grants never exceed the total, exactly, in units of 10⁻⁹ ε, for any number of threads,
  processes and machines.
- After a crash the ε is spent, and the question may be unanswered. There are no refunds. A second
  request with the same id continues where the first stopped: nothing more is charged, and only the
  first recorded answer is ever shown.
- The same query of the same data version at the same ε is the same question: one charge and one
  answer for everybody.
- A ledger that is damaged, rolled back, foreign or missing is refused with `LedgerDamaged`, never
  opened as a new budget. `open` finds the anchored head and checks the chain of hashes from there;
  `verify` checks the whole chain.
- A study keeps the promise that it was created with. An answer is shown only if the hash of its
  entry is right.

The ledger does not prevent forgery by a custodian who can write to the database and the anchor.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from types import FunctionType
from typing import Any, Self, TypeVar

from sqlalchemy import and_, or_, select

from discreet import views
from discreet.errors import InvalidParameter, after_spending, without_context
from discreet.ledger import backup as backups
from discreet.ledger import refusals, statements
from discreet.ledger import restore as files
from discreet.ledger.book import Book, entries_of, recent_entries
from discreet.ledger.chain import Entry, checked, in_epsilon, question_of, whole_rows
from discreet.ledger.grant import Grant, charge_page
from discreet.ledger.place import Where, places
from discreet.ledger.questions import typed
from discreet.ledger.refusals import require_text
from discreet.ledger.restore import Restoration
from discreet.ledger.schema import ANALYST, ENTRY, LEDGER, QUESTIONS, STUDY, VERSION
from discreet.outside import read_fraction
from discreet.parameters import Epsilon, charge, exact_epsilon, quote
from discreet.records import readable

_QUERY = 1_000_000  # characters of a canonical query
Kind = TypeVar("Kind", bound=type)


def _without_contexts(kind: Kind) -> Kind:
    """The class, whose methods raise errors of ours with nothing of the database behind them."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(without_context(member.__func__)))
        elif isinstance(member, FunctionType) and not name.startswith("__"):
            setattr(kind, name, without_context(member))
    return kind


@_without_contexts
class Ledger:
    """The privacy budgets of studies, and what was spent; threads and forks can share it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger.open(f"{folder}/a.ledger", new=True) as ledger:
    ...     ledger.create("people", 1)
    ...     grant = ledger.spend("request-1", "how many people?", "0.25", study="people")
    ...     ledger.record(grant, b"42"), ledger.remaining("people")
    (b'42', Fraction(3, 4))

    """

    def __init__(self, book: Book) -> None:
        self._book = book

    @classmethod
    def open(
        cls,
        where: Where,
        *,
        study: str | None = None,
        anchor: Where | None = None,
        new: bool = False,
    ) -> Self:
        """Open a ledger, and check it from its anchored head on.

        Parameters
        ----------
        where : path or address
            A file, or the `postgresql://` address of a database.
        study : text, optional
            The name of a study that the ledger must hold.
        anchor : path, optional
            The file that holds the head of the ledger. By default, `<file>.anchor`; required for
            PostgreSQL.
        new : bool
            Whether to create the ledger, which must not exist.

        Returns
        -------
        Ledger
            To be closed, or used in a `with` statement.

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
        where: Where,
        *,
        accept: str,
        anchor: Where | None = None,
        backup: Where | None = None,
        charge: Any = None,
    ) -> Self:
        """Accept a ledger as it is: an older copy, a ledger without its anchor, or a ledger from a
        backup.

        What the anchor saw after the last entry that it shares with this copy is charged at once,
        so that no budget is regained. A spend without an answer is void: it may have been answered
        in the lost entries, so it can be neither answered nor asked again.

        Parameters
        ----------
        where, anchor
            See `open`.
        accept : text
            The mark that the refusal, or `restoration`, shows.
        backup : path, optional
            A file that `backup` wrote.
        charge : number or text, optional
            The ε to charge each study in addition, if the anchor was lost; "all" for all that is
            left.

        """
        backups.restore(*places(where, anchor), accept, backup, charge)
        return cls.open(where, anchor=anchor)

    @classmethod
    def restoration(
        cls,
        where: Where,
        *,
        anchor: Where | None = None,
        backup: Where | None = None,
        charge: Any = None,
    ) -> Restoration:
        """What `restore` would charge and make void, with the mark to accept; it only reads."""
        return backups.restoration(*places(where, anchor), backup, charge)

    def backup(self, target: Where) -> int:
        """Write the whole ledger to a new file while others spend; return the number of entries."""
        return backups.write(self._book, Path(target).absolute())

    @classmethod
    def join(cls, where: Where, *, anchor: Where, other: Where) -> Self:
        """Use a PostgreSQL ledger from another machine: check all of it, and write a new anchor.
        Nothing is charged.

        `other` is a copy of the anchor of a machine that uses the ledger. The ledger must contain
        the head of that anchor. Both anchors share a key, so that both machines know a data version
        by the same name.
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

    def create(
        self, study: str, total: Epsilon, *, promise: Mapping[str, Any] | None = None
    ) -> None:
        """Create a study with its total ε, which cannot be changed later.

        `promise` says what an ε means in this study (`Policy.promise`). A study without a promise
        is for arrays and files only.
        """
        require_text("study", study)
        units = charge(exact_epsilon(total))
        with self._book.database.transaction() as connection:
            connection.execute(select(LEDGER).with_for_update()).one()  # two cannot create at once
            if connection.execute(select(STUDY).where(STUDY.c.name == study)).first() is not None:
                raise InvalidParameter(
                    f"study must be new to the ledger, got {study!r}, which has a total already"
                )
            head = self._book.begin_study(
                connection, study, units, None if promise is None else dict(promise)
            )
        self._book.anchor.advance(head)

    def correct(
        self, study: str, total: Epsilon, *, promise: Mapping[str, Any] | None = None
    ) -> None:
        """Give a study another total and promise, as long as nothing was spent or allotted."""
        units = charge(exact_epsilon(total))
        with self._book.page(study) as page:
            self._book.correct(page, units, None if promise is None else dict(promise))

    def promised(self, study: str) -> refusals.Promised:
        """The total and the promise of a study, as one policy or call gave them."""
        with self._book.page(study, reading=True) as page:
            return in_epsilon(page.head.total), self._book.promise(page)

    def promise(self, study: str) -> dict[str, Any] | None:
        """The promise that the study was created with; None if it is for arrays and files only."""
        with self._book.page(study, reading=True) as page:
            return self._book.promise(page)  # type: ignore[no-any-return]

    def keyed(self, version: str) -> str:
        """The HMAC-SHA256 of a version (a hash of all rows) under the anchor's key, so that nobody
        can test guesses.
        """
        key = self._book.anchor.read().key
        return hmac.digest(bytes.fromhex(key), version.encode(), "sha256").hex()

    def allot(self, analyst: str, epsilon: Epsilon, *, study: str) -> None:
        """Let an analyst spend up to ε of the study's total; a later call sets a new limit."""
        require_text("analyst", analyst)
        units = charge(exact_epsilon(epsilon))
        with self._book.page(study) as page:
            share = page.analyst(analyst)
            spent = 0 if share is None else share.spent
            if not spent <= units <= page.head.total:
                raise InvalidParameter(
                    f"epsilon must lie between what {analyst!r} has spent ({refusals.shown(spent)})"
                    f" and the study's total ({refusals.shown(page.head.total)}), got"
                    f" {quote(epsilon)}"
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
        room: int = 0,
        promised: refusals.Promised | None = None,
    ) -> Grant:
        """Charge the ε of a query on disk, and permit its answer; free if it was paid for before.

        Refused, with nothing spent: more than is left (`BudgetExceeded`); a request id that was
        used for another question, ε or analyst (`InvalidParameter`); a spend that a restore made
        void (`QueryRefused`).

        Parameters
        ----------
        request_id, query, epsilon
            The id, which is never charged twice; the question in canonical form; what it costs.
        study, analyst : text
            The study, and the analyst whose share pays, if any.
        data_version : text, optional
            The version of the data. Without it the data may have changed, so every request is
            charged.
        asked : text, optional
            The question as it was typed, which the entry stores for readers.
        room : int
            How many bytes the answer may have: on a disk without room for them, nothing is spent.
        promised : optional
            The total and the promise that the study must have, as `promised` returns them.

        Returns
        -------
        Grant
            For `record`; its `answer` is the stored answer, if there is one.

        """
        require_text("request_id", request_id)
        require_text("query", query, _QUERY)
        for name, value in (("data_version", data_version), ("analyst", analyst)):
            if value is not None:
                require_text(name, value)
        exact, question = exact_epsilon(epsilon), question_of(query, data_version, request_id)
        request: dict[str, Any] = {
            "request_id": request_id,
            "question": question,
            "epsilon": str(exact),
        }
        self._book.database.refuse_full(room)
        entry = {
            "query": query,
            "data_version": data_version,
            "analyst": analyst,
            "asked": typed(asked),
            **request,
        }
        repeated, answer = False, None
        head = None
        if promised is None:
            head = self._book.append_at_once(study, kind="spend", amount=charge(exact), **entry)
        if head is None:
            with self._book.page(study, **request) as page:
                if promised is not None:
                    held = in_epsilon(page.head.total), self._book.promise(page)
                    refusals.refuse_another_promise(promised, held)
                charge_page(page, charge(exact), entry)
            repeated, answer, head = page.paid is not None, page.answer, page.head
            if repeated and answer is None:
                self._book.refuse_hidden_answer(page, None)
        result: dict[str, Any] = {
            "epsilon": exact,
            "repeated": repeated,
            "answer": answer,
            "head": head,
        }
        return Grant(
            study=study, request_id=request_id, question=question, analyst=analyst, **result
        )

    def repeat(
        self, request_id: str, paid: Entry, *, analyst: str | None = None, asked: str | None = None
    ) -> None:
        """Note that a spend's answer is shown again, or a part of it: free, and a repeat of it.

        `paid` is the entry of the spend; `request_id`, `analyst` and `asked` are those of `spend`.
        """
        require_text("request_id", request_id)
        request: dict[str, Any] = {
            "question": paid.question,
            "epsilon": paid.epsilon,
            "request_id": request_id,
        }
        with self._book.page(paid.study, **request) as page:
            if page.paid is None:
                raise InvalidParameter("paid must be a spend of this ledger")
            charge_page(page, 0, {**request, "analyst": analyst, "asked": typed(asked)})

    def refuse_full(self) -> None:
        """Refuse a file whose disk has no room for another entry."""
        self._book.database.refuse_full()

    def probe(self, room: int = 0) -> None:
        """Refuse a ledger that cannot store an answer of so many bytes now; nothing is kept."""
        self._book.database.probe(room)

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the ledger's files: the database, if it is a file, and the anchor."""
        return self._book.files

    def record(self, grant: Grant, answer: bytes) -> bytes:
        """Store the answer on disk, and return the answer to show: this one, or the one that was
        recorded first.
        """
        refusals.require_answer(answer)
        epsilon = str(grant.epsilon)
        request: dict[str, Any] = {
            "request_id": grant.request_id,
            "question": grant.question,
            "epsilon": epsilon,
        }
        with after_spending(), self._book.page(grant.study, **request) as page:
            if page.paid is None:
                raise InvalidParameter("grant must come from a spend of this ledger")
            if page.void:
                raise refusals.void()
            if page.answer is None:
                self._book.refuse_hidden_answer(page, grant.head, page.connection)
                page.append(
                    kind="answer", analyst=grant.analyst, amount=0, answer=answer, **request
                )
        return answer if page.answer is None else page.answer

    def answer(
        self,
        *,
        study: str,
        request_id: str | None = None,
        query: str | None = None,
        data_version: str | None = None,
    ) -> bytes | None:
        """The stored answer to a request, or to a query of a data version (at the largest ε); None
        if there is none.
        """
        with self._book.page(study, request_id=request_id or "", reading=True) as page:
            if request_id is not None and query is None and data_version is None:
                if page.request is None:
                    return None
                conditions = [
                    ENTRY.c.question == page.request.question,
                    ENTRY.c.epsilon == page.request.epsilon,
                ]
            elif request_id is None and query is not None and data_version is not None:
                conditions = [ENTRY.c.question == question_of(query, data_version, "")]
            else:
                raise InvalidParameter(
                    "answer takes a request_id, or a query with its data_version"
                )
            conditions += [ENTRY.c.study == study, ENTRY.c.kind == "answer", QUESTIONS]
            answers = page.connection.execute(
                select(ENTRY.c.number, ENTRY.c.epsilon).where(*conditions)
            ).all()
            if not answers:
                return None
            with whole_rows():
                best = max(answers, key=lambda answer: read_fraction(answer.epsilon)).number
            row = page.connection.execute(
                select(ENTRY).where(ENTRY.c.study == study, ENTRY.c.number == best)
            ).one()
        return bytes(checked(self._book.id, row).answer)

    def studies(self) -> list[str]:
        """The names of the studies."""
        return self._book.studies()

    def total(self, study: str, *, analyst: str | None = None) -> Fraction:
        """The total ε of the study, or of the analyst's share."""
        return in_epsilon(self._balance(study, analyst)[0])

    def spent(self, study: str, *, analyst: str | None = None) -> Fraction:
        """The ε that the study, or the analyst, has spent."""
        return in_epsilon(self._balance(study, analyst)[1])

    def remaining(self, study: str, *, analyst: str | None = None) -> Fraction:
        """The ε that is left; for an analyst, of their share or of the study, whichever is less."""
        return in_epsilon(self._balance(study, analyst)[2])

    def entries(self, study: str | None = None) -> list[Entry]:
        """Every entry, by study, in order."""
        with self._book.database.reading() as connection:
            return list(
                entries_of(
                    connection, self._book.id, *([] if study is None else [ENTRY.c.study == study])
                )
            )

    def entry(self, request_id: str, *, study: str) -> Entry | None:
        """The entry of a request, charged or free; None if the study has none."""
        conditions = (
            ENTRY.c.study == study,
            ENTRY.c.request_id == request_id,
            ENTRY.c.kind.in_(("spend", "repeat")),
        )
        with self._book.database.reading() as connection:
            return next(entries_of(connection, self._book.id, *conditions), None)

    def is_paid(
        self,
        request_id: str,
        query: str,
        epsilon: Fraction,
        *,
        study: str,
        data_version: str | None,
    ) -> bool:
        """Whether a spend of this question would be free: it was paid for."""
        question = question_of(query, data_version, request_id)
        conditions = (
            ENTRY.c.study == study,
            ENTRY.c.question == question,
            ENTRY.c.epsilon == str(epsilon),
        )
        with self._book.database.reading() as connection:
            found = select(ENTRY.c.number).where(*conditions, ENTRY.c.kind == "spend", QUESTIONS)
            return connection.execute(found).first() is not None

    def requests(self, study: str, beginning: str) -> list[Entry]:
        """A study's spends whose request ids begin with this text, in order, without answers."""
        database, last = self._book.database, beginning[:-1] + chr(ord(beginning[-1]) + 1)
        statement = statements.SPENDS if database.is_file else statements.SPENDS_BY_BYTES
        with database.reading() as connection:
            rows = database.run(connection, statement, study=study, beginning=beginning, last=last)
        return [checked(self._book.id, Entry(**row._asdict())) for row in rows]

    def answered(self, query: str, epsilon: Fraction, *, study: str) -> list[str]:
        """The data versions for which a query was answered at this ε, among the last entries of the
        study.
        """
        with self._book.database.reading() as connection:
            values = {"study": study, "query": query, "epsilon": str(epsilon)}
            return [
                row.data_version
                for row in self._book.database.run(connection, statements.ANSWERED, **values)
            ]

    def _refuse_twice(self, request_id: str, *, study: str) -> None:
        """Refuse a ledger with two spends of a request id, or a restore that charged for spends
        that it forgot.

        The rows are counted without the indexes, which may be damaged.
        """
        spends = and_(ENTRY.c.kind == "spend", ENTRY.c.request_id + "" == request_id)
        restores = and_(ENTRY.c.kind + "" == "restore", ENTRY.c.amount > 0)
        statement = select(ENTRY.c.number).where(ENTRY.c.study == study, or_(spends, restores))
        with self._book.database.reading() as connection:
            if len(connection.execute(statement).all()) > 1:
                raise refusals.damaged()

    def _has_forgotten(self, study: str) -> bool:
        """Whether a restore has charged for spends that it forgot: nobody knows what they were."""
        with self._book.database.reading() as connection:
            return any(
                era.amount
                for era in self._book.database.run(connection, statements.ERAS, study=study)
            )

    def recent(self, study: str, *, last: int, analyst: str | None = None) -> list[Entry]:
        """The last entries of a study or analyst, in order, with questions, without answers."""
        with self._book.database.reading() as connection:
            return recent_entries(connection, study, last, analyst)

    def figure(self, **options: Any) -> Any:
        """A chart of what was spent over time; `study=` chooses a study."""
        return views.budget(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def verify(self) -> int:
        """Check every chain; return the number of entries, or raise `LedgerDamaged` at a fault."""
        return sum(head.count for head in self._book.verify().values())

    def export(self) -> str:
        """The whole ledger as JSON, with readable answers (`records.readable`)."""
        self.verify()
        with self._book.database.reading() as connection:
            everything: dict[str, Any] = {"ledger": self._book.id, "version": VERSION}
            shares = connection.execute(
                select(ANALYST).order_by(ANALYST.c.study, ANALYST.c.name)
            ).mappings()
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
