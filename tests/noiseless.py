"""Releases with the noise switched off, and a record of what noise would have been added to which
integers.

An event is one draw of noise: either integers kᵢ with scales bᵢ, or a choice among cells with
exponents in a unit. What one unit costs between two records is

    Σ |Δkᵢ|/bᵢ                                        for integers with independent discrete Laplace
                                                      noise
    unit·(largest − smallest move of an exponent)     for a choice by permute-and-flip

added up over all events. Everything else in an event (its kind, scales, unit, shape) must not
depend on the data.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from cells import spread_out
from discreet import arrays as _arrays  # noqa: F401 - so that all modules that draw for it are there
from discreet.draw import vector
from discreet.draw.choice import Runs
from discreet.release import mechanism
from discreet.release.statistics import tree


@dataclass(frozen=True)
class Event:
    """One draw: `public` is all that may not depend on the data, `secret` the integers before
    noise.
    """

    public: tuple[Any, ...]
    secret: np.ndarray

    def loss(self, other: "Event") -> Fraction:
        pairs = zip(self.secret.tolist(), other.secret.tolist(), strict=True)
        kind, numbers = self.public[0], [mine - theirs for mine, theirs in pairs]
        if kind == "choice":
            return self.public[1] * (max(numbers) - min(numbers))
        if kind == "even":
            return sum(map(abs, numbers)) / self.public[1]
        return sum(
            (abs(moved) / scale for moved, scale in zip(numbers, self.public[1], strict=True)),
            Fraction(0),
        )


@dataclass
class Record:
    """What happened in one call."""

    events: list[Event] = field(default_factory=list)
    draws: int = 0
    """Random numbers asked for, so that a test can see that no draw went past the record."""
    answer: Any = None

    def public(self) -> list[tuple[Any, ...]]:
        return [event.public for event in self.events]

    def loss(self, other: "Record") -> Fraction:
        assert self.public() == other.public()
        pairs = zip(self.events, other.events, strict=True)
        return sum((one.loss(two) for one, two in pairs), Fraction(0))


@contextmanager
def no_noise() -> Iterator[Record]:
    """Every draw is 0, every choice is the first of the best cells; the record is filled meanwhile."""
    record = Record()
    note = record.events.append
    real_columns, real_textbook = mechanism.noisy_columns, mechanism.textbook

    def draw_one(_scale: Fraction, **_: Any) -> int:
        record.draws += 1
        return 0

    def fill(out: np.ndarray, _scale: Fraction, **_: Any) -> None:
        record.draws += out.size
        out.fill(0)

    def choose(runs: Runs, unit: Fraction, **_: Any) -> np.ndarray:
        exponents = spread_out(runs)
        for row in exponents:
            record.draws += 1
            note(Event(("choice", unit, row.size), row - row.min()))
        return np.argmin(exponents, axis=1)

    def columns(*given: Any, **named: Any) -> Any:
        found = real_columns(*given, **named)
        scales, steps = tuple(one.scale for one in found), tuple(one.step for one in found)
        # an array is one group
        whole = np.array([one.values[0] // one.step for one in found], object)
        note(Event(("sums", scales, steps), whole))
        return found

    def counts(exact: Any, scale: Fraction) -> np.ndarray:
        found = exact.map(np.copy).reveal()
        record.draws += found.size
        note(Event(("even", scale, found.size), found))
        return found

    def nodes(exact: Any, design: tree.Tree) -> Any:
        found = design.noisy(exact.reveal())
        note(Event(("even", design.scale, design), np.concatenate(found)))
        return found

    def textbook(*given: Any, **named: Any) -> Any:
        value, grid = real_textbook(*given, **named)
        note(Event(("sums", (grid.scale,), grid.step), np.array([int(value / grid.step)], object)))
        return value, grid

    replaced = {
        "draw_one": draw_one,
        "fill": fill,
        "choose": choose,
        "noisy_columns": columns,
        "noisy_counts": counts,
        "noisy_tree": nodes,
        "textbook": textbook,
    }
    tree._band.cache_clear()
    try:
        for module, name, _ in _places():
            setattr(module, name, replaced[name])
        yield record
    finally:
        for module, name, real in _places():
            setattr(module, name, real)
        tree._band.cache_clear()  # a band without noise has no width


@cache
def _places() -> list[tuple[ModuleType, str, Callable[..., Any]]]:
    """Where the functions that draw are used, by whatever module has imported them, and the
    functions.
    """
    originals = {name: getattr(mechanism, name) for name in ("choose", "noisy_columns")}
    originals |= {name: getattr(vector, name) for name in ("draw_one", "fill")}
    originals |= {
        name: getattr(mechanism, name) for name in ("noisy_counts", "noisy_tree", "textbook")
    }
    modules = [
        module
        for name, module in sys.modules.items()
        if re.match(r"discreet\.(draw\.vector|(?!draw))", name)
    ]
    return [
        (module, name, real)
        for module in modules
        for name, real in originals.items()
        if vars(module).get(name) is real
    ]


def recorded(call: Callable[[], Any]) -> Record:
    """The record of one call, with its noiseless answer."""
    with no_noise() as record:
        record.answer = call()
    noted = sum(1 if event.public[0] == "choice" else event.secret.size for event in record.events)
    assert record.draws == noted, "a draw went past the record"
    return record
