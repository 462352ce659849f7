"""What differs between engines' SQL: the seam between the row language and each of them.

A dialect gives trees for what engines write or compute differently. It promises the same value on every engine, and
that no row can raise an error: division, overflow, underflow, casts, dates. A tree that it is given may be used twice,
so it is a name, unless it says otherwise.

    types     double · text · moment (a timestamp without zone) · truth · integer (32 bits) · long (64) · wide (≥ 127)
    here      a named value of the row language: a double within ±10¹⁰⁰ or 0 and no NaN, a text, a moment
    column    a column of the source as it is, with the type that the source's schema describes
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeAlias

from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.engines.base import ColumnType
from discreet.engines.sql.trees import Tree, call, quoted, when, whole

SOURCE, KEYS, STORED = "discreet_rows", "discreet_keys", "discreet_stored"
"""The names that the source, the table of declared keys and rows that are read more than once have in a statement."""

LONGEST_TEXT = 2**14
"""The bytes of the longest text; a longer one is missing.

A function or a pattern costs time for each byte, so this bounds what one row can add to the time of a question. Engines
fail at some length: PostgreSQL's `btrim` at 128 MiB, `translate` at 256 MiB.
"""

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
"""The letters that have a case."""

Word: TypeAlias = Literal["double", "text", "moment", "truth", "integer", "long", "wide"]
"""Our names of types."""


class Dialect(Protocol):
    """One engine's way to write the row language."""

    @property
    def name(self) -> str:
        """What sqlglot calls it."""

    @property
    def short(self) -> frozenset[str]:
        """The source's types of signed integers of at most 64 bits, and of unsigned ones that fit these."""

    @property
    def doubles(self) -> frozenset[str]:
        """The source's types of doubles that may be clamped and scaled as they are."""

    @property
    def counts_nan(self) -> bool:
        """Whether NaN counts as the greatest number in a sum, to be taken out again, which is faster."""

    @property
    def sums(self) -> Word | None:
        """The type that a fact is cast to in a sum, so that the sum cannot overflow; None if it cannot anyway."""

    @property
    def materializes(self) -> bool:
        """Whether MATERIALIZED makes a named SELECT run once, however often it is read."""

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST."""

    def real(self, number: float) -> Tree:
        """A double that is read back as the same double."""

    def text(self, value: str) -> Tree:
        """A text that is read back as the same text."""

    def by_bytes(self, tree: Tree) -> Tree:
        """A text that compares by its bytes, whatever collation it has; the tree is used once."""

    def is_nan(self, here: Tree) -> Tree:
        """Whether a double is NaN; NULL for NULL."""

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """A double that is clamped to a grid's bounds, in steps of 2^exponent; the tree may be used twice."""

    def divided(self, left: Tree, right: Tree) -> Tree:
        """left / right, missing where right is 0; each is used once."""

    def floor(self, here: Tree) -> Tree:
        """The largest whole number not above a number."""

    def letters(self, here: Tree, case: Literal["lower", "upper"]) -> Tree:
        """A text with its letters A–Z, or a–z, in the other case."""

    def trim(self, tree: Tree) -> Tree:
        """A text without spaces at its ends; the tree is used once."""

    def length(self, tree: Tree) -> Tree:
        """The number of code points as a double; the tree is used once."""

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """A part of a text by doubles within 1 to 10⁶; each is used once."""

    def matches(self, here: Tree, pattern: str) -> Tree:
        """Whether a whole text matches a pattern that uses [], {}, (), |, ?, * and nothing else."""

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        r"""A text with each match of such a pattern replaced; \1 is its first group. The tree is used once."""

    def like(self, tree: Tree, pattern: str) -> Tree:
        """LIKE without an escape; the tree is used once."""

    def part(self, name: DatePart, here: Tree) -> Tree:
        """A part of a moment as a double."""

    def truncated(self, unit: str, here: Tree) -> Tree:
        """The beginning of a unit of a moment."""

    def day_text(self, here: Tree) -> Tree:
        """A moment as 2024-02-29."""

    def second_text(self, here: Tree) -> Tree:
        """A moment as 2024-02-29 23:59:59."""

    def number_of_text(self, here: Tree) -> Tree:
        """A text of plain decimals as a double; it was matched before."""

    def moment_of_text(self, here: Tree) -> Tree:
        """A text that looks like a date as a moment, missing if it is none; it was matched before."""

    def number_column(self, here: Tree, described: str) -> tuple[Tree, bool]:
        """A column as the nearest doubles, and whether they still need limits: NaN, infinite, tiny."""

    def text_column(self, here: Tree, described: str) -> Tree:
        """A column as texts of at most `LONGEST_TEXT` bytes that compare by their bytes; longer ones are missing."""

    def moment_column(self, here: Tree, described: str) -> Tree:
        """A column as moments in UTC, in the years 1 to 9999 at least; others may be missing, and raise nothing."""

    def named_unit(self, here: Tree, column: ColumnType) -> Tree:
        """Whether a column's value, if it is no text, names a unit: neither NULL nor NaN."""

    def microseconds(self, tree: Tree) -> Tree:
        """The microseconds since 1970 of a moment in the years 1 to 9999, in digits."""

    def edges_below(self, here: Tree, edges: Sequence[float]) -> Tree | None:
        """How many of many edges are not above a number; None where an ASOF join with the edges is better."""

    def keys(self, index: int, place: int, kind: str) -> Tree:
        """The table of declared keys with the columns k… and p… of a group, the place-th that needs it."""

    def text_keys(self, keys: list[str]) -> list[str | None]:
        """Declared keys as they can be given to the engine; None if no text there can be equal to one."""


def plain(value: datetime) -> str:
    """A moment as engines read it; one with a zone is taken in UTC."""
    return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat(" ")


def fitting(size: Tree, text: Tree) -> Tree:
    """A text whose size in bytes is within the limit, else missing."""
    return when([(exp.LTE(this=size, expression=whole(LONGEST_TEXT)), text)])


def letter_by_letter(here: Tree, case: Literal["lower", "upper"]) -> Tree:
    """The text with A–Z and a–z alone changed: `translate`, which every engine has."""
    old, new = (_UPPER, _LOWER) if case == "lower" else (_LOWER, _UPPER)
    return call("translate", here, quoted(old), quoted(new))
