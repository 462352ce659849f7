"""The kind of an expression, and the refusal of what has none.

    kind_of("age" >= 65)   truth; every part must have the kind that it needs, and there must not be too many

Limits: 1,000 parts, 50 levels, texts and patterns of 200 characters, numbers of 0 or 10⁻¹⁰⁰ to 10¹⁰⁰ in size. They keep
every later walk short, and what one row can cost an engine small: a text of n letters against a pattern of m takes up
to n·m steps, and a condition can see to it that only one person's row takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from discreet.ask import expression as row
from discreet.ask.expression import Expression, Kind
from discreet.errors import QueryRefused
from discreet.parameters import quote

MOST_PARTS = 1_000
DEEPEST = 50
LARGEST_NUMBER = Fraction(10) ** 100
"""The row language computes in doubles up to here, so that a product of two cannot overflow."""
_SMALLEST_NUMBER = 1 / LARGEST_NUMBER

LONGEST_TEXT = 2**31 - 1
"""What `substring` takes for "the rest of the text"."""

LONGEST_LITERAL = 200
"""Characters of a text or of a pattern in a question; names and codes are shorter."""

_WORDS = {"number": "a number", "text": "a text", "date": "a date", "truth": "a condition"}

_HINTS = {
    "number": "CAST(… AS DOUBLE) makes one",
    "text": "CAST(… AS VARCHAR) makes one",
    "date": "DATE '2020-01-31' is one",
    "truth": "age >= 65 is one",
}

DATED = "DATE_DIFF('day', DATE '2020-01-31', day) counts days, YEAR(day) and MONTH(day) are parts"

_FUNCTIONS: dict[str, tuple[Kind, Kind]] = {
    **dict.fromkeys(("abs", "floor", "ceil", "round", "least", "greatest"), ("number", "number")),
    **dict.fromkeys(("lower", "upper", "trim", "substring"), ("text", "text")),
    "length": ("text", "number"),
}
"""The kind of a function's arguments, and of its result."""


def refused(message: str) -> QueryRefused:
    """The refusal that ends as every refusal does."""
    return QueryRefused(f"{message}{'' if message.endswith('?') else '.'} Nothing was spent.")


def kind_of(expression: Expression) -> Kind:
    """The kind of the values of an expression, which is checked on the way.

    >>> kind_of(row.Comparison("<", row.Column("age", "number"), row.Constant(Fraction(18), "number")))
    'truth'
    >>> kind_of(row.Arithmetic("+", row.Column("age", "number"), row.Constant("a", "text")))
    Traceback (most recent call last):
    discreet.errors.QueryRefused: + needs a number, got a text; CAST(… AS DOUBLE) makes one. Nothing was spent.
    """
    return _Check().kind(expression, 1)


