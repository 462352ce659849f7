"""Small trees of SQL, built from our own values: names, literals, casts, calls, CASE, SELECT.

They are what every dialect shares. Nothing is parsed and nothing is copied: a tree may stand in several places of one
statement, which is only read when it is written out. A text is quoted by sqlglot and never pasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import TypeAlias

from sqlglot import exp

from discreet.errors import InvalidParameter

Tree: TypeAlias = exp.Expr

_ALONE = (exp.Column, exp.Cast, exp.Literal, exp.Anonymous, exp.Paren, exp.Case, exp.Boolean, exp.Null)
"""What needs no parentheses as an operand."""


def whole(number: int) -> Tree:
    return exp.Literal.number(number) if number >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-number)))


def quoted(value: str) -> Tree:
    """A text between quotes; what cannot be written in UTF-8 is refused."""
    if not encodable(value):
        raise InvalidParameter("a text must be made of Unicode characters, got a lone surrogate")
    return exp.Literal.string(value)


def encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def column(name: str, table: str | None = None) -> Tree:
    return exp.Column(this=exp.Identifier(this=name), table=exp.Identifier(this=table) if table else None)


def outer(name: str) -> exp.Identifier:
    """A name of the source, in quotes."""
    return exp.Identifier(this=name, quoted=True)


def alias(tree: Tree, name: str) -> Tree:
    return exp.Alias(this=tree, alias=exp.Identifier(this=name))


@cache
def _type(name: str, dialect: str) -> exp.DataType:
    return exp.DataType.build(name, dialect=dialect)


def cast(tree: Tree, name: str, dialect: str, operator: type[exp.Cast] = exp.Cast) -> Tree:
    """CAST, or TRY_CAST, to a type by the name that a dialect has for it."""
    more = {"safe": True} if operator is exp.TryCast else {}
    return operator(this=tree, to=_type(name, dialect).copy(), **more)


def when(branches: Sequence[tuple[Tree, Tree]], otherwise: Tree | None = None) -> Tree:
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in branches], default=otherwise)


def call(name: str, *arguments: Tree) -> Tree:
    return exp.Anonymous(this=name, expressions=list(arguments))


def paren(tree: Tree) -> Tree:
    """The tree in parentheses where it needs them as an operand."""
    return tree if isinstance(tree, _ALONE) else exp.Paren(this=tree)


def joined(operator: type[exp.Binary], trees: Iterable[Tree]) -> Tree:
    """A sum, an AND, an OR of trees."""
    return reduce(lambda left, right: operator(this=left, expression=right), map(paren, trees))


def negated(tree: Tree) -> Tree:
    return exp.Not(this=paren(tree))


def missing(tree: Tree) -> Tree:
    return exp.Is(this=paren(tree), expression=exp.Null())


def present(tree: Tree) -> Tree:
    return exp.Not(this=missing(tree))


def between(tree: Tree, low: Tree, high: Tree) -> Tree:
    return exp.Between(this=paren(tree), low=low, high=high)


def count(tree: Tree | None = None) -> Tree:
    return exp.Count(this=exp.Star() if tree is None else tree)


def total(tree: Tree) -> Tree:
    """SUM, with 0 for no values: NULL is left to what has gone wrong."""
    nothing = exp.EQ(this=count(tree), expression=whole(0))
    return when([(nothing, whole(0))], call("sum", tree))


def ranked(function: str, by: Iterable[str], *order: Tree) -> Tree:
    """A number among the rows that agree in some columns, in an order."""
    ordered = exp.Order(expressions=[exp.Ordered(this=tree) for tree in order]) if order else None
    return exp.Window(this=call(function), partition_by=[column(name) for name in by], order=ordered)


def table(name: str) -> Tree:
    return exp.Table(this=exp.Identifier(this=name))


def subquery(tree: Tree, name: str) -> Tree:
    return exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.Identifier(this=name)))


def select(
    columns: Iterable[Tree | str],
    source: Tree,
    *,
    joins: Sequence[exp.Join] = (),
    where: Sequence[Tree] = (),
    by: Sequence[str] = (),
    having: Tree | None = None,
    distinct: bool = False,
) -> exp.Select:
    """A SELECT; a text among its columns is the name of one."""
    return exp.Select(
        expressions=[column(tree) if isinstance(tree, str) else tree for tree in columns],
        from_=exp.From(this=source),
        joins=list(joins),
        where=exp.Where(this=joined(exp.And, where)) if where else None,
        group=exp.Group(expressions=[column(name) for name in by]) if by else None,
        having=exp.Having(this=having) if having is not None else None,
        distinct=exp.Distinct() if distinct else None,
    )


def beside(kind: str, name: str, this: str, other: str) -> exp.Join:
    """A SEMI or ANTI join of two named tables by a column that both have."""
    on = exp.EQ(this=column(name, this), expression=column(name, other))
    return exp.Join(this=table(other), kind=kind, on=on)


def with_tables(tree: exp.Select, tables: dict[str, tuple[Tree, bool | None]]) -> exp.Select:
    """A SELECT with named SELECTs before it, each to be run once or not, or as the engine likes."""
    named = [
        exp.CTE(this=rows, alias=exp.TableAlias(this=exp.Identifier(this=name)), materialized=once)
        for name, (rows, once) in tables.items()
    ]
    tree.set("with_", exp.With(expressions=named))
    return tree


def union(first: Tree, second: Tree) -> Tree:
    return exp.Union(this=first, expression=second, distinct=False)
