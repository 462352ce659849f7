"""A panel for one column of released numbers, by the kind of its keys. Every number has its
interval.

    lonely     no keys: a dot on a line
    listed     named keys: a bar or a dot each, with a label
    crowded    more named keys than labels fit: all in the order of their numbers, and the first
               with labels
    binned     bins: columns side by side
    ordered    numbers or dates: a line in its band

An unbounded interval is a dashed line across the panel, and a missing number is marked as missing.
A second key is a colour, or has a panel for each value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from discreet.show.figures import theme
from discreet.show.figures.released_table import Keys, Numbers
from discreet.show.figures.theme import alt

MOST_LABELS = 40  # most rows with a label: more do not fit on a screen
MOST_FACETS = 12
_FEW = 60  # most points on a line that are drawn as dots
_FINITE = "isValid(datum.low) && isValid(datum.high)"
_NONE = "!isValid(datum.value)"
_OPEN = "isValid(datum.value) && !(isValid(datum.low) && isValid(datum.high))"
_NUMBERS = [("value", "value"), ("low", "from"), ("high", "to")]


def lonely(column: Numbers, width: int) -> theme.Figure:
    base = theme.chart([column.fields(0)]).properties(width=width, height=36)
    x = alt.X("value:Q", title=column.name, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8))
    return _dotted(base, "x", x, {}, {}, tooltip=_tooltips())


def listed(
    column: Numbers,
    keys: Keys,
    series: Keys | None,
    width: int,
    *,
    labels: bool = True,
    row: int = 22,
) -> theme.Figure:
    """A row for each key: bars from zero for counts and sums, otherwise dots."""
    axis = alt.Axis(
        labels=labels, ticks=False, domain=False, grid=False, title=keys.name if labels else None
    )
    count = 1 if series is None else len(series.different)
    # rows without a number included
    scale = alt.Scale(domain=keys.different, padding=0.1 if count == 1 else 0.35)
    position = {"y": alt.Y("key:N", sort=None, axis=axis, scale=scale)}
    if count > 1 and series is not None:
        position["yOffset"] = alt.YOffset("series:N", sort=[str(name) for name in series.different])
    step = alt.Step(row if count == 1 else 14 * count, **({"for": "position"} if count > 1 else {}))
    base = _base(column, keys, series).properties(width=width, height=step)
    x = alt.X("value:Q", title=column.name, scale=alt.Scale(zero=column.from_zero))
    bars = None
    if column.from_zero and series is None:
        bars = base.mark_bar(opacity=0.45, height={"band": 0.62}).encode(x=x, y=position["y"])
    return _dotted(
        base, "x", x, position, _painted(series), tooltip=_tooltips(keys, series), under=bars
    )


def crowded(column: Numbers, keys: Keys, width: int, *, chosen: list[int]) -> theme.Figure:
    """All rows as a band in the order of their numbers, and the chosen rows with labels."""
    ranked = enumerate(column.ranked(), 1)
    values = [
        {"rank": rank, "key": str(keys.labels[row]), **column.fields(row)} for rank, row in ranked
    ]
    base = theme.chart(values).properties(width=width, height=120)
    title = f"{len(keys.labels):,} rows, largest first"
    scale = alt.Scale(domain=[1, max(2, len(values))], nice=False)
    x = alt.X("rank:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    band = (
        base.transform_filter(_FINITE)
        .mark_area(opacity=0.3)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    )
    dots = theme.dots(base, 8).encode(x=x, y=_upward(column), tooltip=_tooltips(keys))
    names = replace(keys.only(chosen), kind="text")
    return alt.vconcat(
        alt.layer(band, dots), listed(column.only(chosen), names, None, width, row=16)
    )


def binned(column: Numbers, keys: Keys, series: Keys | None, width: int) -> theme.Figure:
    crowd = len(keys.different) * max(map(len, map(str, keys.different)), default=0) * 7 > width
    axis = alt.Axis(
        labelAngle=-45 if crowd else 0, labelOverlap=len(keys.different) > MOST_LABELS, grid=False
    )
    x = {
        "x": alt.X(
            "key:N", sort=None, scale=alt.Scale(domain=keys.different), title=keys.name, axis=axis
        )
    }
    if series is not None:
        x["xOffset"] = alt.XOffset("series:N", sort=series.different)
    base = _base(column, keys, series).properties(width=width, height=240)
    y, bars = _upward(column), None
    if column.from_zero and series is None:
        bars = base.mark_bar(opacity=0.45, width={"band": 0.8}).encode(y=y, **x)
    return _dotted(base, "y", y, x, _painted(series), tooltip=_tooltips(keys, series), under=bars)


def ordered(column: Numbers, keys: Keys, series: Keys | None, width: int) -> theme.Figure:
    """A line in its band; with few points, each has its own interval."""
    base = _base(column, keys, series).properties(width=width, height=240)
    if keys.kind == "date":
        kind = "T"
        scale = alt.Scale(type="utc")
        axis = alt.Axis(format=theme.CLOCK, labelOverlap=True)
    else:
        whole = all(isinstance(label, int) for label in keys.labels)
        axis = alt.Axis(format="d", tickMinStep=1) if whole else alt.Axis()
        kind, scale = "Q", alt.Scale(zero=False, nice=False, padding=12)
    x, y = alt.X(f"key:{kind}", title=keys.name, scale=scale, axis=axis), _upward(column)
    paint, tips = _painted(series), _tooltips(keys, series)
    smooth = {name: channel for name, channel in paint.items() if name != "shape"}
    line = base.mark_line(strokeWidth=1.5).encode(x=x, y=y, **smooth)
    if len(keys.different) <= _FEW:
        return _dotted(base, "y", y, {"x": x}, paint, tooltip=tips, under=line)
    band = base.transform_filter(_FINITE).mark_area(opacity=0.25)
    hidden = base.mark_point(opacity=0, size=60).encode(x=x, y=y, tooltip=tips)
    return alt.layer(band.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", **smooth), line, hidden)


def _base(column: Numbers, keys: Keys, series: Keys | None) -> theme.Figure:
    """The released numbers as data of a chart, each with its key and series."""
    rows = []
    for index, key in enumerate(keys.labels):
        more = {} if series is None else {"series": str(series.labels[index])}
        rows.append({"key": key, **more, **column.fields(index)})
    return theme.chart(rows)


def _upward(column: Numbers) -> Any:
    return alt.Y("value:Q", title=column.name, scale=alt.Scale(zero=column.from_zero))


def _dotted(
    base: theme.Figure,
    along: Literal["x", "y"],
    value: Any,
    position: dict[str, Any],
    paint: dict[str, Any],
    *,
    tooltip: list[Any],
    under: Any = None,
) -> theme.Figure:
    """Dots with intervals along x or y; along x, a row without a number is marked as missing."""
    color = {name: channel for name, channel in paint.items() if name == "color"}

    def intervals(which: str, first: Any, last: Any, **look: Any) -> theme.Figure:
        rules = base.transform_filter(which).mark_rule(color=theme.BLUE[0], **look)
        return rules.encode(**{along: first, f"{along}2": last}, **position, **color)

    finite = intervals(_FINITE, {"x": alt.X, "y": alt.Y}[along]("low:Q"), "high:Q", strokeWidth=2)
    end = alt.value({"x": "width", "y": "height"}[along])
    endless = intervals(_OPEN, alt.value(0), end, strokeDash=[2, 4])
    dots = theme.dots(base, 45).encode(**{along: value}, tooltip=tooltip, **position, **paint)
    layers = [*([under] if under is not None else []), endless, finite, dots]
    if along == "x":
        missing = base.transform_filter(_NONE).mark_text(align="left", x=6)
        layers.append(missing.encode(text=alt.value("missing"), **position))
    return alt.layer(*layers)


def _painted(series: Keys | None) -> dict[str, Any]:
    if series is None:
        return {}
    legend = alt.Legend(title=series.name, orient="bottom", columns=4)
    return theme.series("series", [str(name) for name in series.different], "shape", legend=legend)


def _tooltips(keys: Keys | None = None, series: Keys | None = None) -> list[Any]:
    names = []
    if keys is not None:
        kind = {"number": "Q", "date": "T"}.get(keys.kind, "N")
        names.append(alt.Tooltip(f"key:{kind}", title=keys.name))
    if series is not None:
        names.append(alt.Tooltip("series:N", title=series.name))
    return [
        *names,
        *(alt.Tooltip(f"{field}:Q", title=title, format=",.10~g") for field, title in _NUMBERS),
    ]
