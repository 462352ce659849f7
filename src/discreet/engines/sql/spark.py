"""The row language in Spark's SQL, from version 4 on, with ANSI mode on or off, whatever the
session's time zone.

Moments are always TIMESTAMP_NTZ, because functions of TIMESTAMP depend on the session's zone. FLOOR
returns a BIGINT, so large doubles, which are whole, are not changed. A literal whose meaning
depends on a parser setting is written in hexadecimal. Sums are decimals, which neither overflow nor
raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sqlglot import exp

from discreet.ask.expression import DatePart, Schema
from discreet.engines.sql.dialect import KEYS, SOURCE, STANDARD, STORED, Dialect, Word
from discreet.engines.sql.trees import (
    Tree,
    alias,
    call,
    cast,
    column,
    count,
    joined,
    missing,
    outer,
    paren,
    quoted,
    select,
    subquery,
    table,
    when,
    whole,
)

_ODD = frozenset("'\"\\$`")
"""Characters to which the parser, or the substitution of variables, may give a special meaning."""


class SparkDialect(Dialect):
    name = "spark"
    types: ClassVar[Mapping[Word, str]] = {
        **STANDARD,
        "text": "STRING",
        "moment": "TIMESTAMP_NTZ",
        "wide": "DECIMAL(38, 0)",
    }
    short = frozenset(("tinyint", "smallint", "int", "bigint"))
    floating = frozenset(("double", "float"))
    collation = exp.Identifier(this="UTF8_BINARY")
    sums = "wide"
    materializes = False

    def text(self, value: str) -> Tree:
        literal = quoted(value)
        if (
            value.isprintable()
            and _ODD.isdisjoint(value)
            and not any(name in value for name in (SOURCE, KEYS, STORED))
        ):
            return literal
        return call(
            "decode", call("unhex", exp.Literal.string(value.encode().hex())), quoted("UTF-8")
        )

    def floor(self, value: Tree) -> Tree:
        """Every double from 2⁵³ on is whole."""
        small = exp.LT(this=call("abs", value), expression=self.real(2.0**53))
        return when([(small, self.cast(call("floor", value), "double"))], value)

    def matches(self, value: Tree, pattern: str) -> Tree:
        r"""With \A and \z, because $ also matches before a final line break."""
        return exp.RegexpLike(this=value, expression=self.text(rf"\A({pattern})\z"))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        """Spark writes groups with a dollar sign."""
        return call(
            "regexp_replace", tree, self.text(pattern), self.text(template.replace("\\", "$"))
        )

    def like(self, tree: Tree, pattern: str) -> Tree:
        r"""LIKE as a regular expression without backtracking: each part between % is matched where
        it occurs first.

        Spark's own LIKE uses .* for each % and tries all ways to divide the text among them. Here
        (?>.*?part) is tried once at each position, and the last part is searched from the end.
        """
        first, *parts = (
            "".join("." if c == "_" else rf"\x{{{ord(c):x}}}" for c in part)
            for part in pattern.split("%")
        )
        within, last = (
            ("".join(f"(?>.*?{part})" for part in parts[:-1]), ".*" + parts[-1])
            if parts
            else ("", "")
        )
        return exp.RegexpLike(
            this=paren(tree), expression=self.text(rf"(?s)\A{first}{within}{last}\z")
        )

    def part(self, name: DatePart, value: Tree) -> Tree:
        """Spark's WEEKDAY counts from Monday as 0."""
        if name == "days":
            return super().part(name, value)
        number = call("weekofyear" if name == "week" else name, value)
        return self.cast(
            exp.Add(this=number, expression=whole(1)) if name == "weekday" else number, "double"
        )

    def days(self, value: Tree) -> Tree:
        return call("unix_date", self.cast(value, "date"))

    def truncated(self, unit: str, value: Tree) -> Tree:
        """By dates, which have no zone."""
        day = self.cast(value, "date")
        if unit not in ("day", "hour"):
            return self.cast(call("trunc", day, quoted(unit)), "moment")
        midnight = self.cast(day, "moment")
        hours = call("make_dt_interval", whole(0), call("hour", value), whole(0), whole(0))
        return midnight if unit == "day" else exp.Add(this=midnight, expression=hours)

    def moment_text(self, value: Tree, *, seconds: bool) -> Tree:
        if seconds:
            return call("substr", self.cast(value, "text"), whole(1), whole(19))
        return self.cast(self.cast(value, "date"), "text")

    def text_column(self, value: Tree, described: str) -> Tree:
        """Spark's text columns may have a collation."""
        return self.readable(
            value if described == "string" else self.by_bytes(self.cast(value, "text"))
        )

    def valid(self, text: Tree) -> list[Tree]:
        """Spark casts any bytes to a text, and does not check the texts of files."""
        return [call("is_valid_utf8", text)]

    def moment_column(self, value: Tree, described: str) -> Tree:
        """By the microseconds since 1970; the cast of a date beyond 290,000 years would raise."""
        if described != "timestamp":
            return super().moment_column(value, described)
        microsecond = exp.Interval(this=exp.Literal.string("0.000001"), unit=exp.Var(this="SECOND"))
        micros = exp.Mul(this=call("unix_micros", value), expression=microsecond)
        return exp.Add(this=self.cast(quoted("1970-01-01 00:00:00"), "moment"), expression=micros)

    def microseconds(self, tree: Tree) -> Tree:
        """By dates and times of day, which have no zone."""
        days = self.cast(self.days(tree), "long")
        parts: list[Tree] = [exp.Mul(this=days, expression=whole(86_400_000_000))]
        for part, micros in (("hour", 3_600_000_000), ("minute", 60_000_000)):
            parts.append(
                exp.Mul(this=self.cast(call(part, tree), "long"), expression=whole(micros))
            )
        seconds = exp.Extract(this=exp.Var(this="SECOND"), expression=tree)
        parts.append(self.cast(exp.Mul(this=seconds, expression=whole(1_000_000)), "long"))
        return self.cast(joined(exp.Add, parts), "text")

    def edges_below(self, value: Tree, edges: Sequence[float]) -> Tree | None:
        """A binary search: from 0 on, powers of two are added, largest first, while the edge is not
        above the value.
        """
        array = cast(
            call("split", quoted(" ".join(map(repr, edges))), quoted(" ")),
            "ARRAY<DOUBLE>",
            self.name,
        )
        steps = call(
            "array", *(whole(2**power) for power in reversed(range(len(edges).bit_length())))
        )
        count, step = column("found"), column("step")
        reached = exp.Add(this=count, expression=step)
        # NULL beyond the last
        edge = call("get", array, exp.Sub(this=reached, expression=whole(1)))
        better = when([(exp.LTE(this=edge, expression=value), reached)], count)
        names = [exp.Identifier(this=name) for name in ("found", "step")]
        return call("aggregate", steps, whole(0), exp.Lambda(this=better, expressions=names))

    def layer(self, rows: exp.Select) -> exp.Select:
        """Values that seem to depend on the partition: others are written out in each filter above
        their layer.

        A condition on a sum of five terms would contain its first term 6⁵ times, as each layer uses
        a value six times.
        """
        somewhere = exp.GTE(this=call("spark_partition_id"), expression=whole(0))
        for named in rows.expressions:
            if isinstance(named, exp.Alias):
                named.set("this", when([(somewhere.copy(), named.this)]))
        return rows

    def detached(self, facts: exp.Select, keys: Sequence[str], others: Sequence[str]) -> exp.Select:
        """Keys that are generated: two rules for joins write out what other keys are made of, down
        to the source.
        """
        fields = [part for key in keys for part in (quoted(key), column(key))]
        generated = call("inline", call("array", call("named_struct", *fields)))
        return select([*others, generated], subquery(facts, "facts"))

    def version(self, columns: Schema, salt: str) -> str:
        """The SELECT of the number of rows, and of sums of parts of their hashes, which cannot
        overflow.

        The hash skips NULL, so that it is told which values are missing.
        """
        fields: list[Tree] = [self.text(salt)]
        for name, column_type in columns.items():
            value: Tree = exp.Column(this=outer(name))
            if column_type.kind == "text":
                value = self.text_column(value, column_type.described)
            elif (
                column_type.described == "timestamp"
            ):  # its parts would depend on the session's zone
                value = call("unix_micros", value)
            fields += [value, missing(value)]
        hashed = alias(call("xxhash64", *fields), "h")
        parts = [call("shiftrightunsigned", column("h"), whole(21 * part)) for part in range(3)]
        sums = [
            call("sum", exp.BitwiseAnd(this=part, expression=whole(2**22 - 1))) for part in parts
        ]
        return select([count(), *sums], subquery(select([hashed], table(SOURCE)), "hashes")).sql(
            self.name, copy=False
        )


SPARK = SparkDialect()
