"""How a spend is decided, and what it returns: permission to answer one question once."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.ledger import refusals
from discreet.ledger.anchor import Head
from discreet.ledger.book import StudyState
from discreet.ledger.chain import in_epsilon
from discreet.ledger.questions import repeat_of

_BODY = ("question", "epsilon", "analyst")  # a request with the same id must agree in these
# that are recorded per analyst and day, each with its request id; further repeats are free, too
_REPEATS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Permission to answer one question once: `spend` returns it and `record` takes it."""

    study: str
    request_id: str
    question: str
    epsilon: Fraction
    analyst: str | None
    repeated: bool
    """Whether the question was asked before; then nothing was charged now."""
    answer: bytes | None = field(repr=False)
    """The stored answer, which is to be shown as it is; None if there is none yet."""
    head: Head | None = field(default=None, repr=False)
    """The last entry of the study at the time of the spend."""

    @property
    def remaining(self) -> Fraction | None:
        """What was left of the study's ε after the spend; None for an analyst, who has their own
        share.
        """
        return (
            None
            if self.head is None or self.analyst is not None
            else in_epsilon(self.head.total - self.head.spent)
        )


def charge_page(page: StudyState, cost: int, entry: dict[str, Any]) -> None:
    """Decide on a spend while the study is locked: refuse it, charge it, or do nothing if it was
    paid for before.
    """
    study, analyst, request = page.head.study, entry["analyst"], page.request
    share = None if analyst is None else page.analyst(analyst)
    if analyst is not None and share is None:
        raise refusals.no_share(analyst, study)
    if request is not None and any(entry[name] != getattr(request, name) for name in _BODY):
        raise refusals.RequestTaken(
            f"request_id must be new for a new question, got {request.request_id!r}, which was used"
            " for another; nothing was spent"
        )
    if page.void:
        raise refusals.void()
    if page.paid is not None:
        if request is None and page.repeats(analyst, _REPEATS) < _REPEATS:
            page.append(kind="repeat", **repeat_of(entry))
        return
    if share is not None:
        refusals.refuse_above(
            cost, share.allotted - share.spent, f"the share of analyst {analyst!r}"
        )
        page.share(share.name, allotted=share.allotted, spent=share.spent + cost)
    refusals.refuse_above(cost, page.head.total - page.head.spent, f"study {study!r}")
    page.append(kind="spend", amount=cost, **entry)
