"""A question run again with one unit changed: same flow, shapes and charge, integers within Δ.

    replay(study, "SELECT county, avg(age) FROM visits GROUP BY county", "patient 17")

The rows are copied. A neighbour is the copy without the unit, or with other rows in its place,
which come from the policy alone: at the lower bounds in the first declared group, beyond the upper
bounds in the last (two rows more than may count), missing everywhere, and out of all bounds in an
undeclared group. The whole release runs on every copy, with its own ledger in a temporary folder,
and the inputs of the mechanism before it adds noise are compared. No draw decides what is asked
next, so the noise need not be frozen: if a draw did decide, the flows would differ.

A replay never spends on the study's ledger. It reports whether each check held, and the public Δ,
but no number that depends on the data. Whether it passed depends on the data, so the result is for
the custodian only.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
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
from discreet.verify.recorded import Watched

Shares: TypeAlias = list[list[Part]]  # the parts of each design of a plan

CHECKS = ("errors", "flow", "shape", "charge", "public numbers", "sensitivity")


class _WatchedEngine:
    def __init__(self, engine: Any, notes: list[Any]) -> None:
        self._engine, self._notes = engine, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        rows: list[Any] = []
        self._engine.fetch(request).map(rows.append)
        return Watched(rows[0], self._notes)


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One run: the inputs and the output of the mechanism; no `repr` shows them."""

    opened: list[Any]
    shape: Any
    spent: Fraction
    error: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay:
    """The result of a replay: whether a question kept its promise on neighbours of this data."""

    checks: dict[str, bool]
    sensitivities: tuple[tuple[str, Fraction], ...]
    """The public Δ of each statistic, in units of its grid."""
    neighbors: str
    epsilon: Fraction

    @property
    def passed(self) -> bool:
        """Whether all checks held."""
        return all(self.checks.values())

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        failed = [name for name, passed in self.checks.items() if not passed]
        head = (
            f"FAILED: {', '.join(failed)} differ with one unit"
            if failed
            else "passed: no unit shows"
        )
        deltas = " · ".join(f"{name} Δ {shown(delta)}" for name, delta in self.sensitivities)
        return (
            f"{head} ({', '.join(CHECKS)}) · ε {shown(self.epsilon)} · {self.neighbors}\n{deltas}"
        )


def replay(study: Study, query: Any, unit: Any, *, epsilon: Any = 1, other: Any = None) -> Replay:
    """Run a question again with one unit changed, and check that it behaves as certified.

    Parameters
    ----------
    study : Study
        A study whose rows DuckDB reads.
    query : text or Plan
        SQL, or a plan of this study.
    unit : text or int
        The value of the unit column, or the number of a row, from 0.
    epsilon : number or text
        The ε of a question in SQL; nothing is spent.
    other : Arrow table, dict or list of dicts, optional
        Rows that replace those of the unit, in addition to the standard replacements.

    Returns
    -------
    Replay
        Whether each check `passed`, and the public Δ of each statistic. It is for the custodian
        only.

    Examples
    --------
    >>> import discreet, pandas
    >>> people = pandas.DataFrame({"age": [20, 30, 40]})
    >>> study = discreet.Study.from_frame(people, epsilon=1, bounds={"age": (0, 120)})
    >>> replay(study, "SELECT avg(age) FROM data", 0).passed
    True

    """
    plan = query if isinstance(query, Plan) else study.sql(query, epsilon=epsilon)
    if plan.study is not study:
        raise InvalidParameter("the plan must be a plan of this study")
    if study.policy.unit_column is None and (
        isinstance(unit, bool) or not isinstance(unit, int) or unit < 0
    ):
        raise InvalidParameter(
            f"unit must be the number of a row, from 0, where each row is a unit, got {quote(unit)}"
        )
    shares = parts_by_share(plan)
    tables, pairs = _neighbors_of(_rows_of(study.engine), study.policy, unit, other)
    with tempfile.TemporaryDirectory(prefix="discreet-replay-") as folder:
        records = [
            _record(plan, table, Path(folder, str(number))) for number, table in enumerate(tables)
        ]
    if all(record.error for record in records):
        raise EngineFailed(
            f"the question fails on all copies of the data ({records[0].error.partition(':')[0]})"
        )
    return _compare(plan, shares, [(records[first], records[second]) for first, second in pairs])


