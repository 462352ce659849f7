"""How often intervals hold the truth, for every statistic in every spelling, on data that is hard
for them.

    array            discreet.mean(x, bounds=…) and the like; missing values of floats are dropped
    array, n public  the same with missing=, so that n is public under change-one
    SQL              SELECT avg(x) FROM data
    SQL, n public    the same where the policy replaces missing values
    units            the same with two rows for each unit
    GROUP BY         SELECT g, avg(x) FROM data GROUP BY g, all rows in one of two groups
    report           a report with that table, all of whose groups have the same rows

A *trial* is a statistic in one spelling, under one relation, on one data set and at one ε. It is
asked once and its noise is drawn `runs` times. The truth is the statistic of the values within
their bounds, before they are rounded to the grid; only where a release says that its interval
leaves rounding out, and for cumulative counts, it is that of the rounded values. Quantiles are the
smallest value that at least a share q of the values does not exceed. Intervals of the parts of a
vector are counted for each part, and the worst part counts; those of trees must hold all together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from scipy import stats

import discreet
from copies import released, releases_of
from discreet import Policy, Study
from discreet.calibrate.grid import value_grid
from discreet.records import Record
from discreet.release.intervals.spreads import in_order
from discreet.release.postprocessing import columns_of
from discreet.release.reports import report as report_module
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.statistics.moments import SUM_BITS
from studies import Paper, select

LEVEL = Fraction(19, 20)
RELATIONS = ("change-one", "add-remove")
SIZES = (0, 1, 2, 10, 1000)
EPSILONS = ("1/2", "10")
MIDWAY = "1000000"
"""The largest ε: the noise is smaller than what the rounding of ten thousand values can add up to.
"""

ALARM = 1e-6
"""Of a whole table, for the probability that some trial fails though all intervals hold as often as
they say.
"""

_DECILES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))
_THREE = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_EQUAL = 1e-12
"""Ends are floats: the last bits of both sides are rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """Values within bounds, on which an interval could fail."""

    name: str
    values: np.ndarray
    bounds: tuple[float, float]
    precision: str | None = None
    epsilons: tuple[str, ...] = EPSILONS

    @property
    def whole(self) -> bool:
        return self.values.dtype.kind == "i"

    def rounded(self, step: Fraction) -> Data:
        """The values on a grid."""
        size = float(step)
        return replace(self, values=np.floor(self.values / size + 0.5) * size)


def data_sets(sizes: Sequence[int] = SIZES) -> list[Data]:
    """The adversarial list."""
    found = []
    for n in sizes:
        at = np.arange(n)
        shapes: list[tuple[str, Any, tuple[float, float]]] = [
            ("balanced 0/1", at % 2, (0, 1)),
            ("all at the upper bound", np.full(n, 5.0), (-3, 5)),
            ("all at the lower bound", np.full(n, 0), (0, 20)),
            ("two values", np.where(at % 10 == 0, 9, 2), (0, 10)),
            (
                "two clusters, a gap between",
                np.where(at % 2, 0.9, 0.0) + 0.1 * at / max(n, 1),
                (0, 1),
            ),
            ("atoms", np.minimum(np.random.default_rng(n).geometric(0.3, n) - 1, 20), (0, 20)),
        ]
        found += [
            Data(name=f"{name}, n = {n:,}", values=values, bounds=bounds)
            for name, values, bounds in shapes
        ]
    places = np.random.default_rng(7).integers(0, 2**16 - 1, 10_000)
    for bits in (16, 18, 22, 30):
        grid = 2.0**-bits
        values = places / 2**16 + grid / 2
        found.append(
            Data(name=f"midway between 2^-{bits}", values=values, bounds=(0, 1), epsilons=(MIDWAY,))
        )
    fractions = np.full(5000, 40.2)
    for name, values in (
        ("40.2", fractions),
        ("40.5", fractions + 0.3),
        ("0.5 and 40.5", np.arange(5000) % 2 * 40 + 0.5),
    ):
        data = Data(
            name=f"{name}, precision = 1",
            values=values,
            bounds=(0, 100),
            precision="1",
            epsilons=("1", "40"),
        )
        found.append(data)
    return found


def ranked(share: Fraction, x: np.ndarray) -> float:
    """The smallest value that at least a share of the values does not exceed."""
    return float(np.sort(x)[max(math.ceil(share * len(x)), 1) - 1])


def all_ranked(shares: Sequence[Fraction], x: np.ndarray) -> np.ndarray:
    return np.array([ranked(share, x) for share in shares])


