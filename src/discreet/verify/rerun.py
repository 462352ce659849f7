"""A study's question, run again with one unit changed: same flow, same shapes, same charge, integers at most Δ apart.

    replay(study, "SELECT county, avg(age) FROM visits GROUP BY county", "patient 17")

The rows are copied; a neighbour is the copy without the unit, or with other rows in its place, which come from the
policy alone: at the lower bounds in the first declared group, beyond the upper bounds in the last (two rows more than
may count), missing everywhere, and out of all bounds in a group that is not declared. On every copy the whole release
runs, with a ledger of its own in a temporary folder, and what the mechanism is given before it adds noise is compared.
No draw decides what is asked next, so the noise need not be frozen: if one did, the flows would differ.

It never spends on the study's ledger. It reports whether each check held, and the public Δ: no number that depends on
the data. But whether it passed depends on the data, so it is for the custodian only.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from itertools import combinations, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.ask.declared import Declared
from discreet.ask.policy import Policy
from discreet.engines.base import Exact, Request
from discreet.errors import EngineFailed, InvalidParameter
from discreet.formats import shown
from discreet.parameters import quote
from discreet.release.plan import Plan
from discreet.release.study import Study
from discreet.verify.loss import ALWAYS, Part
from discreet.verify.parts import parts_by_share

Shares: TypeAlias = list[list[Part]]
"""For each design of a plan how many statistics it has, and its parts."""

CHECKS = ("errors", "flow", "shape", "charge", "public numbers", "sensitivity")


class Watched(Exact[Any]):
    __slots__ = ("_notes", "_value")

    def __init__(self, value: Any, notes: list[Any]) -> None:
        super().__init__(value)
        self._value, self._notes = value, notes

    def map(self, function: Callable[[Any], Any]) -> Watched:
        return Watched(function(self._value), self._notes)

    def reveal(self, of: Callable[[Any], Any] | None = None) -> Any:
        self._notes.append(self._value if of is None else of(self._value))
        return self._notes[-1]


class _WatchedEngine:
    def __init__(self, engine: Any, notes: list[Any]) -> None:
        self._engine, self._notes = engine, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        held: list[Any] = []
        self._engine.fetch(request).map(held.append)
        return Watched(held[0], self._notes)


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One run: what the mechanism opened, and what came out; no `repr` shows it."""

    opened: list[Any]
    shape: Any
    spent: Fraction
    error: str


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
    shares = parts_by_share(plan)
    tables, pairs = _neighbors_of(_rows_of(study.engine), study.policy, unit, other)
    with tempfile.TemporaryDirectory(prefix="discreet-replay-") as folder:
        records = [_record(plan, table, Path(folder, str(number))) for number, table in enumerate(tables)]
    if all(record.error for record in records):
        raise EngineFailed(f"the question fails on all copies of the data ({records[0].error.partition(':')[0]})")
    return _compare(plan, shares, [(records[first], records[second]) for first, second in pairs])


def _record(plan: Plan, table: Any, folder: Path) -> Record:
    """The release of a plan over other rows, on a ledger of its own."""
    from discreet.engines.duckdb import DuckDB

    folder.mkdir()
    notes: list[Any] = []
    policy = copy(plan.study.policy)
    for name, value in (("source", table), ("version", "replay"), ("epsilon", max(policy.epsilon, plan.epsilon))):
        object.__setattr__(policy, name, value)
    with Study(policy, ledger=folder / "study.ledger") as study:
        study.__dict__["engine"] = _WatchedEngine(DuckDB(table), notes)
        shape, error = None, ""
        try:
            shape = _shape(replace(plan, study=study).release().full_record)
        except Exception as failure:  # an outcome like any other; only its type and words are compared
            error = f"{type(failure).__name__}: {failure}"
        return Record(opened=[_copy(note) for note in notes], shape=shape, spent=study.spent, error=error)


def _shape(content: dict[str, Any]) -> Any:
    """All that is shown but the numbers themselves: keys, order, names, types."""
    numbers = content.pop("numbers")
    kinds = {
        name: {end: [type(value).__name__ for value in column] for end, column in ends.items()}
        for name, ends in numbers.items()
    }
    return content, list(kinds), kinds


def _copy(note: Any) -> Any:
    """Integers as they were when the mechanism saw them."""
    if isinstance(note, np.ndarray):
        return np.array(note)
    return [list(column) for column in note] if isinstance(note, list) else note


def _compare(plan: Plan, shares: Shares, pairs: list[tuple[Record, Record]]) -> Replay:
    held = dict.fromkeys(CHECKS, True)
    for first, second in pairs:
        held["errors"] &= first.error == second.error
        held["flow"] &= [_form(note) for note in first.opened] == [_form(note) for note in second.opened]
        held["shape"] &= first.shape == second.shape
        held["charge"] &= first.spent == second.spent
        if held["errors"] and held["flow"] and not first.error:
            _compare_integers(shares, first.opened, second.opened, held)
    return Replay(
        checks=held,
        sensitivities=tuple((part.statistic, part.sensitivity) for parts in shares for part in parts),
        neighbors=plan.study.policy.neighbors,
        epsilon=plan.cost,
    )


def _form(note: Any) -> Any:
    """The shape of what was opened, without its numbers."""
    if isinstance(note, np.ndarray):
        return note.shape
    return [len(column) for column in note] if isinstance(note, list) else type(note).__name__


