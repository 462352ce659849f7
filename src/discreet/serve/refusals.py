"""Responses without an answer: a status, a sentence, and advice.

A refusal comes before any spend and may give its reason. Every failure afterwards gives the same
`FAILURE`, byte for byte: the error may depend on the data, so only the operator's log has its kind
and where it was raised.
"""

from __future__ import annotations

from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    InvalidParameter,
    QueryRefused,
    SourceUnusable,
)
from discreet.ledger.refusals import RequestTaken, VoidQuestion


class Refusal(DiscreetError):
    """A request that gets no answer, with the status; nothing was spent."""

    def __init__(self, status: int, error: str, advice: str) -> None:
        super().__init__(error)
        self.status, self.advice = status, advice

    @property
    def body(self) -> dict[str, str]:
        return {"error": str(self), "advice": self.advice}


FAILURE = Refusal(
    503,
    "The server could not answer.",
    "Ask again with the same request_id, at no further cost; if it fails again, tell the"
    " custodian.",
)

UNUSABLE = Refusal(
    400,
    "The data is not there as the study declares it.",
    "Tell the custodian, who finds the reason in the server's log; nothing was spent.",
)
"""Its words would name files, tables and hosts."""


FAILING = Refusal(
    503,
    "The data of this study cannot be asked now, or took too long to answer this question.",
    "Nothing was spent. Ask again later with the same request_id; the custodian's log says why.",
)

_STATUSES: dict[type[DiscreetError], tuple[int, str]] = {
    RequestTaken: (409, "Use a new request_id; nothing was spent."),
    InvalidParameter: (400, "Correct the parameter; nothing was spent."),
    VoidQuestion: (422, "Ask with another epsilon and a new request_id; nothing was spent."),
    QueryRefused: (422, "GET /studies shows what can be asked; nothing was spent."),
    BudgetExceeded: (403, "Use a smaller epsilon, or ask the custodian for a larger allotment."),
}


def refusal_of(error: Exception) -> Refusal:
    """The refusal for an error before the spend; `FAILURE` for an unexpected error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, SourceUnusable):
        return UNUSABLE
    for kind, (status, advice) in _STATUSES.items():
        if isinstance(error, kind):
            return Refusal(status, str(error), advice)
    return FAILURE
