"""What was drawn, kept so that a release can be shown again without drawing anew.

A release is a function of public parameters and of what was drawn. Inside `taping` every draw of `release.mechanism` is
written down in JSON's types, or, on a tape that was written before, read from it: the same release comes back, and its
data is not looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Tape:
    """Draws in their order."""

    def __init__(self, written: bytes | None = None) -> None:
        self._old: Iterator[Any] | None = None if written is None else iter(json.loads(written))
        self._new: list[Any] = []

    def next(self, draw: Callable[[], Any]) -> Any:
        """The next draw: a new one, written down, or the old one."""
        if self._old is not None:
            return next(self._old)
        self._new.append(draw())
        return self._new[-1]

    def written(self) -> bytes:
        """The draws as bytes for the ledger."""
        return json.dumps(self._new, separators=(",", ":"), allow_nan=False).encode()


_current: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def taping(tape: Tape) -> Iterator[None]:
    """Write every draw to the tape, or read it from there."""
    token = _current.set(tape)
    try:
        yield
    finally:
        _current.reset(token)


def drawn(draw: Callable[[], Any]) -> Any:
    """A draw, by way of the tape if there is one; `draw` gives JSON's types."""
    tape = _current.get()
    return draw() if tape is None else tape.next(draw)


def on_tape() -> bool:
    """Whether there is a tape."""
    return _current.get() is not None
