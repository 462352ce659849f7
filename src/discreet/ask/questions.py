"""Questions in Python, and their query: the same, with the same canonical text, as in SQL.

    study.where("age >= 65").by("county").ask(people=Count(), age=Mean("age"), old=Proportion("age
    >= 80"))

`ask.statistics` defines the statistics; `build` makes the query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypedDict, TypeGuard, TypeVar, Unpack

from discreet.ask.declared import edges
from discreet.ask.expression import Every, Expression, Schema
from discreet.ask.kinds import refused
from discreet.ask.normal import decimal, normal
from discreet.ask.policy import Policy
from discreet.ask.query import (
    Aggregate,
    Group,
    Named,
    Output,
    Query,
    aggregate_text,
    assembled,
    group_text,
)
from discreet.ask.scope import Scope
from discreet.ask.sql import parse_condition, parse_expression, parse_group
from discreet.ask.sql.words import LONGEST_QUESTION
from discreet.ask.statistics import STATISTICS, Count, CountUnits, Histogram, Quantile, Question
from discreet.parameters import Epsilon, Number, exact_number, quote

_STATISTICS = {row.question: row for row in STATISTICS.values() if row.question is not None}

Plan = TypeVar("Plan")
"""The plan of a question, made here or by a server."""


class PlanTerms(TypedDict, total=False):
    """The terms on which a question is planned."""

    epsilon: Epsilon | None
    """The privacy budget of the answer."""
    within: Number | Mapping[str, Number] | None
    """The largest error of each number, or by column: the plan has the smallest ε that achieves it.
    """
    confidence: Number
    """The confidence of the intervals; 0.95 by default."""
    simultaneous: bool
    """Whether all intervals hold at once with this confidence, rather than each one."""
    weights: Mapping[str, Number] | None
    """The weight of each column's error relative to the other columns."""
    size: int | None
    """The group size for which the plan shows errors."""


class Askable(ABC, Generic[Plan]):
    """A study that can be asked, here or on a server."""

    def where(self, condition: str) -> Asked[Plan]:
        """Ask about the rows where the condition is true."""
        return Asked(study=self).where(condition)

    def by(self, *columns: str) -> Asked[Plan]:
        """Ask about each group."""
        return Asked(study=self).by(*columns)

    def ask(self, **questions: Question) -> Asked[Plan]:
        """Ask about all rows."""
        return Asked(study=self).ask(**questions)

    def groupby(self, *columns: str | Sequence[str]) -> Asked[Plan]:
        """Ask about each group, as in pandas: `groupby("county").agg(age=("age", "mean"))`."""
        for names in columns:
            if not isinstance(names, str | Sequence):
                raise refused(
                    f'groupby takes names of columns, as in groupby("county"), got {quote(names)}'
                )
        return Asked(study=self).by(*(name for names in columns for name in _texts(names)))

    def agg(self, **questions: Question | str | tuple[str, str]) -> Asked[Plan]:
        """Ask about all rows, as in pandas; see `Asked.agg`."""
        return Asked(study=self).agg(**questions)

    @abstractmethod
    def _plan_of(self, asked: Asked[Plan], terms: PlanTerms) -> Plan: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Plan]):
    """A question under construction; every method returns a new question."""

    study: Askable[Plan]
    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    questions: tuple[tuple[str, Question], ...] = ()

    def where(self, condition: str) -> Asked[Plan]:
        """Keep only the rows where this condition is true as well."""
        return replace(self, conditions=(*self.conditions, condition))

    def by(self, *columns: str) -> Asked[Plan]:
        """Group by these columns."""
        return replace(self, columns=(*self.columns, *columns))

    def ask(self, **questions: Question) -> Asked[Plan]:
        """Ask for these statistics, under these names."""
        return replace(self, questions=(*self.questions, *questions.items()))

    def agg(self, **questions: Question | str | tuple[str, str]) -> Asked[Plan]:
        """Ask for these statistics, as in pandas: `agg(people="count", age=("age", "mean"))`.

        The second word is a statistic of one column: count, sum, mean, median, min, max,
        proportion, or std and var, which divide by n − 1 as in pandas.
        """
        return self.ask(
            **{name: _of_pandas(name, question) for name, question in questions.items()}
        )

    def plan(self, **terms: Unpack[PlanTerms]) -> Plan:
        """The plan of the question: its cost and its errors. Nothing is read, nothing is spent.

        Give `epsilon=`, the budget, or `within=`, the largest error; the other `PlanTerms` are
        optional.
        """
        return self.study._plan_of(self, terms)


_IN_PANDAS = {"size": "count", "var": "variance", "average": "mean"}


