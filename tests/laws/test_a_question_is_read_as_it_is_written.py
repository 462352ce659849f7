"""What is written as SQL, in any spelling, is read as the same value.

Random expressions and questions are printed by the writer of this file, with no more parentheses
than the precedence of the signs needs, and in odd spellings: capitals, spaces, comments, quotes,
forms of numbers, synonyms. The control is a writer without parentheses, which must be caught.
"""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from asking import POLICY, SCHEMA
from discreet.ask import expression as ask
from discreet.ask.normal import TRUE, decimal, normal
from discreet.ask.query import Combined, Named, Number, Query, aggregate_text, assembled, group_text
from discreet.ask.query import Test as Condition
from discreet.ask.scope import Scope
from discreet.ask.sql import parse, parse_expression
from discreet.errors import QueryRefused

COLUMNS = {
    "number": ["age", "income", "band"],
    "text": ["county", "sex", "name"],
    "date": ["day"],
    "truth": ["smoker"],
}
TEXTS = [
    "",
    "f",
    "it's",
    "größe",
    "a;b",
    "-- no",
    "/* no */",
    "😀",
    "100%",
    "_a%",
    'say "x"',
    " SELECT ",
]
SYNONYMS = {
    "=": ["=", "=="],
    "<>": ["<>", "!="],
    "lower": ["lower", "LCASE"],
    "length": ["length", "len"],
    "ceil": ["ceil", "ceiling"],
    "weekday": ["isodow"],
    "day": ["day", "dayofmonth"],
    "week": ["week", "weekofyear"],
    "number": ["DOUBLE", "double  precision", "REAL"],
    "text": ["VARCHAR", "text"],
    "truth": ["BOOLEAN", "bool"],
    "date": ["TIMESTAMP"],
    "mean": ["avg", "mean"],
    "variance": ["var_pop"],
    "std": ["stddev_pop"],
}
OR, AND, NOT, COMPARED, ADDED, MULTIPLIED, ATOM = range(7)
"""How strongly a text binds; in a place that binds more strongly it needs parentheses."""


