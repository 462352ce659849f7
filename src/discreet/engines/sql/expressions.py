"""The row language as trees of an engine's SQL: total, so that no row can raise an error.

Numbers are doubles. A value that is used twice is named and computed once, in a layer below: nothing grows beyond
what was asked, however deep it is nested. What engines write differently is in their `dialect`.

    columns    whole numbers and decimals become the nearest double; ±inf is ±10¹⁰⁰; NaN is missing; texts compare by
               their bytes, whatever collation the column has; moments with a zone are taken in UTC
    dates      in the years 1 to 9999, else missing
    texts      of at most 16,384 bytes, else missing; lower and upper change A–Z and a–z alone, trim takes spaces,
               length counts code points; substring needs 1 ≤ from ≤ 10⁶ and 0 ≤ length ≤ 10⁶, else missing
    casts      number → text for whole numbers below 2⁵³ in size; text → number for plain decimals of 40 digits before
               and after the point and an exponent of two; date → text as 2024-02-29, with 23:59:59 behind it unless at
               midnight, and back; text → truth from true, t, yes, y, 1 and their opposites; all else is missing
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
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
    Reading,
    Some,
    Truncated,
)
from discreet.engines.base import Schema
from discreet.engines.sql.dialect import Dialect, Word, plain
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.patterns import DATE_PATTERN, NUMBER_PATTERN, Shape, date_shape
from discreet.engines.sql.reading import is_integer, iso_date, plain_number
from discreet.engines.sql.trees import (
    Tree,
    alias,
    between,
    call,
    column,
    joined,
    missing,
    negated,
    outer,
    paren,
    present,
    quoted,
    select,
    table,
    when,
)
from discreet.errors import InvalidParameter

LARGEST, SMALLEST = Fraction(10**100), Fraction(1, 10**100)
"""What numbers are limited to, so that no product, quotient or sum leaves the doubles."""

TYPES: dict[Kind, Word] = {"number": "double", "text": "text", "date": "moment", "truth": "truth"}

TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
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
    dialect: Dialect = DUCKDB
    columns: dict[str, str] = field(default_factory=dict)
    """The columns of the source that are used, each with its name in the statement."""
    layers: list[dict[str, Tree]] = field(default_factory=list)
    """What each layer names, above the columns."""
    names: dict[int, str] = field(default_factory=dict)
    """The name of each tree that has one, by its identity: `layers` keeps them all."""
    known: dict[Expression, Term] = field(default_factory=dict)

    def term(self, expression: Expression) -> Term:
        """The expression as a tree; one expression is translated once."""
        found = self.known.get(expression)
        if found is None:
            found = self.known[expression] = self._translate(expression)
        return found

    def named(self, term: Term) -> Term:
        """The same value as a name that may be used many times."""
        if isinstance(term.tree, exp.Column):
            return term
        while len(self.layers) <= term.level:
            self.layers.append({})
        name = self.names.setdefault(id(term.tree), f"v{len(self.names)}")
        self.layers[term.level][name] = term.tree
        return Term(column(name), term.kind, term.level + 1)

    def source(self, name: str) -> Tree:
        """A column of the source as it is."""
        if name not in self.schema:
            raise InvalidParameter(f"the source must have the column {name!r}; it has {', '.join(self.schema)}")
        return column(self.columns.setdefault(name, f"c{len(self.columns)}"))

    def rows(self, source: str) -> Tree:
        """The columns of the source that are used, with all layers above them."""
        columns = [alias(exp.Column(this=outer(name)), new) for name, new in self.columns.items()]
        tree = select(columns or [alias(exp.Literal.number(1), "nothing")], table(source))
        for index, layer in enumerate(self.layers):
            named = [alias(tree, name) for name, tree in layer.items()]
            inner = exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.Identifier(this=f"layer{index}")))
            tree = exp.Select(expressions=[exp.Star(), *named], from_=exp.From(this=inner))
        return tree

    def column_of_numbers(self, expression: Expression) -> tuple[Tree, str] | None:
        """The column behind an expression that is one of numbers, with its type: for shorter ways to the same value."""
        if not isinstance(expression, Column) or expression.kind != "number":
            return None
        if expression.name not in self.schema or self.schema[expression.name].kind != "number":
            return None
        return self.source(expression.name), self.schema[expression.name].described

    def _translate(self, expression: Expression) -> Term:  # noqa: PLR0911, PLR0912 - one case for each class
        match expression:
            case Column(name, kind, reading):
                here = self._column(name)
                return here if here.kind == kind else self._read(here, kind, reading or Reading())
            case Constant(value, kind):
                return Term(constant(value, kind, self.dialect), kind, 0)
            case Arithmetic():
                return self._arithmetic(expression)
            case Comparison(sign, left, right):
                operator = _COMPARISONS[sign]
                text = self.term(left).kind == "text"
                return self._of(
                    (left, right),
                    "truth",
                    lambda a, b: operator(this=self.dialect.by_bytes(a) if text else paren(a), expression=paren(b)),
                )
            case Every(parts):
                return self._of(parts, "truth", lambda *trees: joined(exp.And, trees))
            case Some(parts):
                return self._of(parts, "truth", lambda *trees: joined(exp.Or, trees))
            case Negation(part):
                return self._of((part,), "truth", negated)
            case Membership(part, choices):
                return self._membership(part, choices)
            case Missing(part):
                return self._of((part,), "truth", missing)
            case Likeness(part, pattern):
                return self._of((part,), "truth", lambda a: self.dialect.like(self.dialect.by_bytes(a), pattern))
            case Case():
                return self._case(expression)
            case Coalesce(parts):
                return self._of(parts, self.term(parts[0]).kind, lambda *trees: call("coalesce", *trees))
            case Function():
                return self._function(expression)
            case Part(name, date):
                return self._of_named(date, "number", lambda a: self.dialect.part(name, a))
            case Truncated(unit, date):
                return self._of_named(date, "date", lambda a: self.dialect.truncated(unit, a))
            case Cast(part, kind):
                return self._cast(self.term(part), kind)
            case _:
                assert_never(expression)

    def _of(self, parts: tuple[Expression, ...], kind: Kind, build: Callable[..., Tree]) -> Term:
        terms = [self.term(part) for part in parts]
        return Term(build(*(term.tree for term in terms)), kind, max(term.level for term in terms))

    def _of_named(self, part: Expression, kind: Kind, build: Callable[[Tree], Tree]) -> Term:
        term = self.named(self.term(part))
        return Term(build(term.tree), kind, term.level)

    def _column(self, name: str) -> Term:
        here = self.source(name)
        described = self.schema[name].described
        match self.schema[name].kind:
            case "number":
                tree, open_ended = self.dialect.number_column(here, described)
                term = Term(tree, "number", 0)
                return self._limited(term) if open_ended else term
            case "text":
                return Term(self.dialect.text_column(here, described), "text", 0)
            case "date":
                return self._dated(Term(self.dialect.moment_column(here, described), "date", 0))
            case "truth":
                return Term(here, "truth", 0)
            case kind:
                assert_never(kind)

    def _read(self, term: Term, kind: Kind, reading: Reading) -> Term:
        """A column's text as a value, by the declared marks and formats; what does not fit is missing."""
        if kind == "date" and reading.formats:
            dates = [self._cast(self._iso(term, date_shape(format)), kind) for format in reading.formats]
            return Term(call("coalesce", *(date.tree for date in dates)), kind, max(date.level for date in dates))
        if kind == "number" and (reading.thousands or reading.decimal != "."):
            term = self.named(term)
            term = Term(plain_number(term.tree, reading, self.dialect), "text", term.level)
        term = self._cast(term, kind)
        if not reading.whole:
            return term
        term = self.named(term)
        return Term(when([(is_integer(term.tree, self.dialect), term.tree)]), kind, term.level)

    def _iso(self, term: Term, shape: Shape) -> Term:
        term = self.named(term)
        if shape.months:
            term = self.named(Term(self.dialect.letters(term.tree, "lower"), "text", term.level))
        return Term(iso_date(term.tree, shape, self.dialect), "text", term.level)

    def _dated(self, term: Term) -> Term:
        """A date in the years 1 to 9999, else missing; infinite ones are beyond."""
        term = self.named(term)
        first, last = (constant(moment, "date", self.dialect) for moment in (FIRST, LAST))
        return Term(when([(between(term.tree, first, last), term.tree)]), "date", term.level)

    def _limited(self, term: Term) -> Term:
        """A double within ±10¹⁰⁰, with what is below 10⁻¹⁰⁰ in size, and −0.0, as 0; NaN is missing.

        What most rows are comes first, so that the rest is not looked at. NaN is greater than every number.
        """
        term = self.named(term)
        here, real = term.tree, self.dialect.real
        largest, smallest, nothing = real(float(LARGEST)), real(float(SMALLEST)), real(0.0)
        size = call("abs", here)
        branches = [
            (between(size, smallest, largest), here),
            (exp.LT(this=size, expression=smallest), nothing),
            (self.dialect.is_nan(here), constant(None, "number", self.dialect)),
            (exp.GT(this=here, expression=nothing), largest),
            (exp.LT(this=here, expression=nothing), real(-float(LARGEST))),
        ]
        return Term(when(branches), "number", term.level)

    def _arithmetic(self, expression: Arithmetic) -> Term:
        def build(a: Tree, b: Tree) -> Tree:
            if expression.sign == "/":
                return self.dialect.divided(a, b)
            return _ARITHMETIC[expression.sign](this=paren(a), expression=paren(b))

        return self._limited(self._of((expression.left, expression.right), "number", build))

    def _membership(self, part: Expression, choices: tuple[Constant, ...]) -> Term:
        if not choices:
            return self._of((part,), "truth", lambda a: when([(present(a), exp.false())]))
        trees = [constant(choice.value, choice.kind, self.dialect) for choice in choices]
        text = self.term(part).kind == "text"
        return self._of(
            (part,), "truth", lambda a: exp.In(this=self.dialect.by_bytes(a) if text else paren(a), expressions=trees)
        )

    def _case(self, expression: Case) -> Term:
        terms = [(self.term(condition), self.term(value)) for condition, value in expression.branches]
        otherwise = self.term(expression.otherwise)
        level = max(otherwise.level, *(max(condition.level, value.level) for condition, value in terms))
        tree = when([(condition.tree, value.tree) for condition, value in terms], otherwise.tree)
        return Term(tree, otherwise.kind, level)

    def _function(self, expression: Function) -> Term:  # noqa: PLR0911 - one case for each function
        name, arguments, dialect = expression.name, expression.arguments, self.dialect
        match name:
            case "abs":
                return self._of(arguments, "number", lambda a: call("abs", a))
            case "floor":
                return self._of_named(arguments[0], "number", dialect.floor)
            case "ceil":  # −⌊−x⌋ + 0: not −0.0
                less = self.named(self._of(arguments, "number", lambda a: exp.Neg(this=paren(a))))
                turned = exp.Paren(this=exp.Neg(this=paren(dialect.floor(less.tree))))
                return Term(exp.Add(this=turned, expression=dialect.real(0.0)), "number", less.level)
            case "round":
                more = self._of(arguments, "number", lambda a: exp.Add(this=paren(a), expression=dialect.real(0.5)))
                more = self.named(more)
                return Term(dialect.floor(more.tree), "number", more.level)
            case "least" | "greatest":
                terms = [self.named(self.term(argument)) for argument in arguments]
                there = joined(exp.And, [present(term.tree) for term in terms])
                # engines' own leave missing values out
                tree = when([(there, call(name, *(term.tree for term in terms)))])
                return Term(tree, "number", max(term.level for term in terms))
            case "lower" | "upper":
                return self._of_named(arguments[0], "text", partial(dialect.letters, case=name))
            case "trim":
                return self._of(arguments, "text", dialect.trim)
            case "length":
                return self._of(arguments, "number", dialect.length)
            case "substring":
                return self._substring(arguments)
            case _:
                assert_never(name)

    def _substring(self, arguments: tuple[Expression, ...]) -> Term:
        source = self.term(arguments[0])
        start, length = (self.named(self.term(argument)) for argument in arguments[1:])
        real = self.dialect.real
        inside = [between(start.tree, real(1.0), real(_LONGEST)), between(length.tree, real(0.0), real(_LONGEST))]
        tree = when([(joined(exp.And, inside), self.dialect.substring(source.tree, start.tree, length.tree))])
        return Term(tree, "text", max(source.level, start.level, length.level))

    def _cast(self, term: Term, kind: Kind) -> Term:  # noqa: PLR0911 - one case for each pair of kinds
        if term.kind == kind:
            return term
        term = self.named(term)
        here, level, dialect = term.tree, term.level, self.dialect
        match term.kind, kind:
            case "truth", "number":
                return Term(when([(here, dialect.real(1.0)), (negated(here), dialect.real(0.0))]), kind, level)
            case "truth", "text":
                return Term(when([(here, quoted("true")), (negated(here), quoted("false"))]), kind, level)
            case "number", "truth":
                return Term(exp.NEQ(this=here, expression=dialect.real(0.0)), kind, level)
            case "number", "text":
                return Term(when([(is_whole(here, dialect), digits(here, dialect))]), kind, level)
            case "text", "number":
                plain = dialect.matches(here, NUMBER_PATTERN)
                return self._limited(Term(when([(plain, dialect.number_of_text(here))]), kind, level))
            case "text", "date":
                plain = dialect.matches(here, DATE_PATTERN)
                return self._dated(Term(when([(plain, dialect.moment_of_text(here))]), kind, level))
            case "text", "truth":
                word = self.named(Term(dialect.trim(here), "text", level))
                word = self.named(Term(dialect.by_bytes(dialect.letters(word.tree, "lower")), "text", word.level))
                yes, no = ([quoted(one) for one in words] for words in (TRUE_WORDS, FALSE_WORDS))
                branches = [
                    (exp.In(this=word.tree, expressions=yes), exp.true()),
                    (exp.In(this=word.tree, expressions=no), exp.false()),
                ]
                return Term(when(branches), kind, word.level)
            case "date", "text":
                midnight = exp.EQ(this=here, expression=dialect.truncated("day", here))
                return Term(when([(midnight, dialect.day_text(here))], dialect.second_text(here)), kind, level)
            case _:
                return Term(constant(None, kind, dialect), kind, 0)


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


def constant(value: Fraction | str | datetime | bool | None, kind: Kind, dialect: Dialect = DUCKDB) -> Tree:
    """A literal of the row language."""
    match value:
        case None:
            return dialect.cast(exp.Null(), TYPES[kind])
        case bool():
            return exp.true() if value else exp.false()
        case str():
            return dialect.text(value)
        case datetime():
            return dialect.cast(quoted(plain(value)), "moment")
        case _:
            return dialect.real(limited(Fraction(value)))


def is_whole(here: Tree, dialect: Dialect) -> Tree:
    """Whether a double is a whole number below 2⁵³ in size: from there on it is no longer one."""
    small = exp.LT(this=call("abs", here), expression=dialect.real(2.0**53))
    return joined(exp.And, [small, exp.EQ(this=here, expression=dialect.floor(here))])


def digits(here: Tree, dialect: Dialect) -> Tree:
    """A whole number of 64 bits as its digits."""
    return dialect.cast(dialect.cast(here, "long"), "text")
