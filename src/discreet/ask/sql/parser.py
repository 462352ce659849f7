"""The grammar of SQL in discreet, and its parser, from the words of a text to its syntax.

    select     = SELECT item {, item} FROM name [[AS] name] [WHERE truth] [GROUP BY truth {, truth}]
               [HAVING truth]
                 [ORDER BY order {, order}] [LIMIT number]
    item       = truth [[AS] name]
    order      = truth [ASC | DESC]
    truth      = all {OR all}
    all        = condition {AND condition}
    condition  = {NOT} sum [sign sum | IS [NOT] NULL | ISNULL | NOTNULL | [NOT] range]
    sign       = "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">="
    range      = IN "(" truth {, truth} ")" | BETWEEN sum AND sum | LIKE text
    sum        = product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = {"-"} ("+" number | atom) {"::" type}
    atom       = text | number | TRUE | FALSE | NULL | "(" truth ")" | "[" truth {, truth} "]"
               | CASE [truth] WHEN truth THEN truth {WHEN truth THEN truth} [ELSE truth] END
               | (CAST | TRY_CAST) "(" truth AS type ")" | (DATE | TIMESTAMP) text
               | COUNT "(" ["*" | truth] ")" [FILTER "(" WHERE truth ")"]
               | COUNT "(" DISTINCT truth ")"
               | EXTRACT "(" name FROM truth ")" | SUBSTRING "(" truth FROM truth [FOR truth] ")"
               | PERCENTILE_CONT "(" truth ")" WITHIN GROUP "(" ORDER BY truth ")"
               | name "(" [truth {, truth}] ")" | [name "."] name

Words are those of `ask.sql.words`. Two comparisons in a row need parentheses, because they are
ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import chain
from typing import TypeVar, get_args

from discreet.ask.expression import ComparisonSign
from discreet.ask.kinds import refused
from discreet.ask.sql import words as lexicon
from discreet.ask.sql.functions import PERCENTILES, TYPES
from discreet.ask.sql.syntax import Call, Case, Cast, Item, Literal, Name, Node, Select, Type, walk
from discreet.ask.sql.words import END, NUMBER, QUOTED, TEXT, Word, refuse_words
from discreet.errors import InvalidParameter
from discreet.parameters import exact_number, quote

Read = TypeVar("Read")

DEEPEST = 30
"""The most nested expressions: each takes nine calls of the parser; Python allows a thousand."""
DEEPEST_SYNTAX = 100
"""The most levels of syntax, with sums, casts and NOTs in a row; each takes a few calls later."""
MOST_ROWS = 10**12
"""The largest LIMIT."""

_DEEP = "the question is nested too deeply; simplify it"
_ROWS = f"would release rows. {lexicon.QUANTITIES}"
_TABLES = {
    ",": lexicon.JOIN,
    ".": "a name with a schema is not supported; write only the name of the study's table",
    "(": (
        "FROM takes the name of the study's table; the custodian can make a SELECT the study's"
        " source"
    ),
    TEXT: "FROM takes the name of the study's table, not a file or a text",
}
"""What to write instead of other tables."""

_COMPARISONS = {**{sign: sign for sign in get_args(ComparisonSign)}, "==": "=", "!=": "<>"}
_RANGES = ("IN", "BETWEEN", "LIKE")
_COMPARING = (*_COMPARISONS, *_RANGES, "IS", "ISNULL", "NOTNULL", "NOT")
_SIGNS = {"+": 1, "-": 1, "*": 2, "/": 2}
"""The precedence of a sign."""


def select(text: object, columns: Iterable[str]) -> Select:
    """The syntax of a SELECT; column names are never refused as words of SQL."""
    if not isinstance(text, str):
        raise refused(f"a question must be a text, got {quote(text)}")
    words = lexicon.words_of(text)
    while words and words[-1].key == ";":
        words.pop()
    if not words or words[0].key != "SELECT":
        refuse_words(words[:1], columns)
        raise refused(
            f"only SELECT can be asked, got {quote(words[0].value) if words else 'nothing'}."
            f" {lexicon.QUANTITIES}"
        )
    return _read(
        words, columns, "the shape is SELECT … FROM table WHERE … GROUP BY …", _Parser.select
    )


def item(text: object, columns: Iterable[str]) -> Item:
    """The syntax of an expression, optionally with an alias."""
    if not isinstance(text, str) or not text.strip():
        raise refused(f'an expression must be a text such as "age >= 65", got {quote(text)}')
    return _read(
        lexicon.words_of(text),
        columns,
        "a single expression is needed here, such as age >= 65",
        _Parser.item,
    )


def _read(
    words: Sequence[Word], columns: Iterable[str], shape: str, read: Callable[[_Parser], Read]
) -> Read:
    refuse_words(words, columns)
    parser = _Parser(words, shape)
    syntax = read(parser)
    parser.expect(END)
    return syntax


class _Parser:
    """Parses the words of a text from first to last."""

    def __init__(self, words: Sequence[Word], shape: str) -> None:
        self.words, self.shape = [*words, Word(END, "", "")], shape
        self.index = self.depth = 0

    @property
    def key(self) -> str:
        return self.words[self.index].key

    def take(self, *keys: str) -> bool:
        """Whether the next word is one of these; if so, move past it."""
        is_next = self.key in keys
        self.index += is_next
        return is_next

    def expect(self, *keys: str) -> None:
        for key in keys:
            if self.key != key:
                raise self.out_of_place()
            self.index += 1

    def out_of_place(self) -> Exception:
        word = quote(self.words[self.index].value) if self.key else "the end"
        after = f" after {quote(self.words[self.index - 1].value)}" if self.index else ""
        return refused(f"{word} is out of place{after}; {self.shape}")

    def several(self, read: Callable[[], Read]) -> tuple[Read, ...]:
        """One or more, separated by commas."""
        nodes = [read()]
        while self.take(","):
            nodes.append(read())
        return tuple(nodes)

    def closed(self, read: Callable[[], Read], end: str = ")") -> Read:
        node = read()
        self.expect(end)
        return node

    def is_name(self) -> bool:
        return self.key == QUOTED or lexicon.is_plain(self.words[self.index])

    def name(self) -> Word:
        if not self.is_name():
            raise self.out_of_place()
        self.index += 1
        return self.words[self.index - 1]

    def number(self) -> Fraction:
        self.expect(NUMBER)
        try:
            return exact_number("a number", self.words[self.index - 1].value)
        except InvalidParameter as error:
            raise refused(str(error)) from None

    def select(self) -> Select:
        self.expect("SELECT")
        items = self.several(self.item)
        if not self.key:
            raise refused("FROM is missing; write FROM and the name of the study's table")
        self.expect("FROM")
        self.refuse_table()
        table, alias = self.name(), self.alias()
        self.refuse_table()
        return Select(
            items=items,
            table=Name(table.value, table.key == QUOTED, None),
            alias=alias,
            where=self.truth() if self.take("WHERE") else None,
            groups=self.by("GROUP", self.truth),
            having=self.truth() if self.take("HAVING") else None,
            order=self.by("ORDER", self.order),
            limit=self.limit() if self.take("LIMIT") else None,
        )

    def refuse_table(self) -> None:
        if self.key in _TABLES:
            raise refused(_TABLES[self.key])

    def by(self, key: str, read: Callable[[], Read]) -> tuple[Read, ...]:
        if not self.take(key):
            return ()
        self.expect("BY")
        return self.several(read)

    def item(self) -> Item:
        if self.take("*"):
            raise refused(f"SELECT * {_ROWS}")
        start, node = self.index, self.truth()
        written = (
            node.name if isinstance(node, Name) else lexicon.label(self.words[start : self.index])
        )
        return Item(node, self.alias(), written)

    def alias(self) -> str | None:
        return self.name().value if self.take("AS") or self.is_name() else None

    def order(self) -> tuple[Node, bool]:
        node, descending = self.truth(), self.key == "DESC"
        self.take("ASC", "DESC")
        return node, descending

    def limit(self) -> int:
        rows = self.number() if self.key == NUMBER else Fraction(0)
        if rows.denominator != 1 or not 1 <= rows <= MOST_ROWS:
            raise refused("LIMIT takes a whole number of rows, as in LIMIT 10")
        return int(rows)

    def truth(self) -> Node:
        """Any expression; all nesting passes here, so the depth is checked here."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise refused(_DEEP)
        node = self.junction("or", lambda: self.junction("and", self.condition))
        self.depth -= 1
        if not self.depth and any(level > DEEPEST_SYNTAX for _, level in walk(node)):
            raise refused(_DEEP)
        return node

    def junction(self, sign: str, read: Callable[[], Node]) -> Node:
        parts = [read()]
        while self.take(sign.upper()):
            parts.append(read())
        flat = [
            part.arguments if isinstance(part, Call) and part.name == sign else (part,)
            for part in parts
        ]
        return Call(sign, tuple(chain.from_iterable(flat))) if len(parts) > 1 else parts[0]

    def condition(self) -> Node:
        count = 0
        while self.take("NOT"):
            count += 1
        node = self.comparison()
        if self.key in _COMPARING:
            raise refused("two comparisons in a row are ambiguous; put one in parentheses")
        for _ in range(count):
            node = Call("not", (node,))
        return node

    def comparison(self) -> Node:
        part, key = self.sum(), self.key
        if self.take(*_COMPARISONS):
            return Call(_COMPARISONS[key], (part, self.sum()))
        is_null = self.take("ISNULL", "NOTNULL", "IS")
        negated = key == "NOTNULL" or (key != "ISNULL" and self.take("NOT"))
        if key == "IS":
            if self.key in ("TRUE", "FALSE"):
                raise refused("IS is supported with NULL only; write x = TRUE, or x IS NULL")
            self.expect("NULL")
        if not is_null and not negated and key not in _RANGES:
            return part
        node = Call("is null", (part,)) if is_null else self.range(part)
        return Call("not", (node,)) if negated else node

    def range(self, part: Node) -> Call:
        if self.take("IN"):
            self.expect("(")
            if self.key == ")":
                raise refused("IN needs at least one value, as in IN ('a', 'b')")
            return Call("in", (part, *self.closed(lambda: self.several(self.truth))))
        if self.take("BETWEEN"):
            return Call("between", (part, self.closed(self.sum, "AND"), self.sum()))
        self.expect("LIKE")
        return Call("like", (part, self.sum()))

    def sum(self, least: int = 1) -> Node:
        """Operands joined by signs of at least this precedence."""
        left = self.signed()
        while _SIGNS.get(self.key, 0) >= least:
            sign = self.key
            self.index += 1
            left = Call(sign, (left, self.sum(_SIGNS[sign] + 1)))
        return left

    def signed(self) -> Node:
        count = 0
        while self.take("-"):
            count += 1
        if self.take("+") and self.key != NUMBER:
            raise self.out_of_place()
        node = self.atom()
        while self.take("::"):
            node = Cast(node, self.type())
        for _ in range(count):
            match node:
                case Literal(Fraction() as value):
                    node = Literal(-value)
                case _:
                    node = Call("-", (Literal(Fraction(0)), node))
        return node

    def type(self) -> Type:
        key = self.name().key
        if key == "DOUBLE" and self.take("PRECISION"):
            key = "DOUBLE PRECISION"
        if key not in TYPES or self.key == "(":
            raise refused(
                "CAST supports DOUBLE, INTEGER, VARCHAR, DATE, TIMESTAMP and BOOLEAN, without a"
                " length"
            )
        return TYPES[key]

    def atom(self) -> Node:  # noqa: PLR0911 - one case for each kind of word
        key, value = self.key, self.words[self.index].value
        if key == NUMBER:
            return Literal(self.number())
        if self.take(TEXT):
            return Literal(value)
        if self.take("TRUE", "FALSE", "NULL"):
            return Literal(None if key == "NULL" else key == "TRUE")
        if self.take("("):
            return self.closed(self.truth)
        if self.take("["):
            return Call("[]", self.closed(lambda: self.several(self.truth), "]"))
        if self.take("CASE"):
            return self.case()
        if self.take("CAST", "TRY_CAST"):
            self.expect("(")
            return Cast(self.closed(self.truth, "AS"), self.closed(self.type))
        return self.named()

    def case(self) -> Node:
        subject = None if self.key == "WHEN" else self.truth()
        branches: list[tuple[Node, Node]] = []
        while self.key == "WHEN" or not branches:
            self.expect("WHEN")
            branches.append((self.closed(self.truth, "THEN"), self.truth()))
        otherwise = self.truth() if self.take("ELSE") else Literal(None)
        self.expect("END")
        return Case(subject, tuple(branches), otherwise)

    def named(self) -> Node:
        word, table = self.name(), None
        if word.key in ("DATE", "TIMESTAMP") and self.key == TEXT:
            return Cast(self.atom(), TYPES[word.key])
        if word.key != QUOTED and self.take("("):
            return self.call(word.key)
        if self.take("."):
            if self.key == "*":
                raise refused(f"* {_ROWS}")
            table, word = word.value, self.name()
        return Name(word.value, word.key == QUOTED, table)

    def call(self, name: str) -> Node:
        """The arguments of a call, and the words after its parentheses."""
        arguments: tuple[Node, ...] = ()
        if self.take("DISTINCT"):
            if name != "COUNT":
                raise refused("DISTINCT is supported in count(DISTINCT unit) only; use GROUP BY")
            name, arguments = "COUNT DISTINCT", self.several(self.truth)
        elif name == "EXTRACT":
            name, part = "DATE_PART", self.name()
            self.expect("FROM")
            arguments = (Literal(part.key), self.truth())
        elif self.key != ")" and not (name == "COUNT" and self.take("*")):
            arguments = self.several(self.truth)
            if name == "SUBSTRING" and len(arguments) == 1 and self.take("FROM"):
                arguments += (self.truth(), *((self.truth(),) if self.take("FOR") else ()))
        self.expect(")")
        if self.take("FILTER"):
            if name != "COUNT" or arguments:
                raise refused(
                    "FILTER is supported with count(*) only; use avg(CASE WHEN … THEN x END)"
                )
            self.expect("(", "WHERE")
            name, arguments = "COUNT_IF", (self.closed(self.truth),)
        if self.take("WITHIN"):
            if name not in PERCENTILES or len(arguments) != 1:
                raise refused(
                    "WITHIN GROUP is supported with percentile_cont(0.5) only; or write quantile(x,"
                    " 0.5)"
                )
            self.expect("GROUP", "(", "ORDER", "BY")
            name, arguments = "QUANTILE", (self.closed(self.truth), *arguments)
        return Call(name, arguments)
