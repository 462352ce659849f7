"""A plan: what a question costs and how good its answer is, before anything is spent or read.

    plan = study.sql("SELECT county, count(*), avg(age) FROM people GROUP BY county", epsilon="0.2")
    plan              # free
    plan.release()    # spend, fetch, draw, record, show — in this order

How ε is shared between the numbers of a question is in `shares`; how each is released, in `design`
and `ranks`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from discreet import views
from discreet.ask import query as questions
from discreet.ask.notes import notes
from discreet.ask.query import Moment, Named, Query, released
from discreet.calibrate.grid import floor_log2
from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Cells, Exact, Request
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.formats import as_float, finite, left_shown, readable, shown, table_lines
from discreet.records import Record, array_of, keys_of, software, today
from discreet.release.account import answered, entry_of
from discreet.release.answer import Answer
from discreet.release.design import PART, Columns, Line, columns, in_parts, items
from discreet.release.discovery import discovery_facts
from discreet.release.public_size import public_size
from discreet.release.size import refuse_large
from discreet.release.split import Share, keeps_every_unit, shared
from discreet.release.statistics.counts import CountDesign
from discreet.release.statistics.families import JointDesign
from discreet.release.statistics.moments import MomentDesign, largest
from discreet.release.work import CURVE, MOST_ASKED, of_question, refuse_more, refuse_much

"""Reading the metadata of a package takes milliseconds."""

REPORTS = "discreet.report."
"""With which the request ids of reports begin, so that a ledger finds them."""

LEAST_DOUBT = Fraction(1, 10**12)
"""Of one interval: 1 − confidence must be a float with some digits."""

_SUMS = CountDesign | MomentDesign | JointDesign

if TYPE_CHECKING:
    from discreet.files.answer_file import AnswerFile
    from discreet.release.reports.plan import ReportPlan
    from discreet.release.reports.report import Report
    from discreet.release.study import Study


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """A question with its price; frozen, so what is shown is what is released."""

    study: Study
    query: Query
    epsilon: Fraction
    confidence: Fraction
    simultaneous: bool
    """Whether the intervals are to hold all together, rather than each for itself."""
    shares: tuple[Share, ...]
    cells: int
    """Rows of the answer, before HAVING and LIMIT."""
    size: int | None = None
    """Rows of a group that the plan shows errors for; only for display."""
    reported: Report | None = None
    """The report of which this is a table: then it is answered from there, free."""

    @cached_property
    def level(self) -> Fraction:
        """The confidence of each single interval."""
        if not self.simultaneous:
            return self.confidence
        return 1 - (1 - self.confidence) / (self.cells * len(self.query.aggregates))

    @property
    def asked_before(self) -> str:
        """That the same was answered at the same ε, and is free now, in a few words; nothing if it
        was not.
        """
        return asked_before(self.study, self.canonical, self.epsilon) if self.cost else ""

    @property
    def cost(self) -> Fraction:
        """What a release spends: ε, or nothing where all that is asked for is public."""
        return (
            self.epsilon
            if any(share.epsilon for share in self.shares) and self.reported is None
            else Fraction(0)
        )

    @cached_property
    def lines(self) -> list[Line]:
        """Δ, scale and error of each aggregate."""
        if self.reported is not None:
            return self.reported.plan.table_lines(self.size)
        return [
            line
            for share in self.shares
            for line in share.design.lines(
                share.terms, share.epsilon or self.epsilon, self.level, self.size
            )
        ]

    @cached_property
    def canonical(self) -> str:
        """The one text of what will be released, the same for questions that differ in spelling."""
        policy = self.study.policy
        promise = [policy.neighbors, policy.unit, policy.max_rows, policy.max_groups]
        parts = [[share.text for share in self.shares], str(self.confidence), self.simultaneous]
        return json.dumps([self._written[0], promise, parts], separators=(",", ":"))

    @overload
    def release(
        self, *, to: None = None, request_id: str | None = None, analyst: str | None = None
    ) -> Answer: ...
    @overload
    def release(
        self, *, to: str | PathLike[str], request_id: str | None = None, analyst: str | None = None
    ) -> AnswerFile: ...
    def release(
        self, *, to: Any = None, request_id: str | None = None, analyst: str | None = None
    ) -> Any:
        """Spend ε, then read, draw and record; asked again, the recorded answer, free.

        With `to` the answer is a Parquet file of any number of rows, of which the ledger keeps the
        SHA-256 alone.
        """
        study = self.study
        if self.reported is not None:
            if to is not None:
                raise InvalidParameter(
                    "to= is for answers that are released; this one is free: release() and save it"
                )
            paid = study.ledger.entry(self.reported.entry, study=study.name)
            if paid is None:
                raise QueryRefused(
                    "the report with this table is no longer in the ledger: plan the question again"
                )
            study.ledger.repeat(entry_of(request_id), paid, analyst=analyst, asked=self.query.sql)
            return self.reported["table"]
        entry = entry_of(request_id)
        if sum((share.epsilon for share in self.shares), Fraction()) != self.cost:
            raise InvalidParameter(
                "the shares of a plan must add up to its epsilon; plan the question again at that ε"
            )
        if to is not None:
            from discreet.files.answer_file import release_to

            return release_to(self, to, entry, analyst)
        blank = self._blank()
        refuse_large(self, blank.size)  # what cannot be written is not paid for
        if not self.cost:  # nothing but public numbers
            return self._answer(self._answered(blank), study.remaining, entry)
        work = partial(self._answered, blank)
        room = blank.size + 3 * 8 * self.cells * len(self.texts)
        terms: dict[str, Any] = {"analyst": analyst, "asked": self.query.sql, "room": room}
        return self._answer(
            *answered(study, entry, self.canonical, self.epsilon, work, **terms), entry
        )

    def _answer(self, content: bytes, remaining: Fraction, entry: str) -> Answer:
        kept = self.study.kept
        return Answer(
            content=content,
            query=self.query,
            remaining=remaining,
            entry=entry,
            kept=kept,
            plan=self,
        )

    def fetched(self) -> Exact[list[list[Any]]]:
        """Everything that is read: the integers of all designs."""
        policy = self.study.policy
        measures = [measure for share in self.shares for measure in share.design.measures()]
        return self.study.engine.fetch(
            Request(
                measures=tuple(measures),
                groups=self.query.groups,
                where=self.query.where,
                unit=policy.unit_column,
                max_rows=policy.max_rows,
                max_groups=policy.max_groups,
            )
        )

    @property
    def sizes(self) -> list[int]:
        """How many integers of a group are those of each design."""
        return [len(share.design.measures()) for share in self.shares]

    def checked(self) -> Plan:
        """The plan itself, if it can be released: what would fail after the spend is refused here.

        Every scale is computed, and a table of one empty group is released and written down.
        """
        if 1 - self.level < LEAST_DOUBT:
            raise InvalidParameter(
                f"confidence is too near to 1 for {self.cells * len(self.query.aggregates):,}"
                " intervals that hold all together: lower it, or leave simultaneous out"
            )
        with suppress(ArithmeticError, ValueError):
            _ = self.lines
            for share in self.shares:
                _rehearse(
                    cast(Any, share.design), share.terms, _rehearsed_epsilon(share), self.level
                )
            return self
        raise InvalidParameter(
            "these bounds, epsilon and confidence give numbers that cannot be written down: choose"
            " less extreme ones"
        )

    def _answered(self, blank: Record) -> bytes:
        """Read, draw, and write down all that may be known; `blank` is what was known before."""
        work = partial(self.numbers, self.fetched())
        # choices are made in all groups at once
        whole = self.cells <= PART or any(
            isinstance(m, Cells) for s in self.shares for m in s.design.measures()
        )
        released = work() if whole else in_parts(work, self.cells)
        numbers: Any = {
            name: tuple(finite(array_of(column)) for column in three)
            for name, three in released.items()
        }
        return replace(blank, numbers=numbers).pack()

    def numbers(self, exact: Exact[list[Any]], cells: slice | None = None) -> dict[str, Columns]:
        """The released numbers of some cells, or of all, by name, with their intervals."""
        if cells is not None:
            exact = exact.map(lambda totals: [total[cells] for total in totals])
        numbers: dict[str, Columns] = {}
        for share, part in zip(self.shares, exact.split(self.sizes), strict=True):
            numbers |= columns(share.design, part, share.terms, share.epsilon, self.level)
        return numbers

    def _blank(self) -> Record:
        """The record without its numbers."""
        head = {**self.public_facts(), **discovery_facts(self.study.discovered, self.query.groups)}
        return Record(head, {group.name: key_column(group) for group in self.query.groups}, {})

    def public_facts(self) -> dict[str, Any]:
        """What a reader needs to judge the numbers."""
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
            "epsilon": str(self.cost),
            # of this release; keys that were discovered before say theirs under "discovered"
            "delta": "0",
            "confidence": str(self.confidence),
            "simultaneous": self.simultaneous,
            # what is declared, never a hash of the content: that would tell it
            "data_version": policy.version,
            "question": self._written[0],
            "statistics": [
                {
                    "name": line.name,
                    "asked": self.texts[line.name],
                    "sensitivity": str(line.sensitivity),
                    "scale": str(line.scale),
                    "step": str(line.step),
                    "noise": [str(scale) for scale in line.noise],
                    **(
                        {"rounding": str(self.roundings[line.name])}
                        if line.name in self.roundings
                        else {}
                    ),
                }
                for line in self.lines
            ],
        }

    @property
    def texts(self) -> dict[str, str]:
        """What each released number is, in the one text that a question has."""
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, dict[str, str]]:
        return questions.canonical(self.query), questions.texts(self.query)

    def titles(self) -> dict[str, str]:
        """What each released number is called in the answer; if it is only computed with, what it
        is.
        """
        named = {
            output.name: name
            for name, output in reversed(self.query.outputs)
            if isinstance(output, Named)
        }
        return {**self.texts, **named}

    @property
    def table(self) -> list[list[str]]:
        """What each released number costs and how near it will be, as text, below its headings."""
        titles = self.titles()
        order = {
            output.name: at
            for at, (_, output) in enumerate(self.query.outputs)
            if isinstance(output, Named)
        }
        lines = sorted(self.lines, key=lambda line: order.get(line.name, len(order)))
        rows = [
            [titles[line.name], shown(line.sensitivity), shown(line.scale), line.within]
            for line in lines
        ]
        return [["column", "Δ", "scale", error_heading(self)], *rows]

    @property
    def summary(self) -> str:
        """The size of the answer, its price and the promise, in one line."""
        policy, left = self.study.policy, self.study.remaining
        unit = (
            "each row a unit"
            if policy.unit == "row"
            else f"up to {policy.max_rows:,} rows a {policy.unit}"
        )
        after = self.asked_before and f"{self.asked_before}, {left_shown(left)} left"
        if not after:
            enough = left >= self.cost
            after = (
                f"left after: {left_shown(left - self.cost)}"
                if enough
                else f"only {left_shown(left)} is left"
            )
        many = "1 row" if self.cells == 1 else f"{self.cells:,} rows"
        return (
            f"{many} · ε {shown(self.cost)} of {shown(policy.epsilon)} ({after}) ·"
            f" {policy.neighbors} · {unit}"
        )

    def figure(self, **options: Any) -> Any:
        """The error against ε as a chart, with this plan's own point; free, as the plan is."""
        return views.planned(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        headings, *rows = self.table
        return "\n".join(
            [
                one_line(self.summary),
                *table_lines(headings, rows),
                *([one_line(" ".join(self.notes))] if self.notes else []),
                *map(one_line, self.warnings),
                "Nothing was read, nothing is spent.",
            ]
        )

    @property
    def notes(self) -> list[str]:
        """What happens to missing, out-of-bounds and undeclared values, and to lines of text."""
        sentences = notes(self.query)
        if self.reported is not None:
            # without the title, which may be that of another analyst
            sentences.insert(0, "It is answered from a report that was released before: free.")
        if keeps_every_unit(self.query) and self.study.policy.neighbors == "change-one":
            size = public_size(self.study.policy, self.study.engine)
            sentences += [] if size.value else [size.sentence]
        titles = self.titles()
        return [
            *sentences,
            *(uncovered(titles[name], half) for name, half in self.roundings.items()),
        ]

    @property
    def roundings(self) -> dict[str, Fraction]:
        """The sums whose intervals leave out the rounding of values, and how far each moves."""
        if self.reported is not None:
            return {}
        moments = (share for share in self.shares if isinstance(share.design, MomentDesign))
        halves = ((share.design, share.design.uncovered(share.terms)) for share in moments)  # type: ignore[attr-defined]
        return {name: half for design, half in halves if half for name in design.names}

    @property
    def warnings(self) -> list[str]:
        """What a custodian should know before releasing."""
        if self.size is None:
            return []
        warnings = []
        titles = self.titles()
        reach = {line.name: line.reach or 0.0 for line in self.lines}
        if 0 < self.cost < Fraction(1, self.size):
            warnings.append(f"warning: ε below 1/{self.size:,} tells nothing useful about so few")
        for name, aggregate in self.query.aggregates:
            if isinstance(aggregate, Moment) and reach[name] >= largest(aggregate):
                warnings.append(
                    f"warning: the noise of {titles[name]} is larger than its bounds at"
                    f" {self.size:,} rows"
                )
        return warnings


def uncovered(title: str, half: Fraction) -> str:
    """That a sum's interval leaves out the rounding of its values, and what can be done."""
    return (
        f"The error of {title} leaves out the rounding of values, at most"
        f" {readable(as_float(half), 3)} a row, since the number of values is private; a mean asked"
        " with it gives that number."
    )


def asked_before(study: Study, canonical: str, epsilon: Fraction) -> str:
    """That a question was answered before, as far as that is known without a look at the data."""
    ledger = study.budget.known()
    versions = [] if ledger is None else ledger.answered(canonical, epsilon, study=study.name)
    if study.policy.version is not None:
        return "asked before: free" if study.policy.version in versions else ""
    return "asked before: free while the data is the same" if versions else ""


def error_heading(plan: Plan | ReportPlan) -> str:
    """The heading of errors in a table."""
    return (
        f"error ({float(plan.confidence) * 100:g} %{', all together' if plan.simultaneous else ''})"
    )


def _rehearsed_epsilon(share: Share) -> Fraction:
    """The ε at which a share is rehearsed: of sums, the next lower power of two, with at most twice
    the noise.

    All ε between two powers share the rehearsal. A range within a factor of two of the largest
    float may be refused.
    """
    return (
        Fraction(2) ** floor_log2(share.epsilon)
        if isinstance(share.design, _SUMS)
        else share.epsilon
    )


@lru_cache(maxsize=512)
def _rehearse(design: Any, terms: UnitLimits, epsilon: Fraction, level: Fraction) -> None:
    """Release one empty group and write it down; choices of ranks are alike in all groups, and only
    tried in one.
    """
    if terms.cells > 1 and not isinstance(design, _SUMS):
        return
    points = tuple(
        item.value.grid.width + 1 if isinstance(item, Cells) else 0 for item in design.measures()
    )
    json.dumps(items(design, _empty(points), terms, epsilon, level), allow_nan=False)


@lru_cache(maxsize=64)
def _empty(points: tuple[int, ...]) -> Exact[list[list[Any]]]:
    """The integers of one empty group: counts of so many cells, or a number."""
    return Exact([[np.zeros(cells, np.int64)] if cells else [0] for cells in points])


@lru_cache(maxsize=16)
def key_column(group: questions.Group) -> Any:
    """The keys of a group column as a column of a record, with the label of the rest last."""
    keys, other = group.keys, group.other
    if keys.whole and other is None:
        return np.from_dlpack(keys.column)
    if keys.kind == "text" or (keys.kind != "number" and other is None):
        return group.labels()
    return keys_of([plain_key(key) for key in (*keys, *([] if other is None else [other]))])


def plan_of(
    study: Study,
    query: Query,
    *,
    epsilon: Fraction,
    confidence: Fraction,
    simultaneous: bool = False,
    weights: Mapping[str, Any] | None = None,
    size: int | None = None,
    trials: int = 0,
) -> Plan:
    """The plan of a query at ε; a search will compute its errors at so many further ε.

    Too much work is refused.
    """
    cells, many = math.prod(group.size for group in query.groups), len(query.aggregates)
    refuse_more(
        "a question", sum(len(released(*pair)) for pair in query.aggregates), MOST_ASKED, "numbers"
    )
    plan = Plan(
        study=study,
        query=query,
        epsilon=epsilon,
        confidence=confidence,
        simultaneous=simultaneous,
        shares=shared(
            study.policy,
            query,
            cells,
            epsilon,
            weights or {},
            size=public_size(study.policy, study.engine),
        ),
        cells=cells,
        size=size,
    )
    advice = "ask in two questions" + (", or give epsilon instead of within" if trials else "")
    refuse_much(
        of_question(plan.shares, 1 + CURVE + trials), f"this question of {many:,} numbers", advice
    )
    return plan


def plain_key(key: object) -> object:
    """A key as JSON has it."""
    if isinstance(key, Fraction):
        return int(key) if key.denominator == 1 else float(key)
    return key if isinstance(key, str | bool | int | float | None) else str(key)
