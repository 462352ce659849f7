"""The row language in Spark's SQL, from version 4 on, with ANSI mode on or off, whatever the session's time zone.

Moments are TIMESTAMP_NTZ throughout, since functions of TIMESTAMP look at the session's zone. FLOOR gives a BIGINT, so
large doubles, which are whole, are left alone. A literal that a setting of the parser could change is written in
hexadecimal. Sums are decimals: they neither wrap nor raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.engines.sql.dialect import KEYS, SOURCE, STORED, Dialect, Word
from discreet.engines.sql.trees import Tree, call, cast, column, joined, paren, quoted, when, whole

_ODD = frozenset("'\"\\$`")
"""What the parser, or the substitution of variables, may take for something else than itself."""


class SparkDialect(Dialect):
    name = "spark"
    types: ClassVar[Mapping[Word, str]] = {
        "double": "DOUBLE",
        "text": "STRING",
        "moment": "TIMESTAMP_NTZ",
        "date": "DATE",
        "truth": "BOOLEAN",
        "integer": "INT",
        "long": "BIGINT",
        "wide": "DECIMAL(38, 0)",
    }
    short = frozenset(("tinyint", "smallint", "int", "bigint"))
    floating = frozenset(("double", "float"))
    collation = exp.Identifier(this="UTF8_BINARY")
    sums = "wide"
    materializes = False

    def text(self, value: str) -> Tree:
        literal = quoted(value)
        if value.isprintable() and _ODD.isdisjoint(value) and not any(name in value for name in (SOURCE, KEYS, STORED)):
            return literal
        return call("decode", call("unhex", exp.Literal.string(value.encode().hex())), quoted("UTF-8"))

    def floor(self, here: Tree) -> Tree:
        """From 2⁵³ on every double is whole."""
        small = exp.LT(this=call("abs", here), expression=self.real(2.0**53))
        return when([(small, self.cast(call("floor", here), "double"))], here)

    def matches(self, here: Tree, pattern: str) -> Tree:
        r"""From \A to \z: $ would match before the end of a last line."""
        return exp.RegexpLike(this=here, expression=self.text(rf"\A({pattern})\z"))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        """Groups are written with a dollar sign."""
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
        if name == "days":
            return super().part(name, here)
        number = call("weekofyear" if name == "week" else name, here)
        return self.cast(exp.Add(this=number, expression=whole(1)) if name == "weekday" else number, "double")

    def days(self, here: Tree) -> Tree:
        return call("unix_date", self.cast(here, "date"))

    def truncated(self, unit: str, here: Tree) -> Tree:
        """By dates, which know no zone."""
        day = self.cast(here, "date")
        if unit not in ("day", "hour"):
            return self.cast(call("trunc", day, quoted(unit)), "moment")
        midnight = self.cast(day, "moment")
        hours = call("make_dt_interval", whole(0), call("hour", here), whole(0), whole(0))
        return midnight if unit == "day" else exp.Add(this=midnight, expression=hours)

    def moment_text(self, here: Tree, *, seconds: bool) -> Tree:
        if seconds:
            return call("substr", self.cast(here, "text"), whole(1), whole(19))
        return self.cast(self.cast(here, "date"), "text")

    def text_column(self, here: Tree, described: str) -> Tree:
        """Spark's columns of texts may have a collation."""
        return self.fitting(here if described == "string" else self.by_bytes(self.cast(here, "text")))

    def moment_column(self, here: Tree, described: str) -> Tree:
        """By the microseconds since 1970; the cast of a date would raise beyond 290,000 years."""
        if described != "timestamp":
            return super().moment_column(here, described)
        microsecond = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.Var(this="SECOND"))
        micros = exp.Mul(this=call("unix_micros", here), expression=microsecond)
        return exp.Add(this=self.cast(quoted("1970-01-01 00:00:00"), "moment"), expression=micros)

    def microseconds(self, tree: Tree) -> Tree:
        """By dates and times of day, which know no zone."""
        days = self.cast(self.days(tree), "long")
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


SPARK = SparkDialect()
