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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import InitVar, dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.ask.expression import Kind, Reading
from discreet.ask.keys.key import MOST_KEYS, Key, is_date, is_written_date, moment, read_date, read_key
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

if TYPE_CHECKING:
    from discreet.ask.keys.column import Keys

_DISCOVER = "discover"
_KINDS: dict[type, Kind] = {bool: "truth", Fraction: "number", datetime: "date"}
_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A declared column, made of what the policy writes; one with nothing declared may still be used in conditions."""

    bounds: tuple[Fraction, Fraction] | tuple[datetime, datetime] | None = None
    keys: Keys | None = None
    keys_from: str | None = field(init=False)
    """The range or file that the keys were written as, or "discover"."""
    bins: tuple[Fraction, ...] | None = None
    parent: str | None = None
    parents: Keys | None = field(init=False)
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
            put(self, "parents", self.parent and _parents(self.parent, keys, written, folder or Path()))
        put(self, "map_from", str(self.map) if isinstance(self.map, str | Path) else None)
        readers: dict[str, Callable[[Any], object]] = {**_READERS, "map": partial(exact_map, folder=folder or Path())}
        for option, read in readers.items():
            value = getattr(self, option)
            if value is not None or option == "missing":
                with at(option):
                    put(self, option, read(value))
        self._fits()

    @property
    def kind(self) -> Kind | None:
        """The kind that the declaration tells: by the type, or by numbers, dates or truths that are bounds or keys.

        >>> Declared(type="integer").kind, Declared(bounds=(0, 120)).kind, Declared(keys=["a", "b"]).kind
        ('number', 'number', None)
        """
        if self.type is not None:
            return KINDS[self.type]
        for values in (self.bounds, self.bins, self.keys, (self.missing,)):
            if values:
                return _KINDS.get(type(values[0]))
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
        object.__setattr__(declared, "keys", _column(key for key in keys if str(key) != self.other))
        return declared

    def _fits(self) -> None:
        if self.discover and self.missing is not None:
            raise InvalidParameter("missing: it would be a key beside those that are discovered; leave it out")
        has_keys = self.keys is not None or self.discover
        if has_keys and self.bins is not None:
            raise InvalidParameter("bins: a column has keys or bins, not both; leave one out")
        if self.other is not None and not has_keys and self.bins is None:
            raise InvalidParameter("other: it is the label of values that are not keys; declare keys or bins beside it")
        if self.other is not None and (
            self.other in labels(self.bins) if self.bins else self.keys and self.keys.has_label(self.other)
        ):
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


def _bounds(bounds: object) -> tuple[Fraction, Fraction] | tuple[datetime, datetime]:
    ends = list(bounds) if isinstance(bounds, list | tuple) or type(bounds).__name__ == "ndarray" else []  # type: ignore[call-overload]
    if len(ends) == 2 and any(is_date(end) or is_written_date(end) for end in ends):
        lower, upper = map(_moment, ends)
        if lower >= upper:
            first, second = (day(end) for end in (lower, upper))
            raise InvalidParameter(f"lower must come before upper, got {first} and {second}; write [lower, upper]")
        return lower, upper
    return exact_bounds(bounds)


def _moment(end: object) -> datetime:
    if isinstance(end, str):
        return read_date(end)
    if not is_date(end):
        raise InvalidParameter(f"bounds must be two dates or two numbers, got a date and {quote(end)}")
    return moment(end)


def day(moment: datetime) -> str:
    """A date as a reader sees it: without a time, if it is the beginning of the day.

    >>> day(datetime(2020, 1, 31)), day(datetime(2020, 1, 31, 12))
    ('2020-01-31', '2020-01-31 12:00:00')
    """
    return str(moment.date() if moment == datetime(moment.year, moment.month, moment.day) else moment)  # noqa: DTZ001


def listed_keys(keys: Any) -> Keys:
    """The keys of a call about a column in memory: a list, a column, a range "1..12" or a public file."""
    if isinstance(keys, str) and keys == _DISCOVER:
        raise InvalidParameter('keys must be listed, as in keys=["a", "b"]; only a study discovers them')
    listed, _ = _keys(keys, "", Path())
    if listed is None:
        raise InvalidParameter('keys must be listed, as in keys=["a", "b"]')
    return listed


def _keys(keys: Any, name: str, folder: Path) -> tuple[Keys | None, str | None]:
    """The keys, and the text that they were written as."""
    if keys is None or (isinstance(keys, str) and keys == _DISCOVER):
        return None, keys
    import numpy as np

    from discreet.ask.keys.column import Keys

    if isinstance(keys, Keys):
        return keys, None
    written = str(keys) if isinstance(keys, str | Path) else None
    spelled = _RANGE.fullmatch(written) if written is not None else None
    if spelled:
        first, last = int(spelled[1]), int(spelled[2])
        if not 0 <= last - first < MOST_KEYS:
            raise InvalidParameter(f'a range must be "first..last" of 1 to 10^7 whole numbers, got {quote(written)}')
        return Keys.numbers(np.arange(first, last + 1)), written
    if written is not None:
        from discreet.ask.keys.file import keys_in

        return keys_in(written, name, folder).declarable(), written
    if isinstance(keys, range):
        keys = list(keys)
    if isinstance(keys, np.ndarray) and keys.dtype.kind == "M":  # whose list would be of whole numbers
        keys = list(keys)
    for listed in ("to_arrow", "tolist", "to_list"):  # columns of polars, and of numpy and pandas
        if not hasattr(keys, "to_pylist"):  # which Arrow has
            keys = getattr(keys, listed)() if hasattr(keys, listed) else keys
    if not (isinstance(keys, list | tuple) or hasattr(keys, "to_pylist")):
        raise InvalidParameter(
            f'keys must be a list such as ["a", "b"], a range "1..12" or a file "keys.csv", got {quote(keys)}'
        )
    if len(keys) > MOST_KEYS:
        raise InvalidParameter(f"keys must be at most 10^7, got {len(keys):,}")
    return Keys.of(keys).declarable(), None


def _column(keys: Iterable[object]) -> Keys:
    from discreet.ask.keys.column import Keys

    return Keys.of(keys)


def _parents(parent: object, keys: Keys | None, written: str | None, folder: Path) -> Keys:
    """For each key of a file what another column of the file says."""
    file = (written or "").partition("#")[0]
    if not isinstance(parent, str) or not parent or keys is None or not Path(file).suffix:
        raise InvalidParameter(
            'it names a column of the file of keys, as in keys = "counties.csv#county"; declare both'
        )
    from discreet.ask.keys.file import keys_in

    table = (written or "").partition("#")[2].rpartition(".")[0]
    parents = keys_in(f"{file}#{table}.{parent}" if table else f"{file}#{parent}", parent, folder)
    if len(parents) != len(keys):
        raise InvalidParameter(f"each key must have one {quote(parent)}, got {len(parents):,} for {len(keys):,} keys")
    return parents


def exact_label(label: object) -> str:
    """The label of all values that are no key."""
    if not (isinstance(label, str) and label):
        raise InvalidParameter(f'it must be a label such as "other", got {quote(label)}')
    return label


_READERS: dict[str, Callable[[Any], object]] = {
    "bounds": _bounds,
    "bins": edges,
    "precision": partial(exact, "precision"),
    "missing": lambda value: None if value == "drop" else read_key(value),
    "other": exact_label,
    "type": exact_type,
    "format": exact_formats,
    "decimal": partial(exact_mark, marks=DECIMALS),
    "thousands": partial(exact_mark, marks=THOUSANDS),
    "trim": exact_switch,
    "casefold": exact_switch,
    "missing_values": exact_texts,
}


def meant(name: str, options: object, folder: Path | None) -> str:
    """What to write for a column whose declaration is no table: two numbers are bounds, anything else listed is keys.

    A file, which has a folder, is TOML.
    """
    pair = isinstance(options, list | tuple) and len(options) == 2
    texts = isinstance(options, list | tuple) and any(isinstance(item, str) for item in options)
    if isinstance(options, list | tuple) and (texts or not pair):
        return f'write {name} = {{ keys = ["…"] }}' if folder else f'write columns={{"{name}": {{"keys": […]}}}}'
    return (
        f"write {name} = {{ bounds = [0, 120] }}" if folder else f'write columns={{"{name}": {{"bounds": (0, 120)}}}}'
    )


def refuse_tangled(columns: Mapping[str, Declared]) -> None:
    """Refuse parents that would follow from two columns, or from themselves."""
    children: dict[str, str] = {}
    for name, declared in columns.items():
        if declared.parent is None:
            continue
        if declared.parent in children:
            raise InvalidParameter(
                f"columns.{name}.parent: {quote(declared.parent)} is the parent of {quote(children[declared.parent])}, "
                "and follows from one column alone; leave one of the two out"
            )
        children[declared.parent] = name
    for name, below in children.items():
        while below in children and below != name:
            below = children[below]  # noqa: PLW2901 - down to the last
        if below == name:
            raise InvalidParameter(f"columns.{name}.parent: it must not lead back to {quote(name)}; leave it out")
