"""Random and odd tables, expressions and requests, and the same rows in every engine."""

from __future__ import annotations

import decimal
import itertools
import math
from collections import Counter
from datetime import UTC, date, datetime
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from discreet.ask import expression as ask
from discreet.ask.query import Group
from discreet.ask.reading import cleaning
from discreet.calibrate.grid import ValueGrid, value_grid
from discreet.engines.base import (
    Cells,
    Measure,
    OnGrid,
    Present,
    Product,
    Request,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.verify import reference

POWERS = ((0, 0), (1, 0), (0, 1), (1, 1))

FIELDS = {
    "real": pa.float64(),
    "single": pa.float32(),
    "whole": pa.int64(),
    "natural": pa.uint64(),
    "tiny": pa.int8(),
    "money": pa.decimal128(18, 3),
    "precise": pa.decimal128(38, 25),
    "huge": pa.decimal128(38, 0),
    "text": pa.string(),
    "name": pa.string(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "zoned": pa.timestamp("us", tz="Asia/Kathmandu"),
    "flag": pa.bool_(),
    "person": pa.int64(),
}
KINDS = {
    "number": ["real", "single", "whole", "natural", "tiny", "money", "precise", "huge"],
    "text": ["text", "name"],
    "date": ["day", "moment", "zoned"],
    "truth": ["flag"],
}
ODD_NUMBERS = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    5e-324,
    -1e-310,
    1e308,
    -1e308,
    2.0**53,
    1e100,
    1e-100,
    1e-101,
    0.1,
]
ODD_TEXTS = [
    "",
    " ",
    "a",
    "A",
    "a ",
    " A",
    "É",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "%",
    "_",
    "a%",
    "a\\",
    "\\%",
    "'",
    '"',
    "a\nb",
    "\0",
    "a\0b",
    "👨‍👩‍👧",
    "1",
    "1e5",
    " 2.5 ",
    "-.5",
    ".",
    "1e400",
    "1_000",
    "0x10",
    "inf",
    "nan",
    "١",
    "true",
    "NO",
    " t ",
    "2024-02-29",
    "2023-02-29",
    "2024-02-29T23:59:59.5",
    "0000-01-01",
    "9999-12-31 23:59",
    "2024-1-1",
    "infinity",
    "epoch",
]
LONG_TEXTS = [
    "a" * reference.LONGEST,
    "b" * (reference.LONGEST - 1) + "é",
    " " * 10 * reference.LONGEST,
]
"""The longest text, and two that are too long."""
PATTERNS = [
    "_", "a%", "%\\%", "__", "a_b", "%", "", "%_%_%q", "%_%_%_%_%_%q", "a_", "%_", "_%", "%%", "%b%", "_%_", "%\n%",
    "%a%b", "%a_b%", "a%b%c", "%a%a_b", "😀%", "%😀_", "_😀_", "%ab%", "%b_", "\\", "%\\", "_\n%", "%.%",
    "[a]%", "%a%a%a%",
]  # fmt: skip
NAMES = ["a", "A", "b", "é", "", "\0"]

reals = st.one_of(st.sampled_from(ODD_NUMBERS), st.floats(-100, 100), st.floats())
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=5))
literals = texts.map(lambda text: text.replace("\0", "?"))
"""No literal of the language holds NUL; a value or a declared key may."""
moments = st.one_of(
    st.sampled_from(
        [
            datetime(1, 1, 1),  # noqa: DTZ001
            datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
            datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
        ]
    ),
    st.datetimes(datetime(2019, 12, 25), datetime(2021, 1, 8)),  # noqa: DTZ001
)


def decimals(digits: int, places: int) -> st.SearchStrategy[decimal.Decimal]:
    whole = st.one_of(st.integers(-1000, 1000), st.integers(-(10**digits) + 1, 10**digits - 1))
    context = decimal.Context(prec=60)
    return whole.map(lambda number: decimal.Decimal(number).scaleb(-places, context))


