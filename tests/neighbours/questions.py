"""Random questions in SQL or in Python: every aggregate, the whole row language, groups, and what
costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from random import Random
from typing import Any

from discreet.ask import statistics as python
from discreet.release.plan import Plan
from discreet.release.study import Study
from neighbours.tables import Field, Pair

_EPSILONS = ["0.01", "0.3", "1", "1/3", "2.5", "7"]
_SHARES = ["0", "0.1", "0.25", "0.5", "0.9", "0.999", "1"]
_PARTS = ["year", "quarter", "month", "week", "day", "isodow", "hour", "minute", "second"]
_UNITS = ["year", "quarter", "month", "week", "day", "hour"]
_LITERALS = ["0", "1", "2", "-1", "0.5", "7", "100", "1e10", "1e-10", "-3.75"]
_UNSTREAMED = r"HAVING|ORDER BY|median|quantile|min\(|max\("
"""What an answer in a file does not have."""
_DATES = [
    date(2020, 2, 29),
    datetime(2020, 6, 1, 12),  # noqa: DTZ001
    date(1, 1, 1),
    date(9999, 12, 31),
]
_TEXTS = ["", "a", "A", "b", "é", "1", "2.5", "true", "2020-02-29", "%", "a%", "_"]


@dataclass(frozen=True)
class Asked:
    """A question that can be planned over any study of the same promise."""

    text: str
    """For a reader: SQL, or the questions in Python."""
    terms: dict[str, Any]
    build: Callable[[Study], Plan]
    statistic: str
    """The aggregate, if there is but one."""
    streamed: bool = False
    """Whether the answer goes to a file."""

    def __str__(self) -> str:
        return f"{self.text}  with {self.terms}"


def question_of(random: Random, pair: Pair) -> Asked:
    """A random question about a pair."""
    writer = Writer(random, pair)
    groups = [writer.group() for _ in range(random.choice([0, 0, 0, 1, 1, 2]))]
    where = writer.truth(random.choice([0, 1, 1, 2, 3])) if random.random() < 0.5 else None
    if where is not None and random.random() < 0.3:
        where = f"{pair.fields[0].name} IS NULL OR {where}"
    terms: dict[str, Any] = {"epsilon": random.choice(_EPSILONS)}
    if random.random() < 0.2:
        terms["confidence"] = random.choice(["0.5", "0.99"])
    if random.random() < 0.1:
        terms["simultaneous"] = True
    single = random.random() < 0.6
    if random.random() < 0.2:
        asked = {f"n{at}": writer.question() for at in range(1 if single else random.randint(2, 3))}
        text = f"{asked} by {groups} where {where}"

        def build(study: Study) -> Plan:
            found = study.ask(**asked).by(*[f"{group} AS g{at}" for at, group in enumerate(groups)])
            return (found if where is None else found.where(where)).plan(**terms)

        names = [type(one).__name__.lower() for one in asked.values()]
        return Asked(text, terms, build, names[0] if single else "several")
    aggregates = [writer.aggregate() for _ in range(1 if single else random.randint(2, 4))]
    items = [f"{group} AS g{at}" for at, group in enumerate(groups) if random.random() < 0.8]
    items += [f"{aggregate} AS n{at}" for at, aggregate in enumerate(aggregates)]
    sql = f"SELECT {', '.join(items)} FROM data"  # noqa: S608
    sql += f" WHERE {where}" if where is not None else ""
    sql += f" GROUP BY {', '.join(groups)}" if groups else ""
    if random.random() < 0.1 and "[" not in aggregates[0]:
        sql += f" HAVING {aggregates[0]} > {random.choice(['0', '3', '-1'])}"
    if random.random() < 0.1:
        sql += f" ORDER BY {aggregates[0]} DESC LIMIT 3" if "[" not in aggregates[0] else ""
    if len(aggregates) > 1 and random.random() < 0.2 and "[" not in aggregates[0]:
        terms["weights"] = {"n0": random.choice([2, "0.1"])}
    name = re.match(r"\w+(\(\*\)|\(DISTINCT)?", aggregates[0])
    statistic = name[0].lower().replace("(distinct", " of units") if name else "?"
    streamed = bool(groups) and not re.search(_UNSTREAMED, sql) and random.random() < 0.15
    return Asked(
        sql,
        terms,
        lambda study: study.sql(sql, **terms),
        statistic if single else "several",
        streamed,
    )


class Writer:
    """Expressions about the columns of a pair, as texts."""

    def __init__(self, random: Random, pair: Pair) -> None:
        self.random, self.pair = random, pair

    def pick(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def fields(self, kind: str, declared: str = "") -> list[Field]:
        return [
            field
            for field in self.pair.fields
            if field.kind == kind and (not declared or declared in field.declared)
        ]

    def group(self) -> str:
        """Something that has keys."""
        keyed = [f.name for f in self.pair.fields if "keys" in f.declared or "bins" in f.declared]
        numbers = [f.name for f in self.fields("number")]
        dates = [f.name for f in self.fields("date", "bounds")]
        choices: list[Callable[[], str]] = [lambda: self.truth(1), self._labelled]
        if keyed:
            choices += [lambda: self.random.choice(keyed)] * 6
        if numbers:
            edges = self.random.choice(
                ["0, 1", "-5, 0, 5", "0, 0.1, 3, 50", "-1e9, 0, 1e9", "1, 2, 3, 4, 5, 6"]
            )
            choices += [lambda: f"bin({self.random.choice(numbers)}, {edges})"] * 2
        if dates:
            part = self.random.choice(_PARTS[:7])
            unit = self.random.choice(["month", "week", "quarter", "year"])
            name = self.random.choice(dates)
            choices += [
                lambda: f"extract({part} FROM {name})",
                lambda: f"date_trunc('{unit}', {name})",
            ]
            choices.append(lambda: f"strftime({name}, '%Y-%m')")
        return self.pick(*choices)

    def _labelled(self) -> str:
        return f"CASE WHEN {self.truth(1)} THEN 'x' WHEN {self.truth(1)} THEN 'y' ELSE 'z' END"

    def aggregate(self) -> str:
        """An aggregate."""
        of = self.bounded(self.random.choice([0, 0, 0, 1, 2]))
        share = self.random.choice(_SHARES)
        shares = ", ".join(sorted(self.random.sample(_SHARES, 2)))
        choices = [
            "count(*)", f"count({of})", f"count({self.any(1)})", f"count(*) FILTER (WHERE {self.truth(2)})",
            f"sum({of})", f"sum({of})", f"avg({of})", f"avg({of})", f"avg({self.truth(1)})", f"var_pop({of})",
            f"variance({of})", f"stddev({of})", f"stddev_pop({of})", f"median({of})", f"quantile({of}, {share})",
            f"quantile({of}, [{shares}])", f"min({of})", f"max({of})", f"sum({self.truth(1)})",
            f"percentile_cont({share}) WITHIN GROUP (ORDER BY {of})",
        ]  # fmt: skip
        if self.pair.unit is not None:
            choices += [f"count(DISTINCT {self.pair.unit.name})"] * (
                12 if "max_groups" in self.pair.terms else 5
            )
        return self.random.choice(choices)

    def question(self) -> python.Question:
        """A question in Python."""
        of = self.bounded(self.random.choice([0, 0, 1]))
        choices: list[python.Question] = [
            python.Count(), python.Count(self.truth(1)), python.Sum(of), python.Mean(of), python.Variance(of, True),
            python.Std(of), python.Median(of), python.Quantile(of, self.random.choice(_SHARES)),
            python.Quantile(of, ["0.25", "0.75"]), python.Min(of), python.Max(of), python.Proportion(self.truth(1)),
        ]  # fmt: skip
        if self.pair.unit is not None:
            choices.append(python.CountUnits())
        return self.random.choice(choices)

    def any(self, depth: int) -> str:
        return self.pick(
            *(
                lambda kind=kind: getattr(self, kind)(depth)
                for kind in ("number", "text", "date", "truth")
            )
        )

    def bounded(self, depth: int) -> str:
        """A number with bounds that follow from the promise."""
        columns = [field.name for field in self.fields("number", "bounds")]
        if depth == 0 and columns:
            return columns[0] if self.random.random() < 0.6 else self.random.choice(columns)

        def limited() -> str:
            low, high = self.random.choice(
                [("0", "1"), ("-5", "5"), ("0", "100"), ("1", "2.5"), ("-10", "-9.5")]
            )
            return f"LEAST(GREATEST({self.number(2)}, {low}), {high})"

        inner = lambda: self.bounded(depth - 1 if depth else 0)  # noqa: E731
        choices: list[Callable[[], str]] = [
            limited,
            limited,
            lambda: f"CAST({self.truth(1)} AS INTEGER)",
        ]
        if columns and depth:
            choices += [
                lambda: f"({inner()} {self.random.choice('+-*')} {inner()})",
                lambda: (
                    f"({inner()} {self.random.choice('+-*/')}"
                    f" {self.random.choice(['2', '-3', '0.1', '7'])})"
                ),
                lambda: f"CASE WHEN {self.truth(depth)} THEN {inner()} END",
                lambda: f"CASE WHEN {self.truth(depth)} THEN {inner()} ELSE {inner()} END",
                lambda: f"COALESCE({inner()}, {inner()})",
                lambda: f"COALESCE({inner()}, {self.random.choice(_LITERALS[:6])})",
                lambda: f"{self.random.choice(['ABS', 'FLOOR', 'CEIL', 'ROUND'])}({inner()})",
                lambda: f"{self.random.choice(['LEAST', 'GREATEST'])}({inner()}, {inner()})",
            ]
        if self.fields("date"):
            choices.append(lambda: f"extract({self.random.choice(_PARTS[1:])} FROM {self.date(1)})")
        return self.pick(*choices)

    def number(self, depth: int) -> str:
        """Any number."""
        columns = [field.name for field in self.fields("number")]
        leaves = [self._number_literal] + [lambda: self.random.choice(columns)] * (
            3 if columns else 0
        )
        if depth <= 0:
            return self.pick(*leaves)
        inner = lambda: self.number(depth - 1)  # noqa: E731
        return self.pick(
            *leaves,
            lambda: f"({inner()} {self.random.choice('+-*/')} {inner()})",
            lambda: f"{self.random.choice(['ABS', 'FLOOR', 'CEIL', 'ROUND'])}({inner()})",
            lambda: f"{self.random.choice(['LEAST', 'GREATEST'])}({inner()}, {inner()})",
            lambda: f"CASE WHEN {self.truth(depth - 1)} THEN {inner()} ELSE {inner()} END",
            lambda: f"COALESCE({inner()}, {inner()})",
            lambda: f"LENGTH({self.text(depth - 1)})",
            lambda: f"CAST({self.text(depth - 1)} AS DOUBLE)",
            lambda: f"CAST({self.truth(depth - 1)} AS INTEGER)",
            lambda: f"extract({self.random.choice(_PARTS)} FROM {self.date(depth - 1)})",
            lambda: f"CAST({inner()} AS INTEGER)",
            lambda: f"({self.date(depth - 1)} - {self.date(depth - 1)})",
            lambda: (
                f"date_diff('{self.random.choice(_UNITS)}', {self.date(depth - 1)},"
                f" {self.date(depth - 1)})"
            ),
        )

    def text(self, depth: int) -> str:
        """Any text."""
        columns = [field.name for field in self.fields("text")]
        leaves = [self._text_literal] + [lambda: self.random.choice(columns)] * (
            3 if columns else 0
        )
        if depth <= 0:
            return self.pick(*leaves)
        inner = lambda: self.text(depth - 1)  # noqa: E731
        return self.pick(
            *leaves,
            lambda: f"{self.random.choice(['LOWER', 'UPPER', 'TRIM'])}({inner()})",
            lambda: (
                f"SUBSTRING({inner()}, {self.random.randint(1, 3)}, {self.random.randint(0, 4)})"
            ),
            lambda: f"COALESCE({inner()}, {self._text_literal()})",
            lambda: f"CASE WHEN {self.truth(depth - 1)} THEN {inner()} END",
            lambda: f"CAST({self.number(depth - 1)} AS VARCHAR)",
            lambda: f"CAST({self.date(depth - 1)} AS VARCHAR)",
            lambda: f"CAST({self.truth(depth - 1)} AS VARCHAR)",
        )

    def date(self, depth: int) -> str:
        """Any date."""
        columns = [field.name for field in self.fields("date")]
        leaves = [self._date_literal] + [lambda: self.random.choice(columns)] * (
            3 if columns else 0
        )
        if depth <= 0:
            return self.pick(*leaves)
        inner = lambda: self.date(depth - 1)  # noqa: E731
        return self.pick(
            *leaves,
            lambda: f"date_trunc('{self.random.choice(_UNITS)}', {inner()})",
            lambda: f"CAST({self.text(depth - 1)} AS {self.random.choice(['DATE', 'TIMESTAMP'])})",
            lambda: f"CAST({inner()} AS DATE)",
            lambda: f"COALESCE({inner()}, {self._date_literal()})",
            lambda: f"CASE WHEN {self.truth(depth - 1)} THEN {inner()} ELSE {inner()} END",
        )

    def truth(self, depth: int) -> str:
        """Any condition."""
        columns = [field.name for field in self.fields("truth")]
        names = [field.name for field in self.pair.fields]
        leaves: list[Callable[[], str]] = [
            lambda: f"{self.random.choice(names)} IS NULL",
            lambda: f"{self.random.choice(names)} IS NOT NULL",
            lambda: self._compared(0),
            lambda: self._compared(0),
        ]
        leaves += [lambda: self.random.choice(columns)] * (2 if columns else 0)
        if depth <= 0:
            return f"({self.pick(*leaves)})"
        inner = lambda: self.truth(depth - 1)  # noqa: E731
        number = lambda: self.number(depth - 1)  # noqa: E731
        found = self.pick(
            *leaves,
            lambda: self._compared(depth - 1),
            lambda: self._compared(depth - 1),
            lambda: f"{inner()} AND {inner()}",
            lambda: f"{inner()} OR {inner()}",
            lambda: f"NOT {inner()}",
            lambda: f"{self.any(depth - 1)} IS NULL",
            lambda: f"{number()} IN ({self._number_literal()}, {self._number_literal()})",
            lambda: (
                f"{self.text(depth - 1)} NOT IN ({self._text_literal()}, {self._text_literal()})"
            ),
            lambda: f"{number()} BETWEEN {number()} AND {number()}",
            lambda: f"{self.text(depth - 1)} LIKE '{self._pattern()}'",
            lambda: f"COALESCE({inner()}, {self.random.choice(['TRUE', 'FALSE'])})",
            lambda: f"CAST({self.text(depth - 1)} AS BOOLEAN)",
        )
        return f"({found})"

    def _compared(self, depth: int) -> str:
        sign = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        kind = self.random.choice(["number", "number", "text", "date"])
        return f"{getattr(self, kind)(depth)} {sign} {getattr(self, kind)(max(depth - 1, 0))}"

    def _pattern(self) -> str:
        return "".join(self.random.choice("a%_é.A1") for _ in range(self.random.randint(0, 4)))

    def _number_literal(self) -> str:
        known = [
            value for field in self.fields("number") for value in field.declared.get("bounds", ())
        ]
        if known and self.random.random() < 0.6:
            value = Fraction(self.random.choice(known))
            if not value or Fraction(1, 10**90) < abs(value) < 10**90:
                return str(value.numerator) if value.denominator == 1 else f"{float(value)!r}"
        return self.random.choice(_LITERALS)

    def _text_literal(self) -> str:
        return "'" + self.random.choice(_TEXTS).replace("'", "''") + "'"

    def _date_literal(self) -> str:
        known = [
            value for field in self.fields("date") for value in field.declared.get("bounds", ())
        ]
        found = self.random.choice([*known, *_DATES])
        word = "TIMESTAMP" if isinstance(found, datetime) else "DATE"
        return (
            f"{word} '{found.isoformat(' ') if isinstance(found, datetime) else found.isoformat()}'"
        )
