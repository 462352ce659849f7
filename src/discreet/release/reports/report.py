"""The released tables of a report: they follow from the noisy cells in the ledger, and from nothing
else.

All tables are combinations of the same cells, so that they agree: the same row sums from every
table. They are unbiased estimates, which may be negative or fractional. With `integers` they are
counts of rows that reproduce them (`rows`), which are nonnegative integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import views
from discreet.errors import InvalidParameter, one_line
from discreet.formats import finite, left_shown, readable, shown
from discreet.outside import read_fraction, read_json
from discreet.parameters import quote
from discreet.records import Record, array_of, keys_of
from discreet.release.answer import Answer
from discreet.release.mechanism import NoisyColumn
from discreet.release.plan import plain_key
from discreet.release.reports.axes import Floats, along, coarser
from discreet.release.reports.fit import Fit, Noise
from discreet.release.reports.rows import synthetic, whole_cells
from discreet.release.reports.tables import Number, Table
from discreet.release.statistics.fieller import edges
from discreet.release.statistics.grouped import share_of

if TYPE_CHECKING:
    from discreet.release.reports.plan import ReportPlan

POINTS = 65
"""Points of a share in [0, 1] at which the radius of the noise of a mean is computed."""

WIDER = 1 + 1e-3
"""Linear interpolation between the points underestimates a radius by less than this."""

_FEW_SETS = 12
"""With more sets, radii are computed at a quarter of the points: those of many draws take long, and
are smooth.
"""

_OF_ALL_TABLES = ("sets", "tables", "axes", "rows", "where", "discovered")
"""The fields of a record that those of a single table do not have."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """The error of a number of a table in a plan."""

    table: str
    column: str
    cells: int
    reach: float
    """The half-width of its intervals; for a mean, in groups of `rows` rows."""
    alone: float
    """The same if each table were asked alone, with its share of ε."""
    rows: int | None

    @property
    def within(self) -> str:
        """The error as it is displayed."""
        return error_text(self.reach, self.rows)

    @property
    def one_by_one(self) -> str:
        """The error if each table were asked alone."""
        return error_text(self.alone, self.rows)


def error_text(reach: float, rows: int | None) -> str:
    """An error as it is displayed; that of a mean, in groups of so many rows."""
    return f"± {readable(reach, 3)}" + ("" if rows is None else f" at {rows:,} rows")


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Tables that were released together."""

    content: bytes
    """The record in the ledger, as JSON."""
    plan: ReportPlan
    remaining: Fraction
    entry: str

    @cached_property
    def record(self) -> dict[str, Any]:
        """Everything a reader needs: ε, unit, neighbours, and the noisy integers of all measured
        sets.
        """
        record: dict[str, Any] = read_json(self.content)
        return record

    @property
    def epsilon(self) -> Fraction:
        """The exact ε that all tables cost together."""
        return read_fraction(self.record["epsilon"])

    @cached_property
    def tables(self) -> Mapping[str, Answer]:
        """The tables by name."""
        return {table.name: self._answer(table) for table in self.plan.layout.tables}

    def __getitem__(self, name: str) -> Answer:
        """One table."""
        return table_of(self.tables, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @cached_property
    def columns(self) -> list[NoisyColumn]:
        """The noisy integers."""
        return [
            NoisyColumn(
                values=column["values"], step=column["step"], scale=read_fraction(column["scale"])
            )
            for measured in self.record["sets"]
            for column in measured["columns"]
        ]

    @cached_property
    def fit(self) -> Fit:
        """The exact fit of all tables to the noisy integers."""
        return self.plan.design.fit(self.columns, self.record["rows"])

    @cached_property
    def _noise(self) -> Noise:
        return self.plan.design.noise(
            self.columns, float(self.plan.level), known=self.record["rows"] is not None
        )

    def counts(self, name: str, number: str | None = None) -> tuple[NDArray[Any], int]:
        """The exact count of a table: numerators, with an axis for each group column, and their
        denominator.
        """
        table = self.plan.table_of(name)
        chosen = next(
            item
            for item in table.numbers
            if item.statistic == "count" and number in (None, item.name)
        )
        cells, denominator = self.fit.table(table.levels(self.plan.axes, chosen))
        return reduced(cells, table, self.plan.axes, chosen, chosen.weights), denominator

    @cached_property
    def whole_cells(self) -> tuple[NDArray[np.int64], list[int]]:
        """The full table of rows that reproduce all tables, and the axes that it has."""
        return whole_cells(self)

    def rows(self) -> Any:
        """Rows that reproduce the counts of all tables, and nothing else, as an Arrow table.

        They are refused where a plan with `rows` is refused, before the spend: if noise alone makes
        more rows than fit.
        """
        return synthetic(self)

    def _answer(self, table: Table) -> Answer:
        three = {number.name: self._numbers(table, number) for number in table.numbers}
        numbers: Any = {
            name: tuple(finite(array_of(column.ravel())) for column in columns)
            for name, columns in three.items()
        }
        keys = {
            name: keys_of(list(map(plain_key, names)))
            for name, names in table.keys(self.plan.axes).items()
        }
        nested = {"nested": True} if table.nested else {}
        hidden = (*_OF_ALL_TABLES, *(() if self.plan.title else ("report",)))
        fields = {name: value for name, value in self.record.items() if name not in hidden}
        head = {**fields, **self.plan.record_of(table), **nested}
        return Answer(
            content=Record(head, keys, numbers).pack(),
            query=table.query,
            remaining=self.remaining,
            entry=self.entry,
            kept=self.plan.study.kept,
            plan=self.plan,
        )

    def _numbers(
        self, table: Table, number: Number
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The numbers of a table and the ends of their intervals, with an axis for each group
        column.
        """
        plan, axes, level, noise = self.plan, self.plan.axes, float(self.plan.level), self._noise
        cells, denominator = self.fit.table(table.levels(axes, number))

        def weigh(weights: tuple[float, ...]) -> Floats:
            return _float(reduced(cells, table, axes, number, weights), denominator)

        value = weigh(number.weights)
        if number.statistic != "mean":
            low, high = self._ends(table, number, weigh)
            if (
                plan.integers
                and number.statistic == "count"
                and number.attribute not in plan.layout.halves
            ):
                whole = self._whole(table, number)
                outer = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
                return whole, np.minimum(outer[0], whole), np.maximum(outer[1], whole)
            return value, low, high
        size = weigh(number.present)
        low, high = np.empty_like(value), np.empty_like(value)
        for mask, cell in kinds(table, axes):
            reach = mean_reaches(table, axes, number, noise, level, cell)
            low[mask], high[mask] = edges(
                value[mask], size[mask], np.linspace(0, 1, POINTS), reach[None, :]
            )
        half = number.half_step / number.width
        shares = share_of(value, size), np.clip(low - half, 0, 1), np.clip(high + half, 0, 1)
        share, lows, highs = (number.ends[0] + share * number.width for share in shares)
        return share, lows, highs

    def _ends(
        self, table: Table, number: Number, weigh: Callable[[tuple[float, ...]], Floats]
    ) -> tuple[Floats, Floats]:
        """The ends of counts or sums: of a sum, those of values that are half a step smaller or
        larger.
        """
        axes, level, value = self.plan.axes, float(self.plan.level), weigh(number.weights)
        if not number.half_step:
            reach = reaches(table, axes, number, self._noise, level)
            return value - reach, value + reach
        lower, upper = (number.moved(side * number.half_step) for side in (-1, 1))
        low = weigh(lower.weights) - reaches(table, axes, lower, self._noise, level)
        high = weigh(upper.weights) + reaches(table, axes, upper, self._noise, level)
        return np.minimum(low, value), np.maximum(high, value)

    def _whole(self, table: Table, number: Number) -> NDArray[np.int64]:
        """A count of a table from the rows that reproduce all tables."""
        (cells, grouped), axes = self.whole_cells, self.plan.axes
        levels = table.levels(axes, number)
        cells = coarser(
            [axes[index] for index in grouped], cells, [levels[index] for index in grouped]
        )
        sizes = [axis.sizes[levels[i]] if i in grouped else 1 for i, axis in enumerate(axes)]
        return reduced(cells.reshape(sizes), table, axes, number, number.weights)

    def save(
        self,
        folder: Any,
        *,
        title: str | None = None,
        caption: str | None = None,
        decimals: int | None = None,
        bom: bool = False,
        force: bool = False,
    ) -> list[Any]:
        """Write all tables as CSV and Parquet, an HTML page and the record to a folder, and return
        their paths.

        A path that ends in .xlsx, .html, .md or .txt becomes one file with all tables, and the
        record beside it. `title`, `caption`, `decimals` and `bom` are those of `Answer.save`, and
        override those of the plan.
        """
        return views.saved(
            self, folder, title=title, caption=caption, decimals=decimals, bom=bom, force=force
        )

    def sign(self, *files: Any, key: Any, force: bool = False) -> list[Any]:
        """Sign the files that `save` wrote, in `<title>.signature.json` beside the record.

        `key` is a private key from `discreet keys new`; `discreet verify-release` checks the
        signature without data.
        """
        return views.signed(self, files, key=key, force=force)

    def card(self) -> Any:
        """The privacy claim of this release, for publication."""
        return views.card(self)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        return report_text(
            self.plan.title, self.tables, self.epsilon, self.remaining, self.record["neighbors"]
        )


def table_of(tables: Mapping[str, Answer], name: str) -> Answer:
    """A table by its name; if there is none, the error lists all names."""
    if name not in tables:
        raise InvalidParameter(f"the report has no table {quote(name)}; it has {', '.join(tables)}")
    return tables[name]


def report_text(
    title: str, tables: Mapping[str, Answer], epsilon: Fraction, remaining: Fraction, neighbors: str
) -> str:
    """A report in one line."""
    names = ", ".join(f"{name} ({len(answer)})" for name, answer in tables.items())
    return one_line(
        f"Report({title}: {names} · ε {shown(epsilon)} spent, {left_shown(remaining)} left ·"
        f" {neighbors})"
    )


def reduced(
    cells: NDArray[Any], table: Table, axes: Any, number: Number, weights: tuple[float, ...]
) -> NDArray[Any]:
    """A combination of the cells of a table, with an axis for each axis of groups, in order, and
    the rows shown.
    """
    rows, levels = table.rows(axes), table.levels(axes, number)
    for index, level in enumerate(levels):
        mask = table.mask(axes, index, level)
        factor = np.ones(1) if mask is None else mask
        if index == number.attribute:
            factor = factor * np.array(weights or [1.0])
        if factor.size > 1 or not factor.all():  # a condition that holds for no key has one cell
            exact = factor.astype(np.int64) if (factor == np.rint(factor)).all() else factor
            cells = cells * along(
                exact if cells.dtype != object else exact.astype(object), index, len(axes)
            )
        if index not in rows:
            cells = cells.sum(axis=index, keepdims=True)
        elif level > table.finest[index]:
            cells = axes[index].summed(cells, index, level, table.finest[index])
    order = sorted(rows)
    cells = cells.reshape([cells.shape[index] for index in order])
    cells = cells.transpose([order.index(index) for index in rows])
    return cells[np.ix_(*rows.values())] if rows else cells


def kinds(table: Table, axes: Any) -> Iterator[tuple[NDArray[np.bool_], list[int]]]:
    """The rows of a table by the distribution of their noise, each kind with the cells of an
    example row.
    """
    rows = table.rows(axes)
    numbered = [axes[index].kinds(level)[0][rows[index]] for index, level in table.finest.items()]
    firsts = [np.unique(number, return_index=True) for number in numbered]
    for chosen in product(*(zip(*first, strict=True) for first in firsts)):
        mask = np.ones(tuple(map(len, numbered)), bool)
        for position, (number, (kind, _)) in enumerate(zip(numbered, chosen, strict=True)):
            mask &= along(number == kind, position, len(numbered))
        yield (
            mask,
            [
                int(cells[position])
                for cells, (_, position) in zip(rows.values(), chosen, strict=True)
            ],
        )


def reaches(table: Table, axes: Any, number: Number, noise: Noise, level: float) -> Floats:
    """The radius of the noise of a count or a sum, in each row of a table."""
    weights = np.array(number.weights) if number.weights else None
    by_row = np.zeros(tuple(map(len, table.rows(axes).values())))
    for mask, cell in kinds(table, axes):
        by_row[mask] = noise.reach(table.question(axes, number, weights, cell), level)[0]
    return by_row


def mean_reaches(
    table: Table, axes: Any, number: Number, noise: Noise, level: float, cell: list[int]
) -> Floats:
    """The radius of the noise of Σu − z·N for each z, in rows of the kind of `cell`."""
    # a radius is convex: it lies below the chords
    some = np.linspace(0, 1, points_of(len(noise.scales)))
    question = table.question(axes, number, mean_weights(number, some), cell)
    return np.interp(np.linspace(0, 1, POINTS), some, noise.reach(question, level)) * WIDER


def mean_weights(number: Number, shares: Floats) -> Floats:
    """The weights of the cells of the halves of a number in Σu − z·N, for each z."""
    return np.array(number.weights)[:, None] - np.array(number.present)[:, None] * shares


def points_of(sets: int) -> int:
    """The points at which the radius of the noise of a mean is integrated, with so many measured
    sets.
    """
    return POINTS if sets <= _FEW_SETS else -(-POINTS // 4)


def _float(numerators: NDArray[Any], denominator: int) -> Floats:
    """Quotients of integers as floats; each is rounded from the exact quotient if the integers are
    Python's.
    """
    if numerators.dtype == object:
        return np.array([number / denominator for number in numerators.ravel()]).reshape(
            numerators.shape
        )
    return np.asarray(numerators / denominator, np.float64)
