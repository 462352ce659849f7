"""The row language as trees of DuckDB's SQL: total, so that no row can raise an error.

Numbers are doubles. A value that is used twice is named and computed once, in a layer below: nothing grows beyond
what was asked, however deep it is nested.

    columns    whole numbers and decimals become the nearest double; ±inf is ±10¹⁰⁰; NaN is missing; texts compare by
               their bytes, whatever collation the column has; moments with a zone are taken in UTC
    dates      in the years 1 to 9999, else missing
    texts      lower and upper change A–Z and a–z alone, trim takes spaces, length counts code points: every engine can
               do the same; substring needs 1 ≤ from ≤ 10⁶ and 0 ≤ length ≤ 10⁶, else missing
    casts      number → text for whole numbers below 2⁵³ in size; text → number for plain decimals of 40 digits before
               and after the point and an exponent of two; date → text as 2024-02-29, with 23:59:59 behind it unless at
               midnight, and back; text → truth from true, t, yes, y, 1 and their opposites; all else is missing
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import assert_never

from sqlglot import exp

from discreet.ask.expression import (
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    Column,
    Comparison,
    Constant,
    Every,
    Expression,
    Function,
    Kind,
    Likeness,
    Membership,
    Missing,
    Negation,
    Part,
    Some,
    Truncated,
)
from discreet.engines.base import ColumnType, Schema
from discreet.engines.trees import Tree, as_type, by_bytes, call, moment, paren, present, real, text, try_type, when
from discreet.errors import InvalidParameter

LARGEST, SMALLEST = Fraction(10**100), Fraction(1, 10**100)
"""What numbers are limited to, so that no product, quotient or sum leaves the doubles."""

TYPES: dict[Kind, str] = {"number": "DOUBLE", "text": "VARCHAR", "date": "TIMESTAMP", "truth": "BOOLEAN"}

NUMBER_PATTERN = r" *[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})? *"
"""Between 10⁻¹³⁹ and 10¹³⁹ in size: no engine overflows or underflows."""
DATE_PATTERN = r" *[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)? *"
TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_LONGEST = 10.0**6
_COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
_ARITHMETIC: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}


@dataclass(frozen=True, slots=True)
class Term:
    """A tree, what kind of value it has, and the layer on which all that it refers to is there."""

    tree: Tree
    kind: Kind
    level: int


@dataclass(slots=True)
class Translator:
    """Translates expressions over one source; remembers which columns they use and which values they name."""

    schema: Schema
    columns: dict[str, str] = field(default_factory=dict)
    """The columns of the source that are used, each with its name in the statement."""
    layers: list[dict[str, Tree]] = field(default_factory=list)
    """What each layer names, above the columns."""
    names: dict[str, str] = field(default_factory=dict)
    known: dict[Expression, Term] = field(default_factory=dict)

    def term(self, expression: Expression) -> Term:
        """The expression as a tree; one expression is translated once."""
        if expression not in self.known:
            self.known[expression] = self._translate(expression)
        return self.known[expression]

    def named(self, term: Term) -> Term:
        """The same value as a name that may be used many times."""
        if isinstance(term.tree, exp.Column):
            return term
        while len(self.layers) <= term.level:
            self.layers.append({})
        layer = self.layers[term.level]
        name = self.names.setdefault(term.tree.sql("duckdb"), f"v{len(self.names)}")
        layer[name] = term.tree
        return Term(exp.column(name), term.kind, term.level + 1)

    def source(self, name: str) -> Tree:
        """A column of the source as it is."""
        if name not in self.schema:
            raise InvalidParameter(f"the source must have the column {name!r}; it has {', '.join(self.schema)}")
        return exp.column(self.columns.setdefault(name, f"c{len(self.columns)}"))

    def column_of_numbers(self, expression: Expression) -> tuple[Tree, str] | None:
        """The column behind an expression that is one of numbers, with its type: for shorter ways to the same value."""
        if not isinstance(expression, Column) or not expression.kind == "number" == self._declared(expression.name):
            return None
        return self.source(expression.name), self.schema[expression.name].described

    def _declared(self, name: str) -> Kind | None:
        return self.schema[name].kind if name in self.schema else None

    def _translate(self, expression: Expression) -> Term:  # noqa: PLR0911, PLR0912 - one case for each class
        match expression:
            case Column(name, kind):
                here = self._column(name)
                return here if here.kind == kind else self._cast(here, kind)
            case Constant(value, kind):
                return Term(constant(value, kind), kind, 0)
            case Arithmetic():
                return self._arithmetic(expression)
            case Comparison(sign, left, right):
                operator = _COMPARISONS[sign]
                return self._of((left, right), "truth", lambda a, b: operator(this=paren(a), expression=paren(b)))
            case Every(parts):
                return self._of(parts, "truth", exp.and_)
            case Some(parts):
                return self._of(parts, "truth", exp.or_)
            case Negation(part):
                return self._of((part,), "truth", lambda a: exp.not_(paren(a)))
            case Membership(part, choices):
                return self._membership(part, choices)
            case Missing(part):
                return self._of((part,), "truth", lambda a: exp.Is(this=paren(a), expression=exp.null()))
            case Likeness(part, pattern):
                return self._of((part,), "truth", lambda a: exp.Like(this=paren(a), expression=text(pattern)))
            case Case():
                return self._case(expression)
            case Coalesce(parts):
                return self._of(parts, self.term(parts[0]).kind, lambda *trees: call("coalesce", *trees))
            case Function():
                return self._function(expression)
            case Part(part, date):
                name = "isodow" if part == "weekday" else part
                return self._of((date,), "number", lambda a: as_type(call("date_part", text(name), a), "DOUBLE"))
            case Truncated(unit, date):
                return self._of((date,), "date", lambda a: call("date_trunc", text(unit), a))
            case Cast(part, kind):
                return self._cast(self.term(part), kind)
            case _:
                assert_never(expression)

    def _of(self, parts: tuple[Expression, ...], kind: Kind, build: Callable[..., Tree]) -> Term:
        terms = [self.term(part) for part in parts]
        return Term(build(*(term.tree.copy() for term in terms)), kind, max(term.level for term in terms))

    def _column(self, name: str) -> Term:
        here = self.source(name)
        column = self.schema[name]
        match column.kind:
            case "number":
                return Term(_number(here, column.described), "number", 0)
            case "text":
                plain = here if column.described == "VARCHAR" else as_type(here, "VARCHAR")
                return Term(by_bytes(plain), "text", 0)
            case "date":
                return self._dated(Term(_moment(here, column.described), "date", 0))
            case "truth":
                return Term(here, "truth", 0)
            case _:
                assert_never(column.kind)

    def _dated(self, term: Term) -> Term:
        """A date in the years 1 to 9999, else missing; infinite ones are beyond."""
        term = self.named(term)
        inside = exp.Between(this=term.tree.copy(), low=moment(_FIRST), high=moment(_LAST))
        return Term(when([(inside, term.tree)]), "date", term.level)

    def _limited(self, term: Term) -> Term:
        term = self.named(term)
        return Term(_limits(term.tree), "number", term.level)

    def _arithmetic(self, expression: Arithmetic) -> Term:
        def build(a: Tree, b: Tree) -> Tree:
            if expression.sign == "/":
                return exp.Div(this=paren(a), expression=call("nullif", b, real(0.0)), typed=False, safe=False)
            return _ARITHMETIC[expression.sign](this=paren(a), expression=paren(b))

        return self._limited(self._of((expression.left, expression.right), "number", build))

    def _membership(self, part: Expression, choices: tuple[Constant, ...]) -> Term:
        if not choices:
            return self._of((part,), "truth", lambda a: when([(present(a), exp.false())]))
        trees = [constant(choice.value, choice.kind) for choice in choices]
        return self._of((part,), "truth", lambda a: exp.In(this=paren(a), expressions=trees))

    def _case(self, expression: Case) -> Term:
        terms = [(self.term(condition), self.term(value)) for condition, value in expression.branches]
        otherwise = self.term(expression.otherwise)
        level = max(otherwise.level, *(max(condition.level, value.level) for condition, value in terms))
        tree = when([(condition.tree, value.tree) for condition, value in terms], otherwise.tree)
        return Term(tree, otherwise.kind, level)

    def _function(self, expression: Function) -> Term:  # noqa: PLR0911 - one case for each function
        name, arguments = expression.name, expression.arguments
        match name:
            case "abs" | "floor":
                return self._of(arguments, "number", lambda a: call(name, a))
            case "ceil":  # + 0: not −0.0
                return self._of(arguments, "number", lambda a: exp.Add(this=call("ceil", a), expression=real(0.0)))
            case "round":
                return self._of(arguments, "number", lambda a: call("floor", exp.Add(this=a, expression=real(0.5))))
            case "least" | "greatest":
                terms = [self.named(self.term(argument)) for argument in arguments]
                there = exp.and_(*(present(term.tree) for term in terms))
                # DuckDB's own leave missing values out
                tree = when([(there, call(name, *(term.tree.copy() for term in terms)))])
                return Term(tree, "number", max(term.level for term in terms))
            case "lower":
                return self._letters(arguments[0], "lower", _UPPER, _LOWER)
            case "upper":
                return self._letters(arguments[0], "upper", _LOWER, _UPPER)
            case "trim":
                return self._of(arguments, "text", lambda a: call("trim", a, text(" ")))
            case "length":
                return self._of(arguments, "number", lambda a: as_type(call("length", a), "DOUBLE"))
            case "substring":
                return self._substring(arguments)
            case _:
                assert_never(name)

    def _letters(self, argument: Expression, name: str, old: str, new: str) -> Term:
        """DuckDB's own function where there are only ASCII letters, since `translate` is slow."""
        term = self.named(self.term(argument))
        here = term.tree
        ascii_only = exp.EQ(this=call("strlen", here.copy()), expression=call("length", here.copy()))
        swapped = call("translate", here.copy(), text(old), text(new))
        return Term(when([(ascii_only, call(name, here))], swapped), "text", term.level)

    def _substring(self, arguments: tuple[Expression, ...]) -> Term:
        source = self.term(arguments[0])
        start, length = (self.named(self.term(argument)) for argument in arguments[1:])
        inside = exp.and_(
            exp.Between(this=start.tree.copy(), low=real(1.0), high=real(_LONGEST)),
            exp.Between(this=length.tree.copy(), low=real(0.0), high=real(_LONGEST)),
        )
        positions = [try_type(call("floor", term.tree.copy()), "BIGINT") for term in (start, length)]
        tree = when([(inside, call("substring", source.tree, *positions))])
        return Term(tree, "text", max(source.level, start.level, length.level))

    def _cast(self, term: Term, kind: Kind) -> Term:  # noqa: PLR0911 - one case for each pair of kinds
        if term.kind == kind:
            return term
        term = self.named(term)
        here, level = term.tree, term.level
        match term.kind, kind:
            case "truth", "number":
                return Term(as_type(here, "DOUBLE"), kind, level)
            case "truth", "text":
                return Term(when([(here.copy(), text("true")), (exp.not_(here.copy()), text("false"))]), kind, level)
            case "number", "truth":
                return Term(exp.NEQ(this=here, expression=real(0.0)), kind, level)
            case "number", "text":
                small = exp.LT(this=call("abs", here.copy()), expression=real(2.0**53))
                whole = exp.EQ(this=here.copy(), expression=call("floor", here.copy()))
                digits = as_type(try_type(here.copy(), "BIGINT"), "VARCHAR")
                return Term(when([(exp.and_(small, whole), digits)]), kind, level)
            case "text", "number":
                plain = call("regexp_full_match", here.copy(), text(NUMBER_PATTERN))
                return self._limited(Term(when([(plain, try_type(here, "DOUBLE"))]), kind, level))
            case "text", "date":
                plain = call("regexp_full_match", here.copy(), text(DATE_PATTERN))
                return self._dated(Term(when([(plain, try_type(here, "TIMESTAMP"))]), kind, level))
            case "text", "truth":
                word = self.named(Term(call("lower", call("trim", here, text(" "))), "text", level))
                yes, no = ([text(one) for one in words] for words in (TRUE_WORDS, FALSE_WORDS))
                branches = [
                    (exp.In(this=word.tree.copy(), expressions=yes), exp.true()),
                    (exp.In(this=word.tree.copy(), expressions=no), exp.false()),
                ]
                return Term(when(branches), kind, word.level)
            case "date", "text":
                midnight = exp.EQ(this=here.copy(), expression=call("date_trunc", text("day"), here.copy()))
                day = call("strftime", here.copy(), text("%Y-%m-%d"))
                second = call("strftime", here.copy(), text("%Y-%m-%d %H:%M:%S"))
                return Term(when([(midnight, day)], second), kind, level)
            case _:
                return Term(constant(None, kind), kind, 0)


