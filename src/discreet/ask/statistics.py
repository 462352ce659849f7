"""The statistics: one row each, from which everything else takes their names.

    arrays, certificates   `name`: discreet.mean(…) and certify("mean", …), with `examples` for `discreet verify`
    SQL                    `sql` and `sample`, the forms over n − 1; the first one is what refusals offer
    Python, HTTP           `question`: Mean("age"), or {"kind": "Mean", "of": "age"}
    the page               `menu`: what its list says, and the SQL that it writes
    release                `base` and `shape`: a std is the root of a variance, and costs what a variance costs

Whatever is a rising function of a mean or a variance needs no more than its row. What is made of other integers has a
design of its own in `release.statistics`, and an aggregate in `ask.query` (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from discreet.ask.kinds import kind_of, refused
from discreet.parameters import Number

if TYPE_CHECKING:
    from discreet.ask.expression import Expression
    from discreet.ask.query import Aggregate
    from discreet.ask.scope import Scope


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a study, in Python; `of` is a column or an expression of the row language, as text."""


@dataclass(frozen=True, slots=True)
class Count(Question):
    """How many rows; of an expression, those where it is not missing; of a condition, those where it is true."""

    of: str | None = None


@dataclass(frozen=True, slots=True)
class CountUnits(Question):
    """How many units: count(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class Sum(Question):
    """The sum of a number."""

    of: str


@dataclass(frozen=True, slots=True)
class Mean(Question):
    """The mean of a number."""

    of: str


@dataclass(frozen=True, slots=True)
class Variance(Question):
    """The variance of a number, over n, or over n − 1 for a sample."""

    of: str
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Std(Question):
    """The standard deviation of a number, over n, or over n − 1 for a sample."""

    of: str
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Median(Question):
    """The median of a number."""

    of: str


@dataclass(frozen=True, slots=True)
class Quantile(Question):
    """A quantile of a number, or several: `Quantile("age", 0.9)`, `Quantile("age", [0.25, 0.75])`."""

    of: str
    share: Number | Sequence[Number]


@dataclass(frozen=True, slots=True)
class Min(Question):
    """The smallest number."""

    of: str


@dataclass(frozen=True, slots=True)
class Max(Question):
    """The largest number."""

    of: str


@dataclass(frozen=True, slots=True)
class Proportion(Question):
    """The share of rows where a condition is true, among those where it is not missing."""

    of: str


@dataclass(frozen=True, slots=True)
class Histogram(Question):
    """How many rows are in each bin of a number: the declared bins, or these edges. It is asked alone."""

    of: str
    bins: Sequence[Number] | None = None


class Menu(NamedTuple):
    """An entry of the page's list: what it says, what it is of, and the SQL that it writes."""

    name: str
    of: Literal["number", "truth", "unit"] | None = "number"
    sql: str | None = None
    """With {column} and {share}; None is the first name in SQL, of the column."""