class _Check:
    """One walk over an expression, which counts its parts."""

    def __init__(self) -> None:
        self.parts = 0

    def kind(self, expression: Expression, depth: int) -> Kind:  # noqa: PLR0911, PLR0912 - one case for each class
        self.parts += 1
        if depth > DEEPEST or self.parts > MOST_PARTS:
            raise refused(
                f"an expression may have {MOST_PARTS:,} parts and {DEEPEST} levels; split the question, or use IN (…)"
            )
        below = depth + 1
        match expression:
            case row.Column(_, kind):
                return kind
            case row.Constant():
                return _constant(expression)
            case row.Arithmetic(sign, left, right):
                return self.all("number", (left, right), sign, below, "number")
            case row.Comparison(sign, left, right):
                self.one_kind((left, right), sign, below)
            case row.Every(parts):
                self.all("truth", parts, "AND", below)
            case row.Some(parts):
                self.all("truth", parts, "OR", below)
            case row.Negation(part):
                self.all("truth", (part,), "NOT", below)
            case row.Membership(part, choices):
                if not choices:
                    raise refused("IN needs at least one value, as in IN ('a', 'b')")
                if any(choice.value is None for choice in choices):
                    raise refused("IN (…, NULL) is never false; ask for IS NULL beside it")
                self.one_kind((part, *choices), "IN", below)
            case row.Missing(part):
                self.kind(part, below)
            case row.Likeness(part, pattern):
                self.all("text", (part,), "LIKE", below)
                _check_text(pattern)
            case row.Case(branches, otherwise):
                if not branches:
                    raise refused("CASE needs at least one WHEN … THEN …")
                self.all("truth", tuple(condition for condition, _ in branches), "WHEN", below)
                return self.one_kind((*(value for _, value in branches), otherwise), "CASE", below)
            case row.Coalesce(parts):
                return self.one_kind(parts, "COALESCE", below)
            case row.Function(name, arguments):
                return self.function(name, arguments, below)
            case row.Part(name, date):
                return self.all("date", (date,), name, below, "number")
            case row.Truncated(_, date):
                return self.all("date", (date,), "DATE_TRUNC", below, "date")
            case row.Cast(part, kind):
                if {self.kind(part, below), kind} == {"date", "number"}:
                    raise refused(f"a date is no number; {DATED}")
                return kind
            case _:
                assert_never(expression)
        return "truth"

    def all(self, kind: Kind, parts: Sequence[Expression], name: str, depth: int, result: Kind = "truth") -> Kind:
        """The kind of the result, if all parts are of a kind."""
        for part in parts:
            other = self.kind(part, depth)
            if other != kind:
                hint = DATED if (kind, other) == ("number", "date") else _HINTS[kind]
                raise refused(f"{name.upper()} needs {_WORDS[kind]}, got {_WORDS[other]}; {hint}")
        return result

    def one_kind(self, parts: Sequence[Expression], name: str, depth: int) -> Kind:
        if not parts:
            raise refused(f"{name} needs something to work on, got nothing")
        first = self.kind(parts[0], depth)
        for part in parts[1:]:
            other = self.kind(part, depth)
            if other != first:
                raise refused(
                    f"{name} needs values of one kind, got {_WORDS[first]} and {_WORDS[other]}; CAST changes a kind"
                )
        return first

    def function(self, name: str, arguments: Sequence[Expression], depth: int) -> Kind:
        if name == "substring":
            if len(arguments) != 3 or not (_is_whole(arguments[1], 1) and _is_whole(arguments[2], 0)):
                raise refused("SUBSTRING needs a text and whole numbers, as in SUBSTRING(name, 1, 3)")
            arguments = arguments[:1]
        elif name in ("least", "greatest"):
            if not arguments:
                raise refused(f"{name.upper()} needs at least one number")
        elif len(arguments) != 1:
            raise refused(f"{name.upper()} needs one argument, got {len(arguments)}")
        kind, result = _FUNCTIONS[name]
        return self.all(kind, arguments, name, depth, result)


def _constant(constant: row.Constant) -> Kind:
    kind: Kind = "date"
    match constant.value:
        case None:
            return constant.kind
        case bool():
            kind = "truth"
        case Fraction() as number:
            kind = "number"
            if number and not _SMALLEST_NUMBER <= abs(number) <= LARGEST_NUMBER:
                raise refused("a number must be 0 or between 1e-100 and 1e100 in size")
        case str() as text:
            kind = "text"
            _check_text(text)
    if kind != constant.kind:
        raise refused(f"{quote(constant.value)} is {_WORDS[kind]}, not {_WORDS[constant.kind]}")
    return kind


def _check_text(text: str) -> None:
    if len(text) > LONGEST_LITERAL:
        raise refused(
            f"a text or pattern in a question may have {LONGEST_LITERAL} characters, got {len(text):,}; shorten it"
        )
    if "\0" in text or not (text.isascii() or all(not "\ud800" <= character <= "\udfff" for character in text)):
        raise refused("a text must not hold NUL characters or halves of characters")


def _is_whole(expression: Expression, least: int) -> bool:
    match expression:
        case row.Constant(Fraction() as number, "number"):
            return number.denominator == 1 and least <= number <= LONGEST_TEXT
    return False


def refuse_alike(names: Sequence[str]) -> None:
    """Refuse columns of one name, and those with the name of the end of another's interval."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise refused(f"two columns are called {quote(name)}; give one another name with AS")
        for end in ("_low", "_high"):
            if f"{name}{end}" in names:
                raise refused(f"{quote(name + end)} is the name of an end of {quote(name)}; give it another with AS")
