"""What a question means under a policy: which columns may be used, between which bounds, in which groups.

A name that the policy does not declare is refused everywhere, with what to declare. The unit's own column may only be
counted: count(DISTINCT unit).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol

from discreet.ask.declared import MOST_KEYS, Declared, Key, as_kind, at, labels
from discreet.ask.expression import (
    Case,
    Coalesce,
    Column,
    Constant,
    Expression,
    Kind,
    Missing,
    Negation,
    Part,
    Truncated,
)
from discreet.ask.interval import PART_RANGES, interval
from discreet.ask.kinds import kind_of, refused
from discreet.ask.normal import canonical, normal, text
from discreet.ask.policy import Policy
from discreet.ask.query import Aggregate, Count, CountUnits, Extreme, Group, Moment, Quantiles
from discreet.ask.reading import KINDS
from discreet.errors import InvalidParameter, QueryRefused
from discreet.parameters import exact_bounds, quote

MOST_STARTS = 10**6
"""Hours of a century; more would be slow to list, and no one reads them."""


class Typed(Protocol):
    """What a schema says of a column: its kind, and whether it is of integers."""

    @property
    def kind(self) -> Kind:
        """number, text, date or truth."""

    @property
    def whole(self) -> bool:
        """Whether its values are integers."""

    @property
    def typed(self) -> bool:
        """Whether the source has types; cells of CSV and JSON lines have none."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A policy and the schema of its data."""

    policy: Policy
    schema: Mapping[str, Typed]

    def column(self, name: str, *, exact: bool = False) -> Column:
        """The declared column of that name; without `exact`, capitals of a–z do not matter where there is no doubt."""
        columns = self.policy.columns
        if not exact and name not in columns and name.isascii():
            alike = [known for known in columns if known.isascii() and known.lower() == name.lower()]
            name = alike[0] if len(alike) == 1 else name
        shown = quote(name)
        unit = self.policy.unit_column
        if unit is not None and (name == unit or (not exact and name.lower() == unit.lower())):
            raise refused(f"{shown} names the unit, and may only be counted: count(DISTINCT {unit})")
        if name not in columns:
            nearest = difflib.get_close_matches(name, list(columns), n=1)
            hint = f"did you mean {nearest[0]}? Or declare it" if nearest else "declare it"
            raise refused(f"the policy declares no column {shown}; {hint} under [columns], with bounds or keys")
        if name not in self.schema:
            raise refused(f"the data has no column {shown}, which the policy declares; correct the policy")
        return column_under(name, columns[name], self.schema[name])

    def is_unit(self, name: str) -> bool:
        """Whether that is the column of the unit."""
        return self.policy.unit_column is not None and name.lower() == self.policy.unit_column.lower()

    def declared(self, column: Column) -> Declared:
        """What the policy declares of a column."""
        return self.policy.columns[column.name]

    def count(self, of: Expression | None) -> Aggregate:
        """Rows where the expression is there (a truth: is true)."""
        if of is None:
            return Count()
        of = normal(of)
        match of:
            case Constant(None, _) | Constant(False, _):
                raise refused("a count of nothing is 0; write count(*)")
            case Constant():
                return Count()
            case Negation(Missing(part)) if kind_of(part) != "truth":
                return Count(part)
        return Count(of)

    def present(self, of: Expression) -> Aggregate:
        """Rows where the expression is there, also where it is false: count(x) in SQL."""
        is_condition = kind_of(of) == "truth" and not isinstance(of, Constant)
        return self.count(Negation(Missing(of)) if is_condition else of)

    def units(self) -> Aggregate:
        """How many units there are."""
        if self.policy.unit_column is None:
            raise refused("count(DISTINCT …) counts units, and here each row is one; write count(*)")
        return CountUnits()

    def moment(self, statistic: str, of: Expression, *, sample: bool = False) -> Aggregate:
        """What follows from a sum or from squares; the mean of a condition is a proportion, its sum a count."""
        of = normal(of)
        if kind_of(of) == "truth":
            if statistic == "sum":
                return self.count(of)
            if isinstance(of, Constant):
                raise refused("a constant needs no data; ask about a column")
            if statistic != "mean":
                raise refused("a condition has a count or a proportion; write avg(…) for the proportion")
            return Moment("mean", of, Fraction(0), Fraction(1), True, None)
        found = self._bounded(of, statistic)
        precision = self.declared(of).precision if isinstance(of, Column) else None
        return Moment(statistic, of, *found, precision=precision, sample=sample)

    def quantiles(self, of: Expression, shares: tuple[Fraction, ...]) -> Quantiles:
        """Quantiles of a number."""
        if not shares or not all(0 <= share <= 1 for share in shares):
            raise refused("a quantile needs shares between 0 and 1, as in quantile(age, 0.9)")
        of = normal(of)
        return Quantiles(of, tuple(sorted(set(shares))), *self._bounded(of, "quantile"))

    def extreme(self, side: Literal["min", "max"], of: Expression) -> Aggregate:
        """Minimum or maximum of a number."""
        of = normal(of)
        return Extreme(side, of, *self._bounded(of, side))

    def _bounded(self, of: Expression, name: str) -> tuple[Fraction, Fraction, bool, Fraction | None]:
        """Lower, upper, whether whole, and what missing counts as."""
        kind = kind_of(of)
        if kind != "number":
            raise refused(f"{name} needs a number, got a {kind}; count(…) counts anything")
        found = interval(of, self.policy.columns, self._whole())
        if found.lower is None or found.upper is None:
            if isinstance(of, Column):
                raise refused(f"{name} of {of.name} needs bounds; declare {of.name} = {{ bounds = [lower, upper] }}")
            raise refused(
                f"{name} of {_short(of)} has no bounds that follow from the policy; "
                "limit it, as in LEAST(GREATEST(x, 0), 100)"
            )
        if found.lower == found.upper:
            raise refused(f"{name} of a constant needs no data; ask about a column")
        try:
            exact_bounds((found.lower, found.upper))
        except InvalidParameter as error:
            raise refused(f"{name} of {_short(of)}: {error}") from None
        missing = self.declared(of).missing if isinstance(of, Column) else None
        if missing is not None and not isinstance(missing, Fraction):
            raise refused(f"{name} needs a number for missing values; correct missing in the policy")
        return found.lower, found.upper, found.whole, missing

    def _whole(self) -> dict[str, bool]:
        """Which declared columns are of integers: by their type in the source, or by how their texts are read."""
        found = {}
        for name, declared in self.policy.columns.items():
            if name in self.schema:
                reading = column_under(name, declared, self.schema[name]).reading
                found[name] = self.schema[name].whole if reading is None else reading.whole
        return found

    def group(self, of: Expression, bins: tuple[Fraction, ...] | None = None) -> Group:
        """The group column of an expression, with its keys; its name is its canonical text."""
        of = normal(of)
        other: str | None = None
        if isinstance(of, Column):
            declared = self.declared(of)
            other = declared.other
            bins = declared.bins if bins is None and declared.keys is None else bins
            keys = labels(bins) if bins is not None else self._keys(of)
            of = self._filled(of, declared, keys, bins)
        else:
            keys = labels(bins) if bins is not None else self._keys(of)
        if bins is not None and kind_of(of) != "number":
            raise refused(f"bins are of numbers, got a {kind_of(of)}; use keys, or a part such as YEAR(…)")
        if len(keys) > MOST_KEYS:
            raise refused("a group column may have 10,000,000 keys; ask for fewer")
        name = canonical(of) if bins is None else f"BIN({canonical(of)}, {', '.join(map(str, bins))})"
        return Group(name, of, keys, other, bins)

    def _filled(
        self, of: Column, declared: Declared, keys: tuple[Key, ...], bins: tuple[Fraction, ...] | None
    ) -> Expression:
        """The column with its missing values replaced as declared."""
        if declared.missing is None:
            return of
        try:
            value = as_kind(declared.missing, of.kind)
        except InvalidParameter:
            raise refused(f"missing of {of.name} must be of its kind, {of.kind}; correct the policy") from None
        if bins is None and value not in keys and declared.other is None:
            raise refused(f"missing of {of.name} must be one of its keys; correct the policy")
        return Coalesce((of, Constant(value, of.kind)))

    def _keys(self, of: Expression) -> tuple[Key, ...]:
        """The keys of an expression that has no bins."""
        if isinstance(of, Column) and self.declared(of).discover and not self.declared(of).keys:
            raise _undiscovered(of.name, self.declared(of).keys is not None)
        if isinstance(of, Column) and self.declared(of).keys is not None:
            try:
                return self.declared(of).keys_as(of.kind)
            except InvalidParameter as error:
                raise refused(f"columns.{of.name}.keys: {error}") from None
        if kind_of(of) == "truth":
            return (False, True)
        match of:
            case Part(part, _) if part in PART_RANGES:
                first, last = PART_RANGES[part]
                return tuple(map(Fraction, range(first, last + 1)))
            case Part("year", Column() as date):
                years = self._dates(date, "year")
                return tuple(Fraction(year) for year in range(years[0].year, years[1].year + 1))
            case Truncated(unit, Column() as date):
                return _starts(unit, *self._dates(date, unit))
            case Case(branches, otherwise):
                return _literals((*(value for _, value in branches), otherwise))
            case Column(name, _):
                raise refused(
                    f"GROUP BY {name} needs keys or bins; declare {name} = {{ keys = […] }} or {{ bins = […] }}"
                )
        raise refused(
            f"GROUP BY {_short(of)} has no keys that follow from the policy; group by a column with keys, "
            "bin(age, 0, 18, 65), a part of a date, or CASE with literal results"
        )

    def _dates(self, date: Column, unit: str) -> tuple[datetime, datetime]:
        match self.declared(date).bounds:
            case (datetime() as first, datetime() as last):
                return first, last
        raise refused(
            f"GROUP BY the {unit} of {date.name} needs bounds; "
            f"declare {date.name} = {{ bounds = [2020-01-01, 2024-12-31] }}"
        )


