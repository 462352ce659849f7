"""Exact counts for a custodian who writes a policy: frequent values, and the rows of units.

They are never released: `cli.inspection` shows them to the custodian, who has the data.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.ask.expression import Column, Expression, Reading, Schema
from discreet.engines.sql import trees as sql
from discreet.engines.sql.dialect import SOURCE, Dialect
from discreet.engines.sql.expressions import Translator
from discreet.engines.sql.trees import column, select, subquery, whole
from discreet.engines.sql.units import unit_value


def frequent_values(
    of: Expression, where: Expression, most: int, schema: Schema, dialect: Dialect
) -> str:
    """The SELECT of the most frequent texts of an expression among some rows, each with its number
    of rows.
    """
    translator = Translator(schema, dialect)
    value, condition = translator.term(of).tree, translator.term(where).tree
    rows = select(
        [sql.alias(value, "key")], subquery(translator.rows(SOURCE), "source"), where=[condition]
    )
    counted = select(["key", sql.alias(sql.count(), "found")], subquery(rows, "facts"), by=["key"])
    counted.set(
        "order",
        exp.Order(expressions=[exp.Ordered(this=column("found"), desc=True), column("key")]),
    )
    counted.set("limit", exp.Limit(expression=whole(most)))
    return counted.sql(dialect.name, copy=False)


def rows_of_units(unit: str, limit: int, schema: Schema, dialect: Dialect) -> str:
    """The SELECT of five integers: rows with a unit, units, units with more rows than the limit,
    and rows beyond it.

    The fifth is the number of units if their names are trimmed and in lowercase.
    """
    translator = Translator(schema, dialect)
    value, is_unit = unit_value(translator.source(unit), schema[unit], dialect)
    cleaned = value
    if schema[unit].kind == "text":
        cleaned = translator.term(Column(unit, "text", Reading(trim=True, casefold=True))).tree
    named = [sql.alias(value, "unit"), sql.alias(cleaned, "spelled")]
    rows = select(named, subquery(translator.rows(SOURCE), "source"), where=[is_unit])
    units = select(
        ["unit", "spelled", sql.alias(sql.count(), "found")],
        subquery(rows, "facts"),
        by=["unit", "spelled"],
    )
    rows_per_unit, most = column("found"), whole(limit)
    above = exp.GT(this=rows_per_unit, expression=most)
    return select(
        [
            sql.total(rows_per_unit),
            sql.count(),
            sql.total(sql.when([(above, whole(1))], whole(0))),
            sql.total(sql.when([(above, exp.Sub(this=rows_per_unit, expression=most))], whole(0))),
            exp.Count(this=exp.Distinct(expressions=[column("spelled")])),
        ],
        subquery(units, "units"),
    ).sql(dialect.name, copy=False)
