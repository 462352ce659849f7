"""The one path that spends: spend first, then read and draw, then record, then show.

    asking → refuse what has failed → spend → work → record → what is shown

`once` takes it for every release: questions, reports, profiles, discoveries, arrays and files. A
question that was paid for is never paid for again, and only the first recorded answer is shown.

An array is charged if a call names an account:

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1", ledger=ledger, study="survey")

With `request_id` the call can be repeated: it is charged once, and returns the same release again.
With `data_name` and `data_version` the same question about the same version of the same data is
charged once, whoever asks. Without them every call is a new question. Whether a call is free
depends on these names alone, never on the values: otherwise it would reveal, without noise, whether
two arrays are equal (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from discreet.errors import InvalidParameter, QueryRefused, after_spending, without_context
from discreet.outside import read_fraction, read_json
from discreet.release.size import within_memory
from discreet.release.standing import Standings
from discreet.release.tape import Tape, taping

if TYPE_CHECKING:
    from discreet.ledger.grant import Grant
    from discreet.ledger.ledger import Ledger
    from discreet.release.budget import Budget
    from discreet.release.study import Study

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A question to a ledger, before its spend."""

    budget: Budget
    request_id: str
    query: str
    """The canonical text."""
    epsilon: Fraction
    analyst: str | None = None
    version: Callable[[], str | None] = lambda: None
    """Reads the version of the data."""
    asked: str | None = None
    """The question as it was typed."""
    room: int = 0
    """How many bytes the record may have."""
    standings: Standings | None = None
    """What has failed after it was paid for."""

    @cached_property
    def data_version(self) -> str | None:
        """The version of the data."""
        return self.version()

    @property
    def ledger(self) -> Ledger:
        """The ledger, which the first spend creates."""
        return self.budget.made()

    @property
    def is_paid(self) -> bool:
        """Whether the spend would be free."""
        question = self.request_id, self.query, self.epsilon
        return self.ledger.is_paid(
            *question, study=self.budget.study, data_version=self.data_version
        )

    def refuse(self) -> None:
        """Refuse a spend that a new ledger would refuse, and one of a source that has failed."""
        self.budget.refuse_in_vain(self.epsilon, self.analyst)
        if self.standings is not None:
            self.standings.refuse(self.query, lambda: self.is_paid)

    def spend(self) -> Grant:
        """The permission to answer, which is on disk."""
        return self.budget.spend(
            self.request_id,
            self.query,
            self.epsilon,
            analyst=self.analyst,
            data_version=self.data_version,
            asked=self.asked,
            room=self.room,
        )

    def answered(self, path: str) -> bool:
        """Whether the recorded answer is the file at this path."""
        study = self.budget.study
        answers = [self.ledger.answer(study=self.budget.study, request_id=self.request_id)]
        if self.data_version is not None:
            answers.append(
                self.ledger.answer(study=study, query=self.query, data_version=self.data_version)
            )
        records = filter(None, (file_record(answer) for answer in answers if answer is not None))
        return any(
            record["file"] == path and read_fraction(record["epsilon"]) == self.epsilon
            for record in records
        )


@without_context
def once(
    asking: Asking, work: Callable[[], bytes], begun: Callable[[Grant], object] = lambda _: None
) -> tuple[bytes, Grant]:
    """The recorded answer of a question: what `work` returns after the spend, or what was first.

    `begun` is called after the spend of a question without an answer, and may refuse to go on.
    """
    asking.refuse()
    grant, standings = asking.spend(), asking.standings
    content = grant.answer
    if content is None:
        begun(grant)
        attempted = nullcontext() if standings is None else standings.attempt(asking.query)
        with after_spending(), within_memory(), attempted as attempt:
            mine = work()
            content = asking.ledger.record(
                grant, mine if attempt is None else attempt.storing(mine)
            )
    return content, grant


def refuse_begun(grant: Grant) -> None:
    """Refuse a file whose release was started before and never recorded."""
    if grant.repeated:
        raise QueryRefused(
            "this was asked before and has no file yet: another process is writing it, or it was"
            " interrupted; a release is made once, and its epsilon stays spent: ask with another"
            " epsilon"
        )