def _of_pandas(name: str, question: object) -> Question:
    """The question of an argument of `agg`."""
    if isinstance(question, Question):
        return question
    of, word = (
        (None, question)
        if isinstance(question, str)
        else question
        if _is_pair(question)
        else (None, None)
    )
    row = STATISTICS.get(_IN_PANDAS.get(str(word), str(word)))
    kind = None if row is None else row.question
    if (
        kind is None
        or kind in (Histogram, Quantile, CountUnits)
        or (of is None and kind is not Count)
    ):
        raise refused(
            f'{quote(name)} must be "count", or a column and a statistic such as ("age", "mean")'
        )
    if kind is Count:
        return Count(of)
    return kind(of, sample=True) if "sample" in kind.__dataclass_fields__ else kind(of)  # type: ignore[call-arg]


def build(
    policy: Policy,
    schema: Schema,
    *,
    ask: Mapping[str, Question],
    where: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
) -> Query:
    """The query for named questions about the rows where all conditions are true, by group."""
    scope = Scope(policy, schema)

    def read(text: str | None) -> Expression:
        return parse_expression(text, policy, schema)  # type: ignore[arg-type]

    subjects = [str(getattr(question, "of", "") or "") for question in ask.values()]
    _refuse_long([*_texts(by), *_texts(where or ()), *subjects])
    groups = [parse_group(text, policy, schema) for text in _texts(by)]
    outputs: list[tuple[str, Output]] = [(name, Named(group_text(group))) for name, group in groups]
    aggregates: list[Aggregate] = []
    if not ask:
        raise refused("the question asks for no statistic; ask for Count(), or another statistic")
    for name, question in ask.items():
        if type(question) not in _STATISTICS:
            raise refused(
                f'{quote(name)} must be a question such as Count() or Mean("age"), got'
                f" {quote(question)}"
            )
        if isinstance(question, Histogram):
            if len(ask) > 1:
                raise refused(
                    "a histogram must be asked alone, or by groups; ask the other questions"
                    " separately"
                )
            group = _bins(scope, read(question.of), question.bins)
            groups.append((name, group))
            outputs.append((name, Named(group_text(group))))
            question, name = (  # noqa: PLW2901 - a histogram is a count of rows in bins
                Count(),
                "count",
            )
        aggregate, numbers = _released(scope, read, name, question)
        aggregates.append(aggregate)
        outputs += numbers
    condition = normal(
        Every(tuple(parse_condition(text, policy, schema) for text in _texts(where or ())))
    )
    unnamed = tuple(("", aggregate) for aggregate in aggregates)
    return assembled(Query(unnamed, tuple(outputs), tuple(group for _, group in groups), condition))


def _released(
    scope: Scope, read: Callable[[str | None], Expression], name: str, question: Question
) -> tuple[Aggregate, list[tuple[str, Output]]]:
    """The aggregate of a question, and its columns of the answer."""
    if isinstance(question, Quantile):
        listed = question.share if isinstance(question.share, list | tuple) else [question.share]
        several = listed is question.share
        shares = [exact_number("share", share) for share in listed]
        quantiles = scope.quantiles(read(question.of), tuple(shares))
        texts = [aggregate_text(replace(quantiles, shares=(share,))) for share in shares]
        names = [f"{name}_{decimal(share * 100)}" if several else name for share in shares]
        return quantiles, [(column, Named(text)) for column, text in zip(names, texts, strict=True)]
    of = getattr(question, "of", None)
    subject = None if of is None and isinstance(question, Count | CountUnits) else read(of)
    sample = bool(getattr(question, "sample", False))
    aggregate = _STATISTICS[type(question)].aggregate_of(scope, subject, sample=sample)
    return aggregate, [(name, Named(aggregate_text(aggregate)))]


def _bins(scope: Scope, of: Expression, bins: object) -> Group:
    """The group column of a histogram."""
    bins = list(bins) if isinstance(bins, Iterable) else bins
    group = scope.group(of, None if bins is None else edges(bins))
    if group.edges is None:
        raise refused(
            'a histogram needs bins; declare them, or write Histogram("age", [0, 18, 65])'
        )
    return group


def _is_pair(value: object) -> TypeGuard[tuple[Any, Any]]:
    return isinstance(value, tuple | list) and len(value) == 2


def _texts(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts


def _refuse_long(texts: Sequence[object]) -> None:
    """Refuse texts whose total length exceeds that of a question in SQL."""
    length = sum(len(text) for text in texts if isinstance(text, str))
    if length > LONGEST_QUESTION:
        raise refused(
            f"a question may have {LONGEST_QUESTION:,} characters in all, got {length:,}; ask less"
            " at once"
        )
