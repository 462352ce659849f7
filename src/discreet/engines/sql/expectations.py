"""A test of an engine when it is opened.

A few known rows are queried by the same statements that fetch answers, and the engine must return
the known integers: for NULL, NaN and infinities in sums and clamps, floors, sums beyond 64 bits,
division by zero, casts, comparison of texts by their bytes, patterns, dates, bins, and the hash
that chooses among the rows of a unit. An engine that differs, because of its version, a setting, or
a redefined function, is refused with the names of the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from functools import cache, reduce
from typing import Any, Final, NamedTuple, TypeAlias

from sqlglot import exp

from discreet.ask import expression as ask
from discreet.ask.expression import Column, ColumnType, Expression, Kind, Schema
from discreet.ask.keys.column import Keys
from discreet.ask.query import Group
from discreet.calibrate.grid import ValueGrid
from discreet.engines.base import (
    Cells,
    Measure,
    OnGrid,
    Present,
    Request,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.expressions import constant
from discreet.engines.sql.statement import Statement, statement
from discreet.engines.sql.trees import Tree, alias, union, whole
from discreet.errors import EngineFailed

_NAN, _INFINITE = float("nan"), float("inf")
_LEAP, _OLD = datetime(2024, 2, 29, 23, 59, 59, 500_000), datetime(1969, 12, 31)  # noqa: DTZ001 - moments have no zone

ROWS: Final[dict[str, tuple[Kind, list[Any]]]] = {
    "real": ("number", [None, _NAN, _INFINITE, -_INFINITE, 2.5, -2.5]),
    "empty": ("number", [None] * 6),
    "nan": ("number", [_NAN] * 6),
    "whole": ("number", [2**62, 2**62, -1, None, 7, 7]),
    "name": ("text", ["a", "A", "É", "e\u0301", "a ", None]),
    "cell": ("text", ["1e5", " 2.5 ", "2024-02-29", "2024-02-30", "Yes", "nan"]),
    "moment": ("date", [_LEAP, _OLD, None, None, _LEAP, _OLD]),
    "person": ("text", ["a", "a", "a", "a", "b", None]),
}
"""The known rows, column by column."""


Expectations: TypeAlias = list[tuple[str, Measure, list[Any]]]
"""The name of a difference, a measure, and the integers that an engine must return for it."""


class Question(NamedTuple):
    request: Request
    expectations: Expectations


def _question(expectations: Expectations, **options: Any) -> Question:
    return Question(
        Request(tuple(measure for _, measure, _ in expectations), **options), expectations
    )


def _column(name: str) -> Column:
    return Column(name, ROWS[name][0])


def _equal(left: Expression, value: int | str | datetime, kind: Kind) -> Rows:
    return Rows(
        ask.Comparison(
            "=", left, ask.Constant(Fraction(value) if isinstance(value, int) else value, kind)
        )
    )


_REAL, _WHOLE, _NAME, _CELL, _MOMENT = map(_column, ("real", "whole", "name", "cell", "moment"))
_CLEANED = Column("name", "text", ask.Reading(trim=True, casefold=True))
_ONE = ask.Constant(Fraction(1), "number")
_FIVE = ValueGrid(exponent=0, lower=-5, upper=5, exact=True)
_HALVES = ValueGrid(exponent=-1, lower=-10, upper=10, exact=False)
_WIDE = ValueGrid(exponent=0, lower=0, upper=2**42, exact=True)
_CELLS = ValueGrid(exponent=0, lower=0, upper=2, exact=True)


_SUMS: Expectations = [
    ("NULL in a sum", Total(OnGrid(_column("empty"), _FIVE, None)), [0]),
    ("NULL in a sum that replaces it", Total(OnGrid(_column("empty"), _FIVE, 2)), [42]),
    ("NULL in a sum of squares", Squares(OnGrid(_column("empty"), _FIVE, 2)), [294]),
    ("NaN in a sum", Total(OnGrid(_column("nan"), _FIVE, None)), [0]),
    ("NaN in a sum that replaces it", Total(OnGrid(_column("nan"), _FIVE, 2)), [42]),
    ("NULL in a count", Present(OnGrid(_column("empty"), _FIVE, None)), [0]),
    ("NaN in a count", Present(OnGrid(_column("nan"), _FIVE, None)), [0]),
    ("NULL, NaN and infinities in a clamp", Total(OnGrid(_REAL, _FIVE, None)), [21]),
    ("doubles in halves", Squares(OnGrid(_REAL, _HALVES, None)), [650]),
    ("integers beyond 32 bits in a sum", Total(OnGrid(_WHOLE, _WIDE, None)), [2**43 + 14]),
    ("integers beyond 64 bits in a sum", Squares(OnGrid(_WHOLE, _WIDE, None)), [2**85 + 98]),
]
_VALUES: Expectations = [
    ("NULL and NaN", Rows(ask.Missing(_REAL)), [2]),
    (
        "division by zero",
        Rows(ask.Missing(ask.Arithmetic("/", _ONE, ask.Arithmetic("-", _WHOLE, _WHOLE)))),
        [6],
    ),
    ("FLOOR", _equal(ask.Function("floor", (_REAL,)), -3, "number"), [1]),
    ("LEAST", _equal(ask.Function("least", (_REAL, _WHOLE)), -1, "number"), [1]),
    ("GREATEST", _equal(ask.Function("greatest", (_REAL, _WHOLE)), 7, "number"), [2]),
    ("equality of texts", _equal(_NAME, "a", "text"), [1]),
    ("order of texts", Rows(ask.Comparison("<", _NAME, ask.Constant("a", "text"))), [1]),
    ("upper-case letters", _equal(ask.Function("upper", (_NAME,)), "A", "text"), [2]),
    ("spaces at the ends of texts", _equal(ask.Function("trim", (_NAME,)), "a", "text"), [2]),
    ("small letters, and other blanks at the ends", _equal(_CLEANED, "a", "text"), [3]),
    ("small letters with accents", _equal(_CLEANED, "é", "text"), [1]),
    ("lengths of texts", _equal(ask.Function("length", (_NAME,)), 1, "number"), [3]),
    ("LIKE", Rows(ask.Likeness(_NAME, "%_ ")), [1]),
    ("texts as numbers", _equal(ask.Cast(_CELL, "number"), 100_000, "number"), [1]),
    ("texts that are no numbers", Rows(ask.Missing(ask.Cast(_CELL, "number"))), [4]),
    ("texts that are no dates", Rows(ask.Missing(ask.Cast(_CELL, "date"))), [5]),
    ("texts as truths", Rows(ask.Cast(_CELL, "truth")), [1]),
    ("numbers as texts", _equal(ask.Cast(_WHOLE, "text"), "7", "text"), [2]),
    ("dates as texts", _equal(ask.Cast(_MOMENT, "text"), "1969-12-31", "text"), [2]),
    ("days since 1970", _equal(ask.Part("days", _MOMENT), -1, "number"), [2]),
    ("weeks", _equal(ask.Part("week", _MOMENT), 9, "number"), [2]),
    ("weekdays", _equal(ask.Part("weekday", _MOMENT), 3, "number"), [2]),
    ("seconds", _equal(ask.Part("second", _MOMENT), 59, "number"), [2]),
    (
        "beginnings of months",
        _equal(ask.Truncated("month", _MOMENT), datetime(2024, 2, 1), "date"),  # noqa: DTZ001
        [2],
    ),
]
_BINS = Group(
    "whole", _WHOLE, Keys.of(["low", "high"]), "other", (Fraction(-5), Fraction(5), Fraction(10**9))
)
"""Groups without a table of keys, which would take time to create."""
_LIMITED: Expectations = [
    ("bins, and the hash that chooses rows", Rows(), [0, 1, 2]),
    ("distinct units", Units(), [0, 1, 1]),
    ("sums in groups", Total(OnGrid(_REAL, _FIVE, None)), [0, 8, 0]),
    ("cells", Cells(OnGrid(_REAL, _CELLS, None)), [[0, 0, 0], [0, 0, 1], [1, 0, 0]]),
]
_NOBODY = ask.Every((ask.Missing(_MOMENT), ask.Comparison("=", _MOMENT, _MOMENT)))

QUESTIONS: Final[tuple[Question, ...]] = (
    _question(_SUMS + _VALUES),
    _question(
        [(f"{name}, of no rows", measure, [0]) for name, measure, _ in _SUMS[1:6]], where=_NOBODY
    ),
    _question(_LIMITED, groups=(_BINS,), unit="person", max_rows=2, max_groups=1),
)


@cache
def known_rows(dialect: Dialect) -> str:

    def row(index: int) -> Tree:
        columns = []
        for name, (kind, values) in ROWS.items():
            value = values[index]
            if name == "whole":
                tree = dialect.cast(whole(value) if value is not None else exp.Null(), "long")
            else:
                tree = (
                    dialect.real(value)
                    if isinstance(value, float)
                    else constant(value, kind, dialect)
                )
            columns.append(alias(tree, name))
        return exp.Select(expressions=columns)

    return reduce(union, map(row, range(6))).sql(dialect.name, copy=False)


@cache
def _statement(
    request: Request, schema: tuple[tuple[str, ColumnType], ...], dialect: Dialect
) -> Statement:
    """The statement of a question, cached because the same engine may be opened many times."""
    return statement(request, dict(schema), dialect)


def check(
    engine: str,
    advice: str,
    schema: Schema,
    dialect: Dialect,
    run: Callable[[Statement], list[Any]],
    questions: Sequence[Question] = QUESTIONS,
) -> None:
    """Refuse an engine that does not return the known answers for the known rows."""
    for question in questions:
        answers = run(_statement(question.request, tuple(schema.items()), dialect))  # type: ignore[arg-type] # a constant
        differ = [
            name
            for (name, _, expected), answer in zip(question.expectations, answers, strict=True)
            if [list(part) if hasattr(part, "tolist") else part for part in answer] != expected
        ]
        if differ:
            raise EngineFailed(
                f"{engine} does not do what discreet relies on: {', '.join(differ)}; {advice}"
            )
