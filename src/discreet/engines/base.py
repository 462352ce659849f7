"""The protocol of engines: an engine turns a request for integers into one statement, and returns a secret.

Only an engine reads rows. It has the schema of its source (names and types, never values), a version of its content,
and `fetch`, which returns exact integers for each declared group. The same rows give the same integers on every engine.

    a row's value on a grid   a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, an integer in [0, width]; missing if x is missing
    a unit with many rows     at most max_rows of its rows count, chosen by a hash, in at most max_groups groups

A secret has the type `Exact`. Only `release.mechanism` opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from discreet.ask.expression import Column, Expression, Schema
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter
from discreet.parameters import quote

MILLISECONDS = (
    "its times are in milliseconds, which may be too large to be read; write the file again with microseconds, as "
    'in frame.to_parquet("people.parquet", coerce_timestamps="us")'
)
"""Why a Parquet column is not read: DuckDB and Spark multiply by 1000, and fail if a time does not fit."""

Value = TypeVar("Value")
Other = TypeVar("Other")


class Exact(Generic[Value]):
    """An exact answer. It prints as dots, and has no equality, order, hash or copy that could reveal it."""

    __slots__ = ("__secret",)

    def __init__(self, secret: Value) -> None:
        # in a closure, which `inspect` does not print
        self.__secret: Callable[[], Value] = lambda: secret

    def map(self, function: Callable[[Value], Other]) -> Exact[Other]:
        """A function of the secret, which is again a secret."""
        return Exact(function(self.__secret()))

    def split(self: Exact[list[Other]], sizes: Sequence[int]) -> list[Exact[list[Other]]]:
        """The secret list cut into lists of these sizes, each a secret."""
        ends = accumulate(sizes)
        return [self.map(itemgetter(slice(end - size, end))) for size, end in zip(sizes, ends, strict=True)]

    def reveal(self, of: Callable[[Value], Any] | None = None) -> Any:
        """The exact answer, or a function of it; only `release.mechanism`, which adds the noise, calls this."""
        return self.__secret() if of is None else of(self.__secret())

    def __repr__(self) -> str:
        return "Exact(…)"

    def __eq__(self, _other: object) -> bool:
        raise TypeError("an exact answer cannot be compared; release it first")

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str:
        raise TypeError("an exact answer cannot be copied or stored; release it first")


@dataclass(frozen=True, slots=True)
class OnGrid:
    """A number on a public grid; `missing` is the grid point of missing values, or None to drop them."""

    of: Expression
    grid: ValueGrid
    missing: int | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows: all rows, or those where a condition is true, or where an expression is not missing."""

    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """The number of units that have a row."""


@dataclass(frozen=True, slots=True)
class _OfValue:
    value: OnGrid


class Total(_OfValue):
    """Σa over rows whose value is not missing."""


class Squares(_OfValue):
    """Σa² over rows whose value is not missing."""


class Present(_OfValue):
    """The number of rows whose value is not missing, after `missing` has replaced it."""


class Cells(_OfValue):
    """The number of rows on each point of the grid: an array of width + 1 counts."""


@dataclass(frozen=True, slots=True)
class Product:
    """Σ aᵖbᑫ over rows in which neither value is missing; each power is 0 or 1."""

    first: OnGrid
    second: OnGrid
    powers: tuple[int, int]


Measure: TypeAlias = Rows | Units | Total | Squares | Present | Cells | Product


@dataclass(frozen=True, slots=True)
class Request:
    """Integers to fetch, for each combination of declared keys, in declared order (the last group varies fastest)."""

    measures: tuple[Measure, ...]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    unit: str | None = None
    """The column that identifies the unit, or None if each row is a unit."""
    max_rows: int | None = None
    max_groups: int | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    """Sets of groups, by increasing indices: integers are then for the combinations of each set, set after set."""


class Engine(Protocol):
    """The access to the rows of a source."""

    public_size: bool
    """Whether the number of rows and units does not depend on their content; text files leave out unreadable lines."""

    def schema(self) -> Schema:
        """Names and types of the columns; no value is read."""

    def version(self) -> str:
        """A text that changes with the content."""

    def check(self) -> None:
        """Refuse a source whose columns or types have changed since it was opened, as far as that can be seen."""

    def units(self, unit: str | None) -> Exact[int]:
        """The number of units."""

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """The number of units that have each key in the data, at most `limit` keys a unit; NULL is not a key."""

    def units_by_rows(self, unit: str, limits: Sequence[int]) -> Exact[list[int]]:
        """The number of units by the smallest limit on rows that they are within; units beyond all limits come last."""

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list of Python integers (of int64 arrays for `Cells`) over all groups."""


def without_zone(moment: datetime) -> datetime:
    """A moment without a zone; one with a zone is converted to UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def refuse_unread(unread: Mapping[str, str], columns: Sequence[str]) -> None:
    """Refuse columns in use that cannot be read, with the reason."""
    names_in_use = {name.lower() for name in columns}
    for name, reason in unread.items():
        if name.lower() in names_in_use:
            raise InvalidParameter(f"the column {quote(name)} must be a number, text, date or truth value: {reason}")


def guarded(engine: str, name: str, work: Callable[[], Value]) -> Value:
    """The result of `work`; an error names the statement, without the engine's message, which may quote a row."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:  # noqa: S110 - raised below, so that no `__context__` holds the engine's message
        pass
    raise EngineFailed(f"{engine} could not run the statement {name!r}")


def alone(work: Callable[[], Value]) -> Value:
    """The result of `work`; a refusal loses the error from which it was raised, whose message may quote a row."""
    try:
        return work()
    except DiscreetError as error:
        refusal = error
    refusal.__context__ = None
    raise refusal
