"""Texts as the policy declares them, turned into texts that CAST of the row language reads: plain decimals, ISO dates.

A text without the declared shape is missing. `here` is a named text.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.ask.expression import Reading
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.patterns import MONTHS, PADDING, Shape, marked_number
from discreet.engines.sql.trees import Tree, call, quoted, when


def plain_number(here: Tree, reading: Reading, dialect: Dialect) -> Tree:
    """A number without its marks: 1234.5 of 1,234.50."""
    tree = call("replace", here, quoted(reading.thousands), quoted("")) if reading.thousands else here
    tree = call("replace", tree, quoted(reading.decimal), quoted("."))
    return when([(dialect.matches(here, marked_number(reading.decimal, reading.thousands)), tree)])


def iso_date(here: Tree, shape: Shape, dialect: Dialect) -> Tree:
    """A date in a format as an ISO date: 2001-12-01 of 1/12/2001; names of months are in small letters."""
    tree = dialect.replaced(here, shape.pattern, shape.template)
    for number, month in enumerate(MONTHS if shape.months else (), 1):
        tree = call("replace", tree, quoted(month), quoted(str(number)))
    return when([(dialect.matches(here, shape.pattern), dialect.replaced(tree, *PADDING))])


def is_integer(here: Tree, dialect: Dialect) -> Tree:
    """Whether a double is a whole number of any size."""
    return exp.EQ(this=here, expression=dialect.floor(here))
