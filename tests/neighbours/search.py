"""The search: random questions over random neighbours, each with its exact loss, which must not
exceed what it cost.

A case has a name, engine/seed/pair/question, and the name alone makes it again: `make neighbours
CASE=…` shows it.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock
from uuid import uuid4
from zlib import crc32

import pyarrow as pa
from pyarrow import parquet

import discreet.files.answer_file  # noqa: F401 - so that every module that draws is there before draws are replaced
from conforming import FIELDS, on_postgresql, on_spark
from discreet import Policy, Study
from discreet.engines.sql import engine
from discreet.engines.sql.statement import Statement, statement
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter
from discreet.release.plan import Plan
from neighbours.draws import Astray, Choice, Leak, Noise, Record, recorded
from neighbours.loss import ball, enclosed_loss, event_loss, loss
from neighbours.questions import Asked, question_of
from neighbours.tables import TYPES, WIDE, Pair, pair_of
from studies import Paper

QUESTIONS = 10
"""About each pair of tables."""

_TOLERANCE = 2.0**-40
"""Above ε, where a choice is judged by balls: no ball can tell a loss of ε from one that is just
below it.
"""

Opened = Callable[[pa.Table], Any]
"""From a table to a source of a policy, or to an engine."""


class Violation(AssertionError):
    """A question that loses more than it costs, or that tells something without a draw."""


@dataclass(frozen=True)
class Engine:
    """Where pairs are put: `place` gives for each side what opens a table."""

    name: str
    sides: tuple[Opened, Opened]
    columns: tuple[str, ...] = tuple(TYPES)
    units: tuple[str, ...] = ("id", "person", "born", "code", "mark")
    typed: bool = True
    """Whether the source has types; else the promise names them."""


def duckdb_engine(
    name: str = "duckdb", opened: Opened = lambda table: table, **more: Any
) -> Engine:
    """Arrow tables in memory, or what a function makes of them."""
    return Engine(name, (opened, opened), **more)


def wide_engine() -> Engine:
    """DuckDB with types that it alone takes, and values far out."""
    return duckdb_engine("wide", columns=(*TYPES, *WIDE))


def pandas_engine() -> Engine:
    """Frames of pandas as people have them: texts and dates as objects."""

    def frame(table: pa.Table) -> Any:
        import pandas as pd

        kinds = {
            pa.bool_(): pd.BooleanDtype(),
            pa.int64(): pd.Int64Dtype(),
            pa.int8(): pd.Int8Dtype(),
        }
        texts = [field.name for field in table.schema if field.type == pa.string()]
        return table.to_pandas(types_mapper=kinds.get).astype(dict.fromkeys(texts, object))

    return duckdb_engine(
        "pandas",
        frame,
        columns=("real", "single", "long", "tiny", "text", "name", "day", "moment", "flag"),
    )


def polars_engine() -> Engine:
    """Frames of polars."""

    def frame(table: pa.Table) -> Any:
        import polars as pl

        return pl.from_arrow(table)

    return duckdb_engine("polars", frame)


def parquet_engine(folder: Path) -> Engine:
    """Files of Parquet."""

    def file(table: pa.Table) -> str:
        path = folder / f"{uuid4().hex}.parquet"
        parquet.write_table(table, path)
        return str(path)

    return duckdb_engine("parquet", file)


_BAD_LINES = {
    ".csv": [b"", b"7", b"\xff" + b"," * 99, b"1" + b",1" * 99],
    ".jsonl": [b"", b"null", b"[1]", b'{"id": 1', b'{"real": \xff}', b"7"],
}
"""Lines that no reader can make a row of, whatever the columns are."""


def text_engine(folder: Path, suffix: str) -> Engine:
    """Files of CSV or JSON lines; what a row holds decides whether its line can be read."""

    def line(row: dict[str, Any]) -> bytes:
        texts = {name: None if value is None else str(value) for name, value in row.items()}
        chance, at = divmod(crc32(repr(texts).encode()), 997)
        if chance % 3 == 0:
            return _BAD_LINES[suffix][at % len(_BAD_LINES[suffix])]
        return _csv_line(texts.values()) if suffix == ".csv" else json.dumps(texts).encode()

    def file(table: pa.Table) -> str:
        path = folder / f"{uuid4().hex}{suffix}"
        lines = [_csv_line(table.column_names)] * (suffix == ".csv") + [
            line(row) for row in table.to_pylist()
        ]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return str(path)

    columns = tuple(name for name in TYPES if name != "zoned")
    return duckdb_engine(suffix[1:], file, columns=columns, typed=False)


def _csv_line(cells: Iterable[str | None]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue().encode()


def postgresql_engine(server: str) -> Engine:
    """Two tables on a server, which are made anew for each pair."""
    sides = on_postgresql(server), on_postgresql(server)
    return Engine(
        "postgresql",
        tuple(_engine_of(side) for side in sides),
        _conforming(),
        ("id", "person", "born"),
    )  # type: ignore[arg-type]


def spark_engine(session: Any) -> Engine:
    """Two frames of a session."""
    side = _engine_of(on_spark(session))
    return Engine("spark", (side, side), _conforming(), ("id", "person", "born"))


def _engine_of(opened: Callable[[pa.Table], tuple[Any, Any]]) -> Opened:
    return lambda table: opened(table)[0]


def _conforming() -> tuple[str, ...]:
    """The columns whose types the engines' own tests bring to every engine."""
    return tuple(name for name, kind in TYPES.items() if kind in FIELDS.values())


