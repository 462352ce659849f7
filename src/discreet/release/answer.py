"""The answer to a question: a table of released numbers, each with its interval, and what they cost.

An answer is made of the bytes that the ledger keeps, and of nothing else: asked again, the same bytes give the same
answer. What a question does to released numbers (arithmetic, HAVING, ORDER BY, LIMIT) happens here; it is
post-processing and costs nothing. Arithmetic of two numbers takes the extremes over both intervals, so its interval
holds at least as often as both together.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet import views
from discreet.ask.query import Combined, Named, Number, Output, Query, Test
from discreet.errors import InvalidParameter, QueryRefused, one_line
from discreet.files.writer import NOTHING, Kept, is_plain_file, new_file, write
from discreet.formats import left_shown, or_null, shown, table_lines, with_interval

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Item: TypeAlias = tuple[Any, Any, Any]
"""A value and the ends of its interval; a key is its own interval."""

_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_MISSING: Item = (None, None, None)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A table of released numbers."""

    content: bytes
    """What the ledger keeps, as JSON."""
    query: Query
    remaining: Fraction
    """What was left of the study's ε when this was released or asked again."""
    entry: str
    """The request under which the ledger has it."""
    kept: Kept = NOTHING
    """What belongs to the study, and is not written over."""

    def __post_init__(self) -> None:
        if "numbers" not in self.record:
            raise QueryRefused(f"this was released to {self.record['file']}: read it there, or ask with to=")

    @cached_property
    def record(self) -> dict[str, Any]:
        """Everything a reader needs to judge the numbers: ε, Δ, scales, neighbours, unit, intervals."""
        found: dict[str, Any] = json.loads(self.content)
        return found

    @property
    def epsilon(self) -> Fraction:
        """The ε that was spent for it, exactly."""
        return Fraction(self.record["epsilon"])

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the question."""
        return [name for name, _ in self.query.outputs]

    @cached_property
    def rows(self) -> list[dict[str, Item]]:
        """The rows of the answer: for each column a value and the ends of its interval."""
        numbers, keys = self.record["numbers"], self.record["keys"]
        table = []
        for cell, row in enumerate(
            zip(*keys.values(), strict=True) if self.record.get("nested") else product(*keys.values())
        ):
            known: dict[str, Item] = {name: (key,) * 3 for name, key in zip(keys, row, strict=True)}
            known.update({name: (n["value"][cell], n["low"][cell], n["high"][cell]) for name, n in numbers.items()})
            table.append(known)
        table = [row for row in table if self.query.having is None or _holds(self.query.having, row)]
        bins = {group.name: [*group.keys, group.other] for group in self.query.groups if group.edges is not None}
        others = {group.name: group.other for group in self.query.groups if group.other is not None}
        for output, descending in reversed(self.query.order):
            table = _sorted(table, output, descending, bins, others)
        table = table[: self.query.limit]
        return [{name: _item(output, row) for name, output in self.query.outputs} for row in table]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as a reader sees them: keys, and numbers with what they are within."""
        return [[self._cell(name, output, row) for name, output in self.query.outputs] for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        """The released values of a column."""
        if name not in self.columns:
            raise InvalidParameter(f"the answer has no column {name!r}; it has {', '.join(self.columns)}")
        return [row[name][0] for row in self.rows]

    def interval(self, name: str) -> list[tuple[Any, Any]]:
        """For each row the lower and the upper end of the interval of a column."""
        self[name]
        return [row[name][1:] for row in self.rows]

    def totals(self, *by: str) -> Answer:
        """Counts and sums added up over all group columns but these: a table that agrees with this one, and is free."""
        from discreet.release.statistics.totals import totals

        return totals(self, by)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name; a released number `x` has its interval in `x_low` and `x_high`."""
        found: dict[str, list[Any]] = {}
        for name, output in self.query.outputs:
            found[name] = [row[name][0] for row in self.rows]
            if not self._is_key(output):
                found[f"{name}_low"], found[f"{name}_high"] = ([row[name][end] for row in self.rows] for end in (1, 2))
        return found

    def to_arrow(self) -> pyarrow.Table:
        """The table in Arrow."""
        import pyarrow

        return pyarrow.table({name: _in_int64(column) for name, column in self.to_dict().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """The table in pandas."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        """The table in polars."""
        import polars

        columns = {name: _in_int64(column) for name, column in self.to_dict().items()}
        return polars.DataFrame(columns, strict=False, infer_schema_length=None)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the table as a new .csv, .json or .parquet, and its record as `<name>.release.json` beside it."""
        place = Path(path)
        if place.suffix not in (".csv", ".json", ".parquet"):
            raise InvalidParameter(f"path must end in .csv, .json or .parquet, got {place.name!r}")
        with new_file(place, force=force, kept=self.kept) as draft:
            self.save_record(place, force=force)
            write_table(self, place.suffix[1:], draft)
        return place

    def save_record(self, path: str | Path, *, force: bool = False) -> Path:
        """Write what a reader needs to judge the numbers as `<name>.release.json` beside a file, and give its place."""
        place = Path(path).with_suffix(".release.json")
        columns = {name: output.name for name, output in self.query.outputs if isinstance(output, Named)}
        record = {**self.record, "columns": columns, "entry": self.entry}
        content = json.dumps(record, ensure_ascii=False, indent=1).encode()
        same = is_plain_file(place) and place.read_bytes() == content
        return place if same else write(place, content, force=force, kept=self.kept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Answer):
            return NotImplemented
        return self.content == other.content and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def figure(self, **options: Any) -> Any:
        """The numbers with their intervals as a chart; `column=` chooses one column, `width=` is in pixels."""
        return views.figure(self, **options)

    def _repr_html_(self) -> str:
        return views.html(self)

    def __repr__(self) -> str:
        confidence = float(Fraction(self.record["confidence"])) * 100
        lines = table_lines(self.columns, self.cells)
        left = f"ε {shown(self.epsilon)} spent, {left_shown(self.remaining)} left"
        last = f"± at {confidence:g} % · {left} · {self.record['neighbors']}{self._found()}"
        return "\n".join([*lines, one_line(last)])

    def _found(self) -> str:
        """What the keys cost before, where they were discovered."""
        found = self.record.get("discovered")
        if found is None:
            return ""
        epsilon, delta = (shown(Fraction(found[name])) for name in ("epsilon", "delta"))
        return f" · keys of {', '.join(found['columns'])} discovered at (ε, δ) = ({epsilon}, {delta})"

    def _cell(self, name: str, output: Output, row: dict[str, Item]) -> str:
        value, low, high = row[name]
        if self._is_key(output) or value is None:
            return "" if value is None else str(value)
        return with_interval(value, low, high)

    def _is_key(self, output: Output) -> bool:
        return isinstance(output, Named) and output.name in self.record["keys"]


def _item(output: Output, row: dict[str, Item]) -> Item:
    match output:
        case Named(name=name):
            return row[name]
        case Number(value=value):
            return (float(value),) * 3
        case Combined(sign=sign, left=left, right=right):
            return _combined(sign, _item(left, row), _item(right, row))


def _combined(sign: str, left: Item, right: Item) -> Item:
    if None in (left[0], right[0]):
        return _MISSING
    if sign == "/":
        if right[0] == 0 or right[1] <= 0 <= right[2]:
            return (left[0] / right[0], -math.inf, math.inf) if right[0] else _MISSING
        ends = [a / b for a in left[1:] for b in right[1:]]
        return left[0] / right[0], min(ends), max(ends)
    function = _SIGNS[sign]
    ends = [function(a, b) for a in left[1:] for b in right[1:]]
    return function(left[0], right[0]), min(ends), max(ends)


def _holds(test: Test, row: dict[str, Item]) -> bool:
    if test.sign == "and":
        return all(isinstance(part, Test) and _holds(part, row) for part in test.parts)
    if test.sign == "or":
        return any(isinstance(part, Test) and _holds(part, row) for part in test.parts)
    left, right = (_item(part, row)[0] for part in test.parts if not isinstance(part, Test))
    return left is not None and right is not None and bool(_SIGNS[test.sign](left, right))


def _sorted(
    table: list[dict[str, Item]], output: Output, descending: bool, bins: dict[str, list[Any]], others: dict[str, str]
) -> list[dict[str, Item]]:
    """The rows by one column, equal ones in their order; missing values and the rest come last; bins by their place."""
    values = [_item(output, row)[0] for row in table]
    if isinstance(output, Named) and output.name in bins:
        values = [bins[output.name].index(value) for value in values]
    elif isinstance(output, Named) and output.name in others:
        values = [None if value == others[output.name] else value for value in values]
    there = [at for at, value in enumerate(values) if value is not None]
    there.sort(key=lambda at: values[at], reverse=descending)
    return [table[at] for at in [*there, *(at for at, value in enumerate(values) if value is None)]]


def _in_int64(column: list[Any]) -> list[Any]:
    """A column as tables have it: integers that do not fit into 64 bits (noise of a tiny ε) make it one of floats.

    Keys of numbers beside the label of all others make it one of texts.
    """
    if any(isinstance(item, str) for item in column):
        return [item if item is None else str(item) for item in column]
    whole = all(isinstance(item, int) for item in column)
    return [float(item) for item in column] if whole and any(abs(item) >= 2**63 for item in column) else column


def write_table(answer: Answer, form: str, sink: Any) -> None:
    """Write the table of an answer as csv, json or parquet to a binary file."""
    match form:
        case "csv":
            from pyarrow import csv

            csv.write_csv(answer.to_arrow(), sink)
        case "json":
            sink.write(json.dumps(columns_json(answer), ensure_ascii=False, allow_nan=False, indent=1).encode())
        case "parquet":
            from pyarrow import parquet

            parquet.write_table(answer.to_arrow(), sink)


def columns_json(answer: Answer) -> dict[str, list[Any]]:
    """The table of an answer as JSON has it: an end that is not there is null."""
    return {name: [or_null(item) for item in column] for name, column in answer.to_dict().items()}
