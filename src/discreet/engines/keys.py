"""The statement that counts the units of every key of a column, for keys that nobody could declare.

    source → (unit, key), each pair once → at most `limit` keys of each unit → how many units each key has

A key is a text, or a whole number below 2⁵³ in size; anything else, and NULL, is none. A unit with more keys than the
limit keeps those with the smallest MD5 of "unit|key": a function of its own rows and nothing else. Only units above
the limit are sorted. Where each row is a unit, it has one key at most.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.ask.expression import Column
from discreet.engines.base import Schema
from discreet.engines.statement import SOURCE
from discreet.engines.translate import Translator, unit_text, unit_value
from discreet.engines.trees import Tree, as_type, call, present, real, text, when, whole

_LARGEST = 2.0**53
"""From here on a double is no longer one whole number."""


def units_of_keys(column: str, unit: str | None, limit: int, schema: Schema) -> str:
    """The SELECT of all keys of a column, each with its number of units."""
    translator = Translator(schema)
    key = _key(translator.term(Column(column, schema[column].kind)).tree, schema[column].kind == "number")
    values = {"key": key}
    conditions: list[Tree] = []
    if unit is not None:
        values["unit"], there = unit_value(translator.source(unit), schema[unit])
        conditions.append(there)
    source = exp.select(*(exp.alias_(exp.column(name, quoted=True), new) for name, new in translator.columns.items()))
    rows = exp.select(*(exp.alias_(tree, name) for name, tree in values.items()))
    rows = rows.from_(source.from_(SOURCE).subquery("source")).where(*conditions)
    pairs = exp.select(*values).from_(rows.subquery("facts")).where(present(exp.column("key")))
    if unit is not None:
        pairs = _limited(pairs.distinct(), limit, unit_text(exp.column("unit"), schema[unit]))
    counted = exp.select("key", exp.alias_(exp.Count(this=exp.Star()), "units")).from_(pairs.subquery("pairs"))
    return counted.group_by("key").sql("duckdb")


def _key(here: Tree, number: bool) -> Tree:
    if not number:
        return here
    inside = exp.LT(this=call("abs", here.copy()), expression=real(_LARGEST))
    return when([(inside, as_type(here, "BIGINT"))])


def _limited(pairs: exp.Select, limit: int, unit: Tree) -> exp.Select:
    """The pairs of which each unit has at most `limit`."""
    many = exp.GT(this=exp.Count(this=exp.Star()), expression=whole(limit))
    heavy = exp.select("unit").from_("all_pairs").group_by("unit").having(many)
    light = exp.select("unit", "key").from_("all_pairs").join("heavy", join_type="anti", using=["unit"])
    over = exp.select("unit", "key").from_("all_pairs").join("heavy", join_type="semi", using=["unit"])
    digest = call("md5", call("concat_ws", text("|"), unit, as_type(exp.column("key"), "VARCHAR")))
    order = exp.Order(expressions=[exp.Ordered(this=tree) for tree in (digest, exp.column("key"))])
    rank = exp.Window(this=call("row_number"), partition_by=[exp.column("unit")], order=order)
    ranked = exp.select("unit", "key", exp.alias_(rank, "rank")).from_(over.subquery("over_limit"))
    within = exp.LTE(this=exp.column("rank"), expression=whole(limit))
    chosen = exp.select("unit", "key").from_(ranked.subquery("ranked")).where(within)
    both = exp.union(light, chosen, distinct=False)
    return exp.select("key").from_(both.subquery("kept")).with_("all_pairs", as_=pairs).with_("heavy", as_=heavy)
