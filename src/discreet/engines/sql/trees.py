"""Small trees of SQL for all dialects: names, literals, casts, calls, CASE, SELECT.

Nothing is parsed or copied: a tree may occur several times in a statement, because trees are only
read when the statement is written. Texts are quoted by sqlglot, never pasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import TypeAlias

from sqlglot import exp

from discreet.errors import InvalidParameter

Tree: TypeAlias = exp.Expr

_ALONE = (
    exp.Column,
    exp.Cast,
    exp.Literal,
    exp.Anonymous,
    exp.Paren,
    exp.Case,
    exp.Boolean,
    exp.Null,
    exp.Var,
)
"""Trees that need no parentheses as operands."""


def whole(number: int) -> Tree:
    return (
        exp.Literal.number(number)
        if number >= 0
        else exp.Paren(this=exp.Neg(this=exp.Literal.number(-number)))
    )


def quoted(value: str) -> Tree:
    """A text in quotes; a text that is not valid Unicode is refused."""
    if not encodable(value):
        raise InvalidParameter("a text must consist of Unicode characters, got a lone surrogate")
    return exp.Literal.string(value)


def encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def column(name: str, table: str | None = None) -> Tree:
    return exp.Column(
        this=exp.Identifier(this=name), table=exp.Identifier(this=table) if table else None
    )


def outer(name: str) -> exp.Identifier:
    """A name in the source, in quotes."""
    return exp.Identifier(this=name, quoted=True)


def alias(tree: Tree, name: str) -> Tree:
    return exp.Alias(this=tree, alias=exp.Identifier(this=name))


@cache
def _type(name: str, dialect: str) -> exp.DataType:
    return exp.DataType.build(name, dialect=dialect)


def cast(tree: Tree, name: str, dialect: str, operator: type[exp.Cast] = exp.Cast) -> Tree:
    """CAST, or TRY_CAST, to a type by its name in a dialect."""
    options = {"safe": True} if operator is exp.TryCast else {}
    return operator(this=tree, to=_type(name, dialect).copy(), **options)


def when(branches: Sequence[tuple[Tree, Tree]], otherwise: Tree | None = None) -> Tree:
    return exp.Case(
        ifs=[exp.If(this=condition, true=value) for condition, value in branches], default=otherwise
    )


def call(name: str, *arguments: Tree) -> Tree:
    return exp.Anonymous(this=name, expressions=list(arguments))


def paren(tree: Tree) -> Tree:
    """The tree, in parentheses if it needs them as an operand."""
    return tree if isinstance(tree, _ALONE) else exp.Paren(this=tree)


def joined(operator: type[exp.Binary], trees: Iterable[Tree]) -> Tree:
    """Trees joined by an operator such as +, AND or OR."""
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
    """SUM, which is 0 for no values, so that NULL means an error."""
    nothing = exp.EQ(this=count(tree), expression=whole(0))
    return when([(nothing, whole(0))], call("sum", tree))


def ranked(function: str, by: Iterable[str], *order: Tree) -> Tree:
    """A window function over the rows that agree in some columns, in an order."""
    ordered = exp.Order(expressions=[exp.Ordered(this=tree) for tree in order]) if order else None
    return exp.Window(
        this=call(function), partition_by=[column(name) for name in by], order=ordered
    )


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
    """A SELECT; a text in `columns` is the name of a column."""
    return exp.Select(
        expressions=[column(tree) if isinstance(tree, str) else tree for tree in columns],
        from_=exp.From(this=source),
        joins=list(joins),
        where=exp.Where(this=joined(exp.And, where)) if where else None,
        group=exp.Group(expressions=[column(name) for name in by]) if by else None,
        having=exp.Having(this=having) if having is not None else None,
        distinct=exp.Distinct() if distinct else None,
    )


def beside(kind: str, name: str, left: str, right: str) -> exp.Join:
    """A SEMI or ANTI join of two named tables by a common column."""
    on = exp.EQ(this=column(name, left), expression=column(name, right))
    return exp.Join(this=table(right), kind=kind, on=on)


def with_tables(tree: exp.Select, tables: dict[str, tuple[Tree, bool | None]]) -> exp.Select:
    """A SELECT with named SELECTs before it, each materialized or not, or (None) as the engine
    decides.
    """
    named = [
        exp.CTE(this=rows, alias=exp.TableAlias(this=exp.Identifier(this=name)), materialized=once)
        for name, (rows, once) in tables.items()
    ]
    tree.set("with_", exp.With(expressions=named))
    return tree


def union(first: Tree, second: Tree) -> Tree:
    return exp.Union(this=first, expression=second, distinct=False)
