"""The declaration of a column in a policy: public facts, none of them read from the data.

    bounds      [lower, upper] of a number (values outside are clamped), or of a date (for groups by
                year or month)
    keys        the values that form groups: a list, a range of whole numbers "1..12", a public
                file, or "discover"
    bins        edges of groups of a number: [0, 18, 65, 120] is 0 ≤ x < 18, 18 ≤ x < 65, 65 ≤ x ≤
                120
    precision   a coarser step than the step that follows from the bounds
    missing     "drop", or the value that replaces missing values where the column is aggregated or
                grouped by
    parent      the column to whose keys the keys belong, as counties belong to states; it is in the
                same file of keys
    other       the label of one more group for all values that are not keys; without it they are
                dropped
    type        "integer", "number", "text", "date" or "truth": how a text is read; with format,
                decimal, thousands,
                trim, casefold, missing_values, map (see `ask.reading`). Without it the kind follows
                from the bounds, bins or keys, or from the type in the source

A file of keys has one key a line (.csv, .tsv, .txt) or one column (.parquet); its first line is a
header only if it is the column's name. "file.csv#name" means the column `name` of a file whose
first line is a header, and "file.db#table.name" a column of an SQLite table. In Python, keys may
also be a numpy, pandas, polars or Arrow column.
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
from discreet.ask.keys.key import (
    MOST_KEYS,
    Key,
    is_date,
    is_written_date,
    moment,
    read_date,
    read_key,
)
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
    """A declared column, from the options in the policy; without options it may still be used in
    conditions.
    """

    bounds: tuple[Fraction, Fraction] | tuple[datetime, datetime] | None = None
    keys: Keys | None = None
    keys_from: str | None = field(init=False)
    """The range or file in which the policy gave the keys, or "discover"."""
    bins: tuple[Fraction, ...] | None = None
    parent: str | None = None
    parents: Keys | None = field(init=False)
    """The parent's key to which each key belongs."""
    precision: Fraction | None = None
    missing: Key | None = "drop"
    """The value that replaces missing values; None drops them."""
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
    """The file in which the policy gave the map."""
    name: InitVar[str] = ""
    folder: InitVar[Path | None] = None

    def __post_init__(self, name: str, folder: Path | None) -> None:
        set_field = object.__setattr__
        with errors_at("keys"):
            keys, source = _keys(self.keys, name, folder or Path())
            set_field(self, "keys", keys)
            set_field(self, "keys_from", source)
        with errors_at("parent"):
            set_field(
                self,
                "parents",
                self.parent and _parents(self.parent, keys, source, folder or Path()),
            )
        set_field(self, "map_from", str(self.map) if isinstance(self.map, str | Path) else None)
        readers: dict[str, Callable[[Any], object]] = {
            **_READERS,
            "map": partial(exact_map, folder=folder or Path()),
        }
        for option, read in readers.items():
            value = getattr(self, option)
            if value is not None or option == "missing":
                with errors_at(option):
                    set_field(self, option, read(value))
        self._fits()

    @property
    def kind(self) -> Kind | None:
        """The declared kind: by the type, or by the bounds, bins, keys or missing value if these
        are not texts.

        >>> (
        ...     Declared(type="integer").kind,
        ...     Declared(bounds=(0, 120)).kind,
        ...     Declared(keys=["a", "b"]).kind,
        ... )
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
        """How cells of text are read; `Reading()` of kind text leaves them as they are."""
        is_cleaned_text = (self.trim or self.casefold) and self.kind in (None, "text")
        clean = cleaning(
            trim=bool(self.trim),
            casefold=bool(self.casefold),
            missing=self.missing_values or (),
            pairs=self.map or (),
            keys=(
                [key for key in self.keys or () if isinstance(key, str)] if is_cleaned_text else ()
            ),
        )
        whole = self.type == "integer"
        decimal = self.decimal or "."
        thousands = self.thousands or ""
        return replace(
            clean, whole=whole, formats=self.format or (), decimal=decimal, thousands=thousands
        )

    @property
    def discover(self) -> bool:
        """Whether the keys are to be discovered; until then there are none."""
        return self.keys_from == _DISCOVER

    def with_keys(self, keys: Iterable[Key]) -> Declared:
        """The column with discovered keys, without the label of other values."""
        declared = copy(self)
        object.__setattr__(
            declared, "keys", column_of(key for key in keys if str(key) != self.other)
        )
        return declared

    def _fits(self) -> None:
        if self.discover and self.missing is not None:
            raise InvalidParameter(
                "missing: it would add a key to the discovered keys; leave it out"
            )
        has_keys = self.keys is not None or self.discover
        if has_keys and self.bins is not None:
            raise InvalidParameter("bins: a column has keys or bins, not both; leave one out")
        if self.other is not None and not has_keys and self.bins is None:
            raise InvalidParameter(
                "other: it is the label of values that are not keys; declare keys or bins as well"
            )
        if self.other is not None and (
            self.other in labels(self.bins)
            if self.bins
            else self.keys and self.keys.has_label(self.other)
        ):
            raise InvalidParameter(
                f"other: it must not be one of the keys, got {quote(self.other)}; write another"
                " label"
            )
        if self.format is not None and self.kind != "date":
            raise InvalidParameter(
                'format: only dates have a format; write type = "date" as well, or leave it out'
            )
        if (self.decimal is not None or self.thousands is not None) and self.kind != "number":
            raise InvalidParameter(
                'decimal: only numbers have such marks; write type = "number" as well'
            )
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise InvalidParameter(
                'thousands: it must differ from decimal; write decimal = "," as well'
            )
        _ = self.reading
        match self.bounds, self.precision, self.missing:
            case (Fraction() as lower, Fraction() as upper), step, missing:
                if isinstance(missing, Fraction) and not lower <= missing <= upper:
                    raise InvalidParameter(
                        f"missing: it must lie within the bounds, got {decimal(missing)}"
                    )
                if step is not None and step > upper - lower:
                    raise InvalidParameter(
                        f"precision: it must not exceed upper - lower, got {decimal(step)}"
                    )
            case _, Fraction(), _:
                raise InvalidParameter(
                    "precision: it is a step between two bounds; declare bounds as well"
                )


@contextmanager
def errors_at(key: str) -> Iterator[None]:
    """Put the key of the policy before the message of an error."""
    try:
        yield
    except InvalidParameter as error:
        raise InvalidParameter(f"{key}: {error}") from None


def edges(values: object) -> tuple[Fraction, ...]:
    """The edges of bins, which must increase."""
    if not isinstance(values, list | tuple) or not 2 <= len(values) <= MOST_KEYS:
        raise InvalidParameter("bins must be at least two edges such as [0, 18, 65, 120]")
    numbers = tuple(exact_number("an edge", value) for value in values)
    for left, right in pairwise(numbers):
        if left >= right:
            raise InvalidParameter(
                f"edges must increase, got {decimal(left)} before {decimal(right)}"
            )
    return numbers


@lru_cache(maxsize=64)
def labels(bins: tuple[Fraction, ...]) -> tuple[str, ...]:
    """The labels of bins, in order.

    >>> labels((Fraction(0), Fraction(18), Fraction(65)))
    ('[0, 18)', '[18, 65]')
    """
    pairs = [f"[{decimal(left)}, {decimal(right)})" for left, right in pairwise(bins)]
    return tuple(pairs[:-1] + [f"{last[:-1]}]" for last in pairs[-1:]])


def _bounds(bounds: object) -> tuple[Fraction, Fraction] | tuple[datetime, datetime]:
    ends = (
        list(bounds)  # type: ignore[call-overload]
        if isinstance(bounds, list | tuple) or type(bounds).__name__ == "ndarray"
        else []
    )
    if len(ends) == 2 and any(is_date(end) or is_written_date(end) for end in ends):
        lower, upper = map(_moment, ends)
        if lower >= upper:
            first, second = (day(end) for end in (lower, upper))
            raise InvalidParameter(
                f"lower must come before upper, got {first} and {second}; write [lower, upper]"
            )
        return lower, upper
    return exact_bounds(bounds)


def _moment(end: object) -> datetime:
    if isinstance(end, str):
        return read_date(end)
    if not is_date(end):
        raise InvalidParameter(
            f"bounds must be two dates or two numbers, got a date and {quote(end)}"
        )
    return moment(end)


def day(moment: datetime) -> str:
    """A date for a reader: without the time if it is midnight.

    >>> day(datetime(2020, 1, 31)), day(datetime(2020, 1, 31, 12))
    ('2020-01-31', '2020-01-31 12:00:00')
    """
    return str(
        moment.date() if moment == datetime(moment.year, moment.month, moment.day) else moment  # noqa: DTZ001
    )


def listed_keys(keys: Any) -> Keys:
    """The keys in a call about a column in memory: a list, a column, a range "1..12" or a public
    file.
    """
    if isinstance(keys, str) and keys == _DISCOVER:
        raise InvalidParameter(
            'keys must be listed, as in keys=["a", "b"]; only a study can discover them'
        )
    listed, _ = _keys(keys, "", Path())
    if listed is None:
        raise InvalidParameter('keys must be listed, as in keys=["a", "b"]')
    return listed


def _keys(keys: Any, name: str, folder: Path) -> tuple[Keys | None, str | None]:
    """The keys, and the range or file in which they were given."""
    if keys is None or (isinstance(keys, str) and keys == _DISCOVER):
        return None, keys
    import numpy as np

    from discreet.ask.keys.column import Keys

    if isinstance(keys, Keys):
        return keys, None
    source = str(keys) if isinstance(keys, str | Path) else None
    match = _RANGE.fullmatch(source) if source is not None else None
    if match:
        first, last = int(match[1]), int(match[2])
        if not 0 <= last - first < MOST_KEYS:
            raise InvalidParameter(
                f'a range must be "first..last" of 1 to 10^7 whole numbers, got {quote(source)}'
            )
        return Keys.numbers(np.arange(first, last + 1)), source
    if source is not None:
        from discreet.ask.keys.file import keys_in

        return keys_in(source, name, folder).declarable(), source
    if isinstance(keys, range):
        keys = list(keys)
    if isinstance(keys, np.ndarray) and keys.dtype.kind == "M":  # tolist() would give whole numbers
        keys = list(keys)
    for method in ("to_arrow", "tolist", "to_list"):  # of polars, and of numpy and pandas
        if not hasattr(keys, "to_pylist"):  # already Arrow
            keys = getattr(keys, method)() if hasattr(keys, method) else keys
    if not (isinstance(keys, list | tuple) or hasattr(keys, "to_pylist")):
        raise InvalidParameter(
            'keys must be a list such as ["a", "b"], a range "1..12" or a file "keys.csv", got'
            f" {quote(keys)}"
        )
    if len(keys) > MOST_KEYS:
        raise InvalidParameter(f"keys must be at most 10^7, got {len(keys):,}")
    return Keys.of(keys).declarable(), None


def column_of(keys: Iterable[object]) -> Keys:
    """Keys from a list; imported late, as it needs Arrow."""
    from discreet.ask.keys.column import Keys

    return Keys.of(keys)


def _parents(parent: object, keys: Keys | None, source: str | None, folder: Path) -> Keys:
    """For each key of a file its value in another column of the file."""
    file = (source or "").partition("#")[0]
    if not isinstance(parent, str) or not parent or keys is None or not Path(file).suffix:
        raise InvalidParameter(
            'it must name a column of a file of keys, as in keys = "counties.csv#county"; declare'
            " both"
        )
    from discreet.ask.keys.file import keys_in

    table = (source or "").partition("#")[2].rpartition(".")[0]
    parents = keys_in(f"{file}#{table}.{parent}" if table else f"{file}#{parent}", parent, folder)
    if len(parents) != len(keys):
        raise InvalidParameter(
            f"each key must have one {quote(parent)}, got {len(parents):,} for {len(keys):,} keys"
        )
    return parents


def exact_label(label: object) -> str:
    """The label of all values that are not keys."""
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


def declaration_hint(name: str, options: object, folder: Path | None) -> str:
    """How to declare a column whose declaration is not a table: two numbers are bounds, any other
    list is keys.

    With a folder the policy is a TOML file.
    """
    toml, python = "bounds = [0, 120]", '"bounds": (0, 120)'
    if isinstance(options, list | tuple) and (
        len(options) != 2 or any(isinstance(item, str) for item in options)
    ):
        toml, python = 'keys = ["…"]', '"keys": […]'
    return f"write {name} = {{ {toml} }}" if folder else f'write columns={{"{name}": {{{python}}}}}'


def refuse_tangled(columns: Mapping[str, Declared]) -> None:
    """Refuse parents of two columns, and cycles of parents."""
    children: dict[str, str] = {}
    for name, declared in columns.items():
        if declared.parent is None:
            continue
        if declared.parent in children:
            raise InvalidParameter(
                f"columns.{name}.parent: {quote(declared.parent)} is the parent of"
                f" {quote(children[declared.parent])}, and can be the parent of one column only;"
                " leave one of the two out"
            )
        children[declared.parent] = name
    for name, child in children.items():
        while child in children and child != name:
            child = children[child]  # noqa: PLW2901 - follow the chain to its end
        if child == name:
            raise InvalidParameter(
                f"columns.{name}.parent: it must not lead back to {quote(name)}; leave it out"
            )
