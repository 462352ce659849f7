"""The row language: small, closed and total. Every expression has a value or is missing, for every row and engine.

    kinds       number (a double) · text · date (a timestamp without zone) · truth
    undefined   x/0, a cast that fails, a function of a missing value: missing; never an error
    numbers     every operand and result is limited to ±10¹⁰⁰, and below 10⁻¹⁰⁰ in size is 0: nothing overflows
    truth       three-valued, as in SQL; WHERE keeps a row only if its condition is true

    Arithmetic   x + y, of numbers                  Comparison   x < y, of two of one kind
    Every Some   AND, OR of two or more             Negation     NOT x
    Membership   x IN ('a', 'b'), of its kind       Missing      x IS NULL
    Likeness     x LIKE 'a%', without an escape     Case         CASE WHEN … THEN …, all values of one kind
    Coalesce     the first that is not missing      Function     ABS(x), LOWER(x) …
    Part         YEAR(x) …, as a number             Truncated    DATE_TRUNC('month', x): where that month began
    Cast         a value in another kind, missing where it has none there

None of them looks at another row, none is random. `ask.normal` brings two spellings of one expression to one value and
one text, `ask.kinds` checks it. What is not here cannot be asked: `ask.sql` and the engines know no other classes.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Literal as Choice

if TYPE_CHECKING:
    from discreet.ask.keys.column import Keys

Kind: TypeAlias = Choice["number", "text", "date", "truth"]

ArithmeticSign: TypeAlias = Choice["+", "-", "*", "/"]
ComparisonSign: TypeAlias = Choice["=", "<>", "<", "<=", ">", ">="]
NumberFunction: TypeAlias = Choice["abs", "floor", "ceil", "round", "least", "greatest"]
TextFunction: TypeAlias = Choice["lower", "upper", "trim", "length", "substring"]
DatePart: TypeAlias = Choice["year", "quarter", "month", "week", "day", "weekday", "hour", "minute", "second", "days"]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What each sign of a comparison does to two values."""

Unit: TypeAlias = Choice["year", "quarter", "month", "week", "day", "hour"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a cell of text is read, as the policy declares it: trim, casefold, missing, map, then its type, in order.

    What does not fit the type is missing. Without marks and formats it is CAST: plain decimals, ISO dates.
    """

    whole: bool = False
    """Whether a number that is not whole does not fit."""
    formats: tuple[str, ...] = ()
    """Formats of dates such as "%d/%m/%Y", tried in this order."""
    decimal: str = "."
    thousands: str = ""
    trim: bool = False
    """Whether blanks at both ends go (`ask.reading.BLANKS`)."""
    casefold: bool = False
    """Whether capitals become small letters (`ask.reading.CAPITALS`)."""
    missing: tuple[str, ...] = ()
    """Texts that are missing values, trimmed and folded as cells are."""
    map: tuple[tuple[str, str], ...] = ()
    """Texts, trimmed and folded as cells are, each with what stands in its place; sorted."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; one whose source holds texts has a reading, unless it is of texts as they are."""

    name: str
    kind: Kind
    reading: Reading | None = None
    children: Children | None = None
    """What it follows from, if the policy declares it as a parent: then its own cells are never read."""


@dataclass(frozen=True, slots=True)
class Children:
    """A column whose keys belong to those of another, as counties to states: a file of keys says to which."""

    of: Expression
    """Its value, as rows are grouped by it."""
    keys: Keys
    parents: Keys
    """For each key the one that it belongs to; what is none of the keys has none."""

    @property
    def digest(self) -> str:
        """Of what belongs to what."""
        return hashlib.sha256(f"{self.keys.digest} {self.parents.digest}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a number as an exact fraction, a text, a date, a truth value, or None for missing."""

    value: Fraction | str | datetime | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: ArithmeticSign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    sign: ComparisonSign
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    part: Expression


@dataclass(frozen=True, slots=True)
class Membership:
    part: Expression
    choices: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    part: Expression


@dataclass(frozen=True, slots=True)
class Likeness:
    part: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Case:
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Coalesce:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """`round` takes one number and is ⌊x + ½⌋; `substring` is (text, from ≥ 1, length ≥ 0), whole constants both."""

    name: NumberFunction | TextFunction
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Weekday is 1 (Monday) to 7, week is the ISO week; days are those since 1970-01-01, by the calendar."""

    part: DatePart
    date: Expression


@dataclass(frozen=True, slots=True)
class Truncated:
    unit: Unit
    date: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    part: Expression
    kind: Kind


Condition: TypeAlias = Comparison | Every | Some | Negation | Membership | Missing | Likeness
Operation: TypeAlias = Arithmetic | Case | Coalesce | Function | Part | Truncated | Cast | Condition
Expression: TypeAlias = Column | Constant | Operation
