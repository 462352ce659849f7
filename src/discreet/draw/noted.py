"""A list of the draws that are made, as they are asked for: what a proof of a release is about.

Inside `noting` every public sampler of this package writes down its law, its parameter and how many draws it makes,
before it makes them. Nothing that was drawn is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Noted:
    law: Literal["laplace", "choice", "coin"]
    parameter: Any
    """The scale of discrete Laplace noise; the unit of a choice's exponents; the chance of a coin."""
    count: int


_notes: ContextVar[list[Noted] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[list[Noted]]:
    notes: list[Noted] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note(law: Literal["laplace", "choice", "coin"], parameter: Any, count: int = 1) -> None:
    """Write draws down, if somebody wants to know."""
    notes = _notes.get()
    if notes is not None:
        notes.append(Noted(law, parameter, count))
