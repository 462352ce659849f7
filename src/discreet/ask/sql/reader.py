"""From syntax to the row language, to aggregates and to groups.

Names become declared columns, and literals become exact values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TypeVar, assert_never

from discreet.ask import expression as row
from discreet.ask.declared import edges
from discreet.ask.expression import ArithmeticSign, ComparisonSign, DatePart, Expression, Unit
from discreet.ask.keys.key import read_date
from discreet.ask.kinds import LONGEST_TEXT, kind_of, refused
from discreet.ask.query import Aggregate, Group, Quantiles
from discreet.ask.reading import as_read
from discreet.ask.scope import Scope
from discreet.ask.sql import functions
from discreet.ask.sql.syntax import Call, Case, Cast, Literal, Name, Node, Type, walk
from discreet.ask.sql.words import QUANTITIES
from discreet.errors import InvalidParameter
from discreet.parameters import did_you_mean, quote

Value = TypeVar("Value")

_COUNTED: dict[Unit, tuple[DatePart, int]] = {
    "hour": ("days", 24),
    "month": ("year", 12),
    "quarter": ("year", 4),
}
"""A longer part of a date, and how many of these units it has."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions over rows, aggregates and groups; `table` is the name that may precede a
    column.
    """

    scope: Scope
    table: str

    def expression(self, node: Node) -> Expression:  # noqa: PLR0911, PLR0912 - one case for each class
        read = self.expression
        match node:
            case Name(name, exact, table):
                self.check_table(table)
                return self.scope.column(name, exact=exact)
            case Literal(None):
                raise refused(
                    "NULL has a kind only in CASE, COALESCE or CAST; to compare with it write IS"
                    " NULL"
                )
            case Literal(literal):
                return row.Constant(literal, row.KINDS[type(literal)])
            case Call("+" | "-" | "*" | "/" as sign, (left, right)):
                return _computed(sign, read(left), read(right))
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=" as sign, (left, right)):
                return _comparison(sign, read(left), read(right))
            case Call("between", (part, low, high)):
                value = read(part)
                return row.Every(
                    (_comparison(">=", value, read(low)), _comparison("<=", value, read(high)))
                )
            case Call("in", (part, *nodes)):
                return _membership(read(part), [*map(read, nodes)])
            case Call("is null", (part,)):
                return row.Missing(read(part))
            case Call("not", (part,)):
                return row.Negation(read(part))
            case Call("and" | "or" as sign, parts):
                return (row.Every if sign == "and" else row.Some)(tuple(map(read, parts)))
            case Call("like", (part, Literal(str() as pattern))):
                return row.Likeness(read(part), pattern)
            case Call("like"):
                raise refused("LIKE takes a literal, as in name LIKE 'a%'")
            case Call("[]"):
                raise refused(
                    "a list is supported for the shares of quantiles only; for choices write IN"
                    " ('a', 'b')"
                )
            case Case():
                return self._case(node)
            case Cast(part, to):
                return self._cast(part, to)
            case Call("ROUND", (_, _)):
                raise refused("ROUND takes one number; for two decimals write ROUND(x * 100) / 100")
            case Call(name) if name in functions.FUNCTIONS:
                return row.Function(functions.FUNCTIONS[name], (read(argument(node)),))
            case Call(name) if name in functions.PART_FUNCTIONS:
                return row.Part(functions.PART_FUNCTIONS[name], read(argument(node)))
            case Call("DATE_PART" | "DATEPART", (Literal(str() as part), date)):
                return row.Part(_date_part(part, functions.PARTS), read(date))
            case Call("DATE_TRUNC" | "DATETRUNC", (Literal(str() as unit), date)):
                return row.Truncated(_date_part(unit, functions.UNITS), read(date))
            case Call("DATE_DIFF" | "DATEDIFF", (Literal(str() as unit), first, last)):
                return _between(
                    _date_part(unit, functions.UNITS), *map(_as_moment, map(read, (first, last)))
                )
            case Call(name, (date, Literal(str() as format))) | Call(
                name, (Literal(str() as format), date)
            ) if name in functions.LABEL_FUNCTIONS and format in functions.LABELS:
                return _label(*functions.LABELS[format], _as_moment(read(date)))
            case Call("WEEKDAY" | "DAYOFWEEK" | "DAY_OF_WEEK" | "DOW"):
                return row.Part(_date_part("weekday", functions.PARTS), read(argument(node)))
            case Call("COALESCE" | "IFNULL" | "NVL", parts):
                return row.Coalesce(self._values(parts))
            case Call("LEAST" | "GREATEST" as name, parts):
                return row.Function(
                    "least" if name == "LEAST" else "greatest", tuple(map(read, parts))
                )
            case Call("SUBSTRING" | "SUBSTR", (text, first, *length)) if len(length) < 2:
                size = read(length[0]) if length else _number(LONGEST_TEXT)
                return row.Function("substring", (read(text), read(first), size))
            case Call("IF" | "IIF", (condition, value, *otherwise)) if len(otherwise) < 2:
                return self._case(
                    Case(None, ((condition, value),), *(otherwise or [Literal(None)]))
                )
            case Call():
                raise _unknown(node)
        assert_never(node)

    def condition(self, node: Node) -> Expression:
        condition = self.expression(node)
        if kind_of(condition) != "truth":
            raise refused(
                f"a condition is needed here, such as age >= 65, got a {kind_of(condition)}"
            )
        return condition

    def check_table(self, table: str | None) -> None:
        if table not in (None, self.table):
            raise refused(
                f"there is no table {quote(table)} here; leave it out before the name of the column"
            )

    def _case(self, node: Case) -> Expression:
        conditions = [self.expression(condition) for condition, _ in node.branches]
        if node.subject is not None:
            subject = self.expression(node.subject)
            conditions = [_comparison("=", subject, condition) for condition in conditions]
        *values, otherwise = self._values([*(value for _, value in node.branches), node.otherwise])
        return row.Case(tuple(zip(conditions, values, strict=True)), otherwise)

    def _values(self, nodes: Sequence[Node]) -> tuple[Expression, ...]:
        """Values of one kind, which is also the kind of NULL."""
        values = [None if node == Literal(None) else self.expression(node) for node in nodes]
        kinds = [kind_of(value) for value in values if value is not None][:1]
        if not kinds:
            raise refused("CASE and COALESCE need a value that is not NULL")
        return tuple(row.Constant(None, *kinds) if value is None else value for value in values)

    def _cast(self, node: Node, to: Type) -> Expression:
        if node == Literal(None):
            return row.Constant(
                None, "number" if to == "integer" else "date" if to == "day" else to
            )
        part = self.expression(node)
        match to:
            case "integer":
                number = row.Cast(part, "number")
                return number if kind_of(part) == "truth" else row.Function("round", (number,))
            case "day":
                date = _as_date(part)
                if isinstance(date, row.Constant) and isinstance(date.value, datetime):
                    return row.Constant(
                        date.value.replace(hour=0, minute=0, second=0, microsecond=0), "date"
                    )
                return row.Truncated("day", date)
            case "date":
                return _as_date(part)
        return row.Cast(part, to)

    def aggregate(self, node: Node) -> Aggregate | None:  # noqa: PLR0911 - one case for each aggregate
        """The aggregate of a node, or None if it is not an aggregate."""
        if not isinstance(node, Call):
            return None
        scope, read = self.scope, self.expression
        match node.name:
            case "COUNT":
                return scope.present(read(argument(node))) if node.arguments else scope.count(None)
            case "COUNT DISTINCT":
                return self._units(node)
            case "COUNT_IF" | "COUNTIF":
                return scope.count(self.condition(argument(node)))
            case "HISTOGRAM":
                return None
            case "MIN" | "MAX" if len(node.arguments) > 1:
                raise refused(
                    "min and max take one argument; for the smaller of two numbers write"
                    " LEAST(x, y)"
                )
            case name if name in functions.QUANTILES:
                if len(node.arguments) != 2:
                    raise refused(
                        "a quantile needs a share between 0 and 1, as in quantile(age, 0.9)"
                    )
                return self.quantiles(node.arguments[0], shares_of(node.arguments[1]))
            case name if name in functions.STATISTIC_NAMES:
                statistic, sample = functions.STATISTIC_NAMES[name]
                return statistic.aggregate_of(scope, read(argument(node)), sample=sample)
            case name if name in functions.OTHER_AGGREGATES:
                raise refused(f"{name} is not supported. {QUANTITIES}")
        return None

    def quantiles(self, subject: Node, shares: Sequence[Fraction]) -> Quantiles:
        return self.scope.quantiles(self.expression(subject), tuple(shares))

    def group(self, node: Node) -> Group:
        match node:
            case Call("BIN", (subject, *limits)):
                return self.bins(subject, limits)
        return self.scope.group(self.expression(node))

    def bins(self, subject: Node, limits: Sequence[Node]) -> Group:
        try:
            return self.scope.group(
                self.expression(subject), edges([_edge(limit) for limit in limits])
            )
        except InvalidParameter as error:
            raise refused(
                f"BIN takes a number and edges, as in bin(age, 0, 18, 65); {error}"
            ) from None

    def _units(self, node: Call) -> Aggregate:
        scope, unit = self.scope, self.scope.policy.unit_column
        match node.arguments:
            case (Name(name, exact, table),) if name == unit or (not exact and scope.is_unit(name)):
                self.check_table(table)
                return scope.units()
        hint = f"write count(DISTINCT {unit})" if unit else "use GROUP BY and count(*)"
        raise refused(f"count(DISTINCT …) counts units only; {hint}")


def _computed(sign: ArithmeticSign, left: Expression, right: Expression) -> Expression:
    """Arithmetic; the difference of two dates is the number of days between them."""
    left, right = _alike(left, right) if sign == "-" else (left, right)
    if sign == "-" and kind_of(left) == kind_of(right) == "date":
        return _between("day", right, left)
    return row.Arithmetic(sign, left, right)


def _between(unit: Unit, first: Expression, last: Expression) -> Expression:
    """The number of days, weeks, months … that begin after the first date, up to the last date."""
    return row.Arithmetic("-", _numbered(unit, last), _numbered(unit, first))


def _numbered(unit: Unit, date: Expression) -> Expression:
    """The number of the day, week, month … of a date, from a fixed start."""
    match unit:
        case "year":
            return row.Part("year", date)
        case "day":
            return row.Part("days", date)
        case "week":  # 1970-01-01 was a Thursday
            since = row.Arithmetic("+", row.Part("days", date), _number(3))
            return row.Function("floor", (row.Arithmetic("/", since, _number(7)),))
    longer, count = _COUNTED[unit]
    return row.Arithmetic(
        "+", row.Arithmetic("*", _number(count), row.Part(longer, date)), row.Part(unit, date)
    )


def _number(value: int) -> row.Constant:
    return row.Constant(Fraction(value), "number")


def _label(unit: Unit, length: int, date: Expression) -> Expression:
    """The beginning of a period as an ISO date, or a prefix of it: 2024-02 for a month."""
    text = row.Cast(row.Truncated(unit, date), "text")
    return (
        row.Function("substring", (text, _number(1), _number(length)))
        if length < len("2024-02-29")
        else text
    )


def _as_moment(part: Expression) -> Expression:
    """A date; a text literal is read as a date."""
    return (
        _as_date(part) if isinstance(part, row.Constant) and isinstance(part.value, str) else part
    )


def argument(call: Call) -> Node:
    if not call.arguments:
        raise refused(f"{call.name} needs one argument, got none")
    if len(call.arguments) > 1:
        raise refused(f"a second argument of {call.name} is not supported; leave it out")
    return call.arguments[0]


def _unknown(call: Call) -> Exception:
    if call.name in functions.AGGREGATES:
        return refused(
            f"{call.name} is not supported here; use aggregates in SELECT, HAVING and ORDER BY"
        )
    if call.name in functions.USAGES:
        return refused(
            f"{call.name} is not supported in this form; write {functions.USAGES[call.name]}"
        )
    near = did_you_mean(
        call.name, [*functions.OFFERED.split(", "), *functions.STATISTIC_NAMES, "BIN"], cutoff=0.7
    )
    hint = near or f"the functions are {functions.OFFERED}"
    return refused(f"{quote(call.name)} is not supported; {hint}")


def _as_date(part: Expression) -> Expression:
    """A text as a date: a literal now, any other expression in each row."""
    if isinstance(part, row.Constant) and isinstance(part.value, str):
        try:
            return row.Constant(read_date(part.value), "date")
        except InvalidParameter as error:
            raise refused(str(error)) from None
    return row.Cast(part, "date")


def _membership(part: Expression, values: Sequence[Expression]) -> Expression:
    choices = [_alike(part, value)[1] for value in values]
    constants = tuple(choice for choice in choices if isinstance(choice, row.Constant))
    if len(constants) < len(choices):
        raise refused("IN takes literals, as in IN ('a', 'b'); write x = y for a column")
    return row.Membership(part, constants)


def _comparison(sign: ComparisonSign, left: Expression, right: Expression) -> Expression:
    return row.Comparison(sign, *_alike(left, right))


def _alike(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides; a text literal is read like the other side: as a date, or as a cell of the
    column.
    """
    return _beside(left, right), _beside(right, left)


