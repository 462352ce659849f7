"""Units in SQL: what identifies a unit, which of its rows count, and how many units have each key.

At most max_rows of a unit's rows count, in at most max_groups groups. A unit with more than
max_rows rows keeps those with the smallest MD5 of "unit|group|facts|copy", where copy numbers rows
of the unit that are otherwise equal. A unit with more than max_groups groups first keeps the groups
with the smallest MD5 of "unit|group". In a discovery, a unit keeps the keys with the smallest MD5
of "unit|key". The choice depends on the unit's own rows alone, and is the same on every engine and
in any order. Only units above a limit are sorted.

The rows are used three times: to find the units above a limit, to take the rows of the other units,
and to rank the rows of these. A source may differ each time (a sample, a random number, a table
that changes), so it is read once and its facts are stored: whatever that scan returns, no unit
exceeds its limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sqlglot import exp

from discreet.ask.expression import Column, ColumnType, Schema
from discreet.engines.base import Request
from discreet.engines.sql import trees as sql
from discreet.engines.sql.dialect import SOURCE, STORED, Dialect, digits, is_whole
from discreet.engines.sql.expressions import FIRST, LAST, Translator, constant
from discreet.engines.sql.trees import Tree, call, column, quoted, select, subquery, table, whole

_MOST_ARGUMENTS = 90
"""PostgreSQL's functions take at most a hundred."""


def unit_value(value: Tree, column: ColumnType, dialect: Dialect) -> tuple[Tree, Tree]:
    """The value that identifies a unit, as in the source, and the condition that it exists."""
    return value, sql.present(value) if column.kind == "text" else dialect.named_unit(value, column)


def _unit_text(column: ColumnType, dialect: Dialect) -> Tree:
    """A text for the hash of a unit that is the same on every engine."""
    unit = sql.column("unit")
    match column.kind:
        case "text":
            return unit
        case "truth":
            return sql.when([(unit, quoted("1"))], quoted("0"))
        case "date":
            moment = dialect.moment_column(unit, column.described)
            inside = sql.between(moment, *(constant(end, "date", dialect) for end in (FIRST, LAST)))
            return sql.when([(inside, dialect.microseconds(moment))], quoted(""))
        case "number" if column.whole:
            return dialect.cast(unit, "text")
        case "number":  # the whole part, if it fits into 64 bits
            number, _ = dialect.number_column(unit, column.described)
            inside = exp.LT(this=call("abs", number), expression=dialect.real(2.0**63))
            return sql.when([(inside, digits(call("floor", number), dialect))], quoted(""))
        case _:
            assert_never(column.kind)


def limited_facts(
    request: Request,
    schema: Schema,
    dialect: Dialect,
    names: Sequence[str],
    facts: exp.Select,
    positions: Sequence[str] = (),
) -> exp.Select:
    """The rows of `facts` that count: unit, index of the group, and the facts of these names.

    `positions` are further columns, which follow from the index.
    """
    columns = ["unit", "place", *names, *positions]
    over: list[Tree] = []
    if request.max_rows is not None:
        over.append(exp.GT(this=sql.count(), expression=whole(request.max_rows)))
    if request.max_groups is not None:
        many = exp.GT(this=sql.count(), expression=whole(request.max_groups))
        several = exp.NEQ(
            this=call("min", column("place")), expression=call("max", column("place"))
        )
        over.append(sql.joined(exp.And, [many, several]))
    light, chosen = _apart(columns)
    unit = _unit_text(schema[request.unit or ""], dialect)
    group = dialect.cast(column("place"), "text")
    if request.max_groups is not None:
        rank = sql.ranked("dense_rank", ["unit"], _digest([unit, group], dialect), column("place"))
        chosen = _first(request.max_groups, rank, subquery(chosen, "heavy_rows"), columns)
    if request.max_rows is not None:
        copy = sql.alias(sql.ranked("row_number", columns, column("unit")), "copy")
        copies = select([*columns, copy], subquery(chosen, "chosen"))
        facts_text = [
            call("coalesce", dialect.cast(column(name), "text"), quoted("")) for name in names
        ]
        hashed = _digest([unit, group, *facts_text, dialect.cast(column("copy"), "text")], dialect)
        rank = sql.ranked("row_number", ["unit"], hashed)
        chosen = _first(request.max_rows, rank, subquery(copies, "copies"), columns)
    return _within_limits(columns, light, chosen, facts, sql.joined(exp.Or, over), dialect)