VALUES = {
    "real": reals,
    "single": st.one_of(st.sampled_from(ODD_NUMBERS[:9]), st.floats(width=32)),
    "whole": st.one_of(st.integers(-5, 5), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])),
    "natural": st.one_of(st.integers(0, 5), st.just(2**64 - 1)),
    "tiny": st.integers(-128, 127),
    "money": decimals(18, 3),
    "precise": decimals(38, 25),
    "huge": decimals(38, 0),
    "text": texts,
    "name": st.sampled_from(NAMES),
    "day": st.one_of(
        st.sampled_from([date(1, 1, 1), date(9999, 12, 31)]),
        st.dates(date(2019, 12, 25), date(2021, 1, 8)),
    ),
    "moment": moments,
    "zoned": (
        st.datetimes(datetime(2019, 12, 25), datetime(2021, 1, 8)).map(  # noqa: DTZ001
            lambda moment: moment.replace(tzinfo=UTC)
        )
    ),
    "flag": st.booleans(),
    "person": st.integers(0, 3),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    size = draw(st.integers(0, 12))
    columns = {
        name: pa.array(
            draw(st.lists(st.one_of(st.none(), VALUES[name]), min_size=size, max_size=size)), kind
        )
        for name, kind in FIELDS.items()
    }
    return pa.table(columns)


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


fractions = st.one_of(
    st.sampled_from(
        [
            0,
            1,
            -1,
            2,
            5,
            Fraction(1, 2),
            Fraction(1, 10),
            Fraction(10) ** 200,
            Fraction(1, 10**200),
            Fraction(3, 10**99),
        ]
    ),
    st.fractions(-10, 10, max_denominator=100),
).map(Fraction)
CONSTANTS = {"number": fractions, "text": literals, "date": moments, "truth": st.booleans()}


def constants(kind: str) -> st.SearchStrategy[ask.Constant]:
    return st.one_of(CONSTANTS[kind], st.none()).map(lambda value: ask.Constant(value, kind))


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = 3) -> ask.Expression:  # noqa: PLR0911
    def inner(other: str) -> ask.Expression:
        return draw(expressions(other, depth - 1))

    if depth == 0 or draw(st.integers(0, 3)) == 0:
        column = st.sampled_from(KINDS[kind]).map(lambda name: ask.Column(name, kind))
        return draw(st.one_of(column, column, constants(kind)))
    choices = [
        "case",
        "coalesce",
        "cast",
        {"number": "number", "text": "text", "date": "date", "truth": "truth"}[kind],
    ]
    match draw(st.sampled_from([*choices, choices[-1], choices[-1]])):
        case "case":
            return ask.Case(((inner("truth"), inner(kind)),), inner(kind))
        case "coalesce":
            return ask.Coalesce((inner(kind), inner(kind)))
        case "cast":
            return ask.Cast(inner(draw(st.sampled_from(sorted(KINDS)))), kind)
        case "date":
            return ask.Truncated(
                draw(st.sampled_from(["year", "quarter", "month", "week", "day", "hour"])),
                inner("date"),
            )
        case "text":
            name = draw(st.sampled_from(["lower", "upper", "trim", "substring"]))
            more = (inner("number"), inner("number")) if name == "substring" else ()
            return ask.Function(name, (inner("text"), *more))
        case "number":
            return draw(numbers(inner))
        case _:
            return draw(truths(inner))


@st.composite
def numbers(draw: st.DrawFn, inner) -> ask.Expression:
    match draw(
        st.sampled_from(["arithmetic", "arithmetic", "function", "several", "length", "part"])
    ):
        case "arithmetic":
            return ask.Arithmetic(draw(st.sampled_from("+-*/")), inner("number"), inner("number"))
        case "function":
            return ask.Function(
                draw(st.sampled_from(["abs", "floor", "ceil", "round"])), (inner("number"),)
            )
        case "several":
            return ask.Function(
                draw(st.sampled_from(["least", "greatest"])), (inner("number"), inner("number"))
            )
        case "length":
            return ask.Function("length", (inner("text"),))
        case _:
            parts = [
                "year",
                "quarter",
                "month",
                "week",
                "day",
                "weekday",
                "hour",
                "minute",
                "second",
                "days",
            ]
            return ask.Part(draw(st.sampled_from(parts)), inner("date"))


@st.composite
def truths(draw: st.DrawFn, inner) -> ask.Expression:  # noqa: PLR0911
    kind = draw(st.sampled_from(sorted(KINDS)))
    match draw(
        st.sampled_from(
            ["comparison", "every", "some", "negation", "membership", "missing", "likeness"]
        )
    ):
        case "comparison":
            return ask.Comparison(
                draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="])), inner(kind), inner(kind)
            )
        case "every":
            return ask.Every((inner("truth"), inner("truth")))
        case "some":
            return ask.Some((inner("truth"), inner("truth")))
        case "negation":
            return ask.Negation(inner("truth"))
        case "membership":
            return ask.Membership(inner(kind), tuple(draw(st.lists(constants(kind), max_size=3))))
        case "missing":
            return ask.Missing(inner(kind))
        case _:
            pattern = st.text(st.sampled_from("a%_é\\\n.'[]A"), max_size=5)
            return ask.Likeness(inner("text"), draw(pattern))


