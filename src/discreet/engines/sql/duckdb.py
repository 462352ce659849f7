"""The row language in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.engines.base import ColumnType
from discreet.engines.sql.dialect import KEYS, Word, fitting, letter_by_letter
from discreet.engines.sql.trees import Tree, between, call, cast, negated, paren, present, quoted, table, try_cast, when

_TYPES: dict[Word, str] = {
    "double": "DOUBLE",
    "text": "VARCHAR",
    "moment": "TIMESTAMP",
    "truth": "BOOLEAN",
    "integer": "INTEGER",
    "long": "BIGINT",
    "wide": "HUGEINT",
}


class DuckDBDialect:
    """See `dialect.Dialect`."""

    name: Final[str] = "duckdb"
    short: Final[frozenset[str]] = frozenset(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
    )
    doubles: Final[frozenset[str]] = frozenset(("DOUBLE",))
    counts_nan: Final[bool] = True
    sums: Final[Word | None] = None
    materializes: Final[bool] = True

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST."""
        return cast(tree, _TYPES[word], self.name)

    def real(self, number: float) -> Tree:
        """A double by its shortest digits."""
        return self.cast(exp.Literal.string(repr(number)), "double")

    def text(self, value: str) -> Tree:
        """A text; one with a zero byte is written in hexadecimal, since statements end there."""
        literal = quoted(value)
        return call("decode", call("unhex", exp.Literal.string(value.encode().hex()))) if "\0" in value else literal

    def by_bytes(self, tree: Tree) -> Tree:
        """The collation of bytes."""
        return exp.Collate(this=paren(tree), expression=exp.Identifier(this="c", quoted=True))

    def is_nan(self, here: Tree) -> Tree:
        """NULL for NULL."""
        return call("isnan", here)

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """Multiplied by a power of two, which is exact."""
        return exp.Mul(this=paren(tree), expression=self.real(2.0**-exponent)) if exponent else tree

    def divided(self, left: Tree, right: Tree) -> Tree:
        """With NULL in place of 0."""
        return exp.Div(this=paren(left), expression=call("nullif", right, self.real(0.0)), typed=False, safe=False)

    def floor(self, here: Tree) -> Tree:
        """A double."""
        return call("floor", here)

    def letters(self, here: Tree, case: Literal["lower", "upper"]) -> Tree:
        """DuckDB's own function where there are only ASCII letters, since `translate` is slow."""
        ascii_only = exp.EQ(this=call("strlen", here), expression=call("length", here))
        return when([(ascii_only, call(case, here))], letter_by_letter(here, case))

    def trim(self, tree: Tree) -> Tree:
        """Of spaces alone."""
        return call("trim", tree, quoted(" "))

    def length(self, tree: Tree) -> Tree:
        """In code points."""
        return self.cast(call("length", tree), "double")

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """In code points."""
        positions = (try_cast(call("floor", one), _TYPES["long"], self.name) for one in (start, length))
        return call("substring", tree, *positions)

    def matches(self, here: Tree, pattern: str) -> Tree:
        """Of the whole text."""
        return call("regexp_full_match", here, quoted(pattern))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        """Every match."""
        return call("regexp_replace", tree, quoted(pattern), quoted(template), quoted("g"))

    def like(self, tree: Tree, pattern: str) -> Tree:
        """DuckDB has no escape unless one is named."""
        return exp.Like(this=paren(tree), expression=self.text(pattern))

    def part(self, name: DatePart, here: Tree) -> Tree:
        """Seconds are whole."""
        return self.cast(call("date_part", quoted("isodow" if name == "weekday" else name), here), "double")

    def truncated(self, unit: str, here: Tree) -> Tree:
        """A timestamp."""
        return call("date_trunc", quoted(unit), here)

    def day_text(self, here: Tree) -> Tree:
        """2024-02-29."""
        return call("strftime", here, quoted("%Y-%m-%d"))

    def second_text(self, here: Tree) -> Tree:
        """2024-02-29 23:59:59."""
        return call("strftime", here, quoted("%Y-%m-%d %H:%M:%S"))

    def number_of_text(self, here: Tree) -> Tree:
        """The nearest double."""
        return try_cast(here, _TYPES["double"], self.name)

    def moment_of_text(self, here: Tree) -> Tree:
        """Missing for 30 February."""
        return try_cast(here, _TYPES["moment"], self.name)

    def number_column(self, here: Tree, described: str) -> tuple[Tree, bool]:
        """Integers of 128 bits are rounded once: those of 64 are shortened, the others read from their digits."""
        if described in {"DOUBLE", "FLOAT"}:
            return here if described == "DOUBLE" else self.cast(here, "double"), True
        if described not in {"HUGEINT", "UHUGEINT"} and not described.endswith(",0)"):
            return self.cast(here, "double"), False  # to the nearest: integers of 64 bits, and decimals with a scale
        short = try_cast(here, _TYPES["long"], self.name)
        digits = try_cast(self.cast(here, "text"), _TYPES["double"], self.name)
        return when([(present(short), self.cast(short, "double"))], digits), False

    def text_column(self, here: Tree, described: str) -> Tree:
        """Enumerations and UUIDs are texts, too."""
        text = here if described == "VARCHAR" else self.cast(here, "text")
        return self.by_bytes(fitting(call("strlen", text), text))

    def moment_column(self, here: Tree, described: str) -> Tree:
        """In UTC; far dates are missing, or infinite."""
        if described == "TIMESTAMP":
            return here
        if described == "TIMESTAMP WITH TIME ZONE":
            first, last = "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"
            ends = (cast(quoted(end), "TIMESTAMPTZ", self.name) for end in (first, last))
            return when([(between(here, *ends), call("make_timestamp", call("epoch_us", here)))])
        return try_cast(here, _TYPES["moment"], self.name)

    def named_unit(self, here: Tree, column: ColumnType) -> Tree:
        """Neither NULL nor NaN."""
        return negated(self.is_nan(here)) if column.described in {"DOUBLE", "FLOAT"} else present(here)

    def microseconds(self, tree: Tree) -> Tree:
        """An integer of 64 bits."""
        return self.cast(call("epoch_us", tree), "text")

    def edges_below(self, here: Tree, edges: Sequence[float]) -> Tree | None:  # noqa: ARG002 - a join finds them
        """DuckDB has an ASOF join."""
        return None

    def keys(self, index: int, place: int, kind: str) -> Tree:  # noqa: ARG002 - one Arrow table has all keys
        """An Arrow table."""
        return table(KEYS)

    def text_keys(self, keys: list[str]) -> list[str | None]:
        """Arrow holds every text."""
        return list(keys)


DUCKDB = DuckDBDialect()