def column_under(name: str, declared: Declared, source: Typed) -> Column:
    """The column as questions use it: of the source's own kind, or, for texts, of the kind that is declared.

    A text is then read by the cast of the row language, with the declared marks and formats, and what cannot be read is
    missing.
    """
    if source.kind != "text" or declared.kind in (None, "text"):
        return Column(name, source.kind)
    return Column(name, declared.kind or "text", declared.reading)


def check_schema(policy: Policy, schema: Mapping[str, Typed]) -> None:
    """Refuses a policy that does not fit the names and types of its data."""
    if policy.unit_column is not None and policy.unit_column not in schema:
        raise InvalidParameter(f"unit: the data has no column {quote(policy.unit_column)}")
    for name, declared in policy.columns.items():
        place = f"columns.{name}"
        if name not in schema:
            nearest = difflib.get_close_matches(name, list(schema), n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise InvalidParameter(f"{place}: the data has no such column of numbers, texts, dates or truths{hint}")
        _check_type(name, declared, schema[name])
        column = column_under(name, declared, schema[name])
        kind = column.kind
        expected = {"number": Fraction, "date": datetime}.get(kind)
        if declared.bounds is not None and not isinstance(declared.bounds[0], expected or ()):
            raise InvalidParameter(f"{place}.bounds: they must be of the column's kind, {kind}")
        if declared.bins is not None and kind != "number":
            raise InvalidParameter(f"{place}.bins: they are of numbers, and the column is of kind {kind}")
        with at(f"{place}.keys"):
            declared.keys_as(kind)
            whole = schema[name].whole if column.reading is None else column.reading.whole
            if declared.discover and not (kind == "text" or whole):
                raise InvalidParameter("only texts and whole numbers can be discovered; declare keys or bins")
        if declared.missing is not None:
            with at(f"{place}.missing"):
                as_kind(declared.missing, kind)


def _check_type(name: str, declared: Declared, source: Typed) -> None:
    """Refuses a type that is missing, or that is not the source's."""
    place = f"columns.{name}"
    tells = declared.kind is not None or declared.keys is not None or declared.discover
    if not source.typed and not tells:
        raise InvalidParameter(
            f'{place}: a file of text has no types; write {name} = {{ type = "text" }}, or "integer", "number", '
            '"date" or "truth"'
        )
    if source.kind == "text":
        return
    if declared.type is not None and KINDS[declared.type] != source.kind:
        raise InvalidParameter(f"{place}.type: the column is of kind {source.kind} in the data; leave type out")
    if declared.type == "integer" and not source.whole:
        raise InvalidParameter(f'{place}.type: the column has fractions in the data; write type = "number"')
    for option in ("format", "decimal", "thousands"):
        if getattr(declared, option) is not None:
            raise InvalidParameter(f"{place}.{option}: it says how text is read, and the column has none; leave it out")


def _undiscovered(name: str, done: bool) -> QueryRefused:
    if done:
        return refused(f"GROUP BY {name} has no groups: its discovery found no key with enough units")
    return refused(f'GROUP BY {name} needs its keys; discover its keys first: study.discover("{name}", epsilon=…)')


def _literals(values: tuple[Expression, ...]) -> tuple[Key, ...]:
    keys: list[Key] = []
    for value in values:
        if not isinstance(value, Constant):
            raise refused("GROUP BY CASE needs literal results, as in CASE WHEN age < 18 THEN 'young' ELSE 'old' END")
        if value.value is not None and value.value not in keys:
            keys.append(value.value)
    if not keys:
        raise refused("GROUP BY CASE needs at least one literal result that is not NULL")
    return tuple(keys)


@lru_cache(maxsize=16)
def _starts(unit: str, first: datetime, last: datetime) -> tuple[Key, ...]:
    """The beginnings of all units from first to last."""
    if (last - first) / _STEPS[unit] > MOST_STARTS:
        raise refused(f"a group by {unit} may have {MOST_STARTS:,} keys; ask for longer units")
    found: list[Key] = []
    start = _start(unit, first)
    while start <= last:
        found.append(start)
        try:
            start = _start(unit, start + _STEPS[unit])
        except OverflowError:
            break
    return tuple(found)


_STEPS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "quarter": timedelta(days=92),
    "year": timedelta(days=366),
}
"""From the beginning of one unit into the next."""


def _start(unit: str, moment: datetime) -> datetime:
    moment = moment.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        return moment
    moment = moment.replace(hour=0)
    match unit:
        case "week":
            return moment - timedelta(days=moment.weekday())
        case "month":
            return moment.replace(day=1)
        case "quarter":
            return moment.replace(month=moment.month - (moment.month - 1) % 3, day=1)
        case "year":
            return moment.replace(month=1, day=1)
    return moment


def _short(of: Expression) -> str:
    found = text(of)
    return found if len(found) <= 60 else found[:57] + "…"
