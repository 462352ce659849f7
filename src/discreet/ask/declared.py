"""What a policy says about a column: public facts, none of them read from the data.

    bounds      [lower, upper] of a number (values outside are clamped), or of a date (for groups by year or month)
    keys        the values that are groups: a list, a range of whole numbers "1..12", a public file, or "discover"
    bins        edges of groups of a number: [0, 18, 65, 120] is 0 ≤ x < 18, 18 ≤ x < 65, 65 ≤ x ≤ 120
    precision   a step coarser than the one that the bounds give
    missing     "drop", or the value that a missing one counts as where the column itself is aggregated or grouped by
    parent      the column that the keys belong to, as a state is that of a county: a column of the same file of keys
    other       the label of one more group for all values that are not keys; without it they are dropped
    type        "integer", "number", "text", "date" or "truth": how a text is read; with format, decimal, thousands,
                trim, casefold, missing_values, map (see `ask.reading`). Without it the bounds, bins or keys tell the
                kind, or the type in the source

A file of keys has one key a line (.csv, .tsv, .txt) or one column (.parquet); its first line is a header only if it
is the column's name. "file.csv#name" takes the column `name` of a file whose first line is a header, and
"file.db#table.name" that of a table of SQLite. In Python, keys may be a column of numpy, pandas, polars or Arrow, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import InitVar, dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ask.expression import Kind, Reading
from discreet.ask.keyfile import keys_in
from discreet.ask.normal import decimal
from discreet.ask.reading import (
    DECIMALS,
    KINDS,
    THOUSANDS,
    Type,
    cleaning,
    exact_formats,
    exact_map,
    exact_mark,
    exact_switch,
    exact_texts,
    exact_type,
)
from discreet.errors import InvalidParameter
from discreet.parameters import exact, exact_bounds, exact_number, quote

Key: TypeAlias = str | Fraction | datetime | bool

MOST_KEYS = 10**7
"""More groups than any table that a person reads; a larger range was meant as something else."""

_DISCOVER = "discover"
_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared column, made of what the policy writes; one with nothing declared may still be used in conditions."""

    bounds: tuple[Fraction, Fraction] | tuple[datetime, datetime] | None = None
    keys: tuple[Key, ...] | None = None
    keys_from: str | None = field(init=False)
    """The range or file that the keys were written as, or "discover"."""
    bins: tuple[Fraction, ...] | None = None
    parent: str | None = None
    parents: tuple[str, ...] = field(init=False)
    """For each key the one of the parent's that it belongs to."""
    precision: Fraction | None = None
    missing: Key | None = "drop"
    """What a missing value counts as; None drops it."""
    other: str | None = None
    type: Type | None = None
    format: tuple[str, ...] | None = None
    decimal: str | None = None
    thousands: str | None = None
    trim: bool | None = None
    casefold: bool | None = None
    missing_values: tuple[str, ...] | None = None
    map: tuple[tuple[str, str], ...] | None = None
    map_from: str | None = field(init=False)
    """The file that the map was written as."""
    name: InitVar[str] = ""
    folder: InitVar[Path | None] = None

    def __post_init__(self, name: str, folder: Path | None) -> None:
        put = object.__setattr__
        with at("keys"):
            keys, written = _keys(self.keys, name, folder or Path())
            put(self, "keys", keys)
            put(self, "keys_from", written)
        with at("parent"):
            put(self, "parents", () if self.parent is None else _parents(self.parent, keys, written, folder or Path()))
        put(self, "map_from", str(self.map) if isinstance(self.map, str | Path) else None)
        readers: dict[str, Callable[[Any], object]] = {**_READERS, "map": partial(exact_map, folder=folder or Path())}
        for option, read in readers.items():
            value = getattr(self, option)
            if value is not None or option == "missing":
                with at(option):
                    put(self, option, read(value))
        self._fits()

    def keys_as(self, kind: Kind) -> tuple[Key, ...]:
        """The keys in the kind of the column, in declared order; a file's texts are read in it."""
        return _in_kind(self.keys, type(self.keys[0]).__name__, kind) if self.keys else ()

    @property
    def kind(self) -> Kind | None:
        """The kind that the declaration tells: by the type, or by numbers, dates or truths that are bounds or keys.

        >>> Declared(type="integer").kind, Declared(bounds=(0, 120)).kind, Declared(keys=["a", "b"]).kind
        ('number', 'number', None)
        """
        if self.type is not None:
            return KINDS[self.type]
        match self.bounds or self.bins or self.keys or (self.missing,):
            case bool(), *_:
                return "truth"
            case Fraction(), *_:
                return "number"
            case datetime(), *_:
                return "date"
        return None

    @property
    def reading(self) -> Reading:
        """How cells of text are read; as they are, if it is `Reading()` and they are of kind text."""
        spelled = (self.trim or self.casefold) and self.kind in (None, "text")
        clean = cleaning(
            trim=bool(self.trim),
            casefold=bool(self.casefold),
            missing=self.missing_values or (),
            pairs=self.map or (),
            keys=[key for key in self.keys or () if isinstance(key, str)] if spelled else (),
        )
        whole, decimal, thousands = self.type == "integer", self.decimal or ".", self.thousands or ""
        return replace(clean, whole=whole, formats=self.format or (), decimal=decimal, thousands=thousands)

    @property
    def discover(self) -> bool:
        """Whether the keys are left to a discovery; until then there are none."""
        return self.keys_from == _DISCOVER

    def with_keys(self, keys: Iterable[Key]) -> Declared:
        """The column with keys that were discovered; the label of the rest is none of them."""
        declared = copy(self)
        object.__setattr__(declared, "keys", tuple(key for key in keys if key != self.other))
        return declared

    def _fits(self) -> None:
        if self.discover and self.missing is not None:
            raise InvalidParameter("missing: it would be a key beside those that are discovered; leave it out")
        has_keys = self.keys is not None or self.discover
        if has_keys and self.bins is not None:
            raise InvalidParameter("bins: a column has keys or bins, not both; leave one out")
        if self.other is not None and not has_keys and self.bins is None:
            raise InvalidParameter("other: it is the label of values that are not keys; declare keys or bins beside it")
        if self.other is not None and self.other in (self.keys or labels(self.bins or ())):
            raise InvalidParameter(
                f"other: it must not be one of the keys, got {quote(self.other)}; write another label"
            )
        if self.format is not None and self.kind != "date":
            raise InvalidParameter('format: it is of dates; write type = "date" beside it, or leave it out')
        if (self.decimal is not None or self.thousands is not None) and self.kind != "number":
            raise InvalidParameter('decimal: marks are of numbers; write type = "number" beside them')
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise InvalidParameter('thousands: it must differ from decimal; write decimal = "," beside it')
        _ = self.reading
        match self.bounds, self.precision, self.missing:
            case (Fraction() as lower, Fraction() as upper), step, missing:
                if isinstance(missing, Fraction) and not lower <= missing <= upper:
                    raise InvalidParameter(f"missing: it must lie within the bounds, got {decimal(missing)}")
                if step is not None and step > upper - lower:
                    raise InvalidParameter(f"precision: it must not exceed upper - lower, got {decimal(step)}")
            case _, Fraction(), _:
                raise InvalidParameter("precision: it is a step between two bounds; declare bounds beside it")


