"""What a client is told when it gets no answer: a status, one sentence, and what to do; and what the operator is told.

A refusal comes before any spend and may say why. Whatever fails afterwards gives the same `FAILURE`, to the byte: what
went wrong may depend on the data, so only the operator's log names the kind of the error, and where it was raised.

The log has one line for each event, without tracebacks and without the messages of libraries: the traceback of a driver
may quote a row. A library's record appears as its logger, its level and the kind of its error; only uvicorn's messages
about the socket are kept, since they say why a server did not start.
"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from traceback import extract_tb
from typing import Any

from discreet.errors import BudgetExceeded, DiscreetError, InvalidParameter, QueryRefused
from discreet.ledger.refusals import VoidQuestion

log = logging.getLogger("discreet.serve")
_QUOTED = ("discreet", "uvicorn")


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


def tell_operator(error: BaseException | None, doing: str) -> None:
    """Write an error to the operator's log: where it was and of which kind, and its words only if they are ours."""
    frames = extract_tb(getattr(error, "__traceback__", None))[-1:]
    location = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    words = f": {error}" if isinstance(error, DiscreetError) else ""
    log.error("%s failed with %s%s%s", doing, type(error).__name__, location, words)


class OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.partition(".")[0] in _QUOTED
        words = record.getMessage() if is_ours else f"{record.name} {record.levelname.lower()}"
        kind = record.exc_info[0] if record.exc_info else None
        line = f"{self.formatTime(record)} {words.strip()}{f' ({kind.__name__})' if kind else ''}"
        return line.replace("\r", " ").replace("\n", " ")


def configure_log(stream: Any = None) -> None:
    """Send everything that this process has to say through one handler."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("discreet").setLevel(logging.INFO)
    logging.getLogger("sqlalchemy").setLevel(logging.CRITICAL)  # the request that failed is told
    logging.captureWarnings(True)
    threading.excepthook = lambda lost: tell_operator(lost.exc_value, "a thread")
    sys.unraisablehook = lambda lost: tell_operator(lost.exc_value, "a clean-up")
