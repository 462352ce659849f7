"""Histograms and cumulative counts out of memory, over the numbers themselves: bins have their true edges."""

from __future__ import annotations

from typing import Any

from discreet.formats import shown
from discreet.release.release import Cumulative, Histogram
from discreet.show.figures import theme
from discreet.show.figures.released_table import plain

_FEW = 60
"""Bins that have an interval of their own; of more, the intervals make a band."""

_MOST_POINTS = 2_000
"""Points of a curve: more than a screen has pixels."""


def histogram(release: Histogram, width: int) -> theme.Figure:
    """The released counts as bars over their bins, each with its interval."""
    alt = theme.altair()
    low, high = release.interval()
    values = [
        {"left": left, "right": right, "middle": (left + right) / 2, "value": value, "low": below, "high": above}
        for left, right, value, below, above in zip(
            release.edges[:-1],
            release.edges[1:],
            *(column.tolist() for column in (release.value, low, high)),
            strict=True,
        )
    ]
    base = alt.Chart(theme.rows([{name: plain(item) for name, item in row.items()} for row in values]))
    few = len(values) <= _FEW
    x = alt.X("left:Q", title="value", scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("value:Q", title="count")
    edge = {"stroke": theme.CARD[0], "strokeWidth": 1} if few else {"strokeWidth": 0}
    tips = [alt.Tooltip(f"{name}:Q") for name in ("left", "right", "value", "low", "high")]
    bars = base.mark_bar(opacity=0.45, **edge).encode(x=x, x2="right:Q", y=y, y2=alt.datum(0), tooltip=tips)
    middle = alt.X("middle:Q", title="value")
    if few:
        over = base.mark_rule(strokeWidth=2, color=theme.BLUE[0]).encode(x=middle, y=alt.Y("low:Q"), y2="high:Q")
        over += base.mark_point(filled=True, size=40, opacity=1).encode(x=middle, y=y, tooltip=tips)
    else:
        over = base.mark_area(opacity=0.3, interpolate="step").encode(x=middle, y=alt.Y("low:Q"), y2="high:Q")
    chart = alt.layer(bars, over).properties(width=width, height=260)
    return theme.framed(
        chart, f"{release.statistic} of {len(values):,} bins", _cost(release, "each bin at 95 %"), width=width
    )


def cumulative(release: Cumulative, width: int) -> theme.Figure:
    """The released numbers at or below each point, in the band that holds them all."""
    alt = theme.altair()
    low, high = release.interval()
    columns: list[Any] = [column.tolist() for column in (release.points, release.value, low, high)]
    step = -(-len(columns[0]) // _MOST_POINTS)
    values = [
        {"point": plain(point), "value": plain(value), "low": plain(below), "high": plain(above)}
        for point, value, below, above in zip(*(column[::step] for column in columns), strict=True)
    ]
    base = alt.Chart(theme.rows(values))
    x = alt.X("point:Q", title="value", scale=alt.Scale(nice=False, zero=False))
    band = base.mark_area(opacity=0.25, interpolate="step-after").encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line(interpolate="step-after").encode(
        x=x,
        y=alt.Y("value:Q", title="at or below"),
        tooltip=[f"{name}:Q" for name in ("point", "value", "low", "high")],
    )
    chart = alt.layer(band, line).properties(width=width, height=260)
    return theme.framed(chart, "how many lie at or below", _cost(release, "all points together at 95 %"), width=width)


def _cost(release: Histogram | Cumulative, what: str) -> str:
    return f"intervals: {what} · ε {shown(release.epsilon)} · {release.neighbors}"
