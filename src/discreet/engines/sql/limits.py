"""Which rows of a unit count: at most max_rows of them, in at most max_groups groups.

A unit with more than max_rows rows keeps those with the smallest MD5 of "unit|group|facts|copy", where copy numbers
the rows of the unit that are equal in all of that; of more than max_groups groups, those with the smallest MD5 of
"unit|group", before its rows are counted. Both are functions of the unit's own rows and nothing else, the same on
every engine and in any order. Only units above a limit are sorted.

The rows are read three times: to find the units above a limit, to take the others, to rank those. A source may be
another one each time (a sample, a random number, a table that changes), so that it is read once, and its facts are
stored: whatever that scan gave, no unit passes its limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.engines.base import Request, Schema
from discreet.engines.sql.dialect import STORED, Dialect
from discreet.engines.sql.trees import (
    Tree,
    alias,
    beside,
    call,
    column,
    count,
    joined,
    quoted,
    ranked,
    select,
    subquery,
    table,
    union,
    whole,
    with_tables,
)
from discreet.engines.sql.units import unit_text

_MOST_ARGUMENTS = 90
"""PostgreSQL's functions take a hundred."""


def limited_facts(
    request: Request, schema: Schema, dialect: Dialect, names: Sequence[str], facts: exp.Select
) -> exp.Select:
    """The rows of `facts` that count, with their unit, their group's place, and the facts of these names."""
    columns = ["unit", "place", *names]
    over: list[Tree] = []
    if request.max_rows is not None:
        over.append(exp.GT(this=count(), expression=whole(request.max_rows)))
    if request.max_groups is not None:
        many = exp.GT(this=count(), expression=whole(request.max_groups))
        several = exp.NEQ(this=call("min", column("place")), expression=call("max", column("place")))
        over.append(joined(exp.And, [many, several]))
    heavy = select(["unit"], table(STORED), by=["unit"], having=joined(exp.Or, over))
    light, chosen = apart(columns)
    unit = unit_text(column("unit"), schema[request.unit or ""], dialect)
    place = dialect.cast(column("place"), "text")
    if request.max_groups is not None:
        rank = ranked("dense_rank", ["unit"], digest([unit, place], dialect), column("place"))
        chosen = _first(request.max_groups, rank, subquery(chosen, "heavy_rows"), columns)
    if request.max_rows is not None:
        copy = alias(ranked("row_number", columns, column("unit")), "copy")
        copies = select([*columns, copy], subquery(chosen, "chosen"))
        facts_text = [call("coalesce", dialect.cast(column(name), "text"), quoted("")) for name in names]
        hashed = digest([unit, place, *facts_text, dialect.cast(column("copy"), "text")], dialect)
        rank = ranked("row_number", ["unit"], hashed)
        chosen = _first(request.max_rows, rank, subquery(copies, "copies"), columns)
    return within_limits(columns, light, chosen, facts, heavy, dialect)


def apart(columns: Sequence[str]) -> tuple[exp.Select, exp.Select]:
    """The stored rows of units that are not in the table `heavy`, and of those that are."""
    names = [column(name, STORED) for name in columns]
    light, heavy = (
        select(names, table(STORED), joins=[beside(kind, "unit", STORED, "heavy")]) for kind in ("ANTI", "SEMI")
    )
    return light, heavy


def within_limits(
    columns: Sequence[str], light: Tree, chosen: Tree, rows: exp.Select, heavy: exp.Select, dialect: Dialect
) -> exp.Select:
    """The light rows and the chosen ones, with the tables that they are made of."""
    stored = {STORED: (rows, True)} if dialect.materializes else {}
    return with_tables(select(columns, subquery(union(light, chosen), "kept")), {**stored, "heavy": (heavy, None)})


def stored_before(rows: exp.Select | None, dialect: Dialect) -> str | None:
    """The SELECT whose rows must be stored by the name STORED before the statement, if it cannot do so itself."""
    return None if rows is None or dialect.materializes else rows.sql(dialect.name, copy=False)


def digest(parts: Sequence[Tree], dialect: Dialect) -> Tree:
    """The MD5 of texts with | between them, in hexadecimal."""
    while len(parts) > _MOST_ARGUMENTS:
        parts = [call("concat_ws", quoted("|"), *parts[:_MOST_ARGUMENTS]), *parts[_MOST_ARGUMENTS:]]
    return dialect.by_bytes(call("md5", call("concat_ws", quoted("|"), *parts)))


def _first(limit: int, rank: Tree, rows: Tree, columns: Sequence[str]) -> exp.Select:
    """The rows whose rank is within the limit."""
    within = exp.LTE(this=column("rank"), expression=whole(limit))
    return select(columns, subquery(select([*columns, alias(rank, "rank")], rows), "ranked"), where=[within])
