"""SQL → query: a small subset of SQL; everything else is refused by name, before anything is spent.

    words        text → words
    parser       words → syntax, with the whole grammar
    reader       syntax → the row language (`ask.expression`), aggregates and groups, under a policy
    select       SELECT → query

The engine never sees the text: names become declared columns, and literals become exact values.
Texts are limited by `words.LONGEST_QUESTION`, `parser.DEEPEST` and `parser.DEEPEST_SYNTAX`, and
values by the limits of `ask.kinds`.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.ask.expression import Expression, Schema
from discreet.ask.kinds import refused
from discreet.ask.normal import normal
from discreet.ask.policy import Policy
from discreet.ask.query import Group, Query
from discreet.ask.scope import Scope
from discreet.ask.sql import parser
from discreet.ask.sql.reader import Reader
from discreet.ask.sql.select import Selection
from discreet.ask.sql.syntax import Node
from discreet.ask.sql.words import name_in_sql
from discreet.parameters import quote


def parse(text: str, policy: Policy, schema: Schema) -> Query:
    """The query of a SELECT; `QueryRefused` names what is not supported and what to write."""
    select = parser.select(text, policy.columns)
    name, table = select.table.name, policy.table
    if name != table and (select.table.exact or name.lower() != table.lower()):
        raise refused(
            f"there is no table {quote(name)}; the study has one table: FROM {name_in_sql(table)}"
        )
    return replace(
        Selection(_reader(policy, schema, select.alias or name), select).query(), sql=text
    )


def parse_condition(text: str, policy: Policy, schema: Schema) -> Expression:
    """The condition on rows in a text such as "age >= 65"."""
    return normal(_reader(policy, schema).condition(_expression_of(text, policy)))


def parse_expression(text: str, policy: Policy, schema: Schema) -> Expression:
    """The expression over rows in a text such as "income / 1000"."""
    return normal(_reader(policy, schema).expression(_expression_of(text, policy)))


def parse_group(text: str, policy: Policy, schema: Schema) -> tuple[str, Group]:
    """The name and the group column in a text such as "county" or "bin(age, 0, 18, 65) AS band"."""
    item = parser.item(text, policy.columns)
    return item.alias or item.label, _reader(policy, schema).group(item.node)


def _reader(policy: Policy, schema: Schema, table: str | None = None) -> Reader:
    return Reader(Scope(policy, schema), table or policy.table)


def _expression_of(text: str, policy: Policy) -> Node:
    item = parser.item(text, policy.columns)
    if item.alias is not None:
        raise refused("a name with AS is not supported in an expression; leave it out")
    return item.node
