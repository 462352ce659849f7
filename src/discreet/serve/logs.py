"""The operator's log: one line for each event, without tracebacks and without anybody else's words.

A traceback of a driver may quote a row. So a library's record is told by its logger, its level and the kind of its
error; only uvicorn's words about the socket are kept, since they say why a server did not start.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from discreet.serve.refusal import tell_operator

_KEPT = ("discreet", "uvicorn")


class OneLine(logging.Formatter):
    """A record in one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time and message; of an error, its kind."""
        is_ours = record.name.partition(".")[0] in _KEPT
        words = record.getMessage() if is_ours else f"{record.name} {record.levelname.lower()}"
        kind = record.exc_info[0] if record.exc_info else None
        line = f"{self.formatTime(record)} {words.strip()}{f' ({kind.__name__})' if kind else ''}"
        return line.replace("\r", " ").replace("\n", " ")


def configure(stream: Any = None) -> None:
    """Send everything that this process has to say through one handler."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("discreet").setLevel(logging.INFO)
    logging.getLogger("sqlalchemy").setLevel(logging.CRITICAL)  # the request that failed is told
    logging.captureWarnings(True)
    threading.excepthook = lambda lost: tell_operator(lost.exc_value, "a thread")
    sys.unraisablehook = lambda lost: tell_operator(lost.exc_value, "a clean-up")
