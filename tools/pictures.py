"""Draws the pictures of the documentation into docs/images: those of a lecture, each turning dark
with its reader.

Run it as: python tools/pictures.py. Only figures without chance are here: what they show follows
from their options.
"""

from __future__ import annotations

from pathlib import Path

from discreet.show import figures
from discreet.show.figures.slides import LECTURE as PICTURES

if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "docs" / "images"
    for name, (figure, options) in PICTURES.items():
        print(figures.save(figures.make(figure, **options), folder / f"{name}.svg", force=True))
