"""The figures of the course that depend only on their options, in one style, light and dark, as
SVG, PNG and PDF.

    slides/slide-light.svg   slide-light.png   slide-light.pdf   slide-dark.svg   …

A dark figure is the same spec with dark colours (`theme.PAIRS`), so that it needs no style sheet,
which presentation programs ignore.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidParameter
from discreet.files.writer import write
from discreet.parameters import quote
from discreet.show import figures
from discreet.show.figures import theme

LECTURE: MappingProxyType[str, tuple[str, dict[str, Any]]] = MappingProxyType(
    {
        "attacker": ("attacker", {}),
        "densities": ("densities", {}),
        "densities-discrete": ("densities", {"law": "discrete"}),
        "slide": ("slide", {"epsilon": 1, "sensitivity": 1}),
        "slide-discrete": ("slide", {"epsilon": "1/2", "sensitivity": 2, "law": "discrete"}),
        "loss": ("loss", {"epsilon": 1, "sensitivity": 1}),
        "loss-discrete": ("loss", {"epsilon": 1, "sensitivity": 2, "law": "discrete"}),
        "error": ("error", {"n": 1000, "epsilon": "0.1", "bounds": (0, 120)}),
        "sensitivity": ("sensitivity", {}),
        "largest": ("largest", {}),
        "response": ("response", {"epsilon": 1}),
        "together": ("together", {}),
    }
)
"""File names in the order of the course, each with the figure and its options."""

_FILES = (".svg", ".png", ".pdf", ".html", ".json")
"""Endings of a single figure: nobody means a folder by them."""


def save_all(
    folder: str | PathLike[str], *, width: object = None, force: bool = False
) -> list[Path]:
    """Write every figure of the course into a folder, which is created if needed; the paths of the
    files.
    """
    target = Path(folder)
    if (target.exists() and not target.is_dir()) or target.suffix.lower() in _FILES:
        raise InvalidParameter(f"-o must be a folder with --all, got the file {quote(target.name)}")
    more = {} if width is None else {"width": width}
    charts = {
        name: figures.make(figure, **options, **more).to_dict()
        for name, (figure, options) in LECTURE.items()
    }
    target.mkdir(parents=True, exist_ok=True)
    convert, saved = theme.converter(), []
    for name, spec in charts.items():
        for card, painted in (("light", spec), ("dark", theme.dark(spec))):
            files = {
                "svg": convert.vegalite_to_svg(painted),
                "png": convert.vegalite_to_png(painted, scale=figures.SHARPNESS),
                "pdf": convert.vegalite_to_pdf(painted),
            }
            for kind, content in files.items():
                saved.append(write(target / f"{name}-{card}.{kind}", content, force=force))
    return saved
