"""The slow twin of every engine: expressions and requests in plain Python, row by row.

    evaluate    the value of an expression of the row language in a row, or None if it is missing
    fetch       the integers that a request asks for: condition, groups, units, grid, sums, cells
    discover    the number of units that have each key
    by_rows     the number of units by their number of rows

It shares no code with the engines: it takes values of their protocol (`engines.base`), and rows as
dictionaries of Python's own values. It is what proofs and conformance tests compare engines with,
and far too slow for anything else.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from discreet.ask import expression as ask
from discreet.ask.expression import Column, Expression, Kind
from discreet.ask.query import Group
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

Row = Mapping[str, Any]

NUMBER = re.compile(r" *[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})? *")
DATE = re.compile(
    r" *[0-9]{4}-[0-9]{2}-[0-9]{2}(["
    r" T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)? *"
)
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


LONGEST = 2**14
"""The bytes of the longest text."""


def limited(number: float) -> float:
    if abs(number) < 1e-100:
        return 0.0
    return min(max(number, -1e100), 1e100)


def kind_of(value: Any) -> Kind | None:
    match value:
        case None:
            return None
        case bool():
            return "truth"
        case str():
            return "text"
        case date():
            return "date"
        case _:
            return "number"


def plain(value: Any) -> Any:
    """A stored value as a value of the row language."""
    match value:
        case str():
            return value if len(value.encode()) <= LONGEST else None
        case None | bool():
            return value
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        case date():
            return datetime.combine(value, time())
        case float() if math.isnan(value):
            return None
        case _:
            return limited(float(value))


def evaluate(expression: Expression, row: Row) -> Any:  # noqa: PLR0911, PLR0912 - one case for each class
    def of(part: Expression) -> Any:
        return evaluate(part, row)

    match expression:
        case ask.Column(name, kind, reading):
            value = plain(row[name])
            if reading is not None and isinstance(value, str):
                value = cleaned(value, reading)
            return (
                cast(value, kind)
                if reading is None or value is None
                else read(value, kind, reading)
            )
        case ask.Constant(value, _):
            return (
                limited(float(min(max(value, Fraction(-(10**101))), Fraction(10**101))))
                if isinstance(value, Fraction)
                else plain(value)
            )
        case ask.Arithmetic(sign, left, right):
            a, b = of(left), of(right)
            return None if a is None or b is None else arithmetic(sign, a, b)
        case ask.Comparison(sign, left, right):
            a, b = of(left), of(right)
            return None if a is None or b is None else compare(sign, a, b)
        case ask.Every(parts):
            values = [of(part) for part in parts]
            return False if False in values else None if None in values else True
        case ask.Some(parts):
            values = [of(part) for part in parts]
            return True if True in values else None if None in values else False
        case ask.Negation(part):
            return None if of(part) is None else not of(part)
        case ask.Membership(part, choices):
            return (
                of(
                    ask.Some(
                        (FALSE, FALSE, *(ask.Comparison("=", part, choice) for choice in choices))
                    )
                )
                if (of(part) is not None)
                else None
            )
        case ask.Missing(part):
            return of(part) is None
        case ask.Likeness(part, pattern):
            value = of(part)
            return None if value is None else like(value, pattern)
        case ask.Case(branches, otherwise):
            return next(
                (of(value) for condition, value in branches if of(condition) is True), of(otherwise)
            )
        case ask.Coalesce(parts):
            return next((of(part) for part in parts if of(part) is not None), None)
        case ask.Function(name, arguments):
            values = [of(argument) for argument in arguments]
            return None if None in values else function(name, values)
        case ask.Part(part, inner):
            value = of(inner)
            return None if value is None else float(date_part(part, value))
        case ask.Truncated(unit, inner):
            value = of(inner)
            return None if value is None else truncated(unit, value)
        case ask.Cast(part, kind):
            return cast(of(part), kind)


BLANK = {
    chr(code)
    for code in (9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029)
}
BLANK |= set("\u202f\u205f\u3000\ufeff")


def folded(letter: str) -> str:
    """A letter; small if a Latin-1, Extended-A, Greek or Cyrillic capital with one small letter."""
    blocks = (
        "A" <= letter <= "Z",
        "À" <= letter <= "Þ",
        "Ā" <= letter <= "ſ",
        "\u0370" <= letter <= "\u04ff",
    )
    return letter.lower() if any(blocks) and len(letter.lower()) == 1 else letter


def cleaned(text: str, reading: ask.Reading) -> str | None:
    """A text after trim, casefold, missing and map, one character after another."""
    letters = list(text)
    while reading.trim and letters and letters[0] in BLANK:
        del letters[0]
    while reading.trim and letters and letters[-1] in BLANK:
        del letters[-1]
    text = "".join(map(folded, letters) if reading.casefold else letters)
    if text in reading.missing:
        return None
    return next((after for before, after in reading.map if before == text), text)


def read(text: str, kind: Kind, reading: ask.Reading) -> Any:
    """A text by its declared marks and formats, one character after another."""
    if kind == "date" and reading.formats:
        moments = (moment(text.strip(" "), written) for written in reading.formats)
        return next((found for found in moments if found is not None), None)
    if kind != "number":
        return cast(text, kind)
    if reading.thousands or reading.decimal != ".":
        whole, mark, rest = text.strip(" ").partition(reading.decimal)
        groups = (
            whole.lstrip("+-").split(reading.thousands)
            if reading.thousands
            else [whole.lstrip("+-")]
        )
        if len(groups) > 1 and not (
            1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
        ):
            return None
        if not all(group.isascii() and group.isdigit() for group in groups[:-1]) or any(
            "." in part for part in (*groups, rest)
        ):
            return None
        sign = whole[: len(whole) - len(whole.lstrip("+-"))]
        text = sign + "".join(groups) + (f".{rest}" if mark else "")
    number = cast(text, "number")
    return None if number is None or (reading.whole and number != math.floor(number)) else number


MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def moment(text: str, written: str) -> datetime | None:
    """A date in a format; digits are taken as many as there may be."""
    found, at = {"%f": "0"}, 0
    joined = re.search("%[YmdHMSf]%[YmdHMSf]", written) is not None  # then digits cannot be fewer
    while written:
        part = written[: 2 if written[0] == "%" else 1]
        written = written[len(part) :]
        if len(part) == 1:
            if "%b" in found or "%b" in written:
                part = part.lower()
                text = text.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))
            if text[at : at + 1] != part:
                return None
            at += 1
            continue
        most = {"%Y": 4, "%f": 6, "%b": 3}.get(part, 2)
        taken = text[at : at + most]
        if part == "%b":
            if taken.lower() not in MONTHS:
                return None
            found["%m"] = str(MONTHS.index(taken.lower()) + 1)
        else:
            taken = "".join(itertools.takewhile("0123456789".__contains__, taken))
        if not taken or (part == "%Y" and len(taken) < 4) or (joined and len(taken) < most):
            return None
        found[part] = taken
        at += len(taken)
    year, month, day, *clock = (
        int(found.get(part, 0)) for part in ("%Y", "%m", "%d", "%H", "%M", "%S")
    )
    hour, minute, second, micro = *clock, int(found["%f"].ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, micro) if at == len(text) else None  # noqa: DTZ001
    except ValueError:
        return None


FALSE = ask.Constant(False, "truth")


@cache
def like(text: str, pattern: str) -> bool:
    """By the set of places in the pattern that the text so far may have led to."""

    def closed(places: set[int]) -> set[int]:
        """With the places behind each % that is reached."""
        more = {place + 1 for place in places if pattern[place : place + 1] == "%"} - places
        return closed(places | more) if more else places

    here = closed({0})
    for character in text:
        stay = {place for place in here if pattern[place : place + 1] == "%"}
        here = closed(
            stay
            | {
                place + 1
                for place in here
                if pattern[place : place + 1] in {"_", character} - {"%"}
            }
        )
    return len(pattern) in here


def arithmetic(sign: str, a: float, b: float) -> float | None:
    match sign:
        case "+":
            return limited(a + b)
        case "-":
            return limited(a - b)
        case "*":
            return limited(a * b)
        case _:
            return None if b == 0 else limited(a / b)


def compare(sign: str, a: Any, b: Any) -> bool:
    return bool(
        {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]
    )


def function(name: str, values: list[Any]) -> Any:  # noqa: PLR0911 - one case for each function
    match name:
        case "abs":
            return abs(values[0])
        case "floor":
            return float(math.floor(values[0]))
        case "ceil":
            return float(math.ceil(values[0]))
        case "round":
            return float(math.floor(values[0] + 0.5))
        case "least":
            return min(values)
        case "greatest":
            return max(values)
        case "lower":
            return values[0].translate(LOWER)
        case "upper":
            return values[0].translate(UPPER)
        case "trim":
            return values[0].strip(" ")
        case "length":
            return float(len(values[0]))
        case _:
            text, start, length = values
            if not (1 <= start <= 1e6 and 0 <= length <= 1e6):
                return None
            return text[math.floor(start) - 1 :][: math.floor(length)]


def date_part(part: str, value: datetime) -> int:
    match part:
        case "quarter":
            return (value.month + 2) // 3
        case "week":
            return value.isocalendar().week
        case "weekday":
            return value.isoweekday()
        case "days":
            return (value.date() - date(1970, 1, 1)).days
        case _:
            return int(getattr(value, part))


def truncated(unit: str, value: datetime) -> datetime:
    day = datetime.combine(value.date(), time())
    match unit:
        case "hour":
            return day + timedelta(hours=value.hour)
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(day=1, month=(value.month - 1) // 3 * 3 + 1)
        case _:
            return day.replace(day=1, month=1)


def cast(value: Any, kind: Kind) -> Any:  # noqa: PLR0911 - one case for each pair of kinds
    match kind_of(value), kind:
        case before, after if before == after:
            return value
        case "truth", "number":
            return float(value)
        case "truth", "text":
            return "true" if value else "false"
        case "number", "truth":
            return value != 0
        case "number", "text":
            return str(int(value)) if abs(value) < 2**53 and value == math.floor(value) else None
        case "text", "number":
            return limited(float(value)) if NUMBER.fullmatch(value) else None
        case "text", "date":
            try:
                return datetime.fromisoformat(value.strip(" ")) if DATE.fullmatch(value) else None
            except ValueError:
                return None
        case "text", "truth":
            word = value.strip(" ").translate(LOWER)
            return (
                True
                if word in {"true", "t", "yes", "y", "1"}
                else False
                if word in {"false", "f", "no", "n", "0"}
                else None
            )
        case "date", "text":
            seconds = value.isoformat(" ", "seconds")
            return seconds[:10] if value.time() == time() else seconds
        case _:
            return None


def on_grid(value: OnGrid, row: Row) -> int | None:
    """The grid point of a row's value, from the lowest; None if it is missing and dropped."""
    number = evaluate(value.of, row)
    if number is None:
        return None if value.missing is None else value.missing - value.grid.lower
    clamped: float = min(
        max(number * 2.0**-value.grid.exponent, float(value.grid.lower)), float(value.grid.upper)
    )
    return math.floor(clamped + 0.5) - value.grid.lower