def _beside(part: Expression, other: Expression) -> Expression:
    match part, other:
        case row.Constant(str()), _ if kind_of(other) == "date":
            return _as_date(part)
        case row.Constant(str() as text), row.Column(name, "text", row.Reading() as reading):
            value = as_read(text, reading)
            if value is None:
                raise refused(f"{quote(text)} is a missing value of {name}; write {name} IS NULL")
            return row.Constant(value, "text")
    return part


def _date_part(name: str, names: dict[str, Value]) -> Value:
    """The part or period of a date with this SQL name."""
    if name.lower() in names:
        return names[name.lower()]
    if name.lower() in ("dow", "dayofweek", "weekday"):
        raise refused("days of the week are ISODOW, with Monday as 1 and Sunday as 7")
    raise refused(f"{quote(name)} is not a part of a date; the parts are {', '.join(names)}")


def aggregating(node: Node) -> bool:
    return any(
        isinstance(part, Call) and part.name in functions.AGGREGATES for part, _ in walk(node)
    )


def shares_of(node: Node) -> list[Fraction]:
    """The shares of one or several quantiles, in the given order."""
    match node:
        case Call("[]", parts):
            return [share for part in parts for share in shares_of(part)]
        case Literal(Fraction() as share):
            return [share]
    raise refused("a quantile needs a literal share between 0 and 1, as in quantile(age, 0.9)")


def _edge(node: Node) -> Fraction:
    match node:
        case Literal(Fraction() as edge):
            return edge
    raise refused("BIN takes literal edges, as in bin(age, 0, 18, 65)")