def _record(plan: Plan, table: Any, folder: Path) -> Record:
    """The release of a plan over other rows, on its own ledger."""
    from discreet.engines.duckdb import DuckDB

    folder.mkdir()
    notes: list[Any] = []
    policy = copy(plan.study.policy)
    for name, value in (
        ("source", table),
        ("version", "replay"),
        ("epsilon", max(policy.epsilon, plan.epsilon)),
    ):
        object.__setattr__(policy, name, value)
    with Study(policy, ledger=folder / "study.ledger") as study:
        study.__dict__["engine"] = _WatchedEngine(DuckDB(table), notes)
        shape, error = None, ""
        try:
            shape = _shape(replace(plan, study=study).release().full_record)
        except (
            Exception
        ) as failure:  # an outcome like any other; only its type and words are compared
            error = f"{type(failure).__name__}: {failure}"
        return Record(
            opened=[_copy(note) for note in notes], shape=shape, spent=study.spent, error=error
        )


def _shape(content: dict[str, Any]) -> Any:
    """Everything that is shown except the numbers themselves: keys, order, names, types."""
    numbers = content.pop("numbers")
    kinds = {
        name: {end: [type(value).__name__ for value in column] for end, column in ends.items()}
        for name, ends in numbers.items()
    }
    return content, list(kinds), kinds


def _copy(note: Any) -> Any:
    """A copy of the integers as the mechanism saw them."""
    if isinstance(note, np.ndarray):
        return np.array(note)
    return [list(column) for column in note] if isinstance(note, list) else note


def _compare(plan: Plan, shares: Shares, pairs: list[tuple[Record, Record]]) -> Replay:
    checks = dict.fromkeys(CHECKS, True)
    for first, second in pairs:
        checks["errors"] &= first.error == second.error
        checks["flow"] &= [_form(note) for note in first.opened] == [
            _form(note) for note in second.opened
        ]
        checks["shape"] &= first.shape == second.shape
        checks["charge"] &= first.spent == second.spent
        if checks["errors"] and checks["flow"] and not first.error:
            _compare_integers(shares, first.opened, second.opened, checks)
    return Replay(
        checks=checks,
        sensitivities=tuple(
            (part.statistic, part.sensitivity) for parts in shares for part in parts
        ),
        neighbors=plan.study.policy.neighbors,
        epsilon=plan.cost,
    )


def _form(note: Any) -> Any:
    """The shape of what was opened, without its numbers."""
    if isinstance(note, np.ndarray):
        return note.shape
    return [len(column) for column in note] if isinstance(note, list) else type(note).__name__


def _compare_integers(
    shares: Shares, first: list[Any], second: list[Any], checks: dict[str, bool]
) -> None:
    """Check: public numbers are equal; totals and counts move by at most Δ, within the loss."""
    pairs = iter(zip(first, second, strict=True))
    for parts in shares:
        if parts[0].law == "choice":
            checks["sensitivity"] &= _choices_within(pairs, parts)
            continue
        for part in parts:
            if part.law != "public":
                checks["sensitivity"] &= _within(part, *next(pairs))
            if part.law in ("public", *ALWAYS):
                mine, theirs = next(pairs)
                checks["public numbers"] &= mine == theirs
    checks["flow"] &= next(pairs, None) is None


def _within(part: Part, mine: list[list[int]], theirs: list[list[int]]) -> bool:
    moves = [
        [abs(a - b) for a, b in zip(*columns, strict=True)]
        for columns in zip(mine, theirs, strict=True)
    ]
    if sum(map(sum, moves)) > part.sensitivity:
        return False

    def steps(total: int, step: Fraction) -> int:
        return math.floor(Fraction(total) / step + Fraction(1, 2))

    rounded = [
        sum(abs(steps(a, step) - steps(b, step)) for a, b in zip(first, second, strict=True))
        / scale
        for first, second, step, scale in zip(mine, theirs, part.steps, part.scales, strict=True)
    ]
    return sum(rounded, Fraction()) <= min(part.loss, part.epsilon)


