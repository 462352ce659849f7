"""The row language: small, closed and total. Every expression has a value or is missing, for every row and engine.

    kinds       number (a double) · text · date (a timestamp without zone) · truth
    undefined   x/0, a cast that fails, a function of a missing value: missing; never an error
    numbers     every operand and result is limited to ±10¹⁰⁰, and below 10⁻¹⁰⁰ in size is 0: nothing overflows
    truth       three-valued, as in SQL; WHERE keeps a row only if its condition is true

None of them looks at another row, none is random. Values are frozen; `ask.normal` brings two spellings of one
expression to one value and one text, `ask.kinds` checks it. What is not here cannot be asked: `ask.sql` and the
engines know these classes and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal as Choice
from typing import TypeAlias

Kind: TypeAlias = Choice["number", "text", "date", "truth"]

ArithmeticSign: TypeAlias = Choice["+", "-", "*", "/"]
ComparisonSign: TypeAlias = Choice["=", "<>", "<", "<=", ">", ">="]
NumberFunction: TypeAlias = Choice["abs", "floor", "ceil", "round", "least", "greatest"]
TextFunction: TypeAlias = Choice["lower", "upper", "trim", "length", "substring"]
DatePart: TypeAlias = Choice["year", "quarter", "month", "week", "day", "weekday", "hour", "minute", "second"]
Unit: TypeAlias = Choice["year", "quarter", "month", "week", "day", "hour"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text is read as a number, a date or a truth, as the policy declares it; what does not fit is missing.

    Without marks and formats it is CAST: plain decimals, ISO dates.
    """

    whole: bool = False
    """Whether a number that is not whole does not fit."""
    formats: tuple[str, ...] = ()
    """Formats of dates such as "%d/%m/%Y", tried in this order."""
    decimal: str = "."
    thousands: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; one whose source holds texts has a reading, unless it is of texts."""

    name: str
    kind: Kind
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a number as an exact fraction, a text, a date, a truth value, or None for missing."""

    value: Fraction | str | datetime | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """left sign right, of numbers."""

    sign: ArithmeticSign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """left sign right, of two of one kind."""

    sign: ComparisonSign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Every:
    """AND of two or more conditions."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """OR of two or more conditions."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Membership:
    """IN: whether a value is one of some constants of its kind."""

    part: Expression
    choices: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """IS NULL."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Likeness:
    """LIKE with a literal pattern: % is any text, _ any character; there is no escape."""

    part: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN condition THEN value … ELSE otherwise END; all values of one kind."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first that is not missing; all of one kind."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of numbers or texts: `round` takes one number and is ⌊x + ½⌋; `substring` is (text, from, length).

    In `substring`, from ≥ 1 and length ≥ 0 are whole constants.
    """

    name: NumberFunction | TextFunction
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a date as a number; weekday is 1 (Monday) to 7, week is the ISO week."""

    part: DatePart
    date: Expression


@dataclass(frozen=True, slots=True)
class Truncated:
    """The beginning of the year, quarter, month, week, day or hour of a date."""

    unit: Unit
    date: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """A value in another kind, missing where it has none there."""

    part: Expression
    kind: Kind


Expression: TypeAlias = (
    Column
    | Constant
    | Arithmetic
    | Comparison
    | Every
    | Some
    | Negation
    | Membership
    | Missing
    | Likeness
    | Case
    | Coalesce
    | Function
    | Part
    | Truncated
    | Cast
)
