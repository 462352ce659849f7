"""The protocol of engines: an engine turns a request for integers into one statement, and returns a
secret.

Only an engine reads rows. It has the schema of its source (names and types, never values), a
version of its content, and `fetch`, which returns exact integers for each declared group. The same
rows give the same integers on every engine.

    a row's value on a grid   a = ⌊clamp(x)·2^(−e) + ½⌋ − lower, an integer in [0, width]; missing
                              if x is missing
    a unit with many rows     at most max_rows of its rows count, chosen by a hash, in at most
                              max_groups groups

A secret has the type `Exact`. Only `release.mechanism` opens it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from discreet.ask.expression import Column, Expression, Schema
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.errors import (
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    OutOfTime,
    SourceChanged,
    SourceUnusable,
    errno_code,
    without_context,
)
from discreet.parameters import quote

MILLISECONDS = (
    "its times are in milliseconds, which may be too large to be read; write the file again with"
    ' microseconds, as in frame.to_parquet("people.parquet", coerce_timestamps="us")'
)
"""Why a Parquet column is not read: DuckDB and Spark multiply by 1000, and fail if a time does not
fit.
"""

Value = TypeVar("Value")
Other = TypeVar("Other")


class Exact(Generic[Value]):
    """An exact answer.

    It prints as dots, and has no equality, order, hash or copy that could reveal it.
    """

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
        return [
            self.map(itemgetter(slice(end - size, end)))
            for size, end in zip(sizes, ends, strict=True)
        ]

    def reveal(self, of: Callable[[Value], Any] | None = None) -> Any:
        """The exact answer, or a function of it; only `release.mechanism`, which adds the noise,
        calls this.
        """
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
    """A number on a public grid; `missing` is the grid point of missing values, or None to drop
    them.
    """

    of: Expression
    grid: ValueGrid
    missing: int | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows: all rows, or those where a condition is true, or where an expression is
    not missing.
    """

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
    """Integers to fetch, for each combination of declared keys, in declared order (the last group
    varies fastest).
    """

    measures: tuple[Measure, ...]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    unit: str | None = None
    """The column that identifies the unit, or None if each row is a unit."""
    max_rows: int | None = None
    max_groups: int | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    """Sets of groups, by increasing indices: integers are then for the combinations of each set,
    set after set.
    """


class Engine(Protocol):
    """The access to the rows of a source."""

    chosen: str
    """What chooses the rows of the source by their content, so that their number tells about them;
    "" if it is nothing: a table as it is, a Parquet file or a frame. See `release.public_size`."""

    def schema(self) -> Schema:
        """Names and types of the columns; no value is read."""

    def version(self, salt: str = "") -> str:
        """A text that changes with the content of the declared columns, and with the salt; it
        checks as `check` does.

        One scan adds up a hash of each row, in any order. Two contents that nobody has chosen for
        it differ in their version, except with a probability of 2⁻⁶⁴ or so. Who may write rows and
        knows the salt could choose contents that agree: then a repeated question stays free
        although the rows have changed.
        """

    def check(self) -> None:
        """Refuse a source whose declared columns have other types or rights than when it was
        opened.
        """

    def probe(self) -> None:
        """The same, without waiting for a statement that runs."""

    def units(self, unit: str | None) -> Exact[int]:
        """The number of units."""

    def discover(self, column: Column, unit: str | None, limit: int) -> Exact[dict[str | int, int]]:
        """The number of units that have each key in the data, at most `limit` keys a unit; NULL is
        not a key.
        """

    def units_by_rows(self, unit: str, limits: Sequence[int]) -> Exact[list[int]]:
        """The number of units by the smallest limit on rows that they are within; units beyond all
        limits come last.
        """

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        """For each measure, a list of Python integers (of int64 arrays for `Cells`) over all
        groups.
        """