BOUNDED = {"bounds": (0, 120)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """How one statistic is called everywhere, and what it is made of."""

    name: str
    """In canonical texts, and of the function for arrays."""
    examples: tuple[Mapping[str, Any], ...] = (BOUNDED,)
    """Parameters that `discreet verify` proves the function for arrays with; none where there is no such function."""
    question: type[Question] | None = None
    sql: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    """Names in SQL of the form over n − 1; `sql` is then that over n."""
    menu: Menu | None = None
    aggregate: Callable[[Scope, Any], Aggregate] | None = None
    """What a question about an expression releases; None for moments."""
    base: Literal["count", "sum", "mean", "variance"] | None = None
    """Of a moment: what it follows from."""
    shape: Callable[[Any], Any] | None = None
    """The rising function of a mean or a variance that it is, of floats and of arrays of them; None for itself."""
    slope: Callable[[float], float] | None = None
    """The derivative of the shape, for the error that a plan shows."""

    @property
    def word(self) -> str:
        """The name in SQL that refusals and the page use."""
        return (*self.sample, *self.sql)[0].lower()

    @property
    def form(self) -> str:
        """The SQL that the page writes, with {column} and {share}; empty where its list has no such entry."""
        return "" if self.menu is None else self.menu.sql or f"{self.word}({{column}})"

    def asked(self, scope: Scope, of: Any, *, sample: bool = False) -> Aggregate:
        """What a question about an expression releases."""
        return scope.moment(self.name, of, sample=sample) if self.aggregate is None else self.aggregate(scope, of)


def _root(number: Any) -> Any:
    import numpy as np

    return np.sqrt(number)


def _proportion(scope: Scope, of: Expression) -> Aggregate:
    if kind_of(of) != "truth":
        raise refused('a proportion is of a condition, as in Proportion("age >= 65")')
    return scope.moment("mean", of)


STATISTICS = {
    row.name: row
    for row in (
        Statistic(
            name="count",
            examples=({},),
            question=Count,
            sql=("COUNT", "COUNT DISTINCT", "COUNT_IF", "COUNTIF"),
            menu=Menu("number of rows", None, "count(*)"),
            aggregate=lambda scope, of: scope.count(of),
            base="count",
        ),
        Statistic(
            name="units",
            examples=(),
            question=CountUnits,
            menu=Menu("number of units", "unit", "count(DISTINCT {column})"),
            aggregate=lambda scope, _: scope.units(),
        ),
        Statistic(name="sum", question=Sum, sql=("SUM",), menu=Menu("sum"), base="sum"),
        Statistic(name="mean", question=Mean, sql=("AVG", "MEAN"), menu=Menu("mean"), base="mean"),
        Statistic(
            name="variance",
            question=Variance,
            sql=("VAR_POP", "VARIANCE_POP"),
            sample=("VARIANCE", "VAR", "VAR_SAMP", "VARIANCE_SAMP"),
            menu=Menu("variance"),
            base="variance",
        ),
        Statistic(
            name="std",
            question=Std,
            sql=("STDDEV_POP",),
            sample=("STDDEV", "STD", "STDEV", "STDDEV_SAMP"),
            menu=Menu("standard deviation"),
            base="variance",
            shape=_root,
            slope=lambda variance: 0.5 / _root(variance),
        ),
        Statistic(name="mean_and_std"),
        Statistic(name="summary"),
        Statistic(
            name="median",
            question=Median,
            sql=("MEDIAN",),
            menu=Menu("median"),
            aggregate=lambda scope, of: scope.quantiles(of, (Fraction(1, 2),)),
        ),
        Statistic(
            name="quantile",
            examples=({**BOUNDED, "q": "0.9"},),
            question=Quantile,
            sql=("QUANTILE", "APPROX_QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE_CONT", "QUANTILE_DISC"),
            menu=Menu("quantile", "number", "quantile({column}, {share})"),
        ),
        Statistic(
            name="quantiles",
            examples=tuple({**BOUNDED, "qs": [f"0.{tenth}" for tenth in range(1, 10, step)]} for step in (8, 1)),
        ),
        Statistic(
            name="min",
            question=Min,
            sql=("MIN",),
            menu=Menu("least"),
            aggregate=lambda scope, of: scope.extreme("min", of),
        ),
        Statistic(
            name="max",
            question=Max,
            sql=("MAX",),
            menu=Menu("greatest"),
            aggregate=lambda scope, of: scope.extreme("max", of),
        ),
        Statistic(
            name="proportion",
            examples=({},),
            question=Proportion,
            menu=Menu("proportion", "truth", "avg({column})"),
            aggregate=_proportion,
        ),
        Statistic(
            name="histogram",
            examples=({"bins": 50}, {"bins": 2}, {"keys": "1..12"}, {"keys": "1..1", "other": "other"}),
            question=Histogram,
            sql=("HISTOGRAM",),
        ),
        Statistic(name="value_counts", examples=({"keys": "1..12"},)),
        Statistic(name="cdf"),
    )
}


@cache
def moment(statistic: str) -> Statistic:
    """The row of a moment, or of its sample form, which has a + behind it."""
    return STATISTICS[statistic.rstrip("+")]