GRIDS = [
    ValueGrid(exponent=0, lower=-5, upper=5, exact=True),
    ValueGrid(exponent=-3, lower=-17, upper=40, exact=False),
    ValueGrid(exponent=2, lower=3, upper=20, exact=False),
    value_grid((Fraction(-1000), Fraction(1000)), bits=30),
    value_grid((Fraction(0), Fraction(10**30)), bits=40),
    value_grid((Fraction(-(10**300)), Fraction(10**300)), bits=20),
    value_grid((Fraction(0), Fraction(1, 10**110)), bits=20),
    ValueGrid(exponent=0, lower=-(2**52), upper=2**52, exact=True),
]


@st.composite
def on_grids(draw: st.DrawFn, widest: int = 2**53) -> OnGrid:
    grid = draw(st.sampled_from([grid for grid in GRIDS if grid.width <= widest]))
    missing = draw(st.one_of(st.none(), st.sampled_from([grid.lower, grid.upper, grid.middle])))
    of = draw(
        st.one_of(
            st.sampled_from(KINDS["number"]).map(lambda n: ask.Column(n, "number")),
            expressions("number"),
        )
    )
    return OnGrid(of, grid, missing)


@st.composite
def measures(draw: st.DrawFn) -> object:  # noqa: PLR0911
    match draw(
        st.sampled_from(["rows", "units", "total", "squares", "present", "product", "cells"])
    ):
        case "rows":
            return Rows(
                draw(st.one_of(st.none(), st.sampled_from(sorted(KINDS)).flatmap(expressions)))
            )
        case "units":
            return Units()
        case "total":
            return Total(draw(on_grids()))
        case "squares":
            return Squares(draw(on_grids(2**42)))
        case "present":
            return Present(draw(on_grids()))
        case "product":
            return Product(
                draw(on_grids(2**30)), draw(on_grids(2**30)), draw(st.sampled_from(POWERS))
            )
        case _:
            return Cells(draw(on_grids(100)))


KEYS = {
    "number": st.one_of(st.integers(-5, 5).map(Fraction), fractions),
    "text": st.one_of(st.sampled_from(NAMES), texts),
    "date": moments,
    "truth": st.booleans(),
}


@st.composite
def groups(draw: st.DrawFn, name: str) -> Group:
    other = draw(st.sampled_from([None, "other"]))
    if draw(st.booleans()):
        bins = draw(st.sampled_from([1, 2, 5, 50]))
        edges = sorted(
            draw(
                st.sets(
                    st.fractions(-20, 20, max_denominator=64), min_size=bins + 1, max_size=bins + 1
                )
            )
        )
        return Group(
            name, draw(expressions("number", 1)), tuple(map(str, range(bins))), other, tuple(edges)
        )
    kind = draw(st.sampled_from(sorted(KINDS)))
    same = (
        (lambda key: reference.evaluate(ask.Constant(key, "number"), {}))
        if kind == "number"
        else (lambda key: key)
    )
    keys = draw(st.lists(KEYS[kind], min_size=1, max_size=5, unique_by=same))
    return Group(name, draw(expressions(kind, 1)), tuple(keys), other)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    unit = draw(st.sampled_from([None, "person", "name", "day", "flag", "zoned"]))
    limits = st.one_of(st.none(), st.integers(1, 3))
    wanted = tuple(draw(st.lists(measures(), min_size=1, max_size=3)))
    by = tuple(draw(groups(f"g{index}")) for index in range(draw(st.integers(0, 2))))
    sets = None
    if not any(isinstance(measure, Cells | Units) for measure in wanted):
        chosen = [
            tuple(at)
            for size in range(len(by) + 1)
            for at in itertools.combinations(range(len(by)), size)
        ]
        sets = draw(
            st.one_of(
                st.none(), st.lists(st.sampled_from(chosen), min_size=1, unique=True).map(tuple)
            )
        )
    return Request(
        measures=wanted,
        groups=by,
        sets=sets,
        where=draw(st.one_of(st.none(), expressions("truth"))),
        unit=unit,
        max_rows=draw(limits) if unit else None,
        max_groups=draw(limits) if unit else None,
    )