def fact(measure: Measure, row: Row) -> int | None:
    """The integer that a row has for a measure."""
    match measure:
        case Rows(None) | Units():
            return 1
        case Rows(of):
            value = None if of is None else evaluate(of, row)
            return None if value is None or value is False else 1
        case Total(value) | Squares(value) | Present(value) | Cells(value):
            return on_grid(value, row)
        case Product(first, second, (power, other)):
            a, b = on_grid(first, row), on_grid(second, row)
            return None if a is None or b is None else int(a**power * b**other)
    raise TypeError(f"no row has a fact for {type(measure).__name__}")


def size(group: Group) -> int:
    """The rows of a group column in an answer."""
    return len(group.keys) + (group.other is not None)


def indices(group: Group) -> dict[Any, int | None]:
    """The index of each key, as a value of the row language; none for bins."""
    if group.edges is not None:
        return {}
    keys = [evaluate(ask.Constant(key, kind_of(key) or "text"), {}) for key in group.keys]
    return {key: index for index, key in reversed(list(enumerate(keys)))}


def position(group: Group, index_of: Mapping[Any, int | None], row: Row) -> int | None:
    """The index of a row among the keys of a group column, or None if it is in no group."""
    value = evaluate(group.of, row)
    outside = None if group.other is None else len(group.keys)
    if value is None:
        return outside
    if group.edges is not None:
        edges = [limited(float(edge)) for edge in group.edges]
        if not edges[0] <= value <= edges[-1]:
            return outside
        return min(sum(bool(edge <= value) for edge in edges) - 1, len(edges) - 2)
    at: int | None = index_of.get(value, outside)
    return at