def units_of_keys(
    of: Column, unit: str | None, limit: int, schema: Schema, dialect: Dialect
) -> tuple[str, str | None]:
    """The SELECT of a column's keys with their numbers of units, and the one to store before it.

    A key is a text, or an integer of absolute value below 2⁵³; all other values, and NULL, are not
    keys. A unit has at most `limit` keys, or one if each row is a unit.
    """
    translator = Translator(schema, dialect)
    term = translator.term(of)
    key = term.tree
    if of.kind == "number":
        number = translator.named(term).tree
        key = sql.when([(is_whole(number, dialect), dialect.cast(number, "long"))])
    values = {"key": key}
    conditions: list[Tree] = []
    if unit is not None:
        values["unit"], is_unit = unit_value(translator.source(unit), schema[unit], dialect)
        conditions.append(is_unit)
    named = [sql.alias(tree, name) for name, tree in values.items()]
    rows = select(named, subquery(translator.rows(SOURCE), "source"), where=conditions)
    pairs = select(
        values,
        subquery(rows, "facts"),
        where=[sql.present(column("key"))],
        distinct=unit is not None,
    )
    stored = None
    if unit is not None:
        stored = pairs
        light, chosen = _apart(["unit", "key"])
        hashed = _digest(
            [_unit_text(schema[unit], dialect), dialect.cast(column("key"), "text")], dialect
        )
        rank = sql.ranked("row_number", ["unit"], hashed, column("key"))
        chosen = _first(limit, rank, subquery(chosen, "over_limit"), ["unit", "key"])
        many = exp.GT(this=sql.count(), expression=whole(limit))
        pairs = _within_limits(["key"], light, chosen, pairs, many, dialect)
    counted = select(["key", sql.alias(sql.count(), "units")], subquery(pairs, "pairs"), by=["key"])
    return counted.sql(dialect.name, copy=False), stored_before(stored, dialect)


def units_of(unit: str | None, schema: Schema, dialect: Dialect) -> str:
    """The SELECT that counts units: rows, or values of the unit column that are not missing."""
    if unit is None:
        return select([sql.count()], table(SOURCE)).sql(dialect.name, copy=False)
    translator = Translator(schema, dialect)
    value, is_unit = unit_value(translator.source(unit), schema[unit], dialect)
    rows = subquery(translator.rows(SOURCE), "source")
    values = select([sql.alias(value, "unit")], rows, where=[is_unit], distinct=True)
    return select([sql.count()], subquery(values, "units")).sql(dialect.name, copy=False)


def units_by_rows(unit: str, limits: Sequence[int], schema: Schema, dialect: Dialect) -> str:
    """The SELECT that counts units by the index of the smallest limit that holds their rows."""
    translator = Translator(schema, dialect)
    value, is_unit = unit_value(translator.source(unit), schema[unit], dialect)
    rows = select(
        [sql.alias(value, "unit")], subquery(translator.rows(SOURCE), "source"), where=[is_unit]
    )
    counted = select(["unit", sql.alias(sql.count(), "size")], subquery(rows, "facts"), by=["unit"])
    branches = [
        (exp.LTE(this=column("size"), expression=whole(limit)), whole(index))
        for index, limit in enumerate(limits)
    ]
    levels = select(
        [sql.alias(sql.when(branches, whole(len(limits))), "level")], subquery(counted, "units")
    )
    units = select(
        ["level", sql.alias(sql.count(), "units")], subquery(levels, "levels"), by=["level"]
    )
    return units.sql(dialect.name, copy=False)


def stored_before(rows: exp.Select | None, dialect: Dialect) -> str | None:
    """The SELECT to store as STORED before the statement, if the statement cannot do so itself."""
    return None if rows is None or dialect.materializes else rows.sql(dialect.name, copy=False)


def _apart(columns: Sequence[str]) -> tuple[exp.Select, exp.Select]:
    """The stored rows of units that are not in the table `heavy`, and of units that are."""
    names = [column(name, STORED) for name in columns]
    light, heavy = (
        select(names, table(STORED), joins=[sql.beside(kind, "unit", STORED, "heavy")])
        for kind in ("ANTI", "SEMI")
    )
    return light, heavy


def _within_limits(
    columns: Sequence[str],
    light: Tree,
    chosen: Tree,
    rows: exp.Select,
    over: Tree,
    dialect: Dialect,
) -> exp.Select:
    """The rows of light units and the chosen rows of heavy units, with the tables they use."""
    heavy = select(["unit"], table(STORED), by=["unit"], having=over)
    stored = {STORED: (rows, True)} if dialect.materializes else {}
    rows_within = select(columns, subquery(sql.union(light, chosen), "kept"))
    return sql.with_tables(rows_within, {**stored, "heavy": (heavy, None)})


def _digest(parts: Sequence[Tree], dialect: Dialect) -> Tree:
    """The MD5 of texts that are joined by |, in hexadecimal."""
    while len(parts) > _MOST_ARGUMENTS:
        parts = [call("concat_ws", quoted("|"), *parts[:_MOST_ARGUMENTS]), *parts[_MOST_ARGUMENTS:]]
    return dialect.by_bytes(call("md5", call("concat_ws", quoted("|"), *parts)))


def _first(limit: int, rank: Tree, rows: Tree, columns: Sequence[str]) -> exp.Select:
    within = exp.LTE(this=column("rank"), expression=whole(limit))
    return select(
        columns,
        subquery(select([*columns, sql.alias(rank, "rank")], rows), "ranked"),
        where=[within],
    )
