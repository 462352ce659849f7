"""The differences between the SQL of the engines.

A dialect builds the trees that engines write or compute differently. It guarantees the same value
on every engine, and that no row raises an error: division, overflow, underflow, casts, dates. An
argument may be used twice, so it must be a name, unless the method says otherwise. This class has
what most engines do; a dialect overrides the rest.

    types     double · text · moment (a timestamp without zone) · date · truth · integer (32 bits) ·
              long (64) ·
              wide (≥ 127)
    value     a named value of the row language: a double within ±10¹⁰⁰ that is not NaN, a text, a
              moment
    column    a column of the source, with the type in the source's schema
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import pyarrow as pa
from sqlglot import exp

from discreet.ask.expression import ColumnType, DatePart, Schema
from discreet.ask.reading import CAPITALS, SMALL
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
"""The names in a statement: the source, declared keys, and rows that are read more than once."""

LONGEST_TEXT = 2**14
"""The bytes of the longest text; a longer one is missing.

A function or a pattern takes time for each byte, so this bounds the time that one row can add to a
question. Engines also fail at some length: PostgreSQL's `btrim` at 128 MiB, `translate` at 256 MiB.
"""

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"

Word: TypeAlias = Literal["double", "text", "moment", "date", "truth", "integer", "long", "wide"]
"""Our names of types."""
STANDARD: Mapping[Word, str] = {
    "double": "DOUBLE",
    "moment": "TIMESTAMP",
    "date": "DATE",
    "truth": "BOOLEAN",
    "integer": "INTEGER",
    "long": "BIGINT",
}
"""The names of types on most engines."""


class Dialect(Protocol):
    """The row language in the SQL of an engine."""

    name: ClassVar[str]
    """The name of the dialect in sqlglot."""
    types: ClassVar[Mapping[Word, str]]
    """The engine's names of types."""
    short: ClassVar[frozenset[str]]
    """The types of the source that are integers within the range of int64."""
    floating: ClassVar[frozenset[str]]
    """The types of the source that are floats, which may be NaN."""
    collation: ClassVar[exp.Identifier]
    """The collation of bytes."""
    bytes_of: ClassVar[str] = "octet_length"
    """The function that counts the bytes of a text."""
    sums: ClassVar[Word | None] = None
    """The type to which facts are cast so that their sum cannot overflow; None if not needed."""
    materializes: ClassVar[bool] = True
    """Whether a MATERIALIZED named SELECT runs once, however often it is read."""

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST, for values that can be cast."""
        return cast(tree, self.types[word], self.name)

    def try_cast(self, tree: Tree, word: Word) -> Tree:
        """TRY_CAST: missing if the value cannot be cast."""
        return cast(tree, self.types[word], self.name, exp.TryCast)

    def of_text(self, value: Tree, word: Literal["double", "moment"]) -> Tree:
        """A text with a decimal number as a double, or with an ISO date as a moment, or missing.

        The text matches the pattern: the size of a number is from 10⁻¹³⁹ to 10¹³⁹, but a date may
        be 30 February.
        """
        return self.try_cast(value, word)

    def real(self, number: float) -> Tree:
        """A double by its shortest digits, which are read back as the same double."""
        # one node: a tree of three is slow
        return exp.Var(this=f"CAST('{number!r}' AS {self.types['double']})")

    def text(self, value: str) -> Tree:
        """A text that is read back as the same text."""

    def by_bytes(self, tree: Tree) -> Tree:
        """A text that is compared by its bytes, whatever its collation; the tree is used once."""
        return exp.Collate(this=paren(tree), expression=self.collation)

    def is_nan(self, value: Tree) -> Tree:
        """Whether a double is NaN (equal to itself in SQL); NULL for NULL, unlike Spark's ISNAN."""
        return exp.EQ(this=value, expression=self.real(float("nan")))

    def is_double(self, described: str) -> bool:
        """Whether a column holds doubles, which can be clamped and scaled without a cast."""
        return described.upper() == self.types["double"]

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """A double within the bounds of a grid in steps of 2^exponent, exactly; the tree may be
        used twice.
        """
        return exp.Mul(this=paren(tree), expression=self.real(2.0**-exponent)) if exponent else tree

    def divided(self, left: Tree, right: Tree) -> Tree:
        """left / right, missing if right is 0; each is used once."""
        return exp.Div(
            this=paren(left),
            expression=call("nullif", right, self.real(0.0)),
            typed=True,
            safe=False,
        )

    def floor(self, value: Tree) -> Tree:
        """The floor of a number, as a double."""
        return call("floor", value)

    def letters(self, value: Tree, case: Literal["lower", "upper"]) -> Tree:
        """A text with only its letters A–Z, or a–z, in the other case."""
        old, new = (_UPPER, _LOWER) if case == "lower" else (_LOWER, _UPPER)
        return call("translate", value, quoted(old), quoted(new))

    def folded(self, value: Tree) -> Tree:
        """A text with only the capitals of `ask.reading` in lowercase."""
        translated = call("translate", value, self.text(CAPITALS), self.text(SMALL))
        ascii_only = exp.EQ(this=call(self.bytes_of, value), expression=call("char_length", value))
        return when([(ascii_only, self.letters(value, "lower"))], translated)

    def trim(self, tree: Tree, blanks: str) -> Tree:
        """A text without these characters at its ends; the tree is used once."""
        return call("btrim", tree, self.text(blanks))

    def length(self, tree: Tree) -> Tree:
        """The number of code points as a double; the tree is used once."""
        return self.cast(call("char_length", tree), "double")

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """A part of a text, in code points, by doubles from 1 to 10⁶; each is used once."""
        return call(
            "substr",
            tree,
            *(self.cast(call("floor", number), "integer") for number in (start, length)),
        )

    def matches(self, value: Tree, pattern: str) -> Tree:
        """Whether a whole text matches a pattern, which may use only [], {}, (), |, ? and *."""

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        r"""A text with each match of such a pattern replaced; \1 is its first group.

        The tree is used once.
        """
        return call("regexp_replace", tree, quoted(pattern), quoted(template), quoted("g"))

    def like(self, tree: Tree, pattern: str) -> Tree:
        """LIKE without an escape; the tree is used once."""

    def part(self, name: DatePart, value: Tree) -> Tree:
        """A part of a moment as a whole double."""
        if name == "days":
            return self.cast(self.days(value), "double")
        return call(
            "floor", call("date_part", quoted("isodow" if name == "weekday" else name), value)
        )

    def days(self, value: Tree) -> Tree:
        """The days from 1970-01-01 to a moment, whole; not by seconds, which a double rounds."""
        return exp.Sub(
            this=self.cast(value, "date"), expression=self.cast(quoted("1970-01-01"), "date")
        )

    def truncated(self, unit: str, value: Tree) -> Tree:
        """The beginning of the period of a moment."""
        return call("date_trunc", quoted(unit), value)

    def moment_text(self, value: Tree, *, seconds: bool) -> Tree:
        """A moment as 2024-02-29, or as 2024-02-29 23:59:59."""

    def entering(self, value: Tree, column: ColumnType) -> Tree:
        """A column in a statement: values on which the engine's functions fail are missing."""
        return self.text_column(value, column.described) if column.kind == "text" else value

    def number_column(self, value: Tree, described: str) -> tuple[Tree, bool]:
        """A column as the nearest doubles, and whether NaN, infinite or tiny ones need limits."""
        return (
            value if self.is_double(described) else self.cast(value, "double")
        ), described in self.floating

    def text_column(self, value: Tree, described: str) -> Tree:
        """A column as texts of valid UTF-8, at most `LONGEST_TEXT` bytes, compared by their bytes.

        Other texts are missing. Enumerations, UUIDs and padded texts are texts. Every text of the
        source passes through here, and all else sees only what this returns: engines have texts
        that are not valid UTF-8, on which their functions fail, or read beyond the end of the text.
        """
        text = value if described.upper() == self.types["text"] else self.cast(value, "text")
        return self.by_bytes(self.readable(text))

    def readable(self, text: Tree) -> Tree:
        """A text, missing if it is not valid UTF-8 or has more bytes than the limit."""
        short = exp.LTE(this=call(self.bytes_of, text), expression=whole(LONGEST_TEXT))
        return when([(joined(exp.And, [short, *self.valid(text)]), text)])

    def valid(self, text: Tree) -> list[Tree]:  # noqa: ARG002
        """The conditions under which a text is valid UTF-8; they raise nothing, and take as long
        for any text.

        None if the engine itself lets no other text in.
        """
        return []

    def moment_column(self, value: Tree, described: str) -> Tree:
        """A column as moments in UTC, at least in the years 1 to 9999.

        Others may be missing, and do not raise.
        """
        if described != "date":
            return value
        first, last = (self.cast(quoted(day), "date") for day in ("0001-01-01", "9999-12-31"))
        return when([(between(value, first, last), self.cast(value, "moment"))])

    def named_unit(self, value: Tree, column: ColumnType) -> Tree:
        """Whether a value of a column that is not text identifies a unit: neither NULL nor NaN."""
        floating = column.described in self.floating
        return negated(self.is_nan(self.cast(value, "double"))) if floating else present(value)

    def microseconds(self, tree: Tree) -> Tree:
        """The microseconds since 1970 of a moment in the years 1 to 9999, in digits."""

    def edges_below(self, value: Tree, edges: Sequence[float]) -> Tree | None:  # noqa: ARG002
        """How many edges are at or below a number; None if an ASOF join with them is better."""
        return None

    def keys(self, index: int, order: int, kind: str) -> Tree:  # noqa: ARG002 - one table has all keys
        """The declared keys with columns k… and p… of a group, the order-th that is joined."""
        return table(KEYS)

    def layer(self, rows: exp.Select) -> exp.Select:
        """A SELECT whose columns are computed once for each row, however often they are used."""
        return rows

    def detached(self, facts: exp.Select, keys: Sequence[str], others: Sequence[str]) -> exp.Select:  # noqa: ARG002
        """The same rows, whose keys can be joined however deep the layers below them are."""
        return facts

    def version(self, columns: Schema, salt: str) -> str:
        """The SELECT of the number of rows of the source, and of sums of a salted hash of these
        columns of each row.

        Integers alone, the same in any order. The hash mixes all columns of a row after the last
        one: else two rows could exchange a value, and the sums would stay the same.
        """

    def text_keys(self, keys: pa.Array) -> pa.Array:
        """Declared keys as the engine accepts them; NULL for keys that no text in it can equal."""
        return keys


def is_whole(value: Tree, dialect: Dialect) -> Tree:
    """Whether a double is an integer of absolute value below 2⁵³, up to which doubles are exact."""
    small = exp.LT(this=call("abs", value), expression=dialect.real(2.0**53))
    return joined(exp.And, [small, exp.EQ(this=value, expression=dialect.floor(value))])


def digits(value: Tree, dialect: Dialect) -> Tree:
    """The digits of a whole number of 64 bits."""
    return dialect.cast(dialect.cast(value, "long"), "text")