def same(found: list[list[object]], expected: list[list[object]]) -> bool:
    return all(
        np.array_equal(a, b) if isinstance(b, np.ndarray) else (a == b and type(a) is int)
        for left, right in zip(found, expected, strict=True)
        for a, b in zip(left, right, strict=True)
    )


CORNERS = {
    "real": [*ODD_NUMBERS, 1.0, 2.0, 3.0, -1.0, 1000000.0, 1000000.5, 10.0, None],
    "single": [*ODD_NUMBERS[:9], 3.0],
    "whole": [0, 1, -1, 2, 3, 2**53 + 1, 2**63 - 1, -(2**63), None],
    "natural": [0, 1, 2**64 - 1],
    "tiny": [-128, 0, 127],
    "money": [decimal.Decimal("0.001"), decimal.Decimal("999999999999999.999"), None],
    "precise": [
        decimal.Decimal("0.1000000000000000055511151"),
        decimal.Decimal("1234567890123.3000000000000000444"),
    ],
    "huge": [*map(decimal.Decimal, (71296689604804203156, -15969616019341834, -(2**100) - 1, 7))],
    "text": [
        *ODD_TEXTS, "\u00a0a\u00a0", "\ta", "AbC", "ÉA", None, *LONG_TEXTS, "xq", "😀b", "a😀b", "aab\n", "ab😀aab",
    ],
    "name": NAMES,
    "day": [date(1, 1, 1), date(9999, 12, 31), date(2020, 12, 31), date(2021, 1, 3), date(2024, 2, 29), None],
    "moment": [
        datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
        datetime(2021, 1, 3, 12, 30, 45, 900000), datetime(2024, 1, 1), None,  # noqa: DTZ001
    ],
    "zoned": [datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC), None],
    "flag": [True, False, None],
    "person": [1, 2, 3, 4, None],
}  # fmt: skip
"""Every odd value of every column; the columns turn at different speeds, so that they meet in many
ways.
"""


def corners(size: int = 120) -> pa.Table:
    return pa.table(
        {
            name: pa.array([values[row % len(values)] for row in range(size)], FIELDS[name])
            for name, values in CORNERS.items()
        }
    )


EMPTY = {
    "null": lambda _, size: [None] * size,
    "but_one": lambda value, size: [None] * (size - 1) + [value],
    "nan": lambda _, size: [float("nan")] * size,
    "nan_but_one": lambda value, size: [float("nan")] * (size - 1) + [value],
}
"""Columns without values, and with one, in the last row."""


def empty_columns(size: int) -> pa.Table:
    """Columns of every type that are empty, or all but one row; and a column of persons, and one of
    two groups.
    """
    columns = {}
    for name, kind in FIELDS.items():
        value = next(
            value for value in reversed(CORNERS[name]) if reference.plain(value) is not None
        )
        for empty, values in EMPTY.items():
            if "nan" not in empty or name in {"real", "single"}:
                columns[f"{name}_{empty}"] = pa.array(values(value, size), kind)
    people = [f"p{row % 7}" for row in range(size)]
    return pa.table({**columns, "who": people, "half": [row % 2 for row in range(size)]})


def empty_measures(table: pa.Table) -> list[Measure]:
    """Counts and sums of such columns, where missing values are dropped and where they are
    replaced.
    """
    kinds = {"person": "number", **{name: kind for kind, names in KINDS.items() for name in names}}
    columns = [
        ask.Column(name, kinds[name.split("_")[0]]) for name in table.column_names if "_" in name
    ]
    numbers = [column for column in columns if column.kind == "number"]
    on_grids = [
        OnGrid(column, GRIDS[1], missing)
        for column in numbers
        for missing in (None, GRIDS[1].upper)
    ]
    squares = [Squares(value) for value in on_grids if value.of.name.startswith("real")]
    products = [Product(on_grids[0], value, powers) for value in on_grids[1:4] for powers in POWERS]
    return [
        *map(Rows, columns),
        *map(Total, on_grids),
        *map(Present, on_grids[::2]),
        *squares,
        *products,
    ]


def empty_requests(measures: tuple[Measure, ...]):
    """Requests of them: all rows, WHERE one is missing, in groups, within limits."""
    hidden = ask.Missing(ask.Column("real_but_one", "number"))
    seen = ask.Comparison(
        ">=", ask.Column("real_but_one", "number"), ask.Constant(Fraction(1), "number")
    )
    half = Group("half", ask.Column("half", "number"), (Fraction(0), Fraction(1), Fraction(2)))
    empty = Group("empty", ask.Column("text_null", "text"), ("a",), "other")
    yield Request(measures)
    yield Request(measures, (half, empty))
    yield Request(measures, where=ask.Some((hidden, seen)))
    yield Request(measures, where=ask.Negation(hidden))
    yield Request(measures, (half,), unit="who", max_rows=20, max_groups=1)


