"""A study's question, run again with one unit changed: same flow, same shapes, same charge, integers at most Δ apart.

    replay(study, "SELECT county, avg(age) FROM visits GROUP BY county", "patient 17")

The rows are copied; a neighbour is the copy without the unit, or with other rows in its place: at the ends of the
bounds and beyond them, missing, NaN, in groups that are not declared, more of them than `max_rows`. On every copy the
whole release runs, with a ledger of its own in a temporary folder, and what the mechanism is given before it adds noise
is compared. No draw decides what is asked next, so the noise need not be frozen: if one did, the flows would differ.

It never spends on the study's ledger. It tells whether each check held, and the public Δ: no number that depends on the
data. That it passed or failed does depend on it: it is for the custodian, as the data itself is.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.ask.policy import Policy
from discreet.engines.base import Exact, Request
from discreet.errors import EngineFailed, InvalidParameter
from discreet.formats import shown
from discreet.parameters import quote
from discreet.release.plan import Plan
from discreet.release.study import Study
from discreet.verify.loss import ALWAYS, Part
from discreet.verify.parts import parts_by_share
from discreet.verify.rows import neighbors_of, rows_of

Shares: TypeAlias = list[tuple[int, list[Part]]]
"""For each design of a plan how many statistics it has, and its parts."""

CHECKS = ("errors", "flow", "shape", "charge", "public numbers", "sensitivity")


class Watched(Exact[Any]):
    """An exact answer that notes when it is opened, and what for."""

    __slots__ = ("_kept", "_notes")

    def __init__(self, secret: Any, notes: list[Any]) -> None:
        super().__init__(secret)
        self._kept, self._notes = secret, notes

    def map(self, function: Callable[[Any], Any]) -> Watched:
        """A function of it, watched, too."""
        return Watched(function(self._kept), self._notes)

    def reveal(self, of: Callable[[Any], Any] | None = None) -> Any:
        """The secret, or a function of it, noted as it is opened."""
        self._notes.append(self._kept if of is None else of(self._kept))
        return self._notes[-1]


class _WatchedEngine:
    """An engine whose exact answers are watched."""

    def __init__(self, engine: Any, notes: list[Any]) -> None:
        self._engine, self._notes = engine, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """The answer of the engine, watched."""
        held: list[Any] = []
        self._engine.fetch(request).map(held.append)
        return Watched(held[0], self._notes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Record:
    """One run: what the mechanism opened, and what came out."""

    opened: list[Any] = field(default_factory=list)
    shape: Any = None
    spent: Fraction = Fraction(0)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay:
    """Whether a question kept its promise on neighbours of this data."""

    checks: dict[str, bool]
    sensitivities: tuple[tuple[str, Fraction], ...]
    """For each statistic its Δ, in units of its grid: public."""
    neighbors: str
    epsilon: Fraction

    @property
    def passed(self) -> bool:
        """Whether all checks held."""
        return all(self.checks.values())

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        failed = [name for name, held in self.checks.items() if not held]
        head = f"FAILED: {', '.join(failed)} differ with one unit" if failed else "passed: no unit shows"
        deltas = " · ".join(f"{name} Δ {shown(delta)}" for name, delta in self.sensitivities)
        return f"{head} ({', '.join(CHECKS)}) · ε {shown(self.epsilon)} · {self.neighbors}\n{deltas}"


def replay(study: Study, query: Any, unit: Any, *, epsilon: Any = 1, other: Any = None) -> Replay:
    """Whether the release of a query is what the certificate says, on this data and with this unit changed.

    `query` is SQL, or a plan of this study; `unit` the value of the unit column, or a row's number from 0; `other` is
    rows (an Arrow table, or dicts) to be put in the unit's place, besides those that are tried anyway.
    """
    plan = query if isinstance(query, Plan) else study.sql(query, epsilon=epsilon)
    if plan.study is not study:
        raise InvalidParameter("the plan must be one of this study")
    if study.policy.unit_column is None and (isinstance(unit, bool) or not isinstance(unit, int) or unit < 0):
        raise InvalidParameter(f"unit must be the number of a row, from 0, where each row is a unit, got {quote(unit)}")
    shares = [(len(share.design.names), parts) for share, parts in zip(plan.shares, parts_by_share(plan), strict=True)]
    tables, pairs = neighbors_of(rows_of(study.engine), study.policy, unit, other)
    with tempfile.TemporaryDirectory(prefix="discreet-replay-") as folder:
        records = [_record(plan, table, Path(folder, str(at))) for at, table in enumerate(tables)]
    if all(record.error for record in records):
        raise EngineFailed(f"the question fails on all copies of the data ({records[0].error.partition(':')[0]})")
    return _compared(plan, shares, [(records[one], records[two]) for one, two in pairs])


def _record(plan: Plan, table: Any, folder: Path) -> Record:
    """The release of a plan over other rows, on a ledger of its own."""
    from discreet.engines.duckdb import DuckDB

    folder.mkdir()
    notes: list[Any] = []
    policy = _policy_over(plan, table)
    with Study(policy, ledger=folder / "study.ledger") as study:
        study.__dict__["engine"] = _WatchedEngine(DuckDB(table), notes)
        shape: Any = None
        error = ""
        try:
            answer = replace(plan, study=study).release()
            shape = _shape(json.loads(answer.content))
        except Exception as failure:  # an outcome like any other; only its type and words are compared
            error = f"{type(failure).__name__}: {failure}"
        return Record(opened=[_copied(note) for note in notes], shape=shape, spent=study.spent, error=error)


def _policy_over(plan: Plan, table: Any) -> Policy:
    policy = copy(plan.study.policy)
    for name, value in (("source", table), ("version", "replay"), ("epsilon", max(policy.epsilon, plan.epsilon))):
        object.__setattr__(policy, name, value)
    return policy


def _shape(content: dict[str, Any]) -> Any:
    """All that is shown but the numbers themselves: keys, order, names, types."""
    plain = {name: value for name, value in content.items() if name != "numbers"}
    kinds = {
        name: {end: [type(value).__name__ for value in column] for end, column in ends.items()}
        for name, ends in content["numbers"].items()
    }
    return plain, list(kinds), kinds


def _copied(note: Any) -> Any:
    """Integers as they were when the mechanism saw them."""
    if isinstance(note, np.ndarray):
        return np.array(note)
    return [list(column) for column in note] if isinstance(note, list) else note


def _compared(plan: Plan, shares: Shares, pairs: list[tuple[Record, Record]]) -> Replay:
    held = dict.fromkeys(CHECKS, True)
    for one, two in pairs:
        held["errors"] &= one.error == two.error
        held["flow"] &= [_form(note) for note in one.opened] == [_form(note) for note in two.opened]
        held["shape"] &= one.shape == two.shape
        held["charge"] &= one.spent == two.spent
        if held["errors"] and held["flow"] and not one.error:
            _compare_integers(plan, shares, one.opened, two.opened, held)
    return Replay(
        checks=held,
        sensitivities=tuple((part.statistic, part.sensitivity) for _, parts in shares for part in parts),
        neighbors=plan.study.policy.neighbors,
        epsilon=plan.cost,
    )


def _form(note: Any) -> Any:
    """The form of what was opened, without a number."""
    if isinstance(note, np.ndarray):
        return note.shape
    return [len(column) for column in note] if isinstance(note, list) else type(note).__name__


def _compare_integers(plan: Plan, shares: Shares, one: list[Any], two: list[Any], held: dict[str, bool]) -> None:
    """Public numbers are alike; totals and counts differ by at most Δ, and cost at most what the part may lose."""
    pairs = iter(zip(one, two, strict=True))
    for names, parts in shares:
        if parts[0].law == "choice":
            held["sensitivity"] &= _choices_within(pairs, names, parts, plan.cells)
            continue
        for part in parts:
            if part.law != "public":
                held["sensitivity"] &= _within(part, *next(pairs))
            if part.law in ("public", *ALWAYS):
                mine, theirs = next(pairs)
                held["public numbers"] &= mine == theirs
    held["flow"] &= next(pairs, None) is None


def _within(part: Part, mine: list[list[int]], theirs: list[list[int]]) -> bool:
    moves = [[abs(a - b) for a, b in zip(*columns, strict=True)] for columns in zip(mine, theirs, strict=True)]
    if sum(map(sum, moves)) > part.sensitivity:
        return False
    rounded = [
        sum(abs(_steps(a, step) - _steps(b, step)) for a, b in zip(first, second, strict=True)) / scale
        for first, second, step, scale in zip(mine, theirs, part.steps, part.scales, strict=True)
    ]
    return sum(rounded, Fraction()) <= min(part.loss, part.epsilon)


def _steps(total: int, step: Fraction) -> int:
    return math.floor(Fraction(total) / step + Fraction(1, 2))


def _choices_within(pairs: Iterator[tuple[Any, Any]], names: int, parts: list[Part], cells: int) -> bool:
    """For each choice the counts of all groups move by one for each row that comes or goes."""
    most = parts[0].rows * (2 if parts[0].replaced else 1)
    kinds = len(parts) // names
    within = True
    for _ in range(names):
        moved = [0] * kinds
        for _ in range(cells):
            for kind in range(kinds):
                mine, theirs = next(pairs)
                moved[kind] += int(np.abs(mine - theirs).sum())
        within &= max(moved) <= most
    return within
