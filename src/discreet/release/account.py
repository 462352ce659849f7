"""Statistics of an array on a study's account: spend first, then read and draw, then record, then show.

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1", ledger=ledger, study="survey")

With `request_id` a call can be repeated: it is charged once, and returns the same release again. With `data_name` and
`data_version` the same question about the same version of the same data is charged once, whoever asks. Without them
every call is a new question. Whether a call is free depends on these names alone, never on the values: otherwise it
would reveal, without noise, whether two arrays are equal (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from discreet.errors import InvalidParameter, after_spending, without_context
from discreet.release.size import within_memory
from discreet.release.standing import Standings
from discreet.release.tape import Tape, taping

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.release.study import Study

Found = TypeVar("Found")


class Account(TypedDict, total=False):
    """Where a call is charged."""

    ledger: Ledger
    study: str
    analyst: str | None
    request_id: str | None
    data_name: str | None
    """What the values are, such as "salary": an array does not say it, but the question depends on it."""
    data_version: str | None


def account_of(account: Account, name: str) -> tuple[Ledger, str] | None:
    """The ledger and the study that a call of `name` is charged to; None if it is not charged."""
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
            "data_version needs data_name=, which says what the values are, such as data_name='salary': "
            "otherwise two columns of one version would share an answer"
        )
    return ledger, study


def text_of(account: Account, name: str, parameters: Mapping[str, Any]) -> str:
    """The canonical text of a call about the data that the account names."""
    from discreet.ledger.questions import canonical
    from discreet.ledger.refusals import require_text

    data = account.get("data_name")
    if data is None:
        return canonical(name, parameters)
    require_text("data_name", data)
    return canonical(name, {**parameters, "data": data})


def entry_of(request_id: str | None) -> str:
    """The request id in the ledger; a new one by default."""
    from discreet.ledger.questions import new_request_id

    if isinstance(request_id, str) and request_id.startswith("discreet."):
        raise InvalidParameter("request_id must not begin with 'discreet.': such names are reserved")
    return request_id if request_id is not None else new_request_id()


@without_context
def answered(
    study: Study,
    entry: str,
    text: str,
    epsilon: Fraction,
    work: Callable[[], bytes],
    *,
    analyst: str | None,
    asked: str | None = None,
    room: int = 0,
) -> tuple[bytes, Fraction]:
    """Spend ε of a study, and record what `work` returns, or take the earlier record; with what is left of ε.

    `room` is how many bytes the record may have.
    """
    budget, standings = study.budget, Standings(study)
    budget.refuse_in_vain(epsilon, analyst)

    def is_paid() -> bool:
        return study.ledger.is_paid(entry, text, epsilon, study=study.name, data_version=study.version)

    standings.refuse(text, is_paid)
    grant = budget.spend(entry, text, epsilon, analyst=analyst, data_version=study.version, asked=asked, room=room)
    ledger = study.ledger
    with after_spending(), within_memory():
        content = grant.answer
        if content is None:
            with standings.attempt(text) as attempt:
                content = ledger.record(grant, attempt.storing(work()))
        remaining = grant.remaining
        return content, ledger.remaining(study.name, analyst=analyst) if remaining is None else remaining


@without_context
def charged(
    account: Account, name: str, parameters: Mapping[str, Any], epsilon: Fraction, work: Callable[[], Found]
) -> Found:
    """The result of `work`, after its ε was spent; or the release that was recorded before, free."""
    entry_account = account_of(account, name)
    if entry_account is None:
        return work()
    from discreet.ledger.questions import new_request_id

    ledger, study = entry_account
    grant = ledger.spend(
        account.get("request_id") or new_request_id(),
        text_of(account, name, parameters),
        epsilon,
        study=study,
        analyst=account.get("analyst"),
        data_version=account.get("data_version"),
    )
    content = grant.answer
    if content is None:
        tape = Tape()
        with after_spending(), within_memory(), taping(tape):
            result = work()
            mine = tape.written()
        with after_spending():
            content = ledger.record(grant, mine)
        if content == mine:
            return result
    # answered before, or by another process in the meantime: only the first answer is ever shown
    with taping(Tape(content)):
        return work()