def functions():
    """One expression for each function, part, cast and sign, of each column that it takes."""
    columns = {kind: [ask.Column(name, kind) for name in names] for kind, names in KINDS.items()}
    for column in (column for several in columns.values() for column in several):
        yield from (ask.Cast(column, kind) for kind in KINDS)
        yield ask.Missing(column)
    real, single, text = columns["number"][0], columns["number"][1], columns["text"][0]
    for name in ("abs", "floor", "ceil", "round"):
        yield ask.Function(name, (real,))
    for name in ("least", "greatest"):
        yield ask.Function(name, (real, columns["number"][2]))
    for sign in "+-*/":
        yield ask.Arithmetic(sign, real, columns["number"][2])
        yield ask.Arithmetic(sign, single, real)
    for name in ("lower", "upper", "trim", "length"):
        yield ask.Function(name, (text,))
    yield ask.Function("substring", (text, columns["number"][2], real))
    for date_ in columns["date"]:
        for part in (
            "year",
            "quarter",
            "month",
            "week",
            "day",
            "weekday",
            "hour",
            "minute",
            "second",
            "days",
        ):
            yield ask.Part(part, date_)
        for unit in ("year", "quarter", "month", "week", "day", "hour"):
            yield ask.Truncated(unit, date_)
    yield from (ask.Likeness(text, pattern) for pattern in PATTERNS)
    yield from (
        ask.Comparison(sign, text, columns["text"][1]) for sign in ("=", "<>", "<", "<=", ">", ">=")
    )


CELLS = [
    None, "", " ", "1", "01", " 12 ", "3.7", "3.0", "-0", "+7", "1e2", "1e400", "nan", "inf", "0x1F", "1_000", "12,5",
    "1,234.50", "1.234,50", "1.234.567", "12.34.567", "1,23", ",5", "5,", "-1.000", "1 234,5", "9" * 41, "1.2345",
    "2001-12-01", "2001-12-01 10:20:30", "01/12/2001", "1/2/2001", "13/13/2001", "31/02/2001", "29/2/2004", "29/2/2001",
    " 3/4/2001 ", "1/2/01", "01/12/2001x", "03JAN2001", "3Feb2001", "31 dec 2001", "01xyz2001", "20011231", "2001123",
    "1.2.2001 7:05", "01.02.2001 23:59:59.5", "1.2.2001 24:00", "01.02.2001 9", "yes", "No", "true", "0", "ja",
    "\u0661\u0662", "1\u00a0234,5", "0000/01/01", "2001/1/2", "01/01/0000", "1/1/9999", "'; --", "\\1", "$1",
    "a\nb", "1\n", "n/a", "N/A ", "-", "\u00a0n/a\t", "12\u00a0", "\u202f1.2.2001\u3000", "\ufeff7", "\u200b7\u200b",
    "7\u00ad", "CARD", "card", " Card\u2003", "Cardiology", "CARDIOLOGY", "cardiology\n", "GÉRIATRIE", "Gériatrie",
    "Ge\u0301riatrie", "geriatrie", "ΑΓΆΠΗΣ", "ΚΑΡΔΙΆ", "καρδιά", "ЖУРНАЛ", "журнал", "İstanbul", "ISTANBUL",
    "ıstanbul", "STRASSE", "Straße", "ẞ", "ǅ", "ﬁ", "ŸŐ–€", "Ａ", "Ꭰ", "😀 A", "日本A",
    "A\0B", "\0", "A" * 300, "É" * 300, "Ａ" * 300,
    "\t" * 40, "\u212a",
    "Ear, Nose & Throat", "EAR, NOSE & THROAT", "it's", "IT'S", "a\\b", "A\\B",
]  # fmt: skip
"""Cells as people write them."""

