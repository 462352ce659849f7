"""The row language as trees of an engine's SQL, in which no row can raise an error.

Numbers are doubles. A value that is used twice is named and computed once, in a layer below, so
that a statement does not grow faster than its question. The differences between engines are in
their `dialect`.

    columns    whole numbers and decimals become the nearest double; ±inf is ±10¹⁰⁰; NaN is missing;
               texts are compared by their bytes, whatever the collation; moments with a zone are
               converted to UTC
    dates      in the years 1 to 9999, otherwise missing
    texts      in valid UTF-8 of at most 16,384 bytes, otherwise missing; lower and upper change A–Z
               and a–z only, trim removes spaces, length counts code points; substring needs
               1 ≤ from ≤ 10⁶ and 0 ≤ length ≤ 10⁶, otherwise missing
    casts      number → text for integers of absolute value below 2⁵³; text → number for decimals
               with up to 40 digits before and after the point and an exponent of two digits;
               date → text as 2024-02-29, followed by 23:59:59 unless midnight, and back;
               text → truth from true, t, yes, y, 1 and their opposites; otherwise missing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, assert_never

from sqlglot import exp

from discreet.ask import expression as ask
from discreet.ask.expression import Expression, Kind, Reading, Schema
from discreet.ask.reading import BLANKS
from discreet.engines.base import without_zone
from discreet.engines.sql import trees as sql
from discreet.engines.sql.dialect import Dialect, Word, digits, is_whole
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.patterns import (
    DATE_PATTERN,
    FALSE_WORDS,
    MONTHS,
    NUMBER_PATTERN,
    PADDING,
    TRUE_WORDS,
    date_shape,
    marked_number,
)
from discreet.engines.sql.trees import Tree, alias, call, joined, paren, present, quoted, when
from discreet.errors import InvalidParameter

LARGEST, SMALLEST = Fraction(10**100), Fraction(1, 10**100)
"""The limits of numbers, so that no product, quotient or sum overflows."""

_Write: TypeAlias = Callable[[Any], Tree]
TYPES: dict[Kind, Word] = {"number": "double", "text": "text", "date": "moment", "truth": "truth"}

FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
_LONGEST = 10.0**6
_FEW_PAIRS = 8
"""Up to this many pairs of a map are compared one after another."""
_OPERATORS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """A tree, the kind of its value, and the layer in which all that it refers to is defined."""

    tree: Tree
    kind: Kind
    level: int


@dataclass(slots=True)
class Translator:
    """Translates expressions over one source, and records the columns and names that they use."""

    schema: Schema
    dialect: Dialect = DUCKDB
    columns: dict[str, str] = field(default_factory=dict)
    """The columns of the source in use, each with its name in the statement."""
    layers: list[dict[str, Tree]] = field(default_factory=list)
    """The named values of each layer above the columns."""
    names: dict[int, str] = field(default_factory=dict)
    """The names of trees, by identity; `layers` keeps these trees alive."""
    terms: dict[Expression, Term] = field(default_factory=dict)

    def term(self, expression: Expression) -> Term:
        """The term of an expression, which is translated once."""
        term = self.terms.get(expression)
        if term is None:
            term = self.terms[expression] = self._translate(expression)
        return term

    def named(self, term: Term) -> Term:
        """The same value as a name, which may be used many times."""
        if isinstance(term.tree, exp.Column):
            return term
        while len(self.layers) <= term.level:
            self.layers.append({})
        name = self.names.setdefault(id(term.tree), f"v{len(self.names)}")
        self.layers[term.level][name] = term.tree
        return Term(sql.column(name), term.kind, term.level + 1)

    def source(self, name: str) -> Tree:
        """A column of the source, of which texts are already as `text_column` returns them."""
        if name not in self.schema:
            raise InvalidParameter(
                f"the source must have the column {name!r}; it has {', '.join(self.schema)}"
            )
        return sql.column(self.columns.setdefault(name, f"c{len(self.columns)}"))

    def rows(self, source: str) -> Tree:
        """The columns of the source in use, with all layers above them."""
        columns = [alias(self._entering(name), new) for name, new in self.columns.items()]
        tree = sql.select(columns or [alias(sql.whole(1), "nothing")], sql.table(source))
        for index, layer in enumerate(self.layers):
            named = [alias(tree, name) for name, tree in layer.items()]
            tree = self.dialect.layer(
                sql.select([exp.Star(), *named], sql.subquery(tree, f"layer{index}"))
            )
        return tree

    def _entering(self, name: str) -> Tree:
        """A column as it enters the statement: the one place that reads the source's own texts."""
        return self.dialect.entering(exp.Column(this=sql.outer(name)), self.schema[name])

    def column_of_numbers(self, expression: Expression) -> tuple[Tree, str] | None:
        """The numeric column that an expression is, with its type, for faster ways; or None."""
        if (
            not isinstance(expression, ask.Column)
            or expression.kind != "number"
            or expression.children is not None
        ):
            return None
        if expression.name not in self.schema or self.schema[expression.name].kind != "number":
            return None
        return self.source(expression.name), self.schema[expression.name].described

    def _translate(self, expression: Expression) -> Term:  # noqa: PLR0911, PLR0912 - one case for each class
        dialect = self.dialect
        match expression:
            case ask.Column(_, kind, children=ask.Children() as children):
                return self._parent(children, kind)
            case ask.Column(name, kind, reading):
                term = self._column(name)
                return (
                    term
                    if term.kind == kind and reading is None
                    else self._read(term, kind, reading or Reading())
                )
            case ask.Constant(value, kind):
                return Term(constant(value, kind, dialect), kind, 0)
            case ask.Arithmetic("/", left, right):
                return self._limited(self._of((left, right), "number", dialect.divided))
            case ask.Arithmetic(sign, left, right):
                operator = _OPERATORS[sign]
                result = self._of(
                    (left, right),
                    "number",
                    lambda a, b: operator(this=paren(a), expression=paren(b)),
                )
                return self._limited(result)
            case ask.Comparison(sign, left, right):
                operator, comparable = _OPERATORS[sign], self._comparable(left)
                return self._of(
                    (left, right),
                    "truth",
                    lambda a, b: operator(this=comparable(a), expression=paren(b)),
                )
            case ask.Every(parts):
                return self._of(parts, "truth", lambda *trees: joined(exp.And, trees))
            case ask.Some(parts):
                return self._of(parts, "truth", lambda *trees: joined(exp.Or, trees))
            case ask.Negation(part):
                return self._of((part,), "truth", sql.negated)
            case ask.Membership(part, ()):
                return self._of((part,), "truth", lambda a: when([(present(a), exp.false())]))
            case ask.Membership(part, choices):
                comparable = self._comparable(part)
                trees = [constant(choice.value, choice.kind, dialect) for choice in choices]
                return self._of(
                    (part,), "truth", lambda a: exp.In(this=comparable(a), expressions=trees)
                )
            case ask.Missing(part):
                return self._of((part,), "truth", sql.missing)
            case ask.Likeness(part, pattern):
                return self._of(
                    (part,), "truth", lambda a: dialect.like(dialect.by_bytes(a), pattern)
                )
            case ask.Case(branches, otherwise):
                parts = (*(part for branch in branches for part in branch), otherwise)
                return self._of(
                    parts,
                    None,
                    lambda *trees: when(
                        list(zip(trees[:-1:2], trees[1::2], strict=True)), trees[-1]
                    ),
                )
            case ask.Coalesce(parts):
                return self._of(parts, None, partial(call, "coalesce"))
            case ask.Function():
                return self._function(expression)
            case ask.Part(name, date):
                return self._of_named(self.term(date), "number", partial(dialect.part, name))
            case ask.Truncated(unit, date):
                return self._of_named(self.term(date), "date", partial(dialect.truncated, unit))
            case ask.Cast(part, kind):
                return self._cast(self.term(part), kind)
            case _:
                assert_never(expression)

    def _of(
        self, parts: tuple[Expression, ...], kind: Kind | None, build: Callable[..., Tree]
    ) -> Term:
        """A term of the trees of some parts; by default it has the kind of the last part."""
        terms = [self.term(part) for part in parts]
        return Term(
            build(*(term.tree for term in terms)),
            kind or terms[-1].kind,
            max(term.level for term in terms),
        )

    def _of_named(self, term: Term, kind: Kind, build: Callable[[Tree], Tree]) -> Term:
        term = self.named(term)
        return Term(build(term.tree), kind, term.level)

    def _comparable(self, part: Expression) -> Callable[[Tree], Tree]:
        return self.dialect.by_bytes if self.term(part).kind == "text" else paren

    def _column(self, name: str) -> Term:
        column = self.source(name)
        described = self.schema[name].described
        match self.schema[name].kind:
            case "number":
                tree, open_ended = self.dialect.number_column(column, described)
                term = Term(tree, "number", 0)
                return self._limited(term) if open_ended else term
            case "text":
                return Term(column, "text", 0)
            case "date":
                return self._dated(Term(self.dialect.moment_column(column, described), "date", 0))
            case "truth":
                return Term(column, "truth", 0)
            case kind:
                assert_never(kind)

    def _read(self, term: Term, kind: Kind, reading: Reading) -> Term:
        """A column's text as a value: cleaned, and read by the declared formats, or missing."""
        term = self._cleaned(term, reading)
        if kind == term.kind:
            return term
        if kind == "date" and reading.formats:
            dates = [
                self._cast(self._iso_date(term, date_format), kind)
                for date_format in reading.formats
            ]
            return Term(
                call("coalesce", *(date.tree for date in dates)),
                kind,
                max(date.level for date in dates),
            )
        if kind == "number" and (reading.thousands or reading.decimal != "."):
            term = self._of_named(term, "text", partial(self._plain_number, reading))
        term = self._cast(term, kind)
        if not reading.whole:
            return term
        return self._of_named(
            term, kind, lambda a: when([(exp.EQ(this=a, expression=self.dialect.floor(a)), a)])
        )

    def _cleaned(self, term: Term, reading: Reading) -> Term:
        """A text that is trimmed, in lowercase, missing, or replaced by the map, as declared."""
        dialect = self.dialect
        if reading.trim:
            term = Term(dialect.trim(term.tree, BLANKS), "text", term.level)
        if reading.casefold:
            term = self._of_named(term, "text", dialect.folded)
        # IN with five texts or more would take DuckDB seconds to plan
        for pairs in ([(text, None) for text in reading.missing], reading.map):
            if pairs:
                term = self._of_named(term, "text", partial(self._replaced, pairs))
        return term

    def _replaced(self, pairs: Sequence[tuple[str, str | None]], value: Tree) -> Tree:
        """The replacement of a text, or missing; other texts stay."""
        # Python's order of texts differs from that of their bytes for surrogates only
        ordered = sorted(pairs, key=lambda pair: pair[0].encode())
        text = partial(constant, kind="text", dialect=self.dialect)
        return self._mapped(self.dialect.by_bytes(value), ordered, text, text, value)

    def _parent(self, children: ask.Children, kind: Kind) -> Term:
        """The parent of a key, by binary search; missing for other values."""
        own, comparable = children.keys.kind, self._comparable(children.of)
        pairs: list[tuple[Any, Any]] = list(zip(children.keys, children.parents, strict=True))
        pairs.sort(key=lambda pair: pair[0].encode() if own == "text" else pair[0])
        key, parent = (partial(constant, kind=kind_, dialect=self.dialect) for kind_ in (own, kind))
        child = self.named(self.term(children.of))
        return Term(
            self._mapped(comparable(child.tree), pairs, key, parent, parent(None)),
            kind,
            child.level,
        )

    def _mapped(
        self, value: Tree, pairs: Sequence[Any], key: _Write, write: _Write, otherwise: Tree
    ) -> Tree:
        """The replacement of a value, by binary search; texts are compared by their bytes."""
        if len(pairs) <= _FEW_PAIRS:
            return when(
                [(exp.EQ(this=value, expression=key(old)), write(new)) for old, new in pairs],
                otherwise,
            )
        middle = len(pairs) // 2
        below = exp.LT(this=value, expression=key(pairs[middle][0]))
        lower, upper = (
            self._mapped(value, half, key, write, otherwise)
            for half in (pairs[:middle], pairs[middle:])
        )
        return when([(below, lower)], upper)

    def _plain_number(self, reading: Reading, text: Tree) -> Tree:
        """A number without its marks: 1234.50 for 1,234.50."""
        tree = (
            call("replace", text, quoted(reading.thousands), quoted(""))
            if reading.thousands
            else text
        )
        tree = call("replace", tree, quoted(reading.decimal), quoted("."))
        return when(
            [(self.dialect.matches(text, marked_number(reading.decimal, reading.thousands)), tree)]
        )

    def _iso_date(self, term: Term, date_format: str) -> Term:
        """A date in a format as an ISO date: 2001-12-01 for 1/12/2001; names of months are matched
        in lowercase.
        """
        dialect, shape = self.dialect, date_shape(date_format)
        if shape.months:
            term = self._of_named(term, "text", partial(dialect.letters, case="lower"))
        term = self.named(term)
        tree = dialect.replaced(term.tree, shape.pattern, shape.template)
        for number, month in enumerate(MONTHS if shape.months else (), 1):
            tree = call("replace", tree, quoted(month), quoted(str(number)))
        matched = dialect.matches(term.tree, shape.pattern)
        return Term(when([(matched, dialect.replaced(tree, *PADDING))]), "text", term.level)

    def _dated(self, term: Term) -> Term:
        """A date in the years 1 to 9999, otherwise missing, as infinite dates are."""
        first, last = (constant(moment, "date", self.dialect) for moment in (FIRST, LAST))
        return self._of_named(term, "date", lambda a: when([(sql.between(a, first, last), a)]))

    def _limited(self, term: Term) -> Term:
        """A double within ±10¹⁰⁰: absolute values below 10⁻¹⁰⁰, and −0.0, are 0; NaN is missing.

        The most frequent case comes first, so that the others are not evaluated. NaN is greater
        than every number.
        """
        term = self.named(term)
        number, real = term.tree, self.dialect.real
        largest, smallest, nothing = real(float(LARGEST)), real(float(SMALLEST)), real(0.0)
        size = call("abs", number)
        branches = [
            (sql.between(size, smallest, largest), number),
            (exp.LT(this=size, expression=smallest), nothing),
            (self.dialect.is_nan(number), constant(None, "number", self.dialect)),
            (exp.GT(this=number, expression=nothing), largest),
            (exp.LT(this=number, expression=nothing), real(-float(LARGEST))),
        ]
        return Term(when(branches), "number", term.level)

    def _function(self, expression: ask.Function) -> Term:  # noqa: PLR0911 - one case for each function
        name, arguments, dialect = expression.name, expression.arguments, self.dialect
        match name:
            case "abs":
                return self._of(arguments, "number", partial(call, "abs"))
            case "floor":
                return self._of_named(self.term(arguments[0]), "number", dialect.floor)
            case "ceil":  # −⌊−x⌋ + 0: not −0.0
                negative = self.named(
                    self._of(arguments, "number", lambda a: exp.Neg(this=paren(a)))
                )
                positive = exp.Paren(this=exp.Neg(this=paren(dialect.floor(negative.tree))))
                return Term(
                    exp.Add(this=positive, expression=dialect.real(0.0)), "number", negative.level
                )
            case "round":
                raised = self._of(
                    arguments,
                    "number",
                    lambda a: exp.Add(this=paren(a), expression=dialect.real(0.5)),
                )
                return self._of_named(raised, "number", dialect.floor)
            case "least" | "greatest":
                terms = [self.named(self.term(argument)) for argument in arguments]
                all_present = joined(exp.And, [present(term.tree) for term in terms])
                # the engines' own functions ignore missing values
                tree = when([(all_present, call(name, *(term.tree for term in terms)))])
                return Term(tree, "number", max(term.level for term in terms))
            case "lower" | "upper":
                return self._of_named(
                    self.term(arguments[0]), "text", partial(dialect.letters, case=name)
                )
            case "trim":
                return self._of(arguments, "text", partial(dialect.trim, blanks=" "))
            case "length":
                return self._of(arguments, "number", dialect.length)
            case "substring":
                text = self.term(arguments[0])
                start, length = (self.named(self.term(argument)) for argument in arguments[1:])
                unit, nothing, most = map(dialect.real, (1.0, 0.0, _LONGEST))
                inside = [
                    sql.between(start.tree, unit, most),
                    sql.between(length.tree, nothing, most),
                ]
                tree = when(
                    [
                        (
                            joined(exp.And, inside),
                            dialect.substring(text.tree, start.tree, length.tree),
                        )
                    ]
                )
                return Term(tree, "text", max(text.level, start.level, length.level))
            case _:
                assert_never(name)

    def _cast(self, term: Term, kind: Kind) -> Term:
        if term.kind == kind:
            return term
        term = self.named(term)
        value, dialect = term.tree, self.dialect
        match term.kind, kind:
            case "truth", "number":
                tree = when([(value, dialect.real(1.0)), (sql.negated(value), dialect.real(0.0))])
            case "truth", "text":
                tree = when([(value, quoted("true")), (sql.negated(value), quoted("false"))])
            case "number", "truth":
                tree = exp.NEQ(this=value, expression=dialect.real(0.0))
            case "number", "text":
                tree = when([(is_whole(value, dialect), digits(value, dialect))])
            case "text", "number":
                tree = when(
                    [(dialect.matches(value, NUMBER_PATTERN), dialect.of_text(value, "double"))]
                )
                return self._limited(Term(tree, kind, term.level))
            case "text", "date":
                tree = when(
                    [(dialect.matches(value, DATE_PATTERN), dialect.of_text(value, "moment"))]
                )
                return self._dated(Term(tree, kind, term.level))
            case "text", "truth":
                term = self.named(Term(dialect.trim(value, " "), "text", term.level))
                term = self.named(
                    Term(dialect.by_bytes(dialect.letters(term.tree, "lower")), "text", term.level)
                )
                words = ((TRUE_WORDS, exp.true()), (FALSE_WORDS, exp.false()))
                tree = when(
                    [
                        (exp.In(this=term.tree, expressions=list(map(quoted, texts))), truth)
                        for texts, truth in words
                    ]
                )
            case "date", "text":
                midnight = exp.EQ(this=value, expression=dialect.truncated("day", value))
                day, second = (
                    dialect.moment_text(value, seconds=seconds) for seconds in (False, True)
                )
                tree = when([(midnight, day)], second)
            case _:
                return Term(constant(None, kind, dialect), kind, 0)
        return Term(tree, kind, term.level)


def limited(number: Fraction) -> float:
    """The double for a constant, within the limits of numbers.

    >>> limited(Fraction(10) ** 200), limited(Fraction(1, 10**200)), limited(Fraction(1, 10))
    (1e+100, 0.0, 0.1)
    """
    if number.denominator == 1 and abs(number.numerator) < 2**53:
        return float(number.numerator)  # the most frequent case
    if abs(number) < SMALLEST:
        return 0.0
    return float(min(max(number, -LARGEST), LARGEST))


def constant(
    value: Fraction | str | datetime | bool | None, kind: Kind, dialect: Dialect = DUCKDB
) -> Tree:
    match value:
        case None:
            return dialect.cast(exp.Null(), TYPES[kind])
        case bool():
            return exp.true() if value else exp.false()
        case str():
            return dialect.text(value)
        case datetime():
            return dialect.cast(quoted(without_zone(value).isoformat(" ")), "moment")
        case _:
            return dialect.real(limited(Fraction(value)))
