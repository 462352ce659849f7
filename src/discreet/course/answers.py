"""Answers of students as floats: numbers of any type, functions, and formulas as text.

    number("6/5"), number(np.float64(1.2)), number("73.1 %")            1.2, 1.2, 0.731
    evaluate("√2/(αε)", {"alpha": 0.01, "epsilon": 0.1})                1414.2…

A text is read by a grammar of its own: numbers, the names of the question, + − · / ^, and a few
functions. Factors without a sign between them belong together: 1/2ε is 1/(2ε). A text can run no
code, so that a lecturer may check what others wrote.
"""

from __future__ import annotations

import math
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
_NAMES = {"ε": "epsilon", "eps": "epsilon", "α": "alpha", "λ": "scale"}
"""Other names of an argument."""

_SIGNS = str.maketrans({"−": "-", "·": "*", "×": "*", "²": "^2 ", "³": "^3 ", "ϵ": "ε"})
_LONGEST = 200
_TOKEN = re.compile(
    r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[α-ω]|[A-Za-z_][A-Za-z0-9_]*|[-+*/^(),√])"
)
"""A number, a Greek letter, a word or a sign."""


class Unreadable(Exception):
    """An answer that is not a number, or a formula that fails; its words say why."""


def number(answer: Any) -> float:
    """The answer as a finite float.

    >>> number(Fraction(6, 5)), number("1,414"), number("73.1 %"), number("20(ln(3143) + 1)") > 181
    (1.2, 1414.0, 0.731, True)
    """
    return evaluate(answer, {})


def evaluate(answer: Any, values: Mapping[str, int | Fraction]) -> float:
    """The value of an answer: a number, a function of `values` in order, or a text about them."""
    if isinstance(answer, str):
        return _finite(_of_text(answer, values))
    return _finite(_called(answer, values) if callable(answer) else answer)


def _called(function: Callable[..., Any], values: Mapping[str, int | Fraction]) -> Any:
    """The value of a function; those not whole are floats, or else fractions or decimals."""
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
    raise _failed(failure, values) from None


def _failed(failure: Exception | None, values: Mapping[str, int | Fraction]) -> Unreadable:
    at = " and ".join(f"{name} = {float(value):g}" for name, value in values.items())
    words = failure.args[-1] if failure and failure.args else ""
    return Unreadable(f"it fails{at and ' at '}{at} with {type(failure).__name__}: {words}")


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
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain.replace("**", "^").translate(_SIGNS))
    for name in re.findall(r"([^\W\d]{2,})\s*\^", plain):
        if name not in values and name not in _NAMES:
            raise Unreadable(
                f"it is not clear of what {name}^… takes a power; write * between the names"
            )
    try:
        value = _Formula(plain, values).value()
    except (SyntaxError, RecursionError):
        raise Unreadable(
            "that text is not a number or a formula; write it as in 'sqrt(2) * x / (3 + y)'"
        ) from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _failed(error, values) from None
    return value / 100 if percent else value


class _Formula:
    """A text as tokens, read from left to right; a SyntaxError where they are no formula."""

    def __init__(self, text: str, values: Mapping[str, int | Fraction]) -> None:
        self._values, self._tokens, start = values, list[str](), 0
        while text[start:].strip():
            token = _TOKEN.match(text, start)
            if token is None or len(text) > _LONGEST:
                raise SyntaxError
            self._tokens.append(token[1])
            start = token.end()
        self._tokens.append("")

    def value(self) -> float:
        found = self._sum()
        self._need("")
        return found

    def _sum(self) -> float:
        found = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            found = found + other if sign == "+" else found - other
        return found

    def _product(self) -> float:
        found = self._factors()
        while sign := self._take("*", "/"):
            other = self._factors()
            found = found * other if sign == "*" else found / other
        return found

    def _factors(self) -> float:
        """Factors without a sign between them, as in 2αε(n + 1); two numbers are none."""
        if self._take("-"):
            return -self._factors()
        found = self._power()
        while self._tokens[0].isidentifier() or self._tokens[0] in ("(", "√"):
            found *= self._power()
        return found

    def _power(self) -> float:
        base, found = self._tokens[0], self._atom()
        if not self._take("^"):
            return found
        closed, exponent = self._tokens[0] == "(", self._exponent()
        if base == "e" and not closed and self._tokens[0].isidentifier():
            raise Unreadable("it is not clear where the power of e ends; write e^(…)")
        return float(found**exponent)  # a TypeError for the root of a negative number

    def _exponent(self) -> float:
        return -self._exponent() if self._take("-") else self._power()

    def _atom(self) -> float:
        piece = self._tokens.pop(0)
        if piece == "(":
            found = self._sum()
            self._need(")")
            return found
        if piece == "√":
            return math.sqrt(self._atom())
        if piece in _FUNCTIONS:
            return float(_FUNCTIONS[piece](*self._arguments(piece)))
        if piece.isidentifier():
            return math.prod(_named(piece, self._values))
        if not piece or piece in "+-*/^),":
            raise SyntaxError
        return float(piece)

    def _arguments(self, function: str) -> list[float]:
        """What stands in parentheses; ln d is read without them."""
        if function in ("ln", "log") and self._tokens[0] != "(":
            return [self._power()]
        self._need("(")
        found = [self._sum()]
        while self._take(","):
            found.append(self._sum())
        self._need(")")
        return found

    def _take(self, *tokens: str) -> str:
        return self._tokens.pop(0) if self._tokens[0] in tokens else ""

    def _need(self, token: str) -> None:
        if self._tokens.pop(0) != token:
            raise SyntaxError


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