def without_zone(moment: datetime) -> datetime:
    """A moment without a zone; one with a zone is converted to UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def in_use(schema: Schema, declared: Sequence[str]) -> Schema:
    """The declared columns of a schema; all of them if none is declared."""
    return {name: column for name, column in schema.items() if not declared or name in declared}


def refuse_changed(before: Schema, now: Schema) -> None:
    """Refuse a source in which a column has another type than before, or is gone."""
    for name, column in before.items():
        if name not in now:
            raise SourceChanged(
                f"the column {quote(name)} is gone since the study was opened; {REOPEN}"
            )
        if now[name] != column:
            was, is_ = column.described, now[name].described
            raise SourceChanged(
                f"the column {quote(name)} was {was} when the study was opened, and is {is_};"
                f" {REOPEN}"
            )


REOPEN = "open the study again"
OTHER_ROWS = (
    f"another rule decides which rows the source has than when the study was opened; {REOPEN}"
)

LINES = "a line that cannot be read is left out"
PART_OF_FOLDER = "the source is a part of a folder, chosen by the value in its name"
"""What chooses rows: see `Engine.chosen`."""


def by_filter(what: str) -> str:
    """What chooses the rows of a view, a SELECT or something else with a filter.

    >>> by_filter("a view")
    'the source is a view, and its filter decides it'
    """
    return f"the source is {what}, and its filter decides it"


def is_part_of_folder(path: str) -> bool:
    """Whether a path names some of the folders of a table that is split by a value, as in
    people/year=2024.

    >>> is_part_of_folder("people/year=2024/a.parquet"), is_part_of_folder("people/*.parquet")
    (True, False)
    """
    return bool(_folders_of_values(path))


def is_linked_part(file: Path) -> bool:
    """Whether a file is below a folder such as year=2024 of which its own path says nothing."""
    return bool(_folders_of_values(os.path.realpath(file)) - _folders_of_values(str(file)))


def _folders_of_values(path: str) -> set[str]:
    return {part for part in path.split("/") if "=" in part}


def refuse_twice(files: Iterable[Path]) -> None:
    """Refuse a file that would be read twice, by a link or by two paths: each of its rows would
    count twice.
    """
    known: dict[tuple[int, int], Path] = {}
    for file in files:
        stat = file.stat()
        other = known.setdefault((stat.st_dev, stat.st_ino), file)
        if other is not file:
            raise InvalidParameter(
                f"a file must be in the source once, and {other.name} and {file.name} are the same"
                " file: take one away"
            )


def refuse_unread(unread: Mapping[str, str], columns: Sequence[str]) -> None:
    """Refuse columns in use that exist and cannot be used, with the reason and what to do."""
    names_in_use = {name.lower() for name in columns}
    for name, reason in unread.items():
        if name.lower() in names_in_use:
            raise SourceUnusable(
                f"the column {quote(name)} exists, and must be a number, text, date or truth value:"
                f" {reason}"
            )


def refuse_columnless(name: str, columns: Sequence[str], unread: Mapping[str, str]) -> None:
    """Refuse a source that has no column that can be used."""
    if not columns:
        reasons = "; ".join(f"{quote(column)}: {reason}" for column, reason in unread.items())
        raise SourceUnusable(
            f"{name} must have a column that can be read{f'; {reasons}' if reasons else ''}"
        )


class Failure(NamedTuple):
    """What a failure of an engine is called: a sentence, and the code of the engine or of the
    system.
    """

    sentence: str
    code: str = ""
    kind: type[EngineFailed] = EngineFailed


class Late(Exception):
    """A statement was still running when its time was over."""


def late(seconds: float, code: str = "") -> Failure:
    """The failure of a statement that takes longer than the time limit."""
    words = (
        f"the source did not answer within {seconds:g} s, the time limit of a question: ask for"
        " less, or raise "
    )
    return Failure(f"{words}time_limit", code, OutOfTime)


@contextmanager
def limited(seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Within the block a statement runs; when its time is over `stop` is called until it ends, and
    it is `Late`.
    """
    ended, is_late = threading.Event(), False

    def watch() -> None:
        nonlocal is_late
        if ended.wait(seconds):
            return
        is_late = True
        while True:  # a statement may be about to start
            with suppress(Exception):
                stop()
            if ended.wait(_AGAIN):
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        if not is_late:
            raise
    finally:
        ended.set()
        watcher.join(_AGAIN)
    if is_late:
        raise Late


_AGAIN = 0.2  # seconds between two attempts to stop a statement


@without_context
def guarded(
    engine: str,
    name: str,
    work: Callable[[], Value],
    explained: Callable[[Exception], Failure | DiscreetError | None] = lambda _: None,
) -> Value:
    """The result of `work`; an error is told without the engine's message, which may quote a row.

    `explained` says what an error of the engine means; it does not raise.
    """
    try:
        return work()
    except DiscreetError:
        raise
    except Exception as error:
        found = explained(error) or of_system(error)
        if found is None:
            found = Failure(f"{engine} could not run the statement {name!r}: see its log")
        if isinstance(found, DiscreetError):
            raise found from None
        raise found.kind(found.sentence, code=found.code or type(error).__name__) from None


def of_system(error: Exception) -> Failure | None:
    """What an error of the operating system means: a file that is gone, may not be read, or cannot
    be read.
    """
    if isinstance(error, MemoryError):
        return Failure(
            "there is too little memory for the statement: ask for fewer groups",
            errno_code(errno.ENOMEM),
        )
    if not isinstance(error, OSError) or not error.errno:
        return None
    file = Path(error.filename).name if isinstance(error.filename, str) else "a file of the source"
    return of_errno(error.errno, file)


def of_errno(number: int, file: str) -> Failure:
    """What a number of the operating system means for a file."""
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            words = "is gone: put it back, or name another source"
        case errno.EACCES | errno.EPERM:
            words = "may not be read by this user: change its permissions, or those of its folder"
        case errno.EISDIR:
            words = "is a folder now: put the file back"
        case errno.ENOSPC | errno.EDQUOT:
            words = "cannot be written, because its disk is full: make room"
        case errno.EROFS:
            words = "cannot be written, because its disk is read-only: make it writable"
        case errno.EMFILE | errno.ENFILE:
            words = "cannot be opened, because too many files are open: raise the limit (ulimit -n)"
        case _:
            words = f"cannot be used ({os.strerror(number)}): see whether its disk works"
    return Failure(f"{file} {words}", errno_code(number))
