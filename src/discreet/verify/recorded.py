"""The draws of a release, recorded while the release code runs on integers of this package, without
an account.

A draw has its *terms*, as `release.mechanism` names them (steps, rates, shapes), and the samplers'
own notes of their arguments (`draw.noted`). Scales and the costs of cells are read from the notes
alone: they are what is really drawn. What a choice returns is decided here, not drawn, as the terms
of later choices follow from it: points from a bracket. A call on a ledger keeps its draws on a
tape, in other types: both ways are run, and must draw the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.draw.noted import Noted, noting
from discreet.engines.base import Exact
from discreet.errors import InvalidParameter
from discreet.release.tape import Tape, taping

Release = TypeVar("Release")


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of the mechanism: its kind, its terms, and the arguments of the samplers."""

    kind: str
    terms: tuple[Any, ...]
    notes: tuple[Noted, ...]

    def scales(self, columns: int) -> tuple[tuple[Fraction, ...], int]:
        """The noise scale of each of so many columns, and how many numbers of each column have
        noise.
        """
        size = sum(note.count for note in self.notes) // columns
        return self.scales_of([size] * columns), size

    def scales_of(self, sizes: Sequence[int]) -> tuple[Fraction, ...]:
        """The smallest noise scale of each column; `sizes` has the lengths of the columns."""
        scales = [note.parameter for note in self.notes]
        ends = [*accumulate(note.count for note in self.notes)]
        edges = pairwise([0, *accumulate(sizes)])
        columns = [
            scales[bisect_right(ends, start) : bisect_left(ends, end) + 1] for start, end in edges
        ]
        laws = {note.law for note in self.notes}
        if (
            laws != {"laplace"}
            or ends[-1] != sum(sizes)
            or not all(sizes)
            or not all(map(all, columns))
        ):
            raise InvalidParameter(f"a draw of {self.kind} must have noise on each of its numbers")
        return tuple(map(min, columns))

    def costs(self, groups: int, group: int) -> tuple[Fraction, NDArray[np.int64]]:
        """The unit of a choice in so many groups, and the exponents of all cells of one group."""
        if sum(note.count for note in self.notes) != groups:
            raise _no_choice()
        ends = [*accumulate(note.count for note in self.notes)]
        note = self.notes[bisect_right(ends, group)]
        runs, row = note.runs, group - ends[bisect_right(ends, group)] + note.count
        part = slice(*np.append(runs.rows, runs.sizes.size)[row : row + 2])
        sizes, index = runs.sizes[part], np.arange(runs.sizes.size)[part]
        numbers = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        cells = runs.cell(np.repeat(index, sizes), numbers)
        exponents = np.empty(numbers.size, np.int64)
        if not np.array_equal(np.bincount(cells, minlength=cells.size), np.ones(cells.size)):
            raise InvalidParameter("a choice must have each cell once")
        exponents[cells] = np.repeat(runs.exponents[part], sizes)
        return note.parameter, exponents


class Watched(Exact[Any]):
    """Integers that are noted when they are opened."""

    __slots__ = ("_notes", "_value")

    def __init__(self, value: Any, notes: list[Any]) -> None:
        super().__init__(value)
        self._value, self._notes = value, notes

    def map(self, function: Callable[[Any], Any]) -> Watched:
        return Watched(function(self._value), self._notes)

    def reveal(self, of: Callable[[Any], Any] | None = None) -> Any:
        self._notes.append(self._value if of is None else of(self._value))
        return self._notes[-1]


Reply = Callable[[Fraction, int], int]
"""The cell that a choice returns, by the offset of its rank and the number of cells."""


def apart(offset: Fraction, cells: int) -> int:
    """A cell in the middle, or a quarter of all cells beside it: the ends of a bracket are half of
    the cells apart.
    """
    return cells // 2 + ((offset > 0) - (offset < 0)) * (cells // 4)


def _no_choice() -> InvalidParameter:
    return InvalidParameter("a draw of a choice must be one exact choice in every group")


class Recorder(Tape):
    """A tape that records the arguments of draws, not their results."""

    def __init__(self, notes: list[Noted], *, on_ledger: bool, reply: Reply) -> None:
        super().__init__()
        self.kept = on_ledger
        self.draws: list[Draw] = []
        self._notes, self._reply = notes, reply

    def next(self, draw: Callable[[], Any], terms: tuple[object, ...]) -> Any:
        """Make the draw, and record it with the samplers' notes."""
        self.loose()
        drawn = draw()
        if terms[0] == "choice":
            if {note.law for note in self._notes} != {"choice"}:
                raise _no_choice()
            drawn = [
                self._reply(terms[2], int(note.runs.sizes.sum()) // note.count)  # type: ignore[arg-type]
                for note in self._notes
                for _ in range(note.count)
            ]
        if terms[0] != "grid":  # a grid draws nothing
            self._keep(str(terms[0]), terms[1:])
        return drawn

    def loose(self) -> None:
        """Record the notes of draws outside the mechanism as a draw without terms."""
        if self._notes:
            self._keep("loose", ())

    def _keep(self, kind: str, terms: tuple[Any, ...]) -> None:
        self.draws.append(Draw(kind, terms, tuple(self._notes)))
        self._notes.clear()


@contextmanager
def recording(*, on_ledger: bool = False, reply: Reply = apart) -> Iterator[list[Draw]]:
    """The draws of the releases that are made in the block; with `on_ledger`, as if a ledger kept
    them.
    """
    with noting() as notes:
        recorder = Recorder(notes, on_ledger=on_ledger, reply=reply)
        with taping(recorder):
            yield recorder.draws
        recorder.loose()


def recorded(work: Callable[[], Release]) -> tuple[Release, list[Draw]]:
    """The release of a call, and its draws, which must be the same with and without a ledger."""
    with recording(on_ledger=True) as on_tape:
        work()
    with recording() as draws:
        release = work()
    if draws != on_tape:
        raise InvalidParameter("a release must draw the same with a ledger and without one")
    return release, draws
