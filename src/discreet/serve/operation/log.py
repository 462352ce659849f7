"""The operator's log: one line for each event, as text or JSON, and nothing that depends on a row.

A request is logged with its name, method, route and status: the route and not the address, in which
a client may have put a token or a key. The duration is not logged, since the time of a statement
depends on the data. There are no tracebacks and no messages of libraries, since a driver may quote
a row. A library's record appears as its logger, level and kind of error; only uvicorn's messages
about the socket are kept, since they say why a server did not start.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, TypeAlias

from discreet.errors import DiscreetError, errno_code

log = logging.getLogger("discreet.serve")
_QUOTED = ("discreet", "uvicorn")

LogFormat: TypeAlias = Literal["text", "json"]


def tell(event: str, sentence: str, **fields: Any) -> None:
    """Write an event to the operator's log: a sentence in text, its fields in JSON."""
    shown = fields or ({} if sentence == event else {"message": sentence})
    log.info("%s", sentence, extra={"event": event, "fields": shown})


def tell_operator(error: BaseException | None, doing: str) -> None:
    """Log an error for the operator: place and kind, and the message only if the error is ours."""
    frames = extract_tb(getattr(error, "__traceback__", None))[-1:]
    line = "".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    words = str(error) if isinstance(error, DiscreetError) else ""
    code = error.code if isinstance(error, DiscreetError) else _code(error)
    fields = {
        "doing": doing,
        "error": type(error).__name__,
        "place": line,
        "words": words,
        "code": code,
    }
    kind = f"{fields['error']}{f' ({code})' if code else ''}"
    sentence = (
        f"{doing} failed with {kind}{f' at {line}' if line else ''}{f': {words}' if words else ''}"
    )
    log.error("%s", sentence, extra={"event": "failure", "fields": fields})


def _code(error: BaseException | None) -> str:
    """The number of an error of the operating system."""
    return errno_code(error.errno) if isinstance(error, OSError) and error.errno else ""


class OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0] if record.exc_info else None
        line = f"{self.formatTime(record)} {_words(record)}{f' ({kind.__name__})' if kind else ''}"
        return line.replace("\r", " ").replace("\n", " ")


class JsonLine(logging.Formatter):
    """A JSON object for each record, in one line: time, level, event and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0] if record.exc_info else None
        fields: dict[str, Any] = getattr(record, "fields", {"message": _words(record)})
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            **{name: value for name, value in fields.items() if value != ""},
            **({} if kind is None else {"error": kind.__name__}),
        }
        return json.dumps(content, ensure_ascii=True, default=str)


def _words(record: logging.LogRecord) -> str:
    is_ours = record.name.partition(".")[0] in _QUOTED
    return (record.getMessage() if is_ours else f"{record.name} {record.levelname.lower()}").strip()


def configure_log(stream: Any = None, form: LogFormat = "text") -> None:
    """Send all logs of this process through one handler."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLine() if form == "json" else OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("discreet").setLevel(logging.INFO)
    # the failed request is logged anyway
    logging.getLogger("sqlalchemy").setLevel(logging.CRITICAL)
    logging.captureWarnings(True)
    threading.excepthook = lambda lost: tell_operator(lost.exc_value, "a thread")
    sys.unraisablehook = lambda lost: tell_operator(lost.exc_value, "a clean-up")
