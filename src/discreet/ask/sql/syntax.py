"""The syntax tree of a question, before the policy is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal as Choice
from typing import TypeAlias

from discreet.ask.expression import Kind

Type: TypeAlias = Kind | Choice["integer", "day"]
"""The type of a CAST: a kind, a whole number, or a date without a time."""


@dataclass(frozen=True, slots=True)
class Name:
    """A column, or an alias of SELECT; `exact` if in quotes, optionally with a table before it."""

    name: str
    exact: bool
    table: str | None


@dataclass(frozen=True, slots=True)
class Literal:
    value: Fraction | str | bool | None


@dataclass(frozen=True, slots=True)
class Case:
    """CASE, optionally with a subject that is compared with each condition."""

    subject: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Cast:
    part: Node
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the name of a function in capitals, or an operation as a sign or in lowercase. -x is
    0 - x.

    "not" and "is null" have one argument; "between" has x, low and high; "in" has x and its
    choices; "and" and "or" have two or more, none of which has the same name; "[]" is a list. Calls
    with words inside have plain names: count(DISTINCT x) is COUNT DISTINCT(x), count(*) FILTER
    (WHERE x) is COUNT_IF(x), and percentile_cont(p) WITHIN GROUP (ORDER BY x) is QUANTILE(x, p).
    """

    name: str
    arguments: tuple[Node, ...]


Node: TypeAlias = Name | Literal | Case | Cast | Call


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of SELECT, its name after AS, and its name without AS."""

    node: Node
    alias: str | None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """The clauses of a SELECT; each part of `order` has whether it is descending."""

    items: tuple[Item, ...]
    table: Name
    alias: str | None
    where: Node | None
    groups: tuple[Node, ...]
    having: Node | None
    order: tuple[tuple[Node, bool], ...]
    limit: int | None


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """A node and all nodes below it, each with its level from 1 on, without recursion."""
    todo: list[tuple[object, int]] = [(node, 1)]
    while todo:
        above, level = todo.pop()
        if isinstance(above, tuple):
            todo += [(part, level) for part in above]
        elif isinstance(above, Node):
            yield above, level
            todo += [(getattr(above, field), level + 1) for field in above.__slots__]
