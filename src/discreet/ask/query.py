"""Questions as frozen values. A query never runs itself.

A query has a condition on rows, group columns, named aggregates, and what is done to released numbers afterwards
(arithmetic, HAVING, ORDER BY, LIMIT), which costs nothing. Two spellings of one question have one `canonical` text.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from discreet.ask.expression import Expression


@dataclass(frozen=True, slots=True)
class Count:
    """Rows that count; with an expression, rows where it is not missing (or, if it is a truth, is true)."""

    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class CountUnits:
    """How many units have a row that counts: count(distinct unit)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Sum, mean, variance or std of a number; mean of a truth is a proportion."""

    statistic: Literal["sum", "mean", "variance", "std"]
    of: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    """Whether the values are integers (so that the step is 1)."""
    missing: Fraction | None
    """What a missing value counts as; None drops it."""
    precision: Fraction | None = None
    """A coarser step that the policy declares."""
    sample: bool = False
    """Variance and std with n − 1."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """One or more quantiles of a number."""

    of: Expression
    shares: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction
    whole: bool
    missing: Fraction | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """Minimum or maximum of a number."""

    side: Literal["min", "max"]
    of: Expression
    lower: Fraction
    upper: Fraction
    whole: bool
    missing: Fraction | None


Aggregate: TypeAlias = Count | CountUnits | Moment | Quantiles | Extreme


@dataclass(frozen=True, slots=True)
class Group:
    """A group column: an expression, and the values for which there is a row in the answer, in declared order.

    `keys` are texts, numbers (Fractions), dates or truths; `other` is the label of a last row for all other values, or
    None to drop them. For bins, `edges` are given and keys are their labels in order: [edge, next edge), the last closed.
    """

    name: str
    of: Expression
    keys: tuple[object, ...]
    other: str | None = None
    edges: tuple[Fraction, ...] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A released number, or a group's key, by its name in the query."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant among released numbers."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Combined:
    """Arithmetic of released numbers; a quotient by 0 is missing."""

    sign: Literal["+", "-", "*", "/"]
    left: Output
    right: Output


Output: TypeAlias = Named | Number | Combined


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on released numbers, for HAVING: one comparison, or several under AND or OR."""

    sign: Literal["=", "<>", "<", "<=", ">", ">=", "and", "or"]
    parts: tuple[Output | Test, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a study.

    `aggregates` are what is released, each under a private name; `outputs` are the columns of the answer, in order, each
    a group's key, a released number or arithmetic of them; the rest acts on released numbers only.
    """

    aggregates: tuple[tuple[str, Aggregate], ...]
    outputs: tuple[tuple[str, Output], ...]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    having: Test | None = None
    order: tuple[tuple[Output, bool], ...] = ()
    """Outputs to sort by, each with whether it is descending."""
    limit: int | None = None
