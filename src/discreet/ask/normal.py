"""One value and one text for all spellings of an expression.

    a > b           b < a            (a constant stands on the right)
    NOT a = b       a <> b           and De Morgan's laws: NOT stands before IN, IS NULL, LIKE and columns only
    AND OR + *      parts flattened (AND, OR), without repeats (AND, OR), sorted
    IN              choices sorted, without repeats; one choice is =
    x = TRUE        x

Every rule holds in three-valued logic, and in doubles that are never NaN: x + y and y + x are the same double,
(x + y) + z and x + (y + z) are not, so sums are not flattened. Texts quote as SQL does, and every operation has its
parentheses: two expressions with one text are one expression.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import assert_never

from discreet.ask.expression import (
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    Column,
    Comparison,
    ComparisonSign,
    Constant,
    Every,
    Expression,
    Function,
    Likeness,
    Membership,
    Missing,
    Negation,
    Part,
    Some,
    Truncated,
)
from discreet.ask.kinds import checked, kind_of

_MIRRORED: dict[ComparisonSign, ComparisonSign] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
INVERSE: dict[ComparisonSign, ComparisonSign] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

TRUE = Constant(True, "truth")
FALSE = Constant(False, "truth")


def canonical(expression: Expression) -> str:
    """The text of an expression, the same for all of its spellings.

    >>> canonical(Comparison("<=", Constant(Fraction(65), "number"), Column("age", "number")))
    '("age" >= 65)'
    """
    return text(normal(expression))


def normal(expression: Expression) -> Expression:
    """The expression in its one form; refused as by `checked`."""
    return _normal(checked(expression))


def decimal(number: Fraction) -> str:
    """A number as a decimal if it has one, else as a fraction.

    >>> decimal(Fraction(1, 8)), decimal(Fraction(-5)), decimal(Fraction(1, 3))
    ('0.125', '-5', '1/3')
    """
    odd, places = number.denominator, 0
    for prime in (2, 5):
        count = 0
        while odd % prime == 0:
            odd, count = odd // prime, count + 1
        places = max(places, count)
    if odd != 1 or not places:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _normal(expression: Expression) -> Expression:  # noqa: PLR0911, PLR0912 - one case for each class
    match expression:
        case Column() | Constant():
            return expression
        case Arithmetic(sign, left, right):
            left, right = _normal(left), _normal(right)
            if sign in ("+", "*") and text(right) < text(left):
                left, right = right, left
            return Arithmetic(sign, left, right)
        case Comparison(sign, left, right):
            return _comparison(sign, _normal(left), _normal(right))
        case Every(parts):
            return _joined(Every, parts, neutral=TRUE, final=FALSE)
        case Some(parts):
            return _joined(Some, parts, neutral=FALSE, final=TRUE)
        case Negation(part):
            return _negated(_normal(part))
        case Membership(part, choices):
            unique = {text(choice): choice for choice in choices}
            ordered = tuple(unique[key] for key in sorted(unique))
            if len(ordered) == 1:
                return _comparison("=", _normal(part), ordered[0])
            return Membership(_normal(part), ordered)
        case Missing(part):
            return Missing(_normal(part))
        case Likeness(part, pattern):
            return Likeness(_normal(part), pattern)
        case Case(branches, otherwise):
            cases = tuple((_normal(condition), _normal(value)) for condition, value in branches)
            return Case(cases, _normal(otherwise))
        case Coalesce(parts):
            flat = tuple(dict.fromkeys(inner for part in parts for inner in _inside(Coalesce, _normal(part))))
            there = tuple(part for part in flat if not (isinstance(part, Constant) and part.value is None)) or flat
            return Coalesce(there) if len(there) > 1 else there[0]
        case Function(name, arguments):
            arguments = tuple(_normal(argument) for argument in arguments)
            if name in ("least", "greatest"):
                arguments = tuple(sorted(dict.fromkeys(arguments), key=text))
                if len(arguments) == 1:
                    return arguments[0]
            return Function(name, arguments)
        case Part(part, date):
            return Part(part, _normal(date))
        case Truncated(unit, date):
            return Truncated(unit, _normal(date))
        case Cast(part, kind):
            return _normal(part) if kind_of(part) == kind else Cast(_normal(part), kind)
    assert_never(expression)


def _comparison(sign: ComparisonSign, left: Expression, right: Expression) -> Expression:
    if isinstance(left, Constant) and not isinstance(right, Constant):
        sign, left, right = _MIRRORED[sign], right, left
    elif isinstance(left, Constant) is isinstance(right, Constant):
        backward = sign in (">", ">=") or (sign in ("=", "<>") and text(right) < text(left))
        if backward:
            sign, left, right = _MIRRORED[sign], right, left
    if right in (TRUE, FALSE) and sign in ("=", "<>"):
        return left if (right == TRUE) is (sign == "=") else _negated(left)
    return Comparison(sign, left, right)


def _joined(
    join: type[Every] | type[Some], parts: tuple[Expression, ...], *, neutral: Constant, final: Constant
) -> Expression:
    flat = {text(inner): inner for part in parts for inner in _inside(join, _normal(part)) if inner != neutral}
    if text(final) in flat:
        return final
    ordered = tuple(flat[key] for key in sorted(flat))
    if len(ordered) > 1:
        return join(ordered)
    return ordered[0] if ordered else neutral


def _inside(join: type[Every] | type[Some] | type[Coalesce], part: Expression) -> tuple[Expression, ...]:
    return part.parts if isinstance(part, join) else (part,)


def _negated(part: Expression) -> Expression:
    """NOT of an expression that is normal already."""
    match part:
        case Constant(bool() as value, _):
            return FALSE if value else TRUE
        case Negation(inner):
            return inner
        case Comparison(sign, left, right):
            return _comparison(INVERSE[sign], left, right)
        case Every(parts):
            return _joined(Some, tuple(_negated(inner) for inner in parts), neutral=FALSE, final=TRUE)
        case Some(parts):
            return _joined(Every, tuple(_negated(inner) for inner in parts), neutral=TRUE, final=FALSE)
    return Negation(part)


def text(expression: Expression) -> str:  # noqa: PLR0911, PLR0912 - one case for each class
    """The expression as it stands, written like SQL with all parentheses."""
    match expression:
        case Column():
            return _column(expression)
        case Constant():
            return constant_text(expression)
        case Arithmetic(sign, left, right) | Comparison(sign, left, right):
            return f"({text(left)} {sign} {text(right)})"
        case Every(parts):
            return f"({' AND '.join(map(text, parts))})"
        case Some(parts):
            return f"({' OR '.join(map(text, parts))})"
        case Negation(part):
            return f"(NOT {text(part)})"
        case Membership(part, choices):
            return f"({text(part)} IN ({', '.join(map(text, choices))}))"
        case Missing(part):
            return f"({text(part)} IS NULL)"
        case Likeness(part, pattern):
            return f"({text(part)} LIKE {_literal(pattern)})"
        case Case(branches, otherwise):
            cases = " ".join(f"WHEN {text(condition)} THEN {text(value)}" for condition, value in branches)
            return f"(CASE {cases} ELSE {text(otherwise)} END)"
        case Coalesce(parts):
            return f"COALESCE({', '.join(map(text, parts))})"
        case Function(name, arguments):
            return f"{name.upper()}({', '.join(map(text, arguments))})"
        case Part(part, date):
            return f"{part.upper()}({text(date)})"
        case Truncated(unit, date):
            return f"DATE_TRUNC('{unit}', {text(date)})"
        case Cast(part, kind):
            return f"CAST({text(part)} AS {kind})"
    assert_never(expression)


def constant_text(constant: Constant) -> str:
    """A literal as SQL writes it; a missing one says its kind."""
    match constant.value:
        case None:
            return f"CAST(NULL AS {constant.kind})"
        case bool() as value:
            return "TRUE" if value else "FALSE"
        case Fraction() as number:
            return decimal(number)
        case datetime() as date:
            return f"TIMESTAMP '{date.isoformat(sep=' ')}'"
        case str() as value:
            return _literal(value)
    assert_never(constant.value)


def _column(column: Column) -> str:
    """A column's name, and how it is read where its source holds texts: "born"::date('%d/%m/%Y')."""
    if column.reading is None:
        return quoted(column.name)
    reading = column.reading
    plain = reading.decimal == "." and not reading.thousands
    terms = reading.formats or (() if plain else (reading.decimal, reading.thousands))
    written = f"({', '.join(map(_literal, terms))})" if terms else ""
    return f"{quoted(column.name)}::{'integer' if reading.whole else column.kind}{written}"


def quoted(name: str) -> str:
    """A column's name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
