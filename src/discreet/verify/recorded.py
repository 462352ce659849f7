"""The draws of a release, recorded while the release code runs on zeros and without an account.

A draw has its *terms*, as `release.mechanism` names them (steps, rates, shapes), and the samplers' own notes of their
arguments (`draw.noted`). Scales are read from the notes alone: they are what is really drawn.
A call on a ledger keeps its draws on a tape, in other types: both ways are run, and must draw the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import Any, TypeVar

from discreet.draw.choice import common_unit
from discreet.draw.noted import Noted, noting
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
        """The noise scale of each of so many columns, and how many numbers of each column have noise."""
        size = sum(note.count for note in self.notes) // columns
        return self.scales_of([size] * columns), size

    def scales_of(self, sizes: Sequence[int]) -> tuple[Fraction, ...]:
        """The smallest noise scale of each column; `sizes` has the lengths of the columns."""
        scales, ends = [note.parameter for note in self.notes], [*accumulate(note.count for note in self.notes)]
        edges = pairwise([0, *accumulate(sizes)])
        columns = [scales[bisect_right(ends, start) : bisect_left(ends, end) + 1] for start, end in edges]
        laws = {note.law for note in self.notes}
        if laws != {"laplace"} or ends[-1] != sum(sizes) or not all(sizes) or not all(map(all, columns)):
            raise InvalidParameter(f"a draw of {self.kind} must have noise on each of its numbers")
        return tuple(map(min, columns))

    def rates(self, groups: int) -> tuple[Fraction, Fraction, Fraction]:
        """The share of a choice in so many groups, and its rates per rank above and below the share."""
        share, offset, over, under, *_ = self.terms
        _, above, below = common_unit(over, under)
        if {note.law for note in self.notes} != {"choice"} or sum(note.count for note in self.notes) != groups:
            raise InvalidParameter("a draw of a choice must be one exact choice in every group")
        rank = max(note.parameter for note in self.notes) * lcm(share.denominator, offset.denominator)
        return share, rank * above, rank * below


class Recorder(Tape):
    """A tape that records the arguments of draws, not their results."""

    def __init__(self, notes: list[Noted], *, on_ledger: bool) -> None:
        super().__init__()
        self.kept = on_ledger
        self.draws: list[Draw] = []
        self._notes = notes

    def next(self, draw: Callable[[], Any], terms: tuple[object, ...]) -> Any:
        """Make the draw, and record it with the samplers' notes."""
        self.loose()
        drawn = draw()
        if terms[0] == "choice":
            terms = terms[:-1]  # the points follow from the bracket, which is drawn anew
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
def recording(*, on_ledger: bool = False) -> Iterator[list[Draw]]:
    """The draws of the releases that are made in the block; with `on_ledger`, as if a ledger kept them."""
    with noting() as notes:
        recorder = Recorder(notes, on_ledger=on_ledger)
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
