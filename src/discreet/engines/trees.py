"""Small trees of DuckDB's SQL, built from our own values: literals, casts, calls, CASE.

A literal is written so that DuckDB reads back the same value; a text is quoted by sqlglot and never pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from sqlglot import exp

from discreet.errors import InvalidParameter

Tree: TypeAlias = exp.Expr


def whole(number: int) -> Tree:
    """An integer."""
    return exp.Literal.number(number) if number >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-number)))


def real(number: float) -> Tree:
    """A double, written so that it is read back as the same double."""
    return as_type(exp.Literal.string(repr(number)), "DOUBLE")


def text(value: str) -> Tree:
    """A text; one with a zero byte is written in hexadecimal, since statements end there."""
    if not encodable(value):
        raise InvalidParameter("a text must be made of Unicode characters, got a lone surrogate")
    if "\0" in value:
        return call("decode", call("unhex", exp.Literal.string(value.encode().hex())))
    return exp.Literal.string(value)


def encodable(value: str) -> bool:
    """Whether a text can be written in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def moment(value: datetime) -> Tree:
    """A timestamp without zone; one with a zone is taken in UTC."""
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return as_type(exp.Literal.string(plain.isoformat(" ")), "TIMESTAMP")


def as_type(tree: Tree, name: str) -> Tree:
    """CAST."""
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(name, dialect="duckdb"))


def try_type(tree: Tree, name: str) -> Tree:
    """TRY_CAST."""
    return exp.TryCast(this=tree.copy(), to=exp.DataType.build(name, dialect="duckdb"))


def by_bytes(tree: Tree) -> Tree:
    """A text that compares by its bytes, whatever collation its column has."""
    return exp.Collate(this=tree.copy(), expression=exp.to_identifier("c", quoted=True))


def when(branches: Sequence[tuple[Tree, Tree]], otherwise: Tree | None = None) -> Tree:
    """CASE WHEN … THEN … ELSE … END."""
    ifs = [exp.If(this=condition, true=value.copy()) for condition, value in branches]
    return exp.Case(ifs=ifs, default=otherwise)


def call(name: str, *arguments: Tree) -> Tree:
    """A function of DuckDB."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def paren(tree: Tree) -> Tree:
    """The tree in parentheses where it needs them as an operand."""
    return tree if isinstance(tree, exp.Column | exp.Cast | exp.Literal | exp.Anonymous) else exp.Paren(this=tree)


def present(tree: Tree) -> Tree:
    """IS NOT NULL."""
    return exp.not_(exp.Is(this=paren(tree.copy()), expression=exp.null()))