@contextmanager
def at(key: str) -> Iterator[None]:
    """Names the key of the policy in an error."""
    try:
        yield
    except InvalidParameter as error:
        raise InvalidParameter(f"{key}: {error}") from None


def edges(values: object) -> tuple[Fraction, ...]:
    """The edges of bins, increasing."""
    if not isinstance(values, list | tuple) or not 2 <= len(values) <= MOST_KEYS:
        raise InvalidParameter("bins must be at least two edges such as [0, 18, 65, 120]")
    numbers = tuple(exact_number("an edge", value) for value in values)
    for left, right in pairwise(numbers):
        if left >= right:
            raise InvalidParameter(f"edges must increase, got {decimal(left)} before {decimal(right)}")
    return numbers


@lru_cache(maxsize=64)
def labels(bins: tuple[Fraction, ...]) -> tuple[str, ...]:
    """The names of bins, in order.

    >>> labels((Fraction(0), Fraction(18), Fraction(65)))
    ('[0, 18)', '[18, 65]')
    """
    pairs = [f"[{decimal(left)}, {decimal(right)})" for left, right in pairwise(bins)]
    return tuple(pairs[:-1] + [f"{last[:-1]}]" for last in pairs[-1:]])


def read_date(text: str) -> datetime:
    """The date or time, without zone, that an ISO text writes."""
    with suppress(ValueError):
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text)
    raise InvalidParameter(f"a date must be written as '2020-01-31' or '2020-01-31 12:00:00', got {quote(text)}")


def _bounds(bounds: object) -> tuple[Fraction, Fraction] | tuple[datetime, datetime]:
    match bounds:
        case [date() as first, date() as second]:
            lower, upper = _moment(first), _moment(second)
            if lower >= upper:
                raise InvalidParameter(f"lower must come before upper, got {first} and {second}; write [lower, upper]")
            return lower, upper
    return exact_bounds(bounds)


