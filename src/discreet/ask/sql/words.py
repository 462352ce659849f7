"""A text cut into words, once. Spaces and comments stand between words and mean nothing.

    word     a letter or _, then letters, digits and _        age   COUNT   größe
    quoted   "…", with "" for a quote inside                   "group"
    text     '…', with '' for a quote inside                   'it''s'
    number   digits, perhaps a point, an exponent, _ between   65   .5   6.5e1   1_000
    sign     ( ) [ ] , . ; + - * / = == <> != < <= > >= ::
    comment  from -- to the end of the line, or /* … */

Anything else is refused, and so are words of SQL that the language does not have: by name, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from discreet.ask.kinds import refused
from discreet.ask.normal import quoted
from discreet.ask.statistics import STATISTICS
from discreet.parameters import quote

LONGEST_QUESTION = 20_000
"""Characters; a longer question was written by a program, or is an attack."""
LONGEST_LABEL = 60
"""Characters of the name of a column that has no other."""

TEXT, NUMBER, QUOTED, END = "'", "0", '"', ""
"""The keys of literals, of names in quotes, and of the end."""

_WORDS = [row.word for row in STATISTICS.values() if row.sql and row.menu]
QUANTITIES = f"Ask for {', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
JOIN = "a join, or a second table, is not in the language; the custodian can make a SELECT the study's source"

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN IS LIKE CASE WHEN THEN ELSE END
    DISTINCT TRUE FALSE NULL ISNULL NOTNULL ASC DESC FILTER WITHIN FOR CAST TRY_CAST""",
    )
)
"""Words that are no names, unless in quotes."""

_SET = "sets of questions are not in the language; ask them one by one"
_WINDOW = "windows look at other rows, and are not in the language; use GROUP BY"
_SAMPLE = "samples are not in the language; every answer is from all rows"
_TOTALS = "ROLLUP, CUBE and GROUPING SETS are not in the language; ask for each grouping by itself"
_LIKE = "only LIKE with a literal is in the language, as in LOWER(name) LIKE 'a%'"

_REFUSED = {
    **dict.fromkeys(("JOIN", "ON", "CROSS", "LATERAL", "UNNEST", "USING", "POSITIONAL", "ASOF"), JOIN),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), _SET),
    **dict.fromkeys(("OVER", "PARTITION", "WINDOW", "QUALIFY"), _WINDOW),
    **dict.fromkeys(("SAMPLE", "TABLESAMPLE"), _SAMPLE),
    **dict.fromkeys(("ROLLUP", "CUBE", "GROUPING", "TOTALS"), _TOTALS),
    **dict.fromkeys(("ILIKE", "SIMILAR", "GLOB", "REGEXP", "RLIKE", "ESCAPE"), _LIKE),
    **dict.fromkeys(("PIVOT", "UNPIVOT"), "PIVOT is not in the language; use GROUP BY"),
    **dict.fromkeys(("EXISTS", "ANY", "SOME"), "subqueries are not in the language; use IN ('a', 'b')"),
    **dict.fromkeys(("ONLY", "VALUES"), "FROM takes the name of the study's table alone"),
    "WITH": "WITH is not in the language; ask one SELECT of the study's table",
    "ALL": "ALL is not in the language; name the columns",
    "OFFSET": "OFFSET is not in the language; use LIMIT",
    "FETCH": "FETCH is not in the language; use LIMIT",
    "INTO": "SELECT INTO writes a table; save the answer instead",
    "INTERVAL": "INTERVAL is not in the language; compare with a date, as in day >= DATE '2020-01-31'",
    "COLLATE": "COLLATE is not in the language; compare LOWER(…) or UPPER(…)",
    "NULLS": "NULLS FIRST and LAST are not in the language; what is missing comes last",
    "EXCLUDE": f"* EXCLUDE would release rows. {QUANTITIES}",
    "COLUMNS": f"COLUMNS(…) would release rows. {QUANTITIES}",
}

