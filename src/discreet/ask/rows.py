"""From sqlglot's tree to the row language: exactly the nodes below, with exactly these arguments.

Whatever else the parser knows is refused by its name. Nothing of the user's text goes on: names become declared
columns, literals become exact values.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal, TypeVar, get_args

from sqlglot import ErrorLevel, exp

from discreet.ask.declared import read_date
from discreet.ask.expression import (
    Arithmetic,
    ArithmeticSign,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonSign,
    Constant,
    DatePart,
    Every,
    Expression,
    Function,
    Kind,
    Likeness,
    Membership,
    Missing,
    Negation,
    NumberFunction,
    Part,
    Some,
    TextFunction,
    Truncated,
)
from discreet.ask.kinds import LONGEST_TEXT, kind_of, refused
from discreet.ask.scope import Scope
from discreet.ask.tokens import strict
from discreet.calibrate.bounds import exact_number
from discreet.calibrate.epsilon import quote
from discreet.errors import InvalidParameter

Value = TypeVar("Value")

_ARITHMETIC: dict[type[exp.Expression], ArithmeticSign] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
COMPARISONS: dict[type[exp.Expression], ComparisonSign] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FUNCTIONS: dict[type[exp.Expression], NumberFunction | TextFunction] = {
    exp.Abs: "abs",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Round: "round",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Trim: "trim",
    exp.Length: "length",
}
_PARTS: dict[type[exp.Expression], DatePart] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeekIso: "weekday",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_PART_NAMES: dict[str, DatePart] = {**{part: part for part in get_args(DatePart)}, "isodow": "weekday"}
del _PART_NAMES["weekday"]  # DuckDB's begins with Sunday as 0, ours with Monday as 1: ISODOW says so
_UNITS: dict[str, Literal["year", "quarter", "month", "week", "day", "hour"]] = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "hour": "hour",
}
_TYPES: dict[str, Kind | Literal["integer", "day"]] = {
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "number"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128"), "integer"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), "date"),
    "DATE": "day",
    "BOOLEAN": "truth",
}
_ROW_FUNCTIONS = (
    "ABS, FLOOR, CEIL, ROUND, LEAST, GREATEST, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, COALESCE, "
    "YEAR, QUARTER, MONTH, WEEK, DAY, ISODOW, HOUR, MINUTE, SECOND, DATE_TRUNC, DATE_PART, EXTRACT, CAST"
)
_AGGREGATES = "COUNT, SUM, AVG, MEDIAN, QUANTILE, MIN, MAX, VARIANCE, STDDEV, BIN"


@dataclass(frozen=True, slots=True)
class Rows:
    """The reader of expressions over rows; `tables` are the names that may stand before a column's."""

    scope: Scope
    tables: frozenset[str] = frozenset()

    def expression(self, node: exp.Expression) -> Expression:  # noqa: PLR0911, PLR0912 - one case for each node
        """The expression that a node writes."""
        match node:
            case exp.Paren():
                strict(node, "this")
                return self.expression(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal() | exp.Boolean() | exp.Neg():
                return self._literal(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                strict(node, "this", "expression")
                sign = _ARITHMETIC[type(node)]
                return Arithmetic(sign, self.expression(node.this), self.expression(node.expression))
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                strict(node, "this", "expression")
                return self._compared(COMPARISONS[type(node)], node.this, node.expression)
            case exp.And() | exp.Or():
                parts = tuple(self.expression(part) for part in joined(node))
                return Every(parts) if isinstance(node, exp.And) else Some(parts)
            case exp.Not():
                strict(node, "this")
                return Negation(self.expression(node.this))
            case exp.Between():
                strict(node, "this", "low", "high")
                low = self._compared(">=", node.this, node.args["low"])
                return Every((low, self._compared("<=", node.this, node.args["high"])))
            case exp.In():
                return self._membership(node)
            case exp.Is():
                strict(node, "this", "expression")
                if not isinstance(node.expression, exp.Null):
                    raise refused("IS is in the language with NULL only; write x = TRUE, or x IS NULL")
                return Missing(self.expression(node.this))
            case exp.Like():
                return self._likeness(node)
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.Coalesce():
                strict(node, "this", "expressions")
                parts = self._values([node.this, *node.expressions])
                return Coalesce(parts)
            case exp.Least() | exp.Greatest():
                strict(node, "this", "expressions")
                numbers = tuple(self.expression(part) for part in (node.this, *node.expressions))
                return Function("least" if isinstance(node, exp.Least) else "greatest", numbers)
            case exp.Substring():
                return self._substring(node)
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Null():
                raise refused("NULL has a kind only in CASE, COALESCE or CAST; to compare with it write IS NULL")
        return self._called(node)

    def _called(self, node: exp.Expression) -> Expression:
        """A function, or the refusal of what is left."""
        if type(node) in _FUNCTIONS:
            if isinstance(node, exp.Round) and node.args.get("decimals") is not None:
                raise refused("ROUND takes one number; for two decimals write ROUND(x * 100) / 100")
            strict(node, "this")
            return Function(_FUNCTIONS[type(node)], (self.expression(node.this),))
        if isinstance(node, exp.DayOfWeek):
            _named("dayofweek", _PART_NAMES)
        if type(node) in _PARTS:
            strict(node, "this")
            return Part(_PARTS[type(node)], self.expression(node.this))
        match node:
            case exp.Extract():
                strict(node, "this", "expression")
                return Part(_named(node.this.name, _PART_NAMES), self.expression(node.expression))
            case exp.TimestampTrunc() | exp.DateTrunc():
                strict(node, "this", "unit")
                return Truncated(_named(node.args["unit"].name, _UNITS), self.expression(node.this))
            case exp.Anonymous():
                return self._anonymous(node)
        raise unknown(node)

    def _anonymous(self, node: exp.Anonymous) -> Expression:
        strict(node, "this", "expressions")
        if str(node.this).lower() == "weekday":
            _named("weekday", _PART_NAMES)
        match str(node.this).lower(), node.expressions:
            case "date_part" | "datepart", [exp.Literal() as part, date] if part.is_string:
                return Part(_named(part.this, _PART_NAMES), self.expression(date))
        raise unknown(node)

    def _column(self, node: exp.Column) -> Expression:
        strict(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise refused("* would release rows. Ask for count, sum, avg, stddev, median, quantile, min or max")
        table = node.args.get("table")
        if table is not None and table.name not in self.tables:
            raise refused(f"there is no table {quote(table.name)} here; leave it out before the column's name")
        return self.scope.column(node.this.this, exact=bool(node.this.args.get("quoted")))

    def _literal(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Neg():
                strict(node, "this")
                part = self.expression(node.this)
                if isinstance(part, Constant) and isinstance(part.value, Fraction):
                    return Constant(-part.value, "number")
                return Arithmetic("-", Constant(Fraction(0), "number"), part)
            case exp.Boolean():
                return Constant(bool(node.this), "truth")
        if node.args["is_string"]:
            return Constant(node.this, "text")
        return Constant(number(node), "number")

    def _compared(self, sign: ComparisonSign, left: exp.Expression, right: exp.Expression) -> Expression:
        return Comparison(sign, *_dated(self.expression(left), self.expression(right)))

    def _membership(self, node: exp.In) -> Expression:
        strict(node, "this", "expressions")
        part = self.expression(node.this)
        choices = []
        for choice in node.expressions:
            found = _dated(part, self.expression(choice))[1]
            if not isinstance(found, Constant):
                raise refused("IN takes literals, as in IN ('a', 'b'); write x = y for a column")
            choices.append(found)
        return Membership(part, tuple(choices))

    def _likeness(self, node: exp.Like) -> Expression:
        strict(node, "this", "expression", "negate")
        pattern = node.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise refused("LIKE takes a literal, as in name LIKE 'a%'")
        found = Likeness(self.expression(node.this), pattern.this)
        return Negation(found) if node.args.get("negate") else found

    def _case(self, node: exp.Case | exp.If) -> Expression:
        if isinstance(node, exp.If):
            strict(node, "this", "true", "false")
            subject, branches, default = None, [node], node.args.get("false")
        else:
            strict(node, "this", "ifs", "default")
            subject, branches, default = node.this, node.args["ifs"], node.args.get("default")
            for branch in branches:
                strict(branch, "this", "true")
        if subject is None:
            conditions = [self.expression(branch.this) for branch in branches]
        else:
            conditions = [self._compared("=", subject, branch.this) for branch in branches]
        *values, otherwise = self._values([*(branch.args["true"] for branch in branches), default or exp.Null()])
        return Case(tuple(zip(conditions, values, strict=True)), otherwise)

    def _values(self, nodes: Sequence[exp.Expression]) -> tuple[Expression, ...]:
        """Values of one kind, which NULL takes on."""
        read = [None if isinstance(node, exp.Null) else self.expression(node) for node in nodes]
        known = next((value for value in read if value is not None), None)
        if known is None:
            raise refused("CASE and COALESCE need a value that is not NULL")
        kind = kind_of(known)
        return tuple(Constant(None, kind) if value is None else value for value in read)

    def _substring(self, node: exp.Substring) -> Expression:
        strict(node, "this", "start", "length")
        start, length = node.args.get("start"), node.args.get("length")
        first = Constant(Fraction(1), "number") if start is None else self.expression(start)
        rest = Constant(Fraction(LONGEST_TEXT), "number") if length is None else self.expression(length)
        return Function("substring", (self.expression(node.this), first, rest))

    def _cast(self, node: exp.Cast) -> Expression:
        strict(node, "this", "to")
        to = node.args["to"]
        kind = _TYPES.get(to.this.name if isinstance(to.this, exp.DataType.Type) else "")
        if kind is None or to.args.get("expressions") or to.args.get("nested"):
            raise refused("CAST goes to DOUBLE, INTEGER, VARCHAR, DATE, TIMESTAMP or BOOLEAN")
        if isinstance(node.this, exp.Null):
            return Constant(None, {"integer": "number", "day": "date"}.get(kind, kind))  # type: ignore[arg-type]
        part = self.expression(node.this)
        match kind:
            case "integer":
                found = Cast(part, "number")
                return found if kind_of(part) == "truth" else Function("round", (found,))
            case "day":
                date = _as_date(part)
                if isinstance(date, Constant) and isinstance(date.value, datetime):
                    return Constant(date.value.replace(hour=0, minute=0, second=0, microsecond=0), "date")
                return Truncated("day", date)
            case "date":
                return _as_date(part)
        return Cast(part, kind)


def joined(node: exp.Expression) -> list[exp.Expression]:
    """The parts of a chain of AND or OR, however long."""
    kind, found, todo = type(node), [], [node]
    while todo:
        part = todo.pop()
        inner = part
        while isinstance(inner, exp.Paren):
            strict(inner, "this")
            inner = inner.this
        if type(inner) is kind:
            strict(inner, "this", "expression")
            todo += [inner.expression, inner.this]
        else:
            found.append(part)
    return found


def number(node: exp.Expression) -> Fraction:
    """The exact number that a literal writes."""
    try:
        return exact_number("a number", node.this)
    except InvalidParameter as error:
        raise refused(str(error)) from None


def unknown(node: exp.Expression) -> Exception:
    """The refusal of a node that is not in the language, by its name."""
    name = called(node)
    if isinstance(node, exp.AggFunc):
        return refused(f"{name} is not in the language here; aggregates stand in SELECT, HAVING and ORDER BY")
    nearest = difflib.get_close_matches(name, f"{_ROW_FUNCTIONS}, {_AGGREGATES}".split(", "), n=1, cutoff=0.7)
    hint = f"did you mean {nearest[0]}?" if nearest else f"the functions are {_ROW_FUNCTIONS}"
    return refused(f"{quote(name)} is not in the language; {hint}")


def called(node: exp.Expression) -> str:
    """The name of a function as it is written in SQL, where sqlglot has one of its own; in capitals."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    written = node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE) if isinstance(node, exp.Func) else ""
    name, opened, _ = written.partition("(")
    return name.upper() if opened and name.isidentifier() else node.key.upper()


def _as_date(part: Expression) -> Expression:
    """A text as a date: a literal at once, anything else in each row."""
    if isinstance(part, Constant) and isinstance(part.value, str):
        try:
            return Constant(read_date(part.value), "date")
        except InvalidParameter as error:
            raise refused(str(error)) from None
    return Cast(part, "date")


def _dated(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides; a text literal beside a date is read as one."""
    kinds = kind_of(left), kind_of(right)
    if kinds == ("date", "text") and isinstance(right, Constant):
        return left, _as_date(right)
    if kinds == ("text", "date") and isinstance(left, Constant):
        return _as_date(left), right
    return left, right


def _named(name: str, known: dict[str, Value]) -> Value:
    """What a part or unit of a date is called here."""
    if name.lower() in known:
        return known[name.lower()]
    if name.lower() in ("dow", "dayofweek", "weekday"):
        raise refused("days of the week are ISODOW, with Monday as 1 and Sunday as 7")
    raise refused(f"{quote(name)} is not a part of a date; the parts are {', '.join(known)}")
