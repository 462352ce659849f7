"""The table of statistics, from which everything else takes their names.

    arrays, certificates   `name`: discreet.mean(…) and certify("mean", …), with `examples` for
                           `discreet verify`
    SQL                    `sql` and `sample`, the forms over n − 1; refusals suggest the first name
    Python, HTTP           `question`: Mean("age"), or {"kind": "Mean", "of": "age"}
    the page               `menu`: the entry in its list, and its SQL
    release                `base` and `shape`: a std is the root of a variance, and costs as much

An increasing function of a mean or a variance needs only its row here. A statistic of other
integers also has a design in `release.statistics` and an aggregate in `ask.query`
(CONTRIBUTING.md).
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
    """A statistic that is asked of a study; `of` is a column or an expression, as text."""


@dataclass(frozen=True, slots=True)
class Count(Question):
    """The number of rows.

    Parameters
    ----------
    of : text, optional
        An expression, to count the rows where it is not missing, or a condition, to count the rows
        where it is true.

    Examples
    --------
    >>> Count("age >= 65")
    Count(of='age >= 65')

    """

    of: str | None = None


@dataclass(frozen=True, slots=True)
class CountUnits(Question):
    """The number of units: count(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class Sum(Question):
    """The sum of a number.

    Parameters
    ----------
    of : text
        A column or an expression with bounds, such as "income / 1000".

    Examples
    --------
    >>> Sum("income / 1000")
    Sum(of='income / 1000')

    """

    of: str


@dataclass(frozen=True, slots=True)
class Mean(Question):
    """The mean of a number, as in `Mean("age")`; `of` is as in `Sum`."""

    of: str


@dataclass(frozen=True, slots=True)
class Variance(Question):
    """The variance of a number.

    Parameters
    ----------
    of : text
        As in `Sum`.
    sample : bool
        Whether to divide by n − 1 instead of n.

    Examples
    --------
    >>> Variance("age", sample=True)
    Variance(of='age', sample=True)

    """

    of: str
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Std(Question):
    """The standard deviation of a number.

    Parameters
    ----------
    of, sample
        As in `Variance`.

    Examples
    --------
    >>> Std("age")
    Std(of='age', sample=False)

    """

    of: str
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Median(Question):
    """The median of a number, as in `Median("age")`; `of` is as in `Sum`."""

    of: str


@dataclass(frozen=True, slots=True)
class Quantile(Question):
    """One or several quantiles of a number.

    Parameters
    ----------
    of : text
        As in `Sum`.
    share : number or sequence of numbers
        The shares, from 0 to 1.

    Examples
    --------
    >>> Quantile("age", [0.25, 0.75])
    Quantile(of='age', share=[0.25, 0.75])

    """

    of: str
    share: Number | Sequence[Number]


@dataclass(frozen=True, slots=True)
class Min(Question):
    """The smallest value of a number, as in `Min("age")`; `of` is as in `Sum`."""

    of: str


@dataclass(frozen=True, slots=True)
class Max(Question):
    """The largest value of a number, as in `Max("age")`; `of` is as in `Sum`."""

    of: str


@dataclass(frozen=True, slots=True)
class Proportion(Question):
    """The share of rows where a condition is true, among the rows where it is not missing.

    Parameters
    ----------
    of : text
        The condition.

    Examples
    --------
    >>> Proportion("age >= 80")
    Proportion(of='age >= 80')

    """

    of: str


@dataclass(frozen=True, slots=True)
class Histogram(Question):
    """The number of rows in each bin of a number. It must be asked alone.

    Parameters
    ----------
    of : text
        A column or an expression.
    bins : sequence of numbers, optional
        The edges of the bins; by default the declared bins.

    Examples
    --------
    >>> Histogram("age", [0, 18, 65, 120])
    Histogram(of='age', bins=[0, 18, 65, 120])

    """

    of: str
    bins: Sequence[Number] | None = None


class Menu(NamedTuple):
    """An entry of the page's list: its name, the kind of its column, and its SQL."""

    name: str
    of: Literal["number", "truth", "unit"] | None = "number"
    sql: str | None = None
    """With {column} and {share}; None is the first SQL name of the statistic, applied to the
    column.
    """


BOUNDED = {"bounds": (0, 120)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """The names of a statistic everywhere, and how it is computed."""

    name: str
    """The name in canonical texts, and of the array function."""
    examples: tuple[Mapping[str, Any], ...] = (BOUNDED,)
    """Parameters for which `discreet verify` proves the array function; empty if there is no such
    function.
    """
    question: type[Question] | None = None
    sql: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()
    """SQL names of the form over n − 1; `sql` is then the form over n."""
    menu: Menu | None = None
    aggregate: Callable[[Scope, Any], Aggregate] | None = None
    """The aggregate of a question about an expression; None for moments."""
    base: Literal["count", "sum", "mean", "variance"] | None = None
    """The statistic from which a moment follows."""
    shape: Callable[[Any], Any] | None = None
    """The increasing function of a mean or a variance, for floats and arrays; None for the
    identity.
    """
    slope: Callable[[float], float] | None = None
    """The derivative of the shape, for the error that a plan shows."""

    @property
    def word(self) -> str:
        """The SQL name that refusals and the page use."""
        return (*self.sample, *self.sql)[0].lower()

    @property
    def form(self) -> str:
        """The SQL of the page, with {column} and {share}; empty if the page's list does not have
        the statistic.
        """
        return "" if self.menu is None else self.menu.sql or f"{self.word}({{column}})"

    def aggregate_of(self, scope: Scope, of: Any, *, sample: bool = False) -> Aggregate:
        """The aggregate of a question about an expression."""
        return (
            scope.moment(self.name, of, sample=sample)
            if self.aggregate is None
            else self.aggregate(scope, of)
        )


def _root(number: Any) -> Any:
    import numpy as np

    return np.sqrt(number)


def _proportion(scope: Scope, of: Expression) -> Aggregate:
    if kind_of(of) != "truth":
        raise refused('a proportion needs a condition, as in Proportion("age >= 65")')
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
            sql=(
                "QUANTILE",
                "APPROX_QUANTILE",
                "PERCENTILE_CONT",
                "PERCENTILE_DISC",
                "QUANTILE_CONT",
                "QUANTILE_DISC",
            ),
            menu=Menu("quantile", "number", "quantile({column}, {share})"),
        ),
        Statistic(
            name="quantiles",
            examples=tuple(
                {**BOUNDED, "qs": [f"0.{tenth}" for tenth in range(1, 10, step)]} for step in (8, 1)
            ),
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
            examples=(
                {"bins": 50},
                {"bins": 2},
                {"keys": "1..12"},
                {"keys": "1..1", "other": "other"},
            ),
            question=Histogram,
            sql=("HISTOGRAM",),
        ),
        Statistic(name="value_counts", examples=({"keys": "1..12"},)),
        Statistic(name="cdf"),
    )
}


@cache
def moment(statistic: str) -> Statistic:
    """The row of a moment, or of its sample form, whose name ends in +."""
    return STATISTICS[statistic.rstrip("+")]