_PATTERN = re.compile(
    r"""(?P<space> \s+ | --[^\n\r]* | /\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/ )
    | (?P<text> '(?:[^']|'')*+' )
    | (?P<quoted> "(?:[^"]|"")++" )
    | (?P<number> (?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]) )
    | (?P<word> [^\W\d]\w* )
    | (?P<sign> <>|!=|<=|>=|==|::|/(?!\*)|[()\[\],.;+\-*=<>] )""",
    re.VERBOSE,
)
_UNKNOWN = re.compile(r"/\*|[.0-9][\w.]*|\w+|[^\w\s'\"()]+|.", re.DOTALL)


class Word(NamedTuple):
    """One word of a text."""

    key: str
    """What the grammar compares: a word in capitals, a sign as it is, or what stands for a literal or a quoted name."""
    value: str
    """A name or a literal without its quotes."""
    written: str


def words_of(text: str) -> list[Word]:
    if len(text) > LONGEST_QUESTION:
        raise refused(f"a question may have {LONGEST_QUESTION:,} characters, got {len(text):,}; ask less at once")
    words, start = [], 0
    while start < len(text):
        piece = _PATTERN.match(text, start)
        if piece is None:
            raise _unreadable(text, start)
        start, written = piece.end(), piece[0]
        match piece.lastgroup:
            case "text":
                words.append(Word(TEXT, written[1:-1].replace("''", "'"), written))
            case "quoted":
                words.append(Word(QUOTED, written[1:-1].replace('""', '"'), written))
            case "number":
                words.append(Word(NUMBER, written.replace("_", ""), written))
            case "word" | "sign":  # other letters have capitals among a–z, such as ſ
                words.append(Word(written.upper() if written.isascii() else written, written, written))
    return words


def refuse_words(words: Sequence[Word], columns: Iterable[str]) -> None:
    """Refuses words that the language does not have, unless they are names of columns."""
    names = {name.upper() for name in columns}
    for before, word in pairwise([Word(END, "", ""), *words]):
        match word.key:
            case ";":
                raise refused("only one question can be asked at a time; ask them one by one")
            case "SELECT" if before.key:
                raise refused("a SELECT inside of another is not in the language; ask them one by one")
            case "DISTINCT" if before.key != "(":
                raise refused("DISTINCT is not in the language, but in count(DISTINCT unit); use GROUP BY")
            case key if key in _REFUSED and key not in names and before.key != "AS":
                raise refused(_REFUSED[key])


def label(words: Sequence[Word]) -> str:
    """The words with the usual spaces, functions in small letters: the name of a column that has no other.

    >>> label(words_of("SUM( age )/-COUNT(*)"))
    'sum(age) / -count(*)'
    """
    text, before, is_signed = "", Word("(", "", ""), False
    for word, after in zip(words, [*words[1:], Word(END, "", "")], strict=True):
        is_called = word.key == "(" and (is_plain(before) or before.key in ("CAST", "TRY_CAST"))
        tight = (
            is_called
            or (is_signed and word.key != "-")
            or before.key in ("(", "[", ".", "::")
            or word.key in (")", "]", ",", ".", "::")
        )
        lower = after.key == "(" and is_plain(word)
        written = word.written.lower() if lower else word.key if word.key in RESERVED else word.written
        text += written if tight else f" {written}"
        ends = is_plain(before) or before.key in (TEXT, NUMBER, QUOTED, ")", "]", "END", "NULL", "TRUE", "FALSE")
        is_signed, before = word.key == "-" and not ends, word
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 3] + "…"


def is_plain(word: Word) -> bool:
    return (word.key[:1].isalpha() or word.key[:1] == "_") and word.key not in RESERVED


def name_in_sql(name: str) -> str:
    """A name as a question writes it: in quotes, if it is not a plain word.

    >>> name_in_sql("people"), name_in_sql("people-2024")
    ('people', '"people-2024"')
    """
    is_word = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.upper() not in RESERVED
    return name if is_word else quoted(name)


def _unreadable(text: str, start: int) -> Exception:
    piece = _UNKNOWN.findall(text, start)[0]
    if piece in (TEXT, QUOTED):
        return refused(f"this cannot be read as SQL: a {piece} has no other at its end")
    if piece == "/*":
        return refused("this cannot be read as SQL: a comment has no end, or has another inside")
    if piece[0] in ".0123456789":
        return refused(f"{quote(piece)} cannot be read as a number; write it as 65, 0.5 or 1e3")
    return refused(f"{quote(piece)} is not in the language; it has + - * / and comparisons")
