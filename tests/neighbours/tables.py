"""Random promises, tables and neighbours: odd values, mostly empty columns, units with many rows."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

WHOLE = {
    "tiny": pa.int8(), "short": pa.int16(), "middle": pa.int32(), "long": pa.int64(), "byte": pa.uint8(),
    "natural": pa.uint64(), "huge": pa.decimal128(38, 0),
}  # fmt: skip
REAL = {
    "real": pa.float64(),
    "single": pa.float32(),
    "money": pa.decimal128(18, 3),
    "precise": pa.decimal128(38, 25),
}
TEXT = {"text": pa.string(), "name": pa.string()}
DATE = {
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "zoned": pa.timestamp("us", tz="Asia/Kathmandu"),
}
TYPES: dict[str, pa.DataType] = {**WHOLE, **REAL, **TEXT, **DATE, "flag": pa.bool_()}
KINDS = {
    **dict.fromkeys((*WHOLE, *REAL), "number"), **dict.fromkeys(TEXT, "text"), **dict.fromkeys(DATE, "date"),
    "flag": "truth", "second": "date", "stamp": "date", "word": "text",
}  # fmt: skip
WIDE: dict[str, pa.DataType] = {
    "second": pa.timestamp("s"),
    "stamp": pa.timestamp("s", tz="UTC"),
    "word": pa.large_string(),
}
"""Types that DuckDB alone takes as they are; their values are far out."""
UNITS: dict[str, pa.DataType] = {
    "id": pa.int64(), "person": pa.string(), "born": pa.date32(), "code": pa.decimal128(20, 0), "mark": pa.float64(),
}  # fmt: skip

_NUMBERS = (*WHOLE.values(), *REAL.values())
_ENDS = {
    pa.int8(): (-(2**7), 2**7 - 1), pa.int16(): (-(2**15), 2**15 - 1), pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1), pa.uint8(): (0, 2**8 - 1), pa.uint64(): (0, 2**64 - 1),
    pa.decimal128(38, 0): (-(10**38) + 1, 10**38 - 1),
}  # fmt: skip
_ODD_REALS = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    -1e-310,
    1e308,
    -1e308,
    2.0**53,
    1e100,
    1e-101,
    0.1,
    2.5,
]
_ODD_TEXTS = [
    "", " ", "a", "A", "a ", "é", "É", "ß", "%", "_", "a%b", "'", "a\nb", "1", "2.5", "-7", "1e5", "1e400", "inf",
    "n/a", "N/A ", "\u00a0a", "x",
    "nan", "true", "NO", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31 23:59:59.999999", "12345-01-01",
]  # fmt: skip
_FAR = [
    datetime(1, 1, 1),  # noqa: DTZ001
    datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001
]

_BOUNDS: list[tuple[Any, Any]] = [
    (0, 1), (0, 10), (0, 100), (-7, 3), (-9, -2), (100, 101), (1, 3), (-1, 1), (0, 2**29), (-(10**6), 10**12),
    (17, 10**6 + 3), (0, "0.1"), ("-0.37", "0.001"), (0, "1e-9"), ("1e-5", "1e5"), ("-1e15", "1e15"), (5, "7.5"),
    ("0.5", "1.5"), (-3, 5), (0, 3), (-100, 100), (2**53 - 1, 2**53 + 9), ("-1e-30", "1e20"), (0, "1e-20"),
]  # fmt: skip
_PERIODS = [
    (date(2020, 1, 1), date(2020, 12, 31)), (date(2019, 12, 25), date(2021, 1, 8)), (date(1, 1, 1), date(2, 1, 1)),
    (date(9999, 1, 1), date(9999, 12, 31)), (datetime(2020, 2, 28, 12), datetime(2020, 3, 1, 6)),  # noqa: DTZ001
]  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A column: its type, what the policy declares of it, and the values that its rows have."""

    name: str
    type: pa.DataType
    kind: str
    """As the row language sees it."""
    declared: dict[str, Any]
    values: tuple[Any, ...]
    """Values that matter: ends of bounds and beyond, keys and others, odd ones."""

    @property
    def keys(self) -> list[Any]:
        """Values of different groups."""
        listed = self.declared.get("keys", self.declared.get("bins", []))
        if isinstance(listed, str):
            listed = range(100)
        return (
            [_stored(Fraction(key), self.type) for key in listed]
            if self.type in _NUMBERS
            else list(listed)
        )