_WARDS = cleaning(
    trim=True, casefold=True, missing=["N/A", "", "-"],
    pairs=[("CARD", "Cardiology"), ("É" * 300, "IT'S "), ("a\\b", "a\\b"), ("ı", "\u3000")],
    keys=["Cardiology", "Gériatrie", "Ear, Nose & Throat", "STRASSE", "Straße", "ΚΑΡΔΙΆ", "IT'S "],
)  # fmt: skip
_CLEAN = [
    ask.Reading(trim=True), ask.Reading(casefold=True), ask.Reading(trim=True, casefold=True), _WARDS,
    ask.Reading(missing=("", "N/A ", "-")), ask.Reading(map=(("1", "one"), ("n/a", ""))),
    ask.Reading(trim=True, map=tuple(sorted((text.strip(), f"{at}é") for at, text in enumerate(dict.fromkeys(
        ["CARD", "card", "it's", "1", "12", "–", "é", "ΑΓΆΠΗΣ", "ж", "日本A", "😀 A", "Ｚ", "zz", "a", "b", "c",
         "d", "\\1"]
    ))))),
]  # fmt: skip

READINGS = [
    ("number", ask.Reading()), ("number", ask.Reading(whole=True)), ("truth", ask.Reading()), ("date", ask.Reading()),
    ("number", ask.Reading(decimal=",")), ("number", ask.Reading(thousands=",")),
    ("number", ask.Reading(decimal=",", thousands=".", whole=True)),
    *(("number", ask.Reading(decimal=",", thousands=mark)) for mark in (" ", "\u00a0")),
    *(("date", ask.Reading(formats=formats)) for formats in [
        ("%d/%m/%Y",), ("%m/%d/%Y",), ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y"), ("%d%b%Y",), ("%d %b %Y",), ("%Y%m%d",),
        ("%d.%m.%Y %H:%M",), ("%d.%m.%Y %H:%M:%S.%f",), ("%d.%m.%Y %H",), ("%Y/%m/%d",),
    ]),
    *(("text", reading) for reading in _CLEAN),
    ("number", ask.Reading(trim=True, missing=("7", "12"))), ("number", ask.Reading(map=(("n/a", "9"), ("1", "x")))),
    ("date", ask.Reading(formats=("%d.%m.%Y",), trim=True, missing=("01/12/2001",))),
    ("date", ask.Reading(formats=("%d%b%Y",), casefold=True)), ("truth", ask.Reading(trim=True, map=(("ja", "yes"),))),
    ("number", ask.Reading(whole=True, thousands=",", trim=True, casefold=True, missing=("1e2",))),
]  # fmt: skip


def read_cells():
    """A table of cells, and each way to read them."""
    return pa.table({"cell": pa.array(CELLS, pa.string())}), [
        ask.Column("cell", kind, how) for kind, how in READINGS
    ]


def columns_of(table: pa.Table, change) -> pa.Table:
    """The table with some of its columns in other types."""
    return pa.table({name: change(name, table.column(name)) for name in table.column_names})


def in_memory(table: pa.Table):
    """DuckDB over an Arrow table, and its rows."""
    from discreet.engines.duckdb import DuckDB

    return DuckDB(table), table.to_pylist()


POSTGRESQL_TYPES = {
    pa.float64(): "double precision", pa.float32(): "real", pa.int64(): "bigint", pa.int8(): "smallint",
    pa.uint64(): "numeric(20, 0)", pa.string(): "text", pa.date32(): "date", pa.bool_(): "boolean",
    pa.timestamp("us"): "timestamp", pa.timestamp("us", tz="Asia/Kathmandu"): "timestamptz",
}  # fmt: skip
AWKWARD = (
    "-ctimezone=America/St_Johns -cdatestyle=German -cstandard_conforming_strings=off"
    " -cextra_float_digits=-10"
)
"""Settings of a session that would change what a careless statement means."""
_numbers = itertools.count()


def on_postgresql(server: str):
    """A function that puts a table on a server, without the NUL that no text there can hold."""
    import psycopg

    from discreet.engines.postgres import PostgreSQL

    name = f"conforming_{next(_numbers)}"
    joint = "&" if "?" in server else "?"
    address = f"{server}{joint}options={AWKWARD.replace(' ', '%20').replace('=', '%3D')}"

    def opened(table: pa.Table):
        table = columns_of(
            table,
            lambda _, column: (
                pa.array(
                    [text and text.replace("\0", "\x01") for text in column.to_pylist()],
                    pa.string(),
                )
                if column.type == pa.string()
                else column
            ),
        )
        rows = table.to_pylist()
        kinds = [
            POSTGRESQL_TYPES.get(field.type)
            or f"numeric({field.type.precision}, {field.type.scale})"
            for field in table.schema
        ]
        with psycopg.connect(server) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            fields = ", ".join(
                f'"{column}" {kind}' for column, kind in zip(table.column_names, kinds, strict=True)
            )
            connection.execute(f"CREATE UNLOGGED TABLE {name} ({fields})")
            places = ", ".join(["%s"] * len(kinds))
            connection.cursor().executemany(
                f"INSERT INTO {name} VALUES ({places})",  # noqa: S608
                [tuple(row.values()) for row in rows],
            )
        return PostgreSQL(f"{address}#public.{name}"), rows

    return opened


