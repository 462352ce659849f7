"""The words of a text. Spaces and comments separate words and have no meaning.

    word     a letter or _, then letters, digits and _        age   COUNT   größe
    quoted   "…", with "" for a quote inside                   "group"
    text     '…', with '' for a quote inside                   'it''s'
    number   digits, optionally a point, an exponent, and _    65   .5   6.5e1   1_000
    sign     ( ) [ ] , . ; + - * / = == <> != < <= > >= ::
    comment  from -- to the end of the line, or /* … */

Anything else is refused, and so are unsupported words of SQL: by name, with what to write instead.
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
"""The most characters of a question; a longer question is from a program, or an attack."""
LONGEST_LABEL = 60
"""The most characters of the generated name of a column."""

TEXT, NUMBER, QUOTED, END = "'", "0", '"', ""
"""The keys of literals, of quoted names, and of the end."""

_WORDS = [row.word for row in STATISTICS.values() if row.sql and row.menu]
QUANTITIES = f"Ask for {', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
JOIN = (
    "joins and second tables are not supported; the custodian can make a SELECT the study's source"
)

_RESERVED = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN IS LIKE \
CASE WHEN THEN ELSE END
    DISTINCT TRUE FALSE NULL ISNULL NOTNULL ASC DESC FILTER WITHIN FOR CAST TRY_CAST"""
RESERVED = frozenset(_RESERVED.split())
"""Words that are names only in quotes."""

_SET = "UNION, INTERSECT and EXCEPT are not supported; ask the questions one by one"
_WINDOW = "window functions depend on other rows, and are not supported; use GROUP BY"
_SAMPLE = "samples are not supported; every answer uses all rows"
_TOTALS = "ROLLUP, CUBE and GROUPING SETS are not supported; ask for each grouping separately"
_LIKE = "only LIKE with a literal is supported, as in LOWER(name) LIKE 'a%'"

_REFUSED = {
    **dict.fromkeys(
        ("JOIN", "ON", "CROSS", "LATERAL", "UNNEST", "USING", "POSITIONAL", "ASOF"), JOIN
    ),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), _SET),
    **dict.fromkeys(("OVER", "PARTITION", "WINDOW", "QUALIFY"), _WINDOW),
    **dict.fromkeys(("SAMPLE", "TABLESAMPLE"), _SAMPLE),
    **dict.fromkeys(("ROLLUP", "CUBE", "GROUPING", "TOTALS"), _TOTALS),
    **dict.fromkeys(("ILIKE", "SIMILAR", "GLOB", "REGEXP", "RLIKE", "ESCAPE"), _LIKE),
    **dict.fromkeys(("PIVOT", "UNPIVOT"), "PIVOT is not supported; use GROUP BY"),
    **dict.fromkeys(("EXISTS", "ANY", "SOME"), "subqueries are not supported; use IN ('a', 'b')"),
    **dict.fromkeys(("ONLY", "VALUES"), "FROM takes only the name of the study's table"),
    "WITH": "WITH is not supported; ask one SELECT of the study's table",
    "ALL": "ALL is not supported; name the columns",
    "OFFSET": "OFFSET is not supported; use LIMIT",
    "FETCH": "FETCH is not supported; use LIMIT",
    "INTO": "SELECT INTO writes a table; save the answer instead",
    "INTERVAL": "INTERVAL is not supported; compare with a date, as in day >= DATE '2020-01-31'",
    "COLLATE": "COLLATE is not supported; compare LOWER(…) or UPPER(…)",
    "NULLS": "NULLS FIRST and LAST are not supported; missing values come last",
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
    key: str
    """The key for the grammar: a word in capitals, a sign, or that of literals or quoted names."""
    value: str
    """A name or a literal without its quotes."""
    written: str


def words_of(text: str) -> list[Word]:
    if len(text) > LONGEST_QUESTION:
        raise refused(
            f"a question may have {LONGEST_QUESTION:,} characters, got {len(text):,}; ask less at"
            " once"
        )
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
            case "word" | "sign":  # the capital of ſ, which is not ASCII, is S
                words.append(
                    Word(written.upper() if written.isascii() else written, written, written)
                )
    return words


def refuse_words(words: Sequence[Word], columns: Iterable[str]) -> None:
    """Refuse unsupported words of SQL, unless they are names of columns."""
    names = {name.upper() for name in columns}
    for before, word in pairwise([Word(END, "", ""), *words]):
        match word.key:
            case ";":
                raise refused("only one question can be asked at a time; ask them one by one")
            case "SELECT" if before.key:
                raise refused(
                    "a SELECT inside another SELECT is not supported; ask them one by one"
                )
            case "DISTINCT" if before.key != "(":
                raise refused("DISTINCT is supported in count(DISTINCT unit) only; use GROUP BY")
            case key if key in _REFUSED and key not in names and before.key != "AS":
                raise refused(_REFUSED[key])


def label(words: Sequence[Word]) -> str:
    """The generated name of a column: its words with the usual spaces, and functions in lowercase.

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
        written = (
            word.written.lower() if lower else word.key if word.key in RESERVED else word.written
        )
        text += written if tight else f" {written}"
        ends = is_plain(before) or before.key in (
            TEXT,
            NUMBER,
            QUOTED,
            ")",
            "]",
            "END",
            "NULL",
            "TRUE",
            "FALSE",
        )
        is_signed, before = word.key == "-" and not ends, word
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 3] + "…"


def is_plain(word: Word) -> bool:
    return (word.key[:1].isalpha() or word.key[:1] == "_") and word.key not in RESERVED


def name_in_sql(name: str) -> str:
    """A name in SQL: in quotes, unless it is a plain word.

    >>> name_in_sql("people"), name_in_sql("people-2024")
    ('people', '"people-2024"')
    """
    is_word = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.upper() not in RESERVED
    return name if is_word else quoted(name)


def _unreadable(text: str, start: int) -> Exception:
    piece = _UNKNOWN.findall(text, start)[0]
    if piece in (TEXT, QUOTED):
        return refused(f"this cannot be read as SQL: the closing {piece} is missing")
    if piece == "/*":
        return refused(
            "this cannot be read as SQL: a comment is not closed, or contains another comment"
        )
    if piece[0] in ".0123456789":
        return refused(f"{quote(piece)} cannot be read as a number; write it as 65, 0.5 or 1e3")
    return refused(f"{quote(piece)} is not supported; use + - * / and comparisons")
