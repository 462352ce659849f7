"""What names a unit: its value as it is in the source, and a text of it that every engine hashes alike."""

from __future__ import annotations

from typing import assert_never

from sqlglot import exp

from discreet.engines.base import ColumnType
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.expressions import FIRST, LAST, constant, digits
from discreet.engines.sql.trees import Tree, between, call, present, quoted, when


def unit_value(here: Tree, column: ColumnType, dialect: Dialect) -> tuple[Tree, Tree]:
    """The value that names a unit, exactly as it is in the source, and the condition that there is one."""
    if column.kind == "text":
        text = dialect.text_column(here, column.described)
        return text, present(text)
    return here, dialect.named_unit(here, column)


def unit_text(here: Tree, column: ColumnType, dialect: Dialect) -> Tree:
    """A text for the hash of a unit that every engine writes in the same way."""
    match column.kind:
        case "text":
            return here
        case "truth":
            return when([(here, quoted("1"))], quoted("0"))
        case "date":
            moment = dialect.moment_column(here, column.described)
            inside = between(moment, *(constant(end, "date", dialect) for end in (FIRST, LAST)))
            return when([(inside, dialect.microseconds(moment))], quoted(""))
        case "number" if column.whole:
            return dialect.cast(here, "text")
        case "number":  # the whole part of those that 64 bits can hold
            number, _ = dialect.number_column(here, column.described)
            inside = exp.LT(this=call("abs", number), expression=dialect.real(2.0**63))
            return when([(inside, digits(call("floor", number), dialect))], quoted(""))
        case _:
            assert_never(column.kind)