@dataclass(frozen=True)
class Pair:
    """A promise and two tables that differ in one unit."""

    fields: tuple[Field, ...]
    """The first is a number, and most questions are about it."""
    unit: Field | None
    terms: dict[str, Any]
    """The policy but for its source."""
    first: tuple[Row, ...]
    second: tuple[Row, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [
                (field.name, field.type)
                for field in (*self.fields, *([self.unit] if self.unit else []))
            ]
        )

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Both tables in Arrow."""
        return table_of(self.first, self.schema), table_of(self.second, self.schema)

    def common(self) -> list[int]:
        """The places of rows in the first table that the second has, too."""
        return [
            at for at, row in enumerate(self.first) if any(row is other for other in self.second)
        ]

    def without(self, places: set[int]) -> Pair:
        """The pair without some of the common rows."""
        gone = {id(self.first[at]) for at in places}
        first, second = (
            tuple(row for row in rows if id(row) not in gone) for rows in (self.first, self.second)
        )
        return replace(self, first=first, second=second)


def table_of(rows: tuple[Row, ...], schema: pa.Schema) -> pa.Table:
    return pa.table(
        {
            name: _array([row[name] for row in rows], schema.field(name).type)
            for name in schema.names
        }
    )


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The values as an array; far dates are written as the integers that they are stored as."""
    if not any(isinstance(value, int) for value in values) or not pa.types.is_temporal(kind):
        return pa.array(values, kind)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001
    days = pa.types.is_date(kind)

    def stored(value: Any) -> Any:
        if value is None or isinstance(value, int):
            return value
        if days:
            return (value - epoch.date()).days
        return math.floor((value.replace(tzinfo=None) - epoch).total_seconds())

    return pa.array(map(stored, values), pa.int32() if days else pa.int64()).cast(kind)


def pair_of(
    random: Random, names: tuple[str, ...] = tuple(TYPES), units: tuple[str, ...] = tuple(UNITS)
) -> Pair:
    """A random promise with two tables; columns and units are of the named types."""
    numbers = [name for name in names if KINDS[name] == "number"]
    focus = random.choice(["real", random.choice(numbers)])
    others = random.sample(
        [name for name in names if name != focus], min(len(names) - 1, random.randint(2, 5))
    )
    wide = not set(names).isdisjoint(WIDE)
    fields = tuple(_field(random, name, wide) for name in (focus, *others))
    neighbors = random.choice(["change-one", "add-remove"])
    terms: dict[str, Any] = {
        "neighbors": neighbors,
        "columns": {field.name: field.declared for field in fields},
    }
    unit = None
    if random.random() < 0.45:
        name = random.choice(units)
        unit = Field(name, UNITS[name], "unit", {}, tuple(_unit(name, at) for at in range(12)))
        most = random.choice([1, 2, 3, 5, 20])
        terms |= {"unit": name, "max_rows": most}
        if random.random() < 0.6:
            terms["max_groups"] = random.randint(1, min(most, 3))
    first, second = _rows(random, fields, unit, neighbors)
    return Pair(fields, unit, terms, first, second)