def unit_text(value: Any) -> str:
    """A unit as a text for hashes."""
    match value:
        case str():
            return value
        case bool() | int():
            return str(int(value))
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
        case date():
            return unit_text(datetime.combine(value, time()))
        case Decimal() if value == value.to_integral_value():
            return str(int(value))
        case _:
            number = float(value)
            return str(math.floor(number)) if abs(number) < 2**63 else ""


def md5(parts: Sequence[Any]) -> str:
    """The hash by which a unit's rows are chosen."""
    text = "|".join("" if part is None else str(part) for part in parts)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def facts_of(request: Request) -> list[Any]:
    """The facts in the order in which a statement has them: one for each different one."""
    found: list[Any] = []
    for measure in request.measures:
        match measure:
            case Units() | Rows(None):
                continue
            case Rows(of):
                facts: list[Any] = [of]
            case Product(first, second):
                facts = [first, second]
            case _:
                facts = [measure.value]
        found += [one for one in facts if one not in found]
    return found


def fetch(request: Request, rows: Sequence[Row]) -> list[list[Any]]:
    """What an engine must give back."""
    groups, shape = request.groups, [size(group) for group in request.groups]
    keys = [indices(group) for group in groups]
    by_unit: dict[Any, list[tuple[int, Row]]] = defaultdict(list)
    for number, row in enumerate(rows):
        if request.where is not None and evaluate(request.where, row) is not True:
            continue
        if request.unit is not None and plain(row[request.unit]) is None:
            continue
        place: int | None = 0
        for group, index_of, many in zip(groups, keys, shape, strict=True):
            at = position(group, index_of, row)
            place = None if at is None or place is None else place * many + at
        if place is not None:
            by_unit[number if request.unit is None else row[request.unit]].append((place, row))
    in_place: dict[int, list[Row]] = defaultdict(list)
    for unit, its in by_unit.items():
        for place, row in its if request.unit is None else counting(request, unit_text(unit), its):
            in_place[place].append(row)
    found = [
        [value(measure, in_place.get(place, []), request) for place in range(math.prod(shape))]
        for measure in request.measures
    ]
    if request.sets is None:
        return found
    full = [np.array(column, object).reshape(shape) for column in found]
    others = [tuple(at for at in range(len(groups)) if at not in chosen) for chosen in request.sets]
    return [
        [n for other in others for n in np.ravel(table.sum(axis=other)).tolist()] for table in full
    ]


