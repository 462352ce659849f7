"""The errors of a ledger: names that it cannot hold, and a ledger that is damaged; each says what
to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from discreet.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidParameter,
    LedgerDamaged,
    QueryRefused,
)
from discreet.parameters import quote

# most characters of a name, a request id or a data version: a name must fit the anchor's line
_NAME = 100
_PRINTABLE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]*")
"""No control characters, which PostgreSQL or a terminal rejects, and no lone surrogates."""

MOST_BYTES = 500_000_000
"""Of an answer: SQLite limits a row to 10⁹ bytes, and PostgreSQL sends bytes as text twice as long,
up to 1 GiB.
"""


class VoidQuestion(QueryRefused):
    """A question that was paid for before a restore and may have been answered in lost entries;
    nothing was spent.
    """


class RequestTaken(InvalidParameter):
    """A request id that was used for another question; nothing was spent."""


def require_text(name: str, value: object, longest: int = _NAME) -> None:
    """Refuse text that a database or the anchor cannot store unchanged."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= longest
        or not _PRINTABLE.fullmatch(value)
    ):
        raise InvalidParameter(
            f"{name} must be printable text of 1 to {longest} characters, got {quote(value)}"
        )


def require_answer(answer: object) -> None:
    if not isinstance(answer, bytes):
        raise InvalidParameter(f"answer must be bytes, got {quote(answer)}")
    if len(answer) > MOST_BYTES:
        raise too_large()


void = partial(
    VoidQuestion,
    "this question was paid for before the ledger was restored from a copy that lacks its answer:"
    " it cannot be answered a second time; ask at another epsilon, as a new question",
)
damaged = partial(LedgerDamaged, "the ledger's file or tables are damaged: put back an intact copy")
other_tables = partial(
    LedgerDamaged,
    "the ledger's tables are not the ones it was created with: put back an intact copy",
)
swapped = partial(
    LedgerDamaged,
    "the anchor belongs to another ledger: put the ledger and its own anchor back together",
)
unnamed = partial(
    LedgerDamaged, "the ledger mentions a study that it does not hold: put back an intact copy"
)


replaced = partial(
    LedgerDamaged,
    "the ledger's file was moved or replaced while it was open: nothing is released; open the study"
    " again, or restart the server",
)


def too_large() -> EngineFailed:
    return EngineFailed(
        f"the answer is larger than a ledger stores ({MOST_BYTES:,} bytes): nothing is released;"
        " ask for fewer numbers at once, or release to a file",
        spent=True,
    )


def changed(study: str, number: int) -> LedgerDamaged:
    return LedgerDamaged(
        f"entry {number} of study {study!r} was changed, removed or forged: put back an intact copy"
        " of the ledger"
    )


def foreign(study: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"study {study!r} is not in this ledger: open the ledger that belongs to it, "
        "or give a new study its total with discreet ledger create (in Python: Ledger.create)"
    )


def behind(study: str, count: int, anchored: int, accept: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"study {study!r} has {count} entries, which do not include the anchored entry, number"
        f" {anchored}: put the newest copy back; or, to continue with this copy and be charged for"
        f" what it lacks, use Ledger.restore(…, accept={accept!r})"
    )


def moved(accept: str) -> LedgerDamaged:
    return LedgerDamaged(
        "the ledger's server has another system identifier or timeline than before: it is a copy,"
        " or a standby that took over, and may lack what was spent last; put the right server"
        f" back; or, to continue with this server, use Ledger.restore(…, accept={accept!r}) on"
        " every machine that has an anchor, before anybody asks a question"
    )


def refuse_above(units: int, remaining: int, whose: str) -> None:
    if units > remaining:
        raise BudgetExceeded(
            f"epsilon must not exceed what is left of {whose}: {shown(remaining)} is left, "
            f"{shown(units)} was asked for; nothing was spent"
        )


def shown(units: int) -> str:
    """Units as a decimal ε: 100,000,000 as 0.1."""
    return f"{units // 10**9}.{units % 10**9:09d}".rstrip("0").rstrip(".")


def no_share(analyst: str, study: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"analyst {quote(analyst)} has no share of study {study!r}: see Ledger.allot"
    )


def used(study: str) -> InvalidParameter:
    return InvalidParameter(
        f"study must be new to the ledger, got {study!r}, of which something was spent or allotted:"
        " its total and its promise cannot be changed"
    )


Promised: TypeAlias = tuple[Fraction, Mapping[str, object] | None]
"""The total of a study, and its promise; None if it is for arrays and files only."""


def refuse_another_promise(promised: Promised, held: Promised) -> None:
    """Refuse a policy with another total or promise than the ledger holds: it would change what was
    spent so far.
    """
    (total, wanted), (total_held, promise) = promised, held
    if total != total_held:
        raise InvalidParameter(
            f"epsilon of the policy must be {total_held}, what the ledger was created with, got"
            f" {total}: a total cannot be changed{_UNLESS_UNUSED}"
        )
    if promise is None or wanted is None:
        raise InvalidParameter(
            "a study with a policy must be created with a promise, and this study was created for"
            " arrays alone: create another with ledger.create(name, total, promise=policy.promise)"
        )
    changed = [
        f"no {name}" if promise[name] is None else f"{name} = {quote(promise[name])}"
        for name in promise
        if promise[name] != wanted[name]
    ]
    if changed:
        raise InvalidParameter(
            f"the policy must promise what the ledger was created with: {', '.join(changed)}; set"
            " it back, or name a new ledger, which is a new budget: what both spend on the same"
            f" people adds up{_UNLESS_UNUSED}"
        )


_UNLESS_UNUSED = "; if nothing was spent or allotted yet, discreet ledger create corrects it"
