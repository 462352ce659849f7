"""A released answer as one HTML file to publish: description, figure, table, method and record.

The file needs no network and no script. It follows the reader's light or dark theme, and prints
well. Everything in it was released: it is made from the answer alone, which is the content that the
ledger keeps.
"""

from __future__ import annotations

import json
from html import escape

from discreet.errors import one_line, printable
from discreet.release.answer import Answer, Decimals
from discreet.show.figures import make, svg, theme
from discreet.show.html import table
from discreet.show.publication import METHOD, Method, Opening, keys_of


def page_of(answer: Answer, above: Opening, how: Method, decimals: Decimals = None) -> str:
    """The page of an answer: its description, figure, numbers and method."""
    record = printable(json.dumps(answer.record, ensure_ascii=False, indent=1))
    numbers = table(
        answer.columns, answer.shown(decimals), texts=keys_of(answer), most=None, attributes=classes
    )
    return page(
        above.title,
        f"{opened(above)}<figure>{svg(make('release', answer=answer))}</figure><div"
        f" class='wide'>{numbers}</div>"
        f'<section id="method"><h2>{METHOD}</h2>{sections(how)}'
        f"<details><summary>The record in the ledger</summary><pre>{escape(record)}</pre></details>"
        "</section>",
    )


def opened(above: Opening) -> str:
    """The text between a title and its table."""
    sql = f"<pre><code>{escape(printable(above.sql.strip()))}</code></pre>" if above.sql else ""
    source = f'<p class="source">{escape(above.source)}</p>' if above.source else ""
    return (
        f"{paragraphs(*filter(None, [above.caption]))}{source}"
        f"{paragraphs(*filter(None, [above.words]))}{sql}"
    )


def sections(how: Method) -> str:
    return "".join(
        f"<h3>{escape(heading)}</h3>{paragraphs(*sentences)}" for heading, sentences in how.items()
    )


def page(title: str, body: str) -> str:
    """One HTML file: a title and its body."""
    heading = escape(one_line(title))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{_style()}</style></head>"
        f"<body><main><h1>{heading}</h1>{body}</main></body></html>"
    )


def paragraphs(*sentences: str) -> str:
    return "".join(f"<p>{escape(one_line(sentence))}</p>" for sentence in sentences)


def classes(tag: str, text: bool) -> str:
    return "" if tag == "table" else f"class={'key' if text else 'number'}"


def _style() -> str:
    names = {
        "card": theme.CARD,
        "text": theme.TEXT,
        "quiet": theme.QUIET,
        "line": theme.GRID,
        "link": theme.BLUE,
    }
    day, night = (
        "".join(f"--{name}:{pair[card]};" for name, pair in names.items()) for card in (0, 1)
    )
    return (
        f":root{{color-scheme:light dark;{day}}}"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{night}}}}}"
        "body{margin:0;background:var(--card);color:var(--text);font:16px/1.5 system-ui,sans-serif}"
        "main{max-width:46rem;margin:0 auto;padding:2rem 1rem}"
        "h1{font-size:1.5rem}"
        "h2{font-size:1.1rem;margin-top:2rem}"
        ".source{color:var(--quiet)}"
        "a{color:var(--link)}"
        "h3{font-size:1rem;margin-bottom:0}"
        "h2,h3{break-after:avoid}"
        "h3+p{margin-top:.25rem}"
        "code,pre{font-size:.85rem;color:var(--quiet);white-space:pre-wrap;overflow-wrap:anywhere}"
        "figure{margin:1rem 0;overflow-x:auto;break-inside:avoid}"
        "figure svg{max-width:100%;height:auto}"
        ".wide{overflow-x:auto}"
        "table{border-collapse:collapse}"
        "th,td{text-align:left;padding:.25rem 1.2rem .25rem 0;"
        "border-bottom:1px solid var(--line);vertical-align:top}"
        ".number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
        "thead{display:table-header-group}"
        "tr{break-inside:avoid}"
        "summary{cursor:pointer;margin-top:2rem}"
        f"{theme.repaint()}"
        "@media print{main{max-width:none;padding:0}details{display:none}}"
    )