def counting(request: Request, unit: str, rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """The rows of a unit that count."""
    if request.max_groups is not None:
        places = sorted({place for place, _ in rows}, key=lambda place: (md5([unit, place]), place))
        rows = [one for one in rows if one[0] in places[: request.max_groups]]
    if request.max_rows is None or len(rows) <= request.max_rows:
        return rows
    copies: Counter[Any] = Counter()
    ranked = []
    for place, row in rows:
        facts = [
            fact(Rows(one), row) if not isinstance(one, OnGrid) else on_grid(one, row)
            for one in facts_of(request)
        ]
        content = (place, *facts)
        copies[content] += 1
        ranked.append((md5([unit, *content, copies[content]]), place, row))
    ranked.sort(key=lambda one: one[0])
    return [(place, row) for _, place, row in ranked[: request.max_rows]]


def value(measure: Measure, rows: list[Row], request: Request) -> Any:
    """The integer of a group, or the counts of its cells."""
    if isinstance(measure, Units):
        return len({row[request.unit] for row in rows}) if request.unit is not None else len(rows)
    found = [one for one in (fact(measure, row) for row in rows) if one is not None]
    match measure:
        case Total() | Product():
            return sum(found)
        case Squares():
            return sum(one * one for one in found)
        case Cells(value):
            return np.bincount(np.array(found, np.int64), minlength=value.grid.width + 1)
    return len(found)


def discover(
    of: Expression, rows: Sequence[Row], unit: str | None, limit: int
) -> dict[str | int, int]:
    """How many units have each key, text or whole number below 2⁵³; at most `limit` keys a unit."""
    keys_of: dict[Any, set[str | int]] = defaultdict(set)
    for number, row in enumerate(rows):
        found = evaluate(of, row)
        if isinstance(found, float):
            found = int(found) if abs(found) < 2**53 and found == math.floor(found) else None
        if found is None or (unit is not None and plain(row[unit]) is None):
            continue
        keys_of[number if unit is None else row[unit]].add(found)
    counts: Counter[str | int] = Counter()
    for owner, keys in keys_of.items():
        counts.update(sorted(keys, key=lambda key: (md5([unit_text(owner), key]), key))[:limit])
    return dict(counts)


def by_rows(rows: Sequence[Row], unit: str, limits: Sequence[int]) -> list[int]:
    """The number of units by the smallest limit on rows that they keep; those beyond come last."""
    sizes = Counter(row[unit] for row in rows if plain(row[unit]) is not None)
    counts = [0] * (len(limits) + 1)
    for many in sizes.values():
        counts[
            next((index for index, limit in enumerate(limits) if many <= limit), len(limits))
        ] += 1
    return counts


def kept(epsilon: Fraction, delta: Fraction, units: int) -> float:
    """The probability that a discovery shows a key of so many units, from its recursion."""
    found, growth, failing = 0.0, math.exp(epsilon), float(delta)
    for _ in range(units):
        found = min(growth * found + failing, 1 - (1 - found - failing) / growth, 1.0)
    return found


END = Fraction(10**100)
"""The largest number of the row language."""


def octaves(of: Column, whole: bool) -> Group:
    """Powers of two and 0, between which a column is profiled; missing values are a last group."""
    powers = [Fraction(2) ** power for power in (range(64) if whole else range(-40, 65))]
    zero = [Fraction(0)] if whole else [Fraction(0), 1 / END]
    edges = (-END, *(-power for power in reversed(powers)), *zero, *powers, END)
    return Group(of.name, of, [str(index) for index in range(len(edges) - 1)], "missing", edges)  # type: ignore[arg-type]