def limited(number: Fraction) -> float:
    """The double that stands for a constant.

    >>> limited(Fraction(10) ** 200), limited(Fraction(1, 10**200)), limited(Fraction(1, 10))
    (1e+100, 0.0, 0.1)
    """
    if number.denominator == 1 and abs(number.numerator) < 2**53:
        return float(number.numerator)  # most keys are such
    if abs(number) < SMALLEST:
        return 0.0
    return float(min(max(number, -LARGEST), LARGEST))


def constant(value: Fraction | str | datetime | bool | None, kind: Kind) -> Tree:
    """A literal of the row language."""
    match value:
        case None:
            return as_type(exp.null(), TYPES[kind])
        case bool():
            return exp.true() if value else exp.false()
        case str():
            return text(value)
        case datetime():
            return moment(value)
        case _:
            return real(limited(Fraction(value)))


def unit_value(here: Tree, column: ColumnType) -> tuple[Tree, Tree]:
    """The value that names a unit, exactly as it is in the source, and the condition that it is not missing."""
    if column.kind == "text":
        plain = here if column.described == "VARCHAR" else as_type(here, "VARCHAR")
        return by_bytes(plain), present(here)
    if column.described in {"DOUBLE", "FLOAT"}:
        return here, exp.not_(call("isnan", here.copy()))
    return here, present(here)


