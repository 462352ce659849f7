"""What an engine does: it turns a request for integers into one statement, and gives back a secret.

An engine reads rows and nothing else does. It knows the schema of its source (names and types, never values), a
version of its content, and `fetch`: exact integers for each declared group. The same rows give the same integers on
every engine.

    a row's value on a grid   a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, an integer in [0, width]; missing if x is
    a unit with many rows     at most max_rows of its rows count, chosen by a hash, in at most max_groups groups

A secret has a type: `Exact`. Only `release.mechanism` opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from discreet.ask.expression import Column, Expression, Kind
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.errors import DiscreetError, EngineFailed, InvalidParameter
from discreet.parameters import quote

MILLISECONDS = (
    "its times are in milliseconds, of which one can be too far to be read; write the file again with microseconds, as "
    'in frame.to_parquet("people.parquet", coerce_timestamps="us")'
)
"""Why a column of Parquet is not read: DuckDB and Spark multiply by 1000, and fail where a time does not fit."""

Value = TypeVar("Value")
Other = TypeVar("Other")


class Exact(Generic[Value]):
    """An exact answer. It prints as dots, and knows no equality, order, hash or copy that could tell it."""

    __slots__ = ("__secret",)

    def __init__(self, secret: Value) -> None:
        # within a function, where `inspect` does not print it
        self.__secret: Callable[[], Value] = lambda: secret

    def map(self, function: Callable[[Value], Other]) -> Exact[Other]:
        """A function of the secret, which is a secret."""
        return Exact(function(self.__secret()))

    def split(self: Exact[list[Other]], sizes: Sequence[int]) -> list[Exact[list[Other]]]:
        """A secret list cut into lists of these sizes, each of them a secret."""
        ends = accumulate(sizes)
        return [self.map(itemgetter(slice(end - size, end))) for size, end in zip(sizes, ends, strict=True)]

    def reveal(self, of: Callable[[Value], Any] | None = None) -> Any:
        """The exact answer, or a function of it; called by `release.mechanism` alone, which adds the noise."""
        return self.__secret() if of is None else of(self.__secret())

    def __repr__(self) -> str:
        return "Exact(…)"

    def __eq__(self, _other: object) -> bool:
        raise TypeError("an exact answer cannot be compared; release it first")

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str:
        raise TypeError("an exact answer cannot be copied or stored; release it first")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What the schema says of a column."""

    kind: Kind
    whole: bool
    """Whether it is of integers."""
    described: str
    """The type as the source calls it."""
    typed: bool = True
    """Whether the source has types; cells of CSV and JSON lines have none."""


Schema: TypeAlias = Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True)
class OnGrid:
    """A number on a public grid; `missing` is the grid point that missing values have, or None to drop them."""

    of: Expression
    grid: ValueGrid
    missing: int | None


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows count: all, or those where a truth is true, or where another expression is not missing."""

    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """How many units have a row that counts."""


@dataclass(frozen=True, slots=True)
class _OfValue:
    value: OnGrid


class Total(_OfValue):
    """Σa over rows whose value is not missing."""


class Squares(_OfValue):
    """Σa² over rows whose value is not missing."""


class Present(_OfValue):
    """How many rows have a value that is not missing (after `missing` has replaced it)."""


class Cells(_OfValue):
    """How many rows lie on each point of the grid: an array of width + 1 counts."""


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
    """The column that names the unit, or None: each row is a unit."""
    max_rows: int | None = None
    max_groups: int | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    """Sets of groups, by their numbers in rising order: then the combinations of each set, one set after the other."""


class Engine(Protocol):
    """Where the rows are."""

    public_size: bool
    """Whether no row's content changes how many rows or units there are; files of text leave out unreadable lines."""

    def schema(self) -> Schema:
        """Names and types of the columns; no value is read."""

    def version(self) -> str:
        """A text that changes when the content does."""

    def check(self) -> None:
        """Refuses a source that no longer has the columns and types that it was opened with, as far as that shows."""

    def units(self, unit: str | None) -> Exact[int]:
        """The number of units."""

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """For each key in the data, how many units have it, a unit having at most `limit` keys; NULL is no key."""

    def units_by_rows(self, unit: str, limits: Sequence[int]) -> Exact[list[int]]:
        """How many units have up to so many rows, for each limit those above the one before; the rest comes last."""

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list over all groups of Python integers (of int64 arrays for `Cells`)."""


def without_zone(moment: datetime) -> datetime:
    """A moment as engines have it; one with a zone is taken in UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def refuse_unread(unread: Mapping[str, str], columns: Sequence[str]) -> None:
    """Refuse columns that are used and cannot be read, with the reason."""
    used = {name.lower() for name in columns}
    for name, reason in unread.items():
        if name.lower() in used:
            raise InvalidParameter(f"the column {quote(name)} must hold numbers, texts, dates or truths: {reason}")


def guarded(engine: str, name: str, work: Callable[[], Value]) -> Value:
    """The result of `work`; what goes wrong is told by name, without the engine's own words, which may quote a row."""
    try:
        return work()
    except DiscreetError:
        raise
    except Exception:  # noqa: S110 - told below, where no `__context__` keeps the engine's words
        pass
    raise EngineFailed(f"{engine} could not do the statement {name!r}")


def alone(work: Callable[[], Value]) -> Value:
    """The result of `work`; a refusal comes without the error that it was raised from, whose words may quote a row."""
    try:
        return work()
    except DiscreetError as error:
        refusal = error
    refusal.__context__ = None
    raise refusal
