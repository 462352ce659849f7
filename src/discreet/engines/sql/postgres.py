"""The row language in PostgreSQL's SQL, from version 16 on.

PostgreSQL raises an error where others return NULL: on overflow and underflow of doubles, on casts,
on integers beyond 64 bits. So a value is limited before it is cast or scaled, within one CASE,
which evaluates only the chosen branch. Texts are compared by their bytes (COLLATE "C"); a moment
with a zone is converted to UTC. Texts are valid UTF-8 without NUL, because a database in UTF-8, and
no other is read, refuses all else when it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import ClassVar, Literal, assert_never

import pyarrow as pa
from pyarrow import compute
from sqlglot import exp

from discreet.ask.expression import ColumnType, Schema
from discreet.engines.sql.dialect import KEYS, SOURCE, STANDARD, Dialect, Word
from discreet.engines.sql.trees import (
    Tree,
    alias,
    between,
    call,
    cast,
    joined,
    outer,
    paren,
    quoted,
    select,
    subquery,
    table,
    when,
    whole,
)
from discreet.engines.sql.trees import column as sql_column
from discreet.errors import InvalidParameter

_ARRAYS = {
    "double": "DOUBLE PRECISION[]",
    "int64": "BIGINT[]",
    "string": "TEXT[]",
    "timestamp[us]": "TIMESTAMP[]",
    "bool": "BOOLEAN[]",
}
"""PostgreSQL's array types for the Arrow types of declared keys."""


