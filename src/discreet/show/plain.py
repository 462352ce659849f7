"""Released tables as Markdown and as plain text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from discreet.errors import one_line, printable
from discreet.show.publication import METHOD, Method, Opening

_WIDTH = 100
# Characters with a meaning in Markdown, or in HTML inside it; also bare addresses and formulas.
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$]|&(?=#?\w+;)|:(?=//)|(?<=\bwww)\.)")
# The beginning of a paragraph that Markdown reads as a list or a rule.
_LIST = re.compile(r"\A([0-9]*)([-+]|(?<=[0-9])[.)](?=\s|\Z))")
# The opening of a table, its headings, its rows, and the indexes of its key columns.
Table = tuple[Opening, Sequence[str], Sequence[Sequence[str]], Sequence[int]]


def markdown(opening: Opening, tables: Sequence[Table], method: Method) -> str:
    """Tables below a title, with their method at the end."""
    parts = [*_markdown_opening(opening, "#")]
    for above, headings, rows, keys in tables:
        line = ["---" if index in keys else "---:" for index in range(len(headings))]
        cells = [[_escaped(cell) for cell in row] for row in (headings, *rows)]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], line, *cells[1:]))
        parts += [*_markdown_opening(above, "##"), table]
    parts.append(f"## {METHOD}")
    parts += [
        f"**{_escaped(heading)}.** {_escaped(' '.join(sentences))}"
        for heading, sentences in method.items()
    ]
    return "\n\n".join(parts) + "\n"


def text(opening: Opening, tables: Sequence[Table], method: Method) -> str:
    """The same as plain text."""
    parts = [*_text_opening(opening, "=")]
    for above, headings, rows, keys in tables:
        parts += [*_text_opening(above, "-"), "\n".join(_aligned(headings, rows, keys))]
    parts.append(f"{METHOD}\n{'-' * len(METHOD)}")
    parts += [
        _wrapped(f"{heading}: {' '.join(map(one_line, sentences))}")
        for heading, sentences in method.items()
    ]
    return "\n\n".join(parts) + "\n"


def _markdown_opening(opening: Opening, level: str) -> Iterator[str]:
    if opening.title:
        yield f"{level} {_escaped(opening.title)}"
    paragraphs = [
        _escaped(part.strip()) for part in (opening.caption, opening.source, opening.words) if part
    ]
    yield from (_LIST.sub(r"\1\\\2", paragraph) for paragraph in paragraphs)
    if opening.sql:
        sql = printable(opening.sql.strip())
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", sql)), default=0))
        yield f"{fence}sql\n{sql}\n{fence}"


def _escaped(cell: str) -> str:
    return _MARKS.sub(r"\\\1", one_line(cell))


def _text_opening(opening: Opening, line: str) -> Iterator[str]:
    if opening.title:
        yield f"{opening.title}\n{line * len(opening.title)}"
    yield from (_wrapped(part) for part in (opening.caption, opening.source, opening.words) if part)
    if opening.sql:
        yield textwrap.indent(printable(opening.sql.strip()), "    ")


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, _WIDTH, break_on_hyphens=False)


def _aligned(
    headings: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[int]
) -> list[str]:
    cells = [[one_line(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<" if index in keys else ">" for index in range(len(headings))]
    form = list(zip(sides, widths, strict=True))
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, (side, width) in zip(row, form, strict=True)
        ).rstrip()
        for row in cells
    ]
