"""A list of the draws of a release, which a proof of the release is about.

Inside `noting` every public sampler of this package notes its law and its parameter, and what it
has drawn; a choice also its cells with their exponents, and a choice or a coin the random words
that it took. This is the one place where a proof meets noise. A proof only listens: nothing here
can replace a draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from discreet.draw.entropy import Entropy


@dataclass(frozen=True, slots=True)
class Noted:
    law: Literal["laplace", "choice", "coin"]
    parameter: Any
    """The scale of discrete Laplace noise, the unit of a choice's exponents, or the probability of
    a coin.
    """
    count: int
    drawn: NDArray[Any] = field(compare=False)
    """The noise, the chosen cells, or which coins fell heads; a copy, before the caller has it."""
    runs: Any = field(default=None, compare=False)
    """The cells that are chosen among (`choice.Runs`)."""
    words: NDArray[np.uint64] | None = field(default=None, compare=False)
    """The random words of a choice or of coins, in the order in which they were taken."""


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
    """How to map a function that draws: by `mapping`, which may use threads, or inside `noting` one
    by one.
    """
    return mapping if _notes.get() is None else map


class Heard:
    """Entropy whose words are kept."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self.words: list[NDArray[np.uint64]] = []

    def fill(self, words: NDArray[np.int64]) -> None:
        self._entropy.fill(words)
        self.words.append(words.view(np.uint64).copy())

    def more(self) -> int:
        word = self._entropy.more()
        self.words.append(np.array([word], np.uint64))
        return word


def heard(entropy: Entropy) -> Entropy:
    """The entropy, whose words are kept inside `noting`."""
    return entropy if _notes.get() is None else Heard(entropy)


def note(
    law: Literal["laplace", "choice", "coin"],
    parameter: Any,
    drawn: Any,
    runs: Any = None,
    entropy: Entropy | None = None,
) -> None:
    """Note what was drawn, inside `noting`."""
    notes = _notes.get()
    if notes is not None:
        results = np.array([drawn], object) if isinstance(drawn, int) else drawn.copy()
        words = (
            np.concatenate(entropy.words) if isinstance(entropy, Heard) and entropy.words else None
        )
        notes.append(Noted(law, parameter, results.size, results, runs, words))
