"""The pictures of the documentation: `python -m discreet.show.gallery docs/images`.

Only figures without chance are here: what they show follows from their options, on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.show.figures import make, save

PICTURES: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "densities": ("densities", {}),
        "slide": ("slide", {"epsilon": 1, "sensitivity": 1}),
        "slide-discrete": ("slide", {"epsilon": "1/2", "sensitivity": 2, "law": "discrete"}),
        "error": ("error", {"n": 1000, "epsilon": "0.1", "bounds": (0, 120)}),
        "response": ("response", {"epsilon": 1}),
        "attacker": ("attacker", {}),
    }
)
"""File names, each with the figure and its options."""


def paint(folder: str | Path) -> list[Path]:
    """Every picture, as an SVG in the folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return [
        save(make(figure, **options), place / f"{name}.svg", force=True) for name, (figure, options) in PICTURES.items()
    ]


if __name__ == "__main__":
    for path in paint(sys.argv[1] if len(sys.argv) > 1 else "docs/images"):
        sys.stdout.write(f"{path}\n")
