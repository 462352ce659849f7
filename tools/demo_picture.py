"""Draws docs/images/demo.svg: what `make demo` prints today, as a picture of a terminal.

Run it as: python tools/demo_picture.py. The numbers are noisy, so every run draws another picture.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from discreet.cli import demo

TARGET = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"


def picture() -> str:
    """The demonstration in a terminal of 100 columns; fonts are those of the reader: none is
    fetched.
    """
    console = Console(
        record=True, width=100, force_terminal=True, highlight=False, file=io.StringIO()
    )
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            demo.run("demo", console)
        finally:
            os.chdir(before)
    svg = console.export_svg(title="make demo", theme=MONOKAI, unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    TARGET.write_text(picture(), "utf-8")
    print(TARGET)
