"""The figures by name, and their files.

    make("slide", epsilon=1, sensitivity=2)     a chart of altair, which a notebook displays
    save(chart, "slide.svg")                    .png, .svg, .pdf, .html (interactive, no network),
                                                .json (the spec)

Everything in a spec is public or released. Altair is imported only when a figure is made.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidParameter
from discreet.files.writer import NOTHING, Kept, write
from discreet.parameters import quote
from discreet.show.figures import accuracy, budget, laws, release, theme, together

NAMES: MappingProxyType[str, Callable[..., theme.Figure]] = MappingProxyType(
    {
        "densities": laws.densities,
        "slide": laws.slide,
        "loss": laws.loss,
        "release": release.release,
        "error": accuracy.error,
        "largest": accuracy.largest,
        "sensitivity": accuracy.moves,
        "budget": budget.budget,
        "response": accuracy.response,
        "attacker": laws.attacker,
        "together": together.together,
    }
)

SHARPNESS = 2  # pixels of a PNG for each pixel of the figure: sharp on screens and in print


def make(name: str, **options: Any) -> theme.Figure:
    """The figure of this name, with the options that its function takes."""
    if name not in NAMES:
        raise InvalidParameter(f"figure must be one of {', '.join(NAMES)}, got {quote(name)}")
    parameters = inspect.signature(NAMES[name]).parameters
    for option in options:
        if option not in parameters:
            raise InvalidParameter(
                f"figure {name} takes only {', '.join(parameters)}, got {quote(option)}"
            )
    for needed, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and needed not in options:
            raise InvalidParameter(f"figure {name} needs {needed}")
    theme.altair()  # first of all, refuse if the extra is missing
    return NAMES[name](**options)


def save(
    chart: theme.Figure, path: str | PathLike[str], *, force: bool = False, kept: Kept = NOTHING
) -> Path:
    """Write a figure to a new .png, .svg, .pdf, .html or .json file; its path."""
    file = Path(path)
    content: str | bytes
    match file.suffix.lower():
        case ".png":
            content = theme.converter().vegalite_to_png(chart.to_dict(), scale=SHARPNESS)
        case ".svg":
            content = svg(chart)
        case ".pdf":
            content = theme.converter().vegalite_to_pdf(chart.to_dict())
        case ".html":
            content = page(chart)
        case ".json":
            content = json.dumps(chart.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        case _:
            raise InvalidParameter(
                f"path must end in .png, .svg, .pdf, .html or .json, got {quote(file.name)}"
            )
    return write(file, content, force=force, kept=kept)


def svg(chart: theme.Figure) -> str:
    """The figure as SVG, which turns dark if the reader prefers dark."""
    text: str = theme.converter().vegalite_to_svg(chart.to_dict())
    opening, body = text.split(">", 1)
    return f"{opening}><style>{theme.repaint()}</style>{body}"


def page(chart: theme.Figure) -> str:
    """The figure as one HTML file without network access: with tooltips, and dark if the reader
    prefers dark.
    """
    # a key such as </script> must stay data
    spec = json.dumps(chart.to_dict(), allow_nan=False).replace("<", "\\u003c")
    code = theme.converter().javascript_bundle()
    light, dark = theme.CARD
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>discreet</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        f"body{{margin:0;background:{light}}}#figure{{overflow-x:auto}}"
        f"{theme.repaint()}@media screen and (prefers-color-scheme: dark){{"
        # an interactive figure has its background as an inline style, which only !important
        # overrides
        f"body,#figure svg{{background:{dark}!important}}}}</style></head>"
        f'<body><div id="figure"></div><script>{code}</script><script>'
        f'vegaEmbed("#figure",{spec},{{renderer:"svg",actions:false}})</script></body></html>'
    )
