"""The row language in PostgreSQL's SQL, from version 16 on.

PostgreSQL raises where others give NULL: on doubles that overflow or underflow, on casts, on integers beyond 64 bits.
So a value is limited before it is cast or scaled, within one CASE, whose branches are not looked at unless chosen.
Texts compare by their bytes (COLLATE "C") and hold no NUL; a moment with a zone is taken in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from sqlglot import exp

from discreet.ask.expression import DatePart
from discreet.engines.base import ColumnType
from discreet.engines.sql.dialect import KEYS, Word, fitting, letter_by_letter
from discreet.engines.sql.trees import Tree, between, call, cast, negated, paren, present, quoted, when, whole
from discreet.errors import InvalidParameter

_TYPES: dict[Word, str] = {
    "double": "DOUBLE PRECISION",
    "text": "TEXT",
    "moment": "TIMESTAMP",
    "truth": "BOOLEAN",
    "integer": "BIGINT",  # a sum of these is a numeric, which has no end
    "long": "BIGINT",
    "wide": "NUMERIC",
}
_ARRAYS = {
    "double": "DOUBLE PRECISION[]",
    "int64": "BIGINT[]",
    "string": "TEXT[]",
    "timestamp[us]": "TIMESTAMP[]",
    "bool": "BOOLEAN[]",
}
"""PostgreSQL's types for Arrow's, in which keys are declared."""


class PostgreSQLDialect:
    """See `dialect.Dialect`."""

    name: Final[str] = "postgres"
    short: Final[frozenset[str]] = frozenset(("smallint", "integer", "bigint"))
    doubles: Final[frozenset[str]] = frozenset(("double precision",))
    counts_nan: Final[bool] = False
    sums: Final[Word | None] = None
    materializes: Final[bool] = True

    def cast(self, tree: Tree, word: Word) -> Tree:
        """CAST, of values that have one."""
        return cast(tree, _TYPES[word], self.name)

    def real(self, number: float) -> Tree:
        """A double by its shortest digits."""
        return self.cast(exp.Literal.string(repr(number)), "double")

    def text(self, value: str) -> Tree:
        """A text, of that type: a bare literal would be cast when the statement is read."""
        if "\0" in value:
            raise InvalidParameter("a text must not hold NUL characters on PostgreSQL")
        return self.cast(quoted(value), "text")

    def by_bytes(self, tree: Tree) -> Tree:
        """The collation of bytes."""
        return exp.Collate(this=paren(tree), expression=exp.Identifier(this="C", quoted=True))

    def is_nan(self, here: Tree) -> Tree:
        """NaN is equal to itself here."""
        return exp.EQ(this=here, expression=self.real(float("nan")))

    def scaled(self, tree: Tree, exponent: int) -> Tree:
        """Multiplied by a power of two; what would be no 1,024th of a step is 0, since it might underflow."""
        if exponent == 0:
            return tree
        product = exp.Mul(this=paren(tree), expression=self.real(2.0**-exponent))
        if exponent < 0:
            return product
        tiny = exp.LT(this=call("abs", tree), expression=self.real(2.0 ** (exponent - 10)))
        return when([(tiny, self.real(0.0))], product)

    def divided(self, left: Tree, right: Tree) -> Tree:
        """With NULL in place of 0."""
        return exp.Div(this=paren(left), expression=call("nullif", right, self.real(0.0)), typed=True, safe=False)

    def floor(self, here: Tree) -> Tree:
        """A double."""
        return call("floor", here)

    def letters(self, here: Tree, case: Literal["lower", "upper"]) -> Tree:
        """Letter by letter."""
        return letter_by_letter(here, case)

    def trim(self, tree: Tree) -> Tree:
        """Of spaces alone."""
        return call("btrim", tree, quoted(" "))

    def length(self, tree: Tree) -> Tree:
        """In code points, since the server holds UTF-8."""
        return self.cast(call("char_length", tree), "double")

    def substring(self, tree: Tree, start: Tree, length: Tree) -> Tree:
        """In code points."""
        positions = (cast(call("floor", one), "INTEGER", self.name) for one in (start, length))
        return call("substr", tree, *positions)

    def matches(self, here: Tree, pattern: str) -> Tree:
        """^ and $ are the ends of the text, not of a line."""
        return exp.RegexpLike(this=self.by_bytes(here), expression=quoted(f"^({pattern})$"))

    def replaced(self, tree: Tree, pattern: str, template: str) -> Tree:
        """Every match."""
        return call("regexp_replace", self.by_bytes(tree), quoted(pattern), quoted(template), quoted("g"))

    def like(self, tree: Tree, pattern: str) -> Tree:
        """The escape is escaped."""
        return exp.Like(this=paren(tree), expression=self.text(pattern.replace("\\", "\\\\")))

    def part(self, name: DatePart, here: Tree) -> Tree:
        """Seconds are made whole."""
        return call("floor", call("date_part", quoted("isodow" if name == "weekday" else name), here))

    def truncated(self, unit: str, here: Tree) -> Tree:
        """A timestamp without zone."""
        return call("date_trunc", quoted(unit), here)

    def day_text(self, here: Tree) -> Tree:
        """2024-02-29."""
        return call("to_char", here, quoted("YYYY-MM-DD"))

    def second_text(self, here: Tree) -> Tree:
        """2024-02-29 23:59:59."""
        return call("to_char", here, quoted("YYYY-MM-DD HH24:MI:SS"))

    def number_of_text(self, here: Tree) -> Tree:
        """Between 10⁻¹³⁹ and 10¹³⁹ in size."""
        return self.cast(here, "double")

    def moment_of_text(self, here: Tree) -> Tree:
        """Missing for 30 February."""
        return when([(call("pg_input_is_valid", here, quoted("timestamp")), self.cast(here, "moment"))])

    def number_column(self, here: Tree, described: str) -> tuple[Tree, bool]:
        """A numeric may be NaN, infinite, or beyond the doubles: it is limited as it is."""
        if described in self.short:
            return self.cast(here, "double"), False
        if not described.startswith("numeric"):
            return here if described == "double precision" else self.cast(here, "double"), True
        size = call("abs", here)
        branches = [
            (between(size, _numeric("1e-200"), _numeric("1e200")), self.cast(here, "double")),
            (exp.LT(this=size, expression=_numeric("1e-200")), self.real(0.0)),
            (exp.EQ(this=here, expression=_numeric("NaN")), self.real(float("nan"))),
            (exp.GT(this=here, expression=_numeric("0")), self.real(1e200)),
            (exp.LT(this=here, expression=_numeric("0")), self.real(-1e200)),
        ]
        return when(branches), True

    def text_column(self, here: Tree, described: str) -> Tree:
        """Enumerations, UUIDs and padded texts are texts, too."""
        text = here if described == "text" else self.cast(here, "text")
        return self.by_bytes(fitting(call("octet_length", text), text))

    def moment_column(self, here: Tree, described: str) -> Tree:
        """In UTC; far dates are missing, for which there is no timestamp."""
        if described == "timestamp with time zone":
            return exp.AtTimeZone(this=here, zone=quoted("UTC"))
        if described == "date":
            first, last = (cast(quoted(day), "DATE", self.name) for day in ("0001-01-01", "9999-12-31"))
            return when([(between(here, first, last), self.cast(here, "moment"))])
        return here

    def named_unit(self, here: Tree, column: ColumnType) -> Tree:
        """Neither NULL nor NaN."""
        if column.kind != "number" or column.described in self.short:
            return present(here)
        if column.described.startswith("numeric"):
            return exp.NEQ(this=here, expression=_numeric("NaN"))
        return negated(self.is_nan(self.cast(here, "double")))

    def microseconds(self, tree: Tree) -> Tree:
        """A numeric until here."""
        seconds = exp.Extract(this=exp.Var(this="epoch"), expression=tree)
        return self.cast(call("trunc", exp.Mul(this=seconds, expression=whole(1_000_000))), "text")

    def edges_below(self, here: Tree, edges: Sequence[float]) -> Tree | None:
        """A search by halves in an array."""
        array = quoted("{" + ",".join(map(repr, edges)) + "}")
        return call("width_bucket", here, cast(array, _ARRAYS["double"], self.name))

    def keys(self, index: int, place: int, kind: str) -> Tree:
        """Arrays that come as parameters: nothing is written on the server."""
        values = [
            cast(exp.Parameter(this=exp.Literal.number(2 * place + more)), _ARRAYS[name], self.name)
            for more, name in ((1, kind), (2, "int64"))
        ]
        names = [exp.Identifier(this=f"{letter}{index}") for letter in "kp"]
        alias = exp.TableAlias(this=exp.Identifier(this=KEYS), columns=names)
        return exp.Table(this=call("unnest", *values), alias=alias)

    def text_keys(self, keys: list[str]) -> list[str | None]:
        """No text on the server holds NUL."""
        return [None if "\0" in key else key for key in keys]


POSTGRESQL = PostgreSQLDialect()


def _numeric(digits: str) -> Tree:
    return cast(exp.Literal.string(digits), "NUMERIC", POSTGRESQL.name)
