"""The figure of a release: of the table of an answer, or of a release from arrays.

The form depends on the keys (`panels`): named keys are listed, bins stand side by side, numbers and
dates make a line. With two group columns, one is the axis; the other is a colour if it has at most
five keys, or a panel for each of up to twelve keys. Beyond that, and for more columns, the keys are
joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from discreet.errors import InvalidParameter
from discreet.formats import shown
from discreet.parameters import quote
from discreet.release.answer import Answer
from discreet.release.release import Cumulative, Histogram, Release, Releases
from discreet.show.figures import panels, released_table, theme
from discreet.show.figures.released_table import Keys, Numbers, Table, plain, titled, triples
from discreet.show.figures.theme import alt

_MOST_COLUMNS = 4
_NARROWEST = 200  # narrowest width of a panel beside another

_SHAPES: dict[str, Callable[..., theme.Figure]] = {
    "bins": panels.binned,
    "number": panels.ordered,
    "date": panels.ordered,
}
"""The form for ordered keys; all others are listed."""

_FEW = 60  # most bins with separate intervals; with more, the intervals form a band
_MOST_POINTS = 2_000  # most points of a curve: more than a screen has pixels


def release(
    answer: Answer | Release | Releases, *, column: str | None = None, width: object = theme.WIDTH
) -> theme.Figure:
    """The released numbers with their intervals; `column` chooses one of several."""
    wide = theme.pixels(width)
    match answer:
        case Answer():
            return _draw(released_table.of_answer(answer), column, wide)
        case Histogram(edges=(_, *_)):
            return _histogram(answer, wide)
        case Cumulative():
            return _cumulative(answer, wide)
        case Release():
            return _draw(released_table.of_release(answer), column, wide)
        case Releases():
            return _draw(released_table.of_releases(answer), column, wide)
    raise InvalidParameter(f"answer must be an answer or a release, got {quote(answer)}")


def _draw(table: Table, column: str | None, width: int) -> theme.Figure:
    names = [numbers.name for numbers in table.columns]
    column = None if column is None else titled(column)
    if column is not None and column not in names:
        raise InvalidParameter(f"column must be one of {', '.join(names)}, got {quote(column)}")
    columns = [numbers for numbers in table.columns if column in (None, numbers.name)]
    most = len(columns) if not table.keys else _MOST_COLUMNS
    shown, notes = columns[:most], [table.note]
    if len(columns) > most:
        notes.append(f"the first {most} of {len(columns)} columns; column= chooses another")
    by = " and ".join(keys.name for keys in table.keys)
    title = f"{', '.join(numbers.name for numbers in shown)}{f' by {by}' if by else ''}"
    if not shown or not len(table):
        empty = theme.chart([{"text": "no rows"}]).mark_text().encode(text="text:N")
        return theme.framed(empty, title, *notes, width=width, height=60)
    chart, more = _arrange(table, shown, width)
    return theme.framed(
        chart, title if len(title) <= 80 else title[:79] + "…", *notes, more, width=width
    )


def _arrange(table: Table, columns: list[Numbers], width: int) -> tuple[theme.Figure, str]:
    """The panels of all columns, and a note for the subtitle."""
    if not table.keys:
        return theme.stacked([panels.lonely(column, width) for column in columns]), ""
    axis, series, facets = _roles(table.keys)
    if facets is not None:
        return theme.stacked([_facet(column, axis, facets, width) for column in columns]), ""
    if axis.kind in _SHAPES:
        return (
            theme.stacked([_SHAPES[axis.kind](column, axis, series, width) for column in columns]),
            "",
        )
    rows = len(axis.different)
    if rows > panels.MOST_LABELS and series is None:
        # rows with a label: the first in the order of the question, or else the largest
        chosen = (list(range(len(table))) if table.sorted else columns[0].ranked())[
            : panels.MOST_LABELS
        ]
        note = (
            f"with labels: the {'first' if table.sorted else 'largest'} {len(chosen)} of {rows:,}"
        )
        return (
            theme.stacked(
                [panels.crowded(column, axis, width, chosen=chosen) for column in columns]
            ),
            note,
        )
    side, each = _across(width, len(columns))
    drawn = [
        panels.listed(column, axis, series, each, labels=index % side == 0)
        for index, column in enumerate(columns)
    ]
    return (alt.concat(*drawn, columns=side) if len(drawn) > 1 else drawn[0]), ""


def _across(width: int, most: int) -> tuple[int, int]:
    """How many panels stand side by side, and the width of each."""
    side = max(1, min(most, width // _NARROWEST))
    return side, (width - 24 * (side - 1)) // side


def _roles(keys: tuple[Keys, ...]) -> tuple[Keys, Keys | None, Keys | None]:
    """The column for the axis, for the colour, and for the panels."""
    if len(keys) == 1:
        return keys[0], None, None
    if len(keys) == 2:
        axis, other = sorted(
            keys, key=lambda column: (column.kind not in _SHAPES, -len(column.different))
        )
        if axis.kind in _SHAPES or len(axis.different) <= panels.MOST_LABELS:
            if len(other.different) <= len(theme.SERIES):
                return axis, other, None
            if len(other.different) <= panels.MOST_FACETS:
                return axis, None, other
    return _join_keys(keys), None, None


def _join_keys(keys: tuple[Keys, ...]) -> Keys:
    """All keys joined, with a distinct label for each row."""
    labels: list[Any] = []
    counts: Counter[str] = Counter()
    for parts in zip(*(column.labels for column in keys), strict=True):
        label = " · ".join(str(part).removesuffix("T00:00:00Z") for part in parts)
        counts[label] += 1
        labels.append(label if counts[label] == 1 else f"{label} ({counts[label]})")
    return Keys(name=", ".join(column.name for column in keys), kind="text", labels=labels)


def _facet(column: Numbers, axis: Keys, facets: Keys, width: int) -> theme.Figure:
    """A panel for each key of the second column."""
    side, each = _across(width, width)
    drawn = []
    for name in facets.different:
        rows = [index for index, label in enumerate(facets.labels) if label == name]
        panel = _SHAPES.get(axis.kind, panels.listed)(
            column.only(rows), axis.only(rows), None, each
        )
        height = {"height": 140} if axis.kind in _SHAPES else {}
        drawn.append(
            panel.properties(title=alt.TitleParams(text=str(name), fontSize=12, offset=6), **height)
        )
    scale = "shared" if axis.kind in _SHAPES else "independent"
    return alt.concat(*drawn, columns=side).resolve_scale(y=scale)


def _histogram(release: Histogram, width: int) -> theme.Figure:
    """The released counts as bars over their bins, which have their true edges, each with its
    interval.
    """
    rows = [
        {
            "left": left,
            "right": right,
            "middle": (left + right) / 2,
            "value": value,
            "low": low,
            "high": high,
        }
        for (left, right), (value, low, high) in zip(
            pairwise(release.edges), triples(release), strict=True
        )
    ]
    base = theme.chart([{name: plain(item) for name, item in row.items()} for row in rows])
    few = len(rows) <= _FEW
    x = alt.X("left:Q", title="value", scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("value:Q", title="count")
    edge = {"stroke": theme.CARD[0], "strokeWidth": 1} if few else {"strokeWidth": 0}
    tips = [alt.Tooltip(f"{name}:Q") for name in ("left", "right", "value", "low", "high")]
    bars = base.mark_bar(opacity=0.45, **edge).encode(
        x=x, x2="right:Q", y=y, y2=alt.datum(0), tooltip=tips
    )
    middle = alt.X("middle:Q", title="value")
    ends = {"x": middle, "y": alt.Y("low:Q"), "y2": "high:Q"}
    if few:
        over = base.mark_rule(strokeWidth=2, color=theme.BLUE[0]).encode(**ends)
        over += theme.dots(base, 40).encode(x=middle, y=y, tooltip=tips)
    else:
        over = base.mark_area(opacity=0.3, interpolate="step").encode(**ends)
    title = f"{release.statistic} of {len(rows):,} bins"
    return theme.framed(
        alt.layer(bars, over), title, _cost(release, "each bin"), width=width, height=260
    )


def _cumulative(release: Cumulative, width: int) -> theme.Figure:
    """The released numbers of values at or below each point, with a simultaneous band."""
    names = ("point", "value", "low", "high")
    rows = [
        (point, *triple)
        for point, triple in zip(release.points.tolist(), triples(release), strict=True)
    ]
    step = -(-len(rows) // _MOST_POINTS)
    base = theme.chart([dict(zip(names, map(plain, row), strict=True)) for row in rows[::step]])
    x = alt.X("point:Q", title="value", scale=alt.Scale(nice=False, zero=False))
    band = base.mark_area(opacity=0.25, interpolate="step-after").encode(
        x=x, y=alt.Y("low:Q"), y2="high:Q"
    )
    y, tips = alt.Y("value:Q", title="at or below"), [f"{name}:Q" for name in names]
    chart = alt.layer(band, base.mark_line(interpolate="step-after").encode(x=x, y=y, tooltip=tips))
    cost = _cost(release, "all points together")
    return theme.framed(
        chart, "number of values at or below each point", cost, width=width, height=260
    )


def _cost(release: Histogram | Cumulative, which: str) -> str:
    return f"intervals: {which} at 95 % · ε {shown(release.epsilon)} · {release.neighbors}"
