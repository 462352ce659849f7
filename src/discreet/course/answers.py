"""Answers of students as floats: numbers of any type, functions, and formulas as text.

    number("6/5"), number(np.float64(1.2)), number("73.1 %")            1.2, 1.2, 0.731
    evaluate("√2/(αε)", {"alpha": 0.01, "epsilon": 0.1})                1414.2…

A text is read by a grammar of its own: numbers, the names of the question, + − · / ^, and a few functions. It can run
no code, so that a lecturer may check what others wrote.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "log": math.log,
    "sinh": math.sinh,
    "min": min,
    "max": max,
}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_NAMES = {"ε": "epsilon", "eps": "epsilon", "α": "alpha", "λ": "scale"}
"""Other names of an argument; Python reads ϵ as ε."""

_SIGNS = str.maketrans({"−": "-", "·": "*", "×": "*", "^": "**", "²": "**2"})
_LONGEST = 200


class Unreadable(Exception):
    """An answer that is not a number, or a formula that fails; its words say why."""


def number(answer: Any) -> float:
    """The answer as a finite float.

    >>> number(Fraction(6, 5)), number("1,414"), number("73.1 %"), number("20(ln(3143) + 1)") > 181
    (1.2, 1414.0, 0.731, True)
    """
    return evaluate(answer, {})


def evaluate(answer: Any, values: Mapping[str, int | Fraction]) -> float:
    """The value of an answer (a number, a function of `values` in their order, or a text about them)."""
    if isinstance(answer, str):
        return _finite(_of_text(answer, values))
    return _finite(_called(answer, values) if callable(answer) else answer)


def _called(function: Callable[..., Any], values: Mapping[str, int | Fraction]) -> Any:
    """The value of a function; arguments that are not whole are floats, or else fractions or decimals."""
    failure: Exception | None = None
    for kind in (float, Fraction, _decimal):
        arguments = [value if isinstance(value, int) else kind(value) for value in values.values()]
        try:
            return function(*arguments)
        except TypeError as error:  # as from Fraction(1, 0.5)
            failure = failure or error
        except Exception as error:
            failure = error
            break
    at = " and ".join(f"{name} = {float(value):g}" for name, value in values.items())
    raise Unreadable(f"it fails at {at} with {type(failure).__name__}: {failure}") from None


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _finite(value: Any) -> float:
    """A number of any library, or an array of one, as a float."""
    try:
        item = value.item() if hasattr(value, "item") else value
        if not isinstance(item, bool | str | bytes | complex):
            found = float(item)
            if math.isfinite(found):
                return found
    except Exception:  # noqa: S110 - whatever is no number
        pass
    raise Unreadable("that is not a finite number")


def _of_text(text: str, values: Mapping[str, int | Fraction]) -> float:
    plain, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    plain = re.sub(r"√\s*([^\W\d]|[\d.]+)", r"sqrt(\1)", plain).replace("√", "sqrt").translate(_SIGNS)
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain)
    plain = re.sub(r"(?<=[\d)])\s*(?=[α-ω]|sqrt)", "*", plain)
    for name in re.findall(r"([^\W\d]{2,})\s*\*\*", plain):
        if name not in values and name not in _NAMES:
            raise Unreadable(f"it is not clear of what {name}^… takes a power; write * between the names")
    try:
        if len(plain) > _LONGEST:
            raise ValueError
        value = _value(ast.parse(plain.strip(), mode="eval").body, values)
        return value / 100 if percent else value
    except Unreadable:
        raise
    except (ArithmeticError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        raise Unreadable("that text is not a number or a formula; write it as in 'sqrt(2) * x / (3 + y)'") from None


def _value(node: ast.expr, values: Mapping[str, int | Fraction]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            found = _OPERATORS[type(op)](_value(left, values), _value(right, values))
            return float(found)  # a TypeError for the root of a negative number
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return float(_FUNCTIONS[name](*(_value(argument, values) for argument in arguments)))
        case ast.Call(func=factor, args=[inner], keywords=[]):  # 20(ln d + 1)
            return _value(factor, values) * _value(inner, values)
        case ast.Name(id=name):
            return math.prod(_named(name, values))
    raise ValueError


def _named(name: str, values: Mapping[str, int | Fraction]) -> Iterator[float]:
    """The value of a name, or those of its letters, as of αε."""
    known = _NAMES.get(name, name)
    if known in values:
        yield float(values[known])
    elif name == "e":
        yield math.e
    elif len(name) > 1 and all(_NAMES.get(letter, letter) in values for letter in name):
        yield from (float(values[_NAMES.get(letter, letter)]) for letter in name)
    else:
        names = " and ".join(values) if values else "numbers alone"
        raise Unreadable(f"the name {name!r} is not of this question; write it in {names}")
