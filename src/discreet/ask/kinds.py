"""The kind of an expression; expressions without a kind are refused.

    kind_of("age" >= 65)   truth; every part must have the right kind, and there must not be too
                           many parts

Limits: 1,000 parts, 50 levels, texts and patterns of 200 characters, and numbers that are 0 or have
an absolute value from 10⁻¹⁰⁰ to 10¹⁰⁰. They bound the work of an engine on one row, whose time
could reveal a person: matching a text of n letters with a pattern of m letters takes up to n·m
steps, and a condition can apply it to one person's row only.
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
"""The largest number of the row language, so that a product of two doubles cannot overflow."""
_SMALLEST_NUMBER = 1 / LARGEST_NUMBER

LONGEST_TEXT = 2**31 - 1
"""The length that means "the rest of the text" in `substring`."""

LONGEST_LITERAL = 200
"""The most characters of a text or pattern in a question."""

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
"""The kind of a function's arguments and of its result."""


def refused(message: str) -> QueryRefused:
    """A refusal with the usual last sentence."""
    return QueryRefused(f"{message}{'' if message.endswith('?') else '.'} Nothing was spent.")


def kind_of(expression: Expression) -> Kind:
    """The kind of the values of an expression, which is checked.

    >>> kind_of(
    ...     row.Comparison("<", row.Column("age", "number"), row.Constant(Fraction(18), "number"))
    ... )
    'truth'
    >>> kind_of(row.Arithmetic("+", row.Column("age", "number"), row.Constant("a", "text")))
    ... # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    discreet.errors.QueryRefused: + needs a number, got a text; CAST(… AS DOUBLE) makes one.
      Nothing was spent.
    """
    return _Check().kind(expression, 1)


class _Check:
    """Checks an expression and counts its parts."""

    def __init__(self) -> None:
        self.parts = 0

    def kind(self, expression: Expression, depth: int) -> Kind:  # noqa: PLR0911, PLR0912 - one case for each class
        self.parts += 1
        if depth > DEEPEST or self.parts > MOST_PARTS:
            raise refused(
                f"an expression may have {MOST_PARTS:,} parts and {DEEPEST} levels; split the"
                " question, or use IN (…)"
            )
        inner_depth = depth + 1
        match expression:
            case row.Column(_, kind):
                return kind
            case row.Constant():
                return _constant(expression)
            case row.Arithmetic(sign, left, right):
                return self.all("number", (left, right), sign, inner_depth, "number")
            case row.Comparison(sign, left, right):
                self.one_kind((left, right), sign, inner_depth)
            case row.Every(parts):
                self.all("truth", parts, "AND", inner_depth)
            case row.Some(parts):
                self.all("truth", parts, "OR", inner_depth)
            case row.Negation(part):
                self.all("truth", (part,), "NOT", inner_depth)
            case row.Membership(part, choices):
                if not choices:
                    raise refused("IN needs at least one value, as in IN ('a', 'b')")
                if any(choice.value is None for choice in choices):
                    raise refused("IN (…, NULL) is never false; write x IN (…) OR x IS NULL")
                self.one_kind((part, *choices), "IN", inner_depth)
            case row.Missing(part):
                self.kind(part, inner_depth)
            case row.Likeness(part, pattern):
                self.all("text", (part,), "LIKE", inner_depth)
                _check_text(pattern)
            case row.Case(branches, otherwise):
                if not branches:
                    raise refused("CASE needs at least one WHEN … THEN …")
                self.all(
                    "truth", tuple(condition for condition, _ in branches), "WHEN", inner_depth
                )
                return self.one_kind(
                    (*(value for _, value in branches), otherwise), "CASE", inner_depth
                )
            case row.Coalesce(parts):
                return self.one_kind(parts, "COALESCE", inner_depth)
            case row.Function(name, arguments):
                return self.function(name, arguments, inner_depth)
            case row.Part(name, date):
                return self.all("date", (date,), name, inner_depth, "number")
            case row.Truncated(_, date):
                return self.all("date", (date,), "DATE_TRUNC", inner_depth, "date")
            case row.Cast(part, kind):
                if {self.kind(part, inner_depth), kind} == {"date", "number"}:
                    raise refused(f"a date is not a number; {DATED}")
                return kind
            case _:
                assert_never(expression)
        return "truth"

    def all(
        self, kind: Kind, parts: Sequence[Expression], name: str, depth: int, result: Kind = "truth"
    ) -> Kind:
        """The kind of the result, if all parts are of the given kind."""
        for part in parts:
            actual = self.kind(part, depth)
            if actual != kind:
                hint = DATED if (kind, actual) == ("number", "date") else _HINTS[kind]
                raise refused(f"{name.upper()} needs {_WORDS[kind]}, got {_WORDS[actual]}; {hint}")
        return result

    def one_kind(self, parts: Sequence[Expression], name: str, depth: int) -> Kind:
        if not parts:
            raise refused(f"{name} needs at least one argument, got none")
        first = self.kind(parts[0], depth)
        for part in parts[1:]:
            actual = self.kind(part, depth)
            if actual != first:
                raise refused(
                    f"{name} needs values of one kind, got {_WORDS[first]} and {_WORDS[actual]};"
                    " CAST changes a kind"
                )
        return first

    def function(self, name: str, arguments: Sequence[Expression], depth: int) -> Kind:
        if name == "substring":
            if len(arguments) != 3 or not (
                _is_whole(arguments[1], 1) and _is_whole(arguments[2], 0)
            ):
                raise refused(
                    "SUBSTRING needs a text and whole numbers, as in SUBSTRING(name, 1, 3)"
                )
            arguments = arguments[:1]
        elif name in ("least", "greatest"):
            if not arguments:
                raise refused(f"{name.upper()} needs at least one number")
        elif len(arguments) != 1:
            raise refused(f"{name.upper()} needs one argument, got {len(arguments)}")
        kind, result = _FUNCTIONS[name]
        return self.all(kind, arguments, name, depth, result)


def _constant(constant: row.Constant) -> Kind:
    match constant.value:
        case None:
            return constant.kind
        case Fraction() as number if (
            number and not _SMALLEST_NUMBER <= abs(number) <= LARGEST_NUMBER
        ):
            raise refused("a number must be 0 or have an absolute value between 1e-100 and 1e100")
        case str() as text:
            _check_text(text)
    kind = row.KINDS.get(type(constant.value), "date")
    if kind != constant.kind:
        raise refused(f"{quote(constant.value)} is {_WORDS[kind]}, not {_WORDS[constant.kind]}")
    return kind


def _check_text(text: str) -> None:
    if len(text) > LONGEST_LITERAL:
        raise refused(
            f"a text or pattern in a question may have {LONGEST_LITERAL} characters, got"
            f" {len(text):,}; shorten it"
        )
    if "\0" in text or not (
        text.isascii() or all(not "\ud800" <= character <= "\udfff" for character in text)
    ):
        raise refused("a text must not contain NUL characters or lone surrogates")


def _is_whole(expression: Expression, least: int) -> bool:
    match expression:
        case row.Constant(Fraction() as number, "number"):
            return number.denominator == 1 and least <= number <= LONGEST_TEXT
    return False


def refuse_alike(names: Sequence[str]) -> None:
    """Refuse columns with equal names, or with the name of an end of another column's interval."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise refused(f"two columns are called {quote(name)}; rename one of them with AS")
        for end in ("_low", "_high"):
            if f"{name}{end}" in names:
                raise refused(
                    f"{quote(name + end)} is the name of an interval end of {quote(name)}; rename"
                    " it with AS"
                )