def sample_variance(x: np.ndarray) -> float:
    """Of one value it is 0."""
    return float(np.var(x, ddof=1)) if len(x) > 1 else 0.0


def high(x: np.ndarray) -> np.ndarray:
    """Whether a value exceeds 1/2, a condition that some values meet in most of the data sets."""
    return x > 0.5


Truth = Callable[[Data], Any]


def of(statistic: Callable[[np.ndarray], Any]) -> Truth:
    """A statistic of the values of a data set."""
    return lambda data: statistic(data.values)


def edges_of(bounds: tuple[float, float]) -> list[float]:
    low, up = bounds
    return [low, low + (up - low) * 0.2, low + (up - low) * 0.45, up]


def below(found: Any, data: Data) -> np.ndarray:
    """How many values, rounded to the points, are at or below each point."""
    step = found.points[1] - found.points[0]
    rounded = np.sort(
        np.floor((data.values - found.points[0]) / step + 0.5) * step + found.points[0]
    )
    return np.searchsorted(rounded, found.points + step / 4)


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """What is asked, and what it truly is."""

    name: str
    truth: Truth
    array: Callable[..., Any] | None = None
    sql: str | None = None
    """Expressions of x; the first of them is judged."""
    report: bool = False
    fewest: int = 1
    """Values without which it is not defined."""
    ends: Callable[[Any, Data], tuple[Any, Any]] | None = None
    """The ends of an array's release, if they are not those of its interval."""
    together: bool = False
    """Whether all parts of a vector must hold at once."""
    plain: bool = False
    """Whether bounds and missing values are not told: it counts, or has a form of its own."""
    public: bool = False
    """Whether it needs a public n."""
    part: int = 1
    """A part of the runs is enough where a choice takes long."""
    numbers: int = 1
    """How many released numbers it is computed from, each of which holds at the confidence by
    itself.
    """

    @property
    def confidence(self) -> float:
        """How often its intervals must hold."""
        return 1 - self.numbers * float(1 - LEVEL)


def _of_each_run(found: Any, _: Data) -> tuple[Any, Any]:
    """The ends of several quantiles, which are put in order in each release."""
    runs = zip(
        *(zip(*spread(LEVEL, False), strict=True) for spread in found._spread.args[0]), strict=True
    )
    ends = [in_order([lambda *_, part=part: part for part in run], LEVEL, False) for run in runs]
    lows, highs = zip(*ends, strict=True)
    return np.array(lows), np.array(highs)


def _part(name: str) -> Callable[[Any, Data], tuple[Any, Any]]:
    return lambda found, _: found[name].interval(LEVEL)


