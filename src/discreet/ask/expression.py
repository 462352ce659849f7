"""The row language: small, closed and total. Every expression has a value or is missing, in every
row and engine.

    kinds       number (a double) · text · date (a timestamp without zone) · truth
    undefined   x/0, a cast that fails, a function of a missing value: missing; never an error
    numbers     operands and results are clamped to ±10¹⁰⁰, and to 0 below 10⁻¹⁰⁰ in absolute value:
                nothing overflows
    truth       three-valued, as in SQL; WHERE keeps a row only if its condition is true

    Arithmetic  x + y, of numbers               Comparison  x < y, of values of one kind
    Every Some  AND, OR of two or more          Negation    NOT x
    Membership  x IN ('a', 'b'), of its kind    Missing     x IS NULL
    Likeness    x LIKE 'a%', without an escape  Case        CASE WHEN … THEN …, of one kind
    Coalesce    the first that is not missing   Function    ABS(x), LOWER(x) …
    Part        YEAR(x) …, as a number          Truncated   DATE_TRUNC('month', x): its first moment
    Cast        a value in another kind, missing if there is none

No expression depends on another row or on chance. `ask.normal` gives all spellings of an expression
the same value and text, and `ask.kinds` checks it. Nothing else can be asked: `ask.sql` and the
engines know no other classes.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Literal as Choice

if TYPE_CHECKING:
    from discreet.ask.keys.column import Keys

Kind: TypeAlias = Choice["number", "text", "date", "truth"]
KINDS: dict[type, Kind] = {str: "text", Fraction: "number", datetime: "date", bool: "truth"}
"""The kind of a value in Python."""

ArithmeticSign: TypeAlias = Choice["+", "-", "*", "/"]
ComparisonSign: TypeAlias = Choice["=", "<>", "<", "<=", ">", ">="]
NumberFunction: TypeAlias = Choice["abs", "floor", "ceil", "round", "least", "greatest"]
TextFunction: TypeAlias = Choice["lower", "upper", "trim", "length", "substring"]
DatePart: TypeAlias = Choice[
    "year", "quarter", "month", "week", "day", "weekday", "hour", "minute", "second", "days"
]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The function of each comparison sign."""

Unit: TypeAlias = Choice["year", "quarter", "month", "week", "day", "hour"]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column in a schema."""

    kind: Kind
    whole: bool
    """Whether its values are integers."""
    described: str
    """The name of the type in the source."""
    typed: bool = True
    """Whether the source has types; CSV and JSON lines have none."""


Schema: TypeAlias = Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True)
class Reading:
    """How the policy reads a cell of text: by trim, casefold, missing, map and then its type, in
    this order.

    A cell that does not fit the type is missing. Without marks and formats it is read as by CAST:
    decimals, ISO dates.
    """

    whole: bool = False
    """Whether only whole numbers fit."""
    formats: tuple[str, ...] = ()
    """Date formats such as "%d/%m/%Y", tried in this order."""
    decimal: str = "."
    thousands: str = ""
    trim: bool = False
    """Whether blanks at both ends are removed (`ask.reading.BLANKS`)."""
    casefold: bool = False
    """Whether capitals become lowercase (`ask.reading.CAPITALS`)."""
    missing: tuple[str, ...] = ()
    """Texts that mean a missing value, trimmed and folded like cells."""
    map: tuple[tuple[str, str], ...] = ()
    """Texts, trimmed and folded like cells, each with its replacement; sorted."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; text in the source has a reading, unless it is used as it is."""

    name: str
    kind: Kind
    reading: Reading | None = None
    children: Children | None = None
    """The child column, if this column is declared as a parent: its own cells are never read."""


@dataclass(frozen=True, slots=True)
class Children:
    """A column whose keys belong to keys of a parent column, as counties to states, by a file."""

    of: Expression
    """The expression by which rows are grouped."""
    keys: Keys
    parents: Keys
    """The parent of each key; other values have no parent."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.keys.digest} {self.parents.digest}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a number as an exact fraction, a text, a date, a truth value; None for missing."""

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
    """`round` takes one number and is ⌊x + ½⌋.

    `substring` takes (text, from ≥ 1, length ≥ 0), the last two whole constants.
    """

    name: NumberFunction | TextFunction
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Weekdays are 1 (Monday) to 7, weeks those of ISO, and days counted from 1970-01-01."""

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
