"""Whether a server can answer, and how it interrupts its statements."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from discreet.release.study import Study
from discreet.serve.operation.log import tell_operator

_HOLDS = 1.0  # seconds for which a result of `Readiness` is reused, since anybody may ask


class Readiness:
    """Whether every ledger and the other files can be read; failures go to the operator's log."""

    def __init__(self, studies: Mapping[str, Study], **others: Callable[[], Any]) -> None:
        ledgers = {f"the ledger of study {name!r}": _reader(study) for name, study in studies.items()}
        self._checks: dict[str, Callable[[], Any]] = {**ledgers, **others}
        self._until, self._is_ready, self._checking = 0.0, False, threading.Lock()

    def __call__(self) -> bool:
        if time.monotonic() < self._until:
            return self._is_ready
        if not self._checking.acquire(blocking=False):  # a check that hangs holds one thread, not all
            return False
        try:
            self._until = time.monotonic() + _HOLDS
            self._is_ready = all(_passes(name, check) for name, check in self._checks.items())
        finally:
            self._checking.release()
        return self._is_ready


def _reader(study: Study) -> Callable[[], Any]:
    return lambda: study.ledger.remaining(study.name)


def _passes(name: str, check: Callable[[], Any]) -> bool:
    try:
        check()
    except Exception as error:
        tell_operator(error, name)
        return False
    return True


def stop(studies: Mapping[str, Study]) -> None:
    """Interrupt running statements: their ε is spent, and asking again is free."""
    for study in studies.values():
        getattr(study.engine, "interrupt", lambda: None)()
