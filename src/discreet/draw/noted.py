"""A list of the draws of a release, which a proof of the release is about.

Inside `noting` every public sampler of this package notes its law, its parameter and the number of draws before it
draws, and a choice also its cells with their exponents. The drawn numbers are not noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Noted:
    law: Literal["laplace", "choice", "coin"]
    parameter: Any
    """The scale of discrete Laplace noise, the unit of a choice's exponents, or the probability of a coin."""
    count: int
    runs: Any = field(default=None, compare=False)
    """The cells that are chosen among (`choice.Runs`)."""


_notes: ContextVar[list[Noted] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[list[Noted]]:
    notes: list[Noted] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def in_order(mapping: Callable[..., Any]) -> Callable[..., Any]:
    """How to map a function that draws: by `mapping`, which may use threads, or inside `noting` one by one."""
    return mapping if _notes.get() is None else map


def note(law: Literal["laplace", "choice", "coin"], parameter: Any, count: int = 1, runs: Any = None) -> None:
    """Note draws, inside `noting`."""
    notes = _notes.get()
    if notes is not None:
        notes.append(Noted(law, parameter, count, runs))