def file_record(answer: bytes) -> dict[str, Any] | None:
    """The record of a file or of a folder written by Spark; None for any other answer."""
    try:
        record = read_json(answer)
    except ValueError:
        return None
    return record if isinstance(record, dict) and {"file", "epsilon"} <= set(record) else None


@without_context
def answered(
    study: Study,
    request_id: str,
    query: str,
    epsilon: Fraction,
    work: Callable[[], bytes],
    **terms: Any,
) -> tuple[bytes, Fraction]:
    """The recorded answer of a question to a study, and what is left of ε."""
    asking = asking_of(study, request_id=request_id, query=query, epsilon=epsilon, **terms)
    content, grant = once(asking, work)
    remaining = grant.remaining
    if remaining is None:
        with after_spending():
            remaining = asking.ledger.remaining(study.name, analyst=asking.analyst)
    return content, remaining


def asking_of(study: Study, **terms: Any) -> Asking:
    """A question to the ledger of a study, of the current version of its data."""
    return Asking(
        budget=study.budget, version=lambda: study.version, standings=Standings(study), **terms
    )


class Account(TypedDict, total=False):
    """Where a call is charged."""

    ledger: Ledger
    study: str
    analyst: str | None
    request_id: str | None
    data_name: str | None
    """What the values are, such as "salary": no array says it, but the question needs it."""
    data_version: str | None


def account_of(account: Account, name: str) -> Budget | None:
    """The budget that a call of `name` is charged to; None if it is not charged."""
    unknown = sorted(set(account) - set(Account.__annotations__))
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
    ledger, study = account.get("ledger"), account.get("study")
    if ledger is None and not account:
        return None
    if ledger is None or study is None:
        raise InvalidParameter("ledger= and study= must be given together: give both, or neither")
    if account.get("data_version") is not None and account.get("data_name") is None:
        raise InvalidParameter(
            "data_version needs data_name=, which says what the values are, such as"
            " data_name='salary': otherwise two columns of one version would share an answer"
        )
    from discreet.release.budget import Budget

    return Budget(ledger, study)


def asking_on(
    account: Account, name: str, parameters: Mapping[str, Any], epsilon: Fraction
) -> Asking | None:
    """The question of a call of `name` to the ledger of an account; None if it is not charged."""
    budget = account_of(account, name)
    if budget is None:
        return None
    from discreet.ledger.questions import canonical, new_request_id
    from discreet.ledger.refusals import require_text

    data, version = account.get("data_name"), account.get("data_version")
    if data is not None:
        require_text("data_name", data)
        parameters = {**parameters, "data": data}
    return Asking(
        budget=budget,
        request_id=account.get("request_id") or new_request_id(),
        query=canonical(name, parameters),
        epsilon=epsilon,
        analyst=account.get("analyst"),
        version=lambda: version,
    )


def entry_of(request_id: str | None) -> str:
    """The request id in the ledger; a new one by default."""
    from discreet.ledger.questions import new_request_id

    if isinstance(request_id, str) and request_id.startswith("discreet."):
        raise InvalidParameter(
            "request_id must not begin with 'discreet.': such names are reserved"
        )
    return request_id if request_id is not None else new_request_id()


@without_context
def charged(
    account: Account,
    name: str,
    parameters: Mapping[str, Any],
    epsilon: Fraction,
    work: Callable[[], Found],
) -> Found:
    """The result of `work`, after its ε was spent; or the release recorded before, free."""
    asking = asking_on(account, name, parameters, epsilon)
    if asking is None:
        return work()
    results: dict[bytes, Found] = {}

    def taped() -> bytes:
        tape = Tape()
        with taping(tape):
            result = work()
            written = tape.written()
        results[written] = result
        return written

    content, _ = once(asking, taped)
    if content in results:
        return results[content]
    # answered before, or by another process in the meantime: only the first answer is ever shown
    with taping(Tape(content)):
        return work()