def _choices_within(pairs: Iterator[tuple[Any, Any]], parts: list[Part]) -> bool:
    """Whether, for each choice, the counts of all groups move by one per added or removed row."""
    most = parts[0].rows * (2 if parts[0].replaced else 1)
    moved = [
        int(np.abs(np.subtract(mine, theirs)).sum()) for mine, theirs in islice(pairs, len(parts))
    ]
    return max(moved) <= most


def _rows_of(engine: Any) -> Any:
    """All rows of a local engine, as an Arrow table; enumerations as texts."""
    relation = getattr(engine, "_relation", None)
    if relation is None:
        raise InvalidParameter("a replay copies the rows: it needs a study whose data DuckDB reads")
    with suppress(Exception):  # the engine's message may quote a row: no `__context__` may keep it
        table = relation().to_arrow_table()
        plain = [
            pa.string() if pa.types.is_dictionary(column.type) else column.type
            for column in table.schema
        ]
        return table.cast(pa.schema(list(zip(table.schema.names, plain, strict=True))))
    raise EngineFailed(
        "the rows could not be copied for a replay: see whether memory and disk have room"
    )


def _neighbors_of(
    table: Any, policy: Policy, unit: Any, other: Any
) -> tuple[list[Any], list[tuple[int, int]]]:
    """Tables, and the pairs of them that are neighbours."""
    without, is_present = _without(table, policy, unit)
    replacements = _replacements(table, policy) + (
        [] if other is None else [_given_rows(other, table)]
    )
    neighbors = [
        pa.concat_tables([without, _unit_rows(table, policy, unit, rows)]) for rows in replacements
    ]
    if policy.neighbors == "add-remove":
        tables = [without, table, *neighbors]
        return tables, [(0, index) for index in range(1, len(tables))]
    tables = [table, *neighbors] if is_present else neighbors
    return tables, list(combinations(range(len(tables)), 2))


def _without(table: Any, policy: Policy, unit: Any) -> tuple[Any, bool]:
    """The table without the unit, and whether the table had it."""
    if policy.unit_column is None:
        return (
            pa.concat_tables([table.slice(0, unit), table.slice(unit + 1)]),
            unit < table.num_rows,
        )
    column = table[policy.unit_column]
    try:
        same = pc.fill_null(pc.equal(column, pa.scalar(unit, column.type)), False)
    except (pa.ArrowException, TypeError):
        raise InvalidParameter("unit must have the type of the unit column") from None
    remaining = table.filter(pc.invert(same))
    return remaining, remaining.num_rows < table.num_rows


def _unit_rows(table: Any, policy: Policy, unit: Any, rows: list[dict[str, Any]]) -> Any:
    """The unit's rows, in the types of the table; a value that does not fit its type is missing."""

    def fitting(value: Any, kind: Any) -> Any:
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
        return value

    columns = {}
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        values = [
            unit if name == policy.unit_column else fitting(row.get(name), kind) for row in rows
        ]
        columns[name] = pa.array(values, kind)
    return pa.table(columns, table.schema)


def _given_rows(other: Any, table: Any) -> list[dict[str, Any]]:
    rows = (
        other.to_pylist()
        if hasattr(other, "to_pylist")
        else [other]
        if isinstance(other, dict)
        else other
    )
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidParameter(
            "other must be an Arrow table, a dict, or a list of dicts with the columns of the data"
        )
    if unknown := {name for row in rows for name in row} - set(table.schema.names):
        raise InvalidParameter(
            f"other has a column that the data does not have: {sorted(unknown)[0]}"
        )
    return rows


def _replacements(table: Any, policy: Policy) -> list[list[dict[str, Any]]]:
    """Rows to replace those of the unit, by the policy; a row without a value has it missing."""
    many = 1 if policy.unit_column is None else (policy.max_rows or 1) + 2
    columns = {
        field.name: (policy.columns.get(field.name, Declared()), field.type)
        for field in table.schema
    }
    lowest, highest = (
        {name: _value(*column, end) for name, column in columns.items()} for end in (0, -1)
    )
    wild = {name: _wild(kind) for name, (_, kind) in columns.items()}
    return [[lowest], [highest] * many, [{}], [wild]]


def _value(declared: Declared, kind: Any, end: int) -> Any:
    """The first key or lower bound, or the last key or a value too high, in the column's type."""
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
