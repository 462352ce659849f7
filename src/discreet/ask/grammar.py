"""The grammar of SQL in discreet, and nothing more. What passes here is then parsed by sqlglot.

    select     SELECT item, …  FROM name [AS name]  [WHERE truth]  [GROUP BY sum, …]  [HAVING truth]
               [ORDER BY truth [ASC | DESC], …]  [LIMIT number]
    item       truth [AS name]
    truth      conditions with OR, AND, NOT
    condition  sum  [= <> < <= > >= sum]  [[NOT] IN (truth, …)]  [[NOT] BETWEEN sum AND sum]  [[NOT] LIKE sum]
               [IS [NOT] NULL]
    sum        signed atoms with + - * /, each atom with ::type after it
    atom       literal · name · name.name · name(truth, …) · count(*) · count(DISTINCT name) · (truth) · [truth, …]
               CASE · CAST(truth AS type) · EXTRACT(part FROM truth) · SUBSTRING(truth FROM truth FOR truth)
               atom FILTER (WHERE truth) · atom WITHIN GROUP (ORDER BY truth)

sqlglot reads many dialects and forgives much: it drops a dangling AS, extra commas, an empty GROUP BY, a * behind a
table, and reads clauses in any order. A text of this grammar leaves it nothing to forgive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from discreet.ask.kinds import refused

DEEPEST = 30
"""Expressions within expressions; sqlglot needs about twenty calls for each, and Python allows a thousand."""

SHAPE = "the shape is SELECT … FROM table WHERE … GROUP BY …"

STRING, NUMBER, QUOTED = "'", "0", '"'
"""What stands for a literal, and for a name in quotes, among the words."""

_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN IS LIKE CASE WHEN THEN ELSE END
        DISTINCT TRUE FALSE NULL ISNULL NOTNULL ASC DESC FILTER WITHIN FOR CAST TRY_CAST""",
    )
)
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")

JOIN = "a join, or a second table, is not in the language; the custodian can make a SELECT the study's source"
_TABLES = {
    ",": JOIN,
    ".": "a name with a schema is not in the language; write the name of the study's table alone",
    "(": "FROM takes the name of the study's table; the custodian can make a SELECT the study's source",
    STRING: "FROM takes the name of the study's table, not a file or a text",
}
"""What to write in place of other tables."""


def name_in_sql(name: str) -> str:
    """A name as FROM takes it: in quotes, if it is not a plain word.

    >>> name_in_sql("people"), name_in_sql("people-2024")
    ('people', '"people-2024"')
    """
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.upper() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


