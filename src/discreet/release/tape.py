"""The draws of a release, stored so that it can be shown again without new draws.

A release is a function of public parameters and of its draws. Inside `taping`, every draw of
`release.mechanism` is recorded in JSON's types with its *terms*: its scales, steps and rates. From
an earlier tape the draws are read instead, so the same release is returned and the data is not read
again. A draw whose terms differ from those on the tape is refused: numbers are only read on the
grid on which they were drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from discreet.calibrate.grid import ValueGrid
from discreet.errors import QueryRefused
from discreet.outside import read_json


class Tape:
    """Draws in their order, each with its terms."""

    def __init__(self, written: bytes | None = None) -> None:
        self.kept = True
        """Whether draws are recorded, and so must have JSON's types."""
        self._old: Iterator[Any] | None = None if written is None else iter(_entries(written))
        self._new: list[Any] = []

    def next(self, draw: Callable[[], Any], terms: tuple[object, ...]) -> Any:
        """The next draw: a new draw, which is recorded, or the recorded draw, if it has these
        terms.
        """
        arguments = [str(term) for term in terms]
        if self._old is None:
            self._new.append([arguments, draw()])
            return self._new[-1][1]
        match next(self._old, None):
            case [known, drawn] if known == arguments:
                return drawn
        raise _mismatch()

    def end(self) -> None:
        """Refuse a tape with draws that were not read."""
        if self._old is not None and next(self._old, None) is not None:
            raise _mismatch()

    def written(self) -> bytes:
        """The draws as bytes for the ledger."""
        return json.dumps(self._new, separators=(",", ":"), allow_nan=False).encode()


def _entries(written: bytes) -> list[Any]:
    try:
        entries = read_json(written)
    except ValueError:
        entries = None
    if not isinstance(entries, list):  # such as the record of a file
        raise _mismatch()
    return entries


def _mismatch() -> QueryRefused:
    return QueryRefused(
        "the answer recorded for this question was drawn on another grid or with other noise, so it"
        " cannot be shown; ask with another data_version or request_id, which is a new charge"
    )


_current: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def taping(tape: Tape) -> Iterator[None]:
    """Record every draw on the tape, or read all draws from it."""
    token = _current.set(tape)
    try:
        yield
        tape.end()
    finally:
        _current.reset(token)


def drawn(draw: Callable[[], Any], *terms: object) -> Any:
    """A draw with these terms, via the tape if there is one; `draw` returns JSON's types."""
    tape = _current.get()
    return draw() if tape is None else tape.next(draw, terms)


def record_grid(grid: ValueGrid) -> ValueGrid:
    """The grid of the next draws, recorded with them."""
    drawn(lambda: None, "grid", grid)
    return grid


def on_tape() -> bool:
    """Whether draws are recorded on a tape."""
    tape = _current.get()
    return tape is not None and tape.kept
