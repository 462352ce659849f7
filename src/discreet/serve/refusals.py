"""What a client is told when it gets no answer: a status, one sentence, and what to do.

A refusal comes before any spend and may say why. Whatever fails afterwards gives the same `FAILURE`, to the byte: what
went wrong may depend on the data, so only the operator's log names the kind of the error, and where it was raised.
"""

from __future__ import annotations

from discreet.errors import BudgetExceeded, DiscreetError, InvalidParameter, QueryRefused
from discreet.ledger.refusals import RequestTaken, VoidQuestion


class Refusal(DiscreetError):
    """No answer, with its status; nothing was spent."""

    def __init__(self, status: int, error: str, advice: str) -> None:
        super().__init__(error)
        self.status, self.advice = status, advice

    @property
    def body(self) -> dict[str, str]:
        return {"error": str(self), "advice": self.advice}


FAILURE = Refusal(
    503,
    "The server could not answer.",
    "Ask again with the same request_id, which costs nothing more; if that fails too, tell the custodian.",
)

_STATUSES: dict[type[DiscreetError], tuple[int, str]] = {
    RequestTaken: (409, "Use a new request_id; nothing was spent."),
    InvalidParameter: (400, "Correct the parameter; nothing was spent."),
    VoidQuestion: (422, "Ask at another epsilon, under a new request_id; nothing was spent."),
    QueryRefused: (422, "GET /studies says what can be asked about; nothing was spent."),
    BudgetExceeded: (403, "Ask for less, or ask the custodian for a larger allotment."),
}


def refusal_of(error: Exception) -> Refusal:
    """What a client is told of an error from before the spend; of anything unexpected, nothing."""
    if isinstance(error, Refusal):
        return error
    for kind, (status, advice) in _STATUSES.items():
        if isinstance(error, kind):
            return Refusal(status, str(error), advice)
    return FAILURE
