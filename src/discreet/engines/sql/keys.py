"""The statement that counts the units of every key of a column, for keys that nobody could declare.

    source → (unit, key), each pair once → at most `limit` keys of each unit → how many units each key has

A key is a text, or a whole number below 2⁵³ in size; anything else, and NULL, is none. A unit with more keys than the
limit keeps those with the smallest MD5 of "unit|key": a function of its own rows and nothing else. Only units above
the limit are sorted. Where each row is a unit, it has one key at most.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from discreet.ask.expression import Column
from discreet.engines.base import Schema
from discreet.engines.sql.dialect import SOURCE, STORED, Dialect
from discreet.engines.sql.duckdb import DUCKDB
from discreet.engines.sql.expressions import Translator, is_whole
from discreet.engines.sql.limits import apart, digest, stored_before, within_limits
from discreet.engines.sql.trees import (
    Tree,
    alias,
    column,
    count,
    present,
    ranked,
    select,
    subquery,
    table,
    when,
    whole,
)
from discreet.engines.sql.units import unit_text, unit_value


class KeyStatement(NamedTuple):
    """A SELECT, and the one whose rows must be stored by the name STORED before, if it cannot do so itself."""

    sql: str
    stored: str | None


def units_of_keys(of: Column, unit: str | None, limit: int, schema: Schema, dialect: Dialect = DUCKDB) -> KeyStatement:
    """The SELECT of all keys of a column, each with its number of units."""
    translator = Translator(schema, dialect)
    term = translator.term(of)
    key = term.tree
    if of.kind == "number":
        here = translator.named(term).tree
        key = when([(is_whole(here, dialect), dialect.cast(here, "long"))])
    values = {"key": key}
    conditions: list[Tree] = []
    if unit is not None:
        values["unit"], there = unit_value(translator.source(unit), schema[unit], dialect)
        conditions.append(there)
    named = [alias(tree, name) for name, tree in values.items()]
    rows = select(named, subquery(translator.rows(SOURCE), "source"), where=conditions)
    there = present(column("key"))
    pairs = select(values, subquery(rows, "facts"), where=[there], distinct=unit is not None)
    stored = None
    if unit is not None:
        stored, pairs = pairs, _limited(pairs, limit, unit_text(column("unit"), schema[unit], dialect), dialect)
    counted = select(["key", alias(count(), "units")], subquery(pairs, "pairs"), by=["key"])
    return KeyStatement(counted.sql(dialect.name, copy=False), stored_before(stored, dialect))


def units_of(unit: str | None, schema: Schema, dialect: Dialect = DUCKDB) -> str:
    """The SELECT that counts units: rows, or the values of the unit column; rows without a unit are nobody's."""
    if unit is None:
        return select([count()], table(SOURCE)).sql(dialect.name, copy=False)
    translator = Translator(schema, dialect)
    value, there = unit_value(translator.source(unit), schema[unit], dialect)
    rows = subquery(translator.rows(SOURCE), "source")
    values = select([alias(value, "unit")], rows, where=[there], distinct=True)
    return select([count()], subquery(values, "units")).sql(dialect.name, copy=False)


def _limited(pairs: exp.Select, limit: int, unit: Tree, dialect: Dialect) -> exp.Select:
    """The pairs of which each unit has at most `limit`."""
    many = exp.GT(this=count(), expression=whole(limit))
    heavy = select(["unit"], table(STORED), by=["unit"], having=many)
    light, over = apart(["unit", "key"])
    hashed = digest([unit, dialect.cast(column("key"), "text")], dialect)
    rank = ranked("row_number", ["unit"], hashed, column("key"))
    numbered = select(["unit", "key", alias(rank, "rank")], subquery(over, "over_limit"))
    within = exp.LTE(this=column("rank"), expression=whole(limit))
    chosen = select(["unit", "key"], subquery(numbered, "ranked"), where=[within])
    return within_limits(["key"], light, chosen, pairs, heavy, dialect)
