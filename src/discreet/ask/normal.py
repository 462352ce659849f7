"""One value and one canonical text for all spellings of an expression.

    a > b           b < a            (constants are on the right)
    NOT a = b       a <> b           and De Morgan's laws: NOT is used before IN, IS NULL, LIKE and
                                     columns only
    AND OR + *      parts flattened (AND, OR), without repeats (AND, OR), sorted
    IN              choices sorted, without repeats; one choice is =
    x = TRUE        x

Every rule holds in three-valued logic, and for doubles that are never NaN: x + y and y + x are the
same double, (x + y) + z and x + (y + z) are not, so sums are not flattened. Texts are quoted as in
SQL, and every operation has parentheses: two expressions with the same text are the same
expression.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, assert_never, get_args

from discreet.ask import expression as row
from discreet.ask.expression import Comparison, ComparisonSign, Constant, Every, Expression, Some
from discreet.ask.kinds import kind_of

_MIRRORED: dict[ComparisonSign, ComparisonSign] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
INVERSE: dict[ComparisonSign, ComparisonSign] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}

_OPERATIONS = frozenset(get_args(row.Operation))

TRUE = Constant(True, "truth")
FALSE = Constant(False, "truth")


def canonical(expression: Expression) -> str:
    """The canonical text of an expression, the same for all of its spellings.

    >>> canonical(Comparison("<=", Constant(Fraction(65), "number"), row.Column("age", "number")))
    '("age" >= 65)'
    """
    form = normal(expression)
    lineage = {
        f"{quoted(name)} OF {text(children.of)} sha256 {children.digest}"
        for name, children in parents_in(form)
    }
    return " WITH ".join([text(form), *sorted(lineage)])


def parents_in(part: object) -> Iterator[tuple[str, row.Children]]:
    """The columns in an expression that are parents of other columns, with these children."""
    if isinstance(part, row.Column):
        if part.children is not None:
            yield part.name, part.children
            yield from parents_in(part.children.of)
    elif isinstance(part, tuple | list):
        for item in part:
            yield from parents_in(item)
    elif is_dataclass(part) and not isinstance(part, Constant):
        yield from parents_in([getattr(part, field.name) for field in fields(part)])


def normal(expression: Expression) -> Expression:
    """The normal form of an expression, which is checked by `kind_of`."""
    kind_of(expression)
    form: Expression = _normal(expression)
    return form


def decimal(number: Fraction) -> str:
    """A number as a decimal if that is exact, else as a fraction.

    >>> decimal(Fraction(1, 8)), decimal(Fraction(-5)), decimal(Fraction(1, 3))
    ('0.125', '-5', '1/3')
    """
    if number.denominator == 1:
        return str(number.numerator)
    places = number.denominator.bit_length()  # as many as a denominator 2^a·5^b can need
    if 10**places % number.denominator:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}".rstrip("0")


def _normal(expression: Any) -> Any:  # noqa: PLR0911 - one case for each rule
    """The normal form of an expression, or of each expression in a tuple; anything else does not
    change.
    """
    if isinstance(expression, tuple):
        return tuple(map(_normal, expression))
    if type(expression) not in _OPERATIONS:
        return expression
    match type(expression)(
        *(_normal(getattr(expression, field)) for field in expression.__slots__)
    ):
        case row.Arithmetic("+" | "*" as sign, left, right) if text(right) < text(left):
            return row.Arithmetic(sign, right, left)
        case Comparison(sign, left, right):
            return _comparison(sign, left, right)
        case Every(parts):
            return _joined(Every, parts)
        case Some(parts):
            return _joined(Some, parts)
        case row.Negation(part):
            return _negated(part)
        case row.Membership(part, choices):
            choices = _sorted(choices)
            return (
                row.Membership(part, choices)
                if len(choices) > 1
                else _comparison("=", part, *choices)
            )
        case row.Coalesce(parts):
            flat = dict.fromkeys(inner for part in parts for inner in _inside(row.Coalesce, part))
            parts = tuple(part for part in flat if not is_null(part)) or tuple(flat)
            return row.Coalesce(parts) if len(parts) > 1 else parts[0]
        case row.Function("least" | "greatest" as name, arguments):
            arguments = _sorted(arguments)
            return row.Function(name, arguments) if len(arguments) > 1 else arguments[0]
        case row.Cast(part, kind) if kind_of(part) == kind:
            return part
        case operation:
            return operation


def _sorted(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    unique = {text(part): part for part in parts}
    return tuple(unique[key] for key in sorted(unique))


def is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value is None


def _comparison(sign: ComparisonSign, left: Expression, right: Expression) -> Expression:
    if isinstance(left, Constant) is isinstance(right, Constant):
        is_backward = sign in (">", ">=") or (sign in ("=", "<>") and text(right) < text(left))
    else:
        is_backward = isinstance(left, Constant)
    if is_backward:
        sign, left, right = _MIRRORED[sign], right, left
    if right in (TRUE, FALSE) and sign in ("=", "<>"):
        return left if (right == TRUE) is (sign == "=") else _negated(left)
    return Comparison(sign, left, right)


def _joined(join: type[Every] | type[Some], parts: tuple[Expression, ...]) -> Expression:
    neutral, final = (TRUE, FALSE) if join is Every else (FALSE, TRUE)
    flat = _sorted(
        tuple(inner for part in parts for inner in _inside(join, part) if inner != neutral)
    )
    if final in flat:
        return final
    return join(flat) if len(flat) > 1 else flat[0] if flat else neutral


def _inside(
    join: type[Every] | type[Some] | type[row.Coalesce], part: Expression
) -> tuple[Expression, ...]:
    return part.parts if isinstance(part, join) else (part,)


def _negated(part: Expression) -> Expression:
    """NOT of an expression in normal form."""
    match part:
        case Constant(bool() as value, _):
            return FALSE if value else TRUE
        case row.Negation(inner):
            return inner
        case Comparison(sign, left, right):
            return _comparison(INVERSE[sign], left, right)
        case Every(parts) | Some(parts):
            return _joined(Some if isinstance(part, Every) else Every, tuple(map(_negated, parts)))
    return row.Negation(part)


def text(expression: Expression) -> str:  # noqa: PLR0911, PLR0912 - one case for each class
    """The expression in SQL, with all parentheses."""
    match expression:
        case row.Column(name, kind, reading):
            return f"{quoted(name)}{'' if reading is None else _reading(reading, kind)}"
        case Constant(value, kind):
            return _constant(value, kind)
        case row.Arithmetic(sign, left, right) | Comparison(sign, left, right):
            return f"({text(left)} {sign} {text(right)})"
        case Every(parts):
            return f"({_listed(parts, ' AND ')})"
        case Some(parts):
            return f"({_listed(parts, ' OR ')})"
        case row.Negation(part):
            return f"(NOT {text(part)})"
        case row.Membership(part, choices):
            return f"({text(part)} IN ({_listed(choices)}))"
        case row.Missing(part):
            return f"({text(part)} IS NULL)"
        case row.Likeness(part, pattern):
            return f"({text(part)} LIKE {_literal(pattern)})"
        case row.Case(branches, otherwise):
            cases = " ".join(
                f"WHEN {text(condition)} THEN {text(value)}" for condition, value in branches
            )
            return f"(CASE {cases} ELSE {text(otherwise)} END)"
        case row.Coalesce(parts):
            return f"COALESCE({_listed(parts)})"
        case row.Function(name, arguments):
            return f"{name.upper()}({_listed(arguments)})"
        case row.Part(name, date):
            return f"{name.upper()}({text(date)})"
        case row.Truncated(unit, date):
            return f"DATE_TRUNC('{unit}', {text(date)})"
        case row.Cast(part, kind):
            return f"CAST({text(part)} AS {kind})"
    assert_never(expression)


def _constant(value: object, kind: row.Kind) -> str:
    match value:
        case None:
            return f"CAST(NULL AS {kind})"
        case Fraction():
            return decimal(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case str():
            return _literal(value)
    return "TRUE" if value else "FALSE"


def _listed(parts: tuple[Expression, ...], between: str = ", ") -> str:
    return between.join(map(text, parts))


def _reading(reading: row.Reading, kind: row.Kind) -> str:
    """How a column of text is read: ::date('%d/%m/%Y') after its name.

    A map, which may be long, is represented by its hash.
    """
    plain = reading.decimal == "." and not reading.thousands
    terms = [
        *map(_literal, reading.formats or (() if plain else (reading.decimal, reading.thousands)))
    ]
    terms += [name for name in ("trim", "casefold") if getattr(reading, name)]
    if reading.missing:
        terms.append(f"missing [{', '.join(map(_literal, reading.missing))}]")
    if reading.map:
        terms.append(f"map {hashlib.sha256(repr(reading.map).encode()).hexdigest()[:32]}")
    written = f"({', '.join(terms)})" if terms else ""
    return f"::{'integer' if reading.whole else kind}{written}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
