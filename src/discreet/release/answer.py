"""The answer to a question: a table of released numbers, each with its interval, and what they
cost.

An answer depends only on the bytes that the ledger stores: asked again, the same bytes give the
same answer. It is a table of columns (`to_arrow`, `save`, …); `postprocessing` does what a question
asks of released numbers. Rows as Python objects are built only on demand.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from discreet import views
from discreet.ask.query import Named, Query
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.files.writer import NOTHING, Kept, has, write
from discreet.formats import (
    MOST_DECIMALS,
    as_float,
    interval_text,
    is_even,
    left_shown,
    or_null,
    readable,
    shown,
    table_lines,
)
from discreet.outside import read_fraction, read_json
from discreet.parameters import quote
from discreet.records import Record, is_packed, items_of, number_column, unpack
from discreet.release.postprocessing import Column, Numbers, columns_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from discreet.release.plan import Plan
    from discreet.release.reports.plan import ReportPlan

Item: TypeAlias = tuple[Any, Any, Any]
"""A value and the ends of its interval; a key is its own interval."""

Decimals: TypeAlias = "int | Mapping[str, int] | None"
"""Decimals of all numbers, or by column; None shows the digits that are significant given the
error.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A table of released numbers with their intervals; it is what `Plan.release` returns.

    Examples
    --------
    >>> import discreet, pandas
    >>> people = pandas.DataFrame({"town": ["Ash", "Elm"] * 500})
    >>> study = discreet.Study.from_frame(people, epsilon=1, keys={"town": ["Ash", "Elm"]})
    >>> answer = study.groupby("town").agg(people="count").plan(epsilon="0.5").release()
    >>> answer["town"], len(answer.interval("people")), answer.to_pandas().shape
    (['Ash', 'Elm'], 2, (2, 4))

    """

    content: bytes
    """The bytes in the ledger (`discreet.records`)."""
    query: Query
    remaining: Fraction
    """What was left of the study's ε when this was released or asked again."""
    entry: str
    """The request id in the ledger."""
    kept: Kept = NOTHING
    """The files of the study, which are never overwritten."""
    plan: Plan | ReportPlan | None = None
    """The plan that was released; None for an answer from a server."""

    def __post_init__(self) -> None:
        if not is_packed(self.content):
            raise QueryRefused(
                f"this was released to {read_json(self.content)['file']}: read it there, or ask"
                " with to="
            )
        _ = self.recorded

    @cached_property
    def recorded(self) -> Record:
        """The keys and the released numbers as columns, before post-processing."""
        return unpack(self.content)

    @property
    def record(self) -> dict[str, Any]:
        """Everything a reader needs to judge the numbers: ε, Δ, scales, neighbours, unit,
        confidence.
        """
        return self.recorded.head

    @property
    def full_record(self) -> dict[str, Any]:
        """The record with all keys and released numbers, in JSON's types."""
        return self.recorded.whole()

    @property
    def epsilon(self) -> Fraction:
        """The exact ε that it cost."""
        return read_fraction(self.record["epsilon"])

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the question."""
        return [name for name, _ in self.query.outputs]

    @cached_property
    def _table(self) -> dict[str, Column]:
        return columns_of(self.recorded, self.query)

    @cached_property
    def rows(self) -> list[dict[str, Item]]:
        """The rows of the answer: for each column, a value and the ends of its interval."""
        columns = [_triples(column) for column in self._table.values()]
        return [dict(zip(self._table, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def cells(self) -> Sequence[list[str]]:
        """The rows as they are displayed: keys, and numbers with their ± error."""
        return self.shown()

    def shown(self, decimals: Decimals = None) -> Sequence[list[str]]:
        """`cells` with so many decimals, of all numbers or by column; a row is formatted when it is
        read.
        """
        digits = decimals_by(self.columns, decimals)
        return _Cells([(column, digits[name]) for name, column in self._table.items()])

    def rounded(self, decimals: Decimals = None) -> Iterator[tuple[str, Column, Any]]:
        """The columns as they are displayed: name, keys or rounded numbers, and the decimals of
        each number.
        """
        digits = decimals_by(self.columns, decimals)
        for name, column in self._table.items():
            yield (
                (name, *column.rounded(digits[name]))
                if isinstance(column, Numbers)
                else (name, column, None)
            )

    def __len__(self) -> int:
        return _length(next(iter(self._table.values())))

    @overload
    def __getitem__(self, name: str) -> list[Any]: ...
    @overload
    def __getitem__(self, name: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, name: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, name: str | int | slice) -> list[Any] | tuple[Any, ...]:
        """The released values of a column; or a row, by its number, as a named tuple."""
        if hasattr(name, "__index__"):  # integers of numpy, too
            row = range(len(self))[name]
            return self._rows(slice(row, row + 1))[0]
        if isinstance(name, slice):
            return self._rows(name)
        if name not in self._table:
            raise InvalidParameter(
                f"the answer has no column {name!r}; it has {', '.join(self.columns)}"
            )
        column = self._table[name]
        return column.items()[0] if isinstance(column, Numbers) else items_of(column)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as named tuples of keys and released values."""
        return iter(self._rows(slice(None)))

    def __contains__(self, item: object) -> bool:
        """Whether there is a column with this name, or such a row."""
        return item in self._table if isinstance(item, str) else any(item == row for row in self)

    def _rows(self, rows: slice) -> list[tuple[Any, ...]]:
        columns = [
            column.at(rows).items()[0] if isinstance(column, Numbers) else items_of(column[rows])
            for column in self._table.values()
        ]
        row = namedtuple("Row", self.columns, rename=True)  # type: ignore[misc]
        return list(map(row._make, zip(*columns, strict=True)))

    def interval(self, name: str) -> list[tuple[Any, Any]]:
        """The lower and the upper end of the interval of a column, for each row."""
        self[name]
        return [(low, high) for _, low, high in _triples(self._table[name])]

    def totals(self, *by: str) -> Answer:
        """Counts and sums, added up over all group columns except these; free, and consistent with
        this table.
        """
        from discreet.release.statistics.totals import totals

        return totals(self, by)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name; the interval of a released number `x` is in `x_low` and `x_high`."""
        columns: dict[str, list[Any]] = {}
        for name, column in self._table.items():
            if isinstance(column, Numbers):
                columns |= zip((name, f"{name}_low", f"{name}_high"), column.items(), strict=True)
            else:
                columns[name] = items_of(column)
        return columns

    def to_arrow(self) -> pyarrow.Table:
        """The table of `to_dict` in Arrow."""
        import pyarrow

        return pyarrow.table({name: arrow(column, gaps) for name, column, gaps in self._flat()})

    def to_pandas(self) -> pandas.DataFrame:
        """The table of `to_dict` in pandas."""
        _require("pandas", "to_pandas")
        import pandas

        return pandas.DataFrame(
            {
                name: (
                    column
                    if isinstance(column, np.ndarray) and gaps is None
                    else arrow(column, gaps).to_pandas()
                )
                for name, column, gaps in self._flat()
            }
        )

    def to_polars(self) -> polars.DataFrame:
        """The table of `to_dict` in polars."""
        _require("polars", "to_polars")
        import polars

        return polars.DataFrame(polars.from_arrow(self.to_arrow()))

    def _flat(self) -> Iterator[tuple[str, Any, Any]]:
        """For each column of a table, its name, its content, and where it has gaps."""
        for name, column in self._table.items():
            if isinstance(column, Numbers):
                for suffix, part in zip(("", "_low", "_high"), column.three, strict=True):
                    yield name + suffix, part, column.missing
            else:
                yield name, column, None

    def save(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        caption: str | None = None,
        decimals: Decimals = None,
        bom: bool = False,
        force: bool = False,
    ) -> Path:
        """Write the table to a new file, and its record to `<name>.release.json` beside it.

        Parameters
        ----------
        path : path
            .csv and .xlsx are rounded as displayed, .json and .parquet are exact; .html, .md and
            .txt are for reading.
        decimals : int or dict, optional
            Decimals of all numbers, or by column, instead of the digits that are significant given
            the error.
        title, caption, bom, force
            Text above a table for reading; whether to mark a .csv as UTF-8, which some spreadsheets
            need; whether to overwrite an existing file.

        """
        return views.published(
            self, path, title=title, caption=caption, decimals=decimals, bom=bom, force=force
        )

    def save_record(self, path: str | Path, *, force: bool = False) -> Path:
        """Write what a reader needs to judge the numbers to `<name>.release.json` beside a file;
        returns its path.
        """
        target = Path(path).with_suffix(".release.json")
        columns = {
            name: output.name for name, output in self.query.outputs if isinstance(output, Named)
        }
        record = {**self.record, "sql": self.query.sql, "columns": columns, "entry": self.entry}
        if self.plan is not None:
            record["card"] = self.card().content
        content = json.dumps(record, ensure_ascii=False, indent=1).encode()
        return (
            target if has(target, content) else write(target, content, force=force, kept=self.kept)
        )

    def sign(self, *files: str | Path, key: str | Path, force: bool = False) -> list[Path]:
        """Sign saved files of this answer with a key of `discreet keys new`, in
        `<name>.signature.json` beside them.
        """
        records = dict.fromkeys(Path(file).with_suffix(".release.json") for file in files)
        return views.signed(self, [*files, *records], key=key, force=force)

    def card(self) -> Any:
        """The privacy claim of this release, for publication."""
        return views.card(self)

    def __getstate__(self) -> dict[str, Any]:
        """A copy keeps the answer, but not its plan, which holds the study."""
        return {**self.__dict__, "plan": None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answer):
            return NotImplemented
        if self.content != other.content or list(self._table) != list(other._table):
            return False
        pairs = zip(self._flat(), other._flat(), strict=True)
        return all(arrow(*mine[1:]).equals(arrow(*theirs[1:])) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]

    def figure(self, **options: Any) -> Any:
        """A chart of the numbers with their intervals; `column=` chooses a column, `width=` is in
        pixels.
        """
        return views.figure(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        confidence = float(read_fraction(self.record["confidence"])) * 100
        lines = table_lines(self.columns, self.cells)
        cost = f"ε {shown(self.epsilon)} spent, {left_shown(self.remaining)} left"
        last = (
            f"± at {confidence:g} % · {cost} ·"
            f" {self.record['neighbors']}{self._discovery()}{self._rounding()}"
        )
        return "\n".join([*lines, one_line(last)])

    def _discovery(self) -> str:
        """What the keys cost, if they were discovered."""
        discovered = self.record.get("discovered")
        if discovered is None:
            return ""
        epsilon, delta = (shown(read_fraction(discovered[name])) for name in ("epsilon", "delta"))
        return (
            f" · keys of {', '.join(discovered['columns'])} discovered at (ε, δ) = ({epsilon},"
            f" {delta})"
        )

    @property
    def roundings(self) -> dict[str, Fraction]:
        """The sums whose intervals leave out the rounding of values, and how far that moves each
        value.
        """
        titles = {
            output.name: name for name, output in self.query.outputs if isinstance(output, Named)
        }
        return {
            titles.get(item["name"], item["asked"]): read_fraction(item["rounding"])
            for item in self.record.get("statistics", ())
            if "rounding" in item
        }

    def _rounding(self) -> str:
        """The same in words."""
        parts = (
            f" · {title} without rounding, at most {readable(as_float(half), 3)} a row"
            for title, half in self.roundings.items()
        )
        return "".join(parts)


def _require(package: str, call: str) -> None:
    try:
        import_module(package)
    except ImportError:
        raise InvalidParameter(
            f"{call} needs {package}: pip install {package}; to_arrow and to_dict do not"
        ) from None


@dataclass(frozen=True, slots=True, repr=False)
class _Cells(Sequence[list[str]]):
    """Rows of texts, formatted when they are read."""

    columns: list[tuple[Column, int | None]]
    """Each column with its decimals, or None."""

    def __len__(self) -> int:
        return _length(self.columns[0][0])

    @overload
    def __getitem__(self, rows: int) -> list[str]: ...
    @overload
    def __getitem__(self, rows: slice) -> list[list[str]]: ...
    def __getitem__(self, rows: int | slice) -> list[str] | list[list[str]]:
        if not isinstance(rows, slice):
            return self[range(len(self))[rows] :][0]
        texts = [
            (
                _written(column.at(rows), decimals)
                if isinstance(column, Numbers)
                else ["" if key is None else str(key) for key in items_of(column[rows])]
            )
            for column, decimals in self.columns
        ]
        return [list(row) for row in zip(*texts, strict=True)]

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _written(column: Numbers, decimals: int | None) -> list[str]:
    near, digits = column.rounded(decimals)
    exact = zip(*column.items(), strict=True)
    shown = zip(*near.items(), digits.tolist(), strict=True)
    return [
        "" if three[0] is None else interval_text(*four, even=is_even(*three))
        for three, four in zip(exact, shown, strict=True)
    ]


def decimals_by(columns: Sequence[str], decimals: Decimals) -> dict[str, int | None]:
    """The decimals of each column, or None; an invalid number of decimals or an unknown column is
    refused.
    """
    by_name = decimals if isinstance(decimals, Mapping) else dict.fromkeys(columns, decimals)
    for name, digits in by_name.items():
        if name not in columns:
            raise InvalidParameter(
                f"decimals must be of a column ({', '.join(columns)}), got {quote(name)}"
            )
        if digits is not None and not (type(digits) is int and 0 <= digits <= MOST_DECIMALS):
            raise InvalidParameter(
                f"decimals must be a whole number from 0 to {MOST_DECIMALS}, got {quote(digits)}"
            )
    return {name: by_name.get(name) for name in columns}


def _length(column: Column) -> int:
    return len(column.value if isinstance(column, Numbers) else column)


def _triples(column: Column) -> list[Item]:
    columns = column.items() if isinstance(column, Numbers) else [items_of(column)] * 3
    return list(zip(*columns, strict=True))


def arrow(column: Any, gaps: Any = None) -> pyarrow.Array:
    """A column in Arrow. Integers beyond 64 bits (noise of a tiny ε) make it a column of floats.

    Numeric keys together with the label of all other values make it a column of texts.
    """
    import pyarrow

    if not isinstance(column, np.ndarray) or column.dtype != object:
        if gaps is None:
            return number_column(column) if isinstance(column, np.ndarray) else column
        return pyarrow.array(column, mask=gaps) if isinstance(column, np.ndarray) else column
    items = [
        None if gaps is not None and gaps[row] else item for row, item in enumerate(column.tolist())
    ]
    if any(isinstance(item, str) for item in items):
        return pyarrow.array([item if item is None else str(item) for item in items])
    whole = any(isinstance(item, int) and abs(item) >= 2**63 for item in items)
    return pyarrow.array(
        [item if item is None else float(item) for item in items] if whole else items
    )


def columns_json(answer: Answer) -> dict[str, list[Any]]:
    """The table of an answer in JSON's types; the end of an unbounded interval is null."""
    columns = answer.to_dict()
    for name, column, _ in answer._flat():
        if not isinstance(column, np.ndarray) or column.dtype == np.int64:
            continue
        if column.dtype == object or not np.isfinite(column).all():
            columns[name] = [or_null(item) for item in columns[name]]
    return columns
