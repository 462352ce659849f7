"""What is refused: names that a ledger cannot hold, and a ledger that is not what it was; each with what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from discreet.errors import BudgetExceeded, EngineFailed, InvalidParameter, LedgerDamaged, QueryRefused
from discreet.parameters import quote

_NAME = 100
"""Characters of a study's or an analyst's name, a request id or a data version: a name fits a line of the anchor."""

_PRINTABLE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]*")
"""No control characters, which PostgreSQL or a terminal cannot take, and no half of a surrogate pair."""

MOST_BYTES = 500_000_000
"""In an answer: a row of SQLite takes 10⁹ bytes, and PostgreSQL shows an answer as text twice as long, up to 1 GiB."""


class VoidQuestion(QueryRefused):
    """A question that was paid for before a restore, which does not know whether it was answered; nothing was spent."""


class RequestTaken(InvalidParameter):
    """A request id that was used for another question; nothing was spent."""


def require_text(name: str, value: object, longest: int = _NAME) -> None:
    """Refuse what a database or the anchor cannot hold as it is."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or not _PRINTABLE.fullmatch(value):
        raise InvalidParameter(f"{name} must be printable text of 1 to {longest} characters, got {quote(value)}")


def require_answer(answer: object) -> None:
    if not isinstance(answer, bytes):
        raise InvalidParameter(f"answer must be bytes, got {quote(answer)}")
    if len(answer) > MOST_BYTES:
        raise too_large()


void = partial(
    VoidQuestion,
    "this question was paid for before the ledger was restored from a copy, which does not know its answer: it is "
    "not answered twice; ask at another epsilon, as a new question",
)
damaged_file = partial(LedgerDamaged, "the ledger's file is damaged: put back a copy that is whole")
swapped = partial(
    LedgerDamaged, "the anchor belongs to another ledger: put the ledger and its own anchor together again"
)
unnamed = partial(LedgerDamaged, "the ledger names a study that it does not hold: put back a copy that is whole")


def too_large() -> EngineFailed:
    return EngineFailed(
        f"the answer is larger than a ledger keeps, {MOST_BYTES:,} bytes: nothing is released, and what was spent "
        "stays spent; ask for less at once, or release to a file"
    )


def changed(study: str, number: int) -> LedgerDamaged:
    return LedgerDamaged(
        f"entry {number} of study {study!r} was changed, removed or made up: "
        "put back a copy of the ledger that is whole"
    )


def foreign(study: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"study {study!r} is not in this ledger: open the ledger that belongs to it, "
        "or give a new study its total with discreet ledger create (in Python: Ledger.create)"
    )


def behind(study: str, count: int, anchored: int, accept: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"study {study!r} has {count} entries, which do not contain the anchored one, number {anchored}: "
        "put the newest copy back; or, to go on with this one and be charged for what it forgot, "
        f"use Ledger.restore(…, accept={accept!r})"
    )


def moved(accept: str) -> LedgerDamaged:
    return LedgerDamaged(
        "the ledger's server has another system identifier or timeline than before: it is a copy, or a standby that "
        "took over, and may have forgotten what was spent; put the right server back; or, to go on with this one, use "
        f"Ledger.restore(…, accept={accept!r}) on every machine that has an anchor, before anybody asks"
    )


def refuse_above(units: int, left: int, whose: str) -> None:
    if units > left:
        raise BudgetExceeded(
            f"epsilon must not exceed what is left of {whose}: {shown(left)} is left, "
            f"{shown(units)} was asked; nothing was spent"
        )


def shown(units: int) -> str:
    """Units as a decimal ε: 100,000,000 as 0.1."""
    return f"{units // 10**9}.{units % 10**9:09d}".rstrip("0").rstrip(".")


def refuse_another_promise(promised: Mapping[str, object], promise: Mapping[str, object] | None) -> None:
    """Refuse a policy under which what was spent so far would mean something else."""
    if promise is None:
        raise InvalidParameter(
            "the study must be created with a promise to have a policy, and this one was created for arrays alone: "
            "use another study, of ledger.create(name, total, promise=policy.promise)"
        )
    changed = [f"{name} = {quote(promise[name])}" for name in promise if promise[name] != promised[name]]
    if changed:
        raise InvalidParameter(
            f"the policy must promise what the ledger was made with: {', '.join(changed)}; set it back, or name a new "
            "ledger, which is a new budget: what both spend on the same people adds up"
        )