def _field(random: Random, name: str, wide: bool) -> Field:
    """A column with a random declaration."""
    kind = KINDS[name]
    match kind:
        case "number":
            return _number(random, name, wide)
        case "text" if random.random() < 0.2:
            bounds = random.choice(_BOUNDS[:8])
            written = [
                "0",
                "1",
                "5",
                "-7",
                "2.5",
                "1e3",
                " 3 ",
                "x",
                "",
                "1e400",
                "nan",
                "10",
                "1,000",
                "\u00a07",
                "n/a",
            ]
            read: dict[str, Any] = random.choice(
                [{}, {"trim": True}, {"thousands": ","}, {"map": {"x": "1"}}]
            )
            read |= random.choice([{}, {"missing_values": ["-7", "x"]}])
            declared = {"bounds": list(bounds), **_missing(random, bounds), **read}
            return Field(name, _type(name), "number", declared, (*written,))
        case "text":
            keys = random.sample(["a", "b", "A", "é", "", "c c", "%", "1"], random.randint(1, 5))
            declared = {} if random.random() < 0.2 else {"keys": keys}
            if declared and random.random() < 0.4:
                declared["other"] = "rest"
            if declared and random.random() < 0.3:
                declared["missing"] = random.choice(keys)
            declared |= random.choice(
                [
                    {},
                    {},
                    {"trim": True},
                    {"missing_values": ["n/a", ""]},
                    {"map": {"1": "a", "x": "é"}},
                ]
            )
            if not {"a", "A"} <= set(keys):
                declared |= random.choice([{}, {}, {"casefold": True}])
            odd = (
                [*_ODD_TEXTS, "9" * 400, "a" * 100_000, "\0", "ﬁ", "e\u0301"]
                if name == "word"
                else _ODD_TEXTS
            )
            return Field(name, _type(name), kind, declared, (*keys * (1 + 40 // len(keys)), *odd))
        case "date":
            return _date(random, name, wide)
    declared = (
        {}
        if random.random() < 0.6
        else {"keys": random.choice([[True, False], [False, True], [True]])}
    )
    if random.random() < 0.2:
        declared["missing"] = True
    return Field(name, TYPES[name], kind, declared, (True, False))


def _number(random: Random, name: str, wide: bool) -> Field:
    bounds = random.choice(_BOUNDS)
    lower, upper = Fraction(bounds[0]), Fraction(bounds[1])
    declared: dict[str, Any] = {"bounds": list(bounds), **_missing(random, bounds)}
    near = [
        lower,
        upper,
        (lower + upper) / 2,
        lower + (upper - lower) / 4,
        upper - (upper - lower) / 4,
    ]
    beyond = [lower - 1, upper + 1, -upper, 2 * upper, Fraction(0), Fraction(1)]
    style = random.random()
    if style < 0.15 and "missing" not in declared:
        keys = [Fraction(key) for key in ("0", "1", "2", "-3", "7", "2.5", "0.1")]
        declared["keys"] = "0..99" if wide else random.sample(keys, random.randint(1, 4))
        near += keys
    elif style < 0.4:
        declared["bins"] = random.choice(
            [[0, 1], [-5, 0, 5], [0, "0.1", 3, 50], list(range(8)), ["-1e9", 0, "1e9"]]
        )
        near += [Fraction(edge) for edge in declared["bins"]]
    if ("keys" in declared or "bins" in declared) and random.random() < 0.4:
        declared["other"] = "rest"
    if random.random() < 0.08:
        declared["precision"] = (upper - lower) / random.choice([3, 10, 1000])
    values = [_stored(value, TYPES[name]) for value in (*near, *near, *near, *beyond)]
    if name in ("real", "single"):
        values += _ODD_REALS[: 9 if name == "single" else None]
    if TYPES[name] in _ENDS:
        values += [*_ENDS[TYPES[name]], 0, 1]
    return Field(name, TYPES[name], "number", declared, tuple(values))


def _missing(random: Random, bounds: tuple[Any, Any]) -> dict[str, Any]:
    """What missing values count as: dropped, or an end, or something between."""
    if random.random() < 0.4:
        return {} if random.random() < 0.8 else {"missing": "drop"}
    lower, upper = Fraction(bounds[0]), Fraction(bounds[1])
    return {
        "missing": random.choice(
            [lower, upper, upper, (lower + upper) / 2, lower + (upper - lower) / 3]
        )
    }


def _date(random: Random, name: str, wide: bool) -> Field:
    period = random.choice(_PERIODS)
    declared: dict[str, Any] = {} if random.random() < 0.2 else {"bounds": list(period)}
    start = datetime(*period[0].timetuple()[:6])  # noqa: DTZ001
    days = [
        start + timedelta(days=random.randint(0, 40), hours=random.randint(0, 23)) for _ in range(6)
    ]
    moments: list[Any] = [*days, *_FAR, datetime(2020, 2, 29), datetime(2020, 12, 31, 23, 30)]  # noqa: DTZ001
    moments += [datetime(*end.timetuple()[:6]) for end in period]  # noqa: DTZ001
    if not declared and random.random() < 0.4:
        keys = list(dict.fromkeys(day.date() if name == "day" else day for day in days[:3]))
        declared = {"keys": keys}
    if name == "day":
        moments = [moment.date() for moment in moments]
    if name == "zoned":
        inside = [moment for moment in moments if 1 < moment.year < 9999] or [datetime(2020, 2, 29)]  # noqa: DTZ001
        moments = [moment.replace(tzinfo=UTC) for moment in inside]
    if name == "stamp":
        moments = [int(moment.replace(tzinfo=UTC).timestamp()) for moment in moments]
    far = {
        "day": [2**31 - 1, -(2**31), 200_000_000, 106_751_992],
        "second": _FAR_SECONDS,
        "stamp": _FAR_SECONDS,
    }
    if wide:
        moments += far.get(name, [])
    return Field(name, _type(name), "date", declared, tuple(moments))


_FAR_SECONDS = [2**62, -(2**63) + 1, 9_223_372_036_855, -9_223_372_036_855]
"""Beyond what DuckDB's own times can hold."""


def _type(name: str) -> pa.DataType:
    return {**TYPES, **WIDE}[name]


def _stored(value: Fraction, kind: pa.DataType) -> Any:
    """A number as its column can hold it, held at the ends of the type."""
    if kind in _ENDS:
        low, high = _ENDS[kind]
        whole = min(max(math.floor(value), low), high)
        return decimal.Decimal(whole) if pa.types.is_decimal(kind) else whole
    if pa.types.is_decimal(kind):
        reach = 10**kind.precision - 1
        scaled = min(max(math.floor(value * 10**kind.scale), -reach), reach)
        return decimal.Decimal(scaled).scaleb(-kind.scale, decimal.Context(prec=60))
    largest = 3e38 if kind == pa.float32() else 1e300
    return float(min(max(value, -Fraction(largest)), Fraction(largest)))


def _unit(name: str, at: int) -> Any:
    match name:
        case "person":
            return f"p{at}" if at % 3 else f"P{at} é"
        case "born":
            return date(1990, 1, 1) + timedelta(days=at)
        case "code":
            return decimal.Decimal(10**19 + at)
        case "mark":
            return at + 0.5
    return at - 3


def _rows(
    random: Random, fields: tuple[Field, ...], unit: Field | None, neighbors: str
) -> tuple[Any, Any]:
    """Two tables that differ in one unit; what they share are the same objects."""
    size = random.choice([0, 1, 2, 3, 5, 8, 10, 10, 30, 30, 30, 100, 100])
    styles = {field.name: random.choice(_STYLES) for field in fields}
    styles[fields[0].name] = random.choice(["empty", "empty", "nan", *_STYLES])
    people = random.choice([1, 2, 4, 10])

    def row(own: dict[str, str], who: Any) -> Row:
        found = {field.name: _cell(random, field, own[field.name]) for field in fields}
        return {**found, **({} if unit is None else {unit.name: who})}

    def somebody() -> Any:
        return (
            None
            if unit is None or random.random() < 0.05
            else unit.values[random.randrange(people)]
        )

    rows = [row(styles, somebody()) for _ in range(size)]
    if rows and random.random() < 0.3:
        rows = [random.choice(rows[:3]).copy() for _ in rows]
        if unit is not None:
            rows = [{**each, unit.name: somebody()} for each in rows]
    free = {
        field.name: random.choice(["full", "full", "mixed", styles[field.name]]) for field in fields
    }

    def own(who: Any) -> Row:
        return row(random.choice([styles, free]), who)

    if unit is None:
        mine, other = [own(None)], [row(free, None)]
        if random.random() < 0.4:  # one cell differs
            name = random.choice([fields[0], random.choice(fields)]).name
            other = [{**mine[0], name: other[0][name]}]
    else:
        mine, other = _unit_rows(random, fields, unit, own)
        gone = {each[unit.name] for each in (*mine, *other)}
        rows = [each for each in rows if each[unit.name] not in gone]
    if random.random() < 0.35:
        _emptied(random, fields[0], [*rows, *mine], mine if neighbors == "add-remove" else other)
    if neighbors == "add-remove":
        mine, other = random.choice([(mine, []), ([], mine)])
    at = random.randint(0, len(rows))
    return (*rows[:at], *mine, *rows[at:]), (*rows[:at], *other, *rows[at:])


def _unit_rows(
    random: Random, fields: tuple[Field, ...], unit: Field, own: Callable[[Any], Row]
) -> tuple[list[Row], list[Row]]:
    """The rows of a unit that goes, and of one that comes."""
    me = random.choice([unit.values[-1], unit.values[0]])
    counts = random.choice([1, 1, 2, 3, 7, 25]), random.choice([1, 1, 2, 3, 7, 25])
    mine, other = ([own(me) for _ in range(count)] for count in counts)
    if random.random() < 0.35:  # all of a unit's rows alike, so that they add up
        mine, other = ([each[0].copy() for _ in each] for each in (mine, other))
    if random.random() < 0.35:  # a unit in many groups
        most = random.choice([3, 6])
        mine, other = (
            [each[at % len(each)].copy() for at in range(most)] for each in (mine, other)
        )
        for field in fields:
            for at, each in enumerate((*mine, *other) if field.keys else ()):
                each[field.name] = field.keys[at % len(field.keys)]
    if random.random() < 0.3:  # another name for the one who comes
        other = [{**each, unit.name: unit.values[-2]} for each in other]
    return mine, other


def _emptied(random: Random, field: Field, rows: list[Row], there: list[Row]) -> None:
    """Leave a column empty but for a few rows."""
    nothing = random.choice([None, None, math.nan if field.name == "real" else None])
    for each in rows:
        each[field.name] = nothing
    for each in there:
        each[field.name] = random.choice([value for value in field.values if value is not None])


_STYLES = [
    "mixed",
    "mixed",
    "mixed",
    "full",
    "full",
    "empty",
    "empty",
    "nan",
    "constant",
    "low",
    "high",
]


def _cell(random: Random, field: Field, style: str) -> Any:
    match style:
        case "empty":
            return None
        case "nan" if field.name in ("real", "single"):
            return math.nan
        case "constant":
            return field.values[0]
        case "low" | "high" if field.kind == "number":
            return field.values[0 if style == "low" else 1]
        case "full":
            return random.choice(field.values)
    return None if random.random() < 0.25 else random.choice(field.values)