@dataclass(frozen=True)
class Outcome:
    """What a question lost, of what it cost."""

    asked: Asked
    refused: str = ""
    lost: Fraction = Fraction(0)
    charge: Fraction = Fraction(0)


@dataclass
class Tally:
    """What a search has seen."""

    questions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tightest: dict[tuple[str, str], Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    violations: list[str] = field(default_factory=list)

    def add(self, pair: Pair, outcome: Outcome) -> None:
        if outcome.refused:
            self.refused[outcome.refused] += 1
            return
        self.questions += 1
        if outcome.charge:
            key = outcome.asked.statistic, pair.terms["neighbors"]
            self.tightest[key] = max(self.tightest[key], outcome.lost / outcome.charge)

    def __str__(self) -> str:
        lines = [
            f"{self.questions:,} questions, {self.refused.total():,} refused,"
            f" {len(self.violations)} violations"
        ]
        names = sorted({name for name, _ in self.tightest})
        lines += ["largest loss/ε            change-one  add-remove"] if names else []
        for name in names:
            found = [
                self.tightest.get((name, relation)) for relation in ("change-one", "add-remove")
            ]
            shown = ["" if one is None else f"{float(one):.6f}" for one in found]
            lines.append(f"  {name:<22}  {shown[0]:>10}  {shown[1]:>10}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Case:
    """One question about one pair, by name."""

    engine: Engine
    seed: int
    number: int
    question: int

    @property
    def name(self) -> str:
        return f"{self.engine.name}/{self.seed}/{self.number}/{self.question}"

    def pair(self) -> Pair:
        random = Random(f"{self.engine.name}/{self.seed}/{self.number}")
        return pair_of(random, self.engine.columns, self.engine.units)

    def asked(self, pair: Pair) -> Asked:
        return question_of(Random(self.name), pair)


def studies_of(pair: Pair, engine: Engine) -> tuple[Study, Study]:
    """Two studies of one promise over the tables of a pair."""
    found = []
    for table, opened in zip(pair.tables(), engine.sides, strict=True):
        source = opened(table)
        ready = hasattr(source, "fetch")  # an engine, not a source
        told = "people.parquet" if ready else source
        terms = pair.terms if engine.typed else pair.terms | {"columns": _with_types(pair)}
        study = Study(
            Policy(source=told, table="data", epsilon=10**6, version="1", **terms), ledger=Paper()
        )
        if ready:
            study.__dict__["engine"] = source
        found.append(study)
    return found[0], found[1]


def _with_types(pair: Pair) -> dict[str, Any]:
    """What is declared of the columns, with the type of those whose bounds, bins or keys tell none."""
    return {each.name: {"type": each.kind, **each.declared} for each in pair.fields}


def compared(asked: Asked, studies: tuple[Study, Study], seed: int | None = None) -> Outcome:
    """The loss of a question between two studies, or a violation."""

    def planned(study: Study) -> Plan | Exception:
        study.ledger = Paper()
        try:
            # unrecorded: a plan rehearses its designs on nothing, and remembers it
            return asked.build(study)
        except Exception as error:
            return error

    def answer(plan: Plan | Exception) -> tuple[Any, ...]:
        if isinstance(plan, Exception):
            raise plan
        return (
            plan.canonical,
            repr(plan),
            *(_streamed(plan) if asked.streamed else [plan.release().content]),
        )

    plans = [planned(study) for study in studies]
    try:
        first = recorded(lambda: answer(plans[0]), seed=seed)
        second = recorded(lambda: answer(plans[1]), like=first)
    except (Astray, Leak) as error:
        raise Violation(f"{type(error).__name__}: {error}") from error
    return Outcome(asked, *judged(first, second, studies[0].spent, studies[1].spent))


def _streamed(plan: Plan) -> list[str]:
    """What is written to a file, and told about it."""
    with TemporaryDirectory() as folder:
        found = plan.release(to=Path(folder, "answer.parquet"))
        told = {name: value for name, value in found.record.items() if name != "file"}
        return [str(found.to_arrow().to_pylist()), str(told)]


def judged(
    first: Record, second: Record, charge: Fraction, other: Fraction
) -> tuple[str, Fraction, Fraction]:
    """Why a question was refused, or what it lost and cost; a violation where it may not be so."""
    errors = [
        None if record.error is None else f"{type(record.error).__name__}: {record.error}"
        for record in (first, second)
    ]
    if errors[0] != errors[1]:
        raise Violation(
            f"one table gives {errors[0] or 'an answer'}, the other {errors[1] or 'an answer'}"
        )
    if charge != other:
        raise Violation(f"one table is charged {charge}, the other {other}")
    if first.error is not None:
        if isinstance(first.error, DiscreetError) and not charge and not _drawn(first):
            return errors[0] or "", Fraction(0), Fraction(0)
        raise Violation(
            f"both tables give {errors[0]}, after {charge} was charged"
        ) from first.error
    if first.answer != second.answer:
        raise Violation(
            f"with the same draws the answers differ: {_difference(first.answer, second.answer)}"
        )
    lost = loss(first, second)
    if lost > charge and not _within(first, second, charge):
        raise Violation(
            f"the loss is {float(lost):.6g}, and {float(charge):.6g} was"
            f" charged\n{shown(first, second)}"
        )
    return "", lost, charge


def _within(first: Record, second: Record, charge: Fraction) -> bool:
    """Whether the exact loss is certainly within the charge, where the bound of a choice is above
    it.
    """
    if not any(isinstance(event, Choice) for event in first.events):
        return False
    return all(side < ball(charge) + _TOLERANCE for side in enclosed_loss(first, second))


def _drawn(record: Record) -> bool:
    return any(isinstance(event, Noise | Choice) for event in record.events)


def _difference(one: tuple[Any, ...], two: tuple[Any, ...]) -> str:
    for left, right in zip(one, two, strict=True):
        if left != right:
            at = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
            start = max(0, at - 60)
            return f"{left[start : at + 60]!r} and {right[start : at + 60]!r}"
    return "in length"


def shown(first: Record, second: Record) -> str:
    """The integers of two records, for a reader."""
    lines = []
    for one, two in zip(first.events, second.events, strict=True):
        lost = event_loss(one, two)
        if isinstance(one, Noise) and isinstance(two, Noise):
            moved = [
                f"{a} and {b} (scale {scale}, step {step})"
                for a, b, scale, step in zip(
                    one.integers, two.integers, one.scales, one.steps, strict=True
                )
                if a != b
            ]
            lines.append(
                f"  noise: {len(one.integers)} integers, loss {float(lost):.6g}:"
                f" {'; '.join(moved[:4])}"
            )
        elif isinstance(one, Choice):
            lines.append(
                f"  choice among {one.exponents.size} cells, loss at most {float(lost):.6g}"
            )
    return "\n".join(lines)


def ran(case: Case, tally: Tally, studies: dict[str, Any]) -> None:
    """One case, added to the tally; what it violates is kept as text."""
    if studies.get("number") != case.number:
        pair = case.pair()
        try:
            studies.update(number=case.number, pair=pair, both=studies_of(pair, case.engine))
        except InvalidParameter as error:
            tally.refused[f"the promise: {error}"] += QUESTIONS
            studies.update(number=case.number, pair=pair, both=None)
    pair, both = studies["pair"], studies["both"]
    if both is None:
        return
    asked = case.asked(pair)
    seed = case.question if case.question % 3 == 0 else None
    try:
        tally.add(pair, compared(asked, both, seed))
    except Violation as error:
        tally.questions += 1
        tally.violations.append(described(case, pair, asked, error))


def searched(
    engine: Engine, seed: int, pairs: range | Iterator[int], until: float | None = None
) -> Tally:
    """A search over numbered pairs, until a time if one is given."""
    tally, studies = Tally(), {}
    with _written_once():
        for number in pairs:
            for question in range(QUESTIONS):
                if until is not None and time.monotonic() > until:
                    return tally
                ran(Case(engine, seed, number, question), tally, studies)
    return tally


@contextmanager
def _written_once() -> Iterator[None]:
    """The second table is asked for the very request of the first: a third of the time goes into
    writing its SQL.
    """
    last: list[Any] = [None, None]

    def remembered(*request: Any) -> Statement:
        key = repr(request)
        if last[0] != key:
            last[:] = key, statement(*request)
        return last[1]

    with mock.patch.object(engine, "statement", remembered):
        yield


def described(case: Case, pair: Pair, asked: Asked, error: Exception) -> str:
    """A violation with its tables made small, and the line that makes it again."""
    small = shrunk(pair, asked, case)
    terms = {name: value for name, value in pair.terms.items() if name != "columns"}
    used = [each for each in pair.fields if each.name in asked.text]
    names = [each.name for each in used] + ([pair.unit.name] if pair.unit else [])

    def rows(of: tuple[dict[str, Any], ...]) -> str:
        return (
            "\n".join(f"    { ({name: row[name] for name in names}) }" for row in of[:20])
            or "    (no rows)"
        )

    return "\n".join(
        [
            f"{case.name}: {error}",
            f"  question: {asked}",
            f"  promise: {terms}, { ({each.name: each.declared for each in used}) }",
            f"  types: { ({each.name: str(each.type) for each in used}) }",
            f"  first table, {len(small.first)} rows:",
            rows(small.first),
            f"  second table, {len(small.second)} rows:",
            rows(small.second),
            f"  again: make neighbours CASE={case.name}",
        ]
    )


def shrunk(pair: Pair, asked: Asked, case: Case, attempts: int = 25) -> Pair:
    """The pair with as few common rows as still violate, by halves."""
    size = max(1, len(pair.common()) // 2)
    while attempts and pair.common():
        common = pair.common()
        parts = [common[start : start + size] for start in range(0, len(common), size)]
        for part in parts:
            smaller = pair.without(set(part))
            attempts -= 1
            if violates(smaller, asked, case):
                pair = smaller
                break
            if not attempts:
                return pair
        else:
            if size == 1:
                return pair
            size = max(1, size // 2)
    return pair


def violates(pair: Pair, asked: Asked, case: Case) -> bool:
    try:
        compared(
            asked, studies_of(pair, case.engine), case.question if case.question % 3 == 0 else None
        )
    except Violation:
        return True
    except (InvalidParameter, EngineFailed):
        return False
    return False