def _moment(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - dates here have no zone
    if value.tzinfo is not None:
        raise InvalidParameter("a date must be without a time zone, such as 2020-01-31")
    return value


def _keys(keys: object, name: str, folder: Path) -> tuple[tuple[Key, ...] | None, str | None]:
    """The keys, and the text that they were written as."""
    if keys is None or (isinstance(keys, str) and keys == _DISCOVER):
        return None, keys
    written = str(keys) if isinstance(keys, str | Path) else None
    spelled = _RANGE.fullmatch(written) if written is not None else None
    if spelled:
        first, last = int(spelled[1]), int(spelled[2])
        if not 0 <= last - first < MOST_KEYS:
            raise InvalidParameter(f'a range must be "first..last" of 1 to 10^7 whole numbers, got {quote(written)}')
        return tuple(map(Fraction, range(first, last + 1))), written
    if written is not None:
        return _distinct(tuple(keys_in(written, name, folder, MOST_KEYS))), written
    for listed in ("to_pylist", "tolist", "to_list"):  # columns of Arrow, of numpy and pandas, of polars
        keys = getattr(keys, listed)() if hasattr(keys, listed) else keys
    if not isinstance(keys, list | tuple):
        raise InvalidParameter(
            f'keys must be a list such as ["a", "b"], a range "1..12" or a file "keys.csv", got {quote(keys)}'
        )
    if len(keys) > MOST_KEYS:
        raise InvalidParameter(f"keys must be at most 10^7, got {len(keys):,}")
    return _distinct(tuple(map(_key, keys))), None


def _parents(parent: object, keys: tuple[Key, ...] | None, written: str | None, folder: Path) -> tuple[str, ...]:
    """For each key of a file what another column of the file says."""
    file = (written or "").partition("#")[0]
    if not isinstance(parent, str) or not parent or keys is None or not Path(file).suffix:
        raise InvalidParameter(
            'it names a column of the file of keys, as in keys = "counties.csv#county"; declare both'
        )
    table = (written or "").partition("#")[2].rpartition(".")[0]
    found = tuple(keys_in(f"{file}#{table}.{parent}" if table else f"{file}#{parent}", parent, folder, MOST_KEYS))
    if len(found) != len(keys):
        raise InvalidParameter(f"each key must have one {quote(parent)}, got {len(found):,} for {len(keys):,} keys")
    return found


def _key(value: object) -> Key:
    if isinstance(value, str) and "\0" in value:
        raise InvalidParameter("a key must not hold NUL characters")
    if isinstance(value, bool | str):
        return value
    return _moment(value) if isinstance(value, date) else exact_number("a key", value)


def _distinct(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    if not keys:
        raise InvalidParameter("keys must hold at least one value, got none")
    if len({type(key) for key in keys}) > 1:
        raise InvalidParameter("keys must be of one kind: texts, numbers, dates or truths")
    if len(set(keys)) < len(keys):
        seen: set[Key] = set()
        twice = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidParameter(f"keys must differ, got {quote(twice)} twice")
    return keys


def _label(label: object) -> str:
    if not (isinstance(label, str) and label):
        raise InvalidParameter(f'it must be a label such as "other", got {quote(label)}')
    return label


_READERS: dict[str, Callable[[Any], object]] = {
    "bounds": _bounds,
    "bins": edges,
    "precision": partial(exact, "precision"),
    "missing": lambda value: None if value == "drop" else _key(value),
    "other": _label,
    "type": exact_type,
    "format": exact_formats,
    "decimal": partial(exact_mark, marks=DECIMALS),
    "thousands": partial(exact_mark, marks=THOUSANDS),
    "trim": exact_switch,
    "casefold": exact_switch,
    "missing_values": exact_texts,
}


@lru_cache(maxsize=64)
def _in_kind(keys: tuple[Key, ...], _written: str, kind: Kind) -> tuple[Key, ...]:
    """The keys in a kind; `_written` tells the cache (False, True) from (0, 1)."""
    return _distinct(tuple(as_kind(key, kind) for key in keys))


def as_kind(key: Key, kind: Kind) -> Key:
    match key, kind:
        case (bool(), "truth") | (str(), "text") | (datetime(), "date") | (Fraction(), "number"):
            return key
        case Fraction(), "text":
            return decimal(key)
        case str(), "number":
            return exact_number("a key", key)
        case str(), "date":
            return read_date(key)
        case str(), "truth" if key.lower() in ("true", "false"):
            return key.lower() == "true"
    raise InvalidParameter(f"keys must be of the column's kind, {kind}, got {quote(key)}")
