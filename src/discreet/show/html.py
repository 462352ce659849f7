"""Plans, answers, releases, studies and ledgers as a notebook shows them: small tables, readable on light and dark.

Colours are the notebook's own (`inherit`, `currentColor`), styles are inline, since notebooks drop style sheets, and
every text is escaped: a key may be anything. Of a long table the first and the last rows are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from html import escape
from itertools import pairwise
from typing import Any

from discreet.ask.declared import Declared
from discreet.ask.query import Named
from discreet.errors import InvalidParameter, one_line
from discreet.formats import MOST_ROWS, rounded, shortened, shown
from discreet.ledger.ledger import Ledger
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.release import Cumulative, Histogram, Release, Releases, Vector
from discreet.release.study import Study

_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;color:inherit"
_TABLE = "border-collapse:collapse;margin:4px 0;color:inherit;background:transparent"
_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"{_LINE};padding:3px 14px 3px 0;color:inherit;background:transparent;vertical-align:top"
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_QUIET = "opacity:.8"


def _inline(tag: str, text: bool) -> str:
    if tag == "table":
        return f'style="{_TABLE}"'
    return f'style="{_CELL};{"text-align:left" if text else _NUMBER}{";font-weight:600" if tag == "th" else ""}"'


def of(value: object) -> str:
    """The HTML of a plan, an answer, a release, a study or a ledger."""
    match value:
        case Plan():
            return _plan(value)
        case Answer():
            return _answer(value)
        case Release():
            return _release(value)
        case Releases():
            return _releases(value)
        case Study():
            return _study(value)
        case Ledger():
            return _ledger(value)
    raise InvalidParameter(f"expected a plan, an answer, a release, a study or a ledger, got {quote(value)}")


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: Collection[int] = (0,),
    most: int | None = MOST_ROWS,
    attributes: Callable[[str, bool], str] = _inline,
) -> str:
    """A table; `texts` are the places of columns that are no numbers; of more than `most` rows the ends are shown.

    `attributes` gives those of a tag, which is a table, or a cell that is a text or a number.
    """
    (head, *body), below = shortened(headings, rows, most)

    def row(cells: Sequence[str], tag: str) -> str:
        written = (f"<{tag} {attributes(tag, at in texts)}>{escape(cell)}</{tag}>" for at, cell in enumerate(cells))
        return f"<tr>{''.join(written)}</tr>"

    lines = "".join(row(cells, "td") for cells in body)
    start = f"<table {attributes('table', False)}>"
    return f"{start}<thead>{row(head, 'th')}</thead><tbody>{lines}</tbody></table>{''.join(map(line, below))}"


def line(text: str, *, quiet: bool = True) -> str:
    """A line of text below or above a table."""
    return f'<div style="{_QUIET if quiet else "font-weight:600"}">{escape(one_line(text))}</div>' if text else ""


def _box(*parts: str) -> str:
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def _plan(plan: Plan) -> str:
    headings, *rows = plan.table
    notes = [*([" · ".join(plan.notes)] if plan.notes else []), *plan.warnings, "Nothing was read, nothing is spent."]
    return _box(line(plan.summary, quiet=False), table(headings, rows, most=None), *map(line, notes))


def _answer(answer: Answer) -> str:
    made = table(answer.columns, answer.cells, texts=keys_of(answer))
    return _box(made, line(repr(answer).splitlines()[-1]))


def keys_of(answer: Answer) -> list[int]:
    """The places of the columns that are keys."""
    names = {group.name for group in answer.query.groups}
    outputs = [output for _, output in answer.query.outputs]
    return [at for at, output in enumerate(outputs) if isinstance(output, Named) and output.name in names]


def _release(release: Release) -> str:
    if not isinstance(release, Vector):
        rows = [[release.statistic, *_ends(release)]]
        return _box(table(["statistic", "released", "95 % interval"], rows), line(release.note), line(_cost(release)))
    low, high = release.interval()
    numbers = zip(release.value.tolist(), low.tolist(), high.tolist(), strict=True)
    rows = [[name, *_written(*item)] for name, item in zip(_places(release), numbers, strict=True)]
    made = table([_place(release), release.statistic, "95 % interval"], rows)
    return _box(made, line(release.note), line(_cost(release)))


def _releases(found: Releases) -> str:
    rows = [[name, *_ends(part)] for name, part in found.items()]
    one = next(iter(found.values()))
    made = table(["statistic", "released", "95 % interval"], rows)
    return _box(made, line(f"ε {shown(found.epsilon)} in all · {one.neighbors}"))


def _study(study: Study) -> str:
    policy = study.policy
    first = f"study {study.name} · ε {shown(study.remaining)} of {shown(policy.epsilon)} left"
    promise = f"{policy.neighbors} · unit {policy.unit}"
    if policy.unit != "row":
        promise += f", up to {policy.max_rows:,} rows each" if policy.max_rows else ""
    rows = [[name, _declared(column)] for name, column in policy.columns.items()]
    return _box(line(first, quiet=False), line(promise), table(["column", "declared"], rows, texts=(0, 1)))


def _declared(column: Declared) -> str:
    """What a policy says about a column, in a few words."""
    said = []
    if column.bounds is not None:
        said.append(f"{_short(column.bounds[0])} to {_short(column.bounds[1])}")
    if column.bins is not None:
        said.append(f"{len(column.bins) - 1} bins")
    if column.keys is not None:
        said.append(f"{len(column.keys):,} keys")
    elif column.discover:
        said.append("keys not discovered yet")
    return " · ".join(said) or "as it is"


def _ledger(ledger: Ledger) -> str:
    rows = []
    for name in ledger.studies():
        numbers = [ledger.total(name), ledger.spent(name), ledger.remaining(name)]
        rows.append([name, *(shown(number) for number in numbers)])
    return _box(table(["study", "total ε", "spent", "left"], rows))


def _ends(release: Release) -> list[str]:
    if isinstance(release, Vector):
        return [f"{len(release.value):,} numbers", ""]
    return _written(release.value, *release.interval())


def _written(value: Any, low: Any, high: Any) -> list[str]:
    """A number with as many digits as its error has meaning, and its interval."""
    reach = float(max(value - low, high - value))
    ends = f"{rounded(low, reach)} to {rounded(high, reach)}"
    return [rounded(value, reach), ends]


def _places(release: Vector) -> list[str]:
    """What each number of a vector stands for."""
    match release:
        case Histogram():
            edges = [f"{edge:,.6g}" for edge in release.edges]
            return [f"{left} to {right}" for left, right in pairwise(edges)]
        case Cumulative():
            return [f"≤ {point:,.6g}" for point in release.points.tolist()]
    return [str(at) for at in range(len(release))]


def _place(release: Release) -> str:
    return "bin" if isinstance(release, Histogram) else "value" if isinstance(release, Cumulative) else "number"


def _cost(release: Release) -> str:
    return f"ε {shown(release.epsilon)} · Δ {shown(release.sensitivity)} · {release.neighbors}"


def _short(bound: Any) -> str:
    return shown(bound) if isinstance(bound, Fraction) else str(bound)
