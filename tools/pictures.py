"""Draws the pictures of the documentation into docs/images.

Run it as: python tools/pictures.py. Only figures without chance are here: what they show follows from their options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.show import figures

PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "densities": ("densities", {}),
    "slide": ("slide", {"epsilon": 1, "sensitivity": 1}),
    "slide-discrete": ("slide", {"epsilon": "1/2", "sensitivity": 2, "law": "discrete"}),
    "error": ("error", {"n": 1000, "epsilon": "0.1", "bounds": (0, 120)}),
    "response": ("response", {"epsilon": 1}),
    "attacker": ("attacker", {}),
    "together": ("together", {}),
}
"""File names, each with the figure and its options."""


if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "docs" / "images"
    for name, (figure, options) in PICTURES.items():
        print(figures.save(figures.make(figure, **options), folder / f"{name}.svg", force=True))
