"""What differs between engines' SQL: the seam between the row language and each of them.

A dialect gives trees for what engines write or compute differently. It promises the same value on every engine, and
that no row can raise an error: division, overflow, underflow, casts, dates. A tree that it is given may be used twice,
so it is a name, unless it says otherwise. What stands here is what most engines do; a dialect replaces the rest.

    types     double · text · moment (a timestamp without zone) · date · truth · integer (32 bits) · long (64) ·
              wide (≥ 127)
    here      a named value of the row language: a double within ±10¹⁰⁰ or 0 and no NaN, a text, a moment
    column    a column of the source as it is, with the type that the source's schema describes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa
from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.ask.reading import CAPITALS, SMALL
from discreet.engines.base import ColumnType
from discreet.engines.sql.trees import (
    Tree,
    between,
    call,
    cast,
    joined,
    negated,
    paren,
    present,
    quoted,
    table,
    when,
    whole,
)

SOURCE, KEYS, STORED = "discreet_rows", "discreet_keys", "discreet_stored"
"""The names that the source, the table of declared keys and rows that are read more than once have in a statement."""

LONGEST_TEXT = 2**14
"""The bytes of the longest text; a longer one is missing.

A function or a pattern costs time for each byte, so this bounds what one row can add to the time of a question. Engines
fail at some length: PostgreSQL's `btrim` at 128 MiB, `translate` at 256 MiB.
"""

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"

Word: TypeAlias = Literal["double", "text", "moment", "date", "truth", "integer", "long", "wide"]
"""Our names of types."""


class Dialect(Protocol):
    """One engine's way to write the row language."""

    name: ClassVar[str]
    """What sqlglot calls it."""
    types: ClassVar[Mapping[Word, str]]
    """The engine's names of types."""
    short: ClassVar[frozenset[str]]
    """The source's types of signed integers of at most 64 bits, and of unsigned ones that fit these."""
    floating: ClassVar[frozenset[str]]
    """The source's types of floats, which may be NaN."""
    collation: ClassVar[exp.Identifier]
    """The collation of bytes."""
    bytes_of: ClassVar[str] = "octet_length"
    """The function that counts the bytes of a text."""
    sums: ClassVar[Word | None] = None
    """The type that a fact is cast to in a sum, so that the sum cannot overflow; None if it cannot anyway."""
    materializes: ClassVar[bool] = True
    """Whether MATERIALIZED makes a named SELECT run once, however often it is read."""

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST, of values that have one."""
        return cast(tree, self.types[word], self.name)

    def try_cast(self, tree: Tree, word: Word) -> Tree:
        """TRY_CAST: missing where there is no such value."""
        return cast(tree, self.types[word], self.name, exp.TryCast)

    def of_text(self, here: Tree, word: Literal["double", "moment"]) -> Tree:
        """A text of plain decimals as a double, or of an ISO date as a moment, missing if there is none.

        It was matched before: a number is between 10⁻¹³⁹ and 10¹³⁹ in size, but a date may be 30 February.
        """
        return self.try_cast(here, word)

    def real(self, number: float) -> Tree:
        """A double that is read back as the same double: by its shortest digits."""
        return self.cast(exp.Literal.string(repr(number)), "double")

    def text(self, value: str) -> Tree:
        """A text that is read back as the same text."""

    def by_bytes(self, tree: Tree) -> Tree:
        """A text that compares by its bytes, whatever collation it has; the tree is used once."""
        return exp.Collate(this=paren(tree), expression=self.collation)

    def is_nan(self, here: Tree) -> Tree:
        """Whether a double is NaN, which is equal to itself; NULL for NULL, for which ISNAN of Spark would be false."""
        return exp.EQ(this=here, expression=self.real(float("nan")))

    def is_double(self, described: str) -> bool:
        """Whether a column is of doubles, which may be clamped and scaled as they are."""
        return described.upper() == self.types["double"]

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """A double that is clamped to a grid's bounds, in steps of 2^exponent, exactly; the tree may be used twice."""
        return exp.Mul(this=paren(tree), expression=self.real(2.0**-exponent)) if exponent else tree

    def divided(self, left: Tree, right: Tree) -> Tree:
        """left / right, missing where right is 0; each is used once."""
        return exp.Div(this=paren(left), expression=call("nullif", right, self.real(0.0)), typed=True, safe=False)

    def floor(self, here: Tree) -> Tree:
        """The largest whole number not above a number, as a double."""
        return call("floor", here)

    def letters(self, here: Tree, case: Literal["lower", "upper"]) -> Tree:
        """A text with its letters A–Z, or a–z, and no others, in the other case."""
        old, new = (_UPPER, _LOWER) if case == "lower" else (_LOWER, _UPPER)
        return call("translate", here, quoted(old), quoted(new))

    def folded(self, here: Tree) -> Tree:
        """A text with the capitals of `ask.reading`, and no others, as small letters."""
        other = call("translate", here, self.text(CAPITALS), self.text(SMALL))
        ascii_only = exp.EQ(this=call(self.bytes_of, here), expression=call("char_length", here))
        return when([(ascii_only, self.letters(here, "lower"))], other)

    def trim(self, tree: Tree, blanks: str) -> Tree:
        """A text without these characters at its ends; the tree is used once."""
        return call("btrim", tree, self.text(blanks))

    def length(self, tree: Tree) -> Tree:
        """The number of code points as a double; the tree is used once."""
        return self.cast(call("char_length", tree), "double")

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """A part of a text, in code points, by doubles within 1 to 10⁶; each is used once."""
        return call("substr", tree, *(self.cast(call("floor", number), "integer") for number in (start, length)))

    def matches(self, here: Tree, pattern: str) -> Tree:
        """Whether a whole text matches a pattern that uses [], {}, (), |, ?, * and nothing else."""

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        r"""A text with each match of such a pattern replaced; \1 is its first group. The tree is used once."""
        return call("regexp_replace", tree, quoted(pattern), quoted(template), quoted("g"))

    def like(self, tree: Tree, pattern: str) -> Tree:
        """LIKE without an escape; the tree is used once."""

    def part(self, name: DatePart, here: Tree) -> Tree:
        """A part of a moment as a whole double."""
        if name == "days":
            return self.cast(self.days(here), "double")
        return call("floor", call("date_part", quoted("isodow" if name == "weekday" else name), here))

    def days(self, here: Tree) -> Tree:
        """The days since 1970-01-01 of a moment, an integer: never by seconds, which a double rounds."""
        return exp.Sub(this=self.cast(here, "date"), expression=self.cast(quoted("1970-01-01"), "date"))

    def truncated(self, unit: str, here: Tree) -> Tree:
        """The beginning of a unit of a moment."""
        return call("date_trunc", quoted(unit), here)

    def moment_text(self, here: Tree, *, seconds: bool) -> Tree:
        """A moment as 2024-02-29, or as 2024-02-29 23:59:59."""

    def number_column(self, here: Tree, described: str) -> tuple[Tree, bool]:
        """A column as the nearest doubles, and whether they still need limits: NaN, infinite, tiny."""
        return here if self.is_double(described) else self.cast(here, "double"), described in self.floating

    def text_column(self, here: Tree, described: str) -> Tree:
        """A column as texts of at most `LONGEST_TEXT` bytes that compare by their bytes; longer ones are missing.

        Enumerations, UUIDs and padded texts are texts, too.
        """
        text = here if described.upper() == self.types["text"] else self.cast(here, "text")
        return self.by_bytes(self.fitting(text))

    def fitting(self, text: Tree) -> Tree:
        """A text whose size in bytes is within the limit, else missing."""
        return when([(exp.LTE(this=call(self.bytes_of, text), expression=whole(LONGEST_TEXT)), text)])

    def moment_column(self, here: Tree, described: str) -> Tree:
        """A column as moments in UTC, in the years 1 to 9999 at least; others may be missing, and raise nothing."""
        if described != "date":
            return here
        first, last = (self.cast(quoted(day), "date") for day in ("0001-01-01", "9999-12-31"))
        return when([(between(here, first, last), self.cast(here, "moment"))])

    def named_unit(self, here: Tree, column: ColumnType) -> Tree:
        """Whether a column's value, if it is no text, names a unit: neither NULL nor NaN."""
        floating = column.described in self.floating
        return negated(self.is_nan(self.cast(here, "double"))) if floating else present(here)

    def microseconds(self, tree: Tree) -> Tree:
        """The microseconds since 1970 of a moment in the years 1 to 9999, in digits."""

    def edges_below(self, here: Tree, edges: Sequence[float]) -> Tree | None:  # noqa: ARG002
        """How many of many edges are not above a number; None where an ASOF join with the edges is better."""
        return None

    def keys(self, index: int, place: int, kind: str) -> Tree:  # noqa: ARG002 - one table has all keys
        """The table of declared keys with the columns k… and p… of a group, the place-th that needs it."""
        return table(KEYS)

    def layer(self, rows: exp.Select) -> exp.Select:
        """A SELECT whose columns are computed once for each row, however often they are used above it."""
        return rows

    def text_keys(self, keys: pa.Array) -> pa.Array:
        """Declared keys as they can be given to the engine; NULL if no text there can be equal to one."""
        return keys


def is_whole(here: Tree, dialect: Dialect) -> Tree:
    """Whether a double is a whole number below 2⁵³ in size: from there on it is no longer one."""
    small = exp.LT(this=call("abs", here), expression=dialect.real(2.0**53))
    return joined(exp.And, [small, exp.EQ(this=here, expression=dialect.floor(here))])


def digits(here: Tree, dialect: Dialect) -> Tree:
    """A whole number of 64 bits as its digits."""
    return dialect.cast(dialect.cast(here, "long"), "text")