class Writer(random.Random):
    """Random values, and their texts."""

    parenthesised = True

    def value(self, kind: str, depth: int) -> ask.Expression:  # noqa: PLR0911
        """An expression of a kind."""
        if not depth or self.random() < 0.15:
            return (
                self.constant(kind)
                if self.random() < 0.4
                else ask.Column(self.choice(COLUMNS[kind]), kind)
            )
        below = depth - 1
        match kind, self.randrange(10):
            case _, 0:
                cases = (
                    (self.value("truth", below), self.value(kind, below))
                    for _ in range(self.randint(1, 2))
                )
                return ask.Case(
                    tuple(cases), self.choice([ask.Constant(None, kind), self.value(kind, below)])
                )
            case _, 1:
                return ask.Coalesce((self.value(kind, below), self.value(kind, below)))
            case "number", 2 | 3 | 4 | 5 | 6 | 7:
                return ask.Arithmetic(
                    self.choice("+-*/"), self.value(kind, below), self.value(kind, below)
                )
            case "number", 8:
                name = self.choice(["abs", "floor", "ceil", "round", "least", "length"])
                return ask.Function(
                    name, (self.value("text" if name == "length" else kind, below),)
                )
            case "number", _:
                return ask.Part(
                    self.choice(["year", "month", "week", "day", "weekday"]),
                    self.value("date", below),
                )
            case "text", 2 | 3 | 4:
                return ask.Cast(self.value(self.choice(["number", "truth", "date"]), below), kind)
            case "text", 5 | 6:
                ends = (ask.Constant(Fraction(self.randint(1, 3)), "number") for _ in range(2))
                return ask.Function("substring", (self.value(kind, below), *ends))
            case "text", _:
                return ask.Function(
                    self.choice(["lower", "upper", "trim"]), (self.value(kind, below),)
                )
            case "date", _:
                return ask.Truncated(
                    self.choice(["year", "month", "week", "hour"]), self.value(kind, below)
                )
        return self.condition(below)

    def condition(self, depth: int) -> ask.Expression:
        kind = self.choice(["number", "text", "date"])
        match self.randrange(10):
            case 0 | 1 | 2:
                return ask.Every(
                    tuple(self.value("truth", depth) for _ in range(self.randint(2, 3)))
                )
            case 3 | 4 | 5:
                return ask.Some(
                    tuple(self.value("truth", depth) for _ in range(self.randint(2, 3)))
                )
            case 6:
                return ask.Negation(self.value("truth", depth))
            case 7:
                choices = tuple(self.constant(kind) for _ in range(self.randint(1, 3)))
                return ask.Membership(self.value(kind, depth), choices)
            case 8:
                return self.choice(
                    [
                        ask.Missing(self.value(kind, depth)),
                        ask.Likeness(self.value("text", depth), "a%"),
                    ]
                )
        sign = self.choice(["=", "<>", "<", "<=", ">", ">="])
        return ask.Comparison(sign, self.value(kind, depth), self.value(kind, depth))

    def constant(self, kind: str) -> ask.Constant:
        number = Fraction(self.randint(-2000, 2000), self.choice([1, 1, 2, 8, 1000]))
        moment = datetime(2020, 1, 31) + timedelta(hours=self.randint(0, 9000))  # noqa: DTZ001
        values = {
            "number": number,
            "text": self.choice(TEXTS),
            "date": moment,
            "truth": self.random() < 0.5,
        }
        return ask.Constant(values[kind], kind)

    def written(self, value: ask.Expression, place: int = OR) -> str:
        """The text of an expression, in a place that binds so strongly."""
        level, text = self.text(value)
        extra = self.random() < 0.1
        return f"({text})" if self.parenthesised and (level < place or extra) else text

    def text(self, value: ask.Expression) -> tuple[int, str]:  # noqa: PLR0911, PLR0912
        """How strongly the text of an expression binds, and the text."""
        several = lambda parts: ", ".join(self.written(part) for part in parts)  # noqa: E731
        name = lambda key: self.cased(self.choice(SYNONYMS.get(key, [key])))  # noqa: E731
        match value:
            case ask.Column(column, _):
                return ATOM, self.choice([column, f'"{column}"', f"t.{column}", column.upper()])
            case ask.Constant(found, kind):
                return ATOM, self.literal(found, kind)
            case ask.Arithmetic(sign, left, right):
                level = ADDED if sign in "+-" else MULTIPLIED
                return level, f"{self.written(left, level)} {sign} {self.written(right, level + 1)}"
            case ask.Comparison(sign, left, right):
                return (
                    COMPARED,
                    f"{self.written(left, ADDED)} {name(sign)} {self.written(right, ADDED)}",
                )
            case ask.Every(parts):
                return AND, " AND ".join(self.written(part, AND) for part in parts)
            case ask.Some(parts):
                return OR, " or ".join(self.written(part, AND) for part in parts)
            case ask.Negation(part):
                return NOT, f"NOT {self.written(part, NOT)}"
            case ask.Membership(part, choices):
                return COMPARED, f"{self.written(part, ADDED)} IN ({several(choices)})"
            case ask.Missing(part):
                return COMPARED, f"{self.written(part, ADDED)} {self.choice(['IS NULL', 'ISNULL'])}"
            case ask.Likeness(part, pattern):
                return COMPARED, f"{self.written(part, ADDED)} LIKE {self.literal(pattern, 'text')}"
            case ask.Case(branches, otherwise):
                cases = " ".join(
                    f"WHEN {self.written(when)} THEN {self.written(then)}"
                    for when, then in branches
                )
                match otherwise:
                    case ask.Constant(None, _):
                        return ATOM, f"CASE {cases} END"
                return ATOM, f"CASE {cases} ELSE {self.written(otherwise)} END"
            case ask.Coalesce(parts):
                return ATOM, f"coalesce({several(parts)})"
            case ask.Function(function, arguments):
                return ATOM, f"{name(function)}({several(arguments)})"
            case ask.Part(part, date):
                return ATOM, f"{name(part)}({self.written(date)})"
            case ask.Truncated(unit, date):
                return ATOM, f"{name('date_trunc')}('{unit}', {self.written(date)})"
            case ask.Cast(part, kind):
                return ATOM, f"CAST({self.written(part)} AS {name(kind)})"
        raise AssertionError(value)

    def literal(self, value: object, kind: str) -> str:
        match kind:
            case "number":
                plain = decimal(abs(value))
                forms = [plain, f"00{plain}", f"{plain}e0", f"{decimal(abs(value) / 10)}E+1"]
                return ("-" if value < 0 else "") + self.choice(
                    [*forms, plain.removeprefix("0")] if plain != "0" else ["0"]
                )
            case "date":
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            case "truth":
                return str(value).upper()
        return "'" + value.replace("'", "''") + "'"

    def cased(self, word: str) -> str:
        return self.choice([word, word.upper(), word.title()])

    def spaced(self, text: str) -> str:
        """The text with other spaces between its words; those inside of quotes stay."""
        pieces = re.split("('(?:[^']|'')*'|\"[^\"]*\")", text)
        gap = lambda _: self.choice([" ", " ", "\n", "\t ", " /* ' */ ", ' -- "\n'])  # noqa: E731
        return "".join(
            piece if index % 2 else re.sub(" +", gap, piece) for index, piece in enumerate(pieces)
        )


