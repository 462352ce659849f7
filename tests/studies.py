"""Studies over small tables, and releases with the noise switched off and every draw written down.

What one unit costs between two records is, for each design,

    Σ |Δk|/b over all groups and sums                for integers k with independent discrete
                                                     Laplace noise of scale b
    unit·(largest − smallest move of an exponent)    for a choice by permute-and-flip, added up over
                                                     all groups

and everything else that a record holds (kinds, scales, units, steps, sizes, numbers that are opened
as public) must not depend on the data.
"""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from cells import spread_out
from discreet import Ledger, Policy, Study
from discreet.draw import vector
from discreet.draw.choice import Runs
from discreet.ledger.grant import Grant
from discreet.release import mechanism
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.statistics import counts, families, moments, ranks

TYPES = pa.schema(
    [
        ("who", pa.string()),
        ("place", pa.string()),
        ("level", pa.int64()),
        ("age", pa.int64()),
        ("pay", pa.float64()),
        ("well", pa.bool_()),
    ]
)
COLUMNS: dict[str, dict[str, Any]] = {
    "place": {"keys": ["north", "south", "west"]},
    "level": {"keys": [1, 2]},
    "age": {"bounds": [0, 10]},
    "pay": {"bounds": [-3, 5]},
    "well": {},
}
DESIGNS = (
    counts.CountDesign,
    counts.KnownCount,
    moments.MomentDesign,
    ranks.QuantileDesign,
    ranks.ExtremeDesign,
    families.JointDesign,
)

Row = dict[str, Any]
_versions = itertools.count()


def select(asked: str, clauses: str = "") -> str:
    """A question about the data."""
    return " ".join(["SELECT", asked, "FROM data", clauses]).strip()


def table_of(rows: list[Row]) -> pa.Table:
    """The rows, whatever columns they leave out."""
    return pa.table({name: [row.get(name) for row in rows] for name in TYPES.names}, TYPES)


def policy_of(rows: list[Row], *, columns: dict[str, Any] | None = None, **terms: Any) -> Policy:
    """A policy over rows in memory, with a version of their own."""
    told = {name: {**COLUMNS[name], **(columns or {}).get(name, {})} for name in COLUMNS}
    terms = {"epsilon": 10**6, "version": f"v{next(_versions)}", **terms}
    return Policy(source=table_of(rows), columns=told, **terms)


def study_of(rows: list[Row], ledger: Ledger | Path, **terms: Any) -> Study:
    """A study of rows in memory; a ledger may be shared."""
    return Study(policy_of(rows, **terms), ledger=ledger)


class Paper(Ledger):
    """A ledger without a disk, for tests that release thousands of answers: it counts, and keeps
    nothing.
    """

    def __init__(self, total: Any = 10**6) -> None:
        self._total, self._spent = Fraction(total), Fraction(0)

    files = (Path("nowhere/paper.anchor"),)

    def total(self, *_: Any, **__: Any) -> Fraction:
        return self._total

    def spent(self, *_: Any, **__: Any) -> Fraction:
        return self._spent

    def remaining(self, *_: Any, **__: Any) -> Fraction:
        return self._total - self._spent

    def spend(self, request_id: str, _query: str, epsilon: Any, **_: Any) -> Grant:
        self._spent += epsilon
        given = {
            "study": "study",
            "request_id": request_id,
            "question": "",
            "epsilon": epsilon,
            "analyst": None,
        }
        return Grant(**given, repeated=False, answer=None)

    def record(self, _grant: Grant, answer: bytes) -> bytes:
        return answer

    def answer(self, **_: Any) -> None:
        return None

    def answered(self, *_: Any, **__: Any) -> list[str]:
        return []

    def requests(self, *_: Any) -> list[Any]:
        return []

    def entry(self, *_: Any, **__: Any) -> None:
        return None

    def recent(self, study: str, **_: Any) -> list[Any]:
        from discreet.ledger.chain import Entry

        spent, total = (int(epsilon * 10**9) for epsilon in (self._spent, self._total))
        return [
            Entry(
                study=study,
                number=1,
                kind="create",
                spent=spent,
                total=total,
                time="",
                nonce="",
                before="",
            )
        ]

    def promised(self, *_: Any) -> tuple[Fraction, dict[str, Any]]:
        return self._total, {}

    def keyed(self, version: str) -> str:
        return version


