"""The row language in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from sqlglot import exp

from discreet.ask.expression import ColumnType, Schema
from discreet.ask.reading import CAPITALS, SMALL
from discreet.engines.sql.dialect import SOURCE, STANDARD, Dialect, Word
from discreet.engines.sql.trees import (
    Tree,
    alias,
    between,
    call,
    cast,
    column,
    count,
    joined,
    outer,
    paren,
    present,
    quoted,
    select,
    subquery,
    table,
    when,
)

_AGREED = (
    r"[\x{0}-\x{12F}\x{131}-\x{17F}\x{300}-\x{4FF}"
    r"\x{2000}-\x{20FF}\x{3000}-\x{9FFF}\x{1F300}-\x{1FAFF}]*"
)
"""Latin, Greek and Cyrillic letters, punctuation, currencies, Chinese, Japanese, and emoji."""


class DuckDBDialect(Dialect):
    name = "duckdb"
    types: ClassVar[Mapping[Word, str]] = {**STANDARD, "text": "VARCHAR", "wide": "HUGEINT"}
    short = frozenset(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
    )
    floating = frozenset(("DOUBLE", "FLOAT"))
    collation = exp.Identifier(this="c", quoted=True)
    bytes_of = "strlen"

    def text(self, value: str) -> Tree:
        if "\0" not in value:
            return quoted(value)
        # a zero byte would end the statement
        return call("decode", call("unhex", exp.Literal.string(value.encode().hex())))

    def is_nan(self, value: Tree) -> Tree:
        return call("isnan", value)

    def letters(self, value: Tree, case: Literal["lower", "upper"]) -> Tree:
        """DuckDB's own function if there are only ASCII letters, because `translate` is slow."""
        ascii_only = exp.EQ(this=call("strlen", value), expression=call("length", value))
        return when([(ascii_only, call(case, value))], super().letters(value, case))

    def folded(self, value: Tree) -> Tree:
        """DuckDB's own function for characters on which it agrees; `translate` is slow."""
        agreed = call("regexp_full_match", value, quoted(_AGREED))
        return when(
            [(agreed, call("lower", value))],
            call("translate", value, quoted(CAPITALS), quoted(SMALL)),
        )

    def trim(self, tree: Tree, blanks: str) -> Tree:
        return call("trim", tree, quoted(blanks))

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        return call(
            "substring",
            tree,
            *(self.try_cast(call("floor", number), "long") for number in (start, length)),
        )

    def valid(self, text: Tree) -> list[Tree]:
        """DECODE omits the bytes that are not UTF-8, so only a valid text keeps its length.

        DuckDB does not check the texts of an Arrow table, nor all texts that are inserted from one.
        Neither function copies a valid text, and neither raises: TRY(DECODE(…)) runs 2,048 rows
        again, one by one, for a single error, which took 1.6 milliseconds. `lower` and `trim` fail
        with an internal error, which ends the connection.
        """
        kept = call("DECODE", call("ENCODE", text), quoted("ignore"))
        return [exp.EQ(this=call(self.bytes_of, kept), expression=call(self.bytes_of, text))]

    def matches(self, value: Tree, pattern: str) -> Tree:
        return call("regexp_full_match", value, quoted(pattern))

    def like(self, tree: Tree, pattern: str) -> Tree:
        """DuckDB has no escape character by default."""
        return exp.Like(this=paren(tree), expression=self.text(pattern))

    def moment_text(self, value: Tree, *, seconds: bool) -> Tree:
        return call("strftime", value, quoted("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d"))

    def entering(self, value: Tree, column: ColumnType) -> Tree:
        """DuckDB checks no decimal of files or Arrow; a cast of −2¹²⁷ ends the connection."""
        if not column.described.startswith("DECIMAL("):
            return super().entering(value, column)
        precision, _, scale = column.described[len("DECIMAL(") : -1].partition(",")
        whole_digits = int(precision) - int(scale)
        most = f"{'9' * whole_digits}.{'9' * int(scale)}"
        return when(
            [
                (
                    between(
                        value,
                        *(
                            cast(quoted(end), column.described, self.name)
                            for end in (f"-{most}", most)
                        ),
                    ),
                    value,
                )
            ]
        )

    def number_column(self, value: Tree, described: str) -> tuple[Tree, bool]:
        """Integers of 128 bits are rounded once: by 64 bits if they fit, otherwise by digits."""
        if described not in {"HUGEINT", "UHUGEINT"} and not described.endswith(",0)"):
            return super().number_column(value, described)
        short = self.try_cast(value, "long")
        digits = self.try_cast(self.cast(value, "text"), "double")
        return when([(present(short), self.cast(short, "double"))], digits), False

    def moment_column(self, value: Tree, described: str) -> Tree:
        if described == "TIMESTAMP":
            return value
        if described == "TIMESTAMP WITH TIME ZONE":
            first, last = "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"
            ends = (cast(quoted(end), "TIMESTAMPTZ", self.name) for end in (first, last))
            return when([(between(value, *ends), call("make_timestamp", call("epoch_us", value)))])
        return self.try_cast(value, "moment")

    def microseconds(self, tree: Tree) -> Tree:
        return self.cast(call("epoch_us", tree), "text")

    def version(self, columns: Schema, salt: str) -> str:
        """The SELECT of the number of rows, and of the sum and the XOR of their hashes.

        A row is hashed twice: DuckDB's hash of several columns is not mixed after the last one.
        """
        named = [exp.Column(this=outer(name)) for name in columns]
        hashed = alias(call("hash", call("hash", quoted(salt), *named)), "h")
        sums = [call("sum", self.cast(column("h"), "wide")), call("bit_xor", column("h"))]
        return select([count(), *sums], subquery(select([hashed], table(SOURCE)), "hashes")).sql(
            self.name, copy=False
        )


DUCKDB = DuckDBDialect()


def valid(column: str) -> str:
    """The condition, in a SELECT over files, under which a column is valid UTF-8."""
    return joined(exp.And, DUCKDB.valid(exp.Var(this=column))).sql(DUCKDB.name)