class Grammar:
    """One walk over the words of a text, which ends at the last of them or in a refusal."""

    def __init__(self, words: Sequence[str], shown: Sequence[str]) -> None:
        self.words, self.shown = [*words, ""], [*shown, "the end"]
        self.at = 0
        self.depth = 0

    def select(self) -> None:
        """SELECT … to the end of the text."""
        self.expect("SELECT")
        self.several(self.item)
        if self.words[self.at] == "":
            raise refused("FROM is missing; write FROM and the name of the study's table")
        self.expect("FROM")
        self.table()
        if self.take("WHERE"):
            self.truth()
        if self.take("GROUP BY"):
            self.several(self.truth)
        if self.take("HAVING"):
            self.truth()
        if self.take("ORDER BY"):
            self.several(self.ordered)
        if self.take("LIMIT"):
            self.expect(NUMBER)
        self.expect("")

    def table(self) -> None:
        """The one name after FROM, and perhaps another name for it."""
        if self.is_name():
            self.name()
            self.alias()
        if self.words[self.at] in _TABLES:
            raise refused(_TABLES[self.words[self.at]])
        if self.words[self.at - 1] == "FROM":
            raise self.out_of_place()

    def take(self, *words: str) -> bool:
        """Whether the next word is one of these; then it is passed."""
        found = self.words[self.at] in words and self.at < len(self.words) - 1
        self.at += found
        return found

    def expect(self, word: str) -> None:
        """Passes a word that must be here."""
        if self.words[self.at] != word:
            raise self.out_of_place()
        self.at += word != ""

    def out_of_place(self) -> Exception:
        """The refusal of the next word."""
        after = f" after {self.shown[self.at - 1]}" if self.at else ""
        return refused(f"{self.shown[self.at]} is out of place{after}; {SHAPE}")

    def several(self, one: Callable[[], None]) -> None:
        """One or more, with commas between."""
        one()
        while self.take(","):
            one()

    def is_name(self) -> bool:
        """Whether the next word is a name, in quotes or not."""
        word = self.words[self.at]
        return word == QUOTED or (word.replace("_", "a")[:1].isalpha() and " " not in word and word not in _RESERVED)

    def name(self) -> None:
        """Passes a name."""
        if not self.is_name():
            raise self.out_of_place()
        self.at += 1

    def alias(self) -> None:
        """AS name, or a name alone, or nothing."""
        if self.take("AS") or self.is_name():
            self.name()

    def item(self) -> None:
        """What SELECT asks for."""
        if self.take("*"):
            raise refused("SELECT * would release rows. Ask for count, sum, avg, stddev, median, quantile, min or max")
        self.truth()
        self.alias()

    def ordered(self) -> None:
        """What ORDER BY sorts by."""
        self.truth()
        self.take("ASC", "DESC")

    def truth(self) -> None:
        """Conditions with OR, AND and NOT, which bind in this order."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise refused("the question is nested too deeply; write it flatter")
        self.condition()
        while self.take("AND", "OR"):
            self.condition()
        self.depth -= 1

    def condition(self) -> None:
        """A sum, and what it is compared with."""
        while self.take("NOT"):
            pass
        self.sum()
        if self.take(*_COMPARISONS):
            self.sum()
        elif self.take("IS"):
            self.take("NOT")
            if not self.take("NULL", "TRUE", "FALSE"):
                raise self.out_of_place()
        elif self.words[self.at] in ("NOT", "IN", "BETWEEN", "LIKE"):
            self.take("NOT")
            self.compared()
        else:
            self.take("ISNULL", "NOTNULL")
        if self.words[self.at] in (*_COMPARISONS, "IS", "ISNULL", "NOTNULL", "NOT", "IN", "BETWEEN", "LIKE"):
            raise refused("two comparisons in a row can be read in two ways; put one in parentheses")

    def compared(self) -> None:
        """IN, BETWEEN or LIKE, after NOT or not."""
        if self.take("IN"):
            self.expect("(")
            if self.words[self.at] == ")":
                raise refused("IN needs at least one value, as in IN ('a', 'b')")
            self.several(self.truth)
            self.expect(")")
        elif self.take("BETWEEN"):
            self.sum()
            self.expect("AND")
            self.sum()
        else:
            self.expect("LIKE")
            self.sum()

    def sum(self) -> None:
        """Atoms with signs between and before them."""
        self.signed()
        while self.take("+", "-", "*", "/"):
            self.signed()

    def signed(self) -> None:
        """An atom, its signs and its casts."""
        while self.take("-"):
            pass
        if self.take("+") and self.words[self.at] != NUMBER:
            raise self.out_of_place()
        self.atom()
        while self.take("::"):
            self.type()

    def type(self) -> None:
        """The name of a type, perhaps with numbers."""
        if self.words[self.at] == "DOUBLE PRECISION":
            self.at += 1
        else:
            self.name()
        if self.take("("):
            self.several(lambda: self.expect(NUMBER))
            self.expect(")")

    def atom(self) -> None:
        """A literal, a name, a call, or an expression in parentheses."""
        if self.take(STRING, NUMBER, "TRUE", "FALSE", "NULL"):
            return
        if self.take("."):
            self.expect(NUMBER)
        elif self.take("("):
            self.truth()
            self.expect(")")
        elif self.take("["):
            self.several(self.truth)
            self.expect("]")
        elif self.take("CASE"):
            self.case()
        elif self.words[self.at] in ("CAST", "TRY_CAST"):
            self.at += 1
            self.expect("(")
            self.truth()
            self.expect("AS")
            self.type()
            self.expect(")")
        else:
            self.named()

    def case(self) -> None:
        """After CASE."""
        if self.words[self.at] != "WHEN":
            self.truth()
        if self.words[self.at] != "WHEN":
            raise self.out_of_place()
        while self.take("WHEN"):
            self.truth()
            self.expect("THEN")
            self.truth()
        if self.take("ELSE"):
            self.truth()
        self.expect("END")

    def named(self) -> None:
        """A column, a typed literal, or a call."""
        word = self.words[self.at]
        self.name()
        if self.take("."):
            if self.take("*"):
                raise refused("* would release rows. Ask for count, sum, avg, stddev, median, quantile, min or max")
            self.name()
        elif word in ("DATE", "TIMESTAMP") and self.take(STRING):
            return
        elif self.take("("):
            self.arguments(word)
            self.expect(")")
            self.after_call()

    def arguments(self, word: str) -> None:
        """What stands in the parentheses of a call."""
        if word == "COUNT" and (self.words[self.at] == ")" or self.take("*")):
            return
        if self.take("DISTINCT"):
            if word != "COUNT":
                raise refused("DISTINCT is not in the language, but in count(DISTINCT unit); use GROUP BY")
            self.several(self.truth)
        elif word == "EXTRACT":
            self.name()
            self.expect("FROM")
            self.truth()
        else:
            self.several(self.truth)
            if word == "SUBSTRING" and self.take("FROM"):
                self.truth()
                if self.take("FOR"):
                    self.truth()

    def after_call(self) -> None:
        """FILTER and WITHIN GROUP."""
        if self.take("FILTER"):
            self.expect("(")
            self.expect("WHERE")
            self.truth()
            self.expect(")")
        if self.take("WITHIN"):
            self.expect("GROUP")
            self.expect("(")
            self.expect("ORDER BY")
            self.truth()
            self.expect(")")