def unit_text(here: Tree, column: ColumnType) -> Tree:
    """A text for the hash of a unit that every engine writes in the same way."""
    match column.kind:
        case "text":
            return here
        case "truth":
            return as_type(as_type(here, "INTEGER"), "VARCHAR")
        case "date":
            return call("coalesce", as_type(exp.Try(this=call("epoch_us", here.copy())), "VARCHAR"), text(""))
        case "number" if column.whole:
            return as_type(here, "VARCHAR")
        case "number":
            whole = as_type(call("floor", as_type(here, "DOUBLE")), "HUGEINT")
            return call("coalesce", as_type(exp.Try(this=whole), "VARCHAR"), text(""))
        case _:
            assert_never(column.kind)


def _limits(here: Tree) -> Tree:
    """A double within ±10¹⁰⁰, with what is below 10⁻¹⁰⁰ in size, and −0.0, as 0; NaN is missing.

    What most rows are comes first, so that the rest is not looked at. NaN is greater than every number.
    """
    largest, smallest = real(float(LARGEST)), real(float(SMALLEST))
    branches = [
        (exp.Between(this=call("abs", here.copy()), low=smallest, high=largest), here.copy()),
        (exp.LT(this=call("abs", here.copy()), expression=smallest.copy()), real(0.0)),
        (call("isnan", here.copy()), as_type(exp.null(), "DOUBLE")),
        (exp.GT(this=here.copy(), expression=real(0.0)), largest.copy()),
        (exp.LT(this=here.copy(), expression=real(0.0)), real(-float(LARGEST))),
    ]
    return when(branches)


def _number(here: Tree, described: str) -> Tree:
    """A column of numbers as the nearest doubles."""
    if described in {"DOUBLE", "FLOAT"}:
        return _limits(here if described == "DOUBLE" else as_type(here, "DOUBLE"))
    if described not in {"HUGEINT", "UHUGEINT"} and not described.endswith(",0)"):
        return as_type(here, "DOUBLE")  # rounds to the nearest: integers of 64 bits, and decimals with a scale
    # DuckDB rounds 128-bit integers twice: those of 64 bits are shortened first, the others read from their digits
    short = try_type(here, "BIGINT")
    return when([(present(short), as_type(short, "DOUBLE"))], try_type(as_type(here, "VARCHAR"), "DOUBLE"))


def _moment(here: Tree, described: str) -> Tree:
    if described == "TIMESTAMP":
        return here
    if described == "TIMESTAMP WITH TIME ZONE":
        return exp.Try(this=call("make_timestamp", call("epoch_us", here)))
    return try_type(here, "TIMESTAMP")
