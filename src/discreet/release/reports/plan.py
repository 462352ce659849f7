"""The cost of a report and the errors of its tables, before anything is read; and its release.

    plan = study.report({"by_county": "SELECT county, count(*) FROM visits GROUP BY county", …},
    epsilon=1) report = plan.release() report["by_county"]

One spend, one scan, one entry in the ledger. Which sets are measured depends only on the questions.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import views
from discreet.ask import normal
from discreet.ask.query import Named, canonical, texts
from discreet.ask.reportfile import PLAIN, Presentation
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Exact, Request
from discreet.errors import InvalidParameter, QueryRefused, one_line, shorter
from discreet.formats import left_shown, shown, table_lines
from discreet.ledger.questions import new_request_id
from discreet.parameters import UNIT
from discreet.records import software, today
from discreet.release.account import answered
from discreet.release.design import Line, Secret
from discreet.release.discovery import discovery_facts
from discreet.release.mechanism import NoisyColumn, public_count
from discreet.release.plan import LEAST_DOUBT, REPORTS, Plan, asked_before, error_heading, plan_of
from discreet.release.public_size import PublicSize, public_size
from discreet.release.reports.allocation import MOST_CELLS, Measured
from discreet.release.reports.axes import Axis
from discreet.release.reports.design import ReportDesign
from discreet.release.reports.fit import Combined, Noise, Question
from discreet.release.reports.report import (
    Report,
    ReportLine,
    error_text,
    kinds,
    mean_reaches,
    mean_weights,
    points_of,
    reaches,
)
from discreet.release.reports.rows import refuse_whole
from discreet.release.reports.tables import Layout, Number, Table
from discreet.release.reports.work import of_errors, refuse_report
from discreet.release.size import MOST_NUMBERS
from discreet.release.split import scaled, terms_of
from discreet.release.statistics.grouped import mean_error
from discreet.release.work import Steps

if TYPE_CHECKING:
    from discreet.release.study import Study

_MOST_GROUPED = 60
"""Most group columns and conditions of all tables: an engine identifies sets of them by the bits of
an integer.
"""

_HEAD = 300  # characters of a report that a list of entries shows


@dataclass(frozen=True, kw_only=True, repr=False)
class ReportPlan:
    """Tables with a common cost; frozen, so that what is shown is what is released."""

    study: Study
    title: str
    layout: Layout
    measured: Measured
    epsilon: Fraction
    confidence: Fraction
    simultaneous: bool
    size: int
    """The number of rows of a group for which errors of means are shown."""
    integers: bool = False
    """Whether counts are integers: those of rows that reproduce the tables."""
    rows: str | None = None
    """The file of such rows that is saved with the tables."""
    presentation: Presentation = PLAIN
    """The captions and decimals from its file."""
    combined: Combined | None = field(default=None, compare=False)
    """What plans of the same sets at different ε share."""
    asked_alone: dict[tuple[str, Fraction, int], Plan] = field(default_factory=dict, compare=False)
    """The plans of tables that are asked alone, which plans at different ε share, too."""
    steps: Steps = field(default_factory=Steps, compare=False)
    """The work of this plan, and of the search that it is from, which is added before it is done.
    """

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The columns of all tables."""
        return self.layout.axes

    @cached_property
    def design(self) -> ReportDesign:
        """The measured sets."""
        return ReportDesign(attributes=self.layout.attributes, measured=self.measured)

    @cached_property
    def terms(self) -> UnitLimits:
        """The limits of a unit."""
        return terms_of(self.study.policy, self.design.cells)

    @property
    def known(self) -> bool:
        """Whether the number of rows is public: units are replaced, and no unit is left out."""
        whole = self.study.policy.unit_column is None and self.layout.where is None
        return whole and self._size.value

    @property
    def _size(self) -> PublicSize:
        return public_size(self.study.policy, self.study.engine)

    def _whole(self) -> bool:
        """Whether all sets have a share, and the shares add up to 1."""
        parts = [part for _, part in self.measured]
        return all(part > 0 for part in parts) and sum(parts) == 1

    @cached_property
    def level(self) -> Fraction:
        """The confidence of each single interval; together they hold by Bonferroni's inequality."""
        return (
            1 - (1 - self.confidence) / max(1, self._numbers)
            if self.simultaneous
            else self.confidence
        )

    @property
    def _numbers(self) -> int:
        """The number of intervals of all tables."""
        return sum(self._rows(table) * len(table.numbers) for table in self.layout.tables)

    def _rows(self, table: Table) -> int:
        return math.prod(map(len, table.rows(self.axes).values()))

    def _title(self, table: Table, number: Number) -> str:
        titles = {
            output.name: name
            for name, output in reversed(table.query.outputs)
            if isinstance(output, Named)
        }
        return titles.get(number.name, texts(table.query)[number.name])

    def table_of(self, name: str) -> Table:
        """A table by its name."""
        return next(table for table in self.layout.tables if table.name == name)

    @cached_property
    def lines(self) -> list[ReportLine]:
        """The errors of all tables, together and if each were asked alone."""
        weights = sum((table.weight for table in self.layout.tables), Fraction())
        lines = []
        for table in self.layout.tables:
            share = max(self.epsilon * table.weight / weights // UNIT, 1) * UNIT
            lines_alone = scaled(self.alone(table), share).lines
            errors = {
                line.name: math.inf if line.reach is None else line.reach for line in lines_alone
            }
            for number in table.in_order:
                column = self._title(table, number)
                size = self.size if number.statistic == "mean" else None
                errors_of = self.reach(table, number), errors[number.name]
                lines.append(ReportLine(table.name, column, self._rows(table), *errors_of, size))
        return lines

    def alone(self, table: Table) -> Plan:
        """The plan of a table that is asked alone, at ε = 1."""
        key = table.name, self.level, self.size
        if key not in self.asked_alone:
            self.asked_alone[key] = plan_of(
                self.study, table.query, epsilon=Fraction(1), confidence=self.level, size=self.size
            )
        return self.asked_alone[key]

    def table_lines(self, size: int | None) -> list[Line]:
        """The lines of a plan for the only table, if it is answered from a report."""
        [table], delta = self.layout.tables, Fraction(self.terms.row_changes)
        lines = []
        for number in table.numbers:
            reach, mean = self.reach(table, number), number.statistic == "mean"
            line = Line(
                name=number.name,
                sensitivity=delta,
                scale=Fraction(reach).limit_denominator(1000) / 3,
                error=(
                    error_text(reach, self.size if mean else None),
                    None if mean and size is None else reach,
                ),
                sized=True,
            )
            lines.append(line)
        return lines

    def reach(self, table: Table, number: Number) -> float:
        """The largest half-width of the intervals of a number."""
        key = table.name, number.name
        if key not in self._reaches:
            self._reaches[key] = self._reach(table, number)
        return self._reaches[key]

    def radius(self, table: Table, number: Number) -> float:
        """The same for the noise of a count or a sum; for a mean what it would be in groups of the
        planned size.

        It falls as 1/ε, as errors do where they are small.
        """
        if number.statistic != "mean":
            return float(
                reaches(table, self.axes, number, self.noise, float(self.level)).max(initial=0.0)
            )
        level = self.levels(number)[-1]
        of_cells = (
            mean_reaches(table, self.axes, number, self.noise, level, c)
            for _, c in kinds(table, self.axes)
        )
        return (
            max((float(reach.max()) for reach in of_cells), default=0.0) / self.size * number.width
        )

    @cached_property
    def _reaches(self) -> dict[tuple[str, str], float]:
        return {}

    def is_known(self, table: Table, number: Number) -> bool:
        """Whether the error of a number was computed."""
        return (table.name, number.name) in self._reaches

    def levels(self, number: Number) -> list[float]:
        """The levels of the radii that the error of a number needs: of a mean, at twice the doubt,
        too.
        """
        level = float(self.level)
        return [max(2 * level - 1, level / 2), level] if number.statistic == "mean" else [level]

    def _reach(self, table: Table, number: Number) -> float:
        level, noise = float(self.level), self.noise
        if number.statistic != "mean":
            return self.radius(table, number) + number.half_step * self.size
        largest, doubled = 0.0, self.levels(number)[0]
        for _, cell in kinds(table, self.axes):
            near, far = (
                mean_reaches(table, self.axes, number, noise, p, cell) for p in (doubled, level)
            )
            largest = max(largest, mean_error(near, far, doubled, level, self.size) * number.width)
        return min(largest + number.half_step, number.width)

    def questions(self, table: Table, number: Number) -> Iterator[Question]:
        """The combinations whose radii the error of a number needs."""
        weights = np.array(number.weights) if number.weights else None
        if number.statistic == "mean":
            weights = mean_weights(number, np.linspace(0, 1, points_of(len(self.measured))))
        for _, cell in kinds(table, self.axes):
            yield table.question(self.axes, number, weights, cell)

    @cached_property
    def combining(self) -> Combined:
        """The combinations of its cells."""
        return self.combined or Combined(axes=self.axes, measured=self.measured, known=self.known)

    @cached_property
    def noise(self) -> Noise:
        """The noise of the report at its ε."""
        scales = self.design.scales(self.terms, self.epsilon)
        draws = [NoisyColumn(values=[0], step=1, scale=scale) for scale in scales]
        return self.design.noise(
            draws, float(self.level), known=self.known, combined=self.combining
        )

    @cached_property
    def canonical(self) -> str:
        """The canonical text of the report; the order and the names of tables do not matter."""
        policy = self.study.policy
        promise = [policy.neighbors, policy.unit, policy.max_rows, policy.max_groups]
        questions = sorted({canonical(table.query) for table in self.layout.tables})
        sets = [[list(levels), str(part * self.epsilon)] for levels, part in self.measured]
        axes = [
            [*filter(None, item.names), *map(_digest, item.axis.parents)]
            for item in self.layout.attributes
        ]
        head = shorter(f"REPORT of {len(questions)} tables: {'; '.join(questions)}", _HEAD)
        return json.dumps(
            [head, questions, promise, axes, sets], ensure_ascii=False, separators=(",", ":")
        )

    @property
    def asked(self) -> str:
        """The report as it was typed: its title, and the question of each table."""
        tables = (
            f"{table.name}: {table.query.sql or canonical(table.query)}"
            for table in self.layout.tables
        )
        return f"report {self.title!r} of {'; '.join(tables)}"

    def release(self, *, request_id: str | None = None, analyst: str | None = None) -> Report:
        """Spend ε, then read once, draw and record; asked again, it returns the recorded report,
        free.
        """
        if not self._whole():
            raise InvalidParameter(
                "the shares of a report must add up to its epsilon; plan it again"
            )
        entry = REPORTS + (request_id if request_id is not None else new_request_id())
        rest = self._rest()
        work = partial(self._answered, rest)
        content, remaining = answered(
            self.study, entry, self.canonical, self.epsilon, work, analyst=analyst, asked=self.asked
        )
        return Report(content, self, remaining, entry)

    def fetched(self) -> Exact[list[list[Any]]]:
        """Everything that is read: the integers of all sets."""
        policy, design = self.study.policy, self.design
        return self.study.engine.fetch(
            Request(
                measures=design.measures(),
                groups=design.groups,
                where=self.layout.where,
                unit=policy.unit_column,
                max_rows=policy.max_rows,
                max_groups=policy.max_groups,
                sets=design.sets(),
            )
        )

    def drawn(
        self, secret: Secret, units: Callable[[], Exact[int]]
    ) -> tuple[int | None, list[NoisyColumn]]:
        """Everything that is ever released: the number of units, if it is public, and the noisy
        columns of all sets.
        """
        rows = public_count(units()) if self.known else None
        return rows, self.design.noisy(secret, self.terms, self.epsilon)

    def _answered(self, rest: dict[str, Any]) -> bytes:
        """Read, draw, and return the bytes of the record."""
        engine, unit = self.study.engine, self.study.policy.unit_column
        rows, columns = self.drawn(self.fetched(), lambda: engine.units(unit))
        sets, noisy = [], iter(columns)
        for levels, part in self.measured:
            own = islice(noisy, len(self.design.units(levels)))
            written = [
                {"scale": str(column.scale), "step": column.step, "values": list(column.values)}
                for column in own
            ]
            sets.append(
                {"levels": list(levels), "epsilon": str(part * self.epsilon), "columns": written}
            )
        return json.dumps(
            {**rest, "rows": rows, "sets": sets}, ensure_ascii=False, separators=(",", ":")
        ).encode()

    def _rest(self) -> dict[str, Any]:
        """The record without its numbers."""
        policy = self.study.policy
        return {
            "discreet": 1,
            "software": software(),
            "study": self.study.name,
            "date": today(),
            "neighbors": policy.neighbors,
            "unit": policy.unit,
            "max_rows": policy.max_rows,
            "max_groups": policy.max_groups,
            "epsilon": str(self.epsilon),
            "delta": "0",
            "data_version": policy.version,
            "report": self.title,
            "tables": {table.name: canonical(table.query) for table in self.layout.tables},
            "where": None if self.layout.where is None else normal.canonical(self.layout.where),
            "axes": [
                {
                    "names": item.names,
                    "cells": item.axis.sizes,
                    "parents": item.axis.parents,
                    "width": item.width,
                }
                for item in self.layout.attributes
            ],
            **discovery_facts(self.study.discovered, self.design.groups),
        }

    def record_of(self, table: Table) -> dict[str, Any]:
        """What a reader needs to judge one table."""
        statistics = [
            {
                "name": number.name,
                "asked": texts(table.query)[number.name],
                "reach": self.reach(table, number),
            }
            for number in table.numbers
        ]
        return {
            "confidence": str(self.confidence),
            "simultaneous": self.simultaneous,
            "question": canonical(table.query),
            "statistics": statistics,
            **discovery_facts(self.study.discovered, table.query.groups, table.chosen_by),
        }

    def checked(self) -> ReportPlan:
        """The plan itself, if it can be released; anything that would fail after the spend is
        refused here.
        """
        if 1 - self.level < LEAST_DOUBT:
            raise InvalidParameter(
                "confidence is too close to 1 for so many simultaneous intervals: lower it"
            )
        if self.design.cells > min(MOST_CELLS, MOST_NUMBERS):
            raise QueryRefused(
                f"a report may measure at most {MOST_CELLS:,} cells, but this needs"
                f" {self.design.cells:,}: leave out the largest table; nothing was spent"
            )
        if self._numbers > MOST_CELLS:
            raise QueryRefused(
                f"the tables of a report may have at most {MOST_CELLS:,} numbers in total, but"
                f" these have {self._numbers:,}: leave out the largest table; nothing was spent"
            )
        if self.known and not self.axes:
            raise InvalidParameter(
                "the report asks only for the number of rows, which is public: ask for it alone"
            )
        grouped = sum(attribute.group is not None for attribute in self.layout.attributes)
        if grouped > _MOST_GROUPED:
            raise QueryRefused(
                f"a report may have at most {_MOST_GROUPED} group columns and conditions, but this"
                f" has {grouped}: split it into two; nothing was spent"
            )
        if not self._whole():
            raise InvalidParameter(
                "these weights or errors are too far apart for one report: split it into two"
            )
        self.steps.update(of_errors(self, self.layout.tables))
        refuse_report(self, self.steps)
        if self.integers or self.rows is not None:
            refuse_whole(self, rows=self.rows is not None)
        with suppress(ArithmeticError, ValueError):
            _ = self.lines
            return self
        raise InvalidParameter(
            "these bounds, epsilon and confidence give numbers that are too large: choose others"
        )

    @property
    def table(self) -> list[list[str]]:
        """The errors as text, with a header."""
        many = {table.name: len(table.numbers) for table in self.layout.tables}
        rows = [["table", "rows", error_heading(self), "one by one"]]
        for line in self.lines:
            name = line.table if many[line.table] == 1 else f"{line.table}: {line.column}"
            rows.append([name, f"{line.cells:,}", line.within, line.one_by_one])
        return rows

    @property
    def asked_before(self) -> str:
        """A note that the same report was answered at the same ε and is free now; empty if it was
        not.
        """
        return asked_before(self.study, self.canonical, self.epsilon)

    @property
    def summary(self) -> str:
        """The size of the report, its cost, and the number of measured sets, in one line."""
        policy, remaining = self.study.policy, self.study.remaining
        if before := self.asked_before:
            after = f"{before}, {left_shown(remaining)} left"
        elif remaining >= self.epsilon:
            after = f"{left_shown(remaining - self.epsilon)} left after"
        else:
            after = f"only {left_shown(remaining)} is left"
        many, sets = len(self.layout.tables), len(self.measured)
        tables = f"{many} {'table' if many == 1 else 'tables'}"
        price = f"ε {shown(self.epsilon)} of {shown(policy.epsilon)} for all together ({after})"
        return f"{tables} · {price} · {sets} {'set is' if sets == 1 else 'sets are'} measured"

    def _repr_html_(self) -> str:
        return views.html(self)

    @property
    def agreement(self) -> str:
        """A sentence on the agreement of the tables."""
        return f"All tables agree: every {self.study.policy.unit} counts in all of them alike."

    @property
    def notes(self) -> list[str]:
        """That the number of rows is private, and why, where it could be public."""
        size, policy = self._size, self.study.policy
        could = (
            policy.neighbors == "change-one"
            and policy.unit_column is None
            and self.layout.where is None
        )
        return [size.sentence] if could and not size.value else []

    def __repr__(self) -> str:
        headings, *rows = self.table
        last = " ".join([self.agreement, *self.notes, "Nothing was read, nothing is spent."])
        return "\n".join([one_line(self.summary), *table_lines(headings, rows), one_line(last)])


def _digest(parents: tuple[int, ...]) -> str:
    """A digest of the parents of the cells of a level: another file of keys is another report."""
    return hashlib.sha256(json.dumps(parents).encode()).hexdigest()
