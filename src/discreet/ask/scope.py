"""The meaning of a question under a policy: which columns may be used, with which bounds and
groups.

A name that the policy does not declare is refused, with a suggestion. The column of the unit may
only be counted: count(DISTINCT unit).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from discreet.ask import expression as row
from discreet.ask.declared import Declared, column_of, errors_at, labels
from discreet.ask.expression import (
    Children,
    Column,
    ColumnType,
    Constant,
    Expression,
    Reading,
    Schema,
)
from discreet.ask.interval import PART_RANGES, interval
from discreet.ask.keys.key import MOST_KEYS, as_kind
from discreet.ask.kinds import DATED, LARGEST_NUMBER, kind_of, refused
from discreet.ask.normal import canonical, normal, text
from discreet.ask.policy import Policy
from discreet.ask.query import Aggregate, Count, CountUnits, Extreme, Group, Moment, Quantiles
from discreet.ask.reading import KINDS
from discreet.errors import InvalidParameter
from discreet.parameters import did_you_mean, exact_bounds, quote

if TYPE_CHECKING:
    from discreet.ask.keys.column import Keys

MOST_STARTS = 10**6
"""About the hours of a century; more keys would be slow to list."""


@dataclass(frozen=True, slots=True)
class Scope:
    policy: Policy
    schema: Schema

    def column(self, name: str, *, exact: bool = False) -> Column:
        """The declared column of that name; without `exact`, the case of a–z is ignored if only one
        column matches.
        """
        columns = self.policy.columns
        if not exact and name not in columns and name.isascii():
            matches = [
                column for column in columns if column.isascii() and column.lower() == name.lower()
            ]
            name = matches[0] if len(matches) == 1 else name
        unit, shown = self.policy.unit_column, quote(name)
        if unit is not None and (name == unit or (not exact and self.is_unit(name))):
            raise refused(
                f"{shown} identifies the unit, and may only be counted: count(DISTINCT {unit})"
            )
        if name not in columns:
            near = did_you_mean(name, columns)
            hint = f"{near} Or declare it" if near else "declare it"
            raise refused(
                f"the policy declares no column {shown}; {hint} under [columns], with bounds or"
                " keys"
            )
        if name not in self.schema:
            raise refused(
                f"the policy declares a column {shown} that the data does not have; correct the"
                " policy"
            )
        column = column_under(name, columns[name], self.schema[name])
        children = self._children(column)
        return column if children is None else Column(name, column.kind, children=children)

    def _children(self, column: Column) -> Children | None:
        """The child column of a column, if one declares it as its parent."""
        child = next(
            (
                name
                for name, declared in self.policy.columns.items()
                if declared.parent == column.name
            ),
            None,
        )
        if child is None:
            return None
        group = self.group(self.column(child, exact=True))
        parents = self.policy.columns[child].parents
        if parents is None:  # never: a parent is declared with its file
            raise TypeError("a parent needs a file of keys")
        with errors_at(f"columns.{child}.parent"):
            return Children(group.of, group.keys, parents.read_as(column.kind))

    def is_unit(self, name: str) -> bool:
        return (
            self.policy.unit_column is not None and name.lower() == self.policy.unit_column.lower()
        )

    def declared(self, column: Column) -> Declared:
        return self.policy.columns[column.name]

    def count(self, of: Expression | None) -> Aggregate:
        """The rows where the expression is not missing or, for a condition, where it is true."""
        if of is None:
            return Count()
        of = normal(of)
        match of:
            case Constant(None, _) | Constant(False, _):
                raise refused("a count of nothing is 0; write count(*)")
            case Constant():
                return Count()
            case row.Negation(row.Missing(part)) if kind_of(part) != "truth":
                return Count(part)
        return Count(of)

    def present(self, of: Expression) -> Aggregate:
        """The rows where the expression is not missing, even if it is false: count(x) in SQL."""
        is_condition = kind_of(of) == "truth" and not isinstance(of, Constant)
        return self.count(row.Negation(row.Missing(of)) if is_condition else of)

    def units(self) -> Aggregate:
        if self.policy.unit_column is None:
            raise refused(
                "count(DISTINCT …) counts units, and here each row is a unit; write count(*)"
            )
        return CountUnits()

    def moment(self, statistic: str, of: Expression, *, sample: bool = False) -> Aggregate:
        """A statistic of sums and squares; the mean of a condition is a proportion, and its sum is
        a count.
        """
        of = normal(of)
        if kind_of(of) == "truth":
            if statistic == "sum":
                return self.count(of)
            if isinstance(of, Constant):
                raise refused("a constant needs no data; ask about a column")
            if statistic != "mean":
                raise refused(
                    "a condition has only a count or a proportion; write avg(…) for the proportion"
                )
            return Moment("mean", of, Fraction(0), Fraction(1), True, None)
        precision = self.declared(of).precision if isinstance(of, Column) else None
        return Moment(
            statistic, of, *self._bounded(of, statistic), precision=precision, sample=sample
        )

    def quantiles(self, of: Expression, shares: tuple[Fraction, ...]) -> Quantiles:
        if not shares or not all(0 <= share <= 1 for share in shares):
            raise refused("a quantile needs shares between 0 and 1, as in quantile(age, 0.9)")
        of = normal(of)
        return Quantiles(of, tuple(sorted(set(shares))), *self._bounded(of, "quantile"))

    def extreme(self, side: Literal["min", "max"], of: Expression) -> Aggregate:
        of = normal(of)
        return Extreme(side, of, *self._bounded(of, side))

    def _bounded(
        self, of: Expression, name: str
    ) -> tuple[Fraction, Fraction, bool, Fraction | None]:
        """The lower and upper bound, whether values are whole, and the value that replaces missing
        values.
        """
        kind = kind_of(of)
        if kind != "number":
            hint = {
                "date": DATED,
                "text": 'if it holds numbers, declare type = "number" and its bounds in the policy',
            }
            raise refused(
                f"{name} needs a number, got a {kind}; {hint.get(kind, 'count(…) counts anything')}"
            )
        ends = interval(
            of, self.policy.columns, {column: typed.whole for column, typed in self.schema.items()}
        )
        if ends.lower is None or ends.upper is None:
            if isinstance(of, Column):
                raise refused(
                    f"{name} of {of.name} needs bounds; declare {of.name} = {{ bounds = [lower,"
                    " upper] }"
                )
            raise refused(
                f"{name} of {_short(of)} has no bounds that follow from the policy; "
                "limit it, as in LEAST(GREATEST(x, 0), 100)"
            )
        if ends.lower == ends.upper:
            raise refused(f"{name} of a constant needs no data; ask about a column")
        try:
            exact_bounds((ends.lower, ends.upper))
        except InvalidParameter as error:
            raise refused(f"{name} of {_short(of)}: {error}") from None
        missing = self.declared(of).missing if isinstance(of, Column) else None
        if missing is not None and not isinstance(missing, Fraction):
            raise refused(
                f"{name} needs a number for missing values; correct missing in the policy"
            )
        return ends.lower, ends.upper, ends.whole, missing

    def group(self, of: Expression, bins: tuple[Fraction, ...] | None = None) -> Group:
        """The group column of an expression, with its keys; its name is its canonical text."""
        of = normal(of)
        declared = self.declared(of) if isinstance(of, Column) else Declared()
        bins = declared.bins if bins is None and declared.keys is None else bins
        keys = self._keys(of, declared) if bins is None else _labels(bins)
        if isinstance(of, Column) and declared.missing is not None:
            of = _filled(of, declared, None if bins else keys)
        if bins is not None and kind_of(of) != "number":
            raise refused(
                f"bins need a number, got a {kind_of(of)}; use keys, or a part such as YEAR(…)"
            )
        if len(keys) > MOST_KEYS:
            raise refused("a group column may have at most 10,000,000 keys; ask for fewer")
        if bins is None:
            _refuse_alike(keys, of)
        name = (
            canonical(of) if bins is None else f"BIN({canonical(of)}, {', '.join(map(str, bins))})"
        )
        return Group(name, of, keys, declared.other, bins)

    def _keys(self, of: Expression, declared: Declared) -> Keys:  # noqa: PLR0911 - one case for each class
        """The keys of an expression that has no bins."""
        match of:
            case Column(name) if declared.discover and declared.keys is None:
                raise refused(
                    f"GROUP BY {name} needs its keys; discover its keys first:"
                    f' study.discover("{name}", epsilon=…)'
                )
            case Column(name) if declared.discover and not declared.keys:
                raise refused(
                    f"GROUP BY {name} has no groups: its discovery found no key with enough units"
                )
            case Column(name, kind) if declared.keys is not None:
                try:
                    return declared.keys.as_kind(kind)
                except InvalidParameter as error:
                    raise refused(f"columns.{name}.keys: {error}") from None
            case _ if kind_of(of) == "truth":
                return column_of((False, True))
            case row.Part(part, _) if part in PART_RANGES:
                first, last = PART_RANGES[part]
                return column_of(range(first, last + 1))
            case row.Part("year", Column() as date):
                years = self._dates(date, "year")
                return column_of(range(years[0].year, years[1].year + 1))
            case row.Truncated(unit, Column() as date):
                return _starts(unit, *self._dates(date, unit))
            case row.Cast(row.Truncated(), "text") | row.Function("substring", (row.Cast(), *_)):
                return column_of(self._labels(of))
            case row.Case(branches, otherwise):
                return _literals((*(value for _, value in branches), otherwise))
            case Column(name):
                raise refused(
                    f"GROUP BY {name} needs keys or bins; declare {name} = {{ keys = […] }} or {{"
                    " bins = […] }"
                )
        raise _no_keys(of)

    def _labels(self, of: Expression) -> tuple[str, ...]:
        """The labels of dates, such as 2024-02: the beginnings of periods as texts, or parts of
        these texts.
        """
        match of:
            case row.Cast(
                row.Truncated("year" | "quarter" | "month" | "week" | "day", Column()) as start,
                "text",
            ):
                days = self._keys(start, Declared())
                return tuple(day.isoformat()[:10] for day in days if isinstance(day, datetime))
            case row.Function(
                "substring", (part, Constant(Fraction() as first), Constant(Fraction() as length))
            ):
                whole = self._labels(part)
                return tuple(
                    dict.fromkeys(label[int(first) - 1 :][: int(length)] for label in whole)
                )
        raise _no_keys(of)

    def _dates(self, date: Column, unit: str) -> tuple[datetime, datetime]:
        match self.declared(date).bounds:
            case (datetime() as first, datetime() as last):
                return first, last
        raise refused(
            f"GROUP BY the {unit} of {date.name} needs bounds; "
            f"declare {date.name} = {{ bounds = [2020-01-01, 2024-12-31] }}"
        )


def _no_keys(of: Expression) -> Exception:
    return refused(
        f"GROUP BY {_short(of)} has no keys that follow from the policy; group by a column with"
        " keys, bin(age, 0, 18, 65), MONTH(day), DATE_TRUNC('month', day), STRFTIME(day, '%Y-%m'),"
        " or CASE with literal results"
    )


def _filled(of: Column, declared: Declared, keys: Keys | None) -> Expression:
    """The column with its missing values replaced as declared; the replacement must be a key if
    there are keys.
    """
    try:
        value = as_kind(declared.missing, of.kind)  # type: ignore[arg-type]
    except InvalidParameter:
        raise refused(
            f"missing of {of.name} must be of its kind, {of.kind}; correct the policy"
        ) from None
    if keys is not None and value not in keys and declared.other is None:
        raise refused(f"missing of {of.name} must be one of its keys; correct the policy")
    return row.Coalesce((of, Constant(value, of.kind)))


def column_under(name: str, declared: Declared, source: ColumnType) -> Column:
    """The column as questions use it: of its kind in the source or, for text, of the declared kind.

    A cell of text is read as declared: it is cleaned and cast, with the declared marks and formats;
    a cell that cannot be read is missing.
    """
    if source.kind != "text":
        return Column(name, source.kind)
    reading, kind = declared.reading, declared.kind or "text"
    return Column(name, kind, None if kind == "text" and reading == Reading() else reading)


def check_schema(policy: Policy, schema: Schema) -> None:
    """Refuse a policy that does not fit the names and types of its data."""
    if policy.unit_column is not None and policy.unit_column not in schema:
        raise InvalidParameter(f"unit: the data has no column {quote(policy.unit_column)}")
    for name, declared in policy.columns.items():
        with errors_at(f"columns.{name}"):
            if name not in schema:
                hint = did_you_mean(name, schema)
                hint = f"; {hint}" if hint else ""
                raise InvalidParameter(
                    f"the data has no such column{hint or '; correct the policy'}"
                )
            if not schema[name].typed and not (
                declared.kind or declared.keys is not None or declared.discover
            ):
                raise InvalidParameter(
                    f'a file of text has no types; write {name} = {{ type = "text" }}, or'
                    ' "integer", "number", "date" or "truth"'
                )
        try:
            _check_column(declared, schema[name], column_under(name, declared, schema[name]))
        except InvalidParameter as error:
            raise InvalidParameter(f"columns.{name}.{error}") from None


def _check_column(declared: Declared, source: ColumnType, column: Column) -> None:
    """Refuse a type that differs from the source, and bounds, bins, keys and missing of another
    kind.
    """
    if source.kind != "text":
        if declared.type is not None and KINDS[declared.type] != source.kind:
            raise InvalidParameter(
                f"type: the column is a {source.kind} in the data; leave type out"
            )
        if declared.type == "integer" and not source.whole:
            raise InvalidParameter(
                'type: the column has fractions in the data; write type = "number"'
            )
        for option in (
            "format",
            "decimal",
            "thousands",
            "trim",
            "casefold",
            "missing_values",
            "map",
        ):
            if getattr(declared, option) is not None:
                raise InvalidParameter(
                    f"{option}: it says how text is read, and the column is not text; leave it out"
                )
    kind = column.kind
    expected = {"number": Fraction, "date": datetime}.get(kind)
    if declared.bounds is not None and not isinstance(declared.bounds[0], expected or ()):
        raise InvalidParameter(f"bounds: they must be of the column's kind, {kind}")
    if declared.bins is not None and kind != "number":
        raise InvalidParameter(f"bins: they need a number, and the column is a {kind}")
    with errors_at("keys"):
        if declared.keys:
            # many keys are hashed now, so that no plan waits for it
            _ = declared.keys.as_kind(kind).text
        whole = source.whole if column.reading is None else column.reading.whole
        if declared.discover and not (kind == "text" or whole):
            raise InvalidParameter(
                "only texts and whole numbers can be discovered; declare keys or bins"
            )
    with errors_at("missing"):
        if declared.missing is not None:
            as_kind(declared.missing, kind)


def _refuse_alike(keys: Keys, of: Expression) -> None:
    """Refuse keys that are equal in engines, which use 64-bit floats with absolute values from
    1e-100 to 1e100.
    """
    if keys.kind != "number" or keys.near:
        return
    numbers = [
        min(max(key, -LARGEST_NUMBER), LARGEST_NUMBER) for key in keys if isinstance(key, Fraction)
    ]
    if len(
        {0.0 if abs(number) * LARGEST_NUMBER < 1 else float(number) for number in numbers}
    ) < len(keys):
        name = of.name if isinstance(of, Column) else _short(of)
        raise refused(
            f"GROUP BY {name} has keys that are equal as 64-bit floats; leave one of them out"
        )


@lru_cache(maxsize=64)
def _labels(bins: tuple[Fraction, ...]) -> Keys:
    return column_of(labels(bins))


def _literals(values: tuple[Expression, ...]) -> Keys:
    constants = [value for value in values if isinstance(value, Constant)]
    if len(constants) < len(values):
        raise refused(
            "GROUP BY CASE needs literal results, as in CASE WHEN age < 18 THEN 'young' ELSE"
            " 'old' END"
        )
    keys = tuple(
        dict.fromkeys(constant.value for constant in constants if constant.value is not None)
    )
    if not keys:
        raise refused("GROUP BY CASE needs at least one literal result that is not NULL")
    numbers = [float(key) for key in keys if isinstance(key, Fraction)]
    if len(set(numbers)) < len(numbers):
        raise refused("GROUP BY CASE needs results that differ in their first 15 digits")
    return column_of(keys)


_HOURS = {
    "hour": 1,
    "day": 24,
    "week": 24 * 7,
    "month": 24 * 31,
    "quarter": 24 * 92,
    "year": 24 * 366,
}
"""Hours from the beginning of a period into the next period."""


@lru_cache(maxsize=16)
def _starts(unit: str, first: datetime, last: datetime) -> Keys:
    step = timedelta(hours=_HOURS[unit])
    if (last - first) / step > MOST_STARTS:
        raise refused(
            f"a group by {unit} may have at most {MOST_STARTS:,} keys; ask for longer periods"
        )
    starts: list[datetime] = []
    start = _start(unit, first)
    while start <= last:
        starts.append(start)
        try:
            start = _start(unit, start + step)
        except OverflowError:
            break
    return column_of(starts)


def _start(unit: str, moment: datetime) -> datetime:
    moment = moment.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        return moment
    if unit == "week":
        moment -= timedelta(days=moment.weekday())
    month = {"year": 1, "quarter": moment.month - (moment.month - 1) % 3}.get(unit, moment.month)
    return moment.replace(hour=0, day=moment.day if unit in ("day", "week") else 1, month=month)


def _short(of: Expression) -> str:
    full = text(of)
    return full if len(full) <= 60 else full[:57] + "…"