@dataclass
class Event:
    """One draw: `public` is all that may not depend on the data, `secret` the integers before
    noise.
    """

    public: tuple[Any, ...]
    secret: list[int]

    def loss(self, other: "Event") -> Fraction:
        moved = [mine - theirs for mine, theirs in zip(self.secret, other.secret, strict=True)]
        if self.public[0] == "choice":
            return self.public[1] * (max(moved) - min(moved))
        return sum(map(abs, moved)) / self.public[1]


@dataclass
class Record:
    """A release without noise: for every design its share of ε and its draws, and what was shown."""

    events: list[tuple[str, Fraction, list[Event]]] = field(default_factory=list)
    draws: int = 0
    opened: list[int] = field(default_factory=list)
    """Numbers that are used without noise, since they are taken as public."""
    content: dict[str, Any] = field(default_factory=dict)
    charge: Fraction = Fraction(0)

    def public(self) -> list[Any]:
        return [
            (name, share, [event.public for event in events]) for name, share, events in self.events
        ]

    def losses(self, other: "Record") -> list[tuple[str, Fraction, Fraction]]:
        """(design, its share of ε, what it loses)."""
        assert self.public() == other.public()
        assert self.opened == other.opened
        return [
            (
                name,
                share,
                sum((one.loss(two) for one, two in zip(mine, theirs, strict=True)), Fraction(0)),
            )
            for (name, share, mine), (_, _, theirs) in zip(self.events, other.events, strict=True)
        ]

    def shape(self) -> Any:
        """Keys, order, names and types of what was shown, without the numbers."""
        plain = {
            name: value
            for name, value in self.content.items()
            if name not in ("numbers", "data_version")
        }
        numbers = {
            name: {end: [type(value).__name__ for value in column] for end, column in ends.items()}
            for name, ends in self.content["numbers"].items()
        }
        return plain, list(numbers), numbers


@contextlib.contextmanager
def without_noise() -> Iterator[Record]:
    """Every draw is 0, every choice the first of the best cells; the record is filled meanwhile."""
    record = Record()
    real = {kind: kind.estimate for kind in DESIGNS}
    real_columns = mechanism.noisy_columns

    def note(event: Event) -> None:
        record.events[-1][2].append(event)

    def draw_one(_scale: Fraction, **_: Any) -> int:
        record.draws += 1
        return 0

    def fill(out: Any, _scale: Fraction, **_: Any) -> None:
        record.draws += out.size
        out.fill(0)

    def choose(runs: Runs, unit: Fraction, **_: Any) -> Any:
        exponents = spread_out(runs)
        assert exponents.dtype == np.int64
        for row in exponents:
            record.draws += 1
            note(Event(("choice", unit, row.size), (row - row.min()).tolist()))
        return np.argmin(exponents, axis=1)

    def columns(exact: Any, *given: Any) -> Any:
        groups = len(exact.reveal()[0])
        found = real_columns(exact, *given)
        for column in found:
            assert len(column.values) == groups
            public = ("noise", column.scale, column.step, groups)
            note(Event(public, [value // column.step for value in column.values]))
        return found

    def opened(count: Any) -> int:
        number = mechanism.public_count(count)
        record.opened.append(number)
        return number

    def estimate(kind: Any) -> Any:
        def inner(
            self: Any, exact: Any, terms: Any, epsilon: Fraction, confidence: Fraction
        ) -> Any:
            record.events.append((kind.__name__, epsilon, []))
            return real[kind](self, exact, terms, epsilon, confidence)

        return inner

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(vector, draw_one=draw_one, fill=fill))
        stack.enter_context(mock.patch.object(mechanism, "choose", choose))
        for module in (counts, moments):
            stack.enter_context(
                mock.patch.multiple(module, noisy_columns=columns, public_count=opened)
            )
        stack.enter_context(mock.patch.object(families, "noisy_columns", columns))
        for kind in DESIGNS:
            stack.enter_context(mock.patch.object(kind, "estimate", estimate(kind)))
        yield record


def replayed(plan: Plan, study: Study) -> Record:
    """The record of the same plan over the data of another study."""
    before = study.spent
    with without_noise() as record:
        answer: Answer = replace(plan, study=study).release()
    record.content, record.charge = answer.full_record, study.spent - before
    noted = [event for _, _, events in record.events for event in events]
    assert record.draws == sum(
        1 if event.public[0] == "choice" else len(event.secret) for event in noted
    )
    return record
