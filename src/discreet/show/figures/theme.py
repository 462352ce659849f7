"""The look of every figure: colours, sizes, and the only import of altair.

A figure has its own background (card), so that its text is readable on any page: light in pictures
and notebooks; in SVG and HTML also dark if the reader prefers dark. Both come from one table of
pairs,

    (colour on the light card, colour on the dark card)

turned into a style sheet that repaints a finished picture: CSS rules override an SVG's attributes.
Series have colours of Okabe and Ito, which colour-blind readers can tell apart, with a contrast of
at least 3:1 on both cards (text: 4.5:1). They also differ in shape or dash.

A spec contains its theme and its data. No global state is set.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from textwrap import wrap
from typing import Any, Literal, TypeAlias

from discreet.errors import InvalidParameter
from discreet.parameters import exact_count

Figure: TypeAlias = Any  # a chart of altair
CARD = ("#ffffff", "#16191f")
TEXT = ("#1f2430", "#e8eaed")
QUIET = ("#5a6270", "#aab2bf")
GRID = ("#e3e6ea", "#2e343d")
LINE = ("#8a929e", "#7d8794")  # axes and reference lines
BLUE = ("#0072b2", "#4aa8e0")
VERMILION = ("#d55e00", "#f08a45")
GREEN = ("#009e73", "#2cc79b")
PURPLE = ("#c0659a", "#e39ac6")
BLACK = ("#33373f", "#d3d6db")

SERIES = (BLUE, VERMILION, GREEN, PURPLE, BLACK)
PAIRS = (CARD, TEXT, QUIET, GRID, LINE, *SERIES)

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3])

# the converter has the first; the others are as wide
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH = 520
NARROWEST, WIDEST = 200, 5_000

CLOCK = {"milliseconds": "%H:%M:%S", "seconds": "%H:%M:%S", "minutes": "%H:%M", "hours": "%H:%M"}
"""Labels of a time axis within a day, without AM and PM."""


def pixels(width: object) -> int:
    """The width of a figure: in less its labels overlap, and more fits no screen."""
    return exact_count("width", width, least=NARROWEST, most=WIDEST)


def _extra(name: str) -> Any:
    """A module of the extra; if it is missing, the error says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(
            "figures need more packages; run: pip install 'discreet[plot]'"
        ) from None


altair, converter = partial(_extra, "altair"), partial(_extra, "vl_convert")


def require() -> None:
    """Refuse if a figure could not be drawn."""
    converter()
    altair()


class _Altair:
    def __getattr__(self, name: str) -> Any:
        return getattr(altair(), name)


alt: Any = _Altair()


def chart(values: list[dict[str, Any]]) -> Figure:
    """A chart with its data inside the spec, as a dict: altair's own data class would check every
    row.
    """
    return alt.Chart({"values": values})


def dots(base: Figure, size: int, **look: Any) -> Figure:
    return base.mark_point(filled=True, size=size, opacity=1, **look)


def dashed(base: Figure) -> Figure:
    """A reference line."""
    return base.mark_rule(strokeDash=[4, 4], color=LINE[0])


def stacked(drawn: list[Figure]) -> Figure:
    return alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0]


def colors(count: int) -> list[str]:
    """The colours of the first series, on the light card."""
    return [light for light, _ in SERIES[:count]]


def series(
    field: str,
    names: list[str],
    mark: Literal["shape", "strokeDash"],
    *,
    legend: Any,
    paints: list[str] | None = None,
) -> dict[str, Any]:
    """The colour of each name, and its shape or dash, for readers who cannot use colours."""
    kind, looks = {"shape": (alt.Shape, SHAPES), "strokeDash": (alt.StrokeDash, DASHES)}[mark]
    ranges = {"color": paints or colors(len(names)), mark: list(looks[: len(names)])}
    return {
        name: channel(
            f"{field}:N",
            sort=names,
            scale=alt.Scale(domain=names, range=ranges[name]),
            legend=legend,
        )
        for name, channel in (("color", alt.Color), (mark, kind))
    }


def framed(
    chart: Figure, title: str, *subtitles: str, width: int, height: int | None = None
) -> Figure:
    """The chart with its title and the theme; titles are wrapped to the width."""
    if height is not None:
        chart = chart.properties(width=width, height=height)
    lines = [line for text in subtitles if text for line in wrap(text, max(20, width // 6))]
    heading = alt.TitleParams(text=wrap(title, max(16, width // 9)) or [""], subtitle=lines)
    return chart.properties(title=heading, background=CARD[0], padding=16).configure(**_config())


def _config() -> dict[str, Any]:
    ink, quiet, grid, line = (pair[0] for pair in (TEXT, QUIET, GRID, LINE))
    sizes = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 180,
        "titleFontWeight": "normal",
    }
    title = {
        "fontSize": 16,
        "fontWeight": "bold",
        "anchor": "start",
        "frame": "group",
        "offset": 14,
    }
    label = {"labelColor": quiet, "titleColor": ink, **sizes}
    return {
        "font": FONT,
        "view": {"stroke": None},
        "title": {
            **title,
            "color": ink,
            "subtitleColor": quiet,
            "subtitleFontSize": 12,
            "subtitlePadding": 5,
        },
        "axis": {
            **label,
            "labelFlush": False,
            "gridColor": grid,
            "domainColor": line,
            "tickColor": line,
        },
        "legend": {**label, "symbolStrokeWidth": 2, "labelLimit": 400, "symbolOpacity": 1},
        "header": label,
        "text": {"color": quiet, "fontSize": 12},
        "range": {"category": colors(len(SERIES)), "symbol": list(SHAPES)},
        "concat": {"spacing": 24},
        "bar": {"color": BLUE[0]},
        "line": {"color": BLUE[0], "strokeWidth": 2},
        "area": {"color": BLUE[0]},
        "point": {"color": BLUE[0]},
        "rule": {"color": ink},
    }


def repaint() -> str:
    """The style sheet that turns a light picture dark on screens; paper stays white."""
    rules = "".join(
        f'[{paint}="{light}"]{{{paint}:{dark}}}'
        for light, dark in PAIRS
        for paint in ("fill", "stroke")
    )
    return f"@media screen and (prefers-color-scheme: dark){{{rules}}}"


def dark(spec: Any) -> Any:
    match spec:
        case dict():
            return {key: dark(value) for key, value in spec.items()}
        case list():
            return [dark(value) for value in spec]
        case str():
            return dict(PAIRS).get(spec, spec)
    return spec