STATISTICS = (
    Statistic(
        name="count",
        truth=of(len),
        array=discreet.count,
        sql="count(x)",
        report=True,
        fewest=0,
        plain=True,
    ),
    Statistic(
        name="count of a condition",
        truth=of(lambda x: int(high(x).sum())),
        array=lambda x, **given: discreet.count(high(x), **given),
        sql="count(*) FILTER (WHERE x > 0.5)",
        report=True,
        fewest=0,
        plain=True,
    ),
    Statistic(
        name="sum", truth=of(np.sum), array=discreet.sum, sql="sum(x)", report=True, fewest=0
    ),
    Statistic(
        name="sum beside a mean", truth=of(np.sum), sql="sum(x), avg(x)", report=True, fewest=0
    ),
    Statistic(name="sum beside a count", truth=of(np.sum), sql="sum(x), count(*)", fewest=0),
    Statistic(name="mean", truth=of(np.mean), array=discreet.mean, sql="avg(x)", report=True),
    Statistic(
        name="mean, method=laplace",
        truth=of(np.mean),
        array=partial(discreet.mean, method="laplace"),
    ),
    Statistic(name="mean beside a count", truth=of(np.mean), sql="avg(x), count(*)"),
    Statistic(name="mean of two columns", truth=of(np.mean), sql="avg(x), avg(y)", report=True),
    Statistic(
        name="proportion",
        truth=of(lambda x: high(x).mean()),
        array=lambda x, **given: discreet.proportion(high(x), **given),
        sql="avg(x > 0.5)",
        report=True,
        plain=True,
    ),
    Statistic(name="sum / count", truth=of(np.mean), sql="sum(x) / count(x)", numbers=2),
    Statistic(name="variance", truth=of(np.var), array=discreet.variance, sql="var_pop(x)"),
    Statistic(
        name="variance, sample",
        truth=of(sample_variance),
        array=partial(discreet.variance, sample=True),
        sql="var_samp(x)",
    ),
    Statistic(name="std", truth=of(np.std), array=discreet.std, sql="stddev_pop(x)"),
    Statistic(
        name="std, sample",
        truth=of(lambda x: math.sqrt(sample_variance(x))),
        array=partial(discreet.std, sample=True),
        sql="stddev(x)",
    ),
    Statistic(
        name="std, sample, beside a count and a mean",
        truth=of(lambda x: math.sqrt(sample_variance(x))),
        sql="stddev(x), avg(x), count(*)",
    ),
    Statistic(
        name="variance, method=laplace",
        truth=of(np.var),
        array=partial(discreet.variance, method="laplace"),
        public=True,
        fewest=2,
    ),
    Statistic(
        name="std, sample, method=laplace",
        truth=of(lambda x: math.sqrt(sample_variance(x))),
        array=partial(discreet.std, method="laplace", sample=True),
        public=True,
        fewest=2,
    ),
    Statistic(
        name="mean of mean_and_std",
        truth=of(np.mean),
        array=discreet.mean_and_std,
        ends=_part("mean"),
    ),
    Statistic(
        name="std of mean_and_std", truth=of(np.std), array=discreet.mean_and_std, ends=_part("std")
    ),
    *(
        Statistic(
            name=f"{part} of summary",
            truth=of(truth),
            array=discreet.summary,
            ends=_part(part),
            part=2,
        )
        for part, truth in {
            "count": len,
            "mean": np.mean,
            "std": np.std,
            "lower_quartile": partial(ranked, Fraction(1, 4)),
            "median": partial(ranked, Fraction(1, 2)),
            "upper_quartile": partial(ranked, Fraction(3, 4)),
        }.items()
    ),
    Statistic(
        name="median",
        truth=of(partial(ranked, Fraction(1, 2))),
        array=discreet.median,
        sql="median(x)",
        part=10,
    ),
    Statistic(
        name="quantile 0.9",
        truth=of(partial(ranked, Fraction(9, 10))),
        array=lambda x, **given: discreet.quantile(x, "0.9", **given),
        sql="quantile(x, 0.9)",
        part=2,
    ),
    Statistic(
        name="three quantiles",
        truth=of(partial(all_ranked, _THREE)),
        array=lambda x, **given: discreet.quantiles(x, _THREE, **given),
        ends=_of_each_run,
        part=2,
    ),
    Statistic(
        name="nine quantiles",
        truth=of(partial(all_ranked, _DECILES)),
        array=lambda x, **given: discreet.quantiles(x, _DECILES, **given),
        together=True,
        part=2,
    ),
    *(
        Statistic(
            name=f"{name}, method=laplace",
            truth=of(truth),
            array=partial(function, method="laplace", **more),
            public=True,
        )
        for name, function, truth, more in (
            ("quantile 0.9", discreet.quantile, partial(ranked, Fraction(9, 10)), {"q": "0.9"}),
            ("median", discreet.median, np.median, {}),
            ("min", discreet.min, np.min, {}),
            ("max", discreet.max, np.max, {}),
        )
    ),
    Statistic(
        name="histogram",
        truth=lambda data: np.histogram(data.values, edges_of(data.bounds))[0],
        array=lambda x, bounds, **given: discreet.histogram(x, bins=edges_of(bounds), **given),
        fewest=0,
    ),
    Statistic(
        name="histogram, all bins together",
        truth=lambda data: np.histogram(data.values, edges_of(data.bounds))[0],
        array=lambda x, bounds, **given: discreet.histogram(x, bins=edges_of(bounds), **given),
        ends=lambda found, _: found.interval(LEVEL, simultaneous=True),
        together=True,
        fewest=0,
    ),
    Statistic(
        name="histogram of keys, value_counts",
        truth=of(lambda x: np.array([(x == 0).sum(), (x == 2).sum()])),
        array=lambda x, **given: discreet.histogram(x, keys=[0, 2], **given),
        fewest=0,
        plain=True,
    ),
    Statistic(
        name="cdf",
        truth=lambda _: 0,
        array=partial(discreet.cdf, cells=128),
        ends=lambda found, data: tuple(end - below(found, data) for end in found.interval(LEVEL)),
        together=True,
        fewest=0,
        part=2,
    ),
    Statistic(
        name="randomized_response",
        truth=lambda data: high(data.values).mean(),
        array=lambda x, epsilon, **_: discreet.randomized_response(high(x), epsilon=epsilon),
        plain=True,
    ),
    Statistic(
        name="number of units",
        truth=lambda data: len(data.values) // 2,
        sql="count(DISTINCT who)",
        fewest=0,
    ),
    Statistic(name="min", truth=of(np.min), array=discreet.min, sql="min(x)", part=2),
    Statistic(name="max", truth=of(np.max), array=discreet.max, sql="max(x)", part=2),
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One question, on one data set."""

    statistic: Statistic
    spelling: str
    relation: str
    data: Data
    epsilon: str

    @property
    def row(self) -> tuple[str, str, str]:
        """The row of the table that it is in."""
        return self.statistic.name, self.relation, self.spelling


@dataclass(frozen=True, kw_only=True)
class Result:
    """How many intervals of a trial held the truth."""

    row: tuple[str, str, str]
    data: str
    epsilon: str
    confidence: float
    held: int
    runs: int
    rounded: bool
    """Whether the truth is that of rounded values, as the release says."""

    @property
    def coverage(self) -> float:
        return self.held / self.runs

    def fails(self, alarm: float) -> bool:
        """Whether the upper Clopper–Pearson bound at this error probability lies below the
        confidence.
        """
        if self.held == self.runs:
            return False
        return float(stats.beta.isf(alarm, self.held + 1, self.runs - self.held)) < self.confidence


SPELLINGS = ("array", "array, n public", "SQL", "SQL, n public", "units", "GROUP BY", "report")


def trials(sets: Sequence[Data], statistics: Sequence[Statistic] = STATISTICS) -> Iterator[Trial]:
    """All trials on some data sets."""
    for data, spelling, relation, statistic in product(sets, SPELLINGS, RELATIONS, statistics):
        if _fits(statistic, spelling, relation, data):
            for epsilon in data.epsilons:
                yield Trial(
                    statistic=statistic,
                    spelling=spelling,
                    relation=relation,
                    data=data,
                    epsilon=epsilon,
                )


def _fits(statistic: Statistic, spelling: str, relation: str, data: Data) -> bool:
    kind, _, public = spelling.partition(", ")
    if len(data.values) < statistic.fewest or (public and (relation != "change-one" or data.whole)):
        return False
    if kind == "array":
        known = relation == "change-one" and (bool(public) or data.whole)
        told = (
            statistic.array is not None
            and data.precision is None
            and not (public and statistic.plain)
        )
        # one relation is enough for what has none, and a textbook's form with one sensitivity needs
        # a public n
        return told and (known or not statistic.public)
    if statistic.sql is None or (spelling == "units" and len(data.values) % 2):
        return False
    if "who" in statistic.sql and spelling != "units":
        return False
    return spelling != "report" or (statistic.report and len(data.values) > 0)


def run(trial: Trial, runs: int) -> Result:
    """The result of a trial."""
    statistic, data = trial.statistic, trial.data
    runs = max(runs // statistic.part, 100)
    lows, highs, step = (_of_array if trial.spelling.startswith("array") else _of_study)(
        trial, runs
    )
    truth = np.asarray(statistic.truth(data if step is None else data.rounded(step)), float)
    slack = _EQUAL * np.maximum(np.abs(truth), 1e-300)
    held = (np.asarray(lows) - slack <= truth) & (truth <= np.asarray(highs) + slack)
    held = np.atleast_2d(held.T).T  # runs, and parts if there are any
    if statistic.together:
        held = held.all(axis=1, keepdims=True)
    return Result(
        row=trial.row,
        data=data.name,
        epsilon=trial.epsilon,
        confidence=statistic.confidence,
        held=int(held.sum(axis=0).min()),
        runs=len(held),
        rounded=step is not None,
    )


Ends = tuple[Any, Any, Fraction | None]
"""All lower and upper ends, and the step of the grid if the intervals leave rounding out."""


def _of_array(trial: Trial, runs: int) -> Ends:
    statistic, data = trial.statistic, trial.data
    given: dict[str, Any] = {"epsilon": Fraction(trial.epsilon), "neighbors": trial.relation}
    call: Any = statistic.array
    if not statistic.plain:
        given["bounds"] = data.bounds
    if trial.spelling.endswith("public"):
        given["missing"] = 0
    if "laplace" in statistic.name or statistic.name == "randomized_response":
        found = [call(data.values, **given).interval(LEVEL) for _ in range(max(runs // 4, 100))]
        lows, highs = zip(*found, strict=True)
        return np.array(lows), np.array(highs), None
    with released(runs):
        found = call(data.values, **given)
        ends = found.interval(LEVEL) if statistic.ends is None else statistic.ends(found, data)
    step = Fraction(found.step) if getattr(found, "rounding", "") else None
    return *ends, None if step is None else _value_step(data)


def _value_step(data: Data) -> Fraction:
    """The step of the grid of a sum."""
    return value_grid((Fraction(data.bounds[0]), Fraction(data.bounds[1])), bits=SUM_BITS).step


@lru_cache(maxsize=4)
def _study(data: Data, spelling: str, relation: str) -> Study:
    count = len(data.values)
    kind = pa.int64() if data.whole else pa.float64()
    declared: dict[str, Any] = {"bounds": list(data.bounds)}
    if data.precision is not None:
        declared["precision"] = data.precision
    if spelling.endswith("public"):
        declared["missing"] = 0
    groups = 1 if spelling != "report" else 100 if count <= 1000 else 20
    columns: dict[str, Any] = {
        "x": declared,
        "y": {"bounds": [0, 1]},
        "g": {"keys": f"0..{max(groups - 1, 1)}"},
    }
    table = {
        "x": pa.array(np.tile(data.values, groups), kind),
        "y": pa.array(np.arange(count * groups) % 2 / 2, pa.float64()),
        "g": pa.array(np.repeat(np.arange(groups), count), pa.int64()),
    }
    terms: dict[str, Any] = {"epsilon": 10**6, "version": "1", "neighbors": relation}
    if spelling == "units":
        table["who"] = pa.array(np.arange(count) // 2, pa.int64())
        terms |= {"unit": "who", "max_rows": 2}
    return Study(Policy(source=pa.table(table), columns=columns, **terms), ledger=Paper())


def _of_study(trial: Trial, runs: int) -> Ends:
    study, asked = _study(trial.data, trial.spelling, trial.relation), str(trial.statistic.sql)
    grouped = trial.spelling in ("GROUP BY", "report")
    text = select(f"g, {asked}", "GROUP BY g") if grouped else select(asked)
    epsilon = Fraction(trial.epsilon)
    if trial.spelling == "report":
        return *_of_report(study.report({"table": text}, epsilon=epsilon), runs), None
    plan = study.sql(text, epsilon=epsilon)
    cells = releases_of(plan, runs, _fetched(study, text))
    numbers = {
        name: tuple(column[:: 2 if grouped else 1] for column in three)
        for name, three in cells.items()
    }
    most = max(len(column) for three in numbers.values() for column in three)
    whole: Any = {
        name: tuple(np.resize(column, most) for column in three) for name, three in numbers.items()
    }
    outputs = tuple(output for output in plan.query.outputs if output[0] != "g")
    record = Record({}, {"run": np.arange(most)}, whole)
    first: Any = next(
        iter(columns_of(record, replace(plan.query, outputs=outputs, groups=())).values())
    )
    halves = [2 * half for half in plan.roundings.values()]
    low, high_end = np.array(first.low, float), np.array(first.high, float)
    if first.missing is not None:  # a quotient by 0 is no number, and has no interval
        low[first.missing], high_end[first.missing] = -np.inf, np.inf
    return low, high_end, halves[0] if halves else None


@lru_cache(maxsize=64)
def _fetched(study: Study, text: str) -> Any:
    """The exact integers of a question, which do not depend on ε."""
    return study.sql(text, epsilon=1).fetched()


def _of_report(plan: ReportPlan, runs: int) -> tuple[Any, Any]:
    """Every group has the same rows, so that a report is as many releases."""
    secret, template = plan.fetched(), plan.release()
    [table] = plan.layout.tables
    number = table.in_order[0]
    lows: list[Any] = []
    highs: list[Any] = []
    with _kept("reaches"), _kept("mean_reaches"):
        while sum(map(len, lows)) < runs:
            report = Report(template.content, plan, template.remaining, template.entry)
            report.__dict__["columns"] = plan.design.noisy(secret, plan.terms, plan.epsilon)
            _, low, high_end = report._numbers(table, number)
            lows.append(low.ravel())
            highs.append(high_end.ravel())
    return np.concatenate(lows), np.concatenate(highs)


def _kept(name: str) -> Any:
    """A function of reports whose results are kept: how far noise reaches is the same in all draws."""
    real = getattr(report_module, name)

    found: dict[Any, Any] = {}

    def called(table: Any, axes: Any, number: Any, noise: Any, level: float, *cell: Any) -> Any:
        key = number.weights, level, *map(tuple, cell)
        if key not in found:
            found[key] = real(table, axes, number, noise, level, *cell)
        return found[key]

    return mock.patch.object(report_module, name, called)