SPARK_TYPES = {pa.uint64(): pa.decimal128(20, 0)}


def on_spark(session):
    """A function that gives a table to Spark, which has no unsigned integers."""
    from discreet.engines.spark import Spark

    words = {
        "double": "double", "float": "float", "int64": "bigint", "int8": "tinyint", "string": "string",
        "date32[day]": "date", "timestamp[us]": "timestamp_ntz", "bool": "boolean",
    }  # fmt: skip

    def opened(table: pa.Table):
        table = columns_of(
            table, lambda _, column: column.cast(SPARK_TYPES.get(column.type, column.type))
        )
        kinds = [
            (
                str(kind).replace("128", "")
                if pa.types.is_decimal(kind)
                else words.get(str(kind), "timestamp")
            )
            for kind in table.schema.types
        ]
        schema = ", ".join(
            f"`{name}` {kind}" for name, kind in zip(table.column_names, kinds, strict=True)
        )
        return Spark(session.createDataFrame(table, schema=schema)), table.to_pylist()

    return opened


COLUMNS = {
    "number": pa.float64(),
    "text": pa.string(),
    "date": pa.timestamp("us"),
    "truth": pa.bool_(),
}
"""What holds any value of a kind."""


def beside_expected(
    table: pa.Table, expressions
) -> tuple[pa.Table, list[Measure], list[list[int]]]:
    """The table with the reference's value of each expression in each row, as a column; the
    measures in how many rows an expression equals its column, and in how many it is missing; and
    their answers."""
    rows, measures, answers = rows_of(table), [], []
    for at, expression in enumerate(expressions):
        values = [reference.evaluate(expression, row) for row in rows]
        kind = next((reference.kind_of(value) for value in values if value is not None), None)
        column = ask.Column(f"expected{at}", kind or expression.kind)
        table = table.append_column(column.name, pa.array(values, COLUMNS[column.kind]))
        measures += Rows(ask.Comparison("=", expression, column)), Rows(ask.Missing(expression))
        answers += [len(rows) - values.count(None)], [values.count(None)]
    return table, measures, answers


def check_declared_texts(opened) -> None:
    """Every cell in every declared way has the value of the reference, or is missing."""
    table, columns = read_cells()
    table, measures, answers = beside_expected(table, columns)
    assert all(equal > 0 for [equal] in answers[::2])
    found = opened(table)[0].fetch(Request(tuple(measures))).reveal()
    for measure, expected, got in zip(measures, answers, found, strict=True):
        assert got == expected, (measure, expected, got)


def check_report(opened) -> None:
    """The one statement of a report, with group columns, a condition, halves of two numbers and
    their product.
    """
    from studies import Paper, study_of, table_of

    places, whole = ["north", "south", "west", "nowhere", None], [None, -4, 0, 3, 10, 99]
    rows = [
        {"who": f"u{at % 17}", "place": places[at % 5], "level": at % 4, "age": whole[at % 6]}
        | {
            "pay": [None, math.nan, -3.0, 0.25, 7.5][at * 3 % 5],
            "well": [True, False, None][at * 5 % 3],
        }
        for at in range(120)
    ]
    tables = {
        "places": "SELECT place, count(*), avg(age), avg(pay) FROM data GROUP BY place",
        "both": "SELECT place, level, count(*), sum(age) FROM data GROUP BY place, level",
        "well": "SELECT count(*), avg(well) FROM data WHERE place IN ('north', 'west')",
    }
    study = study_of(rows, Paper(), unit="who", max_rows=3, max_groups=2, neighbors="add-remove")
    plan, asked = study.report(tables, epsilon=1), []
    study.__dict__["engine"] = SimpleNamespace(fetch=asked.append)
    plan.fetched()
    engine, rows = opened(table_of(rows))
    assert len(asked[0].sets) > 1
    assert same(engine.fetch(asked[0]).reveal(), reference.fetch(asked[0], rows))