def _compare_integers(shares: Shares, first: list[Any], second: list[Any], held: dict[str, bool]) -> None:
    """Public numbers are alike; totals and counts differ by at most Δ, and cost at most what the part may lose."""
    pairs = iter(zip(first, second, strict=True))
    for parts in shares:
        if parts[0].law == "choice":
            held["sensitivity"] &= _choices_within(pairs, parts)
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

    def steps(total: int, step: Fraction) -> int:
        return math.floor(Fraction(total) / step + Fraction(1, 2))

    rounded = [
        sum(abs(steps(a, step) - steps(b, step)) for a, b in zip(first, second, strict=True)) / scale
        for first, second, step, scale in zip(mine, theirs, part.steps, part.scales, strict=True)
    ]
    return sum(rounded, Fraction()) <= min(part.loss, part.epsilon)


def _choices_within(pairs: Iterator[tuple[Any, Any]], parts: list[Part]) -> bool:
    """For each choice the counts of all groups move by one for each row that comes or goes."""
    most = parts[0].rows * (2 if parts[0].replaced else 1)
    moved = [int(np.abs(np.subtract(mine, theirs)).sum()) for mine, theirs in islice(pairs, len(parts))]
    return max(moved) <= most


def _rows_of(engine: Any) -> Any:
    """All rows of an engine beside the caller, as an Arrow table; enumerations as texts."""
    relation = getattr(engine, "_relation", None)
    if relation is None:
        raise InvalidParameter("a replay copies the rows: it needs a study whose data DuckDB reads")
    with suppress(Exception):  # the words of the engine may quote a row: no `__context__` keeps them
        table = relation().to_arrow_table()
        plain = [pa.string() if pa.types.is_dictionary(column.type) else column.type for column in table.schema]
        return table.cast(pa.schema(list(zip(table.schema.names, plain, strict=True))))
    raise EngineFailed("the rows could not be copied for a replay; nothing was spent")


def _neighbors_of(table: Any, policy: Policy, unit: Any, other: Any) -> tuple[list[Any], list[tuple[int, int]]]:
    """Tables, and which of them are neighbours of one another."""
    without, is_present = _without(table, policy, unit)
    replacements = _replacements(table, policy) + ([] if other is None else [_given_rows(other, table)])
    others = [pa.concat_tables([without, _unit_rows(table, policy, unit, rows)]) for rows in replacements]
    if policy.neighbors == "add-remove":
        tables = [without, table, *others]
        return tables, [(0, index) for index in range(1, len(tables))]
    tables = [table, *others] if is_present else others
    return tables, list(combinations(range(len(tables)), 2))


def _without(table: Any, policy: Policy, unit: Any) -> tuple[Any, bool]:
    """The table without the unit, and whether it was there."""
    if policy.unit_column is None:
        return pa.concat_tables([table.slice(0, unit), table.slice(unit + 1)]), unit < table.num_rows
    column = table[policy.unit_column]
    try:
        same = pc.fill_null(pc.equal(column, pa.scalar(unit, column.type)), False)
    except (pa.ArrowException, TypeError):
        raise InvalidParameter("unit must be a value of the type that the unit column has") from None
    left = table.filter(pc.invert(same))
    return left, left.num_rows < table.num_rows


def _unit_rows(table: Any, policy: Policy, unit: Any, rows: list[dict[str, Any]]) -> Any:
    """Rows of the unit, in the types of the table; what does not fit into a type is missing."""

    def fitting(value: Any, kind: Any) -> Any:
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
        return value

    columns = {}
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        values = [unit if name == policy.unit_column else fitting(row.get(name), kind) for row in rows]
        columns[name] = pa.array(values, kind)
    return pa.table(columns, table.schema)


def _given_rows(other: Any, table: Any) -> list[dict[str, Any]]:
    rows = other.to_pylist() if hasattr(other, "to_pylist") else [other] if isinstance(other, dict) else other
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidParameter("other must be an Arrow table, a dict, or a list of dicts with the columns of the data")
    if unknown := {name for row in rows for name in row} - set(table.schema.names):
        raise InvalidParameter(f"other has a column that the data has not: {sorted(unknown)[0]}")
    return rows


def _replacements(table: Any, policy: Policy) -> list[list[dict[str, Any]]]:
    """Rows to replace those of the unit, made of what is declared."""
    many = 1 if policy.unit_column is None else (policy.max_rows or 1) + 2
    kinds: tuple[tuple[Callable[[Declared, Any], Any], int], ...] = (
        (lambda declared, kind: _value(declared, kind, 0), 1),
        (lambda declared, kind: _value(declared, kind, -1), many),
        (lambda _, __: None, 1),
        (lambda _, kind: _wild(kind), 1),
    )
    return [
        [{column.name: make(policy.columns.get(column.name, Declared()), column.type) for column in table.schema}]
        * times
        for make, times in kinds
    ]


def _value(declared: Declared, kind: Any, end: int) -> Any:
    """The first key or the lower bound; the last key or one beyond the upper bound; in the type of the column."""
    if declared.keys:
        value = declared.keys[end]
    elif declared.bounds is not None:
        bound = declared.bounds[end]
        value = bound + 1 if end and isinstance(bound, Fraction) else bound
    else:
        return bool(end) if pa.types.is_boolean(kind) else None
    text = _is_text(kind)  # which the policy reads as numbers or dates
    if isinstance(value, Fraction):
        number = float(value) if text or pa.types.is_floating(kind) else math.floor(value)
        return repr(number) if text else number
    return value.isoformat(" ") if text and isinstance(value, datetime) else value


def _wild(kind: Any) -> Any:
    """A value out of all bounds and keys."""
    if pa.types.is_floating(kind):
        return math.nan
    if pa.types.is_integer(kind):
        return 2 ** (kind.bit_width - 1) - 1
    return "nowhere at all" if _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
