"""Whether a server can answer, and how it stops what it is answering."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from discreet.release.study import Study
from discreet.serve.operation.log import tell_operator

_HOLDS = 1.0
"""Seconds for which an answer of `Readiness` holds, however often it is asked: anybody may ask."""


class Readiness:
    """Whether every ledger, and whatever else is looked at, can be read; the operator is told of what cannot."""

    def __init__(self, studies: Mapping[str, Study], **others: Callable[[], Any]) -> None:
        ledgers = {f"the ledger of study {name!r}": _reader(study) for name, study in studies.items()}
        self._looks: dict[str, Callable[[], Any]] = {**ledgers, **others}
        self._until, self._is_ready, self._looking = 0.0, False, threading.Lock()

    def __call__(self) -> bool:
        if time.monotonic() < self._until:
            return self._is_ready
        if not self._looking.acquire(blocking=False):  # what does not answer shall hold one thread, not all
            return False
        try:
            self._until = time.monotonic() + _HOLDS
            self._is_ready = all(_can(what, look) for what, look in self._looks.items())
        finally:
            self._looking.release()
        return self._is_ready


def _reader(study: Study) -> Callable[[], Any]:
    return lambda: study.ledger.remaining(study.name)


def _can(what: str, look: Callable[[], Any]) -> bool:
    try:
        look()
    except Exception as error:
        tell_operator(error, what)
        return False
    return True


def stop(studies: Mapping[str, Study]) -> None:
    """Stop the statements that run: what they were to answer is spent, and free when it is asked again."""
    for study in studies.values():
        getattr(study.engine, "interrupt", lambda: None)()