def check_custodians_counts(opened) -> None:
    """Frequent values and rows of units, which are shown to custodians alone."""
    cells = ["b", "a", "b", None, " A", "É", "b", "a", "é", "c"]
    units = ["x", "X ", "x", "y", None, "y", "x", "z", "é", "É"]
    engine, _ = opened(pa.table({"cell": pa.array(cells), "unit": pa.array(units)}))
    cell = ask.Column("cell", "text")
    there = ask.Negation(ask.Missing(cell))
    cleaned = ask.Column("cell", "text", ask.Reading(trim=True, casefold=True))
    assert list(engine.frequent(cell, there, 2).reveal().items()) == [("b", 3), ("a", 2)]
    assert engine.frequent(cleaned, there, 9).reveal() == {"a": 3, "b": 3, "é": 2, "c": 1}
    assert engine.rows_of_units("unit", 1).reveal() == [9, 6, 2, 3, 4]


def octave_counts(values: list[object], whole: bool) -> list[int]:
    """How many values are in each octave, by the exponent of each: the slow twin of bins."""
    from discreet.release.profiles.octaves import octave_edges

    edges = octave_edges(whole)
    counts = [0] * len(edges)
    for value in map(reference.plain, values):
        if value is None:
            counts[-1] += 1
            continue
        size, exponent = math.frexp(abs(value))
        # a positive number begins its octave, a negative one ends it
        power = exponent - 1 if value > 0 or size > 0.5 else exponent - 2
        first, last = (0, 63) if whole else (-40, 64)
        if value == 0:
            index = edges.index(0)
        elif power >= last:
            index = len(edges) - 2 if value > 0 else 0
        elif power < first:
            index = edges.index(0) + (1 if value > 0 else -1)
        else:
            start = Fraction(2) ** power if value > 0 else -(Fraction(2) ** (power + 1))
            index = edges.index(start)
        counts[index] += 1
    return counts


def check_octaves(opened) -> None:
    """Octaves of odd numbers, and of texts that are read as numbers, are those of the reference;
    each unit once.
    """
    from discreet.release.profiles.octaves import ROW_LIMITS
    from discreet.release.profiles.plan import _octaves

    powers = [
        sign * 2.0**power
        for sign in (1, -1)
        for power in (-41, -40, -39, -1, 0, 1, 52, 62, 63, 64, 65)
    ]
    near = [math.nextafter(power, end) for power in powers for end in (math.inf, -math.inf)]
    reals = [*ODD_NUMBERS, *powers, *near, None]
    wholes = [0, 1, -1, 2, -2, 3, 2**52, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**62), None]
    texts = ["", " 1 ", "-2.5", "4e3", "1e99", "x", "inf", "nan", "0.0", "-0", "1" * 40, None]
    size = len(reals)

    def turned(values, kind):
        return pa.array([values[row % len(values)] for row in range(size)], kind)

    people = turned(["a", "b", None, "c", "a", "d"], pa.string())
    columns = {
        "real": turned(reals, pa.float64()),
        "whole": turned(wholes, pa.int64()),
        "text": turned(texts, pa.string()),
    }
    engine, rows = opened(pa.table({**columns, "who": people}))
    for column, whole in (
        (ask.Column("real", "number"), False),
        (ask.Column("whole", "number"), True),
        (ask.Column("text", "number", ask.Reading()), False),
    ):
        values = [reference.evaluate(column, row) for row in rows]
        group = _octaves(column, whole)
        assert list(engine.fetch(Request((Rows(),), (group,))).reveal()[0]) == octave_counts(
            values, whole
        ), column
        once = Request((Rows(),), (group,), unit="who", max_rows=1)
        counts = engine.fetch(once).reveal()
        assert counts == reference.fetch(once, rows)
        assert sum(counts[0]) == 4
    found = engine.units_by_rows("who", ROW_LIMITS[:5]).reveal()
    units = Counter(row["who"] for row in rows if row["who"] is not None)
    limits = [0, *ROW_LIMITS[:5], 10**9]
    pairs = itertools.pairwise(limits)
    assert found == [sum(low < count <= high for count in units.values()) for low, high in pairs]
    few = opened(pa.table({"who": list("abbcccddddeeeee")}))[0]
    assert few.units_by_rows("who", (1, 2, 4)).reveal() == [1, 1, 2, 1]
    assert opened(pa.table({"who": pa.array([None], pa.string())}))[0].units_by_rows(
        "who", (1,)
    ).reveal() == [0, 0]
