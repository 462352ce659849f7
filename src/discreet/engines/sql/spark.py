"""The row language in Spark's SQL, from version 4 on, with ANSI mode on or off, whatever the session's time zone.

Moments are TIMESTAMP_NTZ throughout, since functions of TIMESTAMP look at the session's zone. FLOOR gives a BIGINT, so
large doubles, which are whole, are left alone. A literal that a setting of the parser could change is written in
hexadecimal. Sums are decimals: they neither wrap nor raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.engines.base import ColumnType
from discreet.engines.sql.dialect import KEYS, SOURCE, STORED, Word, fitting, letter_by_letter
from discreet.engines.sql.trees import (
    Tree,
    between,
    call,
    cast,
    column,
    joined,
    negated,
    paren,
    present,
    quoted,
    table,
    try_cast,
    when,
    whole,
)

_TYPES: dict[Word, str] = {
    "double": "DOUBLE",
    "text": "STRING",
    "moment": "TIMESTAMP_NTZ",
    "truth": "BOOLEAN",
    "integer": "INT",
    "long": "BIGINT",
    "wide": "DECIMAL(38, 0)",
}
_ODD = frozenset("'\"\\$`")
"""What the parser, or the substitution of variables, may take for something else than itself."""
_PARTS: dict[DatePart, str] = {"week": "weekofyear"}


class SparkDialect:
    """See `dialect.Dialect`."""

    name: Final[str] = "spark"
    short: Final[frozenset[str]] = frozenset(("tinyint", "smallint", "int", "bigint"))
    doubles: Final[frozenset[str]] = frozenset(("double",))
    counts_nan: Final[bool] = False
    sums: Final[Word | None] = "wide"
    materializes: Final[bool] = False

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST, of values that have one."""
        return cast(tree, _TYPES[word], self.name)

    def real(self, number: float) -> Tree:
        """A double by its shortest digits."""
        return self.cast(exp.Literal.string(repr(number)), "double")

    def text(self, value: str) -> Tree:
        """A text; in hexadecimal where a setting could change what a literal means."""
        literal = quoted(value)
        if value.isprintable() and _ODD.isdisjoint(value) and not any(name in value for name in (SOURCE, KEYS, STORED)):
            return literal
        return call("decode", call("unhex", exp.Literal.string(value.encode().hex())), quoted("UTF-8"))

    def by_bytes(self, tree: Tree) -> Tree:
        """The collation of bytes."""
        return exp.Collate(this=paren(tree), expression=exp.Identifier(this="UTF8_BINARY"))

    def is_nan(self, here: Tree) -> Tree:
        """NaN is equal to itself here, and ISNAN would be false for NULL."""
        return exp.EQ(this=here, expression=self.real(float("nan")))

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """Multiplied by a power of two, which is exact."""
        return exp.Mul(this=paren(tree), expression=self.real(2.0**-exponent)) if exponent else tree

    def divided(self, left: Tree, right: Tree) -> Tree:
        """With NULL in place of 0."""
        return exp.Div(this=paren(left), expression=call("nullif", right, self.real(0.0)), typed=False, safe=True)

    def floor(self, here: Tree) -> Tree:
        """From 2⁵³ on every double is whole."""
        small = exp.LT(this=call("abs", here), expression=self.real(2.0**53))
        return when([(small, self.cast(call("floor", here), "double"))], here)

    def letters(self, here: Tree, case: Literal["lower", "upper"]) -> Tree:
        """Letter by letter."""
        return letter_by_letter(here, case)

    def trim(self, tree: Tree) -> Tree:
        """Of spaces alone."""
        return call("btrim", tree, quoted(" "))

    def length(self, tree: Tree) -> Tree:
        """In code points."""
        return self.cast(call("char_length", tree), "double")

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """In code points."""
        return call("substr", tree, *(self.cast(call("floor", one), "integer") for one in (start, length)))

    def matches(self, here: Tree, pattern: str) -> Tree:
        r"""From \A to \z: $ would match before the end of a last line."""
        return exp.RegexpLike(this=here, expression=self.text(rf"\A({pattern})\z"))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        """Every match; groups are written with a dollar sign."""
        return call("regexp_replace", tree, self.text(pattern), self.text(template.replace("\\", "$")))

    def like(self, tree: Tree, pattern: str) -> Tree:
        r"""By an expression that never goes back: each part between % is taken where it is found first, for good.

        Spark's own LIKE puts .* for each % and tries all ways to share the text out among them. Here (?>.*?part) is one
        try at each position, and the last part is looked for from the end.
        """
        first, *parts = (
            "".join("." if c == "_" else rf"\x{{{ord(c):x}}}" for c in part) for part in pattern.split("%")
        )
        within, last = ("".join(f"(?>.*?{part})" for part in parts[:-1]), ".*" + parts[-1]) if parts else ("", "")
        return exp.RegexpLike(this=paren(tree), expression=self.text(rf"(?s)\A{first}{within}{last}\z"))

    def part(self, name: DatePart, here: Tree) -> Tree:
        """WEEKDAY begins with Monday as 0."""
        found = call(_PARTS.get(name, name), here)
        return self.cast(exp.Add(this=found, expression=whole(1)) if name == "weekday" else found, "double")

    def truncated(self, unit: str, here: Tree) -> Tree:
        """By dates, which know no zone."""
        day = cast(here, "DATE", self.name)
        if unit in ("day", "hour"):
            midnight = self.cast(day, "moment")
            if unit == "day":
                return midnight
            hours = call("make_dt_interval", whole(0), call("hour", here), whole(0), whole(0))
            return exp.Add(this=midnight, expression=hours)
        return self.cast(call("trunc", day, quoted(unit)), "moment")

    def day_text(self, here: Tree) -> Tree:
        """2024-02-29."""
        return self.cast(cast(here, "DATE", self.name), "text")

    def second_text(self, here: Tree) -> Tree:
        """2024-02-29 23:59:59."""
        return call("substr", self.cast(here, "text"), whole(1), whole(19))

    def number_of_text(self, here: Tree) -> Tree:
        """The nearest double."""
        return try_cast(here, _TYPES["double"], self.name)

    def moment_of_text(self, here: Tree) -> Tree:
        """Missing for 30 February."""
        return try_cast(here, _TYPES["moment"], self.name)

    def number_column(self, here: Tree, described: str) -> tuple[Tree, bool]:
        """To the nearest: integers of 64 bits, and decimals."""
        return here if described == "double" else self.cast(here, "double"), described in {"double", "float"}

    def text_column(self, here: Tree, described: str) -> Tree:
        """Spark's columns of texts may have a collation."""
        text = here if described == "string" else self.by_bytes(self.cast(here, "text"))
        return fitting(call("octet_length", text), text)

    def moment_column(self, here: Tree, described: str) -> Tree:
        """In UTC, by the microseconds since 1970; far dates are missing."""
        if described == "timestamp":
            microsecond = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.Var(this="SECOND"))
            micros = exp.Mul(this=call("unix_micros", here), expression=microsecond)
            return exp.Add(this=self.cast(quoted("1970-01-01 00:00:00"), "moment"), expression=micros)
        if described == "date":  # the cast raises for dates beyond 290,000 years
            first, last = (cast(quoted(day), "DATE", self.name) for day in ("0001-01-01", "9999-12-31"))
            return when([(between(here, first, last), self.cast(here, "moment"))])
        return here

    def named_unit(self, here: Tree, column: ColumnType) -> Tree:
        """Neither NULL nor NaN."""
        floating = column.described in {"double", "float"}
        return negated(self.is_nan(self.cast(here, "double"))) if floating else present(here)

    def microseconds(self, tree: Tree) -> Tree:
        """By dates and times of day, which know no zone."""
        days = self.cast(call("unix_date", cast(tree, "DATE", self.name)), "long")
        parts: list[Tree] = [exp.Mul(this=days, expression=whole(86_400_000_000))]
        for part, micros in (("hour", 3_600_000_000), ("minute", 60_000_000)):
            parts.append(exp.Mul(this=self.cast(call(part, tree), "long"), expression=whole(micros)))
        seconds = exp.Extract(this=exp.Var(this="SECOND"), expression=tree)
        parts.append(self.cast(exp.Mul(this=seconds, expression=whole(1_000_000)), "long"))
        return self.cast(joined(exp.Add, parts), "text")

    def edges_below(self, here: Tree, edges: Sequence[float]) -> Tree | None:
        """A search by halves: from 0 on, the largest power of two is added that still leads to an edge not above."""
        array = cast(call("split", quoted(" ".join(map(repr, edges))), quoted(" ")), "ARRAY<DOUBLE>", self.name)
        steps = call("array", *(whole(2**power) for power in reversed(range(len(edges).bit_length()))))
        found, step = column("found"), column("step")
        reached = exp.Add(this=found, expression=step)
        edge = call("get", array, exp.Sub(this=reached, expression=whole(1)))  # NULL beyond the last
        better = when([(exp.LTE(this=edge, expression=here), reached)], found)
        names = [exp.Identifier(this=name) for name in ("found", "step")]
        return call("aggregate", steps, whole(0), exp.Lambda(this=better, expressions=names))

    def keys(self, index: int, place: int, kind: str) -> Tree:  # noqa: ARG002 - one DataFrame has all keys
        """A DataFrame that is given to the statement."""
        return table(KEYS)

    def text_keys(self, keys: list[str]) -> list[str | None]:
        """Arrow holds every text."""
        return list(keys)


SPARK = SparkDialect()