@given(st.integers(0, 2**64), st.sampled_from(["number", "text", "date", "truth"]))
@settings(max_examples=400, deadline=None)
def test_an_expression_is_read_as_it_is_written(seed: int, kind: str) -> None:
    writer = Writer(seed)
    value = writer.value(kind, 4)
    assert parse_expression(writer.spaced(writer.written(value)), POLICY, SCHEMA) == normal(value)


def test_a_writer_without_parentheses_is_caught() -> None:
    def is_same(seed: int) -> bool:
        writer = Writer(seed)
        writer.parenthesised = False
        value = writer.value("truth", 4)
        try:
            return parse_expression(writer.written(value), POLICY, SCHEMA) == normal(value)
        except QueryRefused:
            return False

    assert sum(map(is_same, range(200))) < 150


GROUPS = [
    "county",
    "sex",
    "smoker",
    "month(day)",
    "bin(age, 0, 18, 65)",
    "age >= 65",
    "date_trunc('year', day)",
]


@given(st.integers(0, 2**64))
@settings(max_examples=300, deadline=None)
def test_a_question_is_read_as_it_is_written(seed: int) -> None:
    writer, scope = Writer(seed), Scope(POLICY, SCHEMA)
    aggregates, items, outputs = [], [], []

    def aggregate() -> tuple[str, Named]:
        number = ask.Column(writer.choice(["age", "income"]), "number")
        if writer.random() < 0.3:
            number = ask.Function(
                "least", (ask.Function("greatest", (number, writer.constant("number"))), number)
            )
            number = ask.Arithmetic(writer.choice("+-"), number, ask.Column("age", "number"))
        truth, share = writer.value("truth", 1), Fraction(writer.randint(1, 9), 10)
        text, condition = writer.written(number), writer.written(truth)
        choices = [
            ("count(*)", lambda: scope.count(None)),
            (f"count_if({condition})", lambda: scope.count(truth)),
            (f"count(*) FILTER (WHERE {condition})", lambda: scope.count(truth)),
            ("COUNT(DISTINCT patient)", scope.units),
            (f"quantile({text}, {decimal(share)})", lambda: scope.quantiles(number, (share,))),
            (f"max({text})", lambda: scope.extreme("max", number)),
            *(
                (
                    f"{writer.choice(SYNONYMS.get(name, [name]))}({text})",
                    lambda name=name: scope.moment(name, number),
                )
                for name in ("sum", "mean", "variance", "std")
            ),
        ]
        text, made = writer.choice(choices)
        try:
            aggregates.append(made())
        except QueryRefused:  # a constant condition, or bounds that meet
            return aggregate()
        return text, Named(aggregate_text(aggregates[-1]))

    def output(depth: int, place: int = OR) -> tuple[str, object]:
        if not depth or writer.random() < 0.3:
            number = Fraction(writer.randint(1, 100), 4)
            return (decimal(number), Number(number)) if writer.random() < 0.2 else aggregate()
        sign = writer.choice("+-*/")
        level = ADDED if sign in "+-" else MULTIPLIED
        (left, left_value), (right, right_value) = (
            output(depth - 1, level),
            output(depth - 1, level + 1),
        )
        text = f"{left} {sign} {right}"
        return f"({text})" if level < place else text, Combined(sign, left_value, right_value)

    def test(depth: int, place: int = OR) -> tuple[str, Condition]:
        if not depth or writer.random() < 0.3:
            sign, (left, value), (right, other) = (
                writer.choice(["=", "<", ">="]),
                output(1, ADDED),
                output(0),
            )
            return f"{left} {sign} {right}", Condition(sign, (value, other))
        sign, level = writer.choice([("and", AND), ("or", OR)])
        (left, value), (right, other) = test(depth - 1, level + 1), test(depth - 1, level + 1)
        parts = (
            part.parts if isinstance(part, Condition) and part.sign == sign else (part,)
            for part in (value, other)
        )
        text = f"{left} {sign.upper()} {right}"
        return f"({text})" if level < place else text, Condition(
            sign, tuple(inner for part in parts for inner in part)
        )

    by = writer.sample(GROUPS, writer.randint(0, 2))
    groups = [
        parse(f"SELECT {text}, count(*) FROM t GROUP BY 1", POLICY, SCHEMA).groups[0]  # noqa: S608
        for text in by
    ]
    for index, (text, group) in enumerate(zip(by, groups, strict=True)):
        items.append(f"{text} AS k{index}")
        outputs.append((f"k{index}", Named(group_text(group))))
    for index in range(writer.randint(1, 3)):
        text, value = aggregate() if index == 0 else output(2)
        if not isinstance(value, Number):
            items.append(f"{text} {writer.choice(['AS ', ''])}v{index}")
            outputs.append((f"v{index}", value))
    having, condition = test(2) if writer.random() < 0.5 else (None, None)
    where = writer.value("truth", 2) if writer.random() < 0.5 else None
    keys = [writer.choice([str(index + 1), name]) for index, (name, _) in enumerate(outputs)]
    order = [(place, writer.random() < 0.5) for place in range(len(keys)) if writer.random() < 0.5]
    limit = writer.choice([None, 1, 10])
    ordered = ", ".join(
        f"{keys[place]}{' DESC' if descending else ''}" for place, descending in order
    )
    text = f"SELECT {', '.join(items)} FROM t"  # noqa: S608
    text += f" WHERE {writer.written(where)}" if where else ""
    text += (
        " GROUP BY"
        f" {', '.join(writer.choice([each, f'k{index}', str(index + 1)]) for index, each in enumerate(by))}"
        if by
        else ""
    )
    text += f" HAVING {having}" if having else ""
    text += f" ORDER BY {ordered}" if order else ""
    text += f" LIMIT {limit};" if limit else ""
    draft = Query(
        outputs=outputs,
        aggregates=[("", aggregate) for aggregate in aggregates],
        groups=groups,
        where=None if where is None or normal(where) == TRUE else normal(where),
        having=condition,
        order=[(outputs[place][1], descending) for place, descending in order],
        limit=limit,
    )
    assert parse(writer.spaced(text), POLICY, SCHEMA) == assembled(draft)
