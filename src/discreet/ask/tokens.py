"""From text to sqlglot's tree, past a gate: known signs, no refused words, and the grammar of `ask.grammar`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from discreet.ask.grammar import JOIN, NUMBER, QUOTED, SHAPE, STRING, Grammar
from discreet.ask.kinds import refused
from discreet.calibrate.epsilon import quote

LONGEST_TEXT = 20_000
"""Characters; a longer question was written by a program, or is an attack."""
_SIGNS = frozenset(
    ["(", ")", "[", "]", ",", ".", "+", "-", "*", "/", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "::", ";"]
)
_WORD = re.compile(r"[^\W\d]\w*( +[^\W\d]\w*)*")

_KINDS = {TokenType.STRING: STRING, TokenType.NUMBER: NUMBER, TokenType.IDENTIFIER: QUOTED}
_LITERALS = (STRING, NUMBER, QUOTED)

_QUANTITIES = "Ask for count, sum, avg, stddev, median, quantile, min or max"
_SET = "sets of questions are not in the language; ask them one by one"
_WINDOW = "windows look at other rows, and are not in the language; use GROUP BY"
_SAMPLE = "samples are not in the language; every answer is from all rows"
_TOTALS = "ROLLUP, CUBE and GROUPING SETS are not in the language; ask for each grouping by itself"
_LIKE = "only LIKE with a literal is in the language, as in LOWER(name) LIKE 'a%'"

_REFUSED = {
    **dict.fromkeys(("join", "cross", "lateral", "unnest", "using", "positional", "asof"), JOIN),
    **dict.fromkeys(("union", "intersect", "except"), _SET),
    **dict.fromkeys(("over", "partition", "window", "qualify"), _WINDOW),
    **dict.fromkeys(("sample", "tablesample"), _SAMPLE),
    **dict.fromkeys(("rollup", "cube", "grouping", "totals"), _TOTALS),
    **dict.fromkeys(("ilike", "similar", "glob", "regexp", "rlike", "escape"), _LIKE),
    **dict.fromkeys(("pivot", "unpivot"), "PIVOT is not in the language; use GROUP BY"),
    **dict.fromkeys(("exists", "any", "some"), "subqueries are not in the language; use IN ('a', 'b')"),
    "with": "WITH is not in the language; ask one SELECT of the study's data",
    "all": "ALL is not in the language; name the columns",
    "offset": "OFFSET is not in the language; use LIMIT",
    "fetch": "FETCH is not in the language; use LIMIT",
    "into": "SELECT INTO writes a table; save the answer instead",
    "interval": "INTERVAL is not in the language; compare with a date, as in day >= DATE '2020-01-31'",
    "collate": "COLLATE is not in the language; compare LOWER(…) or UPPER(…)",
    "nulls": "NULLS FIRST and LAST are not in the language; what is missing comes last",
    "exclude": f"* EXCLUDE would release rows. {_QUANTITIES}",
    "columns": f"COLUMNS(…) would release rows. {_QUANTITIES}",
}


def tree_of(text: object, names: Iterable[str]) -> exp.Select:
    """The one SELECT that the text is; `names` of columns are never refused as words."""
    if not isinstance(text, str):
        raise refused(f"a question must be a text, got {quote(text)}")
    if len(text) > LONGEST_TEXT:
        raise refused(f"a question may have {LONGEST_TEXT:,} characters, got {len(text):,}; ask less at once")
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        _gate(tokens, {name.lower() for name in names})
        found = sqlglot.parse(text, read="duckdb")
    except RecursionError:
        raise refused("the question is nested too deeply; write it flatter") from None
    except (SqlglotError, ValueError, TypeError, AttributeError, LookupError):
        raise refused(f"this cannot be read as SQL; {SHAPE}") from None
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise refused(f"only one SELECT can be asked at a time. {_QUANTITIES}")
    return trees[0]


def strict(node: exp.Expression, *known: str) -> None:
    """Refuses a node with anything but the known arguments."""
    for name, value in node.args.items():
        if name not in known and name not in _HARMLESS and value not in (None, False, [], ()):
            plain = f"{name.strip('_').upper()} is not in the language of {node.key.upper()}; leave it out"
            raise refused(_ARGUMENTS.get(name, plain))


_ARGUMENTS = {
    "expressions": "more arguments than the language has; leave them out",
    "count": "min and max take one number; for the smaller of two write LEAST(x, y)",
}
"""What to write in place of an argument that the language does not have."""
_HARMLESS = frozenset({"big_int", "ignore_nulls", "typed", "safe", "value_constructor"})
"""What sqlglot's reading of DuckDB notes on every such node."""


def _gate(tokens: Sequence[Token], names: set[str]) -> None:
    """Refuses what is not in the language: signs, then words by name, then the order of them."""
    words = [_shape(token) for token in tokens]
    if not words or words[0] != "SELECT":
        first = quote(tokens[0].text) if tokens else "nothing"
        if words and words[0].lower() in _REFUSED:
            raise refused(_REFUSED[words[0].lower()])
        raise refused(f"only SELECT can be asked, got {first}. {_QUANTITIES}")
    for index, (token, word) in enumerate(zip(tokens, words, strict=True)):
        if word not in _LITERALS:
            _known(token, word, words[index - 1] if index else "", names)
    Grammar(words, [quote(token.text) for token in tokens]).select()


def _known(token: Token, word: str, before: str, names: set[str]) -> None:
    """Refuses a sign or word that is not in the language."""
    if word == ";":
        raise refused("only one question can be asked at a time; ask them one by one")
    if word == "SELECT" and before:
        raise refused("a SELECT inside of another is not in the language; ask them one by one")
    if word == "DISTINCT" and before != "(":
        raise refused("DISTINCT is not in the language, but in count(DISTINCT unit); use GROUP BY")
    if not _WORD.fullmatch(word) and word not in _SIGNS:
        raise refused(f"{quote(token.text)} is not in the language; it has + - * / and comparisons")
    for part in word.lower().split():
        if part in _REFUSED and part not in names and before != "AS":
            raise refused(_REFUSED[part])


def _shape(token: Token) -> str:
    """A word in capitals, a sign as it is, or what stands for a literal or a quoted name."""
    if token.token_type in _KINDS:
        return _KINDS[token.token_type]
    return " ".join(token.text.upper().split()) if token.text.isascii() else token.text