class PostgreSQLDialect(Dialect):
    name = "postgres"
    types: ClassVar[Mapping[Word, str]] = {
        **STANDARD,
        "double": "DOUBLE PRECISION",
        "text": "TEXT",
        "integer": "BIGINT",  # a sum of BIGINT is a numeric, which cannot overflow
        "wide": "NUMERIC",
    }
    short = frozenset(("smallint", "integer", "bigint"))
    floating = frozenset(("double precision", "real"))
    collation = exp.Identifier(this="C", quoted=True)

    def of_text(self, value: Tree, word: Literal["double", "moment"]) -> Tree:
        result = self.cast(value, word)
        return (
            result
            if word == "double"
            else when([(call("pg_input_is_valid", value, quoted("timestamp")), result)])
        )

    def text(self, value: str) -> Tree:
        """A literal with the type TEXT: without a type it would be cast when the statement is
        parsed.
        """
        if "\0" in value:
            raise InvalidParameter("a text must not contain NUL characters on PostgreSQL")
        return self.cast(quoted(value), "text")

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """Values below 1/1,024 of a step become 0, because they might underflow."""
        product = super().scaled(tree, exponent)
        if exponent <= 0:
            return product
        tiny = exp.LT(this=call("abs", tree), expression=self.real(2.0 ** (exponent - 10)))
        return when([(tiny, self.real(0.0))], product)

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        return call(
            "substr",
            tree,
            *(cast(call("floor", number), "INTEGER", self.name) for number in (start, length)),
        )

    def matches(self, value: Tree, pattern: str) -> Tree:
        """^ and $ match the ends of the text, not of a line."""
        return exp.RegexpLike(this=self.by_bytes(value), expression=quoted(f"^({pattern})$"))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        return super().replaced(self.by_bytes(tree), pattern, template)

    def like(self, tree: Tree, pattern: str) -> Tree:
        return exp.Like(this=paren(tree), expression=self.text(pattern.replace("\\", "\\\\")))

    def moment_text(self, value: Tree, *, seconds: bool) -> Tree:
        return call("to_char", value, quoted("YYYY-MM-DD HH24:MI:SS" if seconds else "YYYY-MM-DD"))

    def number_column(self, value: Tree, described: str) -> tuple[Tree, bool]:
        """A numeric may be NaN, infinite, or beyond the range of doubles: it is limited before the
        cast.
        """
        if not described.startswith("numeric"):
            return super().number_column(value, described)
        size = call("abs", value)
        branches = [
            (
                between(size, self._numeric("1e-200"), self._numeric("1e200")),
                self.cast(value, "double"),
            ),
            (exp.LT(this=size, expression=self._numeric("1e-200")), self.real(0.0)),
            (exp.EQ(this=value, expression=self._numeric("NaN")), self.real(float("nan"))),
            (exp.GT(this=value, expression=self._numeric("0")), self.real(1e200)),
            (exp.LT(this=value, expression=self._numeric("0")), self.real(-1e200)),
        ]
        return when(branches), True

    def moment_column(self, value: Tree, described: str) -> Tree:
        if described == "timestamp with time zone":
            return exp.AtTimeZone(this=value, zone=quoted("UTC"))
        return super().moment_column(value, described)

    def named_unit(self, value: Tree, column: ColumnType) -> Tree:
        if column.described.startswith("numeric"):
            return exp.NEQ(this=value, expression=self._numeric("NaN"))
        return super().named_unit(value, column)

    def microseconds(self, tree: Tree) -> Tree:
        seconds = exp.Extract(this=exp.Var(this="epoch"), expression=tree)
        return self.cast(call("trunc", exp.Mul(this=seconds, expression=whole(1_000_000))), "text")

    def edges_below(self, value: Tree, edges: Sequence[float]) -> Tree | None:
        array = quoted("{" + ",".join(map(repr, edges)) + "}")
        return call("width_bucket", value, cast(array, _ARRAYS["double"], self.name))

    def keys(self, index: int, order: int, kind: str) -> Tree:
        """Arrays that are passed as parameters: nothing is written on the server."""
        values = [
            cast(
                exp.Parameter(this=exp.Literal.number(2 * order + number)), _ARRAYS[name], self.name
            )
            for number, name in ((1, kind), (2, "int64"))
        ]
        names = [exp.Identifier(this=f"{letter}{index}") for letter in "kp"]
        alias = exp.TableAlias(this=exp.Identifier(this=KEYS), columns=names)
        return exp.Table(this=call("unnest", *values), alias=alias)

    def layer(self, rows: exp.Select) -> exp.Select:
        """OFFSET 0 keeps the planner from writing each column out wherever it is used, ever longer
        layer by layer.
        """
        rows.set("offset", exp.Offset(expression=whole(0)))
        return rows

    def text_keys(self, keys: pa.Array) -> pa.Array:
        return compute.if_else(compute.match_substring(keys, "\0"), None, keys)

    def version(self, columns: Schema, salt: str) -> str:
        """The SELECT of the number of rows and of the sum of their hashes, each of which is mixed
        from its columns'.
        """
        seeds = (
            int.from_bytes(sha256(f"{salt}/{index}".encode()).digest()[:7]) for index in count()
        )
        hashes = [
            call("coalesce", self._hash(exp.Column(this=outer(name)), column, seed), whole(seed))
            for (name, column), seed in zip(columns.items(), seeds, strict=False)
        ]
        mixed = call(
            "hashint4extended",
            whole(len(hashes)),
            joined(exp.BitwiseXor, [whole(next(seeds)), *hashes]),
        )
        hashed = select([alias(mixed, "h")], table(SOURCE))
        sums = [exp.Count(this=exp.Star()), call("sum", sql_column("h"))]
        return select(sums, subquery(hashed, "hashes")).sql(self.name, copy=False)

    def _hash(self, value: Tree, column: ColumnType, seed: int) -> Tree:
        """A hash of 64 bits of a value; PostgreSQL's own of 64-bit integers and of moments have
        half as many.
        """
        described = column.described
        match column.kind:
            case "text":
                return call("hashtextextended", self.text_column(value, described), whole(seed))
            case "truth":
                return call("hashint4extended", cast(value, "INTEGER", self.name), whole(seed))
            case "date":
                moment = self.moment_column(value, described)
                seconds = exp.Extract(this=exp.Var(this="epoch"), expression=moment)
                return call("hash_numeric_extended", seconds, whole(seed))
            case "number" if described in self.short:
                return call("hashint4extended", whole(seed % 2**31), self.cast(value, "long"))
            case "number" if described in self.floating:
                return call("hashfloat8extended", self.cast(value, "double"), whole(seed))
            case "number":
                return call("hash_numeric_extended", value, whole(seed))
            case _:
                assert_never(column.kind)

    def _numeric(self, digits: str) -> Tree:
        return self.cast(exp.Literal.string(digits), "wide")


POSTGRESQL = PostgreSQLDialect()
